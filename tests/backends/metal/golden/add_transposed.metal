#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_add: transpose
//   smelt.add at programs.py:75
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_add(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    threadgroup float tile_0[4160];
    float values[16];
    uint pair = group / 2u;
    uint triangle_row = pair / 3u;
    uint triangle_column = pair % 3u;
    bool test = triangle_column <= triangle_row;
    uint block_row = test ? triangle_row : 1u - triangle_row;
    uint block_column = test ? triangle_column : triangle_column - triangle_row - 1u;
    bool mirrored = group % 2u == 1u;
    if (!(mirrored && block_row == block_column)) {
        uint top = (mirrored ? block_column : block_row) * 64u;
        uint left = (mirrored ? block_row : block_column) * 64u;
        uint line = tid / 16u;
        uint place = tid % 16u * 4u;
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            uint at = i * 4u;
            uint at_1 = (top + line + i * 16u) * 128u + left + place;
            float4 x_values = *(device const float4*)(x + at_1);
            #pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                values[at + j] = x_values[j];
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            uint at = line + i * 16u;
            uint at_1 = at * 65u + place;
            float4 x_values = *(device const float4*)(x + ((left + at) * 128u + top + place));
            #pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                tile_0[at_1 + j] = x_values[j];
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            uint at = line + i * 16u;
            uint at_1 = i * 4u;
            float4 values_1 = float4(0.0f);
            #pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                values_1[j] = values[at_1 + j] + tile_0[(place + j) * 65u + at];
            }
            *(device float4*)(out + ((top + at) * 128u + left + place)) = values_1;
        }
    }
}
