/* Factors of small square matrices in vectors of LANES numbers of one type, REAL; see `vectors.h`.

   A vector holds the same element of LANES matrices, so that nothing depends on how large they are. What is not finite
   or has no factor is left to LAPACK, which says what is wrong: functions return 0 then. */

typedef REAL NAME(vector) __attribute__((vector_size(BYTES)));
typedef WHOLE NAME(whole) __attribute__((vector_size(BYTES)));

#undef WAYS
#define WAYS (LANES < 8 ? LANES : 8)

/* Rows of so many numbers as columns; of constants, so that compilers make shuffles of it. */
INLINE void NAME(turn)(REAL *to, const Py_ssize_t to_pitch, const REAL *from, const Py_ssize_t pitch,
                       const Py_ssize_t rows, const Py_ssize_t columns)
{
    for (Py_ssize_t i = 0; i < rows; i++)
        for (Py_ssize_t k = 0; k < columns; k++)
            to[k * to_pitch + i] = from[i * pitch + k];
}

/* Matrices of `size` numbers to lanes, the last one again where there are fewer; and back. Of large ones squares, so that
   each line of memory is used up while it is in a cache, which has room for WAYS lines that are pages apart. */
TARGET
static void NAME(load)(VECTOR *x, const REAL *in, Py_ssize_t size, Py_ssize_t count)
{
    REAL *to = (REAL *)x;
    Py_ssize_t done = 0;
    if (count == LANES)
        switch (size) {
        case 2: NAME(turn)(to, LANES, in, 2, LANES, 2); return;
        case 4: NAME(turn)(to, LANES, in, 4, LANES, 4); return;
        case 9: NAME(turn)(to, LANES, in, 9, LANES, 9); return;
        default:
            for (; done + LANES <= size; done += LANES)
                for (Py_ssize_t i = 0; i < LANES; i += WAYS)
                    NAME(turn)(to + done * LANES + i, LANES, in + i * size + done, size, WAYS, LANES);
        }
    for (Py_ssize_t i = 0; i < LANES; i++) {
        const REAL *from = in + (i < count ? i : count - 1) * size;
        for (Py_ssize_t k = done; k < size; k++)
            to[k * LANES + i] = from[k];
    }
}

TARGET
static void NAME(store)(const VECTOR *x, REAL *out, Py_ssize_t size, Py_ssize_t count)
{
    const REAL *from = (const REAL *)x;
    Py_ssize_t done = 0;
    if (count == LANES)
        switch (size) {
        case 2: NAME(turn)(out, 2, from, LANES, 2, LANES); return;
        case 4: NAME(turn)(out, 4, from, LANES, 4, LANES); return;
        case 9: NAME(turn)(out, 9, from, LANES, 9, LANES); return;
        default:
            for (; done + LANES <= size; done += LANES)
                for (Py_ssize_t i = 0; i < LANES; i += WAYS)
                    NAME(turn)(out + i * size + done, size, from + done * LANES + i, LANES, LANES, WAYS);
        }
    for (Py_ssize_t i = 0; i < count; i++)
        for (Py_ssize_t k = done; k < size; k++)
            out[i * size + k] = from[k * LANES + i];
}

/* Whether all are larger than 0, and finite. */
INLINE int NAME(positive)(VECTOR x)
{
    const MASK fits = (x > 0) & (x <= LARGEST);
    WHOLE found = -1;
    for (Py_ssize_t i = 0; i < LANES; i++)
        found &= fits[i];
    return found != 0;
}

INLINE VECTOR NAME(roots)(VECTOR x)
{
    VECTOR found;
    const REAL *from = (const REAL *)&x;
    REAL *to = (REAL *)&found;
    for (Py_ssize_t i = 0; i < LANES; i++)
        to[i] = SQRT(from[i]);
    return found;
}

