"""Work of libraries on the host, shared by threads: rows of a sort, matrices of a batch, transforms.

NumPy lets other threads run while it computes. The threads wait for work; a child process makes its own.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from .locks import lock
from .settings import settings

#: Seconds of work that are worth a thread.
WORTH = 5e-4

#: Where Linux tells how much time processes in a control group may use of how much time, in versions 2 and 1.
_QUOTAS = (("/sys/fs/cgroup/cpu.max",), ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"))


@functools.cache
def processors() -> int:
    """How many processors this process may use. A container that gets the time of two on a machine of sixty-four has
    two: more threads would use that up in a fraction of each period, and then stand still."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(there, _quota()))


def _content(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _quota() -> int:
    """The processors of a container's time, rounded up; many where it has no limit."""
    for paths in _QUOTAS:
        with contextlib.suppress(OSError, ValueError):
            quota, period = [int(x) for path in paths for x in _content(path).split()]
            if quota > 0 and period > 0:
                return -(-quota // period)
    return os.cpu_count() or 1


def allowed_threads() -> int:
    """How many threads one computation may use: ``settings.num_threads``, or one for each processor."""
    return settings.num_threads or processors()


class _Helpers:
    """Threads that call what they are given."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a child process after fork there are none."""
        self._count = 0
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def call(self, jobs: list[Callable[[], None]]) -> None:
        """Have jobs called by threads, one for each if so many can be started. Without threads no job is called."""
        with _starting:
            started = self._start(len(jobs))
        if started:  # else the queue would keep them
            for job in jobs:
                self._work.put(job)

    def _start(self, wanted: int) -> int:
        """Start threads until there are `wanted`, if possible; how many there are."""
        while self._count < wanted:
            try:
                threading.Thread(target=self._run, args=(self._work,), name="smelt-host", daemon=True).start()
            except RuntimeError:  # no more threads, or the interpreter is shutting down
                break
            self._count += 1
        return self._count

    @staticmethod
    def _run(work: SimpleQueue[Callable[[], None]]) -> None:
        _own.helps = True
        while True:
            work.get()()


class _Own(threading.local):
    """Whether the thread is a helper. Such a one shares nothing: it might wait for what only it could do."""

    helps = False


_own = _Own()
_starting = lock()
_helpers = _Helpers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.forget)


class _Part:
    """A part of some work, which the first thread that claims it does."""

    def __init__(self, body: Callable[[], None]):
        # Settings of the caller, such as which errors of floating point are ignored, hold for the thread.
        self.work: Callable[[], None] = functools.partial(contextvars.copy_context().run, body)
        self.over = False
        self.error: BaseException | None = None
        self.ended: SimpleQueue[None] = SimpleQueue()  # as a lock that is made anew for each part
        self._owner: dict[str, int] = {}

    def is_mine(self) -> bool:
        """Claim it; whether it is the calling thread's, now or before."""
        return self._owner.setdefault("thread", threading.get_ident()) == threading.get_ident()

    def run(self) -> None:
        """For a helper: do it, unless another thread has claimed it."""
        if not self.is_mine():
            return
        try:
            self.work()
        except BaseException as error:
            self.error = error.with_traceback(None)  # which refers to this frame
        finally:
            self.over = True
            self.ended.put(None)

    def wait(self) -> None:
        """Wait until a helper is done with it, or will never begin it. After an interrupt, wait again."""
        while not self.over and not self.is_mine():
            self.ended.get()
        self.work = _nothing  # while all helpers are busy the queue keeps the part, which keeps no memory


def _nothing() -> None:
    pass


def _begin(bodies: Sequence[Callable[[], None]], others: list[_Part]) -> None:
    """Offer parts to helpers, call the first body, and those that no helper has begun."""
    _helpers.call([part.run for part in others])
    bodies[0]()
    for part, body in zip(others, bodies[1:]):
        if part.is_mine():
            body()


def _wait(parts: list[_Part]) -> None:
    for part in parts:
        part.wait()


def together(bodies: Sequence[Callable[[], None]]) -> list[BaseException | None]:
    """Call all of them at once where there are threads, the first in this one; the errors of the others that other
    threads called.

    What no thread has begun when this one is done with its own is called here. What is raised here, by a handler of a
    signal as well, is raised when all that have begun have ended: what they write to may go afterwards.
    """
    others = [_Part(body) for body in bodies[1:]]
    interrupt: BaseException | None = None
    # Handlers of signals run at calls and at jumps back. All of those, from here to the last end, are in a `try`, which
    # has no loop of its own: from Python 3.12 on the jump of an `if` that does not hold to the next turn is outside.
    try:
        _begin(bodies, others)
    except BaseException as error:
        interrupt = error
    while True:
        try:
            _wait(others)
            break
        except BaseException as error:
            interrupt = interrupt or error
    try:
        if interrupt is not None:
            raise interrupt
    finally:
        interrupt = None  # it refers to this frame, which would keep it, and arrays of the callers with it
    return [part.error for part in others]


def share(rows: int, seconds: float, body: Callable[[slice], None]) -> None:
    """Call `body` for parts of the rows, each by a thread; `seconds`: about what the work takes in all.

    Parts write to memory of their own. One that raises in another thread is called again by this one, after the others.
    An interrupt is raised when all parts have ended.
    """
    count = min(rows, allowed_threads(), max(1, int(seconds / WORTH)))
    if count < 2 or _own.helps:
        body(slice(0, rows))
        return
    bounds = itertools.pairwise(rows * i // count for i in range(count + 1))
    parts = [functools.partial(body, slice(*ends)) for ends in bounds]
    for part, error in zip(parts[1:], together(parts)):
        if error is not None:
            part()
