"""Products of a few rows with packed weights, as decoders with quantized weights have them: what they cost is reading
these once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .program import Program, check_close, numbers, wide

#: Elements with a scale and a bias.
GROUP = 64


class Quantized(Program, name="quantized-1-4"):
    """1×8192 by 8192² in packed numbers of 4 bits, bf16"""

    dtype = "bfloat16"
    rows: ClassVar[int] = 1
    bits: ClassVar[int] = 4

    @property
    def size(self) -> int:
        return 256 if self.tiny else 8192

    @property
    def least_bytes(self) -> int:  # type: ignore[override]
        return self.size**2 * self.bits // 8 + self.size**2 // GROUP * 4

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        n, bits = self.size, self.bits
        words = rng.integers(0, 2**32, (n, n * bits // 32), np.uint32)
        scales = numbers(rng, (n, n // GROUP), self.dtype)
        return [numbers(rng, (self.rows, n), self.dtype), words.view(np.int32), scales, -scales * 2 ** (bits - 1)]

    def expected(self, x: np.ndarray, words: np.ndarray, scales: np.ndarray, biases: np.ndarray) -> np.ndarray:
        shifts = np.arange(0, 32, self.bits, dtype=np.uint32)
        codes = (words.view(np.uint32)[..., None] >> shifts) & np.uint32(2**self.bits - 1)
        weights = codes.reshape(*scales.shape, GROUP) * wide(scales)[..., None] + wide(biases)[..., None]
        return wide(x) @ weights.reshape(self.size, self.size).T

    def check(self, result: Any, *arrays: np.ndarray) -> None:
        check_close(self, result, self.expected(*arrays))

    def smelt(self, smelt: Any) -> Any:
        def product(x: Any, words: Any, scales: Any, biases: Any) -> Any:
            return smelt.quantized_matmul(x, words.view(smelt.uint32), scales, biases, True, GROUP, self.bits)

        return smelt.compile(product)

    def _product(self, of: Any, dtype: Any, x: Any, words: Any, scales: Any, biases: Any, **place: Any) -> Any:
        shifts = of.arange(0, 32, self.bits, dtype=of.int32, **place)
        codes = (words[..., None] >> shifts) & (2**self.bits - 1)
        groups = codes.reshape(*scales.shape, GROUP)
        weights = dtype(groups) * scales[..., None] + biases[..., None]
        return x @ weights.reshape(self.size, self.size).T

    def torch(self, torch: Any) -> Any:
        return lambda x, *w: self._product(torch, lambda c: c.to(x.dtype), x, *w, device=x.device)

    def torch_compile(self, torch: Any) -> Any:
        return torch.compile(self.torch(torch), dynamic=False)

    def jax(self, jax: Any) -> Any:
        return jax.jit(lambda x, *w: self._product(jax.numpy, lambda c: c.astype(x.dtype), x, *w))


class Quantized8(Quantized, name="quantized-1-8"):
    """1×8192 by 8192² in packed numbers of 8 bits, bf16"""

    bits = 8


class QuantizedRows(Quantized, name="quantized-8-4"):
    """8×8192 by 8192² in packed numbers of 4 bits, bf16"""

    rows = 8
