//// commands that kernels write
struct Box { command_buffer cmds [[id(0)]]; };
struct Obj { float4 bounds; };
kernel void encode(device Box& box [[buffer(0)]], device const Obj* objs [[buffer(1)]], device const float4* verts [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    render_command cmd(box.cmds, i);
    if (objs[i].bounds.w > 0) { cmd.set_vertex_buffer(verts, 0); cmd.draw_primitives(primitive_type::triangle, 0, 36, 1, i); }
    else cmd.reset();
}
kernel void encode_compute(device Box& box [[buffer(0)]], device float* data [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    compute_command cmd(box.cmds, i);
    cmd.set_kernel_buffer(data + 64 * i, 0);
    cmd.concurrent_dispatch_threadgroups(uint3(4, 1, 1), uint3(64, 1, 1));
    cmd.set_barrier();
}
//// a shape of a mesh for one of a draw
struct B { command_buffer c; };
kernel void t(constant B& b [[buffer(0)]], uint i [[thread_position_in_grid]]) { render_command c(b.c, i); c.draw_primitives(topology::triangle, 0, 3, 1, 0); }  // error: cannot initialize
//// a draw among commands of kernels
struct B { command_buffer c; };
kernel void t(constant B& b [[buffer(0)]], uint i [[thread_position_in_grid]]) { compute_command c(b.c, i); c.draw_primitives(primitive_type::triangle, 0, 3, 1, 0); }  // error: draw_primitives
//// a buffer in threadgroup memory
struct B { command_buffer c; };
kernel void t(constant B& b [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup float s[4]; s[0] = 1; render_command c(b.c, i); c.set_vertex_buffer(s, 0); }  // error: no matching member function
//// indices, pipelines and mesh commands from an argument buffer
struct Mesh { device const float4* points; device const uint* indices; uint count; };
struct Out { command_buffer draws [[id(0)]]; command_buffer kernels [[id(1)]]; render_pipeline_state state [[id(2)]]; device Mesh* meshes [[id(3)]]; };
struct Camera { float4x4 view; };
kernel void encode(constant Out& out [[buffer(0)]], constant Camera& camera [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    render_command draw(out.draws, i);
    Mesh m = out.meshes[i];
    draw.set_render_pipeline_state(out.state);
    draw.set_vertex_buffer(m.points, 0);
    draw.set_fragment_buffer(&camera, 1);
    draw.set_cull_mode(cull_mode::back);
    draw.draw_indexed_primitives(primitive_type::triangle, m.count, m.indices, 1, 0, i);
    draw = render_command(out.draws, i + 1);
    draw.draw_mesh_threadgroups(uint3(4, 1, 1), uint3(32, 1, 1), uint3(64, 1, 1));
    compute_command work(out.kernels, i);
    work.set_threadgroup_memory_length(256, 0);
    work.concurrent_dispatch_threads(uint3(1024, 1, 1), uint3(64, 1, 1));
}
//// indices of another type
struct Out { command_buffer draws; };
kernel void encode(constant Out& out [[buffer(0)]], device const float* indices [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    render_command draw(out.draws, i);
    draw.draw_indexed_primitives(primitive_type::triangle, 3, indices, 1, 0, 0);  // error: no matching member function
}
