"""Evaluation beside the calling thread: `async_eval` hands a graph to a worker thread and returns.

The worker evaluates as everybody does. So whoever asks for a value that it has in work waits for the end of that
evaluation, and finds the value; where the worker failed, it computes the value itself, and gets the same error. What is
small is evaluated before the call returns: to hand it over would take longer.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from smelt.runtime import Device, default_device
from smelt.runtime.device import chosen

from . import tiers
from .core import topological
from .evaluate import check_values, evaluate
from .graph import Ref, state

#: What takes less than so many seconds op by op is evaluated at once.
WORTH_IT = 1e-3


class _Worker:
    """One thread, which evaluates graphs in the order in which they come."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: deque[Future[None]] = deque()

    def is_idle(self) -> bool:
        return all(job.done() for job in self._jobs)

    def submit(self, refs: Sequence[Ref], device: Device) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "smelt")
        while self._jobs and self._jobs[0].done() and self._jobs[0].exception() is None:
            self._jobs.popleft()
        self._jobs.append(self._pool.submit(_evaluate_on, device, refs))

    def wait(self) -> None:
        """Wait for all that was handed over. Raises the first error, once."""
        failed = None
        while self._jobs:
            job = self._jobs[0]
            if job.exception() is not None and failed is None:  # an interrupt leaves the job where it is
                failed = job
            self._jobs.popleft()
        if failed is not None:
            failed.result()

    def finish(self) -> None:
        """Before a fork: libraries do not survive it in the middle of their work."""
        for job in self._jobs:
            job.exception()

    def forget(self) -> None:
        """In a child process the thread does not exist; the graphs are evaluated when they are asked for."""
        self._pool = None
        self._jobs.clear()


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
    if state.recording or state.compiling:
        evaluate(refs)
        return
    order = topological(refs)
    check_values(order, refs)
    # While the worker runs it takes everything: that keeps the order, and nodes may change while they are looked at.
    if _worker.is_idle() and tiers.op_by_op_seconds(order) < WORTH_IT:
        evaluate(refs)
    else:
        _worker.submit(refs, default_device())


def wait() -> None:
    """Wait for what was begun. Raises the first error that it ended with."""
    _worker.wait()
