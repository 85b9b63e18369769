"""From modules to programs of the device ``cpu``."""

from __future__ import annotations

from typing import Any

from smelt.ir.errors import IRError, shown

from ..device import Device
from ..strided_rows import layout_of
from . import CPU, strided
from .executable import CpuExecutable
from .program import Program, compile_module


def executable(module: Any, device: Device) -> CpuExecutable:
    """A program of a module that has been through the pipeline, or of a kernel without sizes."""
    layout = layout_of(module)
    return CpuExecutable(compile_module(module) if layout is None else strided.compile_module(module, layout), device)


def lower(module: Any, target: str | None = None) -> Program:
    """A program to look at. There is one target: this machine. Raises IRError for another."""
    if target not in (None, CPU.target.name):
        raise IRError(f"programs of the device cpu have one target, {CPU.target.name}, not {shown(target)}")
    return compile_module(module)
