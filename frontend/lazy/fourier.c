/* Fourier transforms of many rows, or of long ones: the same sums as pocketfft's, which NumPy has, in vectors. Plans are
   made in Python: see `ir/fourier.py`. */

#include "core.h"
#include "vectors.h"

#define MOST_RADIX 13
#define MOST_PASSES 40
enum { COMPLEX, FROM_REAL, TO_REAL };

/* Elements of two vectors in another order. */
#if defined(__clang__)
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (MASK){__VA_ARGS__})
#endif

#define REAL float
#define WHOLE int
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EXCHANGED 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define REAL_TWICE 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14
#define IMAG_TWICE 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15
#define REVERSED 14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1
#define SIGNS 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1
#define NAME(name) name##_f32
#include "fourier_rows.h"
#undef REAL
#undef NAME
#undef VECTOR
#undef MASK
#undef WHOLE
#undef EVEN
#undef ODD
#undef LOW
#undef HIGH
#undef EXCHANGED
#undef REAL_TWICE
#undef IMAG_TWICE
#undef REVERSED
#undef SIGNS
#define REAL double
#define WHOLE long long
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define EXCHANGED 1, 0, 3, 2, 5, 4, 7, 6
#define REAL_TWICE 0, 0, 2, 2, 4, 4, 6, 6
#define IMAG_TWICE 1, 1, 3, 3, 5, 5, 7, 7
#define REVERSED 6, 7, 4, 5, 2, 3, 0, 1
#define SIGNS 1, -1, 1, -1, 1, -1, 1, -1
#define NAME(name) name##_f64
#include "fourier_rows.h"

/* Radices of a tuple of ints, ended by 0; their product, or -1 and an error. */
static Py_ssize_t take_radices(PyObject *given, int *radices)
{
    Py_ssize_t n = 1, count = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < count && i < MOST_PASSES; i++) {
        long r = PyLong_AsLong(PyTuple_GET_ITEM(given, i));
        if (r != 2 && r != 3 && r != 4 && r != 5 && r != 7 && r != 8 && r != 11 && r != 13) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a radix is 2, 3, 4, 5, 7, 8, 11 or 13");
            return -1;
        }
        radices[i] = (int)r;
        n *= r;
    }
    radices[count < MOST_PASSES ? count : MOST_PASSES] = 0;
    return n;
}

/* How many numbers the table of these passes has. */
static Py_ssize_t turns_of(Py_ssize_t n, const int *radices)
{
    Py_ssize_t found = 0;
    for (; *radices; radices++) {
        n /= *radices;
        found += 2 * (*radices - 1) * n + (*radices == 5 || *radices > 8 || *radices == 7 ? 2 * *radices : 0);
    }
    return found;
}

/* fourier(x, result, double, kind, inverse, scale, first, first_turns, second, second_turns, starts, rest, halves): all
   buffers are contiguous and of the same type of number, float64 or float32; n complex numbers are a row of x and of
   the result, but n + 1 of the coefficients of real ones, which are 2·n. */
