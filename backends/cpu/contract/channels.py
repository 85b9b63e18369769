"""Convolutions by channel, or by a few: vectors of channels, and a few neighbours of the result at once, which share
their weights.

::

    for block of channels: turn its weights
        for the other loops of the result, some channels, a few neighbours:
            for depth, where the guards of all neighbours hold:
                for c in vectors of channels:
                    w = weights[depth, c]
                    for p in neighbours: sum[p, c] = accumulate(sum[p, c], image[p, depth, c], w)

What a guard of a window's rows leaves out is not multiplied; at the ends of a line each neighbour has its own guard.
That is right for weights that are finite: zeros around an image times infinity are no numbers. Others, which nobody
waits for, are multiplied with everything, one by one.

So are gradients of the weights made: the neighbours are taps, and the cotangent, which is as large as the image, is
what they share. It is read where it lies, and meets zeros where guards do not hold. Of groups of a few channels a
vector holds the outputs of several.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused, divide
from smelt.ir import dtypes
from smelt.ir.index import Guard, Index, linearize, names_of
from smelt.ir.kinds import holds
from smelt.ir.scalar import INDEX, Scalar, compute_dtype

from ..kernel import KernelModule, Memory
from ..loops import Split, inner_loops, reduce_loops
from ..schedules import ScheduledKernel, start_kernel
from ..vectors import Lane
from .elements import free_loops, is_strided
from .tiles import can_emit, has_wide_registers, lanes_of, rows_of, runs_along, store_outputs

#: Bytes of the weights of a block of channels.
WEIGHT_BYTES = 64 * 1024
#: With more depth than so much, what its innermost loop adds up is a sum by itself: sums of sums round less often.
LONG_DEPTH = 128
#: Enough parts of the result for any number of threads that is likely.
ENOUGH_UNITS = 16


@dataclass(frozen=True)
class Channels:
    """The loops of a convolution by channel.

    Attributes:
        moving, weights: the operand that moves along a line, and the one that does not.
        outer: loops over the result, without the last two.
        line: positions beside each other, as of an image's row, of which some are made at once.
        lane: the channels.
        turned: whether the weights are few, and brought into lines along channels first.
    """

    product: Product
    moving: Operand
    weights: Operand
    outer: tuple[Fused, ...]
    line: Fused
    lane: Fused
    turned: bool

    @staticmethod
    def of(product: Product) -> Channels | None:
        """The loops of a product of that kind; None if it is none.

        Neighbours along the channels are members of a batch, each of which multiplies with a vector of its own.
        """
        if not product.rules.multiplies or product.dtype.kind != "f":
            return None
        moving, weights, own = product.lhs, product.rhs, product.columns
        if product.rows.extent < product.columns.extent:
            moving, weights, own = weights, moving, product.rows
        lane = _lane_of(product, moving, own)
        guards = [guard.index for guard in moving.access.guards]
        used = names_of([*weights.access.place, *(guard.index for guard in weights.access.guards)])
        if lane is None or weights.access.guards or not used <= {*lane.names, *product.depth.names}:
            return None
        if not set(lane.names).isdisjoint(names_of(guards)):
            return None
        nested = names_of([Index(0, [(a, 1)]) for index in guards for a, _ in index.terms if a.kind != "var"])
        around = free_loops(product, lane.names)
        lines = [loop for loop in around if len(loop.variables) == 1 and nested.isdisjoint(loop.names)]
        turned = product.depth.extent * lane.extent < product.result.aval.size
        if not lines or not (turned or (len(lane.variables) == 1 and not is_strided(weights, [lane]))):
            return None
        line = lines[-1]
        outer = tuple(loop for loop in around if loop is not line)
        found = Channels(product, moving, weights, outer, line, lane, turned)
        return found if found._has_vectors() else None

    def _has_vectors(self) -> bool:
        """Whether what moves can be read in vectors; where it is computed one is made, for nobody."""
        plain = self.moving.source is not None and len(self.lane.variables) == 1
        if plain and (self.turned or self.weights.source is not None):
            return True
        return can_emit(lambda module: _Kernel(module, "trial", self).trial())


def _lane_of(product: Product, moving: Operand, own: Fused) -> Fused | None:
    """The loop over members of a batch, enough of them for a vector, along which what moves lies; where each makes a
    few neighbours of the result, the two loops as one. `own`: loops on which only the weights depend."""
    least = lanes_of(product.dtype) // 2
    outputs = [v for v in own.variables if v[1] > 1]
    if not outputs:
        loops = [loop for loop in free_loops(product) if len(loop.variables) == 1 and not is_strided(moving, [loop])]
        lanes = [loop for loop in loops if loop.names[0] in product.batch.names and loop.extent >= least]
        return lanes[-1] if lanes else None
    (name, count), value, place = outputs[-1], *product.outputs[0]
    out = linearize(place, value.shape)
    groups = [v for v in product.batch.variables if out.step(v[0]) == count and v[1] * count >= least]
    few = len(outputs) == 1 and count <= least and least % count == 0 and out.step(name) == 1
    return Fused([groups[0], (name, count)]) if few and groups else None


def build_channels(module: KernelModule, name: str, channels: Channels) -> ScheduledKernel:
    """The kernel of a convolution by channel."""
    return _Kernel(module, name, channels).build()


class _Kernel:
    def __init__(self, module: KernelModule, name: str, channels: Channels):
        self.name, self.channels, self.product = name, channels, channels.product
        product = channels.product
        self.k, self.outputs, self._lo, self._hi = start_kernel(module, name, product.body)
        k, lane, line = self.k, channels.lane, channels.line
        self.dtype, self.lanes = compute_dtype(product.dtype), lanes_of(product.dtype)
        if len(lane.variables) > 1 and lane.variables[-1][1] * 2 == self.lanes:
            self.lanes //= 2  # of one group: what moves is one number for all lanes, and needs no shuffle
        self.depth = [Fused([v]) for v in product.depth.variables]
        self.count = rows_of(line.extent)
        self.width = self.lanes * (2 if has_wide_registers() else 1)
        kind, taps, self.turned = compute_dtype(channels.weights.dtype), product.depth.extent, channels.turned
        room = max(1, WEIGHT_BYTES // (taps * kind.size * self.width)) if self.turned else 1
        self.blocks = -(-lane.extent // (room * self.width))
        self.block = -(-lane.extent // (self.blocks * self.width)) * self.width  # of about the same size
        self.weights = k.scratch(taps * self.block, kind) if self.turned else None
        self.sums = k.scratch(self.count * self.width, self.dtype)
        around = math.prod(loop.extent for loop in channels.outer)
        steps = -(-line.extent // self.count)
        self.parts = min(steps, -(-ENOUGH_UNITS // around))
        self.part = -(-steps // self.parts) * self.count
        self.parts = -(-line.extent // self.part)
        self.units = around * self.parts
        value, place = product.outputs[0]
        alone = product.is_alone and len(product.outputs) == 1 and value.dtype is self.dtype
        #: Where sums are stored as they are.
        self.direct = linearize(place, value.shape) if alone else None
        if self.direct is not None and not runs_along(self.direct, [lane]):
            self.direct = None
        guards = channels.moving.access.guards
        self.along = [guard for guard in guards if not set(line.names).isdisjoint(names_of([guard.index]))]
        self.across = [guard for guard in guards if guard not in self.along]

    def trial(self) -> None:
        """A vector of what moves, wherever it is."""
        k, zero = self.k, self.k.const(0, INDEX)
        for loop in (*self.channels.outer, self.channels.line, self.channels.lane, *self.depth):
            k.bind(loop, zero)
        self._read(self.channels.moving, zero, zero, self.lanes)
        if not self.turned:
            self._read(self.channels.weights, zero, zero, self.lanes)
        k.emit("func.return", [], [])

    def build(self) -> ScheduledKernel:
        """Emit the kernel."""
        k, body = self.k, self.product.body
        total = self.blocks * self.units

        def block(number: Scalar) -> None:
            """Of what this call makes, what belongs to a block of channels."""
            first = number * self.block
            if self.weights is not None:
                self._turn(first, self.weights)
            start = number * self.units
            low = k.op("arith.maxui", [self._lo, start], INDEX)
            high = k.op("arith.minui", [self._hi, start + self.units], INDEX)

            def units(make: Callable[[Scalar, Scalar, Scalar], None]) -> None:
                k.loop(None, low, high, lambda at: make(first, *self._enter(at - start)))

            if self.weights is not None and self.channels.moving.access.guards:
                finite = self._finite(self.weights)
                k.when(finite, lambda: units(self._part))
                k.when(~finite, lambda: units(self._one_by_one))
            else:
                units(self._part)

        if self.product.result.aval.size:
            size = k.const(self.units, INDEX)
            last = k.op("arith.divui", [self._hi + (self.units - 1), size], INDEX)
            k.expect(self.blocks)
            k.loop(None, k.op("arith.divui", [self._lo, size], INDEX), last, block)
        k.emit("func.return", [], [])
        return ScheduledKernel(self.name, body, Split(total), [*body.arguments, *body.returns])

    def _turn(self, first: Scalar, memory: Memory) -> None:
        """The weights of a block of channels, in lines along those."""
        k, lane = self.k, self.channels.lane
        end = k.op("arith.minui", [first + self.block, k.const(lane.extent, INDEX)], INDEX)

        def line(at: Scalar, read: Callable[[], Scalar]) -> None:
            inner_loops(k, self.depth, lambda: k.write(read(), memory, self._weight(at - first)))

        k.loop(lane, first, end, lambda at: line(at, lambda: self.channels.weights.read(k)))
        if self.blocks * self.block > lane.extent:
            zero = k.const(0, memory.aval.dtype)
            k.loop(None, end, first + self.block, lambda at: line(at, lambda: zero))

    def _finite(self, memory: Memory) -> Scalar:
        """Whether all weights of a block are: times zero they are zeros."""
        k, zero, dtype = self.k, self.k.const(0, INDEX), memory.aval.dtype
        with k.vectors(self.lanes):
            nothing = k.const(0, dtype)

            def some(at: Scalar, total: Scalar) -> list[Scalar]:
                return [total + k.load_vector(memory, at) * nothing]

            [total] = k.for_(zero, k.const(memory.aval.size, INDEX), some, [nothing], self.lanes)
        return k.add_lanes(total).eq(k.const(0, dtype))

    def _weight(self, channel: Scalar) -> Scalar:
        """Where a block's weight of the depth where the loops stand is."""
        variables = self.product.depth.variables
        place = [Index.variable(name, extent) for name, extent in variables]
        return self.k.index(linearize(place, [extent for _, extent in variables])) * self.block + channel

    def _enter(self, at: Scalar) -> tuple[Scalar, Scalar]:
        """Where a part of a line begins and ends. The loops around the line stand there."""
        k, line = self.k, self.channels.line
        rest, part = divide(k, at, self.parts, bool(self.channels.outer))
        for i, loop in reversed(list(enumerate(self.channels.outer))):
            rest, position = divide(k, rest, loop.extent, i > 0)
            k.bind(loop, position)
        start = part * self.part
        return start, k.op("arith.minui", [start + self.part, k.const(line.extent, INDEX)], INDEX)

    def _one_by_one(self, first: Scalar, start: Scalar, stop: Scalar) -> None:
        """A part of a line in all channels of a block, with zeros where guards do not hold."""
        k, product, lane = self.k, self.product, self.channels.lane
        end = k.op("arith.minui", [first + self.block, k.const(lane.extent, INDEX)], INDEX)

        def step(carried: list[Scalar]) -> list[Scalar]:
            return [product.rules.accumulate(k, carried[0], product.lhs.read(k), product.rhs.read(k))]

        def element(_: Scalar) -> None:
            [total] = reduce_loops(k, self.depth, step, [k.const(0, self.dtype)])
            store_outputs(k, product, self.outputs, lambda: total)

        with k.rolled():
            k.loop(self.channels.line, start, stop, lambda _: k.loop(lane, first, end, element))

    def _part(self, first: Scalar, start: Scalar, stop: Scalar) -> None:
        """A part of a line, in all channels of a block."""
        k, line, lane = self.k, self.channels.line, self.channels.lane
        left, over = line.extent % self.count, lane.extent % self.width
        whole = k.op("arith.minui", [stop, k.const(line.extent - left, INDEX)], INDEX)

        def channels(at: Scalar, vectors: int, lanes: int) -> None:
            def some(p: Scalar, count: int) -> None:
                self._sums(p, count, at, at - first, vectors, lanes)

            k.loop(None, start, whole, lambda p: some(p, self.count), step=self.count)
            if left:
                k.when(stop.eq(k.const(line.extent, INDEX)), lambda: some(whole, left))

        end = k.op("arith.minui", [first + self.block, k.const(lane.extent - over, INDEX)], INDEX)
        k.loop(None, first, end, lambda c: channels(c, self.width // self.lanes, self.lanes), step=self.width)

        def rest_of_lane() -> None:
            vectors, few = divmod(over, self.lanes)
            if vectors:
                channels(end, vectors, self.lanes)
            if few:
                channels(end + vectors * self.lanes, 1, few)

        if over:
            k.when(end.eq(k.const(lane.extent - over, INDEX)), rest_of_lane)

    def _sums(self, first: Scalar, count: int, channel: Scalar, inside: Scalar, vectors: int, lanes: int) -> None:
        """Neighbours from `first` on, in some vectors of channels, of which the first is `inside` of the block."""
        k, sides = self.k, self.channels

        def add(sums: Sequence[Scalar], places: Sequence[int], outside: bool = False) -> list[Scalar]:
            """The sums with the products of the depth where the loops stand, of some neighbours."""
            found = list(sums)
            for v in range(vectors):
                if self.weights is None:
                    y = self._read(sides.weights, first, channel + v * self.lanes, lanes)
                else:
                    y = k.load_vector(self.weights, self._weight(inside) + v * self.lanes)
                for p in places:
                    here = channel + v * self.lanes
                    x = k.const(0, self.dtype) if outside else self._read(sides.moving, first + p, here, lanes)
                    pair = (x, y) if sides.moving is self.product.lhs else (y, x)
                    n = p * vectors + v
                    found[n] = self.product.rules.accumulate(k, found[n], *pair)
            return found

        def each(sums: Sequence[Scalar]) -> list[Scalar]:
            found = list(sums)
            for p in range(count):
                inside, outside = (functools.partial(add, found, [p], apart) for apart in (False, True))
                condition = self._holds(self.along, [first + p])
                found = k.carried(condition, found, inside, None if self.turned else outside)
            return found

        def step(sums: Sequence[Scalar], outside: bool) -> list[Scalar]:
            everyone = range(count)
            if outside or not self.along:
                return add(sums, everyone, outside)
            inside = self._holds(self.along, [first, first + (count - 1)])
            return k.carried(inside, sums, lambda: add(sums, everyone), lambda: each(sums))

        with k.vectors(lanes):
            sums = self._walk(step, [k.const(0, self.dtype)] * (count * vectors))
            self._keep(sums, first, count, channel, vectors)
        if self.direct is None:
            self._finish(first, count, channel, vectors * lanes)

    def _walk(
        self, body: Callable[[Sequence[Scalar], bool], list[Scalar]], sums: Sequence[Scalar]
    ) -> list[Scalar]:  # fmt: skip
        """Go over the depth. Guards that do not move along a line are asked as far out as they can be: `body` is told
        whether one of them does not hold."""
        k, nothing = self.k, sums

        def level(n: int, carried: Sequence[Scalar], outside: bool) -> list[Scalar]:
            guards = [guard for guard in self.across if self._known(guard) == n]
            if outside or not guards:
                return further(n, carried, outside)
            apart = None if self.turned else lambda: further(n, carried, True)
            return k.carried(self._holds(guards, []), carried, lambda: further(n, carried, False), apart)

        def further(n: int, carried: Sequence[Scalar], outside: bool) -> list[Scalar]:
            if n == len(self.depth):
                return body(carried, outside)
            alone = n == len(self.depth) - 1 and self.product.depth.extent > LONG_DEPTH
            loop, start = self.depth[n], nothing if alone else carried
            zero, end = k.const(0, INDEX), k.const(self.depth[n].extent, INDEX)
            found = k.loop(loop, zero, end, lambda _, *inner: level(n + 1, inner, outside), start)
            return [x + y for x, y in zip(carried, found)] if alone else found

        return level(0, sums, False)

    def _known(self, guard: Guard) -> int:
        """How many loops of the depth a guard has to wait for."""
        used = names_of([guard.index])
        return max((n + 1 for n, loop in enumerate(self.depth) if loop.names[0] in used), default=0)

    def _holds(self, guards: Sequence[Guard], places: Sequence[Scalar]) -> Scalar:
        """Whether guards hold, at some places of a line and so between them."""
        k, found = self.k, []
        with k.vectors(0):
            for at in places:
                with k.at_position(self.channels.line, at):
                    found.append(holds(k, guards))
            tests = [x for x in found or [holds(k, guards)] if x is not None]
            return functools.reduce(k.logical_and, tests) if tests else k.const(True, dtypes.bool_)

    def _read(self, operand: Operand, place: Scalar, channel: Scalar, lanes: int) -> Scalar:
        """A vector of an operand, at a place of the line."""
        k, lane = self.k, self.channels.lane
        steps = {}  # vectors begin where a member of the batch does
        for name, extent in lane.variables:
            at = np.arange(lanes) // lane.strides[name]
            outermost = name == lane.names[0]
            steps[name] = Lane(at, self.lanes // lane.strides[name]) if outermost else Lane(at % extent, extent)
        with k.at_position(self.channels.line, place), k.at_position(lane, channel), k.along(steps):
            return k.value(operand.value, operand.access.place)

    def _keep(self, sums: Sequence[Scalar], first: Scalar, count: int, channel: Scalar, vectors: int) -> None:
        """Some neighbours' sums as an output, or else where `_finish` reads them."""
        k, line, lane = self.k, self.channels.line, self.channels.lane
        for n, x in enumerate(sums):
            p, at = n // vectors, n % vectors * self.lanes
            if self.direct is None:
                k.store_vector(x, self.sums, k.const(p * self.width + at, INDEX))
                continue
            with k.at_position(line, first + p), k.at_position(lane, channel + at):
                place = k.index(self.direct)
            k.store_vector(x, self.outputs[0], place)

    def _finish(self, first: Scalar, count: int, channel: Scalar, width: int) -> None:
        """The outputs from some neighbours' sums."""
        k = self.k

        def element(at: Scalar) -> None:
            store_outputs(k, self.product, self.outputs, lambda: k.read(self.sums, at))

        def neighbour(p: Scalar) -> None:
            before = (p - first) * self.width - channel
            k.loop(self.channels.lane, channel, channel + width, lambda c: element(before + c))

        k.loop(self.channels.line, first, first + count, neighbour)
