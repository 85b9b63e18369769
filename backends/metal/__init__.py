"""The Metal backend: kernels as Metal Shading Language, checked and run on any machine.

`compile_module` makes a program of a fused module; its text and manifest are the same on every machine.
`check` reads Metal text strictly, `simulator` runs it here, `apple` runs it on Apple's GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.passes.call_graph import EXPAND

if TYPE_CHECKING:
    from ..gpu.program import Program

#: What makes a module ready for `compile_module`. Metal has no float64; what libraries compute, and ops of no
#: kind, have no kernels.
PIPELINE = (
    f"{EXPAND},canonicalize,cse,dce,"
    "place{dtypes=f64 kinds=library,opaque},fuse{contractions=true max-buffers=31},plan-buffers"
)


def compile_module(module: Any, gpu: str = "apple8") -> Program:
    """A program from a module that has been through `PIPELINE`; see `program.compile_module`."""
    from ..gpu import program
    from .emit import emit

    return program.compile_module(module, gpu, emit)
