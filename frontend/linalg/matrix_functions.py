"""Functions of square matrices, which are not those of their elements, and Sylvester's equation."""

from __future__ import annotations

import math

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, at_user_line
from smelt.ir.op import registry as ops

from ..functions.arithmetic import multiply
from ..functions.complex_numbers import imag, real
from ..functions.creation import zeros_like
from ..functions.linear import matmul
from ..lazy.arguments import number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit, emit_elementwise
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .factors import adjoint
from .systems import matrix_power

__all__ = [
    "coshm", "cosm", "expm", "fractional_matrix_power", "logm", "sinhm", "sinm", "solve_continuous_lyapunov",
    "solve_sylvester", "sqrtm",
]  # fmt: skip


@remembered
def expm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The exponential of square matrices: Σₖ aᵏ / k!.

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype.

    >>> import smelt
    >>> smelt.linalg.expm(smelt.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1, 1],
           [0, 1]], dtype=float32)
    """
    check_stream(stream)
    return emit(ops["expm"], (as_array(a),))


@remembered
def sqrtm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The principal square root of square matrices: x @ x = a, without eigenvalues in the left half plane.

    Computed by Schur forms in complex128 (Björck and Hammarling, 1983).

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Returns:
        An array of the shape and dtype of `a`. Its derivative needs eigenvalues that are not zero.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When evaluated, LibraryError: a matrix has no square
        root, or, being real, none of real numbers; ``a.astype(smelt.complex64)`` may have one.

    >>> import smelt
    >>> smelt.linalg.sqrtm(smelt.array([[4.0, 5.0], [0.0, 9.0]]))
    array([[2, 1],
           [0, 3]], dtype=float32)
    """
    check_stream(stream)
    return emit(ops["sqrtm"], (as_array(a),))


@remembered
def fractional_matrix_power(a: ArrayLike, t: float, *, stream: StreamOrDevice = None) -> array:
    """Square matrices to any real power: aᵗ = exp(t·log a), by the principal logarithm.

    It is ``matrix_power(a, ⌊t⌋)`` times the power of what is left of t, a `sqrtm` if that is a half.

    Args:
        a: shape (…, n, n), float32, float64 or complex.
        t: a finite number.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. AttributeValueError: t is not finite. When evaluated,
        LibraryError: a matrix has no such power, or, being real, none of real numbers;
        ``a.astype(smelt.complex64)`` may have one.

    >>> import smelt
    >>> smelt.linalg.fractional_matrix_power(smelt.array([[4.0, 5.0], [0.0, 9.0]]), 1.5)
    array([[8, 19],
           [0, 27]], dtype=float32)
    """
    check_stream(stream)
    x, exponent = as_array(a), number("linalg.fractional_matrix_power", "t", t)
    if not math.isfinite(exponent):
        message = f"smelt.linalg.fractional_matrix_power: t must be finite, is {exponent}"
        raise AttributeValueError(at_user_line(message))
    whole = math.floor(exponent)
    rest = exponent - whole
    if not rest:
        return matrix_power(x, whole)
    root = sqrtm(x) if rest == 0.5 else expm(multiply(logm(x), rest))
    return matmul(matrix_power(x, whole), root) if whole else root


@remembered
def logm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The principal logarithm of square matrices: expm(x) = a, with imaginary parts of eigenvalues in (-π, π].

    Computed by Schur forms in complex128, square roots and quadrature (Higham, "Functions of Matrices", chapter 11).

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When evaluated, LibraryError: a matrix is singular,
        or, being real, has no logarithm of real numbers; ``a.astype(smelt.complex64)`` may have one.

    >>> import smelt
    >>> smelt.linalg.logm(smelt.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[0, 2],
           [0, 0]], dtype=float32)
    """
    check_stream(stream)
    return emit(ops["logm"], (as_array(a),))


def _turned(x: array) -> array:
    """i·x, of real x."""
    return emit_elementwise(ops["complex"], zeros_like(x), x)


def _exponentials(x: array) -> tuple[array, array]:
    """exp(i·x) and exp(-i·x) of complex x."""
    turned = _turned(real(x)) - imag(x)
    return emit(ops["expm"], (turned,)), emit(ops["expm"], (-turned,))


@remembered
def cosm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The cosine of square matrices: (exp(i·a) + exp(-i·a)) / 2.

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype.

    >>> import smelt
    >>> smelt.linalg.cosm(smelt.zeros((2, 2)))
    array([[1, 0],
           [0, 1]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    if not x.dtype.is_complex:
        return real(emit(ops["expm"], (_turned(x),)))
    there, back = _exponentials(x)
    return (there + back) / 2


@remembered
def sinm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The sine of square matrices: (exp(i·a) - exp(-i·a)) / 2i; see `cosm`.

    >>> import smelt
    >>> smelt.linalg.sinm(smelt.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0, 1],
           [0, 0]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    if not x.dtype.is_complex:
        return imag(emit(ops["expm"], (_turned(x),)))
    there, back = _exponentials(x)
    return (there - back) / 2j


@remembered
def coshm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The hyperbolic cosine of square matrices: (exp(a) + exp(-a)) / 2; see `cosm`.

    >>> import smelt
    >>> smelt.linalg.coshm(smelt.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1, 0],
           [0, 1]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return (emit(ops["expm"], (x,)) + emit(ops["expm"], (-x,))) / 2


@remembered
def sinhm(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """The hyperbolic sine of square matrices: (exp(a) - exp(-a)) / 2; see `cosm`.

    >>> import smelt
    >>> smelt.linalg.sinhm(smelt.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0, 1],
           [0, 0]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return (emit(ops["expm"], (x,)) - emit(ops["expm"], (-x,))) / 2


@remembered
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """x with a @ x + x @ b = q.

    Args:
        a: shape (…, m, m). b: (…, n, n). q: (…, m, n). All of them float32, float64 or complex.

    Returns:
        Shape (…, m, n), in the common dtype.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. When evaluated, LibraryError: an eigenvalue of
        `a` is one of -b, so that there is no single solution.

    >>> import smelt
    >>> smelt.linalg.solve_sylvester(smelt.array([[1.0]]), smelt.array([[3.0]]), smelt.array([[8.0]]))
    array([[2]], dtype=float32)
    """
    check_stream(stream)
    operands = [as_array(x) for x in (a, b, q)]
    dtype = operands[0].dtype
    for x in operands[1:]:
        dtype = dtypes.promote(dtype, x.dtype)
    return emit(ops["sylvester"], [convert(x, dtype) for x in operands])


@remembered
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """x with a @ x + x @ aᴴ = q; see `solve_sylvester`.

    >>> import smelt
    >>> smelt.linalg.solve_continuous_lyapunov(smelt.array([[2.0]]), smelt.array([[8.0]]))
    array([[2]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return solve_sylvester(x, adjoint(x), q)
