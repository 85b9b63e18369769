"""GELU with the exact error function, out of primitives: five operations, memory-bound when fused."""

from __future__ import annotations

import math

import numpy as np

from ..workload import Workload

SHAPE = (32, 1000, 4096)
SQRT_HALF = math.sqrt(0.5)


class _Gelu(Workload):
    least_bytes = 2 * 4 * math.prod(SHAPE)

    def arrays(self, rng):
        return [rng.standard_normal(SHAPE, np.float32)]

    def check(self, result, x):
        """Every 10007th element against math.erf: all of them would take minutes."""
        assert result.shape == x.shape
        some = x.reshape(-1)[::10007].astype(np.float64)
        expected = some * (1 + np.array([math.erf(v * SQRT_HALF) for v in some])) / 2
        np.testing.assert_allclose(result.reshape(-1)[::10007], expected, rtol=1e-4, atol=1e-6)


class GeluEager(_Gelu, name="gelu"):
    """GELU, 32×1000×4096 f32, uncompiled"""

    def smelt(self, smelt):
        return lambda x: x * (1 + smelt.erf(x * SQRT_HALF)) / 2

    def mlx(self, mx):
        return lambda x: x * (1 + mx.erf(x * SQRT_HALF)) / 2

    def torch(self, torch):
        return lambda x: x * (1 + torch.erf(x * SQRT_HALF)) / 2

    def jax(self, jax):
        return lambda x: x * (1 + jax.scipy.special.erf(x * SQRT_HALF)) / 2


class GeluCompiled(_Gelu, name="gelu-compiled"):
    """GELU, 32×1000×4096 f32, compiled"""

    def smelt(self, smelt):
        return smelt.compile(GeluEager.smelt(self, smelt))

    def mlx(self, mx):
        return mx.compile(GeluEager.mlx(self, mx))

    def torch(self, torch):
        return torch.nn.functional.gelu

    def torch_compile(self, torch):
        return torch.compile(GeluEager.torch(self, torch))

    def jax(self, jax):
        return jax.jit(GeluEager.jax(self, jax))
