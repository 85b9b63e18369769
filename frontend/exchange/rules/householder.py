"""Householder's reflectors, as LAPACK stores them: H = I - τ·v·vᴴ, v with 1 on the diagonal and zeros above it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smelt.ir import dtypes
from smelt.ir.op import registry as ops

from ...functions.complex_numbers import conj, imag, real
from ...functions.diagonals import triu
from ...functions.index_functions import take
from ...functions.logic import where
from ...functions.reductions import argmax
from ...functions.shaping import matrix_transpose
from ...lazy.arrays import array, convert, emit
from ...lazy.operands import constant
from ...transforms.control import fori_loop
from ...transforms.vmap import vmap
from .elementwise import apply, full_like
from .shapes import reshaped


def over_batch(function: Callable[..., Sequence[array]], core: int, *arguments: array) -> list[array]:
    """A function of matrices, applied to each of a batch of them."""
    lead = arguments[0].shape[:-core]
    if not lead:
        return list(function(*arguments))
    count = math.prod(lead)
    flat = [reshaped(x, (count, *x.shape[len(lead) :])) for x in arguments]
    found = vmap(lambda *xs: tuple(function(*xs)))(*flat)
    return [reshaped(y, (*lead, *y.shape[1:])) for y in found]


def _iota(size: int) -> array:
    return emit(ops["iota"], (), {"shape": (size,), "axis": 0, "dtype": dtypes.int32})


def _column(a: array, j: array) -> array:
    found = emit(ops["gather"], (a, j), {"axes": (1,), "slice_sizes": (a.shape[0], 1)})
    return reshaped(found, (a.shape[0],))


def _entry(v: array, j: array) -> array:
    return reshaped(emit(ops["gather"], (v, j), {"axes": (0,), "slice_sizes": (1,)}), ())


def _total(x: array) -> array:
    return emit(ops["reduce_sum"], (x,), {"axes": tuple(range(x.ndim))})


def _product_axes(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"lhs_contracting": lhs, "rhs_contracting": rhs, "lhs_batch": (), "rhs_batch": ()}


def _reflected(a: array, v: array, scale: array) -> array:
    """a - scale · v · (vᴴ · a)."""
    row = emit(ops["dot_general"], (conj(v), a), _product_axes((0,), (0,)))
    update = emit(ops["dot_general"], (v, row), _product_axes((), ()))
    return apply("sub", a, apply("mul", scale, update))


def _spread(x: array, like: array) -> array:
    return emit(ops["broadcast"], (x,), {"shape": like.shape})


def _reflector(x: array, j: array) -> tuple[array, array, array]:
    """v, τ and β of column x: H·x has β in row j and zeros below it."""
    rows = _iota(x.shape[0])
    at = _spread(j, rows)
    below, here = apply("greater", rows, at), apply("equal", rows, at)
    alpha = _entry(x, j)
    tail = where(below, x, full_like(x, 0))
    parts = [real(tail), imag(tail)] if x.dtype.is_complex else [tail]
    rest = _total(apply("add", *[apply("mul", p, p) for p in parts]) if len(parts) == 2 else apply("mul", tail, tail))
    a_re = real(alpha) if x.dtype.is_complex else alpha
    a_im = imag(alpha) if x.dtype.is_complex else full_like(alpha, 0)
    other = apply("add", rest, apply("mul", a_im, a_im))
    zero = apply("equal", other, full_like(other, 0))
    square = where(zero, full_like(other, 1), apply("add", other, apply("mul", a_re, a_re)))
    norm = emit(ops["sqrt"], (square,))
    beta = where(apply("less", a_re, full_like(a_re, 0)), norm, apply("neg", norm))
    tau_re = where(zero, full_like(beta, 0), apply("div", apply("sub", beta, a_re), beta))
    tau = tau_re
    if x.dtype.is_complex:
        tau = apply("complex", tau_re, where(zero, full_like(beta, 0), apply("neg", apply("div", a_im, beta))))
    beta = where(zero, a_re, beta)
    beta = convert(beta, x.dtype)
    divisor = where(zero, full_like(alpha, 1), apply("sub", alpha, beta))
    v = where(here, full_like(x, 1), apply("div", tail, _spread(divisor, x)))
    return v, tau, beta


def _factor_column(a: array, taus: array, j: array) -> tuple[array, array]:
    """A step of `factor`: zeros below the diagonal of column j."""
    m, n = a.shape
    columns, places, rows = _iota(n), _iota(taus.shape[0]), _iota(m)
    x = _column(a, j)
    v, tau, beta = _reflector(x, j)
    scale = conj(tau) if a.dtype.is_complex else tau
    after = apply("greater", columns, _spread(j, columns))
    mask = emit(ops["broadcast"], (reshaped(after, (1, n)),), {"shape": a.shape})
    moved = where(mask, _reflected(a, v, scale), a)
    at = _spread(j, rows)
    kept = where(apply("less", rows, at), x, where(apply("equal", rows, at), _spread(beta, x), v))
    return _with_column(moved, j, kept), where(apply("equal", places, _spread(j, places)), _spread(tau, taus), taus)


def _with_column(a: array, j: array, column: array) -> array:
    m, n = a.shape
    columns = _iota(n)
    here = reshaped(apply("equal", columns, _spread(j, columns)), (1, n))
    wide = emit(ops["broadcast"], (reshaped(column, (m, 1)),), {"shape": a.shape})
    return where(emit(ops["broadcast"], (here,), {"shape": a.shape}), wide, a)


def factor(a: array) -> tuple[array, array]:
    """LAPACK's geqrf: R on and above the diagonal, the reflectors below it, and their τ."""
    k = min(a.shape)
    start = a, constant(0, a.dtype, (k,))
    a, taus = fori_loop(0, k, lambda j, carry: _factor_column(carry[0], carry[1], j), start)
    return a, taus


