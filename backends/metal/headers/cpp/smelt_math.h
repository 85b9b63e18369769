// Mathematics of scalars and vectors. Scalars: one overload for each type; vectors: one template for vectors,
// swizzles and mixes with scalars, which calls the scalar function on each component.
#pragma once

#ifdef SMELT_CUDA
#define SMELT_C(name) ::name
#else
#define SMELT_C(name) __builtin_##name
#endif

// A function of one, two or three values of one type, on vectors.
#define SMELT_MAP1(name) \
  template <class A, class R = smelt::vector_of<A>> SMELT_FUNCTION R name(const A& a) { \
    R x(a); \
    for (int i = 0; i < smelt::Parts<R>::count; i++) x.data[i] = typename smelt::Parts<R>::element(name(x.data[i])); \
    return x; \
  }
#define SMELT_MAP2(name) \
  template <class A, class B, class R = smelt::common_vector<A, B>> SMELT_FUNCTION R name(const A& a, const B& b) { \
    R x(a), y(b); \
    for (int i = 0; i < smelt::Parts<R>::count; i++) x.data[i] = typename smelt::Parts<R>::element(name(x.data[i], y.data[i])); \
    return x; \
  }
#define SMELT_MAP3(name) \
  template <class A, class B, class C, class R = smelt::vector_among<A, B, C>> \
  SMELT_FUNCTION R name(const A& a, const B& b, const C& c) { \
    R x(a), y(b), z(c); \
    for (int i = 0; i < smelt::Parts<R>::count; i++) x.data[i] = typename smelt::Parts<R>::element(name(x.data[i], y.data[i], z.data[i])); \
    return x; \
  }

namespace smelt {
// For functions of three: the first vector among the arguments decides.
template <class A, class B, bool = Parts<A>::is_vector> struct FirstVector { typedef A type; };
template <class A, class B> struct FirstVector<A, B, false> { typedef B type; };
template <class A, class B, class C> using vector_among = vector_of<typename FirstVector<A, typename FirstVector<B, C>::type>::type>;
}  // namespace smelt

