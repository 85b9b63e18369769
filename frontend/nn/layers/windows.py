"""Options of windows: a number for each spatial axis."""

from __future__ import annotations

from typing import Any

from smelt.ir.errors import ArgumentTypeError, at_user_line, shown
from smelt.ir.symbolic import index

from ...lazy.arguments import integer

__all__: list[str] = []


def each(name: str, what: str, value: Any, axes: int, least: int | None = None) -> tuple[int, ...]:
    """An option for each of a number of axes, which is at least `least`.

    Raises:
        ArgumentTypeError: neither an int nor as many of them. AttributeValueError: it is too small.
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes
    if len(values) == axes and not any(isinstance(v, bool) for v in values):
        try:
            found = tuple(map(index, values))  # NumPy's ints, too
        except (TypeError, ValueError):
            pass
        else:
            return tuple(integer(f"nn.{name}", what, v, least) for v in found)
    rule = "an int" if axes == 1 else f"an int or {axes} of them"
    raise ArgumentTypeError(at_user_line(f"smelt.nn.{name}: {what} must be {rule}, is {shown(value)}"))


def as_attribute(values: tuple[int, ...], given: Any = None) -> Any:
    """What a layer shows of such an option, as MLX does: an int for one axis, or where an int was given."""
    return values[0] if len(values) == 1 or (given is not None and not isinstance(given, (tuple, list))) else values
