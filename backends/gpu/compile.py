"""From a module to a program of a GPU."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from smelt.ir import mlir

from ..device import Device
from ..strided_rows import layout_of
from .devices import GPUS, Gpu
from .executable import GpuExecutable
from .fused import FusedProgram
from .library import DeviceLibrary
from .program import Emit, Program
from .strided import StridedProgram

Kind = TypeVar("Kind", bound=GpuExecutable)


def executable(kind: type[Kind], module: Any, device: Device) -> Kind:
    """What runs a module that has been through the pipeline, and can be shown at the device's stages."""
    assert device.lower is not None, "a GPU's programs are made before they are loaded"
    program: Program = device.lower(module, device.target.name)
    found = kind(program, device)
    found.texts |= {stage: functools.partial(program.as_text, stage) for stage in device.stages}
    return found


def compile_module(module: Any, gpu: Gpu | str, emit: Emit, library: DeviceLibrary | None = None) -> Program:
    """A program from a module that has been through the pipeline up to ``fuse,plan-buffers``, or of a kernel without
    sizes (`smelt.ir.strided`).

    Args:
        gpu: for which schedules are made, by its name in `GPUS`.
        emit: makes text of kernel IR.
        library: what will make products and convolutions where the program runs; None: kernels of the text.

    Raises:
        SmeltError: the module was not fused, or has no function @main.
    """
    if isinstance(gpu, str):
        gpu = GPUS[gpu]
    with mlir.lock:
        layout = layout_of(module)
        if layout is not None:
            return StridedProgram(module, gpu, emit, layout)
        return FusedProgram(module, gpu, emit, library)
