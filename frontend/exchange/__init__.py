"""Programs of other frameworks: StableHLO read as functions, functions written as StableHLO and as linalg."""

from __future__ import annotations

from .exported import to_linalg, to_stablehlo
from .imported import StablehloFunction, from_stablehlo

__all__ = ["StablehloFunction", "from_stablehlo", "to_linalg", "to_stablehlo"]
