"""Models of the examples: what they compute, and a step of training."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..workload import Workload

BATCH, LENGTH, DIMS, HEADS = 16, 96, 128, 4
RATE = 0.1


def block(f: Any, x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    """A block of examples/char_gpt.py without its parameters of normalizations: attention and a perceptron."""
    mask = f.array(np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1), x)

    def norm(x):
        centered = x - f.mean(x)
        return centered / f.sqrt(f.mean(centered * centered) + 1e-5)

    def softmax(x):
        shares = f.exp(x - f.max(x))
        return shares / f.sum(shares)

    parts = (norm(x) @ qkv).reshape(BATCH, LENGTH, 3, HEADS, DIMS // HEADS)
    q, k, v = (f.transpose(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))
    scores = q @ f.transpose(k, (0, 1, 3, 2)) * (DIMS // HEADS) ** -0.5 + mask
    found = f.transpose(softmax(scores) @ v, (0, 2, 1, 3)).reshape(BATCH, LENGTH, DIMS)
    x = x + found @ out
    y = norm(x) @ up
    return x + (0.5 * y * (1 + f.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))) @ down


class _NumPyLike:
    """The functions of a framework with NumPy's names."""

    def __init__(self, module: Any):
        self.sqrt, self.exp, self.tanh, self.transpose = module.sqrt, module.exp, module.tanh, module.transpose
        self.mean = lambda x: module.mean(x, axis=-1, keepdims=True)
        self.sum = lambda x: module.sum(x, axis=-1, keepdims=True)
        self.max = lambda x: module.max(x, axis=-1, keepdims=True)
        self.array = lambda x, like: module.asarray(x, like.dtype) if module is np else module.array(x)
        self.flat = lambda xs: module.concatenate([x.reshape(-1) for x in xs])
        self.relu = lambda x: module.maximum(x, 0)
        self.conv = _convolution(module)


def _convolution(module: Any) -> Any:
    """3×3, rows and columns as before; images and weights with their channels last."""
    if module is np:
        return _by_taps
    if hasattr(module, "conv2d"):
        return lambda x, w: module.conv2d(x, w, padding=1)
    order = ("NHWC", "OHWI", "NHWC")
    return lambda x, w: sys.modules["jax"].lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=order)


def _by_taps(x: np.ndarray, w: np.ndarray) -> Any:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = x.shape[1:3]
    taps = itertools.product(range(3), repeat=2)
    return sum(padded[:, i : i + rows, j : j + columns] @ w[:, i, j].T for i, j in taps)


class _Torch:
    def __init__(self, torch: Any):
        self.sqrt, self.exp, self.tanh, self.transpose = torch.sqrt, torch.exp, torch.tanh, torch.permute
        self.mean = lambda x: x.mean(-1, keepdim=True)
        self.sum = lambda x: x.sum(-1, keepdim=True)
        self.max = lambda x: x.amax(-1, keepdim=True)
        mask: dict[str, Any] = {}
        self.array = lambda x, like: mask.setdefault("mask", torch.from_numpy(x))
        self.flat = lambda xs: torch.cat([x.reshape(-1) for x in xs])
        self.relu = torch.relu

        def conv(x: Any, w: Any) -> Any:
            images, taps = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
            return torch.nn.functional.conv2d(images, taps, padding=1).permute(0, 2, 3, 1)

        self.conv = conv


class _Decoder(Workload):
    rtol, atol = 1e-3, 1e-4

    def arrays(self, rng):
        shapes = [(DIMS, 3 * DIMS), (DIMS, DIMS), (DIMS, 4 * DIMS), (4 * DIMS, DIMS)]
        weights = [(rng.standard_normal(s) / s[0] ** 0.5).astype(np.float32) for s in shapes]
        return [rng.standard_normal((BATCH, LENGTH, DIMS), np.float32), *weights]


class Decoder(_Decoder, name="decoder"):
    """a block of a GPT (16×96 tokens of 128), compiled"""

    def expected(self, *arrays):
        return block(_NumPyLike(np), *arrays)

    def smelt(self, smelt):
        return smelt.compile(lambda *arrays: block(_NumPyLike(smelt), *arrays))

    def mlx(self, mx):
        return mx.compile(lambda *arrays: block(_NumPyLike(mx), *arrays))

    def torch(self, torch):
        return lambda *arrays: block(_Torch(torch), *arrays)

    def torch_compile(self, torch):
        f = _Torch(torch)
        return torch.compile(lambda *arrays: block(f, *arrays))

    def jax(self, jax):
        return jax.jit(lambda *arrays: block(_NumPyLike(jax.numpy), *arrays))


def _stepped(f: Any, weights: Any, gradients: Any) -> Any:
    return f.flat([w - RATE * g for w, g in zip(weights, gradients)])


def _check_slopes(function: Any, result: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
    """New weights of a step on the mean of squares of `function`: slopes beside differences along a direction, in
    float64."""
    x, *weights = (a.astype(np.float64) for a in arrays)
    rng, start = np.random.default_rng(0), 0
    for i, w in enumerate(weights):
        new = result[start : start + w.size].reshape(w.shape)
        start += w.size
        direction, ends = rng.standard_normal(w.shape), []
        for step in (1e-5, -1e-5):
            moved = [*weights]
            moved[i] = w + step * direction
            ends.append(np.mean(function(_NumPyLike(np), x, *moved) ** 2))
        slope, found = (ends[0] - ends[1]) / 2e-5, (((w - new) / RATE) * direction).sum()
        assert abs(slope - found) <= 2e-2 * max(abs(slope), 1e-2), f"slope {found}, not {slope}"
    assert result.shape == (start,)


class DecoderStep(_Decoder, name="decoder-step"):
    """a training step of that block: loss, gradients, new weights"""

    def check(self, result, *arrays):
        """The slope along a direction beside a difference, in float64."""
        _check_slopes(block, result, arrays)

    def smelt(self, smelt):
        f = _NumPyLike(smelt)

        def step(x, *weights):
            gradients = smelt.grad(lambda *ws: (block(f, x, *ws) ** 2).mean(), (0, 1, 2, 3))(*weights)
            return _stepped(f, weights, gradients)

        return smelt.compile(step)

    def mlx(self, mx):
        f = _NumPyLike(mx)

        def step(x, *weights):
            gradients = mx.grad(lambda *ws: (block(f, x, *ws) ** 2).mean(), (0, 1, 2, 3))(*weights)
            return _stepped(f, weights, gradients)

        return mx.compile(step)

    def _torch_step(self, torch, made):
        def step(x, *weights):
            weights = [w.detach().requires_grad_() for w in weights]
            with torch.enable_grad():
                gradients = torch.autograd.grad(made(x, *weights), weights)
            with torch.no_grad():
                return _stepped(_Torch(torch), weights, gradients)

        return step

    def torch(self, torch):
        f = _Torch(torch)
        return self._torch_step(torch, lambda *arrays: (block(f, *arrays) ** 2).mean())

    def torch_compile(self, torch):
        f = _Torch(torch)
        return self._torch_step(torch, torch.compile(lambda *arrays: (block(f, *arrays) ** 2).mean()))

    def jax(self, jax):
        f = _NumPyLike(jax.numpy)

        def step(x, *weights):
            gradients = jax.grad(lambda *ws: (block(f, x, *ws) ** 2).mean(), (0, 1, 2, 3))(*weights)
            return _stepped(f, weights, gradients)

        return jax.jit(step)
