"""The exponential of matrices, square roots, logarithms, Sylvester's equation and derivatives, by the methods that
`smelt.ir.triangular_forms` and `smelt.ir.ops.matrix_functions` name: as loops over columns, squarings and roots."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.ops.matrices import adjoint, columns, diagonal, like_matrix, lower, matmul, rows, upper_part, where_place
from smelt.ir.ops.matrix_functions import LEFT_OUT, NORM, PADE
from smelt.ir.triangular_forms import MOST_ROOTS, NEAR, NODES

from ..writer import Tensor, Writer
from .systems import by_ops
from .table import Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value

_WIDE = dtypes.complex128


def _identity(b: Builder, x: Value) -> Value:
    return lower(b, upper_part(b, b.full(x.shape, 1, x.dtype)))


def _norm(b: Builder, x: Value) -> Value:
    """The largest sum of absolute values of a column, of each matrix."""
    return b.reduce_max(b.reduce_sum(b.abs(x), axes=(x.ndim - 2,)), axes=(x.ndim - 2,))


def _power_of_two(b: Builder, x: Value) -> Value:
    return b.power(b.full(x.shape, 2, x.dtype), x)


# The exponential


@rule("expm")
def _expm(call: Call) -> Tensor:
    w, x = call.writer, call.x
    if not x.aval.size:
        return x
    found, halvings, most = composed(w, _of_small_norm, [x])

    def squared(b: Builder, i: Value, x: Value, halvings: Value) -> Value:
        more = b.greater(halvings, b.broadcast_to(i, halvings.shape))
        return b.select(b.broadcast_to(b.reshape_to(more, (*more.shape, 1, 1)), x.shape), matmul(b, x, x), x)

    (found,) = w.loop(most, lambda i, x: composed(w, squared, [i, x, halvings]), [found])
    return w.convert(found, call.aval.dtype)


def _halved(b: Builder, a: Value, times: Value) -> Value:
    return b.div(a, b.convert_to(like_matrix(b, _power_of_two(b, times), a.shape), a.dtype))


def _fewer(b: Builder, a: Value, halvings: Value) -> Value:
    """Of the `halvings` that matrices went through those that matter, as `smelt.ir.ops.matrix_functions` has it."""

    def digits(x: Value) -> Value:
        return b.log2(b.maximum(x, b.full(x.shape, np.finfo(float).tiny, x.dtype)))

    a2 = matmul(b, a, a)
    a4 = matmul(b, a2, a2)
    a6 = matmul(b, a4, a2)
    powers = ((4, a4), (6, a6), (8, matmul(b, a4, a4)), (10, matmul(b, a4, a6)))
    roots = [digits(_norm(b, x)) * (1 / k) for k, x in powers]
    size = functools.reduce(b.minimum, itertools.starmap(b.maximum, itertools.pairwise(roots)))
    none = b.zeros_like(halvings)
    few = b.maximum(b.minimum(halvings, halvings + b.ceil(size - math.log2(NORM))), none)
    absolute = b.abs(a)
    sizes = b.full((*a.shape[:-2], 1, a.shape[-1]), 1, absolute.dtype)
    for _ in range(27):
        sizes = matmul(b, sizes, absolute)
    ratio = digits(b.reduce_max(sizes, axes=(a.ndim - 2, a.ndim - 1))) - digits(_norm(b, a))
    left_out = ratio + (halvings - few) * 26 + (53 + math.log2(LEFT_OUT))
    return b.minimum(few + b.maximum(b.ceil(left_out * (1 / 26)), none), halvings)


def _of_small_norm(b: Builder, a: Value) -> tuple[Value, Value, Value]:
    """By Padé's approximant: of a matrix that was halved often enough, how often, and the most of these numbers."""
    a = b.convert_to(a, _WIDE if a.dtype.is_complex else dtypes.float64)
    norm, one = _norm(b, a), _identity(b, a)
    finite = b.less(norm, b.full(norm.shape, np.inf, norm.dtype))
    ratio = b.maximum(b.select(finite, norm, b.zeros_like(norm)) * (1 / NORM), b.full(norm.shape, 1, norm.dtype))
    most = b.minimum(b.ceil(b.log2(ratio)), b.full(norm.shape, 64, norm.dtype))
    halvings = b.select(finite, _fewer(b, _halved(b, a, most), most), b.zeros_like(most))
    a = _halved(b, a, halvings)
    c, a2 = PADE, matmul(b, a, a)
    a4 = matmul(b, a2, a2)
    a6 = matmul(b, a4, a2)
    odd = matmul(b, a6, a6 * c[13] + a4 * c[11] + a2 * c[9]) + a6 * c[7] + a4 * c[5] + a2 * c[3] + one * c[1]
    odd = matmul(b, a, odd)
    even = matmul(b, a6, a6 * c[12] + a4 * c[10] + a2 * c[8]) + a6 * c[6] + a4 * c[4] + a2 * c[2] + one * c[0]
    return b.solve(even - odd, even + odd), halvings, b.reduce_max(halvings, axes=tuple(range(norm.ndim)))


