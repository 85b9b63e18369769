"""Where in the depth of a product the lanes of a vector are, when what is multiplied is computed in vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.backends.contraction import Operand
from smelt.backends.lowering import Fused
from smelt.ir.scalar import INDEX, Scalar

from ..kernel import CpuKernel
from ..vectors import Lane

#: Elements of a word, at most, and lanes, at least.
MOST_INSIDE, FEWEST_LANES = 32, 4

Variable = tuple[str, int]


@dataclass(frozen=True)
class DepthLanes:
    """Lanes are neighbours in what most bytes are read from. Where elements of the depth lie inside of one of those, as
    in a word of packed numbers, each vector of words gives several vectors of elements.

    Attributes:
        loops: with the steps that they make, outermost first.
        inside: variables of the elements of a word.
        lanes: variables, and how many of their positions are in a vector.
    """

    loops: tuple[tuple[Fused, int], ...]
    inside: tuple[Variable, ...]
    lanes: tuple[Variable, ...]

    @staticmethod
    def of(operand: Operand, depth: Fused, most: int) -> DepthLanes | None:
        """At most `most` lanes along the variables of a depth; None if the variables cannot be divided so."""
        if not operand.loads:
            return None
        variables, inside = operand.words(depth)
        if math.prod(extent for _, extent in inside) > MOST_INSIDE:
            return None
        while most >= FEWEST_LANES:
            cut = _cut(variables, most)
            if cut is not None:
                loops, lanes = cut
                return DepthLanes(tuple(loops), tuple(inside), tuple(lanes))
            most //= 2
        return None

    @property
    def count(self) -> int:
        """Lanes of a vector."""
        return math.prod(extent for _, extent in self.lanes)

    @property
    def vectors(self) -> int:
        """Vectors of elements that one of words gives."""
        return math.prod(extent for _, extent in self.inside)

    @contextmanager
    def vector(self, k: CpuKernel) -> Iterator[None]:
        """Scalars are vectors of elements, from where the loops stand on."""
        places = np.array(list(itertools.product(*(range(extent) for _, extent in self.lanes))), np.int64)
        looped = {name for loop, _ in self.loops for name in loop.names}
        for variable in self.lanes:
            if variable[0] not in looped:
                k.bind(Fused([variable]), k.const(0, INDEX))
        multiples = {name: step for loop, step in self.loops for name in loop.names}
        with k.along({name: Lane(places[:, i], multiples.get(name, 0)) for i, (name, _) in enumerate(self.lanes)}):
            yield

    def start_inside(self, k: CpuKernel) -> None:
        """Let the loops stand at the first element of a word."""
        for variable in self.inside:
            k.bind(Fused([variable]), k.const(0, INDEX))

    def start(self, k: CpuKernel) -> None:
        """Let the loops, and the lanes, stand at their first positions, too."""
        self.start_inside(k)
        for variable in (*(v for loop, _ in self.loops for v in loop.variables), *self.lanes):
            k.bind(Fused([variable]), k.const(0, INDEX))

    def each_inside(self, k: CpuKernel, body: Callable[[int], Any]) -> None:
        """Run `body` for every element of a word, one by one, with its number."""
        for n, places in enumerate(itertools.product(*(range(extent) for _, extent in self.inside))):
            for variable, place in zip(self.inside, places):
                k.bind(Fused([variable]), k.const(place, INDEX))
            k.scopes.append({})
            body(n)
            k.scopes.pop()

    def each_element(self, k: CpuKernel, body: Callable[[Scalar], None], by_word: bool = False) -> None:
        """Loop over the elements of a vector of words, in the order of `each_inside` and lanes, with their number.

        Args:
            by_word: one word after the other.
        """
        looped = {name: (loop, k.loops[name][1]) for loop, _ in self.loops for name in loop.names}

        def level(variables: Sequence[Variable], before: Scalar) -> None:
            if not variables:
                body(before)
                return
            (name, extent), *rest = variables
            loop, start = looped.get(name, (Fused([variables[0]]), k.const(0, INDEX)))

            def step(i: Scalar) -> None:
                k.bind(loop, start + i)
                level(rest, before * extent + i)

            k.loop(None, k.const(0, INDEX), k.const(extent, INDEX), step)
            if name in looped:
                k.bind(loop, start)

        level([*self.lanes, *self.inside] if by_word else [*self.inside, *self.lanes], k.const(0, INDEX))


def _cut(variables: Sequence[Variable], lanes: int) -> tuple[list[tuple[Fused, int]], list[Variable]] | None:
    """The loops, and the variables that make up `lanes` lanes."""
    outer, inner = list(variables), list[Variable]()
    while lanes > 1:
        if not outer:
            return None
        name, extent = outer.pop()
        if lanes % extent == 0:
            inner.insert(0, (name, extent))
            lanes //= extent
        elif extent % lanes == 0:
            inner.insert(0, (name, lanes))
            loops = [(Fused([v]), 1) for v in outer]
            return [*loops, (Fused([(name, extent)]), lanes)], inner
        else:
            return None
    return [(Fused([v]), 1) for v in outer], inner
