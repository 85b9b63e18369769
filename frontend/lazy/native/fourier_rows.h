/* Fourier transforms in vectors of LANES numbers of one type, REAL, for processors that have such; see `vectors.h`.

   A vector holds the same element of LANES transforms, so nothing is ever moved between the elements of a vector: a
   short transform is made of LANES rows at once, a longer one of n = a·b elements of LANES columns, then of LANES rows of
   the a×b matrix that its elements are (Bailey's four steps). Each of these goes by Stockham's passes, which need no
   bit reversal. */

typedef REAL NAME(vector) __attribute__((vector_size(BYTES)));
typedef WHOLE NAME(whole) __attribute__((vector_size(BYTES)));
typedef REAL NAME(loose) __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));

/* In lanes: element k has the real parts at 2·k, the imaginary ones at 2·k + 1. */

INLINE void NAME(turned)(VECTOR *to, VECTOR re, VECTOR im, const REAL *w)
{
    to[0] = re * w[0] - im * w[1];
    to[1] = re * w[1] + im * w[0];
}

/* One pass of radix r: y[r·p + j] = wʲᵖ · Σₖ x[p + m·k] · e^(-2πijk/r), for s transforms side by side. */
INLINE void NAME(pass)(int r, const VECTOR *restrict x, VECTOR *restrict y, Py_ssize_t m, Py_ssize_t s, const REAL *w,
                       const REAL *roots)
{
    for (Py_ssize_t p = 0; p < m; p++, w += 2 * (r - 1))
        for (Py_ssize_t q = 0; q < s; q++) {
            const VECTOR *a = x + 2 * (q + s * p);
            VECTOR *b = y + 2 * (q + s * r * p);
            VECTOR re[MOST_RADIX], im[MOST_RADIX];
            const Py_ssize_t from = 2 * s * m;
            if (r == 2) {
                re[0] = a[0] + a[from], im[0] = a[1] + a[from + 1];
                re[1] = a[0] - a[from], im[1] = a[1] - a[from + 1];
            } else if (r == 3) {
                const REAL half = (REAL)0.5, sine = (REAL)0.86602540378443864676;
                VECTOR sr = a[from] + a[2 * from], si = a[from + 1] + a[2 * from + 1];
                VECTOR dr = (a[from] - a[2 * from]) * sine, di = (a[from + 1] - a[2 * from + 1]) * sine;
                VECTOR mr = a[0] - sr * half, mi = a[1] - si * half;
                re[0] = a[0] + sr, im[0] = a[1] + si;
                re[1] = mr + di, im[1] = mi - dr;
                re[2] = mr - di, im[2] = mi + dr;
            } else if (r == 4) {
                VECTOR er = a[0] + a[2 * from], ei = a[1] + a[2 * from + 1];
                VECTOR fr = a[0] - a[2 * from], fi = a[1] - a[2 * from + 1];
                VECTOR gr = a[from] + a[3 * from], gi = a[from + 1] + a[3 * from + 1];
                VECTOR hr = a[from] - a[3 * from], hi = a[from + 1] - a[3 * from + 1];
                re[0] = er + gr, im[0] = ei + gi;
                re[1] = fr + hi, im[1] = fi - hr;
                re[2] = er - gr, im[2] = ei - gi;
                re[3] = fr - hi, im[3] = fi + hr;
            } else if (r == 8) {
                const REAL root = (REAL)0.70710678118654752440;
                VECTOR c[16];
                for (int k = 0; k < 4; k++) { /* halves: sums, and differences turned by e^(-2πik/8) */
                    VECTOR ur = a[k * from], ui = a[k * from + 1];
                    VECTOR vr = a[(k + 4) * from], vi = a[(k + 4) * from + 1];
                    VECTOR dr = ur - vr, di = ui - vi;
                    c[2 * k] = ur + vr, c[2 * k + 1] = ui + vi;
                    if (k == 0)
                        c[8] = dr, c[9] = di;
                    else if (k == 1)
                        c[10] = (dr + di) * root, c[11] = (di - dr) * root;
                    else if (k == 2)
                        c[12] = di, c[13] = -dr;
                    else
                        c[14] = (di - dr) * root, c[15] = -(dr + di) * root;
                }
                for (int h = 0; h < 2; h++) {
                    const VECTOR *d = c + 8 * h;
                    VECTOR er = d[0] + d[4], ei = d[1] + d[5], fr = d[0] - d[4], fi = d[1] - d[5];
                    VECTOR gr = d[2] + d[6], gi = d[3] + d[7], hr = d[2] - d[6], hi = d[3] - d[7];
                    re[h] = er + gr, im[h] = ei + gi;
                    re[h + 2] = fr + hi, im[h + 2] = fi - hr;
                    re[h + 4] = er - gr, im[h + 4] = ei - gi;
                    re[h + 6] = fr - hi, im[h + 6] = fi + hr;
                }
            } else { /* odd: pairs k and r - k share their products */
                const int half = r / 2;
                VECTOR sr[MOST_RADIX / 2], si[MOST_RADIX / 2], dr[MOST_RADIX / 2], di[MOST_RADIX / 2];
                re[0] = a[0], im[0] = a[1];
                for (int k = 0; k < half; k++) {
                    const VECTOR *one = a + (k + 1) * from, *other = a + (r - 1 - k) * from;
                    sr[k] = one[0] + other[0], si[k] = one[1] + other[1];
                    dr[k] = one[0] - other[0], di[k] = one[1] - other[1];
                    re[0] += sr[k], im[0] += si[k];
                }
                for (int j = 1; j <= half; j++) {
                    VECTOR mr = a[0], mi = a[1], nr = sr[0] * 0, ni = nr;
                    for (int k = 0; k < half; k++) {
                        const REAL *root = roots + 2 * (j * (k + 1) % r);
                        mr += sr[k] * root[0], mi += si[k] * root[0];
                        nr += dr[k] * root[1], ni += di[k] * root[1];
                    }
                    re[j] = mr - ni, im[j] = mi + nr;
                    re[r - j] = mr + ni, im[r - j] = mi - nr;
                }
            }
            b[0] = re[0], b[1] = im[0];
            for (int j = 1; j < r; j++)
                if (p == 0)
                    b[2 * s * j] = re[j], b[2 * s * j + 1] = im[j];
                else
                    NAME(turned)(b + 2 * s * j, re[j], im[j], w + 2 * (j - 1));
        }
}

