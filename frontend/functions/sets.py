"""Arrays as sets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords
from smelt.ir.sorting import order_along, sorted_along

from ..lazy.arguments import integer
from ..lazy.arrays import ArrayLike, HostArray, StreamOrDevice, array, as_array, convert, from_host, promote_operands
from ..lazy.movement import counting, one_axis, to_shape
from ..lazy.operands import arrays_of
from ..lazy.streams import check_stream
from .creation import full, zeros
from .index_functions import take
from .joining import concatenate
from .logic import isnan, logical_and, logical_not, logical_xor, where
from .ranges import arange
from .reductions import any as any_of
from .searching import extract, host_values
from .shaping import moveaxis
from .sorting import argsort, cumsum, searchsorted
from .sorting import sort as in_order

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip

#: What has a value where nothing may be evaluated.
SIZED = "smelt.unique(a, size=) has a fixed shape"
#: Up to so many elements are compared one by one instead of being sorted.
FEW = 8


@flags_checked
def unique(
    a: ArrayLike,
    /,
    size: int | None = None,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    fill_value: ArrayLike | None = None,
    *,
    axis: int | None = None,
    equal_nan: bool = True,
    stream: StreamOrDevice = None,
) -> array | tuple[array, ...]:
    """The sorted distinct elements of the flattened array, or its parts along an axis, `size` of them.

    Missing ones are filled up, superfluous ones (the greatest) are left out. Without `size` there are as many as there
    are: that evaluates `a`.

    Args:
        a: any shape.
        size: the number of elements of the result.
        return_index: also where each of them stands first in the flattened array, uint32.
        return_inverse: also, in the shape of `a`, which of them each element is, uint32; at most ``size - 1``.
        return_counts: also how often each of them occurs, int32; 0 for what is filled up.
        fill_value: fills up; by default the least element.
        axis: the elements are the parts of `a` along it, such as rows for 0, compared by their first elements first.
            The inverse has one axis then. Each element of a part is a sort of its own.
        equal_nan: whether all NaNs are one element, or each one of its own.

    Returns:
        An array of `size` elements of the dtype of `a`; with one of the flags a tuple, in the order of the flags.

    Raises:
        ArgumentTypeError: a `size` that is a bool. AttributeValueError: a negative one.
        ShapeError: an empty `a` without `fill_value`, or a `fill_value` that is no scalar.
        TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.unique(smelt.array([2, 1, 2, 3, 1]), 4, return_counts=True, fill_value=0)
    (array([1, 2, 3, 0], dtype=int32), array([2, 2, 1, 0], dtype=int32))
    >>> smelt.unique(smelt.array([[2, 1], [1, 3], [2, 1]]), axis=0)
    array([[1, 3],
           [2, 1]], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    if isinstance(size, (bool, np.bool_)):  # NumPy's second parameter is return_index
        raise ArgumentTypeError(at_user_line(f"smelt.unique: size must be an int, is {size}; name return_index=True"))
    along = None if axis is None else one_axis("unique", axis, x.shape)
    parts = to_shape(x, (x.size,)) if along is None else moveaxis(x, along, 0)
    n, rest = parts.shape[0], parts.shape[1:]
    fill = None if fill_value is None else as_array(fill_value, x.dtype)
    order, new = _groups(parts if along is None else to_shape(parts, (n, math.prod(rest))), equal_nan)
    if size is None:
        if along is None:
            size = np.unique(_sortable("unique", x), equal_nan=equal_nan).size
        else:
            size = int(host_values("unique", new, SIZED).sum())
    count = integer("unique", "size", size, 0)
    if (fill is not None and fill.ndim) or (fill is None and not n and count):
        what = "an empty array needs a fill_value" if fill is None else f"fill_value {fill.aval} must be a scalar"
        raise ShapeError(at_user_line(f"smelt.unique: {what}; a {x.aval}"))
    rank = cumsum(new) - 1  # which distinct element each one in order is
    # The k-th distinct element begins where the rank reaches k; behind the last one that is the end.
    begins = searchsorted(rank, arange(count + 1)) if n else zeros((count + 1,), dtypes.int32)
    begins = convert(begins, counting(n))
    if n:
        found = begins[:-1] < n
        index = order[where(found, begins[:-1], 0)]
        values = parts[index]
        if fill is not None:
            values = where(to_shape(found, (count, *[1] * len(rest))), values, convert(fill, x.dtype))
    else:
        values = full((count, *rest), 0 if fill is None else fill, x.dtype)
        index = zeros((count,), dtypes.uint32)
    results = [values if along is None else moveaxis(values, 0, along)]
    if return_index:
        results.append(convert(index, dtypes.uint32))
    if return_inverse:
        inverse = zeros((n,), dtypes.uint32)
        if n:
            inverse[order] = convert(where(rank < count, rank, max(count - 1, 0)), dtypes.uint32)
        results.append(inverse if along is not None else to_shape(inverse, x.shape))
    if return_counts:
        results.append(begins[1:] - begins[:-1])
    return results[0] if len(results) == 1 else tuple(results)


def _groups(x: array, equal_nan: bool) -> tuple[array, array]:
    """The indices that sort elements, or rows by their first elements first, equal ones in their order; and which of
    these differ from the one before."""
    n = x.shape[0]
    if x.ndim == 1:
        order = argsort(x)
    else:
        order = arange(n, dtype=dtypes.uint32)
        for i in reversed(range(x.shape[1])):
            order = order[argsort(x[:, i][order])]
    ordered = x[order]
    before, after = ordered[:-1], ordered[1:]
    differs = before != after
    if equal_nan and x.dtype.is_inexact:
        differs = logical_and(differs, logical_not(logical_and(isnan(before), isnan(after))))
    if x.ndim > 1:
        differs = any_of(differs, axis=1)
    return order, concatenate([full((min(n, 1),), True, dtypes.bool_), differs])


def _sortable(name: str, x: array) -> HostArray:
    """The flattened elements, in a dtype that NumPy sorts."""
    host = host_values(name, x, SIZED).reshape(-1)
    return host.astype(np.float32) if x.dtype is dtypes.bfloat16 else host


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: array
    indices: array
    inverse_indices: array
    counts: array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: array
    counts: array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: array
    inverse_indices: array


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None, stream: StreamOrDevice = None
) -> UniqueAll:
    """The distinct elements in ascending order, where each stands first, which one each element is, how often each is.

    Without `size` this evaluates `x`. The other results are int32; each NaN is an element of its own.

    Args:
        size: the number of distinct elements that are told; see `unique`.
        fill_value: fills up; by default the least element.

    Returns:
        ``(values, indices, inverse_indices, counts)``: indices into the flattened array; inverse_indices in its shape.

    Raises:
        TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> values, indices, inverse, counts = smelt.unique_all(smelt.array([3, 1, 3]))
    >>> values, indices, inverse, counts
    (array([1, 3], dtype=int32), array([1, 0], dtype=int32), array([1, 0, 1], dtype=int32), array([1, 2], dtype=int32))
    """
    check_stream(stream)
    return _unique("unique_all", x) if size is None else _sized(x, size, fill_value)


