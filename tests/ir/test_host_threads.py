"""Threads for work on the host: how many, and what an interrupt leaves."""

from __future__ import annotations

import _thread
import contextlib
import functools
import gc
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from smelt.backends.cpu import threads
from smelt.ir import host_threads, locks
from smelt.ir.settings import override

from .. import interrupts


@pytest.mark.parametrize(
    "files, wanted",
    [
        ({"max": "200000 100000"}, 2), ({"max": "150000 100000"}, 2), ({"max": "50000 100000"}, 1),
        ({"max": "max 100000"}, 8), ({"max": ""}, 8), ({"max": "0 0"}, 8), ({"max": "6400000 100000"}, 8),
        ({"quota": "300000", "period": "100000"}, 3), ({"quota": "-1", "period": "100000"}, 8), ({}, 8),
        ({"quota": "300000"}, 8),
    ],
)  # fmt: skip
def test_a_container_has_the_processors_of_its_time(
    files: dict[str, str], wanted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content + "\n")
    places = tuple(tuple(str(tmp_path / name) for name in names) for names in (("max",), ("quota", "period")))
    monkeypatch.setattr(host_threads, "_QUOTAS", places)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    host_threads.processors.cache_clear()
    try:
        assert host_threads.processors() == wanted
    finally:
        monkeypatch.undo()
        host_threads.processors.cache_clear()


#: What an interrupt may come in.
TOGETHER = (
    host_threads.together, host_threads._begin, host_threads._wait, host_threads._Part.wait, host_threads._Part.is_mine,
)  # fmt: skip


def test_an_interrupt_waits_for_all_parts() -> None:
    begun, ended = [], []

    def body(rows: slice) -> None:
        begun.append(rows.start)
        time.sleep(0.0 if threading.current_thread() is threading.main_thread() else 0.005)
        ended.append(rows.start)

    def run() -> None:
        with override(num_threads=3):
            host_threads.share(3, 1.0, body)

    inside = (host_threads.share, *TOGETHER)
    places = 0
    for place in interrupts.everywhere(run, *inside):
        now = len(ended)
        assert len(begun) == now, place
        time.sleep(0.001)
        assert len(begun) == len(ended) == now, place
        begun.clear(), ended.clear()
        places += 1
    assert places > 20


class _Held:
    """What a part works on, such as a large array."""


def test_what_is_queued_behind_long_work_keeps_nothing() -> None:
    end, held = threading.Event(), _Held()
    left = weakref.ref(held)
    helpers = host_threads._Helpers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_threads, "_helpers", helpers)
        try:
            helpers.call([lambda: bool(end.wait(30))] * 2)
            host_threads.together([lambda: None, functools.partial(id, held)])
            del held
            assert left() is None
        finally:
            end.set()


def _interrupted() -> object:
    return locks.signals_later(lambda: signal.raise_signal(signal.SIGINT))


@pytest.mark.parametrize(
    "run",
    [
        host_threads.together, lambda bodies: threads.PythonThreads().launch(lambda table: bodies[0](), 0, 7, 3),
        lambda bodies: locks.whole(bodies[0]), lambda bodies: locks.whole(_interrupted),
        lambda bodies: _interrupted(),
    ],
)  # fmt: skip
def test_an_error_keeps_nothing_when_it_has_been_caught(run: Callable[[list[Callable[[], None]]], object]) -> None:
    def fail() -> None:
        time.sleep(0.001)
        raise MemoryError

    def caught() -> weakref.ref[_Held]:
        held = _Held()  # the error's traceback refers to this frame
        with contextlib.suppress(MemoryError, KeyboardInterrupt):
            run([fail, fail])
        return weakref.ref(held)

    gc.collect()
    gc.disable()
    try:
        left = [caught() for _ in range(5)]
        assert [x() for x in left] == [None] * 5
    finally:
        gc.enable()


def _no_thread(*arguments: object) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.skipif(sys.platform == "win32", reason="signals come later there")
def test_an_interrupt_is_raised_where_no_threads_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "_helpers", host_threads._Helpers())
    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    begun: list[int] = []

    def body(rows: slice) -> None:
        begun.append(rows.start)
        if rows.start == 2:
            signal.raise_signal(signal.SIGINT)

    with override(num_threads=3), pytest.raises(KeyboardInterrupt):
        host_threads.share(3, 1.0, body)
    assert begun == [0, 1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="signals come later there")
def test_an_action_is_whole_where_no_threads_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", _no_thread)
    ended: list[int] = []

    def action() -> None:
        signal.raise_signal(signal.SIGINT)
        ended.append(1)

    with pytest.raises(KeyboardInterrupt):
        locks.whole(action)
    assert ended == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGUSR1")
def test_all_handlers_of_signals_are_back_after_an_interrupt() -> None:
    numbers = [signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2]
    seen: list[int] = []
    before = [signal.signal(number, lambda number, frame: seen.append(number)) for number in numbers]
    mine = [signal.getsignal(number) for number in numbers]
    try:
        for place in interrupts.everywhere(
            lambda: locks.signals_later(lambda: signal.raise_signal(signal.SIGUSR1)), locks.signals_later, locks._handle
        ):
            assert [signal.getsignal(number) for number in numbers] == mine, place
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
    assert set(seen) == {signal.SIGUSR1}


def test_an_action_that_is_to_be_whole_ends_before_an_interrupt() -> None:
    begun, ended = [], []

    def action() -> None:
        begun.append(1)
        time.sleep(0.002)
        ended.append(1)

    for place in interrupts.everywhere(lambda: locks.whole(action), locks.whole, locks._Job.wait):
        assert len(begun) == len(ended) <= 1, place
        begun.clear(), ended.clear()
