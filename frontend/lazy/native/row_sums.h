/* Sums, or products, of rows and of columns of numbers of one type, REAL: what FOLD, FOLDED(x, y) and BEGUN(x) say;
   see `row_sums.c`. */

#define OF(name) PASTE(PASTE(name, REAL), FOLD)

typedef REAL OF(eight) __attribute__((vector_size(SUMS * sizeof(REAL))));
#define EIGHT OF(eight)

/* A part of the columns of n rows, summed down; `more`: beside what `out` has. */
INLINE void OF(down)(const REAL *x, REAL *out, Py_ssize_t n, Py_ssize_t columns, const Py_ssize_t part, const int more)
{
    REAL sums[MOST_PART];
    for (Py_ssize_t k = 0; k < part; k++)
        sums[k] = more ? out[k] : BEGUN(x[k]);
    for (Py_ssize_t i = !more; i < n; i++)
        for (Py_ssize_t k = 0; k < part; k++)
            sums[k] = FOLDED(sums[k], x[i * columns + k]);
    for (Py_ssize_t k = 0; k < part; k++)
        out[k] = sums[k];
}

INLINE void OF(few_columns)(const REAL *x, REAL *out, Py_ssize_t outer, Py_ssize_t n, const Py_ssize_t columns)
{
    for (; outer > 0; outer--, x += n * columns, out += columns)
        OF(down)(x, out, n, columns, columns, 0);
}

CLONES static void OF(many_columns)(const REAL *x, REAL *out, Py_ssize_t n, Py_ssize_t columns, int more)
{
    Py_ssize_t k = 0;
    for (; k + MOST_PART <= columns; k += MOST_PART)
        OF(down)(x + k, out + k, n, columns, MOST_PART, more);
    for (; k + 16 <= columns; k += 16)
        OF(down)(x + k, out + k, n, columns, 16, more);
    switch ((columns - k) >> 2) {
        case 3: OF(down)(x + k, out + k, n, columns, 12, more); break;
        case 2: OF(down)(x + k, out + k, n, columns, 8, more); break;
        case 1: OF(down)(x + k, out + k, n, columns, 4, more); break;
    }
    k += (columns - k) >> 2 << 2;
    switch (columns - k) {
        case 3: OF(down)(x + k, out + k, n, columns, 3, more); break;
        case 2: OF(down)(x + k, out + k, n, columns, 2, more); break;
        case 1: OF(down)(x + k, out + k, n, columns, 1, more); break;
    }
}

#define FEW_COLUMNS(k) case k: OF(few_columns)(x, out, outer, n, k); return;
CLONES static void OF(columns)(const REAL *x, REAL *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns)
{
    switch (columns) {
        FOR_EACH(FEW_COLUMNS)
    }
    const Py_ssize_t most = CACHED / (columns * (Py_ssize_t)sizeof(REAL)) + 1;
    for (; outer > 0; outer--, out += columns)
        for (Py_ssize_t i = 0; i < n; i += most, x += columns * most) {
            const Py_ssize_t count = n - i < most ? n - i : most;
            OF(many_columns)(x, out, count, columns, i > 0);
            if (count < most) {
                x += columns * count;
                break;
            }
        }
}
#undef FEW_COLUMNS

/* Numbers one after the other; complex ones as two, whose sums are two. */
INLINE void OF(few)(const REAL *x, const Py_ssize_t n, const int is_complex, REAL *out)
{
    out[0] = x[0];
    if (is_complex)
        out[1] = x[1];
    for (Py_ssize_t i = 1 + is_complex; i < n; i++)
        out[i & is_complex] = FOLDED(out[i & is_complex], x[i]);
}

/* The sum of what `s` has, of complex numbers at every other place, and of the elements of a block from i on. */
INLINE void OF(end)(EIGHT s, const REAL *x, Py_ssize_t i, Py_ssize_t n, const int is_complex, REAL *out)
{
#define FOLDED_4(a, b, c, d) FOLDED(FOLDED(s[a], s[b]), FOLDED(s[c], s[d]))
    if (is_complex)
        out[0] = FOLDED_4(0, 2, 4, 6), out[1] = FOLDED_4(1, 3, 5, 7);
    else
        out[0] = FOLDED(FOLDED_4(0, 1, 2, 3), FOLDED_4(4, 5, 6, 7));
#undef FOLDED_4
    for (; i < n; i++)
        out[i & is_complex] = FOLDED(out[i & is_complex], x[i]);
}

