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

static inline float log_f32(float x) {
    uint bits = as_type<uint>(x);
    uint shifted = uint(int(bits - 1060439283u) >> 23);
    float shifted_1 = float(int(shifted));
    float difference = as_type<float>(bits - (shifted << 23)) - 1.0f;
    float fma = metal::fma(0.06971612f, difference, -0.11479734f);
    float fma_1 = metal::fma(metal::fma(fma, difference, 0.1168542f), difference, -0.12425687f);
    float fma_2 = metal::fma(fma_1, difference, 0.14249058f);
    float fma_3 = metal::fma(fma_2, difference, -0.16667803f);
    float fma_4 = metal::fma(fma_3, difference, 0.20000716f);
    float fma_5 = metal::fma(fma_4, difference, -0.24999997f);
    float fma_6 = metal::fma(difference, metal::fma(fma_5, difference, 0.3333333f), -0.5f);
    float fma_7 = metal::fma(difference * difference, fma_6, difference);
    float fma_8 = metal::fma(shifted_1, -1.9046542e-09f, fma_7);
    float fma_9 = metal::fma(shifted_1, 0.6931472f, fma_8);
    float chosen;
    if (bits - 8388608u < 2130706432u) {
        chosen = fma_9;
    } else {
        bool test = x < 1.1754944e-38f;
        uint bits_1 = as_type<uint>(test ? x * 33554432.0f : x);
        uint shifted_2 = uint(int(bits_1 - 1060439283u) >> 23);
        float difference_1 = float(int(shifted_2 - (test ? 25u : 0u)));
        float difference_2 = as_type<float>(bits_1 - (shifted_2 << 23)) - 1.0f;
        float fma_10 = metal::fma(0.06971612f, difference_2, -0.11479734f);
        float fma_11 = metal::fma(fma_10, difference_2, 0.1168542f);
        float fma_12 = metal::fma(fma_11, difference_2, -0.12425687f);
        float fma_13 = metal::fma(fma_12, difference_2, 0.14249058f);
        float fma_14 = metal::fma(fma_13, difference_2, -0.16667803f);
        float fma_15 = metal::fma(fma_14, difference_2, 0.20000716f);
        float fma_16 = metal::fma(fma_15, difference_2, -0.24999997f);
        float fma_17 = metal::fma(fma_16, difference_2, 0.3333333f);
        float fma_18 = metal::fma(difference_2, fma_17, -0.5f);
        float fma_19 = metal::fma(difference_2 * difference_2, fma_18, difference_2);
        float fma_20 = metal::fma(difference_1, -1.9046542e-09f, fma_19);
        float chosen_1 = x < INFINITY ? metal::fma(difference_1, 0.6931472f, fma_20) : x;
        chosen = x == 0.0f ? -INFINITY : x < 0.0f ? NAN : chosen_1;
    }
    return chosen;
}

static inline float simd_reduce_sum_f32_of_16(float x) {
    float other = simd_shuffle_xor(x, 8);
    float sum = x + other;
    float other_1 = simd_shuffle_xor(sum, 4);
    float sum_1 = sum + other_1;
    float other_2 = simd_shuffle_xor(sum_1, 2);
    float sum_2 = sum_1 + other_2;
    float other_3 = simd_shuffle_xor(sum_2, 1);
    return sum_2 + other_3;
}

// fused_reduce_max_abs_exp_reduce_sum: row
//   smelt.reduce_max, smelt.abs, smelt.less, smelt.select, smelt.sub, smelt.exp, smelt.reduce_sum at programs.py:39
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_reduce_max_abs_exp_reduce_sum(
    device const float* scores [[buffer(0)]],
    device float* out0 [[buffer(1)]],
    device float* out1 [[buffer(2)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    float scores_row[2];
    uint line = tid % 8u;
    uint row = group * 32u + tid / 8u;
    float2 scores_values = *(device const float2*)(scores + (row * 10u + metal::min(line, 4u) * 2u));
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        scores_row[i] = scores_values[i];
    }
    bool inside = line < 5u;
    float thread_max = -INFINITY;
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        thread_max = inside ? nan_max(thread_max, scores_row[i]) : thread_max;
    }
    float row_max = simd_reduce_max_f32_of_8(thread_max);
    float select = metal::fabs(row_max) < INFINITY ? row_max : 0.0f;
    float thread_sum = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 2u; i++) {
        thread_sum = inside ? thread_sum + exp_f32(scores_row[i] - select) : thread_sum;
    }
    float row_sum = simd_reduce_sum_f32_of_8(thread_sum);
    if (line == 0u) {
        out0[row] = row_sum;
        out1[row] = select;
    }
}

// fused_equal_log_gather_reduce_sum: row
//   smelt.equal, smelt.select, smelt.log, smelt.add, smelt.sub, smelt.reduce_sum, smelt.mul at programs.py:39
//   smelt.less, smelt.add, smelt.select, smelt.gather at programs.py:38
[[max_total_threads_per_threadgroup(32)]]
kernel void fused_equal_log_gather_reduce_sum(
    device const float* reduce_sum [[buffer(0)]],
    device const float* select [[buffer(1)]],
    device const uint* labels [[buffer(2)]],
    device const float* scores [[buffer(3)]],
    device float* out [[buffer(4)]],
    uint tid [[thread_position_in_threadgroup]]
) {
    uint labels_row[4];
    float select_row[4];
    float reduce_sum_row[4];
    uint line = tid % 16u;
    uint at = line * 4u;
    float4 reduce_sum_values = *(device const float4*)(reduce_sum + at);
    float4 select_values = *(device const float4*)(select + at);
    uint4 labels_values = *(device const uint4*)(labels + at);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        reduce_sum_row[i] = reduce_sum_values[i];
        select_row[i] = select_values[i];
        labels_row[i] = labels_values[i];
    }
    float thread_sum = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float reduce_sum_row_value = reduce_sum_row[i];
        uint labels_row_value = labels_row[i];
        bool equal = reduce_sum_row_value == 0.0f;
        float select_1 = equal ? -INFINITY : log_f32(equal ? 1.0f : reduce_sum_row_value);
        uint select_2 = int(labels_row_value) < 0 ? labels_row_value + 10u : labels_row_value;
        uint gather = uint(metal::max(metal::min(int(at + i), 63), 0)) * 10u;
        float gather_1 = scores[gather + uint(metal::max(metal::min(int(select_2), 9), 0))];
        thread_sum += select_1 + select_row[i] - gather_1;
    }
    float row_sum = simd_reduce_sum_f32_of_16(thread_sum);
    float mul = row_sum * 0.015625f;
    if (line == 0u && tid / 16u < 1u) {
        out[0u] = mul;
    }
}
