"""How many threads there are for work on the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smelt.ir import host_threads


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
