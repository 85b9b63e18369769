#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

static inline float simd_reduce_sum_f32(float x) {
    float other = simd_shuffle_xor(x, 16);
    float sum = x + other;
    float other_1 = simd_shuffle_xor(sum, 8);
    float sum_1 = sum + other_1;
    float other_2 = simd_shuffle_xor(sum_1, 4);
    float sum_2 = sum_1 + other_2;
    float other_3 = simd_shuffle_xor(sum_2, 2);
    float sum_3 = sum_2 + other_3;
    float other_4 = simd_shuffle_xor(sum_3, 1);
    return sum_3 + other_4;
}

static inline float simd_reduce_sum_f32_of_4(float x) {
    float other = simd_shuffle_xor(x, 2);
    float sum = x + other;
    float other_1 = simd_shuffle_xor(sum, 1);
    return sum + other_1;
}

static inline float rsqrt_f16(float x) {
    return 1.0f / metal::precise::sqrt(x);
}

// fused_mul_convert_reduce_sum_rsqrt: row
//   smelt.mul, smelt.convert, smelt.reduce_sum, smelt.add, smelt.rsqrt at programs.py:30
[[max_total_threads_per_threadgroup(128)]]
kernel void fused_mul_convert_reduce_sum_rsqrt(
    device const half* x [[buffer(0)]],
    device const half* weight [[buffer(1)]],
    device half* out [[buffer(2)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    threadgroup float shared[4];
    float weight_row[4];
    float x_row[4];
    uint at = tid * 4u;
    uint at_1 = group * 512u + at;
    half4 x_values = *(device const half4*)(x + at_1);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        x_row[i] = float(x_values[i]);
    }
    float thread_sum = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float x_row_value = x_row[i];
        thread_sum += x_row_value * x_row_value;
    }
    float row_sum = simd_reduce_sum_f32(thread_sum);
    if (lane == 0u) {
        shared[simdgroup] = row_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float row_sum_1 = simd_reduce_sum_f32_of_4(shared[lane & 3u]);
    float rsqrt = rsqrt_f16(float(half(row_sum_1 * 0.001953125f)) + 1.001358e-05f);
    half4 weight_values = *(device const half4*)(weight + at);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        weight_row[i] = float(weight_values[i]);
    }
    half4 values = half4(0.0h);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        values[i] = half(x_row[i] * rsqrt * weight_row[i]);
    }
    *(device half4*)(out + at_1) = values;
}
