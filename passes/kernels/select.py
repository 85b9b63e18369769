"""Select: where few of the first or last elements of a sort are wanted, tiles are sorted, and the best of each kept.

Before::

    %0 = "smelt.sort"(%x) {axis = 0 : i64} : (tensor<100000xf32>) -> tensor<100000xf32>
    %1 = "smelt.slice"(%0) {start = array<i64: 99990>, ...} : (tensor<100000xf32>) -> tensor<10xf32>

After, in words::

    best = sort(reshape(%x, [50, 2000]), axis=1)[:, -10:]
    %1 = sort(reshape(best, [500]))[-10:]

A row is read and written about once, however long it is; a merge sort does that for each doubling of its runs. If the
tiles leave a remainder, its best elements follow those of the tiles.
Sorts keep the order of equal elements, and tiles stand in the order of their elements, so that the result is the same
bit by bit; argsort, too, whose positions go along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import dtypes
from smelt.ir.builder import Builder, Function, OpView, Value, read_function
from smelt.ir.ops.indexing import take_along
from smelt.ir.ops.movement import Reverse, Slice
from smelt.ir.ops.scan_sort import ArgSort, Sort

from ..extract import reassemble
from ..registry import Pass, register_pass
from ..rewrite import unplaced_functions
from .analysis import users_of


@register_pass("select")
@dataclass(frozen=True)
class SelectPass(Pass):
    """Replace sorts with only few elements that are wanted.

    Attributes:
        tile: so many elements at most, and more than a quarter, are sorted together.
        most: so many wanted elements at most; rows have at least 64 times as many.
        rows: of so many tiles at least; ragged: where no such tile divides a row, which is copied then.
    """

    tile: int = 2048
    most: int = 128
    rows: int = 8
    ragged: int = 32

    def run(self, module: Any, statistics: Counter) -> None:
        for operation in unplaced_functions(module):
            function = read_function(operation)
            users = users_of(function)
            found = [s for op in function.ops if (s := self._selection(op, users)) is not None]
            if found:
                self._rewrite(module, function, found)
                statistics["sorts"] += len(found)

    def _tile(self, n: int) -> int:
        """Of how many elements the tiles of a row are; 0 where it is sorted whole."""
        if n < self.rows * self.tile:
            return 0
        whole = next((t for t in range(self.tile, self.tile // 4, -1) if n % t == 0), 0)
        return whole or (self.tile if n >= self.ragged * self.tile else 0)

    def _selection(self, op: OpView, users: dict[Value, list[OpView | None]]) -> Selection | None:
        """The sort with all that reads it, where that is a few of its elements."""
        if not isinstance(op.op, (Sort, ArgSort)):
            return None
        axis, n = op.attrs["axis"], op.operands[0].shape[op.attrs["axis"]]
        if not self._tile(n) or not op.operands[0].aval.size:
            return None
        slices, reversed_slices, turned = [], [], []
        for user in users.get(op.results[0], []):
            if user is not None and isinstance(user.op, Slice):
                slices.append(user)
            elif user is not None and isinstance(user.op, Reverse) and user.attrs["axes"] == (axis,):
                readers = users.get(user.results[0], [])
                if any(r is None or not isinstance(r.op, Slice) for r in readers):
                    return None
                turned.append(user)
                reversed_slices += [r for r in readers if r is not None]
            else:
                return None
        wanted = [(s.attrs["start"][axis], s.attrs["stop"][axis]) for s in slices]
        wanted += [(n - s.attrs["stop"][axis], n - s.attrs["start"][axis]) for s in reversed_slices]
        if not wanted:
            return None
        first, last = max(stop for _, stop in wanted), n - min(start for start, _ in wanted)
        count = min(first, last)
        if not 0 < count <= min(self.most, n // 64, self.tile // 8):
            return None
        return Selection(op, count, last <= first, tuple(turned), (*slices, *reversed_slices))

    def _rewrite(self, module: Any, function: Function, found: Sequence[Selection]) -> None:
        def emit(b: Builder, item: tuple[Selection, OpView], env: dict[Value, Value]) -> None:
            selection, op = item
            x = env[op.operands[0]]
            with b.at(op.location):
                if op is selection.sort:
                    made = self._selected(b, x, selection)
                elif op in selection.turned:
                    made = b.reverse(x, axes=op.attrs["axes"])
                else:
                    made = selection.part(b, x, op)
            env[op.results[0]] = made

        replaced = {op: s for s in found for op in (s.sort, *s.turned, *s.slices)}
        reassemble(module, function, [(replaced[op], op) if op in replaced else op for op in function.ops], emit)

    def _selected(self, b: Builder, x: Value, selection: Selection) -> Value:
        """The first or last elements of the sorted rows, or where they are."""
        axis, count, where = selection.axis, selection.count, isinstance(selection.sort.op, ArgSort)
        order: Value | None = None
        while self._tile(x.shape[axis]):
            x, order = self._round(b, x, order, selection)
        if not where:
            return selection.best(b, b.sort(x, axis=axis), axis, count)
        assert order is not None
        return take_along(b, order, selection.best(b, b.argsort(x, axis=axis), axis, count), axis)

    def _round(self, b: Builder, x: Value, order: Value | None, selection: Selection) -> tuple[Value, Value | None]:
        """The best of each tile, and of what is left over, in the order in which these stand; where they were."""
        axis, count, n = selection.axis, selection.count, x.shape[selection.axis]
        size = self._tile(n)
        tiles = n // size
        ends = (tiles * size, n) if n % size else (n,)
        found, places, begin = [], [], 0
        for end in ends:
            part = _piece(b, x, axis, begin, end)
            shape, along = list(part.shape), axis
            if end == tiles * size:
                shape[axis : axis + 1], along = [tiles, size], axis + 1
                part = b.reshape_to(part, tuple(shape))
            kept = min(count, part.shape[along])
            flat = list(x.shape)
            flat[axis] = kept * (tiles if along != axis else 1)
            if not isinstance(selection.sort.op, ArgSort):
                found.append(b.reshape_to(selection.best(b, b.sort(part, axis=along), along, kept), tuple(flat)))
            else:
                at = selection.best(b, b.argsort(part, axis=along), along, kept)
                found.append(b.reshape_to(take_along(b, part, at, along), tuple(flat)))
                if along != axis:
                    tile = b.iota(shape=at.shape, axis=axis, dtype=dtypes.uint32)
                    at = at + tile * b.full(at.shape, size, dtypes.uint32)
                at = b.reshape_to(at, tuple(flat))
                if begin:
                    at = at + b.full(at.shape, begin, dtypes.uint32)
                places.append(at if order is None else take_along(b, order, at, axis))
            begin = end
        joined = found[0] if len(found) == 1 else b.concatenate(*found, axis=axis)
        if not places:
            return joined, None
        return joined, places[0] if len(places) == 1 else b.concatenate(*places, axis=axis)


@dataclass(frozen=True)
class Selection:
    """A sort with only few elements that are wanted.

    Attributes:
        count: how many at most. last: of the last elements, not the first.
        turned: ops that reverse it. slices: of the sort and of these, all that reads them.
    """

    sort: OpView
    count: int
    last: bool
    turned: tuple[OpView, ...]
    slices: tuple[OpView, ...]

    @property
    def axis(self) -> int:
        return int(self.sort.attrs["axis"])

    def best(self, b: Builder, x: Value, axis: int, count: int) -> Value:
        """The first, or last, `count` elements along an axis."""
        n = x.shape[axis]
        return _piece(b, x, axis, n - count if self.last else 0, n if self.last else count)

    def part(self, b: Builder, x: Value, op: OpView) -> Value:
        """The elements of a slice, of the elements that there still are."""
        n = self.sort.operands[0].shape[self.axis]
        is_turned = any(op.operands[0] == t.results[0] for t in self.turned)
        by = n - self.count if self.last != is_turned else 0
        start, stop = list(op.attrs["start"]), list(op.attrs["stop"])
        start[self.axis], stop[self.axis] = start[self.axis] - by, stop[self.axis] - by
        return b.slice(x, start=tuple(start), stop=tuple(stop), stride=op.attrs["stride"])


def _piece(b: Builder, x: Value, axis: int, start: int, stop: int) -> Value:
    if (start, stop) == (0, x.shape[axis]):
        return x
    begin, end = [0] * x.ndim, list(x.shape)
    begin[axis], end[axis] = start, stop
    return b.slice(x, start=tuple(begin), stop=tuple(end), stride=(1,) * x.ndim)
