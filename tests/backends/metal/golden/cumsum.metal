#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// kernel_cumsum: scan
//   smelt.cumsum at programs.py:81
[[max_total_threads_per_threadgroup(256)]]
kernel void kernel_cumsum(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    threadgroup float parts[8];
    float line[8];
    float sum = -0.0f;
    for (uint i = 0u; i < 3000u; i += 2048u) {
        uint first = i + tid * 8u;
        #pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            line[j] = -0.0f;
        }
        #pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            uint at = j * 4u;
            uint at_1 = first + at;
            if (at_1 < 3000u) {
                float4 x_values = *(device const float4*)(x + (group * 3000u + at_1));
                #pragma unroll
                for (uint k = 0u; k < 4u; k++) {
                    line[at + k] = x_values[k];
                }
            }
        }
        float sum_1 = -0.0f;
        #pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            float sum_2 = sum_1 + line[j];
            line[j] = sum_2;
            sum_1 = sum_2;
        }
        float below = simd_shuffle_up(sum_1, 1);
        float through = lane < 1u ? sum_1 : below + sum_1;
        float below_1 = simd_shuffle_up(through, 2);
        float through_1 = lane < 2u ? through : below_1 + through;
        float below_2 = simd_shuffle_up(through_1, 4);
        float through_2 = lane < 4u ? through_1 : below_2 + through_1;
        float below_3 = simd_shuffle_up(through_2, 8);
        float through_3 = lane < 8u ? through_2 : below_3 + through_2;
        float below_4 = simd_shuffle_up(through_3, 16);
        float through_4 = lane < 16u ? through_3 : below_4 + through_3;
        float other = simd_shuffle_up(through_4, 1);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane == 31u) {
            parts[simdgroup] = through_4;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float sum_2 = -0.0f;
        float sum_3 = -0.0f;
        #pragma unroll
        for (uint j = 0u; j < 8u; j++) {
            float parts_value = parts[j];
            sum_2 = j < simdgroup ? sum_2 + parts_value : sum_2;
            sum_3 += parts_value;
        }
        float before = sum + (sum_2 + (lane == 0u ? -0.0f : other));
        #pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            uint at = j * 4u;
            uint at_1 = first + at;
            if (at_1 < 3000u) {
                float4 values = float4(0.0f);
                #pragma unroll
                for (uint k = 0u; k < 4u; k++) {
                    values[k] = before + line[at + k];
                }
                *(device float4*)(out + (group * 3000u + at_1)) = values;
            }
        }
        sum += sum_3;
    }
}
