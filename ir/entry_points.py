"""What installed packages offer: entry points of a group, and what they name.

They are loaded when something of that name is asked for, so one that does not load breaks nothing that does without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import locks
from .errors import SmeltError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group."""
    metadata = locks.loaded("importlib.metadata")  # 20 ms, which a program without packages need not take
    return list(metadata.entry_points(group=group))


def load(entry: EntryPoint, what: str, error: type[SmeltError], *, several: bool = False) -> Any:
    """What an entry point names.

    Args:
        what: that is, for the message; `several`: are.

    Raises:
        SmeltError: an `error`; it does not load, whatever its code raises.
    """
    try:
        return entry.load()
    except (Exception, SystemExit) as problem:
        does = "do" if several else "does"
        message = f"{what} {entry.name!r} of {entry.value} {does} not load: {type(problem).__name__}: {problem}"
        raise error(message) from problem
