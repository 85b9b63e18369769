"""Programs of one or a few kernels: rows, products with what follows them, attention, convolutions, small calls."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from .layers import LAYERS
from .program import Program, check_close, numbers, wide

ROWS = 64  #: of those that do not depend on each other, so many are checked


class _Layered(Program):
    """One function of `Layers` and the arrays, for all frameworks."""

    def function(self, f: Any, *arrays: Any) -> Any:
        raise NotImplementedError

    def check(self, result, *arrays):
        check_close(self, result, self.expected(*arrays))

    def smelt(self, smelt, layers="smelt"):
        f = LAYERS[layers](smelt, self.dtype)
        return smelt.compile(lambda *arrays: self.function(f, *arrays))

    def mlx(self, mx):
        return self.smelt(mx, "mlx")

    def torch(self, torch):
        f = LAYERS["torch"](torch, self.dtype)
        return lambda *arrays: self.function(f, *arrays)

    def torch_compile(self, torch):
        return torch.compile(self.torch(torch), dynamic=False)

    def jax(self, jax):
        f = LAYERS["jax"](jax, self.dtype)
        return jax.jit(lambda *arrays: self.function(f, *arrays))


class _Rows(_Layered):
    shape: tuple[int, int] = (8192, 8192)

    def arrays(self, rng):
        rows, columns = (256, 256) if self.tiny else self.shape
        return [numbers(rng, (rows, columns), self.dtype)]

    @property
    def least_bytes(self):  # type: ignore[override]
        rows, columns = (256, 256) if self.tiny else self.shape
        return 2 * rows * columns * (4 if self.dtype == "float32" else 2)

    def shown(self, result):
        return result[:ROWS]


class GELU(_Rows, name="gelu"):
    """GELU, 32000×4096 f32"""

    shape = (32000, 4096)

    def function(self, f, x):
        return x * 0.5 * (1 + f.erf(x * math.sqrt(0.5)))

    def expected(self, x):
        x = wide(x[:ROWS])
        return 0.5 * x * (1 + np.vectorize(math.erf)(x * math.sqrt(0.5)))


class GELUBF16(GELU, name="gelu-bf16"):
    """GELU, 32000×4096 bf16"""

    dtype = "bfloat16"


def softmax_of(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Softmax(_Rows, name="softmax"):
    """softmax of rows, 8192×8192 f32"""

    def function(self, f, x):
        return f.softmax(x)

    def expected(self, x):
        return softmax_of(wide(x[:ROWS]))


class SoftmaxBF16(Softmax, name="softmax-bf16"):
    """softmax of rows, 8192×8192 bf16"""

    dtype = "bfloat16"


class LayerNorm(_Rows, name="layer-norm"):
    """layer norm of rows, 8192×8192 f32"""

    def arrays(self, rng):
        (x,) = super().arrays(rng)
        return [x, *(numbers(rng, x.shape[-1:], self.dtype) for _ in range(2))]

    def function(self, f, x, weight, bias):
        return f.layer_norm(x, weight, bias)

    def expected(self, x, weight, bias):
        x = wide(x[:ROWS])
        centered = x - x.mean(-1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * wide(weight) + wide(bias)


class LayerNormBF16(LayerNorm, name="layer-norm-bf16"):
    """layer norm of rows, 8192×8192 bf16"""

    dtype = "bfloat16"


class _Gradient(_Layered):
    """A function and, for a cotangent, which is the last operand, its gradients in the first `wrt` operands."""

    wrt = 1

    def smelt(self, smelt, layers="smelt"):
        f = LAYERS[layers](smelt, self.dtype)
        return smelt.compile(lambda *arrays: f.pulled_back(partial(self.function, f), self.wrt, *arrays))

    def torch(self, torch):
        f = LAYERS["torch"](torch, self.dtype)
        return partial(f.pulled_back, partial(self.function, f), self.wrt)

    def torch_compile(self, torch):
        f = LAYERS["torch"](torch, self.dtype)
        return partial(f.pulled_back, torch.compile(partial(self.function, f), dynamic=False), self.wrt)

    def jax(self, jax):
        f = LAYERS["jax"](jax, self.dtype)
        return jax.jit(lambda *arrays: f.pulled_back(partial(self.function, f), self.wrt, *arrays))

    def shown(self, result):
        return result[self.wrt]


class LossGradient(_Gradient, name="cross-entropy-gradient"):
    """cross entropy and its gradient, 8192×50257 bf16"""

    dtype = "bfloat16"

    @property
    def shape(self):
        return (64, 97) if self.tiny else (8192, 50257)

    @property
    def least_bytes(self):  # type: ignore[override]
        return 2 * 2 * math.prod(self.shape)

    def arrays(self, rng):
        rows, classes = self.shape
        labels = rng.integers(0, classes, rows).astype(np.int32)
        return [numbers(rng, self.shape, self.dtype), labels, np.ones((), np.float32)]

    def function(self, f, x, labels):
        return f.cross_entropy(x, labels)

    def shown(self, result):
        return result[1][:ROWS]

    def expected(self, x, labels, _):
        found = softmax_of(wide(x[:ROWS]))
        found[np.arange(ROWS), labels[:ROWS]] -= 1
        return found / len(x)


class MatmulGELU(_Layered, name="matmul-gelu"):
    """GELU(x · w + b), 4096³ f32"""

    @property
    def size(self):
        return 64 if self.tiny else 4096

    @property
    def flops(self):
        return 2.0 * self.size**3

    def arrays(self, rng):
        n = self.size
        return [numbers(rng, (n, n), self.dtype), numbers(rng, (n, n), self.dtype), numbers(rng, (n,), self.dtype)]

    def function(self, f, x, w, b):
        return f.gelu(x @ w + b)

    def shown(self, result):
        return result[:ROWS]

    def expected(self, x, w, b):
        y = wide(x[:ROWS]) @ wide(w) + wide(b)
        return 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))


class MatmulGELUF16(MatmulGELU, name="matmul-gelu-f16"):
    """GELU(x · w + b), 4096³ f16"""

    dtype = "float16"


class MatmulGELUBF16(MatmulGELU, name="matmul-gelu-bf16"):
    """GELU(x · w + b), 4096³ bf16"""

    dtype = "bfloat16"


class Attention(_Layered, name="attention"):
    """attention, 4×16 heads, 1024 positions of 64, bf16"""

    dtype = "bfloat16"
    causal = False

    @property
    def shape(self):
        return (2, 64, 2, 16) if self.tiny else (4, 1024, 16, 64)

    @property
    def flops(self):
        batch, length, heads, features = self.shape
        return 4.0 * batch * heads * length**2 * features / (2 if self.causal else 1)

    def arrays(self, rng):
        batch, length, heads, features = self.shape
        return [numbers(rng, (batch, length, 3, heads, features), self.dtype)]

    def function(self, f, qkv):
        return f.attention(qkv, self.causal)

    def shown(self, result):
        return result[:1]

    def expected(self, qkv):
        q, k, v = (wide(qkv[:1, :, i]).transpose(0, 2, 1, 3) for i in range(3))
        scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        if self.causal:
            scores += np.triu(np.full(scores.shape[-2:], -1e30), 1)
        return (softmax_of(scores) @ v).transpose(0, 2, 1, 3)


class CausalAttention(Attention, name="attention-causal"):
    """causal attention, 4×16 heads, 1024 positions of 64, bf16"""

    causal = True


class AttentionGradient(_Gradient, CausalAttention, name="attention-gradient"):
    """causal attention and its gradient, 4×16 heads, 1024 positions of 64, bf16"""

    @property
    def flops(self):
        return 3.5 * super().flops

    def arrays(self, rng):
        (qkv,) = super().arrays(rng)
        return [qkv, numbers(rng, (*qkv.shape[:2], *qkv.shape[3:]), self.dtype)]

    def shown(self, result):
        return result[1][:1]

    def expected(self, qkv, ct):
        q, k, v = (wide(qkv[:1, :, i]).transpose(0, 2, 1, 3) for i in range(3))
        ct, scale = wide(ct[:1]).transpose(0, 2, 1, 3), q.shape[-1] ** -0.5
        scores = q @ k.swapaxes(-1, -2) * scale + np.triu(np.full((q.shape[2],) * 2, -1e30), 1)
        p = softmax_of(scores)
        dp = ct @ v.swapaxes(-1, -2)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
        found = [ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ ct]
        return np.stack([g.transpose(0, 2, 1, 3) for g in found], 2)


class Convolution(_Layered, name="conv"):
    """3×3 convolution, 64 images of 28×28, 128 → 128 channels, f32"""

    @property
    def shape(self):
        return (2, 8, 8, 8) if self.tiny else (64, 28, 28, 128)

    @property
    def flops(self):
        return 2.0 * math.prod(self.shape) * self.shape[-1] * 9

    def arrays(self, rng):
        channels = self.shape[-1]
        return [numbers(rng, self.shape, self.dtype), numbers(rng, (channels, 3, 3, channels), self.dtype)]

    def function(self, f, x, w):
        return f.rows_last(f.conv(f.images(x), f.filters(w), 1))

    def shown(self, result):
        return result[:1]

    def expected(self, x, w):
        rows, columns = x.shape[1:3]
        padded = np.pad(wide(x[:1]), ((0, 0), (1, 1), (1, 1), (0, 0)))
        places = [(i, j) for i in range(3) for j in range(3)]
        return sum(padded[:, i : i + rows, j : j + columns] @ wide(w)[:, i, j].T for i, j in places)


class ConvolutionBF16(Convolution, name="conv-bf16"):
    """3×3 convolution, 64 images of 28×28, 128 → 128 channels, bf16"""

    dtype = "bfloat16"


class ConvolutionGradient(_Gradient, Convolution, name="conv-gradient"):
    """that convolution and its gradients in images and weights, bf16"""

    dtype, wrt = "bfloat16", 2

    @property
    def flops(self):
        return 3 * super().flops

    def shown(self, result):
        return _Gradient.shown(self, result)

    def arrays(self, rng):
        x, w = super().arrays(rng)
        return [x, w, numbers(rng, x.shape, self.dtype)]

    def expected(self, x, w, ct):
        rows, columns = x.shape[1:3]
        padded = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
        flat = ct.astype(np.float32).reshape(-1, ct.shape[-1]).T
        found = np.empty(w.shape)
        for i in range(3):
            for j in range(3):
                found[:, i, j] = flat @ padded[:, i : i + rows, j : j + columns].reshape(flat.shape[1], -1)
        return found


class Call(_Layered, name="small-call"):
    """call of a compiled GELU on 10 elements, not awaited"""

    unit = "µs"

    def arrays(self, rng):
        return [numbers(rng, (10,))]

    def function(self, f, x):
        return x * 0.5 * (1 + f.erf(x * math.sqrt(0.5)))

    def expected(self, x):
        return np.array([0.5 * v * (1 + math.erf(v * math.sqrt(0.5))) for v in wide(x)])


class CallAwaited(Call, name="small-call-awaited"):
    """the same call, its result awaited"""

    awaited = True
