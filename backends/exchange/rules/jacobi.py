"""Eigenvalues of Hermitian matrices and singular values for linalg: by Jacobi's rotations, of disjoint pairs of columns
at once, in the order of a tournament (Brent and Luk)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.ir import dtypes
from smelt.ir.ops.matrices import adjoint, conjugated, hermitian, transposed, where_place

from ..writer import Tensor, Writer
from .factors import as_many, householder, identity, of_size_one, times
from .lapack import phases, turned, without_phases
from .loops import in_order
from .table import LOOPS, Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value

#: Rounds of rotations of all pairs; few matrices need more than ten.
_MOST_SWEEPS = 30


def _halves(b: Builder, x: Value, axis: int) -> tuple[Value, Value]:
    middle, (m, n) = x.shape[axis] // 2, x.shape
    stops = ((middle, n), (m, n)) if axis == 0 else ((m, middle), (m, n))
    starts = ((0, 0), (middle, 0)) if axis == 0 else ((0, 0), (0, middle))
    one, other = (b.slice(x, start=i, stop=j, stride=(1, 1)) for i, j in zip(starts, stops))
    return one, other


def _rotations(b: Builder, own: Value, other: Value, between: Value) -> tuple[Value, Value]:
    """Cosines, and sines times the phase of what is between, of the rotations that make that zero."""
    size = b.abs(between)
    none = b.equal(size, b.zeros_like(size))
    one = b.full(size.shape, 1, size.dtype)
    size = b.select(none, one, size)
    ratio = b.div(other - own, size + size)
    tangent = b.div(one, b.abs(ratio) + b.sqrt(ratio * ratio + one))
    tangent = b.select(b.less(ratio, b.zeros_like(ratio)), -tangent, tangent)
    tangent = b.select(none, b.zeros_like(tangent), tangent)
    cosine = b.div(one, b.sqrt(tangent * tangent + one))
    kind = between.dtype
    sine = b.convert_to(tangent * cosine, kind) * b.div(between, b.convert_to(size, kind))
    return b.convert_to(cosine, kind), sine


def _columns_turned(b: Builder, x: Value, cosine: Value, sine: Value) -> Value:
    one, other = _halves(b, x, 1)
    c, s = (b.broadcast_to(v, one.shape) for v in (cosine, sine))
    return b.concatenate(one * c - other * conjugated(b, s), one * s + other * c, axis=1)


def _next_pairs(b: Builder, x: Value, axis: int) -> Value:
    """Rows (axis 0) or columns in the order in which the next pairs are those of the halves."""
    n = x.shape[axis]
    if n == 2:
        return x
    middle = n // 2
    order = [0, middle, *range(1, middle - 1), *range(middle + 1, n), middle - 1]
    pieces, start = [], 0
    while start < n:
        stop = start + 1
        while stop < n and order[stop] == order[stop - 1] + 1:
            stop += 1
        first, last = [0, 0], list(x.shape)
        first[axis], last[axis] = order[start], order[stop - 1] + 1
        pieces.append(b.slice(x, start=tuple(first), stop=tuple(last), stride=(1, 1)))
        start = stop
    return functools.reduce(lambda one, other: b.concatenate(one, other, axis=axis), pieces)


def _even(w: Writer, x: Tensor, axis: int) -> Tensor:
    if x.shape[axis] % 2 == 0:
        return x
    shape = list(x.shape)
    shape[axis] = 1
    return w.concatenate([x, w.broadcast(w.scalar(0, x.dtype), tuple(shape))], axis)


def _until_settled(
    w: Writer, first: Sequence[Tensor], rotated: Callable[..., tuple[Value, ...]], size: int
) -> list[Tensor]:
    """Sweeps until what is between columns is as small as rounding errors."""
    kind = first[0].dtype.real
    least = float(np.finfo(kind.numpy).eps)

    def go_on(sweep: Tensor, largest: Tensor, *_: Tensor) -> Tensor:
        return w.compare("LT", sweep, _MOST_SWEEPS) & w.compare("GT", largest, least)

    def pairs(_: Tensor, largest: Tensor, *state: Tensor) -> Sequence[Tensor]:
        between, *found = composed(w, rotated, state)
        return [w.binary("stablehlo.maximum", largest, between), *found]

    def sweep(count: Tensor, _: Tensor, *state: Tensor) -> Sequence[Tensor]:
        return [count + 1, *w.loop(size - 1, pairs, [w.scalar(0, kind), *state])]

    begin = [w.scalar(0, dtypes.int32), w.scalar(float("inf"), kind), *first]
    return w.while_(go_on, sweep, begin)[2:]


def _largest(b: Builder, x: Value) -> Value:
    found: Value = b.reduce_max(x, axes=(0, 1))
    return found


def _ordered(w: Writer, values: Tensor, matrices: Sequence[Tensor]) -> list[Tensor]:
    """Values in ascending order, and the columns of matrices that belong to them."""
    values, order = in_order(w, values, 0, dtypes.int32)

    def chosen(b: Builder, x: Value, order: Value) -> Value:
        found = b.gather(x, order, axes=(1,), slice_sizes=(x.shape[0], 1))
        return transposed(b, b.reshape_to(found, (order.shape[0], x.shape[0])))

    return [values, *(composed(w, chosen, [x, order])[0] for x in matrices)]


@rule("eigh", "eigvalsh", table=LOOPS)
def _eigh(call: Call) -> Sequence[Tensor]:
    w, n = call.writer, call.x.shape[-1]

    def rotated(b: Builder, a: Value, vectors: Value, norm: Value) -> tuple[Value, ...]:
        upper, under = _halves(b, a, 0)
        (own, between), (_, other) = _halves(b, upper, 1), _halves(b, under, 1)
        diagonals = [_diagonal(b, x) for x in (own, other, between)]
        own, other = (b.real(x) if x.dtype.is_complex else x for x in diagonals[:2])
        cosine, sine = _rotations(b, own, other, diagonals[2])
        largest = b.div(_largest(b, b.abs(diagonals[2])), norm)
        a = adjoint(b, _columns_turned(b, a, cosine, sine))
        a = adjoint(b, _columns_turned(b, a, cosine, sine))
        a = _next_pairs(b, _next_pairs(b, a, 0), 1)
        return largest, a, _next_pairs(b, _columns_turned(b, vectors, cosine, sine), 1), norm

    def scale(b: Builder, a: Value) -> Value:
        size = _largest(b, b.abs(a))
        return b.select(b.equal(size, b.zeros_like(size)), b.full((), 1, size.dtype), size)

    def solved(x: Tensor) -> Sequence[Tensor]:
        (a,) = composed(w, hermitian, [x])
        a = _even(w, _even(w, a, 0), 1)
        first = [a, _even(w, identity(w, n, n, x.dtype), 1), composed(w, scale, [a])[0]]
        a, vectors, _ = _until_settled(w, first, rotated, a.shape[0])
        vectors, a = (w.slice(v, (0, 0), (n, n)) for v in (vectors, a))
        (row,) = composed(w, lambda b, a: _diagonal(b, b.real(a) if a.dtype.is_complex else a), [a])
        values = w.reshape(row, (n,))
        values, vectors = _ordered(w, values, [vectors])
        if x.dtype.is_complex:
            (vectors,) = composed(w, lambda b, v: turned(b, v, phases(b, v)), [vectors])
        return [values, vectors]

    return as_many(call, solved, [call.x.aval])


def _diagonal(b: Builder, x: Value) -> Value:
    """As a row."""
    only = where_place(b, x, lambda row, column: b.equal(row, column))
    found: Value = b.reshape_to(b.reduce_sum(only, axes=(0,)), (1, x.shape[1]))
    return found


@rule("svd", "singular_values", table=LOOPS)
def _svd(call: Call) -> Sequence[Tensor]:
    w, x = call.writer, call.x
    m, n = x.shape[-2:]
    wide, small = m < n, min(m, n)
    full = call.name == "svd" and call.attrs["full"]

    def rotated(b: Builder, x: Value, v: Value) -> tuple[Value, ...]:
        one, other = _halves(b, x, 1)
        sums = [b.reshape_to(b.reduce_sum(y, axes=(0,)), (1, y.shape[1])) for y in (
            b.abs(one) * b.abs(one), b.abs(other) * b.abs(other), conjugated(b, one) * other
        )]  # fmt: skip
        cosine, sine = _rotations(b, *sums)
        product = b.sqrt(sums[0]) * b.sqrt(sums[1])
        none = b.equal(product, b.zeros_like(product))
        product = b.select(none, b.full(product.shape, 1, product.dtype), product)
        x, v = (_next_pairs(b, _columns_turned(b, y, cosine, sine), 1) for y in (x, v))
        return _largest(b, b.div(b.abs(sums[2]), product)), x, v

    def solved(x: Tensor) -> Sequence[Tensor]:
        if wide:
            (x,) = composed(w, adjoint, [x])
        x, size = of_size_one(w, x)
        first = [_even(w, x, 1), _even(w, identity(w, small, small, x.dtype), 1)]
        turned_x, v = _until_settled(w, first, rotated, first[0].shape[1])
        turned_x, v = (w.slice(y, (0, 0), (y.shape[0], small)) for y in (turned_x, v))

        def lengths(b: Builder, x: Value) -> Value:
            size = b.abs(x)
            return -b.sqrt(b.reduce_sum(size * size, axes=(0,)))

        values, turned_x, v = _ordered(w, composed(w, lengths, [turned_x])[0], [turned_x, v])
        singular = times(w, -values, size)
        if call.name != "svd":
            return [singular]
        u, r = householder(w, turned_x, max(m, n) if full else small)

        def signs(b: Builder, u: Value, r: Value, v: Value) -> tuple[Value, Value]:
            """R is diagonal: its signs and phases are those of columns of U."""
            own = _diagonal(b, b.slice(r, start=(0, 0), stop=(small, small), stride=(1, 1)))
            size = b.abs(own)
            none = b.equal(size, b.zeros_like(size))
            one = b.full(size.shape, 1, size.dtype)
            phase = b.div(own, b.convert_to(b.select(none, one, size), own.dtype))
            phase = b.select(none, b.full(own.shape, 1, own.dtype), phase)
            if u.shape[1] > small:
                phase = b.concatenate(phase, b.full((1, u.shape[1] - small), 1, own.dtype), axis=1)
            u = u * b.broadcast_to(phase, u.shape)
            return (v, adjoint(b, u)) if wide else (u, adjoint(b, v))

        u, vh = composed(w, signs, [u, r, v])
        if x.dtype.is_complex:
            u, vh = composed(w, without_phases, [u, vh])
        return [u, singular, vh]

    if call.name == "svd" and not x.aval.size:
        return _identities(call)
    return as_many(call, solved)


def _identities(call: Call) -> list[Tensor]:
    w = call.writer
    of_u, of_s, of_v = call.avals
    made = []
    for aval in (of_u, of_v):
        rows, across = (w.iota(aval.shape, aval.ndim - i, dtypes.int32) for i in (2, 1))
        made.append(w.convert(w.compare("EQ", rows, across), aval.dtype))
    return [made[0], w.broadcast(w.scalar(0, of_s.dtype), of_s.shape), made[1]]

