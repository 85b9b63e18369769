//// reading and writing
kernel void k(texture2d<float, access::read> a [[texture(0)]], texture2d<float, access::write> b [[texture(1)]],
              uint2 i [[thread_position_in_grid]]) {
    if (i.x >= b.get_width() || i.y >= b.get_height()) return;
    b.write(a.read(i) * 2.0f, i);
}
//// reading and writing one texture
kernel void k(texture2d<half, access::read_write> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    half4 x = a.read(i);
    a.fence();
    a.write(x * 2.0h, i);
}
//// sampling
constexpr sampler linear(coord::normalized, address::clamp_to_edge, filter::linear);
kernel void k(texture2d<float> a [[texture(0)]], texture2d<float, access::write> b [[texture(1)]],
              sampler s [[sampler(0)]], uint2 i [[thread_position_in_grid]]) {
    constexpr sampler near(coord::pixel, filter::nearest);
    float2 at = (float2(i) + 0.5f) / float2(b.get_width(), b.get_height());
    float4 x = a.sample(linear, at) + a.sample(near, float2(i)) + a.sample(s, at, level(0)) + a.sample(s, at, int2(1, 0));
    b.write(x + a.gather(s, at) + a.gather(s, at, int2(0), component::y), i);
}
//// writing what may only be read
kernel void k(texture2d<float, access::read> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    a.write(float4(1), i);  // error: write
}
//// writing what may only be sampled
kernel void k(texture2d<float> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    a.write(float4(1), i);  // error: write
}
//// reading what may only be written
kernel void k(texture2d<float, access::write> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    float4 x = a.read(i);  // error: read
}
//// sampling what may only be read
kernel void k(texture2d<float, access::read> a [[texture(0)]], sampler s [[sampler(0)]]) {
    float4 x = a.sample(s, float2(0));  // error: sample
}
//// sampling integers with a linear filter is the user's affair
kernel void k(texture2d<uint> a [[texture(0)]], sampler s [[sampler(0)]], device uint4* x [[buffer(0)]]) {
    x[0] = a.sample(s, float2(0));
}
//// all dimensions
kernel void k(texture1d<float> a [[texture(0)]], texture1d_array<float> b [[texture(1)]], texture2d_array<float> c [[texture(2)]],
              texture3d<float> d [[texture(3)]], texturecube<float> e [[texture(4)]], texturecube_array<float> f [[texture(5)]],
              texture2d_ms<float, access::read> g [[texture(6)]], texture_buffer<float, access::read> h [[texture(7)]],
              depth2d<float> j [[texture(8)]], depth2d_array<float> l [[texture(9)]], depthcube<float> m [[texture(10)]],
              sampler s [[sampler(0)]], device float4* x [[buffer(0)]]) {
    x[0] = a.sample(s, 0.5f) + b.sample(s, 0.5f, 1) + c.sample(s, float2(0), 1) + d.sample(s, float3(0)) + e.sample(s, float3(1));
    x[1] = f.sample(s, float3(1), 2) + g.read(uint2(0), 1) + h.read(3);
    x[2] = j.sample(s, float2(0)) + j.sample_compare(s, float2(0), 0.5f) + l.sample(s, float2(0), 1) + m.sample(s, float3(1));
}
//// levels and gradients
kernel void k(texture2d<float> a [[texture(0)]], texturecube<float> c [[texture(1)]], texture3d<float> d [[texture(2)]],
              sampler s [[sampler(0)]], device float4* x [[buffer(0)]]) {
    x[0] = a.sample(s, float2(0), level(1)) + a.sample(s, float2(0), gradient2d(float2(0), float2(1)));
    x[1] = c.sample(s, float3(1), gradientcube(float3(0), float3(1))) + d.sample(s, float3(0), gradient3d(float3(0), float3(1)));
    x[2] = a.sample(s, float2(0), min_lod_clamp(1.0f)) + float(a.get_width(1)) + float(a.get_num_mip_levels());
}
//// an array of textures
kernel void k(array<texture2d<float>, 4> a [[texture(0)]], device float4* x [[buffer(0)]]) {
    for (uint n = 0; n < a.size(); n++) x[n] = a[n].read(uint2(0));
}
//// an array of textures that clashes
kernel void k(array<texture2d<float>, 4> a [[texture(0)]],
              texture2d<float> b [[texture(3)]]) {}  // error: used twice