namespace metal {

// float: the C library's; half: through float. bfloat: by a template, so that a program may have its own beside it.
#define SMELT_OWN_BFLOAT template <class B, smelt::when_t<smelt::same<B, bfloat>, int> = 0>
#define SMELT_FLOAT1(name, expression) SMELT_FLOAT1_ALONE(name, expression) SMELT_MAP1(name)
#define SMELT_FLOAT1_ALONE(name, expression) \
  SMELT_FUNCTION float name(float x) { return expression; } \
  SMELT_FUNCTION half name(half x) { return half(name(float(x))); } \
  SMELT_OWN_BFLOAT SMELT_FUNCTION B name(B x) { return B(name(float(x))); }
#define SMELT_LIBRARY1(name) SMELT_FLOAT1(name, SMELT_C(name##f)(x))
SMELT_LIBRARY1(acos) SMELT_LIBRARY1(acosh) SMELT_LIBRARY1(asin) SMELT_LIBRARY1(asinh) SMELT_LIBRARY1(atan) SMELT_LIBRARY1(atanh)
SMELT_LIBRARY1(ceil) SMELT_LIBRARY1(cos) SMELT_LIBRARY1(cosh) SMELT_LIBRARY1(exp) SMELT_LIBRARY1(exp2) SMELT_LIBRARY1(fabs)
SMELT_LIBRARY1(floor) SMELT_LIBRARY1(log) SMELT_LIBRARY1(log2) SMELT_LIBRARY1(log10) SMELT_LIBRARY1(rint) SMELT_LIBRARY1(round)
SMELT_LIBRARY1(sin) SMELT_LIBRARY1(sinh) SMELT_LIBRARY1(sqrt) SMELT_LIBRARY1(tan) SMELT_LIBRARY1(tanh) SMELT_LIBRARY1(trunc)
SMELT_FLOAT1_ALONE(abs, SMELT_C(fabsf)(x))
SMELT_FLOAT1(rsqrt, 1.0f / SMELT_C(sqrtf)(x))
SMELT_FLOAT1(exp10, SMELT_C(powf)(10.0f, x))
SMELT_FLOAT1(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == x ? x : 0.0f)
SMELT_FLOAT1(saturate, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
SMELT_FLOAT1(fract, SMELT_C(fminf)(x - SMELT_C(floorf)(x), 0x1.fffffep-1f))
SMELT_FLOAT1(degrees, x * 57.2957795130823208768f)
SMELT_FLOAT1(radians, x * 0.0174532925199432957692f)
SMELT_FUNCTION float __half_turns(float x, int& quarter) {
  float r = x - 2.0f * SMELT_C(rintf)(x * 0.5f);  // exact, within [-1, 1]
  float q = SMELT_C(rintf)(r * 2.0f);
  quarter = int(q) & 3;
  return (r - q * 0.5f) * M_PI_F;
}
SMELT_FUNCTION float __sinpi(float x) {
  int q;
  float r = __half_turns(x, q), s = (q & 1) ? SMELT_C(cosf)(r) : SMELT_C(sinf)(r);
  return (q & 2) ? -s : s;
}
SMELT_FLOAT1(sinpi, __sinpi(x))
SMELT_FUNCTION float __cospi(float x) {
  int q;
  float r = __half_turns(x, q), s = (q & 1) ? -SMELT_C(sinf)(r) : SMELT_C(cosf)(r);
  return (q & 2) ? -s : s;
}
SMELT_FLOAT1(cospi, __cospi(x))
SMELT_FLOAT1(tanpi, __sinpi(x) / __cospi(x))
#undef SMELT_LIBRARY1
#undef SMELT_FLOAT1
#undef SMELT_FLOAT1_ALONE

#define SMELT_FLOAT2(name, expression) \
  SMELT_FUNCTION float name(float x, float y) { return expression; } \
  SMELT_FUNCTION half name(half x, half y) { return half(name(float(x), float(y))); } \
  SMELT_OWN_BFLOAT SMELT_FUNCTION B name(B x, B y) { return B(name(float(x), float(y))); } \
  SMELT_MAP2(name)
#ifdef SMELT_CUDA
SMELT_FLOAT2(fmax, ::fmaxf(x, y))
SMELT_FLOAT2(fmin, ::fminf(x, y))
#else
SMELT_FLOAT2(fmax, (x < y || x != x) ? y : x)
SMELT_FLOAT2(fmin, (y < x || x != x) ? y : x)
#endif
SMELT_FLOAT2(pow, SMELT_C(powf)(x, y))
SMELT_FLOAT2(powr, SMELT_C(powf)(x, y))
SMELT_FLOAT2(atan2, SMELT_C(atan2f)(x, y))
SMELT_FLOAT2(fmod, SMELT_C(fmodf)(x, y))
SMELT_FLOAT2(copysign, SMELT_C(copysignf)(x, y))
SMELT_FLOAT2(fdim, x > y ? x - y : x == x && y == y ? 0.0f : x + y)
SMELT_FLOAT2(divide, x / y)
SMELT_FLOAT2(nextafter, SMELT_C(nextafterf)(x, y))
SMELT_FLOAT2(step, y < x ? 0.0f : 1.0f)
#undef SMELT_FLOAT2
SMELT_FUNCTION float fma(float a, float b, float c) { return SMELT_C(fmaf)(a, b, c); }
SMELT_FUNCTION half fma(half a, half b, half c) { return half(SMELT_C(fmaf)(float(a), float(b), float(c))); }
SMELT_OWN_BFLOAT SMELT_FUNCTION B fma(B a, B b, B c) { return B(SMELT_C(fmaf)(float(a), float(b), float(c))); }
SMELT_MAP3(fma)
SMELT_FUNCTION float mix(float x, float y, float a) { return x + (y - x) * a; }
SMELT_FUNCTION half mix(half x, half y, half a) { return x + (y - x) * a; }
SMELT_MAP3(mix)
SMELT_FUNCTION float smoothstep(float e0, float e1, float x) { float t = saturate((x - e0) / (e1 - e0)); return t * t * (3.0f - 2.0f * t); }
SMELT_FUNCTION half smoothstep(half a, half b, half x) { return half(smoothstep(float(a), float(b), float(x))); }
SMELT_MAP3(smoothstep)

SMELT_OWN_BFLOAT SMELT_FUNCTION B mix(B x, B y, B a) { return B(mix(float(x), float(y), float(a))); }
SMELT_OWN_BFLOAT SMELT_FUNCTION B smoothstep(B a, B b, B x) { return B(smoothstep(float(a), float(b), float(x))); }

// NaN gives way to numbers.
SMELT_OWN_BFLOAT SMELT_FUNCTION B max(B x, B y) { return fmax(x, y); }
SMELT_OWN_BFLOAT SMELT_FUNCTION B min(B x, B y) { return fmin(x, y); }
SMELT_OWN_BFLOAT SMELT_FUNCTION B clamp(B x, B low, B high) { return fmin(fmax(x, low), high); }
#define SMELT_FLOAT_ORDER(T) \
  SMELT_FUNCTION T max(T x, T y) { return fmax(x, y); } \
  SMELT_FUNCTION T min(T x, T y) { return fmin(x, y); } \
  SMELT_FUNCTION T clamp(T x, T low, T high) { return fmin(fmax(x, low), high); }
SMELT_FLOAT_ORDER(float) SMELT_FLOAT_ORDER(half)
#undef SMELT_FLOAT_ORDER
#define SMELT_INTEGER(T, U, S, BITS) \
  SMELT_FUNCTION constexpr T max(T x, T y) { return x < y ? y : x; } \
  SMELT_FUNCTION constexpr T min(T x, T y) { return y < x ? y : x; } \
  SMELT_FUNCTION constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); } \
  SMELT_FUNCTION constexpr T abs(T x) { return x < T(0) ? T(U(0) - U(x)) : x; } \
  SMELT_FUNCTION constexpr T absdiff(T x, T y) { return T(x < y ? U(y) - U(x) : U(x) - U(y)); } \
  SMELT_FUNCTION T popcount(T x) { T n = 0; for (U u = U(x); u; u = U(u & U(u - 1))) n++; return n; } \
  SMELT_FUNCTION T clz(T x) { U u = U(x); T n = 0; for (U top = U(U(1) << (BITS - 1)); top && !(u & top); top = U(top >> 1)) n++; return n; } \
  SMELT_FUNCTION T ctz(T x) { U u = U(x); T n = 0; for (U low = 1; low && !(u & low); low = U(low << 1)) n++; return n; } \
  SMELT_FUNCTION T reverse_bits(T x) { U u = U(x), r = 0; for (int i = 0; i < BITS; i++) { r = U(U(r << 1) | (u & 1)); u = U(u >> 1); } return T(r); } \
  SMELT_FUNCTION T rotate(T x, T n) { uint k = uint(n) & (BITS - 1u); U u = U(x); return T(k ? U(u << k) | U(u >> (BITS - k)) : u); } \
  SMELT_FUNCTION T addsat(T x, T y) { T r; \
    if (!__add_wraps(x, y, r)) return r; \
    return (S && y < T(0)) ? numeric_limits<T>::lowest() : numeric_limits<T>::max(); } \
  SMELT_FUNCTION T subsat(T x, T y) { T r; \
    if (!__subtract_wraps(x, y, r)) return r; \
    return (S && y < T(0)) ? numeric_limits<T>::max() : numeric_limits<T>::lowest(); } \
  SMELT_FUNCTION T hadd(T x, T y) { return T((x >> 1) + (y >> 1) + (x & y & 1)); } \
  SMELT_FUNCTION T rhadd(T x, T y) { return T((x >> 1) + (y >> 1) + ((x | y) & 1)); } \
  SMELT_FUNCTION T madhi(T x, T y, T z) { return T(U(mulhi(x, y)) + U(z)); } \
  SMELT_FUNCTION T extract_bits(T x, uint offset, uint count) { \
    if (!count) return T(0); \
    return T(T(U(x) << (BITS - offset - count)) >> (BITS - count)); } \
  SMELT_FUNCTION T insert_bits(T base, T insert, uint offset, uint count) { \
    if (!count) return base; \
    U mask = U((count >= BITS ? U(-1) : U((U(1) << count) - 1)) << offset); \
    return T((U(base) & U(~mask)) | (U(U(insert) << offset) & mask)); }

