"""Eigenvalues, and Schur forms of complex matrices, for linalg: by the QR algorithm with Wilkinson's shifts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.ir import dtypes
from smelt.ir.ops.matrices import adjoint, matmul, upper_part, where_place

from ..writer import Tensor, Writer
from .factors import as_many, column_of, householder, identity, of_size_one, put, row_of, times
from .lapack import phases, turned
from .real_schur import real_schur_form
from .table import LOOPS, Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value

#: Steps for each eigenvalue; every tenth has a shift of its own.
_MOST_STEPS, _ODD = 30, 10


def _only(b: Builder, x: Value) -> Value:
    """A number of a matrix 1 × 1."""
    found: Value = b.reshape_to(x, ())
    return found


def _off(b: Builder, row: Value, last: Value) -> Value:
    """The norm of what stands to the left of the diagonal."""
    place = b.iota(shape=row.shape, axis=1, dtype=last.dtype)
    size = b.abs(b.select(b.less(place, b.broadcast_to(last, place.shape)), row, b.zeros_like(row)))
    found: Value = b.sqrt(b.reduce_sum(size * size, axes=(0, 1)))
    return found


def _shift(b: Builder, one: Value, right: Value, under: Value, last: Value, off: Value, odd: Value) -> Value:
    """The eigenvalue of the last two rows and columns that lies next to the last element."""
    one, right, under, last = (_only(b, x) for x in (one, right, under, last))
    product, half = right * under, (one - last) * 0.5
    root = b.sqrt(half * half + product)
    larger = b.greater(b.abs(half + root), b.abs(half - root))
    divisor = b.select(larger, half + root, half - root)
    none = b.equal(b.abs(divisor), b.full((), 0, off.dtype))
    change = b.div(product, b.select(none, b.full((), 1, last.dtype), divisor))
    found = last - b.select(none, b.zeros_like(product), change)
    result: Value = b.select(odd, last + b.convert_to(off, last.dtype), found)
    return result


def _active(b: Builder, t: Value, last: Value, shift: Value) -> Value:
    """T less the shift up to the last row that is not done, and ones on the diagonal from there on."""
    def inside(row: Value, column: Value) -> Value:
        end = b.broadcast_to(last, row.shape)
        return b.bitwise_and(b.less_equal(row, end), b.less_equal(column, end))

    def diagonal(x: Value) -> Value:
        return where_place(b, b.broadcast_to(x, t.shape), lambda row, column: b.equal(row, column))

    one = b.full((), 1, t.dtype)
    found: Value = where_place(b, t - diagonal(shift + one), inside) + diagonal(one)
    return found


def schur_form(w: Writer, x: Tensor) -> tuple[Tensor, Tensor]:
    """T and U with X = U·T·Uᴴ; NaN where the steps were not enough."""
    n, kind, real = x.shape[-1], x.dtype, x.dtype.real
    least = float(np.finfo(real.numpy).eps)

    def norm(b: Builder, x: Value) -> Value:
        size = b.abs(x)
        return b.sqrt(b.reduce_sum(size * size, axes=(0, 1)))

    (bound,) = composed(w, lambda b, x: norm(b, x) * least, [x])

    def go_on(last: Tensor, count: Tensor, *_: Tensor) -> Tensor:
        return w.compare("GT", last, 0) & w.compare("LT", count, _MOST_STEPS * n)

    def step(last: Tensor, count: Tensor, t: Tensor, u: Tensor) -> Sequence[Tensor]:
        row = row_of(w, t, last)
        (off,) = composed(w, _off, [row, last])

        def done() -> Sequence[Tensor]:
            def cleared(b: Builder, row: Value, last: Value) -> Value:
                place = b.iota(shape=row.shape, axis=1, dtype=last.dtype)
                return b.select(b.less(place, b.broadcast_to(last, place.shape)), b.zeros_like(row), row)

            return [last - 1, count, put(w, t, composed(w, cleared, [row, last])[0], last, 0), u]

        def turned_once() -> Sequence[Tensor]:
            above = row_of(w, t, last - 1)
            corner = [column_of(w, r, i) for r in (above, row) for i in (last - 1, last)]
            rest = w.op("stablehlo.remainder", [count, w.scalar(_ODD, count.dtype)], count.aval)
            odd = w.compare("EQ", rest, _ODD - 1)
            (shift,) = composed(w, _shift, [*corner, off, odd])
            q, _ = householder(w, composed(w, _active, [t, last, shift])[0], n)
            new, unitary = composed(
                w, lambda b, t, u, q: (matmul(b, matmul(b, adjoint(b, q), t), q), matmul(b, u, q)), [t, u, q]
            )  # fmt: skip
            return [last, count + 1, new, unitary]

        avals = [last.aval, count.aval, t.aval, u.aval]
        return w.case(w.compare("GT", off, bound), [done, turned_once], avals)

    first = [w.scalar(i, dtypes.int32) for i in (n - 1, 0)]
    last, _, t, u = w.while_(go_on, step, [*first, x, identity(w, n, n, kind)])
    found = w.broadcast(w.compare("LE", last, 0), x.shape)
    nan = w.full(x, complex(np.nan, np.nan))
    return w.select(found, composed(w, upper_part, [t])[0], nan), w.select(found, u, nan)


@rule("schur", table=LOOPS)
def _schur(call: Call) -> Sequence[Tensor]:
    w = call.writer
    form = schur_form if call.x.dtype.is_complex else real_schur_form

    def solved(x: Tensor) -> Sequence[Tensor]:
        x, size = of_size_one(w, x)
        t, u = form(w, x)
        return [times(w, t, size), u]

    return as_many(call, solved)


@rule("eig", "eigvals", table=LOOPS)
def _eig(call: Call) -> Sequence[Tensor]:
    w, n = call.writer, call.x.shape[-1]
    kind = call.avals[0].dtype
    least = float(np.finfo(kind.real.numpy).eps)

    def element(b: Builder, row: Value, x: Value, own: Value, value: Value, size: Value) -> Value:
        gap, rest = own - value, -matmul(b, row, x)
        small = b.less(b.abs(gap), size)
        gap = b.select(small, b.convert_to(size, gap.dtype), gap)
        found: Value = b.div(rest, gap)
        return found

    def solved(x: Tensor) -> Sequence[Tensor]:
        x, largest = of_size_one(w, w.convert(x, kind))
        t, u = schur_form(w, x)
        (found,) = composed(w, _values, [t])
        values = times(w, w.reshape(found, (n,)), largest)
        if call.name == "eigvals":
            return [values]
        (size,) = composed(w, lambda b, t: b.reshape_to(b.reduce_max(b.abs(t), axes=(0, 1)), (1, 1)) * least, [t])
        size = w.binary("stablehlo.maximum", size, float(np.finfo(kind.real.numpy).tiny))
        ones = identity(w, n, n, kind)

        def vector(k: Tensor, vectors: Tensor) -> Sequence[Tensor]:
            value = column_of(w, found, k)

            def step(i: Tensor, x: Tensor) -> Sequence[Tensor]:
                i = w.scalar(n - 1, i.dtype) - i
                row = row_of(w, t, i)
                (new,) = composed(w, element, [row, x, column_of(w, row, i), value, size])
                return [put(w, x, w.select(w.compare("LT", i, k), new, row_of(w, x, i)), i, 0)]

            (x,) = w.loop(n, step, [column_of(w, ones, k)])
            return [put(w, vectors, x, k, 1)]

        (vectors,) = w.loop(n, vector, [w.full(t, 0)])
        return [values, *composed(w, _normal, [u, vectors])]

    return as_many(call, solved)


def _values(b: Builder, t: Value) -> Value:
    only = where_place(b, t, lambda row, column: b.equal(row, column))
    found: Value = b.reshape_to(b.reduce_sum(only, axes=(0,)), (1, t.shape[1]))
    return found


def _normal(b: Builder, u: Value, vectors: Value) -> Value:
    vectors = matmul(b, u, vectors)
    vectors = turned(b, vectors, phases(b, vectors))
    size = b.abs(vectors)
    norm = b.sqrt(b.reshape_to(b.reduce_sum(size * size, axes=(0,)), (1, u.shape[1])))
    found: Value = b.div(vectors, b.broadcast_to(b.convert_to(norm, vectors.dtype), vectors.shape))
    return found
