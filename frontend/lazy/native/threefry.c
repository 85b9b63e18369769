/* Random words; see ir/ops/random.py: Threefry-2x32 with 20 rounds. The bits are the same. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>

#define BLOCK 256
#define PARITY 0x1BD11BDAu

INLINE void rounds(uint32_t *x0, uint32_t *x1, int a, int b, int c, int d)
{
    const int by[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        *x0 += *x1;
        *x1 = (*x1 << by[i] | *x1 >> (32 - by[i])) ^ *x0;
    }
}

/* The blocks of counters (i, j), (i + 1, j + 1), ... */
CLONES static void encrypt(uint32_t k0, uint32_t k1, uint32_t i, uint32_t j, uint32_t *restrict first,
                           uint32_t *restrict second)
{
    uint32_t k2 = k0 ^ k1 ^ PARITY;
    for (uint32_t n = 0; n < BLOCK; n++) {
        uint32_t x0 = i + n + k0, x1 = j + n + k1;
        rounds(&x0, &x1, 13, 15, 26, 6);
        x0 += k1, x1 += k2 + 1;
        rounds(&x0, &x1, 17, 29, 16, 24);
        x0 += k2, x1 += k0 + 2;
        rounds(&x0, &x1, 13, 15, 26, 6);
        x0 += k0, x1 += k1 + 3;
        rounds(&x0, &x1, 17, 29, 16, 24);
        x0 += k1, x1 += k2 + 4;
        rounds(&x0, &x1, 13, 15, 26, 6);
        x0 += k2, x1 += k0 + 5;
        first[n] = x0;
        second[n] = x1;
    }
}

static void fill_words(const uint32_t *key, uint32_t *to, uint64_t n)
{
    uint32_t first[BLOCK], second[BLOCK];
    uint64_t half = n / 2, middle = n - half;
    for (uint64_t i = 0; i < half; i += BLOCK) {
        uint64_t count = half - i < BLOCK ? half - i : BLOCK;
        encrypt(key[0], key[1], (uint32_t)i, (uint32_t)(i + middle), first, second);
        memcpy(to + i, first, count * 4);
        memcpy(to + middle + i, second, count * 4);
    }
    if (n % 2) {
        encrypt(key[0], key[1], (uint32_t)half, 0, first, second);
        to[half] = first[0];
    }
}

static void fill_wide(const uint32_t *key, uint64_t *to, uint64_t n)
{
    uint32_t first[BLOCK], second[BLOCK];
    for (uint64_t i = 0; i < n; i += BLOCK) {
        uint64_t count = n - i < BLOCK ? n - i : BLOCK;
        encrypt(key[0], key[1], (uint32_t)i, (uint32_t)(i + n), first, second);
        for (uint64_t j = 0; j < count; j++)
            to[i + j] = (uint64_t)second[j] << 32 | first[j];
    }
}

/* random_words(key, wide, out): fill `out`, for each of the keys (two words each), with the words of the key, or with
   numbers of 64 bits. Key and out are contiguous. */
PyObject *random_words(PyObject *module, PyObject *args)
{
    Py_buffer keys, out;
    int wide;
    if (!PyArg_ParseTuple(args, "y*pw*:random_words", &keys, &wide, &out))
        return NULL;
    Py_ssize_t count = keys.len / 8, each = wide ? 8 : 4, n = count ? out.len / (count * each) : 0;
    int fits = n * count * each == out.len;
    if (fits) {
        const uint32_t *key = keys.buf;
        char *to = out.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < count; k++, key += 2, to += n * each)
            if (wide)
                fill_wide(key, (uint64_t *)to, (uint64_t)n);
            else
                fill_words(key, (uint32_t *)to, (uint64_t)n);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&keys);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "random_words fills an array of as many words for each key");
        return NULL;
    }
    Py_RETURN_NONE;
}
