//// barriers of every kind
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup_barrier(mem_flags::mem_none);
    threadgroup_barrier(mem_flags::mem_device);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    threadgroup_barrier(metal::mem_flags::mem_texture);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    x[0] = 1;
}
//// a barrier without flags
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup_barrier();  // error: no matching function
}
//// a barrier of a number
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup_barrier(2);  // error: no matching function
}
//// a barrier in a branch
kernel void k(device float* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    if (i < 4) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // strict: divergent barrier
    }
}
//// a barrier behind a return
kernel void k(device float* x [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // strict: divergent barrier
}
//// a barrier in a loop of its own length
kernel void k(device float* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    for (uint j = i; j < 100; j += 32) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // strict: divergent barrier
    }
}
//// a barrier in a function in a branch
void sync() { threadgroup_barrier(mem_flags::mem_threadgroup); }
kernel void k(device float* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    if (i < 4) sync();  // strict: divergent barrier
}
//// a barrier in a loop for all
kernel void k(device float* x [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
    for (uint j = 0; j < n; j++) {
        if (i < j) x[i] = 1;
        threadgroup_barrier(mem_flags::mem_device);
    }
}
//// threadgroup variables
constant uint size = 32;
kernel void k(device float* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup float a[size];
    threadgroup float b[4][8], c;
    threadgroup float4 d[8];
    threadgroup uchar e[2 * size];
    a[i] = i;
    b[0][i & 7] = 1;
    c = 1;
    d[i & 7] = 1;
    e[i] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = a[i ^ 1] + b[0][0] + c + d[0].x + e[0];
}
//// a threadgroup variable in a function
float f() { threadgroup float s; return s; }  // error: threadgroup variable outside a kernel
//// a threadgroup variable in a block
kernel void k(device float* x [[buffer(0)]]) {
    {
        threadgroup float s[4];  // error: outermost scope
        x[0] = s[0];
    }
}
//// a threadgroup variable in a branch
kernel void k(device float* x [[buffer(0)]], constant bool& b [[buffer(1)]]) {
    if (b) {
        threadgroup float s[4];  // error: outermost scope
        x[0] = s[0];
    }
}
//// a threadgroup variable in a loop
kernel void k(device float* x [[buffer(0)]]) {
    for (int i = 0; i < 4; i++) {
        threadgroup float s;  // error: outermost scope
        x[0] = s;
    }
}
//// a threadgroup variable with a value
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup float s = 1;  // error: cannot have an initializer
    x[0] = s;
}
//// a threadgroup variable of the program
threadgroup float s[4];  // error: program-scope variable
//// a threadgroup variable that is too large
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup float s[8193];  // error: 32784 bytes
    x[0] = s[0];
}
//// threadgroup variables that are too large together
kernel void k(device float* x [[buffer(0)]]) {
    threadgroup float s[8000];
    threadgroup half t[800];  // error: more than 32768
    x[0] = s[0] + float(t[0]);
}
//// threadgroup memory that goes to functions
float total(threadgroup const float* s, uint n) { float x = 0; for (uint i = 0; i < n; i++) x += s[i]; return x; }
void put(threadgroup float (&s)[4], float x) { for (int i = 0; i < 4; i++) s[i] = x; }
kernel void k(device float* x [[buffer(0)]], threadgroup float* m [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup float s[4];
    if (i == 0) put(s, x[0]);
    m[i] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = total(s, 4) + total(m, 2);
}
//// functions of a simdgroup on every type
kernel void k(device float* x [[buffer(0)]], device int* y [[buffer(1)]], device half4* z [[buffer(2)]], device uchar* w [[buffer(3)]],
              uint i [[thread_index_in_simdgroup]]) {
    x[i] = simd_sum(x[i]) + simd_product(x[i]) + simd_max(x[i]) + simd_min(x[i]);
    y[i] = simd_sum(y[i]) + simd_and(y[i]) + simd_or(y[i]) + simd_xor(y[i]) + simd_max(short(y[i]));
    z[i] = simd_sum(z[i]) + simd_shuffle(z[i], 3) + simd_broadcast(z[i], ushort(1));
    w[i] = simd_shuffle_xor(w[i], 1) + simd_min(w[i]);
    x[i] += simd_prefix_inclusive_sum(x[i]) + simd_prefix_exclusive_sum(x[i]) + simd_prefix_inclusive_product(x[i]) + simd_prefix_exclusive_product(x[i]);
    x[i] += simd_shuffle_down(x[i], 1) + simd_shuffle_up(x[i], 2u) + simd_shuffle_rotate_down(x[i], 1) + simd_shuffle_rotate_up(x[i], 1);
    x[i] += simd_shuffle_and_fill_down(x[i], 1.0f, 2) + simd_shuffle_and_fill_up(x[i], 1.0f, 2, 8) + simd_broadcast_first(x[i]);
}
//// votes
kernel void k(device uint* x [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
    simd_vote v = simd_ballot(x[i] > 0);
    ulong bits = (simd_vote::vote_t)v;
    simd_vote w = simd_active_threads_mask();
    x[i] = popcount(uint(bits)) + v.any() + w.all() + simd_all(x[i] > 1) + simd_any(x[i] > 2) + simd_is_first();
    x[i] += quad_all(x[i] > 1) + quad_any(x[i] > 2) + quad_is_first() + ctz(uint(static_cast<quad_vote::vote_t>(quad_ballot(true))));
}
//// functions of a quadgroup
kernel void k(device float* x [[buffer(0)]], uint i [[thread_index_in_quadgroup]]) {
    x[i] = quad_sum(x[i]) + quad_product(x[i]) + quad_max(x[i]) + quad_min(x[i]) + quad_broadcast(x[i], 1) + quad_shuffle(x[i], 2);
    x[i] += quad_shuffle_xor(x[i], 1) + quad_shuffle_up(x[i], 1) + quad_shuffle_down(x[i], 1) + quad_shuffle_rotate_up(x[i], 1);
    x[i] += quad_prefix_inclusive_sum(x[i]) + quad_prefix_exclusive_sum(x[i]) + quad_shuffle_and_fill_down(x[i], 0.0f, 1);
}
//// a sum of 64 bits
void f(ulong x) { ulong y = simd_sum(x); }  // error: no matching function
//// a shuffle of 64 bits
void f(long x) { long y = simd_shuffle(x, 1); }  // error: no matching function
//// a sum of booleans
void f(bool x) { bool y = simd_sum(x); }  // error: no matching function
//// a broadcast of booleans
void f(bool x) { bool y = simd_broadcast(x, 0); }  // error: no matching function
//// bits of floats
void f(float x) { float y = simd_and(x); }  // error: no matching function
//// a sum of a structure
struct S { float a; };
void f(S x) { S y = simd_sum(x); }  // error: no matching function
//// matrices of a simdgroup
kernel void k(device float* a [[buffer(0)]], device half* b [[buffer(1)]], device float* c [[buffer(2)]]) {
    threadgroup float s[64];
    simdgroup_float8x8 x, y;
    simdgroup_matrix<half, 8, 8> h;
    simdgroup_float8x8 z = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_float8x8 w(0.0f);
    simdgroup_load(x, a, 8);
    simdgroup_load(y, a + 64, 16, ulong2(8, 0), true);
    simdgroup_load(h, b, 8, 0, false);
    simdgroup_multiply(w, x, y);
    simdgroup_multiply_accumulate(z, x, y, z);
    simdgroup_multiply_accumulate(z, h, h, z);
    simdgroup_store(z, s, 8);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_store(w, c, 8);
    c[0] = s[0];
}
//// matrices of integers
void f() { simdgroup_matrix<int, 8, 8> m; }  // error: float, half or bfloat
//// matrices of four
void f() { simdgroup_matrix<float, 4, 4> m; }  // error: 8 rows and 8 columns
//// matrices of a thread's memory
void f(thread float* p) { simdgroup_float8x8 m; simdgroup_load(m, p, 8); }  // error: no matching function
//// matrices of other elements
void f(device half* p) { simdgroup_float8x8 m; simdgroup_load(m, p, 8); }  // error: no matching function
//// a function of lanes that does not exist
void f(float x) { float y = simd_average(x); }  // error: simd_average
//// a softmax over rows
kernel void softmax(device const float* in [[buffer(0)]], device float* out [[buffer(1)]], constant uint& width [[buffer(2)]],
                    uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_threadgroup]],
                    uint lanes [[threads_per_threadgroup]], uint simd_lane [[thread_index_in_simdgroup]],
                    uint simd_group [[simdgroup_index_in_threadgroup]], uint simd_groups [[simdgroups_per_threadgroup]]) {
    threadgroup float most[32], total[32];
    float m = -INFINITY;
    for (uint i = lane; i < width; i += lanes) m = max(m, in[row * width + i]);
    m = simd_max(m);
    if (simd_lane == 0) most[simd_group] = m;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    m = simd_max(simd_lane < simd_groups ? most[simd_lane] : -INFINITY);
    float s = 0;
    for (uint i = lane; i < width; i += lanes) s += precise::exp(in[row * width + i] - m);
    s = simd_sum(s);
    if (simd_lane == 0) total[simd_group] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s = simd_sum(simd_lane < simd_groups ? total[simd_lane] : 0.0f);
    for (uint i = lane; i < width; i += lanes) out[row * width + i] = precise::exp(in[row * width + i] - m) / s;
}
