"""Linear algebra as a library does it, whose matrices lie by columns: what lies by rows is the transposed matrix.

So the factors of symmetric matrices, inverses, determinants and solutions of triangular systems come of what lies by
rows, as it lies; columns on the right and LU and QR factors change their layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.ops.matrices import lower, rows, transposed, upper_part, where_place

from .forms import Form, Laid, Made, turned


def _turned(b: Builder, x: Value) -> list[Value]:
    """Matrices by columns, or of columns."""
    return [transposed(b, x)]


def _laid_turned(x: Value, number: int, lead: Sequence[int] | None = None) -> Laid:
    """An operand by columns, for each matrix of a batch."""
    shape = x.shape if lead is None else (*lead, *x.shape[-2:])
    aval = turned(Aval(tuple(shape), x.dtype))
    return Laid(aval, lambda b, x: transposed(b, b.broadcast_to(x, shape)), number)


def _repeated(x: Value, number: int, lead: Sequence[int]) -> Laid:
    """An operand for each matrix of a batch."""
    aval = Aval((*lead, *x.shape[-2:]), x.dtype)
    return Laid(aval, lambda b, x: b.broadcast_to(x, aval.shape), number)


# What is known of matrices before


def _diagonal(b: Builder, x: Value) -> Value:
    """The diagonals of square matrices."""
    *lead, n, _ = x.shape
    x = b.reshape_to(x, (*lead, n * n))
    last = len(lead)
    return b.slice(x, start=(0,) * (last + 1), stop=x.shape, stride=(*[1] * last, n + 1))


def _sum(b: Builder, x: Value) -> Value:
    return b.reduce_sum(x, axes=(x.ndim - 1,))


def _with_zeros(x: Value, number: int = 0) -> Laid:
    """How many zeros the diagonal of each matrix has."""
    def compute(b: Builder, x: Value) -> Value:
        found = _diagonal(b, x)
        return _sum(b, b.convert_to(b.equal(found, b.zeros_like(found)), dtypes.int32))

    return Laid(Aval(x.shape[:-2], dtypes.int32), compute, number, in_rows=True)


def _not_finite(x: Value) -> Laid:
    """How many elements of each matrix are no finite numbers: libraries do as they like with them."""
    def compute(b: Builder, x: Value) -> Value:
        x = b.reshape_to(x, (*x.shape[:-2], math.prod(x.shape[-2:])))
        difference = x - x  # NaN of what is not finite
        return _sum(b, b.convert_to(b.not_equal(difference, difference), dtypes.int32))

    return Laid(Aval(x.shape[:-2], dtypes.int32), compute, 0, in_rows=True)


# Symmetric matrices


def _cholesky(op: OpView) -> Form:
    """The rows of L are the columns of the upper factor of the transposed matrix."""
    return Form(outputs=[op.results[0].aval], made=[Made([0], [0], lambda b, x: [lower(b, x)])])


def _eigh(op: OpView) -> Form:
    w, v = op.results
    return Form(
        [_not_finite(op.operands[0])], [w.aval, turned(v)], {0: 0}, [Made([1], [1], _turned)], columns=(1,)
    )  # fmt: skip


def _eigvalsh(op: OpView) -> Form:
    return Form([_not_finite(op.operands[0])])


# Systems of equations


def _solve(op: OpView) -> Form:
    """Columns on the right. Those of a whole batch are solved for at once where one matrix is on the left."""
    (a, b), (x,) = op.operands, op.results
    lead = x.shape[:-2]
    laid = []
    if math.prod(a.shape[:-2]) > 1 and a.shape[:-2] != lead:
        laid.append(_repeated(a, 0, lead))
    if b.shape[-1] == 1:
        return Form([*laid, *([] if b.shape[:-2] == lead else [_repeated(b, 1, lead)])])
    return Form([*laid, _laid_turned(b, 1, lead)], [turned(x)], made=[Made([0], [0], _turned)], columns=(0,))


def _solve_triangular(op: OpView) -> Form:
    """As those of `solve`, where one matrix is on the left of a batch; else by rows, from the right."""
    (a, b), (x,) = op.operands, op.results
    lead = x.shape[:-2]
    if math.prod(a.shape[:-2]) == 1 < math.prod(lead):
        found = _solve(op)
        return Form([*found.laid, _with_zeros(a)], found.outputs, found.kept, found.made, found.columns)
    laid = [_repeated(v, i, lead) for i, v in enumerate((a, b)) if v.shape[:-2] != lead]
    return Form([*laid, _with_zeros(a)])


def _inv(op: OpView) -> Form:
    n, dtype = op.operands[0].shape[-1], op.operands[0].dtype
    return Form([_identity(n, dtype)])


def _identity(n: int, dtype: Any) -> Laid:
    def compute(b: Builder) -> Value:
        ones = b.full((n, n), 1, dtype)
        return where_place(b, ones, lambda row, column: b.equal(row, column))

    return Laid(Aval((n, n), dtype), compute, None)


# LU factors, and what is made of them


def _factors(op: OpView) -> list[Aval]:
    """LU factors by columns, and the numbers of rows, from 1 on, with which others were exchanged."""
    a = op.operands[0]
    return [turned(a), Aval((*a.shape[:-2], min(a.shape[-2:])), dtypes.int32)]


def _is_exchanged(b: Builder, pivots: Value) -> Value:
    n = pivots.shape[-1]
    own = b.iota(shape=(n,), axis=0, dtype=dtypes.int32) + 1
    return b.not_equal(pivots, b.broadcast_to(own, pivots.shape))


def _signs(b: Builder, pivots: Value, dtype: Any) -> Value:
    """-1 for each exchange of rows, else 1."""
    one = b.full(pivots.shape, 1, dtype)
    return b.select(_is_exchanged(b, pivots), -one, one)


def _product(b: Builder, x: Value) -> Value:
    return b.reduce_prod(x, axes=(x.ndim - 1,))


def _sign_and_log(b: Builder, factors: Value, pivots: Value) -> list[Value]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    x = _diagonal(b, factors)
    size = b.abs(x)
    one, zero = b.full(x.shape, 1, size.dtype), b.zeros_like(size)
    if x.dtype.is_complex:
        divisor = b.select(b.equal(size, zero), one, size)
        unit = b.complex(b.real(x) / divisor, b.imag(x) / divisor)
    else:
        unit = b.select(b.less(x, zero), -one, b.select(b.equal(x, zero), zero, one))
    return [_product(b, unit * _signs(b, pivots, x.dtype)), _sum(b, b.log(size))]


def _determinant(b: Builder, factors: Value, pivots: Value) -> list[Value]:
    """The product of the diagonal; by logarithms, which are less exact, where a product of some of its numbers may be
    too large or too small."""
    x = _diagonal(b, factors)
    sign, log = _sign_and_log(b, factors, pivots)
    extent = _sum(b, b.abs(b.log(b.abs(x))))  # no product of some of them is further from 1
    most = -math.log(np.finfo(x.dtype.numpy).tiny) - 1
    size = b.exp(log)
    found = b.complex(b.real(sign) * size, b.imag(sign) * size) if x.dtype.is_complex else sign * size
    product = _product(b, x * _signs(b, pivots, x.dtype))
    return [b.select(b.less(extent, b.full(extent.shape, most, extent.dtype)), product, found)]


def _det(op: OpView) -> Form:
    return Form(outputs=_factors(op), made=[Made([0], [0, 1], _determinant, in_rows=True)])


def _slogdet(op: OpView) -> Form:
    return Form(outputs=_factors(op), made=[Made([0, 1], [0, 1], _sign_and_log, in_rows=True)])


def _lu(op: OpView) -> Form:
    """The numbers of rows as numbers of float32, and a matrix 1, are what the library makes the permutation of."""
    a, (_, _, order) = op.operands[0], op.results
    m = a.shape[-2]
    numbers = Aval(order.shape, dtypes.float32)

    def counted(b: Builder) -> Value:
        return b.convert_to(b.iota(shape=numbers.shape, axis=order.ndim - 1, dtype=dtypes.int32), dtypes.float32)

    def unsigned(b: Builder, x: Value) -> list[Value]:
        return [b.convert_to(x, dtypes.uint32)]

    made = [Made([0], [0], _turned), Made([1], [1], lambda b, x: unsigned(b, x - 1)), Made([2], [2], unsigned)]
    laid = [_laid_turned(a, 0), _identity(m, dtypes.float32), Laid(numbers, counted, None)]
    return Form(laid, [*_factors(op), numbers], made=made)


# Orthogonal factors

#: Rows and columns of which functions that find singular vectors of many matrices at once know no more.
JACOBI_ROWS = 32


def _qr(op: OpView) -> Form:
    a, (q, r) = op.operands[0], op.results
    k = r.shape[-2]

    def above(b: Builder, x: Value) -> list[Value]:
        return [upper_part(b, rows(b, transposed(b, x), 0, k))]

    return Form([_laid_turned(a, 0)], [turned(q), turned(a)], made=[Made([0], [0], _turned), Made([1], [1], above)])


def by_jacobi(a: Any) -> bool:
    """Whether singular values and vectors are found by Jacobi's method: of many small matrices at once."""
    return math.prod(a.shape[:-2]) > 1 and max(a.shape[-2:]) <= JACOBI_ROWS


