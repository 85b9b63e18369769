"""Factors of matrices for linalg, which has none: one matrix after the other, by loops over its columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.ops.matrices import adjoint, lower, matmul, upper_part

from ..writer import Tensor, Writer
from .library import same_batch
from .table import LOOPS, Call, composed, rule

if TYPE_CHECKING:
    from smelt.ir.builder import Builder, Value


def each(
    w: Writer, operands: Sequence[Tensor], results: Sequence[Aval], body: Callable[..., Sequence[Tensor]]
) -> list[Tensor]:
    """What `body` makes of each matrix of a batch; `results` are those of the whole batch."""
    lead = operands[0].shape[:-2]
    if not lead:
        return list(body(*operands))
    count, kind = math.prod(lead), dtypes.int32
    flat = [w.reshape(x, (count, *x.shape[-2:])) for x in operands]
    cores = [a.shape[len(lead) :] for a in results]
    made = [w.broadcast(w.scalar(0, a.dtype), (count, *core)) for a, core in zip(results, cores)]

    def step(i: Tensor, *made: Tensor) -> Sequence[Tensor]:
        i, zero = w.convert(i, kind), w.scalar(0, kind)
        given = [w.reshape(w.dynamic_slice(x, [i, zero, zero], (1, *x.shape[1:])), x.shape[1:]) for x in flat]
        found = [w.reshape(x, (1, *x.shape)) for x in body(*given)]
        return [
            w.op("stablehlo.dynamic_update_slice", [whole, x, i, *[zero] * (len(x.shape) - 1)], whole.aval)
            for whole, x in zip(made, found)
        ]

    return [w.reshape(x, a.shape) for x, a in zip(w.loop(count, step, made), results)]


def as_many(call: Call, body: Callable[[Tensor], Sequence[Tensor]], more: Sequence[Aval] = ()) -> list[Tensor]:
    """As many of the results as the op has."""
    if not call.x.aval.size:
        w = call.writer
        return [w.broadcast(w.scalar(0, a.dtype), a.shape) for a in call.avals]
    results = [*call.avals, *more[len(call.avals) - 1 :]]
    return each(call.writer, [call.x], results, body)[: len(call.avals)]


def row_of(w: Writer, x: Tensor, i: Tensor) -> Tensor:
    return w.dynamic_slice(x, [i, w.scalar(0, i.dtype)], (1, x.shape[1]))


def column_of(w: Writer, x: Tensor, i: Tensor) -> Tensor:
    return w.dynamic_slice(x, [w.scalar(0, i.dtype), i], (x.shape[0], 1))


def put(w: Writer, x: Tensor, part: Tensor, i: Tensor, axis: int) -> Tensor:
    """A matrix with another row (axis 0) or column i."""
    starts = [i, w.scalar(0, i.dtype)]
    return w.op("stablehlo.dynamic_update_slice", [x, part, *(starts[::-1] if axis else starts)], x.aval)


def _zeros(w: Writer, shape: Sequence[int], kind: dtypes.DType) -> Tensor:
    return w.broadcast(w.scalar(0, kind), tuple(shape))


def _place(b: Builder, x: Value, i: Value, axis: int = 0) -> tuple[Value, Value]:
    """The place of each element along an axis, and i in the same shape."""
    return b.iota(shape=x.shape, axis=axis, dtype=i.dtype), b.broadcast_to(i, x.shape)


def _by(b: Builder, x: Value, divisor: Value) -> Value:
    found: Value = b.div(x, b.broadcast_to(divisor, x.shape))
    return found


def _or(b: Builder, where: Value, x: Value, other: Value) -> Value:
    found: Value = b.select(where, b.broadcast_to(x, where.shape), b.broadcast_to(other, where.shape))
    return found


def by_real(b: Builder, x: Value, divisor: Value, times: bool = False) -> Value:
    """x / divisor, or x · divisor, for real numbers: parts of complex x each for itself, as products of theirs would be
    squares of the divisor."""
    if x.dtype.is_complex:
        parts = (by_real(b, part, divisor, times) for part in (b.real(x), b.imag(x)))
        found: Value = b.complex(*parts)
        return found
    divisor = b.broadcast_to(divisor, x.shape)
    return x * divisor if times else b.div(x, divisor)


def or_one(b: Builder, size: Value) -> Value:
    """A size, or 1 for one that divides nothing: 0, infinity and NaN."""
    one, infinity = (b.full(size.shape, x, size.dtype) for x in (1, math.inf))
    fits = b.bitwise_and(b.greater(size, b.zeros_like(size)), b.less(size, infinity))
    found: Value = b.select(fits, size, one)
    return found


def of_size_one(w: Writer, x: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix over its largest element, and that: squares of what is left are neither all 0 nor infinite."""

    def over(b: Builder, x: Value) -> tuple[Value, Value]:
        size = or_one(b, b.reduce_max(b.abs(x), axes=(0, 1)))
        return by_real(b, x, size), size

    found, size = composed(w, over, [x])
    return found, size


