#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

struct alignas(16) bfloat_8 {
    bfloat lanes[8];
};

static inline float erf_bf16(float x) {
    float magnitude = metal::fabs(x);
    float product = x * x;
    float fma = metal::fma(-0.0005660097f, product, 0.004924775f);
    float fma_1 = metal::fma(metal::fma(fma, product, -0.026717694f), product, 0.112804115f);
    float fma_2 = metal::fma(metal::fma(fma_1, product, -0.37612355f), product, 0.12837912f);
    float fma_3 = metal::fma(0.0005478362f, magnitude, -0.004051517f);
    float fma_4 = metal::fma(fma_3, magnitude, 0.01799593f);
    float fma_5 = metal::fma(fma_4, magnitude, -0.033693817f);
    float fma_6 = metal::fma(metal::fma(fma_5, magnitude, 0.07478971f), magnitude, 0.048431873f);
    float fma_7 = metal::fma(metal::fma(fma_6, magnitude, 0.1597129f), magnitude, 0.9963792f);
    float product_1 = fma_7 * fma_7;
    float product_2 = product_1 * product_1;
    float copysign = metal::copysign(1.0f - 1.0f / (product_2 * product_2), x);
    return magnitude < 1.0f ? metal::fma(x, fma_2, x) : copysign;
}

// fused_mul_erf_add: map
//   smelt.mul, smelt.erf, smelt.add at programs.py:14
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
