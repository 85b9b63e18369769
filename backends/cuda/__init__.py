"""The Metal texts on NVIDIA GPUs: compiled by NVRTC, launched by the driver. Asked for by name, never the default."""

from __future__ import annotations

import os
import sys

from .. import dlpack
from ..device import Device, Lazy, register
from ..gpu.devices import GPUS


def _missing() -> str:
    """What keeps an NVIDIA GPU from being reached here. Loads nothing."""
    if sys.platform == "win32":
        found = os.path.exists(os.path.join(os.environ.get("SYSTEMROOT", ""), "System32", "nvcuda.dll"))
    else:
        found = any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version")))
    return "" if found else "it needs an NVIDIA GPU and its driver"


CUDA = register(
    Device(
        "cuda",
        pipeline=Lazy("smelt.backends.cuda.pipeline:PIPELINE"),
        executable=Lazy("smelt.backends.cuda.compile:executable"),
        memory=Lazy("smelt.backends.cuda.memory:MEMORY"),
        target=GPUS["nvidia"],
        kind="gpu",
        tiers=True,
        compiling=(0.4, 0.004),
        modules=(
            "smelt.backends.gpu", "smelt.backends.metal.emit", "smelt.backends.metal.program", "smelt.backends.cuda",
        ),
        stages=("gpu", "msl", "manifest"),
        lower=Lazy("smelt.backends.cuda.compile:lowered"),
        languages={"msl": Lazy("smelt.backends.cuda.executable:launch")},
        strided=Lazy("smelt.backends.cuda.strided:KERNELS"),
        portable=Lazy("smelt.backends.cuda.executable:PORTABLE"),
        warm=Lazy("smelt.backends.cuda.libraries:warm"),
        missing=_missing(),
        details=Lazy("smelt.backends.cuda.executable:details"),
    )
)  # fmt: skip
dlpack.takers[dlpack.CUDA] = Lazy("smelt.backends.cuda.memory:taken")