def _unique(name: str, a: ArrayLike) -> UniqueAll:
    x = as_array(a)
    host = _sortable(name, x)
    kind = np.int32 if x.size < 2**31 else np.int64
    order = _order(host)
    begins = _begins(host[order])
    places = np.flatnonzero(begins)
    ranks = np.empty(x.size, kind)
    ranks[order] = np.cumsum(begins, dtype=kind) - 1
    found = order[places], ranks, np.diff(places, append=x.size)
    first, inverse, counts = (from_host(np.asarray(part, kind)) for part in found)
    return UniqueAll(take(to_shape(x, (x.size,)), first), first, to_shape(inverse, x.shape), counts)


def _sized(x: ArrayLike, size: int, fill_value: ArrayLike | None) -> UniqueAll:
    """`unique` with all that it tells, in the dtypes of the standard's functions."""
    found = unique(x, size, True, True, True, fill_value, equal_nan=False)
    assert isinstance(found, tuple)
    values, index, inverse, counts = found
    return UniqueAll(values, *(convert(part, dtypes.int32) for part in (index, inverse, counts)))


def _order(host: HostArray) -> HostArray:
    """The indices that sort elements, equal ones in their order."""
    if host.dtype.kind not in "biuf" or host.size >= 1 << 32:
        return np.argsort(host, kind="stable")
    return order_along(host, 0)


