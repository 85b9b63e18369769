#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// argsort_blocks: sort
//   smelt.argsort at programs.py:82
[[max_total_threads_per_threadgroup(256)]]
kernel void argsort_blocks(
    device const float* keys [[buffer(0)]],
    device uint* out_order [[buffer(1)]],
    uint tid [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]
) {
    threadgroup float block_keys[512];
    threadgroup uint block_order[512];
    bool key = tid < 300u;
    float key_1;
    if (key) {
        key_1 = keys[group * 300u + tid];
    } else {
        key_1 = NAN;
    }
    block_keys[tid] = key_1;
    block_order[tid] = tid;
    uint slot = tid + 256u;
    bool key_2 = slot < 300u;
    float key_3;
    if (key_2) {
        key_3 = keys[group * 300u + slot];
    } else {
        key_3 = NAN;
    }
    block_keys[slot] = key_3;
    block_order[slot] = slot;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0u; i < 9u; i++) {
        for (uint j = 0u; j < i + 1u; j++) {
            uint stride = 1u << (i - j);
            uint low = tid & (stride - 1u);
            uint a = (tid - low) * 2u + low;
            uint b = a + stride;
            float key_a = block_keys[a];
            float key_b = block_keys[b];
            bool before = key_b < key_a || (key_a != key_a && key_b == key_b);
            uint from_a = block_order[a];
            uint from_b = block_order[b];
            bool before_1 = !(before || key_a < key_b || (key_b != key_b && key_a == key_a));
            bool before_2 = before || (before_1 && from_b < from_a);
            if ((a & (2u << i)) != 0u ? !before_2 : before_2) {
                block_keys[a] = key_b;
                block_keys[b] = key_a;
                block_order[a] = from_b;
                block_order[b] = from_a;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
    if (key) {
        out_order[group * 300u + tid] = block_order[tid];
    }
    if (key_2) {
        out_order[group * 300u + slot] = block_order[slot];
    }
}
