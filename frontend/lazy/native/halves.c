/* Numbers of half precision to float32 and back, in vectors: NumPy converts one after the other. The bits are those of
   its conversions, and of ml_dtypes' of bfloat16. */

#include "core.h"
#include "vectors.h"
#include <stdint.h>
#include <string.h>

#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
/* Bits of a significand that float16, and bfloat16, have less than float32. */
#define LESS 13
#define LESS_BRAIN 16
/* What exponents of float32 have more than those of float16. */
#define REBIASED ((127u - 15) << 23)
/* 2⁻¹⁴, the least normal number of float16, and 2¹⁶, which it does not have. */
#define LEAST_NORMAL (113u << 23)
#define TOO_LARGE (143u << 23)
/* A number whose last place is that of float16's least numbers. */
#define SUBNORMAL_PLACE (126u << 23)

INLINE float as_float(uint32_t bits)
{
    float found;
    memcpy(&found, &bits, 4);
    return found;
}

INLINE uint32_t bits_of(float x)
{
    uint32_t found;
    memcpy(&found, &x, 4);
    return found;
}

/* One of two without a branch: the compiler would not add where the sum may not be wanted, and would make no vectors. */
INLINE uint32_t chosen(int first, uint32_t x, uint32_t y)
{
    const uint32_t mask = -(uint32_t)first;
    return (x & mask) | (y & ~mask);
}

CLONES static void widen_half(const uint16_t *x, uint32_t *out, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint32_t size = (uint32_t)(x[i] & 0x7fff) << LESS, sign = (uint32_t)(x[i] & 0x8000) << 16;
        const uint32_t normal = size + REBIASED;
        const uint32_t little = bits_of(as_float(size + LEAST_NORMAL) - as_float(LEAST_NORMAL));
        const uint32_t found = size < 1u << 23 ? little : size >= 31u << 23 ? normal + REBIASED : normal;
        out[i] = found | sign;
    }
}

CLONES static void narrow_half(const uint32_t *x, uint16_t *out, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint32_t size = x[i] & ~SIGN, sign = x[i] >> 16 & 0x8000;
        const uint32_t normal = (size - REBIASED + (1u << (LESS - 1)) - 1 + (size >> LESS & 1)) >> LESS;
        const uint32_t little = bits_of(as_float(size) + as_float(SUBNORMAL_PLACE)) - SUBNORMAL_PLACE;
        const uint32_t payload = 0x7c00u + ((size & 0x7fffff) >> LESS);
        const uint32_t nan = payload == 0x7c00u ? payload + 1 : payload;
        uint32_t found = chosen(size < LEAST_NORMAL, little, normal);
        found = chosen(size >= TOO_LARGE, 0x7c00u, found);
        found = chosen(size > INFINITE, nan, found);
        out[i] = (uint16_t)(found | sign);
    }
}

CLONES static void widen_brain(const uint16_t *x, uint32_t *out, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        out[i] = (uint32_t)x[i] << LESS_BRAIN;
}

CLONES static void narrow_brain(const uint32_t *x, uint16_t *out, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint32_t nearest = (x[i] + 0x7fff + (x[i] >> LESS_BRAIN & 1)) >> LESS_BRAIN;
        const uint32_t nan = (x[i] >> 16 & 0x8000) | 0x7fc0;
        out[i] = (uint16_t)((x[i] & ~SIGN) > INFINITE ? nan : nearest);
    }
}

/* convert_halves(x, out, is_brain): numbers of two bytes to float32, or float32 to numbers of two bytes. */
PyObject *convert_halves(PyObject *module, PyObject *args)
{
    Py_buffer x, out;
    int is_brain;
    if (!PyArg_ParseTuple(args, "y*w*p:convert_halves", &x, &out, &is_brain))
        return NULL;
    const Py_ssize_t wide = x.itemsize == 2 ? out.len : x.len, narrow = x.itemsize == 2 ? x.len : out.len;
    const int fits = x.itemsize + out.itemsize == 6 && (x.itemsize == 2 || x.itemsize == 4) && wide == 2 * narrow;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        if (x.itemsize == 2)
            (is_brain ? widen_brain : widen_half)(x.buf, out.buf, narrow / 2);
        else
            (is_brain ? narrow_brain : narrow_half)(x.buf, out.buf, narrow / 2);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "convert_halves takes as many numbers of two bytes as of four");
        return NULL;
    }
    Py_RETURN_NONE;
}
