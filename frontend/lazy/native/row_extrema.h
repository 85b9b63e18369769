/* Extrema over the middle one of three axes, of numbers of one type, REAL, that take as many bytes as WORD, an integer with
   a sign: BETTER(x, y) says whether x stays beside y; see `row_extrema.c`. */

#define OF(name) PASTE(PASTE(name, REAL), EXTREMUM)
#define NUMBERS OF(numbers)
#define WORDS OF(words)
#define EACH_ONE (BYTES_OF_VECTOR / (Py_ssize_t)sizeof(REAL))
#define WIDE (VECTORS * EACH_ONE)

typedef REAL NUMBERS __attribute__((vector_size(BYTES_OF_VECTOR)));
typedef WORD WORDS __attribute__((vector_size(BYTES_OF_VECTOR)));

/* Those of `out` and of n rows, one after the other. */
CLONES static void OF(lines)(const REAL *x, REAL *restrict out, Py_ssize_t n, Py_ssize_t columns)
{
    for (; n > 0; n--, x += columns)
        for (Py_ssize_t k = 0; k < columns; k++)
            out[k] = BETTER(out[k], x[k]) ? out[k] : x[k];
}

/* Those of WIDE numbers at a time; how many numbers that were. */
CLONES static Py_ssize_t OF(vectors)(const REAL *x, REAL *out, Py_ssize_t size)
{
    NUMBERS best[VECTORS], more;
    Py_ssize_t i = WIDE;
    memcpy(best, x, sizeof(best));
    for (; i + WIDE <= size; i += WIDE)
        for (int k = 0; k < VECTORS; k++) {
            memcpy(&more, x + i + k * EACH_ONE, sizeof(more));
            const WORDS kept = (WORDS)(BETTER(best[k], more));
            best[k] = (NUMBERS)(((WORDS)best[k] & kept) | ((WORDS)more & ~kept));
        }
    memcpy(out, best, sizeof(best));
    return i;
}

/* Those of a block of numbers that repeat every `columns` ones, of which `width` are compared at a time. */
static void OF(block)(const REAL *x, REAL *out, Py_ssize_t size, Py_ssize_t columns, Py_ssize_t width)
{
    REAL best[WIDE];
    Py_ssize_t i = width;
    if (width == WIDE)
        i = OF(vectors)(x, best, size);
    else {
        memcpy(best, x, width * sizeof(REAL));
        OF(lines)(x + width, best, size / width - 1, width);
        i = size / width * width;
    }
    OF(lines)(x + i, best, 1, size - i);
    for (; width > columns && width / columns % 2 == 0; width /= 2)
        OF(lines)(best + width / 2, best, 1, width / 2);
    memcpy(out, best, columns * sizeof(REAL));
    OF(lines)(best + columns, out, width / columns - 1, columns);
}

static void OF(fold)(const void *given, void *found, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns)
{
    const REAL *x = given;
    REAL *out = found;
    const Py_ssize_t size = n * columns, width = columns > WIDE / 2 ? columns : WIDE / columns * columns;
    for (; outer > 0; outer--, x += size, out += columns)
        if (width == columns || size < width) {
            memcpy(out, x, columns * sizeof(REAL));
            OF(lines)(x + columns, out, n - 1, columns);
        } else
            OF(block)(x, out, size, columns, width);
}

#undef OF
#undef NUMBERS
#undef WORDS
#undef EACH_ONE
#undef WIDE
