"""Factors of matrices: Cholesky, QR, LU."""

from __future__ import annotations

from smelt.ir.op import registry as ops

from ..functions.complex_numbers import conjugate
from ..functions.creation import eye
from ..functions.diagonals import tril, triu
from ..functions.shaping import matrix_transpose
from ..functions.sorting import argsort
from ..lazy.arguments import word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_to_shape, convert, emit, emit_all
from ..lazy.core import remembered
from ..lazy.movement import joined, piece
from ..lazy.operands import constant
from ..lazy.streams import check_stream
from .named import QRResult

__all__ = ["cholesky", "lu", "lu_factor", "qr"]


@remembered
def cholesky(a: ArrayLike, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The Cholesky factor of symmetric positive definite matrices: lower triangular L with a = L·Lᵀ.

    A matrix counts as its symmetric part (a + aᵀ) / 2, so gradients with respect to `a` are symmetric. Of complex
    matrices, aᵀ and Lᵀ are conjugated.

    Args:
        a: shape (…, n, n), float32, float64 or complex.
        upper: the upper triangular U = Lᵀ with a = Uᵀ·U instead.

    Returns:
        An array of the shape and dtype of `a`. The factor of a matrix with NaN or infinities has NaN.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When it is evaluated, LibraryError (also a
        `numpy.linalg.LinAlgError`): a matrix is not positive definite.

    >>> import smelt
    >>> smelt.linalg.cholesky(smelt.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2, 0],
           [1, 2]], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    ops["cholesky"].infer_checked([x.aval], {})
    half = x * 0.5
    found = emit(ops["cholesky"], (half + adjoint(half),))
    return adjoint(found) if upper else found


def adjoint(x: array) -> array:
    """The transpose; of complex numbers conjugated."""
    turned = matrix_transpose(x)
    return conjugate(turned) if x.dtype.is_complex else turned


@remembered
def qr(a: ArrayLike, *, mode: str = "reduced", stream: StreamOrDevice = None) -> QRResult:
    """The QR factorization a = Q·R: columns of Q are orthonormal, R is upper triangular.

    Derivatives need the first k = min(m, n) columns of `a` to be linearly independent.

    Args:
        a: shape (…, m, n), float32, float64 or complex.
        mode: "reduced", or "complete": Q is square, and R has rows of zeros below.

    Returns:
        ``(Q, R)``: Q of shape (…, m, k) and R of shape (…, k, n), in the dtype of `a`. Signs are LAPACK's: those of
        the diagonal of R, which is real, may be negative.

    Raises:
        ShapeError: no matrices. DTypeError: another dtype.

    >>> import smelt
    >>> q, r = smelt.linalg.qr(smelt.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> smelt.allclose(q @ r, smelt.array([[3.0, 1.0], [4.0, 2.0]])).item()
    True
    """
    check_stream(stream)
    word("linalg.qr", "mode", mode, "reduced", "complete")
    x = as_array(a)
    if mode == "reduced" or x.ndim < 2 or x.shape[-2] <= x.shape[-1]:
        return QRResult(*emit_all(ops["qr"], (x,)))
    rows, columns = x.shape[-2:]
    unit = broadcast_to_shape(convert(eye(rows), x.dtype), (*x.shape[:-1], rows))
    q, r = emit_all(ops["qr"], (joined([x, unit], x.ndim - 1),))  # the columns of a unit matrix complete those of x
    return QRResult(q, triu(piece(r, x.ndim - 1, 0, columns)))


@remembered
def lu(a: ArrayLike, *, stream: StreamOrDevice = None) -> tuple[array, array, array]:
    """LU factors with exchanges of rows: a = L[P] @ U, where the row P[i] of L·U is row i of `a`.

    Derivatives need the first k = min(m, n) columns of `a` to be linearly independent.

    Args:
        a: shape (…, m, n), float32, float64 or complex.

    Returns:
        P of shape (…, m), uint32; L of shape (…, m, k), lower triangular with ones on its diagonal; U of shape
        (…, k, n), upper triangular, with zeros on its diagonal where the matrix is singular.

    Raises:
        ShapeError: no matrices. DTypeError: another dtype.

    >>> import smelt
    >>> p, l, u = smelt.linalg.lu(smelt.array([[1.0, 2.0], [4.0, 2.0]]))
    >>> l[p] @ u
    array([[1, 2],
           [4, 2]], dtype=float32)
    """
    check_stream(stream)
    factors, _, order = emit_all(ops["lu"], (as_array(a),))
    m, n = factors.shape[-2:]
    k = min(m, n)
    left = tril(piece(factors, factors.ndim - 1, 0, k), -1)
    return argsort(order, -1), left + unit(left), triu(piece(factors, factors.ndim - 2, 0, k))


def unit(x: array) -> array:
    """Ones on the diagonal, in the shape of x."""
    return tril(triu(constant(1, x.dtype, x.shape)))


@remembered
def lu_factor(a: ArrayLike, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """LU factors in one matrix, as `lu_solve` takes them, and which rows were exchanged.

    Args:
        a: shape (…, m, n), float32, float64 or complex.

    Returns:
        The factors, of the shape of `a`: U on and above the diagonal, L below it. And pivots of shape (…, min(m, n)),
        uint32: in step i row i was exchanged with row pivots[i].

    Raises:
        ShapeError: no matrices. DTypeError: another dtype.

    >>> import smelt
    >>> smelt.linalg.lu_factor(smelt.array([[1.0, 2.0], [4.0, 2.0]]))
    (array([[4, 2],
           [0.25, 1.5]], dtype=float32), array([1, 1], dtype=uint32))
    """
    check_stream(stream)
    factors, pivots, _ = emit_all(ops["lu"], (as_array(a),))
    return factors, pivots
