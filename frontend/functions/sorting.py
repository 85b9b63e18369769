"""Sorting, searching, and running sums, products and extrema along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.op import registry as ops

from ..lazy.arguments import dtype_of, integer, listed, no_out, word
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    wrap,
)
from ..lazy.core import remembered
from ..lazy.movement import (
    counting,
    filled,
    for_gather,
    joined,
    one_axis,
    permuted,
    piece,
    reversed_along,
    select,
    to_shape,
)
from ..lazy.operands import arrays_of
from ..lazy.streams import check_stream
from .complex_numbers import imag, real
from .index_functions import take_along_axis
from .indexing import getitem
from .known_indices import check_along

__all__ = [
    "argpartition",
    "argsort",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "logcumsumexp",
    "partition",
    "searchsorted",
    "sort",
    "topk",
]


def _along(name: str, a: ArrayLike, axis: int | None) -> tuple[array, int]:
    """The array and an axis; flattened without one. A scalar counts as a vector of one element."""
    x = as_array(a)
    if axis is None or not x.ndim:
        if axis is not None:
            one_axis(name, axis, 1)
        return to_shape(x, (x.size,)), 0
    return x, one_axis(name, axis, x.shape)


def _sorted(name: str, op: str, a: ArrayLike, axis: int | None) -> array:
    x, along = _along(name, a, axis)
    found = emit(ops[op], (x,), {"axis": along})
    return to_shape(found, ()) if axis is not None and not as_array(a).ndim else found


@remembered
def sort(
    a: ArrayLike,
    /,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    stream: StreamOrDevice = None,
) -> array:
    """In ascending order along an axis (of the flattened array if None); NaN comes last.

    Complex numbers are ordered by their real part, equal ones by the imaginary part, as NumPy has it.

    Args:
        descending: in the reversed order: NaN comes first.
        stable: accepted; equal elements always keep their order.

    >>> import smelt
    >>> smelt.sort(smelt.array([3, 1, 2]))
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    found = _sorted("sort", "sort", a, axis)
    return reversed_along(found, (_along("sort", found, axis)[1],)) if descending and found.ndim else found


@remembered
def argsort(
    a: ArrayLike,
    /,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    stream: StreamOrDevice = None,
) -> array:
    """Indices (uint32) that sort along an axis; equal elements keep their order.

    The arguments are those of `sort`.

    >>> import smelt
    >>> smelt.argsort(smelt.array([3, 1, 2]))
    array([1, 2, 0], dtype=uint32)
    """
    check_stream(stream)
    if not descending:
        return _sorted("argsort", "argsort", a, axis)
    x, along = _along("argsort", a, axis)
    # Sorted from behind, and read from behind: equal elements are in their order again.
    found = _sorted("argsort", "argsort", reversed_along(x, (along,)), along)
    last = filled(found.shape, max(x.shape[along] - 1, 0), found.dtype)
    found = reversed_along(emit_elementwise(ops["sub"], last, found), (along,))
    return to_shape(found, ()) if axis is not None and not as_array(a).ndim else found


def _check_kth(name: str, a: ArrayLike, kth: int | Sequence[int], axis: int | None) -> None:
    x, along = _along(name, a, axis)
    size = x.shape[along]
    for k in listed(name, "kth", kth) if isinstance(kth, (list, tuple)) else [kth]:
        if not -size <= integer(name, "kth", k) < size:
            message = f"kth {shown(k)} out of range for {size} elements; a {x.aval}"
            raise AttributeValueError(at_user_line(f"smelt.{name}: {message}"))


