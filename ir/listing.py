"""What `dir` shows of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def listed(namespace: dict[str, Any]) -> Callable[[], list[str]]:
    """The ``__dir__`` of a module: its public names, those of ``__all__``, and what every module has.

    Args:
        namespace: the module's ``globals()``.
    """
    return lambda: sorted({*namespace["__all__"], *(name for name in namespace if name.startswith("__"))})
