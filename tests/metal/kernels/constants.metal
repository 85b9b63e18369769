//// function constants
constant bool has_bias [[function_constant(0)]];
constant int size [[function_constant(1)]];
constant float scale [[function_constant(2)]];
constant uint2 tile [[function_constant(3)]];
constant int twice = size * 2;
constant bool given = is_function_constant_defined(scale);
constant float used = is_function_constant_defined(scale) ? scale : 1.0f;
kernel void k(device float* x [[buffer(0)]], device const float* bias [[buffer(1), function_constant(has_bias)]]) {
    float s = used * twice + tile.x;
    if (has_bias) s += bias[0];
    x[0] = given ? s : 0.0f;
}
//// a function constant with a value
constant int size [[function_constant(0)]] = 3;  // error: function constant
//// one number twice
constant int a [[function_constant(0)]];
constant int b [[function_constant(0)]];  // error: function_constant
//// a negative number
constant int a [[function_constant(-1)]];  // error: function_constant
//// a number too large
constant int a [[function_constant(65536)]];  // error: function_constant
//// a function constant of a structure
struct S { int a; };
constant S s [[function_constant(0)]];  // error: function constant
//// a function constant that is not in constant memory
int a [[function_constant(0)]];  // error: 
//// a function constant that is a pointer
constant float* a [[function_constant(0)]];  // error: 
//// the size of an array
constant int n [[function_constant(0)]];
kernel void k(device float* x [[buffer(0)]]) {
    float a[n];  // error: 
    x[0] = a[0];
}
//// the number of a buffer
constant int n [[function_constant(0)]];
kernel void k(device float* x [[buffer(n)]]) { x[0] = 1; }
//// a template argument
constant int n [[function_constant(0)]];
template <int N> float f() { return N; }
kernel void k(device float* x [[buffer(0)]]) { x[0] = f<n>(); }  // error: 
//// in a branch and a switch
constant int mode [[function_constant(0)]];
kernel void k(device float* x [[buffer(0)]]) {
    switch (mode) {
        case 0: x[0] = 1; break;
        case 1: x[0] = 2; break;
        default: x[0] = 3;
    }
}
//// every scalar
constant bool a [[function_constant(0)]];
constant char b [[function_constant(1)]];
constant ushort c [[function_constant(2)]];
constant half d [[function_constant(3)]];
constant float4 e [[function_constant(4)]];
constant ulong f [[function_constant(5)]];
kernel void k(device float* x [[buffer(0)]]) { x[0] = a + b + c + float(d) + e.x + f; }
//// an argument that another constant decides
constant bool wide [[function_constant(0)]];
constant bool narrow = !wide;
kernel void k(device float4* a [[buffer(0), function_constant(wide)]], device float* b [[buffer(0), function_constant(narrow)]],
              uint i [[thread_position_in_grid]]) {
    if (wide) a[i] = 1;
    else b[i] = 1;
}
//// matrices in constants (tolerated)
constant float4x4 whole = float4x4(float4(1, 0, 0, 0), float4(0), float4(float3(0), 1), float4(0));
constant float2x2 columns = {{1, 2}, {3, 4}};
constant float3x3 colors{{1.25f, 1.25f, 1.25f}, {0.0f, -0.5f, 2.0f}, {1.5f, -0.75f, 0.0f}};
constant float3x3 threes(float3(1, 2, 3), float3(1), float3(2));
constant float3x3 ordered = {0, 7, 3, 6, 5, 2, 4, 1, 8};
constant float3x3 zeros = {};
constant half4x4 diagonal = half4x4(0.5h);
constant float2x2 several[2] = {float2x2(1), float2x2(1, 2, 3, 4)};
constant float4 joined = float4(float3(1), 2);
kernel void k(device float4* x [[buffer(0)]]) {
    x[0] = whole[2] + joined + float4(diagonal[1]);
    x[1].xyz = colors * threes[0] + ordered[1] + zeros[2];
    x[1].w = (columns * several[1][0]).x;
}
//// a constant matrix without numbers
constant float3x3 z;  // error: must be initialized
//// a constant matrix of what is no constant
float one(float x) { return x; }
constant float2x2 m = float2x2(one(1));  // error: constant expression
//// a constant matrix of too many columns
constant float2x2 m = {{1, 2}, {3, 4}, {5, 6}};  // error: no matching constructor
