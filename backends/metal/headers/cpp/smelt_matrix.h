// Small matrices of float and half, by columns.
#pragma once

namespace metal {

template <class T, int Columns, int Rows> struct matrix {
  typedef vec<T, Rows> Column;
  Column columns[Columns];
  matrix() = default;
  SMELT_FUNCTION explicit matrix(T diagonal) {
    for (int c = 0; c < Columns; c++) for (int r = 0; r < Rows; r++) columns[c].data[r] = r == c ? diagonal : T(0);
  }
  template <class... V, smelt::when_t<sizeof...(V) == Columns && Columns != 1 && (true && ... && smelt::Parts<V>::is_vector), int> = 0>
  SMELT_FUNCTION matrix(const V&... v) : columns{vec<T, Rows>(v)...} {}
  template <class... V, smelt::when_t<sizeof...(V) == Columns * Rows && (true && ... && smelt::scalar<V>), int> = 0>
  SMELT_FUNCTION matrix(V... v) {
    T values[] = {T(v)...};
    for (int c = 0; c < Columns; c++) for (int r = 0; r < Rows; r++) columns[c].data[r] = values[c * Rows + r];
  }
  // Columns in braces of their own.
  typedef const T (&Braces)[Rows];
  template <int N = Columns, smelt::when_t<N == 2, int> = 0>
  SMELT_FUNCTION matrix(Braces a, Braces b) : columns{Column(smelt::Copy(), a), Column(smelt::Copy(), b)} {}
  template <int N = Columns, smelt::when_t<N == 3, int> = 0>
  SMELT_FUNCTION matrix(Braces a, Braces b, Braces c)
      : columns{Column(smelt::Copy(), a), Column(smelt::Copy(), b), Column(smelt::Copy(), c)} {}
  template <int N = Columns, smelt::when_t<N == 4, int> = 0>
  SMELT_FUNCTION matrix(Braces a, Braces b, Braces c, Braces d)
      : columns{Column(smelt::Copy(), a), Column(smelt::Copy(), b), Column(smelt::Copy(), c), Column(smelt::Copy(), d)} {}
  template <class U, smelt::when_t<!smelt::same<U, T>, int> = 0>
  SMELT_FUNCTION explicit matrix(const matrix<U, Columns, Rows>& m) { for (int c = 0; c < Columns; c++) columns[c] = vec<T, Rows>(m.columns[c]); }
  SMELT_FUNCTION vec<T, Rows>& operator[](int c) { return columns[c]; }
  SMELT_FUNCTION const vec<T, Rows>& operator[](int c) const { return columns[c]; }
};
template <class T, int C, int R> SMELT_FUNCTION matrix<T, C, R> operator+(matrix<T, C, R> a, const matrix<T, C, R>& b) { for (int c = 0; c < C; c++) a[c] += b[c]; return a; }
template <class T, int C, int R> SMELT_FUNCTION matrix<T, C, R> operator-(matrix<T, C, R> a, const matrix<T, C, R>& b) { for (int c = 0; c < C; c++) a[c] -= b[c]; return a; }
template <class T, int C, int R> SMELT_FUNCTION matrix<T, C, R> operator*(matrix<T, C, R> a, typename type_identity<T>::type s) { for (int c = 0; c < C; c++) a[c] *= s; return a; }
template <class T, int C, int R> SMELT_FUNCTION matrix<T, C, R> operator*(typename type_identity<T>::type s, matrix<T, C, R> a) { return a * s; }
template <class T, int C, int R> SMELT_FUNCTION vec<T, R> operator*(const matrix<T, C, R>& a, const vec<T, C>& v) {
  vec<T, R> r = a[0] * v.data[0];
  for (int c = 1; c < C; c++) r += a[c] * v.data[c];
  return r;
}
template <class T, int C, int R> SMELT_FUNCTION vec<T, C> operator*(const vec<T, R>& v, const matrix<T, C, R>& a) {
  vec<T, C> r;
  for (int c = 0; c < C; c++) r.data[c] = dot(v, a[c]);
  return r;
}
template <class T, int K, int R, int C> SMELT_FUNCTION matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> r;
  for (int c = 0; c < C; c++) r[c] = a * b[c];
  return r;
}
template <class T, int C, int R> SMELT_FUNCTION matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> t;
  for (int c = 0; c < C; c++) for (int r = 0; r < R; r++) t[r].data[c] = a[c].data[r];
  return t;
}
template <class T> SMELT_FUNCTION T determinant(const matrix<T, 2, 2>& m) { return m[0].x * m[1].y - m[1].x * m[0].y; }
template <class T> SMELT_FUNCTION T determinant(const matrix<T, 3, 3>& m) { return dot(m[0], cross(m[1], m[2])); }
template <class T> SMELT_FUNCTION T determinant(const matrix<T, 4, 4>& m) {
  T sum = T(0);
  for (int c = 0; c < 4; c++) {
    matrix<T, 3, 3> rest;
    for (int k = 0, n = 0; k < 4; k++) if (k != c) rest[n++] = vec<T, 3>(m[k].y, m[k].z, m[k].w);
    T term = m[c].x * determinant(rest);
    sum = c % 2 ? sum - term : sum + term;
  }
  return sum;
}

}  // namespace metal

#define SMELT_SIZES(T, C) \
  typedef metal::matrix<T, C, 2> T##C##x2; typedef metal::matrix<T, C, 3> T##C##x3; typedef metal::matrix<T, C, 4> T##C##x4; \
  namespace metal { using ::T##C##x2; using ::T##C##x3; using ::T##C##x4; }
SMELT_SIZES(float, 2) SMELT_SIZES(float, 3) SMELT_SIZES(float, 4) SMELT_SIZES(half, 2) SMELT_SIZES(half, 3) SMELT_SIZES(half, 4)
#undef SMELT_SIZES
