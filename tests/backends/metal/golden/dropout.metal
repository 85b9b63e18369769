#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// Metal's own fmin skips NaN.
static inline float nan_min(float a, float b) {
    return metal::isunordered(a, b) ? float(NAN) : metal::fmin(a, b);
}

// fused_random_bits_convert_mul_div: map
//   smelt.random_bits, smelt.convert, smelt.mul, smelt.minimum, smelt.less, smelt.div, smelt.select at programs.py:51
[[max_total_threads_per_threadgroup(32)]]
kernel void fused_random_bits_convert_mul_div(
    device const uint* key [[buffer(0)]],
    device const float* x [[buffer(1)]],
    device float* out [[buffer(2)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 25u) {
        uint at = gid * 4u;
        uint key_value = key[0u];
        uint key_value_1 = key[1u];
        float4 x_values = *(device const float4*)(x + at);
        float4 values = float4(0.0f);
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            uint random_bits = at + i;
            bool random_bits_1 = random_bits >= 50u;
            uint random_bits_2 = random_bits - (random_bits_1 ? 50u : 0u);
            uint random_bits_3 = key_value ^ key_value_1 ^ 0x1bd11bdau;
            uint random_bits_4 = random_bits_2 + 50u + key_value_1;
            uint random_bits_5 = random_bits_2 + key_value + random_bits_4;
            uint random_bits_6 = ((random_bits_4 << 13) | (random_bits_4 >> 19)) ^ random_bits_5;
            uint random_bits_7 = random_bits_5 + random_bits_6;
            uint random_bits_8 = ((random_bits_6 << 15) | (random_bits_6 >> 17)) ^ random_bits_7;
            uint random_bits_9 = random_bits_7 + random_bits_8;
            uint random_bits_10 = ((random_bits_8 << 26) | (random_bits_8 >> 6)) ^ random_bits_9;
            uint random_bits_11 = random_bits_9 + random_bits_10;
            uint random_bits_12 = ((random_bits_10 << 6) | (random_bits_10 >> 26)) ^ random_bits_11;
            uint random_bits_13 = random_bits_12 + random_bits_3 + 1u;
            uint random_bits_14 = random_bits_11 + key_value_1 + random_bits_13;
            uint random_bits_15 = ((random_bits_13 << 17) | (random_bits_13 >> 15)) ^ random_bits_14;
            uint random_bits_16 = random_bits_14 + random_bits_15;
            uint random_bits_17 = ((random_bits_15 << 29) | (random_bits_15 >> 3)) ^ random_bits_16;
            uint random_bits_18 = random_bits_16 + random_bits_17;
            uint random_bits_19 = ((random_bits_17 << 16) | (random_bits_17 >> 16)) ^ random_bits_18;
            uint random_bits_20 = random_bits_18 + random_bits_19;
            uint random_bits_21 = ((random_bits_19 << 24) | (random_bits_19 >> 8)) ^ random_bits_20;
            uint random_bits_22 = random_bits_21 + key_value + 2u;
            uint random_bits_23 = random_bits_20 + random_bits_3 + random_bits_22;
            uint random_bits_24 = ((random_bits_22 << 13) | (random_bits_22 >> 19)) ^ random_bits_23;
            uint random_bits_25 = random_bits_23 + random_bits_24;
            uint random_bits_26 = ((random_bits_24 << 15) | (random_bits_24 >> 17)) ^ random_bits_25;
            uint random_bits_27 = random_bits_25 + random_bits_26;
            uint random_bits_28 = ((random_bits_26 << 26) | (random_bits_26 >> 6)) ^ random_bits_27;
            uint random_bits_29 = random_bits_27 + random_bits_28;
            uint random_bits_30 = ((random_bits_28 << 6) | (random_bits_28 >> 26)) ^ random_bits_29;
            uint random_bits_31 = random_bits_30 + key_value_1 + 3u;
            uint random_bits_32 = random_bits_29 + key_value + random_bits_31;
            uint random_bits_33 = ((random_bits_31 << 17) | (random_bits_31 >> 15)) ^ random_bits_32;
            uint random_bits_34 = random_bits_32 + random_bits_33;
            uint random_bits_35 = ((random_bits_33 << 29) | (random_bits_33 >> 3)) ^ random_bits_34;
            uint random_bits_36 = random_bits_34 + random_bits_35;
            uint random_bits_37 = ((random_bits_35 << 16) | (random_bits_35 >> 16)) ^ random_bits_36;
            uint random_bits_38 = random_bits_36 + random_bits_37;
            uint random_bits_39 = ((random_bits_37 << 24) | (random_bits_37 >> 8)) ^ random_bits_38;
            uint random_bits_40 = random_bits_39 + random_bits_3 + 4u;
            uint random_bits_41 = random_bits_38 + key_value_1 + random_bits_40;
            uint random_bits_42 = ((random_bits_40 << 13) | (random_bits_40 >> 19)) ^ random_bits_41;
            uint random_bits_43 = random_bits_41 + random_bits_42;
            uint random_bits_44 = ((random_bits_42 << 15) | (random_bits_42 >> 17)) ^ random_bits_43;
            uint random_bits_45 = random_bits_43 + random_bits_44;
            uint random_bits_46 = ((random_bits_44 << 26) | (random_bits_44 >> 6)) ^ random_bits_45;
            uint random_bits_47 = random_bits_45 + random_bits_46;
            uint random_bits_48 = ((random_bits_46 << 6) | (random_bits_46 >> 26)) ^ random_bits_47;
            uint random_bits_49 = random_bits_48 + key_value + 5u;
            float convert = float(random_bits_1 ? random_bits_49 : random_bits_47 + random_bits_3);
            bool less = nan_min(convert * 2.3283064e-10f, 0.99999994f) < 0.9f;
            values[i] = less ? x_values[i] / 0.9f : 0.0f;
        }
        *(device float4*)(out + at) = values;
    }
}
