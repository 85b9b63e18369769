"""Entries of modules, replaced by those of nested dicts and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import smelt
from smelt.ir.errors import ArgumentTypeError, DTypeError, ShapeError, TreeError, at_user_line, shown

from ...lazy.tree import kind_of

__all__: list[str] = []


def put_entries(
    target: Any, source: Any, strict: bool, path: str, root: str, fits: Callable[[Any, Any], bool | None], what: str
) -> None:
    """Put the entries of nested dicts and lists in the place of those of a module; where one does not fit, none.

    Args:
        fits: whether the second may take the place of the first; None if that has to be looked at inside.
        path: of the target in `root`. what: the entries are called.
    """
    found: list[tuple[Any, Any, Any]] = []
    if not note_fitting(target, source, fits, found):  # paths are for errors, and for what is passed over
        found = list(_replaced(target, source, strict, path, root, fits, what))
    for holder, key, new in found:
        holder[key] = new


def note_fitting(
    target: Any, source: Any, fits: Callable[[Any, Any], bool | None], found: list[tuple[Any, Any, Any]]
) -> bool:
    """Add what `_replaced` gives for what all fits, or say that it does not."""
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(source, dict) and isinstance(target, dict):
        if not source.keys() <= target.keys():
            return False
        pairs = source.items()
    elif isinstance(source, (list, tuple)) and isinstance(target, list) and len(source) <= len(target):
        pairs = enumerate(source)
    else:
        return False
    for key, new in pairs:
        old = target[key]
        fit = fits(old, new)
        if fit:
            found.append((target, key, new))
        elif fit is not None or not note_fitting(old, new, fits, found):
            return False
    return True


def _replaced(
    target: Any, source: Any, strict: bool, path: str, root: str, fits: Callable[[Any, Any], bool | None], what: str
) -> Iterator[tuple[Any, Any, Any]]:
    """Dicts and lists in a module, keys of entries that are replaced, and by what."""
    pairs: list[tuple[Any, Any]]
    if isinstance(source, list) and isinstance(target, dict) and "0" in target:  # tree_unflatten makes lists of numbers
        source = {str(i): value for i, value in enumerate(source) if not (isinstance(value, dict) and not value)}
    if isinstance(source, dict) and isinstance(target, dict):
        pairs = list(source.items())
    elif isinstance(source, (list, tuple)) and isinstance(target, list):
        pairs = list(enumerate(source))
    elif isinstance(source, (dict, list, tuple)) and not source:
        return  # nothing to put
    elif isinstance(source, (list, tuple)) and isinstance(target, tuple) and len(source) <= len(target):
        for i, value in enumerate(source):
            yield from _replaced(target[i], value, strict, f"{path}.{i}", root, fits, what)
        return
    elif strict:
        raise TreeError(
            at_user_line(f"{root}: {path or 'what is given'} is {kind_of(target)}, got {kind_of(source)} for it")
        )
    else:
        return
    for key, new in pairs:
        place = f"{path}.{key}" if path else str(key)
        if key not in target if isinstance(target, dict) else key >= len(target):
            if strict:
                raise TreeError(at_user_line(f"{root} has no {what} {place}, got {shown(new)} for it"))
            continue
        old = target[key]
        fit = fits(old, new)
        if fit is None:
            yield from _replaced(old, new, strict, place, root, fits, what)
        elif fit or not strict:
            yield target, key, new
        else:
            raise TreeError(at_user_line(f"{root}: {place} is {kind_of(old)}, got {kind_of(new)} for it"))


def names_of(what: str, keys: Any) -> frozenset[str]:
    """One name of a parameter, or several.

    Raises:
        ArgumentTypeError: something else.
    """
    found = [keys] if isinstance(keys, str) else list(keys) if isinstance(keys, Iterable) else [None]
    if not all(isinstance(key, str) for key in found):
        raise ArgumentTypeError(at_user_line(f"{what}: keys are a text or a list of texts, got {shown(keys)}"))
    return frozenset(found)


def named_weights(name: str, given: Any) -> dict[str, smelt.array]:
    """Arrays by their paths, from a dict or pairs.

    Raises:
        ArgumentTypeError: something else.
    """
    pairs = list(given.items() if isinstance(given, dict) else given if isinstance(given, Iterable) else [None])
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str)):
            rule = "weights are the path of a file, or pairs of a parameter's path and its array"
            raise ArgumentTypeError(at_user_line(f"{name}: {rule}, got {shown(given if pair is None else pair)}"))
        if not isinstance(pair[1], smelt.array):
            raise ArgumentTypeError(at_user_line(f"{name}: {pair[0]} must be a smelt.array, is {kind_of(pair[1])}"))
    return dict(pairs)


def check_weights(name: str, own: dict[str, smelt.array], given: dict[str, smelt.array]) -> None:
    # Programs look for these words of MLX's messages.
    for paths, problem in (
        (given.keys() - own.keys(), "Received {} parameters not in model"),
        (own.keys() - given.keys(), "Missing {} parameters"),
    ):
        if paths:
            what = f"{name}: {problem.format(len(paths))}: {_listed(paths)}"
            raise TreeError(at_user_line(f"{what}; strict=False leaves such as they are"))
    for path, x in own.items():
        if given[path].shape != x.shape:
            what = f"Expected shape {x.shape} but received shape {given[path].shape} for parameter {path}"
            raise ShapeError(at_user_line(f"{name}: {what}, which is {x.aval}"))
        if _kind(given[path]) is not _kind(x):
            raise DTypeError(at_user_line(f"{name}: {path} is {x.aval}, got {given[path].aval} for it; convert it"))


def _kind(x: smelt.array) -> Any:
    """What a parameter keeps when its precision changes: whether it is a floating-point number, an integer, …"""
    kinds = (smelt.floating, smelt.complexfloating, smelt.integer)
    return next((kind for kind in kinds if smelt.issubdtype(x.dtype, kind)), x.dtype)


def _listed(paths: Any) -> str:
    found = sorted(paths)
    return ", ".join(found[:10]) + f" and {len(found) - 10} more" * (len(found) > 10)