// Whether the exact sum or difference does not fit; the wrapped one goes to `r`.
template <class T> SMELT_FUNCTION bool __add_wraps(T x, T y, T& r) {
  typedef make_unsigned_t<T> U;
  r = T(U(x) + U(y));
  return is_signed_v<T> ? ((x < T(0)) == (y < T(0)) && (r < T(0)) != (x < T(0))) : r < x;
}
template <class T> SMELT_FUNCTION bool __subtract_wraps(T x, T y, T& r) {
  typedef make_unsigned_t<T> U;
  r = T(U(x) - U(y));
  return is_signed_v<T> ? ((x < T(0)) != (y < T(0)) && (r < T(0)) != (x < T(0))) : x < y;
}
#define SMELT_MULHI(T, WIDE, BITS) SMELT_FUNCTION T mulhi(T x, T y) { return T((WIDE(x) * WIDE(y)) >> BITS); }
SMELT_MULHI(char, int, 8) SMELT_MULHI(uchar, uint, 8) SMELT_MULHI(short, int, 16) SMELT_MULHI(ushort, uint, 16)
SMELT_MULHI(int, long, 32) SMELT_MULHI(uint, ulong, 32)
#undef SMELT_MULHI
SMELT_FUNCTION ulong mulhi(ulong x, ulong y) {
  ulong a = x >> 32, b = uint(x), c = y >> 32, d = uint(y);
  ulong low = b * d, left = a * d + (low >> 32), right = b * c + uint(left);
  return a * c + (left >> 32) + (right >> 32);
}
SMELT_FUNCTION long mulhi(long x, long y) {
  ulong high = mulhi(ulong(x), ulong(y));
  return long(high - (x < 0 ? ulong(y) : 0ul) - (y < 0 ? ulong(x) : 0ul));
}
SMELT_INTEGER(char, uchar, true, 8) SMELT_INTEGER(uchar, uchar, false, 8) SMELT_INTEGER(short, ushort, true, 16)
SMELT_INTEGER(ushort, ushort, false, 16) SMELT_INTEGER(int, uint, true, 32) SMELT_INTEGER(uint, uint, false, 32)
SMELT_INTEGER(long, ulong, true, 64) SMELT_INTEGER(ulong, ulong, false, 64)
#undef SMELT_INTEGER
SMELT_FUNCTION int mul24(int x, int y) { return int(uint(x) * uint(y)); }
SMELT_FUNCTION uint mul24(uint x, uint y) { return x * y; }
SMELT_FUNCTION int mad24(int x, int y, int z) { return int(uint(x) * uint(y) + uint(z)); }
SMELT_FUNCTION uint mad24(uint x, uint y, uint z) { return x * y + z; }

