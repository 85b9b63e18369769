#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// kernel_dot_general: contract-vector
//   smelt.dot_general at programs.py:66
kernel void kernel_dot_general(
    device const float* a [[buffer(0)]],
    device const float* x [[buffer(1)]],
    device float* out [[buffer(2)]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    uint line = group * 32u + simdgroup * 4u;
    uint line_1 = metal::min(line, 299u);
    uint line_2 = metal::min(line + 1u, 299u);
    uint line_3 = metal::min(line + 2u, 299u);
    uint line_4 = metal::min(line + 3u, 299u);
    float4 sum = float4(0.0f);
    float4 sum_1 = float4(0.0f);
    float4 sum_2 = float4(0.0f);
    float4 sum_3 = float4(0.0f);
    for (uint i = lane * 4u; i < 512u; i += 128u) {
        float4 x_values = *(device const float4*)(x + i);
        float4 a_values = *(device const float4*)(a + (line_1 * 512u + i));
        float4 a_values_1 = *(device const float4*)(a + (line_2 * 512u + i));
        float4 a_values_2 = *(device const float4*)(a + (line_3 * 512u + i));
        float4 a_values_3 = *(device const float4*)(a + (line_4 * 512u + i));
        sum = metal::fma(a_values, x_values, sum);
        sum_1 = metal::fma(a_values_1, x_values, sum_1);
        sum_2 = metal::fma(a_values_2, x_values, sum_2);
        sum_3 = metal::fma(a_values_3, x_values, sum_3);
    }
    float total = simd_sum(sum.x + sum.y + sum.z + sum.w);
    float total_1 = simd_sum(sum_1.x + sum_1.y + sum_1.z + sum_1.w);
    float total_2 = simd_sum(sum_2.x + sum_2.y + sum_2.z + sum_2.w);
    float total_3 = simd_sum(sum_3.x + sum_3.y + sum_3.z + sum_3.w);
    float chosen = lane == 3u ? total_3 : lane == 2u ? total_2 : lane == 1u ? total_1 : total;
    uint line_5 = line + lane;
    if (lane < 4u && line_5 < 300u) {
        out[line_5] = chosen;
    }
}
