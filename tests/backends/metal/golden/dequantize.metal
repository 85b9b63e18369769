#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_mul_right_shift_bitwise_and_dot_general: contract-words
//   smelt.mul, smelt.right_shift, smelt.bitwise_and at programs.py:60
//   smelt.convert, smelt.mul, smelt.add at programs.py:61
//   smelt.dot_general at programs.py:62
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_mul_right_shift_bitwise_and_dot_general(
    device const uint* words [[buffer(0)]],
    device const float* scales [[buffer(1)]],
    device const float* biases [[buffer(2)]],
    device const float* x [[buffer(3)]],
    device float* out [[buffer(4)]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    uint line = group * 8u + simdgroup;
    float sum = 0.0f;
    float sum_1 = 0.0f;
    float sum_2 = 0.0f;
    float sum_3 = 0.0f;
    float sum_4 = 0.0f;
    float sum_5 = 0.0f;
    float sum_6 = 0.0f;
    float sum_7 = 0.0f;
    for (uint i = lane; i < 32u; i += 32u) {
        uint at = i * 8u;
        float4 x_values = *(device const float4*)(x + at);
        float4 x_values_1 = *(device const float4*)(x + (4u + at));
        uint at_1 = 1u * 256u;
        float4 x_values_2 = *(device const float4*)(x + (at_1 + at));
        float4 x_values_3 = *(device const float4*)(x + (at_1 + 4u + at));
        uint at_2 = 2u * 256u;
        float4 x_values_4 = *(device const float4*)(x + (at_2 + at));
        float4 x_values_5 = *(device const float4*)(x + (at_2 + 4u + at));
        uint at_3 = 3u * 256u;
        float4 x_values_6 = *(device const float4*)(x + (at_3 + at));
        float4 x_values_7 = *(device const float4*)(x + (at_3 + 4u + at));
        uint at_4 = 4u * 256u;
        float4 x_values_8 = *(device const float4*)(x + (at_4 + at));
        float4 x_values_9 = *(device const float4*)(x + (at_4 + 4u + at));
        uint at_5 = 5u * 256u;
        float4 x_values_10 = *(device const float4*)(x + (at_5 + at));
        float4 x_values_11 = *(device const float4*)(x + (at_5 + 4u + at));
        uint at_6 = 6u * 256u;
        float4 x_values_12 = *(device const float4*)(x + (at_6 + at));
        float4 x_values_13 = *(device const float4*)(x + (at_6 + 4u + at));
        uint at_7 = 7u * 256u;
        float4 x_values_14 = *(device const float4*)(x + (at_7 + at));
        float4 x_values_15 = *(device const float4*)(x + (at_7 + 4u + at));
        uint at_8 = line * 4u + i / 8u;
        float scales_value = scales[at_8];
        float biases_value = biases[at_8];
        uint reshape = words[line * 32u + i];
        float add = float(reshape & 0xfu) * scales_value + biases_value;
        float add_1 = float((reshape >> 4) & 0xfu) * scales_value + biases_value;
        float add_2 = float((reshape >> 8) & 0xfu) * scales_value + biases_value;
        float fma = metal::fma(x_values.y, add_1, metal::fma(x_values.x, add, sum));
        float fma_1 = metal::fma(x_values_2.y, add_1, metal::fma(x_values_2.x, add, sum_1));
        float fma_2 = metal::fma(x_values_4.y, add_1, metal::fma(x_values_4.x, add, sum_2));
        float fma_3 = metal::fma(x_values_6.y, add_1, metal::fma(x_values_6.x, add, sum_3));
        float fma_4 = metal::fma(x_values_8.y, add_1, metal::fma(x_values_8.x, add, sum_4));
        float fma_5 = metal::fma(x_values_10.y, add_1, metal::fma(x_values_10.x, add, sum_5));
        float fma_6 = metal::fma(x_values_12.y, add_1, metal::fma(x_values_12.x, add, sum_6));
        float fma_7 = metal::fma(x_values_14.y, add_1, metal::fma(x_values_14.x, add, sum_7));
        float add_3 = float((reshape >> 12) & 0xfu) * scales_value + biases_value;
        float add_4 = float((reshape >> 16) & 0xfu) * scales_value + biases_value;
        float fma_8 = metal::fma(x_values.w, add_3, metal::fma(x_values.z, add_2, fma));
        float fma_9 = metal::fma(x_values_2.w, add_3, metal::fma(x_values_2.z, add_2, fma_1));
        float fma_10 = metal::fma(x_values_4.w, add_3, metal::fma(x_values_4.z, add_2, fma_2));
        float fma_11 = metal::fma(x_values_6.w, add_3, metal::fma(x_values_6.z, add_2, fma_3));
        float fma_12 = metal::fma(x_values_8.w, add_3, metal::fma(x_values_8.z, add_2, fma_4));
        float fma_13 = metal::fma(x_values_10.w, add_3, metal::fma(x_values_10.z, add_2, fma_5));
        float fma_14 = metal::fma(x_values_12.w, add_3, metal::fma(x_values_12.z, add_2, fma_6));
        float fma_15 = metal::fma(x_values_14.w, add_3, metal::fma(x_values_14.z, add_2, fma_7));
        float add_5 = float((reshape >> 20) & 0xfu) * scales_value + biases_value;
        float add_6 = float((reshape >> 24) & 0xfu) * scales_value + biases_value;
        float fma_16 = metal::fma(x_values_1.y, add_5, metal::fma(x_values_1.x, add_4, fma_8));
        float fma_17 = metal::fma(x_values_3.y, add_5, metal::fma(x_values_3.x, add_4, fma_9));
        float fma_18 = metal::fma(x_values_5.y, add_5, metal::fma(x_values_5.x, add_4, fma_10));
        float fma_19 = metal::fma(x_values_7.y, add_5, metal::fma(x_values_7.x, add_4, fma_11));
        float fma_20 = metal::fma(x_values_9.y, add_5, metal::fma(x_values_9.x, add_4, fma_12));
        float fma_21 = metal::fma(x_values_11.y, add_5, metal::fma(x_values_11.x, add_4, fma_13));
        float fma_22 = metal::fma(x_values_13.y, add_5, metal::fma(x_values_13.x, add_4, fma_14));
        float fma_23 = metal::fma(x_values_15.y, add_5, metal::fma(x_values_15.x, add_4, fma_15));
        float add_7 = float((reshape >> 28) & 0xfu) * scales_value + biases_value;
        sum = metal::fma(x_values_1.w, add_7, metal::fma(x_values_1.z, add_6, fma_16));
        sum_1 = metal::fma(x_values_3.w, add_7, metal::fma(x_values_3.z, add_6, fma_17));
        sum_2 = metal::fma(x_values_5.w, add_7, metal::fma(x_values_5.z, add_6, fma_18));
        sum_3 = metal::fma(x_values_7.w, add_7, metal::fma(x_values_7.z, add_6, fma_19));
        sum_4 = metal::fma(x_values_9.w, add_7, metal::fma(x_values_9.z, add_6, fma_20));
        sum_5 = metal::fma(x_values_11.w, add_7, metal::fma(x_values_11.z, add_6, fma_21));
        sum_6 = metal::fma(x_values_13.w, add_7, metal::fma(x_values_13.z, add_6, fma_22));
        sum_7 = metal::fma(x_values_15.w, add_7, metal::fma(x_values_15.z, add_6, fma_23));
    }
    float total = simd_sum(sum);
    float total_1 = simd_sum(sum_1);
    float total_2 = simd_sum(sum_2);
    float total_3 = simd_sum(sum_3);
    float total_4 = simd_sum(sum_4);
    float total_5 = simd_sum(sum_5);
    float total_6 = simd_sum(sum_6);
    float total_7 = simd_sum(sum_7);
    uint line_1 = line + lane;
    if (lane < 1u) {
        out[line_1] = total;
        out[1u * 64u + line_1] = total_1;
        out[2u * 64u + line_1] = total_2;
        out[3u * 64u + line_1] = total_3;
        out[4u * 64u + line_1] = total_4;
        out[5u * 64u + line_1] = total_5;
        out[6u * 64u + line_1] = total_6;
        out[7u * 64u + line_1] = total_7;
    }
}