// Behind all overloads of scalars: the names that a template calls on those are bound where it stands.
SMELT_MAP1(abs) SMELT_MAP2(max) SMELT_MAP2(min) SMELT_MAP3(clamp)
SMELT_MAP2(absdiff) SMELT_MAP1(popcount) SMELT_MAP1(clz) SMELT_MAP1(ctz) SMELT_MAP1(reverse_bits) SMELT_MAP2(rotate)
SMELT_MAP2(addsat) SMELT_MAP2(subsat) SMELT_MAP2(hadd) SMELT_MAP2(rhadd) SMELT_MAP2(mulhi) SMELT_MAP3(madhi)
template <class T> SMELT_FUNCTION T max3(T x, T y, T z) { return max(x, max(y, z)); }
template <class T> SMELT_FUNCTION T min3(T x, T y, T z) { return min(x, min(y, z)); }
template <class T> SMELT_FUNCTION T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }
template <class T> SMELT_FUNCTION T fmax3(T x, T y, T z) { return fmax(x, fmax(y, z)); }
template <class T> SMELT_FUNCTION T fmin3(T x, T y, T z) { return fmin(x, fmin(y, z)); }

// Tests. By the bits, which no compiler flag assumes away.
#define SMELT_TEST(name, expression) \
  SMELT_FUNCTION bool name(float x) { uint u = smelt::bits<uint>(x), m = u & 0x7fffffffu; (void)u; (void)m; return expression; } \
  SMELT_FUNCTION bool name(half x) { return name(float(x)); } \
  SMELT_OWN_BFLOAT SMELT_FUNCTION bool name(B x) { return name(float(x)); } \
  template <class A, class V = smelt::vector_of<A>> SMELT_FUNCTION vec<bool, smelt::Parts<V>::count> name(const A& a) { \
    V x(a); \
    vec<bool, smelt::Parts<V>::count> r; \
    for (int i = 0; i < smelt::Parts<V>::count; i++) r.data[i] = name(x.data[i]); \
    return r; \
  }
