"""The Metal text as CUDA: threadgroups become blocks, simdgroups warps, ``threadgroup`` variables shared memory."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from smelt.backends.gpu.manifest import Size
from smelt.backends.metal.simulator.compiler import preprocess
from smelt.backends.metal.simulator.source import Entry, Parameter, known_headers, parse


def _vector(expression: str) -> str:
    return f"smelt::Position{{{', '.join(expression.replace('$', axis) for axis in 'xyz')}}}"


_THREADS = "(blockDim.x * blockDim.y * blockDim.z)"
_POSITIONS = {
    "thread_position_in_grid": _vector("blockIdx.$ * blockDim.$ + threadIdx.$"),
    "threads_per_grid": _vector("gridDim.$ * blockDim.$"),
    "thread_position_in_threadgroup": _vector("threadIdx.$"),
    "threads_per_threadgroup": _vector("blockDim.$"),
    "dispatch_threads_per_threadgroup": _vector("blockDim.$"),
    "threadgroup_position_in_grid": _vector("blockIdx.$"),
    "threadgroups_per_grid": _vector("gridDim.$"),
    "grid_origin": "smelt::Position{0, 0, 0}",
    "thread_index_in_threadgroup": "smelt::thread_index()",
    "thread_index_in_simdgroup": "(smelt::thread_index() % 32u)",
    "simdgroup_index_in_threadgroup": "(smelt::thread_index() / 32u)",
    "simdgroups_per_threadgroup": f"(({_THREADS} + 31u) / 32u)",
    "dispatch_simdgroups_per_threadgroup": f"(({_THREADS} + 31u) / 32u)",
    "dispatch_quadgroups_per_threadgroup": f"(({_THREADS} + 3u) / 4u)",
    "threads_per_simdgroup": "32u",
    "thread_execution_width": "32u",
    "thread_index_in_quadgroup": "(smelt::thread_index() % 4u)",
    "quadgroup_index_in_threadgroup": "(smelt::thread_index() / 4u)",
    "quadgroups_per_threadgroup": f"(({_THREADS} + 3u) / 4u)",
}


#: Where those of a kernel differ whose last threadgroups along an axis may not be full: `_PLACE` says which it is in.
_DISPATCHED = _POSITIONS | {
    "thread_position_in_grid": _vector("(blockIdx.$ + first.$) * whole.$ + threadIdx.$"),
    "threads_per_grid": "smelt::Position{grid.x, grid.y, grid.z}",
    "dispatch_threads_per_threadgroup": "smelt::Position{whole.x, whole.y, whole.z}",
    "threadgroup_position_in_grid": _vector("blockIdx.$ + first.$"),
    "threadgroups_per_grid": _vector("(grid.$ + whole.$ - 1u) / whole.$"),
    "dispatch_simdgroups_per_threadgroup": "((whole.x * whole.y * whole.z + 31u) / 32u)",
    "dispatch_quadgroups_per_threadgroup": "((whole.x * whole.y * whole.z + 3u) / 4u)",
}
_PLACE = ("uint3 first", "uint3 whole", "uint3 grid")


def _shared(number: int, type_: str, name: str, dimensions: str) -> str:
    aligned = re.match(r"alignas\s*\([^()]*\)\s*", type_)
    front = aligned.group(0) if aligned else ""
    return f"{front}__shared__ {type_[len(front):]} {name}{dimensions};"


def _argument(parameter: Parameter, positions: Mapping[str, str]) -> str:
    if parameter.kind == "position":
        return positions[parameter.attribute]
    how = "Reference" if parameter.reference else "Pointer"
    if parameter.kind == "buffer":
        return f"smelt::{how}{{buffer_{parameter.index}}}"
    return f"smelt::{how}{{smelt_shared + offset_{parameter.index}}}"


def _wrapper(entry: Entry, size: Size | None, dispatched: bool) -> str:
    parameters = [f"void* buffer_{p.index}" for p in sorted(entry.buffers(), key=lambda p: p.index)]
    shared = sorted((p for p in entry.parameters if p.kind == "threadgroup"), key=lambda p: p.index)
    parameters += [f"unsigned offset_{p.index}" for p in shared]
    if dispatched:
        parameters += _PLACE
    bounds = f"__launch_bounds__({math.prod(size)}) " if size else ""
    sizes = " && ".join(f"blockDim.{a} == {n} && threadIdx.{a} < {n}" for a, n in zip("xyz", size or ()))
    assumed = f"__builtin_assume({sizes}); " if size else ""
    memory = "extern __shared__ __align__(16) char smelt_shared[]; " if shared else ""
    positions = _DISPATCHED if dispatched else _POSITIONS
    arguments = ", ".join(_argument(p, positions) for p in entry.parameters)
    return (
        f'extern "C" __global__ {bounds}void {entry.name}({", ".join(parameters)}) '
        f"{{ {memory}{assumed}smelt_text::{entry.function}({arguments}); }}\n"
    )


def cuda_source(
    text: str, threads: Mapping[str, Size] | None = None, dispatched: bool = False
) -> tuple[str, dict[str, Entry]]:
    """The text as CUDA, and its kernels.

    A kernel takes its buffers in the order of their indices, then for each ``[[threadgroup(n)]]`` the offset of
    its memory, then, if it is `dispatched`, the first threadgroup of the launch, the size of a whole one, and that of
    the grid.

    Args:
        text: Metal Shading Language.
        threads: the size of the threadgroups that a kernel is launched with, by its name, where that is known: then
            registers suffice, and nothing is spent on simdgroups that are not full.
        dispatched: whether kernels run over grids that are no multiples of their threadgroups (`Module.dispatch`).

    Raises:
        SimulatorError: the text has no kernels that can be read.
    """
    text = known_headers(text)
    if re.search(r"^\s*#\s*(?!include\s*<metal_|pragma\b)\w+", text, re.M):
        text = preprocess(text)
    found = parse(text, _shared)
    body = re.sub(r"^[ \t]*#[ \t]*include\b.*$", "", found.text, flags=re.M)
    # CUDA's own global functions would make unqualified names ambiguous: declarations nearer win.
    out = [
        '#include <metal_stdlib>\nnamespace smelt_text { SMELT_SAME_FUNCTIONS\n#line 1 "kernel.metal"\n',
        body,
        "\n}\n",
    ]
    out += [_wrapper(entry, (threads or {}).get(entry.name), dispatched) for entry in found.entries.values()]
    return "".join(out), found.entries
