"""What of a module's entries are parameters."""

from __future__ import annotations

from typing import Any

import smelt

__all__: list[str] = []

_CONTAINERS = (dict, list, tuple)
_NONE: frozenset[str] = frozenset()


def parameters_in(module: Any, trainable: bool, modules: type) -> dict[str, Any]:
    """The parameters of a module, or those that are not frozen, as nested dicts and lists: what a step of training asks
    for several times.

    Args:
        modules: the class of modules.
    """
    frozen, array = module._no_grad if trainable else _NONE, smelt.array
    found: dict[str, Any] = {}
    for key, value in module.items():
        if key[:1] == "_" or key in frozen:
            continue
        if isinstance(value, array):
            found[key] = value
        elif isinstance(value, modules):
            found[key] = parameters_in(value, trainable, modules)
        elif isinstance(value, (dict, list)):
            found[key] = _in_entries(key, value, trainable, modules, frozen)
    return found


def _in_entries(key: str, value: Any, trainable: bool, modules: type, frozen: frozenset[str]) -> Any:
    """The same of a dict or a list in it."""
    found: list[tuple[Any, Any]] = []
    for k, v in value.items() if isinstance(value, dict) else enumerate(value):
        if not isinstance(v, (smelt.array, dict, list)) or (frozen and f"{key}.{k}" in frozen):
            v = {}
        elif isinstance(v, modules):
            v = parameters_in(v, trainable, modules)
        elif not isinstance(v, smelt.array):
            v = _in_entries(f"{key}.{k}", v, trainable, modules, frozen)
        found.append((k, v))
    return dict(found) if isinstance(value, dict) else [v for _, v in found]


def is_setting(value: Any) -> bool:
    """Whether a value is a tuple of numbers, texts and the like, such as the stride of a window."""
    return isinstance(value, tuple) and not any(isinstance(x, (smelt.array, *_CONTAINERS)) for x in value)
