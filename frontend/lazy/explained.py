"""Errors that Python and NumPy raise inside of a function of smelt, as errors of smelt."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    OutOfMemoryError,
    SmeltError,
    at_user_line,
    innermost_line,
    shown,
)
from smelt.ir.flags import public_name
from smelt.ir.keywords import misfit
from smelt.ir.symbolic import Symbol

from .arrays import array

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])

#: The file system's stay, also where they are ValueErrors besides.
_AS_IT_IS = (SmeltError, OSError)
_FOREIGN = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RecursionError, MemoryError)
#: A function, and what it was called with.
_Call = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]
#: What an annotation takes, and how a message calls that.
_TAKES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((numbers.Integral, np.integer, Symbol), "an int"),
    "float": ((numbers.Real, np.number, array), "a number"),
    "bool": ((bool, int, np.bool_), "a bool"),
    "array": ((array, np.ndarray, np.generic, numbers.Number, list, tuple), "an array"),
    "str": ((str,), "a text"),
}


def explained(function: F) -> F:
    """The function, for which errors of Python and NumPy in the code of smelt become errors of smelt that name the
    argument which does not fit its annotation, or is a negative extent of what a class makes. Errors in functions and
    modules of the user pass as they are.

    >>> @explained
    ... def half(size: int) -> int:
    ...     return size // 2
    >>> try:
    ...     half(None)
    ... except TypeError as error:
    ...     print(type(error).__name__)
    TypeError
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _FOREIGN as error:
            if isinstance(error, _AS_IT_IS) or innermost_line(error):
                if not isinstance(error, SmeltError) or _misfit((function, args, kwargs)) is None:
                    raise  # else it names what is called inside, and how
            raise _own_error(error, (function, args, kwargs)) from error

    return called  # type: ignore[return-value]


def explained_maker(function: F) -> F:
    """`explained` for a function that makes a function, and for that."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            made = function(*args, **kwargs)
        except _FOREIGN as error:
            if isinstance(error, _AS_IT_IS) or innermost_line(error):
                raise
            raise _own_error(error, (function, args, kwargs)) from error

        @functools.wraps(made)
        def made_called(*inner: Any, **names: Any) -> Any:
            try:
                return made(*inner, **names)
            except _FOREIGN as error:
                if isinstance(error, _AS_IT_IS) or innermost_line(error):
                    raise
                raise _own_error(error, (made, inner, names), (function, args, kwargs)) from error

        return made_called

    return called  # type: ignore[return-value]


def _own_error(error: Exception, *calls: _Call) -> SmeltError:
    """For an error in calls, the first of which names what was called."""
    name = _name_of(calls[0])
    listed = []
    for call in calls:
        if misfit := _misfit(call, name):
            return misfit
        function, args, kwargs = call
        given = inspect.signature(function).bind_partial(*args, **kwargs).arguments
        listed += [f"{parameter}={shown(value)}" for parameter, value in given.items() if parameter != "self"]
    if isinstance(error, MemoryError):
        own: type[SmeltError] = OutOfMemoryError
    else:
        own = AttributeValueError if isinstance(error, (ValueError, ArithmeticError)) else ArgumentTypeError
    called_with = f"the arguments are {', '.join(listed)[:300]}" if listed else "there are no arguments"
    return own(at_user_line(f"{name}: {str(error)[:200]}; {called_with}"))


def _name_of(call: _Call) -> str:
    called, args, _ = call
    if called.__name__ in ("__init__", "__call__"):  # of a class, which may be the base of others
        return type(args[0]).__name__
    name = called.__qualname__.partition(".<locals>")[0]
    return f"smelt.{name}" if public_name(called) == name else name


def _misfit(call: _Call, name: str | None = None) -> SmeltError | None:
    """That an argument does not fit its annotation or is negative, or that there are others than the function takes."""
    function, args, kwargs = call
    name = name or _name_of(call)
    signature = inspect.signature(function)
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
    except TypeError as problem:
        return ArgumentTypeError(at_user_line(f"{name}: {misfit(function, args, kwargs) or problem}"))
    for parameter, value in given.items():
        kind, _, other = str(signature.parameters[parameter].annotation).partition(" | ")
        types, what = _TAKES.get(kind, ((object,), ""))
        if not isinstance(value, types) and (not other or (other == "None" and value is not None)):
            return ArgumentTypeError(at_user_line(f"{name}: {parameter} must be {what}, is {shown(value)}"))
        if function.__name__ == "__init__" and kind == "int" and "axis" not in parameter and _is_negative(value):
            return AttributeValueError(at_user_line(f"{name}: {parameter} must not be negative, is {shown(value)}"))
    return None


def _is_negative(value: Any) -> bool:
    return isinstance(value, (numbers.Integral, np.integer)) and int(value) < 0
