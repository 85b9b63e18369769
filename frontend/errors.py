"""The errors that smelt raises, to be caught by their names.

All of them are a `SmeltError`, and also the builtin that programs for Python and NumPy expect: a `ShapeError` is a
ValueError, an `OutOfMemoryError` a MemoryError. What a user's function raises, and the file system's own OSError, pass
through as they are.

>>> import smelt
>>> try:
...     smelt.zeros((2, 3)) + smelt.zeros(2)
... except smelt.errors.ShapeError as error:
...     print(isinstance(error, ValueError))
True
"""

from typing import TYPE_CHECKING

from smelt.ir import locks
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    AxisError,
    BufferExportError,
    CustomCallError,
    DeviceError,
    DistributedError,
    DonatedError,
    DTypeError,
    FileFormatError,
    IndexOutOfRangeError,
    IndexShapeError,
    IRError,
    KernelError,
    LibraryError,
    MetalCheckError,
    MissingMemberError,
    MissingNameError,
    MissingPackageError,
    NotDifferentiableError,
    OutOfMemoryError,
    PassError,
    PipelineError,
    ProfileError,
    RuleError,
    SettingError,
    ShapeError,
    SmeltError,
    TraceError,
    TreeError,
    UndefinedMethodError,
)
from smelt.ir.listing import listed
from smelt.ir.mlir import BindingsError

__all__ = [
    "ArgumentTypeError", "AttributeValueError", "AxisError", "BindingsError", "BufferExportError", "CustomCallError",
    "DTypeError", "DeviceError", "DistributedError", "DonatedError", "EmitError", "FileFormatError", "IRError",
    "IndexOutOfRangeError", "IndexShapeError", "KernelError", "LibraryError", "MetalCheckError", "MetalCompileError",
    "MetalRunError", "MissingMemberError", "MissingNameError", "MissingPackageError", "NotDifferentiableError",
    "OutOfMemoryError", "PassError", "PipelineError", "ProfileError", "RuleError", "SettingError", "ShapeError",
    "SimulatorError", "SmeltError", "TraceError", "TreeError", "UndefinedMethodError",
]  # fmt: skip

__dir__ = listed(globals())

#: Errors of what compiles for Metal, and where each stands: whoever catches another one does not load that.
_OF_METAL = {
    "EmitError": "smelt.backends.metal.emit.types",
    "MetalCompileError": "smelt.backends.metal.apple.errors",
    "MetalRunError": "smelt.backends.metal.apple.errors",
    "SimulatorError": "smelt.backends.metal.simulator.brackets",
}

if TYPE_CHECKING:
    from smelt.backends.metal.apple.errors import MetalCompileError, MetalRunError
    from smelt.backends.metal.emit.types import EmitError
    from smelt.backends.metal.simulator.brackets import SimulatorError
else:

    def __getattr__(name):
        if name not in _OF_METAL:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(locks.loaded(_OF_METAL[name]), name)
