"""Quantized arrays: integers with a scale and a zero point."""

from __future__ import annotations

import smelt
from smelt import array
from smelt.ir.dtypes import DType

from ...translating import Refused
from ..graph import Node, rule
from .elementwise import dtype_of
from .windows import convolution


def _spread(v: array, x: array, axis: int, block: int) -> array:
    """A scale for the whole array, for places along an axis, or for blocks along it."""
    if v.ndim == 0 or (v.size == 1 and not block):
        return v.reshape(())
    if block:
        found = smelt.repeat(v, block, axis)
        return found[tuple(slice(d) for d in x.shape)]
    return v.reshape(*(-1 if a == axis % x.ndim else 1 for a in range(x.ndim)))


def quantized(x: array, scale: array, zero: array | None, dtype: DType, axis: int = 1, block: int = 0) -> array:
    if dtype.kind not in "iu":
        raise Refused(f"quantizes to {dtype.name}, which is no integer")
    info = smelt.iinfo(dtype)
    found = smelt.round(x / _spread(scale, x, axis, block).astype(x.dtype)).astype(smelt.float32)
    found = found if zero is None else found + _spread(zero, x, axis, block).astype(smelt.float32)
    return smelt.clip(found, float(info.min), float(info.max)).astype(dtype)


def dequantized(x: array, scale: array, zero: array | None, axis: int = 1, block: int = 0) -> array:
    kind = scale.dtype
    found = (
        x.astype(smelt.int32)
        if zero is None
        else x.astype(smelt.int32) - _spread(zero, x, axis, block).astype(smelt.int32)
    )
    return (found.astype(smelt.float32) * _spread(scale, x, axis, block).astype(smelt.float32)).astype(kind)


@rule("QuantizeLinear")
def _quantize(n: Node) -> array:
    code = n.attr("output_dtype", 0)
    dtype = n[2].dtype if n[2] is not None else dtype_of(code) if code else smelt.uint8
    return quantized(n[0], n[1], n[2], dtype, n.attr("axis", 1), n.attr("block_size", 0))


@rule("DequantizeLinear")
def _dequantize(n: Node) -> array:
    found = dequantized(n[0], n[1], n[2], n.attr("axis", 1), n.attr("block_size", 0))
    code = n.attr("output_dtype", 0)
    return found.astype(dtype_of(code)) if code else found


@rule("DynamicQuantizeLinear")
def _dynamic_quantize(n: Node) -> tuple[array, ...]:
    x = n.x
    low, high = smelt.minimum(smelt.min(x), 0), smelt.maximum(smelt.max(x), 0)
    scale = (high - low) / 255
    zero = smelt.clip(smelt.round(-low / smelt.where(scale == 0, 1, scale)), 0, 255).astype(smelt.uint8)
    return quantized(x, smelt.where(scale == 0, 1, scale), zero, smelt.uint8), scale, zero


def _centred(x: array, zero: array | None, rows: bool) -> array:
    """int32, less the zero point: one, or one for each row or column."""
    found = x.astype(smelt.int32)
    if zero is None:
        return found
    zero = zero.astype(smelt.int32)
    return found - (zero[..., None] if rows and zero.ndim == 1 and x.ndim > 1 and zero.size > 1 else zero)


@rule("MatMulInteger")
def _matmul_integer(n: Node) -> array:
    return smelt.matmul(_centred(n[0], n[2], True), _centred(n[1], n[3], False))


@rule("QLinearMatMul")
def _quantized_matmul(n: Node) -> array:
    x, xs, xz, y, ys, yz, zs, zz = n.inputs[:8]
    found = smelt.matmul(_centred(x, xz, True), _centred(y, yz, False)).astype(smelt.float32)
    xs = xs[..., None] if xs.ndim == 1 and xs.size > 1 else xs
    scale = xs.astype(smelt.float32) * ys.astype(smelt.float32) / zs.astype(smelt.float32)
    info = smelt.iinfo(zz.dtype)
    found = smelt.round(found * scale) + zz.astype(smelt.float32)
    return smelt.clip(found, float(info.min), float(info.max)).astype(zz.dtype)


def _integer_convolution(
    n: Node, x: array, x_zero: array | None, w: array, w_zero: array | None, bias: array | None = None
) -> array:
    """int32; of zero points one, or one for each channel of the result."""
    zero = None if w_zero is None else w_zero.reshape(-1, *(1,) * (w.ndim - 1))
    return convolution(n, _centred(x, x_zero, False), _centred(w, zero, False), bias)


@rule("ConvInteger")
def _conv_integer(n: Node) -> array:
    return _integer_convolution(n, n[0], n[2], n[1], n[3])


@rule("QLinearConv")
def _quantized_conv(n: Node) -> array:
    x, xs, xz, w, ws, wz, ys, yz = n.inputs[:8]
    found = _integer_convolution(n, x, xz, w, wz, n[8]).astype(smelt.float32)
    found = found * (xs * ws.reshape(1, -1, *(1,) * (w.ndim - 2)) / ys)
    info = smelt.iinfo(yz.dtype)
    return smelt.clip(smelt.round(found) + yz.astype(smelt.float32), float(info.min), float(info.max)).astype(yz.dtype)
