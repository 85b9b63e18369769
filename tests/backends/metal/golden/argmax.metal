#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// kernel_argmax: row
//   smelt.argmax at programs.py:80
[[max_total_threads_per_threadgroup(256)]]
kernel void kernel_argmax(
    device const float* x [[buffer(0)]],
    device uint* out [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    float x_row[4];
    uint line = tid % 32u;
    uint row = group * 8u + tid / 32u;
    uint row_1 = metal::min(row, 49u);
    uint at = metal::min(line, 24u) * 4u;
    float4 x_values = *(device const float4*)(x + (row_1 * 100u + at));
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        x_row[i] = x_values[i];
    }
    float carry = -INFINITY;
    uint carry_1 = 4294967295u;
    #pragma unroll
    for (uint i = 0u; i < 4u; i++) {
        float x_row_value = x_row[i];
        uint at_1 = at + i;
        bool test = x_row_value != x_row_value;
        bool test_1 = carry != carry;
        bool test_2 = (x_row_value == carry || (test && test_1)) && at_1 < carry_1;
        bool test_3 = ((x_row_value > carry || test) && !test_1) || test_2;
        carry = test_3 ? x_row_value : carry;
        carry_1 = test_3 ? at_1 : carry_1;
    }
    float other = simd_shuffle_xor(carry, 16);
    uint other_1 = simd_shuffle_xor(carry_1, 16);
    bool test = other != other;
    bool test_1 = carry != carry;
    bool test_2 = (other == carry || (test && test_1)) && other_1 < carry_1;
    bool test_3 = ((other > carry || test) && !test_1) || test_2;
    float chosen = test_3 ? other : carry;
    uint chosen_1 = test_3 ? other_1 : carry_1;
    float other_2 = simd_shuffle_xor(chosen, 8);
    uint other_3 = simd_shuffle_xor(chosen_1, 8);
    bool test_4 = other_2 != other_2;
    bool test_5 = chosen != chosen;
    bool test_6 = (other_2 == chosen || (test_4 && test_5)) && other_3 < chosen_1;
    bool test_7 = ((other_2 > chosen || test_4) && !test_5) || test_6;
    float chosen_2 = test_7 ? other_2 : chosen;
    uint chosen_3 = test_7 ? other_3 : chosen_1;
    float other_4 = simd_shuffle_xor(chosen_2, 4);
    uint other_5 = simd_shuffle_xor(chosen_3, 4);
    bool test_8 = other_4 != other_4;
    bool test_9 = chosen_2 != chosen_2;
    bool test_10 = (other_4 == chosen_2 || (test_8 && test_9)) && other_5 < chosen_3;
    bool test_11 = ((other_4 > chosen_2 || test_8) && !test_9) || test_10;
    float chosen_4 = test_11 ? other_4 : chosen_2;
    uint chosen_5 = test_11 ? other_5 : chosen_3;
    float other_6 = simd_shuffle_xor(chosen_4, 2);
    uint other_7 = simd_shuffle_xor(chosen_5, 2);
    bool test_12 = other_6 != other_6;
    bool test_13 = chosen_4 != chosen_4;
    bool test_14 = (other_6 == chosen_4 || (test_12 && test_13)) && other_7 < chosen_5;
    bool test_15 = ((other_6 > chosen_4 || test_12) && !test_13) || test_14;
    float chosen_6 = test_15 ? other_6 : chosen_4;
    uint chosen_7 = test_15 ? other_7 : chosen_5;
    float other_8 = simd_shuffle_xor(chosen_6, 1);
    uint other_9 = simd_shuffle_xor(chosen_7, 1);
    bool test_16 = other_8 != other_8;
    bool test_17 = chosen_6 != chosen_6;
    bool test_18 = (other_8 == chosen_6 || (test_16 && test_17)) && other_9 < chosen_7;
    uint chosen_8 = ((other_8 > chosen_6 || test_16) && !test_17) || test_18 ? other_9 : chosen_7;
    if (line == 0u && row < 50u) {
        out[row_1] = chosen_8;
    }
}
