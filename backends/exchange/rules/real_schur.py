"""Schur forms of real matrices for linalg: by the QR algorithm with two shifts at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.ir import dtypes
from smelt.ir.ops.matrices import adjoint, conjugated, matmul, transposed, where_place

from ..writer import Tensor, Writer
from .factors import householder, identity, or_one
from .table import composed

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value

#: Steps for each eigenvalue; every tenth has shifts of its own.
_MOST_STEPS, _ODD = 30, 10


def real_schur_form(w: Writer, x: Tensor) -> tuple[Tensor, Tensor]:
    """T and U with X = U·T·Uᵀ; NaN where the steps were not enough."""
    n, real = x.shape[-1], x.dtype
    least = float(np.finfo(real.numpy).eps)
    (bound,) = composed(w, lambda b, x: _norm(b, x) * least, [x])

    def go_on(last: Tensor, count: Tensor, *_: Tensor) -> Tensor:
        return w.compare("GT", last, 0) & w.compare("LT", count, _MOST_STEPS * n)

    def step(last: Tensor, count: Tensor, t: Tensor, u: Tensor) -> Sequence[Tensor]:
        avals = [last.aval, count.aval, t.aval, u.aval]
        one, two = composed(w, _left_of_blocks, [t, last])

        def split() -> Sequence[Tensor]:
            return [last - 1, count, composed(w, lambda b, t, last: _cleared(b, t, last, 1), [t, last])[0], u]

        def split_two() -> Sequence[Tensor]:
            return [last - 2, count, *composed(w, _block_turned, [t, u, last])]

        def turned() -> Sequence[Tensor]:
            rest = w.op("stablehlo.remainder", [count, w.scalar(_ODD, count.dtype)], count.aval)
            odd = w.compare("EQ", rest, _ODD - 1)
            shifts = composed(w, _shifts, [t, last, two, odd])
            work, unitary = w.convert(t, real.complex), None
            for shift in shifts:
                q, _ = householder(w, composed(w, _active, [work, last, shift])[0], n)
                (work,) = composed(w, lambda b, t, q: matmul(b, matmul(b, adjoint(b, q), t), q), [work, q])
                unitary = q if unitary is None else composed(w, matmul, [unitary, q])[0]
            assert unitary is not None
            q, _ = householder(w, composed(w, _without_phases, [unitary])[0], n)
            return [last, count + 1, *composed(w, _similar, [t, u, q])]

        def not_one() -> Sequence[Tensor]:
            return w.case(w.compare("GT", two, bound), [split_two, turned], avals)

        return w.case(w.compare("GT", one, bound), [split, not_one], avals)

    first = [w.scalar(i, dtypes.int32) for i in (n - 1, 0)]
    last, _, t, u = w.while_(go_on, step, [*first, x, identity(w, n, n, real)])
    found, nan = w.broadcast(w.compare("LE", last, 0), x.shape), w.full(x, np.nan)
    return w.select(found, t, nan), w.select(found, u, nan)


def _norm(b: Builder, x: Value) -> Value:
    found: Value = b.sqrt(b.reduce_sum(x * x, axes=(0, 1)))
    return found


def _similar(b: Builder, t: Value, u: Value, q: Value) -> tuple[Value, Value]:
    return matmul(b, matmul(b, transposed(b, q), t), q), matmul(b, u, q)


def _left_of(b: Builder, t: Value, last: Value, count: int) -> Value:
    """Where T has the last `count` rows that are not done, left of their block on the diagonal."""
    row, column = (b.iota(shape=t.shape, axis=axis, dtype=last.dtype) for axis in (0, 1))
    end, start = (b.broadcast_to(x, t.shape) for x in (last, last - b.full((), count - 1, last.dtype)))
    inside = b.bitwise_and(b.less_equal(row, end), b.greater_equal(row, start))
    found: Value = b.bitwise_and(inside, b.less(column, start))
    return found


def _left_of_blocks(b: Builder, t: Value, last: Value) -> tuple[Value, Value]:
    """The norms of what stands left of the last element of the diagonal, and of the last block of two."""
    none = b.zeros_like(t)
    one, two = (_norm(b, b.select(_left_of(b, t, last, count), t, none)) for count in (1, 2))
    return one, two


def _cleared(b: Builder, t: Value, last: Value, count: int) -> Value:
    found: Value = b.select(_left_of(b, t, last, count), b.zeros_like(t), t)
    return found


def _corner(b: Builder, t: Value, last: Value) -> tuple[Value, Value, Value, Value]:
    """The last block of two rows that are not done."""
    before = last - b.full((), 1, last.dtype)

    def at(i: Value, j: Value) -> Value:
        place = where_place(
            b, b.full(t.shape, 1, t.dtype),
            lambda row, column: b.bitwise_and(
                b.equal(row, b.broadcast_to(i, row.shape)), b.equal(column, b.broadcast_to(j, row.shape))
            ),
        )  # fmt: skip
        found: Value = b.reduce_sum(b.select(b.equal(place, b.zeros_like(place)), place, t), axes=(0, 1))
        return found

    return at(before, before), at(before, last), at(last, before), at(last, last)


def _roots(b: Builder, corner: Sequence[Value]) -> tuple[Value, Value, Value]:
    """Half the difference of the diagonal of a block, the root of |q| and where q is negative; its eigenvalues are
    their mean ± √q."""
    one, right, under, last = corner
    half = (one - last) * 0.5
    square = half * half + right * under
    return half, b.sqrt(b.abs(square)), b.less(square, b.zeros_like(square))


def _shifts(b: Builder, t: Value, last: Value, size: Value, odd: Value) -> tuple[Value, Value]:
    """The eigenvalues of the last block, which may be conjugates of each other."""
    corner = _corner(b, t, last)
    half, root, is_pair = _roots(b, corner)
    none = b.zeros_like(root)
    mean = corner[3] + half + b.select(odd, size, none)
    real, imaginary = b.select(is_pair, none, root), b.select(is_pair, root, none)
    return b.complex(mean + real, imaginary), b.complex(mean - real, -imaginary)


def _active(b: Builder, t: Value, last: Value, shift: Value) -> Value:
    """T less the shift up to the last row that is not done, and ones on the diagonal from there on."""
    end = b.broadcast_to(last, t.shape)
    row, column = (b.iota(shape=t.shape, axis=axis, dtype=last.dtype) for axis in (0, 1))
    inside = b.bitwise_and(b.less_equal(row, end), b.less_equal(column, end))
    on = b.equal(row, column)
    none = b.zeros_like(t)
    one = b.full(t.shape, 1, t.dtype)
    shifted = t - b.select(on, b.broadcast_to(shift, t.shape), none)
    found: Value = b.select(inside, shifted, b.select(on, one, none))
    return found


def _without_phases(b: Builder, x: Value) -> Value:
    """Of a real matrix whose columns are multiplied by phases each the real matrix: a sum of squares of a column is the
    square of its phase."""
    square = b.reshape_to(b.reduce_sum(x * x, axes=(0,)), (1, x.shape[1]))
    size = or_one(b, b.abs(square))
    phase = b.sqrt(b.complex(b.div(b.real(square), size), b.div(b.imag(square), size)))
    found: Value = b.real(x * b.broadcast_to(conjugated(b, phase), x.shape))
    return found


def _block_turned(b: Builder, t: Value, u: Value, last: Value) -> tuple[Value, Value]:
    """T and U with the last block as it is to be: of real eigenvalues triangular, of others with an even diagonal."""
    corner = _corner(b, t, last)
    _, right, under, _ = corner
    half, root, is_pair = _roots(b, corner)
    none, one = b.zeros_like(half), b.full((), 1, t.dtype)
    # Real eigenvalues: the first column is the eigenvector (z, under), z = half ± root with no cancellation.
    larger = b.select(b.less(half, none), half - root, half + root)
    # Others: an angle of half that at which the difference of the diagonal turns to zero.
    mean = (right + under) * 0.5
    negative = b.less(mean, none)
    x, y = b.abs(mean), b.select(negative, half, -half)
    size = or_one(b, b.sqrt(x * x + y * y))
    unequal = b.greater(x * x + y * y, none)
    double = b.select(unequal, b.div(x, size), one)
    cosine = b.sqrt((one + double) * 0.5)
    sine = b.select(unequal, b.div(y, size), none) * 0.5
    first, second = b.select(is_pair, cosine * cosine, larger), b.select(is_pair, sine, under)
    length = b.sqrt(first * first + second * second)
    some = b.greater(length, none)
    length = or_one(b, length)
    cosine = b.select(some, b.div(first, length), one)
    sine = b.select(some, b.div(second, length), none)

    row, column = (b.iota(shape=t.shape, axis=axis, dtype=last.dtype) for axis in (0, 1))
    end = b.broadcast_to(last, t.shape)
    before = b.broadcast_to(last - b.full((), 1, last.dtype), t.shape)
    in_first, in_last = b.equal(column, before), b.equal(column, end)
    of_first, of_last = b.equal(row, before), b.equal(row, end)
    q = where_place(b, b.full(t.shape, 1, t.dtype), lambda row, column: b.equal(row, column))
    for where, value in (
        (b.bitwise_and(of_first, in_first), cosine), (b.bitwise_and(of_last, in_last), cosine),
        (b.bitwise_and(of_last, in_first), sine), (b.bitwise_and(of_first, in_last), -sine),
    ):  # fmt: skip
        q = b.select(where, b.broadcast_to(value, t.shape), q)
    t, u = _similar(b, _cleared(b, t, last, 2), u, q)
    under_zero = b.bitwise_and(b.bitwise_and(of_last, in_first), b.broadcast_to(b.logical_not(is_pair), t.shape))
    return b.select(under_zero, b.zeros_like(t), t), u
