"""Profiles: which kernels, ops and compiles take the time, as a table and as a trace that browsers show."""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import locks, profiling
from smelt.ir.errors import ProfileError, at_user_line
from smelt.ir.flags import flag
from smelt.ir.paths import path_of
from smelt.ir.profiling import WORK, Event, Profiler
from smelt.ir.tables import columns

__all__ = ["Profile", "ProfileRow", "profile"]

#: Rows that a table shows at most.
ROWS = 40
_lock = locks.lock()


@dataclass(frozen=True)
class ProfileRow:
    """All that one kernel, op or compile took at one line.

    Attributes:
        name, kind, line: as of `Event`.
        calls: how often it ran.
        seconds: all of these together.
        share: of the time of all rows.
    """

    name: str
    kind: str
    line: str
    calls: int
    seconds: float
    share: float


class Profile:
    """The events of a ``with`` block. Attributes: events."""

    def __init__(self, path: str | os.PathLike[str] | None, prints: bool):
        self._path, self._prints = path, prints
        self._profiler = Profiler()

    @property
    def events(self) -> list[Event]:
        """What ran, in the order in which it ended."""
        return list(self._profiler.events)

    def __enter__(self) -> Profile:
        with _lock:
            if profiling.active is not None:
                raise ProfileError(at_user_line("a profile is being taken already; one at a time"))
            profiling.active = self._profiler
        return self

    def __exit__(self, *error: object) -> None:
        profiling.active = None
        if self._path is not None:
            self.save(self._path)
        if self._prints and error[0] is None:
            print(self)

    def __repr__(self) -> str:
        return str(self)

    def rows(self) -> list[ProfileRow]:
        """What took time, the most first: kernels, ops and compiles by name and line, without what contains them."""
        found: dict[tuple[str, str, str], list[float]] = {}
        for event in self.events:
            if event.kind in WORK:
                found.setdefault((event.name, event.kind, event.line), []).append(event.seconds)
        total = sum(map(sum, found.values())) or 1.0
        rows = [ProfileRow(*key, len(times), sum(times), sum(times) / total) for key, times in found.items()]
        return sorted(rows, key=lambda row: -row.seconds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a trace in Chrome's format, for chrome://tracing and ui.perfetto.dev.

        Raises:
            ArgumentTypeError: `path` is none. OSError: the file cannot be written.
        """
        with open(path_of("profile", "path", path), "w", encoding="utf-8") as file:
            json.dump(trace(self.events), file)

    def __str__(self) -> str:
        rows = self.rows()
        table = [["kernel or op", "kind", "calls", "total ms", "share", "line"]]
        for row in rows[:ROWS]:
            cells = [row.name, row.kind, str(row.calls), f"{row.seconds * 1e3:.3f}", f"{row.share:.1%}", row.line]
            table.append(cells)
        lines = columns(table, right=(2, 3, 4))
        if len(rows) > ROWS:
            rest = sum(row.seconds for row in rows[ROWS:])
            lines.append(f"and {len(rows) - ROWS} more, {rest * 1e3:.3f} ms")
        return "\n".join(lines)


def trace(events: Sequence[Event]) -> dict[str, Any]:
    """Events in the format of Chrome's traces: complete events in microseconds, a row a thread."""
    begin = min((e.start for e in events), default=0.0)
    pid = os.getpid()
    return {
        "displayTimeUnit": "ms",
        "traceEvents": [
            {
                "name": e.name, "cat": e.kind, "ph": "X", "ts": round((e.start - begin) * 1e6, 3),
                "dur": round(e.seconds * 1e6, 3), "pid": pid, "tid": e.thread, "args": {"line": e.line},
            }
            for e in sorted(events, key=lambda e: e.start)
        ],
    }  # fmt: skip


def profile(path: str | os.PathLike[str] | None = None, prints: bool = True) -> Profile:
    """Take a profile of a ``with`` block: kernels, ops and compiles with calls, time, and the user's line.

    What is lazy and not evaluated inside of the block is not in it. Compiled functions that are called in the block are
    compiled for it, so that each kernel has a time of its own; programs of lazy arrays that were there before it count
    as a whole. On ``metal:sim`` each launch is an event; what a GPU runs is not seen. Outside of such
    blocks nothing is measured. The environment variable ``SMELT_PROFILE=trace.json`` takes one of a whole process, and
    writes the trace at its end.

    Args:
        path: a file to write a trace in Chrome's format to; None: none is written.
        prints: whether the table is printed at the end of the block.

    Returns:
        What the block sets; afterwards ``.rows()``, ``.events``, ``str()`` of it, and ``.save(path)``.

    Raises:
        ProfileError: a profile is being taken already. ArgumentTypeError: `path` is no path. OSError: the file cannot
            be written.

    >>> import smelt
    >>> x = smelt.eye(64)
    >>> smelt.eval(x)
    >>> with smelt.profile(prints=False) as found:
    ...     smelt.eval(smelt.exp(x) @ x)
    >>> sorted(row.name for row in found.rows() if row.kind == "op")
    ['dot_general', 'exp']
    """
    path = None if path is None else path_of("profile", "path", path)
    return Profile(path, flag("profile", "prints", prints))


def profile_process(path: str) -> None:
    """Take a profile from now on, and write it when this process ends."""
    found = Profile(path, False)
    found.__enter__()
    process = os.getpid()

    def write() -> None:
        if os.getpid() != process or profiling.active is not found._profiler:
            return
        try:
            found.__exit__(None)
        except OSError as error:
            print(f"smelt: SMELT_PROFILE: {path} cannot be written: {error.strerror}", file=sys.stderr)

    atexit.register(write)
