//// buffers by number
kernel void k(device float* x [[buffer(0)]], constant float& y [[buffer(30)]]) { x[0] = y; }
//// buffers without numbers (tolerated)
kernel void k(device float* x, constant float& y, device const float* z) { x[0] = y + z[0]; }
//// buffers that are written as arrays (tolerated)
kernel void k(device float* x, constant const size_t strides[4], constant float table[2][3], device float y[]) {
    x[strides[1]] = table[1][2] + y[0];
}
//// a buffer that is written as an array, without an address space
kernel void k(device float* x,
              float y[4]) {  // error: has no attribute such as [[buffer(0)]]
    x[0] = y[0];
}
//// an array of pointers
kernel void k(device float* x [[buffer(0)]],
              device float* y[4]) {  // error: is a pointer to a pointer
    x[0] = y[0][0];
}
//// a buffer without a number
kernel void k(
    device float* x [[buffer(0)]],
    constant float& y) {  // remark: has no attribute such as [[buffer(1)]]
    x[0] = y;
}
//// a threadgroup pointer without a number
kernel void k(device float* x [[buffer(0)]],
              threadgroup float* s) {  // remark: has no attribute such as [[threadgroup(0)]]
    s[0] = 1;
    x[0] = s[0];
}
//// a number without attribute
kernel void k(device float* x [[buffer(0)]], uint n) { x[0] = n; }  // error: has no attribute
//// an attribute without a number
kernel void k(device float* x [[buffer]]) {}  // error: needs an index
//// two buffers of one number
kernel void k(device float* x [[buffer(1)]],
              device float* y [[buffer(1)]]) {}  // error: used twice
//// two textures of one number
kernel void k(texture2d<float> x [[texture(1)]],
              texture2d<float> y [[texture(1)]]) {}  // error: used twice
//// a buffer and a texture of one number
kernel void k(device float* x [[buffer(1)]], texture2d<float> y [[texture(1)]], sampler s [[sampler(1)]]) {}
//// the last numbers
kernel void k(device float* x [[buffer(30)]], texture2d<float> y [[texture(127)]], sampler s [[sampler(15)]]) {}
//// a buffer beyond the last
kernel void k(device float* x [[buffer(31)]]) {}  // error: above 30
//// a texture beyond the last
kernel void k(texture2d<float> x [[texture(128)]]) {}  // error: above 127
//// a sampler beyond the last
kernel void k(sampler x [[sampler(16)]]) {}  // error: above 15
//// threadgroup memory beyond the last
kernel void k(threadgroup float* x [[threadgroup(31)]]) {}  // error: above 30
//// a negative number
kernel void k(device float* x [[buffer(-1)]]) {}  // error: negative
//// a negative number from a macro
#define FIRST (-2)
kernel void k(device float* x [[buffer(FIRST)]]) {}  // error: negative
//// numbers from constants
constant int first = 1;
enum Slots { in_slot = 2, out_slot };
#define AFTER(n) (n + 1)
kernel void k(device float* a [[buffer(first)]], device float* b [[buffer(in_slot)]], device float* c [[buffer(out_slot)]],
              device float* d [[buffer(AFTER(3))]]) {}
//// clashing numbers from constants
enum Slots { in_slot = 2, out_slot };
kernel void k(device float* a [[buffer(out_slot)]],
              device float* b [[buffer(in_slot + 1)]]) {}  // error: used twice
