"""Evaluation beside the calling thread: `async_eval` hands a graph to a worker thread and returns.

The worker evaluates as everybody does. So whoever asks for a value that it has in work waits for the end of that
evaluation, and finds the value; where the worker failed, it computes the value itself, and gets the same error. What is
small is evaluated before the call returns: to hand it over would take longer.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from smelt.ir import locks
from smelt.runtime import Device, default_device
from smelt.runtime.device import chosen

from .core import COMPILED, topological
from .evaluate import check_values, evaluate
from .execution import tiers
from .execution.steps import plan
from .graph import Ref, state

#: What takes less than so many seconds op by op, without what Python does for each op, is evaluated at once: Python's
#: lock lets nothing run beside that. Nothing that takes longer than the second number is.
WORTH_IT, MOST_AT_ONCE = 1e-3, 1e-2
#: Graphs that wait for the worker; whoever brings another one waits as well, so that no more memory is held.
MOST_JOBS = 64


class _Worker:
    """One thread, which evaluates graphs in the order in which they come."""

    def __init__(self) -> None:
        self._lock = locks.lock()  # not held while anybody waits
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: deque[Future[None]] = deque()

    def is_idle(self) -> bool:
        with self._lock:
            return all(job.done() for job in self._jobs)

    def submit(self, refs: Sequence[Ref], device: Device) -> bool:
        """Hand a graph over; False where there is no thread for it, since Python is ending. Waits while the worker has
        much to do already."""
        with self._lock:
            self._forget_done()
            first = self._jobs[-MOST_JOBS] if len(self._jobs) >= MOST_JOBS else None
        if first is not None:
            first.exception()
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "smelt", lambda: setattr(_here, "is_worker", True))
            try:
                self._jobs.append(self._pool.submit(_evaluate_on, device, refs))
            except RuntimeError:
                return False
        return True

    def _forget_done(self) -> None:
        while self._jobs and self._jobs[0].done() and self._jobs[0].exception() is None:
            self._jobs.popleft()

    def wait(self) -> None:
        """Wait for all that was handed over. Raises the first error, once."""
        failed = None
        while True:
            with self._lock:
                job = self._jobs[0] if self._jobs else None
            if job is None:
                break
            error = job.exception()  # an interrupt leaves the job where it is
            with self._lock:
                if self._jobs and self._jobs[0] is job:  # else another thread has seen it, and raises its error
                    self._jobs.popleft()
                    if error is not None and failed is None:
                        failed = job
        if failed is not None:
            failed.result()

    def finish(self) -> None:
        """Before a fork: libraries do not survive it in the middle of their work."""
        for job in list(self._jobs):  # without the lock: another thread may have it for as long as it likes
            job.exception()

    def forget(self) -> None:
        """In a child process the thread does not exist; the graphs are evaluated when they are asked for."""
        self._pool = None
        self._jobs.clear()


class _Here(threading.local):
    """Whether this thread is the worker."""

    is_worker = False


_here = _Here()
_worker = _Worker()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_worker.finish, after_in_child=_worker.forget)


def _evaluate_on(device: Device, refs: Sequence[Ref]) -> None:
    chosen.device = device
    evaluate(refs)


def begin(refs: Sequence[Ref]) -> None:
    """Evaluate in the worker what is worth it, and the rest at once.

    Raises:
        TraceError: an array belongs to a trace.
    """
    if state.recording or state.compiling or _here.is_worker:  # the worker cannot wait for itself
        evaluate(refs)
        return
    # While the worker runs it takes everything: that keeps the order, and nodes may change while they are looked at.
    if _worker.is_idle() and _is_small(refs):
        evaluate(refs)
        return
    check_values(topological(refs), refs)
    if not _worker.submit(refs, default_device()):
        evaluate(refs)


def _is_small(refs: Sequence[Ref]) -> bool:
    """Whether a graph takes longer to hand over than beside this thread. What is known of ops that have run answers
    without a look at each."""
    found = plan(list(refs))
    if found is None:
        return True
    order, seconds, ops = found.order(), 0.0, 0
    if found.plain:  # where only calls of compiled functions are without a time
        order, seconds, ops = [node for node in order if node.op is COMPILED], found.seconds, found.ops
        ops -= len(order)
    seconds, ops = seconds + tiers.op_by_op_seconds(order), ops + tiers.count(order)
    return seconds - tiers.OP * ops < WORTH_IT and seconds < MOST_AT_ONCE


def wait() -> None:
    """Wait for what was begun. Raises the first error that it ended with."""
    _worker.wait()
