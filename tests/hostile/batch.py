"""Mutations by the batch, each batch in a process of its own: a crash or a hang names its seed and goes on behind it.

``python -m tests.hostile.batch SUBJECT FIRST COUNT`` runs one here and shows what was found.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

#: No mutation takes so long; there is much around it on a busy machine.
SECONDS = 60.0
INTERPRETER = [sys.executable]


@dataclass
class Finding:
    """What came of a mutation that should have been an error of smelt, or nothing."""

    subject: str
    seed: int
    what: str

    def __str__(self) -> str:
        return f"python -m tests.hostile.batch {self.subject} {self.seed} 1: {self.what}"


def run(subject: str, first: int, count: int) -> list[Finding]:
    """What mutations number `first` and following find."""
    found: list[Finding] = []
    end = first + count
    while first < end:
        more, first = _child(subject, first, end)
        found += more
    return found


def _child(subject: str, first: int, end: int) -> tuple[list[Finding], int]:
    """What a process finds, and the number of the mutation to go on with."""
    with tempfile.TemporaryDirectory() as folder:
        at, log, errors = (Path(folder, name) for name in ("at", "log", "errors"))
        words = (subject, first, end - first, at, log)
        command = [*INTERPRETER, "-m", "tests.hostile.batch", *map(str, words)]
        paths = [os.environ.get("PYTHONPATH"), str(Path(__file__).parent.parent.parent)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with open(errors, "wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder)
        last, since, what = "", time.monotonic(), ""
        while (code := _finished(process)) is None:
            now = at.read_text() if at.exists() else ""
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > SECONDS:
                process.kill()
                process.wait()
                code, what = -9, f"nothing came back within {SECONDS:g} s"
                break
        found = []
        for line in log.read_text().splitlines() if log.exists() else []:
            seed, _, message = line.partition("\t")
            found.append(Finding(subject, int(seed), message))
        if code == 0:
            return found, end
        seed = int(at.read_text()) if at.exists() else first
        tail = errors.read_text(errors="replace")[-2000:]
        return [*found, Finding(subject, seed, what or f"the process ended with {code}\n{tail}")], seed + 1


def _finished(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(0.2)
    except subprocess.TimeoutExpired:
        return None


def main(subject: str, first: int, count: int, at: str = "", log: str = "") -> None:
    """Run mutations in this process: the number of each is written to the file `at`, findings to `log`."""
    from smelt.ir.errors import SmeltError

    from .subjects import SUBJECTS

    make = SUBJECTS[subject]
    progress = os.open(at, os.O_RDWR | os.O_CREAT) if at else -1
    for seed in range(first, first + count):
        if at:
            os.pwrite(progress, str(seed).ljust(20).encode(), 0)
        case = make(random.Random(f"{subject} {seed}"))
        if not at:
            print(f"--- {seed}\n{case.subject}")  # type: ignore[attr-defined]
        try:
            case()
        except SmeltError as error:
            if not at:
                print(f"--- {type(error).__name__}: {error}")
        except BaseException as error:
            if not at:
                raise
            with open(log, "a", encoding="utf-8", errors="replace") as file:
                message = " ".join(f"{type(error).__name__}: {error}".split())[:500]
                file.write(f"{seed}\t{message}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
