"""The `loop` schedule: all steps of a scan in one kernel, whose threads have nothing to do with each other.

A thread takes one element of the carries, which it keeps in registers from step to step. Elements of the xs are read
and those of the ys written where they lie in their arrays, neighbours by neighbours. What each step reads alike is
read before the first.
"""

from __future__ import annotations

import math
from typing import Any

from smelt.backends.lowering import Coordinates, fuse_variables
from smelt.backends.memory import Memory
from smelt.backends.plan import always_inside
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.errors import SmeltError
from smelt.ir.index import Index, linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads
from smelt.passes.kernels.loops import LoopPlan, loop_plan

from ..kernel import GpuKernel, GpuModule
from .maps import bind_loops
from .parts import times
from .schedule import ScheduledKernel, argument_name, body_flops, source_lines, threads_for

#: Additions that are not made anew in each step.
DEAR = 4.0


def build_loop(module: GpuModule, body: Function, loop: OpView, step: Function) -> list[ScheduledKernel]:
    """The kernel of a function that is one loop.

    Args:
        step: what the loop does in each step.

    Raises:
        SmeltError: its elements depend on each other.
    """
    plan = loop_plan(loop, step)
    if isinstance(plan, str):
        raise SmeltError(f"@{body.name} is no loop of one kernel: {plan}")
    return LoopKernel(module, body, loop, step, plan).emit()


class LoopKernel:
    """The kernel of one loop."""

    def __init__(self, module: GpuModule, body: Function, loop: OpView, step: Function, plan: LoopPlan):
        self.body, self.loop, self.step, self.plan = body, loop, step, plan
        names = [argument_name(v) for v in body.arguments]
        names += ["out"] if len(body.returns) == 1 else [f"out{i}" for i in range(len(body.returns))]
        avals = [v.aval for v in (*body.arguments, *body.returns)]
        self.k, memories = module.start(body.name, avals, names, body.mlir.location, step)
        operands = dict(zip(body.arguments, memories))
        n, m = loop.attrs["constants"], loop.attrs["carries"]
        given = [operands[v] for v in loop.operands]
        self.first, self.xs = given[n : n + m], list(zip(step.arguments[n + m :], given[n + m :]))
        self.carries = step.arguments[n : n + m]
        for v, memory in zip(step.arguments[:n], given):
            self.k.memory[v] = memory
        outputs = dict(zip(body.returns, memories[len(body.arguments) :]))
        found = [outputs.get(v) for v in loop.results]
        self.last, self.ys = found[:m], found[m:]
        self.numbers: list[Index] = []
        self.reads = collect_reads(step.ops, zip(step.returns, plan.places), self.numbers)

    def emit(self) -> list[ScheduledKernel]:
        """All of it; the step that runs it."""
        k, step, length = self.k, self.step, self.loop.attrs["length"]
        uses = [linearize(at, v.shape) for v in step.arguments for at in self.reads.get(v, ())]
        uses += [*self.numbers, *(linearize(at, v.shape) for v, at in zip(step.returns, self.plan.places))]
        loops = fuse_variables([(f"c{i}", at.hi + 1) for i, at in enumerate(self.plan.loops)], uses)
        self.total = total = math.prod(loop.extent for loop in loops)
        for v in (*self.loop.operands, *self.loop.results):
            k.reach(v.aval.size)
        threads, groups = threads_for(k, total)

        def item(at: Scalar) -> None:
            if loops:
                k.bind(loops[-1], bind_loops(k, loops[:-1], loops[-1].extent, at))
            self._steps(at, length)

        k.grid_stride(None, total, threads, groups, item)
        written = sum(v.aval.nbytes for v in self.body.returns)
        read = sum(v.aval.nbytes for v in self.body.arguments)
        k.finish(
            "loop", (groups, 1, 1), (threads, 1, 1), read, written, length * body_flops(step), source_lines(step.ops)
        )
        return [ScheduledKernel(k.name, [*self.body.arguments, *self.body.returns])]

    def _steps(self, at: Scalar, length: int) -> None:
        """All steps for one element."""
        k, step, m = self.k, self.step, len(self.carries)
        for v in self._alike():
            for place in self.reads.get(v, ()):
                if always_inside(v, place):
                    k.value(v, place)
        carried = [
            k.read(memory, k.index(linearize(place, v.shape)))
            for v, memory, place in zip(self.carries, self.first, self.plan.places)
        ]

        def one(i: Scalar, *state: Any) -> list[Any]:
            number = k.const(length - 1, INDEX) - i if self.loop.attrs["reverse"] else i
            for v, x in zip(self.carries, state):
                k.provided[v] = self._held(v, x)
            for v, array in self.xs:
                k.provided[v] = self._element(v, array, number)
            found = [k.value(v, place) for v, place in zip(step.returns, self.plan.places)]
            for v, place, x, memory in zip(step.returns[m:], self.plan.places[m:], found[m:], self.ys):
                if memory is not None:
                    offset = times(number, v.aval.size) + k.index(linearize(place, v.shape))
                    self._write(at, v, x, memory, offset)
            return [
                k.from_storage(k.to_storage(x, v.dtype), v.dtype).mlir if v.dtype.is_float else x.mlir
                for v, x in zip(step.returns, found[:m])
            ]

        last = k.counted(length, one, [x.mlir for x in carried], carried="carry")
        for v, place, x, memory, first in zip(step.returns, self.plan.places, last, self.last, carried):
            if memory is not None:
                self._write(at, v, Scalar(k, x, first.dtype), memory, k.index(linearize(place, v.shape)))

    def _alike(self) -> list[Value]:
        """What each step reads alike: constants, and what takes some arithmetic to make of them."""
        constants = list(self.step.arguments[: self.loop.attrs["constants"]])
        known, found = set(constants), constants
        for op in self.step.ops:
            if known.issuperset(op.operands):
                known.update(op.results)
                if op.op.flops >= DEAR:
                    found += op.results
        return found

    def _held(self, v: Value, x: Any) -> Any:
        held = Scalar(self.k, x, compute_dtype(v.dtype))
        return lambda place: held

    def _element(self, v: Value, memory: Memory, number: Scalar) -> Any:
        k: GpuKernel = self.k

        def read(place: Coordinates) -> Scalar:
            return k.read(memory, times(number, v.aval.size) + k.index(linearize(place, v.shape)))

        return read

    def _write(self, at: Scalar, v: Value, x: Scalar, memory: Memory, offset: Scalar) -> None:
        """Store an element; one that all threads compute is the first one's to store."""
        k = self.k
        if v.aval.size == 1 and self.total > 1:
            k.when(at.eq(0), lambda: k.write(x, memory, offset))
        else:
            k.write(x, memory, offset)