TARGET
static int NAME(cholesky)(const REAL *in, REAL *out, Py_ssize_t n, Py_ssize_t count)
{
    VECTOR a[MOST_ROOTED * MOST_ROOTED];
    NAME(load)(a, in, n * n, count);
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR pivot = a[j * n + j];
        for (Py_ssize_t k = 0; k < j; k++)
            pivot -= a[j * n + k] * a[j * n + k];
        if (!NAME(positive)(pivot))
            return 0;
        const VECTOR root = NAME(roots)(pivot);
        a[j * n + j] = root;
        Py_ssize_t i = j + 1;
        for (; i + 4 <= n; i += 4) { /* of four rows, each of which waits for itself alone */
            VECTOR *x0 = a + i * n, *x1 = x0 + n, *x2 = x1 + n, *x3 = x2 + n;
            VECTOR rest0 = x0[j], rest1 = x1[j], rest2 = x2[j], rest3 = x3[j];
            for (Py_ssize_t k = 0; k < j; k++) {
                const VECTOR y = a[j * n + k];
                rest0 -= x0[k] * y, rest1 -= x1[k] * y, rest2 -= x2[k] * y, rest3 -= x3[k] * y;
            }
            x0[j] = rest0 / root, x1[j] = rest1 / root, x2[j] = rest2 / root, x3[j] = rest3 / root;
        }
        for (; i < n; i++) {
            VECTOR rest = a[i * n + j];
            for (Py_ssize_t k = 0; k < j; k++)
                rest -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = rest / root;
        }
        for (i = j + 1; i < n; i++)
            a[j * n + i] = root * 0;
    }
    NAME(store)(a, out, n * n, count);
    return 1;
}

/* The largest size in column j of the rows from j on (m × n), and the first row that has it. */
INLINE MASK NAME(pivots)(const VECTOR *a, Py_ssize_t j, Py_ssize_t m, Py_ssize_t n, VECTOR *best)
{
    MASK row = (MASK){0} + (WHOLE)j;
    *best = SIZE(a[j * n + j]);
    for (Py_ssize_t i = j + 1; i < m; i++) {
        const VECTOR size = SIZE(a[i * n + j]);
        const MASK more = size > *best;
        *best = CHOSEN(more, size, *best);
        row = (more & ((MASK){0} + (WHOLE)i)) | (~more & row);
    }
    return row;
}

/* Exchange vectors, in some lanes. */
INLINE void NAME(exchange)(MASK here, VECTOR *one, VECTOR *other, Py_ssize_t count)
{
    for (Py_ssize_t c = 0; c < count; c++) {
        const VECTOR x = one[c], y = other[c];
        one[c] = CHOSEN(here, y, x), other[c] = CHOSEN(here, x, y);
    }
}

/* X with A·X = B, of k columns, in place of B. Rows are exchanged in each matrix for the largest pivot. */
TARGET
static int NAME(eliminate)(VECTOR *a, VECTOR *b, Py_ssize_t n, Py_ssize_t k)
{
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR best;
        const MASK row = NAME(pivots)(a, j, n, n, &best);
        if (!NAME(positive)(best))
            return 0;
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const MASK here = row == (MASK){0} + (WHOLE)i;
            NAME(exchange)(here, a + j * n + j, a + i * n + j, n - j);
            NAME(exchange)(here, b + j * k, b + i * k, k);
        }
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const VECTOR factor = a[i * n + j] / a[j * n + j];
            for (Py_ssize_t c = j + 1; c < n; c++)
                a[i * n + c] -= factor * a[j * n + c];
            for (Py_ssize_t c = 0; c < k; c++)
                b[i * k + c] -= factor * b[j * k + c];
        }
    }
    for (Py_ssize_t j = n; j-- > 0;)
        for (Py_ssize_t c = 0; c < k; c++) {
            VECTOR rest = b[j * k + c];
            for (Py_ssize_t i = j + 1; i < n; i++)
                rest -= a[j * n + i] * b[i * k + c];
            b[j * k + c] = rest / a[j * n + j];
        }
    return 1;
}

