"""Many floats added to many targets: as integers, whose sums do not depend on the order of the updates.

An update is a mantissa shifted by how far its exponent is below a scale. Sums of 64 bits have room for all updates and
for 16 exponents; each target has two of them, one for updates further below the scale. Where all updates have 32
exponents between them at most, the scale is the largest of these, and sums are exact. Else each target has a scale of
its own, the largest exponent of its updates, and what is lost lies some fifty binary places below that. Lanes side by
side with one target add up what they have first, so that a target of many updates is no queue::

    fused_scatter_zeros    range, scales, sums = 0
    fused_scatter_range    range = the largest exponent of all updates, and the smallest
    fused_scatter_scales   scales[target] = the largest exponent of its updates, unless the range is narrow
    fused_scatter_sums     sums[target] += update
    fused_scatter          out[target] += sums[target]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from smelt.backends.lowering import fuse_variables
from smelt.backends.memory import Memory
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.scalar import INDEX, Scalar

from ...kernel import GpuKernel, GpuModule
from ..maps import bind_loops
from ..parts import Part, plus, start_part
from ..schedule import ScheduledKernel, Scratch, ScratchPlan, threads_for
from .scattering import Scattering

#: So many updates at least, and one for so many targets.
LEAST, MOST_TARGETS = 4096, 8
#: Neighbouring elements that have targets next to each other: more are sorted together.
MOST_NEIGHBOURS = 4
#: Sums of a target, and exponents of the updates in one.
SUMS, EXPONENTS = 2, 16
#: Of a float32: bits of a mantissa that are stored, the exponent of what is not finite, and that of 1.
MANTISSA, SPECIAL, BIAS = 23, 255, 127
#: Threadgroups that look for the range of exponents, at most.
RANGE_GROUPS = 1024


def suits_exact(what: Scattering) -> bool:
    """Whether updates are floats of 32 bits or less to be added, many of them, and spread over many targets."""
    x, updates = what.x.aval, what.updates.aval
    is_apart = what.moved > 1 or updates.size <= MOST_NEIGHBOURS * what.count
    adds = what.mode == "add" and x.dtype.kind == "f" and x.dtype.size <= 4
    return adds and is_apart and updates.size >= LEAST and x.size <= MOST_TARGETS * updates.size


def apply_exact(module: GpuModule, what: Scattering, scratch: ScratchPlan) -> list[ScheduledKernel]:
    """The kernels that apply all updates."""
    return _Exact(module, what, scratch).steps()


@dataclass
class _Number:
    """A float32 as integers: its sign bit, biased exponent (that of subnormal numbers is 1), and mantissa."""

    is_negative: Scalar
    exponent: Scalar
    mantissa: Scalar

    @classmethod
    def of(cls, k: GpuKernel, x: Scalar) -> _Number:
        bits = k.bitcast(x, dtypes.uint32)
        field, stored = (bits >> MANTISSA) & SPECIAL, bits & ((1 << MANTISSA) - 1)
        mantissa = k.select(field.eq(0), stored, stored | (1 << MANTISSA))
        exponent = k.op("arith.maxui", [field, k.const(1, dtypes.uint32)], dtypes.uint32)
        return cls((bits >> 31).ne(0), exponent, mantissa)


class _Exact:
    """Emits the kernels.

    Attributes:
        headroom: bits of a sum above its updates; shift: places by which a mantissa stands above the last bit.
        wide: whether sums are updated as a whole; else by halves.
        range, scales, sums: scratch.
    """

    def __init__(self, module: GpuModule, what: Scattering, scratch: ScratchPlan):
        self.module, self.what, self.targets = module, what, what.x.aval.size
        self.headroom = max(1, (what.updates.aval.size - 1).bit_length())
        self.shift = 63 - (MANTISSA + 1) - self.headroom
        self.wide = module.gpu.wide_atomics
        word, words = (dtypes.uint64, SUMS) if self.wide else (dtypes.uint32, 2 * SUMS)
        self.range, self.scales = (scratch.take(Aval((n,), dtypes.uint32)) for n in (2, self.targets))
        self.sums = scratch.take(Aval((words * self.targets,), word))

    def steps(self) -> list[ScheduledKernel]:
        return [self._zeros(), self._range(), self._scales(), self._sums(), self._finish()]

    # Kernels

    def _zeros(self) -> ScheduledKernel:
        part = start_part(
            self.module, self.what.body, "_zeros", [],
            [("range", self.range), ("scales", self.scales), ("sums", self.sums)],
        )  # fmt: skip
        k, (limits, scales, sums) = part.k, part.extra
        threads, groups = threads_for(k, self.targets)

        def zero(memory: Memory, at: Scalar) -> None:
            k.write(k.const(0, memory.aval.dtype), memory, at)

        def limits_to_zero() -> None:
            for n in range(2):
                zero(limits, k.const(n, INDEX))

        def item(i: Scalar) -> None:
            zero(scales, i)
            for n in range(sums.aval.size // self.targets):
                zero(sums, i + n * self.targets if n else i)
            k.when(i.eq(0), limits_to_zero)

        k.grid_stride(None, self.targets, threads, groups, item)
        return part.finish("scatter", groups, threads, 0, self.scales.aval.nbytes + self.sums.aval.nbytes, 0)

    def _range(self) -> ScheduledKernel:
        """The largest exponent, and by how much the smallest is below `SPECIAL`, so that both are maxima."""
        part = start_part(self.module, self.what.body, "_range", [(self.what.updates, self.what.at)],
                          [("range", self.range)])  # fmt: skip
        k, (limits,) = part.k, part.extra
        count, bind = self._loops(part)
        threads, groups = threads_for(k, count)
        groups = min(groups, RANGE_GROUPS)
        zero = k.const(0, dtypes.uint32)

        def largest(x: Scalar, y: Scalar) -> Scalar:
            return k.op("arith.maxui", [x, y], dtypes.uint32)

        def each(i: Scalar, *own: Scalar) -> list[Scalar]:
            bind(i)
            x = _Number.of(k, k.value(self.what.updates, self.what.at))
            counts = x.mantissa.ne(0)
            seen = k.select(counts, x.exponent, zero), k.select(counts, SPECIAL - x.exponent, zero)
            return [largest(a, b) for a, b in zip(own, seen)]

        found = k.for_(k.grid_position(), k.const(count, INDEX), each, [zero, zero], threads * groups)
        for n, x in enumerate(found):
            distance = 1
            while distance < k.gpu.simd:
                x = largest(x, k.shuffle(x, distance))
                distance *= 2
            update = partial(k.atomic, "max", x, limits, k.const(n, INDEX))
            k.when(k.logical_and(k.lane().eq(0), x.ne(0)), update)
        return part.finish("scatter", groups, threads, 0, 0, 2 * count)

    def _scales(self) -> ScheduledKernel:
        extra = [("range", self.range), ("scales", self.scales)]
        part = start_part(self.module, self.what.body, "_scales", self.what.reads, extra)
        k, (limits, scales) = part.k, part.extra

        def apply(x: _Number, target: Scalar, counts: Scalar) -> None:
            k.when(
                k.logical_and(counts, k.logical_and(x.mantissa.ne(0), k.read(scales, target) < x.exponent)),
                lambda: k.atomic("max", x.exponent, scales, target),
            )

        count, threads, groups, element = self._each(part, apply)
        k.when(~self._is_narrow(k, limits), lambda: k.grid_stride(None, count, threads, groups, element))
        return part.finish("scatter", groups, threads, 0, 0, count)

    def _sums(self) -> ScheduledKernel:
        extra = [("range", self.range), ("scales", self.scales), ("sums", self.sums)]
        part = start_part(self.module, self.what.body, "_sums", self.what.reads, extra)
        k, (limits, scales, sums) = part.k, part.extra

        def apply(x: _Number, target: Scalar, counts: Scalar) -> None:
            scale = self._scale(k, limits, scales, target)
            is_special = x.exponent.eq(SPECIAL)
            counts = k.logical_and(counts, k.logical_or(scale.ne(SPECIAL), is_special))
            below = scale - x.exponent
            is_low = k.logical_and(counts, below >= EXPONENTS)
            number = self._integer(k, x, k.select(is_low, below - EXPONENTS, below), is_special)
            number = k.select(counts, number, k.const(0, dtypes.uint64))
            at = plus(target, k.select(is_low, k.const(self.targets, INDEX), k.const(0, INDEX)))
            number = self._of_runs(k, at, number)
            k.when(number.ne(0), lambda: self._add(k, sums, at, number))

        count, threads, groups, element = self._each(part, apply)
        k.grid_stride(None, count, threads, groups, element)
        return part.finish("scatter", groups, threads, 4 * count, 8 * count, 8 * count)

    def _finish(self) -> ScheduledKernel:
        what = self.what
        extra: list[tuple[str, Value | Scratch]] = [
            ("range", self.range), ("scales", self.scales), ("sums", self.sums), ("out", what.out)
        ]  # fmt: skip
        part = start_part(self.module, what.body, "", [], extra)
        k, (limits, scales, sums, out) = part.k, part.extra
        threads, groups = threads_for(k, self.targets)

        def item(i: Scalar) -> None:
            found = [self._read(k, sums, n, i) for n in range(SUMS)]
            some = found[0] | found[1]

            def apply() -> None:
                total = self._total(k, found, self._scale(k, limits, scales, i))
                k.write(what.combine(k, k.read(out, i), total), out, i)

            k.when(some.ne(0), apply)

        k.grid_stride(None, self.targets, threads, groups, item)
        return what.finish(part, "scatter", groups, threads, self.sums.aval.nbytes + self.scales.aval.nbytes)

    # What they are made of

    def _loops(self, part: Part) -> tuple[int, Callable[[Scalar], object]]:
        """How many elements updates have, and what lets the loops over them stand at one."""
        updates = self.what.updates
        loops = fuse_variables([(f"u{a}", d) for a, d in enumerate(updates.shape) if d != 1], part.uses)
        return updates.aval.size, lambda i: bind_loops(part.k, loops, 1, i)

    def _each(
        self, part: Part, apply: Callable[[_Number, Scalar, Scalar], None]
    ) -> tuple[int, int, int, Callable[[Scalar], None]]:  # fmt: skip
        """What goes over all updates: positions, threads and threadgroups, and ``apply(update, target, stays)`` at one.

        All lanes of a simdgroup are there, also where positions end.
        """
        k, what = part.k, self.what
        count, bind = self._loops(part)
        positions = -(-count // k.gpu.simd) * k.gpu.simd
        threads, groups = threads_for(k, positions)

        def element(i: Scalar) -> None:
            there = k.below(i, count) if positions > count else k.const(True, dtypes.bool_)
            bind(k.op("arith.minui", [i, k.const(count - 1, INDEX)], INDEX) if positions > count else i)
            inside, target = what.target(k)
            apply(_Number.of(k, k.value(what.updates, what.at)), target, k.logical_and(there, inside))

        return positions, threads, groups, element

    def _is_narrow(self, k: GpuKernel, limits: Memory) -> Scalar:
        """Whether one scale is enough for all: exponents are close, and there is nothing infinite or NaN."""
        most, least = (k.read(limits, k.const(n, INDEX)) for n in range(2))
        return k.logical_and(most.ne(SPECIAL), most + least < SPECIAL + SUMS * EXPONENTS)

    def _scale(self, k: GpuKernel, limits: Memory, scales: Memory, target: Scalar) -> Scalar:
        return k.if_(
            self._is_narrow(k, limits), lambda: k.read(limits, k.const(0, INDEX)), lambda: k.read(scales, target),
            dtypes.uint32,
        )  # fmt: skip

    def _integer(self, k: GpuKernel, x: _Number, below: Scalar, is_special: Scalar) -> Scalar:
        """What is added for an update so far below its scale: of what is not finite, flags."""
        one = k.const(1, dtypes.uint64)
        by = k.convert(k.op("arith.minui", [below, k.const(63, dtypes.uint32)], dtypes.uint32), dtypes.uint64)
        number = ((k.convert(x.mantissa, dtypes.uint64) << self.shift) + ((one << by) >> 1)) >> by
        number = k.select(x.is_negative, 0 - number, number)
        flags = k.select(x.is_negative, one << 32, one)
        flags = k.select(x.mantissa.ne(1 << MANTISSA), one | (one << 32), flags)
        return k.select(is_special, flags, number)

    def _of_runs(self, k: GpuKernel, at: Scalar, number: Scalar) -> Scalar:
        """Numbers of which lanes side by side with one place have the sum in the last of them, and else 0."""
        lane = k.lane()
        begins = k.logical_or(lane.eq(0), at.ne(k.shuffle(at, 1, "up")))
        heads = k.ballot(begins)

        def shuffled(x: Scalar, distance: int) -> Scalar:
            words = (k.shuffle(k.convert(y, dtypes.uint32), distance, "up") for y in (x, x >> 32))
            low, high = (k.convert(y, dtypes.uint64) for y in words)
            return low | (high << 32)

        def merged() -> Scalar:
            total, done, distance = number, k.convert(begins, dtypes.uint32), 1
            while distance < k.gpu.simd:
                other, others = shuffled(total, distance), k.shuffle(done, distance, "up")
                goes_on = done.eq(0)
                total = k.select(goes_on, total + other, total)
                done = k.select(goes_on, others, done)
                distance *= 2
            bit = k.convert(lane, dtypes.uint32)
            is_last = k.logical_or(lane.eq(k.gpu.simd - 1), (((heads >> 1) >> bit) & 1).ne(0))
            return k.select(is_last, total, k.const(0, dtypes.uint64))

        return k.if_(heads.ne(2**k.gpu.simd - 1), merged, lambda: number, dtypes.uint64)

    def _add(self, k: GpuKernel, sums: Memory, at: Scalar, number: Scalar) -> None:
        """Add to a sum, as other threads do at the same time."""
        if self.wide:
            k.atomic("add", number, sums, at)
            return
        low, high = k.convert(number, dtypes.uint32), k.convert(number >> 32, dtypes.uint32)
        before = k.atomic("add", low, sums, at)
        high = high + k.convert(before + low < low, dtypes.uint32)
        k.when(high.ne(0), lambda: k.atomic("add", high, sums, at + SUMS * self.targets))

    def _read(self, k: GpuKernel, sums: Memory, n: int, target: Scalar) -> Scalar:
        """One of a target's sums."""
        at = target + n * self.targets if n else target
        if self.wide:
            return k.read(sums, at)
        low, high = (k.convert(k.read(sums, i), dtypes.uint64) for i in (at, at + SUMS * self.targets))
        return low | (high << 32)

    def _total(self, k: GpuKernel, sums: list[Scalar], scale: Scalar) -> Scalar:
        """A target's sums as a float: first what a float holds of each, then the rest."""
        parts, rests = [], []
        for n, found in enumerate(sums):
            whole = k.bitcast(found, dtypes.int64)
            part = k.convert(whole, dtypes.float32)
            rest = k.convert(whole - k.convert(part, dtypes.int64), dtypes.float32)
            parts.append(part * 2.0 ** (-EXPONENTS * n) if n else part)
            rests.append(rest * 2.0 ** (-EXPONENTS * n) if n else rest)
        total = (parts[0] + parts[1]) + (rests[0] + rests[1])
        power = k.convert(scale, dtypes.int32) - (BIAS + MANTISSA + self.shift)
        half = power >> 1
        for each in (half, power - half):  # one factor could be no float
            total = total * k.bitcast((each + BIAS) << MANTISSA, dtypes.float32)
        above, below = (x.ne(0) for x in (sums[0] & 0xFFFFFFFF, sums[0] >> 32))
        infinite = k.select(above, k.const(math.inf, dtypes.float32), k.const(-math.inf, dtypes.float32))
        infinite = k.select(k.logical_and(above, below), k.const(math.nan, dtypes.float32), infinite)
        return k.select(scale.eq(SPECIAL), infinite, total)
