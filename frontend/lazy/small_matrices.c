/* Factors of batches of small matrices, in vectors: LAPACK takes one matrix at a time, and most of that is calls. See
   `ir/small_matrices.py`. */

#include "core.h"
#include "vectors.h"
#include <float.h>
#include <math.h>

#define MOST 16
#define SWEEPS 30

enum { CHOLESKY, SOLVE, EIGH, DET, QR, SVD };

#define REAL float
#define WHOLE int
#define NAME(name) name##_f32
#define LARGEST FLT_MAX
#define SMALLEST 1e-20f
#define EPSILON FLT_EPSILON
#define SQRT sqrtf
#include "small_rows.h"
#undef REAL
#undef WHOLE
#undef NAME
#undef VECTOR
#undef MASK
#undef LARGEST
#undef SMALLEST
#undef EPSILON
#undef SQRT
#define REAL double
#define WHOLE long long
#define NAME(name) name##_f64
#define LARGEST DBL_MAX
#define SMALLEST 1e-200
#define EPSILON DBL_EPSILON
#define SQRT sqrt
#include "small_rows.h"

/* small_matrices(what, double, n, k, a, b, result, more): whether all matrices of a have a result.
   Of a (rows × n × n): CHOLESKY: factors. SOLVE: solutions (rows × n × k) for b; for the inverse b is empty and k is n.
   EIGH: eigenvalues, and in `more` eigenvectors. DET: determinants. Of a (rows × n × k): QR: Q, and in `more` R. SVD, with
   n ≥ k: singular values, and in `more` U of all and then Vᵀ of all. All are contiguous, of float64 or float32. */
PyObject *small_matrices(PyObject *module, PyObject *args)
{
    int what, wide, found = 0;
    Py_ssize_t n, k;
    Py_buffer a, b, out, more;
    if (!PyArg_ParseTuple(args, "ipnny*y*w*w*:small_matrices", &what, &wide, &n, &k, &a, &b, &out, &more))
        return NULL;
    const int known = what >= CHOLESKY && what <= SVD && n >= 1 && n <= MOST && k >= 1 && k <= MOST;
    const Py_ssize_t size = wide ? 8 : 4, least = n < k ? n : k, matrix = known ? n * (what >= QR ? k : n) : 1;
    const Py_ssize_t rows = a.len / (size * matrix);
    Py_ssize_t result = matrix, beside = 0;
    switch (what) {
    case SOLVE: result = n * k; break;
    case EIGH: result = n, beside = matrix; break;
    case DET: result = 1; break;
    case QR: result = n * least, beside = least * k; break;
    case SVD: result = k, beside = matrix + k * k;
    }
    if (!known || a.len % (size * matrix) || out.len != rows * size * result || (what == SVD && n < k) ||
        (beside && more.len != rows * size * beside) || (what == SOLVE && (b.len ? b.len != out.len : k != n)))
        PyErr_SetString(PyExc_ValueError, "small_matrices: arrays do not fit");
    else {
        Py_BEGIN_ALLOW_THREADS
        const void *right = what == SOLVE && b.len ? b.buf : NULL;
        found = wide ? small_f64(what, a.buf, right, out.buf, more.buf, n, k, rows)
                     : small_f32(what, a.buf, right, out.buf, more.buf, n, k, rows);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&a);
    PyBuffer_Release(&b);
    PyBuffer_Release(&out);
    PyBuffer_Release(&more);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(found);
}
