"""Fourier transforms by cuFFT: of rows that lie one behind the other. Numbers are those of ``cufft.h``."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import DeviceError

from ..gpu.library import LibraryCall
from . import driver, libraries
from .libraries import load, opened

#: cufftType, and the function that executes it, by the dtypes of operand and result.
_TYPES = {
    ("complex64", "complex64"): (0x29, "cufftExecC2C"),
    ("float32", "complex64"): (0x2A, "cufftExecR2C"),
    ("complex64", "float32"): (0x2C, "cufftExecC2R"),
    ("complex128", "complex128"): (0x69, "cufftExecZ2Z"),
    ("float64", "complex128"): (0x6A, "cufftExecD2Z"),
    ("complex128", "float64"): (0x6C, "cufftExecZ2D"),
}
_FORWARD, _INVERSE = -1, 1
OPS = ("fft", "rfft", "irfft")


class Library(libraries.Library[LibraryCall, "Plan"]):
    """cuFFT on the GPU. See `libraries.Library`."""

    exhausted = (2,)

    def _planned(self, call: LibraryCall) -> Plan | None:
        try:
            return Plan(self, call)
        except DeviceError:  # more elements than it knows
            return None


class Plan(libraries.Plan):
    """How transforms are made. See `smelt.backends.cuda.installed.Plan`.

    Raises:
        DeviceError, OutOfMemoryError: from the library.
    """

    def __init__(self, library: Library, call: LibraryCall):
        self._library = library
        (x,), (y,) = call.operands, call.results
        kind, self._name = _TYPES[x.dtype, y.dtype]
        inverse = dict(call.attributes).get("inverse")
        self._direction = () if inverse is None else (_INVERSE if inverse else _FORWARD,)
        n, batch = max(x.shape[-1], y.shape[-1]), math.prod(x.shape[:-1])
        made, size = ctypes.c_int(), ctypes.c_size_t()
        library.call("cufftCreate", ctypes.byref(made))
        self._plan = made
        library.call("cufftSetAutoAllocation", made, 0)
        rows, lengths = ctypes.c_longlong(batch), (ctypes.c_longlong * 1)(n)
        one, apart = ctypes.c_longlong(1), [ctypes.c_longlong(extent) for extent in (x.shape[-1], y.shape[-1])]
        library.call(
            "cufftMakePlanMany64", made, 1, lengths, None, one, apart[0], None, one, apart[1], kind, rows,
            ctypes.byref(size),
        )  # fmt: skip
        self.workspace = size.value

    def run(self, addresses: Sequence[int], stream: ctypes.c_void_p | None = None) -> None:
        """See `smelt.backends.cuda.installed.Plan`."""
        driver.enter()
        places = list(map(ctypes.c_void_p, addresses))
        library = self._library
        with library.guard:
            library.call("cufftSetStream", self._plan, stream)
            if self.workspace:
                library.call("cufftSetWorkArea", self._plan, places.pop())
            x, y, *laid = places
            library.call(self._name, self._plan, laid[0] if laid else x, y, *self._direction)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and hasattr(self, "_plan") and not driver.is_forked():
            self._library.status("cufftDestroy", self._plan)


@functools.cache
def library() -> Library | None:
    """cuFFT; None where it is not installed, or does not work with the driver."""
    return opened(Library, load("cufft"))
