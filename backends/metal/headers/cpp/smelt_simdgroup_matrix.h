// 8 x 8 matrices whose elements the 32 lanes of a simdgroup share, two each.
#pragma once

#ifdef SMELT_CUDA
#define SMELT_MATRIX_FUNCTION SMELT_FUNCTION
#else  // a kernel has hundreds of these: the simulator's compiler had better see each body once
#define SMELT_MATRIX_FUNCTION inline __attribute__((noinline))
#endif

#ifdef SMELT_CUDA
namespace smelt {
/// Copies 8 or 16 aligned bytes.
template <int Bytes> SMELT_FUNCTION void copy_whole(void* to, const void* from) {
  if constexpr (Bytes == 16) *(uint4*)to = *(const uint4*)from;
  else if constexpr (Bytes == 8) *(uint2*)to = *(const uint2*)from;
  else memcpy(to, from, Bytes);
}
/// Copies an aligned vector from a buffer to shared memory, where it is once `await_copies` has returned.
template <class T> SMELT_FUNCTION void copy_meanwhile(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(uint(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)) : "memory");
    return;
  }
#endif
  *to = *from;
}
/// Waits in a loop, whose end the compiler does not know: products of matrices stay before it. It takes them for
/// arithmetic on registers, and would wait before it multiplies rather than behind.
SMELT_FUNCTION void await_copies() {
#if __CUDA_ARCH__ >= 800
  uint now;
  do asm volatile("cp.async.wait_all;\n mov.u32 %0, %%clock;" : "=r"(now) :: "memory"); while (now == 0u);
#endif
}
}  // namespace smelt
#endif

#if defined(SMELT_CUDA) && __CUDA_ARCH__ >= 800
#define SMELT_TENSOR_CORES
namespace smelt {
/// Whether tensor cores multiply elements of a type.
template <class T> constexpr bool is_half = false;
template <> constexpr bool is_half<metal::half> = true;
template <> constexpr bool is_half<metal::bfloat> = true;
/// Two neighbours as one register. A lane's elements are those of the left fragment and of the sums of
/// mma.m16n8k8 (PTX ISA, "Matrix Fragments for mma.m16n8k8"); the right fragment is the matrix transposed.
template <class T> struct Pair { T own[2]; };
template <class T> SMELT_FUNCTION uint packed(const T* own) { return copied_bits<uint>(*(const Pair<T>*)own); }
template <class T> SMELT_FUNCTION void unpack(T* own, uint pair) { *(Pair<T>*)own = copied_bits<Pair<T>>(pair); }
SMELT_FUNCTION uint transposed(uint rows) {
  uint columns;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows));
  return columns;
}
/// Reads a matrix of 16-bit elements whose rows are aligned in shared memory; false where they are not. The texts for
/// which SMELT_ALIGNED is defined align all of them.
template <class T> SMELT_FUNCTION bool load_rows(T* own, const T* p, ulong stride, bool transpose) {
  if (!__isShared(p)) return false;
  uint at = uint(__cvta_generic_to_shared(p)), pitch = uint(stride) * 2u, found;
#ifndef SMELT_ALIGNED
  if ((at | pitch) % 16u) return false;
#endif
  at += lane() % 8u * pitch;
  if (transpose) asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(found) : "r"(at));
  else asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(found) : "r"(at));
  unpack(own, found);
  return true;
}
/// Reads four matrices, whose rows are aligned, from an array in shared memory at once: each lane says where one of 32
/// rows begins. Where the matrices begin are numbers of elements, so that differences are known as this is compiled.
template <class T> SMELT_FUNCTION void load_four(uint* found, const T* array, uint at0, uint at1, uint at2, uint at3, uint stride, bool transpose) {
  uint which = lane() / 8u, own, one = at1 - at0, two = at2 - at0, three = at3 - at0;
  if (three == one + two) own = (which & 1u) * one + (which >> 1u) * two;  // often the same for many loads
  else own = which == 0u ? 0u : which == 1u ? one : which == 2u ? two : three;
  own = (own + lane() % 8u * stride) * uint(sizeof(T));
  uint at = uint(__cvta_generic_to_shared(array)) + at0 * uint(sizeof(T)) + own;
  if (transpose) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3]) : "r"(at));
  else asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3]) : "r"(at));
}
/// Adds the product of two 8 x 8 matrices on a tensor core, whose lower 8 rows are zeros.
template <class T> SMELT_FUNCTION void multiply_accumulate(float& r0, float& r1, uint left, uint right) {
  float rest0, rest1;
#define SMELT_MULTIPLY(TYPE) \
  asm("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
      : "=f"(r0), "=f"(r1), "=f"(rest0), "=f"(rest1) \
      : "r"(left), "r"(0u), "r"(right), "f"(r0), "f"(r1), "f"(0.0f), "f"(0.0f))
  if constexpr (same<T, metal::half>) SMELT_MULTIPLY("f16");
  else SMELT_MULTIPLY("bf16");
#undef SMELT_MULTIPLY
}
/// Adds to a 16 x 8 matrix, whose upper half is above and whose lower half below, that of a 16 x 16 and a 16 x 8 matrix.
template <class T> SMELT_FUNCTION void multiply_accumulate(float* above, float* below, uint left0, uint left1, uint left2, uint left3, uint right0, uint right1) {
#define SMELT_MULTIPLY(TYPE) \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(above[0]), "+f"(above[1]), "+f"(below[0]), "+f"(below[1]) \
      : "r"(left0), "r"(left1), "r"(left2), "r"(left3), "r"(right0), "r"(right1))
  if constexpr (same<T, metal::half>) SMELT_MULTIPLY("f16");
  else SMELT_MULTIPLY("bf16");
