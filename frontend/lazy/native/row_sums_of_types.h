/* Includes `row_sums.h` for each type of number. */

#define REAL float
#include "row_sums.h"
#undef REAL
#define REAL double
#include "row_sums.h"
#undef REAL
/* Integers wrap, which signed ones of C do not. */
#define REAL uint32_t
#include "row_sums.h"
#undef REAL
#define REAL uint64_t
#include "row_sums.h"
#undef REAL
