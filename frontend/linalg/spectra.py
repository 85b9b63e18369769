"""Eigenvalues, singular values, and what is made of them."""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line
from smelt.ir.library import Library
from smelt.ir.op import of_kind
from smelt.ir.op import registry as ops

from ..functions.arithmetic import multiply
from ..functions.complex_numbers import conjugate, real
from ..functions.diagonals import tril
from ..functions.dtypes import finfo
from ..functions.linear import matmul
from ..functions.logic import equal, greater, isnan, where
from ..functions.reductions import max as largest
from ..functions.reductions import sum as total
from ..functions.shaping import broadcast_to, expand_dims
from ..lazy.arguments import is_list, number, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit, emit_all, meeting
from ..lazy.core import remembered
from ..lazy.movement import filled
from ..lazy.streams import check_stream
from .factors import adjoint
from .named import EigenResult, SVDResult
from .systems import as_given, right_hand_sides

__all__ = [
    "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_rank", "pinv", "svd", "svdvals",
]  # fmt: skip


def _lower(name: str, a: ArrayLike, triangle: str) -> array:
    """Matrices whose lower triangle is that of the symmetric ones of which one triangle is given."""
    triangle = word(f"linalg.{name}", "UPLO", triangle.upper() if isinstance(triangle, str) else triangle, "L", "U")
    x = as_array(a)
    ops[name].infer_checked([x.aval], {})
    return adjoint(x) if triangle == "U" else x


def _symmetric(name: str, a: ArrayLike, triangle: str) -> array:
    """The symmetric matrices of which one triangle is given."""
    x = _lower(name, a, triangle)
    return tril(x) + adjoint(tril(x, -1))


def _reduced(name: str, a: ArrayLike, b: ArrayLike, triangle: str) -> tuple[array, array]:
    """The matrices l⁻¹·a·l⁻ᴴ with the eigenvalues of a·v = w·b·v, and l, the Cholesky factors of b."""
    x, y = as_array(a), as_array(b)
    dtype = dtypes.promote(x.dtype, y.dtype)
    x, y = _symmetric(name, meeting(a, x, dtype), triangle), _symmetric(name, meeting(b, y, dtype), triangle)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(at_user_line(f"smelt.linalg.{name}: a and b must be of one size; a {x.aval}, b {y.aval}"))
    lower = emit(ops["cholesky"], (y,))
    half = emit(ops["solve_triangular"], (lower, x), {"upper": False})
    found = adjoint(emit(ops["solve_triangular"], (lower, adjoint(half)), {"upper": False}))
    return (found + adjoint(found)) * 0.5, lower


