/* Rows of elements of one type, TYPE, combined with rows of an array; see `written_rows.c`. Integers are computed with as
   WIDE, whose overflow is defined. */

/* RESULT of an element x and an update y, for each element of each row that there is; rows of one have no loop. */
#define UPDATE(RESULT)                                                                                                 \
    if (width == 1)                                                                                                    \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            if ((size_t)places[i] >= (size_t)rows)                                                                     \
                continue;                                                                                              \
            const TYPE x = out[places[i]], y = updates[i];                                                             \
            out[places[i]] = (TYPE)(RESULT);                                                                           \
        }                                                                                                              \
    else                                                                                                               \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            if ((size_t)places[i] >= (size_t)rows)                                                                     \
                continue;                                                                                              \
            TYPE *to = out + places[i] * width;                                                                        \
            for (Py_ssize_t k = 0; k < width; k++) {                                                                   \
                const TYPE x = to[k], y = updates[i * width + k];                                                      \
                to[k] = (TYPE)(RESULT);                                                                                \
            }                                                                                                          \
        }

CLONES
static void COMBINED(TYPE)(void *into, const void *from, const int64_t *places, Py_ssize_t count, Py_ssize_t rows,
                           Py_ssize_t width, int mode)
{
    TYPE *out = (TYPE *)into;
    const TYPE *updates = (const TYPE *)from;
    if (mode == ADD) {
        UPDATE((WIDE)x + (WIDE)y)
    } else if (mode == MUL) {
        UPDATE((WIDE)x * (WIDE)y)
    } else if (mode == MAX) { /* NaN if either is */
        UPDATE(x >= y || IS_NAN(x) ? x : y)
    } else {
        UPDATE(x <= y || IS_NAN(x) ? x : y)
    }
}

#undef UPDATE
#undef TYPE
#undef WIDE
