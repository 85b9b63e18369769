#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_less_add_select_scatter_copy: map
//   smelt.scatter at programs.py:47
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_less_add_select_scatter_copy(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 400u) {
        uint at = gid * 4u;
        float4 x_values = *(device const float4*)(x + at);
        float4 values = float4(0.0f);
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            values[i] = x_values[i];
        }
        *(device float4*)(out + at) = values;
    }
}

// fused_less_add_select_scatter_targets: scatter
//   smelt.less, smelt.add, smelt.select, smelt.scatter at programs.py:47
[[max_total_threads_per_threadgroup(64)]]
kernel void fused_less_add_select_scatter_targets(
    device const uint* indices [[buffer(0)]],
    device uint* targets [[buffer(1)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 50u) {
        uint less = indices[gid];
        uint select = int(less) < 0 ? less + 100u : less;
        uint target = uint(metal::max(metal::min(int(select), 99), 0)) * 16u;
        targets[gid] = int(select) >= 0 && int(select) <= 99 ? target : 4294967295u;
    }
}

// fused_less_add_select_scatter_sort_blocks: sort
//   smelt.less, smelt.add, smelt.select, smelt.scatter at programs.py:47
[[max_total_threads_per_threadgroup(32)]]
kernel void fused_less_add_select_scatter_sort_blocks(
    device const uint* keys [[buffer(0)]],
    device uint* out_keys [[buffer(1)]],
    device uint* out_order [[buffer(2)]],
    uint tid [[thread_position_in_threadgroup]]
) {
    threadgroup uint block_keys[64];
    threadgroup uint block_order[64];
    bool key = tid < 50u;
    uint key_1;
    if (key) {
        key_1 = keys[tid];
    } else {
        key_1 = 4294967295u;
    }
    block_keys[tid] = key_1;
    block_order[tid] = tid;
    uint slot = tid + 32u;
    bool key_2 = slot < 50u;
    uint key_3;
    if (key_2) {
        key_3 = keys[slot];
    } else {
        key_3 = 4294967295u;
    }
    block_keys[slot] = key_3;
    block_order[slot] = slot;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0u; i < 6u; i++) {
        for (uint j = 0u; j < i + 1u; j++) {
            uint stride = 1u << (i - j);
            uint low = tid & (stride - 1u);
            uint a = (tid - low) * 2u + low;
            uint b = a + stride;
            uint key_a = block_keys[a];
            uint key_b = block_keys[b];
            bool before = key_b < key_a;
            uint from_a = block_order[a];
            uint from_b = block_order[b];
            bool before_1 = before || (!(before || key_a < key_b) && from_b < from_a);
            if ((a & (2u << i)) != 0u ? !before_1 : before_1) {
                block_keys[a] = key_b;
                block_keys[b] = key_a;
                block_order[a] = from_b;
                block_order[b] = from_a;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
    if (key) {
        out_keys[tid] = block_keys[tid];
        out_order[tid] = block_order[tid];
    }
    if (key_2) {
        out_keys[slot] = block_keys[slot];
        out_order[slot] = block_order[slot];
    }
}

// fused_less_add_select_scatter: scatter
//   smelt.scatter at programs.py:47
[[max_total_threads_per_threadgroup(224)]]
kernel void fused_less_add_select_scatter(
    device const float* updates [[buffer(0)]],
    device const uint* targets [[buffer(1)]],
    device const uint* order [[buffer(2)]],
    device float* out [[buffer(3)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 200u) {
        uint i = gid / 4u;
        uint at = gid % 4u * 4u;
        uint key = targets[i];
        if (key != 4294967295u) {
            bool chosen;
            if (i == 0u) {
                chosen = true;
            } else {
                chosen = targets[i - 1u] != key;
            }
            if (chosen) {
                uint target = key + at;
                uint target_1 = at + 1u;
                uint target_2 = key + target_1;
                uint target_3 = at + 2u;
                uint target_4 = key + target_3;
                uint target_5 = at + 3u;
                uint target_6 = key + target_5;
                uint reshape = order[i] * 16u;
                uint next = i + 1u;
                float total = out[target] + updates[reshape + at];
                float total_1 = out[target_2] + updates[reshape + target_1];
                float total_2 = out[target_4] + updates[reshape + target_3];
                float total_3 = out[target_6] + updates[reshape + target_5];
                while (true) {
                    bool chosen_1;
                    if (next < 50u) {
                        chosen_1 = targets[next] == key;
                    } else {
                        chosen_1 = false;
                    }
                    if (!chosen_1) break;
                    uint reshape_1 = order[next] * 16u;
                    next += 1u;
                    total += updates[reshape_1 + at];
                    total_1 += updates[reshape_1 + target_1];
                    total_2 += updates[reshape_1 + target_3];
                    total_3 += updates[reshape_1 + target_5];
                }
                out[target] = total;
                out[target_2] = total_1;
                out[target_4] = total_2;
                out[target_6] = total_3;
            }
        }
    }
}
