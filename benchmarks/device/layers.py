"""The layers of a model in each framework, as those who use it would write them, in one dtype over float32 weights."""

from __future__ import annotations

from typing import Any

import numpy as np


class Layers:
    """What the models are written with. Images have their channels last, matrices are [inputs, outputs]; what is
    returned has the dtype that is computed in, the loss float32."""

    def cast(self, w: Any) -> Any:
        """A weight in the dtype that is computed in."""
        raise NotImplementedError

    def rows(self, table: Any, index: Any) -> Any:
        raise NotImplementedError

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return x @ self.cast(weight) + self.cast(bias)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        raise NotImplementedError

    def attention(self, qkv: Any, causal: bool = True) -> Any:
        """Of [batch, length, 3, heads, features], as [batch, length, heads, features]."""
        raise NotImplementedError

    def gelu(self, x: Any) -> Any:
        """By tanh, as GPT-2 has it."""
        raise NotImplementedError

    def relu(self, x: Any) -> Any:
        raise NotImplementedError

    def images(self, x: Any) -> Any:
        return self.cast(x)

    def conv(self, x: Any, weight: Any, stride: int) -> Any:
        """Padded so that stride 1 keeps the size; weight [outputs, rows, columns, inputs]."""
        raise NotImplementedError

    def batch_norm(self, x: Any, scale: Any, offset: Any) -> Any:
        """By mean and variance of the batch, in float32."""
        raise NotImplementedError

    def max_pool(self, x: Any) -> Any:
        """Of 3×3 places, every second one."""
        raise NotImplementedError

    def mean_of_places(self, x: Any) -> Any:
        return x.mean((1, 2))

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        """The mean, float32."""
        raise NotImplementedError

    def softmax(self, x: Any) -> Any:
        """Of rows."""
        raise NotImplementedError

    def erf(self, x: Any) -> Any:
        raise NotImplementedError

    def filters(self, w: Any) -> Any:
        """A weight of `conv` that is an array like others: [outputs, rows, columns, inputs]."""
        return w

    def rows_last(self, x: Any) -> Any:
        """Images as [batch, rows, columns, channels]."""
        return x

    def pulled_back(self, function: Any, wrt: int, *arrays: Any) -> Any:
        """The value of a function of all arrays but the last, and for the last as cotangent the gradients in the first
        `wrt` arrays."""
        raise NotImplementedError


