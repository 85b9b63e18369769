/* Factors of small square matrices of one type of number, REAL; `small_matrices.c` includes this once for each.

   A vector holds the same element of LANES matrices, so that nothing depends on how large they are. What is not finite
   or has no factor is left to LAPACK, which says what is wrong: functions return 0 then. */

typedef REAL NAME(vector) __attribute__((vector_size(64)));
typedef WHOLE NAME(whole) __attribute__((vector_size(64)));
#define VECTOR NAME(vector)
#define MASK NAME(whole)
#define LANES ((Py_ssize_t)(64 / sizeof(REAL)))
#define CHOSEN(mask, x, y) ((VECTOR)(((MASK)(x) & (mask)) | ((MASK)(y) & ~(mask))))
#define SIZE(x) CHOSEN((x) < 0, -(x), (x))

/* Matrices of `size` numbers to lanes, the last one again where there are fewer; and back. */
INLINE void NAME(load)(VECTOR *x, const REAL *in, Py_ssize_t size, Py_ssize_t count)
{
    REAL *to = (REAL *)x;
    for (Py_ssize_t i = 0; i < LANES; i++) {
        const REAL *from = in + (i < count ? i : count - 1) * size;
        for (Py_ssize_t k = 0; k < size; k++)
            to[k * LANES + i] = from[k];
    }
}

INLINE void NAME(store)(const VECTOR *x, REAL *out, Py_ssize_t size, Py_ssize_t count)
{
    const REAL *from = (const REAL *)x;
    for (Py_ssize_t i = 0; i < count; i++)
        for (Py_ssize_t k = 0; k < size; k++)
            out[i * size + k] = from[k * LANES + i];
}

/* Whether all are larger than 0, and finite. */
INLINE int NAME(positive)(VECTOR x)
{
    int found = 1;
    for (Py_ssize_t i = 0; i < LANES; i++)
        found &= x[i] > 0 && x[i] <= LARGEST;
    return found;
}

INLINE VECTOR NAME(roots)(VECTOR x)
{
    for (Py_ssize_t i = 0; i < LANES; i++)
        x[i] = SQRT(x[i]);
    return x;
}

CLONES static int NAME(cholesky)(const REAL *in, REAL *out, Py_ssize_t n, Py_ssize_t count)
{
    VECTOR a[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR pivot = a[j * n + j];
        for (Py_ssize_t k = 0; k < j; k++)
            pivot -= a[j * n + k] * a[j * n + k];
        if (!NAME(positive)(pivot))
            return 0;
        const VECTOR root = NAME(roots)(pivot);
        a[j * n + j] = root;
        for (Py_ssize_t i = j + 1; i < n; i++) {
            VECTOR rest = a[i * n + j];
            for (Py_ssize_t k = 0; k < j; k++)
                rest -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = rest / root;
            a[j * n + i] = root * 0;
        }
    }
    NAME(store)(a, out, n * n, count);
    return 1;
}

/* X with A·X = B, of k columns; without B, the inverse. Rows are exchanged in each matrix for the largest pivot. */
CLONES static int NAME(solve)(const REAL *in, const REAL *right, REAL *out, Py_ssize_t n, Py_ssize_t k, Py_ssize_t count)
{
    VECTOR a[MOST * MOST], b[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    if (right != NULL)
        NAME(load)(b, right, n * k, count);
    else
        for (Py_ssize_t i = 0; i < n * n; i++)
            b[i] = a[0] * 0 + (REAL)(i % (n + 1) == 0);
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR best = SIZE(a[j * n + j]);
        MASK row = (MASK){0} + (WHOLE)j;
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const VECTOR size = SIZE(a[i * n + j]);
            const MASK more = size > best;
            best = CHOSEN(more, size, best);
            row = (more & ((MASK){0} + (WHOLE)i)) | (~more & row);
        }
        if (!NAME(positive)(best))
            return 0;
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const MASK here = row == (MASK){0} + (WHOLE)i;
            for (Py_ssize_t c = j; c < n; c++) {
                const VECTOR x = a[j * n + c], y = a[i * n + c];
                a[j * n + c] = CHOSEN(here, y, x), a[i * n + c] = CHOSEN(here, x, y);
            }
            for (Py_ssize_t c = 0; c < k; c++) {
                const VECTOR x = b[j * k + c], y = b[i * k + c];
                b[j * k + c] = CHOSEN(here, y, x), b[i * k + c] = CHOSEN(here, x, y);
            }
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
    NAME(store)(b, out, n * k, count);
    return 1;
}

/* Eigenvalues, ascending, and eigenvectors of what the lower triangles say, by Jacobi's rotations. */
CLONES static int NAME(eigh)(const REAL *in, REAL *values, REAL *vectors, Py_ssize_t n, Py_ssize_t count)
{
    VECTOR a[MOST * MOST], v[MOST * MOST];
    NAME(load)(a, in, n * n, count);
    VECTOR whole = a[0] * 0;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j <= i; j++) {
            a[j * n + i] = a[i * n + j];
            v[i * n + j] = v[j * n + i] = whole * 0 + (REAL)(i == j);
            whole += a[i * n + j] * a[i * n + j] * (REAL)(i == j ? 1 : 2);
        }
    for (Py_ssize_t i = 0; i < LANES; i++) /* squares that are too large or too small are LAPACK's, which scales */
        if (whole[i] != 0 && !(whole[i] < LARGEST && whole[i] > SMALLEST))
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

static int NAME(small)(int what, const REAL *in, const REAL *right, REAL *out, REAL *more, Py_ssize_t n, Py_ssize_t k,
                       Py_ssize_t rows)
{
    for (Py_ssize_t row = 0; row < rows; row += LANES) {
        const Py_ssize_t count = rows - row < LANES ? rows - row : LANES;
        const REAL *a = in + row * n * n;
        if (!(what == CHOLESKY ? NAME(cholesky)(a, out + row * n * n, n, count)
              : what == EIGH   ? NAME(eigh)(a, out + row * n, more + row * n * n, n, count)
                               : NAME(solve)(a, right == NULL ? NULL : right + row * n * k, out + row * n * k, n, k, count)))
            return 0;
    }
    return 1;
}