#undef SMELT_MULTIPLY
}
}  // namespace smelt
#endif

namespace metal {

template <class T, int Columns = 8, int Rows = 8> struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "simdgroup matrices are 8 x 8");
  alignas(2 * sizeof(T)) T own[2];  // of row lane / 4, columns 2 * (lane % 4) and the next
  simdgroup_matrix() = default;
  SMELT_FUNCTION explicit simdgroup_matrix(T diagonal) {
    for (uint i = 0; i < 2u; i++) own[i] = row() == column() + i ? diagonal : T(0);
  }
  SMELT_FUNCTION T (&thread_elements())[2] { return own; }
  SMELT_FUNCTION const T (&thread_elements() const)[2] { return own; }
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
template <class T> SMELT_MATRIX_FUNCTION void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* p, ulong stride = 8, ulong2 origin = ulong2(0, 0), bool transpose = false) {
  p += origin.y * stride + origin.x;
#ifdef SMELT_TENSOR_CORES
  if constexpr (sizeof(T) == 2) {
    if (smelt::load_rows(m.own, p, stride, transpose)) return;
  }
#endif
  ulong row = m.row(), column = m.column();
  for (uint i = 0; i < 2u; i++) m.own[i] = transpose ? p[(column + i) * stride + row] : p[row * stride + column + i];
}
template <class T> SMELT_MATRIX_FUNCTION void simdgroup_store(simdgroup_matrix<T, 8, 8> m, T* p, ulong stride = 8, ulong2 origin = ulong2(0, 0), bool transpose = false SMELT_SITE_AFTER) {
  (void)smelt::exchange_whole(uint(0) SMELT_PASS);  // all lanes must come
  p += origin.y * stride + origin.x;
  ulong row = m.row(), column = m.column();
  for (uint i = 0; i < 2u; i++) (transpose ? p[(column + i) * stride + row] : p[row * stride + column + i]) = m.own[i];
}
}  // namespace metal

