//// asm
void f() { asm("nop"); }  // error: asm
//// asm in other words
void f() { __asm__ volatile("nop"); }  // error: asm
//// lambdas
kernel void k(device float* x [[buffer(0)]]) {
    auto f = [](float y) { return y * 2; };  // error: lambda
    x[0] = f(x[1]);
}
//// lambdas in Metal 4 {metal=4.0}
kernel void k(device float* x [[buffer(0)]]) {
    float s = 2;
    auto f = [&](float y) { return y * s; };
    x[0] = f(x[1]);
}
//// recursion
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }  // strict: recursion
//// goto
void f() {
    goto end;  // error: goto
end:
    return;
}
//// new
void f() { thread int* p = new int(1); }  // error: new
//// delete
void f(thread int* p) { delete p; }  // error: delete
//// throw
void f() { throw 1; }  // error: throw
//// try
void f() { try { } catch (...) { } }  // error: try
//// dynamic_cast
struct A { int x; }; struct B : A {};
void f(thread A* a) { thread B* b = dynamic_cast<thread B*>(a); }  // error: dynamic_cast
//// typeid
void f(int x) { auto t = typeid(x); }  // error: type
//// double
void f() { double x = 1; }  // error: double
//// a vector of doubles
void f() { double2 x = 1; }  // error: double2
//// long double
void f() { long double x = 1; }  // error: double
//// long long
void f() { long long x = 1; }  // error: long long
//// unsigned long long
void f() { unsigned long long x = 1; }  // error: long long
//// 128 bits
void f() { __int128 x = 1; }  // error: 
//// literals of every type
kernel void k(device float* x [[buffer(0)]]) {
    float a = 1.0f + 1e-3f + 0x1p3f + .5f + 1.F;
    half b = 1.0h + 2.5H;
    ulong c = 1ul + 2UL + 0xfful + 0b101ul;
    long d = 3l;
    uint e = 4u + 0x10u + 0b11u + 'a' + 1'000'000u;
    x[0] = a + float(b) + c + d + e;
}
//// literals of double precision
kernel void k(device float* x [[buffer(0)]]) {
    x[0] = x[1] * 0.5;  // strict: literal without suffix
}
//// double literals in constants (tolerated)
constant float pi = 3.14159265358979;
constant half e = 2.718;
constant float table[3] = {1.0, 2.5, -3.0};
constexpr constant float2 pair = float2(0.5, 1.5);
kernel void k(device float* x [[buffer(0)]], device half* h [[buffer(1)]]) {
    float a = 1.0, b = 2.5 * a, c = max(a, float(3.0)), d = a > 0.5 ? 1.0 : -1.0;
    half g = 0.5;
    h[0] = e + g;
    x[0] = a + b + c + d + pi + table[1] + pair.x + pow(a, 2.0) + fma(a, 2.0, 1.0) + clamp(a, 0.0, 1.0) + exp(-0.5 * a) + max(a, 0.0);
}
//// literals have single precision (tolerated)
static_assert(sizeof(1.0) == 4, "a literal is a float");
static_assert(is_same_v<decltype(1.0), float>, "a literal is a float");
kernel void k(device float* x [[buffer(0)]]) {
    auto y = 0.5;
    float4 v = float4(1.0, 2.0, 3.0, 4.0) * 0.5;
    half4 h = half4(1.0) * 2.0h;
    x[0] = y + v.x + float(h.x) + mix(v, v * 2.0, 0.5).x + step(0.5, x[1]) + smoothstep(0.0, 1.0, x[1]);
}
//// suffixes that do not exist
void f() { float x = 1.0d; }  // error: suffix
//// an implicit conversion to bfloat
kernel void k(device bfloat* x [[buffer(0)]], device float* y [[buffer(1)]]) {
    x[0] = y[0];  // strict: implicit conversion to bfloat
}
//// conversions of bfloat (tolerated)
kernel void k(device bfloat* x [[buffer(0)]], device float* y [[buffer(1)]], device half* h [[buffer(2)]]) {
    x[0] = bfloat(y[0]);
    y[0] = float(x[0]) + x[1];
    h[0] = half(x[0]);
    x[1] = bfloat(h[1]);
    x[2] = static_cast<bfloat>(1.0f);
}
//// as_type
kernel void k(device float* x [[buffer(0)]]) {
    uint u = as_type<uint>(x[0]);
    ushort2 p = as_type<ushort2>(u);
    half2 h = as_type<half2>(p);
    uchar4 c = as_type<uchar4>(h);
    x[1] = as_type<float>(c) + as_type<half>(p.x) + as_type<float2>(ulong(1)).x + float(as_type<bfloat>(p.y));
}
//// as_type of other sizes
void f() { uint x = as_type<uint>(1.0h); }  // error: same size
//// casts
kernel void k(device float* x [[buffer(0)]]) {
    int a = (int)x[0];
    uint b = uint(a), c = static_cast<uint>(a);
    float4 v = float4(int4(a)), w = static_cast<float4>(uint4(b)), z = (float4)half4(1.0h);
    device uint* p = (device uint*)x;
    device const float4* q = reinterpret_cast<const device float4*>(x);
    thread float* r = (thread float*)&v;
    x[0] = a + b + c + v.x + w.y + z.z + p[1] + q[0].x + r[1];
}
//// a cast without address space
void f(device float* x) { device int* y = (device int*)(float*)x; }  // error: address space
//// vectors of other widths
void f(float3 x) { float4 y = x; }  // error: 
//// vectors of other types
void f(int4 x) { float4 y = x; }  // error: cannot initialize
//// a scalar for a vector
kernel void k(device float4* x [[buffer(0)]]) { float4 a = 1.0f; float4 b(2.0f); int4 c = 3; x[0] = a + b + float4(c); }
//// vector initialisers
kernel void k(device float4* x [[buffer(0)]], constant float& s [[buffer(1)]]) {
    float4 a = {0};
    float4 b = {1, 2, 3, 4};
    float4 c = {float2(1, 2), 3, 4};
    float4 d{1.0f, 2.0f, 3.0f, 4.0f};
    float4 e{0};
    float4 f = {};
    float4 g{};
    float2 h = {s, s};
    uint3 i = {1, 2, 3};
    half4 j = {1, 2, 3, 4};
    float4 l[2] = {{1, 2, 3, 4}, {0}};
    float3 m = {1.0f, 2.0f, 3.0f};
    bool2 n = {true, false};
    x[0] = a + b + c + d + e + f + g + float4(h, h) + float4(float3(i), 1) + float4(j) + l[0] + l[1] + float4(m, float(n.x));
}
//// vector initialisers that are returned and passed
float4 zero() { return {0}; }
float2 both(float x) { return {x, x}; }
float3 three(float x) { return {x, 1, 2}; }
float length_of(float2 x) { return length(x); }
kernel void k(device float4* x [[buffer(0)]]) { x[0] = zero() + float4(both(1), both(2)) + float4(three(1), length_of(float2{3, 4})); }
//// too many values for a vector
void f() { float2 x = {1, 2, 3}; }  // error: 
//// too few values for a vector
void f() { float4 x = float4(1, 2, 3); }  // error: as many components
//// vectors made of parts
kernel void k(device float4* x [[buffer(0)]]) {
    float2 a = float2(1, 2);
    float3 b = float3(a, 3), c = float3(1, a);
    x[0] = float4(a, a) + float4(b, 1) + float4(1, c) + float4(1, a, 2) + float4(a, 1, 2) + float4(b.xy, c.zx) + float4(int2(1, 2), 1, 2);
}
//// swizzles
kernel void k(device float4* x [[buffer(0)]]) {
    float4 v = x[0];
    v.xy = v.yx;
    v.zw += float2(1);
    v.rgb = v.bgr;
    v.wzyx = x[1];
    x[0].x = v.r;
    x[0].yz = v.gb;
    x[1] = v.xxxx + v.xyxy;
}
//// a swizzle that repeats what is written
void f(thread float4& v) { v.xx = float2(1, 2); }  // error: 
//// a component beyond the vector
void f(float2 v) { float x = v.z; }  // error: vector component
//// a component of two alphabets
void f(float4 v) { float2 x = v.xg; }  // error: 
//// a component that no vector has
void f(float4 v) { float x = v.s; }  // error: vector component
//// components by number
kernel void k(device float4* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { float4 v = x[0]; v[i & 3] = v[1]; x[1] = v; }
//// a vector of five
void f(vec<float, 5> x) {}  // error: 
//// a vector of eight as in other languages
void f(float8 x) {}  // error: float8
//// a vector of vectors
void f(vec<float2, 2> x) {}  // error: 
//// operators of vectors
kernel void k(device int4* x [[buffer(0)]], device float4* y [[buffer(1)]]) {
    int4 a = x[0], b = x[1];
    x[2] = ((a + b) * 2 - a / 3 % 5) & (b | 1) ^ ~a << 2 >> 1;
    bool4 c = a < b, d = (y[0] == y[1]) && !c || (y[0] != y[1]);
    a += b; a -= 1; a *= b; a <<= 1; a++; --a;
    y[0] = select(y[0], y[1], c) + float4(d) + float4(a) * -y[2];
    if (any(c) || all(d)) y[1] = 1;
}
//// remainders of floats
void f(float x) { float y = x % 2.0f; }  // error: invalid operands
//// bits of floats
void f(float x) { float y = x & 1; }  // error: invalid operands
//// a vector as a condition
void f(float4 x) { if (x > 0) return; }  // error: 
//// a vector in a conditional operator
kernel void k(device float4* x [[buffer(0)]]) { x[0] = x[0].x > 0 ? x[1] : x[2]; }
//// shadowing and scopes
kernel void k(device float* x [[buffer(0)]]) {
    float a = 1;
    { float a = 2; x[0] = a; }
    for (int i = 0, n = 4; i < n; ++i) x[i] = a;
    if (float b = x[1]) x[2] = b;
}
//// loops
kernel void k(device float* x [[buffer(0)]]) {
    int n = 0;
    while (n < 4) { if (++n == 2) continue; x[n] = n; }
    do { x[n] = 0; } while (--n > 0);
    for (;;) { break; }
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] += 1;
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) x[i] += 1;
#pragma METAL fp math_mode(safe)
    _Pragma("clang loop unroll_count(2)") for (int i = 0; i < 4; i++) x[i] += 1;
}
//// an uninitialised variable
float f() { float x; return x; }  // error: uninitialized
//// an undeclared name
void f(thread float& x) { x = y; }  // error: use of undeclared identifier 'y'
//// an undeclared function
void f(thread float& x) { x = erf(x); }  // error: erf
//// a function of C's library
void f(thread float& x) { x = sqrtf(x); }  // error: sqrtf
//// printf
void f() { printf("x"); }  // error: printf
//// memcpy
void f(device float* x) { memcpy(x, x, 4); }  // error: memcpy
//// logging {metal=3.2}
#include <metal_logging>
kernel void k(device float* x [[buffer(0)]]) { os_log_default.log("x is %f", x[0]); }
//// logging before Metal 3.2
#include <metal_logging>
kernel void k(device float* x [[buffer(0)]]) { os_log_default.log("x is %f", x[0]); }  // error: Metal 3.2 has it
//// assert
#include <metal_assert>
kernel void k(device float* x [[buffer(0)]]) { assert(x[0] > 0); }
//// headers of C++
#include <vector>  // error: 'vector' file not found
//// headers of C
#include <math.h>  // error: 'math.h' file not found
//// text without the namespace
namespace other {
kernel void k(device metal::float4* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = metal::exp(x[i]) + ::metal::sin(x[i]); }
}
//// macros that a compiler defines
#if !defined(__METAL__) || __METAL_VERSION__ < 200
#error "no Metal"
#endif
#ifdef __METAL_MACOS__
constant int on_mac = 1;
#else
constant int on_mac = 0;
#endif
#if __has_include(<metal_stdlib>) && __has_attribute(always_inline)
kernel void k(device float* x [[buffer(0)]]) { x[0] = on_mac + __METAL_VERSION__ + __LINE__; }
#endif
//// static_assert
static_assert(sizeof(float4) == 16, "four");
template <typename T> struct Check { static_assert(sizeof(T) <= 8, "small"); };
//// a static_assert that fails
static_assert(sizeof(float4) == 8, "four floats");  // error: four floats
//// inline functions and their attributes
static inline float a(float x) { return x; }
inline __attribute__((always_inline)) float b(float x) { return x; }
METAL_FUNC float c(float x) { return x; }
__attribute__((noinline)) float d(float x) { return x; }
[[nodiscard]] static constexpr float e(float x) { return x; }
[[clang::always_inline]] float g(float x) { return x; }
static float f(float x) __attribute__((pure));
static float f(float x) { return x; }
constexpr int h(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
constant int sums[h(4)] = {1};
kernel void k(device float* x [[buffer(0)]]) { x[0] = a(1) + b(2) + c(3) + d(4) + e(5) + f(6) + g(7) + sums[0]; }
//// likely and unlikely (tolerated)
kernel void k(device float* x [[buffer(0)]]) { if (x[0] > 0) [[likely]] x[0] = 1; else x[0] = 2; if (__builtin_expect(x[1] > 0, 1)) x[1] = 2; }
//// switch over enumerations with fallthrough
enum class Op { add, mul };
float apply(Op op, float a, float b) { switch (op) { case Op::add: a += 1; [[fallthrough]]; case Op::mul: return a * b; default: return 0; } }
kernel void k(device float* x [[buffer(0)]]) { x[0] = apply(Op::add, 1, 2); }
//// overloads by vector types
float f(float x) { return x; } float2 f(float2 x) { return x; } int f(int x) { return x; }
kernel void k(device float* x [[buffer(0)]]) { x[0] = f(1.0f) + f(float2(1)).x + f(2); }
//// an ambiguous call
void f(uint a, int b) { uint x = max(a, b); }  // error: ambiguous
//// names that other languages reserve
kernel void k(device float* x [[buffer(0)]]) { float local = 1; x[0] = local; }  // strict: keyword of OpenCL
//// strings
constant char text[] = "abc";
kernel void k(device char* x [[buffer(0)]]) { x[0] = text[1]; }
//// a missing semicolon
void f() { int x = 1 }  // error: expected ';'
//// a missing brace
void f() {  // error: 
//// namespaces, using and typedefs
namespace a { namespace b { constant float c = 1; typedef float4 quad; using number = float; } }
namespace d = a::b;
using a::b::number;
kernel void k(device d::quad* x [[buffer(0)]]) { number n = d::c; x[0] = n; }
//// integer promotions
kernel void k(device uchar* x [[buffer(0)]]) { uchar a = x[0] + x[1]; short b = a << 4; x[2] = uchar(b >> 2) | 0x80; }
//// pointer arithmetic and comparison
kernel void k(device float* x [[buffer(0)]]) { device float* p = x + 4; p -= 2; *p++ = 1; if (p > x && p != nullptr) x[0] = p - x; }
//// tensors
kernel void k(tensor<device half, dextents<int, 2>> x [[buffer(0)]]) {}  // error: there are tensors since Metal 4.0; check with --metal 4.0

//// a structure called tensor {metal=3.2}
struct tensor { float value; };
kernel void k(device float* x [[buffer(0)]]) { struct tensor t = {1.0f}; x[0] = t.value; }

//// an element of an array that is returned
array<int, 2> two(int x) { array<int, 2> found; found[0] = x; found[1] = x + 1; return found; }
kernel void k(device int* x [[buffer(0)]]) { x[0] = two(3)[1]; }
