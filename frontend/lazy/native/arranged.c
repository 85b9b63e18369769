/* Elements that lie in another order, brought into that of the result: turned axes tile by tile, where NumPy goes through
   memory line by line of the result, and reversed ones in vectors. See `ir/host_memory.py`. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>
#include <string.h>

/* Axes that NumPy's arrays have at most. */
#define MOST_AXES 64
/* Bytes of a line of the cache. */
#define LINE 64
/* Bytes of a tile at most, which stays in the first cache. */
#define TILE (1 << 14)

typedef struct {
    Py_ssize_t n, step, stride; /* extent, and bytes from one element to the next in the result and in the operand */
} Axis;

typedef uint32_t Four __attribute__((vector_size(16)));
typedef uint64_t Two __attribute__((vector_size(16)));

/* tile[j][i] = x[i][j] for i < n and j < m, which are multiples of four. Lines of x have elements beside each other. */
INLINE void turned_tile(const char *x, char *tile, Py_ssize_t n, Py_ssize_t m, Py_ssize_t along, Py_ssize_t pitch,
                        const int width)
{
    for (Py_ssize_t i = 0; i < n; i += 16 / width)
        for (Py_ssize_t j = 0; j < m; j += 16 / width) {
            const char *from = x + i * along + j * width;
            char *to = tile + j * pitch + i * width;
            if (width == 4) {
                Four a[4], b[4];
                for (int k = 0; k < 4; k++)
                    memcpy(&a[k], from + k * along, 16);
                for (int k = 0; k < 4; k++) {
                    b[k] = (Four){a[0][k], a[1][k], a[2][k], a[3][k]};
                    memcpy(to + k * pitch, &b[k], 16);
                }
            } else {
                Two a[2], b[2];
                for (int k = 0; k < 2; k++)
                    memcpy(&a[k], from + k * along, 16);
                for (int k = 0; k < 2; k++) {
                    b[k] = (Two){a[0][k], a[1][k]};
                    memcpy(to + k * pitch, &b[k], 16);
                }
            }
        }
}

/* out[j][i] = x[i][j] for i < n and j < m: lines of n elements. Some lines of the cache of both are read and written
   whole, by way of a tile: those that lie a power of two apart would drive each other out of it. */
INLINE void turned(const char *x, char *out, Py_ssize_t n, Py_ssize_t m, Py_ssize_t along, Py_ssize_t across,
                   Py_ssize_t line, const int width)
{
    const Py_ssize_t side = width == 1 ? 128 : width < 8 ? 64 : 32, pitch = side * width;
    char tile[TILE];
    for (Py_ssize_t j = 0; j < m; j += side) {
        const Py_ssize_t columns = m - j < side ? m - j : side;
        for (Py_ssize_t i = 0; i < n; i += side) {
            const Py_ssize_t rows = n - i < side ? n - i : side;
            const char *from = x + i * along + j * across;
            char *to = out + j * line + i * width;
            if ((width == 4 || width == 8) && across == width && !(rows % 4) && !(columns % 4)) {
                turned_tile(from, tile, rows, columns, along, pitch, width);
                for (Py_ssize_t c = 0; c < columns; c++)
                    memcpy(to + c * line, tile + c * pitch, rows * width);
                continue;
            }
            for (Py_ssize_t r = 0; r < rows; r++)
                if (across == width)
                    memcpy(tile + r * pitch, from + r * along, columns * width);
                else
                    for (Py_ssize_t c = 0; c < columns; c++)
                        memcpy(tile + r * pitch + c * width, from + r * along + c * across, width);
            for (Py_ssize_t c = 0; c < columns; c++)
                for (Py_ssize_t r = 0; r < rows; r++)
                    memcpy(to + c * line + r * width, tile + r * pitch + c * width, width);
        }
    }
}

