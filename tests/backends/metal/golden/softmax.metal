#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// Metal's own simd_max skips NaN.
static inline float simd_nan_max(float a) {
    bool any_nan = simd_any(metal::isnan(a));
    float found = simd_max(a);
    return any_nan ? float(NAN) : found;
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

// fused_reduce_max_exp_reduce_sum_div: row
//   smelt.reduce_max, smelt.sub, smelt.exp at programs.py:18
//   smelt.reduce_sum, smelt.div at programs.py:19
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_reduce_max_exp_reduce_sum_div(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]
) {
    threadgroup float shared[8];
    threadgroup float shared_1[8];
    float exp_row[4];
    float x_row[4];
    uint at = group * 1000u + metal::min(tid, 249u) * 4u;
    float4 x_values = *(device const float4*)(x + at);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        x_row[i] = x_values[i];
    }
    bool inside = tid < 250u;
    float thread_max = -INFINITY;
    bool thread_max_1 = false;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float x_row_value = x_row[i];
        thread_max = inside ? metal::fmax(thread_max, x_row_value) : thread_max;
        thread_max_1 = inside ? thread_max_1 || x_row_value != x_row_value : thread_max_1;
    }
    float row_max = simd_nan_max(thread_max_1 ? NAN : thread_max);
    bool test = lane == 0u;
    if (test) {
        shared[simdgroup] = row_max;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint at_1 = lane & 7u;
    float row_max_1 = simd_nan_max(shared[at_1]);
    float thread_sum = 0.0f;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float exp = exp_f32(x_row[i] - row_max_1);
        exp_row[i] = exp;
        thread_sum = inside ? thread_sum + exp : thread_sum;
    }
    float row_sum = simd_reduce_sum_f32(thread_sum);
    if (test) {
        shared_1[simdgroup] = row_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float row_sum_1 = simd_reduce_sum_f32_of_8(shared_1[at_1]);
    float4 values = float4(0.0f);
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        values[i] = exp_row[i] / row_sum_1;
    }
    if (inside) {
        *(device float4*)(out + at) = values;
    }
}
