// Vectors of two to four components, their swizzles, packed vectors, and operators on all of them.
#pragma once

namespace metal {
template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;
}  // namespace metal

namespace smelt {

/// Some components of a vector, by number: shares the vector's memory.
template <class T, int N, int... I> struct Swizzle {
  T data[N];
  Swizzle() = default;
  Swizzle(const Swizzle&) = default;
  typedef metal::vec<T, int(sizeof...(I))> Vector;
  SMELT_FUNCTION constexpr operator Vector() const { return Vector(data[I]...); }
  SMELT_FUNCTION T operator[](int i) const { constexpr int of[] = {I...}; return data[of[i]]; }
  SMELT_FUNCTION Swizzle& operator=(Vector v) { int k = 0; ((data[I] = v.data[k++]), ...); return *this; }
  SMELT_FUNCTION Swizzle& operator=(const Swizzle& s) { return *this = Vector(s); }
};

struct Copy {};
struct Fill {};

/// Components of a type: `count` is 1 for scalars. `is_vector` for anything that reads as a vec.
template <class V> struct Parts { static constexpr int count = 1; static constexpr bool is_vector = false; typedef V element; };
template <class T, int N> struct Parts<metal::vec<T, N>> { static constexpr int count = N; static constexpr bool is_vector = true; typedef T element; };
template <class T, int N> struct Parts<metal::packed_vec<T, N>> : Parts<metal::vec<T, N>> {};
template <class T, int N, int... I> struct Parts<Swizzle<T, N, I...>> : Parts<metal::vec<T, int(sizeof...(I))>> {};

template <class V> constexpr bool scalar = native<V> || same<V, half> || same<V, bfloat>;
template <class V, bool = Parts<V>::is_vector> struct VectorOf {};
template <class V> struct VectorOf<V, true> { typedef metal::vec<typename Parts<V>::element, Parts<V>::count> type; };
/// The vec that a vector, swizzle or packed vector stands for; no type for scalars.
template <class V> using vector_of = typename VectorOf<V>::type;
/// A vector of its own, in place of some components of one.
template <class V> SMELT_FUNCTION constexpr vector_of<V> whole(const V& v) { return vector_of<V>(v); }

template <class A, class B, bool = Parts<A>::is_vector, bool = Parts<B>::is_vector> struct CommonVector {};
template <class A, class B> struct CommonVector<A, B, true, false> : when<scalar<B>, vector_of<A>> {};
template <class A, class B> struct CommonVector<A, B, false, true> : when<scalar<A>, vector_of<B>> {};
template <class A, class B> struct CommonVector<A, B, true, true> : when<same<vector_of<A>, vector_of<B>>, vector_of<A>> {};
/// The vec of a vector with a vector of the same type, or with a scalar; no type for two scalars.
template <class A, class B> using common_vector = typename CommonVector<A, B>::type;

}  // namespace smelt

#define SMELT_SWIZZLE2(a, i, b, j) smelt::Swizzle<T, SMELT_N, i, j> a##b;
#define SMELT_SWIZZLE3(a, i, b, j, c, k) smelt::Swizzle<T, SMELT_N, i, j, k> a##b##c;
#define SMELT_SWIZZLE4(a, i, b, j, c, k, d, l) smelt::Swizzle<T, SMELT_N, i, j, k, l> a##b##c##d;
#define SMELT_EACH2_A(M, x, y, z, w, ...) M(__VA_ARGS__, x, 0) M(__VA_ARGS__, y, 1)
#define SMELT_EACH3_A(M, x, y, z, w, ...) SMELT_EACH2_A(M, x, y, z, w, __VA_ARGS__) M(__VA_ARGS__, z, 2)
#define SMELT_EACH4_A(M, x, y, z, w, ...) SMELT_EACH3_A(M, x, y, z, w, __VA_ARGS__) M(__VA_ARGS__, w, 3)
#define SMELT_EACH2_B(E, M, x, y, z, w, ...) E(M, x, y, z, w, __VA_ARGS__, x, 0) E(M, x, y, z, w, __VA_ARGS__, y, 1)
#define SMELT_EACH3_B(E, M, x, y, z, w, ...) SMELT_EACH2_B(E, M, x, y, z, w, __VA_ARGS__) E(M, x, y, z, w, __VA_ARGS__, z, 2)
#define SMELT_EACH4_B(E, M, x, y, z, w, ...) SMELT_EACH3_B(E, M, x, y, z, w, __VA_ARGS__) E(M, x, y, z, w, __VA_ARGS__, w, 3)
#define SMELT_EACH2_C(F, E, M, x, y, z, w, ...) F(E, M, x, y, z, w, __VA_ARGS__, x, 0) F(E, M, x, y, z, w, __VA_ARGS__, y, 1)
#define SMELT_EACH3_C(F, E, M, x, y, z, w, ...) SMELT_EACH2_C(F, E, M, x, y, z, w, __VA_ARGS__) F(E, M, x, y, z, w, __VA_ARGS__, z, 2)
#define SMELT_EACH4_C(F, E, M, x, y, z, w, ...) SMELT_EACH3_C(F, E, M, x, y, z, w, __VA_ARGS__) F(E, M, x, y, z, w, __VA_ARGS__, w, 3)
#define SMELT_FROM(A, B, C, x, y, z, w, a, i) \
  A(SMELT_SWIZZLE2, x, y, z, w, a, i) B(A, SMELT_SWIZZLE3, x, y, z, w, a, i) C(B, A, SMELT_SWIZZLE4, x, y, z, w, a, i)
