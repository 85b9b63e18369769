"""The CPU backend: kernels by MLIR's ExecutionEngine, large matrix products by a BLAS."""

from ..buffer import HostMemory
from ..device import Device, Lazy, Target, register

CPU = register(
    Device(
        "cpu",
        pipeline=Lazy("smelt.backends.cpu.program:PIPELINE"),
        executable=Lazy("smelt.backends.cpu.compile:executable"),
        memory=HostMemory(),
        target=Target("cpu"),
        rank=1,
        tiers=True,
        modules=("smelt.backends.cpu",),
        stages=("kernel", "llvm"),
        lower=Lazy("smelt.backends.cpu.compile:lower"),
        portable=Lazy("smelt.backends.cpu.portable:PORTABLE"),
    )
)
