"""Products of vectors and matrices, and parts of matrices; most of them are functions of `smelt` as well."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.ir.dtypes import DType
from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.keywords import explain_keywords

from ..functions import diagonals
from ..functions.arithmetic import multiply, subtract
from ..functions.joining import stack
from ..functions.linear import matmul, outer, tensordot, vecdot
from ..functions.shaping import matrix_transpose
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_shapes, broadcast_to_shape, scalar_array
from ..lazy.core import remembered
from ..lazy.movement import one_axis, padded, permuted, piece, to_shape
from ..lazy.operands import arrays_of, exact_arrays
from ..lazy.streams import check_stream

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace", "vecdot",
]  # fmt: skip


@remembered
def cross(a: ArrayLike, b: ArrayLike, axis: int = -1, *, stream: StreamOrDevice = None) -> array:
    """The cross product of vectors of three numbers, or of two, whose third one is zero.

    Args:
        a, b: arrays with 3 or 2 elements along the axis; the other axes are broadcast.
        axis: the axis of the vectors, in both.

    Returns:
        Vectors of three numbers, in the common dtype.

    Raises:
        ShapeError: no such axis, another number of elements, axes that do not broadcast.

    >>> import smelt
    >>> smelt.linalg.cross(smelt.array([1, 0, 0]), smelt.array([0, 1, 0]))
    array([0, 0, 1], dtype=int32)
    """
    check_stream(stream)
    name = "linalg.cross"
    given = arrays_of(a, b)
    moved = []
    for x, what in zip(given, "ab"):
        at = one_axis(name, axis, x.shape)
        if x.shape[at] not in (2, 3):
            message = f"{what} has {x.shape[at]} elements along axis {axis}, must have 2 or 3"
            raise ShapeError(at_user_line(f"smelt.{name}: {message}; a {given[0].aval}, b {given[1].aval}"))
        x = permuted(x, (*(i for i in range(x.ndim) if i != at), at))
        none = [0] * (x.ndim - 1)
        moved.append(padded(x, scalar_array(0, x.dtype), [*none, 0], [*none, 3 - x.shape[-1]]))
    lead = broadcast_shapes(name, *(x.shape[:-1] for x in moved))
    (x1, x2, x3), (y1, y2, y3) = (
        [to_shape(piece(v, v.ndim - 1, i, i + 1), v.shape[:-1]) for i in range(3)] for v in moved
    )
    parts = [
        subtract(multiply(p, q), multiply(r, s))
        for p, q, r, s in ((x2, y3, x3, y2), (x3, y1, x1, y3), (x1, y2, x2, y1))
    ]
    return stack([broadcast_to_shape(part, lead) for part in parts], one_axis(name, axis, len(lead) + 1))


@remembered
def diagonal(x: ArrayLike, /, *, offset: int = 0, stream: StreamOrDevice = None) -> array:
    """The elements [i, i + offset] of matrices, on the last two axes. (`smelt.diagonal` takes the first two.)

    Raises:
        ShapeError: no matrices.

    >>> import smelt
    >>> smelt.linalg.diagonal(smelt.array([[[1, 2], [3, 4]]]))
    array([[1, 4]], dtype=int32)
    """
    check_stream(stream)
    return diagonals.diagonal_of("linalg.diagonal", as_array(x), offset, -2, -1)


@remembered
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DType | None = None, stream: StreamOrDevice = None) -> array:
    """The sum of the elements [i, i + offset] of matrices, on the last two axes. (`smelt.trace` takes the first two.)

    Args:
        dtype: to sum in, and of the result; by default that of `smelt.sum`.

    Raises:
        ShapeError: no matrices.

    >>> import smelt
    >>> smelt.linalg.trace(smelt.array([[[1, 2], [3, 4]]]))
    array([5], dtype=int32)
    """
    return diagonals.trace(x, offset, -2, -1, dtype, stream=stream)


def multi_dot(arrays: Sequence[ArrayLike], *, stream: StreamOrDevice = None) -> array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: two or more matrices; the first may be a vector, which counts as a row, and the last, as a column.

    Raises:
        ShapeError: fewer than two, no matrices, extents that do not fit.

    >>> import smelt
    >>> smelt.linalg.multi_dot([smelt.ones((2, 9)), smelt.ones((9, 3)), smelt.ones(3)])
    array([27, 27], dtype=float32)
    """
    check_stream(stream)
    name = "linalg.multi_dot"
    if not isinstance(arrays, (tuple, list)) or len(arrays) < 2:
        what = len(arrays) if isinstance(arrays, (tuple, list)) else type(arrays).__name__
        raise ShapeError(at_user_line(f"smelt.{name}: needs a list of at least two arrays, got {what}"))
    xs = exact_arrays(arrays)
    row, column = xs[0].ndim == 1, xs[-1].ndim == 1
    if row:
        xs[0] = to_shape(xs[0], (1, xs[0].size))
    if column:
        xs[-1] = to_shape(xs[-1], (xs[-1].size, 1))
    for i, x in enumerate(xs):
        if x.ndim != 2 or (i and x.shape[0] != xs[i - 1].shape[1]):
            listed = ", ".join(str(x.aval) for x in xs)
            what = "is no matrix" if x.ndim != 2 else f"has {x.shape[0]} rows, not {xs[i - 1].shape[1]}"
            raise ShapeError(at_user_line(f"smelt.{name}: array {i} {what}; arrays {listed}"))
    found = _product(xs, _splits([x.shape[0] for x in xs] + [xs[-1].shape[1]]), 0, len(xs) - 1)
    shape = found.shape[1 if row else 0 : 1 if column else 2]
    return to_shape(found, shape)


def _splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where the product of the matrices i … j is divided, by dynamic programming over their lengths."""
    n = len(extents) - 1
    cost, split = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            found = min(
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j)
            )
            cost[i, j], split[i, j] = found
    return split


def _product(xs: Sequence[array], split: dict[tuple[int, int], int], i: int, j: int) -> array:
    if i == j:
        return xs[i]
    k = split[i, j]
    return matmul(_product(xs, split, i, k), _product(xs, split, k + 1, j))


explain_keywords(globals())
