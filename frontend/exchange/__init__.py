"""Programs of other frameworks: StableHLO and ONNX read as functions, functions written as StableHLO and as linalg."""

from __future__ import annotations

from .exported import to_linalg, to_stablehlo
from .imported import StablehloFunction, from_stablehlo
from .onnx import OnnxFunction, from_onnx

__all__ = ["OnnxFunction", "StablehloFunction", "from_onnx", "from_stablehlo", "to_linalg", "to_stablehlo"]
