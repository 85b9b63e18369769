/* Hands launches over to the driver one after the other: calls through ctypes take ten times as long as the driver.
   See `backends/cuda/launches.py`, which writes the table and does the same in Python.

   The table has 64-bit numbers. Of a launch of a kernel: KERNEL, the function, three extents of the grid, three of a
   threadgroup, how many buffers, and each one's number among the addresses and its offset in bytes. Of a product:
   PRODUCT, the address of `cublasLtMatmul`, its arguments but for four matrices, and these as a buffer's number and
   offset. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { KERNEL = 0, PRODUCT = 1 };
enum { MOST_BUFFERS = 256, OF_KERNEL = 9, OF_PRODUCT = 21 };

typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);
typedef int (*Product)(void *, void *, const void *, const void *, void *, const void *, void *, const void *,
                       const void *, void *, void *, void *, const void *, void *, size_t, void *);

typedef struct {
    const uint64_t *numbers;
    Py_ssize_t count;
} Numbers;

static void *pointer(uint64_t number) { return (void *)(uintptr_t)number; }

/* The numbers of a launch; 0 where it is none, or asks for an address that is not there. */
static Py_ssize_t length_at(Numbers table, Py_ssize_t at, Py_ssize_t addresses)
{
    Py_ssize_t left = table.count - at, size, places;
    const uint64_t *found = table.numbers + at;
    if (found[0] == KERNEL) {
        if (left < OF_KERNEL || found[8] > MOST_BUFFERS)
            return 0;
        places = OF_KERNEL, size = OF_KERNEL + 2 * (Py_ssize_t)found[8];
    } else if (found[0] == PRODUCT) {
        places = OF_PRODUCT - 8, size = OF_PRODUCT;
    } else {
        return 0;
    }
    if (left < size)
        return 0;
    for (Py_ssize_t i = places; i < size; i += 2)
        if (found[i] >= (uint64_t)addresses)
            return 0;
    return size;
}

static int launch_kernel(const uint64_t *found, const uint64_t *addresses, Launch launch)
{
    uint64_t values[MOST_BUFFERS];
    void *parameters[MOST_BUFFERS];
    for (uint64_t i = 0; i < found[8]; i++) {
        const uint64_t *place = found + OF_KERNEL + 2 * i;
        values[i] = addresses[place[0]] + place[1];
        parameters[i] = values + i;
    }
    return launch(pointer(found[1]), (unsigned)found[2], (unsigned)found[3], (unsigned)found[4], (unsigned)found[5],
                  (unsigned)found[6], (unsigned)found[7], 0, NULL, parameters, NULL);
}

static int make_product(const uint64_t *found, const uint64_t *addresses)
{
    void *at[4];
    Product product = (Product)pointer(found[1]);
    for (int i = 0; i < 4; i++) {
        const uint64_t *place = found + OF_PRODUCT - 8 + 2 * i;
        at[i] = pointer(addresses[place[0]] + place[1]);
    }
    return product(pointer(found[2]), pointer(found[3]), pointer(found[4]), at[0], pointer(found[5]), at[1],
                   pointer(found[6]), pointer(found[7]), at[2], pointer(found[8]), at[3], pointer(found[9]),
                   pointer(found[10]), pointer(found[11]), (size_t)found[12], NULL);
}

static int launch_all(Numbers table, Numbers addresses, Launch launch, uint64_t *failed)
{
    for (Py_ssize_t at = 0; at < table.count; at += length_at(table, at, addresses.count)) {
        const uint64_t *found = table.numbers + at;
        *failed = found[0];
        int code = found[0] == KERNEL ? launch_kernel(found, addresses.numbers, launch)
                                      : make_product(found, addresses.numbers);
        if (code)
            return code;
    }
    return 0;
}

static int read_numbers(PyObject *from, Py_buffer *view, Numbers *found)
{
    if (PyObject_GetBuffer(from, view, PyBUF_SIMPLE) < 0)
        return -1;
    found->numbers = view->buf;
    found->count = view->len / (Py_ssize_t)sizeof(uint64_t);
    return 0;
}

PyDoc_STRVAR(launch_doc,
"launch(table, addresses, kernel)\n--\n\n"
"Hand launches over, in order, without Python's lock.\n\n"
"Args:\n"
"    table, addresses: buffers of 64-bit numbers.\n"
"    kernel: the address of `cuLaunchKernel`.\n\n"
"Returns:\n"
"    The first error's code, and whether it is the product's: then nothing came after it.\n\n"
"Raises:\n"
"    ValueError: the table is none.");

static PyObject *launch(PyObject *module, PyObject *args)
{
    PyObject *table_from, *addresses_from;
    unsigned long long kernel;
    if (!PyArg_ParseTuple(args, "OOK:launch", &table_from, &addresses_from, &kernel))
        return NULL;
    Py_buffer table_view, addresses_view;
    Numbers table, addresses;
    if (read_numbers(table_from, &table_view, &table) < 0)
        return NULL;
    if (read_numbers(addresses_from, &addresses_view, &addresses) < 0) {
        PyBuffer_Release(&table_view);
        return NULL;
    }
    Py_ssize_t at = 0;
    while (at < table.count) {
        Py_ssize_t size = length_at(table, at, addresses.count);
        if (!size || !(table.numbers[at] == KERNEL ? kernel : table.numbers[at + 1]))
            break;
        at += size;
    }
    PyObject *found = NULL;
    if (at < table.count) {
        PyErr_SetString(PyExc_ValueError, "launch: the table is no list of launches");
    } else {
        uint64_t failed = KERNEL;
        int code;
        Py_BEGIN_ALLOW_THREADS
        code = launch_all(table, addresses, (Launch)pointer(kernel), &failed);
        Py_END_ALLOW_THREADS
        found = Py_BuildValue("iO", code, failed == PRODUCT ? Py_True : Py_False);
    }
    PyBuffer_Release(&table_view);
    PyBuffer_Release(&addresses_view);
    return found;
}

static PyMethodDef methods[] = {{"launch", launch, METH_VARARGS, launch_doc}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef launches = {
    PyModuleDef_HEAD_INIT, .m_name = "smelt._launches", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__launches(void) { return PyModule_Create(&launches); }
