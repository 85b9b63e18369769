/* Exponentials of small square matrices, by Padé's approximant of degree 13 and squaring, as in
   `ir/ops/matrix_functions.py`; included by `small_rows.h`. */

/* The product of two matrices. */
INLINE void NAME(product)(const VECTOR *x, const VECTOR *y, VECTOR *out, const Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t j = 0;
        for (; j + 4 <= n; j += 4) {
            VECTOR sum0 = x[i * n] * y[j], sum1 = x[i * n] * y[j + 1];
            VECTOR sum2 = x[i * n] * y[j + 2], sum3 = x[i * n] * y[j + 3];
            for (Py_ssize_t k = 1; k < n; k++) {
                const VECTOR factor = x[i * n + k], *row = y + k * n + j;
                sum0 += factor * row[0], sum1 += factor * row[1], sum2 += factor * row[2], sum3 += factor * row[3];
            }
            out[i * n + j] = sum0, out[i * n + j + 1] = sum1, out[i * n + j + 2] = sum2, out[i * n + j + 3] = sum3;
        }
        for (; j < n; j++) {
            VECTOR sum = x[i * n] * y[j];
            for (Py_ssize_t k = 1; k < n; k++)
                sum += x[i * n + k] * y[k * n + j];
            out[i * n + j] = sum;
        }
    }
}

/* The largest sum of sizes of a column; NaN where there is one. */
INLINE VECTOR NAME(norm)(const VECTOR *a, const Py_ssize_t n)
{
    VECTOR norm = a[0] * 0;
    for (Py_ssize_t j = 0; j < n; j++) {
        VECTOR sum = SIZE(a[j]);
        for (Py_ssize_t i = 1; i < n; i++)
            sum += SIZE(a[i * n + j]);
        norm = CHOSEN(norm >= sum, norm, sum) + sum * 0;
    }
    return norm;
}

/* By how much each matrix is to be multiplied so that its norm is at most that of the approximant, and the largest number
   of halvings that are; -1 where there are more than MOST_HALVINGS, or numbers that are not finite. */
INLINE int NAME(halvings)(const VECTOR *a, const Py_ssize_t n, VECTOR *scale, VECTOR *times)
{
    const VECTOR norm = NAME(norm)(a, n);
    int most = 0;
    for (Py_ssize_t lane = 0; lane < LANES; lane++) {
        REAL size = norm[lane], factor = 1;
        int count = 0;
        for (; !(size <= (REAL)PADE_NORM); count++, size /= 2, factor /= 2)
            if (count == MOST_HALVINGS)
                return -1;
        ((REAL *)scale)[lane] = factor, ((REAL *)times)[lane] = (REAL)count;
        most = count > most ? count : most;
    }
    return most;
}

/* Whether fewer halvings might do, for powers of a matrix are smaller than those of its norm; see `_fewer`. */
INLINE int NAME(overscaled)(const VECTOR *a4, const VECTOR *a6, const Py_ssize_t n, VECTOR times)
{
    const VECTOR norm4 = NAME(norm)(a4, n), norm6 = NAME(norm)(a6, n);
    const double half = PADE_NORM / 2, square = half * half;
    for (Py_ssize_t lane = 0; lane < LANES; lane++)
        if (times[lane] > 0 && !(norm4[lane] > square * square || norm6[lane] > square * square * square))
            return 1;
    return 0;
}

/* Matrices that are left to NumPy: their first number is NaN. */
INLINE int NAME(left)(REAL *out, const Py_ssize_t size, const Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        out[i * size] = (REAL)NAN;
    return 1;
}

/* Where `halves` is 1, only of matrices that need each of their halvings: with each squaring digits are lost. */
TARGET
static int NAME(exponential)(const REAL *in, REAL *out, Py_ssize_t n, Py_ssize_t halves, Py_ssize_t count)
{
    VECTOR a[LARGEST_POWER], a2[LARGEST_POWER], a4[LARGEST_POWER], a6[LARGEST_POWER], odd[LARGEST_POWER];
    VECTOR even[LARGEST_POWER], scale, times;
    const Py_ssize_t size = n * n;
    if (n < 1 || size > LARGEST_POWER)
        return 0;
    NAME(load)(a, in, size, count);
    const int most = NAME(halvings)(a, n, &scale, &times);
    if (most < 0)
        return NAME(left)(out, size, count);
    for (Py_ssize_t i = 0; i < size; i++)
        a[i] *= scale;
    NAME(product)(a, a, a2, n);
    NAME(product)(a2, a2, a4, n);
    NAME(product)(a4, a2, a6, n);
    if (most && halves == 1 && NAME(overscaled)(a4, a6, n, times))
        return NAME(left)(out, size, count);
    const double *c = pade;
    for (Py_ssize_t i = 0; i < size; i++)
        even[i] = a6[i] * (REAL)c[13] + a4[i] * (REAL)c[11] + a2[i] * (REAL)c[9];
    NAME(product)(a6, even, odd, n);
    for (Py_ssize_t i = 0; i < size; i++) {
        odd[i] += a6[i] * (REAL)c[7] + a4[i] * (REAL)c[5] + a2[i] * (REAL)c[3];
        if (i % (n + 1) == 0)
            odd[i] += (REAL)c[1];
    }
    NAME(product)(a, odd, even, n);
    for (Py_ssize_t i = 0; i < size; i++) {
        odd[i] = even[i];
        a[i] = a6[i] * (REAL)c[12] + a4[i] * (REAL)c[10] + a2[i] * (REAL)c[8];
    }
    NAME(product)(a6, a, even, n);
    for (Py_ssize_t i = 0; i < size; i++) {
        VECTOR sum = even[i] + a6[i] * (REAL)c[6] + a4[i] * (REAL)c[4] + a2[i] * (REAL)c[2];
        if (i % (n + 1) == 0)
            sum += (REAL)c[0];
        even[i] = sum - odd[i], odd[i] = sum + odd[i];
    }
    if (!NAME(eliminate)(even, odd, n, n))
        return NAME(left)(out, size, count);
    for (int i = 0; i < most; i++) {
        const MASK more = times > (REAL)i;
        NAME(product)(odd, odd, even, n);
        for (Py_ssize_t k = 0; k < size; k++)
            odd[k] = CHOSEN(more, even[k], odd[k]);
    }
    NAME(store)(odd, out, size, count);
    return 1;
}
