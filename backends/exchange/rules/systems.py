"""Systems of equations, inverses and determinants, made of factors: of LU, and of singular values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.ir.ops.matrices import (
    adjoint,
    diagonal,
    like_matrix,
    lower,
    matmul,
    upper_part,
    where_place,
)

from ..writer import Tensor
from .table import Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value


def by_ops(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter ``body(b, *operands, **attributes)``, which makes the results of an op from other ops."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        @rule(name)
        def write(call: Call) -> list[Tensor]:
            return composed(call.writer, lambda b, *values: body(b, *values, **call.attrs), call.operands)

        return body

    return enter


@by_ops("solve")
def _solve(b: Builder, a: Value, right: Value) -> Value:
    lead = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    right = b.broadcast_to(right, (*lead, *right.shape[-2:]))
    factors, _, order = b.lu(b.broadcast_to(a, (*lead, *a.shape[-2:])))
    one = b.full(factors.shape, 1, factors.dtype)
    left = lower(b, factors, below=1) + lower(b, upper_part(b, one))
    return b.solve_triangular(factors, b.solve_triangular(left, _rows_at(b, right, order)), upper=True)


def _rows_at(b: Builder, x: Value, order: Value) -> Value:
    """The rows of matrices in the order that numbers say."""
    if not x.aval.size:
        return x
    lead = x.ndim - 2
    places = [b.iota(shape=order.shape, axis=axis, dtype=order.dtype) for axis in range(lead)]
    sizes = (*[1] * (lead + 1), x.shape[-1])
    return b.reshape_to(b.gather(x, *places, order, axes=tuple(range(lead + 1)), slice_sizes=sizes), x.shape)


@by_ops("inv")
def _inv(b: Builder, a: Value) -> Value:
    return b.solve(a, lower(b, upper_part(b, b.full(a.shape, 1, a.dtype))))


@by_ops("det")
def _det(b: Builder, a: Value) -> Value:
    return b.reduce_prod(_pivots(b, a), axes=(a.ndim - 2,))


@by_ops("slogdet")
def _slogdet(b: Builder, a: Value) -> tuple[Value, Value]:
    pivots = _pivots(b, a)
    size = b.abs(pivots)
    some = b.select(b.equal(size, b.zeros_like(size)), b.full(size.shape, 1, size.dtype), size)
    axes = (a.ndim - 2,)
    sign = b.reduce_prod(b.div(pivots, b.convert_to(some, pivots.dtype)), axes=axes)
    return sign, b.reduce_sum(b.log(size), axes=axes)


def _pivots(b: Builder, a: Value) -> Value:
    """Numbers whose product is the determinant: each exchange of two rows turns the sign."""
    factors, exchanged, _ = b.lu(a)
    place = b.iota(shape=exchanged.shape, axis=exchanged.ndim - 1, dtype=exchanged.dtype)
    found = diagonal(b, factors)
    return b.select(b.equal(exchanged, place), found, -found)


@by_ops("adjugate")
def _adjugate(b: Builder, a: Value) -> Value:
    """Of A = U·S·Vᴴ: det(U)·det(Vᴴ)·V·adj(S)·Uᴴ, where adj(S) has products of all singular values but one."""
    u, s, vh = b.svd(a, full=False)
    n = a.shape[-1]
    values = b.broadcast_to(b.reshape_to(s, (*s.shape[:-1], 1, n)), a.shape)
    own = where_place(b, b.full(a.shape, 1, s.dtype), lambda row, column: b.equal(row, column))
    others = b.reduce_prod(b.select(b.greater(own, b.zeros_like(own)), own, values), axes=(a.ndim - 1,))
    right = b.convert_to(b.broadcast_to(b.reshape_to(others, (*others.shape, 1)), a.shape), a.dtype) * adjoint(b, u)
    return like_matrix(b, b.det(u) * b.det(vh), a.shape) * matmul(b, adjoint(b, vh), right)


@by_ops("least_squares")
def _least_squares(b: Builder, a: Value, right: Value, rtol: float) -> Value:
    return matmul(b, b.pinv(a, rtol=rtol), right)


@by_ops("pinv")
def _pinv(b: Builder, a: Value, rtol: float) -> Value:
    m, n = a.shape[-2:]
    if not m or not n:
        return b.full((*a.shape[:-2], n, m), 0, a.dtype)
    u, s, vh = b.svd(a, full=False)
    least = b.reduce_max(s, axes=(s.ndim - 1,)) * b.full(s.shape[:-1], rtol, s.dtype)
    counts = b.greater(s, b.broadcast_to(b.reshape_to(least, (*least.shape, 1)), s.shape))
    one = b.full(s.shape, 1, s.dtype)
    inverse = b.select(counts, b.div(one, b.select(counts, s, one)), b.zeros_like(s))
    inverse = b.broadcast_to(b.reshape_to(inverse, (*s.shape, 1)), (*s.shape, m))
    return matmul(b, adjoint(b, vh), b.convert_to(inverse, a.dtype) * adjoint(b, u))