typedef struct {
    Py_ssize_t n;
    const int *radices; /* ends with 0 */
    const REAL *turns;  /* of each pass; before those of an odd radix beyond 3, its roots of unity */
} NAME(Passes);

/* The transforms of what is in x; where the result is, x or y. */
TARGET
static VECTOR *NAME(lanes)(const NAME(Passes) *by, VECTOR *x, VECTOR *y)
{
    Py_ssize_t m = by->n, s = 1;
    const REAL *w = by->turns;
    for (const int *radix = by->radices; *radix; radix++) {
        const int r = *radix;
        m /= r;
        switch (r) {
        case 2: NAME(pass)(2, x, y, m, s, w, NULL); break;
        case 3: NAME(pass)(3, x, y, m, s, w, NULL); break;
        case 4: NAME(pass)(4, x, y, m, s, w, NULL); break;
        case 8: NAME(pass)(8, x, y, m, s, w, NULL); break;
        case 5: NAME(pass)(5, x, y, m, s, w + 10, w), w += 10; break;
        case 7: NAME(pass)(7, x, y, m, s, w + 14, w), w += 14; break;
        case 11: NAME(pass)(11, x, y, m, s, w + 22, w), w += 22; break;
        default: NAME(pass)(13, x, y, m, s, w + 26, w), w += 26;
        }
        w += 2 * (r - 1) * m;
        s *= r;
        VECTOR *before = x;
        x = y, y = before;
    }
    return x;
}

/* As many vectors as one has elements become those of the transposed matrix: the first half and the second one are
   shuffled into each other like cards, again and again. */
