"""What the array API standard asks of a namespace, and of an array besides its operators and functions."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, at_user_line, shown
from smelt.runtime.device import Device, default_device

from ..lazy.arrays import StreamOrDevice, array, wrap
from ..lazy.streams import check_stream
from .arithmetic import divmod as divmod_of
from .dtypes import isdtype
from .rounding import round as round_of

__all__: list[str] = []

#: The version of the standard that this follows, and those that it contains.
VERSION = "2025.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)
#: Axes that NumPy's arrays may have, before its version 2.
_MOST_AXES = 32


class NamespaceInfo:
    """What `smelt.__array_namespace_info__()` returns: what this namespace can do, by the array API standard.

    >>> import smelt
    >>> smelt.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """

    def capabilities(self) -> dict[str, bool | int]:
        """Masks are indices, results may have shapes that depend on values (but not inside of traces)."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MOST_AXES}

    def default_device(self) -> Device:
        """The device on which this thread evaluates arrays."""
        return default_device()

    def default_dtypes(self, *, device: StreamOrDevice = None) -> dict[str, DType]:
        """The dtypes that functions have where nothing says another."""
        check_stream(device)
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.complex64,
            "integral": dtypes.int32,
            "indexing": dtypes.int32,
        }

    def dtypes(self, *, device: StreamOrDevice = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes by their names in the standard; of a kind (see `smelt.isdtype`) or of several."""
        check_stream(device)
        known = {d.name: d for d in dtypes.ALL if d not in (dtypes.float16, dtypes.bfloat16)}
        return {name: d for name, d in known.items() if kind is None or isdtype(d, kind)}

    def devices(self) -> list[Device]:
        """The devices that arrays can be evaluated on."""
        return [default_device()]


def array_namespace_info() -> NamespaceInfo:
    """What this namespace can do, by the array API standard: devices, dtypes, capabilities."""
    return NamespaceInfo()


def array_namespace(self: array, *, api_version: str | None = None) -> ModuleType:
    """The module with the functions of the array API.

    Raises:
        AttributeValueError: a version of the standard that smelt does not know.
    """
    if api_version is not None and api_version not in _VERSIONS:
        message = f"smelt: version {shown(api_version)} of the array API standard; there are {', '.join(_VERSIONS)}"
        raise AttributeValueError(at_user_line(message))
    return sys.modules["smelt"]


def device_of(self: array) -> Device:
    """The device on which this thread would evaluate it. The same array may be used on any."""
    return default_device()


def to_device(self: array, device: StreamOrDevice, /, *, stream: StreamOrDevice = None) -> array:
    """The same array: it may be used on any device, and goes there when a program on that device reads it.

    Raises:
        DeviceError: there is no such device.

    >>> import smelt
    >>> smelt.array([1, 2]).to_device(smelt.cpu)
    array([1, 2], dtype=int32)
    """
    check_stream(device)
    check_stream(stream)
    return wrap(self._ref)


def rounded(self: array, ndigits: int | None = None, /) -> array:
    """``round(x)`` and ``round(x, n)``; see `smelt.round`."""
    return round_of(self, 0 if ndigits is None else ndigits)


def divided(self: array, other: Any) -> tuple[array, array]:
    """``divmod(x, y)``; see `smelt.divmod`."""
    return divmod_of(self, other)


def divided_by(self: array, other: Any) -> tuple[array, array]:
    """``divmod(y, x)``; see `smelt.divmod`."""
    return divmod_of(other, self)