/* X with A·X = B, of k columns; without B, the inverse. */
TARGET
static int NAME(solve)(const REAL *in, const REAL *right, REAL *out, Py_ssize_t n, Py_ssize_t k, Py_ssize_t count)
{
    VECTOR a[MOST * MOST], b[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    if (right != NULL)
        NAME(load)(b, right, n * k, count);
    else
        for (Py_ssize_t i = 0; i < n * n; i++)
            b[i] = a[0] * 0 + (REAL)(i % (n + 1) == 0);
    if (!NAME(eliminate)(a, b, n, k))
        return 0;
    NAME(store)(b, out, n * k, count);
    return 1;
}

/* X with A·X = B, of k columns, for triangular matrices. */
TARGET
static int NAME(substitute)(const REAL *in, const REAL *right, REAL *out, int upper, Py_ssize_t n, Py_ssize_t k,
                            Py_ssize_t count)
{
    VECTOR a[MOST * MOST], b[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    NAME(load)(b, right, n * k, count);
    for (Py_ssize_t step = 0; step < n; step++) {
        const Py_ssize_t j = upper ? n - 1 - step : step, first = upper ? j + 1 : 0, last = upper ? n : j;
        for (Py_ssize_t c = 0; c < k; c++) {
            VECTOR rest = b[j * k + c];
            for (Py_ssize_t i = first; i < last; i++)
                rest -= a[j * n + i] * b[i * k + c];
            b[j * k + c] = rest / a[j * n + j];
        }
    }
    NAME(store)(b, out, n * k, count);
    return 1;
}

/* LU factors of matrices (m × n) in one, with the exchanges of rows and the order that they lead to. */
TARGET
static int NAME(lu)(const REAL *in, REAL *out, REAL *exchanges, REAL *order, Py_ssize_t m, Py_ssize_t n,
                    Py_ssize_t count)
{
    VECTOR a[MOST * MOST], rows[MOST], chosen[MOST], best, finite = {0};
    const Py_ssize_t least = m < n ? m : n;
    NAME(load)(a, in, m * n, count);
    for (Py_ssize_t i = 0; i < m * n; i++)
        finite += a[i] * 0;
    for (Py_ssize_t i = 0; i < m; i++)
        rows[i] = finite + (REAL)i;
    for (Py_ssize_t j = 0; j < least; j++) {
        const MASK row = NAME(pivots)(a, j, m, n, &best);
        if (!NAME(positive)(finite + best + 1))
            return 0;
        chosen[j] = finite + (REAL)j;
        for (Py_ssize_t i = j + 1; i < m; i++) {
            const MASK here = row == (MASK){0} + (WHOLE)i;
            chosen[j] = CHOSEN(here, finite + (REAL)i, chosen[j]);
            NAME(exchange)(here, a + j * n, a + i * n, n);
            NAME(exchange)(here, rows + j, rows + i, 1);
        }
        const VECTOR pivot = CHOSEN(a[j * n + j] == 0, finite + 1, a[j * n + j]);
        for (Py_ssize_t i = j + 1; i < m; i++) {
            a[i * n + j] /= pivot;
            for (Py_ssize_t c = j + 1; c < n; c++)
                a[i * n + c] -= a[i * n + j] * a[j * n + c];
        }
    }
    NAME(store)(a, out, m * n, count);
    NAME(store)(chosen, exchanges, least, count);
    NAME(store)(rows, order, m, count);
    return 1;
}

/* Whether sums of squares, beside those of sizes, are not too large or too small: such matrices are LAPACK's, which
   scales. Squares may be zero where numbers are not. */
INLINE int NAME(usual)(VECTOR whole, VECTOR sizes)
{
    for (Py_ssize_t i = 0; i < LANES; i++)
        if (sizes[i] != 0 && !(whole[i] < LARGEST && whole[i] > SMALLEST))
            return 0;
    return 1;
}

/* Eigenvalues, ascending, and eigenvectors of what the lower triangles say, by Jacobi's rotations. */
TARGET
static int NAME(eigh)(const REAL *in, REAL *values, REAL *vectors, Py_ssize_t n, Py_ssize_t count)
{
    VECTOR a[MOST * MOST], v[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    VECTOR whole = a[0] * 0, sizes = whole;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j <= i; j++) {
            a[j * n + i] = a[i * n + j];
            v[i * n + j] = v[j * n + i] = whole * 0 + (REAL)(i == j);
            whole += a[i * n + j] * a[i * n + j] * (REAL)(i == j ? 1 : 2);
            sizes += SIZE(a[i * n + j]);
        }
    if (!NAME(usual)(whole, sizes))
        return 0;
    int left = 1;
    for (int sweep = 0; left; sweep++) {
        if (sweep == SWEEPS)
            return 0;
        left = 0;
        for (Py_ssize_t p = 0; p < n; p++)
            for (Py_ssize_t q = p + 1; q < n; q++) {
                const VECTOR off = a[p * n + q];
                const MASK turns = off * off > whole * (EPSILON * EPSILON / 16);
                int some = 0;
                for (Py_ssize_t i = 0; i < LANES; i++)
                    some |= turns[i] != 0;
                if (!some)
                    continue;
                left = 1;
                /* t = tan of the angle that makes a[p,q] 0, the smaller one */
                const VECTOR theta = (a[q * n + q] - a[p * n + p]) / (2 * CHOSEN(turns, off, off * 0 + 1));
                const VECTOR t0 = 1 / (SIZE(theta) + NAME(roots)(theta * theta + 1));
                const VECTOR t = CHOSEN(turns, CHOSEN(theta < 0, -t0, t0), off * 0);
                const VECTOR c = 1 / NAME(roots)(t * t + 1), s = t * c;
                a[p * n + p] -= t * off;
                a[q * n + q] += t * off;
                a[p * n + q] = a[q * n + p] = CHOSEN(turns, off * 0, off);
                for (Py_ssize_t i = 0; i < n; i++) {
                    if (i != p && i != q) {
                        const VECTOR x = a[i * n + p], y = a[i * n + q];
                        a[i * n + p] = a[p * n + i] = c * x - s * y;
                        a[i * n + q] = a[q * n + i] = s * x + c * y;
                    }
                    const VECTOR x = v[i * n + p], y = v[i * n + q];
                    v[i * n + p] = c * x - s * y;
                    v[i * n + q] = s * x + c * y;
                }
            }
    }
    for (Py_ssize_t last = n - 1; last > 0; last--) /* in order: neighbours change places */
        for (Py_ssize_t j = 0; j < last; j++) {
            const VECTOR x = a[j * n + j], y = a[(j + 1) * n + j + 1];
            const MASK more = x > y;
            a[j * n + j] = CHOSEN(more, y, x), a[(j + 1) * n + j + 1] = CHOSEN(more, x, y);
            for (Py_ssize_t i = 0; i < n; i++) {
                const VECTOR one = v[i * n + j], other = v[i * n + j + 1];
                v[i * n + j] = CHOSEN(more, other, one), v[i * n + j + 1] = CHOSEN(more, one, other);
            }
        }
    for (Py_ssize_t j = 0; j < n; j++)
        a[j] = a[j * n + j];
    NAME(store)(a, values, n, count);
    NAME(store)(v, vectors, n * n, count);
    return 1;
}

/* Determinants of few rows: products of two float32 are exact in float64. */
INLINE void NAME(det_of_2)(const REAL *in, double *found, Py_ssize_t count)
{
    VECTOR a[4];
    NAME(load)(a, in, 4, count);
    const REAL *x = (const REAL *)a;
    for (Py_ssize_t i = 0; i < LANES; i++)
        found[i] = (double)x[i] * x[3 * LANES + i] - (double)x[LANES + i] * x[2 * LANES + i];
}

INLINE void NAME(det_of_3)(const REAL *in, double *found, Py_ssize_t count)
{
    VECTOR a[9];
    NAME(load)(a, in, 9, count);
    const REAL *x = (const REAL *)a;
    for (Py_ssize_t i = 0; i < LANES; i++) {
        const double a0 = x[i], a1 = x[LANES + i], a2 = x[2 * LANES + i], b0 = x[3 * LANES + i], b1 = x[4 * LANES + i];
        const double b2 = x[5 * LANES + i], c0 = x[6 * LANES + i], c1 = x[7 * LANES + i], c2 = x[8 * LANES + i];
        found[i] = a0 * (b1 * c2 - b2 * c1) - a1 * (b0 * c2 - b2 * c0) + a2 * (b0 * c1 - b1 * c0);
    }
}

INLINE void NAME(det_of)(const REAL *in, double *found, const Py_ssize_t n, Py_ssize_t count)
{
    VECTOR a[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    VECTOR sign = a[0] * 0 + 1;
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR best;
        const MASK row = NAME(pivots)(a, j, n, n, &best);
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const MASK here = row == (MASK){0} + (WHOLE)i;
            sign = CHOSEN(here, -sign, sign);
            NAME(exchange)(here, a + j * n + j, a + i * n + j, n - j);
        }
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const VECTOR factor = a[i * n + j] / a[j * n + j];
            for (Py_ssize_t c = j + 1; c < n; c++)
                a[i * n + c] -= factor * a[j * n + c];
        }
    }
    for (Py_ssize_t i = 0; i < LANES; i++)
        found[i] = ((const REAL *)&sign)[i];
    for (Py_ssize_t j = 0; j < n; j++)
        for (Py_ssize_t i = 0; i < LANES; i++)
            found[i] *= ((const REAL *)(a + j * n + j))[i];
}

