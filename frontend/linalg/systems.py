"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

from collections.abc import Callable

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.flags import flag
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

from ..functions.arithmetic import add
from ..functions.complex_numbers import conjugate, real
from ..functions.creation import eye
from ..functions.diagonals import diagonal, tril, triu
from ..functions.index_functions import take_along_axis
from ..functions.linear import matmul
from ..functions.logic import where
from ..functions.reductions import widened
from ..functions.shaping import matrix_transpose
from ..functions.sorting import argsort
from ..lazy.arguments import integer, is_integer, word
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_all,
    meeting,
)
from ..lazy.core import remembered
from ..lazy.movement import to_shape
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .factors import adjoint, cholesky, unit
from .named import SlogdetResult

__all__ = [
    "cho_solve", "cholesky_inv", "det", "inv", "lu_solve", "matrix_power", "slogdet", "solve", "solve_triangular",
    "tri_inv",
]  # fmt: skip


def right_hand_sides(name: str, a: ArrayLike, b: ArrayLike) -> tuple[array, array, bool]:
    """Both operands in their common dtype; `b` as matrices, and whether it was one vector."""
    x, y = as_array(a), as_array(b)
    if not y.ndim:
        message = f"smelt.{name}: b is a number, must be a vector or matrices; a {x.aval}, b {y.aval}"
        raise ShapeError(at_user_line(message))
    dtype = dtypes.promote(x.dtype, y.dtype)
    x, y = meeting(a, x, dtype), meeting(b, y, dtype)
    return x, to_shape(y, (*y.shape, 1)) if y.ndim == 1 else y, y.ndim == 1


def as_given(found: array, vector: bool) -> array:
    return to_shape(found, found.shape[:-1]) if vector else found


@remembered
def solve(a: ArrayLike, b: ArrayLike, *, assume_a: str = "general", stream: StreamOrDevice = None) -> array:
    """x with a·x = b, for square matrices `a`.

    Args:
        a: shape (…, n, n), float32, float64 or complex.
        b: shape (…, n, k), whose batch axes are broadcast with those of `a`; or (n,), one right-hand side.
        assume_a: what `a` is known to be, under SciPy's names: "general" or "gen", "symmetric" or "sym", "hermitian" or
            "her", "positive definite" or "pos", "upper triangular", "lower triangular", "diagonal". What then stands
            below the diagonal (above, if lower triangular) is not looked at. Positive definite matrices are solved by
            Cholesky's factors.

    Returns:
        x, with the batch axes of both, in their common dtype.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. AttributeValueError: another `assume_a`. When it
        is evaluated, LibraryError (also a `numpy.linalg.LinAlgError`): a matrix is singular, or not positive definite.

    >>> import smelt
    >>> smelt.linalg.solve(smelt.array([[2.0, 1.0], [1.0, 3.0]]), smelt.array([3.0, 4.0]))
    array([1, 1], dtype=float32)
    """
    check_stream(stream)
    kind = word("linalg.solve", "assume_a", assume_a, *_KINDS)
    x, y, vector = right_hand_sides("linalg.solve", a, b)
    ops["solve"].infer_checked([x.aval, y.aval], {})
    return as_given(_KINDS[kind](x, y), vector)


def _solve_mirrored(x: array, y: array, conjugated: bool) -> array:
    return emit(ops["solve"], (_mirrored(x, conjugated), y))


def _mirrored(x: array, conjugated: bool) -> array:
    """Symmetric or Hermitian matrices, of their upper triangle."""
    upper = triu(x, 1)
    lower = matrix_transpose(conjugate(upper) if conjugated else upper)
    middle = diagonal(x, 0, -2, -1)
    if conjugated:
        middle = convert(real(middle), x.dtype)
    return add(add(upper, lower), _times_unit(middle))


def _times_unit(x: array) -> array:
    """Diagonal matrices."""
    n = x.shape[-1]
    return where(eye(n, dtype=dtypes.bool_), to_shape(x, (*x.shape, 1)), 0)


