"""How many threads there are for work on the host."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest

from smelt.ir import host_threads
from smelt.ir.settings import override


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


def test_an_interrupt_waits_for_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = threading.Event()

    class Queue:
        """What the caller waits for; the first time it is interrupted."""

        def __init__(self) -> None:
            self.inner: SimpleQueue[None] = SimpleQueue()
            self.put = self.inner.put

        def get(self) -> None:
            if not interrupted.is_set():
                interrupted.set()
                raise KeyboardInterrupt
            self.inner.get()

    ended = []

    def body(rows: slice) -> None:
        if rows.start:
            interrupted.wait()
        ended.append(rows.start)

    monkeypatch.setattr(host_threads, "SimpleQueue", Queue)
    with override(num_threads=3), pytest.raises(KeyboardInterrupt):
        host_threads.share(3, 1.0, body)
    assert sorted(ended) == [0, 1, 2]