def _begins(ordered: HostArray) -> HostArray:
    """Which elements in order are not equal to the one before."""
    found = np.ones(ordered.shape, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=found[1:])
    return found


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None, stream: StreamOrDevice = None
) -> UniqueCounts:
    """The distinct elements in ascending order and how often each of them is there; see `unique_all`.

    >>> import smelt
    >>> smelt.unique_counts(smelt.array([3, 1, 3])).counts
    array([1, 2], dtype=int32)
    """
    check_stream(stream)
    found = _unique("unique_counts", x) if size is None else _sized(x, size, fill_value)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None, stream: StreamOrDevice = None
) -> UniqueInverse:
    """The distinct elements in ascending order and which of them each element is; see `unique_all`.

    >>> import smelt
    >>> smelt.unique_inverse(smelt.array([3, 1, 3])).inverse_indices
    array([1, 0, 1], dtype=int32)
    """
    check_stream(stream)
    found = _unique("unique_inverse", x) if size is None else _sized(x, size, fill_value)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None, stream: StreamOrDevice = None
) -> array:
    """The distinct elements in ascending order; see `unique_all`.

    >>> import smelt
    >>> smelt.unique_values(smelt.array([3, 1, 3]))
    array([1, 3], dtype=int32)
    """
    check_stream(stream)
    x = as_array(x)
    if size is not None:
        return _sized(x, size, fill_value).values
    if not x.dtype.is_integer:  # equal ones may have other signs, or payloads
        return _unique("unique_values", x).values
    ordered = sorted_along(_sortable("unique_values", x), 0)
    return from_host(ordered[_begins(ordered)])


