"""Branches and loops over a batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.errors import IRError


def push(
    module: Any, b: Builder, op: OpView, operands: Sequence[Value], dims: Sequence[int | None], size: int
) -> tuple[Sequence[Value], Sequence[int | None]]:
    raise IRError(f"{op.name} has no rule here yet")
