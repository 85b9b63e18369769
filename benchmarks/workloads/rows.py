"""Row-wise compositions written out of primitives: several reductions with maps between them."""

from __future__ import annotations

import math

import numpy as np

from ..workload import Workload

SHAPE = (4000, 4096)
EPS = 1e-5


class _Rows(Workload):
    least_bytes = 2 * 4 * math.prod(SHAPE)

    def arrays(self, rng):
        return [rng.standard_normal(SHAPE, np.float32)]


class Softmax(_Rows, name="softmax"):
    """softmax from primitives, 4000×4096 f32, compiled"""

    atol = 1e-7

    def expected(self, x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def smelt(self, smelt):
        def softmax(x):
            e = smelt.exp(x - smelt.max(x, axis=1, keepdims=True))
            return e / smelt.sum(e, axis=1, keepdims=True)

        return smelt.compile(softmax)

    def mlx(self, mx):
        def softmax(x):
            e = mx.exp(x - mx.max(x, axis=1, keepdims=True))
            return e / mx.sum(e, axis=1, keepdims=True)

        return mx.compile(softmax)

    def torch(self, torch):
        def softmax(x):
            e = torch.exp(x - torch.amax(x, dim=1, keepdim=True))
            return e / torch.sum(e, dim=1, keepdim=True)

        return softmax

    def torch_compile(self, torch):
        return torch.compile(self.torch(torch))

    def jax(self, jax):
        jnp = jax.numpy

        def softmax(x):
            e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
            return e / jnp.sum(e, axis=1, keepdims=True)

        return jax.jit(softmax)


class LayerNorm(_Rows, name="layer-norm"):
    """layer norm from primitives, 4000×4096 f32, compiled"""

    rtol, atol = 1e-4, 1e-4

    def expected(self, x):
        x = x.astype(np.float64)
        centered = x - x.mean(axis=1, keepdims=True)
        return centered / np.sqrt((centered * centered).mean(axis=1, keepdims=True) + EPS)

    def smelt(self, smelt):
        def layer_norm(x):
            centered = x - smelt.mean(x, axis=1, keepdims=True)
            return centered * smelt.rsqrt(smelt.mean(centered * centered, axis=1, keepdims=True) + EPS)

        return smelt.compile(layer_norm)

    def mlx(self, mx):
        def layer_norm(x):
            centered = x - mx.mean(x, axis=1, keepdims=True)
            return centered * mx.rsqrt(mx.mean(centered * centered, axis=1, keepdims=True) + EPS)

        return mx.compile(layer_norm)

    def torch(self, torch):
        def layer_norm(x):
            centered = x - torch.mean(x, dim=1, keepdim=True)
            return centered * torch.rsqrt(torch.mean(centered * centered, dim=1, keepdim=True) + EPS)

        return layer_norm

    def torch_compile(self, torch):
        return torch.compile(self.torch(torch))

    def jax(self, jax):
        jnp = jax.numpy

        def layer_norm(x):
            centered = x - jnp.mean(x, axis=1, keepdims=True)
            return centered * jax.lax.rsqrt(jnp.mean(centered * centered, axis=1, keepdims=True) + EPS)

        return jax.jit(layer_norm)
