/* Sums of rows, and of rows with few columns, in the order in which NumPy adds them up, so to the same bits: rows by
   eight numbers at a time in blocks, the longer ones by halves; columns one after the other. Products go the same way,
   where NumPy's wait for each other. */

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

/* What begins with x: NumPy's sums begin with zero, so those of negative zeros alone are positive. */
#define FOLD sum
#define FOLDED(x, y) ((x) + (y))
#define BEGUN(x) (0 + (x))
#include "row_sums_of_types.h"
#undef FOLD
#undef FOLDED
#undef BEGUN
#define FOLD product
#define FOLDED(x, y) ((x) * (y))
#define BEGUN(x) (x)
#include "row_sums_of_types.h"

typedef void (*Fold)(const void *, void *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int);
#define FOLDS(fold) {{fold_uint32_t_##fold, fold_uint64_t_##fold}, {fold_float_##fold, fold_double_##fold}}
/* Of sums and products; of integers and other numbers; of 4 and 8 bytes. */
static const Fold folds[2][2][2] = {FOLDS(sum), FOLDS(product)};

/* row_sums(x, out, kind, n, columns, product): sums, or products, over the middle one of three axes, of which the last one
   has so many elements. Both are contiguous. Kinds: 0 integers, 1 floats, 2 complex numbers, which are added alone. */
PyObject *row_sums(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    int kind, product;
    Py_ssize_t n, columns;
    if (!PyArg_ParseTuple(args, "y*w*innp:row_sums", &x, &out, &kind, &n, &columns, &product))
        return NULL;
    const int is_complex = kind == 2;
    const Py_ssize_t size = x.itemsize >> is_complex;
    int fits = kind >= 0 && kind <= 2 - product && (size == 4 || size == 8) && out.itemsize == x.itemsize && n >= 1 &&
               columns >= 1 && columns <= MOST_COLUMNS && (columns > 1 || n > 1);
    const Py_ssize_t line = fits ? columns * x.itemsize : 1, outer = out.len / line, lines = x.len / line;
    /* A product of sizes might overflow. */
    fits = fits && out.len % line == 0 && x.len % line == 0 &&
           (outer ? lines % outer == 0 && lines / outer == n : lines == 0);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        folds[product][kind > 0][size == 8](x.buf, out.buf, outer, n, columns, is_complex);
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
