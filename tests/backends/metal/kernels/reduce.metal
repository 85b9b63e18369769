// Reductions over any operation, with operations as structures; argmax; inclusive scan; atomics.
#include <metal_stdlib>
#include <metal_atomic>
#include <metal_simdgroup>
#pragma METAL internals : enable
#pragma METAL fp contract(off)

using namespace metal;

static constant constexpr const int kLanes = 32;
constant bool has_weights [[function_constant(0)]];
constant int block_size [[function_constant(1)]];
constant float table[4] = {0.0f, 0.5f, 1.0f, 2.0f};
constant float4 basis[2] = {float4(1, 0, 0, 0), float4(0.5f)};

template <typename U>
struct Sum {
  static constexpr constant U init = U(0);
  template <typename T>
  T simd_reduce(T val) {
    return simd_sum(val);
  }
  template <typename T>
  void atomic_update(device atomic<T>* out, T val, size_t offset = 0) {
    atomic_fetch_add_explicit(out + offset, val, memory_order_relaxed);
  }
  U operator()(U a, U b) { return a + b; }
};

template <typename U>
struct Max {
  static constexpr constant U init = metal::numeric_limits<U>::lowest();
  template <typename T>
  metal::enable_if_t<!metal::is_integral_v<T>, T> simd_reduce(T val) {
    return simd_max(val);
  }
  template <typename T>
  metal::enable_if_t<metal::is_integral_v<T>, T> simd_reduce(T val) {
    return simd_max(val);
  }
  U operator()(U a, U b) const { return a > b ? a : b; }
};

template <typename U>
struct IndexValPair {
  uint index;
  U val;
};

template <typename U>
struct ArgMax {
  static constexpr constant U init = numeric_limits<U>::lowest();
  IndexValPair<U> reduce(IndexValPair<U> best, IndexValPair<U> current) {
    if (best.val < current.val || (best.val == current.val && best.index > current.index)) {
      return current;
    } else {
      return best;
    }
  }
  template <int N>
  IndexValPair<U> reduce_many(IndexValPair<U> best, thread U* vals, uint offset) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (vals[i] > best.val) {
        best.val = vals[i];
        best.index = offset + i;
      }
    }
    return best;
  }
};

template <typename U>
IndexValPair<U> simd_shuffle_down(IndexValPair<U> data, uint16_t delta) {
  return IndexValPair<U>{simd_shuffle_down(data.index, delta), simd_shuffle_down(data.val, delta)};
}

inline size_t elem_to_loc(uint elem, constant const int* shape, constant const size_t* strides, int ndim) {
  size_t loc = 0;
  for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
    loc += (elem % shape[i]) * strides[i];
    elem /= shape[i];
  }
  return loc;
}

template <typename T, typename U, typename Op, int N_READS = 4>
[[kernel]] void all_reduce(
    const device T* in [[buffer(0)]],
    device atomic<U>* out [[buffer(1)]],
    const constant size_t& in_size [[buffer(2)]],
    uint gid [[thread_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint grid_size [[threads_per_grid]],
    uint simd_per_group [[simdgroups_per_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op op;
  threadgroup U shared_vals[kLanes];
  U total = Op::init;
  for (size_t r = gid; r < in_size; r += grid_size) {
    total = op(static_cast<U>(total), static_cast<U>(in[r]));
  }
  total = op.simd_reduce(total);
  if (simd_lane_id == 0) {
    shared_vals[simd_group_id] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  total = lid < simd_per_group ? shared_vals[lid] : op.init;
  total = op.simd_reduce(total);
  if (lid == 0) {
    atomic_fetch_add_explicit(out, total, memory_order_relaxed);
  }
}

template [[host_name("all_reduce_sum_f32")]] [[kernel]] decltype(all_reduce<float, float, Sum<float>>)
    all_reduce<float, float, Sum<float>>;
template [[host_name("all_reduce_max_i32")]] [[kernel]] decltype(all_reduce<int, int, Max<int>>)
    all_reduce<int, int, Max<int>>;

template <typename T, typename Op, int N_READS = 4>
[[kernel]] void arg_reduce_general(
    const device T* in [[buffer(0)]],
    device uint32_t* out [[buffer(1)]],
    const constant int* shape [[buffer(2)]],
    const constant size_t* in_strides [[buffer(3)]],
    const constant size_t& ndim [[buffer(5)]],
    const constant size_t& axis_size [[buffer(7)]],
    uint gid [[thread_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint lsize [[threads_per_threadgroup]],
    uint simd_size [[threads_per_simdgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  Op op;
  auto in_idx = elem_to_loc(gid / lsize, shape, in_strides, ndim);
  IndexValPair<T> best{0, Op::init};
  threadgroup IndexValPair<T> local_data[32];
  for (uint r = 0; r < (axis_size + lsize * N_READS - 1) / (lsize * N_READS); r++) {
    T vals[N_READS];
    for (uint i = 0; i < N_READS; i++) {
      vals[i] = in[in_idx + r * lsize * N_READS + lid * N_READS + i];
    }
    best = op.template reduce_many<N_READS>(best, vals, r * lsize * N_READS + lid * N_READS);
  }
  for (uint offset = simd_size / 2; offset > 0; offset /= 2) {
    IndexValPair<T> neighbor = simd_shuffle_down(best, offset);
    best = op.reduce(best, neighbor);
  }
  if (simd_lane_id == 0) {
    local_data[simd_group_id] = best;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group_id == 0) {
    best = local_data[simd_lane_id];
  }
  if (lid == 0) {
    out[gid / lsize] = best.index;
  }
}
template [[host_name("argmax_float32")]] [[kernel]] void arg_reduce_general<float, ArgMax<float>>(
    const device float* in [[buffer(0)]], device uint32_t* out [[buffer(1)]], const constant int* shape [[buffer(2)]],
    const constant size_t* in_strides [[buffer(3)]], const constant size_t& ndim [[buffer(5)]],
    const constant size_t& axis_size [[buffer(7)]], uint gid [[thread_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]], uint lsize [[threads_per_threadgroup]],
    uint simd_size [[threads_per_simdgroup]], uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]);

kernel void inclusive_scan(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                           constant uint& n [[buffer(2)]], uint lid [[thread_index_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
                           uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[32];
  float carry = has_weights ? table[1] : 0.0f;
  uint steps = (n + 1023) / 1024;
  for (uint r = 0; r < steps; r++) {
    uint i = r * 1024 + lid;
    float v = i < n ? in[i] : 0;
    float prefix = simd_prefix_inclusive_sum(v);
    if (lane == 31) sums[sg] = prefix;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg == 0) sums[lane] = simd_prefix_exclusive_sum(lane < sgs ? sums[lane] : 0.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < n) out[i] = carry + sums[sg] + prefix;
    carry += sums[31];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

kernel void histogram(device const uint* in [[buffer(0)]], device atomic_uint* bins [[buffer(1)]],
                      device atomic_int* low [[buffer(2)]], uint i [[thread_position_in_grid]],
                      uint l [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint part[256];
  threadgroup atomic_int flag;
  atomic_store_explicit(&part[l], 0, memory_order_relaxed);
  if (l == 0) atomic_store_explicit(&flag, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&part[in[i] & 255], 1u, memory_order_relaxed);
  atomic_fetch_min_explicit(low, int(in[i]), memory_order_relaxed);
  uint expected = atomic_load_explicit(&bins[l], memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&bins[l], &expected, expected + 1, memory_order_relaxed,
                                                memory_order_relaxed)) {
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  atomic_fetch_add_explicit(bins + l, atomic_load_explicit(&part[l], memory_order_relaxed), memory_order_relaxed);
}
