//// every function on 32 bits
kernel void k(device atomic_uint* u [[buffer(0)]], device atomic_int* s [[buffer(1)]], device uint* out [[buffer(2)]]) {
    uint a = atomic_load_explicit(u, memory_order_relaxed);
    atomic_store_explicit(u, a + 1, memory_order_relaxed);
    a += atomic_exchange_explicit(u, 3u, memory_order_relaxed);
    a += atomic_fetch_add_explicit(u, 1, memory_order_relaxed) + atomic_fetch_sub_explicit(u, 1, memory_order_relaxed);
    a += atomic_fetch_min_explicit(s, -1, memory_order_relaxed) + atomic_fetch_max_explicit(s, 1, memory_order_relaxed);
    a += atomic_fetch_and_explicit(u, 7, memory_order_relaxed) + atomic_fetch_or_explicit(u, 8, memory_order_relaxed);
    a += atomic_fetch_xor_explicit(u, 5, memory_order_relaxed);
    uint expected = 2;
    while (!atomic_compare_exchange_weak_explicit(u, &expected, expected + 1, memory_order_relaxed, memory_order_relaxed)) {
    }
    out[0] = a;
}
//// floats in device memory
kernel void k(device atomic_float* x [[buffer(0)]]) {
    atomic_fetch_add_explicit(x, 1.5f, memory_order_relaxed);
    atomic_fetch_sub_explicit(&x[1], 1.0f, memory_order_relaxed);
    atomic_store_explicit(x + 2, 0.0f, memory_order_relaxed);
}
//// floats in threadgroup memory
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup atomic_float s;
    atomic_fetch_add_explicit(&s, 1.0f, memory_order_relaxed);  // error: no matching function
    x[0] = 1;
}
//// the least of floats
kernel void k(device atomic_float* x [[buffer(0)]]) {
    atomic_fetch_min_explicit(x, 1.0f, memory_order_relaxed);  // error: no matching function
}
//// bits of floats
kernel void k(device atomic_float* x [[buffer(0)]]) {
    atomic_fetch_or_explicit(x, 1.0f, memory_order_relaxed);  // error: no matching function
}
//// in threadgroup memory
kernel void k(device uint* out [[buffer(0)]], uint lane [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint count[2];
    if (lane < 2) atomic_store_explicit(&count[lane], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&count[lane & 1], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[lane] = atomic_load_explicit(&count[0], memory_order_relaxed);
}
//// the least and most of 64 bits
kernel void k(device atomic_ulong* x [[buffer(0)]]) {
    atomic_min_explicit(x, 5ul, memory_order_relaxed);
    atomic_max_explicit(x, 5ul, memory_order_relaxed);
}
//// a sum of 64 bits
kernel void k(device atomic_ulong* x [[buffer(0)]]) {
    atomic_fetch_add_explicit(x, 5ul, memory_order_relaxed);  // error: no matching function
}
//// a load of 64 bits
kernel void k(device atomic_ulong* x [[buffer(0)]], device ulong* y [[buffer(1)]]) {
    y[0] = atomic_load_explicit(x, memory_order_relaxed);  // error: no matching function
}
//// a result of the least of 64 bits
kernel void k(device atomic_ulong* x [[buffer(0)]], device ulong* y [[buffer(1)]]) {
    y[0] = atomic_min_explicit(x, 5ul, memory_order_relaxed);  // error: void
}
//// signed of 64 bits
kernel void k(device atomic<long>* x [[buffer(0)]]) {  // error: an atomic holds
    atomic_max_explicit(x, 5l, memory_order_relaxed);
}
//// acquire
kernel void k(device atomic_uint* x [[buffer(0)]], device uint* y [[buffer(1)]]) {
    y[0] = atomic_load_explicit(x, memory_order_acquire);  // error: memory_order_relaxed
}
//// release
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    atomic_store_explicit(x, 1u, memory_order_release);  // error: memory_order_relaxed
}
//// sequentially consistent
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    atomic_fetch_add_explicit(x, 1u, memory_order_seq_cst);  // error: memory_order_relaxed
}
//// acquire where an exchange fails
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    uint e = 0;
    atomic_compare_exchange_weak_explicit(x, &e, 1u, memory_order_relaxed, memory_order_acquire);  // error: memory_order_relaxed
}
//// an order of the standard
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    atomic_fetch_add_explicit(x, 1u, memory_order::memory_order_relaxed);
}
//// a fence {metal=3.2}
kernel void k(device uint* x [[buffer(0)]]) {
    x[0] = 1;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
}
//// a fence before Metal 3.2
kernel void k(device uint* x [[buffer(0)]]) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);  // error: Metal 3.2 has it: check with --metal 3.2
}
//// without an order
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    atomic_fetch_add(x, 1u);  // error: atomic_fetch_add
}
//// the strong exchange
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    uint e = 0;
    atomic_compare_exchange_strong_explicit(x, &e, 1u, memory_order_relaxed, memory_order_relaxed);  // error: atomic_compare_exchange_strong_explicit
}
//// on a plain number
kernel void k(device uint* x [[buffer(0)]]) {
    atomic_fetch_add_explicit(x, 1u, memory_order_relaxed);  // error: no matching function
}
//// a cast of a plain number
kernel void k(device uint* x [[buffer(0)]]) {
    atomic_fetch_add_explicit((device atomic_uint*)x, 1u, memory_order_relaxed);
    atomic_fetch_add_explicit(reinterpret_cast<volatile device atomic_uint*>(&x[1]), 1u, memory_order_relaxed);
}
//// in the memory of a thread
void f() {
    thread atomic_uint x;  // error: atomic
}
//// in constant memory
kernel void k(constant atomic_uint* x [[buffer(0)]], device uint* y [[buffer(1)]]) {
    y[0] = atomic_load_explicit(x, memory_order_relaxed);  // error: no matching function
}
//// arithmetic on the atomic itself
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    x[0] += 1;  // error: no viable overloaded
}
//// reading the atomic itself
kernel void k(device atomic_uint* x [[buffer(0)]], device uint* y [[buffer(1)]]) {
    y[0] = x[0];  // error: atomic
}
//// a copy
kernel void k(device atomic_uint* x [[buffer(0)]]) {
    x[1] = x[0];  // error: deleted operator
}
//// of 16 bits
kernel void k(device atomic<ushort>* x [[buffer(0)]]) {  // error: an atomic holds
    atomic_fetch_add_explicit(x, 1, memory_order_relaxed);
}
//// of halves
kernel void k(device atomic<half>* x [[buffer(0)]]) {  // error: an atomic holds
    atomic_fetch_add_explicit(x, 1.0h, memory_order_relaxed);
}
//// a pointer to halves that nothing reads
kernel void k(device atomic<half>* x [[buffer(0)]]) {  // error: an atomic holds
}
//// a pointer to a vector in a structure
struct S {
    device atomic<uint2>* x;  // error: an atomic holds
};
//// threadgroup memory of 8 bits
kernel void k(device uint* y [[buffer(0)]]) {
    threadgroup atomic<uchar> count;  // error: an atomic holds
    y[0] = sizeof(count);
}
//// an instance for halves
template <typename T> kernel void k(device atomic<T>* x [[buffer(0)]]) {}
template [[host_name("k_half")]] kernel void k<half>(device atomic<half>*);  // error: an atomic holds
//// booleans
kernel void k(device atomic_bool* x [[buffer(0)]], device bool* y [[buffer(1)]]) {
    y[0] = atomic_load_explicit(x, memory_order_relaxed);
    atomic_store_explicit(x, true, memory_order_relaxed);
    y[1] = atomic_exchange_explicit(x, false, memory_order_relaxed);
}
//// a template over atomics
template <typename T> void bump(device atomic<T>* x, T by) { atomic_fetch_add_explicit(x, by, memory_order_relaxed); }
kernel void k(device atomic_uint* x [[buffer(0)]], device atomic_int* y [[buffer(1)]], device atomic_float* z [[buffer(2)]]) {
    bump(x, 1u);
    bump(y, -1);
    bump(z, 0.5f);
}
//// an atomic in a structure
struct Counters { atomic_uint hits; atomic_int misses; uint size; };
kernel void k(device Counters& c [[buffer(0)]]) {
    atomic_fetch_add_explicit(&c.hits, 1u, memory_order_relaxed);
    atomic_fetch_sub_explicit(&c.misses, 1, memory_order_relaxed);
}
//// a histogram by sections
constant uint bins = 256;
kernel void histogram(device const uchar* image [[buffer(0)]], device atomic_uint* counts [[buffer(1)]],
                      constant uint& size [[buffer(2)]], uint i [[thread_position_in_grid]],
                      uint lane [[thread_index_in_threadgroup]], uint lanes [[threads_per_threadgroup]],
                      uint total [[threads_per_grid]]) {
    threadgroup atomic_uint own[bins];
    for (uint b = lane; b < bins; b += lanes) atomic_store_explicit(&own[b], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint at = i; at < size; at += total) atomic_fetch_add_explicit(&own[image[at]], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint b = lane; b < bins; b += lanes) {
        uint n = atomic_load_explicit(&own[b], memory_order_relaxed);
        if (n) atomic_fetch_add_explicit(&counts[b], n, memory_order_relaxed);
    }
}
//// a float's maximum by comparing bits
void atomic_max(device atomic_uint* p, float x) {
    uint expected = atomic_load_explicit(p, memory_order_relaxed);
    while (as_type<float>(expected) < x &&
           !atomic_compare_exchange_weak_explicit(p, &expected, as_type<uint>(x), memory_order_relaxed, memory_order_relaxed)) {
    }
}
kernel void k(device atomic_uint* p [[buffer(0)]], device const float* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    atomic_max(p, x[i]);
}