/* `count` blocks that follow each other, of n[k] numbers, side by side: each sum waits for the one before it. */
INLINE void OF(blocks)(const REAL *x, const Py_ssize_t *n, const int count, const int is_complex, REAL (*out)[2])
{
    const REAL *from[MOST_BLOCKS];
    EIGHT sums[MOST_BLOCKS], more;
    Py_ssize_t least = n[0], i = SUMS;
    for (int k = 0; k < count; x += n[k++]) {
        from[k] = x;
        memcpy(&sums[k], x, sizeof(more));
        least = n[k] < least ? n[k] : least;
    }
    for (; i + SUMS <= least; i += SUMS)
        for (int k = 0; k < count; k++) {
            memcpy(&more, from[k] + i, sizeof(more));
            sums[k] = FOLDED(sums[k], more);
        }
    for (int k = 0; k < count; k++) {
        Py_ssize_t j = i;
        for (; j + SUMS <= n[k]; j += SUMS) {
            memcpy(&more, from[k] + j, sizeof(more));
            sums[k] = FOLDED(sums[k], more);
        }
        OF(end)(sums[k], from[k], j, n[k], is_complex, out[k]);
    }
}

CLONES static void OF(one)(const REAL *x, Py_ssize_t n, int is_complex, REAL *out)
{
    if (n <= FEW)
        OF(few)(x, n, is_complex, out);
    else
        OF(blocks)(x, &n, 1, is_complex, (REAL(*)[2])out);
}

CLONES static void OF(two)(const REAL *x, const Py_ssize_t *n, int is_complex, REAL (*out)[2])
{
    OF(blocks)(x, n, 2, is_complex, out);
}

CLONES static void OF(four)(const REAL *x, const Py_ssize_t *n, int is_complex, REAL (*out)[2])
{
    OF(blocks)(x, n, 4, is_complex, out);
}

/* A row of any length: of more than a block the sums of its halves. */
static void OF(row)(const REAL *x, Py_ssize_t n, int is_complex, REAL *out)
{
    if (n <= BLOCK) {
        OF(one)(x, n, is_complex, out);
        return;
    }
    const Py_ssize_t first = half_of(n), rest = n - first, quarter = half_of(first), third = half_of(rest);
    REAL sums[MOST_BLOCKS][2];
    if (rest <= BLOCK)
        OF(two)(x, (Py_ssize_t[]){first, rest}, is_complex, sums);
    else if (first > BLOCK && rest - third <= BLOCK) {
        OF(four)(x, (Py_ssize_t[]){quarter, first - quarter, third, rest - third}, is_complex, sums);
        for (int k = 0; k <= is_complex; k++)
            sums[0][k] = FOLDED(sums[0][k], sums[1][k]), sums[1][k] = FOLDED(sums[2][k], sums[3][k]);
    } else {
        OF(row)(x, first, is_complex, sums[0]);
        OF(row)(x + first, rest, is_complex, sums[1]);
    }
    for (int k = 0; k <= is_complex; k++)
        out[k] = FOLDED(sums[0][k], sums[1][k]);
}

INLINE void OF(short_rows)(const REAL *x, REAL *out, Py_ssize_t outer, const Py_ssize_t n)
{
    REAL sums[1][2];
    for (; outer > 0; outer--, x += n, out++) {
        if (n <= FEW)
            OF(few)(x, n, 0, sums[0]);
        else
            OF(blocks)(x, &n, 1, 0, sums);
        *out = BEGUN(sums[0][0]);
    }
}

#define SHORT_ROWS(k) case k: OF(short_rows)(x, out, outer, k); return;
CLONES static void OF(block_rows)(const REAL *x, REAL *out, Py_ssize_t outer, Py_ssize_t n)
{
    switch (n) {
        FOR_EACH(SHORT_ROWS)
    }
    OF(short_rows)(x, out, outer, n);
}
#undef SHORT_ROWS

static void OF(rows)(const REAL *x, REAL *out, Py_ssize_t outer, Py_ssize_t n, int is_complex)
{
    REAL sums[2];
    if (n <= BLOCK && !is_complex)
        OF(block_rows)(x, out, outer, n);
    else
        for (; outer > 0; outer--, x += n, out += 1 + is_complex) {
            OF(row)(x, n, is_complex, sums);
            for (int k = 0; k <= is_complex; k++)
                out[k] = BEGUN(sums[k]);
        }
}

/* Sums over the middle one of three axes. */
static void OF(fold)(const void *x, void *out, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t columns, int is_complex)
{
    const Py_ssize_t each = 1 + is_complex;
    if (columns > 1)
        OF(columns)(x, out, outer, n, each * columns);
    else
        OF(rows)(x, out, outer, each * n, is_complex);
}

#undef OF
#undef EIGHT
