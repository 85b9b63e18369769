/* Sums of rows, and of rows with few columns, in the order in which NumPy adds them up, so to the same bits: rows by
   eight numbers at a time in blocks, the longer ones by halves; columns one after the other. */

#include "core.h"
#include "vectors.h"
#include <string.h>

/* Columns, at most: longer rows NumPy adds up as quickly. Those that are added up at a time. */
#define MOST_COLUMNS 512
#define MOST_PART 64
/* Numbers of a row that are added one after the other, at most; sums that longer ones have; numbers of a block, which is
   not halved; and blocks side by side. */
#define FEW 7
#define SUMS 8
#define BLOCK 128
#define MOST_BLOCKS 4
/* Bytes of rows that are read again for other columns: a part of the first cache. */
#define CACHED (1 << 14)
#define FOR_EACH(DO) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

/* The first half of a row. */
INLINE Py_ssize_t half_of(Py_ssize_t n)
{
    return n / 2 - n / 2 % SUMS;
}

#define REAL float
#include "row_sums.h"
#undef REAL
#define REAL double
#include "row_sums.h"
#undef REAL
/* Integers wrap, which signed ones of C do not. */
#define REAL uint32_t
#include "row_sums.h"
#undef REAL
#define REAL uint64_t
#include "row_sums.h"
#undef REAL

/* row_sums(x, out, kind, n, columns): sums over the middle one of three axes, of which the last one has so many
   elements. Both are contiguous. Kinds: 0 integers, 1 floats, 2 complex numbers. */
PyObject *row_sums(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    int kind;
    Py_ssize_t n, columns;
    if (!PyArg_ParseTuple(args, "y*w*inn:row_sums", &x, &out, &kind, &n, &columns))
        return NULL;
    const int is_complex = kind == 2;
    const Py_ssize_t size = x.itemsize >> is_complex;
    int fits = kind >= 0 && kind <= 2 && (size == 4 || size == 8) && out.itemsize == x.itemsize && n >= 1 &&
               columns >= 1 && columns <= MOST_COLUMNS && (columns > 1 || n > 1);
    const Py_ssize_t line = fits ? columns * x.itemsize : 1, outer = out.len / line, lines = x.len / line;
    /* A product of sizes might overflow. */
    fits = fits && out.len % line == 0 && x.len % line == 0 &&
           (outer ? lines % outer == 0 && lines / outer == n : lines == 0);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        (kind ? size == 4 ? sum_float : sum_double : size == 4 ? sum_uint32_t : sum_uint64_t)(
            x.buf, out.buf, outer, n, columns, is_complex);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "row_sums takes rows of numbers of 4 or 8 bytes, and room for their sums");
        return NULL;
    }
    Py_RETURN_NONE;
}
