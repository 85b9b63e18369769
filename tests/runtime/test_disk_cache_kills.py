"""Processes that share a folder of programs are killed at random moments: nothing is wrong or damaged afterwards.

`tests/long/test_processes.py` kills more of them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smelt.backends.cpu import objects

pytestmark = pytest.mark.skipif(not objects.supported(), reason="no objects are loaded on this machine")

ROOT = Path(__file__).resolve().parents[2]
#: Bytes of the folder: so that some entries have to go, and so that none has to.
TIGHT, WIDE = 2_000_000, 20_000_000


def _start(folder: Path, most: int, seed: int, *arguments: str) -> subprocess.Popen[str]:
    limits = {"SMELT_CACHE": "1", "SMELT_CACHE_DIR": str(folder), "SMELT_CACHE_DISK_BYTES": str(most)}
    command = [sys.executable, "-m", "tests.runtime.kept_program", str(seed), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **limits}, **pipes)  # type: ignore[call-overload]


def killed(folder: Path, most: int, kills: int, processes: int, seconds: float) -> list[int]:
    """Kill writers, each up to `seconds` after it was ready: entries afterwards, programs found, damaged entries.

    Args:
        most: bytes of the folder.
    """
    rng = random.Random(kills)
    _start(folder, most, 0, "once").communicate(timeout=300)  # programs that the others find
    running = [_start(folder, most, i) for i in range(processes)]
    for i in range(kills):
        victim = running[i % processes]
        assert victim.stdout is not None and victim.stderr is not None
        victim.stdout.readline()  # ready, or dead
        time.sleep(rng.uniform(0, seconds))
        assert victim.poll() is None, victim.stderr.read()
        victim.kill()
        victim.communicate()
        running[i % processes] = _start(folder, most, processes + i)
    for last in running:
        last.kill()
        last.communicate()
    after = _start(folder, most, 0, "once")
    output, error = after.communicate(timeout=300)
    assert after.returncode == 0, error
    (place,) = folder.iterdir()
    sizes = [path.stat().st_size for path in place.iterdir() if not path.name.startswith(".")]
    assert sum(sizes) <= most
    return [int(word) for word in output.split()]


def test_writers_are_killed(tmp_path: Path) -> None:
    entries, _, damaged = killed(tmp_path, TIGHT, kills=6, processes=3, seconds=0.4)
    assert entries > 0 and damaged == 0
