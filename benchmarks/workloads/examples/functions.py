"""What the models of the examples are written with: the functions that each framework has for it.

A framework's own attention, normalizations, losses and loops are taken where it has some, so that each is timed as its
users write it. `Reference` computes in NumPy what results are held against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Arrays = Sequence[Any]


class _NumPyNamed:
    """Functions under NumPy's names, of `module`, and what is written with them."""

    def __init__(self, module: Any):
        self.np = module
        for name in ("exp", "log", "sqrt", "tanh", "concatenate", "eye", "diagonal", "ones_like"):
            setattr(self, name, getattr(module, name))

    def transpose(self, x: Any, *axes: int) -> Any:
        return self.np.transpose(x, axes)

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return x @ weight.T if bias is None else x @ weight.T + bias

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + self.np.exp(-x))

    def silu(self, x: Any) -> Any:
        return x * self.sigmoid(x)

    def relu(self, x: Any) -> Any:
        return self.np.maximum(x, 0)

    def minimum(self, x: Any, bound: float) -> Any:
        return self.np.minimum(x, bound)

    def places(self, length: int) -> Any:
        return self.np.arange(length)

    def layer_norm(self, x: Any, weight: Any, bias: Any, eps: float) -> Any:
        centered = x - x.mean(-1, keepdims=True)
        return centered / self.np.sqrt((centered * centered).mean(-1, keepdims=True) + eps) * weight + bias

    def batch_norm(self, x: Any, weight: Any, bias: Any, mean: Any = None, variance: Any = None) -> Any:
        """Channels, the last axis, of mean 0 and variance 1: by those of the batch, or by some that are given."""
        if mean is None:
            mean = x.mean((0, 1, 2))
            variance = ((x - mean) ** 2).mean((0, 1, 2))
        return (x - mean) / self.np.sqrt(variance + 1e-5) * weight + bias

    def rms_norm(self, x: Any, weight: Any, eps: float) -> Any:
        return x / self.np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight

    def rope(self, x: Any, position: Any) -> Any:
        """Rotated pairs of halves, [batch, heads, positions, size]."""
        half = x.shape[-1] // 2
        rates = self.np.exp(self.places(half) * (-math.log(10000) / half))
        angles = (position + self.places(x.shape[2]))[:, None] * rates
        cos, sin = self.np.cos(angles), self.np.sin(angles)
        a, b = x[..., :half], x[..., half:]
        return self.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def array(self, x: np.ndarray) -> Any:
        return self.np.asarray(x)

    def normalized(self, x: Any) -> Any:
        """Rows of length 1."""
        return x / self.np.sqrt((x * x).sum(-1, keepdims=True))

    def written(self, cache: Any, new: Any, position: Any) -> Any:
        """`cache`, [batch, heads, places, size], with what is new from a position on."""
        raise NotImplementedError


class Reference(_NumPyNamed):
    """NumPy: no gradients, no programs."""

    def __init__(self) -> None:
        super().__init__(np)

    def gelu(self, x: Any) -> Any:
        return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[x.dtype])(x / math.sqrt(2)))

    def attention(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        groups = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
        scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        if isinstance(mask, str):
            mask = np.tri(q.shape[2], k.shape[2], dtype=bool)
        if mask is not None:
            scores = np.where(mask, scores, -1e30)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        return shares / shares.sum(-1, keepdims=True) @ v

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        top = logits.max(-1, keepdims=True)
        total = np.log(np.exp(logits - top).sum(-1)) + top[..., 0]
        return (total - np.take_along_axis(logits, labels[..., None], -1)[..., 0]).mean()

    def added(self, count: int, at: Any, values: Any) -> Any:
        found = np.zeros((count, *values.shape[1:]), values.dtype)
        np.add.at(found, at, values)
        return found

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:3], (1, 2))[:, ::stride, ::stride]
        return np.einsum("brcihw,ohwi->brco", windows, w, optimize=True)

    def scan(self, step: Callable[..., Any], state: Any, xs: Any) -> Any:
        for x in xs:
            state = step(state, x)
        return state

    def written(self, cache, new, position):
        cache[:, :, int(position) : int(position) + new.shape[2]] = new
        return cache

    def cholesky(self, a: Any) -> Any:
        return np.linalg.cholesky(a)

    def solve(self, l: Any, y: Any, upper: bool = False) -> Any:
        return np.linalg.solve(l, y)


