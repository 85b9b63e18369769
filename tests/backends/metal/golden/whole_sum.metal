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

static inline float simd_reduce_sum_f32_of_8(float x) {
    float other = simd_shuffle_xor(x, 4);
    float sum = x + other;
    float other_1 = simd_shuffle_xor(sum, 2);
    float sum_1 = sum + other_1;
    float other_2 = simd_shuffle_xor(sum_1, 1);
    return sum_1 + other_2;
}

static inline float simd_reduce_sum_f32_of_4(float x) {
    float other = simd_shuffle_xor(x, 2);
    float sum = x + other;
    float other_1 = simd_shuffle_xor(sum, 1);
    return sum + other_1;
}

// kernel_reduce_sum_chunks: row chunks
//   smelt.reduce_sum at programs.py:73
[[max_total_threads_per_threadgroup(256)]]
kernel void kernel_reduce_sum_chunks(
    device const float* x [[buffer(0)]],
    device float* partial [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    threadgroup float shared[8];
    float x_row[16];
    uint at = group * 3u;
    float thread_sum = 0.0f;
    for (uint i = at; i < metal::min(at + 3u, 245u); i++) {
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            uint at_1 = metal::min(i * 1024u + j * 256u + tid, 249999u) * 4u;
            float4 x_values = *(device const float4*)(x + at_1);
            #pragma unroll
            for (uint k = 0u; k < 4u; k++) {
                x_row[j * 4u + k] = x_values[k];
            }
        }
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            bool inside = i * 1024u + j * 256u + tid < 250000u;
            #pragma unroll
            for (uint k = 0u; k < 4u; k++) {
                thread_sum = inside ? thread_sum + x_row[j * 4u + k] : thread_sum;
            }
        }
    }
    float row_sum = simd_reduce_sum_f32(thread_sum);
    if (lane == 0u) {
        shared[simdgroup] = row_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float row_sum_1 = simd_reduce_sum_f32_of_8(shared[lane & 7u]);
    if (tid == 0u) {
        partial[group] = row_sum_1;
    }
}

// kernel_reduce_sum: combine
//   smelt.reduce_sum at programs.py:73
[[max_total_threads_per_threadgroup(128)]]
kernel void kernel_reduce_sum(
    device const float* partial [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    threadgroup float shared[4];
    float sum = 0.0f;
    for (uint i = tid; i < 82u; i += 128u) {
        sum += partial[i];
    }
    float row_sum = simd_reduce_sum_f32(sum);
    if (lane == 0u) {
        shared[simdgroup] = row_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float row_sum_1 = simd_reduce_sum_f32_of_4(shared[lane & 3u]);
    if (tid == 0u) {
        out[0u] = row_sum_1;
    }
}
