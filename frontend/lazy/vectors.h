/* Loops in vectors: functions that are inlined into them, and loops in a version for each kind of processor. */

#ifndef SMELT_VECTORS_H
#define SMELT_VECTORS_H

#define INLINE static inline __attribute__((always_inline))

/* What the processor has is found out when the module is loaded, where the system's linker can do that. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

#endif
