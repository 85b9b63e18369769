/* Factors of batches of small matrices, in vectors: LAPACK takes one matrix at a time, and most of that is calls. See
   `ir/small_matrices.py`. */

#include "core.h"
#include "vectors.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Rows of the largest matrices: of which there may be two, and one. */
#define MOST 32
#define MOST_ROOTED 64
#define SWEEPS 30

/* Of exponentials: numbers of the largest matrices, what the approximant consists of, up to which norm it is right, and
   how often they are halved at most until they have it. */
#define LARGEST_POWER (16 * 16)
#define PADE_NORM 5.371920351148152
#define MOST_HALVINGS 20
static const double pade[] = {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
                              10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.};

enum { CHOLESKY, SOLVE, LOWER, UPPER, EIGH, DET, EXPM, QR, SVD, LU };

#define LARGEST PASTE(largest, REAL)
#define SMALLEST PASTE(smallest, REAL)
#define EPSILON PASTE(epsilon, REAL)
#define SQRT(x) PASTE(sqrt, REAL)(x)
static const float largest_float = FLT_MAX, smallest_float = 1e-20f, epsilon_float = FLT_EPSILON;
static const double largest_double = DBL_MAX, smallest_double = 1e-200, epsilon_double = DBL_EPSILON;
#define sqrt_float sqrtf
#define sqrt_double sqrt
#define CHOSEN(mask, x, y) ((VECTOR)(((MASK)(x) & (mask)) | ((MASK)(y) & ~(mask))))
#define SIZE(x) CHOSEN((x) < 0, -(x), (x))

/* What is to be made of which matrices; see `small_matrices`. */
typedef struct {
    int what;
    Py_ssize_t n, k, rows;
    const void *in, *right;
    void *out, *more;
} Work;

#define LOOPS "small_rows.h"
#include "every_vector.h"

static int (*const small[][2])(const Work *) = VERSIONS(small);

/* small_matrices(bytes, what, double, n, k, a, b, result, more): whether all matrices of a have a result, in vectors of
   so many bytes.
   Of a (rows × n × n): CHOLESKY: factors. SOLVE: solutions (rows × n × k) for b; for the inverse b is empty and k is n.
   LOWER, UPPER: the same of triangular matrices. EIGH: eigenvalues, and in `more` eigenvectors. DET: determinants.
   EXPM: exponentials; where k is 1, with the digits of the type. Of a (rows × n × k): QR: Q, and in `more` R. SVD, with
   n ≥ k: singular values, and in `more` U of all and then Vᵀ of all. LU: factors, and in `more` the rows exchanged by all
   matrices, and then the order of all rows. All are contiguous, of float64 or float32. */
PyObject *small_matrices(PyObject *module, PyObject *args)
{
    int bytes, what, wide, found = 0;
    Py_ssize_t n, k;
    Py_buffer a, b, out, more;
    if (!PyArg_ParseTuple(args, "iipnny*y*w*w*:small_matrices", &bytes, &what, &wide, &n, &k, &a, &b, &out, &more))
        return NULL;
    const int version = version_of(bytes);
    const Py_ssize_t most = what == CHOLESKY ? MOST_ROOTED : MOST;
    const int known = what >= CHOLESKY && what <= LU && n >= 1 && n <= most && k >= 1 && k <= most;
    const Py_ssize_t size = wide ? 8 : 4, least = n < k ? n : k, matrix = known ? n * (what >= QR ? k : n) : 1;
    const Py_ssize_t rows = a.len / (size * matrix);
    Py_ssize_t result = matrix, beside = 0;
    switch (what) {
    case SOLVE:
    case LOWER:
    case UPPER: result = n * k; break;
    case EIGH: result = n, beside = matrix; break;
    case DET: result = 1; break;
    case QR: result = n * least, beside = least * k; break;
    case SVD: result = k, beside = matrix + k * k; break;
    case LU: beside = least + n;
    }
    const int fits = known && a.len % (size * matrix) == 0 && out.len == rows * size * result &&
                     (what != SVD || n >= k) && (!beside || more.len == rows * size * beside) &&
                     (what != SOLVE || (b.len ? b.len == out.len : k == n)) &&
                     ((what != LOWER && what != UPPER) || b.len == out.len);
    if (version >= 0 && !fits)
        PyErr_SetString(PyExc_ValueError, "small_matrices: arrays do not fit");
    if (version >= 0 && fits) {
        Py_BEGIN_ALLOW_THREADS
        const Work work = {what, n, k, rows, a.buf, what <= UPPER && b.len ? b.buf : NULL, out.buf, more.buf};
        found = small[version][wide](&work);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&a);
    PyBuffer_Release(&b);
    PyBuffer_Release(&out);
    PyBuffer_Release(&more);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(found);
}