def times(w: Writer, x: Tensor, size: Tensor) -> Tensor:
    return composed(w, lambda b, x, size: by_real(b, x, size, times=True), [x, size])[0]


def _size(b: Builder, x: Value) -> Value:
    """|x|², summed."""
    size = b.abs(x)
    found: Value = b.reshape_to(b.reduce_sum(size * size, axes=(0, 1)), (1, 1))
    return found


@rule("cholesky", table=LOOPS)
def _cholesky(call: Call) -> Tensor:
    w = call.writer

    def column(b: Builder, j: Value, x: Value, product: Value, own: Value) -> Value:
        rest = x - product
        root = b.convert_to(b.sqrt(b.real(own)), x.dtype) if x.dtype.is_complex else b.sqrt(own)
        place, at = _place(b, rest, j)
        return b.select(b.greater_equal(place, at), _by(b, rest, root), b.zeros_like(rest))

    def factored(x: Tensor) -> Sequence[Tensor]:
        def step(j: Tensor, found: Tensor) -> Sequence[Tensor]:
            (product,) = composed(w, lambda b, l, row: matmul(b, l, adjoint(b, row)), [found, row_of(w, found, j)])
            given = column_of(w, x, j)
            own = row_of(w, given, j) - row_of(w, product, j)
            return [put(w, found, composed(w, column, [j, given, product, own])[0], j, 1)]

        return w.loop(x.shape[-1], step, [w.full(x, 0)])

    return each(w, [call.x], call.avals, factored)[0]


@rule("solve_triangular", table=LOOPS)
def _solve_triangular(call: Call) -> Tensor:
    w, upper = call.writer, call.attrs["upper"]
    (a,) = composed(w, upper_part if upper else lower, call.operands[:1])

    def solved(a: Tensor, right: Tensor) -> Sequence[Tensor]:
        n = a.shape[-1]

        def step(i: Tensor, found: Tensor) -> Sequence[Tensor]:
            i = w.scalar(n - 1, i.dtype) - i if upper else i
            row, here = row_of(w, a, i), row_of(w, right, i)
            operands = [row, column_of(w, row, i), found, here]
            rest = composed(w, lambda b, row, own, found, here: _by(b, here - matmul(b, row, found), own), operands)
            return [put(w, found, rest[0], i, 0)]

        return w.loop(n, step, [w.full(right, 0)])

    return each(w, same_batch(w, [a, call.operands[1]]), call.avals, solved)[0]


@rule("lu", table=LOOPS)
def _lu(call: Call) -> Sequence[Tensor]:
    """The largest element of each column, from the diagonal on, comes to the diagonal."""
    w = call.writer
    *_, count = call.avals[1].shape
    kind = dtypes.int32

    def pivot_of(b: Builder, k: Value, column: Value) -> Value:
        size = b.abs(column)
        place, at = _place(b, size, k)
        size = b.select(b.greater_equal(place, at), size, b.full(size.shape, -1, size.dtype))
        return b.reshape_to(b.convert_to(b.argmax(size, axis=0), k.dtype), ())

    def eliminated(b: Builder, k: Value, a: Value, column: Value, own: Value, row: Value) -> tuple[Value, Value]:
        own = b.select(b.equal(own, b.zeros_like(own)), b.full(own.shape, 1, own.dtype), own)
        under, later = b.greater(*_place(b, column, k)), b.greater(*_place(b, row, k, 1))
        factors = b.select(under, _by(b, column, own), b.zeros_like(column))
        a = a - matmul(b, factors, b.select(later, row, b.zeros_like(row)))
        return a, b.select(under, factors, column)

    def factored(x: Tensor) -> Sequence[Tensor]:
        def step(k: Tensor, a: Tensor, pivots: Tensor, order: Tensor) -> Sequence[Tensor]:
            (pivot,) = composed(w, pivot_of, [k, column_of(w, a, k)])

            def exchanged(v: Tensor) -> Tensor:
                one, other = row_of(w, v, k), row_of(w, v, pivot)
                return put(w, put(w, v, other, k, 0), one, pivot, 0)

            a, order = exchanged(a), exchanged(order)
            column = column_of(w, a, k)
            a, column = composed(w, eliminated, [k, a, column, row_of(w, column, k), row_of(w, a, k)])
            return [put(w, a, column, k, 1), put(w, pivots, w.reshape(pivot, (1, 1)), k, 0), order]

        first = [x, _zeros(w, (count, 1), kind), w.iota((x.shape[-2], 1), 0, kind)]
        a, *numbers = w.loop(count, step, first)
        return [a, *(w.convert(w.reshape(v, (v.shape[0],)), dtypes.uint32) for v in numbers)]

    return each(w, [call.x], call.avals, factored)


