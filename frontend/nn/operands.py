"""What functions of modules do with arguments that are arrays by their signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import smelt
from smelt.ir.errors import SmeltError
from smelt.ir.listing import listed

from ..lazy.core import Memory, call
from ..lazy.explained import explained

__all__ = ["in_float32", "takes_arrays"]

F = TypeVar("F", bound=Callable[..., Any])

__dir__ = listed(globals())


def takes_arrays(
    function: F, check: Callable[[dict[str, Any]], None] | None = None, remembers: bool = True
) -> F:
    """The function, with what is given for its array parameters as arrays: NumPy's, lists and numbers, too. Errors of
    functions that it calls name it first.

    Args:
        check: is told the arguments of each call by their names; it may raise for values that are there.
        remembers: whether all that it does else is to make nodes, by types and other arguments, so that it is run once
            for these; see `smelt.lazy.core.remembered`.

    Raises:
        DTypeError: from a call; no array can be made of what was given.

    >>> import smelt
    >>> smelt.nn.losses.l1_loss([1.0, 2.0], smelt.array([0.0, 0.0]))
    array(1.5, dtype=float32)
    """
    kinds = {p.name: str(p.annotation).split(" ")[0] for p in inspect.signature(function).parameters.values()}
    arrays = {name for name, kind in kinds.items() if kind == "array"}
    places = list(kinds)
    public = f"smelt.nn.{'losses.' * ('reduction' in kinds)}{function.__name__}: "
    memory = Memory(function, frozenset())

    def converted(name: str, x: Any) -> Any:
        return x if name not in arrays or x is None or isinstance(x, smelt.array) else smelt.asarray(x)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) == 1 and not kwargs and type(args[0]) is smelt.array and remembers:
                return call(memory, args, kwargs)
            given = (*[converted(name, x) for name, x in zip(places, args)], *args[len(places) :])
            named = {name: converted(name, x) for name, x in kwargs.items()}
            if check is not None:
                check({**dict(zip(places, given)), **named})
            return call(memory, given, named) if remembers else function(*given, **named)
        except SmeltError as error:
            message = str(error)
            if message.startswith("smelt") and not message.startswith(("smelt.nn.", public)):
                error.args = (public + message.partition("smelt")[2].lstrip(".: "),)
            raise

    return explained(called)  # type: ignore[return-value]


def in_float32(function: F) -> F:
    """The function, which computes in float32 where its arrays are of half precision, and rounds its result once.

    >>> x = smelt.array([-2.0, 3.0]).astype(smelt.bfloat16)
    >>> in_float32(lambda x: x * (1 + x / 3))(x)
    array([-0.667969, 6], dtype=bfloat16)
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, smelt.array)]
        if not any(map(_is_half, given)):
            return function(*args, **kwargs)
        dtype = smelt.result_type(*given)
        try:
            found = function(*map(_widened, args), **{name: _widened(x) for name, x in kwargs.items()})
        except SmeltError:
            return function(*args, **kwargs)  # whose message names the types that were given
        return found.astype(dtype) if found.dtype.is_float else found

    return called  # type: ignore[return-value]


def _is_half(x: smelt.array) -> bool:
    return x.dtype.is_float and x.dtype.size == 2


def _widened(x: Any) -> Any:
    return x.astype(smelt.float32) if isinstance(x, smelt.array) and _is_half(x) else x
