"""Interpolation, differences and integrals of what is given at points, and points themselves, under NumPy's names."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.flags import flags_checked
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

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
    from_host,
)
from ..lazy.core import remembered
from ..lazy.host import check_depth, holds_arrays
from ..lazy.movement import Axes, counting, filled, joined, many_axes, one_axis, piece, to_shape
from ..lazy.operands import arrays_of, as_floating
from ..lazy.streams import check_stream
from .arithmetic import power, remainder
from .bins import require_real
from .complex_numbers import imag, real
from .index_functions import take, take_along_axis
from .indexing import host_array
from .joining import concatenate, unstack
from .logic import isnan, logical_and, where
from .ranges import along, between, ends_of, steps
from .reductions import sum as total
from .reductions import widened
from .sorting import argsort, cumsum, diff, searchsorted
from .transcendental import exp, log

__all__ = ["cumulative_trapezoid", "geomspace", "gradient", "interp", "lexsort", "logspace", "trapezoid"]


def _host_end(name: str, what: str, value: Any) -> Any:
    """An end, or ends, in NumPy's float64 or complex128."""
    if is_list(value):
        found = host_array(value)
        if found.dtype.kind not in "biufc":
            raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be of numbers, is {shown(value)}"))
        return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)
    if isinstance(value, (complex, np.complexfloating)):
        return complex(value)
    return float(number(name, what, value))


def _points(name: str, ends: dict[str, Any], num: int, endpoint: bool, dtype: DType | None, axis: int) -> array:
    """What NumPy's function of a name gives for ends that are known, in float32 or complex64 by default."""
    given = {what: _host_end(name, what, value) for what, value in ends.items()}
    by_parts = any(np.iscomplexobj(v) for v in given.values())
    target = dtype_of(name, dtype, dtypes.complex64 if by_parts else dtypes.float32)
    if by_parts and not target.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: complex numbers, not {target.name}"))
    count = integer(name, "num", num, 0)
    shape = (count, *broadcast_shapes(name, *(np.shape(v) for v in given.values())))
    if math.prod(shape) > 1 << 28:
        raise AttributeValueError(at_user_line(f"smelt.{name}: 2**28 numbers may be made at most, not {shape}"))
    place = one_axis(name, axis, shape)
    if name == "geomspace":
        first, last = np.broadcast_arrays(given["start"], given["stop"])
        if np.any(first == 0) or np.any(last == 0) or (not by_parts and np.any((first < 0) != (last < 0))):
            asked = " and ".join(f"{what} {shown(value)}" for what, value in ends.items())
            raise AttributeValueError(at_user_line(f"smelt.geomspace: {asked} must be of one sign, and not 0"))
    with np.errstate(all="ignore"):
        return from_host(np.asarray(getattr(np, name)(**given, num=count, endpoint=endpoint, axis=place)), target)


def _is_lazy(*ends: Any) -> bool:
    for end in ends:
        if isinstance(end, (list, tuple)):
            check_depth(end)
    return any(isinstance(v, array) or (isinstance(v, (list, tuple)) and holds_arrays(v)) for v in ends)


@flags_checked
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DType | None = None,
    axis: int = 0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Powers of `base` whose exponents are `num` numbers at equal distances; see `smelt.linspace`. float32 by default.

    Args:
        start, stop, base: numbers, or arrays, which broadcast. endpoint: whether the last exponent is `stop`.
        dtype: complex64 by default where one of them is complex; of arrays that of all, or float32.
        axis: of the result, along which the numbers lie where one of them is an array.

    >>> import smelt
    >>> smelt.logspace(0, 2, 3)
    array([1, 10, 100], dtype=float32)
    """
    check_stream(stream)
    if not _is_lazy(start, stop, base):
        return _points("logspace", {"start": start, "stop": stop, "base": base}, num, endpoint, dtype, axis)
    ends, target = ends_of("logspace", dtype, start, stop, base)
    shape = broadcast_shapes("logspace", *(x.shape for x in ends))
    first, last, root = (broadcast_to_shape(x, shape) for x in ends)
    exponents = between("logspace", [first, last], integer("logspace", "num", num, 0), endpoint, target)
    found = power(root, exponents)
    return convert(along(found, one_axis("logspace", axis, found.shape)), target)


@flags_checked
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DType | None = None,
    axis: int = 0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before. float32 by default.

    Args:
        start, stop: numbers, or arrays, which broadcast; complex ones lie on a spiral.
        endpoint: whether `stop` is the last one.
        dtype: complex64 by default where one of them is complex; of arrays that of both, or float32.
        axis: of the result, along which the numbers lie where one of them is an array.

    Returns:
        NaN where elements of arrays that are computed differ in sign.

    Raises:
        AttributeValueError: one of them is 0, or their signs differ.

    >>> import smelt
    >>> smelt.geomspace(1, 8, 4)
    array([1, 2, 4, 8], dtype=float32)
    """
    check_stream(stream)
    if not _is_lazy(start, stop):
        return _points("geomspace", {"start": start, "stop": stop}, num, endpoint, dtype, axis)
    ends, target = ends_of("geomspace", dtype, start, stop)
    t, first, last = steps("geomspace", ends, integer("geomspace", "num", num, 0), endpoint, target)
    found = first * exp(t * log(last / first))
    if endpoint and t.shape[0] > 1:
        found = where(t == 1, last, found)
    return convert(along(found, one_axis("geomspace", axis, found.shape)), target)


