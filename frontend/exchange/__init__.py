"""Programs of other frameworks: StableHLO, ONNX and PyTorch read as functions, functions written as StableHLO and as
linalg."""

from __future__ import annotations

from .exported import to_linalg, to_stablehlo
from .imported import StablehloFunction, from_stablehlo
from .onnx import OnnxFunction, from_onnx
from .torch import TorchFunction, from_torch

__all__ = [
    "OnnxFunction", "StablehloFunction", "TorchFunction", "from_onnx", "from_stablehlo", "from_torch", "to_linalg",
    "to_stablehlo",
]  # fmt: skip
