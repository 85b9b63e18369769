"""Factorizations and solutions of many small matrices, and of a few larger ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..workload import Workload


class _Matrices(Workload):
    """A function of `linalg` on a batch of matrices."""

    table = "library"
    batch: ClassVar[int]
    size: ClassVar[int]
    function: ClassVar[str]
    rtol, atol = 1e-2, 1e-3

    @property
    def title(self) -> str:
        count = f"{self.batch:,} of " if self.batch > 1 else ""
        return f"{self.function}, {count}{self.size}×{self.size} f32"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        shape = (self.batch, self.size, self.size)
        a = rng.standard_normal(shape, np.float32)
        if self.function in ("cholesky", "eigh"):
            a = a @ a.swapaxes(1, 2) / self.size + np.eye(self.size, dtype=np.float32)
        elif self.function != "svd":
            a = a / self.size**0.5 + 2 * np.eye(self.size, dtype=np.float32)
        right = rng.standard_normal((self.batch, self.size, 1), np.float32)
        return [a, right] if self.function == "solve" else [a]

    def check(self, result: np.ndarray, *arrays: np.ndarray) -> None:
        """Values where they are unique, in float64; of eigenvectors and singular vectors, and of QR, only these."""
        a, *rest = (x.astype(np.float64) for x in arrays)
        if self.function == "qr":  # R, whose rows may have other signs
            expected, result = np.abs(np.linalg.qr(a)[1]), np.abs(result)
        elif self.function == "eigh":
            expected = np.linalg.eigvalsh(a)
        elif self.function == "svd":
            expected = np.linalg.svd(a, compute_uv=False)
        else:
            expected = getattr(np.linalg, self.function)(a, *rest)
        assert result.shape == expected.shape, f"shape {result.shape}, not {expected.shape}"
        np.testing.assert_allclose(result, expected, rtol=self.rtol, atol=self.atol)

    #: Which result is checked of functions that have several.
    CHECKED: ClassVar[dict[str, int]] = {"qr": 1, "eigh": 0, "svd": 1}

    def _called(self, linalg: Any, wait: Any = None, **options: Any) -> Any:
        """All results are computed, one is returned."""
        function, at = getattr(linalg, self.function), self.CHECKED.get(self.function)

        def call(*arrays: Any) -> Any:
            found = function(*arrays, **options)
            if at is None:
                return found
            if wait is not None:
                wait(*found)
            return found[at]

        return call

    def smelt(self, smelt: Any) -> Any:
        return self._called(smelt.linalg, smelt.eval)

    def mlx(self, mx: Any) -> Any:
        if not hasattr(mx.linalg, self.function):
            return None
        return self._called(mx.linalg, mx.eval, stream=mx.cpu)

    def torch(self, torch: Any) -> Any:
        return self._called(torch.linalg)

    def jax(self, jax: Any) -> Any:
        function, at = getattr(jax.numpy.linalg, self.function), self.CHECKED.get(self.function)
        compiled = jax.jit(lambda *arrays: function(*arrays))
        return compiled if at is None else lambda *arrays: jax.block_until_ready(compiled(*arrays))[at]


for _function in ("inv", "solve", "cholesky", "qr", "eigh", "svd", "det"):
    for _batch, _size in ((10_000, 8), (1, 512)):
        _name = f"{_function}-8x8" if _batch > 1 else f"{_function}-512"
        if _function != "det" or _batch > 1:  # the large one is out of float32's range
            type("Matrices", (_Matrices,), {"batch": _batch, "size": _size, "function": _function}, name=_name)
