/* What NumPy has no loops for, or slow ones; see error_functions.py and short_axes.py. Operations and their order are the
   same, so the bits are. */

#include "core.h"
#include <math.h>
#include <stdint.h>

#define BLOCK 256
#define MOST 32

typedef struct {
    double of[MOST];
    Py_ssize_t n;
} Coefficients;

static Coefficients small, large, single_small, single_large, inverse, inverse_far;
static double first, last;

static int take(PyObject *given, Coefficients *to)
{
    Py_ssize_t n = PyTuple_GET_SIZE(given);
    if (n < 1 || n > MOST) {
        PyErr_SetString(PyExc_ValueError, "a polynomial has between 1 and 32 coefficients");
        return -1;
    }
    to->n = n;
    for (Py_ssize_t i = 0; i < n; i++)
        to->of[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(given, i));
    return PyErr_Occurred() ? -1 : 0;
}

/* Take the coefficients of `error_functions`, and the ends of the interval of the second one in float64. */
PyObject *connect_elements(PyObject *module, PyObject *args)
{
    PyObject *a, *b, *c, *d, *e, *f;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!dd:connect_elements", &PyTuple_Type, &a, &PyTuple_Type, &b, &PyTuple_Type,
                          &c, &PyTuple_Type, &d, &PyTuple_Type, &e, &PyTuple_Type, &f, &first, &last) ||
        take(a, &small) < 0 || take(b, &large) < 0 || take(c, &single_small) < 0 || take(d, &single_large) < 0 ||
        take(e, &inverse) < 0 || take(f, &inverse_far) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static inline __attribute__((always_inline)) void polynomial(const Coefficients *by, const double *restrict x, double *restrict result)
{
    for (int i = 0; i < BLOCK; i++)
        result[i] = by->of[by->n - 1];
    for (Py_ssize_t k = by->n - 2; k >= 0; k--) {
        double c = by->of[k];
        for (int i = 0; i < BLOCK; i++)
            result[i] = result[i] * x[i] + c; /* no fused operation: see pyproject.toml */
    }
}

/* What the processor has is found out when the module is loaded, where the system's linker can do that. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

/* erf and erfc of a block of numbers x >= 0, given exp(-x²). */
CLONES static void erf_block(const double *restrict x, const double *restrict exponential, double *restrict result,
                             double *restrict rest)
{
    double argument[BLOCK], value[BLOCK], t[BLOCK];
    int any_small = 0, any_large = 0;
    for (int i = 0; i < BLOCK; i++) {
        any_small |= x[i] < 1;
        any_large |= !(x[i] < 1);
    }
    if (any_large) {
        for (int i = 0; i < BLOCK; i++) {
            t[i] = 2 / (2 + (x[i] > 7 ? 7 : x[i]));
            argument[i] = (2 * t[i] - (first + last)) / (last - first);
        }
        polynomial(&large, argument, value);
        for (int i = 0; i < BLOCK; i++) {
            rest[i] = t[i] * value[i] * exponential[i];
            result[i] = 1 - rest[i];
        }
    }
    if (any_small) {
        for (int i = 0; i < BLOCK; i++)
            argument[i] = 2 * x[i] * x[i] - 1;
        polynomial(&small, argument, value);
        for (int i = 0; i < BLOCK; i++) {
            double of_small = x[i] * value[i];
            result[i] = x[i] < 1 ? of_small : result[i];
            rest[i] = x[i] < 1 ? 1 - of_small : rest[i];
        }
    }
}

/* erf_of(x, exponential): `x`, of numbers >= 0, becomes their erf, and `exponential`, which is exp(-x²), their erfc.
   Both are contiguous, of float64. */
PyObject *erf_of(PyObject *module, PyObject *args)
{
    Py_buffer x, exponential;
    if (!PyArg_ParseTuple(args, "w*w*:erf_of", &x, &exponential))
        return NULL;
    Py_ssize_t n = x.len / (Py_ssize_t)sizeof(double);
    int fits = exponential.len == x.len;
    if (fits) {
        double *values = x.buf;
        double *given = exponential.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < n; i += BLOCK) {
            size_t bytes = (size_t)(n - i < BLOCK ? n - i : BLOCK) * sizeof(double);
            double in[BLOCK] = {0}, by[BLOCK] = {0}, out[BLOCK] = {0}, rest[BLOCK] = {0};
            memcpy(in, values + i, bytes);
            memcpy(by, given + i, bytes);
            erf_block(in, by, out, rest);
            memcpy(values + i, out, bytes);
            memcpy(given + i, rest, bytes);
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&exponential);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "erf_of takes two arrays of one size");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* erf of a block. */
CLONES static void erf_single_block(const float *restrict x, float *restrict result)
{
    double size[BLOCK], argument[BLOCK], value[BLOCK], found[BLOCK];
    int any_small = 0, any_large = 0;
    for (int i = 0; i < BLOCK; i++) {
        double magnitude = fabs((double)x[i]);
        size[i] = magnitude > 4 ? 4 : magnitude;
        any_small |= size[i] < 1;
        any_large |= !(size[i] < 1);
    }
    if (any_large) {
        for (int i = 0; i < BLOCK; i++)
            argument[i] = (size[i] - 2.5) * (2.0 / 3.0);
        polynomial(&single_large, argument, found);
    }
    if (any_small) {
        for (int i = 0; i < BLOCK; i++)
            argument[i] = 2 * size[i] * size[i] - 1;
        polynomial(&single_small, argument, value);
        for (int i = 0; i < BLOCK; i++) {
            double of_small = size[i] * value[i];
            found[i] = size[i] < 1 ? of_small : found[i];
        }
    }
    for (int i = 0; i < BLOCK; i++)
        result[i] = (float)copysign(found[i], (double)x[i]);
}

