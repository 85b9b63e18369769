"""Loop nests: how the elements of a kernel are spread over parallel units and inner loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.backends.lowering import Fused, divide
from smelt.ir.scalar import INDEX, Scalar
from smelt.ir.scalar_emitter import ScalarEmitter

from .kernel import CpuKernel

#: Enough parallel units for any number of threads that is likely.
UNITS = 64


@dataclass(frozen=True)
class Split:
    """The parallel dimension of a kernel: `extent` steps, dealt out in multiples of `grain`."""

    extent: int
    grain: int = 1


def share(
    k: ScalarEmitter, me: Scalar, count: Scalar, extent: int | Scalar, grain: int | Scalar
) -> tuple[Scalar, Scalar]:
    """Part number `me` of `count` of a range: lo and hi, multiples of `grain` but for the end."""
    end = extent if isinstance(extent, Scalar) else k.const(extent, INDEX)
    if count is k.const(1, INDEX):
        return k.const(0, INDEX), end
    units: int | Scalar
    if isinstance(extent, int) and isinstance(grain, int):
        units = -(-extent // grain)
    else:
        step = grain if isinstance(grain, Scalar) else k.const(grain, INDEX)
        units = k.op("arith.ceildivui", [end, step], INDEX)

    def bound(i: Scalar) -> Scalar:
        at = k.op("arith.divui", [i * units, count], INDEX)
        if isinstance(grain, Scalar) or grain > 1:
            at = k.op("arith.minui", [at * grain, end], INDEX)
        return at

    return bound(me), bound(me + 1)


@dataclass(frozen=True)
class Nest:
    """Loops over kept positions: the first `parallel` are one parallel dimension, with tiles of the last.

    `lanes`: the last loop is innermost, and is handed to the body as a range.
    `together`: tiles that follow each other, of one thread, are handed over as one, up to so many.
    """

    loops: tuple[Fused, ...]
    lanes: bool
    parallel: int
    tile: int  #: of the last loop, when lanes; its extent when it is not tiled
    together: int = 1

    @staticmethod
    def plan(loops: Sequence[Fused], lanes: bool, tile: int | None = None) -> Nest:
        """`tile` bounds what the body takes at once; by default it is tiled only to have enough units."""
        loops = tuple(loops)
        outer = loops[:-1] if lanes else loops
        count, units = 0, 1
        while count < len(outer) and units < UNITS:
            units *= outer[count].extent
            count += 1
        if not lanes or not loops:
            return Nest(loops, lanes and bool(loops), count, 1)
        last = loops[-1].extent
        if tile is None:
            tile = last
            if count == len(outer) and units < UNITS:
                tile = max(1024, -(-last * units // UNITS // 64) * 64)
        return Nest(loops, True, count, max(1, min(tile, last)))

    @property
    def flat(self) -> bool:
        """A single loop: its range is the parallel range."""
        return self.lanes and len(self.loops) == 1 and self.tile == self.loops[0].extent

    @property
    def tiles(self) -> int:
        return -(-self.loops[-1].extent // self.tile) if self.lanes else 1

    @property
    def split(self) -> Split:
        if self.lanes and len(self.loops) == 1 and self.tiles == 1:
            return Split(self.loops[0].extent, 64)
        outer = math.prod(loop.extent for loop in self.loops[: self.parallel])
        every = self.parallel == len(self.loops) - self.lanes
        return Split(outer * (self.tiles if every else 1))


def emit_nest(k: CpuKernel, nest: Nest, lo: Scalar, hi: Scalar, body: Callable[..., None]) -> None:
    """Run `body` at every position of the parallel range lo … hi; with lanes, ``body(first, last)``."""
    if nest.lanes and len(nest.loops) == 1 and nest.tiles == 1:
        body(lo, hi)
        return
    every = nest.parallel == len(nest.loops) - nest.lanes
    parts = [*nest.loops[: nest.parallel]]
    tiles = nest.tiles if every else 1

    def unit(at: Scalar) -> None:
        rest, tile = divide(k, at, tiles, bool(parts)) if tiles > 1 else (at, None)
        bounds = None if tile is None else _bounds(k, nest, tile, hi)
        outer(rest, lambda: _lanes(k, nest, bounds, body))

    def outer(rest: Scalar, inside: Callable[[], Any]) -> None:
        for i, fused in reversed(list(enumerate(parts))):
            rest, position = divide(k, rest, fused.extent, i > 0)
            k.bind(fused, position)
        inner_loops(k, list(nest.loops[nest.parallel : len(nest.loops) - nest.lanes]), inside)

    def line(at: Scalar) -> None:
        """The tiles of one position of the other loops that are this thread's."""
        start, size = at * tiles, k.const(tiles, INDEX)
        low = k.op("arith.maxui", [lo, start], INDEX) - start
        high = k.op("arith.minui", [hi - start, size], INDEX)

        def several(tile: Scalar) -> None:
            body(*_bounds(k, nest, tile, high))

        outer(at, lambda: k.loop(None, low, high, several, step=nest.together))

    if nest.together > 1 and tiles > 1 and parts:
        size = k.const(tiles, INDEX)
        k.expect(math.prod(loop.extent for loop in parts))
        k.loop(None, k.op("arith.divui", [lo, size], INDEX), k.op("arith.ceildivui", [hi, size], INDEX), line)
    else:
        k.expect(nest.split.extent)
        k.loop(None, lo, hi, unit, step=nest.together if tiles > 1 else 1)


