"""Constants, shapes, slices, random bits."""

from __future__ import annotations

import math

import numpy as np

from smelt.ir import dtypes
from smelt.ir.op import registry
from smelt.ir.ops.random import threefry2x32, words_of

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
    """Threefry on a counter for each two words."""
    w, shape, width = call.writer, call.attrs["shape"], call.attrs["width"]
    size, batch = math.prod(shape), call.x.shape[:-1]
    words = words_of(size, width)
    if words > 1 << 32:
        raise UntranslatedError(f"of {words} words needs counters of 64 bits; make fewer at once")
    half = words // 2
    blocks = words - half
    counter = w.iota((max(blocks, 1),), 0, dtypes.uint32)
    if not blocks:
        counter = w.slice(counter, (0,), (0,))
    first = w.broadcast(counter, (*batch, blocks))
    second = first + blocks
    if words % 2:
        second = w.select(w.compare("EQ", first, half), 0, second)
    k0, k1 = _words(w, call.x, first.shape)
    x0, x1 = threefry2x32(k0, k1, first, second)  # type: ignore[type-var]
    if width == 64:
        return w.reshape((w.convert(x1, dtypes.uint64) << 32) | w.convert(x0, dtypes.uint64), call.aval.shape)
    lead = (0,) * len(batch)
    found = w.concatenate([x0, w.slice(x1, (*lead, 0), (*batch, half))], len(batch))
    if width < 32:
        each = 32 // width
        apart = w.broadcast(w.reshape(found, (*found.shape, 1)), (*found.shape, each))
        apart = apart >> (w.iota(apart.shape, len(batch) + 1, dtypes.uint32) * width)
        flat = w.reshape(w.convert(apart, call.aval.dtype), (*batch, words * each))
        found = w.slice(flat, (*lead, 0), (*batch, size))
    return w.reshape(found, call.aval.shape)
