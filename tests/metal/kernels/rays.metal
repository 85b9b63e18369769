//// the nearest triangle

using namespace metal::raytracing;
kernel void trace(primitive_acceleration_structure scene [[buffer(0)]], device float* out [[buffer(1)]],
                  device const packed_float3* dirs [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    ray r; r.origin = float3(0); r.direction = float3(dirs[i]); r.min_distance = 0.001f; r.max_distance = INFINITY;
    intersector<triangle_data> inter;
    inter.assume_geometry_type(geometry_type::triangle);
    inter.force_opacity(forced_opacity::opaque);
    auto hit = inter.intersect(r, scene);
    out[i] = hit.type == intersection_type::triangle ? hit.distance + hit.triangle_barycentric_coord.x : -1.0f;
}
//// instances, a table of functions, queries
using namespace raytracing;
struct Bound { bool accept [[accept_intersection]]; float distance [[distance]]; };
[[intersection(bounding_box, instancing)]]
Bound sphere(float3 origin [[origin]], float3 direction [[direction]], float tmin [[min_distance]], float tmax [[max_distance]],
             uint prim [[primitive_id]], device const float4* spheres [[buffer(0)]]) {
    float4 s = spheres[prim]; float3 oc = origin - s.xyz;
    float b = dot(oc, direction), c = dot(oc, oc) - s.w * s.w, d = b * b - c;
    Bound r; r.distance = -b - sqrt(max(d, 0.0f)); r.accept = d >= 0 && r.distance >= tmin && r.distance <= tmax; return r;
}
kernel void shadows(instance_acceleration_structure scene [[buffer(0)]],
                    intersection_function_table<triangle_data, instancing> table [[buffer(1)]],
                    texture2d<float, access::write> out [[texture(0)]], uint2 gid [[thread_position_in_grid]]) {
    intersector<triangle_data, instancing> in; in.accept_any_intersection(true);
    ray r(float3(gid.x, gid.y, 0), float3(0, 0, 1));
    intersection_result<triangle_data, instancing> hit = in.intersect(r, scene, 0xFF, table);
    out.write(float4(hit.type == intersection_type::none ? 1.0f : 0.0f), gid);
}
kernel void query(instance_acceleration_structure scene [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    intersection_params p; ray r(float3(0), float3(0, 0, 1));
    intersection_query<triangle_data, instancing> q; q.reset(r, scene, p);
    while (q.next()) { if (q.get_candidate_intersection_type() == intersection_type::triangle) q.commit_triangle_intersection(); }
    out[i] = q.get_committed_distance();
}
//// a mask where there are no instances
using namespace raytracing;
kernel void t(primitive_acceleration_structure a [[buffer(0)]], device float* o [[buffer(1)]]) { intersector<triangle_data> i; auto h = i.intersect(ray(float3(0), float3(1)), a, 0xFFu); o[0] = h.distance; }  // error: no matching member function
//// a structure without instances
using namespace raytracing;
kernel void t(primitive_acceleration_structure a [[buffer(0)]], device float* o [[buffer(1)]]) { intersector<triangle_data, instancing> i; auto h = i.intersect(ray(float3(0), float3(1)), a); o[0] = h.distance; }  // error: no matching member function
//// what was not asked of a hit
using namespace raytracing;
kernel void t(primitive_acceleration_structure a [[buffer(0)]], device float* o [[buffer(1)]]) { intersector<> i; auto h = i.intersect(ray(float3(0), float3(1)), a); o[0] = h.triangle_barycentric_coord.x; }  // error: triangle_barycentric_coord
//// a structure and a buffer of one number
using namespace raytracing;
kernel void t(primitive_acceleration_structure a [[buffer(0)]], device float* o [[buffer(0)]]) { o[0] = 1; }  // error: used twice
//// a tag that is none
using namespace raytracing;
kernel void t(device float* o [[buffer(0)]]) { intersector<float> i; o[0] = 1; }  // error: has tags such as
//// an origin of four
[[intersection(bounding_box)]] bool s(float4 origin [[origin]]) { return true; }  // error: [[origin]] has type
//// a box without a distance
[[intersection(bounding_box)]] bool s(float3 origin [[origin]]) { return true; }  // error: [[accept_intersection]] and [[distance]]
//// a triangle with a distance of its own
struct R { bool accept [[accept_intersection]]; float d [[distance]]; };
[[intersection(triangle, triangle_data)]] R s(float d [[distance]], float2 b [[barycentric_coord]]) { return {true, d}; }  // error: of bounding boxes alone
//// a shape that is none
[[intersection(sphere)]] bool s(float3 origin [[origin]]) { return true; }  // error: begins with one of
//// the origin of a ray in a kernel
kernel void s(float3 origin [[origin]], device float* x [[buffer(0)]]) { x[0] = origin.x; }  // error: not of a kernel
//// structures and tables in an argument buffer, a payload, motion
using namespace raytracing;
struct Scene {
    instance_acceleration_structure all [[id(0)]];
    intersection_function_table<triangle_data, instancing> functions [[id(1)]];
    device const float3* normals [[id(2)]];
};
struct Payload { half3 tint; uint bounces; };
[[intersection(triangle, triangle_data, instancing)]]
bool glass(ray_data Payload& payload [[payload]], float2 at [[barycentric_coord]], uint i [[primitive_id]], uint n [[instance_id]], bool front [[front_facing]],
           float3 direction [[direction]], float distance [[distance]], constant Scene& scene [[buffer(0)]]) {
    payload.tint *= half3(scene.normals[i + n]) * half(at.x + distance + direction.z);
    return front && ++payload.bounces > 3;
}
template <typename... Tags> static float nearest(ray r, Scene scene, thread Payload& payload, intersector<Tags...> by) {
    typename intersector<Tags...>::result_type hit = by.intersect(r, scene.all, 0xFF, scene.functions, payload);
    return hit.type == intersection_type::none ? INFINITY : hit.distance + hit.instance_id;
}
kernel void render(constant Scene& scene [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    Payload payload{half3(1), 0};
    intersector<triangle_data, instancing> by;
    by.set_triangle_cull_mode(triangle_cull_mode::back);
    ray r{float3(i), float3(0, 0, 1), 1e-3f, 100.0f};
    out[i] = is_null_instance_acceleration_structure(scene.all) ? 0.0f : nearest(r, scene, payload, by);
}
kernel void moving(acceleration_structure<primitive_motion> scene [[buffer(0)]], device float* out [[buffer(1)]], constant float& time [[buffer(2)]]) {
    intersector<primitive_motion, triangle_data> by;
    auto hit = by.intersect(ray(float3(0), float3(0, 1, 0)), scene, time);
    out[0] = hit.triangle_front_facing ? hit.distance : hit.triangle_barycentric_coord.y;
}
//// a time where nothing moves
using namespace raytracing;
kernel void k(primitive_acceleration_structure scene [[buffer(0)]], device float* out [[buffer(1)]]) {
    intersector<triangle_data> by;
    out[0] = by.intersect(ray(float3(0), float3(0, 1, 0)), scene, 0.5f).distance;  // error: no matching member function
}
//// a payload in thread memory
struct Payload { uint n; };
[[intersection(triangle)]] bool f(device Payload& p [[payload]]) { return p.n > 0; }  // error: ray_data
