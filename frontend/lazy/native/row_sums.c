/* Sums of short rows, and of rows with few columns, which NumPy adds up in a loop of its own each: in its order, so to
   the same bits. */

#include "core.h"
#include "vectors.h"

/* Columns, and elements of a row that is summed, at most: longer ones NumPy halves. */
#define MOST_COLUMNS 64
#define MOST_ELEMENTS 127
/* Elements of a row that are added one after the other, at most; and sums that longer ones have. */
#define FEW 7
#define SUMS 8

/* A part of the columns of `outer` matrices of n rows, summed down. */
#define DOWN(TYPE)                                                                                                     \
    INLINE void down_##TYPE(const TYPE *x, TYPE *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns,               \
                            const Py_ssize_t part)                                                                     \
    {                                                                                                                  \
        for (; outer > 0; outer--, out += columns) {                                                                   \
            TYPE sums[16];                                                                                             \
            for (Py_ssize_t k = 0; k < part; k++)                                                                      \
                sums[k] = x[k];                                                                                        \
            x += columns;                                                                                              \
            for (Py_ssize_t i = 1; i < n; i++, x += columns)                                                           \
                for (Py_ssize_t k = 0; k < part; k++)                                                                  \
                    sums[k] += x[k];                                                                                   \
            for (Py_ssize_t k = 0; k < part; k++)                                                                      \
                out[k] = sums[k];                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Sums along `outer` rows: of few elements one after the other, else eight that are added up at the end. */       \
    INLINE void along_##TYPE(const TYPE *x, TYPE *out, Py_ssize_t outer, const Py_ssize_t n)                            \
    {                                                                                                                  \
        for (Py_ssize_t o = 0; o < outer; o++, x += n) {                                                               \
            TYPE sum = x[0];                                                                                           \
            Py_ssize_t i = 1;                                                                                          \
            if (n > FEW) {                                                                                             \
                TYPE s[SUMS];                                                                                          \
                for (int k = 0; k < SUMS; k++)                                                                         \
                    s[k] = x[k];                                                                                       \
                for (i = SUMS; i + SUMS <= n; i += SUMS)                                                               \
                    for (int k = 0; k < SUMS; k++)                                                                     \
                        s[k] += x[i + k];                                                                              \
                sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));                               \
            }                                                                                                          \
            for (; i < n; i++)                                                                                         \
                sum += x[i];                                                                                           \
            out[o] = sum;                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    CLONES static void sums_##TYPE(const TYPE *x, TYPE *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns)       \
    {                                                                                                                  \
        if (columns == 1)                                                                                              \
            switch (n) {                                                                                               \
                FOR_EACH(ALONG, TYPE)                                                                                  \
            default: along_##TYPE(x, out, outer, n); return;                                                           \
            }                                                                                                          \
        switch (columns) {                                                                                             \
            FOR_EACH(DOWN_ALL, TYPE)                                                                                   \
        }                                                                                                              \
        Py_ssize_t done = 0;                                                                                           \
        for (; done + 16 <= columns; done += 16)                                                                       \
            down_##TYPE(x + done, out + done, outer, n, columns, 16);                                                  \
        switch ((columns - done) >> 2) {                                                                               \
            case 3: down_##TYPE(x + done, out + done, outer, n, columns, 12); break;                                   \
            case 2: down_##TYPE(x + done, out + done, outer, n, columns, 8); break;                                    \
            case 1: down_##TYPE(x + done, out + done, outer, n, columns, 4); break;                                    \
        }                                                                                                              \
        done += (columns - done) >> 2 << 2;                                                                            \
        switch (columns - done) {                                                                                      \
            case 3: down_##TYPE(x + done, out + done, outer, n, columns, 3); break;                                    \
            case 2: down_##TYPE(x + done, out + done, outer, n, columns, 2); break;                                    \
            case 1: down_##TYPE(x + done, out + done, outer, n, columns, 1); break;                                    \
        }                                                                                                              \
    }

#define ALONG(k, TYPE) case k: along_##TYPE(x, out, outer, k); return;
#define DOWN_ALL(k, TYPE) case k: down_##TYPE(x, out, outer, n, k, k); return;
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
    int fits = (each == 4 || each == 8) && n >= 1 && columns >= 1 && columns <= MOST_COLUMNS &&
               (columns > 1 || (n > 1 && n <= MOST_ELEMENTS)) && x.len == outer * n * columns * each &&
               out.len == outer * columns * each;
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
