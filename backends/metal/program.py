"""Programs as Metal text, for any GPU and on any machine."""

from __future__ import annotations

from typing import Any

from smelt.ir.errors import IRError

from ..gpu import program
from ..gpu.devices import ATTENTION_FEATURES, GPUS, GRADIENT_FEATURES, METAL
from ..gpu.library import DeviceLibrary
from ..gpu.program import Program
from ..pipelines import SIMPLIFY
from .emit import emit

#: What makes a module ready for `compile_module`. Metal has neither float64 nor complex128; what libraries compute,
#: and ops of no kind, have no kernels.
PIPELINE = (
    f"{SIMPLIFY},select,recompute-attention{{features={GRADIENT_FEATURES}}},split-sums,dce,"
    "place{dtypes=f64,complex128 kinds=library,opaque kernels=msl},"
    f"loops{{max-buffers={METAL.max_buffers}}},"
    f"fuse{{contractions=true max-buffers={METAL.max_buffers} shared-rows=true flops-per-byte=4 "
    f"attention={ATTENTION_FEATURES} chains=true}},"
    "plan-buffers"
)
#: The same for NVIDIA GPUs, which have float64. Their simdgroup matrices of 32 bits are many instructions, which take
#: long to compile: there products of attention's gradient are left to a library.
PIPELINE_WITH_FLOAT64 = PIPELINE.replace("f64,", "", 1).replace("attention{", "attention{half=true ", 1)


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
    return program.compile_module(module, gpu or "apple8", emit, library)