SMELT_TEST(isnan, m > 0x7f800000u)
SMELT_TEST(isinf, m == 0x7f800000u)
SMELT_TEST(isfinite, m < 0x7f800000u)
SMELT_TEST(isnormal, m < 0x7f800000u && m >= 0x00800000u)
SMELT_TEST(signbit, (u >> 31) != 0u)
#undef SMELT_TEST
SMELT_FUNCTION bool isunordered(float a, float b) { return a != a || b != b; }
// double, which Metal lacks: for texts of GPUs that have it. By templates, so that no other call becomes ambiguous.
#define SMELT_OWN_DOUBLE template <class D, smelt::when_t<smelt::same<D, double>, int> = 0>
#define SMELT_DOUBLE1(name) SMELT_OWN_DOUBLE SMELT_FUNCTION D name(D x) { return SMELT_C(name)(x); }
SMELT_DOUBLE1(ceil) SMELT_DOUBLE1(fabs) SMELT_DOUBLE1(floor) SMELT_DOUBLE1(rint) SMELT_DOUBLE1(round) SMELT_DOUBLE1(trunc)
SMELT_DOUBLE1(sqrt) SMELT_DOUBLE1(exp) SMELT_DOUBLE1(log) SMELT_DOUBLE1(sin) SMELT_DOUBLE1(cos)
#define SMELT_DOUBLE2(name) SMELT_OWN_DOUBLE SMELT_FUNCTION D name(D x, D y) { return SMELT_C(name)(x, y); }
SMELT_DOUBLE2(fmax) SMELT_DOUBLE2(fmin) SMELT_DOUBLE2(fmod) SMELT_DOUBLE2(copysign) SMELT_DOUBLE2(pow) SMELT_DOUBLE2(atan2)
SMELT_OWN_DOUBLE SMELT_FUNCTION D fma(D a, D b, D c) { return SMELT_C(fma)(a, b, c); }
SMELT_OWN_DOUBLE SMELT_FUNCTION bool isnan(D x) { return x != x; }
SMELT_OWN_DOUBLE SMELT_FUNCTION bool isinf(D x) { return (smelt::bits<ulong>(x) << 1) == 0xffe0000000000000ul; }
SMELT_OWN_DOUBLE SMELT_FUNCTION bool isfinite(D x) { return (smelt::bits<ulong>(x) << 1) < 0xffe0000000000000ul; }
#undef SMELT_DOUBLE2
#undef SMELT_DOUBLE1
template <class A, class B> SMELT_FUNCTION auto isordered(const A& a, const B& b) { return !isnan(a) && !isnan(b); }
template <class A, class B> SMELT_FUNCTION auto isunordered(const A& a, const B& b) { return isnan(a) || isnan(b); }

template <class T, smelt::when_t<smelt::scalar<T>, int> = 0> SMELT_FUNCTION T select(T a, T b, bool c) { return c ? b : a; }
template <class A, class B, class C, class R = smelt::common_vector<A, B>, class K = smelt::vector_of<C>> SMELT_FUNCTION R select(const A& a, const B& b, const C& c) {
  R x(a), y(b);
  K k(c);
  for (int i = 0; i < smelt::Parts<R>::count; i++) if (k.data[i]) x.data[i] = y.data[i];
  return x;
}
template <class A, class B, class R = smelt::common_vector<A, B>> SMELT_FUNCTION R select(const A& a, const B& b, bool c) { return c ? R(b) : R(a); }
SMELT_FUNCTION bool any(bool b) { return b; }
SMELT_FUNCTION bool all(bool b) { return b; }
template <class A, class V = smelt::vector_of<A>> SMELT_FUNCTION bool any(const A& a) { V v(a); bool r = false; for (int i = 0; i < smelt::Parts<V>::count; i++) r = r || bool(v.data[i]); return r; }
template <class A, class V = smelt::vector_of<A>> SMELT_FUNCTION bool all(const A& a) { V v(a); bool r = true; for (int i = 0; i < smelt::Parts<V>::count; i++) r = r && bool(v.data[i]); return r; }

template <class A, class B, class R = smelt::common_vector<A, B>> SMELT_FUNCTION typename smelt::Parts<R>::element dot(const A& a, const B& b) {
  R x(a), y(b);
  auto r = x.data[0] * y.data[0];
  for (int i = 1; i < smelt::Parts<R>::count; i++) r = r + x.data[i] * y.data[i];
  return typename smelt::Parts<R>::element(r);
}
template <class A, class R = smelt::vector_of<A>> SMELT_FUNCTION auto length_squared(const A& a) { return dot(a, a); }
template <class A, class R = smelt::vector_of<A>> SMELT_FUNCTION auto length(const A& a) { return sqrt(dot(a, a)); }
template <class A, class B, class R = smelt::common_vector<A, B>> SMELT_FUNCTION auto distance(const A& a, const B& b) { return length(R(a) - R(b)); }
template <class A, class B, class R = smelt::common_vector<A, B>> SMELT_FUNCTION auto distance_squared(const A& a, const B& b) { return length_squared(R(a) - R(b)); }
template <class A, class R = smelt::vector_of<A>> SMELT_FUNCTION R normalize(const A& a) { return R(a) * rsqrt(dot(a, a)); }
template <class T> SMELT_FUNCTION vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class T, int N> SMELT_FUNCTION vec<T, N> reflect(vec<T, N> i, vec<T, N> n) { return i - n * (T(2) * dot(n, i)); }

