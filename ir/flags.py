"""Boolean arguments of functions, found by their annotations: a value that is neither true nor false is an error."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from .errors import ArgumentTypeError, SmeltError, at_user_line, shown

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])

#: Folders whose functions users find in `smelt` itself.
_OF_SMELT = ("functions", "lazy", "transforms", "io", "exchange")


def flag(name: str, what: str, value: Any) -> bool:
    """`value` as a bool: of a number or of an array of one element whether it is not zero.

    Raises:
        ArgumentTypeError: it is neither true nor false, as are texts, lists, dtypes, and arrays of several elements or
        none.
    """
    if value is True or value is False:
        return value
    try:
        if _of_one_number(value) if hasattr(value, "__len__") else hasattr(value, "__bool__"):
            return bool(value)
    except SmeltError:  # the value is not known yet
        raise
    except Exception:  # a class says that it is neither
        pass
    _refuse(name, what, value)


def _refuse(name: str, what: str, value: Any, hint: str = "") -> NoReturn:
    raise ArgumentTypeError(at_user_line(f"smelt.{name}: {what} must be a bool, is {shown(value)}{hint}")) from None


def _of_one_number(x: Any) -> bool:
    """Whether x is an array with one element, which is a number."""
    return getattr(x, "size", 0) == 1 and getattr(getattr(x, "dtype", None), "kind", "b") in "biufc"


def public_name(function: Callable[..., Any]) -> str:
    """What users call a function, without ``smelt.``.

    >>> from smelt.linalg.norms import norm
    >>> public_name(norm)
    'linalg.norm'
    """
    folders = function.__module__.split(".")[1:-1]
    return ".".join([*(folder for folder in folders if folder not in _OF_SMELT), function.__name__])


def flags_checked(function: F) -> F:
    """`function`, which takes the parameters that it declares as ``bool`` as Python's bools, whatever stands for them.

    A number in the place of one behind `axis` is an error. A function without such parameters stays what it is.
    """
    given = getattr(function, "__annotations__", {})
    optional = {k: kind != "bool" for k, kind in given.items() if kind in ("bool", "bool | None") and k != "return"}
    if not optional:
        return function
    code = inspect.unwrap(function).__code__  # type: ignore[attr-defined]
    names = code.co_varnames[: code.co_argcount]
    places = {name: i for i, name in enumerate(names) if name in optional}
    behind_axis = names.index("axis") + 1 if "axis" in names else len(names)
    public = public_name(function)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        found = list(args)
        for name, place in places.items():
            if place < len(found) and not (optional[name] and found[place] is None):
                if place >= behind_axis and type(found[place]) is int:  # x.sum(0, 1) means two axes, elsewhere
                    _refuse(public, name, found[place], "; several axes are one tuple, axis=(0, 1)")
                found[place] = flag(public, name, found[place])
        for name, value in kwargs.items():
            if name in optional and not (optional[name] and value is None):
                kwargs[name] = flag(public, name, value)
        return function(*found, **kwargs)

    return checked  # type: ignore[return-value]
