//// limits of every scalar
template <typename T> T span(T x) { return x + numeric_limits<T>::max() - numeric_limits<T>::lowest() + numeric_limits<T>::min(); }
kernel void k(device float* x [[buffer(0)]]) {
    x[0] = span(char(1)) + span(uchar(1)) + span(short(1)) + span(ushort(1)) + span(1) + span(1u) + span(1l) + span(1ul) + span(1.0f) + float(span(1.0h)) + numeric_limits<bool>::max();
    x[1] = numeric_limits<float>::infinity() + numeric_limits<float>::quiet_NaN() + numeric_limits<float>::epsilon() + numeric_limits<float>::denorm_min() + numeric_limits<float>::round_error();
    x[2] = float(numeric_limits<half>::infinity()) + float(numeric_limits<bfloat>::max()) + numeric_limits<int>::digits + numeric_limits<uint>::is_signed + numeric_limits<float>::digits10 + numeric_limits<float>::max_exponent;
    x[3] = numeric_limits<int8_t>::max() + numeric_limits<int16_t>::max() + numeric_limits<int32_t>::max() + numeric_limits<int64_t>::max() + numeric_limits<uint8_t>::max() + numeric_limits<size_t>::max();
    x[4] = metal::numeric_limits<float>::max_digits10 + numeric_limits<half>::min_exponent + numeric_limits<float>::is_iec559 + numeric_limits<float>::radix + numeric_limits<long>::digits10;
}
//// a specialisation of limits
struct Tiny { uchar bits; };
namespace metal {
template <> struct numeric_limits<Tiny> { static constexpr Tiny max() { return Tiny{255}; } };
}
kernel void k(device uchar* x [[buffer(0)]]) { x[0] = numeric_limits<Tiny>::max().bits; }
//// functions of floats
kernel void k(device float* x [[buffer(0)]]) {
    float a = x[0], b = x[1], c;
    int e;
    x[2] = acos(a) + acosh(a) + asin(a) + asinh(a) + atan(a) + atan2(a, b) + atanh(a) + ceil(a) + copysign(a, b) + cos(a) + cosh(a) + cospi(a);
    x[3] = divide(a, b) + exp(a) + exp10(a) + exp2(a) + fabs(a) + abs(a) + fdim(a, b) + floor(a) + fma(a, b, a) + fmax(a, b) + fmax3(a, b, a) + fmedian3(a, b, a);
    x[4] = fmin(a, b) + fmin3(a, b, a) + fmod(a, b) + fract(a) + frexp(a, e) + ilogb(a) + ldexp(a, 3) + log(a) + log10(a) + log2(a) + max(a, b) + max3(a, b, a);
    x[5] = median3(a, b, a) + min(a, b) + min3(a, b, a) + modf(a, c) + pow(a, b) + powr(a, b) + rint(a) + round(a) + rsqrt(a) + sin(a) + sincos(a, c) + sinh(a);
    x[6] = sinpi(a) + sqrt(a) + tan(a) + tanh(a) + tanpi(a) + trunc(a) + nextafter(a, b) + clamp(a, 0.0f, 1.0f) + mix(a, b, 0.5f) + saturate(a) + sign(a) + smoothstep(0.0f, 1.0f, a) + step(a, b) + degrees(a) + radians(a);
    x[7] = isfinite(a) + isinf(a) + isnan(a) + isnormal(a) + isordered(a, b) + isunordered(a, b) + signbit(a) + select(a, b, a < b);
}
//// functions of vectors
kernel void k(device float4* x [[buffer(0)]], device half3* h [[buffer(1)]]) {
    float4 a = x[0], b = x[1];
    x[2] = exp(a) + pow(a, b) + mix(a, b, 0.5f) + mix(a, b, b) + clamp(a, 0.0f, 1.0f) + clamp(a, b, b) + fma(a, b, a) + max(a, 0.0f) + min(a, b) + step(0.5f, a) + smoothstep(0.0f, 1.0f, a);
    x[3] = dot(a, b) + length(a) + length_squared(a) + distance(a, b) + distance_squared(a, b) + normalize(a) + reflect(a, b) + refract(a, b, 1.5f) + faceforward(a, b, a) + float4(cross(a.xyz, b.xyz), 1);
    h[0] = tanh(h[1]) + rsqrt(h[1]) + dot(h[1], h[2]) + max(h[1], 0.0h) + clamp(h[1], 0.0h, 1.0h);
}
//// functions of integers
kernel void k(device uint* x [[buffer(0)]], device int4* y [[buffer(1)]]) {
    uint a = x[0], b = x[1];
    x[2] = abs(int(a)) + absdiff(a, b) + addsat(a, b) + clamp(a, 1u, 9u) + clz(a) + ctz(a) + extract_bits(a, 3, 5) + hadd(a, b) + insert_bits(a, b, 3, 5) + mad24(a, b, a) + madhi(a, b, a) + madsat(a, b, a);
    x[3] = max(a, b) + max3(a, b, a) + median3(a, b, a) + min(a, b) + min3(a, b, a) + mul24(a, b) + mulhi(a, b) + popcount(a) + reverse_bits(a) + rhadd(a, b) + rotate(a, b) + subsat(a, b);
    y[0] = abs(y[1]) + max(y[1], 0) + popcount(y[1]) + clamp(y[1], -1, 1) + mulhi(y[1], y[2]);
}
//// math functions of an integer
void f(int x) { float y = exp(x); }  // error: ambiguous
//// a math function of a bfloat (tolerated)
kernel void k(device bfloat* x [[buffer(0)]]) { x[0] = bfloat(exp(x[1])) + bfloat(max(x[1], x[2])); }
//// fast and precise functions
kernel void k(device float* x [[buffer(0)]]) { x[0] = fast::exp(x[1]) + precise::exp(x[2]) + metal::fast::sin(x[3]) + metal::precise::divide(x[4], x[5]) + fast::normalize(float2(1)).x + precise::pow(x[1], 2.0f) + fast::tanh(x[2]) + precise::sqrt(x[3]); }
//// matrices
kernel void k(device float4x4* m [[buffer(0)]], device float4* v [[buffer(1)]], constant float3x3& n [[buffer(2)]]) {
    float4x4 a = m[0], b = float4x4(1.0f), c = float4x4(v[0], v[1], v[2], v[3]), d(2.0f);
    float2x3 e = float2x3(float3(1), float3(2));
    float3x2 f = transpose(e);
    half2x2 h = half2x2(half2(1), half2(2));
    float3x3 i = {float3(1), float3(2), float3(3)};
    float2x2 j = float2x2(1, 2, 3, 4);
    a[0] = v[0];
    a[1][2] = 3;
    m[1] = a * b + c - d * 2.0f;
    v[1] = a * v[0] + v[0] * a + a[2] + float4(n * float3(1), 1) + determinant(a) + float(h[0].x) + e[0].x + f[1].y + i[2].z + j[1].x;
}
//// a product of matrices that do not fit
void f(float2x3 a, float2x3 b) { auto c = a * b; }  // error: invalid operands
//// a product of a matrix with a vector that does not fit
void f(float3x3 a, float4 b) { auto c = a * b; }  // error: cannot convert
//// an inverse, which Metal has not
void f(float3x3 a) { auto b = inverse(a); }  // error: inverse
//// packed vectors
kernel void k(device packed_float3* x [[buffer(0)]], device packed_half4* h [[buffer(1)]], constant packed_uchar4& c [[buffer(2)]]) {
    float3 v = x[0];
    x[1] = v * 2.0f;
    x[2] = x[0] + x[1];
    x[3] = packed_float3(1, 2, 3);
    x[4].x = x[3][1];
    half4 w = h[0];
    h[1] = w;
    float3 u = float3(x[0]) + float3(c.x);
    x[5] = dot(float3(x[0]), u);
}
//// a packed vector passed as a vector
float f(float3 x) { return x.x; }
kernel void k(device packed_float3* x [[buffer(0)]], device float* y [[buffer(1)]]) { y[0] = f(x[0]) + length(float3(x[1])); }
//// packing
kernel void k(device float4* x [[buffer(0)]], device uint* y [[buffer(1)]]) {
    x[0] = unpack_unorm4x8_to_float(y[0]) + unpack_snorm4x8_to_float(y[1]) + float4(unpack_unorm2x16_to_float(y[2]), 0, 0);
    y[3] = pack_float_to_unorm4x8(x[1]) + pack_float_to_snorm4x8(x[2]) + pack_half_to_unorm4x8(half4(x[3]));
}
//// arrays of the library
kernel void k(device float* x [[buffer(0)]]) {
    array<float, 4> a = {1, 2, 3, 4};
    const array<float, 2> b = {{5, 6}};
    array<int, 3> c{};
    a[1] = b[0];
    float s = 0;
    for (float y : a) s += y;
    x[0] = s + a.size() + b[1] + c[0];
}
//// constants of the library
kernel void k(device float* x [[buffer(0)]]) {
    x[0] = INFINITY + NAN + FLT_MAX + FLT_MIN + FLT_EPSILON + MAXFLOAT + HUGE_VALF + M_PI_F + M_E_F + M_SQRT2_F + M_LN2_F;
    x[1] = float(HALF_MAX) + float(M_PI_H) + INT_MAX + UINT_MAX + CHAR_BIT + SHRT_MAX + LONG_MAX + FLT_DIG + float(HALF_EPSILON) + float(HUGE_VALH);
}
//// type traits
static_assert(is_same_v<float, float> && !is_same_v<float, half> && is_integral_v<uint> && is_floating_point_v<half>, "a");
static_assert(is_vector_v<float4> && is_same_v<make_scalar_t<half3>, half> && is_same_v<make_unsigned_t<int>, uint>, "b");
static_assert(is_same_v<remove_cv_t<const float>, float> && is_same<decay_t<float>, float>::value && is_signed_v<int>, "c");
static_assert(is_convertible_v<int, float> && is_arithmetic_v<bfloat> && is_enum_v<memory_order> && !is_pointer_v<int>, "d");
static_assert(is_same_v<enable_if_t<true, int>, int> && is_same_v<conditional_t<true, int, float>, int> && is_scalar_v<float>, "e");
static_assert(conjunction_v<true_type, is_same<int, int>> && !negation_v<true_type> && bool_constant<true>::value, "f");
static_assert(is_same_v<integral_constant<int, 3>::value_type, int> && integral_constant<int, 3>() == 3, "g");
static_assert(is_same_v<vec<float, 4>, float4> && is_same_v<decltype(float4().xy), float2>, "h");
static_assert(sizeof(packed_float3) == 12 && is_trivially_copyable_v<float4> && is_class_v<array<int, 2>> && rank_v<int[2][3]> == 2, "i");
//// builtins of the compiler that headers use
kernel void k(device float* x [[buffer(0)]], device uint* y [[buffer(1)]]) {
    x[0] = __builtin_inff() + __builtin_nanf("") + __builtin_bit_cast(float, 1u) + __builtin_huge_valf();
    y[0] = __builtin_popcount(y[1]) + __builtin_clz(y[1]) + __builtin_ctz(y[1]) + __builtin_expect(y[1], 0);
    if (y[0] == 3) __builtin_unreachable();
}
//// builtins of Metal that public headers use
METAL_FUNC float own_exp(float x) { return __metal_exp(x, false); }
METAL_FUNC half own_max(half a, half b) { return __metal_fmax(a, b, true); }
METAL_FUNC uint own_ballot(bool x) { return __metal_simd_ballot(x); }
METAL_FUNC float own_lane(float x, ushort d) { return __metal_simd_shuffle_down(x, d); }
METAL_FUNC uint own_bits(uint x) { return __metal_popcount(x) + __metal_clz(x, false); }
kernel void k(device float* x [[buffer(0)]]) { x[0] = own_exp(x[1]) + float(own_max(1.0h, 2.0h)) + own_lane(x[2], 1) + own_ballot(true) + own_bits(3); }
//// overloads of the library for a type of the program
struct Fixed { int v; };
METAL_FUNC Fixed abs(Fixed x) { return Fixed{x.v < 0 ? -x.v : x.v}; }
namespace metal {
METAL_FUNC Fixed exp(Fixed x) { return x; }
}
kernel void k(device Fixed* x [[buffer(0)]]) { Fixed f = x[0]; x[1] = metal::exp(abs(f)); }
//// overloads of bfloat beside the library (tolerated)
namespace metal {
METAL_FUNC bfloat abs(bfloat x) { return static_cast<bfloat>(metal::abs(static_cast<float>(x))); }
METAL_FUNC bfloat max(bfloat a, bfloat b) { return a > b ? a : b; }
METAL_FUNC bfloat simd_sum(bfloat x) { return static_cast<bfloat>(simd_sum(static_cast<float>(x))); }
}
kernel void k(device bfloat* x [[buffer(0)]]) { x[0] = abs(x[1]) + max(x[1], x[2]); x[1] = simd_sum(x[1]); }
//// two numbers of 64 bits from one of 128
kernel void k(device ulong* x [[buffer(0)]]) { ulong a = x[0], b = x[1]; x[2] = mulhi(a, b); x[3] = a * b; x[4] = max(a, b) + clz(a) + popcount(b); }
//// a tuple of random numbers
METAL_FUNC uint2 philox(uint2 key, uint count) {
    uint4 r = {count, 0, key.x, key.y};
    for (int i = 0; i < 4; i++) {
        uint h = mulhi(0xD2511F53u, r.x), l = 0xD2511F53u * r.x;
        r = uint4(h ^ key.x, l, r.zw ^ key);
    }
    return r.xy;
}
kernel void k(device uint2* x [[buffer(0)]], constant uint2& key [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] = philox(key, i); }
//// components of packed vectors
kernel void k(device packed_float3* x [[buffer(0)]], constant packed_float3& c [[buffer(1)]], device packed_half3* h [[buffer(2)]],
              threadgroup packed_float3* t [[threadgroup(0)]], device packed_float2* two [[buffer(3)]], device packed_float4* four [[buffer(4)]]) {
    float2 q = x[0].xy;
    x[0].xyz = x[1].zyx;
    x[0].rg += q;
    q = x[0].xy + q * c.zx;
    t[0].xy = c.xx;
    q -= t[0].yz;
    q = -x[0].xz * 2.0f;
    h[0].xy = half2(x[0].xy);
    x[1] = float3(x[0].xy, dot(float2(x[0].zz), q));
    two[0].yx = four[0].zw;
    four[0].rgb = c.bgr;
}
//// a component of a packed vector written twice
kernel void k(device packed_float3* x [[buffer(0)]]) {
    x[0].xx = float2(1);  // error: no viable overloaded '='
}
//// components of a constant packed vector
kernel void k(constant packed_float3& x [[buffer(0)]]) {
    x.xy = float2(1);  // error: no viable overloaded '='
}
//// a component that a packed vector lacks
kernel void k(device packed_float3* x [[buffer(0)]]) {
    x[0].x = x[1].w;  // error: no member named 'w'
}