def _solve_positive(x: array, y: array) -> array:
    factor = cholesky(_mirrored(x, x.dtype.is_complex))
    return cho_solve((factor, True), y)


def _solve_diagonal(x: array, y: array) -> array:
    return emit(ops["solve_triangular"], (_times_unit(diagonal(x, 0, -2, -1)), y), {"upper": False})


#: How systems are solved, by SciPy's names for what is known of their matrices.
_KINDS: dict[str, Callable[[array, array], array]] = {
    "general": lambda x, y: emit(ops["solve"], (x, y)),
    "symmetric": lambda x, y: _solve_mirrored(x, y, False),
    "hermitian": lambda x, y: _solve_mirrored(x, y, x.dtype.is_complex),
    "positive definite": _solve_positive,
    "upper triangular": lambda x, y: emit(ops["solve_triangular"], (x, y), {"upper": True}),
    "lower triangular": lambda x, y: emit(ops["solve_triangular"], (x, y), {"upper": False}),
    "diagonal": _solve_diagonal,
}
_KINDS |= {short: _KINDS[long] for short, long in (
    ("gen", "general"), ("sym", "symmetric"), ("her", "hermitian"), ("pos", "positive definite"),
)}  # fmt: skip


@remembered
def solve_triangular(
    a: ArrayLike, b: ArrayLike, *, upper: bool = False, trans: int | str = 0, unit_diagonal: bool = False,
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """x with a·x = b, for triangular matrices `a`. What stands in the other triangle is not looked at.

    Args:
        a: shape (…, n, n), float32, float64 or complex.
        b: shape (…, n, k), whose batch axes are broadcast with those of `a`; or (n,), one right-hand side.
        upper: whether `a` is upper triangular, not lower.
        trans: 0 or "N"; with 1 or "T" it is x with aᵀ·x = b, with 2 or "C" that of the conjugate transpose.
        unit_diagonal: whether ones stand in the place of the diagonal of `a`, which is not looked at.

    Returns:
        x, with the batch axes of both, in their common dtype.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. AttributeValueError: another `trans`. When it is
        evaluated, LibraryError: the diagonal of `a` has a zero.

    >>> import smelt
    >>> smelt.linalg.solve_triangular(smelt.array([[2.0, 0.0], [1.0, 4.0]]), smelt.array([2.0, 9.0]))
    array([1, 2], dtype=float32)
    """
    check_stream(stream)
    x, y, vector = right_hand_sides("linalg.solve_triangular", a, b)
    given = "NTC"[trans] if is_integer(trans) and 0 <= trans < 3 else trans
    kind = word("linalg.solve_triangular", "trans", given, "N", "T", "C")
    if unit_diagonal and x.ndim > 1:
        x = add(triu(x, 1) if upper else tril(x, -1), unit(x))
    if kind != "N" and x.ndim > 1:
        x = matrix_transpose(conjugate(x) if kind == "C" else x)
    return as_given(emit(ops["solve_triangular"], (x, y), {"upper": upper != (kind != "N")}), vector)


@remembered
def inv(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The inverse of square matrices. To solve equations, `solve` is quicker and loses less.

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When it is evaluated, LibraryError (also a
        `numpy.linalg.LinAlgError`): a matrix is singular.

    >>> import smelt
    >>> smelt.linalg.inv(smelt.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5, 0],
           [0, 0.25]], dtype=float32)
    """
    check_stream(stream)
    return emit(ops["inv"], (as_array(a),))


@remembered
def tri_inv(a: ArrayLike, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The inverse of triangular matrices. What stands in the other triangle is not looked at.

    Args:
        a: shape (…, n, n), float32, float64 or complex.
        upper: whether `a` is upper triangular, not lower.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When it is evaluated, LibraryError: the diagonal of
        a matrix has a zero.

    >>> import smelt
    >>> smelt.linalg.tri_inv(smelt.array([[2.0, 0.0], [2.0, 1.0]]))
    array([[0.5, 0],
           [-1, 1]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    ops["solve_triangular"].infer_checked([x.aval, x.aval], {"upper": bool(upper)})
    return emit(ops["solve_triangular"], (x, unit(x)), {"upper": bool(upper)})


@remembered
def cholesky_inv(a: ArrayLike, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The inverse of L·Lᴴ, from its Cholesky factor L.

    Args:
        a: factors of shape (…, n, n), as `cholesky` gives them.
        upper: whether they are upper triangular: U with Uᴴ·U.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When it is evaluated, LibraryError: the diagonal of
        a factor has a zero.

    >>> import smelt
    >>> smelt.linalg.cholesky_inv(smelt.linalg.cholesky(smelt.array([[4.0, 0.0], [0.0, 2.0]])))
    array([[0.25, 0],
           [0, 0.5]], dtype=float32)
    """
    check_stream(stream)
    inverse = tri_inv(a, upper)
    other = adjoint(inverse)
    return matmul(inverse, other) if upper else matmul(other, inverse)


