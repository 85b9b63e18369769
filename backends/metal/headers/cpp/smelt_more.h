// What kernels call more rarely: traits, packing, geometry, quadgroups, logging, the builtins beneath the library.
#pragma once

#define assert(...) ((void)(__VA_ARGS__))
#define HUGE_VALH (half(HUGE_VALF))
#define M_E_H half(M_E_F)
#define M_LOG2E_H half(M_LOG2E_F)
#define M_LOG10E_H half(M_LOG10E_F)
#define M_LN2_H half(M_LN2_F)
#define M_LN10_H half(M_LN10_F)
#define M_PI_2_H half(M_PI_2_F)
#define M_PI_4_H half(M_PI_4_F)
#define M_1_PI_H half(M_1_PI_F)
#define M_2_PI_H half(M_2_PI_F)
#define M_2_SQRTPI_H half(M_2_SQRTPI_F)
#define M_SQRT2_H half(M_SQRT2_F)
#define M_SQRT1_2_H half(M_SQRT1_2_F)
#define FLT_RADIX 2
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define __METAL_MAYBE_FAST_MATH__ false
#define __METAL_FAST_MATH__ true
#define __METAL_PRECISE_MATH__ false

namespace metal {

#define SMELT_TRAIT(name) \
  template <class T> struct is_##name : bool_constant<__is_##name(T)> {}; \
  template <class T> constexpr bool is_##name##_v = __is_##name(T);
SMELT_TRAIT(enum) SMELT_TRAIT(class) SMELT_TRAIT(union) SMELT_TRAIT(empty) SMELT_TRAIT(trivially_copyable)
#undef SMELT_TRAIT
template <class T> struct is_void : bool_constant<smelt::same<remove_cv_t<T>, void>> {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_reference : false_type {};
template <class T> struct is_reference<T&> : true_type {};
template <class T> struct is_array : false_type {};
template <class T, size_t N> struct is_array<T[N]> : true_type {};
template <class T> struct is_scalar : bool_constant<is_arithmetic<T>::value || __is_enum(T) || is_pointer<T>::value> {};
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <class B> struct negation : bool_constant<!bool(B::value)> {};
template <class... B> constexpr bool conjunction_v = conjunction<B...>::value;
template <class... B> constexpr bool disjunction_v = disjunction<B...>::value;
template <class B> constexpr bool negation_v = negation<B>::value;
template <class T> constexpr bool is_void_v = is_void<T>::value;
template <class T> constexpr bool is_const_v = is_const<T>::value;
template <class T> constexpr bool is_reference_v = is_reference<T>::value;
template <class T> constexpr bool is_array_v = is_array<T>::value;
template <class T> constexpr bool is_scalar_v = is_scalar<T>::value;
template <class A, class B> constexpr bool is_base_of_v = is_base_of<A, B>::value;
template <class...> using void_t = void;
template <class T> struct rank : integral_constant<size_t, 0> {};
template <class T, size_t N> struct rank<T[N]> { static constexpr size_t value = rank<T>::value + 1; };
template <class T> constexpr size_t rank_v = rank<T>::value;
template <class T> struct underlying_type { typedef __underlying_type(T) type; };
template <class T> using underlying_type_t = typename underlying_type<T>::type;
template <class T> T declval();

// Mathematics.
template <class T> SMELT_FUNCTION T fmedian3(T x, T y, T z) { return fmax(fmin(x, y), fmin(fmax(x, y), z)); }
template <class A, class B, class R = smelt::common_vector<A, B>, smelt::when_t<smelt::Parts<R>::count == 3, int> = 0>
SMELT_FUNCTION R cross(const A& a, const B& b) {
  R x(a), y(b);
  return R(x.y * y.z - x.z * y.y, x.z * y.x - x.x * y.z, x.x * y.y - x.y * y.x);
}
template <class T, int N> SMELT_FUNCTION vec<T, N> refract(vec<T, N> i, vec<T, N> n, typename type_identity<T>::type eta) {
  T d = dot(n, i), k = T(1) - eta * eta * (T(1) - d * d);
  if (k < T(0)) return vec<T, N>(T(0));
  return i * eta - n * (eta * d + sqrt(k));
}
template <class T, int N> SMELT_FUNCTION vec<T, N> faceforward(vec<T, N> n, vec<T, N> i, vec<T, N> reference) {
  return dot(reference, i) < T(0) ? n : -n;
}
template <class T, smelt::when_t<smelt::integral<T>, int> = 0> SMELT_FUNCTION T madsat(T x, T y, T z) {
  typedef make_unsigned_t<T> U;
  // Product and sum in two words; the result fits if the higher one is but the sign of the lower.
  U product = U(U(x) * U(y)), low = U(product + U(z)), carry = U(low < product ? 1 : 0);
  U high = U(U(mulhi(x, y)) + carry + (is_signed_v<T> && z < T(0) ? U(-1) : U(0)));
  if (high == (is_signed_v<T> && T(low) < T(0) ? U(-1) : U(0))) return T(low);
  return is_signed_v<T> && T(high) < T(0) ? numeric_limits<T>::lowest() : numeric_limits<T>::max();
}
SMELT_MAP3(madsat) SMELT_MAP2(mul24) SMELT_MAP3(mad24)
template <class T, int N> SMELT_FUNCTION vec<T, N> extract_bits(vec<T, N> x, uint offset, uint count) {
  for (int i = 0; i < N; i++) x.data[i] = extract_bits(x.data[i], offset, count);
  return x;
}
template <class T, int N> SMELT_FUNCTION vec<T, N> insert_bits(vec<T, N> x, vec<T, N> y, uint offset, uint count) {
  for (int i = 0; i < N; i++) x.data[i] = insert_bits(x.data[i], y.data[i], offset, count);
  return x;
}
template <class T, int N> SMELT_FUNCTION vec<int, N> ilogb(vec<T, N> x) { vec<int, N> r; for (int i = 0; i < N; i++) r.data[i] = ilogb(x.data[i]); return r; }
template <class T, int N> SMELT_FUNCTION vec<T, N> modf(vec<T, N> x, vec<T, N>& w) { for (int i = 0; i < N; i++) x.data[i] = modf(x.data[i], w.data[i]); return x; }
template <class B, smelt::when_t<smelt::same<B, bfloat>, int> = 0> SMELT_FUNCTION float ldexp(B x, int e) { return ldexp(float(x), e); }
template <class B, smelt::when_t<smelt::same<B, bfloat>, int> = 0> SMELT_FUNCTION float frexp(B x, int& e) { return frexp(float(x), e); }
template <class B, smelt::when_t<smelt::same<B, bfloat>, int> = 0> SMELT_FUNCTION int ilogb(B x) { return ilogb(float(x)); }
#define SMELT_MORE using metal::fmax3; using metal::fmin3; using metal::fmedian3; using metal::max3; using metal::min3; \
  using metal::median3; using metal::ilogb; using metal::length_squared; using metal::distance_squared;
namespace fast { SMELT_MORE }
namespace precise { SMELT_MORE }
#undef SMELT_MORE

// Packing: the first component lies in the lowest bits.
#define SMELT_PACK(name, N, I, BITS, MOST, SIGNED) \
  SMELT_FUNCTION vec<float, N> unpack_##name##_to_float(I x) { \
    vec<float, N> r; \
    for (int i = 0; i < N; i++) { \
      int v = int(uint(x) >> (i * BITS) & ((1u << BITS) - 1u)); \
      if (SIGNED && v > MOST) v -= 1 << BITS; \
      r.data[i] = fmax(float(v) / float(MOST), -1.0f); \
    } \
    return r; \
  } \
  SMELT_FUNCTION I pack_float_to_##name(vec<float, N> x) { \
    uint r = 0; \
    for (int i = 0; i < N; i++) { \
      float v = fmin(fmax(x.data[i], SIGNED ? -1.0f : 0.0f), 1.0f); \
      r |= (uint(int(rint(v * float(MOST)))) & ((1u << BITS) - 1u)) << (i * BITS); \
    } \
    return I(r); \
  } \
  SMELT_FUNCTION vec<half, N> unpack_##name##_to_half(I x) { return vec<half, N>(unpack_##name##_to_float(x)); } \
  SMELT_FUNCTION I pack_half_to_##name(vec<half, N> x) { return pack_float_to_##name(vec<float, N>(x)); }
