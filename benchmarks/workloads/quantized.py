"""Products with quantized weights: of one token, of a few, of a prompt."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..workload import Workload

SIZE, GROUP = 4096, 64


class _Quantized(Workload):
    """x · wᵀ, or x · w, where w is 4096×4096 in groups of 64 elements with a scale and a bias each."""

    table = "library"
    rows: ClassVar[int]
    bits: ClassVar[int]
    transpose: ClassVar[bool] = True
    rtol, atol = 1e-3, 1e-3

    @property
    def title(self) -> str:
        along = "" if self.transpose else ", not transposed"
        return f"quantized product, {self.rows}×{SIZE} by {SIZE}², {self.bits} bits{along}"

    @property
    def least_bytes(self) -> int:
        return SIZE * SIZE * self.bits // 8 + SIZE * SIZE // GROUP * 8

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        x = rng.standard_normal((self.rows, SIZE), np.float32)
        w = rng.integers(0, 2**32, (SIZE, SIZE * self.bits // 32), np.uint32)
        scales = (rng.uniform(0.5, 1, (SIZE, SIZE // GROUP)) * 2.0**-self.bits / SIZE**0.5).astype(np.float32)
        return [x, w, scales, -scales * 2 ** (self.bits - 1)]

    def expected(self, x: np.ndarray, w: np.ndarray, scales: np.ndarray, biases: np.ndarray) -> np.ndarray:
        shifts = np.arange(0, 32, self.bits, dtype=np.uint32)
        codes = ((w[..., None] >> shifts) & np.uint32(2**self.bits - 1)).reshape(SIZE, SIZE // GROUP, GROUP)
        weights = (codes * scales[..., None] + biases[..., None]).reshape(SIZE, SIZE).astype(np.float32)
        return x @ (weights.T if self.transpose else weights)

    def _product(self, module: Any) -> Any:
        return lambda x, w, scales, biases: module.quantized_matmul(
            x, w, scales, biases, transpose=self.transpose, group_size=GROUP, bits=self.bits
        )

    def smelt(self, smelt: Any) -> Any:
        return smelt.compile(self._product(smelt))

    def mlx(self, mx: Any) -> Any:
        return mx.compile(self._product(mx))

    def jax(self, jax: Any) -> Any:
        jnp = jax.numpy

        def product(x: Any, w: Any, scales: Any, biases: Any) -> Any:
            shifts = jnp.arange(0, 32, self.bits, dtype=jnp.uint32)
            codes = (w[..., None] >> shifts) & jnp.uint32(2**self.bits - 1)
            codes = codes.reshape(SIZE, SIZE // GROUP, GROUP).astype(jnp.float32)
            weights = (codes * scales[..., None] + biases[..., None]).reshape(SIZE, SIZE)
            return x @ (weights.T if self.transpose else weights)

        return jax.jit(product)


for _rows in (1, 8, 256):
    for _bits in (4, 8):
        type("Quantized", (_Quantized,), {"rows": _rows, "bits": _bits}, name=f"quantized-{_rows}-{_bits}")
for _bits in (4, 8):
    _along = {"rows": 1, "bits": _bits, "transpose": False}
    type("Quantized", (_Quantized,), _along, name=f"quantized-1-{_bits}-along")
