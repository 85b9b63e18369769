"""Sums over each axis of a matrix, and over both."""

from __future__ import annotations

import math

import numpy as np

from ..workload import Workload

SHAPE = (4096, 4096)


class _Sum(Workload):
    least_bytes = 4 * math.prod(SHAPE)
    rtol, atol = 1e-4, 1e-2
    axis: int | None

    def arrays(self, rng):
        return [rng.standard_normal(SHAPE, np.float32)]

    def expected(self, x):
        return np.asarray(np.sum(x, axis=self.axis, dtype=np.float64))

    def smelt(self, smelt):
        return lambda x: smelt.sum(x, axis=self.axis)

    def mlx(self, mx):
        return lambda x: mx.sum(x, axis=self.axis)

    def torch(self, torch):
        return lambda x: torch.sum(x, dim=self.axis)

    def torch_compile(self, torch):
        return torch.compile(self.torch(torch))

    def jax(self, jax):
        return jax.jit(lambda x: jax.numpy.sum(x, axis=self.axis))


class SumRows(_Sum, name="sum-rows"):
    """sum of each row, 4096×4096 f32"""

    axis = 1


class SumColumns(_Sum, name="sum-columns"):
    """sum of each column, 4096×4096 f32"""

    axis = 0


class SumAll(_Sum, name="sum-all"):
    """sum of everything, 4096×4096 f32"""

    axis = None
    atol = 0.5
