"""What each op of PyTorch means, a file a family."""

from __future__ import annotations

from . import (
    backward,
    control,
    elementwise,
    indexing,
    linalg,
    linear,
    normalization,
    random,
    recurrent,
    reductions,
    shapes,
    signals,
    sorting,
    windows,
)

__all__ = [
    "backward",
    "control",
    "elementwise",
    "indexing",
    "linalg",
    "linear",
    "normalization",
    "random",
    "recurrent",
    "reductions",
    "shapes",
    "signals",
    "sorting",
    "windows",
]