@remembered
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The values at x of the line through the points (xp, fp).

    Args:
        x: any shape. xp: a vector, ascending. fp: a vector of its size.
        left, right: scalars for x before the first and behind the last point; by default the values at these.
        period: of x and xp, which then need not be in order; no left or right then.

    Returns:
        In the shape of x and the common dtype; integers count as float32. Derivatives by x, xp and fp.

    Raises:
        ShapeError: xp and fp are no vectors of one size, or empty. AttributeValueError: a period of 0.

    >>> import smelt
    >>> smelt.interp(smelt.array([0.5, 3.0]), smelt.array([0.0, 1.0, 2.0]), smelt.array([0.0, 10.0, 20.0]))
    array([5, 20], dtype=float32)
    """
    check_stream(stream)
    at, points, values = map(as_floating, arrays_of(x, xp, fp))
    if values.dtype.is_complex:  # numbers and lists are in the dtype of its parts
        at, points = map(as_floating, arrays_of(x, xp, filled((), 0, values.dtype.real))[:2])
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        message = f"smelt.interp: xp and fp must be vectors of one size, are {points.aval} and {values.aval}"
        raise ShapeError(at_user_line(message))
    places = dtypes.promote(at.dtype, points.dtype)
    dtype = dtypes.promote(places, values.dtype)
    require_real("interp", at, points)
    at, points = (widened(convert(a, dtype.real if dtype.is_complex else dtype)) for a in (at, points))
    values = widened(convert(values, dtype))
    if period is not None:
        span = abs(number("interp", "period", period))
        if not span or not math.isfinite(span):
            message = f"smelt.interp: period must be finite and not 0, is {shown(period)}"
            raise AttributeValueError(at_user_line(message))
        at, points = remainder(at, span), remainder(points, span)
        order = argsort(points)
        points, values = take(points, order), take(values, order)
        points = concatenate([points[-1:] - span, points, points[:1] + span])
        values = concatenate([values[-1:], values, values[:1]])
        left = right = None
    size = points.size
    low = values[0] if left is None else _scalar("left", left, dtype)
    high = values[-1] if right is None else _scalar("right", right, dtype)
    if size == 1:
        inside = where(at == at, values[0], at)
    elif dtype.is_complex:  # by parts: a product of an infinity and a real number as a complex one is NaN
        parts = (_on_lines(at, points, part(values)) for part in (real, imag))
        inside = emit_elementwise(ops["complex"], *parts)
    else:
        inside = _on_lines(at, points, values)
    return convert(where(at < points[0], low, where(at > points[-1], high, inside)), dtype)


def _on_lines(at: array, points: array, values: array) -> array:
    """On the lines between neighbours of two points or more, at places between them."""
    size = points.size
    i = convert(searchsorted(points, at, "right"), counting(points.size))
    i = where(i < 1, 1, where(i > size - 1, size - 1, i))
    x0, x1, y0, y1 = take(points, i - 1), take(points, i), take(values, i - 1), take(values, i)
    width = x1 - x0
    flat = width == 0
    inside = where(flat, y1, y0 + (at - x0) / where(flat, 1, width) * (y1 - y0))
    inside = where(at == points[-1], values[-1], inside)
    # Beside infinite points the line from the other point may have a value.
    slope = (y1 - y0) / where(flat, 1, width)
    other = where(y0 == y1, y0, slope * (at - x1) + y1)
    other = where(at == x0, y0, where(isnan(other), slope * (at - x0) + y0, other))
    return where(logical_and(at == at, isnan(inside)), other, inside)


def _scalar(what: str, a: ArrayLike, dtype: DType) -> array:
    found = convert(as_array(a, dtype), dtype)
    if found.ndim:
        raise ShapeError(at_user_line(f"smelt.interp: {what} must be a scalar, is {found.aval}"))
    return found


@remembered
def lexsort(keys: Sequence[ArrayLike], /, axis: int = -1, *, stream: StreamOrDevice = None) -> array:
    """Indices (uint32) that sort by several keys: by the last one, where that is equal by the one before, and so on.

    Args:
        keys: arrays of one shape, or one array with the keys along its first axis.
        axis: along which each is sorted.

    Raises:
        ShapeError: no keys, or keys of different shapes.

    >>> import smelt
    >>> smelt.lexsort([smelt.array([2, 1, 3]), smelt.array([1, 1, 0])])
    array([2, 1, 0], dtype=uint32)
    """
    check_stream(stream)
    several: Any = keys
    if not isinstance(several, (list, tuple)):
        several = as_array(several)
        several = unstack(several) if several.ndim else ()
    found = [as_array(k) for k in several]
    if not found or any(k.shape != found[0].shape for k in found):
        shapes = ", ".join(str(k.shape) for k in found) or "none"
        raise ShapeError(at_user_line(f"smelt.lexsort: needs keys of one shape, got {shapes}"))
    if not found[0].ndim:
        return convert(as_array(0), dtypes.uint32)
    along = one_axis("lexsort", axis, found[0].shape)
    order = argsort(found[0], along)
    for key in found[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, along), along), along)
    return order


@remembered
def trapezoid(
    y: ArrayLike,
    /,
    x: ArrayLike | None = None,
    dx: float = 1.0,
    axis: int = -1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """The integral of y along an axis by the trapezoidal rule. Integers give float32.

    Args:
        x: the points, a vector or of the shape of y; by default they are `dx` apart.

    >>> import smelt
    >>> smelt.trapezoid(smelt.array([1.0, 2.0, 3.0]))
    array(4, dtype=float32)
    """
    check_stream(stream)
    areas, along, dtype = _areas("trapezoid", y, x, dx, axis)
    return convert(total(areas, along), dtype)


@remembered
def cumulative_trapezoid(
    y: ArrayLike,
    /,
    x: ArrayLike | None = None,
    dx: float = 1.0,
    axis: int = -1,
    *,
    initial: float | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The integrals of y from its first point up to each other one, by the trapezoidal rule. Integers give float32.

    Args:
        x: the points, a vector or of the shape of y; by default they are `dx` apart.
        initial: put before the results, which else are one less than the points.
        axis: along which the points lie.

    >>> import smelt
    >>> smelt.cumulative_trapezoid(smelt.array([1.0, 2.0, 3.0]), initial=0)
    array([0, 1.5, 4], dtype=float32)
    """
    check_stream(stream)
    areas, along, dtype = _areas("cumulative_trapezoid", y, x, dx, axis)
    found = convert(cumsum(areas, along), dtype)
    if initial is None:
        return found
    shape = tuple(1 if i == along else d for i, d in enumerate(areas.shape))
    first = filled(shape, number("cumulative_trapezoid", "initial", initial), dtype)
    return joined([first, found], along)


