"""Maps whose last axes are short, or that read every other element, in vectors each lane of which is told its place.

Rows of three elements, repeated, joined, padded, reversed or beside a bias, follow each other in memory, but a loop
over three elements fills no vector, and one over all of them would divide. A few rows together are whole vectors,
though, and where each of their lanes reads is the same in the next few rows but for where these begin. So neighbours
are loaded and put in order by shuffles that are known when the kernel is made::

    for rows, sixteen at a time:                 # of [a, b, c] → [a, b, c, a, b, c]
        x = load three vectors
        store shuffle(x, 0 1 2 0 1 2 3 4 5 3 4 5 6 7 8 6), ...

Where elements of a row are computed in different ways, as those of two arrays that are joined, a vector has lanes of
each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smelt.backends.lowering import Fused, fuse_variables
from smelt.backends.plan import PARTS, Plan, cuts_of, is_static, make_plan
from smelt.ir import mlir
from smelt.ir.builder import Function, Value
from smelt.ir.errors import KernelError
from smelt.ir.index import Coordinates, Index, linearize, names_of
from smelt.ir.kinds import Elementwise
from smelt.ir.scalar import INDEX, Scalar

from .donations import in_place
from .kernel import CpuKernel, KernelModule, Memory
from .loops import Nest, emit_nest, inner_loops
from .schedules import ScheduledKernel, start_kernel
from .streaming import LINE_BYTES, is_large
from .vectors import Lane

#: Elements of the last axes together, at most: longer ones fill vectors by themselves.
LONGEST = 32
#: Lanes of a vector, at most: narrow elements are widened where they are computed.
LANES = 32
#: Elements that are computed between two looks at where the loop stands.
TILE = 4096
#: Arrays of fewer elements are not worth more code.
FEWEST = 1 << 14
#: Additions of straight code, at most, each counted as often as vectors are computed.
MOST_INSTRUCTIONS = 768


def build_lane_map(module: KernelModule, name: str, body: Function) -> list[ScheduledKernel] | None:
    """The kernels of a map, where its elements follow each other and its loops would not fill vectors."""
    if body.returns[0].aval.size < FEWEST or not _suits(body):
        return None
    shape, cuts = body.returns[0].shape, [sorted(at) for at in cuts_of(body)[0]]
    first = _first_inner(shape)
    outside, inside = ([list(itertools.pairwise(at)) for at in part] for part in (cuts[:first], cuts[first:]))
    if math.prod(map(len, outside)) > PARTS:
        return None
    parts: list[_Lanes] = []
    for ranges in itertools.product(*outside):
        plans = [make_plan(body, None, [*ranges, *part]) for part in itertools.product(*inside)]
        lanes = _Lanes.of(plans, first)
        if lanes is None:
            return None
        parts.append(lanes)
    if not any(lanes.outer[-1].extent >= lanes.rows for lanes in parts):
        return None
    found: list[ScheduledKernel] = []
    for i, lanes in enumerate(parts):
        kernel = lanes.build(module, f"{name}_lanes{i}")
        if kernel is None:
            for built in found:
                module.drop(built.function)
            return None
        found.append(kernel if len(parts) == 1 else replace(kernel, in_place=()))
    return found


def _suits(body: Function) -> bool:
    values = [*body.arguments, *(v for op in body.ops for v in op.results)]
    if any(v.dtype.is_complex or not v.aval.size for v in values):
        return False
    if len({v.shape for v in body.returns}) != 1:
        return False
    return all(isinstance(op.op, Elementwise) or op.op.kind in ("movement", "constant") for op in body.ops)


def _first_inner(shape: Sequence[int]) -> int:
    """The first of the last axes that are short together; one axis at least stands before them."""
    first, inner = len(shape), 1
    while first > 1 and inner * shape[first - 1] <= LONGEST:
        first -= 1
        inner *= shape[first]
    return first


@dataclass
class _Lanes:
    """Rows of `inner` elements each, of which `plans` compute parts.

    Attributes:
        outer: the loops over the rows, of which the last is gone over by `rows` at a time.
        lanes: of a vector.
        numbers: positions of the last axes, a line for each element of a row.
    """

    plans: Sequence[Plan]
    outer: Sequence[Fused]
    first: int
    lanes: int
    numbers: np.ndarray

    @classmethod
    def of(cls, plans: Sequence[Plan], first: int) -> _Lanes | None:
        """None where a plain loop does as well, or results do not lie so."""
        body, shape = plans[0].body, plans[0].body.returns[0].shape
        lanes = min(LANES, LINE_BYTES // max(v.dtype.size for v in body.returns))
        outer = fuse_variables(plans[0].kept_variables[:first], [use for plan in plans for use in plan.uses])
        outer = outer or [Fused([plans[0].kept_variables[first - 1]])]
        if not all(is_static(at) for plan in plans for _, at in plan.loads):
            return None
        numbers = np.array(list(itertools.product(*map(range, shape[first:]))), np.int64)
        found = cls(plans, outer, first, lanes, numbers)
        follow = outer[-1].extent == 1 or found._place().step(outer[-1].names[-1]) == found.inner
        return found if follow and found._pays() else None

    @property
    def inner(self) -> int:
        """Elements of a row."""
        return len(self.numbers)

    @property
    def rows(self) -> int:
        """So many rows are whole vectors."""
        return self.lanes // math.gcd(self.inner, self.lanes)

    def _place(self) -> Index:
        """Where results are written. All have one shape."""
        result = self.plans[0].body.returns[0]
        return linearize(self.plans[0].places[result], result.shape)

    def _pays(self) -> bool:
        """Whether a plain loop would be short, or read elements that it has to gather; and the code is no longer
        than it may be."""
        first = self.plans[0]
        loops = fuse_variables(first.kept_variables, [use for plan in self.plans for use in plan.uses])
        inner = loops[-1] if loops else self.outer[-1]
        name = inner.names[-1]

        def gathers(v: Value, at: Coordinates) -> bool:
            step = linearize(at, v.shape).step(name)
            return name in names_of(at) and (step is None or step < -1)

        vectors = self.rows * self.inner // self.lanes
        work = sum(max(1.0, op.op.flops) for op in first.body.ops) * len(self.plans)
        if vectors * work > MOST_INSTRUCTIONS:
            return False
        return len(self.plans) > 1 or inner.extent <= LONGEST or any(itertools.starmap(gathers, first.loads))

    def build(self, module: KernelModule, name: str) -> ScheduledKernel | None:
        """The kernel; None where some ops cannot be computed in vectors, or read too far apart."""
        body = self.plans[0].body
        tile = max(1, TILE // (self.rows * self.inner)) * self.rows
        nest = Nest.plan(self.outer, lanes=True, tile=tile)
        k, outputs, lo, hi = start_kernel(module, name, body)
        try:
            emit_nest(k, nest, lo, hi, lambda first, last: self._block(k, outputs, first, last))
            k.emit("func.return", [], [])
            k.entry.owner.verify()
        except (KernelError, mlir.ir.MLIRError):
            module.drop(name)
            return None
        alone = in_place(self.plans[0]) if len(self.plans) == 1 else ()
        return ScheduledKernel(name, body, nest.split, [*body.arguments, *body.returns], in_place=alone)

    def _block(self, k: CpuKernel, outputs: Sequence[Memory], first: Scalar, last: Scalar) -> None:
        rows, loop = self.rows, self.outer[-1]
        whole = first + k.op("arith.divui", [last - first, k.const(rows, INDEX)], INDEX) * rows
        past = self._can_stream(outputs)

        def some(_: Scalar) -> None:
            for number in range(rows * self.inner // self.lanes):
                self._vector(k, outputs, number, past)

        k.loop(loop, first, whole, some, step=rows)
        k.loop(loop, whole, last, lambda _: self._row(k, outputs))

    def _vector(self, k: CpuKernel, outputs: Sequence[Memory], number: int, past: bool) -> None:
        """One vector of each result, of the rows that begin where the loop stands."""
        flat = number * self.lanes + np.arange(self.lanes)
        row, numbers = flat // self.inner, self.numbers[flat % self.inner]
        stored: list[Any] = [None] * len(outputs)
        for plan in self.plans:
            inner = plan.kept_variables[self.first :]
            starts = [index.const for index in plan.kept[self.first :]]
            own = numbers - np.array(starts, np.int64)
            mine = np.all((own >= 0) & (own < [extent for _, extent in inner]), axis=1)
            if not mine.any():
                continue
            which = np.where(mine, np.arange(self.lanes), int(np.argmax(mine)))  # others read what one of them does
            with k.at_position(Fused(inner), k.const(0, INDEX)):
                found = self._values(k, plan, row[which], own[which], inner)
            for i, x in enumerate(found):
                stored[i] = x if stored[i] is None else self._merged(k, stored[i], x, mine)
        with k.at_position(Fused(self.plans[0].kept_variables[self.first :]), k.const(0, INDEX)):
            offset = k.index(self._place()) + int(flat[0])
        for x, memory in zip(stored, outputs):
            k.store_stored(x, memory, offset, past)

    def _values(self, k: CpuKernel, plan: Plan, row: np.ndarray, own: np.ndarray, inner: Sequence[Any]) -> list[Any]:
        along = {self.outer[-1].names[-1]: Lane(row, self.rows)}
        along |= {name: Lane(own[:, i], 0) for i, (name, _) in enumerate(inner)}
        with k.along(along):
            return [k.to_storage(k.value(v, plan.places[v]), v.dtype) for v in plan.body.returns]

    def _merged(self, k: CpuKernel, before: Any, x: Any, mine: np.ndarray) -> Any:
        lanes = np.where(mine, self.lanes, 0) + np.arange(self.lanes)
        return k.shuffled(before, x, lanes.tolist())

    def _row(self, k: CpuKernel, outputs: Sequence[Memory]) -> None:
        """A row by itself, element by element."""
        for plan in self.plans:

            def element(plan: Plan = plan) -> None:
                values = [k.value(v, plan.places[v]) for v in plan.body.returns]
                for v, x, memory in zip(plan.body.returns, values, outputs):
                    k.store(x, memory, plan.places[v])

            inner_loops(k, [Fused([v]) for v in plan.kept_variables[self.first :]], element)

    def _can_stream(self, outputs: Sequence[Memory]) -> bool:
        """Whether results leave past the caches: they are large, and vectors begin with lines of memory."""
        plan = self.plans[0]
        index = self._place()
        inside = {*self.outer[-1].names, *(name for name, _ in plan.kept_variables[self.first :])}
        starts = [index.const, *(c for atom, c in index.terms if atom.args[0] not in inside)]
        whole = all(self.lanes * m.aval.dtype.size == LINE_BYTES for m in outputs)
        return whole and all(is_large(m.aval) for m in outputs) and not any(n % self.lanes for n in starts)