@remembered
def partition(
    a: ArrayLike, /, kth: int | Sequence[int], axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """An order in which the kth element is where sorting puts it, smaller ones before, larger ones behind.

    Args:
        kth: a number, or several, each of which is then at its place.
        axis: along which; None for the flattened array.

    >>> import smelt
    >>> smelt.partition(smelt.array([3, 1, 2]), 1)[1]
    array(2, dtype=int32)
    """
    check_stream(stream)
    _check_kth("partition", a, kth, axis)
    return _sorted("partition", "sort", a, axis)


@remembered
def argpartition(
    a: ArrayLike, /, kth: int | Sequence[int], axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """Indices (uint32) that partition along an axis; see `partition`.

    >>> import smelt
    >>> smelt.argpartition(smelt.array([3, 1, 2]), 0)[0]
    array(1, dtype=uint32)
    """
    check_stream(stream)
    _check_kth("argpartition", a, kth, axis)
    return _sorted("argpartition", "argsort", a, axis)


def _candidates(x: array, k: int, axis: int) -> array:
    """Few elements along an axis, the k largest among them: those of the k blocks with the largest elements."""
    size = x.shape[axis]
    if type(size) is not int:  # a symbol: one program for all sizes
        return x
    block = max(1, math.isqrt(size // max(k, 1)))
    count = size // block
    if not (x.dtype.is_integer or x.dtype.is_float) or not k or 2 * (count + (k + 1) * block) > size:
        return x
    if axis != x.ndim - 1:
        order = (*range(axis), *range(axis + 1, x.ndim), axis)
        back = (*range(axis), x.ndim - 1, *range(axis, x.ndim - 1))
        return permuted(_candidates(permuted(x, order), k, x.ndim - 1), back)
    lead = x.shape[:-1]
    blocks = to_shape(piece(x, axis, 0, count * block), (*lead, block, count))  # each is a column: quick to compare
    best = emit(ops["argsort"], (emit(ops["reduce_max"], (blocks,), {"axes": (axis,)}),), {"axis": axis})
    chosen = take_along_axis(blocks, to_shape(piece(best, axis, count - k, count), (*lead, 1, k)), axis + 1)
    found = to_shape(chosen, (*lead, block * k))
    rest = piece(x, axis, count * block, size)
    return emit(ops["concatenate"], (found, rest), {"axis": axis}) if rest.shape[axis] else found


@remembered
def topk(a: ArrayLike, /, k: int, axis: int | None = -1, *, stream: StreamOrDevice = None) -> array:
    """The k largest elements along an axis, in ascending order.

    Raises:
        AttributeValueError: k is greater than the size of the axis, or negative.

    >>> import smelt
    >>> smelt.topk(smelt.array([5, 1, 3, 4]), 2)
    array([4, 5], dtype=int32)
    """
    check_stream(stream)
    x, along = _along("topk", a, axis)
    size, k = x.shape[along], integer("topk", "k", k)
    if not 0 <= k <= size:
        raise AttributeValueError(at_user_line(f"smelt.topk: k {k} out of range for {size} elements; a {x.aval}"))
    found = _sorted("topk", "sort", _candidates(x, k, along), along)
    return piece(found, along, found.shape[along] - k, found.shape[along])


@partial(remembered, check=check_along("searchsorted", 0, 4, (3, "sorter")))
def searchsorted(
    sorted_sequence: ArrayLike,
    values: ArrayLike,
    /,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Where to insert values into a sorted vector so that it stays sorted, as uint32.

    Args:
        side: "left": before equal elements; "right": behind them.
        sorter: the order that sorts `sorted_sequence`, such as its `argsort`, where it is not sorted itself.

    Raises:
        ShapeError: `sorted_sequence` is no vector or has 2**32 elements, or `sorter` is not of its shape.
        DTypeError: complex numbers. IndexOutOfRangeError: an entry of `sorter` that has been evaluated is out of range.

    >>> import smelt
    >>> smelt.searchsorted(smelt.array([1, 2, 2, 3]), smelt.array([2, 5]))
    array([1, 4], dtype=uint32)
    """
    check_stream(stream)
    word("searchsorted", "side", side, "left", "right")
    x, v = arrays_of(sorted_sequence, values)
    if x.ndim != 1:
        raise ShapeError(at_user_line(f"smelt.searchsorted: sorted_sequence must be a vector, is {x.aval}"))
    if sorter is not None:
        order = as_array(sorter)
        if order.shape != x.shape or not order.dtype.is_integer:
            message = f"smelt.searchsorted: sorter must be an index for each element of {x.aval}, is {order.aval}"
            raise ShapeError(at_user_line(message))
        x = getitem(x, order) if x.size else x
    dtype = dtypes.promote(x.dtype, v.dtype)
    x, v = convert(x, dtype), convert(v, dtype)
    if dtype is dtypes.bool_:
        x, v = convert(x, dtypes.uint8), convert(v, dtypes.uint8)
    size, shape = x.size, v.shape
    if size >= 2**32:
        raise ShapeError(at_user_line(f"smelt.searchsorted: positions in {x.aval} do not fit uint32"))
    counts = counting(size)
    if size * v.size <= COUNTED:
        return convert(_passed(x, v, side, counts), dtypes.uint32)
    place = filled(shape, 0, counts)
    step = 1 << max(size.bit_length() - 1, 0)
    while size and step:  # place grows by a power of two wherever all elements passed belong before v
        further = emit_elementwise(ops["add"], place, filled(shape, step, counts))
        inside = emit_elementwise(ops["less_equal"], further, filled(shape, size, counts))
        index = emit_elementwise(ops["sub"], further, filled(shape, 1, counts))
        index = for_gather(index, size - 1)
        seen = to_shape(emit(ops["gather"], (x, index), {"axes": (0,), "slice_sizes": (1,)}), shape)
        place = select(emit_elementwise(ops["logical_and"], inside, _is_before(seen, v, side)), further, place)
        step //= 2
    return convert(place, dtypes.uint32)


#: So many comparisons take no longer than the ops of a binary search, which are more than a hundred.
COUNTED = 1 << 16


def _passed(x: array, v: array, side: str, counts: DType) -> array:
    """How many elements of the vector x belong before each value."""
    every = (*v.shape, x.size)
    passed = _is_before(broadcast_to_shape(x, every), broadcast_to_shape(to_shape(v, (*v.shape, 1)), every), side)
    return emit(ops["reduce_sum"], (convert(passed, counts),), {"axes": (v.ndim,)})


def _is_before(x: array, y: array, side: str) -> array:
    """Whether y is inserted behind x."""
    return _precedes(x, y) if side == "left" else emit_elementwise(ops["logical_not"], _precedes(y, x))


def _precedes(x: array, y: array) -> array:
    """x < y in the order of sorting: NaN is the largest; of complex numbers NaN is the largest part."""
    both, either = ops["logical_and"], ops["logical_or"]
    if x.dtype.is_complex:
        a, b, c, d = real(x), real(y), imag(x), imag(y)
        lost = [emit_elementwise(ops["not_equal"], v, v) for v in (a, b, c, d)]
        same = emit_elementwise(either, emit_elementwise(ops["equal"], a, b), emit_elementwise(both, *lost[:2]))
        by_parts = emit_elementwise(either, _precedes(a, b), emit_elementwise(both, same, _precedes(c, d)))
        # Behind all numbers are those whose imaginary part alone is NaN.
        numbers = emit_elementwise(ops["logical_not"], emit_elementwise(either, *lost[:2]))
        one_lost = emit_elementwise(both, numbers, emit_elementwise(ops["not_equal"], *lost[2:]))
        return select(one_lost, lost[3], by_parts)
    less = emit_elementwise(ops["less"], x, y)
    if not x.dtype.is_float:
        return less
    number, nan = emit_elementwise(ops["equal"], x, x), emit_elementwise(ops["not_equal"], y, y)
    return emit_elementwise(either, less, emit_elementwise(both, number, nan))


def _scan(name: str, x: array, axis: int | None, reverse: bool, inclusive: bool, initial: int | None = None) -> array:
    """A scan; with `initial` that is put before its first result."""
    scalar = not x.ndim and axis is not None
    x, along = _along(name, x, axis)
    attrs = {"axis": along, "reverse": bool(reverse), "inclusive": bool(inclusive)}
    found = emit(ops[name], (x,), attrs)
    if initial is not None:
        first = filled((*x.shape[:along], 1, *x.shape[along + 1 :]), initial, found.dtype)
        return emit(ops["concatenate"], (found, first) if reverse else (first, found), {"axis": along})
    return to_shape(found, ()) if scalar else found


def _of_dtype(name: str, a: ArrayLike, dtype: Any) -> array:
    """The array in the dtype asked for."""
    x = as_array(a)
    return x if dtype is None else convert(x, dtype_of(name, dtype))


@remembered
def cumsum(
    a: ArrayLike,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: DType | None = None,
    include_initial: bool = False,
    out: None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Running sum along an axis, of the flattened array if None.

    Args:
        reverse: run from the end.
        inclusive: whether an element counts in its own sum; if not, the first sum is 0.
        dtype: to sum in, by default the array's; for bool int32, of 2**31 and more int64, as in `sum`; bool if asked
            for: whether any is true.
        include_initial: whether 0 is put before the first sum (in `cumprod` 1), so that there is one more.
        out: None; NumPy's functions pass it.

    >>> import smelt
    >>> smelt.cumsum(smelt.array([1, 2, 3]))
    array([1, 3, 6], dtype=int32)
    """
    check_stream(stream)
    no_out("cumsum", out)
    x = _of_dtype("cumsum", a, dtype)
    if x.dtype is dtypes.bool_:
        along = x.shape[one_axis("cumsum", axis, x.ndim)] if x.ndim and axis is not None else x.size
        x = convert(x, counting(along))
    found = _scan("cumsum", x, axis, reverse, inclusive, 0 if include_initial else None)
    return found if dtype is None else convert(found, dtype_of("cumsum", dtype))


@remembered
def cumprod(
    a: ArrayLike,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: DType | None = None,
    include_initial: bool = False,
    out: None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Running product along an axis, of bools whether all are true; the arguments are those of `cumsum`.

    >>> import smelt
    >>> smelt.cumprod(smelt.array([1, 2, 3]), reverse=True)
    array([6, 6, 3], dtype=int32)
    """
    check_stream(stream)
    no_out("cumprod", out)
    x = _of_dtype("cumprod", a, dtype)
    name = "cummin" if x.dtype is dtypes.bool_ else "cumprod"  # the product of bools is the least of them
    return _scan(name, x, axis, reverse, inclusive, 1 if include_initial else None)


cumulative_sum, cumulative_prod = cumsum, cumprod


@remembered
def cummax(
    a: ArrayLike,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    stream: StreamOrDevice = None,
) -> array:
    """Running maximum along an axis; the arguments are those of `cumsum`.

    >>> import smelt
    >>> smelt.cummax(smelt.array([1, 3, 2]))
    array([1, 3, 3], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    return _scan("cummax", x, axis, reverse, inclusive)


@remembered
def cummin(
    a: ArrayLike,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    stream: StreamOrDevice = None,
) -> array:
    """Running minimum along an axis; the arguments are those of `cumsum`.

    >>> import smelt
    >>> smelt.cummin(smelt.array([3, 1, 2]))
    array([3, 1, 1], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    return _scan("cummin", x, axis, reverse, inclusive)


@remembered
def logcumsumexp(
    a: ArrayLike,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    stream: StreamOrDevice = None,
) -> array:
    """Logarithm of the running sum of exponentials, without overflow; the arguments are those of `cumsum`.

    Integers are converted to float32.

    >>> import smelt
    >>> smelt.logcumsumexp(smelt.array([0.0, 0.0]))
    array([0, 0.693147], dtype=float32)
    """
    check_stream(stream)
    x = as_array(a)
    return _scan("logcumsumexp", convert(x, dtypes.to_float(x.dtype)), axis, reverse, inclusive)


def _end(x: array, a: ArrayLike | None, axis: int) -> array | None:
    """What `diff` puts at an end of x."""
    if a is None:
        return None
    end = convert(as_array(a, x.dtype), x.dtype)
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    if not end.ndim:
        return filled(one, 0, x.dtype) if 0 in one else broadcast_to_shape(end, one)
    if end.ndim != x.ndim or any(d != m for i, (d, m) in enumerate(zip(x.shape, end.shape)) if i != axis):
        raise ShapeError(
            at_user_line(f"smelt.diff: {end.aval} does not fit before or behind a {x.aval} on axis {axis}")
        )
    return end


@remembered
def diff(
    a: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Differences of neighbours along an axis, taken `n` times; of bools, whether they differ.

    Args:
        prepend, append: put before and behind `a` first; a scalar is one element along the axis.

    >>> import smelt
    >>> smelt.diff(smelt.array([1, 4, 9]))
    array([3, 5], dtype=int32)
    """
    check_stream(stream)
    x = as_array(a)
    axis = one_axis("diff", axis, x.shape)
    n = integer("diff", "n", n, 0)
    if n and (prepend is not None or append is not None):
        parts = [_end(x, prepend, axis), x, _end(x, append, axis)]
        x = joined([part for part in parts if part is not None], axis)
    op = ops["not_equal"] if x.dtype is dtypes.bool_ else ops["sub"]
    for _ in range(min(n, x.shape[axis])):
        d = x.shape[axis]
        x = emit_elementwise(op, piece(x, axis, min(1, d), d), piece(x, axis, 0, max(d - 1, 0)))
    return wrap(x._ref)
