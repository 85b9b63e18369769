"""Attributes of ops as values that `json` writes, and back. A value without a form in JSON is an object whose one key
names its type."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import dtypes
from .aval import Aval
from .dtypes import DType
from .errors import InternalError
from .parameters import Parameters


class PlainError(InternalError, ValueError):
    """A value that has no plain form, or a form of no value."""


def plain_aval(aval: Aval) -> list[Any]:
    """``["f32", 2, 3]``."""
    return [aval.dtype.mlir, *aval.shape]


def aval_of(found: Sequence[Any]) -> Aval:
    dtype, *shape = found
    return Aval(tuple(map(int, shape)), dtypes.by_mlir(dtype))


def plain_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in attrs.items()}


def plain(value: Any) -> Any:
    """The form of an attribute, which tells all values apart that `static_key` does. Raises PlainError."""
    kind = type(value)
    if value is None or kind is int or kind is bool or kind is str:
        return value
    if kind is tuple:
        return [plain(item) for item in value]
    if kind is float:
        return {"float": struct.pack("<d", value).hex()}
    if kind is complex:
        return {"complex": struct.pack("<dd", value.real, value.imag).hex()}
    if kind is DType:
        return {"dtype": value.mlir}
    if kind is Aval:
        return {"aval": plain_aval(value)}
    if kind is Parameters:
        return {"parameters": plain_attrs(value)}
    if kind is np.ndarray and value.dtype.kind in "biufc":
        content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.str, list(value.shape), content]}
    raise PlainError(f"an attribute {kind.__name__} has no plain form")


def attrs_of(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value_of(value) for name, value in found.items()}


def value_of(found: Any) -> Any:
    """The attribute of a form. Raises PlainError or what Python raises for values of wrong types."""
    if isinstance(found, list):
        return tuple([value_of(item) for item in found])
    if not isinstance(found, dict):
        return found
    ((kind, value),) = found.items()
    if kind == "float":
        return struct.unpack("<d", bytes.fromhex(value))[0]
    if kind == "complex":
        return complex(*struct.unpack("<dd", bytes.fromhex(value)))
    if kind == "dtype":
        return dtypes.by_mlir(value)
    if kind == "aval":
        return aval_of(value)
    if kind == "parameters":
        return Parameters(attrs_of(value))
    if kind == "array":
        dtype, shape, content = value
        if np.dtype(dtype).hasobject:
            raise PlainError("an array of objects")
        return np.frombuffer(base64.b64decode(content), np.dtype(dtype)).reshape(shape)
    raise PlainError(f"an attribute {kind!r}")
