"""A command run repeatedly, in isolation, without loading what it needs each time.

smelt's own commands run in a forked copy of this process, one after the other, so loading, which takes a second,
happens once. A copy that crashes or takes too long is ended, with all that it started, and the next try gets another.
Other commands run as processes of their own, and so do all of them where a fork is not safe.
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
from typing import Any

from .isolate import signal_name
from .usage import UsageError

#: The commands of smelt, by name.
OWN = ("smelt", "smelt-opt")
#: Flags of these that end what takes too long, which only another process can.
LIMITS = ("--parse-timeout", "--pass-timeout")


@dataclass(frozen=True)
class Try:
    """How a command ended: its exit status, None where it took too long, and what it printed."""

    status: int | None
    printed: bytes


class Tries:
    """Runs commands, with nothing on their standard input. What they leave among temporary files is deleted at the end.

    Args:
        seconds: how long each may take.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        self._folder = tempfile.TemporaryDirectory(prefix="smelt-tries-", ignore_cleanup_errors=True)
        self._worker: _Worker | None = None

    def __enter__(self) -> Tries:
        return self

    def __exit__(self, *error: object) -> None:
        self._end_worker()
        self._printed.close()
        self._folder.cleanup()

    def run(self, command: Sequence[str]) -> Try:
        """Run a command. Raises UsageError: it cannot be."""
        self._printed.truncate(0)
        self._printed.seek(0)
        own = command[0] in OWN and sys.platform == "linux"
        status = self._own(command) if own else self._other(command)
        self._printed.seek(0)
        said = self._printed.read()
        if status is not None and status < 0:
            said += f"\ncrashed with {signal_name(-status)}".encode()
        return Try(status, said)

    def _own(self, command: Sequence[str]) -> int | None:
        if not any(word.startswith(LIMITS) for word in command):
            if self._worker is None:
                self._worker = _Worker(self._printed.fileno(), self._folder.name)
            try:
                status = self._worker.run(command, self._seconds)
                if self._worker.waits or status is None:
                    return status
            finally:
                if not self._worker.waits:
                    self._end_worker()
            self._printed.truncate(0)  # the copy is gone: another one sees from outside what the command did last
            self._printed.seek(0)
        worker = _Worker(self._printed.fileno(), self._folder.name, isolate=True)
        try:
            return worker.run(command, self._seconds)
        finally:
            worker.end()

    def _other(self, command: Sequence[str]) -> int | None:
        own_group = os.name == "posix"
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._printed, stderr=self._printed,
                start_new_session=own_group, env={**os.environ, "TMPDIR": self._folder.name},
            )  # fmt: skip
        except OSError as error:
            raise UsageError(f"{command[0]} cannot be run: {error.strerror}") from None
        try:
            return process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)
            process.wait()

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class _Worker:
    """A copy of this process that runs commands of smelt, each in a process of its own with `isolate`.

    Attributes: waits, whether it is ready for one.
    """

    def __init__(self, printed: int, folder: str, isolate: bool = False):
        import multiprocessing

        sys.stdout.flush()
        sys.stderr.flush()
        processes = multiprocessing.get_context("fork")
        self._here, there = processes.Pipe()
        self._process: Any = processes.Process(target=_serve, args=(there, printed, folder, isolate))
        self._process.start()
        there.close()
        self.waits = True

    def run(self, command: Sequence[str], seconds: float) -> int | None:
        self.waits = False
        self._here.send(list(command))
        if not self._here.poll(seconds):
            return None
        try:
            status: int = self._here.recv()
        except EOFError:
            self._process.join()
            status = self._process.exitcode
            return status
        self.waits = True
        return status

    def end(self) -> None:
        _end(self._process)
        self._process.join()
        self._here.close()


def _serve(connection: Any, printed: int, folder: str, isolate: bool) -> None:
    """Run the commands that come, as if each had been started, with a folder for temporary files."""
    os.setsid()
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    from . import cli, opt

    with suppress(EOFError):
        while True:
            name, *arguments = connection.recv()
            status = (cli if name == "smelt" else opt).main(arguments, isolate=isolate)
            sys.stdout.flush()
            sys.stderr.flush()
            connection.send(status)


def _end(process: Any) -> None:
    """End a process, and those that it started."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
