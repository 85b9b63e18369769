/* Random words; see ir/ops/random.py: Threefry-2x32 with 20 rounds. The bits are the same. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>

#define BLOCK 256
#define PARITY 0x1BD11BDAu

/* What becomes of the two words of a counter. */
enum { FIRST = 0, WIDE = 1, BOTH = 2 };

INLINE void rounds(uint32_t *x0, uint32_t *x1, int a, int b, int c, int d)
{
    const int by[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        *x0 += *x1;
        *x1 = (*x1 << by[i] | *x1 >> (32 - by[i])) ^ *x0;
    }
}

/* The blocks of counters (high, low), (high, low + 1), ... */
CLONES static void encrypt(uint32_t k0, uint32_t k1, uint32_t high, uint32_t low, uint32_t *restrict first,
                           uint32_t *restrict second)
{
    uint32_t k2 = k0 ^ k1 ^ PARITY;
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint32_t x0 = high + k0, x1 = low + i + k1;
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
        first[i] = x0;
        second[i] = x1;
    }
}

/* random_words(key, first, form, out): fill `out`, for each of the keys (two words each) with the words of the counters
   first, first + 1, ...: the first of each, both as a number of 64 bits with the first one above, or both one after the
   other. Key and out are contiguous. */
PyObject *random_words(PyObject *module, PyObject *args)
{
    Py_buffer keys, out;
    unsigned long long start;
    int form;
    if (!PyArg_ParseTuple(args, "y*Kiw*:random_words", &keys, &start, &form, &out))
        return NULL;
    Py_ssize_t count = keys.len / 8, each = form == FIRST ? 4 : 8, n = count ? out.len / (count * each) : 0;
    int fits = n * count * each == out.len && form >= FIRST && form <= BOTH;
    if (fits) {
        const uint32_t *key = keys.buf;
        char *to = out.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < count; k++, key += 2)
            for (Py_ssize_t i = 0; i < n; i += BLOCK) {
                uint64_t counter = start + (uint64_t)i, left = BLOCK;
                if ((counter & 0xFFFFFFFFu) + BLOCK > 0x100000000u) /* the first word of the counter changes */
                    left = 0x100000000u - (counter & 0xFFFFFFFFu);
                if (left > (uint64_t)(n - i))
                    left = (uint64_t)(n - i);
                uint32_t first[BLOCK], second[BLOCK];
                encrypt(key[0], key[1], (uint32_t)(counter >> 32), (uint32_t)counter, first, second);
                if (form == FIRST)
                    memcpy(to, first, left * 4);
                for (uint64_t j = 0; form == WIDE && j < left; j++)
                    ((uint64_t *)to)[j] = (uint64_t)first[j] << 32 | second[j];
                for (uint64_t j = 0; form == BOTH && j < left; j++) {
                    ((uint32_t *)to)[2 * j] = first[j];
                    ((uint32_t *)to)[2 * j + 1] = second[j];
                }
                to += left * (uint64_t)each;
                i -= BLOCK - (Py_ssize_t)left;
            }
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
