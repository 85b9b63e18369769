"""ONNX models as functions of arrays: reading them by the `onnx` package, a table of ops, what runs a graph."""

from __future__ import annotations

from .imported import OnnxFunction, from_onnx

__all__ = ["OnnxFunction", "from_onnx"]
