"""Fourier transforms under the names of `mlx.core.fft`, computed by pocketfft on the CPU, whatever the device.

All of them take arrays of any dtype. Of float64 and complex128 they work in these, of all others in float32 and
complex64. A transform of several axes is one call of the library an axis. The names of `norm` are those of NumPy:
"backward" divides the inverse transform by the number of elements n, "forward" the other one, "ortho" both by √n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir.listing import listed as _listed

from ..lacking import lacking as _lacking
from .frames import istft, stft
from .frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from .transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "istft", "rfft", "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip

__dir__ = _listed(globals())
if not TYPE_CHECKING:
    __getattr__ = _lacking(globals())
