//// a vertex and a fragment function
struct In { float3 position [[attribute(0)]]; float2 uv [[attribute(1)]]; };
struct Out { float4 position [[position]]; float2 uv; float size [[point_size]]; float4 tint [[flat]]; };
struct Uniforms { float4x4 transform; float4 tint; };
vertex Out project(In in [[stage_in]], constant Uniforms& u [[buffer(1)]], uint i [[vertex_id]], uint n [[instance_id]]) {
    Out out;
    out.position = u.transform * float4(in.position, 1.0f);
    out.uv = in.uv;
    out.size = 1.0f;
    out.tint = u.tint * float(i + n);
    return out;
}
fragment half4 shade(Out in [[stage_in]], texture2d<half> image [[texture(0)]], sampler s [[sampler(0)]],
                     bool front [[front_facing]], float2 point [[point_coord]], uint sample [[sample_id]]) {
    half4 colour = image.sample(s, in.uv);
    if (colour.a < 0.5h) discard_fragment();
    return front ? colour : colour * half(dfdx(in.uv.x) + fwidth(point.y) + sample);
}
//// a fragment function of several results
struct Result { float4 colour [[color(0)]]; float2 motion [[color(1)]]; float depth [[depth(any)]]; uint mask [[sample_mask]]; };
fragment Result f(float4 at [[position]]) {
    Result r;
    r.colour = at;
    r.motion = float2(0);
    r.depth = 0.5f;
    r.mask = 1;
    return r;
}
//// a vertex function that returns a position
vertex float4 v(uint i [[vertex_id]], constant float2* at [[buffer(0)]]) { return float4(at[i], 0, 1); }
//// a vertex parameter without attribute
vertex float4 v(uint i) { return float4(i); }  // error: has no attribute
//// a position of three
struct Out { float3 position [[position]]; };  // error: [[position]]
vertex Out v() { Out o; o.position = 0.0f; return o; }
//// a signed vertex
vertex float4 v(int i [[vertex_id]]) { return float4(i); }  // error: has type 'int'
//// a thread's position in a vertex function
vertex float4 v(uint i [[thread_position_in_grid]]) { return float4(i); }  // error: [[thread_position_in_grid]]
//// a vertex's number in a fragment function
fragment float4 f(uint i [[vertex_id]]) { return float4(i); }  // error: [[vertex_id]]
//// threadgroup memory in a fragment function
fragment float4 f(float4 at [[position]]) {
    threadgroup float s[4];  // error: threadgroup variable outside a kernel
    return at;
}
//// discard in a kernel
kernel void k(device float* x [[buffer(0)]]) {
    discard_fragment();  // error: discard_fragment
}
//// two stage_in
struct In { float4 a [[attribute(0)]]; };
vertex float4 v(In a [[stage_in]],
                In b [[stage_in]]) { return a.a + b.a; }  // error: stage_in