namespace metal {

template <class D, class A, class B, class C>
SMELT_MATRIX_FUNCTION void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c SMELT_SITE_AFTER) {
#ifdef SMELT_TENSOR_CORES
  if constexpr (smelt::is_half<A> && smelt::same<A, B>) {
    float r0 = float(c.own[0]), r1 = float(c.own[1]);
    smelt::multiply_accumulate<A>(r0, r1, smelt::packed(a.own), smelt::transposed(smelt::packed(b.own)));
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

#ifdef SMELT_CUDA
namespace smelt {
#ifdef SMELT_TENSOR_CORES
/// A matrix that is only read from memory and multiplied from the right: each lane has what tensor cores want it to
/// have, the elements of the matrix transposed.
template <class T> struct Right {
  alignas(2 * sizeof(T)) T own[2];  // of rows 2 * (lane % 4) and the next, of column lane / 4
  SMELT_FUNCTION operator metal::simdgroup_matrix<T, 8, 8>() const {
    metal::simdgroup_matrix<T, 8, 8> m;
    unpack(m.own, transposed(packed(own)));
    return m;
  }
};
#else
template <class T> using Right = metal::simdgroup_matrix<T, 8, 8>;
#endif
/// d0 += a0 * b and d1 += a1 * b, then d0 += c0 * e and d1 += c1 * e.
template <class D, class A, class B, class C, class E> SMELT_FUNCTION void multiply_accumulate_pairs(D& d0, D& d1, A a0, A a1, B b, C c0, C c1, E e) {
  metal::simdgroup_multiply_accumulate(d0, a0, b, d0);
  metal::simdgroup_multiply_accumulate(d1, a1, b, d1);
  metal::simdgroup_multiply_accumulate(d0, c0, e, d0);
  metal::simdgroup_multiply_accumulate(d1, c1, e, d1);
}
}  // namespace smelt

#ifdef SMELT_TENSOR_CORES
namespace metal {
template <class T> SMELT_FUNCTION void simdgroup_load(smelt::Right<T>& m, const T* p, ulong stride = 8, ulong2 origin = ulong2(0, 0), bool transpose = false) {
  simdgroup_matrix<T, 8, 8> other;
  simdgroup_load(other, p, stride, origin, !transpose);
  smelt::unpack(m.own, smelt::packed(other.own));
}
#define SMELT_FOUR(M, TRANSPOSED) \
  template <class T> SMELT_FUNCTION void simdgroup_load_four(M<T>& m0, M<T>& m1, M<T>& m2, M<T>& m3, const T* array, uint at0, uint at1, uint at2, uint at3, uint stride, bool transpose) { \
    uint found[4]; \
    smelt::load_four(found, array, at0, at1, at2, at3, stride, transpose != TRANSPOSED); \
    smelt::unpack(m0.own, found[0]); \
    smelt::unpack(m1.own, found[1]); \
    smelt::unpack(m2.own, found[2]); \
    smelt::unpack(m3.own, found[3]); \
  }
SMELT_FOUR(simdgroup_matrix, false)
SMELT_FOUR(smelt::Right, true)
#undef SMELT_FOUR
template <class D, class A, class B, class C>
SMELT_FUNCTION void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, smelt::Right<B> b, simdgroup_matrix<C, 8, 8> c) {
  simdgroup_multiply_accumulate(d, a, simdgroup_matrix<B, 8, 8>(b), c);
}
}  // namespace metal
namespace smelt {
/// The same on a tensor core, in one instruction.
template <class T> SMELT_FUNCTION when_t<is_half<T>> multiply_accumulate_pairs(metal::simdgroup_float8x8& d0, metal::simdgroup_float8x8& d1, metal::simdgroup_matrix<T, 8, 8> a0, metal::simdgroup_matrix<T, 8, 8> a1, Right<T> b, metal::simdgroup_matrix<T, 8, 8> c0, metal::simdgroup_matrix<T, 8, 8> c1, Right<T> e) {
  multiply_accumulate<T>(d0.own, d1.own, packed(a0.own), packed(a1.own), packed(c0.own), packed(c1.own), packed(b.own), packed(e.own));
}
}  // namespace smelt
#else
namespace metal {
template <class T> SMELT_FUNCTION void simdgroup_load_four(simdgroup_matrix<T, 8, 8>& m0, simdgroup_matrix<T, 8, 8>& m1, simdgroup_matrix<T, 8, 8>& m2, simdgroup_matrix<T, 8, 8>& m3, const T* array, uint at0, uint at1, uint at2, uint at3, uint stride, bool transpose) {
  simdgroup_load(m0, array + at0, stride, ulong2(0, 0), transpose);
  simdgroup_load(m1, array + at1, stride, ulong2(0, 0), transpose);
  simdgroup_load(m2, array + at2, stride, ulong2(0, 0), transpose);
  simdgroup_load(m3, array + at3, stride, ulong2(0, 0), transpose);
}
}  // namespace metal
#endif
#endif
