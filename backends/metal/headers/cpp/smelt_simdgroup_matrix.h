// 8 x 8 matrices whose elements the 32 lanes of a simdgroup share, two each.
#pragma once

namespace metal {

template <class T, int Columns = 8, int Rows = 8> struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "simdgroup matrices are 8 x 8");
  T own[2];  // of row lane / 4, columns 2 * (lane % 4) and the next
  simdgroup_matrix() = default;
  SMELT_FUNCTION explicit simdgroup_matrix(T diagonal) {
    for (uint i = 0; i < 2u; i++) own[i] = row() == column() + i ? diagonal : T(0);
  }
  SMELT_FUNCTION static uint row() { return smelt::lane() / 4u; }
  SMELT_FUNCTION static uint column() { return smelt::lane() % 4u * 2u; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int Columns, int Rows> SMELT_FUNCTION simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Columns, Rows> m;
  m.own[0] = m.own[1] = value;
  return m;
}
template <class T, int Columns, int Rows> SMELT_FUNCTION simdgroup_matrix<T, Columns, Rows> make_diagonal_simdgroup_matrix(T value) {
  return simdgroup_matrix<T, Columns, Rows>(value);
}
// As on the GPU, barriers order loads and stores of different lanes.
template <class T> SMELT_FUNCTION void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* p, ulong stride = 8, ulong2 origin = ulong2(0, 0), bool transpose = false) {
  p += origin.y * stride + origin.x;
  ulong row = m.row(), column = m.column();
  for (uint i = 0; i < 2u; i++) m.own[i] = transpose ? p[(column + i) * stride + row] : p[row * stride + column + i];
}
template <class T> SMELT_FUNCTION void simdgroup_store(simdgroup_matrix<T, 8, 8> m, T* p, ulong stride = 8, ulong2 origin = ulong2(0, 0), bool transpose = false SMELT_SITE_AFTER) {
  (void)smelt::exchange_whole(uint(0) SMELT_PASS);  // all lanes must come
  p += origin.y * stride + origin.x;
  ulong row = m.row(), column = m.column();
  for (uint i = 0; i < 2u; i++) (transpose ? p[(column + i) * stride + row] : p[row * stride + column + i]) = m.own[i];
}
}  // namespace metal

#if defined(SMELT_CUDA) && __CUDA_ARCH__ >= 800
#define SMELT_TENSOR_CORES
namespace smelt {
template <class T> constexpr bool is_half = false;
template <> constexpr bool is_half<metal::half> = true;
/// Two neighbours as one register. A lane's elements are those of the left fragment and of the sums of
/// mma.m16n8k8 (PTX ISA, "Matrix Fragments for mma.m16n8k8"); the right fragment is the matrix transposed.
SMELT_FUNCTION uint packed(const metal::half* own) { return copied_bits<ushort>(own[0]) | uint(copied_bits<ushort>(own[1])) << 16; }
SMELT_FUNCTION uint transposed(uint rows) {
  uint columns;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows));
  return columns;
}
/// Adds the product of two 8 x 8 matrices on a tensor core, whose lower 8 rows are zeros.
SMELT_FUNCTION void multiply_accumulate(float& r0, float& r1, uint left, uint right) {
  float rest0, rest1;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=f"(r0), "=f"(r1), "=f"(rest0), "=f"(rest1)
      : "r"(left), "r"(0u), "r"(right), "f"(r0), "f"(r1), "f"(0.0f), "f"(0.0f));
}
}  // namespace smelt
#endif

namespace metal {

template <class D, class A, class B, class C>
SMELT_FUNCTION void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c SMELT_SITE_AFTER) {
#ifdef SMELT_TENSOR_CORES
  if constexpr (smelt::is_half<A> && smelt::is_half<B>) {
    float r0 = float(c.own[0]), r1 = float(c.own[1]);
    smelt::multiply_accumulate(r0, r1, smelt::packed(a.own), smelt::transposed(smelt::packed(b.own)));
    d.own[0] = D(r0);
    d.own[1] = D(r1);
    return;
  }
#endif
  struct Both { A a[2]; B b[2]; } mine;
  for (uint i = 0; i < 2u; i++) { mine.a[i] = a.own[i]; mine.b[i] = b.own[i]; }
  auto all = smelt::exchange_whole(mine SMELT_PASS);
  uint lane = smelt::lane(), row = lane & ~3u, column = lane & 3u;
  float r0 = float(c.own[0]), r1 = float(c.own[1]);
#ifdef SMELT_CUDA
#pragma unroll
#endif
  for (uint k = 0; k < 8u; k++) {
#ifdef SMELT_CUDA
    struct Row { A a[2]; } x = smelt::from_lane(smelt::copied_bits<Row>(mine.a), row + k / 2u, 0xffffffffu);
    struct Column { B b[2]; } y = smelt::from_lane(smelt::copied_bits<Column>(mine.b), k * 4u + column, 0xffffffffu);
    float left = float(x.a[k & 1u]), right0 = float(y.b[0]), right1 = float(y.b[1]);
#else
    float left = float(all[row + k / 2u].a[k & 1u]);
    const Both& y = all[k * 4u + column];
    float right0 = float(y.b[0]), right1 = float(y.b[1]);
#endif
    r0 = r0 + left * right0;
    r1 = r1 + left * right1;
  }
  d.own[0] = D(r0);
  d.own[1] = D(r1);
}
template <class D, class A, class B>
SMELT_FUNCTION void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b SMELT_SITE_AFTER) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<float, 8, 8>(0.0f) SMELT_PASS);
}
template <class T> SMELT_FUNCTION simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

}  // namespace metal
