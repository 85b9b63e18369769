// Templated softmax: one row per threadgroup, four elements per thread, SIMD-group and threadgroup reductions.
#include <metal_common>
#include <metal_simdgroup>

using namespace metal;

template <typename T>
inline T fast_exp(T x) {
  return fast::exp(x);
}

template <typename T, typename AccT = T, int N_READS = 4>
[[kernel]] void softmax_single_row(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant int& axis_size [[buffer(2)]],
    uint gid [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  int local = lid;
  constexpr int SIMD_SIZE = 32;
  threadgroup AccT local_max[SIMD_SIZE], local_normalizer[SIMD_SIZE];
  AccT ld[N_READS];
  in += gid * size_t(axis_size) + lid * N_READS;
  if (lid * N_READS + N_READS <= uint(axis_size)) {
    for (int i = 0; i < N_READS; i++) {
      ld[i] = AccT(in[i]);
    }
  } else {
    for (int i = 0; i < N_READS; i++) {
      ld[i] = ((local * N_READS + i) < axis_size) ? AccT(in[i]) : numeric_limits<AccT>::lowest();
    }
  }
  if (simd_group_id == 0) {
    local_max[simd_lane_id] = numeric_limits<AccT>::lowest();
    local_normalizer[simd_lane_id] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  AccT maxval = numeric_limits<AccT>::lowest();
  for (int i = 0; i < N_READS; i++) {
    maxval = (maxval < ld[i]) ? ld[i] : maxval;
  }
  maxval = simd_max(maxval);
  if (simd_lane_id == 0) {
    local_max[simd_group_id] = maxval;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group_id == 0) {
    maxval = simd_max(local_max[simd_lane_id]);
    if (simd_lane_id == 0) {
      local_max[0] = maxval;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  maxval = local_max[0];
  AccT normalizer = 0;
  for (int i = 0; i < N_READS; i++) {
    ld[i] = fast_exp(ld[i] - maxval);
    normalizer += ld[i];
  }
  normalizer = simd_sum(normalizer);
  if (simd_lane_id == 0) {
    local_normalizer[simd_group_id] = normalizer;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  normalizer = 1 / simd_sum(local_normalizer[simd_lane_id]);
  out += gid * size_t(axis_size) + lid * N_READS;
  for (int i = 0; i < N_READS; i++) {
    out[i] = T(ld[i] * normalizer);
  }
}

#define instantiate_softmax(name, type, acc) \
  template [[host_name("softmax_" #name)]] [[kernel]] void softmax_single_row<type, acc>( \
      const device type* in [[buffer(0)]], \
      device type* out [[buffer(1)]], \
      constant int& axis_size [[buffer(2)]], \
      uint gid [[threadgroup_position_in_grid]], \
      uint lid [[thread_position_in_threadgroup]], \
      uint simd_lane_id [[thread_index_in_simdgroup]], \
      uint simd_group_id [[simdgroup_index_in_threadgroup]]);

instantiate_softmax(float32, float, float)
instantiate_softmax(float16, half, float)
instantiate_softmax(bfloat16, bfloat, float)

template [[host_name("softmax_exact")]] [[kernel]] decltype(softmax_single_row<half, half, 8>)
    softmax_single_row<half, half, 8>;
