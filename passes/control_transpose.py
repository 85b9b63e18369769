"""Transposes of branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.errors import IRError


def pull(
    module: Any, b: Builder, op: OpView, cotangents: Sequence[Value | None], operands: Sequence[Value],
    linear: Sequence[bool],
) -> Sequence[Value | None]:
    raise IRError(f"{op.name} has no rule here yet")