//// an array of textures beyond the last
kernel void k(array<texture2d<float>, 4> a [[texture(126)]]) {}  // error: above 127
//// one component read as a scalar
kernel void k(texture2d<float, access::read> a [[texture(0)]], device float* x [[buffer(0)]], ushort2 i [[thread_position_in_grid]]) {
    x[i.x] = a.read(i).x;
}
//// floats from a texture of integers
kernel void k(texture2d<uint, access::read> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    float4 x = a.read(i);  // error: cannot initialize
}
//// integers to a texture of floats
kernel void k(texture2d<float, access::write> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    a.write(uint4(1), i);  // error: write
}
//// coordinates of the wrong width
kernel void k(texture2d<float, access::read> a [[texture(0)]], uint3 i [[thread_position_in_grid]]) {
    float4 x = a.read(i);  // error: read
}
//// coordinates of floats in a read
kernel void k(texture2d<float, access::read> a [[texture(0)]]) {
    float4 x = a.read(float2(0));  // error: read
}
//// a sampler that is missing
kernel void k(texture2d<float> a [[texture(0)]], device float4* x [[buffer(0)]]) {
    x[0] = a.sample(float2(0));  // error: sample
}
//// a texture of doubles
kernel void k(texture2d<double> a [[texture(0)]]) {}  // error: double
//// a texture of vectors
kernel void k(texture2d<float4> a [[texture(0)]]) {}  // error: texture
//// a texture of characters
kernel void k(texture2d<char> a [[texture(0)]]) {}  // error: texture
//// a depth texture that is written
kernel void k(depth2d<float, access::write> a [[texture(0)]]) {}  // error: depth
//// a depth texture of halves
kernel void k(depth2d<half> a [[texture(0)]]) {}  // error: depth
//// a multisampled texture that is sampled
kernel void k(texture2d_ms<float> a [[texture(0)]], sampler s [[sampler(0)]]) {
    float4 x = a.sample(s, float2(0));  // error: sample
}
//// a depth of one dimension
kernel void k(texture2d<float> a [[texture(0)]], device uint* x [[buffer(0)]]) {
    x[0] = a.get_depth();  // error: get_depth
}
//// a texture as a local variable
kernel void k(texture2d<float> a [[texture(0)]], device float4* x [[buffer(0)]]) {
    texture2d<float> b = a;
    x[0] = b.read(uint2(0));
}
//// a texture as an argument of a function
float4 brighten(texture2d<float, access::sample> t, sampler s, float2 at) { return t.sample(s, at) * 1.5f; }
template <typename T, access A> vec<T, 4> fetch(texture2d<T, A> t, uint2 at) { return t.read(at); }
kernel void k(texture2d<float> a [[texture(0)]], texture2d<half, access::read> b [[texture(1)]], sampler s [[sampler(0)]],
              device float4* x [[buffer(0)]]) {
    x[0] = brighten(a, s, float2(0)) + float4(fetch(b, uint2(0)));
}
//// a texture of a buffer of the program
texture2d<float> t;  // error: program-scope variable
//// a sampler of every option
constexpr sampler s1(coord::pixel, address::repeat, filter::bicubic, mip_filter::linear, compare_func::less, max_anisotropy(4), lod_clamp(0.0f, 2.0f));
constexpr sampler s2(s_address::clamp_to_zero, t_address::mirrored_repeat, r_address::clamp_to_border, border_color::opaque_white, min_filter::linear, mag_filter::nearest);
kernel void k(texture2d<float> a [[texture(0)]], device float4* x [[buffer(0)]]) {
    x[0] = a.sample(s1, float2(0)) + a.sample(s2, float2(0));
}
//// an option that no sampler has
constexpr sampler s(filter::cubic);  // error: cubic
//// a sampler that is no constant
kernel void k(texture2d<float> a [[texture(0)]], device float4* x [[buffer(0)]]) {
    sampler s(filter::linear);  // error: constexpr
    x[0] = a.sample(s, float2(0));
}
//// texture atomics {metal=3.1}
kernel void k(texture2d<uint, access::read_write> a [[texture(0)]], uint2 i [[thread_position_in_grid]]) {
    uint4 before = a.atomic_fetch_add(i, uint4(1));
    a.atomic_store(i, before);
    a.atomic_store(before, i);
}
//// unsized access word
kernel void k(texture2d<float, access::append> a [[texture(0)]]) {}  // error: append
//// is_null_texture
kernel void k(texture2d<float> a [[texture(0), function_constant(has)]], device float* x [[buffer(0)]]) { x[0] = is_null_texture(a); }  // error: has
//// a texture that may be left out
constant bool has_mask [[function_constant(0)]];
kernel void k(texture2d<float> a [[texture(0), function_constant(has_mask)]], device float* x [[buffer(0)]]) {
    if (has_mask && !is_null_texture(a)) x[0] = a.read(uint2(0)).x;
}
//// a blur over sampled texels
kernel void blur(texture2d<half, access::read> in [[texture(0)]], texture2d<half, access::write> out [[texture(1)]],
                 constant float* weights [[buffer(0)]], constant int& radius [[buffer(1)]],
                 uint2 at [[thread_position_in_grid]]) {
    const int2 size = int2(in.get_width(), in.get_height());
    float4 sum = 0.0f;
    for (int dy = -radius; dy <= radius; ++dy) {
        for (int dx = -radius; dx <= radius; ++dx) {
            int2 from = clamp(int2(at) + int2(dx, dy), int2(0), size - 1);
            sum += weights[(dy + radius) * (2 * radius + 1) + dx + radius] * float4(in.read(uint2(from)));
        }
    }
    out.write(half4(sum), at);
}
//// the level of detail that a sample would take
fragment float4 f(float4 p [[position]], texture2d<half> a [[texture(0)]], texturecube<float> b [[texture(1)]],
                  depth2d_array<float> c [[texture(2)]], texture3d<float> d [[texture(3)]], sampler s [[sampler(0)]]) {
    return float4(a.calculate_clamped_lod(s, p.xy), b.calculate_unclamped_lod(s, p.xyz),
                  c.calculate_clamped_lod(s, p.xy), d.calculate_unclamped_lod(s, p.xyz));
}
//// the level of detail of what has one level
fragment float4 f(float4 p [[position]], texture1d<float> a [[texture(0)]], sampler s [[sampler(0)]]) {
    return a.calculate_clamped_lod(s, p.x);  // error: calculate_clamped_lod
}
//// atomic extrema of pixels of 64 bits
kernel void k(texture2d<ulong, access::read_write> t [[texture(0)]], uint2 p [[thread_position_in_grid]]) {
    t.atomic_max(p, ulong4(3));
    t.atomic_min(p, ulong4(1));
}
//// what pixels of 64 bits lack
kernel void k(texture2d<ulong, access::read_write> t [[texture(0)]], uint2 p [[thread_position_in_grid]]) {
    t.atomic_fetch_add(p, ulong4(3));  // error: no matching member function
}
