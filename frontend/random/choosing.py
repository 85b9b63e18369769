"""Elements of arrays, chosen at random."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smelt.ir import dtypes
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords

from ..functions.index_functions import take
from ..functions.logic import where
from ..functions.reductions import max as largest_of
from ..functions.sorting import argsort
from ..functions.transcendental import log
from ..functions.updating import setitem
from ..lazy.arguments import integer, is_integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.movement import one_axis, piece, to_shape
from ..lazy.streams import check_stream
from .discrete import permutation, randint
from .keys import checked_key
from .sampling import apply, check_range, exponential, known_values, parts_of_sum, shape_of, uniform_unit


@flags_checked
def choice(
    a: int | ArrayLike,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Elements of an array, or numbers below an int, chosen at random.

    Args:
        a: an array, of which parts along `axis` are chosen; an int n stands for 0, …, n - 1 (int32).
        shape: of what is chosen; it takes the place of the axis.
        replace: whether a part may be chosen more than once.
        p: with which probability, or in which proportion, each is chosen; all alike by default.
        key: None draws one from the global state.

    Raises:
        AttributeValueError: there is nothing to choose from, or not enough without `replace`. ShapeError: `p` does not
        fit.

    >>> import smelt
    >>> x = smelt.random.choice(smelt.array([10, 20, 30]), (3,), replace=False, key=smelt.random.key(0))
    >>> smelt.sum(x)
    array(60, dtype=int32)
    """
    check_stream(stream)
    found = shape_of("choice", shape)
    source = None
    if is_integer(a) and not isinstance(a, bool):
        n = integer("random.choice", "a", a, 0)
    else:
        source = as_array(a)
        axis = one_axis("random.choice", axis, source.shape)
        n = source.shape[axis]
    count = math.prod(found)
    if (not n and count) or (not replace and count > n):
        message = f"smelt.random.choice: {count} elements cannot be chosen from {n}"
        raise AttributeValueError(at_user_line(message))
    at = _places(n, count, found, bool(replace), p, checked_key("choice", key)) if count else None
    if at is None:
        at = to_shape(convert(as_array([]), dtypes.int32), found)
    return convert(at, dtypes.int32) if source is None else take(source, at, axis)


def _places(n: int, count: int, shape: tuple[int, ...], replace: bool, p: ArrayLike | None, key: array) -> array:
    """Which of n are chosen."""
    if p is None:
        if replace:
            return randint(0, n, shape, key=key)
        return to_shape(piece(permutation(n, key=key), 0, 0, count), shape)
    check_range("choice", "p", known_values(p), "at least 0")
    weights = as_array(p)
    if weights.shape != (n,):
        raise ShapeError(at_user_line(f"smelt.random.choice: p must have the shape ({n},); p {weights.aval}"))
    weights = convert(weights, weights.dtype if weights.dtype is dtypes.float64 else dtypes.float32)
    if replace:
        return parts_of_sum(apply("div", weights, largest_of(weights)), uniform_unit(key, shape, weights.dtype))
    # who waits least: waiting times whose rates are the weights
    waiting = exponential(key, (n,), weights.dtype) / where(weights > 0, weights, 1)
    order = argsort(where(weights > 0, log(waiting), float("inf")))
    return to_shape(piece(order, 0, 0, count), shape)


def shuffle(x: array, axis: int = 0, key: array | None = None, stream: StreamOrDevice = None) -> None:
    """Bring the parts of an array along an axis into a random order, in place; `permutation` gives a new array.

    Args:
        axis: whose parts change places. key: as of `uniform`.

    Raises:
        AttributeValueError: x is no array.

    >>> import smelt
    >>> x = smelt.array([1, 2, 3])
    >>> smelt.random.shuffle(x)
    >>> smelt.sort(x)
    array([1, 2, 3], dtype=int32)
    """
    check_stream(stream)
    if not isinstance(x, array):
        raise AttributeValueError(at_user_line("smelt.random.shuffle: x must be an array, which is changed in place"))
    setitem(x, ..., permutation(x, axis, key))


explain_keywords(globals(), "shuffle choice")
