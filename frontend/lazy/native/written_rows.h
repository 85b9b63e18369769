/* Rows of elements of one type, TYPE, combined with rows of an array; see `written_rows.c`. Integers are computed with as
   WIDE, whose overflow is defined. */

CLONES
static void COMBINED(TYPE)(void *into, const void *from, const int64_t *places, Py_ssize_t count, Py_ssize_t rows,
                           Py_ssize_t width, int mode)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (places[i] < 0 || places[i] >= rows)
            continue;
        TYPE *x = (TYPE *)into + places[i] * width;
        const TYPE *y = (const TYPE *)from + i * width;
        switch (mode) {
        case ADD:
            for (Py_ssize_t k = 0; k < width; k++)
                x[k] = (TYPE)((WIDE)x[k] + (WIDE)y[k]);
            break;
        case MUL:
            for (Py_ssize_t k = 0; k < width; k++)
                x[k] = (TYPE)((WIDE)x[k] * (WIDE)y[k]);
            break;
        case MAX: /* NaN if either is */
            for (Py_ssize_t k = 0; k < width; k++)
                x[k] = x[k] >= y[k] || IS_NAN(x[k]) ? x[k] : y[k];
            break;
        default:
            for (Py_ssize_t k = 0; k < width; k++)
                x[k] = x[k] <= y[k] || IS_NAN(x[k]) ? x[k] : y[k];
        }
    }
}

#undef TYPE
#undef WIDE
