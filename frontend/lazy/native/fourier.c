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

/* Numbers anywhere as vectors. */
#define LOOSE(x) ((NAME(loose) *)(x))

/* Columns that share a table's number, as many as the largest vector has lanes. */
#define WIDE ((Py_ssize_t)(64 / sizeof(REAL)))

/* Where element i of a vector comes from; the second vector's are behind those of the first. */
#define EVEN(i) 2 * i
#define ODD(i) 2 * i + 1
#define LOW(i) i / 2 + i % 2 * LANES
#define HIGH(i) i / 2 + i % 2 * LANES + LANES / 2
/* Of complex numbers: their parts exchanged, the real parts or the imaginary ones twice, in reverse order. */
#define EXCHANGED(i) i / 2 * 2 + 1 - i % 2
#define REAL_TWICE(i) i / 2 * 2
#define IMAG_TWICE(i) i / 2 * 2 + 1
#define REVERSED(i) LANES - 2 - i / 2 * 2 + i % 2
#define SIGN(i) 1 - i % 2 * 2

/* What is to be transformed, by what tables, in which memory: of a·b complex numbers, or of columns of a. */
typedef struct {
    Py_ssize_t a, b, rows, width, start, stop;
    const int *first, *second;
    const void *first_turns, *second_turns, *starts, *rest, *halves, *in;
    void *out, *x, *y, *between, *coefficients;
    int kind, inverse;
    double scale;
} Work;
typedef void (*Loop)(const Work *);

#define LOOPS "fourier_rows.h"
#include "every_vector.h"

static const Loop of_rows[][2] = VERSIONS(fourier), of_columns[][2] = VERSIONS(fourier_columns);

/* How many bytes the vectors of this processor have. */
PyObject *vector_bytes(PyObject *module, PyObject *unused) { return PyLong_FromLong(most_vector_bytes()); }

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

/* fourier(x, result, bytes, double, kind, inverse, scale, first, first_turns, second, second_turns, starts, rest,
   halves): in vectors of so many bytes. All buffers are contiguous and of the same type of number, float64 or float32; n
   complex numbers are a row of x and of the result, but n + 1 of the coefficients of real ones, which are 2·n. */
PyObject *fourier(PyObject *module, PyObject *args)
{
    Py_buffer in, out, tables[5];
    PyObject *radices[2];
    int bytes, wide, kind, inverse, of[2][MOST_PASSES + 1];
    double scale;
    if (!PyArg_ParseTuple(args, "y*w*ipipdO!y*O!y*y*y*y*:fourier", &in, &out, &bytes, &wide, &kind, &inverse, &scale,
                          &PyTuple_Type, &radices[0], &tables[0], &PyTuple_Type, &radices[1], &tables[1], &tables[2],
                          &tables[3], &tables[4]))
        return NULL;
    const Py_ssize_t size = wide ? 8 : 4, lanes = bytes / size;
    const int version = version_of(bytes);
    void *memory = NULL;
    const Py_ssize_t a = version < 0 ? -1 : take_radices(radices[0], of[0]);
    const Py_ssize_t b = a < 0 ? -1 : take_radices(radices[1], of[1]);
    if (b < 0)
        goto done;
    const Py_ssize_t n = a * b, most = a > b ? a : b, blocks = (b + lanes - 1) / lanes;
    const Py_ssize_t wide_blocks = (b + 64 / size - 1) / (64 / size);
    const Py_ssize_t row = 2 * size * (n + (kind == TO_REAL)), result = 2 * size * (n + (kind == FROM_REAL));
    const Py_ssize_t rows = in.len / row;
    if (kind < COMPLEX || kind > TO_REAL || in.len % row || out.len != rows * result ||
        tables[0].len != size * turns_of(a, of[0]) || tables[1].len != size * turns_of(b, of[1]) ||
        (b > 1 && (tables[2].len != 2 * size * a * wide_blocks || tables[3].len != 2 * 64 * a)) ||
        (kind != COMPLEX && tables[4].len != 2 * size * (n / 2 + 1))) {
        PyErr_SetString(PyExc_ValueError, "fourier: arrays do not fit the plan");
        goto done;
    }
    /* Lanes twice, the matrix between, coefficients. */
    const Py_ssize_t lane = 2 * bytes * most, matrix = b > 1 ? 2 * bytes * a * blocks : 0;
    const Py_ssize_t kept = kind == TO_REAL ? 2 * size * n * (rows < lanes ? rows : lanes) : 0;
    memory = PyMem_RawMalloc((size_t)(2 * lane + matrix + kept + 64));
    if (memory == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    char *x = (char *)(((size_t)memory + 63) / 64 * 64), *y = x + lane, *between = y + lane;
    char *coefficients = between + matrix;
    Py_BEGIN_ALLOW_THREADS
    const Work work = {
        .a = a, .b = b, .rows = rows, .first = of[0], .second = of[1], .first_turns = tables[0].buf,
        .second_turns = tables[1].buf, .starts = tables[2].buf, .rest = tables[3].buf, .halves = tables[4].buf,
        .in = in.buf, .out = out.buf, .x = x, .y = y, .between = between, .coefficients = coefficients, .kind = kind,
        .inverse = inverse, .scale = scale,
    };
    of_rows[version][wide](&work);
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

/* fourier_columns(x, result, bytes, double, inverse, scale, radices, turns, width, first, last): of each column of
   matrices of n × width complex numbers, from block of so many bytes of real parts to block; see `fourier`. */
PyObject *fourier_columns(PyObject *module, PyObject *args)
{
    Py_buffer in, out, turns;
    PyObject *given;
    int bytes, wide, inverse, radices[MOST_PASSES + 1];
    double scale;
    Py_ssize_t width, first, last;
    if (!PyArg_ParseTuple(args, "y*w*ippdO!y*nnn:fourier_columns", &in, &out, &bytes, &wide, &inverse, &scale,
                          &PyTuple_Type, &given, &turns, &width, &first, &last))
        return NULL;
    const int version = version_of(bytes);
    const Py_ssize_t size = wide ? 8 : 4, lanes = bytes / size, n = version < 0 ? -1 : take_radices(given, radices);
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
    memory = PyMem_RawMalloc((size_t)(4 * bytes * n + 64));
    if (memory == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    char *x = (char *)(((size_t)memory + 63) / 64 * 64), *y = x + 2 * bytes * n;
    Py_BEGIN_ALLOW_THREADS
    const Work work = {
        .a = n, .width = width, .start = first, .stop = last, .first = radices, .first_turns = turns.buf, .in = in.buf,
        .out = out.buf, .x = x, .y = y, .inverse = inverse, .scale = scale,
    };
    of_columns[version][wide](&work);
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