@flags_checked
def isin(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """For each element of x1 whether x2 has it, as bool. A NaN is in nothing.

    Args:
        x1, x2: any shapes; they promote.
        assume_unique: accepted for NumPy's sake.
        invert: whether x2 has it not.

    >>> import smelt
    >>> smelt.isin(smelt.array([1, 2, 3]), [3, 1])
    array([ True, False,  True], dtype=bool)
    """
    check_stream(stream)
    x, among = arrays_of(x1, x2)
    dtype = promote_operands("isin", to_shape(x, (x.size, 1)), to_shape(among, (1, among.size)))[0].dtype
    x, among = convert(x, dtype), convert(to_shape(among, (among.size,)), dtype)
    if not among.size:
        found = zeros(x.shape, dtypes.bool_)
    elif among.size <= FEW:
        found = any_of(to_shape(x, (*x.shape, 1)) == among, axis=-1)
    else:
        ordered = in_order(among)
        place = convert(searchsorted(ordered, x), counting(among.size))
        inside = place < among.size
        found = logical_and(inside, take(ordered, where(inside, place, 0)) == x)
    return logical_xor(found, True) if invert else found


def _flat(*given: ArrayLike) -> list[array]:
    """Flattened, in their common dtype."""
    xs = arrays_of(*given)
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = dtypes.promote(dtype, x.dtype)
    return [convert(to_shape(x, (x.size,)), dtype) for x in xs]


def _distinct(name: str, x: array, unique_already: bool) -> array:
    host_values(name, x, "give size=, or write it with smelt.isin and smelt.where")
    return x if unique_already or not x.size else _unique(name, x).values


def _first_of_each(x: array) -> tuple[array, array]:
    """The elements in order, and which of them differ from the one before: each NaN does."""
    order, new = _groups(x, False)
    return x[order], new


def _chosen(x: array, mask: array, size: int, fill_value: ArrayLike | None) -> array:
    """The elements where the mask holds, `size` of them; filled up with the first one, or 0, if nothing is given."""
    if fill_value is None:
        first = extract(mask, x, size=1, fill_value=0)
        fill_value = first[0]
    return extract(mask, x, size=size, fill_value=fill_value)


def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The sorted distinct elements of both; see `unique` for `size`, without which this evaluates them.

    Args:
        ar1, ar2: arrays of any shape, flattened.
        fill_value: fills up; by default the least element.

    >>> import smelt
    >>> smelt.union1d(smelt.array([3, 1]), smelt.array([2, 3]))
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    found = unique(concatenate(_flat(ar1, ar2)), size, fill_value=fill_value)
    assert isinstance(found, array)
    return found


@flags_checked
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    /,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array | tuple[array, array, array]:
    """The sorted distinct elements that both have. Without `size` this evaluates them.

    Args:
        ar1, ar2: arrays of any shape, flattened.
        assume_unique: promises that neither has an element twice.
        return_indices: also where each stands first in the flattened arrays, int32.
        size: the number of elements of the result: further ones are left out, missing ones are filled up.
        fill_value: fills up; by default the least element of the result, and 0 if there is none. Indices are filled up
            with the sizes of the arrays.

    Raises:
        TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.intersect1d(smelt.array([3, 1, 3]), smelt.array([2, 3]))
    array([3], dtype=int32)
    >>> smelt.intersect1d(smelt.array([3, 1, 3]), smelt.array([2, 3]), size=2, fill_value=-1)
    array([ 3, -1], dtype=int32)
    """
    check_stream(stream)
    x, y = _flat(ar1, ar2)
    if size is None:
        found = _distinct("intersect1d", x, False)
        found = found[isin(found, _distinct("intersect1d", y, assume_unique))]
        there = None
    else:
        count = integer("intersect1d", "size", size, 0)
        ordered, new = _first_of_each(x)
        common = logical_and(new, isin(ordered, y))
        found = _chosen(ordered, common, count, fill_value)
        there = arange(count) < common.sum()
    if not return_indices:
        return found
    places = []
    for side in (x, y):
        if not side.size:  # nothing is common
            places.append(zeros((found.size,), dtypes.int32))
            continue
        order = argsort(side)
        place = convert(searchsorted(take(side, order), found), dtypes.int32)
        if there is not None:
            place = where(there, place, 0)
        place = convert(take(order, place), dtypes.int32)
        places.append(place if there is None else where(there, place, side.size))
    return found, places[0], places[1]


@flags_checked
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    /,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The distinct elements of ar1 that ar2 does not have, sorted. Without `size` this evaluates them.

    Each NaN is an element of its own.

    Args:
        assume_unique: promises that neither has an element twice; then they stay in the order of ar1.
        size: the number of elements of the result: further ones are left out, missing ones are filled up.
        fill_value: fills up; by default 0.

    Raises:
        TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.setdiff1d(smelt.array([3, 1, 2]), smelt.array([2]))
    array([1, 3], dtype=int32)
    """
    check_stream(stream)
    x, y = _flat(ar1, ar2)
    if size is not None:
        mask = isin(x, y, invert=True)
        if not assume_unique:
            x, new = _first_of_each(x)
            mask = logical_and(new, isin(x, y, invert=True))
        return extract(mask, x, size=size, fill_value=0 if fill_value is None else fill_value)
    found = _distinct("setdiff1d", x, assume_unique)
    return found[isin(found, y, invert=True)]


@flags_checked
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    /,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The sorted distinct elements that only one of both has. Without `size` this evaluates them.

    Each NaN is an element of its own.

    Args:
        ar1, ar2: arrays of any shape, flattened.
        assume_unique: promises that neither has an element twice.
        size: the number of elements of the result: further ones are left out, missing ones are filled up.
        fill_value: fills up; by default the least element of the result, and 0 if there is none.

    Raises:
        TraceError: no `size` inside `smelt.compile` or `smelt.vmap`.

    >>> import smelt
    >>> smelt.setxor1d(smelt.array([3, 1]), smelt.array([2, 3]))
    array([1, 2], dtype=int32)
    """
    check_stream(stream)
    sides = _flat(ar1, ar2)
    if size is not None:
        count = integer("setxor1d", "size", size, 0)
        x, y = sides
        both = concatenate([x, y])
        alone = concatenate([isin(x, y, invert=True), isin(y, x, invert=True)])
        order, new = _groups(both, False)
        return _chosen(both[order], logical_and(new, alone[order]), count, fill_value)
    x, y = (_distinct("setxor1d", side, assume_unique) for side in sides)
    return in_order(concatenate([x[isin(x, y, invert=True)], y[isin(y, x, invert=True)]]))


explain_keywords(globals())
