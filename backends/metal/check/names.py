"""Names that the strict check knows: headers, types, attributes, keywords of other languages."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


#: Headers of Metal's library; all of them mean the one that is precompiled.
METAL_HEADERS = frozenset(
    f"metal_{name}"
    for name in words(
        """
        stdlib array assert atomic common compute command_buffer extended_vector function_pointer geometric graphics
        imageblocks indirect_command_buffer integer initializer_list interpolate intersection_tables limits logging
        math matrix mesh numeric packing pack pixel pull_model quadgroup quadgroup_matrix raytracing relational
        simdgroup simdgroup_matrix tessellation tensor texture tuple types type_traits uniform utility
        visible_function_table
        """
    )
)
SIMD_HEADER = "simd/simd.h"
PRIMITIVES_HEADER = "MetalPerformancePrimitives/MetalPerformancePrimitives.h"
OTHER_HEADERS = frozenset({SIMD_HEADER, "TargetConditionals.h", PRIMITIVES_HEADER})

SCALARS = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat", "float")
#: Vector types that are vectors to clang, too; the others are classes with constructors of their own.
VECTORS = frozenset(
    f"{packed}{scalar}{width}"
    for packed in ("", "packed_")
    for scalar in SCALARS[1:]
    for width in (2, 3, 4)
    if not (packed and width == 3)
)
#: Vectors that `<simd/simd.h>` names, in Metal as on the host; the library declares them as a macro of that header.
SIMD_VECTORS = frozenset(
    f"{prefix}_{scalar}{width}"
    for prefix in ("vector", "simd")
    for scalar in SCALARS
    if scalar not in ("bool", "bfloat")
    for width in (2, 3, 4)
)
ADDRESS_SPACES = frozenset(
    {"device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "ray_data", "object_data"}
)
STANDARD_ATTRIBUTES = words(
    """
    likely unlikely maybe_unused nodiscard fallthrough noreturn deprecated carries_dependency
    """
)
#: Attributes of Metal that are not parameters of compute kernels.
_OTHER_ATTRIBUTES = words(
    """
    amplification_count amplification_id attribute barycentric_coord base_instance base_vertex center_no_perspective
    center_perspective centroid_no_perspective centroid_perspective clip_distance color depth early_fragment_tests
    flat fragment front_facing function_constant grid_origin grid_size host_name id imageblock_data instance_id
    intersection invariant kernel max_total_threads_per_threadgroup max_total_threadgroups_per_mesh_grid mesh object
    origin patch patch_id payload point_coord point_size position position_in_patch primitive_id raster_order_group
    render_target_array_index required_threads_per_threadgroup sample_id sample_mask sample_perspective
    sample_no_perspective shared stage_in stencil stitchable texcoord user user_instance vertex vertex_id
    viewport_array_index visible alias_implicit_imageblock alias_implicit_imageblock_color
    accept_intersection continue_search distance primitive_culled
    """
)
FOREIGN_KEYWORDS = {
    **dict.fromkeys(("local", "global", "generic", "pipe", "read_only", "write_only", "read_write"), "OpenCL"),
    **dict.fromkeys(("__shared__", "__global__", "__device__", "__constant__", "__restrict__"), "CUDA"),
    **dict.fromkeys(("__local", "__global", "__private", "__constant", "__generic", "__kernel"), "OpenCL"),
}

#: What an earlier version of Metal has not, and since which there is it; such a text is refused as a whole.
LATER = dict.fromkeys(("tensor", "cooperative_tensor", "tensor_ops", "tensor_handle"), ("tensors", (4, 0)))
#: Other names of the library that a later version has: clang's error about one that is missing says so.
LATER_NAMES = {
    **dict.fromkeys(words("bfloat bfloat2 bfloat3 bfloat4 packed_bfloat2 packed_bfloat3 packed_bfloat4"), (3, 1)),
    "simdgroup_bfloat8x8": (3, 1),
    **dict.fromkeys(("atomic_thread_fence", "os_log", "os_log_default"), (3, 2)),
    **dict.fromkeys(("extents", "dextents", "dynamic_extent"), (4, 0)),
}

#: Stages whose functions run in threadgroups, with memory of these.
WITH_THREADGROUPS = ("kernel", "object", "mesh")
#: Attribute of a kernel parameter → the types it may have.
_SCALAR = frozenset({"uint", "ushort"})
_POSITION = _SCALAR | {f"{scalar}{width}" for scalar in _SCALAR for width in (2, 3)}
PARAMETER_TYPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        words(
            """
            thread_position_in_grid threads_per_grid thread_position_in_threadgroup threads_per_threadgroup
            dispatch_threads_per_threadgroup threadgroup_position_in_grid threadgroups_per_grid grid_origin
            grid_size
            """
        ),
        _POSITION,
    ),
    **dict.fromkeys(
        words(
            """
            thread_index_in_threadgroup thread_index_in_simdgroup simdgroup_index_in_threadgroup
            simdgroups_per_threadgroup threads_per_simdgroup thread_index_in_quadgroup quadgroup_index_in_threadgroup
            quadgroups_per_threadgroup thread_execution_width dispatch_simdgroups_per_threadgroup
            dispatch_quadgroups_per_threadgroup
            """
        ),
        _SCALAR,
    ),
}
#: Those that fragment functions may have, too.
FRAGMENT_THREADS = words("thread_index_in_simdgroup threads_per_simdgroup thread_index_in_quadgroup")
#: Attribute of a vertex or fragment parameter → the types it may have.
VERTEX_TYPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        words("vertex_id instance_id base_vertex base_instance amplification_id amplification_count patch_id"), _SCALAR
    ),
    "position_in_patch": frozenset({"float2", "float3"}),
}
FRAGMENT_TYPES: dict[str, frozenset[str]] = {
    "position": frozenset({"float4"}),
    "front_facing": frozenset({"bool"}),
    "point_coord": frozenset({"float2"}),
    **dict.fromkeys(words("sample_id sample_mask primitive_id amplification_id"), _SCALAR),
    **dict.fromkeys(words("render_target_array_index viewport_array_index"), _SCALAR | {"uchar"}),
    "barycentric_coord": frozenset({"float", "float2", "float3"}),
}
_TRANSFORM = frozenset({"float4x3"})
INTERSECTION_TYPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        words("origin direction world_space_origin world_space_direction"), frozenset({"float3", "packed_float3"})
    ),
    **dict.fromkeys(
        words("min_distance max_distance distance time motion_start_time motion_end_time"), frozenset({"float"})
    ),
    **dict.fromkeys(
        words(
            """
            primitive_id instance_id user_instance_id geometry_id geometry_intersection_function_table_offset
            instance_intersection_function_table_offset key_frame_count
            """
        ),
        _SCALAR,
    ),
    **dict.fromkeys(words("object_to_world_transform world_to_object_transform"), _TRANSFORM),
    "barycentric_coord": frozenset({"float2"}),
    **dict.fromkeys(words("front_facing opaque"), frozenset({"bool"})),
    "curve_parameter": frozenset({"float"}),
}
#: Attribute of a member → the types it may have.
MEMBER_TYPES: dict[str, frozenset[str]] = {"position": frozenset({"float4"}), "point_size": frozenset({"float"})}
RESOURCES = frozenset({"buffer", "threadgroup", "texture", "sampler"})
KNOWN_ATTRIBUTES = (
    _OTHER_ATTRIBUTES | RESOURCES | PARAMETER_TYPES.keys() | INTERSECTION_TYPES.keys() | {"primitive_data"}
)