def _areas(name: str, y: ArrayLike, x: ArrayLike | None, dx: float, axis: int) -> tuple[array, int, DType]:
    """The areas between neighbours along an axis, of half precision in float32; that axis, and the result's dtype."""
    operands = [as_floating(v) for v in arrays_of(y, *([] if x is None else [x]))]
    dtype = functools.reduce(dtypes.promote, [v.dtype for v in operands])
    values, *given = (widened(v) for v in operands)
    along = one_axis(name, axis, values.shape)
    d = values.shape[along]
    pairs = piece(values, along, min(1, d), d) + piece(values, along, 0, max(d - 1, 0))
    if not given:
        return pairs * (number(name, "dx", dx) / 2), along, dtype
    points = given[0]
    if points.ndim == 1:
        points = to_shape(points, (*[1] * along, points.size, *[1] * (values.ndim - along - 1)))
    if points.ndim != values.ndim or points.shape[along] != d:
        message = f"smelt.{name}: x {points.aval} does not fit to y {values.aval} on axis {axis}"
        raise ShapeError(at_user_line(message))
    return pairs * diff(points, axis=along) * 0.5, along, dtype


@remembered
def gradient(
    f: ArrayLike,
    /,
    *varargs: ArrayLike,
    axis: Axes | None = None,
    edge_order: int = 1,
    stream: StreamOrDevice = None,
) -> array | list[array]:
    """The differences of f by its places: central ones inside, of order `edge_order` at the edges.

    Integers give float32.

    Args:
        varargs: the distance of neighbours, or the places (a vector); one for all axes, or one for each.
        axis: one or several; by default all.
        edge_order: 1 or 2.

    Returns:
        An array of the shape of f; a list of one for each axis where there are several.

    Raises:
        ShapeError: too few elements, or places that do not fit. AttributeValueError: another order.
        ArgumentTypeError: another number of distances.

    >>> import smelt
    >>> smelt.gradient(smelt.array([1.0, 2.0, 4.0, 7.0]))
    array([1, 1.5, 2.5, 3], dtype=float32)
    """
    check_stream(stream)
    x = as_floating(f)
    along = many_axes("gradient", axis, x.shape)
    order = integer("gradient", "edge_order", edge_order)
    if order not in (1, 2):
        raise AttributeValueError(at_user_line(f"smelt.gradient: edge_order must be 1 or 2, is {order}"))
    if len(varargs) not in (0, 1, len(along)):
        raise ArgumentTypeError(at_user_line(f"smelt.gradient: {len(varargs)} distances for {len(along)} axes"))
    if len(varargs) == 1 < len(along) and as_array(varargs[0]).ndim:
        raise ArgumentTypeError(at_user_line(f"smelt.gradient: places of one axis for {len(along)} axes"))
    spacing = list(varargs) if len(varargs) == len(along) else [varargs[0] if varargs else 1.0] * len(along)
    found = [_gradient(x, a, h, order) for a, h in zip(along, spacing)]
    return found[0] if len(found) == 1 else found


