"""Arrays as sets."""

from __future__ import annotations

from smelt.ir import dtypes
from smelt.ir.errors import DTypeError, ShapeError, at_user_line

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.streams import check_stream
from .creation import arange, full, zeros
from .joining import concatenate
from .logic import isnan, logical_and, logical_not, where
from .shaping import reshape
from .sorting import argsort, cumsum, searchsorted

__all__ = ["unique"]


def unique(
    a: ArrayLike,
    /,
    size: int,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    fill_value: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array | tuple[array, ...]:
    """The sorted distinct elements of the flattened array, `size` of them: no shape depends on values.

    Missing ones are filled up, superfluous ones (the greatest) are left out. NaNs are one element.

    Args:
        a: any shape, not complex. size: the number of elements of the result.
        return_index: also where each of them stands first in the flattened array, uint32.
        return_inverse: also, in the shape of `a`, which of them each element is, uint32; at most ``size - 1``.
        return_counts: also how often each of them occurs, int32; 0 for what is filled up.
        fill_value: fills up; by default the least element.

    Returns:
        An array of `size` elements of the dtype of `a`; with one of the flags a tuple, in the order of the flags.

    Raises:
        AttributeValueError: a negative size. DTypeError: `a` is complex. ShapeError: an empty `a` without
        `fill_value`, or a `fill_value` that is no scalar.

    >>> import smelt
    >>> smelt.unique(smelt.array([2, 1, 2, 3, 1]), 4, return_counts=True, fill_value=0)
    (array([1, 2, 3, 0], dtype=int32), array([2, 2, 1, 0], dtype=int32))
    """
    check_stream(stream)
    x = as_array(a)
    count = integer("unique", "size", size, 0)
    fill = None if fill_value is None else as_array(fill_value, x.dtype)
    if x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.unique: complex numbers have no order; a {x.aval}"))
    if (fill is not None and fill.ndim) or (fill is None and not x.size and count):
        what = "an empty array needs a fill_value" if fill is None else f"fill_value {fill.aval} must be a scalar"
        raise ShapeError(at_user_line(f"smelt.unique: {what}; a {x.aval}"))
    flat = reshape(x, (-1,)) if x.size else zeros((0,), x.dtype)
    order = argsort(flat)  # stable: equal elements stay in the order in which they stand
    ordered = flat[order]
    before, after = ordered[:-1], ordered[1:]
    differs = before != after
    if x.dtype.is_float:
        differs = logical_and(differs, logical_not(logical_and(isnan(before), isnan(after))))
    new = concatenate([full((min(x.size, 1),), True, dtypes.bool_), differs])
    rank = cumsum(convert(new, dtypes.int32)) - 1  # which distinct element each one in order is
    # The k-th distinct element begins where the rank reaches k; behind the last one that is the end.
    begins = searchsorted(rank, arange(count + 1)) if x.size else zeros((count + 1,), dtypes.int32)
    begins = convert(begins, dtypes.int32)
    found = begins[:-1] < x.size
    if x.size:
        first = where(found, begins[:-1], 0)
        values = ordered[first] if fill is None else where(found, ordered[first], convert(fill, x.dtype))
        index = convert(order[first], dtypes.uint32)
    else:
        values = full((count,), 0 if fill is None else fill, x.dtype)
        index = zeros((count,), dtypes.uint32)
    results = [values]
    if return_index:
        results.append(index)
    if return_inverse:
        inverse = zeros((x.size,), dtypes.uint32)
        if x.size:
            inverse[order] = convert(where(rank < count, rank, max(count - 1, 0)), dtypes.uint32)
        results.append(reshape(inverse, x.shape))
    if return_counts:
        results.append(begins[1:] - begins[:-1])
    return results[0] if len(results) == 1 else tuple(results)
