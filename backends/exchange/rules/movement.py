"""Constants, shapes, slices, random bits."""

from __future__ import annotations

import math

import numpy as np

from smelt.ir import dtypes
from smelt.ir.op import registry
from smelt.ir.ops.random import threefry2x32

from ..writer import Tensor, UntranslatedError, Writer, ints
from .table import Call, rule


@rule("constant", "literal")
def _constant(call: Call) -> Tensor:
    value = registry[call.name].reference(**call.attrs)
    return call.writer.constant(np.asarray(value))


@rule("reshape")
def _reshape(call: Call) -> Tensor:
    return call.writer.reshape(call.x, call.aval.shape)


@rule("transpose")
def _transpose(call: Call) -> Tensor:
    return call.writer.transpose(call.x, call.attrs["permutation"])


@rule("broadcast")
def _broadcast(call: Call) -> Tensor:
    return call.writer.broadcast(call.x, call.aval.shape)


@rule("slice")
def _slice(call: Call) -> Tensor:
    a = call.attrs
    return call.writer.slice(call.x, a["start"], a["stop"], a["stride"])


@rule("reverse")
def _reverse(call: Call) -> Tensor:
    return call.writer.op("stablehlo.reverse", [call.x], call.aval, f"dimensions = {ints(call.attrs['axes'])}")


@rule("pad")
def _pad(call: Call) -> Tensor:
    a = call.attrs
    attrs = (
        f"edge_padding_low = {ints(a['low'])}, edge_padding_high = {ints(a['high'])}, "
        f"interior_padding = {ints(a['interior'])}"
    )
    return call.writer.op("stablehlo.pad", call.operands, call.aval, attrs)


@rule("concatenate")
def _concatenate(call: Call) -> Tensor:
    return call.writer.concatenate(call.operands, call.attrs["axis"])


@rule("iota")
def _iota(call: Call) -> Tensor:
    kind = call.aval.dtype
    if kind.is_complex:
        part = call.writer.iota(call.aval.shape, call.attrs["axis"], kind.real)
        return call.writer.op("stablehlo.complex", [part, call.writer.full(part, 0)], call.aval)
    if kind is dtypes.bool_:
        found = call.writer.iota(call.aval.shape, call.attrs["axis"], dtypes.int32)
        return call.writer.convert(found, kind)
    return call.writer.iota(call.aval.shape, call.attrs["axis"], kind)


def _words(w: Writer, key: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
    """The two words of each key of a batch, spread over a shape that begins with the batch's axes."""
    batch = key.shape[:-1]
    found = []
    for i in (0, 1):
        part = w.slice(key, (*(0 for _ in batch), i), (*batch, i + 1))
        found.append(w.broadcast(w.reshape(part, batch), shape, tuple(range(len(batch)))))
    return found


@rule("random_bits")
def _random_bits(call: Call) -> Tensor:
    """Threefry on a counter for each element."""
    w, shape, width = call.writer, call.attrs["shape"], call.attrs["width"]
    count = math.prod(shape)
    if count > 1 << 32:
        raise UntranslatedError(f"of {count} elements needs counters of 64 bits; make fewer at once")
    counter = w.iota((max(count, 1),), 0, dtypes.uint32)
    if not count:
        counter = w.slice(counter, (0,), (0,))
    full = call.aval.shape
    low = w.broadcast(w.reshape(counter, shape), full)
    k0, k1 = _words(w, call.x, full)
    x0, x1 = threefry2x32(k0, k1, w.full(low, 0), low)  # type: ignore[type-var]
    if width == 64:
        return (w.convert(x0, dtypes.uint64) << 32) | w.convert(x1, dtypes.uint64)
    return w.convert(x0, call.aval.dtype)


@rule("random_split")
def _random_split(call: Call) -> Tensor:
    w, full = call.writer, call.aval.shape[:-1]
    low = w.broadcast(w.iota((call.attrs["num"],), 0, dtypes.uint32), full)
    k0, k1 = _words(w, call.x, full)
    x0, x1 = threefry2x32(k0, k1, w.full(low, 0xFFFFFFFF), low)  # type: ignore[type-var]
    return w.concatenate([w.reshape(x, (*full, 1)) for x in (x0, x1)], len(full))
