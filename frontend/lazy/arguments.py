"""Checks of arguments that are no arrays: integers, numbers, dtypes, streams. Errors name function and argument."""

from __future__ import annotations

import itertools
import operator
from typing import Any, TypeGuard

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
    SmeltError,
    at_user_line,
    shown,
)
from smelt.ir.symbolic import Symbol, index

from .graph import Handle, state, varies
from .weak import exact_number

__all__: list[str] = []

#: No extent or count lies beyond.
MOST = 2**63 - 1
#: What is no list may have so many entries: no axes, extents or arrays are more.
_MOST_ENTRIES = 1 << 20


def integer(name: str, what: str, value: Any, least: int | None = None) -> int:
    """`value` as an int, which is at least `least`.

    Raises:
        ArgumentTypeError: it is no integer. AttributeValueError: it is too small, or does not fit int64.
    """
    try:
        found = index(value)
    except TypeError:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be an int, is {shown(value)}")) from None
    if least is not None and found < least:
        rule = "must not be negative" if least == 0 else f"must be at least {least}"
        raise AttributeValueError(at_user_line(f"smelt.{name}: {what} {rule}, is {shown(found)}"))
    if not -MOST <= found <= MOST:
        raise AttributeValueError(at_user_line(f"smelt.{name}: {what} {shown(found)} does not fit int64"))
    return found


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer of Python or NumPy, where something else may be given, too."""
    return isinstance(value, (int, np.integer))


def is_list(value: Any) -> bool:
    """Whether a value is a list, a tuple or a NumPy array that has an axis, where something else may be given, too."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def entries(value: Any) -> tuple[Any, ...]:
    """What a container or an iterator has.

    Raises:
        ArgumentTypeError: it is no such thing, fails to tell, has too many, or does not end.
    """
    if type(value) in (tuple, list):
        return tuple(value)
    if issubclass(type(value), (tuple, list)):  # a stand-in of tests only says that it is one
        return _own_entries(value)
    try:
        if operator.length_hint(value) <= _MOST_ENTRIES:
            found = tuple(itertools.islice(value, _MOST_ENTRIES + 1))
            if len(found) <= _MOST_ENTRIES:
                return found
    except (SmeltError, MemoryError):
        raise
    except Exception as error:
        raise ArgumentTypeError(f"{type(value).__name__} has no entries: {type(error).__name__}") from error
    raise ArgumentTypeError(f"{type(value).__name__} has more than {_MOST_ENTRIES:,} entries")


def sequence(value: Any) -> Any:
    """A list or a tuple, as what can be read again and again: itself, or `entries` of one of another class."""
    return value if type(value) in (tuple, list) else entries(value)


def _own_entries(value: Any) -> tuple[Any, ...]:
    """What a class derived from list or tuple says that it has, which is as much as it holds."""
    size = (list if issubclass(type(value), list) else tuple).__len__(value)
    try:
        found = tuple(itertools.islice(iter(value), size + 1))
    except (SmeltError, MemoryError):
        raise
    except Exception as error:
        raise ArgumentTypeError(f"{type(value).__name__} has no entries: {type(error).__name__}") from error
    if len(found) != size:
        raise ArgumentTypeError(f"{type(value).__name__} holds {size:,} entries, and is read otherwise")
    return found


def listed(name: str, what: str, value: Any) -> tuple[Any, ...]:
    """`entries` of an argument.

    Raises:
        ArgumentTypeError: it has none, or they do not end.
    """
    try:
        return entries(value)
    except ArgumentTypeError:
        raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be a list, is {shown(value)}")) from None


def number(name: str, what: str, value: Any) -> int | float:
    """`value`, a number, a NumPy scalar or an array of one element, as a Python number.

    Raises:
        ArgumentTypeError: it is no real number. AttributeValueError: an int beyond all floats.
        NotDifferentiableError: an array that depends on what is being differentiated.
    """
    if isinstance(value, (Handle, np.generic, np.ndarray)) and value.size == 1:  # type: ignore[union-attr]
        given, value = value, value.item()  # type: ignore[union-attr]
        if state.recording and isinstance(given, Handle) and varies(given._ref):
            message = f"smelt.{name}: {what} is a number, by which there is no derivative, and depends on what is"
            hint = f"differentiated; give smelt.stop_gradient({what}) if that may be a constant"
            raise NotDifferentiableError(at_user_line(f"{message} {hint}"))
    if isinstance(value, bool):
        return int(value)
    if type(value) is Symbol:
        return value  # type: ignore[return-value]
    if isinstance(value, (int, float)):
        value = exact_number(value)
        try:
            float(value)
        except OverflowError:
            message = f"smelt.{name}: {what} {shown(value)} is too large for a float"
            raise AttributeValueError(at_user_line(message)) from None
        return value
    raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be a number, is {shown(value)}"))


def no_out(name: str, out: Any) -> None:
    """Check that there is no `out`, which NumPy's functions pass on to methods.

    Raises:
        ArgumentTypeError: there is one.
    """
    if out is not None:
        message = f"smelt.{name}: arrays do not change, so out must be None; assign the result, out[...] = result"
        raise ArgumentTypeError(at_user_line(message))


def dtype_of(name: str, dtype: Any, default: DType | None = None) -> DType:
    """`dtype` as a DType; None stands for `default`, if there is one.

    Raises:
        DTypeError: smelt has no such dtype.
    """
    if isinstance(dtype, DType):
        return dtype
    if dtype is None and default is not None:
        return default
    try:
        return dtypes.of(dtype)
    except DTypeError as error:
        raise DTypeError(at_user_line(f"smelt.{name}: {error}")) from None


def word(name: str, what: str, value: Any, *allowed: str) -> str:
    """`value`, one of several words.

    Raises:
        AttributeValueError: it is another one, or no text.
    """
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(f'"{w}"' for w in allowed[:-1])
        raise AttributeValueError(
            at_user_line(f'smelt.{name}: {what} must be {listed} or "{allowed[-1]}", is {shown(value)}')
        )
    return value


def aval_of(who: str, shape: tuple[int, ...], dtype: DType) -> Aval:
    """The type of an array that a function makes. Raises ShapeError where there can be no such array."""
    try:
        return Aval(shape, dtype)
    except ShapeError as error:
        raise ShapeError(at_user_line(f"smelt.{who}: {error}")) from None
