//// each address space, in pointers and references
float sum(device const float* a, constant float* b, threadgroup const float* c, thread const float* d) {
    return a[0] + b[0] + c[0] + d[0];
}
void set(device float& a, threadgroup float& b, thread float& c, constant float& d) { a = b = c = d; }
//// a pointer without address space
float f(float* p) { return p[0]; }  // error: needs an address space
//// a reference without address space
float f(const float& x) { return x; }  // error: needs an address space
//// device to thread
kernel void k(device float* x [[buffer(0)]]) {
    thread float* p = x;  // error: cannot initialize
    p[0] = 1;
}
//// threadgroup to device
void f(threadgroup float* s) {
    device float* p = s;  // error: cannot initialize
    p[0] = 1;
}
//// a cast between address spaces
kernel void k(device float* x [[buffer(0)]]) {
    thread float* p = (thread float*)x;  // error: cast
    p[0] = 1;
}
//// reinterpret_cast between address spaces
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup uint* p = reinterpret_cast<threadgroup uint*>(x);  // error: reinterpret_cast
    p[0] = 1;
}
//// an argument of another address space
float first(threadgroup const float* s) { return s[0]; }
kernel void k(device float* x [[buffer(0)]]) {
    x[1] = first(x);  // error: no matching function
}
//// overloads by address space
float first(threadgroup const float* s) { return s[0]; }
float first(device const float* s) { return s[1]; }
float first(constant float* s) { return s[2]; }
float first(thread const float* s) { return s[3]; }
kernel void k(device float* x [[buffer(0)]], constant float* c [[buffer(1)]]) {
    threadgroup float s[4];
    float t[4] = {1, 2, 3, 4};
    s[0] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[2] = first(x) + first(s) + first(c) + first(t);
}
//// a template over the kind of pointer
template <typename P> float second(P p) { return p[1]; }
kernel void k(device float* x [[buffer(0)]], constant float* c [[buffer(1)]]) {
    float t[2] = {1, 2};
    x[0] = second(x) + second(c) + second(t);
}
//// writing to constant memory
kernel void k(constant float* x [[buffer(0)]]) {
    x[0] = 1;  // error: read-only
}
//// writing to a const device pointer
kernel void k(const device float* x [[buffer(0)]]) {
    x[0] = 1;  // error: read-only
}
//// const on either side
kernel void k(const device float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* c [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    c[i] = a[i] + b[i];
}
//// the address space behind the type
kernel void k(float device* a [[buffer(0)]], float const constant& b [[buffer(1)]]) { a[0] = b; }
//// a pointer to a pointer as an argument
kernel void k(device float* device* x [[buffer(0)]]) {}  // error: pointer to a pointer
//// a pointer to a pointer of constants as an argument
kernel void k(constant float* constant* x [[buffer(0)]]) {}  // error: pointer to a pointer
//// a reference to a pointer as an argument
kernel void k(device float* device& x [[buffer(0)]]) {}  // error: pointer to a pointer
//// pointers to pointers within functions
void f(device float** p) {}  // error: needs an address space
//// a pointer to a thread's pointer
void advance(device float* thread* p) { *p += 1; }
kernel void k(device float* x [[buffer(0)]]) {
    device float* p = x;
    advance(&p);
    p[0] = 1;
}
//// a structure with pointers inside of a thread
struct View {
    device float* data;
    uint stride;
    float at(uint i) const { return data[i * stride]; }
};
kernel void k(device float* x [[buffer(0)]]) {
    View v = {x, 2};
    x[0] = v.at(1);
}
//// a member without address space
struct View {
    float* data;  // error: needs an address space
};
//// a method of a structure in device memory
struct Pair { float a, b; float sum() const { return a + b; } };
kernel void k(device Pair* p [[buffer(0)]], device float* x [[buffer(1)]]) {
    x[0] = p[0].sum();  // error: Pair
}
//// a method qualified for device memory
struct Pair { float a, b; float sum() const device { return a + b; } float sum() const { return b + a; } };
kernel void k(device Pair* p [[buffer(0)]], device float* x [[buffer(1)]]) {
    Pair q = p[0];
    x[0] = p[0].sum() + q.sum();
}
//// program-scope constants
constant float scale = 2.0f;
constant int table[4] = {1, 2, 3, 4};
constant constexpr float offset = 1.0f;
constexpr constant uint count = 4;
static constant float more[] = {1.0f, 2.0f};
constant float4 row = float4(1, 2, 3, 4);
kernel void k(device float* x [[buffer(0)]]) { x[0] = scale * table[1] + offset + count + more[1] + row.y; }
//// a program-scope variable without address space
float scale = 2.0f;  // error: program-scope variable
//// a program-scope constexpr without address space
constexpr int scale = 2;  // error: program-scope variable
//// a program-scope device variable
device float scale = 2.0f;  // error: program-scope variable
//// a constant that is not initialised
constant float scale;  // error: must be initialized
//// a constant that is computed at run time
float f() { return 1.0f; }
constant float scale = f();  // error: constant expression
//// a local constant
kernel void k(device float* x [[buffer(0)]]) {
    constexpr float half_pi = M_PI_F / 2;
    const float t = half_pi;
    x[0] = t;
}
//// static in a function
float f() {
    static float last = 0;  // error: static local variable
    return last;
}
//// extern
extern float elsewhere(float x);
kernel void k(device float* x [[buffer(0)]]) { x[0] = x[1]; }
//// register
void f() {
    register int x = 0;  // error: register
}
//// thread_local
thread_local int x;  // error: thread_local
//// a returned pointer keeps its address space
device float* offset(device float* p, uint n) { return p + n; }
kernel void k(device float* x [[buffer(0)]]) { *offset(x, 3) = 1; }
//// auto keeps the address space
kernel void k(device float* x [[buffer(0)]]) {
    auto p = x + 1;
    device auto& q = x[2];
    p[0] = q;
}
//// arrays in threads
kernel void k(device float* x [[buffer(0)]]) {
    float a[2][3] = {{1, 2, 3}, {4, 5, 6}};
    thread float* p = a[1];
    x[0] = p[2];
}
//// coherent device memory {metal=3.2}
kernel void k(coherent device uint* x [[buffer(0)]]) { x[0] = 1; }
//// volatile
kernel void k(volatile device uint* x [[buffer(0)]]) { x[0] = x[1]; }
//// a generic lambda of addresses through decltype
kernel void k(device float* x [[buffer(0)]]) {
    decltype(x) p = x + 1;
    p[0] = 2;
}
//// temporaries as references of the thread
struct Ray {
    float3 origin, direction;
    Ray(const thread float3& o, thread const float3& d) : origin(o), direction(normalize(d)) {}
    float3 at(const thread float& t) const { return origin + t * direction; }
};
static float largest(thread const float3& v) { return max3(v.x, v.y, v.z); }
template <typename T> static T sum(const thread vec<T, 2>& v) { return v.x + v.y; }
kernel void k(device float3* x [[buffer(0)]], device half* h [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    Ray ray(float3(0, 0, -4), x[i] * 2 - 1);
    const thread float3& p = ray.at(0.5f) + float3(h[i]);
    x[i] = largest(p - float3(0.25f)) + largest(p) + sum<float>(float2(1, p.x)) + ray.at(h[i]);
}
//// a reference of the thread to device memory
static float largest(thread const float3& v) { return max3(v.x, v.y, v.z); }
kernel void k(device float3* x [[buffer(0)]]) {
    x[0] = largest(x[1]);  // error: reference to thread memory, not to device memory
}
//// a reference of the thread to constant memory
struct Light { float3 at; float power; };
static float3 pull(const thread Light& light) { return light.at * light.power; }
kernel void k(device float3* x [[buffer(0)]], constant Light* lights [[buffer(1)]]) {
    x[0] = pull(lights[0]);  // error: 
}
//// a local reference of the thread to threadgroup memory
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup float shared[4];
    const thread float& first = shared[0];  // error: reference to thread memory, not to threadgroup memory
    x[0] = first;
}
//// references of one function in several spaces
static float first(const thread float2& v) { return v.x; }
static float first(const device float2& v) { return v.y; }
kernel void k(device float2* x [[buffer(0)]]) {
    float2 y = x[1];
    x[0] = first(x[1]) + first(y);
}
//// address spaces by other names
#define own thread
#define shared_memory threadgroup
#define once const own
#define ptr(space, T) space T*
inline void exchange(own float& a, own float& b) { float t = a; a = b; b = t; }
inline float first(once float* a, shared_memory float* s) { return a[0] + s[0]; }
typedef own float* Own;
kernel void k(device float* x [[buffer(0)]], shared_memory float* s [[threadgroup(0)]]) {
    float a[2] = {1, 2};
    exchange(a[0], a[1]);
    Own p = a;
    ptr(device, float) q = x;
    q[0] = first((once float*)p, s);
}
//// a name that stands for no address space
#define own
inline void exchange(own float& a) { a = 1; }  // error: needs an address space
