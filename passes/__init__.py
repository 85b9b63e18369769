"""Passes on the smelt dialect, one file each, with their registry and driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt.ir import locks

from .registry import Pass as Pass
from .registry import register_pass as register_pass
from .registry import registry as registry

if TYPE_CHECKING:
    from .driver import PassRecord as PassRecord
    from .driver import Pipeline as Pipeline


def __getattr__(name: str) -> Any:
    """Rules of passes run without the driver: the first gradient does not wait for what pipelines need."""
    if name not in ("PassRecord", "Pipeline"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(locks.loaded(f"{__name__}.driver"), name)
    return found
