"""A command run again and again, safely and without waiting for what it loads each time.

smelt's own commands run in copies of this process, which has loaded what they need: a fork takes milliseconds where a
new process takes a second. A copy that crashes, or is ended, takes nothing else with it. Other commands are processes
of their own, and so are all where a fork is not safe.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from .usage import UsageError

#: The commands of smelt, by name.
_OWN = ("smelt", "smelt-opt")


@dataclass(frozen=True)
class Try:
    """How a command ended: its exit status, None where it took too long, and what it printed."""

    status: int | None
    printed: bytes


def run(command: Sequence[str], seconds: float) -> Try:
    """Run a command, with nothing on its standard input, for so long at most.

    Raises:
        UsageError: it cannot be run.
    """
    with tempfile.TemporaryFile() as printed:
        own = command[0] in _OWN and sys.platform == "linux"
        try:
            status = _forked(command, seconds, printed) if own else _started(command, seconds, printed)
        except OSError as error:
            raise UsageError(f"{command[0]} cannot be run: {error.strerror}") from None
        printed.seek(0)
        return Try(status, printed.read())


def _started(command: Sequence[str], seconds: float, printed: IO[bytes]) -> int | None:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=os.name == "posix"
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)
        process.wait()


def _forked(command: Sequence[str], seconds: float, printed: IO[bytes]) -> int | None:
    import multiprocessing

    sys.stdout.flush()
    sys.stderr.flush()
    process: Any = multiprocessing.get_context("fork").Process(target=_child, args=(command, printed.fileno()))
    process.start()
    try:
        process.join(seconds)
        found: int | None = process.exitcode
        return found
    finally:
        _end(process)
        process.join()


def _child(command: Sequence[str], printed: int) -> None:
    """A command of smelt in a copy of the process, as if it had been started."""
    os.setsid()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    from . import cli, opt

    sys.exit((cli if command[0] == "smelt" else opt).main(command[1:]))


def _end(process: Any) -> None:
    """End a process, and those that it started."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
