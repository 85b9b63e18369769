"""The `map` schedule: every element of the outputs by itself, several neighbours to a thread.

A thread takes as many neighbours as 16 bytes hold where all large arrays are contiguous along the
innermost loop: it loads them as vectors, computes them one by one in an unrolled loop, and stores
vectors. Where one access runs along another loop than the innermost, see `transposes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt.backends.lowering import Coordinates, Fused, divide, fuse_variables
from smelt.backends.memory import Memory
from smelt.backends.plan import Plan, always_inside, crossing_loop, make_plan
from smelt.ir.builder import Function, Value
from smelt.ir.index import linearize
from smelt.ir.scalar import Scalar

from ..kernel import GpuKernel, GpuModule, depends_on, vector_offset
from .schedule import (
    ScheduledKernel,
    body_flops,
    bytes_read,
    bytes_written,
    source_lines,
    start_kernel,
    threads_for,
)
from .transposes import build_blocks

#: Bytes of a vector load or store.
VECTOR_BYTES = 16


def vector_width(
    loop: Fused, accesses: Sequence[tuple[Value, Coordinates]], outputs: Sequence[tuple[Value, Coordinates]]
) -> int:
    """How many neighbours one thread takes: 1 unless every output is contiguous along `loop`."""
    sizes = [v.dtype.size for v, _ in outputs]
    sizes += [
        v.dtype.size for v, at in accesses if always_inside(v, at) and vector_offset(linearize(at, v.shape), loop, 1)
    ]
    width = VECTOR_BYTES // max(sizes, default=VECTOR_BYTES)
    while width > 1:
        if loop.extent % width == 0 and all(
            v.dtype.kind != "c" and vector_offset(linearize(at, v.shape), loop, width) for v, at in outputs
        ):
            return width
        width //= 2
    return 1


class Lanes:
    """Neighbouring elements along a loop: vectors where arrays are contiguous, elements elsewhere."""

    def __init__(self, k: GpuKernel, loop: Fused, width: int, loads: Sequence[tuple[Value, Coordinates]]):
        self.k, self.loop, self.width = k, loop, width
        self.vectors = [
            (v, at) for v, at in loads
            if width > 1 and v.dtype.kind != "c" and always_inside(v, at)
            and vector_offset(linearize(at, v.shape), loop, width)
        ]  # fmt: skip
        self.fixed = [(v, at) for v, at in loads if always_inside(v, at) and not depends_on(at, loop)]

    def run(self, first: Scalar, targets: Sequence[tuple[Memory, Coordinates]], values: Any) -> None:
        """Compute ``values()`` for the elements first … first + width - 1 of the loop and store them."""
        k, loop = self.k, self.loop
        for v, at in self.fixed:
            k.value(v, at)
        loaded = []
        with k.at_position(loop, first):
            for v, at in self.vectors:
                offset = k.index(linearize(at, v.shape))
                loaded.append(k.load_vector(k.memory[v], offset, self.width))
            offsets = [k.index(linearize(at, m.aval.shape)) for m, at in targets]

        def element(j: Scalar, *vectors: Any) -> list[Any]:
            with k.at_position(loop, first + j):
                for (v, at), vector in zip(self.vectors, loaded):
                    k.scopes[-1][v, at] = k.extract(vector, j, v.dtype)
                return [
                    k.insert(x, vector, j, m.aval.dtype)
                    for x, vector, (m, _) in zip(values(), vectors, targets)
                ]

        empty = [k.empty_vector(m.aval.dtype, self.width) for m, _ in targets]
        for vector, (memory, _), offset in zip(k.unrolled(self.width, element, empty), targets, offsets):
            k.store_vector(vector, memory, offset)


def build_map(module: GpuModule, body: Function) -> list[ScheduledKernel]:
    plan = make_plan(body, None)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    across = crossing_loop(loops, plan.uses)
    if across is not None:
        return [build_blocks(module, plan, loops, across)]
    k, _, outputs = start_kernel(module, body)
    places = [(v, plan.places[v]) for v in body.returns]
    targets = [(memory, at) for memory, (_, at) in zip(outputs, places)]
    total = math.prod(loop.extent for loop in loops)
    lane = loops[-1] if loops else Fused([])
    width = vector_width(lane, plan.loads, places) if loops else 1
    threads, groups = threads_for(k, total // width)

    def values() -> list[Scalar]:
        return [k.value(v, at) for v, at in places]

    def item(i: Scalar) -> None:
        inner = bind_loops(k, loops[:-1], lane.extent // width, i)
        if width > 1:
            Lanes(k, lane, width, plan.loads).run(inner * width, targets, values)
            return
        k.bind(lane, inner)
        for x, (memory, at) in zip(values(), targets):
            k.store(x, memory, at)

    if all(v.aval.size for v in body.returns):
        k.grid_stride(None, total // width, threads, groups, item)
    finish(k, plan, "map", groups, threads)
    return [ScheduledKernel(k.name, [*body.arguments, *body.returns])]


def bind_loops(k: GpuKernel, loops: Sequence[Fused], innermost: int, at: Scalar) -> Scalar:
    """Let `loops` stand where the linear position `at` is; what is left for a loop of `innermost` steps."""
    k.reach(math.prod(loop.extent for loop in loops) * innermost)
    rest, inner = divide(k, at, innermost, bool(loops))
    for i, fused in reversed(list(enumerate(loops))):
        with k.named("position"):
            rest, position = divide(k, rest, fused.extent, i > 0)
        k.bind(fused, position)
    return inner


def finish(k: GpuKernel, plan: Plan, schedule: str, groups: int, threads: int) -> None:
    body = plan.body
    k.finish(
        schedule, (groups, 1, 1), (threads, 1, 1),
        bytes_read(plan), bytes_written(body), body_flops(body), source_lines(body.ops),
    )  # fmt: skip
