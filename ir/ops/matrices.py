"""What the ops of matrices share: matrices stand on the last two axes, all others being a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..aval import Aval, broadcast_shapes
from ..errors import LibraryError

if TYPE_CHECKING:
    from ..builder import Builder, Value

#: Dtypes of what LAPACK does with numbers of any kind.
FIELDS = (dtypes.float32, dtypes.float64, *dtypes.COMPLEX)

# What the hosts share.


def field(rng: np.random.Generator, a: Aval) -> np.ndarray:
    """Random numbers, real or complex."""
    x = rng.uniform(-1, 1, a.shape)
    return (x + 1j * rng.uniform(-1, 1, a.shape) if a.dtype.is_complex else x).astype(a.dtype.numpy)


def which(bad: np.ndarray) -> str:
    """The first matrix of a batch for which `bad` holds."""
    if not bad.ndim:
        return "the matrix"
    at = [int(i) for i in np.argwhere(bad)[0]]
    return f"matrix {', '.join(map(str, at))} of the batch"


def one_by_one(function: Callable[..., np.ndarray], rule: str, a: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """After an error of the library: which matrix it was; a matrix that is not finite gives NaN instead.

    Raises:
        LibraryError: `rule` does not hold of a finite matrix.
    """
    batch = broadcast_shapes(*(x.shape[:-2] for x in (a, *others)))
    matrices, *more = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, *others)]
    found = np.full((more or [matrices])[0].shape, np.nan, a.dtype)
    for at in np.ndindex(batch):
        if np.isfinite(matrices[at]).all():
            try:
                found[at] = function(matrices[at], *[x[at] for x in more])
            except np.linalg.LinAlgError:
                bad = np.zeros(batch, bool)
                bad[at] = True
                raise LibraryError(f"{which(bad)} {rule}") from None
    return found


# What the derivatives share.


def transposed(b: Builder, x: Value) -> Value:
    return b.transpose(x, permutation=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def matmul(b: Builder, x: Value, y: Value) -> Value:
    """Products of matrices, whose batch axes are broadcast."""
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (b.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (x, y))
    lead = len(batch)
    axes: dict[str, Any] = {"lhs_batch": tuple(range(lead)), "rhs_batch": tuple(range(lead))}
    return b.dot_general(x, y, lhs_contracting=(lead + 1,), rhs_contracting=(lead,), **axes)


def lower(b: Builder, x: Value, below: int = 0) -> Value:
    """The lower triangle, from `below` diagonals below the main one on; zeros elsewhere."""
    return where_place(b, x, lambda row, column: b.greater_equal(row, column + below))


def upper_part(b: Builder, x: Value) -> Value:
    return where_place(b, x, lambda row, column: b.less_equal(row, column))


def where_place(b: Builder, x: Value, chosen: Callable[[Value, Value], Value]) -> Value:
    row, column = (b.iota(shape=x.shape[-2:], axis=axis, dtype=dtypes.int32) for axis in (0, 1))
    return b.select(b.broadcast_to(chosen(row, column), x.shape), x, b.zeros_like(x))


def columns(b: Builder, x: Value, start: int, stop: int) -> Value:
    lead = x.ndim - 1
    return b.slice(x, start=(*[0] * lead, start), stop=(*x.shape[:-1], stop), stride=(1,) * x.ndim)


def rows(b: Builder, x: Value, start: int, stop: int) -> Value:
    lead = x.ndim - 2
    whole = (*x.shape[:-2], stop, x.shape[-1])
    return b.slice(x, start=(*[0] * lead, start, 0), stop=whole, stride=(1,) * x.ndim)


def conjugated(b: Builder, x: Value) -> Value:
    """The complex conjugate; real numbers as they are."""
    return b.complex(b.real(x), -b.imag(x)) if x.dtype.is_complex else x


def adjoint_of(x: np.ndarray) -> np.ndarray:
    """The conjugate transpose, of NumPy's arrays."""
    return np.swapaxes(x, -1, -2).conj()


def adjoint(b: Builder, x: Value) -> Value:
    return transposed(b, conjugated(b, x))


def hermitian(b: Builder, x: Value) -> Value:
    """The Hermitian (for real numbers symmetric) matrices whose lower triangle is that of x."""
    if not x.dtype.is_complex:
        return lower(b, x) + transposed(b, lower(b, x, below=1))
    below = lower(b, x, below=1)
    real = b.complex(b.real(x), b.zeros_like(b.real(x)))  # a diagonal is real
    return below + adjoint(b, below) + where_place(b, real, lambda row, column: b.equal(row, column))


def real_part(b: Builder, x: Value) -> Value:
    return b.real(x) if x.dtype.is_complex else x


def trace_of_product(b: Builder, x: Value, y: Value) -> Value:
    """tr(x·y), of matrices of one batch."""
    return b.reduce_sum(x * transposed(b, y), axes=(x.ndim - 2, x.ndim - 1))


def like_matrix(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """A number for each matrix of a batch, as matrices of that number."""
    return b.broadcast_to(b.reshape_to(x, (*x.shape, 1, 1)), shape)


def diagonal(b: Builder, x: Value) -> Value:
    """The diagonal of square matrices."""
    kept = where_place(b, x, lambda row, column: b.equal(row, column))
    return b.reduce_sum(kept, axes=(x.ndim - 2,))


def inverse_differences(b: Builder, w: Value) -> Value:
    """The matrices 1 / (w[j] - w[i]), with zeros where two of the numbers are equal but for rounding."""
    n = w.shape[-1]
    shape = (*w.shape, n)
    if not n:
        return b.full(shape, 0, w.dtype)
    gaps = b.broadcast_to(b.reshape_to(w, (*w.shape[:-1], 1, n)), shape)
    gaps = gaps - b.broadcast_to(b.reshape_to(w, (*w.shape, 1)), shape)
    size = b.abs(w)
    bound = b.reduce_max(size, axes=(w.ndim - 1,)) * (n * float(np.finfo(w.dtype.numpy).eps))
    equal = b.less_equal(b.abs(gaps), like_matrix(b, bound, shape))
    one = b.full(shape, 1, w.dtype)
    return b.select(equal, b.full(shape, 0, w.dtype), one / b.select(equal, one, gaps))


def of_finite(function: Callable[[np.ndarray], Any], a: np.ndarray) -> Any:
    """Results of a library that refuses NaN and infinities: of matrices that have some, they are NaN."""
    finite = np.isfinite(a).all((-1, -2))
    if finite.all():
        return function(a)
    found = function(np.where(finite[..., None, None], a, np.zeros((), a.dtype)))

    def masked(x: np.ndarray) -> np.ndarray:
        return np.where(finite.reshape(*finite.shape, *[1] * (x.ndim - finite.ndim)), x, np.array(np.nan, x.dtype))

    return tuple(masked(x) for x in found) if isinstance(found, tuple) else masked(found)
