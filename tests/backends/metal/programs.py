"""Programs that every part of the Metal backend is shown on. Written from primitives."""

from __future__ import annotations

from collections.abc import Callable

import smelt

f32, bf16, f16 = smelt.float32, smelt.bfloat16, smelt.float16
S = smelt.ShapeDtype


def gelu(x):
    return x * 0.5 * (1 + smelt.erf(x * 0.7071067811865476))


def softmax(x):
    e = smelt.exp(x - smelt.max(x, axis=-1, keepdims=True))
    return e / smelt.sum(e, axis=-1, keepdims=True)


def layer_norm(x, weight, bias):
    mean = smelt.mean(x, axis=-1, keepdims=True)
    centered = x - mean
    variance = smelt.mean(centered * centered, axis=-1, keepdims=True)
    return centered * smelt.rsqrt(variance + 1e-5) * weight + bias


def rms_norm(x, weight):
    return x * smelt.rsqrt(smelt.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def linear_gelu(x, weight, bias):
    return gelu(x @ weight + bias)


def cross_entropy(scores, labels):
    chosen = smelt.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return smelt.mean(smelt.logsumexp(scores, axis=1) - chosen)


def embed(table, indices):
    return table[indices] * 2.0


def count(x, indices, updates):
    return x.at[indices].add(updates)


def dropout(x, key):
    return smelt.where(smelt.random.uniform(shape=x.shape, key=key) < 0.9, x / 0.9, 0.0)


def convolution(x, w, b):
    return smelt.maximum(smelt.conv1d(x, w, padding=1) + b, 0)


def dequantize(x, words, scales, biases):
    """A product with weights of four bits, a scale and a bias for 64 of them."""
    numbers = (words[..., None] >> smelt.arange(0, 32, 4, dtype=smelt.uint32)) & 15
    weights = numbers.reshape(64, 4, 64).astype(f32) * scales[..., None] + biases[..., None]
    return x @ weights.reshape(64, 256).T


#: name → function and argument types
PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "gelu": (gelu, (S((32, 1000), f32),)),
    "gelu_bf16": (gelu, (S((32, 1000), bf16),)),
    "softmax": (softmax, (S((64, 1000), f32),)),
    "softmax_small": (softmax, (S((1000, 10), f32),)),
    "layer_norm": (layer_norm, (S((64, 512), f32), S((512,), f32), S((512,), f32))),
    "rms_norm_f16": (rms_norm, (S((64, 512), f16), S((512,), f16))),
    "whole_sum": (lambda x: smelt.sum(x), (S((1_000_000,), f32),)),
    "column_sum": (lambda x: smelt.sum(x, axis=0), (S((512, 256), f32),)),
    "add_transposed": (lambda x: x + x.T, (S((128, 128), f32),)),
    "linear_gelu": (linear_gelu, (S((128, 96), f32), S((96, 64), f32), S((64,), f32))),
    "matvec": (lambda a, x: a @ x, (S((300, 512), f32), S((512,), f32))),
    "convolution": (convolution, (S((2, 64, 32), f32), S((64, 3, 32), f32), S((64,), f32))),
    "dequantize": (dequantize, (S((8, 256), f32), S((64, 32), smelt.uint32), S((64, 4), f32), S((64, 4), f32))),
    "argmax": (lambda x: smelt.argmax(x, axis=1), (S((50, 100), f32),)),
    "cumsum": (lambda x: smelt.cumsum(x, axis=1), (S((8, 3000), f32),)),
    "argsort": (lambda x: smelt.argsort(x, axis=1), (S((4, 300), f32),)),
    "embed": (embed, (S((1000, 64), f32), S((20,), smelt.int32))),
    "count": (count, (S((100,), smelt.int32), S((500,), smelt.int32), S((500,), smelt.int32))),
    "scatter_rows": (count, (S((100, 16), f32), S((50,), smelt.int32), S((50, 16), f32))),
    "cross_entropy": (cross_entropy, (S((64, 10), f32), S((64,), smelt.int32))),
    "dropout": (dropout, (S((100,), f32), S((2,), smelt.uint32))),
}
