// Types and functions: vectors, swizzles, packing, matrices, relational and integer functions, rope, bitonic sort.
#include <metal_stdlib>
#include <metal_math>
using namespace metal;

enum class Mode : uint { A, B };
union Bits {
  float f;
  uint u;
};
struct Args {
  uint n;
  float scale;
  packed_float3 offset;
  array<uint, 4> shape;
};
using half_vec = vec<half, 4>;
constexpr sampler nearest(coord::pixel, filter::nearest);
constant constexpr float kEps = 1e-5f;

struct complex64 {
  float real;
  float imag;
  constexpr complex64(float r, float i) : real(r), imag(i) {}
  constexpr complex64() : real(0), imag(0) {}
  constexpr complex64() threadgroup : real(0), imag(0) {}
  template <typename T, typename = enable_if_t<!is_same_v<T, complex64> && is_convertible_v<T, float>>>
  constexpr complex64(T x) thread : real(x), imag(0) {}
  constexpr operator float() const { return real; }
  constexpr operator float4() const thread { return float4(real, imag, 0, 0); }
};
constexpr complex64 operator+(complex64 a, complex64 b) { return {a.real + b.real, a.imag + b.imag}; }
constexpr complex64 operator*(complex64 a, complex64 b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

kernel void complex_mul(device const complex64* a [[buffer(0)]], device complex64* out [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  complex64 x = a[i];
  out[i] = x * a[i + 1] + complex64(1.0f, 0.0f);
}

float3 fetch(const device packed_float3* p, uint i) { return float3(p[i]); }
inline void rotate_pair(thread float2& v, float theta) {
  float c, s = sincos(theta, c);
  v = float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

kernel void rope(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], constant Args& args [[buffer(2)]],
                 uint2 pos [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {
  Args local = args;
  float d = static_cast<float>(pos.x) / static_cast<float>(grid.x);
  float inv_freq = metal::exp2(-d * local.scale);
  float2 v = float2(x[2 * pos.x], x[2 * pos.x + 1]);
  rotate_pair(v, pos.y * inv_freq);
  out[2 * pos.x] = v.x;
  out[2 * pos.x + 1] = v.y + args.offset.x + args.shape[1];
}

kernel void many(device float4* out [[buffer(0)]], device const half4* h [[buffer(1)]], device const bfloat* bf [[buffer(2)]],
                 texture2d<float, access::read> image [[texture(0)]], device const uchar* bytes [[buffer(3)]],
                 device packed_float3* packed [[buffer(4)]], ushort3 tid [[thread_position_in_grid]],
                 ushort lane [[thread_index_in_simdgroup]]) {
  uint i = tid.x;
  float4 a = float4(h[i]), b = float4(1.0f), c = float4(a.xy, b.zw), d(0.5f, a.yzw);
  float4 e = {1, 2, 3, 4};
  c.xy = a.zw;
  c.rgb = float3(1, 2, 3);
  half_vec g = half_vec(c);
  auto g2 = half_vec(1, 2, 3, 4) + vec<half, 4>(1.0h, g.xy, 2.0h);
  bool4 m = a < b;
  bool4 m2 = bool4(true, false, true, a.x > 0) && m;
  a = select(a, b, m2);
  a = select(b, a, a < b);
  if (any(a == b) || all(isnan(a))) a = clamp(a, 0.0f, 1.0f);
  a = mix(a, b, 0.5f) + step(0.5f, a) + smoothstep(0.0f, 1.0f, a) + saturate(a) + sign(b) + max(a, 0.0f) + fma(a, b, c);
  a += pow(abs(a), float4(2)) + metal::precise::exp(a) + fast::rsqrt(b) + fmod(a, b) + atan2(a, b) + rint(a);
  float f = bf[i];
  f = metal::exp(bf[i]) + bf[i] * 2.0f + max(f, float(bf[i]));
  bfloat back = bfloat(f), one = bfloat(1);
  back = static_cast<bfloat>(f) + 1.0bf * one;
  uint u = as_type<uint>(f) ^ popcount(i) ^ clz(i) ^ ctz(i) ^ mulhi(i, 3u) ^ rotate(i, 7u) ^ reverse_bits(i);
  int s = absdiff(3, -4) + mad24(1, 2, 3) + addsat(1, 2) + extract_bits(7, 1u, 2u) + median3(1, 2, 3);
  uchar4 q = uchar4(bytes[i], 1, 2, 3);
  uint4 w = uint4(q) >> 2;
  w.x += as_type<uint>(q) + uint(Mode::B) + u + uint(s);
  Bits bits;
  bits.f = f;
  w.y = bits.u;
  float3 p = packed[i] * 2.0f;
  packed[i] = packed_float3(p);
  packed[i] = p + cross(p, normalize(fetch(packed, i))) * length(p);
  float2x2 r = float2x2(1, 2, 3, 4);
  float3x3 r3 = float3x3(p, p, p);
  float4x4 r4 = float4x4(1.0f);
  float2 rv = r * float2(1, 2);
  e = r4 * e + float4(r3[0], rv.x) + float4(transpose(r4)[1]);
  f += simd_shuffle_xor(f, 1) + simd_broadcast(f, 0) + simd_broadcast_first(f) + quad_sum(f) + simd_prefix_exclusive_sum(f);
  f += simd_shuffle_and_fill_up(f, 0.0f, 1);
  simd_vote vote = simd_ballot(f > 0);
  ulong ballot = (simd_vote::vote_t)vote;
  f += float(popcount(ballot)) + (simd_any(f > 1) ? 1 : 0) + (vote.all() ? 0.5 : 0.25);
  float4 px = image.read(uint2(i, 0)) + image.get_width();
  half hmax = numeric_limits<half>::max(), hp = M_PI_H;
  f += INFINITY * 0 + M_PI_F + FLT_MAX + float(hmax + hp) + kEps;
  float4 x8 = unpack_unorm4x8_to_float(w.x);
  w.z = pack_float_to_unorm4x8(x8);
  array<float, 3> arr = {1, 2, 3};
  int exponent;
  f += frexp(f, exponent) + ldexp(f, 2) + arr[0];
  ushort2 small = ushort2(tid.xy) + ushort2(lane);
  out[i] = a + c + d + e + f + float4(w) + px + float4(g2) + float4(back) + float4(float2(small), float2(0));
  out[i].x = float(ballot);
}

kernel void bitonic(device float* data [[buffer(0)]], constant uint& k [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float2 shared[512];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  shared[i] = float2(data[i], i);
  for (uint j = k >> 1; j > 0; j >>= 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint other = i ^ j;
    if (other > i) {
      threadgroup float2& lo = shared[i];
      threadgroup float2* hi = &shared[other];
      if (((i & k) == 0) == (lo.x > hi->x)) {
        float2 t = lo;
        lo = *hi;
        *hi = t;
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[i] = shared[i].x;
}
