/* Running results of numbers of one type, REAL: STEP(x, y) is what x, of those before, is with y; TOTAL is the type of x;
   see `running.c`. */

#define OF(name) PASTE(PASTE(name, REAL), WHICH)

/* Of some rows of n numbers, LINES at a time. */
#define LOOP(LINES)                                                                                                        \
    for (; outer >= LINES; outer -= LINES, x += LINES * n, out += LINES * n) {                                             \
        TOTAL last[LINES];                                                                                                 \
        for (int k = 0; k < LINES; k++)                                                                                    \
            last[k] = out[k * n] = x[k * n];                                                                               \
        for (Py_ssize_t i = 1; i < n; i++)                                                                                 \
            for (int k = 0; k < LINES; k++) {                                                                              \
                const REAL more = x[k * n + i];                                                                            \
                last[k] = STEP(last[k], more);                                                                             \
                out[k * n + i] = (REAL)last[k];                                                                            \
            }                                                                                                              \
    }

static void OF(rows)(const REAL *x, REAL *restrict out, Py_ssize_t outer, Py_ssize_t n)
{
    LOOP(8)
    LOOP(1)
}

/* A part of the columns of n rows, each a step from the one before. */
CLONES static void OF(columns)(const REAL *x, REAL *restrict out, Py_ssize_t n, Py_ssize_t columns, Py_ssize_t part)
{
    TOTAL last[MOST_PART];
    for (Py_ssize_t k = 0; k < part; k++)
        last[k] = out[k] = x[k];
    for (Py_ssize_t i = 1; i < n; i++) {
        x += columns;
        out += columns;
        for (Py_ssize_t k = 0; k < part; k++) {
            last[k] = STEP(last[k], x[k]);
            out[k] = (REAL)last[k];
        }
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
            for (Py_ssize_t k = 0; k < columns; k += MOST_PART)
                OF(columns)(x + k, out + k, n, columns, columns - k < MOST_PART ? columns - k : MOST_PART);
}

#undef LOOP
#undef OF
