/* Sums of short rows, and of rows with few columns, which NumPy adds up in a loop of its own each: in its order, so to
   the same bits. */

#include "core.h"

/* Columns, and elements of a row that is summed, at most; from 8 on NumPy takes another order. */
#define MOST 7

#define INLINE static inline __attribute__((always_inline))

/* Sums of `outer` matrices of n rows down their few columns. */
#define DOWN(TYPE)                                                                                                     \
    INLINE void down_##TYPE(const TYPE *x, TYPE *out, Py_ssize_t outer, Py_ssize_t n, const Py_ssize_t columns)         \
    {                                                                                                                  \
        for (; outer > 0; outer--, out += columns) {                                                                   \
            TYPE sums[MOST];                                                                                           \
            for (Py_ssize_t k = 0; k < columns; k++)                                                                   \
                sums[k] = x[k];                                                                                        \
            x += columns;                                                                                              \
            for (Py_ssize_t i = 1; i < n; i++, x += columns)                                                           \
                for (Py_ssize_t k = 0; k < columns; k++)                                                               \
                    sums[k] += x[k];                                                                                   \
            for (Py_ssize_t k = 0; k < columns; k++)                                                                   \
                out[k] = sums[k];                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Sums along `outer` rows of few elements. */                                                                     \
    INLINE void along_##TYPE(const TYPE *x, TYPE *out, Py_ssize_t outer, const Py_ssize_t n)                            \
    {                                                                                                                  \
        for (Py_ssize_t o = 0; o < outer; o++, x += n) {                                                               \
            TYPE sum = x[0];                                                                                           \
            for (Py_ssize_t i = 1; i < n; i++)                                                                         \
                sum += x[i];                                                                                           \
            out[o] = sum;                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void sums_##TYPE(const TYPE *x, TYPE *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns)              \
    {                                                                                                                  \
        switch (columns == 1 ? -n : columns) {                                                                         \
            FOR_EACH(CASES, TYPE)                                                                                      \
        }                                                                                                              \
    }

#define CASES(k, TYPE)                                                                                                 \
    case -k: along_##TYPE(x, out, outer, k); break;                                                                    \
    case k: down_##TYPE(x, out, outer, n, k); break;
#define FOR_EACH(DO, TYPE) DO(2, TYPE) DO(3, TYPE) DO(4, TYPE) DO(5, TYPE) DO(6, TYPE) DO(7, TYPE)

/* Integers wrap, which signed ones of C do not. */
DOWN(float)
DOWN(double)
DOWN(uint32_t)
DOWN(uint64_t)

/* row_sums(x, out, is_float, n, columns): sums over the middle one of three axes, of which the last one has so many
   elements. Both are contiguous. */
PyObject *row_sums(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    int is_float;
    Py_ssize_t n, columns;
    if (!PyArg_ParseTuple(args, "y*w*pnn:row_sums", &x, &out, &is_float, &n, &columns))
        return NULL;
    Py_ssize_t each = x.itemsize, outer = columns > 0 && each > 0 ? out.len / (columns * each) : 0;
    int fits = (each == 4 || each == 8) && n >= 1 && columns >= 1 && columns <= MOST && (columns > 1 || (n > 1 && n <= MOST)) &&
               x.len == outer * n * columns * each && out.len == outer * columns * each;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        if (is_float && each == 4)
            sums_float(x.buf, out.buf, outer, n, columns);
        else if (is_float)
            sums_double(x.buf, out.buf, outer, n, columns);
        else if (each == 4)
            sums_uint32_t(x.buf, out.buf, outer, n, columns);
        else
            sums_uint64_t(x.buf, out.buf, outer, n, columns);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "row_sums takes short rows of 4 or 8 bytes an element, and room for their sums");
        return NULL;
    }
    Py_RETURN_NONE;
}
