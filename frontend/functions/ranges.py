"""Numbers at equal distances."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    at_user_line,
    shown,
)
from smelt.ir.op import registry as ops
from smelt.ir.ops.constants import constant_array

from ..lazy.arguments import dtype_of, integer, is_list, number
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit_elementwise,
)
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, filled, iota, one_axis, permuted
from ..lazy.operands import arrays_of
from ..lazy.streams import check_stream
from .creation import full
from .logic import where
from .rounding import floor

__all__ = ["arange", "linspace"]


def _lines(count: int, start: float, step: float, dtype: DType) -> array:
    """start, start + step, …: `count` numbers."""
    shape, kind = checked_shape("arange", (count,)), dtypes.float32 if dtype.is_float and dtype.size == 2 else dtype
    found = iota(shape, 0, kind)
    if dtype.is_integer:  # counts modulo its range, as sums of its elements do
        fits = [isinstance(v, int) and dtype.holds(v) for v in (start, step)]
        start, step = (v if fit else int(constant_array(v, dtype)) for v, fit in zip((start, step), fits))
    if step != 1:
        found = emit_elementwise(ops["mul"], found, filled(shape, step, kind))
    if start != 0 or (step < 0 and dtype.is_float):  # 0 · step is -0 then, and -0 + 0 is 0
        found = emit_elementwise(ops["add"], found, filled(shape, start, kind))
    return convert(found, dtype)


def _stop_given(function: Callable[..., array]) -> Callable[..., array]:
    """`function`, to which a start by name is a start: a number without a name may be the stop."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> array:
        if "start" in kwargs and kwargs.get("stop") is None:
            raise ArgumentTypeError(at_user_line("smelt.arange: start needs a stop"))
        return function(*args, **kwargs)

    return checked


