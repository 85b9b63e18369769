// Scalars: names, half and bfloat, type traits, limits, bit casts.
#pragma once

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define SMELT_CUDA 1
#define SMELT_FUNCTION __device__ __forceinline__
#else
#define SMELT_FUNCTION inline __attribute__((always_inline))
#endif

#define __METAL__ 1
#define __METAL_VERSION__ 310
#define __HAVE_BFLOAT__ 1
#define METAL_FUNC SMELT_FUNCTION
#define METAL_CONST SMELT_FUNCTION
#define METAL_INTERNAL SMELT_FUNCTION
#define device
#define thread
#define threadgroup
#define constant const
#define kernel static SMELT_FUNCTION

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#ifndef SMELT_CUDA
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
#endif

#undef INFINITY
#undef NAN
#define INFINITY (smelt::bits<float>(0x7f800000u))
#define HUGE_VALF (smelt::bits<float>(0x7f800000u))
#define NAN (smelt::bits<float>(0x7fc00000u))
#define MAXFLOAT 3.402823466e+38f
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define HALF_MAX half(65504.0f)
#define MAXHALF half(65504.0f)
#define HALF_MIN half(6.103515625e-05f)
#define HALF_EPSILON half(0.0009765625f)
#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1l)
#define ULONG_MAX 18446744073709551615ul
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_PI_H half(3.14159265358979323846f)

