"""The Metal backend: kernels as Metal Shading Language, checked and run on any machine.

`program.compile_module` makes a program of a fused module; its text and manifest are the same on every machine.
`check` reads Metal text strictly, `simulator` runs it here, `apple` runs it on Apple's GPUs.
"""

from __future__ import annotations

import importlib.util
import sys

from smelt.ir.custom_call import Target, register_target

from ..device import Device, Lazy, register
from ..gpu.devices import GPUS


def _missing() -> str:
    """What keeps Apple's Metal from being reached from Python here."""
    is_here = sys.platform == "darwin" and importlib.util.find_spec("Metal") is not None
    return "" if is_here else "it needs macOS and the package pyobjc-framework-Metal"


_PIPELINE = Lazy("smelt.backends.metal.program:PIPELINE")
#: What no program needs, such as the strict check, is not among them.
_MODULES = (
    "smelt.backends.gpu", "smelt.backends.metal.emit", "smelt.backends.metal.apple", "smelt.backends.metal.simulator",
    "smelt.backends.metal.custom", "smelt.backends.metal.program", "smelt.backends.metal.simulated",
)  # fmt: skip
#: What a program can be shown as: kernel IR, Metal text, launches as JSON.
_STAGES = ("gpu", "msl", "manifest")
_LOWER = Lazy("smelt.backends.metal.program:compile_module")

#: Metal's kernels on this machine's CPU, thread by thread.
METAL_SIM = register(
    Device(
        "metal:sim",
        pipeline=_PIPELINE,
        executable=Lazy("smelt.backends.metal.program:simulated"),
        memory=Lazy("smelt.backends.metal.simulated:MEMORY"),
        target=GPUS["simulator"],
        modules=_MODULES,
        stages=_STAGES,
        lower=_LOWER,
        languages={"msl": Lazy("smelt.backends.metal.simulated:launch")},
        strided=Lazy("smelt.backends.gpu.strided:METAL_KERNELS"),
        portable=Lazy("smelt.backends.metal.simulated:PORTABLE"),
    )
)
METAL = register(
    Device(
        "metal",
        pipeline=_PIPELINE,
        executable=Lazy("smelt.backends.metal.program:apple"),
        memory=Lazy("smelt.backends.metal.apple.executable:MEMORY"),
        target=GPUS["apple8"],
        kind="gpu",
        rank=2,
        tiers=True,
        compiling=(0.1, 0.004),
        modules=_MODULES,
        stages=_STAGES,
        lower=_LOWER,
        languages={"msl": Lazy("smelt.backends.metal.apple.executable:launch")},
        strided=Lazy("smelt.backends.gpu.strided:METAL_KERNELS"),
        portable=Lazy("smelt.backends.metal.apple.executable:PORTABLE"),
        missing=_missing(),
        details=Lazy("smelt.backends.metal.apple.executable:details"),
    )
)

_KERNEL, _HOST = Lazy("smelt.backends.metal.custom.target:kernel"), Lazy("smelt.backends.metal.custom.target:host")
#: Kernels that users write.
METAL_KERNEL = register_target(
    Target(
        "smelt.metal_kernel",
        host=lambda call, *arrays: _HOST.load()(call, *arrays),
        kernels={"msl": lambda call: _KERNEL.load()(call)},
    )
)