SMELT_PACK(unorm4x8, 4, uint, 8, 255, false)
SMELT_PACK(snorm4x8, 4, uint, 8, 127, true)
SMELT_PACK(unorm2x16, 2, uint, 16, 65535, false)
SMELT_PACK(snorm2x16, 2, uint, 16, 32767, true)
#undef SMELT_PACK

// Quadgroups.
struct quad_vote {
  typedef ushort vote_t;
  vote_t votes;
  SMELT_FUNCTION explicit constexpr quad_vote(vote_t v = 0) : votes(v) {}
  SMELT_FUNCTION explicit constexpr operator vote_t() const { return votes; }
  SMELT_FUNCTION constexpr bool all() const { return votes == 15u; }
  SMELT_FUNCTION constexpr bool any() const { return votes != 0; }
};
SMELT_FUNCTION quad_vote quad_ballot(bool b SMELT_SITE_AFTER) { return quad_vote(ushort(simd_ballot(b SMELT_PASS).votes >> (smelt::lane() & ~3u) & 15u)); }
SMELT_FUNCTION quad_vote quad_active_threads_mask(SMELT_SITE) {
#ifdef SMELT_CUDA
  ulong lanes = simd_active_threads_mask().votes;
#else
  ulong lanes = simd_active_threads_mask(site).votes;
#endif
  return quad_vote(ushort(lanes >> (smelt::lane() & ~3u) & 15u));
}
SMELT_FUNCTION bool quad_is_first(SMELT_SITE) {
#ifdef SMELT_CUDA
  uint lanes = quad_active_threads_mask().votes;
#else
  uint lanes = quad_active_threads_mask(site).votes;
#endif
  return smelt::first(lanes) == (smelt::lane() & 3u);
}
SMELT_FUNCTION bool quad_is_helper_thread() { return false; }
template <class T> SMELT_FUNCTION T quad_shuffle_and_fill_up(T x, T fill, ushort delta, ushort modulo = 4 SMELT_SITE_AFTER) { return simd_shuffle_and_fill_up(x, fill, delta, modulo SMELT_PASS); }
template <class T> SMELT_FUNCTION T quad_shuffle_and_fill_down(T x, T fill, ushort delta, ushort modulo = 4 SMELT_SITE_AFTER) { return simd_shuffle_and_fill_down(x, fill, delta, modulo SMELT_PASS); }

