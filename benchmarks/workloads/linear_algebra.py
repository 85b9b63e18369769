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
    #: Of the right-hand sides.
    columns: ClassVar[int]
    function: ClassVar[str]
    rtol, atol = 1e-2, 1e-3

    @property
    def title(self) -> str:
        count = f"{self.batch:,} of " if self.batch > 1 else ""
        return f"{self.function}, {count}{self.size}×{self.size} f32"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        shape = (self.batch, self.size, self.size)
        a = rng.standard_normal(shape, np.float32)
        if self.function in ("cholesky", "eigh", "eigvalsh"):
            a = a @ a.swapaxes(1, 2) / self.size + np.eye(self.size, dtype=np.float32)
        elif self.function != "svd":
            a = a / self.size**0.5 + 2 * np.eye(self.size, dtype=np.float32)
        right = rng.standard_normal((self.batch, self.size, self.columns), np.float32)
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


#: How many matrices of how many rows, and columns of right-hand sides: of most functions, and of those that are quick.
SIZES = ((10_000, 8, 1), (1, 512, 1))
MORE_SIZES = ((50_000, 2, 2), (20_000, 4, 4), (2_000, 16, 16), (500, 32, 32), (100, 64, 64))
FUNCTIONS = {
    **dict.fromkeys(("inv", "solve", "cholesky"), (*SIZES, *MORE_SIZES)),
    **dict.fromkeys(("qr", "eigh", "svd"), (*SIZES, MORE_SIZES[-1])),
    "eigvalsh": MORE_SIZES,
    "det": (SIZES[0], (20_000, 3, 1), *MORE_SIZES),  # the large one is out of float32's range
}

for _function, _sizes in FUNCTIONS.items():
    for _batch, _size, _columns in _sizes:
        _attributes = {"batch": _batch, "size": _size, "columns": _columns, "function": _function}
        type("Matrices", (_Matrices,), _attributes, name=f"{_function}-{_size}" + f"x{_size}" * (_batch > 1))


class _LeastSquares(Workload):
    """The solutions alone: what else `lstsq` returns in smelt is computed when it is asked for."""

    table = "library"
    shape: ClassVar[tuple[int, ...]]
    rtol, atol = 1e-2, 1e-3

    @property
    def title(self) -> str:
        *batch, m, n = self.shape
        return f"lstsq, {''.join(f'{count:,} of ' for count in batch)}{m}×{n} f32"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal(self.shape, np.float32), rng.standard_normal((*self.shape[:-1], 1), np.float32)]

    def check(self, result: np.ndarray, *arrays: np.ndarray) -> None:
        a, b = (x.astype(np.float64) for x in arrays)
        np.testing.assert_allclose(result, np.linalg.pinv(a) @ b, rtol=self.rtol, atol=self.atol)

    def smelt(self, smelt: Any) -> Any:
        return lambda a, b: smelt.linalg.lstsq(a, b)[0]

    def torch(self, torch: Any) -> Any:
        return lambda a, b: torch.linalg.lstsq(a, b)[0]

    def jax(self, jax: Any) -> Any:
        solve = jax.numpy.linalg.lstsq
        one = lambda a, b: solve(a, b)[0]  # noqa: E731
        return jax.jit(one if len(self.shape) == 2 else jax.vmap(one))


for _shape in ((1000, 100), (100, 1000), (10_000, 3), (5_000, 8, 4), (100, 64, 32)):
    type("LeastSquares", (_LeastSquares,), {"shape": _shape}, name="lstsq-" + "x".join(map(str, _shape)))