namespace smelt {

template <class To, class From>
SMELT_FUNCTION constexpr To bits(const From& from) {
  return __builtin_bit_cast(To, from);
}
// Also for vectors, whose copies are not trivial to the compiler.
template <class To, class From>
SMELT_FUNCTION To copied_bits(const From& from) {
  To to;
#ifdef SMELT_CUDA
  memcpy(&to, &from, sizeof(To));
#else
  __builtin_memcpy(&to, &from, sizeof(To));
#endif
  return to;
}

// IEEE binary16, to nearest even; NaN stays NaN and becomes quiet. Spelled out, not left to _Float16: with AVX512-FP16,
// GCC 12 drops the rounding of a vectorized float -> _Float16 -> float. Without branches, so that loops vectorize, and
// no intermediate value is subnormal, so that nothing depends on how the processor treats those.
SMELT_FUNCTION constexpr ushort half_of_float_by_bits(float x) {
  uint u = bits<uint>(x), sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  uint whole = (u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13;  // the exponent's bias changes, ties go to even
  uint tiny = bits<uint>(bits<float>(u) + 0.5f) - 0x3f000000u;       // an addition of floats rounds the same way
  uint large = u > 0x7f800000u ? 0x7e00u | ((u >> 13) & 0x3ffu) : 0x7c00u;
  uint small = u < 0x38800000u ? tiny : whole;
  return ushort(sign | (u >= 0x47800000u ? large : small));
}
SMELT_FUNCTION constexpr float float_of_half_by_bits(ushort h) {
  uint sign = uint(h & 0x8000u) << 16, digits = uint(h & 0x7fffu) << 13, exponent = digits & 0x0f800000u;
  uint whole = digits + 0x38000000u;
  uint tiny = bits<uint>(bits<float>(digits + 0x38800000u) - 6.103515625e-05f);  // exact
  uint large = 0x7f800000u | digits | ((digits & 0x007fffffu) ? 0x00400000u : 0u);
  return bits<float>(sign | (exponent == 0x0f800000u ? large : exponent ? whole : tiny));
}
#if defined(SMELT_CUDA)
SMELT_FUNCTION ushort half_of_float_now(float x) { ushort r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
SMELT_FUNCTION float float_of_half_now(ushort h) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h)); return r; }
SMELT_FUNCTION ushort bfloat_of_float_now(float x) { ushort r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
#else
SMELT_FUNCTION ushort half_of_float_now(float x) { return half_of_float_by_bits(x); }
SMELT_FUNCTION float float_of_half_now(ushort h) { return float_of_half_by_bits(h); }
#endif
SMELT_FUNCTION constexpr ushort bfloat_of_float_by_bits(float x) {
  uint u = bits<uint>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return ushort((u >> 16) | 0x40u);
  return ushort((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
#ifndef SMELT_CUDA
SMELT_FUNCTION ushort bfloat_of_float_now(float x) { return bfloat_of_float_by_bits(x); }
#endif

SMELT_FUNCTION constexpr ushort half_of_float(float x) {
  return __builtin_is_constant_evaluated() ? half_of_float_by_bits(x) : half_of_float_now(x);
}
SMELT_FUNCTION constexpr float float_of_half(ushort h) {
  return __builtin_is_constant_evaluated() ? float_of_half_by_bits(h) : float_of_half_now(h);
}
SMELT_FUNCTION constexpr ushort bfloat_of_float(float x) {
  return __builtin_is_constant_evaluated() ? bfloat_of_float_by_bits(x) : bfloat_of_float_now(x);
}
#ifdef SMELT_CUDA
// One permutation of bytes, also where two numbers share a word.
SMELT_FUNCTION float float_of_bfloat_now(ushort b) { float r; asm("mov.b32 %0, {%1, %2};" : "=f"(r) : "h"(ushort(0)), "h"(b)); return r; }
#else
SMELT_FUNCTION float float_of_bfloat_now(ushort b) { return bits<float>(uint(b) << 16); }
#endif
SMELT_FUNCTION constexpr float float_of_bfloat(ushort b) {
  return __builtin_is_constant_evaluated() ? bits<float>(uint(b) << 16) : float_of_bfloat_now(b);
}

template <class T, T V> struct constant_of { static constexpr T value = V; typedef T value_type; constexpr operator T() const { return V; } };
template <bool B, class T = void> struct when {};
template <class T> struct when<true, T> { typedef T type; };
template <bool B, class T = void> using when_t = typename when<B, T>::type;
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <class T> constexpr bool integral = false;
#define SMELT_INTEGRAL(T) template <> constexpr bool integral<T> = true;
SMELT_INTEGRAL(bool) SMELT_INTEGRAL(char) SMELT_INTEGRAL(signed char) SMELT_INTEGRAL(uchar) SMELT_INTEGRAL(short)
SMELT_INTEGRAL(ushort) SMELT_INTEGRAL(int) SMELT_INTEGRAL(uint) SMELT_INTEGRAL(long) SMELT_INTEGRAL(ulong)
SMELT_INTEGRAL(long long) SMELT_INTEGRAL(unsigned long long)
#undef SMELT_INTEGRAL
template <class T> constexpr bool native = integral<T> || same<T, float> || same<T, double> || same<T, long double>;

}  // namespace smelt

struct bfloat;
// Arithmetic of half and of bfloat is rounded after each operation; an integer beside one of them becomes one, too.
struct half {
  ushort code;
  half() = default;
  template <class U, smelt::when_t<smelt::native<U>, int> = 0>
  SMELT_FUNCTION constexpr half(U x) : code(smelt::half_of_float(float(x))) {}
  template <class U, smelt::when_t<smelt::same<U, bfloat>, int> = 0>
  SMELT_FUNCTION constexpr explicit half(U x) : code(smelt::half_of_float(float(x))) {}
  SMELT_FUNCTION constexpr operator float() const { return smelt::float_of_half(code); }
  template <class U> SMELT_FUNCTION half& operator+=(U b) { return *this = half(float(*this) + float(b)); }
  template <class U> SMELT_FUNCTION half& operator-=(U b) { return *this = half(float(*this) - float(b)); }
  template <class U> SMELT_FUNCTION half& operator*=(U b) { return *this = half(float(*this) * float(b)); }
  template <class U> SMELT_FUNCTION half& operator/=(U b) { return *this = half(float(*this) / float(b)); }
  SMELT_FUNCTION half& operator++() { return *this += 1.0f; }
  SMELT_FUNCTION half& operator--() { return *this -= 1.0f; }
  SMELT_FUNCTION half operator++(int) { half before = *this; *this += 1.0f; return before; }
  SMELT_FUNCTION half operator--(int) { half before = *this; *this -= 1.0f; return before; }
};
struct bfloat {
  ushort code;
  bfloat() = default;
  template <class U, smelt::when_t<smelt::native<U> || smelt::same<U, half>, int> = 0>
  SMELT_FUNCTION constexpr bfloat(U x) : code(smelt::bfloat_of_float(float(x))) {}
  SMELT_FUNCTION constexpr operator float() const { return smelt::float_of_bfloat(code); }
  template <class U> SMELT_FUNCTION bfloat& operator+=(U b) { return *this = bfloat(float(*this) + float(b)); }
  template <class U> SMELT_FUNCTION bfloat& operator-=(U b) { return *this = bfloat(float(*this) - float(b)); }
  template <class U> SMELT_FUNCTION bfloat& operator*=(U b) { return *this = bfloat(float(*this) * float(b)); }
  template <class U> SMELT_FUNCTION bfloat& operator/=(U b) { return *this = bfloat(float(*this) / float(b)); }
};
typedef half float16_t;
typedef bfloat bfloat16_t;

#define SMELT_HALF(op) \
  SMELT_FUNCTION constexpr half operator op(half a, half b) { return half(float(a) op float(b)); } \
  SMELT_FUNCTION constexpr float operator op(half a, float b) { return float(a) op b; } \
  SMELT_FUNCTION constexpr float operator op(float a, half b) { return a op float(b); } \
  SMELT_FUNCTION constexpr float operator op(half a, bfloat b) { return float(a) op float(b); } \
  SMELT_FUNCTION constexpr float operator op(bfloat a, half b) { return float(a) op float(b); } \
  template <class U, smelt::when_t<smelt::integral<U>, int> = 0> \
  SMELT_FUNCTION constexpr half operator op(half a, U b) { return half(float(a) op float(half(b))); } \
  template <class U, smelt::when_t<smelt::integral<U>, int> = 0> \
  SMELT_FUNCTION constexpr half operator op(U a, half b) { return half(float(half(a)) op float(b)); }
SMELT_HALF(+) SMELT_HALF(-) SMELT_HALF(*) SMELT_HALF(/)
#define SMELT_BFLOAT(op) \
  SMELT_FUNCTION constexpr bfloat operator op(bfloat a, bfloat b) { return bfloat(float(a) op float(b)); } \
  SMELT_FUNCTION constexpr float operator op(bfloat a, float b) { return float(a) op b; } \
  SMELT_FUNCTION constexpr float operator op(float a, bfloat b) { return a op float(b); } \
  template <class U, smelt::when_t<smelt::integral<U>, int> = 0> \
  SMELT_FUNCTION constexpr bfloat operator op(bfloat a, U b) { return bfloat(float(a) op float(bfloat(b))); } \
  template <class U, smelt::when_t<smelt::integral<U>, int> = 0> \
  SMELT_FUNCTION constexpr bfloat operator op(U a, bfloat b) { return bfloat(float(bfloat(a)) op float(b)); }
SMELT_BFLOAT(+) SMELT_BFLOAT(-) SMELT_BFLOAT(*) SMELT_BFLOAT(/)
#undef SMELT_BFLOAT
#undef SMELT_HALF
SMELT_FUNCTION constexpr half operator-(half a) { return half(-float(a)); }
SMELT_FUNCTION constexpr half operator+(half a) { return a; }
SMELT_FUNCTION constexpr half operator""h(long double x) { return half(float(x)); }
SMELT_FUNCTION constexpr half operator""H(long double x) { return half(float(x)); }
SMELT_FUNCTION constexpr bfloat operator-(bfloat a) { return bfloat(-float(a)); }
SMELT_FUNCTION constexpr bfloat operator+(bfloat a) { return a; }
SMELT_FUNCTION constexpr bfloat operator""bf(long double x) { return bfloat(float(x)); }

template <class To, class From>
SMELT_FUNCTION constexpr To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type: the types have different sizes");
  if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(From)) return smelt::bits<To>(from);
  else return smelt::copied_bits<To>(from);
}

namespace metal {

using ::as_type;
using ::half;
using ::bfloat;
template <class T, T V> using integral_constant = smelt::constant_of<T, V>;
template <bool B> using bool_constant = smelt::constant_of<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;
template <bool B, class T = void> using enable_if = smelt::when<B, T>;
template <bool B, class T = void> using enable_if_t = typename smelt::when<B, T>::type;
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> struct remove_volatile { typedef T type; };
template <class T> struct remove_volatile<volatile T> { typedef T type; };
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> struct remove_pointer { typedef T type; };
template <class T> struct remove_pointer<T*> { typedef T type; };
template <class T> struct remove_cv { typedef typename remove_const<typename remove_volatile<T>::type>::type type; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct decay { typedef remove_cv_t<remove_reference_t<T>> type; };
template <class T> using decay_t = typename decay<T>::type;
template <class T> struct remove_addrspace { typedef T type; };
template <class T> using remove_addrspace_t = T;
template <class T> struct type_identity { typedef T type; };
template <class A, class B> struct is_same : bool_constant<smelt::same<A, B>> {};
template <class A, class B> constexpr bool is_same_v = smelt::same<A, B>;
template <class T> struct is_integral : bool_constant<smelt::integral<remove_cv_t<T>>> {};
template <class T> struct is_floating_point
    : bool_constant<smelt::same<remove_cv_t<T>, float> || smelt::same<remove_cv_t<T>, half> || smelt::same<remove_cv_t<T>, bfloat>> {};
template <class T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T, bool = is_arithmetic<T>::value> struct is_signed : bool_constant<(remove_cv_t<T>(-1) < remove_cv_t<T>(0))> {};
template <class T> struct is_signed<T, false> : false_type {};
template <class T> struct is_unsigned : bool_constant<is_integral<T>::value && !is_signed<T>::value> {};
template <class T> constexpr bool is_signed_v = is_signed<T>::value;
template <class T> constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T*> : true_type {};
template <class T> constexpr bool is_pointer_v = is_pointer<T>::value;
template <class A, class B> struct is_convertible {
  static char test(B);
  static long test(...);
  static A make();
  static constexpr bool value = sizeof(test(make())) == 1;
};
template <class A, class B> constexpr bool is_convertible_v = is_convertible<A, B>::value;
template <class... B> struct conjunction : bool_constant<(true && ... && bool(B::value))> {};
template <class... B> struct disjunction : bool_constant<(false || ... || bool(B::value))> {};
template <class T> struct make_unsigned;
template <class T> struct make_signed;
#define SMELT_SIGNS(S, U) \
  template <> struct make_unsigned<S> { typedef U type; }; template <> struct make_unsigned<U> { typedef U type; }; \
  template <> struct make_signed<S> { typedef S type; }; template <> struct make_signed<U> { typedef S type; };
SMELT_SIGNS(char, uchar) SMELT_SIGNS(short, ushort) SMELT_SIGNS(int, uint) SMELT_SIGNS(long, ulong)
#undef SMELT_SIGNS
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> using make_signed_t = typename make_signed<T>::type;

template <class T> struct numeric_limits;
enum float_round_style { round_indeterminate = -1, round_toward_zero, round_to_nearest, round_toward_infinity, round_toward_neg_infinity };
enum float_denorm_style { denorm_indeterminate = -1, denorm_absent, denorm_present };
#define SMELT_LIMITS(T, LOW, LEAST, MOST, EPSILON, TINIEST, INF, NAN_, SIGNED, INTEGER, DIGITS, TENS, MORE, EMIN, EMAX, EMIN10, EMAX10) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_signed = SIGNED, is_integer = INTEGER, is_exact = INTEGER; \
    static constexpr bool has_infinity = !INTEGER, has_quiet_NaN = !INTEGER, has_signaling_NaN = !INTEGER; \
    static constexpr bool is_iec559 = !INTEGER, is_bounded = true, is_modulo = INTEGER && !SIGNED, traps = INTEGER; \
    static constexpr bool has_denorm_loss = false, tinyness_before = false; \
    static constexpr float_denorm_style has_denorm = INTEGER ? denorm_absent : denorm_present; \
    static constexpr float_round_style round_style = INTEGER ? round_toward_zero : round_to_nearest; \
    static constexpr int digits = DIGITS, radix = 2, digits10 = TENS, max_digits10 = MORE; \
    static constexpr int min_exponent = EMIN, max_exponent = EMAX, min_exponent10 = EMIN10, max_exponent10 = EMAX10; \
    SMELT_FUNCTION static constexpr T lowest() { return T(LOW); } \
    SMELT_FUNCTION static constexpr T min() { return T(LEAST); } \
    SMELT_FUNCTION static constexpr T max() { return T(MOST); } \
    SMELT_FUNCTION static constexpr T epsilon() { return T(EPSILON); } \
    SMELT_FUNCTION static constexpr T infinity() { return T(INF); } \
    SMELT_FUNCTION static constexpr T quiet_NaN() { return T(NAN_); } \
    SMELT_FUNCTION static constexpr T signaling_NaN() { return T(NAN_); } \
    SMELT_FUNCTION static constexpr T denorm_min() { return T(TINIEST); } \
    SMELT_FUNCTION static constexpr T round_error() { return T(INTEGER ? 0.0f : 0.5f); } \
  };
#define SMELT_INTEGER_LIMITS(T, LOW, MOST, DIGITS, SIGNED, TENS) \
  SMELT_LIMITS(T, LOW, LOW, MOST, 0, 0, 0, 0, SIGNED, true, DIGITS, TENS, 0, 0, 0, 0, 0)
SMELT_INTEGER_LIMITS(bool, 0, 1, 1, false, 0)
SMELT_INTEGER_LIMITS(char, CHAR_MIN, CHAR_MAX, 7, true, 2)
SMELT_INTEGER_LIMITS(int8_t, CHAR_MIN, CHAR_MAX, 7, true, 2)
SMELT_INTEGER_LIMITS(uchar, 0, UCHAR_MAX, 8, false, 2)
SMELT_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX, 15, true, 4)
SMELT_INTEGER_LIMITS(ushort, 0, USHRT_MAX, 16, false, 4)
SMELT_INTEGER_LIMITS(int, INT_MIN, INT_MAX, 31, true, 9)
SMELT_INTEGER_LIMITS(uint, 0, UINT_MAX, 32, false, 9)
SMELT_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX, 63, true, 18)
SMELT_INTEGER_LIMITS(ulong, 0, ULONG_MAX, 64, false, 19)
SMELT_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX, FLT_EPSILON, smelt::bits<float>(1u), INFINITY, NAN, true, false, 24, 6, 9, -125, 128, -37, 38)
SMELT_LIMITS(half, -65504.0f, 6.103515625e-05f, 65504.0f, 0.0009765625f, 5.9604644775390625e-08f, INFINITY, NAN, true, false, 11, 3, 5, -13, 16, -4, 4)
SMELT_LIMITS(bfloat, -3.38953139e38f, FLT_MIN, 3.38953139e38f, 0.0078125f, smelt::bits<float>(0x00010000u), INFINITY, NAN, true, false, 8, 2, 4, -125, 128, -37, 38)
#undef SMELT_LIMITS
#undef SMELT_INTEGER_LIMITS

template <class T, size_t N> struct array {
  T __elements[N];
  SMELT_FUNCTION constexpr T& operator[](size_t i) { return __elements[i]; }
  SMELT_FUNCTION constexpr const T& operator[](size_t i) const { return __elements[i]; }
  SMELT_FUNCTION static constexpr size_t size() { return N; }
  SMELT_FUNCTION static constexpr bool empty() { return N == 0; }
  SMELT_FUNCTION constexpr T* data() { return __elements; }
  SMELT_FUNCTION constexpr const T* data() const { return __elements; }
  SMELT_FUNCTION constexpr T* begin() { return __elements; }
  SMELT_FUNCTION constexpr const T* begin() const { return __elements; }
  SMELT_FUNCTION constexpr T* end() { return __elements + N; }
  SMELT_FUNCTION constexpr const T* end() const { return __elements + N; }
};
template <class T> using uniform = T;
template <class T> SMELT_FUNCTION constexpr T make_uniform(T x) { return x; }

}  // namespace metal