/* Determinants, by elimination as above; NaN for LAPACK to do: of singular matrices, and where the product leaves the range
   of float64 on the way. */
TARGET
static int NAME(det)(const REAL *in, REAL *out, Py_ssize_t n, Py_ssize_t count)
{
    double product[LANES];
    REAL found[LANES];
    int64_t bits[LANES], outside = 0;
    const int narrow = n <= 3 && sizeof(REAL) < sizeof(double); /* products stay in the range of float64 */
    switch (n) {
    case 2: NAME(det_of_2)(in, product, count); break;
    case 3: narrow ? NAME(det_of_3)(in, product, count) : NAME(det_of)(in, product, 3, count); break;
    case 4: NAME(det_of)(in, product, 4, count); break;
    default: NAME(det_of)(in, product, n, count);
    }
    memcpy(bits, product, sizeof bits);
    for (Py_ssize_t i = 0; i < LANES; i++) { /* negative where an exponent is the least or the largest: no branches */
        outside |= ((((bits[i] >> 52) & 0x7ff) + 1) & 0x7fe) - 1;
        found[i] = (REAL)product[i];
    }
    if (outside < 0 && !narrow)
        for (Py_ssize_t i = 0; i < LANES; i++)
            if (!(fabs(product[i]) >= DBL_MIN && fabs(product[i]) <= DBL_MAX))
                found[i] = (REAL)NAN;
    memcpy(out, found, count * sizeof(REAL));
    return 1;
}