#define SMELT_FROM2(x, y, z, w, a, i) SMELT_FROM(SMELT_EACH2_A, SMELT_EACH2_B, SMELT_EACH2_C, x, y, z, w, a, i)
#define SMELT_FROM3(x, y, z, w, a, i) SMELT_FROM(SMELT_EACH3_A, SMELT_EACH3_B, SMELT_EACH3_C, x, y, z, w, a, i)
#define SMELT_FROM4(x, y, z, w, a, i) SMELT_FROM(SMELT_EACH4_A, SMELT_EACH4_B, SMELT_EACH4_C, x, y, z, w, a, i)
// Half of what a short kernel takes to compile are these; who knows that its text has none does without.
#ifdef SMELT_WITHOUT_SWIZZLES
#define SMELT_SWIZZLES2(x, y, z, w)
#define SMELT_SWIZZLES3(x, y, z, w)
#define SMELT_SWIZZLES4(x, y, z, w)
#else
#define SMELT_SWIZZLES2(x, y, z, w) SMELT_FROM2(x, y, z, w, x, 0) SMELT_FROM2(x, y, z, w, y, 1)
#define SMELT_SWIZZLES3(x, y, z, w) SMELT_FROM3(x, y, z, w, x, 0) SMELT_FROM3(x, y, z, w, y, 1) SMELT_FROM3(x, y, z, w, z, 2)
#define SMELT_SWIZZLES4(x, y, z, w) \
  SMELT_FROM4(x, y, z, w, x, 0) SMELT_FROM4(x, y, z, w, y, 1) SMELT_FROM4(x, y, z, w, z, 2) SMELT_FROM4(x, y, z, w, w, 3)
#endif

#ifdef SMELT_CUDA
namespace smelt {
// As CUDA's own vectors, which are loaded and stored in one piece.
template <class V> SMELT_FUNCTION void copy(V* to, const V* from) {
  if constexpr (sizeof(V) % 16 == 0) {
    for (int i = 0; i < int(sizeof(V) / 16); i++) reinterpret_cast<::uint4*>(to)[i] = reinterpret_cast<const ::uint4*>(from)[i];
  } else if constexpr (sizeof(V) == 8) *reinterpret_cast<::uint2*>(to) = *reinterpret_cast<const ::uint2*>(from);
  else if constexpr (sizeof(V) == 4) *reinterpret_cast<uint*>(to) = *reinterpret_cast<const uint*>(from);
  else *reinterpret_cast<ushort*>(to) = *reinterpret_cast<const ushort*>(from);
}
}  // namespace smelt
#define SMELT_COPY() \
  SMELT_FUNCTION vec(const vec& v) { smelt::copy(this, &v); } \
  SMELT_FUNCTION vec& operator=(const vec& v) { smelt::copy(this, &v); return *this; }
#else
#define SMELT_COPY() \
  SMELT_FUNCTION constexpr vec(const vec& v) : vec(smelt::Copy(), v.data) {} \
  SMELT_FUNCTION constexpr vec& operator=(const vec& v) { for (int i = 0; i < SMELT_N; i++) data[i] = v.data[i]; return *this; }
#endif

