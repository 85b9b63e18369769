"""What elements of words have in common, computed for many groups at once, as scales that are floats of eight bits.

A vector of words has a scale or a few, each in several lanes: to make them there is to make each as often. Before words
are met, all scales of a few columns are made, a lane each, and lie in L1 until they are wanted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smelt.backends.contraction import Product, only_moves
from smelt.backends.lowering import Fused
from smelt.ir.builder import Value
from smelt.ir.index import Index, names_of
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.analysis import collect_reads

from ..kernel import CpuKernel, Memory
from ..vectors import Lane
from .depth_lanes import DepthLanes
from .factors import Factors
from .tiles import lanes_of, pitch_of

#: Bytes of what the groups of some columns have in common: beside words and rows in L1.
BYTES = 8 * 1024


@dataclass(frozen=True)
class Grouped:
    """Gains and offsets of all groups of a few columns.

    Attributes:
        group: the variable of the depth that counts groups, and how many there are.
        lanes: groups that are computed at once.
        gains, offsets: in lines of length `pitch`, one for each column; no offsets where nothing is added.
    """

    k: CpuKernel
    factors: Factors
    cut: DepthLanes
    group: tuple[str, int]
    lanes: int
    pitch: int
    gains: Memory
    offsets: Memory | None

    @staticmethod
    def of(
        k: CpuKernel, product: Product, factors: Factors, cut: DepthLanes, columns: int, has_offset: bool
    ) -> Grouped | None:
        """None where each is read as it is, where they are too many, or of no single variable of the depth.

        Args:
            has_offset: whether offsets are wanted.
        """
        found = _group_of(product, factors)
        if found is None or not any(_is_computed(u) for u, _ in factors.shared):
            return None
        group, lanes = found
        pitch = pitch_of(group[1], factors.dtype)
        if lanes < 2 or columns * pitch * factors.dtype.size > BYTES:
            return None
        gains = k.scratch(columns * pitch, factors.dtype)
        offsets = k.scratch(columns * pitch, factors.dtype) if has_offset else None
        return Grouped(k, factors, cut, group, lanes, pitch, gains, offsets)

    def fill(self, column: Fused, columns: Sequence[Scalar]) -> None:
        """Compute those of some columns."""
        k, (name, extent) = self.k, self.group
        loop, zero = Fused([self.group]), k.const(0, INDEX)
        self.cut.start(k)

        def some(at: Scalar) -> None:
            for j, c in enumerate(columns):
                lane = {name: Lane(np.arange(self.lanes), self.lanes)}
                with k.at_position(column, c), k.at_position(loop, at), k.along(lane):
                    k.store_vector(self.factors.gain(k), self.gains, at + j * self.pitch)
                    if self.offsets is not None:
                        k.store_vector(self.factors.offset(k), self.offsets, at + j * self.pitch)

        k.loop(None, zero, k.const(extent, INDEX), some, step=self.lanes)

    def read(self, memory: Memory, j: int) -> Scalar:
        """What the words where the loops stand have of one of the columns, a lane each."""
        k, (name, extent) = self.k, self.group
        places = np.array(list(itertools.product(*(range(n) for _, n in self.cut.lanes))), np.int64)
        names = [lane for lane, _ in self.cut.lanes]
        steps = places[:, names.index(name)] if name in names else np.zeros(len(places), np.int64)
        looped = any(name in loop.names for loop, _ in self.cut.loops)
        with k.vectors(0):
            at = k.index(Index.variable(name, extent)) if looped else k.const(0, INDEX)
            at = at + j * self.pitch
        with k.vectors(self.cut.count):
            return k.chosen(memory, at, steps)


@dataclass(frozen=True)
class GroupedOffsets:
    """Offsets by sums of a row's elements: one product for a group, and not one for each of its words.

    Attributes:
        group, lanes: as of `Grouped`.
        words: of a group.
        sums: of the elements of each group, in lines of length `pitch`, one for each row.
    """

    k: CpuKernel
    factors: Factors
    cut: DepthLanes
    group: tuple[str, int]
    lanes: int
    words: int
    pitch: int
    sums: Memory

    @staticmethod
    def of(k: CpuKernel, product: Product, factors: Factors, cut: DepthLanes, rows: int) -> GroupedOffsets | None:
        """None where nothing is added, or words that follow each other have no offset in common."""
        found = _group_of(product, factors) if factors.has_offset else None
        outermost = next((v for v in product.depth.variables if v[1] > 1), None)
        if found is None or found[0] != outermost or found[1] < 2:
            return None
        group, lanes = found
        words = product.depth.extent // cut.vectors // group[1]
        pitch = pitch_of(group[1], factors.dtype)
        return GroupedOffsets(k, factors, cut, group, lanes, words, pitch, k.scratch(rows * pitch, factors.dtype))

    def add_up(self, row: Scalar, met: Memory, first: Scalar) -> None:
        """Take a row's sums of elements that meet one word, which lie from a place on."""
        k, zero = self.k, self.k.const(0, INDEX)

        def group(g: Scalar) -> None:
            def word(w: Scalar, total: Scalar) -> list[Scalar]:
                return [total + k.read(met, first + g * self.words + w)]

            (total,) = k.for_(zero, k.const(self.words, INDEX), word, [k.const(0, self.factors.dtype)])
            k.write(total, self.sums, row * self.pitch + g)

        k.loop(None, zero, k.const(self.group[1], INDEX), group)

    def products(self, first: Scalar, rows: int, column: Fused, columns: Sequence[Scalar]) -> list[Scalar]:
        """What some rows from the first on have of some columns' offsets, row by row, in lanes that are to be added."""
        k, (name, extent) = self.k, self.group
        loop, zero = Fused([self.group]), k.const(0, INDEX)
        self.cut.start(k)

        def some(at: Scalar, *before: Scalar) -> list[Scalar]:
            found = list(before)
            for j, c in enumerate(columns):
                lane = {name: Lane(np.arange(self.lanes), self.lanes)}
                with k.at_position(column, c), k.at_position(loop, at), k.along(lane):
                    offset = self.factors.offset(k)
                    for i in range(rows):
                        x = k.load_vector(self.sums, (first + i) * self.pitch + at)
                        found[i * len(columns) + j] = k.fma(x, offset, found[i * len(columns) + j])
            return found

        with k.vectors(self.lanes):
            start = [k.const(0, self.factors.dtype)] * (rows * len(columns))
            return k.loop(None, zero, k.const(extent, INDEX), some, start, self.lanes)


def _group_of(product: Product, factors: Factors) -> tuple[tuple[str, int], int] | None:
    """The variable of the depth with which what words have in common changes, and of how many of its positions a vector
    is; None where there are several."""
    numbers: list[Index] = []
    reads = collect_reads(product.body.ops, factors.shared, numbers)
    places = [index for u in product.body.arguments for place in reads.get(u, ()) for index in place]
    used = names_of([*places, *numbers])
    found = [v for v in product.depth.variables if v[0] in used and v[1] > 1]
    if len(found) != 1:
        return None
    lanes = lanes_of(product.dtype)
    while found[0][1] % lanes:
        lanes //= 2
    return found[0], lanes


def _is_computed(v: Value) -> bool:
    """Whether something is more than an element of an argument."""
    while v.owner is not None and only_moves(v.owner):
        [v] = v.owner.operands
    return v.owner is not None
