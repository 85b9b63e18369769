/* Arithmetic of arrays with short rows that repeat each other's elements or rows: NumPy begins anew with each row, which
   costs more than the row. See `ir/short_axes.py`. */

#include "core.h"
#include "vectors.h"

/* Axes that NumPy's arrays have at most. */
#define MOST_AXES 64

typedef struct {
    Py_ssize_t n, steps[2]; /* extent, and bytes from one element of an operand to the next */
} Axis;

/* Rows of n numbers; `of_x`, `of_y`: 1 for rows, 0 for one number in place of all. */
#define ROWS(type, op, of_x, of_y)                                                                                     \
    for (Py_ssize_t r = 0; r < rows.n; r++, x += rows.steps[0], y += rows.steps[1], out += n)                          \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            out[i] = ((const type *)x)[i * of_x] op ((const type *)y)[i * of_y];
#define DEFINE(name, type, op)                                                                                         \
    CLONES static void name##_##type(const char *restrict x, const char *restrict y, void *restrict to, Py_ssize_t n,  \
                                     Axis rows, int of_x, int of_y)                                                    \
    {                                                                                                                  \
        type *restrict out = to;                                                                                       \
        if (of_x && of_y) {                                                                                            \
            ROWS(type, op, 1, 1)                                                                                       \
        } else if (of_x) {                                                                                             \
            ROWS(type, op, 1, 0)                                                                                       \
        } else {                                                                                                       \
            ROWS(type, op, 0, 1)                                                                                       \
        }                                                                                                              \
    }
#define DEFINE_BOTH(name, op) DEFINE(name, float, op) DEFINE(name, double, op)
DEFINE_BOTH(add, +)
DEFINE_BOTH(subtract, -)
DEFINE_BOTH(multiply, *)
DEFINE_BOTH(divide, /)

typedef void (*Rows)(const char *, const char *, void *, Py_ssize_t, Axis, int, int);
#define BOTH(name) {name##_float, name##_double}
static const Rows functions[][2] = {BOTH(add), BOTH(subtract), BOTH(multiply), BOTH(divide)};
#define FUNCTIONS (int)(sizeof functions / sizeof *functions)

/* The axes of more than one element, the last one first, of which those next to each other in both operands are one; their
   number, or -1 where an operand has another shape or does not lie in the order of its axes. */
static int axes_of(const Py_buffer *const *given, const Py_buffer *out, Axis *axes)
{
    int count = 0;
    Py_ssize_t least[2] = {0, 0};
    for (int a = out->ndim - 1; a >= 0; a--) {
        const Py_ssize_t n = out->shape[a];
        Axis axis = {n, {0, 0}};
        for (int k = 0; k < 2; k++) {
            const int at = a - (out->ndim - given[k]->ndim);
            const Py_ssize_t own = at < 0 ? 1 : given[k]->shape[at];
            if (own != 1 && own != n)
                return -1;
            if (own == 1)
                continue;
            axis.steps[k] = given[k]->strides[at];
            if (axis.steps[k] < 0 || (axis.steps[k] && axis.steps[k] < least[k]))
                return -1;
            least[k] = axis.steps[k] ? axis.steps[k] : least[k];
        }
        if (n == 1)
            continue;
        Axis *last = count ? &axes[count - 1] : NULL;
        if (last != NULL && axis.steps[0] == last->steps[0] * last->n && axis.steps[1] == last->steps[1] * last->n)
            last->n *= n;
        else
            axes[count++] = axis;
    }
    return count;
}

static void computed(Rows run, const char *x, const char *y, char *out, const Axis *axes, int count, Py_ssize_t size)
{
    const Axis rows = count > 1 ? axes[1] : (Axis){1, {0, 0}};
    const Py_ssize_t bytes = axes[0].n * rows.n * size;
    Py_ssize_t at[MOST_AXES] = {0};
    for (;;) {
        run(x, y, out, axes[0].n, rows, axes[0].steps[0] != 0, axes[0].steps[1] != 0);
        out += bytes;
        int a = 2;
        for (; a < count; a++) {
            x += axes[a].steps[0];
            y += axes[a].steps[1];
            if (++at[a] < axes[a].n)
                break;
            x -= axes[a].n * axes[a].steps[0];
            y -= axes[a].n * axes[a].steps[1];
            at[a] = 0;
        }
        if (a >= count)
            return;
    }
}

/* short_rows(number, x, y, out): x + y, x - y, x * y or x / y of float32 or float64, which are broadcast, in `out`, which
   is contiguous; whether they lie so that there is a loop for them. */
PyObject *short_rows(PyObject *module, PyObject *args)
{
    PyObject *given[3];
    Py_buffer x, y, out;
    Py_buffer *const views[3] = {&x, &y, &out};
    int number, count = 0;
    if (!PyArg_ParseTuple(args, "iOOO:short_rows", &number, &given[0], &given[1], &given[2]))
        return NULL;
    while (count < 3 && PyObject_GetBuffer(given[count], views[count], count < 2 ? PyBUF_STRIDES : PyBUF_CONTIG) == 0)
        count++;
    int fits = count == 3;
    if (fits) {
        const Py_ssize_t size = out.itemsize;
        const Py_buffer *const operands[2] = {&x, &y};
        Axis axes[MOST_AXES];
        fits = number >= 0 && number < FUNCTIONS && (size == 4 || size == 8) && x.itemsize == size && y.itemsize == size &&
               out.len && out.ndim <= MOST_AXES && x.ndim <= out.ndim && y.ndim <= out.ndim;
        const int found = fits ? axes_of(operands, &out, axes) : 0;
        fits = found > 0 && (axes[0].steps[0] || axes[0].steps[1]);
        for (int k = 0; fits && k < 2; k++)
            fits = axes[0].steps[k] == 0 || axes[0].steps[k] == size;
        if (fits) {
            Py_BEGIN_ALLOW_THREADS
            computed(functions[number][size == 8], x.buf, y.buf, out.buf, axes, found, size);
            Py_END_ALLOW_THREADS
        }
    }
    for (int k = 0; k < count; k++)
        PyBuffer_Release(views[k]);
    return count < 3 ? NULL : PyBool_FromLong(fits);
}
