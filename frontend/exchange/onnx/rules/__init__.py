"""What each op of ONNX means, a file a family."""

from __future__ import annotations

from . import (
    control,
    elementwise,
    indexing,
    linear,
    normalization,
    quantization,
    recurrent,
    reductions,
    resampling,
    shapes,
    signals,
    windows,
)

__all__ = [
    "control",
    "elementwise",
    "indexing",
    "linear",
    "normalization",
    "quantization",
    "recurrent",
    "reductions",
    "resampling",
    "shapes",
    "signals",
    "windows",
]
