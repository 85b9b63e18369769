/* Includes `row_extrema.h` for each type of number. */

#define BETTER(x, y) BEFORE(x, y)
#define REAL uint8_t
#define WORD int8_t
#include "row_extrema.h"
#undef REAL
#undef WORD
#define REAL int32_t
#define WORD int32_t
#include "row_extrema.h"
#undef REAL
#undef WORD
#define REAL int64_t
#define WORD int64_t
#include "row_extrema.h"
#undef REAL
#undef WORD
#undef BETTER
/* NaN stays beside all numbers. */
#define BETTER(x, y) (BEFORE(x, y) | ((x) != (x)))
#define REAL float
#define WORD int32_t
#include "row_extrema.h"
#undef REAL
#undef WORD
#define REAL double
#define WORD int64_t
#include "row_extrema.h"
#undef REAL
#undef WORD
#undef BETTER
