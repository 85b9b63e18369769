#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_add: transpose
//   smelt.add at programs.py:64
kernel void fused_add(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    threadgroup float shared[1056];
    uint at = tid / 32u;
    uint at_1 = tid % 32u;
    for (uint i = group; i < 16u; i += 16u) {
        uint at_2 = i / 4u * 32u;
        uint at_3 = i % 4u * 32u;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            shared[(at + j * 8u) * 33u + at_1] = x[(at_3 + at + j * 8u) * 128u + at_2 + at_1];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            uint add = (at_2 + at + j * 8u) * 128u + at_3 + at_1;
            out[add] = x[add] + shared[at_1 * 33u + at + j * 8u];
        }
    }
}
