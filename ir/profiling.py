"""The events of a profile, collected while one is taken. Otherwise each program only looks at `active`, which is None.

Whoever runs or compiles something asks `active`, and adds an event with its place in the user's program. Kernels of
programs that are compiled meanwhile run one by one, so that each has a time. `smelt.runtime.profile` shows the events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

#: Kinds of events that are not part of others.
WORK = ("op", "kernel", "host", "compile")


class Event(NamedTuple):
    """Something that took time.

    Attributes:
        name: of the op, kernel, program or pass.
        kind: "op" (one op, op by op), "kernel", "host" (an op of a program that the host computes), "compile"; or a
            part of a compile: "pass".
        start, seconds: when it began, by `time.perf_counter`, and how long it took.
        line: of the user's program, as ``file:line``; "" where it is unknown.
        thread: in which it ran.
    """

    name: str
    kind: str
    start: float
    seconds: float
    line: str
    thread: int


class Profiler:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, name: str, kind: str, start: float, seconds: float, line: str = "") -> None:
        """Note an event."""
        self.events.append(Event(name, kind, start, seconds, line, threading.get_ident()))

    def timed(self, name: str, kind: str, line: str, run: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """What `run` returns, with an event of how long that took."""
        start = time.perf_counter()
        try:
            return run(*args, **kwargs)
        finally:
            self.add(name, kind, start, time.perf_counter() - start, line)


#: What collects events now; None: nobody takes a profile.
active: Profiler | None = None