def _svd(op: OpView) -> Form:
    """Of the transposed matrix, whose factors change places: the rows of Vᵀ are the columns of its left factor, and
    those of U the columns of its right factor as QR iterations have it, transposed, but the rows as Jacobi's method has
    it. QR iterations do not take wide matrices: those that are higher than wide are laid out by columns for them."""
    a, (u, s, vt) = op.operands[0], op.results
    if by_jacobi(a):
        return Form(
            [_not_finite(a)], [turned(u), s.aval, vt.aval], {1: 1, 2: 2}, [Made([0], [0], _turned)], columns=(0,)
        )  # fmt: skip
    if a.shape[-2] <= a.shape[-1]:
        return Form([_not_finite(a)])
    made = [Made([0], [0], _turned), Made([2], [2], _turned)]
    return Form(
        [_laid_turned(a, 0), _not_finite(a)], [turned(u), s.aval, turned(vt)], {1: 1}, made, columns=(0, 2)
    )  # fmt: skip


def _singular_values(op: OpView) -> Form:
    """Of the transposed matrix, unless that has less rows than columns."""
    a = op.operands[0]
    m, n = a.shape[-2:]
    return Form([*([_laid_turned(a, 0)] if m > n else []), _not_finite(a)])


FORMS: dict[str, Callable[[OpView], Form]] = {
    "cholesky": _cholesky, "solve": _solve, "solve_triangular": _solve_triangular, "inv": _inv, "det": _det,
    "slogdet": _slogdet, "lu": _lu, "qr": _qr, "eigh": _eigh, "eigvalsh": _eigvalsh, "svd": _svd,
    "singular_values": _singular_values,
}  # fmt: skip
