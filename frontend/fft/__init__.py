"""Fourier transforms under the names of `mlx.core.fft`, computed by pocketfft on the CPU, whatever the device.

All of them take arrays of any dtype. Of float64 and complex128 they work in these, of all others in float32 and
complex64. A transform of several axes is one call of the library an axis. The names of `norm` are those of NumPy:
"backward" divides the inverse transform by the number of elements n, "forward" the other one, "ortho" both by √n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.ir.listing import listed as _listed

from ..lacking import lacking as _lacking
from .cosines import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from .frames import istft, stft
from .frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from .hermitian import hfft, hfft2, hfftn, ihfft, ihfft2, ihfftn
from .transforms import (
    fft,
    fft2,
    fftn,
    ifft,
    ifft2,
    ifftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "idct",
    "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2",
    "irfftn", "istft", "rfft", "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip

__dir__ = _listed(globals())
if not TYPE_CHECKING:
    __getattr__ = _lacking(globals())
