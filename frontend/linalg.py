"""Linear algebra under the names of `mlx.core.linalg`, computed by LAPACK on the CPU, whatever the device.

Matrices stand on the last two axes; all axes before them are a batch, which is one call of the library.
"""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.op import registry as ops

from .functions.shaping import matrix_transpose
from .lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit, emit_all
from .lazy.movement import to_shape
from .lazy.streams import check_stream

__all__ = ["cholesky", "qr", "solve_triangular"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def cholesky(a: ArrayLike, upper: bool = False, *, stream: StreamOrDevice = None) -> array:
    """The Cholesky factor of symmetric positive definite matrices: lower triangular L with a = L·Lᵀ.

    A matrix counts as its symmetric part (a + aᵀ) / 2, so gradients with respect to `a` are symmetric.

    Args:
        a: shape (…, n, n), float32 or float64.
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
    found = emit(ops["cholesky"], (half + matrix_transpose(half),))
    return matrix_transpose(found) if upper else found


def qr(a: ArrayLike, *, stream: StreamOrDevice = None) -> tuple[array, array]:
    """The reduced QR factorization a = Q·R: columns of Q are orthonormal, R is upper triangular.

    Derivatives need the first k = min(m, n) columns of `a` to be linearly independent.

    Args:
        a: shape (…, m, n), float32 or float64.

    Returns:
        Q of shape (…, m, k) and R of shape (…, k, n), in the dtype of `a`. Signs are LAPACK's: those of the diagonal
        of R may be negative.

    Raises:
        ShapeError: no matrices. DTypeError: another dtype.

    >>> import smelt
    >>> q, r = smelt.linalg.qr(smelt.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> smelt.allclose(q @ r, smelt.array([[3.0, 1.0], [4.0, 2.0]])).item()
    True
    """
    check_stream(stream)
    q, r = emit_all(ops["qr"], (as_array(a),))
    return q, r


def solve_triangular(a: ArrayLike, b: ArrayLike, *, upper: bool = False, stream: StreamOrDevice = None) -> array:
    """x with a·x = b, for triangular matrices `a`. What stands in the other triangle is not looked at.

    Args:
        a: shape (…, n, n), float32 or float64.
        b: shape (…, n, k), whose batch axes are broadcast with those of `a`; or (n,), one right-hand side.
        upper: whether `a` is upper triangular, not lower.

    Returns:
        x, with the batch axes of both, in their common dtype.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. When it is evaluated, LibraryError: the
        diagonal of `a` has a zero.

    >>> import smelt
    >>> smelt.linalg.solve_triangular(smelt.array([[2.0, 0.0], [1.0, 4.0]]), smelt.array([2.0, 9.0]))
    array([1, 2], dtype=float32)
    """
    check_stream(stream)
    x, y = as_array(a), as_array(b)
    if not y.ndim:
        message = f"smelt.solve_triangular: b is a number, must be a vector or matrices; a {x.aval}, b {y.aval}"
        raise ShapeError(at_user_line(message))
    dtype = dtypes.promote(x.dtype, y.dtype)
    x, y = convert(x, dtype), convert(y, dtype)
    right = to_shape(y, (*y.shape, 1)) if y.ndim == 1 else y
    found = emit(ops["solve_triangular"], (x, right), {"upper": bool(upper)})
    return to_shape(found, found.shape[:-1]) if y.ndim == 1 else found
