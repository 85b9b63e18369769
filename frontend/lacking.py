"""What a module of smelt does when somebody asks for a name that it does not have, or not yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smelt.ir import locks
from smelt.ir.errors import MissingNameError

__all__: list[str] = []


def lacking(namespace: dict[str, Any], late: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module: an error with the name that is meant, or what other libraries call so.

    Hide it from type checkers, which would take every name for one that there is.

    Args:
        namespace: the module's ``globals()``. late: modules of the same package, and the names that the module has
            of each; the first use of such a name loads it.
    """
    homes = {name: module for module, names in (late or {}).items() for name in names.split()}

    def missing(name: str) -> Any:
        if name in homes:
            found = vars(locks.loaded(f"{namespace['__package__']}.{homes[name]}"))[name]
            return namespace.setdefault(name, found)
        if name[:2] == "__":
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        raise _error(name, namespace)

    return missing


def missing_member(name: str, owner: object, where: str) -> MissingNameError:
    """The error about an attribute that an object of the class `where` does not have."""
    found: MissingNameError = locks.loaded("smelt.foreign").missing_member(name, owner, where)
    return found


def _error(name: str, namespace: dict[str, Any]) -> MissingNameError:
    found: MissingNameError = locks.loaded("smelt.foreign").missing(name, namespace["__all__"], namespace["__name__"])
    return found