def _bounds(k: CpuKernel, nest: Nest, tile: Scalar, end: Scalar) -> tuple[Scalar, Scalar]:
    """Where the tiles begin and end that are taken together from one on, of those before `end`."""
    first, extent = tile * nest.tile, nest.loops[-1].extent
    last = first + nest.tile
    if nest.together > 1:
        last = k.op("arith.minui", [tile + nest.together, end], INDEX) * nest.tile
    if extent % nest.tile:
        last = k.op("arith.minui", [last, k.const(extent, INDEX)], INDEX)
    return first, last


def _lanes(k: CpuKernel, nest: Nest, bounds: tuple[Scalar, Scalar] | None, body: Callable[..., None]) -> None:
    if not nest.lanes:
        body()
    elif bounds is not None:
        body(*bounds)
    elif nest.tiles == 1:
        body(k.const(0, INDEX), k.const(nest.loops[-1].extent, INDEX))
    else:
        end, step = nest.loops[-1].extent, nest.tile * nest.together

        def tile(at: Scalar) -> None:
            last = at + step
            if end % step:
                last = k.op("arith.minui", [last, k.const(end, INDEX)], INDEX)
            body(at, last)

        k.loop(None, k.const(0, INDEX), k.const(end, INDEX), tile, step=step)


def inner_loops(k: CpuKernel, loops: Sequence[Fused], body: Callable[[], Any]) -> None:
    """Nested loops that carry nothing."""
    if not loops:
        body()
        return
    first, *rest = loops
    k.loop(first, k.const(0, INDEX), k.const(first.extent, INDEX), lambda at: inner_loops(k, rest, body))


def reduce_loops(
    k: CpuKernel,
    loops: Sequence[Fused],
    body: Callable[[list[Scalar]], list[Scalar]],
    carries: Sequence[Scalar],
    bounds: dict[int, tuple[Scalar, Scalar]] | None = None,
) -> list[Scalar]:
    """Nested loops that carry accumulators; `bounds` narrows loops by their number."""

    def level(n: int, carried: Sequence[Scalar]) -> list[Scalar]:
        if n == len(loops):
            return body(list(carried))
        low, high = (bounds or {}).get(n) or (k.const(0, INDEX), k.const(loops[n].extent, INDEX))
        return k.loop(loops[n], low, high, lambda at, *inner: level(n + 1, inner), carried)

    return level(0, carries)