// The members that vectors of every length have.
#define SMELT_VECTOR() \
  vec() = default; \
  SMELT_COPY() \
  template <class U, smelt::when_t<smelt::scalar<U>, int> = 0> SMELT_FUNCTION constexpr vec(U s) : vec(smelt::Fill(), T(s)) {} \
  template <class U, smelt::when_t<!smelt::same<U, T>, int> = 0> \
  SMELT_FUNCTION constexpr explicit vec(vec<U, SMELT_N> v) : vec(smelt::Copy(), v.data) {} \
  template <class U, int M, int... I, smelt::when_t<sizeof...(I) == SMELT_N && !smelt::same<U, T>, int> = 0> \
  SMELT_FUNCTION constexpr explicit vec(const smelt::Swizzle<U, M, I...>& v) : vec(vec<U, SMELT_N>(v)) {} \
  SMELT_FUNCTION constexpr vec(const packed_vec<T, SMELT_N>& v) : vec(smelt::Copy(), v.data) {} \
  template <class A, class B, class... R, \
            smelt::when_t<(smelt::Parts<A>::is_vector || smelt::Parts<B>::is_vector || (false || ... || smelt::Parts<R>::is_vector)) && \
                              smelt::Parts<A>::count + smelt::Parts<B>::count + (0 + ... + smelt::Parts<R>::count) == SMELT_N, int> = 0> \
  SMELT_FUNCTION vec(const A& a, const B& b, const R&... r) { int i = 0; put(i, a); put(i, b); (put(i, r), ...); } \
  template <class A> SMELT_FUNCTION void put(int& i, const A& a) { \
    if constexpr (smelt::Parts<A>::is_vector) { smelt::vector_of<A> v(a); for (int k = 0; k < smelt::Parts<A>::count; k++) data[i++] = T(v.data[k]); } \
    else data[i++] = T(a); \
  } \
  SMELT_FUNCTION constexpr T& operator[](int i) { return data[i]; } \
  SMELT_FUNCTION constexpr const T& operator[](int i) const { return data[i]; }

