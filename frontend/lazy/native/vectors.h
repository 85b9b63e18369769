/* Loops in vectors: functions that are inlined into them, and loops in a version for each kind of processor.

   A file that is written for vectors of LANES numbers of the type REAL is included once for each pair of these; what it
   calls f is NAME(f), f_float_16 say. Compilers take vectors that are wider than the processor's apart badly, so that
   there is a version for 16, 32 and 64 bytes (`every_vector.h`). */

#ifndef SMELT_VECTORS_H
#define SMELT_VECTORS_H

#define INLINE static inline __attribute__((always_inline))

/* What the processor has is found out when the module is loaded, where the system's linker can do that. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#define JOINED(name, real, lanes) name##_##real##_##lanes
#define JOIN(name, real, lanes) JOINED(name, real, lanes)
#define NAME(name) JOIN(name, REAL, LANES)
#define PASTED(name, end) name##_##end
#define PASTE(name, end) PASTED(name, end)

typedef int whole_float;
typedef long long whole_double;
#define WHOLE PASTE(whole, REAL)
#define BYTES (LANES * sizeof(REAL))
#define VECTOR NAME(vector)
#define MASK NAME(whole)

/* F(i) for each lane. */
#define EACH_2(F) F(0), F(1)
#define EACH_4(F) EACH_2(F), F(2), F(3)
#define EACH_8(F) EACH_4(F), F(4), F(5), F(6), F(7)
#define EACH_16(F) EACH_8(F), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15)
#define EACH(F) PASTE(EACH, LANES)(F)

#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE_VECTORS
#define TARGET_32 __attribute__((target("avx2")))
#define TARGET_64 __attribute__((target("avx512f")))
#endif
#define TARGET_16

/* The versions of a function f for vectors of each size, of float and of double. */
#ifdef WIDE_VECTORS
#define VERSIONS(f) {{f##_float_4, f##_double_2}, {f##_float_8, f##_double_4}, {f##_float_16, f##_double_8}}
#else
#define VERSIONS(f) {{f##_float_4, f##_double_2}}
#endif

/* Bytes of the processor's vectors: of those that there are versions for. */
INLINE int most_vector_bytes(void)
{
#ifdef WIDE_VECTORS
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
#else
    return 16;
#endif
}

/* Which of the versions is that of so many bytes; -1 and an error where there is none that the processor can run. */
INLINE int version_of(int bytes)
{
    if ((bytes == 16 || bytes == 32 || bytes == 64) && bytes <= most_vector_bytes())
        return bytes / 32;
    PyErr_SetString(PyExc_ValueError, "the processor has vectors of other sizes");
    return -1;
}

#endif
