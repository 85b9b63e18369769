//// argument buffers
struct Arguments {
    device float* data [[id(0)]];
    texture2d<float> image [[id(1)]];
    sampler how [[id(2)]];
    float scale [[id(3)]];
    array<texture2d<float>, 4> more [[id(4)]];
};
kernel void k(constant Arguments& a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    a.data[i] = a.scale + a.image.sample(a.how, float2(0)).x + a.more[1].read(uint2(0)).x;
}
//// an argument buffer with one id twice
struct Arguments {
    device float* a [[id(1)]];
    device float* b [[id(1)]];  // error: id
};
kernel void k(constant Arguments& x [[buffer(0)]]) {}
//// an argument buffer with a negative id
struct Arguments {
    device float* a [[id(-1)]];  // error: id
};
kernel void k(constant Arguments& x [[buffer(0)]]) {}
//// an argument buffer of buffers, as on newer systems
struct Node { device float* weights; device Node* next; constant uint* sizes; uint n; };
kernel void k(constant Node& node [[buffer(0)]], device float* x [[buffer(1)]]) {
    x[0] = node.weights[0] + node.next->weights[1] + node.sizes[0];
}
//// a structure with methods, constructors and operators
struct Complex {
    float re, im;
    Complex() = default;
    constexpr Complex(float re, float im = 0) : re(re), im(im) {}
    constexpr Complex operator*(Complex o) const { return Complex(re * o.re - im * o.im, re * o.im + im * o.re); }
    thread Complex& operator+=(Complex o) { re += o.re; im += o.im; return *this; }
    static Complex one() { return Complex(1); }
};
constexpr Complex operator+(Complex a, Complex b) { return Complex(a.re + b.re, a.im + b.im); }
kernel void k(device Complex* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    Complex z = x[i];
    z += z * z + Complex::one();
    x[i] = z;
}
//// constructors qualified for a thread
struct Tile {
    thread float* values;
    const int size;
    METAL_FUNC Tile(thread float* values_, int size_) thread : values(values_), size(size_) {}
    METAL_FUNC void clear() thread { for (int i = 0; i < size; i++) values[i] = 0; }
    METAL_FUNC float sum() const thread { float s = 0; for (int i = 0; i < size; i++) s += values[i]; return s; }
};
kernel void k(device float* x [[buffer(0)]]) {
    float v[4];
    Tile t(v, 4);
    t.clear();
    x[0] = t.sum();
}
//// constructors that are constexpr and qualified for several
struct Number {
    half value;
    Number() thread = default;
    constexpr Number(float x) thread : value(half(x)) {}
    constexpr Number(float x) threadgroup : value(half(x)) {}
    constexpr Number(float x) device : value(half(x)) {}
    constexpr Number(float x) constant : value(half(x)) {}
    constexpr operator float() const thread { return float(value); }
    constexpr operator float() const threadgroup { return float(value); }
    constexpr operator float() const device { return float(value); }
    constexpr operator float() const constant { return float(value); }
};
kernel void k(device Number* x [[buffer(0)]], constant Number& c [[buffer(1)]]) {
    Number n(2.0f);
    x[0] = n;
    x[1] = Number(float(x[0]) + float(c));
}
//// noexcept with qualifiers
struct S {
    float v;
    float get() const noexcept { return v; }
    float get() const device noexcept { return v; }
    void set(float x) thread noexcept { v = x; }
    constexpr S(float x) noexcept : v(x) {}
    S() noexcept = default;
};
float twice(float x) noexcept { return x + x; }
kernel void k(device S* s [[buffer(0)]]) {
    S t = s[0];
    t.set(s[1].get());
    s[0] = S(twice(t.get()));
}
//// noexcept with a condition
template <typename T> T twice(T x) noexcept(noexcept(x + x)) { return x + x; }
struct S { float v; float get() const noexcept(true) { return v; } };
kernel void k(device float* x [[buffer(0)]]) { S s{1}; x[0] = twice(x[1]) + s.get(); }
//// bit fields
struct Flags { uint a : 3; uint b : 5; int : 0; uint c; };
kernel void k(device Flags* x [[buffer(0)]]) { x[0].a = x[0].b; }
//// unions
union Bits { float f; uint u; uchar b[4]; };
kernel void k(device float* x [[buffer(0)]]) {
    Bits b;
    b.f = x[0];
    x[0] = b.b[3];
}
//// enumerations
enum Mode : uint { off, on = 4 };
enum class Kind : uchar { a, b };
kernel void k(device uint* x [[buffer(0)]]) { x[0] = on + uint(Kind::b) + (Kind(x[1]) == Kind::a); }
//// inheritance
struct Base { float a; float twice() const { return a + a; } };
struct Derived : Base { float b; };
struct More : public Derived { float c; };
kernel void k(device float* x [[buffer(0)]]) {
    More m;
    m.a = m.b = m.c = 1;
    x[0] = m.twice() + m.c;
}
//// virtual functions
struct Base { virtual float f() { return 1; } };  // error: virtual
//// virtual bases
struct Base { float a; };
struct Derived : virtual Base { float b; };  // error: virtual
//// destructors
struct S { ~S() {} float x; };
kernel void k(device float* x [[buffer(0)]]) { S s; s.x = 1; x[0] = s.x; }
//// aggregates and designated order
struct Params { uint n; float scale; float2 at; };
kernel void k(device float* x [[buffer(0)]]) {
    Params p = {3, 2.0f, {1.0f, 2.0f}};
    Params q{4, 1.0f, float2(0)};
    Params r = {};
    x[0] = p.n + p.scale + p.at.y + q.n + r.n;
}
//// members with initial values
struct Params { uint n = 3; float scale{2.0f}; float2 at = {1.0f, 2.0f}; };
kernel void k(device float* x [[buffer(0)]]) { Params p; x[0] = p.n * p.scale + p.at.x; }
//// static members
struct Limits { static constant constexpr int most = 4; static constexpr constant float least = 0.5f; enum { size = most * 2 }; };
template <int N> struct Sized { static constexpr constant int n = N; };
kernel void k(device float* x [[buffer(0)]]) { float a[Limits::most] = {}; x[0] = a[0] + Limits::least + Limits::size + Sized<3>::n; }
//// static members without an address space
struct Limits { static constexpr int most = 4; };
kernel void k(device float* x [[buffer(0)]]) { x[0] = Limits::most; }
//// structures in threadgroup memory
struct Pair { float a; uint i; };
kernel void k(device Pair* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup Pair s[32];
    s[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (s[i].a < s[i ^ 1].a) x[i] = s[i ^ 1];
}
//// nested structures and methods on references
struct Ray { float3 origin, direction; float3 at(float t) const { return origin + t * direction; } };
struct Hit { float t; Ray ray; };
void move(thread Hit& h, float by) { h.t += by; h.ray.origin = h.ray.at(h.t); }
kernel void k(device Hit* x [[buffer(0)]]) { Hit h = x[0]; move(h, 1.0f); x[0] = h; }
//// a friend
struct S { float a; friend bool operator<(S x, S y) { return x.a < y.a; } };
kernel void k(device S* x [[buffer(0)]]) { S a = x[0], b = x[1]; if (a < b) x[0] = b; }
//// alignment
struct alignas(16) S { float3 a; packed_float3 b; float c; };
static_assert(sizeof(S) == 32 && alignof(S) == 16, "as the host has it");
static_assert(sizeof(float3) == 16 && sizeof(packed_float3) == 12 && alignof(packed_float3) == 4, "vectors of three");
kernel void k(device S* x [[buffer(0)]]) { x[0].c = x[0].a.x + float3(x[0].b).y; }
//// sizes
static_assert(sizeof(char) == 1 && sizeof(short) == 2 && sizeof(int) == 4 && sizeof(long) == 8, "integers");
static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2 && sizeof(float) == 4 && sizeof(bool) == 1, "floats");
static_assert(sizeof(float4) == 16 && sizeof(half3) == 8 && sizeof(uchar4) == 4 && sizeof(float2x2) == 16, "vectors");
static_assert(sizeof(bool2) == 2 && sizeof(bool3) == 4 && sizeof(bool4) == 4 && sizeof(float3x3) == 48, "more");
kernel void k(device float* x [[buffer(0)]]) { x[0] = sizeof(x[0]); }
//// constructors with and without an address space
struct Z {
    float re, im;
    constexpr Z() : re(0), im(0) {}
    constexpr Z() threadgroup : re(0), im(0) {}
    constexpr Z(float a, float b) : re(a), im(b) {}
    constexpr Z(float a, float b) threadgroup : re(a), im(b) {}
    template <typename T, typename = enable_if_t<is_arithmetic_v<T>>> constexpr Z(T x) thread : re(x), im(0) {}
    template <typename T, typename = enable_if_t<is_arithmetic_v<T>>> constexpr Z(T x) device : re(x), im(0) {}
};
kernel void k(device Z* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup Z s[4];
    s[i & 3] = Z(1, 2);
    x[i] = s[0];
    x[i] = Z(3.0f);
}
//// one constructor twice
struct Z {
    float re;
    Z(float a) : re(a) {}
    Z(float b) : re(b) {}  // error: redeclared
};
//// a structure in memory with pointers to device and constant memory, also to structures like it
struct Node { device Node* next; constant float* scale; device float* x; };
kernel void k(constant Node& list [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    list.x[i] = list.next->x[i] * list.scale[0];
}
//// a structure in thread memory may point there
struct View { thread float* x; };
kernel void k(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float value = y[i];
    View view{&value};
    y[i] = view.x[0] + 1;
}
//// a structure in memory with a pointer to thread memory
struct View { thread float* x; };
kernel void k(constant View& view [[buffer(0)]],  // error: 'x' points to thread memory
              device float* y [[buffer(1)]]) { y[0] = view.x[0]; }
//// ... to threadgroup memory
struct View { threadgroup float* x; };
kernel void k(device View* view [[buffer(0)]],  // error: 'x' points to threadgroup memory
              device float* y [[buffer(1)]]) { y[0] = view[1].x[0]; }
//// ... in a base, an array and a template
template <typename T> struct View { thread T* x; };
struct Views { View<float> all[2]; };
struct More : Views { float y; };
kernel void k(constant More& more [[buffer(0)]],  // error: 'x' points to thread memory
              device float* y [[buffer(1)]]) { y[0] = more.all[0].x[0]; }
//// ... behind a pointer that may stand there
struct View { thread float* x; };
struct Views { device View* view; };
kernel void k(constant Views& views [[buffer(0)]],  // error: 'x' points to thread memory
              device float* y [[buffer(1)]]) { y[0] = views.view->x[0]; }
//// ... in a union
struct View { union { device float* x; ulong address; }; };
kernel void k(constant View& view [[buffer(0)]],  // error: the pointer 'x' is in a union
              device float* y [[buffer(1)]]) { y[0] = view.x[0]; }