namespace metal {

#define SMELT_N 2
template <class T> struct alignas(sizeof(T) * 2) vec<T, 2> {
  union {
    T data[2];
    struct { T x, y; };
    struct { T r, g; };
    SMELT_SWIZZLES2(x, y, _, _)
    SMELT_SWIZZLES2(r, g, _, _)
  };
  SMELT_VECTOR()
  template <class U> SMELT_FUNCTION constexpr vec(smelt::Copy, const U* p) : data{T(p[0]), T(p[1])} {}
  SMELT_FUNCTION constexpr vec(smelt::Fill, T s) : data{s, s} {}
  template <class A, class B, smelt::when_t<smelt::scalar<A> && smelt::scalar<B>, int> = 0>
  SMELT_FUNCTION constexpr vec(A a, B b) : data{T(a), T(b)} {}
};
#undef SMELT_N
#define SMELT_N 3
template <class T> struct alignas(sizeof(T) * 4) vec<T, 3> {
  union {
    T data[3];
    struct { T x, y, z; };
    struct { T r, g, b; };
    SMELT_SWIZZLES3(x, y, z, _)
    SMELT_SWIZZLES3(r, g, b, _)
  };
  SMELT_VECTOR()
  template <class U> SMELT_FUNCTION constexpr vec(smelt::Copy, const U* p) : data{T(p[0]), T(p[1]), T(p[2])} {}
  SMELT_FUNCTION constexpr vec(smelt::Fill, T s) : data{s, s, s} {}
  template <class A, class B, class C, smelt::when_t<smelt::scalar<A> && smelt::scalar<B> && smelt::scalar<C>, int> = 0>
  SMELT_FUNCTION constexpr vec(A a, B b, C c) : data{T(a), T(b), T(c)} {}
};
#undef SMELT_N
#define SMELT_N 4
template <class T> struct alignas(sizeof(T) * 4) vec<T, 4> {
  union {
    T data[4];
    struct { T x, y, z, w; };
    struct { T r, g, b, a; };
    SMELT_SWIZZLES4(x, y, z, w)
    SMELT_SWIZZLES4(r, g, b, a)
  };
  SMELT_VECTOR()
  template <class U> SMELT_FUNCTION constexpr vec(smelt::Copy, const U* p) : data{T(p[0]), T(p[1]), T(p[2]), T(p[3])} {}
  SMELT_FUNCTION constexpr vec(smelt::Fill, T s) : data{s, s, s, s} {}
  template <class A, class B, class C, class D, smelt::when_t<smelt::scalar<A> && smelt::scalar<B> && smelt::scalar<C> && smelt::scalar<D>, int> = 0>
  SMELT_FUNCTION constexpr vec(A a, B b, C c, D d) : data{T(a), T(b), T(c), T(d)} {}
};
#undef SMELT_N

// Without alignment beyond its components'.
#define SMELT_COMMA ,
#define SMELT_PACKED(N, SWIZZLES, COLORS, ...) \
  template <class T> struct packed_vec<T, N> { \
    union { T data[N]; struct { T __VA_ARGS__; }; SWIZZLES COLORS }; \
    packed_vec() = default; \
    SMELT_FUNCTION constexpr packed_vec(const packed_vec& v) : data{} { for (int i = 0; i < N; i++) data[i] = v.data[i]; } \
    SMELT_FUNCTION constexpr packed_vec& operator=(const packed_vec& v) { for (int i = 0; i < N; i++) data[i] = v.data[i]; return *this; } \
    template <class U, smelt::when_t<smelt::scalar<U>, int> = 0> \
    SMELT_FUNCTION constexpr packed_vec(U s) : data{} { for (int i = 0; i < N; i++) data[i] = T(s); } \
    SMELT_FUNCTION constexpr packed_vec(const vec<T, N>& v) : data{} { for (int i = 0; i < N; i++) data[i] = v.data[i]; } \
    template <class... A, smelt::when_t<sizeof...(A) == N && (true && ... && smelt::scalar<A>), int> = 0> \
    SMELT_FUNCTION constexpr packed_vec(A... a) : data{T(a)...} {} \
    SMELT_FUNCTION constexpr T& operator[](int i) { return data[i]; } \
    SMELT_FUNCTION constexpr const T& operator[](int i) const { return data[i]; } \
  };
#define SMELT_N 2
SMELT_PACKED(2, struct { T r SMELT_COMMA g; }; SMELT_SWIZZLES2(x, y, _, _), SMELT_SWIZZLES2(r, g, _, _), x, y)
#undef SMELT_N
#define SMELT_N 3
SMELT_PACKED(3, struct { T r SMELT_COMMA g SMELT_COMMA b; }; SMELT_SWIZZLES3(x, y, z, _), SMELT_SWIZZLES3(r, g, b, _), x, y, z)
#undef SMELT_N
#define SMELT_N 4
SMELT_PACKED(4, struct { T r SMELT_COMMA g SMELT_COMMA b SMELT_COMMA a; }; SMELT_SWIZZLES4(x, y, z, w), SMELT_SWIZZLES4(r, g, b, a), x, y, z, w)
#undef SMELT_N
#undef SMELT_COMMA
#undef SMELT_PACKED

template <class T> struct is_vector : bool_constant<smelt::Parts<T>::is_vector> {};
template <class T> constexpr bool is_vector_v = is_vector<T>::value;
template <class T> struct make_scalar { typedef typename smelt::Parts<T>::element type; };
template <class T, int N> struct make_vector { typedef vec<T, N> type; };
template <class T, int N> using make_vector_t = vec<T, N>;
template <class T> using make_scalar_t = typename make_scalar<T>::type;

// Operators: a vector with a vector, swizzle, packed vector or scalar.
#define SMELT_OPERATOR(op) \
  template <class A, class B, class R = smelt::common_vector<A, B>> SMELT_FUNCTION R operator op(const A& a, const B& b) { \
    R x(a), y(b), r; \
    for (int i = 0; i < smelt::Parts<R>::count; i++) r.data[i] = typename smelt::Parts<R>::element(x.data[i] op y.data[i]); \
    return r; \
  } \
  template <class T, int N, class B, class R = smelt::common_vector<vec<T, N>, B>> \
  SMELT_FUNCTION vec<T, N>& operator op##=(vec<T, N>& a, const B& b) { return a = a op b; } \
  template <class T, int N, class B, class R = smelt::common_vector<packed_vec<T, N>, B>> \
  SMELT_FUNCTION packed_vec<T, N>& operator op##=(packed_vec<T, N>& a, const B& b) { return a = a op b; } \
  template <class T, int N, int... I, class B, class R = smelt::common_vector<smelt::Swizzle<T, N, I...>, B>> \
  SMELT_FUNCTION smelt::Swizzle<T, N, I...>& operator op##=(smelt::Swizzle<T, N, I...>& a, const B& b) { return a = a op b; }
SMELT_OPERATOR(+) SMELT_OPERATOR(-) SMELT_OPERATOR(*) SMELT_OPERATOR(/) SMELT_OPERATOR(%)
SMELT_OPERATOR(&) SMELT_OPERATOR(|) SMELT_OPERATOR(^) SMELT_OPERATOR(<<) SMELT_OPERATOR(>>)
#undef SMELT_OPERATOR
#define SMELT_COMPARE(op) \
  template <class A, class B, class R = smelt::common_vector<A, B>> \
  SMELT_FUNCTION vec<bool, smelt::Parts<R>::count> operator op(const A& a, const B& b) { \
    R x(a), y(b); \
    vec<bool, smelt::Parts<R>::count> r; \
    for (int i = 0; i < smelt::Parts<R>::count; i++) r.data[i] = x.data[i] op y.data[i]; \
    return r; \
  }
SMELT_COMPARE(<) SMELT_COMPARE(>) SMELT_COMPARE(<=) SMELT_COMPARE(>=) SMELT_COMPARE(==) SMELT_COMPARE(!=)
SMELT_COMPARE(&&) SMELT_COMPARE(||)
#undef SMELT_COMPARE
#define SMELT_UNARY(op) \
  template <class A, class R = smelt::vector_of<A>> SMELT_FUNCTION R operator op(const A& a) { \
    R x(a); \
    for (int i = 0; i < smelt::Parts<R>::count; i++) x.data[i] = typename smelt::Parts<R>::element(op x.data[i]); \
    return x; \
  }
SMELT_UNARY(-) SMELT_UNARY(+) SMELT_UNARY(~)
#undef SMELT_UNARY
template <class A, class R = smelt::vector_of<A>> SMELT_FUNCTION vec<bool, smelt::Parts<R>::count> operator!(const A& a) {
  return R(a) == R(typename smelt::Parts<R>::element(0));
}
template <class T, int N> SMELT_FUNCTION vec<T, N>& operator++(vec<T, N>& a) { return a = a + T(1); }
template <class T, int N> SMELT_FUNCTION vec<T, N>& operator--(vec<T, N>& a) { return a = a - T(1); }
template <class T, int N> SMELT_FUNCTION vec<T, N> operator++(vec<T, N>& a, int) { vec<T, N> b(a); a = a + T(1); return b; }
template <class T, int N> SMELT_FUNCTION vec<T, N> operator--(vec<T, N>& a, int) { vec<T, N> b(a); a = a - T(1); return b; }

}  // namespace metal

