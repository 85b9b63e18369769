"""What schedules share: steps, costs, comments, and starting the kernel of a fusion."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.memory import Memory
from smelt.backends.plan import Plan
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, OpView, Value
from smelt.ir.text import line_of
from smelt.passes.kernels.analysis import Coordinates, is_row_reduction

from ..kernel import GpuKernel, GpuModule
from ..library import LibraryStep, mark_step


@dataclass(frozen=True)
class Scratch:
    """Temporary memory that the steps of one fusion hand to each other: a place and a type."""

    offset: int
    aval: Aval


@dataclass(frozen=True)
class ScheduledKernel:
    """One kernel and what it works on: values of the fusion's body, or scratch.

    `copies`: whether it copies what a scatter updates, and does nothing else.
    """

    kernel: str
    operands: Sequence[Value | Scratch]
    copies: bool = False


class ScratchPlan:
    """Offsets of scratch, one after the other."""

    def __init__(self) -> None:
        self.end = 0

    def take(self, aval: Aval) -> Scratch:
        found = Scratch(self.end, aval)
        self.end += -(-max(aval.nbytes, 1) // 64) * 64
        return found


def start_kernel(
    module: GpuModule, body: Function, suffix: str = "", extra: Sequence[tuple[str, Aval]] = ()
) -> tuple[GpuKernel, list[Memory], list[Memory]]:
    """A kernel over a fusion's arguments, `extra` buffers, and its results: builder, extra, results."""
    outputs = body.returns
    names = [argument_name(v) for v in body.arguments] + [n for n, _ in extra]
    names += ["out"] if len(outputs) == 1 else [f"out{i}" for i in range(len(outputs))]
    avals = [*(v.aval for v in body.arguments), *(a for _, a in extra), *(v.aval for v in outputs)]
    k, memories = module.start(body.name + suffix, avals, names, body.mlir.location, body)
    for v, memory in zip(body.arguments, memories):
        k.memory[v] = memory
    n, m = len(body.arguments), len(extra)
    return k, memories[n : n + m], memories[n + m :]


def declare_step(
    module: GpuModule, name: str, work: LibraryStep, avals: Sequence[Aval], names: Sequence[str], workspace: int,
    flops: int, op: OpView,
) -> str:  # fmt: skip
    """A ``gpu.func`` without a body that stands for what a library does, and its name.

    Args:
        name: what it is called, unless that is taken.
        avals, names: of its buffers.
        workspace: bytes of memory in one buffer more.
        op: what is computed.
    """
    read = sum(aval.nbytes for i, aval in enumerate(avals) if i not in work.written)
    written = sum(aval.nbytes for i, aval in enumerate(avals) if i in work.written)
    if workspace:
        avals, names = [*avals, Aval((workspace,), dtypes.uint8)], [*names, "workspace"]
    key = work.kind, repr(work), *avals
    if key not in module.functions:
        k, _ = module.start(name, avals, names, op.location)
        k.finish("library", (1, 1, 1), (1, 1, 1), read, written, flops, source_lines([op]))
        mark_step(k.function, work)
        module.functions[key] = k.name
    return module.functions[key]


def argument_name(v: Value) -> str:
    """What the user calls an argument, where that is known."""
    location = v.mlir.location
    name = getattr(location, "name_str", "") or ""
    return "".join(c if c.isalnum() else "_" for c in name).strip("_")


def source_lines(ops: Sequence[OpView]) -> list[str]:
    """Which ops a kernel came from, and at which of the user's lines."""
    lines: dict[str, list[str]] = {}
    ops = [op for op in ops if op.op.flops or is_row_reduction(op)] or ops
    for op in ops:
        where = user_line(op.location)
        names = lines.setdefault(where, [])
        if f"smelt.{op.name}" not in names:
            names.append(f"smelt.{op.name}")
    return [", ".join(names) + (f" at {where}" if where else "") for where, names in lines.items()]


def user_line(location: Any) -> str:
    """``model.py:17``, or nothing."""
    return os.path.basename(line_of(location))


def threads_for(k: GpuKernel, items: int) -> tuple[int, int]:
    """Threads in a threadgroup and threadgroups for `items` independent pieces of work."""
    gpu = k.gpu
    threads = gpu.threads
    if items < threads:
        threads = max(gpu.simd, -(-items // gpu.simd) * gpu.simd)
    return threads, max(1, min(gpu.groups, -(-items // threads)))


def body_flops(body: Function) -> int:
    """Additions, more or less."""
    total = 0.0
    for op in body.ops:
        size = op.results[0].aval.size
        if is_row_reduction(op):
            size = op.operands[0].aval.size
        total += max(op.op.flops, 1.0 if is_row_reduction(op) else 0.0) * size
    return int(total)


def bytes_read(plan: Plan) -> int:
    """What a kernel reads if nothing is read twice: the elements that its loops address."""
    total = 0
    for v in dict.fromkeys(v for v, _ in plan.loads):
        places = [at for u, at in plan.loads if u == v]
        total += min(v.aval.nbytes, sum(_extent(at) for at in places) * v.dtype.size)
    return total


def _extent(place: Coordinates) -> int:
    used = {a for i in place for a in i.atoms() if a.kind in ("var", "dynamic")}
    return math.prod(a.hi - a.lo + 1 for a in used)


def bytes_written(body: Function) -> int:
    return sum(v.aval.nbytes for v in body.returns)
