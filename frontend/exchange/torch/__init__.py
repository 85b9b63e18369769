"""Programs of PyTorch as functions of arrays: exported by `torch.export`, run op by op by a table of rules."""

from __future__ import annotations

from .imported import TorchFunction, from_torch

__all__ = ["TorchFunction", "from_torch"]
