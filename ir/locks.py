"""Locks that a child process gets anew, and work that is done whole or not at all.

A lock of `lock` may be taken again by the thread that has it, since a handler of a signal and a destructor run
inside whatever their thread is doing. In a child process after fork, whose other threads are gone, those that one of
them had are free.

`whole` runs what neither Ctrl-C nor the end of the interpreter (`ending`) must cut in two, such as the import of
modules that register themselves in a library, and what no child process may see half done. A fork waits as well for
functions that are `unforked`, and for imports.
"""

from __future__ import annotations

import _imp
import _signal
import _thread
import contextlib
import functools
import importlib
import logging  # noqa: F401  (see `_before_fork`)
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from .ending import guarded

P = ParamSpec("P")
T = TypeVar("T")

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock(kind: Callable[[], Any] = threading.RLock) -> Any:
    """A reentrant lock."""
    made = kind()
    _made.add(made)
    return made


def brief_lock() -> Any:
    """A reentrant lock for which no child process waits, of what is made and gone at once.

    It is noted nowhere: where one that is goes, a function of Python's runs in which an interrupt would be lost.
    """
    return threading.RLock()


#: Held while something is done whole. What is done under it takes no other lock.
_whole = lock()


#: Seconds that a fork waits at most.
_LONGEST_WAIT = 10


#: Held while a thread gets its gate; those that there are.
_opening = lock()
_gates: weakref.WeakSet[Any] = weakref.WeakSet()


class _Gate(threading.local):
    """A thread's own lock, for which forks wait."""

    def __init__(self) -> None:
        with _opening:
            self.lock = lock()
            _gates.add(self.lock)


#: Each thread holds its own in what is `unforked`.
gate = _Gate()


def unforked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which is not called while the process is forked, and for whose end forks wait.

    For calls of a library whose threads do not survive a fork in the middle of their work: after one in the middle of
    a product of OpenBLAS, which is NumPy's, the child's next product never ends. The function takes no other lock.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with gate.lock:
            return function(*args, **kwargs)

    return run


class _Job:
    """An action in a thread of its own: signals are handled in the main thread, and the stack is fresh."""

    def __init__(self, action: Callable[[], Any]):
        self.action = action
        self.result: Any = None
        self.error: BaseException | None = None
        self.over = False
        self.begun = _thread.allocate_lock()
        self.ended = _thread.allocate_lock()
        self.ended.acquire()

    def run(self) -> None:
        if self.begun.acquire(False):  # an interrupted start may be repeated
            try:
                with _whole:
                    self.result = self.action()
            except BaseException as error:
                self.error = error
            self.over = True
            self.ended.release()

    def wait(self) -> None:
        """Start it unless it has begun, and wait for its end."""
        if not self.begun.locked():
            try:
                _thread.start_new_thread(self.run, ())
            except RuntimeError:  # no more threads, or the interpreter is shutting down
                signals_later(self.run)
        self.ended.acquire()


@guarded
def whole(action: Callable[[], T]) -> T:
    """What `action` returns. It runs to its end before an interrupt is raised or a process forked.

    `action` takes no lock and depends on nothing of the calling thread. What it makes it should keep itself: an
    interrupt raised here keeps the caller from doing so.
    """
    if _is_importing():
        return _here(action)
    if threading.get_ident() != threading.main_thread().ident:
        with _whole:
            return action()
    _free_imports()
    job, interrupt = _Job(action), None
    while not job.over:
        try:
            job.wait()
        except BaseException as error:
            interrupt = interrupt or error
    try:
        if interrupt is not None:
            raise interrupt
        if job.error is not None:
            raise job.error
    finally:
        interrupt = job.error = None  # they refer to this frame, which would keep them, and what callers have
    return job.result


_loaded: dict[str, Any] = {}


def loaded(name: str) -> Any:
    """The module of that name, which the first call imports, whole.

    For functions that import what a program loads only when it needs it. With a statement a handler of a signal that
    comes in the middle, and needs the module as well, would find half of it.
    """
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = whole(functools.partial(importlib.import_module, name))
    return found


def _free_imports() -> None:
    """Let go of Python's import lock, which an interrupt in the middle of an import may have left to this thread: no
    other thread could ever import again. Call it outside of imports."""
    with contextlib.suppress(RuntimeError):  # it is another thread's, or nobody's
        while _imp.lock_held():
            _imp.release_lock()


def _is_importing() -> bool:
    """Whether this thread is inside of an import, and may hold locks that another thread's imports wait for."""
    return _imports(sys._getframe())


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _here(action: Callable[[], T]) -> T:
    """What `action` returns, in this thread; handlers of signals run after it."""

    def run() -> T:
        # Another thread may have it and wait for what this one imports; either does no harm to the other.
        free = _whole.acquire(timeout=1)
        try:
            return action()
        finally:
            if free:
                _whole.release()

    return signals_later(run)


def _handle(handlers: dict[int, Any], arrived: list[tuple[int, Any]]) -> None:
    """Put handlers of signals back, and call those of signals that have arrived."""
    for number, handler in handlers.items():
        if _signal.getsignal(number) is not handler:
            _signal.signal(number, handler)
    while arrived:
        number, frame = arrived.pop(0)
        handlers[number](number, frame)


def signals_later(action: Callable[[], T]) -> T:
    """What `action` returns, on this thread; handlers of signals, which run on the main thread, run after it."""
    if threading.get_ident() != threading.main_thread().ident:
        return action()
    arrived: list[tuple[int, Any]] = []
    # The module below `signal`, which makes an enumeration of everything: fifty times as long.
    found = map(_signal.getsignal, range(1, _signal.NSIG))
    handlers: dict[int, Any] = {n: h for n, h in enumerate(found, 1) if callable(h)}
    try:
        for number in handlers:
            _signal.signal(number, lambda n, frame: arrived.append((n, frame)))
        return action()
    finally:
        interrupt = None
        # A handler that is back, and one that is called, may raise at any call and at any jump back. The `try` has no
        # loop of its own: from Python 3.12 on some jumps of such a one are outside.
        while True:
            try:
                _handle(handlers, arrived)
                break
            except BaseException as error:
                interrupt = interrupt or error
        try:
            if interrupt is not None:
                raise interrupt
        finally:
            interrupt = None  # as in `whole`


def _held_by_forks() -> Iterator[Any]:
    yield _opening
    yield from list(_gates)  # no other is made now
    yield _whole


def _before_fork() -> None:
    """Wait until what is under way is whole, and until no other thread imports.

    Hooks of others take locks, too, those that were registered last first. An action that imports a module may
    need that of `logging`, whose hook is therefore registered before this one and runs after it. Should an action
    need another library's, a fork takes this long, and the child may be unable to load what was being loaded.
    A child that imports what another thread was importing would wait for that thread, which it does not have.
    """
    end = time.monotonic() + _LONGEST_WAIT
    while True:
        for held in _held_by_forks():
            held.acquire(timeout=max(0, end - time.monotonic()))
        if time.monotonic() > end or not _others_import():
            return
        _after_fork()  # a module that is being imported may need them
        time.sleep(1e-3)


def _others_import() -> bool:
    own = threading.get_ident()
    if _is_importing():  # they may wait for this thread's
        return False
    return any(_imports(frame) for thread, frame in sys._current_frames().items() if thread != own)


def _after_fork() -> None:
    for held in _held_by_forks():
        if held._is_owned():
            held.release()


def _after_fork_in_child() -> None:
    for made in list(_made):
        if not made._is_owned():
            made._at_fork_reinit()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
