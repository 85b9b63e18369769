"""What orders or counts elements: sorting, the largest ones, quantiles, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..workload import Workload

ROWS, LONG = (1000, 4096), 4_000_000
BINS, COUNT, PERCENT = 100, 10, (5.0, 50.0, 95.0)


class _Rows(Workload):
    table = "library"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal(ROWS, np.float32)]


class _Long(Workload):
    table = "library"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal(LONG, np.float32)]


class SortRows(_Rows, name="sort-rows"):
    """sort, 1000×4096 f32"""

    def expected(self, x):
        return np.sort(x)

    def smelt(self, smelt):
        return smelt.sort

    def mlx(self, mx):
        return mx.sort

    def torch(self, torch):
        return lambda x: torch.sort(x)[0]

    def jax(self, jax):
        return jax.jit(jax.numpy.sort)


class SortLong(_Long, name="sort-long"):
    """sort, 4,000,000 f32"""

    expected = SortRows.expected
    smelt, mlx, torch, jax = SortRows.smelt, SortRows.mlx, SortRows.torch, SortRows.jax


class SortIntegers(SortLong, name="sort-int32"):
    """sort, 4,000,000 int32"""

    def arrays(self, rng):
        return [rng.integers(-(2**31), 2**31, LONG, np.int32)]


class Argsort(_Rows, name="argsort-rows"):
    """argsort, 1000×4096 f32"""

    def expected(self, x):
        return np.argsort(x, kind="stable")

    def smelt(self, smelt):
        return smelt.argsort

    def mlx(self, mx):
        return mx.argsort

    def torch(self, torch):
        return lambda x: torch.argsort(x, stable=True)

    def jax(self, jax):
        return jax.jit(jax.numpy.argsort)


class TopK(_Rows, name="top-k"):
    """the 10 largest of each row, 1000×4096 f32"""

    def check(self, result, x):
        super().check(np.sort(result), x)

    def expected(self, x):
        return np.sort(x)[:, -COUNT:]

    def smelt(self, smelt):
        return lambda x: smelt.topk(x, COUNT)

    def mlx(self, mx):
        return lambda x: mx.topk(x, COUNT)

    def torch(self, torch):
        return lambda x: torch.topk(x, COUNT)[0]

    def jax(self, jax):
        return jax.jit(lambda x: jax.lax.top_k(x, COUNT)[0])


class TopKLong(TopK, name="top-k-long"):
    """the 10 largest of 4,000,000 f32"""

    def arrays(self, rng):
        return [rng.standard_normal((1, LONG), np.float32)]


class Median(_Rows, name="median-rows"):
    """median of each row, 1000×4096 f32"""

    def expected(self, x):
        return np.median(x, axis=1)

    def smelt(self, smelt):
        return lambda x: smelt.median(x, axis=1)

    def mlx(self, mx):
        return lambda x: mx.median(x, axis=1)

    def torch(self, torch):
        return lambda x: torch.quantile(x, 0.5, dim=1)

    def jax(self, jax):
        return jax.jit(lambda x: jax.numpy.median(x, axis=1))


class Percentile(_Long, name="percentile"):
    """percentiles 5, 50, 95 of 4,000,000 f32"""

    def expected(self, x):
        return np.percentile(x, PERCENT)

    def smelt(self, smelt):
        return lambda x: smelt.percentile(x, smelt.array(PERCENT))

    def torch(self, torch):
        def percentile(x: Any) -> Any:  # quantile refuses more than 2²⁴ elements, not these
            return torch.quantile(x, torch.tensor(PERCENT) / 100)

        return percentile

    def jax(self, jax):
        return jax.jit(lambda x: jax.numpy.percentile(x, jax.numpy.array(PERCENT)))


class PercentileRows(_Rows, name="percentile-rows"):
    """percentiles 5, 50, 95 of each row, 1000×4096 f32"""

    def expected(self, x):
        return np.percentile(x, PERCENT, axis=1)

    def smelt(self, smelt):
        return lambda x: smelt.percentile(x, smelt.array(PERCENT), axis=1)

    def torch(self, torch):
        return lambda x: torch.quantile(x, torch.tensor(PERCENT) / 100, dim=1)

    def jax(self, jax):
        return jax.jit(lambda x: jax.numpy.percentile(x, jax.numpy.array(PERCENT), axis=1))


class Histogram(_Long, name="histogram"):
    """histogram of 4,000,000 f32, 100 bins"""

    def check(self, result, x):
        """Counts; an element at an edge may be in the next bin."""
        expected = np.histogram(x, BINS, (-4.0, 4.0))[0]
        assert result.shape == expected.shape
        assert np.abs(result - expected).max() <= 4

    def smelt(self, smelt):
        return lambda x: smelt.histogram(x, BINS, (-4.0, 4.0))[0]

    def torch(self, torch):
        return lambda x: torch.histc(x, BINS, -4.0, 4.0)

    def jax(self, jax):
        return jax.jit(lambda x: jax.numpy.histogram(x, BINS, (-4.0, 4.0))[0])


class Bincount(_Long, name="bincount"):
    """bincount of 4,000,000 int32 below 1000"""

    def arrays(self, rng):
        return [rng.integers(0, 1000, LONG, np.int32)]

    def expected(self, x):
        return np.bincount(x, minlength=1000)

    def smelt(self, smelt):
        return lambda x: smelt.bincount(x, minlength=1000)

    def torch(self, torch):
        return lambda x: torch.bincount(x, minlength=1000)

    def jax(self, jax):
        return jax.jit(lambda x: jax.numpy.bincount(x, length=1000))