// Functions with a second result or an integer argument.
#define SMELT_WITH_RESULT(T) \
  SMELT_FUNCTION T ldexp(T x, int e) { return T(SMELT_C(ldexpf)(float(x), e)); } \
  SMELT_FUNCTION T frexp(T x, int& e) { return T(SMELT_C(frexpf)(float(x), &e)); } \
  SMELT_FUNCTION int ilogb(T x) { return SMELT_C(ilogbf)(float(x)); } \
  SMELT_FUNCTION T modf(T x, T& whole) { float w = SMELT_C(truncf)(float(x)); whole = T(w); return T(isinf(float(x)) ? SMELT_C(copysignf)(0.0f, float(x)) : SMELT_C(copysignf)(float(x) - w, float(x))); } \
  SMELT_FUNCTION T sincos(T x, T& c) { c = cos(x); return sin(x); }
SMELT_WITH_RESULT(float) SMELT_WITH_RESULT(half)
#undef SMELT_WITH_RESULT
template <class T, int N> SMELT_FUNCTION vec<T, N> ldexp(vec<T, N> x, vec<int, N> e) { for (int i = 0; i < N; i++) x.data[i] = ldexp(x.data[i], e.data[i]); return x; }
template <class T, int N> SMELT_FUNCTION vec<T, N> frexp(vec<T, N> x, vec<int, N>& e) { for (int i = 0; i < N; i++) x.data[i] = frexp(x.data[i], e.data[i]); return x; }
template <class T, int N> SMELT_FUNCTION vec<T, N> sincos(vec<T, N> x, vec<T, N>& c) { for (int i = 0; i < N; i++) x.data[i] = sincos(x.data[i], c.data[i]); return x; }

#define SMELT_SAME_FUNCTIONS SMELT_SAME_BUT_FAST using metal::exp2; using metal::divide;
#define SMELT_SAME_BUT_FAST \
  using metal::acos; using metal::acosh; using metal::asin; using metal::asinh; using metal::atan; using metal::atan2; using metal::atanh; \
  using metal::ceil; using metal::copysign; using metal::cos; using metal::cosh; using metal::cospi; using metal::exp; \
  using metal::exp10; using metal::fabs; using metal::fdim; using metal::floor; using metal::fma; using metal::fmax; \
  using metal::fmin; using metal::fmod; using metal::fract; using metal::frexp; using metal::isfinite; using metal::isinf; using metal::isnan; \
  using metal::isnormal; using metal::ldexp; using metal::log; using metal::log2; using metal::log10; using metal::max; using metal::min; \
  using metal::clamp; using metal::mix; using metal::modf; using metal::pow; using metal::powr; using metal::rint; using metal::round; \
  using metal::rsqrt; using metal::saturate; using metal::sign; using metal::sin; using metal::sincos; using metal::sinh; using metal::sinpi; \
  using metal::sqrt; using metal::tan; using metal::tanh; using metal::tanpi; using metal::trunc; using metal::abs; using metal::length; \
  using metal::distance; using metal::normalize; using metal::dot; using metal::nextafter; using metal::smoothstep; using metal::step;
#ifdef SMELT_CUDA
namespace fast {
SMELT_SAME_BUT_FAST
SMELT_FUNCTION float exp2(float x) {  // one instruction, which takes subnormal numbers for 0
  float found;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(x));
  return found;
}
template <class A, class B> SMELT_FUNCTION auto divide(const A& x, const B& y) { return metal::divide(x, y); }
SMELT_FUNCTION float divide(float x, float y) {  // within 2 ulp, without a branch for the rare cases
  float found;
  asm("div.full.f32 %0, %1, %2;" : "=f"(found) : "f"(x), "f"(y));
  return found;
}
}  // namespace fast
#else
namespace fast { SMELT_SAME_FUNCTIONS }
#endif
namespace precise { SMELT_SAME_FUNCTIONS }

}  // namespace metal
