"""Many updates of few targets: each thread has elements of its own for all targets, and adds up what it sees.

Threads that stand side by side take neighbouring elements of windows, lines of them take turns with the updates. The
threads of a threadgroup combine what they have, then the threadgroups, always in the same order::

    fused_scatter_private   partial[target, piece] = the updates of a piece, by target
    fused_scatter           out[target] with all pieces
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from smelt.backends.lowering import Fused
from smelt.ir.aval import Aval
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...devices import Gpu
from ...kernel import GpuModule
from ..parts import each_group, plus, power_of_two, split, start_part, times, when_all
from ..schedule import ScheduledKernel, Scratch, ScratchPlan
from .runs import neutral
from .scattering import Scattering

#: Fewer updates than this, or than so many a target, are sorted.
LEAST, LEAST_EACH = 512, 16
#: Updates that make a piece worth a line of threads.
OWN_UPDATES = 16
#: Threadgroups that a GPU runs at a time, more or less.
MOST_GROUPS = 1024


@dataclass(frozen=True)
class PrivateShape:
    """How updates are shared.

    Attributes:
        targets: windows of x, or elements. window: elements of one.
        items: updates, of a window each. across, lines: threads along a window, and of the updates.
        pieces: in which the updates are cut; each has `own` of them.
    """

    targets: int
    window: int
    items: int
    across: int
    lines: int
    pieces: int
    own: int

    @property
    def threads(self) -> int:
        return self.across * self.lines

    @property
    def blocks(self) -> int:
        """Threadgroups along a window."""
        return -(-self.window // self.across)

    @classmethod
    def of(cls, gpu: Gpu, what: Scattering) -> PrivateShape | None:
        """None where targets are too many for the memory of a threadgroup, or updates too few."""
        if what.mode == "set" or what.x.dtype.kind not in "iuf":
            return None
        shape = what.x.shape
        rows = tuple(what.op.attrs["axes"]) == (0,) and what.window == (1, *shape[1:])
        targets, window = (shape[0], math.prod(shape[1:])) if rows else (what.x.aval.size, 1)
        items = what.count if rows else what.updates.aval.size
        if items < max(LEAST, LEAST_EACH * targets):
            return None
        across = min(gpu.simd, power_of_two(window))
        room = gpu.threadgroup_bytes // (compute_dtype(what.x.dtype).size * targets)
        lines = min(gpu.threads, 1 << max(0, room.bit_length() - 1)) // across
        if across * lines < gpu.simd:
            return None
        wanted = max(1, min(gpu.groups, MOST_GROUPS) // -(-window // across))
        own = -(-items // max(1, min(wanted, items // (lines * OWN_UPDATES))))
        return cls(targets, window, items, across, lines, -(-items // own), own)


def apply_private(
    module: GpuModule, what: Scattering, shape: PrivateShape, scratch: ScratchPlan
) -> list[ScheduledKernel]:
    """The kernels that apply all updates."""
    held = compute_dtype(what.x.dtype)
    partial = scratch.take(Aval((shape.targets * shape.window * shape.pieces,), held))
    return [_PiecesKernel(module, what, shape, partial).build(), _targets_kernel(module, what, shape, partial)]


class _PiecesKernel:
    """A kernel each of whose threadgroups applies the updates of a piece to targets of its threads' own.

    Attributes:
        memory: where what a piece has for each target goes.
        own: elements of each thread for all targets. line, column: of the thread.
        guarded: the last block of a window is not full.
    """

    def __init__(self, module: GpuModule, what: Scattering, shape: PrivateShape, partial: Scratch):
        self.what, self.shape, self.partial = what, shape, partial
        self.part = start_part(module, what.body, "_private", what.reads, [("partial", partial)])
        self.k, (self.memory,) = self.part.k, self.part.extra
        k, self.guarded = self.k, shape.window % shape.across > 0
        one_each = shape.items != what.count  # elements of updates are scattered, each by itself
        self.items = what.axes(range(what.updates.ndim if one_each else what.lead))
        self.window = Fused([]) if one_each else what.axes([what.lead + a for a in range(what.x.ndim)])
        self.own = k.shared(shape.targets * shape.threads, partial.aval.dtype, name="own")
        self.line, self.column = split(k, k.thread(), shape.across, "line", "column")

    def build(self) -> ScheduledKernel:
        shape, what = self.shape, self.what
        count = shape.blocks * shape.pieces
        groups = max(1, min(self.k.gpu.groups, count))

        def each(at: Scalar) -> None:
            self._piece(at)
            if groups < count:
                self.k.barrier()  # before the elements are reset

        each_group(self.k, count, groups, each)
        flops = what.op.op.flops * what.updates.aval.size
        return self.part.finish("scatter", groups, shape.threads, 0, self.partial.aval.nbytes, flops)

    def _piece(self, at: Scalar) -> None:
        """Apply the updates of a piece to a block of the window, and write what all lines have."""
        k, shape, zero = self.k, self.shape, self.k.const(0, INDEX)
        piece, block = split(k, at, shape.blocks, "piece", "block", shape.pieces > 1)
        place = plus(times(block, shape.across), self.column)
        if self.guarded:
            place = k.op("arith.minui", [place, k.const(shape.window - 1, INDEX)], INDEX)
        nothing = neutral(k, self.what)
        k.for_(zero, k.const(shape.targets, INDEX), lambda t: k.write(nothing, self.own, self._slot(t)))
        k.bind(self.window, place)
        with k.named("first"):
            first = times(piece, shape.own)
        with k.named("last"):
            last = k.op("arith.minui", [first + shape.own, k.const(shape.items, INDEX)], INDEX)
        k.loop(self.items, plus(first, self.line), last, self._update, step=shape.lines)
        k.barrier()
        elements = k.const(shape.targets * shape.across, INDEX)
        k.for_(k.thread(), elements, lambda o: self._fold(piece, block, o), step=shape.threads)

    def _slot(self, target: Scalar) -> Scalar:
        """Where the thread's own element for a target lies."""
        return target * self.shape.threads + self.k.thread()

    def _update(self, _: Scalar) -> None:
        """Apply one update, if its target is inside."""
        k, what, window = self.k, self.what, self.shape.window
        inside, target = what.target(k)

        def apply() -> None:
            number = target if window == 1 else k.op("arith.divui", [target, k.const(window, INDEX)], INDEX)
            slot = self._slot(number)
            k.write(what.combine(k, k.read(self.own, slot), k.value(what.updates, what.at)), self.own, slot)

        k.when(inside, apply)

    def _fold(self, piece: Scalar, block: Scalar, o: Scalar) -> None:
        """Write what all lines have for element `o` of the targets' parts in this block."""
        k, what, shape = self.k, self.what, self.shape
        target, c = split(k, o, shape.across, "target", "place")

        def of_line(s: Scalar) -> Scalar:
            return k.read(self.own, target * shape.threads + plus(times(s, shape.across), c))

        (total,) = k.for_(
            k.const(1, INDEX), k.const(shape.lines, INDEX), lambda s, x: [what.combine(k, x, of_line(s))],
            [of_line(k.const(0, INDEX))],
        )  # fmt: skip
        e = plus(times(block, shape.across), c)

        def write() -> None:
            result = plus(times(target, shape.window), e)
            k.write(total, self.memory, plus(times(result, shape.pieces), piece))

        when_all(k, [k.below(e, shape.window) if self.guarded else None], write)


