"""Loops cut into blocks of about a given number of positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.backends.lowering import Fused, divide
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import CpuKernel

#: Where the stepped loop of a block starts and ends.
Bounds = tuple[Scalar, Scalar]


@dataclass(frozen=True)
class Blocks:
    """Nested loops of which the outer ones stand still in a block, one goes by steps, and the inner ones run whole.

    So positions in a block count up without gaps, and no position is ever divided.
    """

    outer: tuple[Fused, ...]
    stepped: Fused
    step: int
    inner: tuple[Fused, ...]

    @staticmethod
    def plan(loops: Sequence[Fused], size: int, multiple: int = 1) -> Blocks:
        """Blocks of at most `size` positions, unless the innermost loop's step of `multiple` is more."""
        count, inside = len(loops), 1
        while count and inside * loops[count - 1].extent <= size:
            count -= 1
            inside *= loops[count].extent
        if not count:
            return Blocks((), Fused([]), 1, tuple(loops))
        stepped = loops[count - 1]
        step = max(1, size // inside)
        step = -(-stepped.extent // -(-stepped.extent // step))  # of about the same size
        if inside == 1:
            step = min(-(-step // multiple) * multiple, stepped.extent)
        return Blocks(tuple(loops[: count - 1]), stepped, step, tuple(loops[count:]))

    @staticmethod
    def whole_of(loops: Sequence[Fused]) -> Blocks:
        """One block of all positions."""
        return Blocks((), Fused([]), 1, tuple(loops))

    def whole(self, k: CpuKernel) -> Bounds:
        """The bounds of the only block."""
        return self._bounds(k, k.const(0, INDEX))

    @property
    def variables(self) -> list[tuple[str, int]]:
        """Those of all loops, outermost first."""
        return [v for loop in (*self.outer, self.stepped, *self.inner) for v in loop.variables]

    @property
    def loops(self) -> list[Fused]:
        """All loops that move in a block, outermost first."""
        return [loop for loop in (self.stepped, *self.inner) if loop.variables]

    @property
    def _inside(self) -> int:
        return math.prod(loop.extent for loop in self.inner)

    @property
    def capacity(self) -> int:
        """Positions of a block, at most."""
        return self.step * self._inside

    @property
    def are_whole(self) -> bool:
        """Whether all blocks have as many positions."""
        return self.stepped.extent % self.step == 0

    @property
    def _steps(self) -> int:
        return -(-self.stepped.extent // self.step)

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return math.prod(loop.extent for loop in self.outer) * self._steps

    def enter(self, k: CpuKernel, at: Scalar) -> Bounds:
        """Let the outer loops stand where block number `at` is."""
        at, step = divide(k, at, self._steps, bool(self.outer))
        for i, loop in reversed(list(enumerate(self.outer))):
            at, position = divide(k, at, loop.extent, i > 0)
            k.bind(loop, position)
        return self._bounds(k, step * self.step)

    def _bounds(self, k: CpuKernel, first: Scalar) -> Bounds:
        if self._steps == 1:
            return k.const(0, INDEX), k.const(self.stepped.extent, INDEX)
        last = first + self.step
        if self.stepped.extent % self.step:
            last = k.op("arith.minui", [last, k.const(self.stepped.extent, INDEX)], INDEX)
        return first, last

    def run_numbered(self, k: CpuKernel, body: Callable[[Bounds, Scalar], None]) -> None:
        """Run `body` for every block in order, with its number."""

        def block(bounds: Bounds) -> None:
            number = k.const(0, INDEX)
            for at, loop in zip(places, self.outer):
                number = number * loop.extent + at
            step = k.op("arith.divui", [bounds[0], k.const(self.step, INDEX)], INDEX)
            body(bounds, number if self._steps == 1 else number * self._steps + step)

        places: list[Scalar] = []
        self.run(k, block, places=places)

    def run(
        self, k: CpuKernel, body: Callable[[Bounds], None], span: Bounds | None = None,
        places: list[Scalar] | None = None,
    ) -> None:  # fmt: skip
        """Run `body` for every block in order; with `span`, for what lies in it, from a block's start on.

        Args:
            places: receives where the outer loops stand, outermost first.
        """

        def level(i: int) -> None:
            def inside(at: Scalar) -> None:
                if places is not None:
                    places.append(at)
                level(i + 1)

            if i < len(self.outer):
                k.loop(self.outer[i], k.const(0, INDEX), k.const(self.outer[i].extent, INDEX), inside)
            elif self._steps == 1:
                body(self._bounds(k, k.const(0, INDEX)))
            else:
                first, end = span or (k.const(0, INDEX), k.const(self.stepped.extent, INDEX))

                def block(at: Scalar) -> None:
                    start, stop = self._bounds(k, at)
                    body((start, stop if span is None else k.op("arith.minui", [stop, end], INDEX)))

                k.loop(None, first, end, block, step=self.step)

        level(0)

    def first(self, k: CpuKernel, bounds: Bounds) -> Scalar:
        """Where a block begins, of a single loop."""
        return bounds[0] if self.stepped.variables else k.const(0, INDEX)

    def elements(self, bounds: Bounds) -> Scalar:
        """How many positions a block has."""
        first, last = bounds
        return (last - first) * self._inside

    def each(self, k: CpuKernel, bounds: Bounds, body: Callable[[Scalar], None]) -> None:
        """Run `body` at every position of a block, with its number there."""
        first, last = bounds

        def level(i: int, before: Scalar) -> None:
            if i == len(self.inner):
                body(before)
                return
            loop = self.inner[i]
            end = k.const(loop.extent, INDEX)
            k.loop(loop, k.const(0, INDEX), end, lambda at: level(i + 1, before * loop.extent + at))

        k.loop(self.stepped, first, last, lambda at: level(0, at - first))
