//// a tile function on what the attachments hold
struct Pixel { half4 color [[color(0)]]; float depth [[color(1)]]; };
kernel void tile_blend(imageblock<Pixel, imageblock_layout_implicit> block,
                       ushort2 tid [[thread_position_in_threadgroup]],
                       constant float& gain [[buffer(0)]]) {
    Pixel p = block.read(tid);
    p.color *= half(gain);
    block.write(p, tid);
}
//// a tile function on memory of its own layout
struct Lights { rgba8unorm<half4> albedo; rg11b10f<half3> light; };
kernel void shade(imageblock<Lights> block, ushort2 tid [[thread_position_in_threadgroup]],
                  texture2d<half, access::write> out [[texture(0)]], uint2 gid [[thread_position_in_grid]]) {
    threadgroup_imageblock Lights* l = block.data(tid);
    half4 a = l->albedo;
    half3 b = l->light;
    out.write(half4(a.rgb * b, 1.0h), gid);
}
//// an image block of numbers
kernel void t(imageblock<int> b, ushort2 at [[thread_position_in_threadgroup]]) { *b.data(at) = 1; }  // error: holds a structure
//// reading an image block of memory
struct L { float x; };
kernel void t(imageblock<L> b, ushort2 at [[thread_position_in_threadgroup]], device float* o [[buffer(0)]]) { o[at.x] = b.read(at).x; }  // error: no member named 'read'
//// an image block of a vertex function
struct L { float x; };
vertex float4 t(imageblock<L> b, uint i [[vertex_id]]) { return 0; }  // error: has no attribute
//// a slice of a tile that goes to a texture
struct Samples { half4 colour; float2 motion; };
kernel void resolve(imageblock<Samples, imageblock_layout_explicit> block, texture2d<half, access::write> out [[texture(0)]],
                    ushort2 at [[thread_position_in_threadgroup]], ushort2 grid [[thread_position_in_grid]]) {
    threadgroup_imageblock Samples* mine = block.data(at);
    mine->colour = max(mine->colour, 0.0h);
    threadgroup_barrier(mem_flags::mem_threadgroup_imageblock);
    out.write(block.slice(mine->colour), grid);
}
//// a tile of several samples
struct Pixel { half4 colour [[color(0)]]; };
kernel void average(imageblock<Pixel, imageblock_layout_implicit> block, ushort2 at [[thread_position_in_threadgroup]]) {
    half4 sum = 0.0h;
    const ushort colours = block.get_num_colors(at);
    for (ushort i = 0; i < colours; ++i)
        sum += block.read(at, i, imageblock_data_rate::color).colour * half(popcount(block.get_color_coverage_mask(at, i)));
    block.write(Pixel{sum / half(block.get_num_samples())}, at);
}
//// writing a slice to a texture that is read
struct Samples { half4 colour; };
kernel void resolve(imageblock<Samples> block, texture2d<half, access::read> in [[texture(0)]], ushort2 at [[thread_position_in_threadgroup]]) {
    in.write(block.slice(block.data(at)->colour), at);  // error: no matching member function
}
