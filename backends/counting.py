"""A class whose instances can be enumerated, to find out how much memory arrays hold.

To make or drop an instance costs two pointers (`counted.c`). Where that was not built, or SMELT_CORE is ``python``,
instances are looked for among all objects of the process.
"""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

from smelt.ir.settings import settings


class _Counted:
    """Instances of classes on this one can be found."""

    __slots__ = ()


def _instances() -> list[Any]:
    return [x for x in gc.get_objects() if isinstance(x, _Counted)]


def _forget(x: Any) -> None:
    pass


def _native() -> Any:
    if settings.__dict__.get("core") == "python":
        return None
    try:
        return importlib.import_module("smelt._counted")
    except ImportError:
        return None


_found = _native()
if TYPE_CHECKING or _found is None:
    Counted = _Counted
    #: All instances of classes on `Counted`, those apart that have been forgotten.
    instances = _instances
    #: Say of an instance that nobody has to find it.
    forget = _forget
else:
    Counted, instances, forget = _found.Counted, _found.instances, _found.forget