//// a number that is no constant
kernel void k(device float* a [[buffer(n)]]) {}  // error: [[buffer
//// a number with a fraction
kernel void k(device float* a [[buffer(1.5)]]) {}  // error: [[buffer
//// a text for a number
kernel void k(device float* a [[buffer("a")]]) {}  // error: [[buffer
//// buffers of thirty-two arguments
struct A { float x[4]; };
kernel void k(constant A& a [[buffer(0)]], device A* b [[buffer(1)]], constant float (&c)[4] [[buffer(2)]],
              constant array<float, 4>& d [[buffer(3)]]) {
    b[0].x[0] = a.x[1] + c[2] + d[3];
}
//// a value as a buffer
kernel void k(float a [[buffer(0)]]) {}  // error: must be a device or constant pointer
//// a thread pointer as a buffer
kernel void k(thread float* a [[buffer(0)]]) {}  // error: must be a device or constant pointer
//// a threadgroup pointer as a buffer
kernel void k(threadgroup float* a [[buffer(0)]]) {}  // error: must be a device or constant pointer
//// a device pointer as threadgroup memory
kernel void k(device float* a [[threadgroup(0)]]) {}  // error: must be a threadgroup pointer
//// a pointer as a texture
kernel void k(device float* a [[texture(0)]]) {}  // error: must be a texture
//// a texture as a buffer
kernel void k(texture2d<float> a [[buffer(0)]]) {}  // error: must be a device or constant pointer
//// a texture as a sampler
kernel void k(texture2d<float> a [[sampler(0)]]) {}  // error: must be a sampler
//// a sampler as a texture
kernel void k(sampler a [[texture(0)]]) {}  // error: must be a texture
//// textures and samplers without numbers (tolerated)
kernel void k(texture2d<float> a, texture2d<float, access::write> b, sampler s, uint2 i [[thread_position_in_grid]]) {
    b.write(a.sample(s, float2(i)), i);
}
//// an unknown attribute
kernel void k(device float* x [[bufer(0)]]) {}  // error: unknown attribute 'bufer'; did you mean 'buffer'?
//// every position
kernel void k(device uint* x [[buffer(0)]], uint3 a [[thread_position_in_grid]], uint3 b [[threads_per_grid]],
              uint3 c [[thread_position_in_threadgroup]], uint3 d [[threads_per_threadgroup]],
              uint3 e [[threadgroup_position_in_grid]], uint3 f [[threadgroups_per_grid]],
              uint3 g [[dispatch_threads_per_threadgroup]], uint h [[thread_index_in_threadgroup]],
              uint i [[thread_index_in_simdgroup]], uint j [[simdgroup_index_in_threadgroup]],
              uint l [[simdgroups_per_threadgroup]], uint m [[threads_per_simdgroup]],
              uint n [[thread_index_in_quadgroup]], uint o [[quadgroup_index_in_threadgroup]],
              uint p [[quadgroups_per_threadgroup]], uint q [[thread_execution_width]],
              uint r [[dispatch_simdgroups_per_threadgroup]], uint s [[dispatch_quadgroups_per_threadgroup]]) {
    x[0] = a.x + b.x + c.x + d.x + e.x + f.x + g.x + h + i + j + l + m + n + o + p + q + r + s;
}
//// positions of 16 bits
kernel void k(device uint* x [[buffer(0)]], ushort2 a [[thread_position_in_grid]], ushort2 c [[threads_per_threadgroup]],
              ushort h [[thread_index_in_threadgroup]]) {
    x[a.x] = c.y + h;
}
//// positions of 16 and of 32 bits
kernel void k(device uint* x [[buffer(0)]], uint2 a [[thread_position_in_grid]], ushort2 c [[threads_per_threadgroup]]) {
    x[a.x] = c.y;
}
//// a signed position
kernel void k(int i [[thread_position_in_grid]]) {}  // error: has type 'int'
//// a position of floats
kernel void k(float2 i [[thread_position_in_grid]]) {}  // error: has type 'float2'
//// a position of four
kernel void k(uint4 i [[thread_position_in_grid]]) {}  // error: has type 'uint4'
//// a position of 64 bits
kernel void k(ulong i [[thread_position_in_grid]]) {}  // error: has type 'ulong'
//// a lane of two
kernel void k(uint2 i [[thread_index_in_simdgroup]]) {}  // error: has type 'uint2'
//// a lane of 8 bits
kernel void k(uchar i [[thread_index_in_simdgroup]]) {}  // error: has type 'uchar'
//// positions of several widths
kernel void k(uint i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {}  // error: differ in width
//// one built-in twice at one width
kernel void k(device uint* x [[buffer(0)]], uint2 i [[thread_position_in_grid]], uint2 j [[thread_position_in_grid]]) {
    x[i.x] = j.y;
}
//// one built-in at two widths
kernel void k(uint2 i [[thread_position_in_grid]],
              uint3 j [[thread_position_in_grid]]) {}  // error: thread_position_in_grid
//// one built-in at two sizes
kernel void k(uint i [[thread_index_in_simdgroup]],
              ushort j [[thread_index_in_simdgroup]]) {}  // error: thread_index_in_simdgroup
//// an attribute of a fragment
kernel void k(float4 p [[position]]) {}  // error: [[position]]
//// an attribute of a vertex
kernel void k(uint i [[vertex_id]]) {}  // error: [[vertex_id]]
//// a kernel that returns
kernel float k(device float* x [[buffer(0)]]) { return x[0]; }  // error: must return void
//// a kernel in attribute form
[[kernel]] void k(device float* x [[buffer(0)]]) { x[0] = 1; }
//// two kernels of one name
kernel void k(device float* x [[buffer(0)]]) {}
kernel void k(device int* x [[buffer(0)]]) {}  // error: overloaded
//// main
kernel void main(device float* x [[buffer(0)]]) {}  // error: 'main'
//// a kernel that calls a kernel
kernel void inner(device float* x [[buffer(0)]]) { x[0] = 1; }
kernel void outer(device float* x [[buffer(0)]]) { inner(x); }  // error: kernel 'inner'
//// kernels in a namespace
namespace mine {
kernel void k(device float* x [[buffer(0)]]) { x[0] = 1; }
}
//// a kernel as a method
struct S {
    kernel void k(device float* x [[buffer(0)]]) {}  // error: kernel
};
//// most threads
[[max_total_threads_per_threadgroup(1024)]] kernel void k(device float* x [[buffer(0)]]) { x[0] = 1; }
//// most threads behind kernel
kernel [[max_total_threads_per_threadgroup(256)]] void k(device float* x [[buffer(0)]]) { x[0] = 1; }
//// most threads from a macro
#define THREADS 64
[[max_total_threads_per_threadgroup(THREADS * 2)]] kernel void k(device float* x [[buffer(0)]]) { x[0] = 1; }
//// no threads
[[max_total_threads_per_threadgroup(0)]] kernel void k(device float* x [[buffer(0)]]) {}  // error: max_total_threads_per_threadgroup
//// too many threads
[[max_total_threads_per_threadgroup(1025)]] kernel void k(device float* x [[buffer(0)]]) {}  // error: max_total_threads_per_threadgroup
//// less than no threads
[[max_total_threads_per_threadgroup(-1)]] kernel void k(device float* x [[buffer(0)]]) {}  // error: max_total_threads_per_threadgroup
//// threads of a fraction
[[max_total_threads_per_threadgroup(1.5)]] kernel void k(device float* x [[buffer(0)]]) {}  // error: max_total_threads_per_threadgroup
//// threads without a number
[[max_total_threads_per_threadgroup]] kernel void k(device float* x [[buffer(0)]]) {}  // error: max_total_threads_per_threadgroup
//// most threads of no kernel
[[max_total_threads_per_threadgroup(32)]] float k(float x) { return x; }  // error: max_total_threads_per_threadgroup
//// attributes in other brackets
kernel void k(device float* x [[ buffer( 0 ) ]], uint i [[ thread_position_in_grid ]]) { x[i] = 1; }
//// attributes of several
kernel void k(device float* x [[buffer(0), maybe_unused]], uint i [[thread_position_in_grid, maybe_unused]]) {}
//// a parameter without a name
kernel void k(device float* x [[buffer(0)]], uint [[thread_position_in_grid]]) { x[0] = 1; }
//// no parameters
kernel void k() {}
//// stage_in of a kernel
struct In { float4 a [[attribute(0)]]; };
kernel void k(In in [[stage_in]], device float4* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = in.a; }
//// a pointer to void
kernel void k(device void* x [[buffer(0)]]) { ((device float*)x)[0] = 1; }
//// booleans in buffers
kernel void k(device bool* x [[buffer(0)]], constant bool& y [[buffer(1)]]) { x[0] = y; }
//// enumerations in buffers
enum class Mode : uchar { one, two };
kernel void k(device Mode* x [[buffer(0)]], constant Mode& y [[buffer(1)]]) { x[0] = y; }
