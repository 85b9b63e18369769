#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

struct alignas(16) bfloat_8 {
    bfloat lanes[8];
};

static inline float erf_bf16(float x) {
    float product = x * x;
    float fma = metal::fma(5.8062522e-08f, product, -2.5543948e-06f);
    float fma_1 = metal::fma(metal::fma(fma, product, 4.9884078e-05f), product, -0.0005787354f);
    float fma_2 = metal::fma(metal::fma(fma_1, product, 0.0045309933f), product, -0.025834538f);
    float fma_3 = metal::fma(metal::fma(fma_2, product, 0.112040125f), product, -0.37588227f);
    float chosen = x < -2.9f ? -1.0f : x * metal::fma(fma_3, product, 1.1283666f);
    return x > 2.9f ? 1.0f : chosen;
}

// fused_mul_erf_add: map
//   smelt.mul, smelt.erf, smelt.add at programs.py:14
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_mul_erf_add(
    device const bfloat* x [[buffer(0)]],
    device bfloat* out [[buffer(1)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 4000u) {
        uint at = gid * 8u;
        bfloat_8 x_values = *(device const bfloat_8*)(x + at);
        bfloat_8 values = bfloat_8{};
        #pragma unroll
        for (uint i = 0u; i < 8u; i++) {
            float x_value = float(x_values.lanes[i]);
            values.lanes[i] = bfloat(x_value * 0.5f * (erf_bf16(x_value * 0.70703125f) + 1.0f));
        }
        *(device bfloat_8*)(out + at) = values;
    }
}
