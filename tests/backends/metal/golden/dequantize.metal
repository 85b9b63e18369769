#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_mul_right_shift_bitwise_and_dot_general: contract
//   smelt.mul, smelt.right_shift, smelt.bitwise_and at programs.py:60
//   smelt.convert, smelt.mul, smelt.add at programs.py:61
//   smelt.dot_general at programs.py:62
[[max_total_threads_per_threadgroup(128)]]
kernel void fused_mul_right_shift_bitwise_and_dot_general(
    device const uint* words [[buffer(0)]],
    device const float* scales [[buffer(1)]],
    device const float* biases [[buffer(2)]],
    device const float* x [[buffer(3)]],
    device float* out [[buffer(4)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    alignas(16) threadgroup float tiles[2560];
    uint column = group * 32u;
    uint simd_row = simdgroup / 2u * 16u;
    uint simd_column = simdgroup % 2u * 16u;
    uint lhs_line = tid / 4u;
    uint lhs_place = tid % 4u * 4u;
    uint rhs_line = tid / 16u;
    uint rhs_place = tid % 16u;
    simdgroup_float8x8 matrix = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        uint rhs_line_1 = rhs_line + i * 8u;
        uint rhs_at = column + rhs_line_1;
        uint reshape = rhs_place / 64u;
        uint mul = rhs_place % 8u * 4u;
        bool right_shift = mul < 32u;
        uint reshape_1 = words[rhs_at * 32u + reshape * 8u + rhs_place / 8u % 8u];
        uint reshape_2 = rhs_at * 4u + reshape;
        float convert = float((right_shift ? reshape_1 >> (right_shift ? mul : 0u) : 0u) & 0xfu);
        float add = convert * scales[reshape_2] + biases[reshape_2];
        tiles[rhs_line_1 * 20u + rhs_place + 640u] = add;
    }
    bool test = lhs_line < 8u;
    float4 lhs_values;
    if (test) {
        lhs_values = *(device const float4*)(x + (lhs_line * 256u + lhs_place));
    } else {
        lhs_values = float4(0.0f);
    }
    uint at = lhs_line * 20u + lhs_place;
    *(threadgroup float4*)(tiles + at) = lhs_values;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 sum = matrix;
    simdgroup_float8x8 sum_1 = matrix;
    simdgroup_float8x8 sum_2 = matrix;
    simdgroup_float8x8 sum_3 = matrix;
    for (uint i = 0u; i < 16u; i++) {
        uint next = i + 1u;
        uint this_half = (i & 1u) * 1280u;
        uint other_half = (next & 1u) * 1280u;
        uint depth = metal::min(next, 16u - 1u) * 16u;
        uint lhs_depth = depth + lhs_place;
        float4 lhs_values_1;
        if (test) {
            lhs_values_1 = *(device const float4*)(x + (lhs_line * 256u + lhs_depth));
        } else {
            lhs_values_1 = float4(0.0f);
        }
        if (next < 16u) {
            #pragma unroll
            for (uint j = 0u; j < 4u; j++) {
                uint rhs_line_1 = rhs_line + j * 8u;
                uint rhs_at = column + rhs_line_1;
                uint rhs_depth = depth + rhs_place;
                uint reshape = rhs_depth / 64u;
                uint mul = rhs_depth % 8u * 4u;
                bool right_shift = mul < 32u;
                uint reshape_1 = words[rhs_at * 32u + reshape * 8u + rhs_depth / 8u % 8u];
                uint bitwise_and = (right_shift ? reshape_1 >> (right_shift ? mul : 0u) : 0u) & 0xfu;
                uint reshape_2 = rhs_at * 4u + reshape;
                float add = float(bitwise_and) * scales[reshape_2] + biases[reshape_2];
                tiles[rhs_line_1 * 20u + rhs_place + 640u + other_half] = add;
            }
        }
        #pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            uint inner = j * 8u;
            simdgroup_float8x8 left;
            simdgroup_load(left, tiles + (simd_row * 20u + inner + this_half), 20);
            simdgroup_float8x8 left_1;
            simdgroup_load(left_1, tiles + ((simd_row + 8u) * 20u + inner + this_half), 20);
            simdgroup_float8x8 right;
            uint right_1 = simd_column * 20u + inner + 640u + this_half;
            simdgroup_load(right, tiles + right_1, 20, ulong2(0), true);
            simdgroup_float8x8 right_2;
            uint right_3 = (simd_column + 8u) * 20u + inner + 640u + this_half;
            simdgroup_load(right_2, tiles + right_3, 20, ulong2(0), true);
            simdgroup_multiply_accumulate(sum, left, right, sum);
            simdgroup_multiply_accumulate(sum_2, left_1, right, sum_2);
            simdgroup_multiply_accumulate(sum_1, left, right_2, sum_1);
            simdgroup_multiply_accumulate(sum_3, left_1, right_2, sum_3);
        }
        *(threadgroup float4*)(tiles + (at + other_half)) = lhs_values_1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    uint at_1 = simd_row * 36u + simd_column;
    simdgroup_store(sum, tiles + at_1, 36);
    simdgroup_store(sum_1, tiles + (at_1 + 8u), 36);
    uint at_2 = (simd_row + 8u) * 36u + simd_column;
    simdgroup_store(sum_2, tiles + at_2, 36);
    simdgroup_store(sum_3, tiles + (at_2 + 8u), 36);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint at_3 = tid / 8u;
    uint at_4 = tid % 8u * 4u;
    uint out_column = column + at_4;
    for (uint i = 0u; i < 2u; i++) {
        uint line = at_3 + i * 16u;
        uint at_5 = line * 36u + at_4;
        if (line < 8u) {
            float4 sums = *(threadgroup const float4*)(tiles + at_5);
            *(device float4*)(out + (line * 64u + out_column)) = sums;
        }
    }
}
