"""What goes wrong on Apple GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.errors import DeviceError


class MetalCompileError(DeviceError):
    """Metal's compiler refused a text, or a kernel cannot be launched as its manifest says."""


class MetalRunError(DeviceError):
    """A command buffer failed, or a program was given the wrong blocks."""


def described(error: Any) -> str:
    """What an NSError says."""
    if error is None:
        return "Metal gives no reason"
    return f"{error.localizedDescription()} ({error.domain()} {error.code()})"


def listed(entries: Sequence[str]) -> str:
    shown = ", ".join(entries[:6]) + (f" and {len(entries) - 6} more" if len(entries) > 6 else "")
    return f"the kernel {shown}" if len(entries) == 1 else f"the kernels {shown}"
