// What `#include <simd/simd.h>` declares: vectors and matrices by the names that they have on the host, too.
#pragma once

namespace simd = metal;

#define SMELT_VECTOR(T, N) typedef metal::vec<T, N> vector_##T##N, simd_##T##N;
#define SMELT_MATRIX(T, C, R) typedef metal::matrix<T, C, R> matrix_##T##C##x##R, simd_##T##C##x##R;
#define SMELT_WIDTHS(T) SMELT_VECTOR(T, 2) SMELT_VECTOR(T, 3) SMELT_VECTOR(T, 4)
#define SMELT_ROWS(T, C) SMELT_MATRIX(T, C, 2) SMELT_MATRIX(T, C, 3) SMELT_MATRIX(T, C, 4)
#define SMELT_COLUMNS(T) SMELT_ROWS(T, 2) SMELT_ROWS(T, 3) SMELT_ROWS(T, 4)
SMELT_WIDTHS(char) SMELT_WIDTHS(uchar) SMELT_WIDTHS(short) SMELT_WIDTHS(ushort) SMELT_WIDTHS(int) SMELT_WIDTHS(uint)
SMELT_WIDTHS(long) SMELT_WIDTHS(ulong) SMELT_WIDTHS(half) SMELT_WIDTHS(float)
SMELT_COLUMNS(half) SMELT_COLUMNS(float)
#undef SMELT_VECTOR
#undef SMELT_MATRIX
#undef SMELT_WIDTHS
#undef SMELT_ROWS
#undef SMELT_COLUMNS
