"""Options of windows: a number for each spatial axis."""

from __future__ import annotations

from typing import Any

from smelt.ir.errors import ArgumentTypeError, at_user_line, shown

__all__: list[str] = []


def each(name: str, what: str, value: Any, axes: int) -> tuple[int, ...]:
    """An option for each of a number of axes.

    Raises:
        ArgumentTypeError: neither an int nor as many of them.
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes
    if len(values) != axes or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        rule = "an int" if axes == 1 else f"an int or {axes} of them"
        raise ArgumentTypeError(at_user_line(f"smelt.nn.{name}: {what} must be {rule}, is {shown(value)}"))
    return values
