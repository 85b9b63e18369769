//// a kernel that writes a swizzle of a constant
kernel void k(constant float4& c [[buffer(0)]], device float2* x [[buffer(1)]]) { x[0] = c.zw; x[1].yx = c.xy; }
//// a method called on constant memory
struct P { float a; float get() const constant { return a; } float get() const { return a; } };
kernel void k(constant P& p [[buffer(0)]], device float* x [[buffer(1)]]) { P q = p; x[0] = p.get() + q.get(); }
//// an array of arrays in constant memory
constant float w[2][3] = {{1, 2, 3}, {4, 5, 6}};
kernel void k(device float* x [[buffer(0)]]) { constant float* row = w[1]; x[0] = row[2] + w[0][1]; }
//// a table of structures in constant memory
struct Tap { int2 at; float w; };
constant Tap taps[] = {{{0, 1}, 0.5f}, {int2(1, 0), 0.25f}};
constant uint count = sizeof(taps) / sizeof(taps[0]);
kernel void k(device float* x [[buffer(0)]]) { for (uint i = 0; i < count; i++) x[i] = taps[i].w * taps[i].at.y; }
//// half arithmetic with literals
kernel void k(device half* x [[buffer(0)]]) { half a = x[0] * 2 + 1.0h; a += 0.5h; x[1] = a > 1 ? a : half(0); x[2] = -a; }
//// mixed scalars
kernel void k(device float* x [[buffer(0)]], device half* h [[buffer(1)]], uint i [[thread_position_in_grid]]) { float a = h[i] * x[i]; half b = x[i]; h[i] = a + b * i; x[i] += h[i] / 2; }
//// booleans as numbers
kernel void k(device int* x [[buffer(0)]]) { bool a = x[0]; x[1] = a + (x[0] > 1) * 2 + !a; x[2] = a ? 1 : -1; x[3] |= a; }
//// comma, ternaries and compound assignment
kernel void k(device int* x [[buffer(0)]]) { int a = 1, b = (a++, a + 1); x[0] = a > b ? a : b > 3 ? b : 0; x[1] <<= 2; x[1] %= 7; x[2] ^= ~b; }
//// a do-while over a pointer
kernel void k(device const uint* a [[buffer(0)]], device uint* b [[buffer(1)]]) { device const uint* p = a; uint s = 0; do { s += *p; } while (*p++ != 0); *b = s; }
//// an array assigned
void f() { float a[2] = {1, 2}, b[2]; b = a; }  // error: not assignable
//// an array of unknown size
void f(int n) { float a[n]; a[0] = 1; }  // error: not a constant expression
//// a negative shift of a vector
kernel void k(device uint4* x [[buffer(0)]]) { x[0] = x[1] << 3u; x[1] >>= uint4(1, 2, 3, 4); }
//// a missing return
float f(float x) { if (x > 0) return x; }  // warning: non-void function does not return a value
//// a call with too few arguments
void f(thread float& x) { x = pow(x); }  // error: no matching function
//// a call with too many arguments
void f(thread float& x) { x = exp(x, x); }  // error: no matching function
//// a private member
class C { float a; public: float b; };
void f(C c) { float x = c.a; }  // error: private member
//// a const method that writes
struct C { float a; void f() const { a = 1; } };  // error: const
//// a redefinition
void f() { int a = 1; float a = 2; }  // error: redefinition
//// an unknown member
struct C { float a; };
void f(C c) { c.b = 1; }  // error: no member named 'b'
//// an unknown type
void f(flaot x) {}  // error: unknown type name 'flaot'
//// a missing argument of a template
template <typename T> T make() { return T(0); }
void f(thread float& x) { x = make(); }  // error: no matching function
//// a preprocessor error
#if __METAL_VERSION__ < 400
#error "needs Metal 4"  // error: needs Metal 4
#endif
//// an unterminated condition
#if 1  // error: unterminated conditional
void f() {}
//// a macro with too few arguments
#define F(a, b) a + b
void f(thread int& x) { x = F(1); }  // error: too few arguments
//// a reference without a value
void f(thread float& x) { thread float& y; }  // error: 
//// a const without a value
void f() { const float x; }  // error: 
//// assignment to a const
void f() { const float x = 1; x = 2; }  // error: const
//// division by zero in a constant
constant int x = 1 / 0;  // error: 
//// break outside of a loop
void f() { break; }  // error: break
//// case twice
void f(int x) { switch (x) { case 1: break; case 1: break; } }  // error: duplicate case
//// sizes of arrays from templates and constants
constant constexpr int n = 4;
template <int N> float f(float x) { float a[N + 1], b[n * N]; a[N] = b[0] = x; return a[N]; }
kernel void k(device float* x [[buffer(0)]]) { const int m = 3; float c[m] = {1, 2, 3}; x[0] = f<2>(c[1]); }
//// operators of a structure in device memory
struct V { float a; V operator+(V o) const { return {a + o.a}; } device V& operator=(V o) device { a = o.a; return *this; } };
kernel void k(device V* v [[buffer(0)]]) { V x = {v[0].a}; v[1].a = (x + x).a; }
//// references to elements
kernel void k(device float4* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { device float4& y = x[i]; y.x = 1; y += 2.0f; thread float z = y.w; x[i].y = z; }
//// threads of a group by their number in constants
constant constexpr uint2 tile = uint2(8, 4);
kernel void k(device float* x [[buffer(0)]], uint2 at [[thread_position_in_threadgroup]]) { threadgroup float s[4][8]; s[at.y][at.x] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); x[at.y * tile.x + at.x] = s[at.y][tile.x - 1 - at.x]; }
