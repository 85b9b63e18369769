//// a row of pixels
kernel void k(device rgba8unorm<half4>* p [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    rgba8unorm<half4> x = p[i];
    half4 v = p[i + 1];
    v += half4(x);
    p[i] = v;
    p[i + 1] = x;
}
//// every type
struct pixels {
    r8unorm<half> a; r8snorm<float> b; r16unorm<float> c; r16snorm<float> d;
    rg8unorm<half2> e; rg8snorm<float2> f; rg16unorm<float2> g; rg16snorm<float2> h;
    rgba8unorm<float4> i; srgba8unorm<half4> j; rgba8snorm<half4> k; rgba16unorm<float4> l; rgba16snorm<float4> m;
    rgb10a2<half4> n; rg11b10f<half3> o; rgb9e5<float3> p;
};
kernel void k(device pixels* x [[buffer(0)]], device float4* y [[buffer(1)]]) {
    x->a = half(x->b);
    x->c = x->d + 1.0f;
    x->e = half2(float2(x->f));
    x->g = float2(x->h);
    x->i = float4(x->l);
    y[0] = x->m;
    x->o = half3(float3(x->p));
}
//// of constant memory, into the threadgroup
kernel void k(constant rg8snorm<half2>* p [[buffer(0)]], threadgroup rg8snorm<half2>* t [[threadgroup(0)]],
              uint i [[thread_index_in_threadgroup]]) {
    t[i] = p[i];
    t[i + 1] = half2(p[i]);
}
//// their sizes
static_assert(sizeof(rgba8unorm<half4>) == 4 && sizeof(rg16snorm<float2>) == 4 && sizeof(rgb9e5<half3>) == 4, "");
static_assert(sizeof(r8unorm<float>) == 1 && sizeof(rgba16unorm<float4>) == 8 && alignof(rgba8unorm<half4>) == 1, "");
//// of integers
kernel void k(device rgba8unorm<int4>* p [[buffer(0)]]) {  // error: a pixel unpacks to
}
//// of another width
kernel void k(device rg8unorm<half4>* p [[buffer(0)]]) {  // error: a pixel unpacks to
}
//// of 16 bits as half
kernel void k(device rgba16unorm<half4>* p [[buffer(0)]]) {  // error: a pixel unpacks to
}
//// one kind for another
kernel void k(device rgba8unorm<half4>* p [[buffer(0)]], device rgb9e5<half3>* q [[buffer(1)]]) {
    q[0] = p[0];  // error: no viable overloaded '='
}
//// through a constant
kernel void k(constant r8unorm<half>* p [[buffer(0)]]) {
    p[0] = 1.0h;  // error: no viable overloaded '='
}
