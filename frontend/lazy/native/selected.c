/* Elements of one array or another, and signs: NumPy's `where` and `sign` have a branch for each element, which those
   without an order mislead. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>

typedef struct {
    uint64_t parts[2];
} Sixteen;

/* `of_x`, `of_y`: 1 for arrays, 0 for one element in place of all. */
#define SELECT(type, of_x, of_y)                                                                                       \
    for (Py_ssize_t i = 0; i < n; i++) {                                                                               \
        const type a = ((const type *)x)[i * of_x], b = ((const type *)y)[i * of_y];                                   \
        ((type *)out)[i] = where[i] ? a : b;                                                                           \
    }
#define DEFINE(type)                                                                                                   \
    CLONES static void select_##type(const char *where, const void *restrict x, const void *restrict y,                \
                                     void *restrict out, Py_ssize_t n, int of_x, int of_y)                             \
    {                                                                                                                  \
        if (of_x && of_y)                                                                                              \
            SELECT(type, 1, 1)                                                                                         \
        else if (of_x)                                                                                                 \
            SELECT(type, 1, 0)                                                                                         \
        else if (of_y)                                                                                                 \
            SELECT(type, 0, 1)                                                                                         \
        else                                                                                                           \
            SELECT(type, 0, 0)                                                                                         \
    }
DEFINE(uint8_t)
DEFINE(uint16_t)
DEFINE(uint32_t)
DEFINE(uint64_t)
DEFINE(Sixteen)

typedef void (*Select)(const char *, const void *, const void *, void *, Py_ssize_t, int, int);

static Select select_of(Py_ssize_t width)
{
    switch (width) {
        case 1: return select_uint8_t;
        case 2: return select_uint16_t;
        case 4: return select_uint32_t;
        case 8: return select_uint64_t;
        case 16: return select_Sixteen;
    }
    return NULL;
}

/* select(condition, x, y, out): of bools and arrays of one type, contiguous, of as many elements; x and y may be one. */
PyObject *select_elements(PyObject *module, PyObject *args)
{
    Py_buffer where, x, y, out;
    if (!PyArg_ParseTuple(args, "y*y*y*w*:select", &where, &x, &y, &out))
        return NULL;
    const Py_ssize_t n = where.len, width = out.itemsize;
    const Select run = select_of(width);
    const int of_x = x.len != width, of_y = y.len != width;
    const int fits = run != NULL && where.itemsize == 1 && x.itemsize == width && y.itemsize == width &&
                     out.len / width == n && (!of_x || x.len == out.len) && (!of_y || y.len == out.len);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        run(where.buf, x.buf, y.buf, out.buf, n, of_x, of_y);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&where);
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "select takes a bool for each element, and arrays of one type that fit");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* By bits: from a choice the compiler would make a branch. */
#define DEFINE_SIGNS(type, bits)                                                                                       \
    CLONES static void signs_of_##type(const type *restrict x, type *restrict out, Py_ssize_t n)                       \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const type a = x[i];                                                                                       \
            union {                                                                                                    \
                type number;                                                                                           \
                bits word;                                                                                             \
            } given = {a}, one = {1};                                                                                  \
            const bits above = -(bits)(a > 0), below = -(bits)(a < 0), none = -(bits)(a != a);                         \
            given.word = (one.word & (above | below)) | (given.word & (none | (below & ~(~(bits)0 >> 1))));            \
            out[i] = given.number;                                                                                     \
        }                                                                                                              \
    }
DEFINE_SIGNS(float, uint32_t)
DEFINE_SIGNS(double, uint64_t)

/* signs(x, out): of float32 or float64, contiguous, of as many elements. */
PyObject *signs(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    if (!PyArg_ParseTuple(args, "y*w*:signs", &x, &out))
        return NULL;
    const int fits = x.len == out.len && x.itemsize == out.itemsize && (x.itemsize == 4 || x.itemsize == 8);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        if (x.itemsize == 4)
            signs_of_float(x.buf, out.buf, x.len / 4);
        else
            signs_of_double(x.buf, out.buf, x.len / 8);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "signs takes two arrays of float32 or float64 of one size");
        return NULL;
    }
    Py_RETURN_NONE;
}