/* The sum of squares; or 0 where LAPACK is to scale numbers that are too large, too small or not finite. */
INLINE int NAME(squares)(const VECTOR *a, Py_ssize_t size, VECTOR *whole)
{
    VECTOR sizes = a[0] * 0;
    *whole = sizes;
    for (Py_ssize_t i = 0; i < size; i++)
        *whole += a[i] * a[i], sizes += SIZE(a[i]);
    return NAME(usual)(*whole, sizes);
}

/* Q (m × k) and R (k × n) with k = min(m, n), by Householder's reflections, with LAPACK's signs. */
TARGET
static int NAME(qr)(const REAL *in, REAL *left, REAL *right, Py_ssize_t m, Py_ssize_t n, Py_ssize_t count)
{
    VECTOR a[MOST * MOST], q[MOST * MOST], tau[MOST], whole;
    const Py_ssize_t k = m < n ? m : n;
    NAME(load)(a, in, m * n, count);
    if (!NAME(squares)(a, m * n, &whole))
        return 0;
    const VECTOR zero = whole * 0, one = zero + 1;
    for (Py_ssize_t j = 0; j < k; j++) {
        VECTOR below = zero, sizes = zero, unit = one;
        for (Py_ssize_t i = j + 1; i < m; i++)
            below += a[i * n + j] * a[i * n + j], sizes += SIZE(a[i * n + j]);
        const MASK small = (sizes > 0) & (a[j * n + j] * a[j * n + j] + below <= SMALLEST);
        int some = 0;
        for (Py_ssize_t lane = 0; lane < LANES; lane++)
            some |= small[lane] != 0;
        if (some) { /* far smaller than other columns: squares would be zero */
            unit = CHOSEN(small, sizes + SIZE(a[j * n + j]), one), below = zero;
            for (Py_ssize_t i = j; i < m; i++)
                a[i * n + j] /= unit;
            for (Py_ssize_t i = j + 1; i < m; i++)
                below += a[i * n + j] * a[i * n + j];
        }
        const MASK none = below == 0;
        const VECTOR alpha = a[j * n + j], norm = NAME(roots)(alpha * alpha + below);
        const VECTOR beta = CHOSEN(none, alpha, CHOSEN(alpha < 0, norm, -norm));
        tau[j] = CHOSEN(none, zero, (beta - alpha) / CHOSEN(none, one, beta));
        const VECTOR scale = CHOSEN(none, zero, 1 / CHOSEN(none, one, alpha - beta));
        a[j * n + j] = beta * unit;
        for (Py_ssize_t i = j + 1; i < m; i++)
            a[i * n + j] *= scale;
        for (Py_ssize_t c = j + 1; c < n; c++) {
            VECTOR w = a[j * n + c];
            for (Py_ssize_t i = j + 1; i < m; i++)
                w += a[i * n + j] * a[i * n + c];
            w *= tau[j];
            a[j * n + c] -= w;
            for (Py_ssize_t i = j + 1; i < m; i++)
                a[i * n + c] -= w * a[i * n + j];
        }
    }
    for (Py_ssize_t i = 0; i < m; i++)
        for (Py_ssize_t c = 0; c < k; c++)
            q[i * k + c] = i == c ? one : zero;
    for (Py_ssize_t j = k; j-- > 0;)
        for (Py_ssize_t c = j; c < k; c++) {
            VECTOR w = q[j * k + c];
            for (Py_ssize_t i = j + 1; i < m; i++)
                w += a[i * n + j] * q[i * k + c];
            w *= tau[j];
            q[j * k + c] -= w;
            for (Py_ssize_t i = j + 1; i < m; i++)
                q[i * k + c] -= w * a[i * n + j];
        }
    for (Py_ssize_t i = 0; i < k; i++)
        for (Py_ssize_t j = 0; j < i; j++)
            a[i * n + j] = zero;
    NAME(store)(q, left, m * k, count);
    NAME(store)(a, right, k * n, count);
    return 1;
}

