#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// kernel_dot_general: contract-vector
//   smelt.dot_general at programs.py:77
[[max_total_threads_per_threadgroup(256)]]
kernel void kernel_dot_general(
    device const float* a [[buffer(0)]],
    device const float* x [[buffer(1)]],
    device float* out [[buffer(2)]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    uint line = group * 8u + simdgroup;
    uint line_1 = metal::min(line, 299u);
    float4 sum = float4(0.0f);
    for (uint i = lane * 4u; i < 512u; i += 128u) {
        float4 a_values = *(device const float4*)(a + (line_1 * 512u + i));
        sum = metal::fma(a_values, *(device const float4*)(x + i), sum);
    }
    float total = simd_sum(sum.x + sum.y + sum.z + sum.w);
    uint line_2 = line + lane;
    if (lane < 1u && line_2 < 300u) {
        out[line_2] = total;
    }
}
