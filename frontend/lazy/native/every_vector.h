/* Includes the file LOOPS for vectors of each type of number and of each size; see `vectors.h`. */

#define TARGET TARGET_16
#define REAL float
#define LANES 4
#include LOOPS
#undef REAL
#undef LANES
#define REAL double
#define LANES 2
#include LOOPS
#undef REAL
#undef LANES
#undef TARGET
#ifdef WIDE_VECTORS
#define TARGET TARGET_32
#define REAL float
#define LANES 8
#include LOOPS
#undef REAL
#undef LANES
#define REAL double
#define LANES 4
#include LOOPS
#undef REAL
#undef LANES
#undef TARGET
#define TARGET TARGET_64
#define REAL float
#define LANES 16
#include LOOPS
#undef REAL
#undef LANES
#define REAL double
#define LANES 8
#include LOOPS
#undef REAL
#undef LANES
#undef TARGET
#endif
#undef LOOPS
