// Layer norm and RMS norm with arguments in a structure, dynamic threadgroup memory, float4 rows.
#include <metal_stdlib>
using namespace metal;

#define N_SIMDWIDTH 32
#define FOR_UNROLL(x) _Pragma("clang loop unroll(full)") for (x)

typedef struct {
  int32_t ne00;
  int32_t ne00_4;
  uint64_t nb01;
  float eps;
} norm_args;


template <typename T, typename T4>
inline T sum4(T4 v) {
  return dot(v, T4(1));
}

kernel void kernel_rms_norm(
    constant norm_args & args [[buffer(0)]],
    device const char * src0 [[buffer(1)]],
    device char * dst [[buffer(2)]],
    threadgroup float * shmem_f32 [[threadgroup(0)]],
    uint tgpig [[threadgroup_position_in_grid]],
    ushort tpitg [[thread_position_in_threadgroup]],
    ushort sgitg [[simdgroup_index_in_threadgroup]],
    ushort tiisg [[thread_index_in_simdgroup]],
    ushort ntg [[threads_per_threadgroup]]) {
  if (sgitg == 0) {
    shmem_f32[tiisg] = 0.0f;
  }
  device const float4 * x = (device const float4 *) (src0 + tgpig * args.nb01);
  float sumf = 0.0f;
  for (int i00 = tpitg; i00 < args.ne00_4; i00 += ntg) {
    sumf += dot(x[i00], x[i00]);
  }
  sumf = simd_sum(sumf);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tiisg == 0) {
    shmem_f32[sgitg] = sumf;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sumf = shmem_f32[tiisg];
  sumf = simd_sum(sumf);
  const float mean  = sumf / args.ne00;
  const float scale = 1.0f / sqrt(mean + args.eps);
  device float4 * y = (device float4 *) dst + tgpig * args.ne00_4;
  for (int i00 = tpitg; i00 < args.ne00_4; i00 += ntg) {
    y[i00] = x[i00] * scale;
  }
}

struct Welford {
  float mean;
  float m2;
  float count;
  Welford() = default;
  Welford(float m, float s, float c) : mean(m), m2(s), count(c) {}
  void add(float x) {
    count += 1;
    float delta = x - mean;
    mean += delta / count;
    m2 += delta * (x - mean);
  }
  float variance() const { return m2 / count; }
};

inline Welford combine(Welford a, Welford b) {
  float n = a.count + b.count;
  float delta = b.mean - a.mean;
  return Welford(a.mean + delta * b.count / n, a.m2 + b.m2 + delta * delta * a.count * b.count / n, n);
}

template <typename T>
kernel void layer_norm(
    device const T* x [[buffer(0)]],
    device const T* w [[buffer(1)]],
    device const T* b [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant float& eps [[buffer(4)]],
    constant uint& axis_size [[buffer(5)]],
    uint2 tid [[thread_position_in_threadgroup]],
    uint2 tptg [[threads_per_threadgroup]],
    uint2 tgid [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  x += tgid.y * axis_size;
  out += tgid.y * axis_size;
  Welford acc(0.0f, 0.0f, 0.0f);
  for (uint i = tid.x; i < axis_size; i += tptg.x) {
    acc.add(float(x[i]));
  }
  FOR_UNROLL (ushort d = 1; d < N_SIMDWIDTH; d <<= 1) {
    Welford other(simd_shuffle_xor(acc.mean, d), simd_shuffle_xor(acc.m2, d), simd_shuffle_xor(acc.count, d));
    acc = combine(acc, other);
  }
  float rstd = metal::precise::rsqrt(acc.variance() + eps);
  for (uint i = tid.x; i < axis_size; i += tptg.x) {
    out[i] = static_cast<T>((float(x[i]) - acc.mean) * rstd * float(w[i]) + float(b[i]));
  }
}

typedef decltype(layer_norm<float>) layer_norm_t;
template [[host_name("layer_norm_f32")]] kernel layer_norm_t layer_norm<float>;
template [[host_name("layer_norm_bf16")]] kernel void layer_norm<bfloat>(
    device const bfloat*, device const bfloat*, device const bfloat*, device bfloat*, constant float&, constant uint&,
    uint2, uint2, uint2, uint);
