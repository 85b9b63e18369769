#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// kernel_reduce_sum_chunks: column chunks
//   smelt.reduce_sum at programs.py:74
[[max_total_threads_per_threadgroup(256)]]
kernel void kernel_reduce_sum_chunks(
    device const float* x [[buffer(0)]],
    device float* partial [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    threadgroup float shared[1024];
    float x_column[16];
    float thread_sum[4];
    uint line = tid / 32u;
    uint member = tid % 32u;
    uint at = group / 2u;
    uint at_1 = (group % 2u * 32u + member) * 4u;
    uint at_2 = at * 2u;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        thread_sum[i] = 0.0f;
    }
    for (uint i = at_2; i < at_2 + 2u; i++) {
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            float4 x_values = *(device const float4*)(x + ((i * 32u + j * 8u + line) * 256u + at_1));
            #pragma unroll
            for (uint k = 0u; k < 4u; k++) {
                x_column[j * 4u + k] = x_values[k];
            }
        }
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            #pragma unroll
            for (uint k = 0u; k < 4u; k++) {
                thread_sum[k] = thread_sum[k] + x_column[j * 4u + k];
            }
        }
    }
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        shared[(i * 8u + line) * 32u + member] = thread_sum[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        uint at_3 = i * 8u;
        float column_sum = shared[at_3 * 32u + member];
        for (uint j = 1u; j < 8u; j++) {
            column_sum += shared[(at_3 + j) * 32u + member];
        }
        thread_sum[i] = column_sum;
    }
    if (line == 0u) {
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            partial[at * 256u + at_1 + i] = thread_sum[i];
        }
    }
}

// kernel_reduce_sum: combine
//   smelt.reduce_sum at programs.py:74
[[max_total_threads_per_threadgroup(256)]]
kernel void kernel_reduce_sum(
    device const float* partial [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    threadgroup float shared[256];
    uint line = tid / 32u;
    uint member = tid % 32u;
    uint row = group * 32u + member;
    float sum = 0.0f;
    for (uint i = line; i < 8u; i += 8u) {
        sum += partial[i * 256u + row];
    }
    shared[line * 32u + member] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float column_sum = shared[member];
    for (uint i = 1u; i < 8u; i++) {
        column_sum += shared[i * 32u + member];
    }
    if (line == 0u) {
        out[row] = column_sum;
    }
}
