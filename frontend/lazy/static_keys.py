"""Keys of values that are part of a program: equal for values of the same type and bits, and for no others.

Python calls more values equal than a program may share: 0.0 and -0.0, 1 and True, ``Decimal("1.0")`` and
``Decimal("1.00")``, dataclasses that compare some of their fields. And some equal ones it calls different: NaN.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import os
import struct
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.ir.dtypes import DType
from smelt.ir.errors import TreeError
from smelt.ir.symbolic import Symbol

__all__: list[str] = []


def static_key(x: Any) -> Any:
    """A hashable that is equal for values of the same type and bits alone.

    Functions, classes, modules and objects without an equality of their own stand for themselves. A container has
    the keys of what it holds, an object with an equality of its own that of its attributes too.

    Raises:
        TreeError: x, or something in it, is not hashable.

    >>> static_key(0.0) == static_key(-0.0), static_key(float("nan")) == static_key(float("nan"))
    (False, True)
    """
    make = _KEYS.get(type(x))
    return make(x) if make is not None else _key_of_other(x)


def _itself(x: Any) -> Any:
    return (type(x), x)


def _float(x: float) -> Any:
    return (float, float.__repr__(x) if x == x else struct.pack("d", x))


def _complex(x: complex) -> Any:
    return (complex, complex.__repr__(x) if x == x else struct.pack("dd", x.real, x.imag))


def _sequence(x: Any) -> Any:
    return (type(x), *map(static_key, x))


def _set(x: Any) -> Any:
    return (type(x), frozenset(map(static_key, x)))


def _mapping(x: Any) -> Any:
    return (type(x), *((static_key(k), static_key(v)) for k, v in dict.items(x)))


def _numpy(x: Any) -> Any:
    if x.dtype.hasobject:
        raise TreeError(f"{type(x).__name__} of Python objects is not hashable")
    if x.dtype == np.longdouble or x.dtype == np.clongdouble:  # its padding is arbitrary
        return (type(x), x.shape, *map(repr, np.ravel(x)))
    return (type(x), x.dtype, x.shape, x.tobytes())


def _method(x: Any) -> Any:
    return (type(x), Same(x.__self__), x.__func__)


def _text(x: Any) -> Any:
    return (type(x), repr(x))


_KEYS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((type(None), bool, int, str, bytes, DType, types.FunctionType, type, types.ModuleType), _itself),
    float: _float,
    complex: _complex,
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
    set: _set,
    frozenset: _set,
    bytearray: lambda x: (bytearray, bytes(x)),
    np.ndarray: _numpy,
    range: lambda x: (range, x.start, x.stop, x.step),
    slice: lambda x: (slice, static_key(x.start), static_key(x.stop), static_key(x.step)),
    types.MethodType: _method,
    functools.partial: lambda x: (functools.partial, static_key(x.func), static_key(x.args), static_key(x.keywords)),
    **dict.fromkeys((datetime.datetime, datetime.date, datetime.time, datetime.timedelta), _text),
}


class Same:
    """An object by its identity. It is held, so that no other takes its place."""

    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)


def _key_of_other(x: Any) -> Any:
    kind = type(x)
    if isinstance(x, (np.generic, np.ndarray)):
        return _numpy(x)
    if isinstance(x, enum.Enum):
        return (kind, Same(x)) if x.name is not None else (kind, static_key(x.value))
    if isinstance(x, type):
        return (kind, Same(x))
    if isinstance(x, os.PathLike) and kind.__module__.startswith("pathlib"):
        return (kind, os.fspath(x))  # it stores its hash in itself
    for base in kind.__mro__:
        if base in (int, str, bytes):  # with attributes, perhaps, or another equality
            return (kind, base.__getnewargs__(x), _attributes(x))
        if base in _KEYS:
            return (kind, _KEYS[base](x), _attributes(x))
        if base.__name__ == "Decimal" and base.__module__ == "decimal":  # a module that few programs load
            return (kind, x.as_tuple(), _attributes(x))
    if dataclasses.is_dataclass(kind):
        fields = tuple([static_key(getattr(x, f.name, None)) for f in dataclasses.fields(kind)])
        return (kind, fields, _attributes(x)) if kind.__eq__ is not object.__eq__ else (kind, Same(x))
    if kind.__eq__ is object.__eq__:
        return (kind, Same(x))
    try:
        hash(x)
    except TypeError:
        raise TreeError(f"{kind.__name__} is not hashable") from None
    return (kind, x, _attributes(x))


def _attributes(x: Any) -> Any:
    held = getattr(x, "__dict__", None)
    return _mapping(held) if held else ()


#: Types of tuples of which equality is enough: the elements are integers.
_integers: set[tuple[type, ...]] = set()


def attribute_key(x: Any) -> Any:
    """`static_key` of an attribute of an op: almost always an int, a tuple of ints or a dtype."""
    kind = type(x)
    if kind is tuple:
        kinds = tuple(map(type, x))
        if kinds in _integers:
            return x
        if set(kinds) <= {int} and len(kinds) < 100:
            _integers.add(kinds)
            return x
        return (kind, *map(attribute_key, x))
    if kind is int or kind is DType or kind is Symbol:
        return x
    return static_key(x)