def _gradient(x: array, axis: int, h: ArrayLike, order: int) -> array:
    n = x.shape[axis]
    if n < order + 1:
        message = f"smelt.gradient: needs {order + 1} elements on axis {axis} at least; f {x.aval}"
        raise ShapeError(at_user_line(message))
    x, step = arrays_of(x, h)
    dtype = dtypes.promote(x.dtype, step.dtype)
    x, step = convert(x, dtype), convert(step, dtype)
    if step.ndim > 1 or (step.ndim and step.size != n):
        raise ShapeError(at_user_line(f"smelt.gradient: places {step.aval} do not fit to axis {axis} of {x.aval}"))

    def one(i: int) -> array:
        return piece(x, axis, i % n, i % n + 1)

    if step.ndim:
        widths = to_shape(step[1:] - step[:-1], (*[1] * axis, n - 1, *[1] * (x.ndim - axis - 1)))
        before, behind = piece(widths, axis, 0, n - 2), piece(widths, axis, 1, n - 1)
        first, second, last, former = (piece(widths, axis, i % (n - 1), i % (n - 1) + 1) for i in (0, 1, -1, -2))
    else:
        before = behind = first = second = last = former = step
    middle = []
    if n > 2:
        low, here, high = (piece(x, axis, i, n - 2 + i) for i in (0, 1, 2))
        middle.append(
            low * (-behind / (before * (before + behind)))
            + here * ((behind - before) / (before * behind))
            + high * (before / (behind * (before + behind)))
            if step.ndim
            else (high - low) / (2 * step)
        )
    if order == 1:
        start, end = (one(1) - one(0)) / first, (one(-1) - one(-2)) / last
    else:
        start = _edge(one(0), one(1), one(2), first, second)
        end = -_edge(one(-1), one(-2), one(-3), last, former)
    return concatenate([start, *middle, end], axis)


def _edge(f0: array, f1: array, f2: array, near: array, far: array) -> array:
    """The one-sided difference of second order at f0; f1 is `near` away, f2 `far` further."""
    both = near + far
    return f0 * (-(near + both) / (near * both)) + f1 * (both / (near * far)) - f2 * (near / (far * both))


explain_keywords(globals())
