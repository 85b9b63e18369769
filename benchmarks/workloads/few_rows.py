"""Products of few rows with large matrices, windows of pooling, and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workload import Workload

SIZE = 4096
IMAGES, WINDOW = (16, 128, 128, 32), 2


class _Product(Workload):
    table = "library"
    rows = 1
    rtol, atol = 1e-3, 1e-2

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal((self.rows, SIZE), np.float32), rng.standard_normal((SIZE, SIZE), np.float32)]

    def expected(self, x: Any, w: Any) -> Any:
        return x @ w

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(lambda x, w: x @ w)

    def mlx(self, mx: Any) -> Any:
        return lambda x, w: x @ w

    def torch(self, torch: Any) -> Any:
        return lambda x, w: x @ w

    def jax(self, jax: Any) -> Any:
        return jax.jit(lambda x, w: x @ w)


class OneRow(_Product, name="rows-1"):
    """1×4096 by 4096×4096 f32"""


class FourRows(_Product, name="rows-4"):
    """4×4096 by 4096×4096 f32"""

    rows = 4


class SixteenRows(_Product, name="rows-16"):
    """16×4096 by 4096×4096 f32"""

    rows = 16


class MaxPool(Workload, name="max-pool"):
    """largest of windows 2×2, 16×128²×32 f32"""

    table = "library"

    def arrays(self, rng):
        return [rng.standard_normal(IMAGES, np.float32)]

    def expected(self, x):
        b, h, w, c = IMAGES
        return x.reshape(b, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c).max((2, 4))

    def smelt(self, smelt):
        return smelt.compile(smelt.nn.MaxPool2d(WINDOW))

    def mlx(self, mx):
        from mlx import nn

        return nn.MaxPool2d(WINDOW)

    def torch(self, torch):
        def pool(x):
            return torch.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), WINDOW).permute(0, 2, 3, 1)

        return pool

    def jax(self, jax):
        window = (1, WINDOW, WINDOW, 1)
        return jax.jit(lambda x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, window, "VALID"))


class RandomNormal(Workload, name="random-normal"):
    """4,194,304 normally distributed numbers f32, their mean"""

    table = "library"
    rtol, atol = 0.0, 0.01

    def arrays(self, rng):
        return [np.zeros((), np.float32)]

    def expected(self, x):
        return np.float32(0)

    def smelt(self, smelt):
        key = smelt.random.key(1)
        return smelt.compile(lambda x: (smelt.random.normal((SIZE, SIZE // 4), key=key) + x).mean())

    def mlx(self, mx):
        key = mx.random.key(1)
        return lambda x: (mx.random.normal((SIZE, SIZE // 4), key=key) + x).mean()

    def torch(self, torch):
        return lambda x: (torch.randn(SIZE, SIZE // 4) + x).mean()

    def jax(self, jax):
        key = jax.random.key(1)
        return jax.jit(lambda x: (jax.random.normal(key, (SIZE, SIZE // 4)) + x).mean())