class SmeltLayers(Layers):
    def __init__(self, smelt: Any, dtype: str):
        self.smelt, self.dtype = smelt, getattr(smelt, dtype)
        self.relu, self.gelu = smelt.nn.relu, smelt.nn.gelu_approx
        self.pool = smelt.nn.MaxPool2d(3, 2, 1)
        self.erf = smelt.erf

    def cast(self, w):
        return w.astype(self.dtype)

    def rows(self, table, index):
        return self.cast(table[index])

    def layer_norm(self, x, weight, bias):
        return self.smelt.fast.layer_norm(x, self.cast(weight), self.cast(bias), 1e-5)

    def attention(self, qkv, causal=True):
        q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        mask = "causal" if causal else None
        found = self.smelt.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask)
        return found.transpose(0, 2, 1, 3)

    def conv(self, x, weight, stride):
        return self.smelt.conv2d(x, self.cast(weight), stride, weight.shape[1] // 2)

    def batch_norm(self, x, scale, offset):
        wide = x.astype(self.smelt.float32)
        centered = wide - wide.mean((0, 1, 2))
        variance = self.smelt.mean(centered * centered, (0, 1, 2))
        return self.cast(centered * (self.smelt.rsqrt(variance + 1e-5) * scale) + offset)

    def max_pool(self, x):
        return self.pool(x)

    def cross_entropy(self, logits, labels):
        return self.smelt.fast.cross_entropy(logits, labels).mean()

    def softmax(self, x):
        return self.smelt.softmax(x, axis=-1)

    def pulled_back(self, function, wrt, *arrays):
        *rest, ct = arrays[wrt:]
        values, gradients = self.smelt.vjp(lambda *xs: function(*xs, *rest), list(arrays[:wrt]), [ct])
        return [*values, *gradients]


class MlxLayers(SmeltLayers):
    def cross_entropy(self, logits, labels):
        return self.smelt.nn.losses.cross_entropy(logits.astype(self.smelt.float32), labels, reduction="mean")


class TorchLayers(Layers):
    def __init__(self, torch: Any, dtype: str):
        self.torch, self.dtype = torch, getattr(torch, dtype)
        self.functions = torch.nn.functional
        self.relu, self.erf = self.functions.relu, torch.erf

    def parameter(self, w: np.ndarray, device: str) -> Any:
        """A weight that is trained."""
        found = self.torch.from_numpy(w).to(device)
        return (self.filters(found) if w.ndim == 4 else found).detach().requires_grad_()

    def filters(self, w):
        return w.permute(0, 3, 1, 2)  # in torch's order, with channels last in memory

    def cast(self, w):
        return w.to(self.dtype)

    def rows(self, table, index):
        return self.cast(self.functions.embedding(index, table))

    def linear(self, x, weight, bias):
        return self.functions.linear(x, self.cast(weight).T, self.cast(bias))

    def layer_norm(self, x, weight, bias):
        return self.functions.layer_norm(x, x.shape[-1:], self.cast(weight), self.cast(bias), 1e-5)

    def attention(self, qkv, causal=True):
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
        return self.functions.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    def gelu(self, x):
        return self.functions.gelu(x, approximate="tanh")

    def images(self, x):
        return self.cast(x.permute(0, 3, 1, 2))

    def conv(self, x, weight, stride):
        return self.functions.conv2d(x, self.cast(weight), None, stride, weight.shape[2] // 2)

    def batch_norm(self, x, scale, offset):
        return self.functions.batch_norm(x, None, None, scale, offset, True, 0.0, 1e-5)

    def max_pool(self, x):
        return self.functions.max_pool2d(x, 3, 2, 1)

    def mean_of_places(self, x):
        return x.mean((2, 3))

    def cross_entropy(self, logits, labels):
        return self.functions.cross_entropy(logits.flatten(0, -2).float(), labels.flatten().long())

    def softmax(self, x):
        return x.softmax(-1)

    def rows_last(self, x):
        return x.permute(0, 2, 3, 1)

    def pulled_back(self, function, wrt, *arrays):
        *rest, ct = arrays[wrt:]
        leaves = [x.detach().requires_grad_() for x in arrays[:wrt]]
        with self.torch.enable_grad():
            value = function(*leaves, *rest)
            return [value.detach(), *self.torch.autograd.grad(value, leaves, ct)]


class JaxLayers(Layers):
    def __init__(self, jax: Any, dtype: str):
        self.jax, self.np, self.dtype = jax, jax.numpy, dtype
        self.relu, self.gelu, self.erf = jax.nn.relu, jax.nn.gelu, jax.scipy.special.erf

    def cast(self, w):
        return w.astype(self.dtype)

    def rows(self, table, index):
        return self.cast(table[index])

    def layer_norm(self, x, weight, bias):
        wide = x.astype("float32")
        centered = wide - wide.mean(-1, keepdims=True)
        y = centered * self.jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
        return self.cast(y * weight + bias)

    def attention(self, qkv, causal=True):
        q, k, v = (qkv[:, :, i] for i in range(3))
        on_gpu = self.jax.default_backend() == "gpu" and q.shape[-1] % 8 == 0 and self.dtype != "float32"
        how = "cudnn" if on_gpu else "xla"
        return self.jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=how)

    def conv(self, x, weight, stride):
        around = (weight.shape[1] // 2,) * 2
        return self.jax.lax.conv_general_dilated(
            x, self.cast(weight), (stride,) * 2, (around,) * 2, dimension_numbers=("NHWC", "OHWI", "NHWC")
        )

    def batch_norm(self, x, scale, offset):
        wide = x.astype("float32")
        centered = wide - wide.mean((0, 1, 2))
        factor = self.jax.lax.rsqrt((centered * centered).mean((0, 1, 2)) + 1e-5) * scale
        return self.cast(centered * factor + offset)

    def max_pool(self, x):
        pads = ((0, 0), (1, 1), (1, 1), (0, 0))
        return self.jax.lax.reduce_window(x, -self.np.inf, self.jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pads)

    def cross_entropy(self, logits, labels):
        wide = logits.astype("float32")
        chosen = self.np.take_along_axis(wide, labels[..., None], -1)[..., 0]
        return (self.jax.scipy.special.logsumexp(wide, -1) - chosen).mean()

    def softmax(self, x):
        return self.jax.nn.softmax(x, axis=-1)

    def pulled_back(self, function, wrt, *arrays):
        *rest, ct = arrays[wrt:]
        value, back = self.jax.vjp(lambda *xs: function(*xs, *rest), *arrays[:wrt])
        return [value, *back(ct)]


#: By framework.
LAYERS = {"smelt": SmeltLayers, "mlx": MlxLayers, "torch": TorchLayers, "jax": JaxLayers}
