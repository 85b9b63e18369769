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

// fused_mul_erf_add: map
//   smelt.mul, smelt.erf, smelt.add at programs.py:14
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_mul_erf_add(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 8000u) {
        uint at = gid * 4u;
        float4 x_values = *(device const float4*)(x + at);
        float4 values = float4(0.0f);
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            float x_value = x_values[i];
            values[i] = x_value * 0.5f * (erf_f32(x_value * 0.70710677f) + 1.0f);
        }
        *(device float4*)(out + at) = values;
    }
}
