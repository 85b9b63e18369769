"""Static parameters of a call: names with plain values, which MLIR has as attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .dtypes import DType
from .errors import AttributeValueError, shown


class Parameters(Mapping[str, Any]):
    """An immutable mapping of names to bools, numbers, texts, dtypes, and tuples of these, by name.

    Two are equal where values have the same types, too: 1, 1.0 and True differ, as do 0.0 and -0.0.

    Raises:
        AttributeValueError: a value of another kind, or an integer beyond 64 bits.

    >>> Parameters({"scale": 2.0, "axes": [0, 1]})
    Parameters({'axes': (0, 1), 'scale': 2.0})
    """

    __slots__ = ("_hash", "_key", "_values")

    def __init__(self, values: Mapping[str, Any]):
        for name in values:
            if not isinstance(name, str):
                raise AttributeValueError(f"parameters have names, not {shown(name)}")
        self._values = {name: _plain(name, values[name]) for name in sorted(values)}
        self._key = tuple([(name, _key(value)) for name, value in self._values.items()])
        self._hash = hash(self._key)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Parameters) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Parameters({self._values})"


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)) and -(2**63) <= int(value) < 2**63:
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (complex, np.complexfloating)):
        return complex(value)
    if isinstance(value, (tuple, list)):
        return tuple([_plain(name, item) for item in value])
    if isinstance(value, (str, DType)):
        return value
    raise AttributeValueError(
        f"parameter {name} must be a bool, a number (integers of 64 bits), a text, a dtype or a tuple of these, is "
        f"{shown(value)}"
    )


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_key(item) for item in value])
    return type(value).__name__, repr(value) if isinstance(value, (float, complex)) else value
