"""From modules to programs of the device ``cuda``."""

from __future__ import annotations

from typing import Any

from smelt.ir.settings import settings

from ..device import Device
from ..gpu import compile as gpu_compile
from ..gpu.program import Program
from ..metal.program import compile_module
from . import installed
from .executable import CudaExecutable


def lowered(module: Any, gpu: str | None = None) -> Program:
    """A program from a module that has been through the device's passes, with what is installed here."""
    return compile_module(module, gpu, installed.LIBRARY if settings.libraries else None)


def executable(module: Any, device: Device) -> CudaExecutable:
    """A program of ``cuda``."""
    return gpu_compile.executable(CudaExecutable, module, device)