@remembered
def det(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The determinant of square matrices. Its first derivative is right for singular matrices, too.

    Args:
        a: shape (…, n, n); integers are taken as float32, half precision is computed in it.

    Returns:
        Shape (…), in the dtype of `a`.

    Raises:
        ShapeError: no square matrices. When a second derivative is evaluated,
        LibraryError: a matrix is singular.

    >>> import smelt
    >>> smelt.linalg.det(smelt.array([[2.0, 0.0], [0.0, 4.0]]))
    array(8, dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    return convert(emit(ops["det"], (widened(x),)), x.dtype)


@remembered
def slogdet(a: ArrayLike, *, stream: StreamOrDevice = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant, which neither overflow nor underflow.

    Args:
        a: shape (…, n, n); integers are taken as float32, half precision is computed in it.

    Returns:
        ``(sign, logabsdet)``: the sign, 1, -1 or of complex matrices a number on the unit circle; and the logarithm, a
        real number. Those of singular matrices are 0 and -∞. Both of shape (…).

    Raises:
        ShapeError: no square matrices. When a derivative is evaluated, LibraryError: a matrix is singular.

    >>> import smelt
    >>> smelt.linalg.slogdet(smelt.array([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=array(-1, dtype=float32), logabsdet=array(0, dtype=float32))
    """
    check_stream(stream)
    x = as_floating(a)
    sign, log = emit_all(ops["slogdet"], (widened(x),))
    return SlogdetResult(convert(sign, x.dtype), convert(log, x.dtype.real))


@remembered
def matrix_power(a: ArrayLike, n: int, *, stream: StreamOrDevice = None) -> array:
    """A square matrix multiplied n times by itself; for negative n, its inverse.

    Args:
        a: shape (…, n, n), of any dtype of numbers; of negative powers float32, float64 or complex.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. ArgumentTypeError: n is no int. When it is evaluated, LibraryError: a matrix
        whose power is negative is singular.

    >>> import smelt
    >>> smelt.linalg.matrix_power(smelt.array([[1, 1], [0, 1]]), 5)
    array([[1, 5],
           [0, 1]], dtype=int32)
    """
    check_stream(stream)
    x, exponent = as_array(a), integer("linalg.matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(at_user_line(f"smelt.linalg.matrix_power: needs square matrices; a {x.aval}"))
    if not exponent:
        return unit(x)
    x, exponent = inv(x) if exponent < 0 else x, abs(exponent)
    found: array | None = None
    while True:
        if exponent % 2:
            found = x if found is None else matmul(found, x)
        exponent //= 2
        if not exponent:
            assert found is not None
            return found
        x = matmul(x, x)


def _pair(name: str, what: str, given: object) -> tuple[ArrayLike, ArrayLike]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be a pair, is {shown(given)}"))
    first, second = given
    return first, second


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """x with a·x = b, from the Cholesky factor of `a`.

    Args:
        c_and_lower: the factor, of shape (…, n, n), and whether it is lower triangular, as `cholesky` gives it.
        b: shape (…, n, k), whose batch axes are broadcast with those of the factor; or (n,), one right-hand side.

    Returns:
        x, with the batch axes of both, in their common dtype.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. ArgumentTypeError: no pair. When it is
        evaluated, LibraryError: the diagonal of a factor has a zero.

    >>> import smelt
    >>> factor = smelt.linalg.cholesky(smelt.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> smelt.linalg.cho_solve((factor, True), smelt.array([6.0, 7.0]))
    array([1, 1], dtype=float32)
    """
    check_stream(stream)
    factor, lower = _pair("linalg.cho_solve", "c_and_lower", c_and_lower)
    lower = flag("linalg.cho_solve", "the second of c_and_lower", lower)
    x, y, vector = right_hand_sides("linalg.cho_solve", factor, b)
    op = ops["solve_triangular"]
    op.infer_checked([x.aval, y.aval], {"upper": not lower})
    other = adjoint(x)
    first, second = (x, other) if lower else (other, x)
    half = emit(op, (first, y), {"upper": False})
    return as_given(emit(op, (second, half), {"upper": True}), vector)


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0, *, stream: StreamOrDevice = None
) -> array:
    """x with a·x = b, from the LU factors of `a`.

    Args:
        lu_and_piv: the factors, of shape (…, n, n), and the pivots, as `lu_factor` gives them.
        b: shape (…, n, k), whose batch axes are broadcast with those of the factors; or (n,), one right-hand side.
        trans: 1 to solve aᵀ·x = b instead, 2 for aᴴ·x = b.

    Returns:
        x, with the batch axes of both, in their common dtype.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. ArgumentTypeError: no pair.
        AttributeValueError: another `trans`. When it is evaluated, LibraryError: a matrix is singular.

    >>> import smelt
    >>> factors = smelt.linalg.lu_factor(smelt.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> smelt.linalg.lu_solve(factors, smelt.array([3.0, 4.0]))
    array([1, 1], dtype=float32)
    """
    check_stream(stream)
    name = "linalg.lu_solve"
    factors, pivots = _pair(name, "lu_and_piv", lu_and_piv)
    if not is_integer(trans) or trans not in (0, 1, 2):
        raise AttributeValueError(at_user_line(f"smelt.{name}: trans must be 0, 1 or 2, is {shown(trans)}"))
    x, y, vector = right_hand_sides(name, factors, b)
    op = ops["solve_triangular"]
    op.infer_checked([x.aval, y.aval], {"upper": True})
    steps = as_array(pivots)
    if steps.shape != x.shape[:-1]:
        message = f"pivots must have the shape {x.shape[:-1]} of a row; lu {x.aval}, pivots {steps.aval}"
        raise ShapeError(at_user_line(f"smelt.{name}: {message}"))
    order = emit(ops["permutation_of_pivots"], (steps,))
    batch = broadcast_shapes(name, x.shape[:-2], y.shape[:-2])
    y = broadcast_to_shape(y, (*batch, *y.shape[-2:]))
    left = tril(x, -1)
    left = left + unit(left)
    if not trans:
        half = emit(op, (left, _in_order(y, order)), {"upper": False})
        return as_given(emit(op, (x, half), {"upper": True}), vector)
    x, left = matrix_transpose(x), matrix_transpose(left)
    if trans == 2:
        x, left = conjugate(x), conjugate(left)
    half = emit(op, (left, emit(op, (x, y), {"upper": False})), {"upper": True})
    return as_given(_in_order(half, argsort(order, -1)), vector)


def _in_order(x: array, order: array) -> array:
    """The rows of matrices in another order."""
    index = to_shape(order, (*order.shape, 1))
    return take_along_axis(x, broadcast_to_shape(index, x.shape), x.ndim - 2)


explain_keywords(globals())
