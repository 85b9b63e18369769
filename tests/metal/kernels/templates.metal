//// host names
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]], constant T& v [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] = v; }
template [[host_name("fill_float")]] [[kernel]] void fill<float>(device float*, constant float&, uint);
template [[host_name("fill_half")]] [[kernel]] decltype(fill<half>) fill<half>;
template [[host_name("fill_int")]] kernel void fill<int>(device int* x [[buffer(0)]], constant int& v [[buffer(1)]], uint i [[thread_position_in_grid]]);
//// one host name twice
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]], constant T& v [[buffer(1)]]) { x[0] = v; }
template [[host_name("fill")]] [[kernel]] decltype(fill<float>) fill<float>;
template [[host_name("fill")]] [[kernel]] decltype(fill<int>) fill<int>;  // error: host_name
//// a host name that is a kernel's name
kernel void fill(device float* x [[buffer(0)]]) { x[0] = 1; }
template <typename T> [[kernel]] void other(device T* x [[buffer(0)]]) { x[0] = 1; }
template [[host_name("fill")]] [[kernel]] decltype(other<int>) other<int>;  // error: host_name
//// one host name twice, by macros
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]]) { x[0] = 0; }
#define FILL(name, T) template [[host_name("fill_" name)]] [[kernel]] decltype(fill<T>) fill<T>;
FILL("a", float)
FILL("b", int)
FILL("a", uint)  // error: host_name
//// a host name of a plain kernel
[[host_name("shown")]] kernel void hidden(device float* x [[buffer(0)]]) { x[0] = 1; }
//// an empty host name
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]]) { x[0] = 0; }
template [[host_name("")]] [[kernel]] decltype(fill<float>) fill<float>;  // error: host_name
//// a host name without text
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]]) { x[0] = 0; }
template [[host_name(fill_float)]] [[kernel]] decltype(fill<float>) fill<float>;  // error: host_name
//// instantiations by macros over several lines
template <typename T, int N, bool Bias>
[[kernel]] void scale(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    const constant int& size [[buffer(2)]],
    uint at [[thread_position_in_grid]]) {
    for (int n = 0; n < N; n++) {
        if (int(at) * N + n < size) out[at * N + n] = in[at * N + n] * T(2) + (Bias ? T(1) : T(0));
    }
}
#define instantiate(name, type, n, bias)                                      \
  template [[host_name("scale_" #name "_" #n)]] [[kernel]] void scale<type, n, bias>( \
      const device type* in [[buffer(0)]],                                    \
      device type* out [[buffer(1)]],                                         \
      const constant int& size [[buffer(2)]],                                 \
      uint at [[thread_position_in_grid]]);
#define instantiate_all(name, type) \
  instantiate(name, type, 1, true)  \
  instantiate(name, type, 4, false)
instantiate_all(float32, float)
instantiate_all(float16, half)
instantiate_all(bfloat16, bfloat)
instantiate_all(int32, int)
//// kernels made by a macro with attributes over lines
#define BINARY(name, type, op)                               \
  kernel void name(                                          \
      device const type* a [[buffer(0)]],                    \
      device const type* b [[buffer(1)]],                    \
      device type* out [[buffer(2)]],                        \
      uint i [[thread_position_in_grid]],                    \
      uint n [[threads_per_grid]]) {                         \
    if (i < n) out[i] = a[i] op b[i];                        \
  }
BINARY(add_float, float, +)
BINARY(mul_half, half, *)
BINARY(and_uint, uint, &)
//// a kernel made by a macro, with threadgroup memory
#define REDUCE(T, OP, START)                                                    \
  [[kernel]] void reduce_##OP##_##T(                                            \
      device const T* in [[buffer(0)]], device T* out [[buffer(1)]],            \
      uint lane [[thread_index_in_threadgroup]], uint at [[threadgroup_position_in_grid]], \
      uint threads [[threads_per_threadgroup]]) {                               \
    threadgroup T sums[32];                                                     \
    T x = simd_##OP(in[at * threads + lane]);                                   \
    if (lane % 32 == 0) sums[lane / 32] = x;                                    \
    threadgroup_barrier(mem_flags::mem_threadgroup);                            \
    if (lane == 0) out[at] = sums[0] + T(START);                                \
  }
REDUCE(float, sum, 0)
REDUCE(int, max, 1)
//// attributes by macros
#define GRID [[thread_position_in_grid]]
#define BUFFER(n) [[buffer(n)]]
kernel void k(device float* x BUFFER(0), device const float* y BUFFER(1), uint i GRID) { x[i] = y[i]; }
//// templates of types, numbers, templates and defaults
template <typename T, int N = 4, typename U = float> struct Block { T v[N]; U sum() const { U s = 0; for (int i = 0; i < N; i++) s += U(v[i]); return s; } };
template <template <typename, int, typename> class C, typename T> float run(T x) { C<T, 2, float> c = {{x, x}}; return c.sum(); }
template <typename T> struct Op { static T apply(T a, T b) { return a + b; } };
template <> struct Op<half> { static half apply(half a, half b) { return a * b; } };
template <typename T, typename F> T both(T a, T b, F f) { return f(a, b); }
struct Add { template <typename T> T operator()(T a, T b) const { return a + b; } };
kernel void k(device float* x [[buffer(0)]]) { x[0] = run<Block>(x[1]) + Op<float>::apply(1, 2) + float(Op<half>::apply(1, 2)) + both(x[1], x[2], Add()); }
//// a function as a template argument
template <float (*f)(float)> float twice(float x) { return f(f(x)); }
float halve(float x) { return x / 2; }
kernel void k(device float* x [[buffer(0)]]) { x[0] = twice<halve>(x[1]); }
//// a function over blocks as a template argument
struct Packed { half d; uchar q[16]; };
void unpack(device const Packed* b, short il, thread float4x4& out) { for (int i = 0; i < 16; i++) out[i / 4][i % 4] = float(b->d) * b->q[i] + il; }
template <typename B, short n, void (*unpack)(device const B*, short, thread float4x4&)>
kernel void rows(device const B* b [[buffer(0)]], device float4x4* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    float4x4 m;
    unpack(b + i / n, i % n, m);
    x[i] = m;
}
typedef decltype(rows<Packed, 1, unpack>) rows_t;
template [[host_name("rows_packed")]] kernel rows_t rows<Packed, 1, unpack>;
//// variadic templates
template <typename... T> float total(T... x) { return (0.0f + ... + float(x)); }
template <int... N> struct List { static constexpr constant int count = sizeof...(N); };
kernel void k(device float* x [[buffer(0)]]) { x[0] = total(1, 2.0f, 3.0h) + List<1, 2, 3>::count; }
//// if constexpr
template <typename T> float f(T x) { if constexpr (is_same_v<T, half>) { return float(x) * 2; } else { return x; } }
kernel void k(device float* x [[buffer(0)]]) { x[0] = f(1.0h) + f(2.0f); }
//// enable_if and traits
template <typename T, typename = enable_if_t<is_floating_point_v<T>>> T half_of(T x) { return x / T(2); }
template <typename T, enable_if_t<is_integral_v<T>, bool> = true> T half_of(T x) { return x >> 1; }
template <typename T> using Wide = conditional_t<sizeof(T) < 4, float, T>;
kernel void k(device float* x [[buffer(0)]]) { Wide<half> w = 1; x[0] = half_of(3.0f) + half_of(3) + w; }
//// an instantiation that does not exist
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]]) { x[0] = 0; }
template [[host_name("fill_a")]] [[kernel]] decltype(full<float>) full<float>;  // error: full
//// a template whose body does not fit its instance
template <typename T> [[kernel]] void fill(device T* x [[buffer(0)]]) {
    x[0] = simd_sum(x[1]);  // error: no matching function
}
template [[host_name("fill_a")]] [[kernel]] decltype(fill<long>) fill<long>;
//// deduced types
kernel void k(device float* x [[buffer(0)]]) {
    auto a = x[0];
    auto b = float4(a);
    const auto c = b.xy;
    x[1] = c.y;
}
//// range-based loops
kernel void k(device float* x [[buffer(0)]]) {
    float v[3] = {1, 2, 3};
    float s = 0;
    for (float y : v) s += y;
    x[0] = s;
}
//// structured bindings (tolerated)
struct P { float a, b; };
kernel void k(device float* x [[buffer(0)]]) {
    P p = {1, 2};
    auto [a, b] = p;
    x[0] = a + b;
}
//// an alias template over vectors
template <typename T> using Four = vec<T, 4>;
template <typename T, int N> vec<T, N> twice(vec<T, N> x) { return x + x; }
kernel void k(device float4* x [[buffer(0)]]) { Four<float> v = Four<float>(1, 2, 3, 4); x[0] = twice(v) + twice<float, 4>(v); }
