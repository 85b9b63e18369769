"""Kernels that compute part of a fusion, for schedules of several kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from smelt.backends.lowering import Coordinates, Fused
from smelt.backends.memory import Memory
from smelt.backends.plan import Plan, always_inside
from smelt.backends.scan_scatter import reads_of
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.index import Index, linearize
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import GpuKernel, GpuModule, vector_offset
from .schedule import ScheduledKernel, Scratch, argument_name, bytes_read, source_lines

#: Bytes of a vector load or store, and its elements at most.
VECTOR_BYTES = 16
VECTOR_WIDTH = 4


@dataclass
class Part:
    """A kernel under construction that computes some values of a fusion.

    Attributes:
        k: its builder.
        extra: buffers beside the fusion's arguments.
        loads: which arguments it reads, and where.
        uses: every address and number that it computes from loop variables.
        ops: what it came from.
    """

    k: GpuKernel
    extra: list[Memory]
    loads: list[tuple[Value, Coordinates]]
    uses: list[Index]
    operands: list[Value | Scratch]
    body: Function
    ops: list[OpView]

    @property
    def bytes_read(self) -> int:
        """What it reads of the fusion's arguments, each element once."""
        return bytes_read(Plan(self.body, [], [], {}, {}, {}, {}, loads=self.loads))

    def finish(
        self, schedule: str, groups: int, threads: int, read: int, written: int, flops: float
    ) -> ScheduledKernel:
        """Close the kernel; `read` bytes come from the extra buffers."""
        read += self.bytes_read
        source = source_lines(self.ops)
        self.k.finish(schedule, (groups, 1, 1), (threads, 1, 1), read, written, int(flops), source)
        return ScheduledKernel(self.k.name, self.operands)


def start_part(
    module: GpuModule,
    body: Function,
    suffix: str,
    roots: Sequence[tuple[Value, Coordinates]],
    extra: Sequence[tuple[str, Value | Scratch]],
) -> Part:
    """A kernel that evaluates `roots`; its buffers are the arguments that they need, and `extra`."""
    reads, uses = reads_of(body, roots)
    loads = [(v, at) for v in body.arguments for at in reads.get(v, ())]
    needed = [v for v in body.arguments if v in reads]
    ops = [op for op in body.ops if op.results[0] in reads or op.results[0] in body.returns]
    names = [argument_name(v) for v in needed] + [name for name, _ in extra]
    operands: list[Value | Scratch] = [*needed, *(x for _, x in extra)]
    k, memories = module.start(body.name + suffix, [x.aval for x in operands], names, body.mlir.location, body)
    k.memory.update(zip(needed, memories))
    return Part(k, memories[len(needed) :], loads, uses, operands, body, ops)


def vector_width(v: Value, at: Coordinates, loop: Fused) -> int:
    """How many neighbouring elements of `v` along `loop` can be read or written at once."""
    width = min(VECTOR_WIDTH, VECTOR_BYTES // v.dtype.size)
    offset = linearize(at, v.shape)
    if v.dtype.kind == "c" or not always_inside(v, at):
        return 1
    while width > 1 and (loop.extent % width or not vector_offset(offset, loop, width)):
        width //= 2
    return width


def evaluate_vector(
    k: GpuKernel,
    loop: Fused,
    first: Scalar,
    width: int,
    loads: Sequence[tuple[Value, Coordinates]],
    each: Callable[..., Sequence[Any] | None],
    carries: Sequence[Any] = (),
) -> list[Any]:
    """Run ``each(j, *carries)`` with `loop` at first … first + width - 1; aligned loads are vectors."""
    together = [(v, at) for v, at in loads if width > 1 and vector_width(v, at, loop) >= width]
    with k.at_position(loop, first):
        vectors = [k.load_vector(k.memory[v], k.index(linearize(at, v.shape)), width) for v, at in together]

    def element(j: Scalar, *carried: Any) -> Sequence[Any] | None:
        with k.at_position(loop, plus(first, j)):
            for (v, at), vector in zip(together, vectors):
                k.scopes[-1][v, at] = k.extract(vector, j, v.dtype)
            return each(j, *carried)

    return k.unrolled(width, element, carries)


def power_of_two(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << max(0, n - 1).bit_length()


def split(k: GpuKernel, x: Scalar, n: int, quotient: str, rest: str, more: bool = True) -> tuple[Scalar, Scalar]:
    """``divmod(x, n)``, and what the text calls the two; `more`: whether the quotient can be other than zero."""
    if n == 1:
        return x, k.const(0, INDEX)
    if not more:
        return k.const(0, INDEX), x
    found = []
    for op, name in (("arith.divui", quotient), ("arith.remui", rest)):
        with k.named(name) if name else nullcontext():
            found.append(k.op(op, [x, k.const(n, INDEX)], INDEX))
    return found[0], found[1]


def times(x: Scalar, n: int) -> Scalar:
    """``x * n``, without a trace of it where nothing is to be done."""
    return x if n == 1 or _is_zero(x) else x * n


def plus(x: Scalar, y: Scalar) -> Scalar:
    """``x + y``, without a trace of it where nothing is to be done."""
    return y if _is_zero(x) else x if _is_zero(y) else x + y


def _is_zero(x: Scalar) -> bool:
    return x is x.k.const(0, x.dtype)  # constants are kept


def combined_up_to(k: GpuKernel, x: Scalar, combine: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
    """What the lanes of a simdgroup up to each one have, combined in their order."""
    lane, distance, through = k.lane(), 1, x
    while distance < k.gpu.simd:
        with k.named("below"):
            other = k.shuffle(through, distance, "up")
        with k.named("through"):
            through = k.select(k.below(lane, distance), through, combine(other, through))
        distance *= 2
    return through


def when_all(k: GpuKernel, conditions: Sequence[Scalar | None], body: Callable[[], None]) -> None:
    """Run ``body()`` where all conditions hold; None holds everywhere."""
    asked = [c for c in conditions if c is not None]
    if asked:
        k.when(functools.reduce(k.logical_and, asked), body)
    else:
        body()


def each_group(k: GpuKernel, count: int, groups: int, body: Callable[[Scalar], Any]) -> None:
    """Run ``body(i)`` for each i below `count`, each by a whole threadgroup."""
    if groups >= count:
        body(k.group() if count > 1 else k.const(0, INDEX))
    else:
        k.for_(k.group(), k.const(count, INDEX), body, step=groups)