/* out[i] = x[i] for i < n. */
INLINE void lined(const char *x, char *out, Py_ssize_t n, Py_ssize_t along, const int width)
{
    if (along == width)
        memcpy(out, x, n * width);
    else if (along == -width)
        for (Py_ssize_t i = 0; i < n; i++)
            memcpy(out + i * width, x - i * width, width);
    else
        for (Py_ssize_t i = 0; i < n; i++)
            memcpy(out + i * width, x + i * along, width);
}

#define WIDTHS(DO) DO(1) DO(2) DO(4) DO(8) DO(16)
#define DEFINE(width)                                                                                                  \
    CLONES static void arrange_##width(const char *x, char *out, Axis last, Axis turn)                                 \
    {                                                                                                                  \
        if (turn.n > 1)                                                                                                \
            turned(x, out, last.n, turn.n, last.stride, turn.stride, turn.step, width);                                \
        else                                                                                                           \
            lined(x, out, last.n, last.stride, width);                                                                 \
    }
WIDTHS(DEFINE)

typedef void (*Arrange)(const char *, char *, Axis, Axis);

static Arrange arrange_of(Py_ssize_t width)
{
#define CASE(width) case width: return arrange_##width;
    switch (width) { WIDTHS(CASE) }
    return NULL;
}

#define SIZE(x) ((x) < 0 ? -(x) : (x))

/* The axes of more than one element, of which those next to each other in both are one; their number. */
static int axes_of(const Py_buffer *x, Axis *axes)
{
    int count = 0;
    Py_ssize_t step = x->itemsize;
    for (int a = x->ndim - 1; a >= 0; step *= x->shape[a], a--) {
        if (x->shape[a] == 1)
            continue;
        Axis *before = count ? &axes[count - 1] : NULL;
        if (before != NULL && x->strides[a] == before->stride * before->n)
            before->n *= x->shape[a];
        else
            axes[count++] = (Axis){x->shape[a], step, x->strides[a]};
    }
    return count;
}

static void arranged(const char *x, char *out, Arrange arrange, Axis *axes, int count, Py_ssize_t itemsize)
{
    Axis last = count ? axes[0] : (Axis){1, itemsize, itemsize}, turn = {1, 0, 0};
    int other = 0;
    for (int a = 1; a < count && SIZE(last.stride) >= LINE; a++) /* the axis along which the operand lies */
        if (axes[a].stride && SIZE(axes[a].stride) < SIZE(last.stride) &&
            (!other || SIZE(axes[a].stride) < SIZE(axes[other].stride)))
            other = a;
    if (other)
        turn = axes[other];
    Py_ssize_t at[MOST_AXES] = {0};
    for (;;) {
        arrange(x, out, last, turn);
        int a = 1;
        for (; a < count; a++) {
            if (a == other)
                continue;
            x += axes[a].stride;
            out += axes[a].step;
            if (++at[a] < axes[a].n)
                break;
            x -= axes[a].n * axes[a].stride;
            out -= axes[a].n * axes[a].step;
            at[a] = 0;
        }
        if (a >= count)
            return;
    }
}

/* arrange(x, out): the elements of x, which lie anywhere, in `out`, which is contiguous and of the same shape. */
PyObject *arrange(PyObject *module, PyObject *args)
{
    PyObject *given;
    Py_buffer x, out;
    if (!PyArg_ParseTuple(args, "Ow*:arrange", &given, &out))
        return NULL;
    if (PyObject_GetBuffer(given, &x, PyBUF_STRIDES) < 0) {
        PyBuffer_Release(&out);
        return NULL;
    }
    const Arrange found = arrange_of(x.itemsize);
    const int fits = found != NULL && x.len == out.len && x.ndim <= MOST_AXES;
    if (fits && x.len) {
        Axis axes[MOST_AXES];
        const int count = axes_of(&x, axes);
        Py_BEGIN_ALLOW_THREADS
        arranged(x.buf, out.buf, found, axes, count, x.itemsize);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "arrange takes elements of 1, 2, 4, 8 or 16 bytes, and room for as many");
        return NULL;
    }
    Py_RETURN_NONE;
}