/* U (m × n), singular values and Vᵀ (n × n) of matrices of m rows and not more columns: columns are turned, two at a time,
   until they are orthogonal (Hestenes). A first value of NaN leaves a matrix to LAPACK: one that is not of full rank, or
   whose numbers are not finite, too large or too small. */
TARGET
static int NAME(svd)(const REAL *in, REAL *values, REAL *left, REAL *right, Py_ssize_t m, Py_ssize_t n,
                     Py_ssize_t count)
{
    VECTOR u[MOST * MOST], v[MOST * MOST], s[MOST], whole; /* columns of u and v stand in rows here */
    NAME(load)(v, in, m * n, count);
    NAME(squares)(v, m * n, &whole);
    const VECTOR zero = {0};
    const MASK fits = (whole > SMALLEST) & (whole <= LARGEST);
    const VECTOR norm = NAME(roots)(CHOSEN(fits, whole, zero + 1)), scale = 1 / norm;
    for (Py_ssize_t i = 0; i < m; i++)
        for (Py_ssize_t j = 0; j < n; j++)
            u[j * m + i] = CHOSEN(fits, v[i * n + j] * scale, zero);
    for (Py_ssize_t i = 0; i < n * n; i++)
        v[i] = zero + (REAL)(i % (n + 1) == 0);
    int left_over = 1;
    for (int sweep = 0; left_over; sweep++) {
        if (sweep == SWEEPS)
            return 0;
        left_over = 0;
        for (Py_ssize_t p = 0; p < n; p++)
            for (Py_ssize_t q = p + 1; q < n; q++) {
                VECTOR *one = u + p * m, *other = u + q * m, pp = zero, qq = zero, off = zero;
                for (Py_ssize_t i = 0; i < m; i++)
                    pp += one[i] * one[i], qq += other[i] * other[i], off += one[i] * other[i];
                const VECTOR lost = zero + EPSILON * EPSILON * (REAL)(m * m); /* rounding alone is left of a column */
                const MASK turns = (off * off > pp * qq * (4 * EPSILON * EPSILON * (REAL)m)) & (pp > lost) & (qq > lost);
                int some = 0;
                for (Py_ssize_t i = 0; i < LANES; i++)
                    some |= turns[i] != 0;
                if (!some)
                    continue;
                left_over = 1;
                const VECTOR theta = (qq - pp) / (2 * CHOSEN(turns, off, zero + 1));
                const VECTOR t0 = 1 / (SIZE(theta) + NAME(roots)(theta * theta + 1));
                const VECTOR t = CHOSEN(turns, CHOSEN(theta < 0, -t0, t0), zero);
                const VECTOR c = 1 / NAME(roots)(t * t + 1), d = t * c;
                for (Py_ssize_t i = 0; i < m; i++) {
                    const VECTOR x = one[i], y = other[i];
                    one[i] = c * x - d * y, other[i] = d * x + c * y;
                }
                for (Py_ssize_t i = 0; i < n; i++) {
                    const VECTOR x = v[p * n + i], y = v[q * n + i];
                    v[p * n + i] = c * x - d * y, v[q * n + i] = d * x + c * y;
                }
            }
    }
    VECTOR least = zero + 1;
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR sum = zero;
        for (Py_ssize_t i = 0; i < m; i++)
            sum += u[j * m + i] * u[j * m + i];
        s[j] = NAME(roots)(sum);
        least = CHOSEN(s[j] < least, s[j], least);
    }
    for (Py_ssize_t last = n - 1; last > 0; last--)
        for (Py_ssize_t j = 0; j < last; j++) {
            const VECTOR x = s[j], y = s[j + 1];
            const MASK more = x < y;
            s[j] = CHOSEN(more, y, x), s[j + 1] = CHOSEN(more, x, y);
            for (Py_ssize_t i = 0; i < m; i++) {
                const VECTOR one = u[j * m + i], other = u[(j + 1) * m + i];
                u[j * m + i] = CHOSEN(more, other, one), u[(j + 1) * m + i] = CHOSEN(more, one, other);
            }
            for (Py_ssize_t i = 0; i < n; i++) {
                const VECTOR one = v[j * n + i], other = v[(j + 1) * n + i];
                v[j * n + i] = CHOSEN(more, other, one), v[(j + 1) * n + i] = CHOSEN(more, one, other);
            }
        }
    NAME(store)(v, right, n * n, count);
    for (Py_ssize_t j = 0; j < n; j++) {
        for (Py_ssize_t i = 0; i < m; i++)
            v[i * n + j] = u[j * m + i] / s[j];
        s[j] *= norm;
    }
    s[0] = CHOSEN(least > 4 * (REAL)m * EPSILON, s[0], zero + (REAL)NAN); /* what is lost in rounding has no direction */
    NAME(store)(v, left, m * n, count);
    NAME(store)(s, values, n, count);
    return 1;
}

