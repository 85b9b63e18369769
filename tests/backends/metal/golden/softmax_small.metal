#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// Metal's own fmax skips NaN.
static inline float nan_max(float a, float b) {
    return metal::isunordered(a, b) ? float(NAN) : metal::fmax(a, b);
}

static inline float simd_reduce_max_f32_of_8(float x) {
    float other = simd_shuffle_xor(x, 4);
    float larger = nan_max(x, other);
    float other_1 = simd_shuffle_xor(larger, 2);
    float larger_1 = nan_max(larger, other_1);
    float other_2 = simd_shuffle_xor(larger_1, 1);
    return nan_max(larger_1, other_2);
}

static inline float exp_f32(float x) {
    float fma = metal::fma(x, 1.442695f, 12582912.0f);
    float difference = fma - 12582912.0f;
    float fma_1 = metal::fma(difference, 1.9046542e-09f, metal::fma(difference, -0.6931472f, x));
    float fma_2 = metal::fma(0.0013926184f, fma_1, 0.008363179f);
    float fma_3 = metal::fma(metal::fma(fma_2, fma_1, 0.041666556f), fma_1, 0.16666576f);
    float sum = metal::fma(fma_1 * fma_1, metal::fma(fma_3, fma_1, 0.5f), fma_1) + 1.0f;
    float bits = as_type<float>(as_type<uint>(sum) + (as_type<uint>(fma) << 23));
    float chosen;
    if (metal::fabs(x) <= 87.0f) {
        chosen = bits;
    } else {
        float chosen_1 = x > 91.0f ? 91.0f : x;
        float chosen_2 = chosen_1 < -106.0f ? -106.0f : chosen_1;
        float fma_4 = metal::fma(chosen_2, 1.442695f, 12582912.0f);
        float difference_1 = fma_4 - 12582912.0f;
        uint difference_2 = as_type<uint>(fma_4) - 1262485504u;
        float fma_5 = metal::fma(difference_1, -0.6931472f, chosen_2);
        float fma_6 = metal::fma(difference_1, 1.9046542e-09f, fma_5);
        float fma_7 = metal::fma(0.0013926184f, fma_6, 0.008363179f);
        float fma_8 = metal::fma(metal::fma(fma_7, fma_6, 0.041666556f), fma_6, 0.16666576f);
        uint shifted = uint(int(difference_2) >> 1);
        float sum_1 = metal::fma(fma_6 * fma_6, metal::fma(fma_8, fma_6, 0.5f), fma_6) + 1.0f;
        float bits_1 = as_type<float>((difference_2 - shifted + 127u) << 23);
        chosen = sum_1 * as_type<float>((shifted + 127u) << 23) * bits_1;
    }
    return chosen;
}

static inline float simd_reduce_sum_f32_of_8(float x) {
    float other = simd_shuffle_xor(x, 4);
    float sum = x + other;
    float other_1 = simd_shuffle_xor(sum, 2);
    float sum_1 = sum + other_1;
    float other_2 = simd_shuffle_xor(sum_1, 1);
    return sum_1 + other_2;
}

// fused_reduce_max_exp_reduce_sum_div: row
//   smelt.reduce_max, smelt.sub, smelt.exp at programs.py:18
//   smelt.reduce_sum, smelt.div at programs.py:19
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_reduce_max_exp_reduce_sum_div(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    float exp_row[2];
    float x_row[2];
    uint line = tid % 8u;
    uint row = group * 32u + tid / 8u;
    uint at = metal::min(row, 999u) * 10u + metal::min(line, 4u) * 2u;
    float2 x_values = *(device const float2*)(x + at);
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        x_row[i] = x_values[i];
    }
    bool inside = line < 5u;
    float thread_max = -INFINITY;
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        thread_max = inside ? nan_max(thread_max, x_row[i]) : thread_max;
    }
    float row_max = simd_reduce_max_f32_of_8(thread_max);
    float thread_sum = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        float exp = exp_f32(x_row[i] - row_max);
        exp_row[i] = exp;
        thread_sum = inside ? thread_sum + exp : thread_sum;
    }
    float row_sum = simd_reduce_sum_f32_of_8(thread_sum);
    float2 values = float2(0.0f);
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        values[i] = exp_row[i] / row_sum;
    }
    if (inside && row < 1000u) {
        *(device float2*)(out + at) = values;
    }
}
