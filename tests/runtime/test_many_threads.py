"""Many threads at once; for longer: tests/long/test_processes.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("threads_program.py")


def many_threads(threads: int, seconds: float, seed: int) -> int:
    """The rounds that so many threads did."""
    command = [sys.executable, str(PROGRAM), str(threads), str(seconds), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 400)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    return int(done.stdout)


def test_threads_evaluate_compile_allocate_and_drop() -> None:
    assert many_threads(8, 3, 0) > 8
