/* Running sums, products and extrema of rows, and of rows before other axes. Each number waits for the one before it: so
   several rows are gone along together, which NumPy does one by one. */

#include "core.h"
#include "vectors.h"

/* Columns that are gone along together, at most. */
#define MOST_PART 1024

/* Integers wrap, as unsigned ones do. Each step would round what sums and products of float32 have come to: that is kept
   in float64. */
#define REAL uint32_t
#define TOTAL uint32_t
#define WHICH sums
#define STEP(x, y) ((x) + (y))
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL uint64_t
#define TOTAL uint64_t
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL float
#define TOTAL double
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL double
#define TOTAL double
#include "running.h"
#undef REAL
#undef TOTAL
#undef STEP
#undef WHICH
#define REAL uint32_t
#define TOTAL uint32_t
#define WHICH products
#define STEP(x, y) ((x) * (y))
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL uint64_t
#define TOTAL uint64_t
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL float
#define TOTAL double
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL double
#define TOTAL double
#include "running.h"
#undef REAL
#undef TOTAL
#undef STEP
#undef WHICH
/* NaN stays; of two zeros, the later. */
#define REAL int32_t
#define TOTAL int32_t
#define WHICH least
#define STEP(x, y) ((((x) < (y)) | ((x) != (x))) ? (x) : (y))
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL int64_t
#define TOTAL int64_t
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL float
#define TOTAL float
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL double
#define TOTAL double
#include "running.h"
#undef REAL
#undef TOTAL
#undef STEP
#undef WHICH
#define REAL int32_t
#define TOTAL int32_t
#define WHICH largest
#define STEP(x, y) ((((x) > (y)) | ((x) != (x))) ? (x) : (y))
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL int64_t
#define TOTAL int64_t
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL float
#define TOTAL float
#include "running.h"
#undef REAL
#undef TOTAL
#define REAL double
#define TOTAL double
#include "running.h"

typedef void (*Run)(const void *, void *, Py_ssize_t, Py_ssize_t, Py_ssize_t);
/* Of sums, products, the least and the largest; of kinds. */
static const Run runs[4][4] = {
    {run_uint32_t_sums, run_uint64_t_sums, run_float_sums, run_double_sums},
    {run_uint32_t_products, run_uint64_t_products, run_float_products, run_double_products},
    {run_int32_t_least, run_int64_t_least, run_float_least, run_double_least},
    {run_int32_t_largest, run_int64_t_largest, run_float_largest, run_double_largest},
};
static const Py_ssize_t sizes[4] = {4, 8, 4, 8};

/* running(x, out, which, kind, n, columns): running results along the middle one of three axes, of n elements, of which
   the last one has so many. Both are contiguous. Kinds: 0 and 1 int32 and int64, 2 and 3 float32 and float64. */
PyObject *running(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    int which, kind;
    Py_ssize_t n, columns;
    if (!PyArg_ParseTuple(args, "y*w*iinn:running", &x, &out, &which, &kind, &n, &columns))
        return NULL;
    int fits = which >= 0 && which < 4 && kind >= 0 && kind < 4 && x.itemsize == sizes[kind] &&
               out.itemsize == sizes[kind] && n >= 1 && columns >= 1 && x.len == out.len;
    /* A product of sizes might overflow. */
    const Py_ssize_t numbers = fits ? x.len / x.itemsize : 0;
    fits = fits && numbers % columns == 0 && numbers / columns % n == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        runs[which][kind](x.buf, out.buf, numbers / columns / n, n, columns);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "running takes rows of some types, and room for as many numbers");
        return NULL;
    }
    Py_RETURN_NONE;
}
