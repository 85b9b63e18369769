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
from collections.abc import Callable
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
        """Have all jobs called by threads, of which there are as many at least; without threads by the caller."""
        with _starting:
            while self._count < len(jobs):
                try:
                    threading.Thread(target=self._run, args=(self._work,), name="smelt-host", daemon=True).start()
                except RuntimeError:  # no more threads, or the interpreter is shutting down
                    break
                self._count += 1
            here = jobs if not self._count else []
        for job in jobs[len(here) :]:
            self._work.put(job)
        for job in here:
            job()

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
    """A part of the rows, in work."""

    def __init__(self, rows: slice, body: Callable[[slice], None]):
        self.rows, self.body, self.failed, self.over = rows, body, False, False
        # Settings of the caller, such as which errors of floating point are ignored, hold for the thread.
        self.context = contextvars.copy_context()
        self.ended: SimpleQueue[None] = SimpleQueue()  # as a lock that is made anew for each part

    def run(self) -> None:
        try:
            self.context.run(self.body, self.rows)
        except BaseException:  # the calling thread repeats the part
            self.failed = True
        finally:
            self.over = True
            self.ended.put(None)

    def wait(self) -> BaseException | None:
        """Until it has ended; what interrupts that is returned."""
        interrupt = None
        while not self.over:
            try:
                self.ended.get()
            except BaseException as error:
                interrupt = interrupt or error
        return interrupt


def share(rows: int, seconds: float, body: Callable[[slice], None]) -> None:
    """Call `body` for parts of the rows, each by a thread, where the work of all takes about so many seconds.

    Parts write to memory of their own. A part that raises is called again by the calling thread, after the others.
    An interrupt is raised when all parts have ended.
    """
    count = min(rows, allowed_threads(), max(1, int(seconds / WORTH)))
    if count < 2 or _own.helps:
        body(slice(0, rows))
        return
    bounds = itertools.pairwise(rows * i // count for i in range(count + 1))
    first, *others = [_Part(slice(*ends), body) for ends in bounds]
    _helpers.call([part.run for part in others])
    try:
        body(first.rows)
    finally:
        # All of them, also after an interrupt: forks wait for the caller, and parts write to its memory.
        interrupts = [part.wait() for part in others]
    for interrupt in filter(None, interrupts):
        raise interrupt
    for part in others:
        if part.failed:
            body(part.rows)
