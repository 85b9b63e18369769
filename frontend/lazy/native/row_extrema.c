/* The largest or the least of the numbers of rows, and of rows before an axis of not too many elements: NaN where there is
   one. NumPy begins anew with each such row. */

#include "core.h"
#include "vectors.h"
#include <string.h>

/* Vectors that are compared at a time, and their bytes; those of a row of the last axis, at most: longer ones NumPy folds as
   quickly. */
#define VECTORS 8
#define BYTES_OF_VECTOR 32
#define MOST_LINE (1 << 12)

#define EXTREMUM largest
#define BEFORE(x, y) ((x) > (y))
#include "row_extrema_of_types.h"
#undef EXTREMUM
#undef BEFORE
#define EXTREMUM least
#define BEFORE(x, y) ((x) < (y))
#include "row_extrema_of_types.h"

typedef void (*Fold)(const void *, void *, Py_ssize_t, Py_ssize_t, Py_ssize_t);
#define OF_KINDS(which)                                                                                                    \
    {fold_uint8_t_##which, fold_int32_t_##which, fold_int64_t_##which, fold_float_##which, fold_double_##which}
/* Of the least and the largest; of kinds. */
static const Fold folds[2][5] = {OF_KINDS(least), OF_KINDS(largest)};
static const Py_ssize_t sizes[5] = {1, 4, 8, 4, 8};

/* row_extrema(x, out, kind, n, columns, largest): the extrema over the middle one of three axes, of which the last one has
   so many elements. Both are contiguous. Kinds: 0 uint8, 1 and 2 int32 and int64, 3 and 4 float32 and
   float64. */
PyObject *row_extrema(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    int kind, largest;
    Py_ssize_t n, columns;
    if (!PyArg_ParseTuple(args, "y*w*innp:row_extrema", &x, &out, &kind, &n, &columns, &largest))
        return NULL;
    int fits = kind >= 0 && kind < 5 && x.itemsize == sizes[kind] && out.itemsize == sizes[kind] && n >= 1 &&
               columns >= 1 && columns <= MOST_LINE / sizes[kind];
    const Py_ssize_t line = fits ? columns * x.itemsize : 1, outer = out.len / line, lines = x.len / line;
    /* A product of sizes might overflow. */
    fits = fits && out.len % line == 0 && x.len % line == 0 &&
           (outer ? lines % outer == 0 && lines / outer == n : lines == 0);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        folds[largest][kind](x.buf, out.buf, outer, n, columns);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "row_extrema takes rows of some types, and room for their extrema");
        return NULL;
    }
    Py_RETURN_NONE;
}