INLINE void NAME(transpose)(VECTOR *x)
{
    for (Py_ssize_t done = 1; done < LANES; done *= 2) {
        VECTOR y[LANES];
        for (Py_ssize_t i = 0; i < LANES / 2; i++) {
            y[2 * i] = SHUFFLE(x[i], x[i + LANES / 2], EACH(LOW));
            y[2 * i + 1] = SHUFFLE(x[i], x[i + LANES / 2], EACH(HIGH));
        }
        for (Py_ssize_t i = 0; i < LANES; i++)
            x[i] = y[i];
    }
}

/* The columns of a matrix of complex numbers, `width` a row, to lanes; fewer than LANES if `count` says so. */
TARGET
static void NAME(load_columns)(VECTOR *restrict x, const REAL *restrict in, Py_ssize_t rows, Py_ssize_t width,
                               Py_ssize_t count, int swap)
{
    for (Py_ssize_t j = 0; j < rows; j++, in += 2 * width, x += 2) {
        VECTOR one = {0}, other = {0};
        if (count == LANES) {
            one = LOOSE(in)[0], other = LOOSE(in)[1];
        } else {
            VECTOR pair[2] = {one, other};
            memcpy(pair, in, (size_t)(2 * count) * sizeof(REAL));
            one = pair[0], other = pair[1];
        }
        x[swap] = SHUFFLE(one, other, EACH(EVEN));
        x[!swap] = SHUFFLE(one, other, EACH(ODD));
    }
}

TARGET
static void NAME(store_columns)(const VECTOR *restrict x, REAL *restrict out, Py_ssize_t rows, Py_ssize_t width,
                                Py_ssize_t count, int swap, REAL scale)
{
    for (Py_ssize_t j = 0; j < rows; j++, out += 2 * width, x += 2) {
        const VECTOR one = x[swap] * scale, other = x[!swap] * scale;
        const VECTOR low = SHUFFLE(one, other, EACH(LOW)), high = SHUFFLE(one, other, EACH(HIGH));
        if (count == LANES) {
            LOOSE(out)[0] = low, LOOSE(out)[1] = high;
        } else {
            const VECTOR pair[2] = {low, high};
            memcpy(out, pair, (size_t)(2 * count) * sizeof(REAL));
        }
    }
}

/* Rows of n complex numbers to lanes, and back. */
INLINE void NAME(load_some)(VECTOR *restrict x, const REAL *restrict in, Py_ssize_t n, Py_ssize_t count, int swap)
{
    Py_ssize_t j = 0;
    for (; j + LANES / 2 <= n; j += LANES / 2, x += LANES) {
        VECTOR block[LANES] = {{0}};
        for (Py_ssize_t i = 0; i < count; i++)
            block[i] = *LOOSE(in + 2 * (i * n + j));
        NAME(transpose)(block);
        for (Py_ssize_t i = 0; i < LANES; i++)
            x[i] = block[i ^ swap];
    }
    for (; j < n; j++, x += 2)
        for (Py_ssize_t i = 0; i < LANES; i++) {
            x[swap][i] = i < count ? in[2 * (i * n + j)] : 0;
            x[!swap][i] = i < count ? in[2 * (i * n + j) + 1] : 0;
        }
}

TARGET
static void NAME(load_rows)(VECTOR *restrict x, const REAL *restrict in, Py_ssize_t n, Py_ssize_t count, int swap)
{
    if (count < LANES)
        NAME(load_some)(x, in, n, count, swap);
    else if (swap)
        NAME(load_some)(x, in, n, LANES, 1);
    else
        NAME(load_some)(x, in, n, LANES, 0);
}

INLINE void NAME(store_some)(const VECTOR *restrict x, REAL *restrict out, Py_ssize_t n, Py_ssize_t width,
                             Py_ssize_t count, int swap, REAL scale)
{
    Py_ssize_t j = 0;
    for (; j + LANES / 2 <= n; j += LANES / 2, x += LANES) {
        VECTOR block[LANES];
        for (Py_ssize_t i = 0; i < LANES; i++)
            block[i] = x[i ^ swap] * scale;
        NAME(transpose)(block);
        for (Py_ssize_t i = 0; i < count; i++)
            *LOOSE(out + 2 * (i * width + j)) = block[i];
    }
    for (; j < n; j++, x += 2)
        for (Py_ssize_t i = 0; i < count; i++) {
            out[2 * (i * width + j)] = x[swap][i] * scale;
            out[2 * (i * width + j) + 1] = x[!swap][i] * scale;
        }
}