@by_ops("expm_frechet")
def _expm_frechet(b: Builder, a: Value, e: Value) -> Value:
    return _along(b, b.expm, a, e)


@by_ops("logm_frechet")
def _logm_frechet(b: Builder, a: Value, e: Value) -> Value:
    return _along(b, b.logm, a, e)


def _along(b: Builder, function: Callable[[Value], Value], a: Value, e: Value) -> Value:
    """The upper right block of the function of [[A, E], [0, A]], where E has the norm 1."""
    lead, n = np.broadcast_shapes(a.shape[:-2], e.shape[:-2]), a.shape[-1]
    a, e = (b.broadcast_to(x, (*lead, n, n)) for x in (a, e))
    if not a.aval.size:
        return e
    size, kind, zero = _norm(b, e), a.dtype, b.zeros_like(a)
    size = b.select(b.equal(size, b.zeros_like(size)), b.full(size.shape, 1, size.dtype), size)
    scale = b.convert_to(like_matrix(b, size, e.shape), kind)
    across, down = a.ndim - 1, a.ndim - 2
    upper, under = b.concatenate(a, b.div(e, scale), axis=across), b.concatenate(zero, a, axis=across)
    whole = b.convert_to(b.concatenate(upper, under, axis=down), _WIDE if kind.is_complex else dtypes.float64)
    found = columns(b, rows(b, function(whole), 0, n), n, 2 * n)
    return b.convert_to(found, kind) * scale


# By Schur forms


@rule("sylvester")
def _sylvester(call: Call) -> Tensor:
    """A column of the solution after the other (Bartels and Stewart)."""
    w, result = call.writer, call.aval
    if not result.size:
        return w.broadcast(w.scalar(0, result.dtype), result.shape)
    s, t, right, u, v = composed(w, _triangular_equation, call.operands)
    lead = result.ndim - 2

    def step(k: Tensor, found: Tensor) -> Sequence[Tensor]:
        return composed(w, _next_column, [k, found, s, _column(w, t, k, lead), _column(w, right, k, lead)])

    (found,) = w.loop(result.shape[-1], step, [w.full(right, 0)])
    (found,) = composed(w, lambda b, u, x, v: matmul(b, matmul(b, u, x), adjoint(b, v)), [u, found, v])
    return _narrowed(w, found, result)


def _triangular_equation(b: Builder, left: Value, right: Value, q: Value) -> tuple[Value, ...]:
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (left, right, q)))
    left, right, q = (b.broadcast_to(b.convert_to(x, _WIDE), (*lead, *x.shape[-2:])) for x in (left, right, q))
    (s, u), (t, v) = b.schur(left), b.schur(right)
    return s, t, matmul(b, matmul(b, adjoint(b, u), q), v), u, v


def _next_column(b: Builder, k: Value, found: Value, s: Value, factors: Value, right: Value) -> Value:
    """(S + t[k, k])·x = right - found·t[:, k]; columns of `found` from k on are zero."""
    here = b.equal(b.iota(shape=factors.shape, axis=factors.ndim - 2, dtype=k.dtype), b.broadcast_to(k, factors.shape))
    own = b.reduce_sum(b.select(here, factors, b.zeros_like(factors)), axes=(factors.ndim - 2, factors.ndim - 1))
    system = s + _identity(b, s) * like_matrix(b, own, s.shape)
    x = b.solve_triangular(system, right - matmul(b, found, factors), upper=True)
    return _with_column(b, found, k, x)


def _with_column(b: Builder, matrix: Value, k: Value, x: Value) -> Value:
    place = b.iota(shape=matrix.shape, axis=matrix.ndim - 1, dtype=k.dtype)
    return b.select(b.equal(place, b.broadcast_to(k, matrix.shape)), b.broadcast_to(x, matrix.shape), matrix)


def _column(w: Writer, x: Tensor, k: Tensor, lead: int) -> Tensor:
    return w.dynamic_slice(x, [*[w.scalar(0, k.dtype)] * (lead + 1), k], (*x.shape[:-1], 1))


@rule("sqrtm")
def _sqrtm(call: Call) -> Tensor:
    return _through(call, _root)


@rule("logm")
def _logm(call: Call) -> Tensor:
    return _through(call, _logarithm)


def _through(call: Call, function: Callable[[Writer, Tensor], Tensor]) -> Tensor:
    """A function of matrices by what it is of upper triangular ones."""
    w, x = call.writer, call.x
    if not x.aval.size:
        return x
    form, u = composed(w, lambda b, x: b.schur(b.convert_to(x, _WIDE)), [x])
    found = [u, function(w, form)]
    (found[1],) = composed(w, lambda b, u, x: matmul(b, matmul(b, u, x), adjoint(b, u)), found)
    return _narrowed(w, found[1], call.aval)


