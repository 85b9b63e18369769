#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_random_bits_right_shift_convert_div: map
//   smelt.random_bits, smelt.right_shift, smelt.convert, smelt.mul, smelt.less, smelt.div, smelt.select at programs.py:51
[[max_total_threads_per_threadgroup(32)]]
kernel void fused_random_bits_right_shift_convert_div(
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
            uint random_bits = key_value ^ key_value_1 ^ 0x1bd11bdau;
            uint random_bits_1 = at + i + key_value_1;
            uint random_bits_2 = key_value + random_bits_1;
            uint random_bits_3 = ((random_bits_1 << 13) | (random_bits_1 >> 19)) ^ random_bits_2;
            uint random_bits_4 = random_bits_2 + random_bits_3;
            uint random_bits_5 = ((random_bits_3 << 15) | (random_bits_3 >> 17)) ^ random_bits_4;
            uint random_bits_6 = random_bits_4 + random_bits_5;
            uint random_bits_7 = ((random_bits_5 << 26) | (random_bits_5 >> 6)) ^ random_bits_6;
            uint random_bits_8 = random_bits_6 + random_bits_7;
            uint random_bits_9 = ((random_bits_7 << 6) | (random_bits_7 >> 26)) ^ random_bits_8;
            uint random_bits_10 = random_bits_9 + random_bits + 1u;
            uint random_bits_11 = random_bits_8 + key_value_1 + random_bits_10;
            uint random_bits_12 = ((random_bits_10 << 17) | (random_bits_10 >> 15)) ^ random_bits_11;
            uint random_bits_13 = random_bits_11 + random_bits_12;
            uint random_bits_14 = ((random_bits_12 << 29) | (random_bits_12 >> 3)) ^ random_bits_13;
            uint random_bits_15 = random_bits_13 + random_bits_14;
            uint random_bits_16 = ((random_bits_14 << 16) | (random_bits_14 >> 16)) ^ random_bits_15;
            uint random_bits_17 = random_bits_15 + random_bits_16;
            uint random_bits_18 = ((random_bits_16 << 24) | (random_bits_16 >> 8)) ^ random_bits_17;
            uint random_bits_19 = random_bits_18 + key_value + 2u;
            uint random_bits_20 = random_bits_17 + random_bits + random_bits_19;
            uint random_bits_21 = ((random_bits_19 << 13) | (random_bits_19 >> 19)) ^ random_bits_20;
            uint random_bits_22 = random_bits_20 + random_bits_21;
            uint random_bits_23 = ((random_bits_21 << 15) | (random_bits_21 >> 17)) ^ random_bits_22;
            uint random_bits_24 = random_bits_22 + random_bits_23;
            uint random_bits_25 = ((random_bits_23 << 26) | (random_bits_23 >> 6)) ^ random_bits_24;
            uint random_bits_26 = random_bits_24 + random_bits_25;
            uint random_bits_27 = ((random_bits_25 << 6) | (random_bits_25 >> 26)) ^ random_bits_26;
            uint random_bits_28 = random_bits_27 + key_value_1 + 3u;
            uint random_bits_29 = random_bits_26 + key_value + random_bits_28;
            uint random_bits_30 = ((random_bits_28 << 17) | (random_bits_28 >> 15)) ^ random_bits_29;
            uint random_bits_31 = random_bits_29 + random_bits_30;
            uint random_bits_32 = ((random_bits_30 << 29) | (random_bits_30 >> 3)) ^ random_bits_31;
            uint random_bits_33 = random_bits_31 + random_bits_32;
            uint random_bits_34 = ((random_bits_32 << 16) | (random_bits_32 >> 16)) ^ random_bits_33;
            uint random_bits_35 = random_bits_33 + random_bits_34;
            uint random_bits_36 = ((random_bits_34 << 24) | (random_bits_34 >> 8)) ^ random_bits_35;
            uint random_bits_37 = random_bits_36 + random_bits + 4u;
            uint random_bits_38 = random_bits_35 + key_value_1 + random_bits_37;
            uint random_bits_39 = ((random_bits_37 << 13) | (random_bits_37 >> 19)) ^ random_bits_38;
            uint random_bits_40 = random_bits_38 + random_bits_39;
            uint random_bits_41 = ((random_bits_39 << 15) | (random_bits_39 >> 17)) ^ random_bits_40;
            uint random_bits_42 = random_bits_40 + random_bits_41;
            uint random_bits_43 = ((random_bits_41 << 26) | (random_bits_41 >> 6)) ^ random_bits_42;
            bool right_shift = 8u < 32u;
            uint random_bits_44 = random_bits_42 + random_bits_43 + random_bits;
            float convert = float(right_shift ? random_bits_44 >> (right_shift ? 8u : 0u) : 0u);
            values[i] = convert * 5.9604645e-08f < 0.9f ? x_values[i] / 0.9f : 0.0f;
        }
        *(device float4*)(out + at) = values;
    }
}
