"""Reductions, cumulative ones, sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType

from ..writer import Tensor, Writer, ints
from .table import Call, rule


def least(dtype: DType) -> Any:
    """What maximum leaves every number as it is with."""
    if dtype is dtypes.bool_:
        return False
    if dtype.is_integer:
        return -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
    return float("-inf")


def greatest(dtype: DType) -> Any:
    if dtype is dtypes.bool_:
        return True
    if dtype.is_integer:
        return (1 << (dtype.bits - (dtype.kind == "i"))) - 1
    return float("inf")


#: Op of two elements for numbers and for bools, and the value that it starts with.
_REDUCTIONS: dict[str, tuple[str, str, Callable[[DType], Any]]] = {
    "reduce_sum": ("add", "or", lambda d: 0),
    "reduce_prod": ("multiply", "and", lambda d: 1),
    "reduce_max": ("maximum", "or", least),
    "reduce_min": ("minimum", "and", greatest),
    "reduce_all": ("and", "and", lambda d: True),
    "reduce_any": ("or", "or", lambda d: False),
    "cumsum": ("add", "or", lambda d: 0),
    "cumprod": ("multiply", "and", lambda d: 1),
    "cummax": ("maximum", "or", least),
    "cummin": ("minimum", "and", greatest),
}


def _wide(dtype: DType) -> DType:
    """What sums of half precision are made in."""
    return dtypes.float32 if dtype.is_float and dtype.size == 2 else dtype


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_all", "reduce_any")
def _reduce(call: Call) -> Tensor:
    w, x, axes = call.writer, call.x, call.attrs["axes"]
    number, truth, start = _REDUCTIONS[call.name]
    kind = _wide(x.dtype)
    if kind.is_complex and call.name in ("reduce_max", "reduce_min"):
        largest = call.name == "reduce_max"
        region = w.scalars(kind, 2, lambda a, b: [_extreme(w, a, b, largest)])
        first, attrs = w.scalar(_of_parts(start(kind.real)), kind), f"dimensions = {ints(axes)}"
        return w.op("stablehlo.reduce", [x, first], call.aval, attrs, [region]) if axes else x
    name = truth if kind is dtypes.bool_ else number
    found = w.reduce(w.convert(x, kind), start(kind), f"stablehlo.{name}", axes)
    return w.convert(found, call.aval.dtype)


def _of_parts(x: float) -> complex:
    return complex(x, x)


def _extreme(w: Writer, a: Tensor, b: Tensor, largest: bool) -> Tensor:
    """One of two complex numbers, ordered by real parts, then by imaginary ones; NaN stays."""
    return w.select(w.compare("NE", a, a) | w.invert(_further(w, b, a, largest)), a, b)


def _further(w: Writer, a: Tensor, b: Tensor, largest: bool) -> Tensor:
    """Whether `a` lies beyond `b`, or is NaN."""
    if not a.dtype.is_complex:
        return w.compare("GT" if largest else "LT", a, b) | w.compare("NE", a, a)
    (real, imag), (other, rest) = (
        [w.op(f"stablehlo.{part}", [v], Aval(v.shape, v.dtype.real)) for part in ("real", "imag")] for v in (a, b)
    )
    direction = "GT" if largest else "LT"
    tie = w.compare("EQ", real, other) & w.compare(direction, imag, rest)
    return w.compare(direction, real, other) | tie | w.compare("NE", a, a)


@rule("argmax", "argmin")
def _arg_reduce(call: Call) -> Tensor:
    """The extreme element and its place, folded together; NaN counts as extreme, the first of equal ones is taken."""
    w, axis, largest = call.writer, call.attrs["axis"], call.name == "argmax"
    x = w.convert(call.x, dtypes.uint8) if call.x.dtype is dtypes.bool_ else call.x
    kind, place = x.dtype, call.aval.dtype
    start = least(kind.real) if largest else greatest(kind.real)

    def body(a: Tensor, i: Tensor, b: Tensor, j: Tensor) -> Sequence[Tensor]:
        better = _further(w, a, b, largest)
        b_is_nan = w.compare("NE", b, b)
        a_is_nan = w.compare("NE", a, a)
        same = w.compare("EQ", a, b) | (a_is_nan & b_is_nan)
        keeps = w.select(same, w.compare("LT", i, j), better)
        return [w.select(keeps, a, b), w.select(keeps, i, j)]

    # Operands and arguments stand as values, then places.
    region = w.region(
        [Aval((), kind), Aval((), place), Aval((), kind), Aval((), place)], lambda a, i, b, j: body(a, i, b, j)
    )
    operands = [
        x, w.iota(x.shape, axis, place), w.scalar(_of_parts(start) if kind.is_complex else start, kind),
        w.scalar(greatest(place), place),
    ]  # fmt: skip
    shape = tuple(d for a, d in enumerate(x.shape) if a != axis)
    results = [Aval(shape, kind), Aval(shape, place)]
    return w.op_all("stablehlo.reduce", operands, results, f"dimensions = {ints((axis,))}", [region])[1]


def _window(
    w: Writer, x: Tensor, start: Any, axis: int, reverse: bool, inclusive: bool, body: Callable[..., Sequence[Tensor]]
) -> Tensor:
    """A fold of all elements up to each: a window as long as the axis, most of which is padding."""
    n, rank = x.shape[axis], len(x.shape)
    if not x.aval.size:
        return x
    low, high = (0, n - 1) if reverse else (n - 1, 0)
    if not inclusive:
        low, high = (low - 1, high + 1) if reverse else (low + 1, high - 1)
    size = [n if a == axis else 1 for a in range(rank)]
    padding = ", ".join(f"[{low}, {high}]" if a == axis else "[0, 0]" for a in range(rank))
    attrs = f"window_dimensions = {ints(size)}, padding = dense<[{padding}]> : tensor<{rank}x2xi64>"
    region = w.scalars(x.dtype, 2, body)
    return w.op("stablehlo.reduce_window", [x, w.scalar(start, x.dtype)], x.aval, attrs, [region])


@rule("cumsum", "cumprod", "cummax", "cummin")
def _cumulative(call: Call) -> Tensor:
    w, x, a = call.writer, call.x, call.attrs
    number, truth, start = _REDUCTIONS[call.name]
    kind = _wide(x.dtype)
    if kind.is_complex and call.name in ("cummax", "cummin"):
        largest, first = call.name == "cummax", _of_parts(start(kind.real))
        return _window(
            w, x, first, a["axis"], a["reverse"], a["inclusive"], lambda p, q: [_extreme(w, p, q, largest)]
        )  # fmt: skip
    name = f"stablehlo.{truth if kind is dtypes.bool_ else number}"
    x = w.convert(x, kind)
    found = _window(
        w, x, start(kind), a["axis"], a["reverse"], a["inclusive"], lambda p, q: [w.op(name, [p, q], p.aval)]
    )
    return w.convert(found, call.aval.dtype)


@rule("logcumsumexp")
def _logcumsumexp(call: Call) -> Tensor:
    w, a = call.writer, call.attrs
    kind = _wide(call.x.dtype)

    def of_complex(p: Tensor, q: Tensor) -> Sequence[Tensor]:
        later = _further(w, q, p, largest=True)
        high, low = w.select(later, q, p), w.select(later, p, q)
        real, least_real = (w.op("stablehlo.real", [v], Aval(v.shape, kind.real)) for v in (high, low))
        alone = w.compare("EQ", least_real, float("-inf")) | w.compare("EQ", real, float("inf"))
        rest = w.unary("stablehlo.exponential", w.select(alone, 0, low - high))
        return [w.select(alone, high, high + w.unary("stablehlo.log_plus_one", rest))]

    def body(p: Tensor, q: Tensor) -> Sequence[Tensor]:
        if kind.is_complex:
            return of_complex(p, q)
        top = w.binary("stablehlo.maximum", p, q)
        gap = p - q
        gap = w.select(w.compare("EQ", p, q), 0, gap)  # infinities that are the same
        small = w.unary("stablehlo.exponential", -w.unary("stablehlo.abs", gap))
        return [top + w.unary("stablehlo.log_plus_one", small)]

    x = w.convert(call.x, kind)
    found = _window(w, x, float("-inf"), a["axis"], a["reverse"], a["inclusive"], body)
    return w.convert(found, call.aval.dtype)


def before(w: Writer, a: Tensor, b: Tensor) -> Tensor:
    """The order of sorts: NaN last, zeros equal whatever their sign, complex numbers by parts."""
    if a.dtype.is_complex:
        real, imag = (
            [w.op(f"stablehlo.{part}", [v], Aval(v.shape, v.dtype.real)) for v in (a, b)] for part in ("real", "imag")
        )
        tie = w.invert(before(w, *real)) & w.invert(before(w, *real[::-1]))
        return before(w, *real) | (tie & before(w, *imag))
    if not a.dtype.is_float:
        return w.compare("LT", a, b)
    return w.compare("LT", a, b) | (w.compare("EQ", a, a) & w.compare("NE", b, b))


@rule("sort")
def _sort(call: Call) -> Tensor:
    w = call.writer
    region = w.scalars(call.x.dtype, 2, lambda a, b: [before(w, a, b)])
    attrs = f"dimension = {call.attrs['axis']} : i64, is_stable = true"
    return w.op("stablehlo.sort", [call.x], call.aval, attrs, [region])


@rule("argsort")
def _argsort(call: Call) -> Tensor:
    w, x, axis = call.writer, call.x, call.attrs["axis"]
    place = call.aval.dtype
    arguments = [Aval((), x.dtype)] * 2 + [Aval((), place)] * 2
    region = w.region(arguments, lambda a, b, i, j: [before(w, a, b)])
    attrs = f"dimension = {axis} : i64, is_stable = true"
    operands = [x, w.iota(x.shape, axis, place)]
    return w.op_all("stablehlo.sort", operands, [x.aval, call.aval], attrs, [region])[1]
