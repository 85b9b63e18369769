"""A product of dense matrices; the lower bound is NumPy's BLAS."""

from __future__ import annotations

import numpy as np

from ..workload import Workload

SIZE = 1024


class Matmul(Workload, name="matmul"):
    """matmul, 1024×1024×1024 f32"""

    rtol, atol = 1e-3, 1e-3

    def arrays(self, rng):
        return [rng.standard_normal((SIZE, SIZE), np.float32) for _ in range(2)]

    def expected(self, x, y):
        return x @ y

    def least(self, np):
        return np.matmul

    def smelt(self, smelt):
        return lambda x, y: x @ y

    def mlx(self, mx):
        return lambda x, y: x @ y

    def torch(self, torch):
        return lambda x, y: x @ y

    def jax(self, jax):
        return jax.jit(lambda x, y: x @ y)
