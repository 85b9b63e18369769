"""Kernels with several reductions along columns: a panel of columns stays in cache from one loop over it to the next.

Each loop over a line of neighbouring columns goes over all of them, so what is larger than a cache comes from memory
once for every reduction, and once more for what follows. A panel is so narrow that it fits: the first loop that reads
an operand copies its part of it to memory of the thread's own, where lines do not collide, and later loops read it
there. So are values kept that are dear to compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from smelt.backends.accumulate import Accumulator
from smelt.backends.lowering import Coordinates, Fused, divide, fuse_variables
from smelt.backends.plan import Plan, always_inside, is_static, make_plan
from smelt.backends.recompute import values_to_keep
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Atom, Index, linearize
from smelt.ir.scalar import INDEX, Scalar, compute_dtype
from smelt.passes.kernels.analysis import collect_reads, is_row_reduction

from .kernel import CpuKernel, KernelModule, Memory
from .loops import Split, reduce_loops
from .rows import MOST_STEPS, RowKernel, is_line, is_near, line_width, narrowest
from .schedules import ScheduledKernel, start_kernel
from .streaming import LINE_BYTES, Read, can_stream, copy_out, follows, is_aligned, is_large, prefetch

#: Bytes of a panel: what a core's second cache and its share of the last one hold. A wider panel, whose pieces of lines
#: are longer, gains more than one loses that a smaller cache does not hold.
PANEL_BYTES = 2 << 20
#: Bytes that lie beside each other in a panel's narrowest array at least: less takes longer to find than to read.
PIECE_BYTES = 128
#: What fits into this many bytes as a line stays in cache anyway.
NEAR_BYTES = 256 << 10
#: The widest panel, in elements of 4 bytes or more; of narrower ones there are more.
WIDEST = 64
#: How many threads may have panels at once.
SLOTS = 64
#: How many steps ahead operands are fetched. Each is on another page, so the processor does not foresee it.
STEPS_AHEAD = 16
#: Steps of which lines are read from memory at a time, at most.
STEPS_READ = 2


@dataclass(frozen=True)
class Panel:
    """An operand or a value that lies in memory of the thread's own from stage `first` on.

    Attributes:
        place: where the loops read it.
        last: the last stage that reads it.
        slot: which memory it lies in.
    """

    value: Value
    place: Coordinates
    first: int
    last: int
    slot: int = -1

    @property
    def dtype(self) -> DType:
        return self.value.dtype if self.value.owner is None else compute_dtype(self.value.dtype)


def build_panels(
    module: KernelModule, name: str, body: Function, kept_axes: Sequence[Sequence[int]], at: int
) -> ScheduledKernel | None:
    """The kernel of a row fusion, if panels suit it; `at`: where its memory begins in the program's arena."""
    plan = make_plan(body, kept_axes)
    loops = fuse_variables(plan.kept_variables, plan.uses)
    if not is_line(plan) or not loops or not all(loop.extent for loop in loops):
        return None
    found = _panels(plan, loops[-1])
    if not found or not math.prod(stages_of(plan)[0][1]):
        return None
    is_quick = len(stages_of(plan)) == 2 or min(p.dtype.size for p in found) >= 4
    if is_quick and is_near(plan, loops) and all(p.value.owner is None for p in found):
        return None  # nothing is kept but what is read, and that is near
    space = stages_of(plan)[0][1]
    slots = {p.slot: p.dtype for p in found}
    length = math.prod(space)
    lane, outer = loops[-1], loops[:-1]
    sizes = [d.size for d in slots.values()] + [v.dtype.size for v in body.returns]
    step = LINE_BYTES // min(sizes)
    room = PANEL_BYTES // (length * sum(d.size for d in slots.values()))
    width = min(WIDEST * max(1, 4 // min(sizes)), room // step * step)
    line = line_width(loops, narrowest(plan.loads, lane)) * length * sum(p.dtype.size for p in found)
    if width * min(sizes) < PIECE_BYTES or lane.extent < width or line <= NEAR_BYTES:
        return None
    count = -(-lane.extent // width)
    units = count * math.prod(loop.extent for loop in outer)
    parts = min(units, SLOTS)
    memory: list[tuple[int, Aval]] = []
    for dtype in slots.values():
        aval = Aval((parts * length * width,), dtype)
        memory.append((at, aval))
        at += -(-aval.nbytes // LINE_BYTES) * LINE_BYTES

    k, memories, lo, hi = start_kernel(module, name, body, [*(a for _, a in memory), *(v.aval for v in body.returns)])
    own = dict(zip(slots, memories))
    row = PanelKernel(k, plan, memories[len(own) :], lane, width, [(p, own[p.slot]) for p in found])
    row.base = lo * (length * width)  # ranges of threads do not overlap, so neither does their memory

    def unit(i: Scalar) -> None:
        rest, panel = divide(k, i, count, bool(outer))
        first = k.op("arith.minui", [panel * width, k.const(lane.extent - width, INDEX)], INDEX)
        for number, loop in reversed(list(enumerate(outer))):
            rest, position = divide(k, rest, loop.extent, number > 0)
            k.bind(loop, position)
        row.emit(first, first + width)

    first, last = (k.op("arith.divui", [bound * units, k.const(parts, INDEX)], INDEX) for bound in (lo, hi))
    k.loop(None, first, last, unit)
    k.emit("func.return", [], [])
    return ScheduledKernel(name, body, Split(parts), [*body.arguments, *memory, *body.returns])


def stages_of(plan: Plan) -> list[tuple[int, tuple[int, ...], list[tuple[Value, Coordinates]]]]:
    """Number, inner extents, and what is computed, of each loop over a row."""
    found: dict[tuple[int, tuple[int, ...]], list[tuple[Value, Coordinates]]] = {}
    for op in plan.reductions:
        v = op.results[0]
        found.setdefault((plan.stage[v], plan.space_of[v]), []).append((op.operands[0], plan.places[v]))
    for v in plan.body.returns:
        if not (v.owner and is_row_reduction(v.owner)) and plan.space_of[v]:
            found.setdefault((plan.stage[v], plan.space_of[v]), []).append((v, plan.places[v]))
    return [(*key, found[key]) for key in sorted(found)]


def _panels(plan: Plan, lane: Fused) -> list[Panel]:
    """What is to lie in panels; nothing where they would not do."""
    stages = stages_of(plan)
    if len(stages) < 2 or len({space for _, space, _ in stages}) != 1:
        return []
    ops = plan.body.ops
    kept = {item.value: item for item in values_to_keep(ops, stages)}
    read: dict[tuple[Value, Coordinates], list[int]] = {}
    for number, _, roots in stages:

        def stop(v: Value, number: int = number) -> bool:
            known = v in kept and kept[v].first < number
            return known or (v.owner is not None and is_row_reduction(v.owner))

        for v, places in collect_reads(ops, roots, stop=stop).items():
            for place in places:
                if v.owner is None or (v in kept and place == kept[v].place):
                    read.setdefault((v, place), []).append(number)
    inner = {name for variables in plan.spaces.values() for name, _ in variables}
    found: list[Panel] = []
    for (v, place), numbers in sorted(read.items(), key=lambda item: item[0][0].owner is not None):
        index = linearize(place, v.shape)
        if len(numbers) < 2 or not any(a.kind != "var" or a.args[0] in inner for a in index.atoms()):
            continue
        if v.dtype.is_complex or not always_inside(v, place) or not follows(index, lane):
            return []
        panel = Panel(v, place, numbers[0], numbers[-1])
        free = [
            p.slot
            for p in found
            if p.dtype is panel.dtype and all(q.last <= panel.first for q in found if q.slot == p.slot)
        ]
        found.append(replace(panel, slot=free[0] if free and v.owner is not None else len(found)))
    return found


class PanelKernel(RowKernel):
    """Loops over a panel: every position of the inner loops, and there every lane."""

    base: Scalar
    _row: Index  #: the position of the inner loops

    def __init__(
        self, k: CpuKernel, plan: Plan, outputs: list[Memory], lane: Fused, width: int,
        panels: Sequence[tuple[Panel, Memory]],
    ):  # fmt: skip
        super().__init__(k, plan, outputs, lane, width)
        self.panels = panels
        self._offset: Scalar | None = None

    def each_lane(self, body) -> None:
        k, lane, first = self.k, self.lane, self.first
        assert lane is not None and first is not None

        def one(i: Scalar) -> None:
            saved, self._offset = self._offset, i
            with k.at_position(lane, first + i):
                body()
            self._offset = saved

        k.loop(None, k.const(0, INDEX), k.const(self.width, INDEX), one)

    def lane_offset(self) -> Scalar:
        assert self._offset is not None
        return self._offset

    def accumulate_line(self, space, accumulators: Sequence[Accumulator], outputs=(), bounds=None) -> None:
        k, loops = self.k, self.loops.get(space, [])
        self._row = linearize([Index.variable(n, e) for n, e in self.plan.spaces[space]], space)
        self.start_lines(accumulators)
        if outputs or not loops:
            reduce_loops(k, loops, lambda _: self._step(loops, accumulators, outputs), [])
            return
        *outer, steps = loops

        def body(_: list[Scalar]) -> list[Scalar]:
            self.accumulate_steps(steps, *self.whole(steps), accumulators)
            return []

        reduce_loops(k, outer, body, [])

    def _step(self, loops: Sequence[Fused], accumulators: Sequence[Accumulator], outputs) -> list[Scalar]:
        """The panel's columns at one position of the loops."""
        k, lane, width, first = self.k, self.lane, self.width, self.first
        assert lane is not None and first is not None
        targets = [(m, self.plan.places[v]) for v, m in outputs]
        streams = can_stream(lane, targets) and is_aligned(lane, targets)
        pieces = [k.scratch(width, m.aval.dtype) for m, _ in targets] if streams else []

        def each() -> None:
            self._exchange_panels()
            self.advance(accumulators)
            for piece, (v, _) in zip(pieces, outputs):
                k.write(k.value(v, self.plan.places[v]), piece, self.lane_offset())
            if not pieces:
                self._store_full(outputs)

        self._fetch_all(loops)
        with k.at_position(lane, first):
            starts = [k.index(linearize(place, m.aval.shape)) for m, place in targets] if pieces else []
        self.each_lane(each)
        for piece, start, target in zip(pieces, starts, targets):
            copy_out(k, piece, target[0], start, width)
        return []

    def steps_at_once(self, accumulators: Sequence[Accumulator]) -> int:
        """Few where operands come from memory: a line of each after the other is read in the order of its bytes."""
        reads = any(p.first == self.stage and p.value.owner is None for p, _ in self.panels)
        return min(super().steps_at_once(accumulators), STEPS_READ if reads else MOST_STEPS)

    def before_steps(self, steps: Fused, positions: Sequence[Scalar], fetched: Sequence[Read]) -> None:
        for position in positions:
            with self.k.at_position(steps, position):
                self._fetch_all([steps])

    @contextmanager
    def at_step(self, steps: Fused | None, position: Scalar) -> Iterator[None]:
        with super().at_step(steps, position):
            self._exchange_panels()
            yield

    def _exchange_panels(self) -> None:
        """Read what lies in panels at the current position, write what is to."""
        k = self.k
        at = self.base + k.index(self._row) * self.width + self.lane_offset()
        for p, memory in self.panels:
            if p.first < self.stage <= p.last:
                k.scopes[-1][p.value, p.place] = k.read(memory, at)
        for p, memory in self.panels:
            if p.first == self.stage:
                k.write(k.value(p.value, p.place), memory, at)

    def _fetch_all(self, loops: Sequence[Fused]) -> None:
        """Fetch what this stage is the first to read some steps later."""
        assert self.lane is not None and self.first is not None
        with self.k.at_position(self.lane, self.first):
            for p, _ in self.panels:
                if p.first == self.stage and p.value.owner is None:
                    self._fetch(p, loops)

    def _fetch(self, p: Panel, loops: Sequence[Fused]) -> None:
        memory = self.k.memory[p.value]
        if not loops or not is_large(memory.aval) or not is_static(p.place):
            return
        index = linearize(p.place, p.value.shape)
        name, extent = loops[-1].variables[-1]
        ahead = STEPS_AHEAD * index.coefficient(Atom("var", (name,), 0, extent - 1))
        if ahead > 0:
            prefetch(self.k, memory, self.k.index(index), ahead, self.width)