TARGET
static void NAME(store_rows)(const VECTOR *restrict x, REAL *restrict out, Py_ssize_t n, Py_ssize_t width,
                             Py_ssize_t count, int swap, REAL scale)
{
    if (count < LANES)
        NAME(store_some)(x, out, n, width, count, swap, scale);
    else if (swap)
        NAME(store_some)(x, out, n, width, LANES, 1, scale);
    else
        NAME(store_some)(x, out, n, width, LANES, 0, scale);
}

/* Between the two halves of a long transform: times e^(-2πi·row·column/n), the product of what the first column of
   WIDE ones has (`first`) and what each has from there (`rest`): the same for vectors of any size. */
TARGET
static void NAME(turn)(const VECTOR *restrict x, VECTOR *restrict between, Py_ssize_t rows, Py_ssize_t blocks,
                       const REAL *first, Py_ssize_t firsts, const REAL *rest)
{
    for (Py_ssize_t k = 0; k < rows; k++, x += 2, between += 2 * blocks, first += 2 * firsts, rest += 2 * WIDE) {
        const VECTOR c = *LOOSE(rest), d = *LOOSE(rest + WIDE);
        const VECTOR re = c * first[0] - d * first[1], im = c * first[1] + d * first[0];
        between[0] = x[0] * re - x[1] * im;
        between[1] = x[0] * im + x[1] * re;
    }
}

/* Rows of the matrix between to lanes; rows of it are filled up to whole vectors. */
TARGET
static void NAME(load_between)(VECTOR *restrict x, const VECTOR *restrict between, Py_ssize_t n,
                               Py_ssize_t blocks, Py_ssize_t count)
{
    for (Py_ssize_t block = 0; block < blocks; block++, between += 2) {
        const Py_ssize_t left = n - block * LANES, end = left < LANES ? left : LANES;
        for (int part = 0; part < 2; part++) {
            VECTOR rows[LANES];
            for (Py_ssize_t i = 0; i < LANES; i++)
                rows[i] = between[(i < count ? i : 0) * 2 * blocks + part];
            NAME(transpose)(rows);
            for (Py_ssize_t k = 0; k < end; k++)
                x[2 * (block * LANES + k) + part] = rows[k];
        }
    }
}

typedef struct {
    NAME(Passes) first, second; /* of columns and of rows; without a second, of rows alone */
    const REAL *starts, *rest;
} NAME(Plan);

/* Up to LANES rows; those of the result lie `width` complex numbers apart. */
TARGET
static void NAME(complex_rows)(const NAME(Plan) *plan, const REAL *in, REAL *out, Py_ssize_t width, Py_ssize_t rows,
                               int inverse, REAL scale, VECTOR *x, VECTOR *y, VECTOR *between)
{
    const Py_ssize_t a = plan->first.n, b = plan->second.n, blocks = (b + LANES - 1) / LANES;
    if (b == 1) {
        NAME(load_rows)(x, in, a, rows, inverse);
        NAME(store_rows)(NAME(lanes)(&plan->first, x, y), out, a, width, rows, inverse, scale);
        return;
    }
    for (Py_ssize_t row = 0; row < rows; row++, in += 2 * a * b, out += 2 * width) {
        for (Py_ssize_t block = 0; block < blocks; block++) {
            const Py_ssize_t left = b - block * LANES;
            NAME(load_columns)(x, in + 2 * block * LANES, a, b, left < LANES ? left : LANES, inverse);
            const Py_ssize_t column = block * LANES, wide = column / WIDE;
            NAME(turn)(NAME(lanes)(&plan->first, x, y), between + 2 * block, a, blocks, plan->starts + 2 * wide,
                       (b + WIDE - 1) / WIDE, plan->rest + column % WIDE);
        }
        for (Py_ssize_t k = 0; k < a; k += LANES) {
            const Py_ssize_t count = a - k < LANES ? a - k : LANES;
            NAME(load_between)(x, between + 2 * k * blocks, b, blocks, count);
            NAME(store_columns)(NAME(lanes)(&plan->second, x, y), out + 2 * k, b, a, count, inverse, scale);
        }
    }
}

