"""Forward mode through branches and loops, and the split into primal and tangent that reverse mode needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.errors import IRError


def push(
    module: Any, b: Builder, op: OpView, operands: Sequence[Value], tangents: Sequence[Value | None], linearize: bool
) -> tuple[Sequence[Value], Sequence[Value | None]]:
    raise IRError(f"{op.name} has no rule here yet")
