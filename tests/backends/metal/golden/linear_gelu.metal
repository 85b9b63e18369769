#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

static inline float erf_f32(float x) {
    float magnitude = metal::fabs(x);
    float product = x * x;
    float fma = metal::fma(-0.0005660097f, product, 0.004924775f);
    float fma_1 = metal::fma(metal::fma(fma, product, -0.026717694f), product, 0.112804115f);
    float fma_2 = metal::fma(metal::fma(fma_1, product, -0.37612355f), product, 0.12837912f);
    float chosen = magnitude > 4.0f ? 4.0f : magnitude;
    float fma_3 = metal::fma(1.578474e-05f, chosen, -4.1534313e-05f);
    float fma_4 = metal::fma(metal::fma(fma_3, chosen, -0.001498298f), chosen, 0.010248516f);
    float fma_5 = metal::fma(metal::fma(fma_4, chosen, -0.0070434785f), chosen, -0.06553904f);
    float fma_6 = metal::fma(metal::fma(fma_5, chosen, -0.14293465f), chosen, 1.0003729f);
    float product_1 = fma_6 * fma_6;
    float product_2 = product_1 * product_1;
    float copysign = metal::copysign(metal::fma(-product_2, product_2, 1.0f), x);
    return magnitude < 1.0f ? metal::fma(x, fma_2, x) : copysign;
}

// fused_dot_general_add_mul_erf: contract
//   smelt.dot_general, smelt.add at programs.py:34
//   smelt.mul, smelt.erf, smelt.add at programs.py:14
[[max_total_threads_per_threadgroup(128)]]
kernel void fused_dot_general_add_mul_erf(
    device const float* x [[buffer(0)]],
    device const float* weight [[buffer(1)]],
    device const float* bias [[buffer(2)]],
    device float* out [[buffer(3)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    alignas(16) threadgroup float tiles[2432];
    uint row = group % 4u * 32u;
    uint simd_row = simdgroup / 2u * 16u;
    uint simd_column = simdgroup % 2u * 16u;
    uint lhs_line = tid / 4u;
    uint lhs_place = tid % 4u * 4u;
    uint rhs_line = tid / 8u;
    uint rhs_place = tid % 8u * 4u;
    simdgroup_float8x8 matrix = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    uint at = (row + lhs_line) * 96u;
    uint rhs_at = group / 4u * 32u + rhs_place;
    float4 rhs_values = *(device const float4*)(weight + (rhs_line * 64u + rhs_at));
    uint at_1 = lhs_line * 20u + lhs_place;
    *(threadgroup float4*)(tiles + at_1) = *(device const float4*)(x + (at + lhs_place));
    uint at_2 = rhs_line * 36u + rhs_place + 640u;
    *(threadgroup float4*)(tiles + at_2) = rhs_values;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 sum = matrix;
    simdgroup_float8x8 sum_1 = matrix;
    simdgroup_float8x8 sum_2 = matrix;
    simdgroup_float8x8 sum_3 = matrix;
    for (uint i = 0u; i < 6u; i++) {
        uint next = i + 1u;
        uint this_half = (i & 1u) * 1216u;
        uint other_half = (next & 1u) * 1216u;
        uint depth = metal::min(next, 6u - 1u) * 16u;
        float4 lhs_values = *(device const float4*)(x + (at + depth + lhs_place));
        float4 rhs_values_1 = *(device const float4*)(weight + ((depth + rhs_line) * 64u + rhs_at));
        #pragma unroll
        for (uint j = 0u; j < 2u; j++) {
            uint inner = j * 8u;
            uint left = simd_row * 20u + inner;
            simdgroup_float8x8 left_1;
            simdgroup_load(left_1, tiles + (left + this_half), 20);
            simdgroup_float8x8 left_2;
            simdgroup_load(left_2, tiles + (left + 160u + this_half), 20);
            uint right = inner * 36u + simd_column;
            simdgroup_float8x8 right_1;
            simdgroup_load(right_1, tiles + (right + 640u + this_half), 36);
            simdgroup_float8x8 right_2;
            simdgroup_load(right_2, tiles + (right + 8u + 640u + this_half), 36);
            simdgroup_multiply_accumulate(sum, left_1, right_1, sum);
            simdgroup_multiply_accumulate(sum_2, left_2, right_1, sum_2);
            simdgroup_multiply_accumulate(sum_1, left_1, right_2, sum_1);
            simdgroup_multiply_accumulate(sum_3, left_2, right_2, sum_3);
        }
        *(threadgroup float4*)(tiles + (at_1 + other_half)) = lhs_values;
        *(threadgroup float4*)(tiles + (at_2 + other_half)) = rhs_values_1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    uint at_3 = simd_row * 36u + simd_column;
    simdgroup_store(sum, tiles + at_3, 36);
    simdgroup_store(sum_1, tiles + (at_3 + 8u), 36);
    uint at_4 = (simd_row + 8u) * 36u + simd_column;
    simdgroup_store(sum_2, tiles + at_4, 36);
    simdgroup_store(sum_3, tiles + (at_4 + 8u), 36);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0u; i < 2u; i++) {
        uint line = rhs_line + i * 16u;
        float4 sums = *(threadgroup const float4*)(tiles + (line * 36u + rhs_place));
        float4 bias_values = *(device const float4*)(bias + rhs_at);
        float4 result = float4(0.0f);
        #pragma unroll
        for (uint j = 0u; j < 4u; j++) {
            float add = sums[j] + bias_values[j];
            result[j] = add * 0.5f * (erf_f32(add * 0.70710677f) + 1.0f);
        }
        *(device float4*)(out + ((row + line) * 64u + rhs_at)) = result;
    }
}
