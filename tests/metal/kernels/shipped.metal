//// function constants with defaults (tolerated)
constant bool use_bias [[function_constant(0)]];
constant int mode [[function_constant(1)]];
constant int m2 = is_function_constant_defined(mode) ? mode : 3;
kernel void k(device float* x [[buffer(0)]], device const float* b [[buffer(1), function_constant(use_bias)]], uint i [[thread_position_in_grid]]) {
    x[i] = m2;
    if (use_bias) x[i] += b[i];
}
//// sums over simdgroups (tolerated)
kernel void k(device const float* x, device float* y, uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]], uint n [[threads_per_simdgroup]]) {
    threadgroup float s[32];
    float v = simd_sum(x[i]);
    if (lane == 0) s[sg] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = simd_shuffle_xor(s[lane], ushort(1));
    v = simd_prefix_exclusive_sum(v);
    if (simd_is_first()) y[sg] = simd_broadcast_first(v);
}
//// simdgroup matrices of halves (tolerated)
#include <metal_simdgroup_matrix>
kernel void k(device const half* a, device const half* b, device float* c) {
    simdgroup_half8x8 ma, mb;
    simdgroup_float8x8 mc = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_load(ma, a, 8);
    simdgroup_load(mb, b, 8, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(mc, ma, mb, mc);
    simdgroup_store(mc, c, 8);
}
//// instances of a template under host names (tolerated)
template <typename T, int N> [[kernel]] void add(device T* x [[buffer(0)]], constant T& c [[buffer(1)]], uint i [[thread_position_in_grid]]) {
#pragma clang loop unroll(full)
    for (int j = 0; j < N; j++) x[i * N + j] += c; }
template [[host_name("add_f")]] [[kernel]] void add<float, 4>(device float*, constant float&, uint);
template [[host_name("add_h")]] [[kernel]] decltype(add<half, 2>) add<half, 2>;
//// an argument buffer (tolerated)
struct Args { device float* out [[id(0)]];
    texture2d<float, access::sample> t [[id(1)]];
    sampler s [[id(2)]];
    array<texture2d<half>, 4> ts [[id(3)]];
};
kernel void k(constant Args& a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    a.out[i] = a.t.sample(a.s, float2(0.5)).x + a.ts[i & 3].read(uint2(0)).x;
}
//// vectors of bfloat (tolerated)
kernel void k(device const bfloat* x, device bfloat4* y, uint i [[thread_position_in_grid]]) {
    float v = float(x[i]);
    y[i] = bfloat4(bfloat(v));
}
//// a vertex and a fragment function (tolerated)
struct VIn { float3 p [[attribute(0)]]; half4 c [[attribute(1)]]; };
struct VOut { float4 p [[position]];
    half4 c [[flat]];
    float2 uv [[user(uv), center_no_perspective]];
    float psize [[point_size]];
};
vertex VOut v(VIn in [[stage_in]], uint id [[vertex_id]], uint inst [[instance_id]], constant float4x4& m [[buffer(1)]]) {
    VOut o;
    o.p = m * float4(in.p, 1);
    o.c = in.c;
    o.uv = float2(id, inst);
    o.psize = 1;
    return o;
}
struct FOut { half4 c [[color(0)]]; float d [[depth(less)]]; };
fragment FOut f(VOut in [[stage_in]], bool front [[front_facing]], texture2d<half> t [[texture(0)]]) {
    constexpr sampler s(coord::normalized, address::clamp_to_edge, filter::linear);
    FOut o;
    o.c = t.sample(s, in.uv, level(0)) * in.c;
    if (!front) discard_fragment();
    o.d = in.p.z;
    return o;
}
//// packed vectors in a structure (tolerated)
struct P { packed_float3 a; char b; packed_half2 c; } ;
static_assert(sizeof(packed_float3) == 12, "size");
kernel void k(device P* p, uint i [[thread_position_in_grid]]) {
    float3 v = p[i].a;
    v.xz = v.zx;
    v.rgb *= 2;
    p[i].a = packed_float3(v);
    p[i].c = packed_half2(half2(v.xy));
}
//// bits as other types (tolerated)
kernel void k(device uint* x, uint2 g [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    uint i = g.y * n.x + g.x;
    float f = as_type<float>(x[i]);
    x[i] = as_type<uint>(half2(f)) ^ popcount(x[i]) ^ clz(x[i]) ^ reverse_bits(x[i]) ^ extract_bits(x[i], 3u, 4u);
}
//// precise and fast functions (tolerated)
kernel void k(device float* x, uint i [[thread_position_in_grid]]) {
    float c;
    float s = sincos(x[i], c);
    int e;
    float m = frexp(x[i], e);
    x[i] = fma(s, c, precise::exp(m)) + fast::log(x[i]) + ldexp(m, e) + select(0.f, 1.f, x[i] > 0) + clamp(x[i], 0.f, 1.f) + saturate(x[i]) + mix(s, c, 0.5f) + smoothstep(0.f, 1.f, x[i]) + rsqrt(x[i]) + copysign(1.f, x[i]) + metal::precise::tanh(x[i]);
    if (isnan(x[i]) || metal::isinf(x[i])) x[i] = INFINITY;
}
//// functors in a reduction (tolerated)
template <typename Op> METAL_FUNC float red(threadgroup float* s, uint l, Op op) {
    for (uint d = 128; d > 0; d >>= 1) { if (l < d) s[l] = op(s[l], s[l + d]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    } return s[0];
}
struct Max { static constexpr constant float init = -INFINITY;
    inline float operator()(float a, float b) const { return max(a, b);
    } };
kernel void k(device float* x, threadgroup float* s [[threadgroup(0)]], uint l [[thread_position_in_threadgroup]], uint i [[thread_position_in_grid]]) {
    s[l] = i < 7 ? x[i] : Max::init;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[0] = red(s, l, Max());
}
//// blocks of four bits (tolerated)
#define QK 32
typedef struct { half d; uint8_t qs[QK / 2]; } block_q4;
[[max_total_threads_per_threadgroup(256)]] kernel void k(device const block_q4* b, device const float4* y, device float* o, constant int64_t& n, uint3 tg [[threadgroup_position_in_grid]], ushort tiisg [[thread_index_in_simdgroup]]) {
    float acc[2] = {0.f};
    const device uint16_t* q = (const device uint16_t*)b[tg.x].qs;
    for (short i = 0; i < 8; i += 2) { acc[0] += y[i][0] * (q[i / 2] & 0x000F) + y[i][1] * (q[i / 2] & 0x0F00);
    } float s = simd_sum(acc[0]);
    if (tiisg == 0 && n > 0) o[tg.x] = s * (float)b[tg.x].d;
}
//// a stencil of constants (tolerated)
constant constexpr float W[3][3] = {{0, 1, 0}, {1, -4, 1}, {0, 1, 0}};
constant uint8_t tab[] = {1, 2, 3};
kernel void k(texture2d<float, access::read> a [[texture(0)]], texture2d<float, access::write> b [[texture(1)]], uint2 g [[thread_position_in_grid]]) {
    if (any(g >= uint2(b.get_width(), b.get_height()))) return;
    float4 v(0);
    for (int j = 0; j < 3; ++j) for (int i = 0; i < 3; ++i) v += W[j][i] * a.read(uint2(int2(g) + int2(i - 1, j - 1)));
    b.write(v * tab[0], g);
}
//// namespaces, enumerations and a union (tolerated)
namespace my { namespace detail { template <typename T> struct lim {
            static constexpr constant T max = metal::numeric_limits<T>::max();
        };
    } template <typename T> inline T big() { return detail::lim<T>::max;
    } }
enum class Mode : ushort { a, b = 5 };
union U { float f; uint u; };
kernel void k(device float* x, constant Mode& m, uint i [[thread_position_in_grid]]) {
    U u;
    u.f = x[i];
    switch (m) { case Mode::a: x[i] = my::big<float>();
        break;
        default: x[i] = float(u.u);
    } }
//// matrices of both orders (tolerated)
kernel void k(device float4x4* m, device float3x3& n, device half2x4* h, uint i [[thread_position_in_grid]]) {
    float4x4 a = transpose(m[i]);
    a[0] = a[1] + a.columns[2];
    m[i] = a * a * determinant(n);
    h[i] = half2x4(half4(1), half4(0));
}
//// traits (tolerated)
template <typename T, typename = metal::enable_if_t<is_floating_point_v<T>>> T half_of(T x) {
    return x / 2;
}
template <typename T> struct is_small : integral_constant<bool, sizeof(T) <= 2> {};
template <typename T> void f(device T* x, uint i) { if constexpr (is_small<T>::value) x[i] = half_of(x[i]);
    else x[i] = T(half_of(float(x[i])));
}
kernel void k(device half* x, device float* y, uint i [[thread_position_in_grid]]) {
    f(x, i);
    f(y, i);
}
//// shapes and strides as arrays (tolerated)
using vec4 = vec<float, 4>;
template <typename T> using vec2_t = vec<T, 2>;
kernel void k(device vec4* x, const constant uint* shape, constant const size_t strides[4], uint3 p [[thread_position_in_grid]], uint3 d [[threads_per_grid]]) {
    size_t o = p.x * strides[0] + p.y * strides[1];
    vec2_t<half> h = {1.0h, 2.0h};
    x[o] = vec4{1.f, 2.f, h.x, h.y} + vec4(shape[0]);
    (void)d;
}
//// tiles that load themselves (tolerated)
template <typename T, short BM, short BN> struct Tile { threadgroup T* dst;
    const device T* src;
    const int ld;
    const short r;
    METAL_FUNC Tile(const device T* s, threadgroup T* d, int l, ushort t) : dst(d), src(s), ld(l), r(t / BN) {} METAL_FUNC void load() const {
        _Pragma("clang loop unroll(full)") for (short i = 0; i < BM; i++) {
            dst[i * BN + r] = src[i * ld + r];
        } } METAL_FUNC void next() { src += BN;
    } };
kernel void k(const device half* a, device half* o, ushort t [[thread_index_in_threadgroup]]) {
    threadgroup half s[8 * 16];
    Tile<half, 8, 16> l(a, s, 64, t);
    l.load();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    l.next();
    o[t] = s[t];
}
//// quadgroups and votes (tolerated)
kernel void k(device uint* q, uint quad [[quadgroup_index_in_threadgroup]], uint ql [[thread_index_in_quadgroup]], uint dsg [[dispatch_simdgroups_per_threadgroup]], uint i [[thread_position_in_grid]]) {
    q[i] = quad_shuffle(q[i], 1) + quad_sum(q[i]) + quad + ql + dsg + quad_any(q[i] > 1);
    simd_vote v = simd_ballot(q[i] > 0);
    q[i] += uint((simd_vote::vote_t)v);
}
//// macros of limits (tolerated)
#if __METAL_VERSION__ >= 310
#define HAS 1
#else
#define HAS 0
#endif
#ifndef M_PI_F
#error no pi
#endif
static constant float PI2 = 2 * M_PI_F;
kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] = PI2 * HAS + MAXFLOAT * 0 + FLT_EPSILON + HALF_MAX + INT_MAX;
    auto p = &x[i];
    *p += 1;
    device auto& r = *p;
    r *= 2;
}
//// a header that the host shares (tolerated)
#include <simd/simd.h>
#ifdef __METAL_VERSION__
#define NS_ENUM(_type, _name) enum _name : _type _name; enum _name : _type
typedef metal::int32_t EnumBackingType;
#else
#import <Foundation/Foundation.h>
typedef NSInteger EnumBackingType;
#endif
typedef NS_ENUM(EnumBackingType, BufferIndex) { BufferIndexMeshPositions = 0, BufferIndexUniforms = 2 };
typedef NS_ENUM(EnumBackingType, VertexAttribute) { VertexAttributePosition = 0, VertexAttributeTexcoord = 1 };
typedef NS_ENUM(EnumBackingType, TextureIndex) { TextureIndexColor = 0 };
typedef struct { matrix_float4x4 projectionMatrix; matrix_float4x4 modelViewMatrix; vector_float3 light; vector_uint2 size; simd_float2 offset; } Uniforms;
typedef struct { float3 position [[attribute(VertexAttributePosition)]]; float2 texCoord [[attribute(VertexAttributeTexcoord)]]; } Vertex;
typedef struct { float4 position [[position]]; float2 texCoord; } ColorInOut;
vertex ColorInOut vertexShader(Vertex in [[stage_in]], constant Uniforms & uniforms [[ buffer(BufferIndexUniforms) ]]) {
    ColorInOut out;
    float4 position = float4(in.position, 1.0);
    out.position = uniforms.projectionMatrix * uniforms.modelViewMatrix * position;
    out.texCoord = in.texCoord + uniforms.offset;
    return out;
}
fragment float4 fragmentShader(ColorInOut in [[stage_in]], constant Uniforms & uniforms [[ buffer(BufferIndexUniforms) ]], texture2d<half> colorMap [[ texture(TextureIndexColor) ]]) {
    constexpr sampler colorSampler(mip_filter::linear, mag_filter::linear, min_filter::linear);
    half4 colorSample = colorMap.sample(colorSampler, in.texCoord.xy);
    return float4(colorSample);
}
//// vectors and matrices by their names in simd
#include <simd/simd.h>
struct Uniforms { simd_float4x4 view; matrix_float3x3 normal; simd::float3 light; vector_uint2 size; matrix_half2x2 small; };
kernel void k(constant Uniforms& u [[buffer(0)]], device float4* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    vector_float3 n = u.normal * (vector_float3(1, 2, 3) + u.light);
    x[i] = u.view * simd::float4(n, 1.0f) + simd_float4(u.size.x) * simd::float2x2(2.0f)[1].y;
}
//// a name of simd without its header
kernel void k(constant vector_float3& u [[buffer(0)]]) {}  // error: vector_float3
