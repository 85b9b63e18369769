"""The CPU backend: kernels by MLIR's ExecutionEngine, matrix products by a BLAS."""

from smelt.passes.call_graph import EXPAND

from .parts import KernelInfo as KernelInfo
from .program import Program as Program
from .program import compile_module as compile_module

#: What makes a module ready for `compile_module`.
PIPELINE = f"{EXPAND},canonicalize,cse,dce,fuse,plan-buffers"
