#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// fused_less_add_select_scatter_copy: map
//   smelt.scatter at programs.py:47
[[max_total_threads_per_threadgroup(32)]]
kernel void fused_less_add_select_scatter_copy(
    device const uint* x [[buffer(0)]],
    device uint* out [[buffer(1)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 25u) {
        uint at = gid * 4u;
        uint4 x_values = *(device const uint4*)(x + at);
        uint4 values = uint4(0u);
        #pragma unroll
        for (uint i = 0u; i < 4u; i++) {
            values[i] = x_values[i];
        }
        *(device uint4*)(out + at) = values;
    }
}

// fused_less_add_select_scatter: scatter
//   smelt.less, smelt.add, smelt.select, smelt.scatter at programs.py:47
[[max_total_threads_per_threadgroup(256)]]
kernel void fused_less_add_select_scatter(
    device const uint* updates [[buffer(0)]],
    device const uint* indices [[buffer(1)]],
    device uint* out [[buffer(2)]],
    uint gid [[thread_position_in_grid]]
) {
    if (gid < 500u) {
        uint less = indices[gid];
        uint select = int(less) < 0 ? less + 100u : less;
        uint inside = uint(metal::max(metal::min(int(select), 99), 0));
        if (int(select) >= 0 && int(select) <= 99) {
            uint reshape = updates[gid];
            metal::atomic_fetch_add_explicit((device atomic_uint*)(out + inside), reshape, memory_order_relaxed);
        }
    }
}