/* Complex numbers of a vector: their parts exchanged, the real parts or the imaginary ones twice, in reverse order. */
INLINE VECTOR NAME(exchanged)(VECTOR x) { return SHUFFLE(x, x, EACH(EXCHANGED)); }
INLINE VECTOR NAME(real_twice)(VECTOR x) { return SHUFFLE(x, x, EACH(REAL_TWICE)); }
INLINE VECTOR NAME(imag_twice)(VECTOR x) { return SHUFFLE(x, x, EACH(IMAG_TWICE)); }
INLINE VECTOR NAME(reversed)(VECTOR x) { return SHUFFLE(x, x, EACH(REVERSED)); }

/* The coefficients of 2·h real numbers from the transform of them as h complex ones, in place; w[k] = e^(-2πik/2h). Those
   at k and h - k are e ± t for the half sum e of one and the other's conjugate, and t = -i·w[k] times their half
   difference. */
TARGET
static void NAME(real_after)(REAL *x, Py_ssize_t h, const REAL *w)
{
    const REAL half = (REAL)0.5;
    const VECTOR signs = {EACH(SIGN)};
    Py_ssize_t k = 1;
    const REAL first = x[0];
    x[0] = first + x[1], x[2 * h] = first - x[1];
    x[1] = x[2 * h + 1] = 0;
    for (; 2 * k + LANES <= h + 1; k += LANES / 2) {
        REAL *one = x + 2 * k, *other = x + 2 * (h - k + 1) - LANES;
        const VECTOR a = *LOOSE(one), b = NAME(reversed)(*LOOSE(other)) * signs, v = *LOOSE(w + 2 * k);
        const VECTOR e = (a + b) * half, d = (a - b) * half;
        const VECTOR t = NAME(real_twice)(v) * signs * NAME(exchanged)(d) + NAME(imag_twice)(v) * d;
        *LOOSE(one) = e + t, *LOOSE(other) = NAME(reversed)((e - t) * signs);
    }
    for (; k <= h / 2; k++) {
        REAL *one = x + 2 * k, *other = x + 2 * (h - k);
        const REAL er = (one[0] + other[0]) * half, ei = (one[1] - other[1]) * half;
        const REAL or = (one[1] + other[1]) * half, oi = (other[0] - one[0]) * half; /* -i times the difference */
        const REAL tr = w[2 * k] * or - w[2 * k + 1] * oi, ti = w[2 * k] * oi + w[2 * k + 1] * or;
        one[0] = er + tr, one[1] = ei + ti;
        other[0] = er - tr, other[1] = ti - ei;
    }
}

/* What h complex numbers, the inverse transform of which is 2·h real ones, are from the h + 1 coefficients x of these:
   those at k and h - k are s + t and the conjugate of s - t, for the sum s of x[k] and x[h - k]'s conjugate, and
   t = i·w[k]'s conjugate times their difference. */