// Messages of kernels go nowhere.
struct os_log {
  SMELT_FUNCTION constexpr os_log(const char*, const char*) {}
#define SMELT_LOG(name) template <class... A> SMELT_FUNCTION void name(const char*, A...) const {}
  SMELT_LOG(log) SMELT_LOG(log_debug) SMELT_LOG(log_info) SMELT_LOG(log_error) SMELT_LOG(log_fault)
#undef SMELT_LOG
};
constexpr os_log os_log_default("", "");

}  // namespace metal

// Builtins of Apple's compiler that headers of other projects call; the last operand says whether they may be fast.
#define SMELT_FAST1(f) template <class T> SMELT_FUNCTION T __metal_##f(T x, bool) { return metal::f(x); }
#define SMELT_FAST2(f) template <class T> SMELT_FUNCTION T __metal_##f(T x, T y, bool) { return metal::f(x, y); }
#define SMELT_FAST3(f) template <class T> SMELT_FUNCTION T __metal_##f(T x, T y, T z, bool) { return metal::f(x, y, z); }
SMELT_FAST1(acos) SMELT_FAST1(acosh) SMELT_FAST1(asin) SMELT_FAST1(asinh) SMELT_FAST1(atan) SMELT_FAST1(atanh)
SMELT_FAST1(ceil) SMELT_FAST1(cos) SMELT_FAST1(cosh) SMELT_FAST1(cospi) SMELT_FAST1(exp) SMELT_FAST1(exp10)
SMELT_FAST1(exp2) SMELT_FAST1(fabs) SMELT_FAST1(floor) SMELT_FAST1(fract) SMELT_FAST1(log) SMELT_FAST1(log10)
SMELT_FAST1(log2) SMELT_FAST1(rint) SMELT_FAST1(round) SMELT_FAST1(rsqrt) SMELT_FAST1(sin) SMELT_FAST1(sinh)
SMELT_FAST1(sinpi) SMELT_FAST1(sqrt) SMELT_FAST1(tan) SMELT_FAST1(tanh) SMELT_FAST1(tanpi) SMELT_FAST1(trunc)
SMELT_FAST1(saturate) SMELT_FAST1(sign)
SMELT_FAST2(atan2) SMELT_FAST2(divide) SMELT_FAST2(fdim) SMELT_FAST2(fmax) SMELT_FAST2(fmin) SMELT_FAST2(fmod)
SMELT_FAST2(pow) SMELT_FAST2(powr) SMELT_FAST2(step)
SMELT_FAST3(fmax3) SMELT_FAST3(fmin3) SMELT_FAST3(fmedian3) SMELT_FAST3(mix) SMELT_FAST3(smoothstep) SMELT_FAST3(clamp)
#undef SMELT_FAST1
#undef SMELT_FAST2
#undef SMELT_FAST3
template <class T> SMELT_FUNCTION T __metal_nextafter(T x, T y) { return metal::nextafter(x, y); }
template <class T> SMELT_FUNCTION T __metal_copysign(T x, T y) { return metal::copysign(x, y); }
template <class T> SMELT_FUNCTION T __metal_fma(T x, T y, T z) { return metal::fma(x, y, z); }
template <class T, class I> SMELT_FUNCTION T __metal_ldexp(T x, I e, bool) { return metal::ldexp(x, e); }
template <class T> SMELT_FUNCTION int __metal_ilogb(T x, bool) { return metal::ilogb(x); }
template <class T, class I> SMELT_FUNCTION T __metal_frexp(T x, I& e, bool) { return metal::frexp(x, e); }
template <class T> SMELT_FUNCTION T __metal_modf(T x, T& w, bool) { return metal::modf(x, w); }
template <class T> SMELT_FUNCTION T __metal_sincos(T x, T& c, bool) { return metal::sincos(x, c); }
template <class T> SMELT_FUNCTION bool __metal_isnan(T x, bool) { return metal::isnan(x); }
template <class T> SMELT_FUNCTION bool __metal_isinf(T x, bool) { return metal::isinf(x); }
template <class T> SMELT_FUNCTION bool __metal_isfinite(T x, bool) { return metal::isfinite(x); }
template <class T> SMELT_FUNCTION T __metal_popcount(T x) { return metal::popcount(x); }
template <class T> SMELT_FUNCTION T __metal_clz(T x, bool = false) { return metal::clz(x); }
template <class T> SMELT_FUNCTION T __metal_ctz(T x, bool = false) { return metal::ctz(x); }
template <class T> SMELT_FUNCTION T __metal_reverse_bits(T x) { return metal::reverse_bits(x); }
template <class T> SMELT_FUNCTION T __metal_rotate(T x, T y) { return metal::rotate(x, y); }
template <class T> SMELT_FUNCTION T __metal_mul_hi(T x, T y) { return metal::mulhi(x, y); }
template <class T> SMELT_FUNCTION T __metal_extract_bits(T x, uint offset, uint count) { return metal::extract_bits(x, offset, count); }
#define SMELT_LANES(f) \
  template <class T> SMELT_FUNCTION T __metal_simd_##f(T x SMELT_SITE_AFTER) { return metal::simd_##f(x SMELT_PASS); } \
  template <class T> SMELT_FUNCTION T __metal_quad_##f(T x SMELT_SITE_AFTER) { return metal::quad_##f(x SMELT_PASS); }
