"""What the arguments of a call say: parts of the key of its program, names, arrays that stand in several places."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from smelt.ir.errors import TreeError, at_user_line

from ..lazy import tree
from ..lazy.arrays import array
from ..lazy.static_keys import static_key
from .versions import Receiver


def static_part(x: Any, name: str) -> Any:
    """Part of the cache key for an argument that is no array: its value is part of the program."""
    if isinstance(x, Receiver):
        return x.key()
    if isinstance(x, np.ndarray):
        raise TreeError(at_user_line(f"smelt.compile: {name} got a NumPy array; pass smelt.array(x)"))
    try:
        return static_key(x)
    except TreeError:
        problem = "is neither an array nor hashable"
    except RecursionError:
        problem = "holds itself, or is nested too deeply"
    raise TreeError(
        at_user_line(
            f"smelt.compile: {name} got a {type(x).__name__}, which {problem}; "
            "register it with smelt.utils.register_class, or pass its arrays"
        )
    )


def state_part(x: Any) -> Any:
    """Part of the cache key for a leaf of `inputs` that is no array."""
    try:
        return static_key(x)
    except (TreeError, RecursionError):
        return type(x)


def keys_of_dicts(trees: Iterable[Any]) -> Any:
    """What tells trees apart that are equal, with the keys 1 and True, or 0.0 and -0.0; None if all keys are texts."""
    keys = [key for t in trees for key in tree.keys_of(t)]
    return None if all(type(k) is str for k in keys) else tuple(map(static_key, keys))


def places_of(arrays: Sequence[array]) -> list[int]:
    """For each array the place where it stands first."""
    first: dict[int, int] = {}
    return [first.setdefault(id(x), i) for i, x in enumerate(arrays)]


def arrays_of(value: Any) -> list[array]:
    return [x for x in tree.flatten(value)[0] if isinstance(x, array)]


def names_of_arguments(fun: Callable, args: Any, kwargs: Any) -> list[str | None]:
    """Names for the arguments in the IR: the user's, with paths into trees."""
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return []
    positional = [n for n in bound.arguments if n not in kwargs]
    names: list[str | None] = []
    values = list(zip(positional, args)) + list(kwargs.items())
    for name, value in values:
        tree.tree_map_with_path(lambda p, x: names.append(p) if isinstance(x, array) else None, value, path=name)
    return names


def state_leaf(x: Any) -> Any:
    """A leaf of `inputs` or `outputs`.

    Raises:
        TreeError: something of smelt's with state of its own, an optimizer or `smelt.random`: it is no tree, so what it
            holds would be constants, and arrays of a trace would stay in it.
    """
    if type(x) is array:
        return x
    is_module = isinstance(x, types.ModuleType)
    owner: str = x.__name__ if is_module else type(x).__module__
    if owner.partition(".")[0] == __name__.partition(".")[0] and arrays_of(getattr(x, "state", None)):
        what, state = (owner, f"{owner}.state") if is_module else (type(x).__name__, "optimizer.state")
        message = f"smelt.compile: {what} itself is no tree, so nobody would see its arrays change; name its state"
        raise TreeError(at_user_line(f"{message}: inputs=[{state}], outputs=[{state}]"))
    return x