class MlxNamed(_NumPyNamed):
    """smelt, and MLX: the module, and its `nn`."""

    def __init__(self, module: Any, nn: Any):
        super().__init__(module)
        self.nn, self.gelu, self.sigmoid, self.silu, self.relu = nn, nn.gelu, module.sigmoid, nn.silu, nn.relu
        self.compile, self.vmap = module.compile, module.vmap

    def linear(self, x, weight, bias=None):
        return x @ weight.T if bias is None else self.np.addmm(bias, x, weight.T)

    def array(self, x):
        return self.np.array(x)

    def layer_norm(self, x, weight, bias, eps):
        return self.np.fast.layer_norm(x, weight, bias, eps)

    def rms_norm(self, x, weight, eps):
        return self.np.fast.rms_norm(x, weight, eps)

    def rope(self, x, position):
        return self.np.fast.rope(x, x.shape[-1], traditional=False, base=10000, scale=1, offset=position)

    def attention(self, q, k, v, mask=None):
        return self.np.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask)

    def cross_entropy(self, logits, labels):
        return self.nn.losses.cross_entropy(logits, labels, reduction="mean")

    def added(self, count, at, values):
        return self.np.zeros((count, *values.shape[1:])).at[at].add(values)

    def conv(self, x, w, stride=1, padding=0):
        return self.np.conv2d(x, w, stride=stride, padding=padding)

    def scan(self, step, state, xs):
        if not hasattr(self.np, "scan"):  # MLX has none: a loop of Python
            for i in range(xs.shape[0]):
                state = step(state, xs[i])
            return state
        return self.np.scan(lambda state, x: (step(state, x), None), state, xs)[0]

    def gradients(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        """By the first argument, a list."""
        return self.np.grad(loss)

    #: The same, for `vmap`.
    example_gradients = gradients

    def written(self, cache, new, position):
        zero = self.np.array(0)
        return self.np.slice_update(cache, new, self.np.stack([zero, zero, position, zero]), (0, 1, 2, 3))

    def cholesky(self, a):
        return self.np.linalg.cholesky(a)

    def solve(self, l, y, upper=False):
        return self.np.linalg.solve_triangular(l, y, upper=upper)

    def wait(self, *results: Any) -> None:
        self.np.eval(*results)


class Jax(_NumPyNamed):
    def __init__(self, jax: Any):
        super().__init__(jax.numpy)
        import jax.scipy.linalg

        self.jax, self.compile, self.vmap = jax, jax.jit, jax.vmap
        self.sigmoid, self.silu, self.relu = jax.nn.sigmoid, jax.nn.silu, jax.nn.relu

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=False)

    def attention(self, q, k, v, mask=None):
        q, k, v = (self.transpose(x, 0, 2, 1, 3) for x in (q, k, v))
        causal = isinstance(mask, str)
        if mask is not None and not causal:
            mask = mask[(None,) * (4 - mask.ndim)]
        found = self.jax.nn.dot_product_attention(q, k, v, mask=None if causal else mask, is_causal=causal)
        return self.transpose(found, 0, 2, 1, 3)

    def cross_entropy(self, logits, labels):
        chosen = self.np.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return (self.jax.nn.logsumexp(logits, -1) - chosen).mean()

    def added(self, count, at, values):
        return self.np.zeros((count, *values.shape[1:])).at[at].add(values)

    def conv(self, x, w, stride=1, padding=0):
        order, around = ("NHWC", "OHWI", "NHWC"), [(padding, padding)] * 2
        return self.jax.lax.conv_general_dilated(x, w, (stride, stride), around, dimension_numbers=order)

    def scan(self, step, state, xs):
        return self.jax.lax.scan(lambda state, x: (step(state, x), None), state, xs)[0]

    def gradients(self, loss):
        return self.jax.grad(loss)

    example_gradients = gradients

    def written(self, cache, new, position):
        return self.jax.lax.dynamic_update_slice(cache, new, (0, 0, position, 0))

    def cholesky(self, a):
        return self.np.linalg.cholesky(a)

    def solve(self, l, y, upper=False):
        return self.jax.scipy.linalg.solve_triangular(l, y, lower=not upper)

    def wait(self, *results: Any) -> None:
        self.jax.block_until_ready(results)


class Torch(_NumPyNamed):
    def __init__(self, torch: Any):
        super().__init__(torch)
        from torch.nn import functional

        self.torch, self.f, self.vmap = torch, functional, torch.func.vmap
        self.linear, self.gelu, self.silu = functional.linear, functional.gelu, functional.silu
        self.sigmoid, self.relu = torch.sigmoid, functional.relu

    def compile(self, function: Any) -> Any:
        return function

    def transpose(self, x, *axes):
        return x.permute(axes)

    def array(self, x):
        return self.torch.from_numpy(x)

    def minimum(self, x, bound):
        return x.clamp(max=bound)

    def layer_norm(self, x, weight, bias, eps):
        return self.f.layer_norm(x, (x.shape[-1],), weight, bias, eps)

    def batch_norm(self, x, weight, bias, mean=None, variance=None):
        images = x.permute(0, 3, 1, 2)
        found = self.f.batch_norm(images, mean, variance, weight, bias, training=mean is None, eps=1e-5)
        return found.permute(0, 2, 3, 1)

    def rms_norm(self, x, weight, eps):
        return self.f.rms_norm(x, (x.shape[-1],), weight, eps)

    def attention(self, q, k, v, mask=None):
        causal = isinstance(mask, str)
        options = {"is_causal": True} if causal else {"attn_mask": mask}
        return self.f.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1], **options)

    def cross_entropy(self, logits, labels):
        return self.f.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1).long())

    def added(self, count, at, values):
        return values.new_zeros(count, *values.shape[1:]).index_add(0, at, values)

    def conv(self, x, w, stride=1, padding=0):
        images, taps = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
        return self.f.conv2d(images, taps, stride=stride, padding=padding).permute(0, 2, 3, 1)

    def scan(self, step, state, xs):
        for x in xs.unbind(0):
            state = step(state, x)
        return state

    def gradients(self, loss):
        def found(weights: Arrays) -> Any:
            held = [w.detach().requires_grad_() for w in weights]
            with self.torch.enable_grad():
                return self.torch.autograd.grad(loss(held), held)

        return found

    def example_gradients(self, loss):
        return self.torch.func.grad(loss)

    def written(self, cache, new, position):
        return cache.index_copy_(2, position + self.places(new.shape[2]), new)

    def cholesky(self, a):
        return self.torch.linalg.cholesky(a)

    def solve(self, l, y, upper=False):
        return self.torch.linalg.solve_triangular(l, y, upper=upper)

    def wait(self, *results: Any) -> None:
        pass


class TorchCompile(Torch):
    def compile(self, function):
        return self.torch.compile(function)