# Reflectors


def _reflector(b: Builder, i: Value, column: Value, own: Value) -> tuple[Value, Value]:
    """The vector v and the factor t of 1 - t·v·vᴴ, whose adjoint turns what a column has from i on to the first of
    these elements, with LAPACK's sign."""
    is_complex = column.dtype.is_complex
    place, at = _place(b, column, i)
    below = b.select(b.greater(place, at), column, b.zeros_like(column))
    size = b.maximum(b.abs(own), b.reshape_to(b.reduce_max(b.abs(below), axes=(0, 1)), own.shape))
    below, own = (by_real(b, x, or_one(b, size)) for x in (below, own))  # squares are neither 0 nor infinite
    real, rest = b.real(own) if is_complex else own, _size(b, below)
    trivial = b.equal(rest, b.zeros_like(rest))
    if is_complex:
        imag = b.imag(own)
        trivial = b.bitwise_and(trivial, b.equal(imag, b.zeros_like(imag)))
    norm = b.sqrt(_size(b, own) + rest)
    beta = b.select(b.less(real, b.zeros_like(real)), norm, -norm)
    beta = b.convert_to(b.select(trivial, b.full(beta.shape, 1, beta.dtype), beta), own.dtype)
    one = b.full(own.shape, 1, own.dtype)
    factor = b.select(trivial, b.zeros_like(own), b.div(beta - own, beta))
    v = _or(b, b.equal(place, at), one, _by(b, below, b.select(trivial, one, own - beta)))
    return v, factor


def _reflected(b: Builder, x: Value, v: Value, factor: Value) -> Value:
    found: Value = x - matmul(b, b.broadcast_to(factor, v.shape) * v, matmul(b, adjoint(b, v), x))
    return found


def householder(w: Writer, x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Q, of `count` columns, and R, in the shape of x."""
    m, n = x.shape
    k = min(m, n)

    def step(i: Tensor, r: Tensor, vectors: Tensor, factors: Tensor) -> Sequence[Tensor]:
        column = column_of(w, r, i)
        v, factor = composed(w, _reflector, [i, column, row_of(w, column, i)])
        (r,) = composed(w, lambda b, r, v, t: _reflected(b, r, v, adjoint(b, t)), [r, v, factor])
        return [r, put(w, vectors, v, i, 1), put(w, factors, factor, i, 1)]

    def applied(i: Tensor, q: Tensor, vectors: Tensor, factors: Tensor) -> Sequence[Tensor]:
        i = w.scalar(k - 1, i.dtype) - i
        return [*composed(w, _reflected, [q, column_of(w, vectors, i), column_of(w, factors, i)]), vectors, factors]

    r, *reflectors = w.loop(k, step, [x, _zeros(w, (m, k), x.dtype), _zeros(w, (1, k), x.dtype)])
    q, *_ = w.loop(k, applied, [identity(w, m, count, x.dtype), *reflectors])
    return q, composed(w, upper_part, [r])[0]


def identity(w: Writer, m: int, n: int, kind: dtypes.DType) -> Tensor:
    rows, across = (w.iota((m, n), axis, dtypes.int32) for axis in (0, 1))
    return w.convert(w.compare("EQ", rows, across), kind)


@rule("qr", table=LOOPS)
def _qr(call: Call) -> Sequence[Tensor]:
    w, k = call.writer, call.avals[0].shape[-1]

    def factored(x: Tensor) -> Sequence[Tensor]:
        q, r = householder(w, x, k)
        return [q, w.slice(r, (0, 0), (k, x.shape[1]))]

    return each(w, [call.x], call.avals, factored)
