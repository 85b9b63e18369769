/* Running results of numbers of one type, REAL: STEP(x, y) is what x, of those before, is with y; see `running.c`. */

#define OF(name) PASTE(PASTE(name, REAL), WHICH)

/* Of some rows of n numbers, LINES at a time. */
#define LOOP(LINES)                                                                                                        \
    for (; outer >= LINES; outer -= LINES, x += LINES * n, out += LINES * n) {                                             \
        REAL last[LINES];                                                                                                  \
        for (int k = 0; k < LINES; k++)                                                                                    \
            out[k * n] = last[k] = x[k * n];                                                                               \
        for (Py_ssize_t i = 1; i < n; i++)                                                                                 \
            for (int k = 0; k < LINES; k++) {                                                                              \
                const REAL more = x[k * n + i];                                                                            \
                out[k * n + i] = last[k] = STEP(last[k], more);                                                            \
            }                                                                                                              \
    }

static void OF(rows)(const REAL *x, REAL *restrict out, Py_ssize_t outer, Py_ssize_t n)
{
    LOOP(8)
    LOOP(1)
}

/* Of n rows, each a step from the one before. */
CLONES static void OF(columns)(const REAL *x, REAL *restrict out, Py_ssize_t n, Py_ssize_t columns)
{
    memcpy(out, x, columns * sizeof(REAL));
    for (Py_ssize_t i = 1; i < n; i++) {
        const REAL *before = out + (i - 1) * columns, *more = x + i * columns;
        REAL *here = out + i * columns;
        for (Py_ssize_t k = 0; k < columns; k++)
            here[k] = STEP(before[k], more[k]);
    }
}

static void OF(run)(const void *given, void *found, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns)
{
    const REAL *x = given;
    REAL *out = found;
    if (columns == 1)
        OF(rows)(x, out, outer, n);
    else
        for (; outer > 0; outer--, x += n * columns, out += n * columns)
            OF(columns)(x, out, n, columns);
}

#undef LOOP
#undef OF
