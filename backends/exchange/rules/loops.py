"""Rules for linalg, which has no sorts, scatters and Fourier transforms: they are comparisons, loops and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.ir import dtypes
from smelt.ir.ops.matrices import conjugated

from ..writer import Tensor, Writer
from .indexing import combiner
from .library import scaled
from .reductions import before
from .table import LOOPS, Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value

#: Fourier transforms of so many elements at most are one product with a matrix; of more, one for each factor.
_WHOLE = 16
#: Factors of more elements are computed when the program runs.
_MOST_CONSTANTS = 4096


@rule("barrier", table=LOOPS)
def _barrier(call: Call) -> Sequence[Tensor]:
    """No pass of linalg moves anything across it."""
    return call.operands


# Sorts: a network of comparisons (Batcher's bitonic sorter), of all elements at once


@rule("sort", table=LOOPS)
def _sort(call: Call) -> Tensor:
    return in_order(call.writer, call.x, call.attrs["axis"], dtypes.int32)[0]


@rule("argsort", table=LOOPS)
def _argsort(call: Call) -> Tensor:
    return in_order(call.writer, call.x, call.attrs["axis"], call.aval.dtype)[1]


def in_order(w: Writer, x: Tensor, axis: int, kind: dtypes.DType) -> tuple[Tensor, Tensor]:
    """The elements in order, and their places. What was added to have a power of two of them comes last."""
    rank, n = len(x.shape), x.shape[axis]
    turned = [*(a for a in range(rank) if a != axis), axis]
    x = w.transpose(x, turned)
    lead, size = x.shape[:-1], 1 << max(n - 1, 0).bit_length()
    if size > n and n:
        x = w.concatenate([x, w.broadcast(w.scalar(0, x.dtype), (*lead, size - n))], rank - 1)
    place = w.iota(x.shape, rank - 1, kind)
    if x.aval.size:
        for stage in range(1, size.bit_length()):
            for step in range(stage, 0, -1):
                x, place = _exchanged(w, x, place, 1 << step, step == stage, n)
    back = [turned.index(a) for a in range(rank)]
    first = (0,) * rank
    return tuple(w.transpose(w.slice(v, first, (*lead, n)), back) for v in (x, place))  # type: ignore[return-value]


def _exchanged(w: Writer, x: Tensor, place: Tensor, block: int, mirrored: bool, n: int) -> tuple[Tensor, Tensor]:
    """In each block, elements of the first half against those of the second, as they lie or from its end."""
    shape, half = x.shape, block // 2
    parts = (*shape[:-1], shape[-1] // block, 2, half)
    rank = len(parts)

    def halves(v: Tensor) -> tuple[Tensor, Tensor]:
        v = w.reshape(v, parts)
        one, other = (
            w.slice(v, (*[0] * (rank - 2), i, 0), (*parts[:-2], i + 1, half)) for i in range(2)
        )  # fmt: skip
        return one, mirror(other)

    def mirror(v: Tensor) -> Tensor:
        if not mirrored or half == 1:
            return v
        return w.op("stablehlo.reverse", [v], v.aval, f"dimensions = array<i64: {rank - 1}>")

    (a, b), (i, j) = halves(x), halves(place)
    earlier = before(w, b, a) | (w.invert(before(w, a, b)) & w.compare("LT", j, i))
    padded_a, padded_b = (w.compare("GE", v, n) for v in (i, j))
    turns = w.invert(padded_b) & (padded_a | earlier)

    def together(first: Tensor, second: Tensor) -> Tensor:
        low, high = w.select(turns, second, first), w.select(turns, first, second)
        return w.reshape(w.concatenate([low, mirror(high)], rank - 2), shape)

    return together(a, b), together(i, j)


# Scatters


@rule("scatter", table=LOOPS)
def _scatter(call: Call) -> Tensor:
    """One update after the other; those that do not fit are left out."""
    w, (x, updates, *indices), mode, axes = call.writer, call.operands, call.attrs["mode"], call.attrs["axes"]
    if not x.aval.size or not updates.aval.size:
        return x
    lead = indices[0].shape if indices else ()
    count, rank = math.prod(lead), len(x.shape)
    sizes = updates.shape[len(lead) :]
    updates = w.reshape(updates, (count, *sizes))
    indices = [w.reshape(w.convert(i, dtypes.int64), (count,)) for i in indices]

    def step(i: Tensor, x: Tensor) -> Sequence[Tensor]:
        at = w.convert(i, dtypes.int64)
        zero = w.scalar(0, dtypes.int64)
        starts, inside = [zero] * rank, w.scalar(True, dtypes.bool_)
        for axis, index in zip(axes, indices):
            starts[axis] = found = w.reshape(w.dynamic_slice(index, [at], (1,)), ())
            inside = inside & w.compare("GE", found, 0) & w.compare("LE", found, x.shape[axis] - sizes[axis])
        new = w.reshape(w.dynamic_slice(updates, [at, *[zero] * rank], (1, *sizes)), sizes)
        old = w.dynamic_slice(x, starts, sizes)
        made = new if mode == "set" else w.op(combiner(mode, x), [old, new], old.aval)
        made = w.select(w.broadcast(inside, sizes), made, old)
        return [w.op("stablehlo.dynamic_update_slice", [x, made, *starts], x.aval)]

    return w.loop(count, step, [x])[0]


# Fourier transforms: products with matrices of roots of unity, one for each factor of the length (Cooley and Tukey)


@rule("fft", table=LOOPS)
def _fft(call: Call) -> Tensor:
    n, inverse = call.x.shape[-1], call.attrs["inverse"]
    return scaled(call, _transformed(call.writer, call.x, inverse), n, inverse)


@rule("rfft", table=LOOPS)
def _rfft(call: Call) -> Tensor:
    w, n = call.writer, call.x.shape[-1]
    found = _transformed(w, w.convert(call.x, call.aval.dtype), False)
    return scaled(call, w.slice(found, (0,) * len(found.shape), call.aval.shape), n, False)


@rule("irfft", table=LOOPS)
def _irfft(call: Call) -> Tensor:
    """Frequencies that are missing are zero, and those of the second half are conjugates."""
    w, n, x = call.writer, call.attrs["n"], call.x
    *lead, have = x.shape
    need, rank = n // 2 + 1, len(x.shape)
    x = w.slice(x, (0,) * rank, (*lead, min(have, need)))
    if have < need:
        x = w.concatenate([x, w.broadcast(w.scalar(0, x.dtype), (*lead, need - have))], rank - 1)
    if n > need:
        rest = w.slice(x, (*[0] * (rank - 1), 1), (*lead, n - need + 1))
        rest = w.op("stablehlo.reverse", [rest], rest.aval, f"dimensions = array<i64: {rank - 1}>")
        (rest,) = composed(w, conjugated, [rest])
        x = w.concatenate([x, rest], rank - 1)
    found = _transformed(w, x, True)
    return scaled(call, w.op("stablehlo.real", [found], found.aval.with_dtype(found.dtype.real)), n, True)


def _transformed(w: Writer, x: Tensor, inverse: bool) -> Tensor:
    """With StableHLO's scale: 1/n of the inverse."""
    found = _sums_of_roots(w, x, inverse)
    return found * w.full(found, 1 / max(x.shape[-1], 1)) if inverse else found