//// visible functions
[[visible]] float twice(float x) { return x + x; }
kernel void k(visible_function_table<float(float)> table [[buffer(0)]], device float* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    x[i] = table[0](x[i]);
}
//// a visible function table of another type
kernel void k(visible_function_table<float(float)> table [[buffer(0)]], device float* x [[buffer(1)]]) {
    x[0] = table[0](x[0], x[1]);  // error: 
}
//// stitchable functions
[[stitchable]] half4 invert(half4 x) { return half4(1.0h - x.rgb, x.a); }
//// a vertex patch
struct Control { float4 p [[attribute(0)]]; };
struct Patch { patch_control_point<Control> points; };
[[patch(quad, 16)]] vertex float4 v(Patch p [[stage_in]], float2 at [[position_in_patch]]) { return p.points[0].p * at.x; }
//// a half of everything
fragment half4 f(float4 at [[position]], constant half4& tint [[buffer(0)]]) { return half4(at) * tint; }
//// programmable blending
fragment float4 f(float4 before [[color(0)]], float4 at [[position]]) { return before + at; }
//// more colours than there are
struct Colours {
    half4 last [[color(7)]];
    half4 more [[color(8)]];  // error: above 7
};
fragment Colours f() { return Colours(); }
//// more attributes than there are
struct In {
    float4 last [[attribute(30)]];
    float4 more [[attribute(31)]];  // error: above 30
};
vertex float4 v(In in [[stage_in]]) { return in.last; }
//// two positions
struct Out {
    float4 a [[position]];
    float4 b [[position]];  // error: one member alone
};
vertex Out v() { return Out(); }
//// threadgroup memory in a vertex function
vertex float4 v(threadgroup float4* p [[threadgroup(0)]]) { return p[0]; }  // error: threadgroup
//// derivatives in a kernel
static float slope(float x) { return fwidth(x); }
kernel void k(device float* x [[buffer(0)]]) {
    x[0] = dfdx(x[0]);  // error: calls dfdx()
}
//// derivatives in a function that a kernel calls
static float slope(float x) { return fwidth(x); }
kernel void k(device float* x [[buffer(0)]]) { x[0] = slope(x[0]); }  // error: calls fwidth()
//// values interpolated at a place of choice
struct In {
    float4 at [[position]];
    interpolant<float2, interpolation::perspective> uv;
    interpolant<half, interpolation::no_perspective> shade;
};
fragment float4 f(In in [[stage_in]], uint sample [[sample_id]]) {
    float2 uv = in.uv.interpolate_at_center() + in.uv.interpolate_at_offset(float2(0.25f, -0.25f));
    return float4(uv, in.uv.interpolate_at_sample(sample).x, in.shade.interpolate_at_centroid());
}
//// an input of a vertex without numbers
struct In { float4 at [[attribute(0)]]; float2 uv; };
vertex float4 v(In in [[stage_in]]) { return in.at; }  // error: member 'uv' has no attribute
//// an input of a kernel without numbers
struct In { float4 at; };
kernel void k(In in [[stage_in]], device float4* x [[buffer(0)]]) { x[0] = in.at; }  // error: member 'at' has no attribute
//// a vertex function of a position alone
vertex float4 at(uint i [[vertex_id]]) { return float4(i); }
//// a vertex function that writes, and draws nothing
vertex void feedback(device float4* x [[buffer(0)]], uint i [[vertex_id]]) { x[i] = float4(i); }
//// a vertex function whose position is invariant, from a template
template <class T> struct Out { float4 position [[position, invariant]]; T tint; };
vertex Out<half3> at(uint i [[vertex_id]]) { return {float4(i), half3(0)}; }
//// a vertex function of a structure without position
struct Out { float3 place; };
vertex Out at(uint i [[vertex_id]]) { return Out(); }  // error: position
//// a vertex function of two numbers
vertex float2 at(uint i [[vertex_id]]) { return float2(i); }  // error: position
//// what the stages hand on in no structure
vertex float4 at(float2 a [[stage_in]]) { return a.xyxy; }  // error: structure
//// one function for two stages
kernel vertex void both() {}  // error: one of these
//// any number of arguments
kernel void k(device float* x [[buffer(0)]], ...) {}  // error: any number of arguments
//// what the attachments hold, as a structure
struct Pixel { half4 light [[color(0), raster_order_group(0)]]; half4 normal [[color(1)]]; };
fragment half4 f(Pixel before, float4 at [[position]]) { return before.light + before.normal * half(at.z); }
//// a structure of which a member is no colour
struct Pixel { half4 light [[color(0)]]; half4 normal; };
fragment half4 f(Pixel before) { return before.light; }  // error: has no attribute
//// factors of a tessellation
kernel void k(device MTLTriangleTessellationFactorsHalf* x [[buffer(0)]], device MTLQuadTessellationFactorsHalf* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    x[i].edgeTessellationFactor[2] = x[i].insideTessellationFactor;
    y[i].insideTessellationFactor[1] = y[i].edgeTessellationFactor[3];
}