#define SMELT_TYPES(T) \
  typedef metal::packed_vec<T, 2> packed_##T##2; typedef metal::packed_vec<T, 3> packed_##T##3; typedef metal::packed_vec<T, 4> packed_##T##4;
SMELT_TYPES(bool) SMELT_TYPES(char) SMELT_TYPES(uchar) SMELT_TYPES(short) SMELT_TYPES(ushort) SMELT_TYPES(int) SMELT_TYPES(uint)
SMELT_TYPES(long) SMELT_TYPES(ulong) SMELT_TYPES(float) SMELT_TYPES(half) SMELT_TYPES(bfloat)
#undef SMELT_TYPES

#ifdef SMELT_CUDA
// CUDA has global types of these names: ours cover them, as macros that also read well after `metal::`.
namespace metal { namespace metal = ::metal; }
#include "smelt_cuda_names.h"
#else
#define SMELT_TYPES(T) \
  typedef metal::vec<T, 2> T##2; typedef metal::vec<T, 3> T##3; typedef metal::vec<T, 4> T##4; \
  namespace metal { using ::T##2; using ::T##3; using ::T##4; }
SMELT_TYPES(bool) SMELT_TYPES(char) SMELT_TYPES(uchar) SMELT_TYPES(short) SMELT_TYPES(ushort) SMELT_TYPES(int) SMELT_TYPES(uint)
SMELT_TYPES(long) SMELT_TYPES(ulong) SMELT_TYPES(float) SMELT_TYPES(half) SMELT_TYPES(bfloat) SMELT_TYPES(double)
#undef SMELT_TYPES
#endif
