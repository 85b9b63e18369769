#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// Metal's own fmax skips NaN.
static inline float nan_max(float a, float b) {
    return metal::isunordered(a, b) ? float(NAN) : metal::fmax(a, b);
}

// fused_conv_general_add_maximum: contract
//   smelt.conv_general, smelt.add, smelt.maximum at programs.py:55
[[max_total_threads_per_threadgroup(128)]]
kernel void fused_conv_general_add_maximum(
    device const float* x [[buffer(0)]],
    device const float* w [[buffer(1)]],
    device const float* b [[buffer(2)]],
    device float* out [[buffer(3)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    alignas(16) threadgroup float tiles[2560];
    uint row = group % 4u * 32u;
    uint column = group / 4u * 32u;
    uint simd_row = simdgroup / 2u * 16u;
    uint simd_column = simdgroup % 2u * 16u;
    uint lhs_line = tid / 4u;
    uint lhs_place = tid % 4u * 4u;
    simdgroup_float8x8 matrix = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    uint lhs_at = row + lhs_line;
    uint at = lhs_at % 64u;
    uint at_1 = at + lhs_place / 32u - 1u;
    float4 chosen;
    if (int(at_1) >= 0 && int(at_1) < 64) {
        chosen = *(device const float4*)(x + (lhs_at * 32u + lhs_place - 32u));
    } else {
        chosen = float4(0.0f);
    }
    uint at_2 = (column + lhs_line) * 96u;
    float4 rhs_values = *(device const float4*)(w + (at_2 + lhs_place));
    uint at_3 = lhs_line * 20u + lhs_place;
    *(threadgroup float4*)(tiles + at_3) = chosen;
    uint at_4 = at_3 + 640u;
    *(threadgroup float4*)(tiles + at_4) = rhs_values;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 sum = matrix;
    simdgroup_float8x8 sum_1 = matrix;
    simdgroup_float8x8 sum_2 = matrix;
    simdgroup_float8x8 sum_3 = matrix;
    for (uint i = 0u; i < 6u; i++) {
        uint next = i + 1u;
        uint this_half = (i & 1u) * 1280u;
        uint other_half = (next & 1u) * 1280u;
        uint lhs_depth = metal::min(next, 6u - 1u) * 16u + lhs_place;
        uint at_5 = at + lhs_depth / 32u - 1u;
        float4 chosen_1;
        if (int(at_5) >= 0 && int(at_5) < 64) {
            chosen_1 = *(device const float4*)(x + (lhs_at * 32u + lhs_depth - 32u));
        } else {
            chosen_1 = float4(0.0f);
        }
        float4 rhs_values_1 = *(device const float4*)(w + (at_2 + lhs_depth));
        #pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            uint inner = j * 8u;
            uint left = simd_row * 20u + inner;
            simdgroup_float8x8 left_1;
            simdgroup_load(left_1, tiles + (left + this_half), 20);
            simdgroup_float8x8 left_2;
            simdgroup_load(left_2, tiles + (left + 160u + this_half), 20);
            uint right = simd_column * 20u + inner;
            simdgroup_float8x8 right_1;
            simdgroup_load(right_1, tiles + (right + 640u + this_half), 20, ulong2(0), true);
            simdgroup_float8x8 right_2;
            simdgroup_load(right_2, tiles + (right + 160u + 640u + this_half), 20, ulong2(0), true);
            simdgroup_multiply_accumulate(sum, left_1, right_1, sum);
            simdgroup_multiply_accumulate(sum_2, left_2, right_1, sum_2);
            simdgroup_multiply_accumulate(sum_1, left_1, right_2, sum_1);
            simdgroup_multiply_accumulate(sum_3, left_2, right_2, sum_3);
        }
        *(threadgroup float4*)(tiles + (at_3 + other_half)) = chosen_1;
        *(threadgroup float4*)(tiles + (at_4 + other_half)) = rhs_values_1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    uint at_5 = simd_row * 36u + simd_column;
    simdgroup_store(sum, tiles + at_5, 36);
    simdgroup_store(sum_1, tiles + (at_5 + 8u), 36);
    uint at_6 = (simd_row + 8u) * 36u + simd_column;
    simdgroup_store(sum_2, tiles + at_6, 36);
    simdgroup_store(sum_3, tiles + (at_6 + 8u), 36);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint at_7 = tid / 8u;
    uint at_8 = tid % 8u * 4u;
    uint out_column = column + at_8;
    for (uint i = 0u; i < 2u; i++) {
        uint line = at_7 + i * 16u;
        float4 sums = *(threadgroup const float4*)(tiles + (line * 36u + at_8));
        float4 b_values = *(device const float4*)(b + out_column);
        float4 result = float4(0.0f);
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            result[j] = nan_max(sums[j] + b_values[j], 0.0f);
        }
        *(device float4*)(out + ((row + line) * 64u + out_column)) = result;
    }
}
