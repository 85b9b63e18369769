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

static inline float rsqrt_f32(float x) {
    return 1.0f / metal::precise::sqrt(x);
}

// fused_reduce_sum_mul_reduce_sum_rsqrt: row
//   smelt.reduce_sum, smelt.mul at programs.py:23
//   smelt.sub at programs.py:24
//   smelt.mul, smelt.reduce_sum at programs.py:25
//   smelt.add, smelt.rsqrt, smelt.mul at programs.py:26
[[max_total_threads_per_threadgroup(128)]]
kernel void fused_reduce_sum_mul_reduce_sum_rsqrt(
    device const float* x [[buffer(0)]],
    device const float* weight [[buffer(1)]],
    device const float* bias [[buffer(2)]],
    device float* out [[buffer(3)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    threadgroup float shared[4];
    threadgroup float shared_1[4];
    float bias_row[4];
    float weight_row[4];
    float x_row[4];
    uint at = tid * 4u;
    uint at_1 = group * 512u + at;
    float4 x_values = *(device const float4*)(x + at_1);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        x_row[i] = x_values[i];
    }
    float thread_sum = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        thread_sum += x_row[i];
    }
    float row_sum = simd_reduce_sum_f32(thread_sum);
    bool test = lane == 0u;
    if (test) {
        shared[simdgroup] = row_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint at_2 = lane & 3u;
    float row_sum_1 = simd_reduce_sum_f32_of_4(shared[at_2]);
    float mul = row_sum_1 * 0.001953125f;
    float thread_sum_1 = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float sub = x_row[i] - mul;
        thread_sum_1 += sub * sub;
    }
    float row_sum_2 = simd_reduce_sum_f32(thread_sum_1);
    if (test) {
        shared_1[simdgroup] = row_sum_2;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float row_sum_3 = simd_reduce_sum_f32_of_4(shared_1[at_2]);
    float rsqrt = rsqrt_f32(row_sum_3 * 0.001953125f + 1e-05f);
    float4 weight_values = *(device const float4*)(weight + at);
    float4 bias_values = *(device const float4*)(bias + at);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        weight_row[i] = weight_values[i];
        bias_row[i] = bias_values[i];
    }
    float4 values = float4(0.0f);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        values[i] = (x_row[i] - mul) * rsqrt * weight_row[i] + bias_row[i];
    }
    *(device float4*)(out + at_1) = values;
}
