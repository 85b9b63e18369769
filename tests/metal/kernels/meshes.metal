//// objects that are culled, and their meshes
struct Payload { uint ids[32]; };
struct V { float4 position [[position]]; float3 normal; };
struct P { uint id [[primitive_id]]; };
using Mesh = metal::mesh<V, P, 64, 126, topology::triangle>;
[[object, max_total_threads_per_threadgroup(32), max_total_threadgroups_per_mesh_grid(32)]]
void cull(object_data Payload& payload [[payload]], mesh_grid_properties grid,
          constant uint& n [[buffer(0)]], uint lane [[thread_index_in_threadgroup]], uint gid [[thread_position_in_grid]]) {
    payload.ids[lane] = gid;
    if (lane == 0) grid.set_threadgroups_per_grid(uint3(min(n, 32u), 1, 1));
}
[[mesh, max_total_threads_per_threadgroup(126)]]
void emit(Mesh out, const object_data Payload& payload [[payload]],
          device const float4* points [[buffer(0)]], uint lane [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
    uint id = payload.ids[group];
    if (lane < 64) { V v; v.position = points[id * 64 + lane]; v.normal = float3(0, 0, 1); out.set_vertex(lane, v); }
    P p; p.id = lane;
    out.set_primitive(lane, p);
    out.set_index(3 * lane, uchar(lane % 64)); out.set_index(3 * lane + 1, uchar((lane + 1) % 64)); out.set_index(3 * lane + 2, uchar((lane + 2) % 64));
    if (lane == 0) out.set_primitive_count(126);
}
struct In { V v; P p; };
fragment float4 shade_mesh(In in [[stage_in]]) { return float4(in.v.normal, 1); }
//// more vertices than a mesh has
struct V { float4 p [[position]]; };
using M = mesh<V, void, 257, 1, topology::point>;
[[mesh]] void m(M out) { V v; out.set_vertex(0, v); }  // error: 1 to 256 vertices
//// primitives without data
struct V { float4 p [[position]]; };
[[mesh]] void m(mesh<V, void, 3, 1, topology::triangle> out) { out.set_primitive(0, 1); }  // error: set_primitive
//// a vertex of another type
struct V { float4 p [[position]]; };
[[mesh]] void m(mesh<V, void, 3, 1, topology::triangle> out) { out.set_vertex(0, float4(1)); }  // error: no viable conversion
//// an object function that returns something
[[object]] float4 m(mesh_grid_properties g) { return 0; }  // error: must return void
//// a thread's number of another type
struct V { float4 p [[position]]; };
[[mesh]] void m(mesh<V, void, 3, 1, topology::triangle> out, float i [[thread_index_in_threadgroup]]) {}  // error: thread_index_in_threadgroup
//// the grid of meshes in a kernel
kernel void k(mesh_grid_properties g) { g.set_threadgroups_per_grid(uint3(1)); }  // error: has no attribute
//// a payload in device memory
struct P { uint n; };
[[object]] void m(device P& p [[payload]], mesh_grid_properties g) { p.n = 1; }  // error: object_data
//// a payload that a mesh function writes
struct P { uint n; }; struct V { float4 p [[position]]; };
[[mesh]] void m(mesh<V, void, 3, 1, topology::triangle> out, object_data P& p [[payload]]) { p.n = 1; }  // error: const
//// a payload of a kernel
struct P { uint n; };
kernel void m(object_data P& p [[payload]]) { p.n = 1; }  // error: not of a kernel
//// a limit of threads of a vertex function
[[vertex, max_total_threads_per_threadgroup(32)]] float4 v(uint i [[vertex_id]]) { return 0; }  // error: alone
//// threadgroup memory and barriers of both stages, and an instance of a template
struct Payload { float3 at; uint n; };
struct Vertex { float4 position [[position]]; half3 tint [[user(locn0)]]; };
struct Face { uint n [[primitive_id]]; bool is_culled [[primitive_culled]]; uint layer [[render_target_array_index]]; };
[[object]] void prepare(object_data Payload& out [[payload]], mesh_grid_properties grid, threadgroup float3* shared [[threadgroup(0)]],
                        uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup uint total[32];
    total[t] = t;
    shared[t] = float3(t);
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_object_data);
    if (t == 0) {
        out.at = shared[n - 1];
        out.n = total[31];
        grid.set_threadgroups_per_grid(uint3(out.n, 1, 1));
    }
}
template <typename M> [[mesh]] void draw(M out, const object_data Payload& in [[payload]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup half3 tints[64];
    tints[t] = half3(in.at);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out.set_vertex(t, Vertex{float4(in.at, 1), tints[63 - t]});
    out.set_indices(4 * t, uchar4(0, 1, 2, 3));
    if (t == 0) out.set_primitive_count(M::max_primitives);
}
typedef metal::mesh<Vertex, Face, 64, 32, metal::topology::line> Lines;
template [[host_name("draw_lines"), mesh]] void draw<Lines>(Lines, const object_data Payload& in [[payload]], uint t [[thread_index_in_threadgroup]]);
//// a threadgroup variable in an inner scope of an object function
[[object]] void o(mesh_grid_properties grid, uint t [[thread_index_in_threadgroup]]) {
    if (t == 0) {
        threadgroup uint n[4];  // error: outermost scope
        n[0] = t;
    }
}
//// a kernel that calls a mesh function
struct Vertex { float4 position [[position]]; };
[[mesh]] void m(mesh<Vertex, void, 3, 1, topology::triangle> out) { out.set_primitive_count(1); }
kernel void k(mesh<Vertex, void, 3, 1, topology::triangle> out) { m(out); }  // error: 