#define SMELT_LANES_BY(f) \
  template <class T> SMELT_FUNCTION T __metal_simd_##f(T x, ushort n SMELT_SITE_AFTER) { return metal::simd_##f(x, n SMELT_PASS); } \
  template <class T> SMELT_FUNCTION T __metal_quad_##f(T x, ushort n SMELT_SITE_AFTER) { return metal::quad_##f(x, n SMELT_PASS); }
#define SMELT_LANES_FILL(f) \
  template <class T> SMELT_FUNCTION T __metal_simd_##f(T x, T y, ushort n, ushort m SMELT_SITE_AFTER) { return metal::simd_##f(x, y, n, m SMELT_PASS); } \
  template <class T> SMELT_FUNCTION T __metal_quad_##f(T x, T y, ushort n, ushort m SMELT_SITE_AFTER) { return metal::quad_##f(x, y, n, m SMELT_PASS); }
SMELT_LANES(sum) SMELT_LANES(product) SMELT_LANES(min) SMELT_LANES(max) SMELT_LANES(and) SMELT_LANES(or) SMELT_LANES(xor)
SMELT_LANES(prefix_inclusive_sum) SMELT_LANES(prefix_exclusive_sum) SMELT_LANES(prefix_inclusive_product)
SMELT_LANES(prefix_exclusive_product) SMELT_LANES(broadcast_first)
SMELT_LANES_BY(broadcast) SMELT_LANES_BY(shuffle) SMELT_LANES_BY(shuffle_up) SMELT_LANES_BY(shuffle_down)
SMELT_LANES_BY(shuffle_xor) SMELT_LANES_BY(shuffle_rotate_up) SMELT_LANES_BY(shuffle_rotate_down)
SMELT_LANES_FILL(shuffle_and_fill_up) SMELT_LANES_FILL(shuffle_and_fill_down)
#undef SMELT_LANES
#undef SMELT_LANES_BY
#undef SMELT_LANES_FILL
SMELT_FUNCTION ulong __metal_simd_ballot(bool x SMELT_SITE_AFTER) { return metal::simd_ballot(x SMELT_PASS).votes; }
SMELT_FUNCTION bool __metal_simd_all(bool x SMELT_SITE_AFTER) { return metal::simd_all(x SMELT_PASS); }
SMELT_FUNCTION bool __metal_simd_any(bool x SMELT_SITE_AFTER) { return metal::simd_any(x SMELT_PASS); }
