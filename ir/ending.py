"""Calls into libraries in C++ while the interpreter ends.

Python before 3.14 ends a daemon thread where it next asks for the interpreter's lock, by unwinding its stack. Below a
frame of C++ that ends the process instead: "terminate called without an active exception", exit status 134. So the end
waits for threads that are inside of such a library, and keeps others out of it: they end by `SystemExit`, which
Python reports nowhere. The thread that runs the handlers of `atexit` computes on.
"""

from __future__ import annotations

import _thread
import atexit
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that the end waits at most, for a function of a user that the library calls and that never returns.
_LONGEST_WAIT = 10

_ending = False
#: The thread that ends the interpreter.
_ends: int | None = None
_guards: set[CodeType] = set()
#: Locks that are held inside of a library.
_held: list[Any] = []


def check() -> None:
    """Raises SystemExit in all threads but one once the interpreter ends."""
    if _ending and threading.get_ident() != _ends:
        raise SystemExit("smelt: the interpreter is ending")


def guarded(function: Callable[P, T]) -> Callable[P, T]:
    """The function of a library in C++, which no thread is inside of when the interpreter ends."""

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if _ending:
            check()
        return function(*args, **kwargs)

    _guards.add(run.__code__)
    return functools.wraps(function)(run)


class GuardedLock(_thread.RLock):  # type: ignore[misc]  # final for typeshed alone
    """A reentrant lock under which a library in C++ is used; no thread has it when the interpreter ends."""

    def __init__(self) -> None:
        _held.append(self)

    def __enter__(self, blocking: bool = True, timeout: float = -1) -> bool:
        self.acquire(blocking, timeout)
        try:
            check()
        except SystemExit:
            self.release()
            raise
        return True


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _guards:
            return True
        frame = frame.f_back
    return False


def _end() -> None:
    """Keep other threads out, and wait for those that are inside."""
    global _ending, _ends
    _ends = own = threading.get_ident()
    _ending = True
    last = time.monotonic() + _LONGEST_WAIT
    for held in _held:
        if held.acquire(timeout=max(0, last - time.monotonic())):
            held.release()
    while time.monotonic() < last:
        if not any(_is_inside(frame) for thread, frame in sys._current_frames().items() if thread != own):
            return
        time.sleep(1e-3)


atexit.register(_end)
if hasattr(os, "register_at_fork"):  # forked by another thread while the interpreter ended

    def _begin_anew() -> None:
        global _ending
        _ending = False

    os.register_at_fork(after_in_child=_begin_anew)