#include "small_exponentials.h"

/* What `small_matrices` was asked for; 0 where LAPACK is to do it. */
TARGET
static int NAME(small)(const Work *by)
{
    const Py_ssize_t n = by->n, k = by->k, size = n * (by->what >= QR ? k : n), least = n < k ? n : k;
    const REAL *in = by->in, *right = by->right;
    REAL *out = by->out, *more = by->more;
    for (Py_ssize_t row = 0; row < by->rows; row += LANES) {
        const Py_ssize_t count = by->rows - row < LANES ? by->rows - row : LANES;
        const REAL *a = in + row * size, *b = right == NULL ? NULL : right + row * n * k;
        REAL *third = more + by->rows * size + row * k * k, *order = more + by->rows * least + row * n;
        int found = 0;
        switch (by->what) {
        case CHOLESKY: found = NAME(cholesky)(a, out + row * size, n, count); break;
        case SOLVE: found = NAME(solve)(a, b, out + row * n * k, n, k, count); break;
        case LOWER:
        case UPPER: found = NAME(substitute)(a, b, out + row * n * k, by->what == UPPER, n, k, count); break;
        case EIGH: found = NAME(eigh)(a, out + row * n, more + row * size, n, count); break;
        case EXPM: found = NAME(exponential)(a, out + row * size, n, k, count); break;
        case DET: found = NAME(det)(a, out + row, n, count); break;
        case QR: found = NAME(qr)(a, out + row * n * least, more + row * least * k, n, k, count); break;
        case SVD: found = NAME(svd)(a, out + row * k, more + row * size, third, n, k, count); break;
        case LU: found = NAME(lu)(a, out + row * size, more + row * least, order, n, k, count);
        }
        if (!found)
            return 0;
    }
    return 1;
}
