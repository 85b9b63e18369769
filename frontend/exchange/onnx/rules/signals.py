"""Fourier transforms, filters, random numbers."""

from __future__ import annotations

import math

import numpy as np

import smelt
from smelt import array
from smelt.ir.op import registry as ops

from ....lazy.arrays import emit_elementwise
from ..graph import Node, rule
from .elementwise import dtype_of


def _complex(x: array) -> array:
    """An array whose last axis holds real and imaginary parts, or real ones alone."""
    x = x if x.dtype.size >= 4 else x.astype(smelt.float32)
    imag = x[..., 1] if x.shape[-1] == 2 else smelt.zeros_like(x[..., 0])
    return emit_elementwise(ops["complex"], x[..., 0], imag)  # not x + 1j * y, which is NaN where y is infinite


def _parts(z: array, dtype: smelt.Dtype) -> array:
    return smelt.stack([smelt.real(z), smelt.imag(z)], -1).astype(dtype)


@rule("DFT")
def _dft(n: Node) -> array:
    x = n.x
    axis = int(n.known(2).reshape(())) if n[2] is not None else n.attr("axis", -2 if n.version >= 20 else 1)
    axis %= x.ndim
    length = int(n.known(1).reshape(())) if n[1] is not None else None
    z = _complex(x)
    inverse, one_sided = n.attr("inverse", 0), n.attr("onesided", 0)
    if inverse and one_sided:
        count = length if length is not None else 2 * (x.shape[axis] - 1)
        return smelt.fft.irfft(z, count, axis)[..., None].astype(x.dtype)
    found = (smelt.fft.ifft if inverse else smelt.fft.fft)(z, length, axis)
    if one_sided:
        index = [slice(None)] * found.ndim
        index[axis] = slice(found.shape[axis] // 2 + 1)
        found = found[tuple(index)]
    return _parts(found, x.dtype)


@rule("STFT")
def _stft(n: Node) -> array:
    x, step = n.x, int(n.known(1).reshape(()))
    window = n[2]
    length = int(n.known(3).reshape(())) if n[3] is not None else window.shape[0]
    z = _complex(x)
    count = (x.shape[1] - length) // step + 1
    at = np.arange(count)[:, None] * step + np.arange(length)[None]
    frames = smelt.take(z, smelt.array(at, smelt.int32), 1)
    frames = frames if window is None else frames * window
    found = smelt.fft.fft(frames, axis=-1)
    found = found[..., : length // 2 + 1] if n.attr("onesided", 1) else found
    return _parts(found, x.dtype)


@rule("MelWeightMatrix")
def _mel(n: Node) -> array:
    bins, length, rate, low, high = (float(n.known(i).reshape(())) for i in range(5))
    spectrum = int(length) // 2 + 1

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    edges = mel(low) + np.arange(int(bins) + 2) * ((mel(high) - mel(low)) / (bins + 2))
    hertz = 700 * (10 ** (edges / 2595) - 1)
    place = ((length + 1) * hertz // rate).astype(int)
    found = np.zeros((spectrum, int(bins)), np.float32)
    for i in range(int(bins)):
        lower, middle, upper = place[i : i + 3]
        if middle == lower:
            found[middle, i] = 1
        else:
            found[lower : middle + 1, i] = (np.arange(lower, middle + 1) - lower) / (middle - lower)
        if upper > middle:
            found[middle:upper, i] = (upper - np.arange(middle, upper)) / (upper - middle)
    return smelt.array(found).astype(dtype_of(n.attr("output_datatype", 1)))


def _key(n: Node) -> array | None:
    """A seed makes the same numbers each time."""
    seed = n.attr("seed")
    return None if seed is None else smelt.random.key(int(seed))


@rule("RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike")
def _random(n: Node) -> array:
    like = n.op.endswith("Like")
    code = n.attr("dtype")
    dtype = dtype_of(code) if code else n.x.dtype if like else smelt.float32
    shape = n.x.shape if like else tuple(n.attr("shape"))
    if "Uniform" in n.op:
        low, high = n.attr("low", 0.0), n.attr("high", 1.0)
        found = smelt.random.uniform(low, high, shape, key=_key(n))
    else:
        found = smelt.random.normal(shape, loc=n.attr("mean", 0.0), scale=n.attr("scale", 1.0), key=_key(n))
    return found.astype(dtype)


@rule("Bernoulli")
def _bernoulli(n: Node) -> array:
    code = n.attr("dtype")
    found = smelt.random.bernoulli(n.x, n.x.shape, _key(n))
    return found.astype(dtype_of(code) if code else n.x.dtype)


@rule("Multinomial")
def _multinomial(n: Node) -> array:
    count, code = n.attr("sample_size", 1), n.attr("dtype", 6)
    found = smelt.random.categorical(n.x, axis=-1, num_samples=count, key=_key(n))
    return found.astype(dtype_of(code))
