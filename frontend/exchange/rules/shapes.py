"""The same elements elsewhere: reshaped, broadcast, sliced, padded, joined."""

from __future__ import annotations

from smelt.ir.op import registry as ops

from ...functions.joining import concatenate
from ...lazy.arrays import array, emit
from ..reading import Call, rule
from ..translating import Refused
from .elementwise import apply, full_like


def reshaped(x: array, shape: tuple[int, ...]) -> array:
    return x if x.shape == shape else emit(ops["reshape"], (x,), {"shape": shape})


def permuted(x: array, order: tuple[int, ...]) -> array:
    return x if order == tuple(range(x.ndim)) else emit(ops["transpose"], (x,), {"permutation": order})


def placed(x: array, shape: tuple[int, ...], axes: tuple[int, ...]) -> array:
    """x broadcast to a shape, its axis i at axes[i]."""
    order = sorted(range(x.ndim), key=lambda i: axes[i])
    x = permuted(x, tuple(order))
    taken = sorted(axes)
    kept = [1] * len(shape)
    for axis, extent in zip(taken, x.shape):
        kept[axis] = extent
    x = reshaped(x, tuple(kept))
    return x if x.shape == shape else emit(ops["broadcast"], (x,), {"shape": shape})


@rule("stablehlo.reshape")
def _reshape(call: Call) -> array:
    return reshaped(call.x, call.aval.shape)


@rule("stablehlo.transpose")
def _transpose(call: Call) -> array:
    return permuted(call.x, call.ints("permutation"))


@rule("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(call: Call) -> array:
    return placed(call.x, call.aval.shape, call.ints("broadcast_dimensions"))


@rule("stablehlo.broadcast")
def _broadcast(call: Call) -> array:
    return emit(ops["broadcast"], (call.x,), {"shape": call.aval.shape})


@rule("stablehlo.iota")
def _iota(call: Call) -> array:
    aval = call.aval
    if aval.dtype.is_complex:
        part = emit(
            ops["iota"], (), {"shape": aval.shape, "axis": call.int("iota_dimension"), "dtype": aval.dtype.real}
        )
        return apply("complex", part, full_like(part, 0))
    return emit(ops["iota"], (), {"shape": aval.shape, "axis": call.int("iota_dimension"), "dtype": aval.dtype})


@rule("stablehlo.slice")
def _slice(call: Call) -> array:
    start, stop, step = call.ints("start_indices"), call.ints("limit_indices"), call.ints("strides")
    return emit(ops["slice"], (call.x,), {"start": start, "stop": stop, "stride": step})


@rule("stablehlo.reverse")
def _reverse(call: Call) -> array:
    axes = tuple(sorted(call.ints("dimensions")))
    return emit(ops["reverse"], (call.x,), {"axes": axes}) if axes else call.x


@rule("stablehlo.pad")
def _pad(call: Call) -> array:
    low, high = call.ints("edge_padding_low"), call.ints("edge_padding_high")
    return padded(call.x, call.operands[1], low, high, call.ints("interior_padding"))


def padded(x: array, value: array, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> array:
    """Padding as StableHLO has it: negative amounts cut off, after elements between others were put in."""
    if not any((*low, *high, *interior)):
        return x
    attrs = {"low": tuple(max(n, 0) for n in low), "high": tuple(max(n, 0) for n in high), "interior": interior}
    x = emit(ops["pad"], (x, value), attrs)
    if all(n >= 0 for n in (*low, *high)):
        return x
    start = tuple(max(-n, 0) for n in low)
    stop = tuple(d - max(-n, 0) for n, d in zip(high, x.shape))
    return emit(ops["slice"], (x,), {"start": start, "stop": stop, "stride": (1,) * x.ndim})


@rule("stablehlo.concatenate")
def _concatenate(call: Call) -> array:
    return joined(call.operands, call.int("dimension"))


def joined(xs: list[array], axis: int) -> array:
    return xs[0] if len(xs) == 1 else concatenate(xs, axis)


@rule("stablehlo.optimization_barrier", "stablehlo.tuple")
def _barrier(call: Call) -> list[array]:
    if call.name.endswith("tuple"):
        raise Refused("is not translated: return several results instead of a tuple")
    return [emit(ops["barrier"], (x,)) for x in call.operands]


@rule("stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_reshape", "stablehlo.dynamic_iota")
def _dynamic(call: Call) -> array:
    """Those of a static result, whose shape operand says nothing new."""
    aval = call.aval
    if call.name.endswith("reshape"):
        return reshaped(call.x, aval.shape)
    if call.name.endswith("iota"):
        return emit(ops["iota"], (), {"shape": aval.shape, "axis": call.int("iota_dimension"), "dtype": aval.dtype})
    return placed(call.x, aval.shape, call.ints("broadcast_dimensions"))


@rule("stablehlo.get_dimension_size")
def _dimension_size(call: Call) -> array:
    size = call.x.shape[call.int("dimension")]
    return emit(ops["constant"], (), {"value": size, "dtype": call.aval.dtype})
