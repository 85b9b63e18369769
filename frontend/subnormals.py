"""Whether compiled kernels of the CPU take subnormal numbers for zero."""

from __future__ import annotations

from smelt.ir.errors import ArgumentTypeError, at_user_line, shown
from smelt.ir.settings import settings

__all__ = ["set_flush_subnormals"]


def set_flush_subnormals(flush: bool) -> bool:
    """Let kernels of the CPU take subnormal operands for zero and give zeros for subnormal results; what held before.

    Some processors take many times as long for an operation with a subnormal number, below 1.2e-38 in float32 and
    2.2e-308 in float64; values that vanish over many steps, such as cotangents of a long scan, become such numbers.
    It is off at first, or as SMELT_FLUSH_SUBNORMALS says, and holds for all threads of the process and for programs
    that are there already. The threads of the caller keep their own mode: NumPy, functions on the host and LAPACK
    compute as before. A lazy array may be computed by kernels or by NumPy.

    Raises:
        ArgumentTypeError: not a bool.

    >>> import smelt
    >>> before = smelt.set_flush_subnormals(True)
    >>> smelt.compile(lambda x: x * 0.5)(smelt.array([1.5e-38, 3.0]))
    array([0, 1.5], dtype=float32)
    >>> smelt.set_flush_subnormals(before)
    True
    """
    if not isinstance(flush, bool):
        raise ArgumentTypeError(at_user_line(f"smelt.set_flush_subnormals: flush is True or False, not {shown(flush)}"))
    before, settings.flush_subnormals = settings.flush_subnormals, flush
    return before