/* erf_of_single(x, result): both are contiguous, of float32. */
PyObject *erf_of_single(PyObject *module, PyObject *args)
{
    Py_buffer x, result;
    if (!PyArg_ParseTuple(args, "y*w*:erf_of_single", &x, &result))
        return NULL;
    Py_ssize_t n = x.len / (Py_ssize_t)sizeof(float);
    int fits = result.len == x.len;
    if (fits) {
        const float *given = x.buf;
        float *made = result.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < n; i += BLOCK) {
            size_t bytes = (size_t)(n - i < BLOCK ? n - i : BLOCK) * sizeof(float);
            float in[BLOCK] = {0}, out[BLOCK];
            memcpy(in, given + i, bytes);
            erf_single_block(in, out);
            memcpy(made + i, out, bytes);
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&result);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "erf_of_single takes two arrays of one size");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The inverse of erf of a block, given w = -log(1 - x²). */
CLONES static void erfinv_single_block(const float *restrict x, const double *restrict w, float *restrict result)
{
    double argument[BLOCK], value[BLOCK], far[BLOCK];
    int any_far = 0;
    for (int i = 0; i < BLOCK; i++) {
        argument[i] = w[i] * 0.4 - 1;
        any_far |= w[i] >= 5;
    }
    polynomial(&inverse, argument, value);
    if (any_far) {
        for (int i = 0; i < BLOCK; i++)
            argument[i] = (sqrt(w[i] < 17 ? w[i] : 17) - 3.125) / 0.9;
        polynomial(&inverse_far, argument, far);
        for (int i = 0; i < BLOCK; i++) {
            double of_far = w[i] < 17 ? far[i] : INFINITY;
            value[i] = w[i] >= 5 ? of_far : value[i];
        }
    }
    for (int i = 0; i < BLOCK; i++)
        result[i] = (float)((double)x[i] * value[i]);
}

/* erfinv_of_single(x, w, result): all are contiguous, `w`, which is -log(1 - x²), of float64, the others of float32. */
PyObject *erfinv_of_single(PyObject *module, PyObject *args)
{
    Py_buffer x, w, result;
    if (!PyArg_ParseTuple(args, "y*y*w*:erfinv_of_single", &x, &w, &result))
        return NULL;
    Py_ssize_t n = x.len / (Py_ssize_t)sizeof(float);
    int fits = result.len == x.len && w.len == n * (Py_ssize_t)sizeof(double);
    if (fits) {
        const float *given = x.buf;
        const double *of_given = w.buf;
        float *made = result.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < n; i += BLOCK) {
            size_t count = (size_t)(n - i < BLOCK ? n - i : BLOCK);
            float in[BLOCK] = {0}, out[BLOCK];
            double by[BLOCK] = {0};
            memcpy(in, given + i, count * sizeof(float));
            memcpy(by, of_given + i, count * sizeof(double));
            erfinv_single_block(in, by, out);
            memcpy(made + i, out, count * sizeof(float));
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&w);
    PyBuffer_Release(&result);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "erfinv_of_single takes three arrays of one size");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The columns that `shift_words` has loops for; a row of others is a loop by itself. */
#define SHIFTED(DO) DO(4) DO(8) DO(16) DO(32)

static inline __attribute__((always_inline)) void shift_rows(const uint32_t *restrict x, const uint32_t *restrict by,
                                                             const uint32_t *restrict kept, uint32_t *restrict out,
                                                             Py_ssize_t rows, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < rows; i++)
        for (Py_ssize_t j = 0; j < n; j++)
            out[i * n + j] = (x[i] >> by[j]) & kept[j];
}

/* `shift_rows` for as many columns as there are, the compiler knowing how many. */
CLONES static void shift(const uint32_t *restrict x, const uint32_t *restrict by, const uint32_t *restrict kept,
                         uint32_t *restrict out, Py_ssize_t rows, Py_ssize_t n)
{
    switch (n) {
#define CASE(N)                                 \
    case N:                                     \
        shift_rows(x, by, kept, out, rows, N);  \
        return;
        SHIFTED(CASE)
#undef CASE
    default:
        shift_rows(x, by, kept, out, rows, n);
    }
}

/* shift_words(x, shifts, out): out[i, j] = x[i] >> shifts[j], 0 from shifts of 32 on; contiguous words of 32 bits, and
   at most MOST shifts. */
PyObject *shift_words(PyObject *module, PyObject *args)
{
    Py_buffer x, shifts, out;
    if (!PyArg_ParseTuple(args, "y*y*w*:shift_words", &x, &shifts, &out))
        return NULL;
    const Py_ssize_t size = sizeof(uint32_t), rows = x.len / size, n = shifts.len / size;
    const int fits = x.itemsize == size && shifts.itemsize == size && out.itemsize == size && n >= 1 && n <= MOST &&
                     out.len % shifts.len == 0 && out.len / shifts.len == rows;
    if (fits) {
        uint32_t by[MOST], kept[MOST];
        for (Py_ssize_t j = 0; j < n; j++) {
            const uint32_t given = ((const uint32_t *)shifts.buf)[j];
            by[j] = given & 31;
            kept[j] = given < 32 ? UINT32_MAX : 0;
        }
        Py_BEGIN_ALLOW_THREADS
        shift(x.buf, by, kept, out.buf, rows, n);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&shifts);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "shift_words takes words, a row of shifts, and room for a row for each word");
        return NULL;
    }
    Py_RETURN_NONE;
}
