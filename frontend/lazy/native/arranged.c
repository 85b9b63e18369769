/* Elements that lie in another order, brought into that of the result: turned axes by squares in vectors, where NumPy goes
   through memory line by line of the result, and reversed ones in vectors. See `ir/host_memory.py`. */

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

#define SIZE(x) ((x) < 0 ? -(x) : (x))

typedef struct {
    Py_ssize_t n, step, stride; /* extent, and bytes from one element to the next in the result and in the operand */
} Axis;

/* Bytes of a vector in which squares of elements are turned; rows that are turned before the next lines are begun. */
#define REGISTER 16
#define ROWS 64
/* Lines of the result that lie a multiple of this apart drive each other out of the first cache. */
#define ALIASED 2048

#if defined(__clang__)
#define SHUFFLED(type, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLED(type, x, y, ...) __builtin_shuffle(x, y, (type){__VA_ARGS__})
#endif
/* The elements of two vectors in turns, of their first and of their second halves. */
#define LOW_1(x, y) SHUFFLED(Vector1, x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_1(x, y) SHUFFLED(Vector1, x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_2(x, y) SHUFFLED(Vector2, x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_2(x, y) SHUFFLED(Vector2, x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_4(x, y) SHUFFLED(Vector4, x, y, 0, 4, 1, 5)
#define HIGH_4(x, y) SHUFFLED(Vector4, x, y, 2, 6, 3, 7)
#define LOW_8(x, y) SHUFFLED(Vector8, x, y, 0, 2)
#define HIGH_8(x, y) SHUFFLED(Vector8, x, y, 1, 3)

typedef uint8_t Vector1 __attribute__((vector_size(REGISTER)));
typedef uint16_t Vector2 __attribute__((vector_size(REGISTER)));
typedef uint32_t Vector4 __attribute__((vector_size(REGISTER)));
typedef uint64_t Vector8 __attribute__((vector_size(REGISTER)));

/* out[j][i] = x[i][j] for a square whose lines fill a vector: lines half a square apart are shuffled into each other,
   as often as it takes. */
#define SQUARE(width)                                                                                                  \
    INLINE void square_##width(const char *x, char *out, Py_ssize_t along, Py_ssize_t line)                            \
    {                                                                                                                  \
        enum { SIDE = REGISTER / width, HALF = SIDE / 2 };                                                             \
        Vector##width a[SIDE], b[SIDE];                                                                                \
        for (int i = 0; i < SIDE; i++)                                                                                 \
            memcpy(&a[i], x + i * along, REGISTER);                                                                    \
        for (int step = 1; step < SIDE; step *= 2) {                                                                   \
            for (int i = 0; i < HALF; i++)                                                                             \
                b[2 * i] = LOW_##width(a[i], a[i + HALF]), b[2 * i + 1] = HIGH_##width(a[i], a[i + HALF]);             \
            memcpy(a, b, sizeof(a));                                                                                   \
        }                                                                                                              \
        for (int i = 0; i < SIDE; i++)                                                                                 \
            memcpy(out + i * line, &a[i], REGISTER);                                                                   \
    }
SQUARE(1)
SQUARE(2)
SQUARE(4)
SQUARE(8)

INLINE void square_16(const char *x, char *out, Py_ssize_t along, Py_ssize_t line)
{
    memcpy(out, x, REGISTER);
}

INLINE void square(const char *x, char *out, Py_ssize_t along, Py_ssize_t line, const int width)
{
    switch (width) {
        case 1: square_1(x, out, along, line); break;
        case 2: square_2(x, out, along, line); break;
        case 4: square_4(x, out, along, line); break;
        case 8: square_8(x, out, along, line); break;
        case 16: square_16(x, out, along, line); break;
    }
}

/* out[j][i] = x[i][j] for as many rows and columns as a square has at least; the last squares overlap others. */
INLINE void squares(const char *x, char *out, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t along, Py_ssize_t line,
                    const int width)
{
    const Py_ssize_t side = REGISTER / width;
    for (Py_ssize_t r = 0; r < rows; r += side) {
        r = r < rows - side ? r : rows - side;
        for (Py_ssize_t c = 0; c < columns; c += side) {
            c = c < columns - side ? c : columns - side;
            square(x + r * along + c * width, out + c * line + r * width, along, line, width);
        }
    }
}

/* out[j][i] = x[i][j] for i < n and j < m, at least a square: a line of the cache of some rows at a time, which is read
   once. Lines of x have elements beside each other. */
INLINE void turned_squares(const char *x, char *out, Py_ssize_t n, Py_ssize_t m, Py_ssize_t along, Py_ssize_t line,
                           const int width)
{
    const Py_ssize_t side = REGISTER / width, most = LINE / width, pitch = ROWS * width + LINE;
    const int by_tile = most > 8 && line % ALIASED == 0;
    char tile[TILE];
    for (Py_ssize_t i = 0; i < n; i += ROWS) {
        i = i < n - side ? i : n - side;
        const Py_ssize_t rows = n - i < ROWS ? n - i : ROWS;
        for (Py_ssize_t j = 0; j < m; j += most) {
            j = j < m - side ? j : m - side;
            const Py_ssize_t columns = m - j < most ? m - j : most, step = by_tile ? pitch : line;
            const char *from = x + i * along + j * width;
            char *to = out + j * line + i * width, *by = by_tile ? tile : to;
            if (columns == most)
                squares(from, by, rows, most, along, step, width);
            else
                squares(from, by, rows, columns, along, step, width);
            for (Py_ssize_t c = 0; by_tile && c < columns; c++)
                memcpy(to + c * line, tile + c * pitch, rows * width);
        }
    }
}

/* Whether that is how two axes are turned. */
INLINE int in_squares(Axis last, Axis turn, Py_ssize_t width)
{
    return SIZE(turn.stride) == width && last.n * width >= REGISTER && turn.n * width >= REGISTER;
}

/* The same for elements anywhere, by way of a tile. */
INLINE void turned(const char *x, char *out, Py_ssize_t n, Py_ssize_t m, Py_ssize_t along, Py_ssize_t across,
                   Py_ssize_t line, const int width)
{
    const Py_ssize_t side = width == 1 ? 128 : width < 8 ? 64 : 32, pitch = side * width;
    char tile[TILE];
    if (across == width && in_squares((Axis){n, 0, along}, (Axis){m, 0, across}, width)) {
        turned_squares(x, out, n, m, along, line, width);
        return;
    }
    for (Py_ssize_t j = 0; j < m; j += side) {
        const Py_ssize_t columns = m - j < side ? m - j : side;
        for (Py_ssize_t i = 0; i < n; i += side) {
            const Py_ssize_t rows = n - i < side ? n - i : side;
            const char *from = x + i * along + j * across;
            char *to = out + j * line + i * width;
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
    for (int a = 1; a < count; a++) /* the axis along which the operand lies */
        if (axes[a].stride && SIZE(axes[a].stride) < SIZE(last.stride) &&
            (SIZE(last.stride) >= LINE || in_squares(last, axes[a], itemsize)) &&
            (!other || SIZE(axes[a].stride) < SIZE(axes[other].stride)))
            other = a;
    if (other)
        turn = axes[other];
    if (turn.stride < 0) { /* from its other end, which is how squares are read */
        x += (turn.n - 1) * turn.stride;
        out += (turn.n - 1) * turn.step;
        turn.stride = -turn.stride;
        turn.step = -turn.step;
    }
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