TARGET
static void NAME(real_before)(const REAL *restrict x, REAL *restrict z, Py_ssize_t h, const REAL *w)
{
    const VECTOR signs = {EACH(SIGN)};
    Py_ssize_t k = 1;
    z[0] = x[0] + x[2 * h], z[1] = x[0] - x[2 * h];
    for (; 2 * k + LANES <= h + 1; k += LANES / 2) {
        const Py_ssize_t other = 2 * (h - k + 1) - LANES;
        const VECTOR a = *LOOSE(x + 2 * k), b = NAME(reversed)(*LOOSE(x + other)) * signs, v = *LOOSE(w + 2 * k);
        const VECTOR s = a + b, d = a - b;
        const VECTOR t = NAME(imag_twice)(v) * d - NAME(real_twice)(v) * signs * NAME(exchanged)(d);
        *LOOSE(z + 2 * k) = s + t, *LOOSE(z + other) = NAME(reversed)((s - t) * signs);
    }
    for (; k <= h / 2; k++) {
        const REAL *one = x + 2 * k, *other = x + 2 * (h - k);
        const REAL ar = one[0] + other[0], ai = one[1] - other[1], dr = one[0] - other[0], di = one[1] + other[1];
        const REAL tr = w[2 * k] * dr + w[2 * k + 1] * di, ti = w[2 * k] * di - w[2 * k + 1] * dr;
        z[2 * k] = ar - ti, z[2 * k + 1] = ai + tr;
        z[2 * (h - k)] = ar + ti, z[2 * (h - k) + 1] = tr - ai;
    }
}

/* kind: COMPLEX, or of real numbers FROM_REAL, to such TO_REAL; `rows` of them. */
TARGET
static void NAME(transform)(const NAME(Plan) *plan, const REAL *in, REAL *out, Py_ssize_t rows, int kind, int inverse,
                            REAL scale, const REAL *halves, VECTOR *x, VECTOR *y, VECTOR *between, REAL *coefficients)
{
    const Py_ssize_t n = plan->first.n * plan->second.n;
    const Py_ssize_t in_width = n + (kind == TO_REAL), out_width = n + (kind == FROM_REAL);
    for (Py_ssize_t row = 0; row < rows; row += LANES, in += 2 * LANES * in_width, out += 2 * LANES * out_width) {
        const Py_ssize_t count = rows - row < LANES ? rows - row : LANES;
        const REAL *from = in;
        if (kind == TO_REAL) {
            for (Py_ssize_t i = 0; i < count; i++)
                NAME(real_before)(in + 2 * i * in_width, coefficients + 2 * i * n, n, halves);
            from = coefficients;
        }
        NAME(complex_rows)(plan, from, out, out_width, count, inverse, scale, x, y, between);
        if (kind == FROM_REAL)
            for (Py_ssize_t i = 0; i < count; i++)
                NAME(real_after)(out + 2 * i * out_width, n, halves);
    }
}

/* The columns of matrices of n × width complex numbers; `first` … `last` count blocks of LANES columns. */
TARGET
static void NAME(transform_columns)(const NAME(Passes) *by, const REAL *in, REAL *out, Py_ssize_t width,
                                    Py_ssize_t first, Py_ssize_t last, int inverse, REAL scale, VECTOR *x, VECTOR *y)
{
    const Py_ssize_t blocks = (width + LANES - 1) / LANES;
    for (Py_ssize_t unit = first; unit < last; unit++) {
        const Py_ssize_t column = unit % blocks * LANES, at = 2 * (unit / blocks * by->n * width + column);
        const Py_ssize_t count = width - column < LANES ? width - column : LANES;
        NAME(load_columns)(x, in + at, by->n, width, count, inverse);
        NAME(store_columns)(NAME(lanes)(by, x, y), out + at, by->n, width, count, inverse, scale);
    }
}

/* What `fourier` was asked for, and `fourier_columns`. */
TARGET
static void NAME(fourier)(const Work *by)
{
    const NAME(Plan) plan = {
        {by->a, by->first, by->first_turns}, {by->b, by->second, by->second_turns}, by->starts, by->rest};
    NAME(transform)(&plan, by->in, by->out, by->rows, by->kind, by->inverse, (REAL)by->scale, by->halves,
                    (VECTOR *)by->x, (VECTOR *)by->y, (VECTOR *)by->between, (REAL *)by->coefficients);
}

TARGET
static void NAME(fourier_columns)(const Work *by)
{
    const NAME(Passes) passes = {by->a, by->first, by->first_turns};
    NAME(transform_columns)(&passes, by->in, by->out, by->width, by->start, by->stop, by->inverse, (REAL)by->scale,
                            (VECTOR *)by->x, (VECTOR *)by->y);
}