@_stop_given
@remembered
def arange(
    start: int | float | None = None,
    stop: int | float | None = None,
    step: int | float | None = None,
    dtype: DType | None = None,
    *,
    stream: StreamOrDevice = None,
    device: StreamOrDevice = None,
) -> array:
    """Numbers from `start` (0 if only one number is given) to before `stop` in steps.

    Args:
        dtype: by default int32 if all numbers are integers (int64 where that is too narrow), else float32. In a
            narrower one that is given integers wrap around.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        AttributeValueError: a step of zero or NaN, an end that is not finite, integers beyond int64 without `dtype`.
        ArgumentTypeError: no number is given, or `start=` alone. DTypeError: bools.

    >>> import smelt
    >>> smelt.arange(3)
    array([0, 1, 2], dtype=int32)
    >>> smelt.arange(1, 2, 0.5)
    array([1, 1.5], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    first, last, by = (0, start, step) if stop is None else (0 if start is None else start, stop, step)
    first, last, by = (
        number("arange", what, v) for what, v in (("start", first), ("stop", last), ("step", 1 if by is None else by))
    )
    whole = [v for v in (first, last, by) if isinstance(v, int)]
    integers = len(whole) == 3
    target = dtype_of("arange", dtype, _integer_dtype(*whole) if integers else dtypes.float32)
    if dtype is None and integers and not all(dtypes.int64.holds(v) for v in _ends(*whole)):
        message = f"smelt.arange: start {shown(first)}, stop {shown(last)}, step {shown(by)} do not fit int64"
        raise AttributeValueError(at_user_line(f"{message}; give a dtype, smelt.uint64 or smelt.float64"))
    if target is dtypes.bool_:
        raise DTypeError(at_user_line("smelt.arange: bool has no range; use an integer dtype"))
    if not all(isinstance(v, int) or math.isfinite(v) for v in (first, last)) or by != by:
        raise AttributeValueError(at_user_line(f"smelt.arange: start {first}, stop {last}, step {by} must be finite"))
    if by == 0:
        raise AttributeValueError(at_user_line("smelt.arange: step must not be zero"))
    if isinstance(by, float) and abs(by) > max(abs(last - first), 1):  # past the other end at once
        by = math.copysign(max(abs(last - first), 1), by)
    try:
        count: Any = max(-(-(last - first) // by) if integers else math.ceil((last - first) / by), 0)
    except (OverflowError, ValueError):  # an infinite quotient
        message = f"smelt.arange: from {shown(first)} to {shown(last)} are too many steps of {shown(by)}"
        raise AttributeValueError(at_user_line(message)) from None
    if target.is_integer and not integers:
        first, by = int(first), int(first + by) - int(first)
    return _lines(count, first, by, target)


def _integer_dtype(first: int, last: int, step: int) -> DType:
    """The narrower of int32 and int64 that holds the first and last number of a range."""
    return dtypes.int32 if all(dtypes.int32.holds(v) for v in _ends(first, last, step)) else dtypes.int64


def _ends(first: int, last: int, step: int) -> tuple[int, int, int]:
    return first, last - 1 if step > 0 else last + 1, step


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int | None = 50, endpoint: bool = True, dtype: DType | None = None,
    stream: StreamOrDevice = None, *, retstep: Literal[False] = False, axis: int = 0, device: StreamOrDevice = None,
) -> array: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int | None = 50, endpoint: bool = True, dtype: DType | None = None,
    stream: StreamOrDevice = None, *, retstep: Literal[True], axis: int = 0, device: StreamOrDevice = None,
) -> tuple[array, array]: ...  # fmt: skip
@remembered
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int | None = 50,
    endpoint: bool = True,
    dtype: DType | None = None,
    stream: StreamOrDevice = None,
    *,
    retstep: bool = False,
    axis: int = 0,
    device: StreamOrDevice = None,
) -> array | tuple[array, array]:
    """`num` numbers at equal distances from `start` to `stop`, which is the last one if `endpoint`.

    Args:
        start, stop: numbers, or arrays, which broadcast and of which each element has its row; they may be complex.
        dtype: float32 by default, complex64 where one of them is complex; of arrays that of both, or float32. One of
            integers takes the floor, as in NumPy.
        retstep: whether to return the distance too, as ``(numbers, distance)``: in floats, NaN for one number.
        axis: of the result, along which the numbers lie where `start` or `stop` is an array.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        DTypeError: complex numbers in another dtype.

    >>> import smelt
    >>> smelt.linspace(0, 1, 5)
    array([0, 0.25, 0.5, 0.75, 1], dtype=float32)
    >>> smelt.linspace(smelt.array([0.0, 1.0]), 2, 3, axis=1)
    array([[0, 1, 2],
           [1, 1.5, 2]], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    count = 50 if num is None else integer("linspace", "num", num, 0)
    parts = count - 1 if endpoint else count
    found = _linspace(start, stop, count, endpoint, dtype, axis)
    return (found, _distance(start, stop, parts, found.dtype)) if retstep else found


def _distance(start: ArrayLike, stop: ArrayLike, parts: int, dtype: DType) -> array:
    """Of each of so many parts, in the dtype of the numbers or in floats."""
    kind = dtypes.to_float(dtype)
    ends = arrays_of(*(v if is_several(v) else as_array(_end("start", v), kind) for v in (start, stop)))
    kind = functools.reduce(dtypes.promote, [end.dtype for end in ends], kind)
    first, last = (convert(end, kind) for end in ends)
    return (last - first) / parts if parts > 0 else (last - first) * math.nan


def _linspace(
    start: ArrayLike, stop: ArrayLike, count: int, endpoint: bool, dtype: DType | None, axis: int
) -> array:
    if is_several(start) or is_several(stop):
        ends, target = ends_of("linspace", dtype, start, stop)
        _check_parts(target, any(end.dtype.is_complex for end in ends), start, stop)
        found = (_integers if target.is_integer else between)("linspace", ends, count, endpoint, target)
        return convert(along(found, one_axis("linspace", axis, found.shape)), target)
    first, last = _end("start", start), _end("stop", stop)
    by_parts = isinstance(first, complex) or isinstance(last, complex)
    target = dtype_of("linspace", dtype, dtypes.complex64 if by_parts else dtypes.float32)
    _check_parts(target, by_parts, start, stop)
    work = target if target is dtypes.float64 or target.is_complex else dtypes.float32
    shape, parts = (count,), count - 1 if endpoint else count
    one_axis("linspace", axis, shape)
    if parts < 1:
        return full(shape, math.floor(first) if target.is_integer and isinstance(first, float) else first, target)
    whole = [v for v in map(_whole, (first, last)) if v is not None and target.is_integer and target.holds(v)]
    if len(whole) == 2:
        kind = dtypes.uint64 if target.kind == "u" else dtypes.int64
        return convert(_whole_parts(iota(shape, 0, kind), parts, *(filled(shape, v, kind) for v in whole)), target)
    if target.is_integer and not isinstance(first, complex) and not isinstance(last, complex):
        ends = [filled(shape, v, work) for v in (first, last)]
        return convert(_floored(iota(shape, 0, work), parts, *ends), target)
    t = emit_elementwise(ops["div"], iota(shape, 0, work.real), filled(shape, parts, work.real))
    if not isinstance(first, complex) and not isinstance(last, complex):
        return convert(_between(t, first, last), target)
    sides = [_between(t, *(getattr(complex(end), side) for end in (first, last))) for side in ("real", "imag")]
    return convert(emit_elementwise(ops["complex"], *sides), target)


def _check_parts(target: DType, by_parts: bool, start: ArrayLike, stop: ArrayLike) -> None:
    if by_parts and not target.is_complex:
        message = f"smelt.linspace: from {shown(start)} to {shown(stop)} are complex numbers, not {target}"
        raise DTypeError(at_user_line(message))


def ends_of(name: str, dtype: DType | None, *given: ArrayLike) -> tuple[list[array], DType]:
    """Ends as arrays, and the dtype of a range between them, which is `dtype` if that is given."""
    wanted = None if dtype is None else dtype_of(name, dtype)
    # A number beside integers would be of float32.
    exact = wanted is not None and wanted.is_inexact and wanted.real is dtypes.float64
    numbers = (int, float, complex) if wanted is dtypes.complex128 else (int, float)
    alike = [is_several(v) or (exact and isinstance(v, (*numbers, np.ndarray))) for v in given]
    made = [as_array(v, wanted) if wanted and as_wanted else v for v, as_wanted in zip(given, alike)]
    ends = arrays_of(*_own_integers(made))
    return ends, wanted or dtypes.to_float(functools.reduce(dtypes.promote, [end.dtype for end in ends]))


def _own_integers(ends: Sequence[ArrayLike]) -> Sequence[ArrayLike]:
    """Integers that are out of bounds for the integers that they meet have a dtype of their own: a range has floats."""
    met = [end.dtype for end in ends if isinstance(end, array)]
    if not met or not all(dtype.is_integer for dtype in met):
        return ends
    bounds = np.iinfo(functools.reduce(dtypes.promote, met).numpy)
    return [as_array(end) if type(end) is int and not bounds.min <= end <= bounds.max else end for end in ends]


def is_several(end: object) -> bool:
    """Whether an end of a range is an array, or a list of ends, and no number."""
    return isinstance(end, array) or is_list(end)


def _end(what: str, value: Any) -> int | float | complex:
    """A number of Python or NumPy as one of Python."""
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1 and "complex" in str(value.dtype):
        value = complex(value.item())
    return value if isinstance(value, complex) else number("linspace", what, value)


def _whole(value: int | float | complex) -> int | None:
    return int(value) if type(value) is int or (isinstance(value, float) and value.is_integer()) else None


def _whole_parts(i: array, parts: int, first: array, last: array) -> array:
    """The floor of what lies at `i` of `parts` equal distances between integers of 64 bits, exactly."""
    kind = first.dtype
    first, last, i = (convert(x, dtypes.uint64) for x in (first, last, i))  # modulo 2**64, which each distance fits
    down = convert(last, kind) < convert(first, kind)
    size, of = where(down, first - last, last - first), filled(i.shape, parts, dtypes.uint64)
    step = size // of
    more = i * (size - step * of)
    whole = i * step + more // of
    return convert(where(down, first - whole - convert(more % of > 0, dtypes.uint64), first + whole), kind)


def _floored(i: array, parts: int, first: array, last: array) -> array:
    """The same of floats: weights instead of steps would come out below integers."""
    of = filled(i.shape, parts, i.dtype)
    return floor(where(i == of, last, i * (last - first) / of + first))


def _between(t: array, first: int | float, last: int | float) -> array:
    """From `first` to `last` as t goes from 0 to 1. Weights instead of steps: both ends come out exactly."""
    return _weighted(t, filled(t.shape, first, t.dtype), filled(t.shape, last, t.dtype))


def _weighted(t: array, first: array, last: array) -> array:
    rest = emit_elementwise(ops["sub"], filled(t.shape, 1, t.dtype), t)
    low, high = emit_elementwise(ops["mul"], rest, first), emit_elementwise(ops["mul"], t, last)
    return emit_elementwise(ops["add"], low, high)


def steps(name: str, ends: Sequence[array], count: int, endpoint: bool, target: DType) -> tuple[array, array, array]:
    """Numbers from 0 to 1 along a new first axis of arrays of ends, and these, of its shape; in one dtype that has the
    digits of all of them."""
    first, last = ends
    work = dtypes.to_float(dtypes.promote(first.dtype, last.dtype))
    work = dtypes.promote(work, target) if target.is_inexact else work
    work = dtypes.float32 if work.size == 2 else work
    shape = checked_shape(name, (count, *broadcast_shapes(name, first.shape, last.shape)))
    parts = max(count - 1 if endpoint else count, 1)
    t = emit_elementwise(ops["div"], iota(shape, 0, work.real), filled(shape, parts, work.real))
    first, last = (broadcast_to_shape(convert(x, work), shape) for x in ends)
    return convert(t, work), first, last


def between(name: str, ends: Sequence[array], count: int, endpoint: bool, target: DType) -> array:
    """`linspace` of arrays along a new first axis, in a dtype for computing what is wanted in `target`."""
    t, low, high = steps(name, ends, count, endpoint, target)
    return low if count == 1 else _weighted(t, low, high)


def _integers(name: str, ends: Sequence[array], count: int, endpoint: bool, target: DType) -> array:
    """As `between`, for a target of integers."""
    kind = functools.reduce(dtypes.promote, [end.dtype for end in ends])
    if kind.is_integer or kind is dtypes.bool_:
        kind = dtypes.uint64 if kind.kind == "u" else dtypes.int64
    else:
        kind = dtypes.promote(dtypes.to_float(kind), dtypes.float32)
    shape = checked_shape(name, (count, *broadcast_shapes(name, *(end.shape for end in ends))))
    low, high = (broadcast_to_shape(convert(x, kind), shape) for x in ends)
    if count == 1:
        return low if kind.is_integer else floor(low)
    parts = max(count - 1 if endpoint else count, 1)
    return (_whole_parts if kind.is_integer else _floored)(iota(shape, 0, kind), parts, low, high)


def along(x: array, axis: int) -> array:
    """x with its first axis in the place `axis`."""
    order = list(range(1, x.ndim))
    return permuted(x, (*order[:axis], 0, *order[axis:])) if axis else x
