"""Products with matrices of a structure: blocks that are masked, segments of the inner axis, Hadamard matrices."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line

from ..lazy.arguments import integer, number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, broadcast_shapes, convert, from_host
from ..lazy.core import remembered
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .arithmetic import multiply
from .joining import repeat
from .linear import matmul
from .logic import where
from .ranges import arange
from .shaping import expand_dims, reshape, swapaxes

__all__ = ["block_masked_mm", "hadamard_transform", "segmented_mm"]


@remembered
def block_masked_mm(
    a: ArrayLike,
    b: ArrayLike,
    /,
    block_size: int = 64,
    mask_out: ArrayLike | None = None,
    mask_lhs: ArrayLike | None = None,
    mask_rhs: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """``a @ b`` with a mask for the blocks of either side and of the result: booleans keep or clear, numbers scale.

    Args:
        a: [..., m, k], b: [..., k, n], floating point. block_size: 32 or 64; with d = ⌈extent / block_size⌉ the masks
            are mask_out [..., d(m), d(n)], mask_lhs [..., d(m), d(k)], mask_rhs [..., d(k), d(n)]; None masks nothing.

    Raises:
        ShapeError: a mask that does not fit, or matrices that do not. DTypeError: no floating point.
        AttributeValueError: another block size.

    >>> import smelt
    >>> mask = smelt.array([[True, False]])
    >>> smelt.block_masked_mm(smelt.ones((1, 128)), smelt.ones((128, 1)), 64, mask_lhs=mask)
    array([[64]], dtype=float32)
    """
    check_stream(stream)
    size = integer("block_masked_mm", "block_size", block_size)
    if size not in (32, 64):
        raise AttributeValueError(at_user_line(f"smelt.block_masked_mm: block_size must be 32 or 64, is {size}"))
    x, y = _matrices("block_masked_mm", a, b)
    x, y = _masked("mask_lhs", x, mask_lhs, size), _masked("mask_rhs", y, mask_rhs, size)
    return _masked("mask_out", matmul(x, y), mask_out, size)


def _masked(name: str, x: array, mask: ArrayLike | None, size: int) -> array:
    if mask is None:
        return x
    given = as_array(mask)
    rows, columns = x.shape[-2:]
    if given.ndim < 2 or given.shape[-2:] != (-(-rows // size), -(-columns // size)):
        rule = f"one entry for each block of {size} × {size} elements"
        message = f"{name} has {rule} of a matrix of {rows} × {columns}; {name} {given.aval}"
        raise ShapeError(at_user_line(f"smelt.block_masked_mm: {message}"))
    broadcast_shapes("block_masked_mm", given.shape[:-2], x.shape[:-2])
    full = repeat(repeat(given, size, axis=-2), size, axis=-1)[..., :rows, :columns]
    return where(full, x, 0) if given.dtype is dtypes.bool_ else multiply(x, convert(full, x.dtype))


@remembered
def segmented_mm(a: ArrayLike, b: ArrayLike, /, segments: ArrayLike, *, stream: StreamOrDevice = None) -> array:
    """Products over segments of the inner axis: ``a[:, s:e] @ b[s:e]`` for each pair (s, e).

    Args:
        a: [m, k], b: [k, n], floating point. segments: integers [..., 2]; an end before its start is empty.

    Returns:
        [..., m, n].

    Raises:
        ShapeError: no matrices, or ones that do not fit, or segments that are no pairs. DTypeError: no floating point,
        or segments that are no integers.

    >>> import smelt
    >>> smelt.segmented_mm(smelt.ones((1, 5)), smelt.ones((5, 1)), smelt.array([[0, 2], [2, 5]])).tolist()
    [[[2.0]], [[3.0]]]
    """
    check_stream(stream)
    x, y = _matrices("segmented_mm", a, b)
    at = as_array(segments)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        message = f"needs two matrices that multiply; a {x.aval}, b {y.aval}"
        raise ShapeError(at_user_line(f"smelt.segmented_mm: {message}"))
    if not at.ndim or at.shape[-1] != 2:
        raise ShapeError(at_user_line(f"smelt.segmented_mm: segments must be pairs on the last axis, are {at.aval}"))
    if not at.dtype.is_integer:
        raise DTypeError(at_user_line(f"smelt.segmented_mm: segments must be integers, are {at.aval}"))
    positions = arange(x.shape[1], dtype=at.dtype if at.dtype.size >= 4 else dtypes.int32)
    inside = (positions >= at[..., :1]) & (positions < at[..., 1:])
    return matmul(where(expand_dims(inside, -2), x, 0), y)


#: Rows of Hadamard matrices whose size is no power of two, a bit an element, 1 for +1: had.12, had.20.will and
#: had.28.will of Sloane's library of Hadamard matrices, up to the order of rows, as MLX has them.
_ROWS = {
    12: "bff 2aa ec3 896 fb0 a25 cec 989 c3b 962 f0e a58",
    20: "84336 4238b 211d5 108fa 0866d 7c139 ba29c d914e e88a7 f0653 35a0f 1ad17 8d49b c685d 6343e 49a10 a0d08 54484 "
    "2e042 93021",
    28: "818694c 41c14a6 20e2a13 1071549 0838ae4 041e532 030d299 3d019d2 1e82ca9 8e43654 c621b2a e210d95 f00a6ca "
    "7807325 5b3201e ac9900f 564c847 ab24463 d590271 6ac8178 b4640bc 66b70c0 b35b820 "
    "d8adc10 6d54e08 37a8704 9ad4382 cd6a181",
}
#: Powers of two up to here are one product.
_LARGEST_FACTOR = 64


@lru_cache
def _hadamard(n: int) -> np.ndarray:
    if n in _ROWS:
        bits = [[int(row, 16) >> (n - 1 - i) & 1 for i in range(n)] for row in _ROWS[n].split()]
        return np.array(bits, np.float32) * 2 - 1
    found = np.ones((1, 1), np.float32)
    while len(found) < n:
        found = np.block([[found, found], [found, -found]])
    return found


@remembered
def hadamard_transform(a: ArrayLike, scale: float | None = None, stream: StreamOrDevice = None) -> array:
    """The last axis multiplied by a Hadamard matrix: ``scale * (a @ H.T)``, in about n log n operations.

    H is the Kronecker product of one of 1, 12, 20 or 28 rows and Sylvester's matrix, whose size is a power of two.

    Args:
        a: [..., n] with n = m · 2ᵏ for m of 1, 12, 20, 28; floating point (others become float32). A scalar is one
            element.
        scale: None is 1 / √n, with which the transform keeps lengths.

    Raises:
        ShapeError: another n. DTypeError: complex numbers.

    >>> import smelt
    >>> smelt.hadamard_transform(smelt.array([1.0, 2.0, 3.0, 4.0]), scale=1.0)
    array([10, -2, -4, 0], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(a)
    if not x.dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.hadamard_transform: needs real numbers, got {x.aval}"))
    n = x.shape[-1] if x.ndim else 1
    odd = next((m for m in (1, *_ROWS) if n and n % m == 0 and (n // m) & (n // m - 1) == 0), None)
    if odd is None:
        known = "m · 2ᵏ elements with m of 1, 12, 20, 28"
        raise ShapeError(at_user_line(f"smelt.hadamard_transform: the last axis must have {known}; a {x.aval}"))
    factor = 1 / math.sqrt(n) if scale is None else number("hadamard_transform", "scale", scale)
    sizes = [odd] if odd > 1 else []
    left = n // odd
    while left > 1:
        sizes.append(min(left, _LARGEST_FACTOR))
        left //= sizes[-1]
    found = convert(x, dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32)
    before, after = 1, n
    for size in sizes:
        after //= size
        parts = reshape(found, (*x.shape[:-1], before, size, after))
        found = swapaxes(matmul(swapaxes(parts, -1, -2), from_host(_hadamard(size).T, found.dtype)), -1, -2)
        before *= size
    return convert(multiply(reshape(found, x.shape), factor), x.dtype)


def _matrices(name: str, a: ArrayLike, b: ArrayLike) -> tuple[array, array]:
    """Both in their common dtype."""
    x, y = as_array(a), as_array(b)
    dtype = dtypes.promote(x.dtype, y.dtype)
    if not dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.{name}: needs floating point; a {x.aval}, b {y.aval}"))
    if x.ndim < 2 or y.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.{name}: needs matrices; a {x.aval}, b {y.aval}"))
    return convert(x, dtype), convert(y, dtype)
