"""Which Python values can be attributes, by the field types of `op.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes
from .aval import Aval
from .errors import AttributeValueError, at_user_line, shown
from .parameters import Parameters
from .symbolic import has_symbol

if TYPE_CHECKING:
    from .op import Op


def _ints(value: Any) -> bool:
    return isinstance(value, (tuple, list, np.ndarray)) and all(_int(x) for x in value)


def _int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and -(2**63) <= int(value) < 2**63


#: Whether a Python value can be an attribute of a field type.
_CHECKS: dict[str, Any] = {
    "Ints": _ints,
    "Int": _int,
    "Float": lambda v: isinstance(v, (int, float, np.integer, np.floating)),
    "Bool": lambda v: isinstance(v, (bool, np.bool_)),
    "Str": lambda v: isinstance(v, str),
    "Element": lambda v: isinstance(v, dtypes.DType),
    "Number": lambda v: isinstance(v, (bool, int, float, complex, np.generic)),
    "Array": lambda v: isinstance(v, np.ndarray),
    "Types": lambda v: isinstance(v, tuple) and all(isinstance(a, Aval) for a in v),
    "Static": lambda v: isinstance(v, Parameters),
}


def checked(op: Op, attrs: dict[str, Any]) -> dict[str, Any]:
    """`attrs`, if they can be those of `op`. Raises AttributeValueError for unknown, missing and wrong ones."""
    require_kinds(op, attrs)
    if len(attrs) < len(op.attrs):
        for name, spec in op.attrs.items():
            if spec.required and name not in attrs:
                raise AttributeValueError(at_user_line(f"smelt.{op.name} needs the attribute {name}"))
    return attrs


def require_kinds(op: Op, attrs: dict[str, Any]) -> None:
    """Raise AttributeValueError for an attribute that `op` does not have, or whose value is of another kind."""
    for name, value in attrs.items():
        if name not in op.attrs:
            known = ", ".join(op.attrs) or "none"
            raise AttributeValueError(at_user_line(f"smelt.{op.name} has no attribute {name}; it has {known}"))
        if not _CHECKS[op.attrs[name].type](value) and not has_symbol(value):
            kind = DESCRIPTIONS[op.attrs[name].type]
            raise AttributeValueError(
                at_user_line(f"smelt.{op.name}: attribute {name} must be {kind}, is {shown(value)}")
            )


DESCRIPTIONS = {
    "Ints": "an array<i64: ...>",
    "Int": "an i64 integer",
    "Float": "an f64 number",
    "Bool": "true or false",
    "Str": "a string",
    "Element": "a type",
    "Number": "a number",
    "Array": "dense elements",
    "Types": "an array of tensor types",
    "Static": "a dictionary of numbers, texts, types and arrays of these",
}
