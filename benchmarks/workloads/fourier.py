"""Fourier transforms: powers of two, primes, two axes, real and complex."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..workload import Workload


class _Fourier(Workload):
    """A function of `fft` along the last axes."""

    table = "library"
    shape: ClassVar[tuple[int, ...]]
    function: ClassVar[str]
    rtol, atol = 1e-3, 2e-2

    @property
    def title(self) -> str:
        return f"{self.function}, {'×'.join(map(str, self.shape))}"

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        x = rng.standard_normal(self.shape, np.float32)
        return [
            x if self.function.startswith("rfft") else (x + 1j * rng.standard_normal(self.shape)).astype(np.complex64)
        ]

    def expected(self, x: np.ndarray) -> np.ndarray:
        return getattr(np.fft, self.function)(x)

    def smelt(self, smelt: Any) -> Any:
        return getattr(smelt.fft, self.function)

    def mlx(self, mx: Any) -> Any:
        return getattr(mx.fft, self.function)

    def torch(self, torch: Any) -> Any:
        return getattr(torch.fft, self.function)

    def jax(self, jax: Any) -> Any:
        return jax.jit(getattr(jax.numpy.fft, self.function))


TRANSFORMS = {
    "fft-1024": ("fft", (1024, 1024)),
    "rfft-1024": ("rfft", (1024, 1024)),
    "fft-prime": ("fft", (256, 1009)),
    "fft-long": ("fft", (1 << 20,)),
    "rfft-long": ("rfft", (1 << 20,)),
    "fft-small": ("fft", (20_000, 16)),
    "fft-1000": ("fft", (300, 1000)),
    "irfft-1024": ("irfft", (1024, 513)),
    "fft2": ("fft2", (8, 256, 256)),
    "rfft2": ("rfft2", (8, 256, 256)),
}

for _name, (_function, _shape) in TRANSFORMS.items():
    type("Fourier", (_Fourier,), {"shape": _shape, "function": _function}, name=_name)