def factor_pivoted(a: array) -> tuple[array, array, array]:
    """LAPACK's geqp3: `factor` of the columns, each the longest of what is left; their order, from 1 on."""
    m, n = a.shape
    k = min(m, n)
    rows = emit(ops["iota"], (), {"shape": (m, n), "axis": 0, "dtype": dtypes.int32})
    columns = _iota(n)

    def step(j: array, carry: tuple[array, array, array]) -> tuple[array, ...]:
        a, order, taus = carry
        left = where(apply("less", rows, _spread(j, rows)), full_like(a, 0), a)
        parts = [real(left), imag(left)] if a.dtype.is_complex else [left]
        lengths = sum((emit(ops["reduce_sum"], (apply("mul", x, x),), {"axes": (0,)}) for x in parts[1:]),
                      emit(ops["reduce_sum"], (apply("mul", parts[0], parts[0]),), {"axes": (0,)}))  # fmt: skip
        done = apply("less", columns, _spread(j, columns))
        longest = argmax(where(done, full_like(lengths, -1), lengths)).astype(dtypes.int32)
        at_j, at_longest = (apply("equal", columns, _spread(i, columns)) for i in (j, longest))
        chosen = where(at_j, _spread(longest, columns), where(at_longest, _spread(j, columns), columns))
        a, taus = _factor_column(take(a, chosen, 1), taus, j)
        return a, take(order, chosen, 0), taus

    start = a, apply("add", columns, full_like(columns, 1)), constant(0, a.dtype, (k,))
    a, order, taus = fori_loop(0, k, step, start)
    return a, order, taus


def hessenberg(a: array) -> tuple[array, array]:
    """LAPACK's gehrd: H on, above and next below the diagonal, the reflectors below that, and their τ: A = Q·H·Qᴴ."""
    n = a.shape[0]
    if n < 2:
        return a, constant(0, a.dtype, (0,))
    rows, places = _iota(n), _iota(n - 1)

    def step(j: array, carry: tuple[array, array, array]) -> tuple[array, ...]:
        a, reflectors, taus = carry
        below = apply("add", j, full_like(j, 1))
        v, tau, _ = _reflector(_column(a, j), below)
        scale = conj(tau) if a.dtype.is_complex else tau
        a = _reflected(a, v, scale)
        a = _adjoint(_reflected(_adjoint(a), v, scale))
        kept = where(apply("greater", rows, _spread(below, rows)), v, full_like(v, 0))
        taus = where(apply("equal", places, _spread(j, places)), _spread(tau, taus), taus)
        return a, _with_column(reflectors, j, kept), taus

    start = a, full_like(a, 0), constant(0, a.dtype, (n - 1,))
    found, reflectors, taus = fori_loop(0, n - 1, step, start)
    return apply("add", triu(found, -1), reflectors), taus


def _adjoint(a: array) -> array:
    return conj(matrix_transpose(a)) if a.dtype.is_complex else matrix_transpose(a)


def multiply(a: array, taus: array, c: array, left: bool, adjoint: bool) -> array:
    """LAPACK's ormqr: Q·C, Qᴴ·C, C·Q or C·Qᴴ, where Q = H₀·H₁·… of the reflectors below the diagonal of `a`."""
    if not left:
        return _adjoint(multiply(a, taus, _adjoint(c), True, not adjoint))
    k = taus.shape[0]

    def step(i: array, c: array) -> array:
        j = i if adjoint else apply("sub", constant(k - 1, dtypes.int32), i)
        line = _iota(a.shape[0])
        at = _spread(j, line)
        x = _column(a, j)
        below, here = apply("greater", line, at), apply("equal", line, at)
        v = where(here, full_like(x, 1), where(below, x, full_like(x, 0)))
        tau = _entry(taus, j)
        return _reflected(c, v, conj(tau) if adjoint and a.dtype.is_complex else tau)

    found: array = fori_loop(0, k, step, c)
    return found


def product(a: array, taus: array) -> array:
    """LAPACK's orgqr: the first columns of H₀·H₁·…, as many as `a` has."""
    m, n = a.shape
    k = taus.shape[0]
    rows = emit(ops["iota"], (), {"shape": (m, n), "axis": 0, "dtype": dtypes.int32})
    columns = emit(ops["iota"], (), {"shape": (m, n), "axis": 1, "dtype": dtypes.int32})
    start = convert(apply("equal", rows, columns), a.dtype)

    def step(i: array, q: array) -> array:
        j = apply("sub", constant(k - 1, dtypes.int32), i)
        line = _iota(m)
        at = _spread(j, line)
        x = _column(a, j)
        below, here = apply("greater", line, at), apply("equal", line, at)
        v = where(here, full_like(x, 1), where(below, x, full_like(x, 0)))
        return _reflected(q, v, _entry(taus, j))

    found: array = fori_loop(0, k, step, start)
    return found