@remembered
def eigh(
    a: ArrayLike, UPLO: str = "L", *, b: ArrayLike | None = None, stream: StreamOrDevice = None
) -> EigenResult:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices: a·v = v·diag(w), with vᴴ·v = 1.

    Where eigenvalues are equal but for rounding, their vectors are any basis of what belongs to them: derivatives are
    right for what does not depend on its choice.

    Args:
        a: shape (…, n, n), float32, float64 or complex, of which one triangle is read.
        UPLO: that triangle, "L" or "U".
        b: positive definite matrices of the size of `a`, whose batch axes are broadcast with its, for the eigenvalues
            of a·v = b·v·diag(w), with vᴴ·b·v = 1.

    Returns:
        ``(eigenvalues, eigenvectors)``: w of shape (…, n), real and in ascending order, and v of the shape of `a`, with
        a vector in each column; the largest element of a complex vector is real.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. AttributeValueError: another triangle. When it is
        evaluated, LibraryError: `b` is not positive definite.

    >>> import smelt
    >>> w, v = smelt.linalg.eigh(smelt.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    array([1, 3], dtype=float32)
    """
    check_stream(stream)
    if b is None:
        return EigenResult(*emit_all(ops["eigh"], (_lower("eigh", a, UPLO),)))
    inner, lower = _reduced("eigh", a, b, UPLO)
    values, vectors = emit_all(ops["eigh"], (inner,))
    return EigenResult(values, emit(ops["solve_triangular"], (adjoint(lower), vectors), {"upper": True}))


@remembered
def eigvalsh(a: ArrayLike, UPLO: str = "L", *, b: ArrayLike | None = None, stream: StreamOrDevice = None) -> array:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order.

    Args:
        a: shape (…, n, n), float32, float64 or complex, of which one triangle is read.
        UPLO: that triangle, "L" or "U".
        b: positive definite matrices, for the eigenvalues of a·v = w·b·v; see `eigh`.

    Returns:
        Shape (…, n), in the dtype of `a`; of complex matrices they are real, too.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. AttributeValueError: another triangle. When it is
        evaluated, LibraryError: `b` is not positive definite.

    >>> import smelt
    >>> smelt.linalg.eigvalsh(smelt.array([[2.0, 1.0], [1.0, 2.0]]))
    array([1, 3], dtype=float32)
    """
    check_stream(stream)
    inner = _lower("eigvalsh", a, UPLO) if b is None else _reduced("eigvalsh", a, b, UPLO)[0]
    return emit(ops["eigvalsh"], (inner,))


@remembered
def eig(a: ArrayLike, *, stream: StreamOrDevice = None) -> EigenResult:
    """Eigenvalues and eigenvectors of square matrices of any kind: a·v = v·diag(w).

    Vectors have the length 1, and their largest element is real. Derivatives need eigenvalues that are not repeated.

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Returns:
        ``(eigenvalues, eigenvectors)``: w of shape (…, n), in the order in which LAPACK finds them, and v of the shape
        of `a`, with a vector in each column. Both are complex, also where all eigenvalues are real.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When a derivative is evaluated, LibraryError: there
        are fewer independent vectors than n.

    >>> import smelt
    >>> w, v = smelt.linalg.eig(smelt.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> smelt.abs(w)
    array([1, 1], dtype=float32)
    """
    check_stream(stream)
    return EigenResult(*emit_all(ops["eig"], (as_array(a),)))


@remembered
def eigvals(a: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """Eigenvalues of square matrices of any kind.

    Args:
        a: shape (…, n, n), float32, float64 or complex.

    Returns:
        Shape (…, n), complex, in the order in which LAPACK finds them.

    Raises:
        ShapeError: no square matrices. DTypeError: another dtype. When a derivative is evaluated, LibraryError: there
        are fewer independent eigenvectors than n.

    >>> import smelt
    >>> smelt.linalg.eigvals(smelt.array([[1.0, 5.0], [0.0, 2.0]]))
    array([1+0j, 2+0j], dtype=complex64)
    """
    check_stream(stream)
    return emit(ops["eigvals"], (as_array(a),))


@overload
def svd(
    a: ArrayLike, compute_uv: Literal[True] = True, *, full_matrices: bool = True, stream: StreamOrDevice = None
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike, compute_uv: bool, *, full_matrices: bool = True, stream: StreamOrDevice = None
) -> SVDResult | array: ...
@remembered
def svd(
    a: ArrayLike, compute_uv: bool = True, *, full_matrices: bool = True, stream: StreamOrDevice = None
) -> SVDResult | array:
    """Singular values and vectors: a = u[…, :k] @ diag(s) @ vt[…, :k, :], with k = min(m, n).

    Where singular values are equal but for rounding, or zero, their vectors are any basis of what belongs to them, and
    so are those beyond k: derivatives are right for what does not depend on its choice.

    Args:
        a: shape (…, m, n), float32, float64 or complex.
        compute_uv: whether vectors are asked for.
        full_matrices: whether u and vt are square, or have k columns and k rows.

    Returns:
        ``(U, S, Vh)``: u of shape (…, m, m), s of shape (…, k), real and in descending order, vt of shape (…, n, n);
        or s alone. Of complex matrices, the largest element of each column of u is real.

    Raises:
        ShapeError: no matrices. DTypeError: another dtype.

    >>> import smelt
    >>> u, s, vt = smelt.linalg.svd(smelt.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> s
    array([2, 1], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    if not compute_uv:
        return emit(ops["singular_values"], (x,))
    return SVDResult(*emit_all(ops["svd"], (x,), {"full": bool(full_matrices)}))


@remembered
def svdvals(x: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Singular values of matrices, in descending order.

    Args:
        x: shape (…, m, n), float32, float64 or complex.

    Returns:
        Shape (…, min(m, n)), in the dtype of `x`; of complex matrices they are real, too.

    Raises:
        ShapeError: no matrices. DTypeError: another dtype.

    >>> import smelt
    >>> smelt.linalg.svdvals(smelt.array([[0.0, 2.0], [1.0, 0.0]]))
    array([2, 1], dtype=float32)
    """
    check_stream(stream)
    return emit(ops["singular_values"], (as_array(x),))


def _is_several(rtol: ArrayLike) -> bool:
    return is_list(rtol) or (isinstance(rtol, (array, np.ndarray)) and rtol.size != 1)


def _tolerances(name: str, x: array, given: ArrayLike) -> array:
    """An array of them, of the shape of the batch of matrices."""
    limits = as_array(given, x.dtype.real)
    batch = x.shape[:-2]
    if limits.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.linalg.{name}: rtol must hold real numbers; rtol {limits.aval}"))
    if limits.ndim > len(batch) or any(d not in (1, n) for d, n in zip(limits.shape[::-1], batch[::-1])):
        message = f"smelt.linalg.{name}: rtol must broadcast to the batch of matrices; rtol {limits.aval}, a {x.aval}"
        raise ShapeError(at_user_line(message))
    return broadcast_to(limits, batch)


def _tolerance(name: str, what: str, x: array, given: ArrayLike | None) -> float:
    """Up to which part of the largest singular value the others count as zero."""
    if given is not None:
        return float(number(f"linalg.{name}", what, given))
    dtype = x.dtype.real if x.dtype.is_inexact else dtypes.float32
    return max(x.shape[-2:], default=0) * float(finfo(dtype).eps)


def _matrices(name: str, a: ArrayLike) -> array:
    x = as_array(a)
    if x.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.linalg.{name}: needs matrices; a {x.aval}"))
    return x


@remembered
def pinv(a: ArrayLike, *, rtol: ArrayLike | None = None, stream: StreamOrDevice = None) -> array:
    """The pseudoinverse of matrices (Moore and Penrose). Its derivative is that among matrices of the same rank.

    Args:
        a: shape (…, m, n), float32, float64 or complex.
        rtol: up to which part of the largest singular value the others count as zero; by default max(m, n) times the
            distance of 1 to the next number of the dtype. An array of them, one for each matrix, has to have values.

    Returns:
        Shape (…, n, m), in the dtype of `a`.

    Raises:
        ShapeError: no matrices, or an `rtol` that does not broadcast to (…). DTypeError: another dtype.

    >>> import smelt
    >>> smelt.linalg.pinv(smelt.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0],
           [0, 0]], dtype=float32)
    """
    check_stream(stream)
    x = _matrices("pinv", a)
    if rtol is None or not _is_several(rtol):
        return emit(ops["pinv"], (x,), {"rtol": _tolerance("pinv", "rtol", x, rtol)})
    limits = expand_dims(_tolerances("pinv", x, rtol), (-2, -1))
    limits = where(isnan(limits), math.inf, limits)  # beside NaN, too, nothing counts
    given = sorted({float(v) for v in np.asarray(limits).flat}) or [0.0]
    # Each for all matrices: the derivative is a rule of the op.
    found = emit(ops["pinv"], (x,), {"rtol": given[0]})
    for limit in given[1:]:
        found = where(equal(limits, limit), emit(ops["pinv"], (x,), {"rtol": limit}), found)
    return found


@remembered
def matrix_rank(x: ArrayLike, /, *, rtol: ArrayLike | None = None, stream: StreamOrDevice = None) -> array:
    """The number of singular values that do not count as zero.

    Args:
        x: shape (…, m, n), float32, float64 or complex.
        rtol: up to which part of the largest singular value the others count as zero; by default max(m, n) times the
            distance of 1 to the next number of the dtype. Or an array of them, one for each matrix.

    Returns:
        Shape (…), int32.

    Raises:
        ShapeError: no matrices, or an `rtol` that does not broadcast to (…). DTypeError: another dtype.

    >>> import smelt
    >>> smelt.linalg.matrix_rank(smelt.array([[1.0, 2.0], [2.0, 4.0]]))
    array(1, dtype=int32)
    """
    check_stream(stream)
    a = _matrices("matrix_rank", x)
    if rtol is not None and (_is_several(rtol) or (isinstance(rtol, array) and not rtol.ndim)):
        return _rank(svdvals(a), expand_dims(_tolerances("matrix_rank", a, rtol), -1))
    return _rank(svdvals(a), _tolerance("matrix_rank", "rtol", a, rtol))


def _rank(s: array, tolerance: float | array) -> array:
    if not s.shape[-1]:
        return filled(s.shape[:-1], 0, dtypes.int32)
    kept = greater(s, multiply(largest(s, -1, keepdims=True), tolerance))
    return total(convert(kept, dtypes.int32), -1)


@remembered
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, stream: StreamOrDevice = None
) -> tuple[array, array, array, array]:
    """x for which the sum of the squares of a·x - b is smallest, and of these the shortest.

    Args:
        a: shape (…, m, n), float32, float64 or complex.
        b: shape (…, m, k), whose batch axes are broadcast with those of `a`; or (m,), one right-hand side.
        rcond: up to which part of the largest singular value the others count as zero; by default max(m, n) times the
            distance of 1 to the next number of the dtype.

    Returns:
        x of shape (…, n, k) or (…, n); the sums of squares that are left, of shape (…, k) or (…), whatever the rank
        is; the rank of `a`, int32; its singular values, in descending order. Derivatives of x are those among matrices
        of the same rank.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. AttributeValueError: a tolerance that is NaN.

    >>> import smelt
    >>> x, left, rank, s = smelt.linalg.lstsq(smelt.array([[1.0], [1.0]]), smelt.array([1.0, 3.0]))
    >>> x, left
    (array([2], dtype=float32), array(2, dtype=float32))
    """
    check_stream(stream)
    x, y, vector = right_hand_sides("linalg.lstsq", _matrices("lstsq", a), b)
    if y.shape[-2] != x.shape[-2]:
        message = f"smelt.linalg.lstsq: a has {x.shape[-2]} rows, b has {y.shape[-2]}; a {x.aval}, b {y.aval}"
        raise ShapeError(at_user_line(message))
    accepted = of_kind(ops["pinv"], Library).accepts
    if x.dtype not in accepted:
        listed = ", ".join(d.name for d in accepted)
        raise DTypeError(at_user_line(f"smelt.linalg.lstsq: a and b are {x.dtype.name}, must be of {listed}"))
    tolerance = _tolerance("lstsq", "rcond", x, rcond)
    if math.isnan(tolerance):
        raise AttributeValueError(at_user_line("smelt.linalg.lstsq: rcond must be a number, is NaN"))
    found = emit(ops["least_squares"], (x, y), {"rtol": tolerance})
    rest = matmul(x, found) - y
    squares = real(multiply(rest, conjugate(rest))) if rest.dtype.is_complex else multiply(rest, rest)
    left, s = total(squares, -2), svdvals(x)
    return as_given(found, vector), as_given(left, vector), _rank(s, tolerance), s