PyObject *fourier(PyObject *module, PyObject *args)
{
    Py_buffer in, out, tables[5];
    PyObject *radices[2];
    int wide, kind, inverse, of[2][MOST_PASSES + 1];
    double scale;
    if (!PyArg_ParseTuple(args, "y*w*pipdO!y*O!y*y*y*y*:fourier", &in, &out, &wide, &kind, &inverse, &scale,
                          &PyTuple_Type, &radices[0], &tables[0], &PyTuple_Type, &radices[1], &tables[1], &tables[2],
                          &tables[3], &tables[4]))
        return NULL;
    const Py_ssize_t size = wide ? 8 : 4, lanes = 64 / size;
    void *memory = NULL;
    const Py_ssize_t a = take_radices(radices[0], of[0]), b = a < 0 ? -1 : take_radices(radices[1], of[1]);
    if (b < 0)
        goto done;
    const Py_ssize_t n = a * b, most = a > b ? a : b, blocks = (b + lanes - 1) / lanes;
    const Py_ssize_t row = 2 * size * (n + (kind == TO_REAL)), result = 2 * size * (n + (kind == FROM_REAL));
    const Py_ssize_t rows = in.len / row;
    if (kind < COMPLEX || kind > TO_REAL || in.len % row || out.len != rows * result ||
        tables[0].len != size * turns_of(a, of[0]) || tables[1].len != size * turns_of(b, of[1]) ||
        (b > 1 && (tables[2].len != 2 * size * a * blocks || tables[3].len != 2 * 64 * a)) ||
        (kind != COMPLEX && tables[4].len != 2 * size * (n / 2 + 1))) {
        PyErr_SetString(PyExc_ValueError, "fourier: arrays do not fit the plan");
        goto done;
    }
    /* Lanes twice, the matrix between, the table of whole vectors, coefficients. */
    const Py_ssize_t lane = 2 * 64 * most, matrix = b > 1 ? 2 * 64 * a * blocks : 0, table = b > 1 ? 2 * 64 * a : 0;
    const Py_ssize_t kept = kind == TO_REAL ? 2 * size * n * (rows < lanes ? rows : lanes) : 0;
    memory = PyMem_RawMalloc((size_t)(2 * lane + matrix + table + kept + 64));
    if (memory == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    char *x = (char *)(((size_t)memory + 63) / 64 * 64), *y = x + lane, *between = y + lane, *rest = between + matrix;
    char *coefficients = rest + table;
    Py_BEGIN_ALLOW_THREADS
    if (table)
        memcpy(rest, tables[3].buf, (size_t)table);
    if (wide) {
        Plan_f64 plan = {{a, of[0], tables[0].buf}, {b, of[1], tables[1].buf}, tables[2].buf, (double *)rest};
        transform_f64(&plan, in.buf, out.buf, rows, kind, inverse, scale, tables[4].buf, (vector_f64 *)x,
                      (vector_f64 *)y, (vector_f64 *)between, (double *)coefficients);
    } else {
        Plan_f32 plan = {{a, of[0], tables[0].buf}, {b, of[1], tables[1].buf}, tables[2].buf, (float *)rest};
        transform_f32(&plan, in.buf, out.buf, rows, kind, inverse, (float)scale, tables[4].buf, (vector_f32 *)x,
                      (vector_f32 *)y, (vector_f32 *)between, (float *)coefficients);
    }
    Py_END_ALLOW_THREADS
done:
    PyMem_RawFree(memory);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&tables[i]);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* fourier_columns(x, result, double, inverse, scale, radices, turns, width, first, last): of each column of matrices of
   n × width complex numbers, from block of 64 bytes of real parts to block; see `fourier`. */
PyObject *fourier_columns(PyObject *module, PyObject *args)
{
    Py_buffer in, out, turns;
    PyObject *given;
    int wide, inverse, radices[MOST_PASSES + 1];
    double scale;
    Py_ssize_t width, first, last;
    if (!PyArg_ParseTuple(args, "y*w*ppdO!y*nnn:fourier_columns", &in, &out, &wide, &inverse, &scale, &PyTuple_Type,
                          &given, &turns, &width, &first, &last))
        return NULL;
    const Py_ssize_t size = wide ? 8 : 4, lanes = 64 / size, n = take_radices(given, radices);
    void *memory = NULL;
    if (n < 0)
        goto done;
    const Py_ssize_t matrix = width > 0 && width <= in.len ? 2 * size * n * width : 0;
    const Py_ssize_t blocks = (width + lanes - 1) / lanes;
    if (matrix == 0 || in.len % matrix || out.len != in.len || turns.len != size * turns_of(n, radices) || first < 0 ||
        first > last || last > in.len / matrix * blocks) {
        PyErr_SetString(PyExc_ValueError, "fourier_columns: arrays do not fit");
        goto done;
    }
    memory = PyMem_RawMalloc((size_t)(4 * 64 * n + 64));
    if (memory == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    char *x = (char *)(((size_t)memory + 63) / 64 * 64), *y = x + 2 * 64 * n;
    Py_BEGIN_ALLOW_THREADS
    if (wide) {
        Passes_f64 by = {n, radices, turns.buf};
        transform_columns_f64(&by, in.buf, out.buf, width, first, last, inverse, scale, (vector_f64 *)x,
                              (vector_f64 *)y);
    } else {
        Passes_f32 by = {n, radices, turns.buf};
        transform_columns_f32(&by, in.buf, out.buf, width, first, last, inverse, (float)scale, (vector_f32 *)x,
                              (vector_f32 *)y);
    }
    Py_END_ALLOW_THREADS
done:
    PyMem_RawFree(memory);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    PyBuffer_Release(&turns);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