def _sums_of_roots(w: Writer, x: Tensor, inverse: bool) -> Tensor:
    """Index b·i + j, frequency k + a·l: over i for each j, times a root of unity, then over j."""
    *lead, n = x.shape
    a = next((f for f in range(min(_WHOLE, n - 1), 1, -1) if n % f == 0), n)
    if n <= _WHOLE or a == n:
        return _product(w, x, _roots(w, n, n, n, x.dtype, inverse), len(lead))
    b, last = n // a, len(lead)
    x = w.reshape(x, (*lead, a, b))
    swapped = [*range(last), last + 1, last]
    x = w.transpose(_product(w, w.transpose(x, swapped), _roots(w, a, a, a, x.dtype, inverse), last + 1), swapped)
    x = x * w.broadcast(_roots(w, a, b, n, x.dtype, inverse), x.shape)
    found = _sums_of_roots(w, x, inverse)
    return w.reshape(w.transpose(found, swapped), (*lead, n))


def _product(w: Writer, x: Tensor, matrix: Tensor, axis: int) -> Tensor:
    numbers = f"#stablehlo.dot<lhs_contracting_dimensions = [{axis}], rhs_contracting_dimensions = [0]>"
    return w.op("stablehlo.dot_general", [x, matrix], x.aval, f"dot_dimension_numbers = {numbers}")


def _roots(w: Writer, rows: int, columns: int, n: int, kind: dtypes.DType, inverse: bool) -> Tensor:
    """exp(∓2πi·jk/n), of row j and column k."""
    turn = (2 if inverse else -2) * np.pi / n
    if rows * columns <= _MOST_CONSTANTS:
        steps = np.outer(np.arange(rows), np.arange(columns)) % n
        return w.constant(np.exp(1j * turn * steps).astype(kind.numpy))

    def compute(b: Builder) -> Value:
        j, k = (b.iota(shape=(rows, columns), axis=axis, dtype=dtypes.int64) for axis in (0, 1))
        angle = b.convert_to(b.remainder(j * k, b.full(j.shape, n, j.dtype)), dtypes.float64) * turn
        found: Value = b.complex(b.cos(angle), b.sin(angle))
        return b.convert_to(found, kind)

    return composed(w, compute, [])[0]
