/* Rows of numbers of 16, 32 and 64 bits sorted by their digits of eight bits, the last one first: comparisons take
   several times as long for rows of some hundred elements. Positions in shorter ones are how many elements are less. See
   `ir/sorting.py`. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UNSIGNED, SIGNED, FLOATING };

/* Rows of so many elements at most are ordered by comparing each with all, and bytes of those that are compared with
   one at a time; whole blocks make a row. */
enum { SHORT = 128, BLOCK_BYTES = 256 };

/* From how many there are of each value of a digit to where the first of each goes; 0 where all have the same value. */
static int places(uint32_t count[256], Py_ssize_t n)
{
    uint32_t at = 0;
    for (int value = 0; value < 256; value++) {
        const uint32_t some = count[value];
        if (some == (uint32_t)n)
            return 0;
        count[value] = at;
        at += some;
    }
    return 1;
}

#define WORD uint16_t
#define RADIX(name) name##_16
#include "radix.h"
#define WORD uint32_t
#define RADIX(name) name##_32
#include "radix.h"
#define WORD uint64_t
#define RADIX(name) name##_64
#include "radix.h"

/* radix(kind, size, infinity, n, positions, a, out): rows of n numbers of so many bytes, ascending; or the positions of
   their elements in that order, as uint32, equal ones in their order. `kind` says what they are; of floats `infinity` is
   the bits of that. -0 is just below 0, but equal to it for positions; NaN are the last, and one NaN where they are
   sorted. All arrays are contiguous. */
PyObject *radix(PyObject *module, PyObject *args)
{
    int kind, size, positions, done = 0;
    unsigned long long infinity;
    Py_ssize_t n;
    Py_buffer a, out;
    if (!PyArg_ParseTuple(args, "iiKnpy*w*:radix", &kind, &size, &infinity, &n, &positions, &a, &out))
        return NULL;
    const int known = kind >= UNSIGNED && kind <= FLOATING && (size == 2 || size == 4 || size == 8) && n >= 1;
    const Py_ssize_t rows = known && n <= UINT32_MAX / 2 ? a.len / (size * n) : 0;
    if (!rows || a.len != rows * n * size || out.len != rows * n * (positions ? 4 : size))
        PyErr_SetString(PyExc_ValueError, "radix: arrays do not fit");
    else {
        Py_BEGIN_ALLOW_THREADS
        done = size == 2   ? rows_16(a.buf, out.buf, rows, n, kind, infinity, positions)
               : size == 4 ? rows_32(a.buf, out.buf, rows, n, kind, infinity, positions)
                           : rows_64(a.buf, out.buf, rows, n, kind, infinity, positions);
        Py_END_ALLOW_THREADS
        if (!done)
            PyErr_NoMemory();
    }
    PyBuffer_Release(&a);
    PyBuffer_Release(&out);
    if (!done)
        return NULL;
    Py_RETURN_NONE;
}
