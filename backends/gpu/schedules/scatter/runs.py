"""Sorted updates of a scatter: each run of equal targets in order.

In `set`, the last of a run is written. Otherwise a thread adds up what a run has in one block of positions. A run
that is in one block is applied at once. Others leave a total for each of their blocks: of the run that a block
begins with and of the one that it ends with, so that there are two for each block, with their targets in order
again. Blocks of these totals follow, until few are left; then the first of each run applies it::

    1,000,000 updates → 31,250 totals → 978 → 32
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Fused
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.dtypes import DType
from smelt.ir.index import linearize
from smelt.ir.ops.reduce import highest, lowest
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ...kernel import GpuKernel, GpuModule
from ..parts import Part, plus, split, start_part, times
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, threads_for
from .scattering import Scattering, dropped

#: Positions of a block, a power of two: what one thread adds up, at most.
BLOCK = 64
#: Up to so many updates, the first of a run applies all of it.
FEW = 128
#: Neighbouring elements of a window that a thread takes, at most: it looks for the end of a run once for all of them.
MOST_ELEMENTS = 4


@dataclass(frozen=True)
class Ordered:
    """What is to be applied, in the order of targets.

    Attributes:
        keys: targets. order: which updates these are; values: or totals of them, each as long as a window.
    """

    count: int
    keys: Scratch
    order: Scratch | None = None
    values: Scratch | None = None

    @property
    def operands(self) -> list[tuple[str, Value | Scratch]]:
        found: list[tuple[str, Value | Scratch]] = [("targets", self.keys)]
        if self.order is not None:
            found.append(("order", self.order))
        if self.values is not None:
            found.append(("totals", self.values))
        return found

    @property
    def nbytes(self) -> int:
        return sum(x.aval.nbytes for _, x in self.operands)


def apply_runs(
    module: GpuModule, what: Scattering, items: Fused, whole: bool, keys: Scratch, order: Scratch,
    scratch: ScratchPlan,
) -> list[ScheduledKernel]:  # fmt: skip
    """The kernels that apply sorted updates.

    Args:
        items: the loop over updates, or over their elements. whole: updates are whole windows.
        keys, order: sorted targets, and where they came from.
    """
    left = Ordered(items.extent, keys, order)
    steps = []
    while what.mode != "set" and left.count > FEW:
        blocks = -(-left.count // BLOCK)
        window = what.updates.aval.size // items.extent
        held = compute_dtype(what.x.dtype)
        targets = scratch.take(Aval((2 * blocks,), keys.aval.dtype))
        totals = scratch.take(Aval((2 * blocks * window,), held))
        following = Ordered(2 * blocks, targets, None, totals)
        steps.append(Runs(module, what, items, whole, left, following).step())
        left = following
    return [*steps, Runs(module, what, items, whole, left, None).step()]


class Runs:
    """One kernel.

    Args:
        given: what it applies. totals: what it leaves to the next kernel; None for the last one.

    Attributes:
        targets, source, out: buffers of what is given, and of the result. left: of targets and totals that it leaves.
        width: elements of a window that a thread takes.
    """

    def __init__(
        self, module: GpuModule, what: Scattering, items: Fused, whole: bool, given: Ordered, totals: Ordered | None
    ):
        self.what, self.items, self.given, self.totals = what, items, given, totals
        self.window = what.axes([what.lead + a for a in range(what.x.ndim)] if whole else [])
        self.width = math.gcd(self.window.extent, MOST_ELEMENTS)
        reads = [(what.updates, what.at)] if given.order is not None else []
        extra = [*given.operands, *(totals.operands if totals is not None else []), ("out", what.out)]
        names = [(f"next_{n}" if i >= len(given.operands) and n != "out" else n, x) for i, (n, x) in enumerate(extra)]
        self.part: Part = start_part(module, what.body, "_runs" if totals is not None else "", reads, names)
        self.k: GpuKernel = self.part.k
        self.targets, self.source, *self.left, self.out = self.part.extra

    def step(self) -> ScheduledKernel:
        k, what, given = self.k, self.what, self.given
        total = given.count * self.window.extent
        threads, groups = threads_for(k, total // self.width)
        k.grid_stride(None, total // self.width, threads, groups, self._item)
        held = given.nbytes + (self.totals.nbytes if self.totals is not None else 0)
        if given.order is not None:
            return what.finish(self.part, "scatter", groups, threads, held)
        return self.part.finish("scatter", groups, threads, held, 0, total)

    # What stands where

    def _key(self, i: Scalar) -> Scalar:
        return self.k.read(self.targets, i)

    def _each(self, element: Scalar, of: Callable[[Scalar], Scalar]) -> list[Scalar]:
        """What ``of(e)`` gives for a thread's elements e, at which the window stands."""
        found = []
        for j in range(self.width):
            at = element + j if j else element
            with self.k.at_position(self.window, at):
                found.append(of(at))
        return found

    def _updates(self, i: Scalar, element: Scalar) -> list[Scalar]:
        """The elements of what is at place i."""
        k = self.k
        if self.given.order is None:
            first = times(i, self.window.extent)
            return self._each(element, lambda e: k.read(self.source, plus(first, e)))
        with k.at_position(self.items, k.convert(k.read(self.source, i), INDEX)):
            return self._each(element, lambda _: k.value(self.what.updates, self.what.at))

    def _combined(self, xs: Sequence[Scalar], ys: Sequence[Scalar]) -> list[Scalar]:
        return [self.what.combine(self.k, x, y) for x, y in zip(xs, ys)]

    def _differs(self, i: Scalar, key: Scalar, forward: bool) -> Scalar:
        """Whether the neighbour of i has another target."""
        k = self.k
        return k.if_(
            i.eq(self.given.count - 1 if forward else 0),
            lambda: k.const(True, dtypes.bool_),
            lambda: self._key(i + 1 if forward else i - 1).ne(key),
            dtypes.bool_,
        )

    def _goes_on(self, i: Scalar, key: Scalar, in_block: bool = False) -> Scalar:
        """Whether the run of a key still goes on at place i; in_block: of the same block."""
        k = self.k
        there = k.below(i, self.given.count)
        if in_block:
            there = k.logical_and(there, (i & (BLOCK - 1)).ne(0))
        return k.if_(there, lambda: self._key(i).eq(key), lambda: k.const(False, dtypes.bool_), dtypes.bool_)

    def _places(self, key: Scalar, element: Scalar) -> list[Scalar]:
        """The offsets of the window's elements in the result."""
        k, what = self.k, self.what
        with k.named("target"):
            first = k.convert(key, INDEX)
            if self.window.extent == 1:
                return [first]
            within = linearize(what.at[what.lead :], what.x.shape)
            return self._each(element, lambda _: first + k.index(within))

    def _write(self, xs: Sequence[Scalar], places: Sequence[Scalar]) -> None:
        for x, place in zip(xs, places):
            self.k.write(x, self.out, place)

    # What a thread does

    def _item(self, n: Scalar) -> None:
        k = self.k
        i, element = split(k, n, self.window.extent // self.width, "i", "element", self.given.count > 1)
        element = times(element, self.width)
        with k.named("key"):
            key = self._key(i)
        if self.totals is not None:
            self._piece(i, element, key)
        else:
            forward = self.what.mode == "set"
            k.when(
                key.ne(dropped(k, key.dtype)),
                lambda: k.when(self._differs(i, key, forward), lambda: self._apply(i, element, key)),
            )

    def _apply(self, i: Scalar, element: Scalar, key: Scalar) -> None:
        """All of a run at once; in `set`, its last update."""
        k = self.k
        places = self._places(key, element)
        if self.what.mode == "set":
            self._write(self._updates(i, element), places)
            return
        with k.named("total"):
            first = self._combined([k.read(self.out, place) for place in places], self._updates(i, element))
        _, totals = self._sum(i, element, key, first, in_block=False)
        self._write(totals, places)

    def _sum(
        self, i: Scalar, element: Scalar, key: Scalar, first: Sequence[Scalar], in_block: bool
    ) -> tuple[Scalar, list[Scalar]]:
        """Where a run ends that includes place i, and its totals where those of place i are `first`."""

        def one(at: Scalar, *totals: Scalar) -> list[Scalar]:
            return [at + 1, *self._combined(totals, self._updates(at, element))]

        names = ["next", *["total"] * len(first)]
        end, *totals = self.k.while_(
            lambda at, *_: self._goes_on(at, key, in_block), one, [i + 1, *first], names
        )  # fmt: skip
        return end, totals

    def _piece(self, i: Scalar, element: Scalar, key: Scalar) -> None:
        """What a run has in one block: applied if that is all of it, else a total."""
        k = self.k
        with k.named("begins"):
            begins = self._differs(i, key, False)
        with k.named("block_begins"):
            block_begins = (i & (BLOCK - 1)).eq(0)
        kept = key.ne(dropped(k, key.dtype))
        here = k.logical_and(kept, k.logical_or(begins, block_begins))
        k.when(here, lambda: self._piece_of_run(i, element, key, begins))
        k.when(block_begins, lambda: self._block(i, element, key, begins))

    def _piece_of_run(self, i: Scalar, element: Scalar, key: Scalar, begins: Scalar) -> None:
        k = self.k
        with k.named("total"):
            first = self._updates(i, element)
        end, totals = self._sum(i, element, key, first, in_block=True)
        with k.named("all"):
            is_all = k.logical_and(begins, ~self._goes_on(end, key))

        def apply() -> None:
            places = self._places(key, element)
            self._write(self._combined([k.read(self.out, place) for place in places], totals), places)

        k.when(is_all, apply)
        k.when(~is_all, lambda: self._leave(self._slot(i, begins), element, totals))

    def _slot(self, i: Scalar, last: Scalar) -> Scalar:
        """Where the total of the run goes that the block of place i begins with, or of the last one in it."""
        k = self.k
        with k.named("slot"):
            return k.op("arith.divui", [i, k.const(BLOCK, INDEX)], INDEX) * 2 + k.convert(last, INDEX)

    def _leave(self, slot: Scalar, element: Scalar, totals: Sequence[Scalar]) -> None:
        first = plus(times(slot, self.window.extent), element)
        for j, total in enumerate(totals):
            self.k.write(total, self.left[1], first + j if j else first)

    def _block(self, i: Scalar, element: Scalar, key: Scalar, begins: Scalar) -> None:
        """The targets of a block's two totals, and a total that changes nothing where there is none."""
        k, count = self.k, self.given.count
        with k.named("last"):
            last = i + (BLOCK - 1)
            if count % BLOCK:
                last = k.op("arith.minui", [last, k.const(count - 1, INDEX)], INDEX)
        with k.named("last_key"):
            last_key = self._key(last)
        slots = [self._slot(i, k.const(at, dtypes.bool_)) for at in (False, True)]

        def write_keys() -> None:
            for slot, x in zip(slots, (key, last_key)):
                k.write(x, self.left[0], slot)

        if self.window.extent > 1:
            k.when(element.eq(0), write_keys)
        else:
            write_keys()
        nothing = [neutral(k, self.what)] * self.width
        k.when(begins, lambda: self._leave(slots[0], element, nothing))
        with k.named("has_last"):
            own = k.logical_or(last_key.ne(key), begins)
            has_last = k.logical_and(own, self._goes_on(last + 1, last_key))
        k.when(~has_last, lambda: self._leave(slots[1], element, nothing))


def neutral(k: GpuKernel, what: Scattering) -> Scalar:
    """What changes no element that it is combined with."""
    dtype: DType = what.x.dtype
    if what.mode == "add":  # -0 + 0 is 0, but 0 + -0 is 0 too
        zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0)
        return k.const(zero, dtype)
    if what.mode == "mul":
        return k.const(1, dtype)
    return k.const(lowest(dtype) if what.mode == "max" else highest(dtype), dtype)