def _targets_kernel(module: GpuModule, what: Scattering, shape: PrivateShape, partial: Scratch) -> ScheduledKernel:
    """Neighbouring threads combine what the pieces have for a target."""
    part = start_part(module, what.body, "", [], [("partial", partial), ("out", what.out)])
    k = part.k
    memory, out = part.extra
    n, pieces = shape.targets * shape.window, shape.pieces
    lanes = min(k.gpu.simd, power_of_two(pieces))
    teams = min(k.gpu.threads // lanes, max(k.gpu.simd // lanes, n))
    member, lane = split(k, k.thread(), lanes, "member", "lane")
    blocks = -(-n // teams)
    groups = max(1, min(k.gpu.groups, blocks))

    def each(at: Scalar) -> None:
        with k.named("element"):
            element = plus(times(at, teams), member)
        mine = lane.eq(0)
        if n % teams:
            mine = k.logical_and(mine, k.below(element, n))
            element = k.op("arith.minui", [element, k.const(n - 1, INDEX)], INDEX)

        def step(p: Scalar, total: Scalar) -> list[Scalar]:
            return [what.combine(k, total, k.read(memory, plus(times(element, pieces), p)))]

        (total,) = k.for_(lane, k.const(pieces, INDEX), step, [neutral(k, what)], step=lanes)
        distance = 1
        while distance < lanes:
            total = what.combine(k, total, k.shuffle(total, distance))
            distance *= 2
        k.when(mine, lambda: k.write(what.combine(k, k.read(out, element), total), out, element))

    each_group(k, blocks, groups, each)
    read = partial.aval.nbytes + what.x.aval.nbytes
    flops = what.op.op.flops * n * pieces
    return part.finish("scatter", groups, teams * lanes, read, what.x.aval.nbytes, flops)
