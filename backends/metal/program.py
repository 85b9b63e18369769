"""Programs as Metal text, for any GPU and on any machine."""

from __future__ import annotations

from typing import Any

from smelt.ir.errors import IRError

from ..device import Device
from ..gpu import compile as gpu_compile
from ..gpu.devices import GPUS
from ..gpu.library import DeviceLibrary
from ..gpu.pipeline import gpu_pipeline
from ..gpu.program import Program
from .apple.executable import AppleExecutable
from .emit import emit
from .simulated import SimulatedExecutable

#: What makes a module ready for `compile_module`.
PIPELINE = gpu_pipeline()


def compile_module(module: Any, gpu: str | None = None, library: DeviceLibrary | None = None) -> Program:
    """A program from a module that has been through `PIPELINE`.

    Args:
        gpu: a name in `smelt.backends.gpu.devices.GPUS`; None: apple8.
        library: what will make products and convolutions where the program runs; None: kernels of the text.

    Raises:
        IRError: there is no such GPU. SmeltError: the module was not fused.
    """
    if gpu is not None and gpu not in GPUS:
        raise IRError(f"there is no GPU description {gpu!r}; there are {', '.join(GPUS)}")
    return gpu_compile.compile_module(module, gpu or "apple8", emit, library)


def simulated(module: Any, device: Device) -> SimulatedExecutable:
    """A program of ``metal:sim``."""
    return gpu_compile.executable(SimulatedExecutable, module, device)


def apple(module: Any, device: Device) -> AppleExecutable:
    """A program of ``metal``."""
    return gpu_compile.executable(AppleExecutable, module, device)