def _narrowed(w: Writer, x: Tensor, result: Aval) -> Tensor:
    """In the dtype of the op; NaN where that is real and the matrix is not."""
    if result.dtype.is_complex:
        return w.convert(x, result.dtype)
    most = 10 * float(np.sqrt(result.shape[-1] * np.finfo(result.dtype.numpy).eps))

    def of_reals(b: Builder, x: Value) -> Value:
        axes = (x.ndim - 2, x.ndim - 1)
        size, rest = b.reduce_max(b.abs(x), axes=axes), b.reduce_max(b.abs(b.imag(x)), axes=axes)
        real = like_matrix(b, b.convert_to(b.less_equal(rest, size * most), dtypes.float64), x.shape)
        nan = b.full(x.shape, np.nan, dtypes.float64)
        return b.select(b.greater(real, b.zeros_like(real)), b.real(x), nan)

    return w.convert(composed(w, of_reals, [x])[0], result.dtype)


def _root(w: Writer, t: Tensor) -> Tensor:
    """The square root of upper triangular matrices, a column after the other (Björck and Hammarling)."""
    lead = t.aval.ndim - 2
    (roots,) = composed(w, lambda b, t: b.sqrt(diagonal(b, t)), [t])

    def step(j: Tensor, found: Tensor) -> Sequence[Tensor]:
        return composed(w, _column_of_root, [j, found, roots, _column(w, t, j, lead)])

    return w.loop(t.shape[-1], step, [w.full(t, 0)])[0]


def _column_of_root(b: Builder, j: Value, found: Value, roots: Value, right: Value) -> Value:
    """(R + r[j])·x = t[:j, j] for the rows above j; where r[i] + r[j] is zero, a rest of zero leaves x free."""
    down = found.ndim - 2
    place = b.iota(shape=right.shape, axis=down, dtype=j.dtype)
    at, zero = b.broadcast_to(j, right.shape), b.zeros_like(right)
    each = b.reshape_to(roots, right.shape)
    own = b.reduce_sum(b.select(b.equal(place, at), each, zero), axes=(down, down + 1))
    above, total = b.less(place, at), each + like_matrix(b, own, right.shape)
    free = b.equal(total, zero)
    divisor = b.select(b.bitwise_and(above, b.not_equal(total, zero)), total, b.full(right.shape, 1, right.dtype))
    strict = where_place(b, found, lambda row, column: b.less(row, column))
    system = strict + _identity(b, found) * b.broadcast_to(divisor, found.shape)
    x = b.solve_triangular(system, b.select(above, right, zero), upper=True)
    wrong = b.bitwise_and(free, b.not_equal(x, zero))
    x = b.select(wrong, b.full(right.shape, np.nan, right.dtype), x)
    return _with_column(b, found, j, b.select(b.equal(place, at), each, x))


def _logarithm(w: Writer, t: Tensor) -> Tensor:
    """Of so many square roots that a quadrature gives it."""
    lead = t.shape[:-2]

    def far(b: Builder, near: Value) -> Value:
        distance = _norm(b, near - _identity(b, near))
        return b.greater(distance, b.full(distance.shape, NEAR, distance.dtype))

    def go_on(near: Tensor, count: Tensor) -> Tensor:
        (more,) = composed(w, far, [near])
        more = more & w.compare("LT", count, float(MOST_ROOTS))
        return w.reduce(more, False, "stablehlo.or", tuple(range(len(lead))))

    def step(near: Tensor, count: Tensor) -> Sequence[Tensor]:
        (more,) = composed(w, far, [near])
        whole = w.broadcast(w.reshape(more, (*lead, 1, 1)), near.shape)
        return [w.select(whole, _root(w, near), near), count + w.convert(more, count.dtype)]

    first = w.broadcast(w.scalar(0, dtypes.float64), lead)
    near, count = w.while_(go_on, step, [t, first])
    return composed(w, _quadrature, [t, near, count])[0]


def _quadrature(b: Builder, t: Value, near: Value, roots: Value) -> Value:
    """log(1 + X) = ∫ X·(1 + s·X)⁻¹ ds over [0, 1]; the diagonal without the cancellation of near - 1."""
    one, total = _identity(b, near), b.zeros_like(near)
    change = near - one
    for x, weight in zip(*np.polynomial.legendre.leggauss(NODES)):
        system = one + change * complex((x + 1) / 2)
        total = total + b.solve_triangular(system, change, upper=True) * complex(weight / 2)
    scaled = total * b.convert_to(like_matrix(b, _power_of_two(b, roots), total.shape), total.dtype)
    strict = where_place(b, scaled, lambda row, column: b.less(row, column))
    logs = diagonal(b, t)
    logs = b.log(b.broadcast_to(b.reshape_to(logs, (*logs.shape, 1)), t.shape))
    return strict + where_place(b, logs, lambda row, column: b.equal(row, column))
