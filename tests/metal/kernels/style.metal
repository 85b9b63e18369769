//// a tiled product with a loader
template <typename T, short BROWS, short BCOLS, short dst_ld, short tgp_size, short alignment = 1>
struct BlockLoader {
    static constexpr constant const short n_reads = (BCOLS * BROWS) / tgp_size;
    static constexpr constant const short TCOLS = BCOLS / n_reads;
    static constexpr constant const short TROWS = tgp_size / TCOLS;
    const int src_ld;
    const short thread_idx, bi, bj;
    threadgroup T* dst;
    const device T* src;
    struct alignas(alignment * sizeof(T)) ReadVector {
        uint8_t v[sizeof(T) * 2];
    };
    METAL_FUNC BlockLoader(const device T* src_, const int src_ld_, threadgroup T* dst_,
                           ushort simd_group_id [[simdgroup_index_in_threadgroup]],
                           ushort simd_lane_id [[thread_index_in_simdgroup]])
        : src_ld(src_ld_), thread_idx(simd_group_id * 32 + simd_lane_id), bi(thread_idx / TCOLS),
          bj(n_reads * (thread_idx % TCOLS)), dst(dst_ + bi * dst_ld + bj), src(src_ + bi * src_ld + bj) {}
    METAL_FUNC void load_unsafe() const {
#pragma clang loop unroll(full)
        for (short i = 0; i < BROWS; i += TROWS) {
#pragma clang loop unroll(full)
            for (short j = 0; j < n_reads; j++) dst[i * dst_ld + j] = src[i * src_ld + j];
        }
    }
    METAL_FUNC void load_safe(short2 limit) const {
        limit = limit - short2(bj, bi);
        bool inside[n_reads];
        for (short i = 0; i < BROWS; i += TROWS) {
            for (short j = 0; j < n_reads; j++) inside[j] = (i < limit.y) && (j < limit.x);
            for (short j = 0; j < n_reads; j++) dst[i * dst_ld + j] = inside[j] ? src[i * src_ld + j] : T(0);
        }
    }
    METAL_FUNC void next() { src += BCOLS; }
};
template <typename T, int BM, int BN, int BK, typename Acc = float>
struct Product {
    simdgroup_matrix<Acc, 8, 8> results[BM / 8 * BN / 8] = {simdgroup_matrix<Acc, 8, 8>(0)};
    const short row;
    METAL_FUNC Product(short row_) : row(row_) {}
    METAL_FUNC void mma(const threadgroup T* a, const threadgroup T* b) {
        simdgroup_matrix<Acc, 8, 8> x, y;
        for (short k = 0; k < BK; k += 8) {
            simdgroup_barrier(mem_flags::mem_none);
            for (short i = 0; i < BM / 8; i++) {
                simdgroup_load(x, (const threadgroup float*)a + i * 8 * BK + k, BK);
                for (short j = 0; j < BN / 8; j++) {
                    simdgroup_load(y, (const threadgroup float*)b + k * BN + j * 8, BN);
                    simdgroup_multiply_accumulate(results[i * (BN / 8) + j], x, y, results[i * (BN / 8) + j]);
                }
            }
        }
    }
    METAL_FUNC void store(device Acc* d, int ld) const {
        for (short i = 0; i < BM / 8; i++)
            for (short j = 0; j < BN / 8; j++) simdgroup_store(results[i * (BN / 8) + j], d + i * 8 * ld + j * 8, ld);
    }
};
struct Shape { const int M, N, K; };
template <typename T, int BM, int BN, int BK>
[[kernel, max_total_threads_per_threadgroup(32)]] void gemm(
    const device T* A [[buffer(0)]], const device T* B [[buffer(1)]], device float* D [[buffer(2)]],
    const constant Shape* shape [[buffer(3)]], uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]], uint3 tid [[threadgroup_position_in_grid]]) {
    threadgroup T As[BM * BK];
    threadgroup T Bs[BK * BN];
    BlockLoader<T, BM, BK, BK, 32> a(A + tid.y * BM * shape->K, shape->K, As, group, lane);
    BlockLoader<T, BK, BN, BN, 32> b(B + tid.x * BN, shape->N, Bs, group, lane);
    Product<T, BM, BN, BK> product(0);
    for (int k = 0; k < shape->K; k += BK) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        a.load_unsafe();
        b.load_safe(short2(BN, BK));
        threadgroup_barrier(mem_flags::mem_threadgroup);
        product.mma(As, Bs);
        a.next();
    }
    product.store(D + tid.y * BM * shape->N + tid.x * BN, shape->N);
}
#define instantiate_gemm(name, T, bm, bn, bk)                                                    \
    template [[host_name("gemm_" #name "_bm" #bm "_bn" #bn "_bk" #bk)]] [[kernel]] void           \
    gemm<T, bm, bn, bk>(                                                                          \
        const device T* A [[buffer(0)]], const device T* B [[buffer(1)]], device float* D [[buffer(2)]], \
        const constant Shape* shape [[buffer(3)]], uint lane [[thread_index_in_simdgroup]],       \
        uint group [[simdgroup_index_in_threadgroup]], uint3 tid [[threadgroup_position_in_grid]]);
instantiate_gemm(float32, float, 16, 16, 8)
instantiate_gemm(float32, float, 32, 32, 16)
//// blocks of four bits, by a table of functions
#define QK 32
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define FOR_UNROLL(x) _Pragma("clang loop unroll(full)") for (x)
typedef struct {
    half d;
    uint8_t qs[QK / 2];
} block_q4;
static_assert(sizeof(block_q4) == sizeof(half) + QK / 2, "wrong block size");
typedef struct {
    int32_t ne00;
    int64_t nb01;
    uint64_t offs;
    float scale;
} args_mul;
constexpr constant static float levels[16] = {-1.f, -0.7f, -0.5f, -0.4f, -0.3f, -0.2f, -0.1f, 0.f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 1.f};
template <typename type4x4>
void dequantize_q4(device const block_q4* xb, short il, thread type4x4& reg) {
    device const uint16_t* qs = ((device const uint16_t*)xb + 1);
    const float d1 = il ? (xb->d / 16.h) : xb->d;
    const float d2 = d1 / 256.f;
    const ushort mask0 = il ? 0x00F0 : 0x000F;
    const ushort mask1 = mask0 << 8;
    float4x4 reg_f;
    for (int i = 0; i < 8; i++) {
        reg_f[i / 2][2 * (i % 2) + 0] = d1 * (qs[i] & mask0);
        reg_f[i / 2][2 * (i % 2) + 1] = d2 * (qs[i] & mask1);
    }
    reg = (type4x4)reg_f;
}
template <typename type4>
void dequantize_q4_t4(device const block_q4* xb, short il, thread type4& reg) {
    for (int i = 0; i < 4; i++) reg[i] = xb->d * levels[xb->qs[il * 2 + i / 2] & 0xF];
}
template <typename block_q, short nl, void (*dequantize_func)(device const block_q*, short, thread float4x4&)>
kernel void kernel_get_rows(
        constant args_mul& args,
        device const void* src0,
        device const void* src1,
        device float* dst,
        uint3 tgpig [[threadgroup_position_in_grid]],
        ushort tiitg [[thread_index_in_threadgroup]],
        ushort3 ntg [[threads_per_threadgroup]]) {
    const int64_t r = ((const device int32_t*)((const device char*)src1))[tgpig.x];
    for (int64_t ind = tiitg; ind < args.ne00 / 16; ind += ntg.x) {
        float4x4 temp;
        dequantize_func(((device const block_q*)((const device char*)src0 + r * args.nb01)) + ind / nl, ind % nl, temp);
        *(((device float4x4*)((device char*)dst + tgpig.x * args.nb01)) + ind) = temp;
    }
}
typedef decltype(kernel_get_rows<block_q4, 2, dequantize_q4>) get_rows_t;
template [[host_name("kernel_get_rows_q4")]] kernel get_rows_t kernel_get_rows<block_q4, 2, dequantize_q4>;
kernel void kernel_norm(constant args_mul& args, device const char* src0, device char* dst, threadgroup float* buf [[threadgroup(0)]],
                        uint tgpig [[threadgroup_position_in_grid]], uint tpitg [[thread_position_in_threadgroup]],
                        ushort sgitg [[simdgroup_index_in_threadgroup]], ushort tiisg [[thread_index_in_simdgroup]],
                        uint ntg [[threads_per_threadgroup]]) {
    if (sgitg == 0) buf[tiisg] = 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device const float4* x = (device const float4*)(src0 + tgpig * args.nb01);
    float4 sumf4 = 0.f;
    FOR_UNROLL (short j = 0; j < 2; j++) sumf4 += x[j];
    for (int i00 = tpitg; i00 < args.ne00 / 4; i00 += ntg) sumf4 += x[i00] * x[i00];
    float sumf = dot(sumf4, float4(1.f));
    sumf = simd_sum(sumf);
    if (tiisg == 0) buf[sgitg] = sumf;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sumf = simd_sum(buf[tiisg]);
    const float scale = 1.0f / sqrt(sumf / args.ne00 + args.scale);
    device float4* y = (device float4*)(dst + tgpig * args.nb01);
    for (int i00 = tpitg; i00 < args.ne00 / 4; i00 += ntg) y[i00] = x[i00] * scale;
}
//// operators of arrays with traits and functors
template <typename T, typename Enable = void> struct opmath { using type = T; };
template <typename T> struct opmath<T, enable_if_t<is_same_v<T, half> || is_same_v<T, bfloat>>> { using type = float; };
template <typename T> using opmath_t = typename opmath<T>::type;
struct sigmoid_functor {
    template <typename T> inline enable_if_t<is_floating_point_v<T>, T> operator()(const T x) const {
        return T(1.0f / (1.0f + ::metal::precise::exp(-static_cast<float>(x))));
    }
    template <typename T> inline enable_if_t<is_integral_v<T>, float> operator()(const T x) const {
        return 1.0f / (1.0f + ::metal::precise::exp(-static_cast<float>(x)));
    }
};
template <typename F, typename T> using result_of = decltype(declval<F>()(declval<T>()));
template <typename T, typename F>
kernel void unary_dense(device result_of<F, T>* output [[buffer(0)]], constant T* input [[buffer(1)]], uint index [[thread_position_in_grid]]) {
    F f;
    output[index] = f(input[index]);
}
template <typename T, typename F>
kernel void unary_strided(device void* output [[buffer(0)]], constant void* input [[buffer(1)]], constant long* sizes [[buffer(2)]],
                          constant long* strides [[buffer(3)]], constant uint& ndim [[buffer(4)]], uint index [[thread_position_in_grid]]) {
    F f;
    long offset = 0;
    for (uint d = 0; d < ndim; d++) { offset += (index % sizes[d]) * strides[d]; index /= sizes[d]; }
    auto x = *reinterpret_cast<constant T*>(reinterpret_cast<constant char*>(input) + offset);
    *reinterpret_cast<device result_of<F, T>*>(static_cast<device char*>(output) + offset) = f(x);
}
#define REGISTER_UNARY_OP(NAME, T, R)                                              \
    static_assert(is_same_v<R, result_of<NAME##_functor, T>>, "output types");      \
    template [[host_name(#NAME "_dense_" #R "_" #T)]] kernel void unary_dense<T, NAME##_functor>( \
        device R* output, constant T* input, uint index);                           \
    template [[host_name(#NAME "_strided_" #R "_" #T)]] kernel void unary_strided<T, NAME##_functor>( \
        device void*, constant void*, constant long*, constant long*, constant uint&, uint)
REGISTER_UNARY_OP(sigmoid, float, float);
REGISTER_UNARY_OP(sigmoid, half, half);
REGISTER_UNARY_OP(sigmoid, int, float);
kernel void log_softmax(device const half* x [[buffer(0)]], device half* y [[buffer(1)]], constant uint2& size [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    opmath_t<half> m = -numeric_limits<opmath_t<half>>::infinity(), s = 0;
    for (uint k = 0; k < size.y; k++) m = ::metal::max(m, static_cast<opmath_t<half>>(x[i * size.y + k]));
    for (uint k = 0; k < size.y; k++) s += ::metal::exp(x[i * size.y + k] - m);
    for (uint k = 0; k < size.y; k++) y[i * size.y + k] = half(x[i * size.y + k] - m - ::metal::log(s));
}
//// particles and a hash of cells (tolerated)
struct Particle { packed_float3 position; float mass; packed_float3 velocity; uint cell; };
struct Simulation { float dt; float3 gravity; uint count; float4x4 transform; uint2 table; };
static uint hash(int3 c) { return (uint(c.x) * 73856093u) ^ (uint(c.y) * 19349663u) ^ (uint(c.z) * 83492791u); }
kernel void step(device Particle* particles [[buffer(0)]], constant Simulation& sim [[buffer(1)]], device atomic_uint* cells [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
    if (i >= sim.count) return;
    Particle p = particles[i];
    float3 v = float3(p.velocity) + sim.gravity * sim.dt;
    float3 x = float3(p.position) + v * sim.dt;
    float4 moved = sim.transform * float4(x, 1.0);
    x = moved.xyz / moved.w;
    if (any(isnan(x))) x = 0.0;
    v = select(v, -v * 0.5, x < 0.0);
    p.position = packed_float3(clamp(x, 0.0, 1.0));
    p.velocity = v;
    p.cell = hash(int3(floor(x * 16.0))) % sim.table.x;
    atomic_fetch_add_explicit(&cells[p.cell], 1u, memory_order_relaxed);
    particles[i] = p;
}
//// a blockwise scan and a sort by bits
#define BITS 4
constant constexpr uint buckets = 1 << BITS;
template <typename T, uint N> T scan_block(T x, threadgroup T (&shared)[N], ushort lane, ushort group) {
    T inside = simd_prefix_exclusive_sum(x);
    if (lane == 31) shared[group] = inside + x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (group == 0) shared[lane] = simd_prefix_exclusive_sum(lane < N ? shared[lane] : T(0));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return inside + shared[group];
}
kernel void sort_bits(device const uint* keys [[buffer(0)]], device uint* out [[buffer(1)]], constant uint& shift [[buffer(2)]],
                      ushort t [[thread_index_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]], ushort group [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint sums[32];
    threadgroup uint offset[buckets];
    uint key = keys[t], digit = (key >> shift) & (buckets - 1), place = 0;
    for (uint b = 0; b < buckets; b++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint mine = digit == b;
        uint before = scan_block(mine, sums, lane, group);
        uint total = simd_broadcast(sums[0], ushort(0));
        if (mine) place = before + total;
        if (t == 0) offset[b] = before;
    }
    out[place] = key + offset[0] * 0;
}
//// an image through a pipeline of stages (tolerated)
struct VertexIn { float2 position [[attribute(0)]]; float2 uv [[attribute(1)]]; };
struct VertexOut { float4 position [[position]]; float2 uv; half3 tint [[flat]]; float clip [[clip_distance]]; };
typedef struct { float4x4 mvp; packed_half3 tint; uint flags; } Frame;
enum BufferIndex : uint { BufferIndexFrame = 1, BufferIndexLights = 2 };
vertex VertexOut vertex_main(VertexIn in [[stage_in]], constant Frame& frame [[buffer(BufferIndexFrame)]], ushort instance [[instance_id]]) {
    VertexOut out = {};
    out.position = frame.mvp * float4(in.position, float(instance), 1.0);
    out.uv = in.uv * 0.5 + 0.5;
    out.tint = half3(frame.tint);
    out.clip = 1.0;
    return out;
}
fragment half4 fragment_main(VertexOut in [[stage_in]], texture2d<half> albedo [[texture(0)]], texture2d_array<float> shadows [[texture(1)]],
                             constant float3* lights [[buffer(BufferIndexLights)]], sampler s [[sampler(0)]]) {
    constexpr sampler compare(compare_func::less, filter::linear);
    half4 c = albedo.sample(s, in.uv, bias(0.5)) * half4(in.tint, 1.0h);
    float lit = shadows.sample(s, in.uv, 2, level(0.0)).x * saturate(dot(lights[0], float3(0, 0, 1)));
    c.rgb *= half(lit);
    return c;
}
kernel void brighten(texture2d<half, access::read> a [[texture(0)]], texture2d<half, access::write> b [[texture(1)]], uint2 i [[thread_position_in_grid]]) {
    b.write(a.read(i) * 1.5h, i);
}
//// a kernel beside the stages of a pipeline (tolerated)
struct Out { float4 position [[position]]; };
vertex Out corner(uint i [[vertex_id]]) { Out o; o.position = float4(i & 1, i >> 1, 0, 1); return o; }
[[fragment]] half4 white(Out in [[stage_in]], texture2d<half> t [[texture(0)]], sampler s [[sampler(0)]]) { return t.sample(s, in.position.xy); }
kernel void clear(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = 0.0; }
//// n bodies with tiles (tolerated)
struct Params { uint count; float dt; float softening; };
static float3 pull(float4 a, float4 b, float eps) {
    float3 d = b.xyz - a.xyz;
    float r2 = dot(d, d) + eps * eps;
    float inv = rsqrt(r2);
    return d * (b.w * inv * inv * inv);
}
kernel void nbody(device const float4 *pos [[buffer(0)]], device float4 *vel [[buffer(1)]], device float4 *next [[buffer(2)]], constant Params &p [[buffer(3)]],
                  threadgroup float4 *tile [[threadgroup(0)]], uint gid [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    float4 me = pos[gid];
    float3 acc = 0;
    for (uint t = 0; t < p.count; t += n) {
        tile[lid] = pos[t + lid];
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll(8)
        for (uint j = 0; j < n; ++j) acc += pull(me, tile[j], p.softening);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    vel[gid].xyz += acc * p.dt;
    next[gid] = float4(me.xyz + vel[gid].xyz * p.dt, me.w);
}
//// histogram with local bins (tolerated)
kernel void histogram(texture2d<half, access::read> image [[texture(0)]], device atomic_uint *out [[buffer(0)]], ushort2 gid [[thread_position_in_grid]], ushort lid [[thread_index_in_threadgroup]], ushort2 size [[threads_per_threadgroup]]) {
    threadgroup atomic_uint bins[256];
    for (ushort i = lid; i < 256; i += size.x * size.y) atomic_store_explicit(&bins[i], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (gid.x < image.get_width() && gid.y < image.get_height()) {
        half3 c = image.read(gid).rgb;
        half luma = dot(c, half3(0.299h, 0.587h, 0.114h));
        atomic_fetch_add_explicit(&bins[uint(clamp(luma, 0.0h, 1.0h) * 255.0h)], 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort i = lid; i < 256; i += size.x * size.y) {
        uint v = atomic_load_explicit(&bins[i], memory_order_relaxed);
        if (v) atomic_fetch_add_explicit(out + i, v, memory_order_relaxed);
    }
}
//// scan of a block in two phases (tolerated)
template <typename T, ushort N> static inline T block_scan(T x, threadgroup T (&shared)[N], ushort lane, ushort warp) {
    T inclusive = simd_prefix_inclusive_sum(x);
    if (lane == 31) shared[warp] = inclusive;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (warp == 0) shared[lane] = simd_prefix_exclusive_sum(lane < N ? shared[lane] : T(0));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return inclusive + shared[warp];
}
kernel void scan(device uint *x [[buffer(0)]], uint gid [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]], ushort warp [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint shared[32];
    x[gid] = block_scan<uint, 32>(x[gid], shared, lane, warp);
}
//// philox (tolerated)
struct Philox {
    uint4 counter; uint2 key;
    uint4 operator()() {
        uint4 c = counter; uint2 k = key;
        for (int i = 0; i < 10; i++) {
            uint hi0 = mulhi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x, hi1 = mulhi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
            c = uint4(hi1 ^ c.y ^ k.x, lo1, hi0 ^ c.w ^ k.y, lo0);
            k += uint2(0x9E3779B9u, 0xBB67AE85u);
        }
        counter.x++;
        return c;
    }
};
kernel void normal(device float2* out [[buffer(0)]], constant ulong& seed [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    Philox rng{uint4(i, 0, 0, 0), as_type<uint2>(seed)};
    uint4 bits = rng();
    float2 u = float2(bits.xy >> 8) * 0x1p-24f;
    float r = sqrt(-2.0f * log(1.0f - u.x));
    out[i] = r * float2(cospi(2 * u.y), sinpi(2 * u.y));
}
//// signed distances (tolerated)
struct Ray { float3 o, d; };
static float sphere(float3 p, float r) { return length(p) - r; }
static float box(thread const float3& p, float3 b) { float3 q = abs(p) - b; return length(max(q, 0.0)) + min(max3(q.x, q.y, q.z), 0.0); }
static float scene(float3 p) { return min(sphere(p, 1.0), box(p - float3(2, 0, 0), float3(0.5))); }
static float3 normal_of(float3 p) {
    const float2 e = float2(0.001, 0);
    return normalize(float3(scene(p + e.xyy) - scene(p - e.xyy), scene(p + e.yxy) - scene(p - e.yxy), scene(p + e.yyx) - scene(p - e.yyx)));
}
kernel void march(texture2d<float, access::write> out [[texture(0)]], constant float4x4& view [[buffer(0)]], uint2 gid [[thread_position_in_grid]]) {
    float2 uv = (float2(gid) + 0.5) / float2(out.get_width(), out.get_height()) * 2 - 1;
    Ray ray = {(view * float4(0, 0, -4, 1)).xyz, normalize((view * float4(uv, 1, 0)).xyz)};
    float t = 0;
    for (int i = 0; i < 64; ++i) {
        float d = scene(ray.o + ray.d * t);
        if (d < 1e-3) break;
        t += d;
    }
    float3 n = normal_of(ray.o + t * ray.d);
    out.write(float4(saturate(dot(n, float3(0.577))) * float3(1, .5, .25), 1), gid);
}
//// fft of radix four (tolerated)
struct cfloat { float re, im; };
static inline float2 cmul(float2 a, float2 b) { return float2(fma(a.x, b.x, -a.y * b.y), fma(a.x, b.y, a.y * b.x)); }
static inline void radix4(thread float2 (&v)[4]) {
    float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = float2(v[1].y - v[3].y, v[3].x - v[1].x);
    v[0] = a + c; v[1] = b + d; v[2] = a - c; v[3] = b - d;
}
template <int N> [[kernel]] void fft(device float2* data [[buffer(0)]], uint lid [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
    threadgroup float2 shared[N];
    float2 v[4];
    for (int i = 0; i < 4; ++i) v[i] = data[group * N + lid + i * (N / 4)];
    for (int stride = 1; stride < N; stride *= 4) {
        radix4(v);
        float angle = -2.0f * M_PI_F * float(lid % stride) / float(4 * stride);
        float c, s = sincos(angle, c);
        for (int i = 0; i < 4; ++i) { shared[(lid * 4 + i) % N] = cmul(v[i], float2(c, s)); }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int i = 0; i < 4; ++i) v[i] = shared[lid + i * (N / 4)];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (int i = 0; i < 4; ++i) data[group * N + lid + i * (N / 4)] = v[i];
}
template [[host_name("fft_64")]] kernel void fft<64>(device float2*, uint, uint);
template [[host_name("fft_256")]] kernel void fft<256>(device float2*, uint, uint);
//// grids and static constants in a class (tolerated)
template <typename T> struct Limits { static constant constexpr T lowest = metal::numeric_limits<T>::lowest(); static constexpr constant T zero = 0; };
struct Max { template <typename T> static constexpr constant T init = Limits<T>::lowest; template <typename T> T operator()(T a, T b) { return a > b ? a : b; } };
template <typename T, typename Op> kernel void reduce(device const T* in [[buffer(0)]], device T* out [[buffer(1)]], constant size_t& n [[buffer(2)]], uint gid [[thread_position_in_grid]], uint gsize [[threads_per_grid]]) {
    T total = Op::template init<T>; Op op;
    for (size_t i = gid; i < n; i += gsize) total = op(total, in[i]);
    out[gid] = total;
}
template [[host_name("max_f")]] [[kernel]] decltype(reduce<float, Max>) reduce<float, Max>;
template [[host_name("max_i")]] [[kernel]] decltype(reduce<int8_t, Max>) reduce<int8_t, Max>;
//// attention in the style of the field (tolerated)
template <typename T, int D, int V = D> [[kernel]] void sdpa_vector(const device T* queries [[buffer(0)]], const device T* keys [[buffer(1)]], const device T* values [[buffer(2)]], device T* out [[buffer(3)]], const constant int& gqa [[buffer(4)]], const constant int& N [[buffer(5)]], const constant size_t& stride [[buffer(6)]], const constant float& scale [[buffer(7)]],
    uint3 tid [[threadgroup_position_in_grid]], uint simd_gid [[simdgroup_index_in_threadgroup]], uint simd_lid [[thread_index_in_simdgroup]]) {
  constexpr int BN = 32, BD = 32, qk = D / BD, vk = V / BD;
  typedef float U;
  thread U q[qk]; thread U k[qk]; thread U o[vk];
  threadgroup U outputs[BN * BD]; threadgroup U max_scores[BN]; threadgroup U sum_exp[BN];
  queries += tid.x * D + simd_lid * qk;
  keys += (tid.x / gqa) * stride + simd_gid * D + simd_lid * qk;
  values += (tid.x / gqa) * stride + simd_gid * V + simd_lid * vk;
  for (int i = 0; i < qk; i++) q[i] = static_cast<U>(scale) * queries[i];
  for (int i = 0; i < vk; i++) o[i] = 0;
  U max_score = -INFINITY, sum = 0;
  for (int i = simd_gid; i < N; i += BN) {
    for (int j = 0; j < qk; j++) k[j] = keys[j];
    U score = 0;
    for (int j = 0; j < qk; j++) score += q[j] * k[j];
    score = simd_sum(score);
    U new_max = max(max_score, score), factor = fast::exp(max_score - new_max), e = fast::exp(score - new_max);
    max_score = new_max; sum = sum * factor + e;
    for (int j = 0; j < vk; j++) o[j] = o[j] * factor + e * values[j];
    keys += BN * D; values += BN * V;
  }
  if (simd_lid == 0) { max_scores[simd_gid] = max_score; sum_exp[simd_gid] = sum; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  max_score = max_scores[simd_lid];
  U new_max = simd_max(max_score), factor = fast::exp(max_score - new_max);
  sum = simd_sum(sum_exp[simd_lid] * factor);
  for (int i = 0; i < vk; i++) {
    outputs[simd_lid * BD + simd_gid] = o[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    o[i] = simd_sum(outputs[simd_gid * BD + simd_lid] * factor) / sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (simd_lid == 0) for (int i = 0; i < vk; i++) out[tid.x * V + simd_gid * vk + i] = static_cast<T>(o[i]);
}
#define instantiate_sdpa(type, d) template [[host_name("sdpa_" #type "_" #d)]] [[kernel]] decltype(sdpa_vector<type, d>) sdpa_vector<type, d>;
instantiate_sdpa(half, 64) instantiate_sdpa(float, 128) instantiate_sdpa(bfloat, 128)
//// bitonic step (tolerated)
kernel void bitonic(device uint2 *keys, constant uint &k, constant uint &j, uint i [[thread_position_in_grid]]) {
    uint l = i ^ j;
    if (l > i) {
        bool up = (i & k) == 0;
        uint2 a = keys[i], b = keys[l];
        if ((a.x > b.x) == up) { keys[i] = b; keys[l] = a; }
    }
}
