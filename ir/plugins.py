"""Ops of other packages: modules that define some, named by entry points of the group ``smelt.ops``.

An entry point is called as its package likes, and names a module whose import defines ops (`smelt.ir.op`)::

    [project.entry-points."smelt.ops"]
    acme = "acme.ops"

They are loaded where a text, a builder or a rewrite names an op that nobody has defined so far, and by
``smelt-opt --list-ops``. So one that does not load breaks no text without such ops.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from . import op as _op
from .entry_points import load, offered
from .errors import AttributeValueError, SmeltError
from .op import Op, registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "smelt.ops"


def load_all() -> list[str]:
    """Load the ops of all installed packages; what is wrong with those that do not load."""
    return [problem for entry in offered(GROUP) if (problem := _load(entry)) is not None]


def load_for(names: Collection[str]) -> list[str]:
    """Load entry points until there are ops of these names; if there are not, what is wrong with those that do
    not load. Entry points that are called like one of the ops come first.
    """
    problems = []
    for entry in sorted(offered(GROUP), key=lambda entry: entry.name not in names):
        if all(name in registry for name in names):
            return []
        problem = _load(entry)
        if problem is not None:
            problems.append(problem)
    return [] if all(name in registry for name in names) else problems


def get(name: str) -> Op:
    """The op called `name`, with or without the ``smelt.`` prefix, of smelt or of an installed package.

    Raises:
        AttributeValueError: there is none; it says which packages with ops do not load.
    """
    bare = name.removeprefix("smelt.")
    problems = [] if bare in registry else load_for({bare})
    try:
        return _op.get(name)
    except AttributeValueError as error:
        raise AttributeValueError("\n".join((str(error), *problems))) from None


def _load(entry: EntryPoint) -> str | None:
    """Import what an entry point names; what is wrong with it."""
    try:
        load(entry, "the ops", SmeltError, several=True)
    except SmeltError as error:
        return str(error)
    return None
