"""Compiling beside a running program, in a process of its own.

LLVM's work holds the interpreter's lock, so a thread that compiles stalls all others; another process does not. A
worker is started for the first job, compiles one module after the other, and hands programs back as bytes, which load
in a millisecond or two. Where it has much to do and there are cores enough, another one is started. Nothing here
waits: `compile_in_background` hands a job over, and `Pending.ready` says whether its program is there.

A worker that dies is started again. Where that happens repeatedly, where programs of a device have no form as bytes, or
where their compile asks a device that has no room for another process, there is no background: `compile_in_background`
returns None, and the caller compiles in place.

What is called while programs run is bound when this is imported (`from json import loads`): tests of programs replace
functions of Python's library (`mock.patch("json.loads")`), and messages are read whenever something is evaluated.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import subprocess
import sys
import time
from json import dumps, loads
from typing import Any

from smelt.backends.device import Device
from smelt.backends.executable import Executable
from smelt.ir import locks
from smelt.ir.host_threads import processors
from smelt.ir.settings import OF_PROGRAMS, logs_compiles, settings

from . import explain
from .frames import frame, taken
from .kept import Recipe

#: Deaths in a row after which no worker is started any more; deaths that one job survives.
MOST_DEATHS, MOST_TRIES = 3, 2
#: Workers at most, and cores of the machine for each.
MOST_WORKERS, CORES_EACH = 4, 2
#: Another worker is started where those that there are have texts of so many characters to compile: half a second.
MUCH = 25_000
#: Settings of this process that decide what the worker does.
_SETTINGS = (*OF_PROGRAMS, "cache", "cache_dir", "cache_disk_bytes")
_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from smelt.runtime.worker import main; main()"


class Pending:
    """A program that is being compiled. `ready`, then `program`; neither waits.

    Attributes:
        subject: what `explain` is told of it, once.
    """

    def __init__(self, recipe: Recipe):
        self._recipe = recipe
        self.subject: explain.Subject | None = None
        self._job: dict[str, Any] = {}
        self._program: Executable | None = None
        self._content = b""  #: the program as bytes, until it is asked for
        self._seconds = self._worked = 0.0
        self._over = False
        self._tries = 0
        self._worker: _Worker | None = None  #: who compiles it

    @property
    def is_over(self) -> bool:
        """`ready` as far as it is known, without a look at who compiles it."""
        return self._over

    def ready(self) -> bool:
        """Whether it is over, with a program or without."""
        if not self._over and self._worker is not None:
            self._worker.move()
        return self._over

    def program(self) -> Executable | None:
        """The program once it is ready; None before, and where the worker could not make it: then the caller
        compiles in place, which raises what is wrong with the module, if anything is."""
        if self.ready() and self._content:
            self._program = self._recipe.load(self._content)
            if self._program is not None:
                self._program.seconds, self._program.worked = self._seconds, self._worked
            self._content = b""
        if self._program is not None and self.subject is not None:
            subject, self.subject = self.subject, None
            explain.note(subject, self._program, self._recipe.device, "beside" if self._job else "")
        return self._program

    def wait(self, seconds: float) -> bool:
        """Wait for it, at most so long; whether it is ready."""
        end = time.monotonic() + seconds
        while not self.ready():
            left = end - time.monotonic()
            if left <= 0 or self._worker is None:
                return False
            self._worker.wait(left)
        return True

    def _end(self, content: bytes = b"", seconds: float = 0.0, worked: float = 0.0) -> None:
        self._content, self._seconds, self._worked, self._over = content, seconds, worked, True


class _Ended(OSError):
    """The worker has closed its end."""


class _Worker:
    """A worker process of this process, seen from here."""

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._forget()
        self.deaths = 0  #: in a row
        self.starts = 0

    def _forget(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._jobs: dict[int, Pending] = {}
        self._unsent = bytearray()
        self._received = bytearray()
        self._next = 0

    @property
    def is_given_up(self) -> bool:
        return self.deaths >= MOST_DEATHS

    @property
    def queued(self) -> int:
        """Characters that it has to compile."""
        return sum([len(p._job["text"]) for p in list(self._jobs.values())])

    def submit(self, pending: Pending) -> None:
        pending._worker = self
        with self._lock:
            locks.whole(lambda: self._take(pending))

    def _take(self, pending: Pending) -> None:
        if self.process is not None and not self._jobs and self.process.poll() is not None:  # it had nothing to do
            _close(self.process)
            self._forget()
        if self.process is None:
            self._start()
        self._send(pending)
        self._move()

    def _send(self, pending: Pending) -> None:
        pending._tries += 1
        self._next += 1
        self._jobs[self._next] = pending
        job = {"id": self._next, "settings": {name: getattr(settings, name) for name in _SETTINGS}}
        self._unsent += frame(dumps({**job, **pending._job}).encode())

    def _start(self) -> None:
        """A new process. It gets the paths of this one, and neither its terminal's signals nor its folder."""
        paths = dumps([path for path in sys.path if isinstance(path, str)])
        flags = ["-I"] + (["-B"] if sys.dont_write_bytecode else [])
        command = [sys.executable, *flags, "-c", _START, str(os.getpid()), paths]
        errors = None if logs_compiles(settings) else subprocess.DEVNULL
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0,
                start_new_session=True, env={k: v for k, v in os.environ.items() if k != "SMELT_PROFILE"},
            )  # fmt: skip
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
            self.starts += 1
        except OSError:
            self.process, self.deaths = None, MOST_DEATHS

    def move(self) -> None:
        """Write and read what can be without waiting."""
        with self._lock:
            if self._jobs and self.wait(0):
                locks.whole(self._move)  # Ctrl-C cuts no message in two

    def _move(self) -> None:
        while self.process is not None:
            try:
                self._write()
                if not self._read():
                    return
            except OSError:
                self._bury()
        for pending in self._jobs.values():
            pending._end()
        self._jobs.clear()

    def _write(self) -> None:
        assert self.process is not None and self.process.stdin is not None
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: os.write(self.process.stdin.fileno(), memoryview(self._unsent)[: 1 << 20])]

    def _read(self) -> bool:
        """Whether something was read. Raises _Ended at the end."""
        assert self.process is not None and self.process.stdout is not None
        if not self._jobs:
            return False
        try:
            part = os.read(self.process.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return False
        if not part:
            raise _Ended
        self._received += part
        while (message := taken(self._received)) is not None:
            about, _, content = message.partition(b"\n")
            self.deaths = 0
            found = loads(about)
            self._jobs.pop(found["id"])._end(content, found["seconds"], found["worked"])
        return True

    def _bury(self) -> None:
        """The process has died: start another, and give it the jobs; those that it may have died of only once more."""
        process, jobs, deaths = self.process, list(self._jobs.values()), self.deaths + 1
        if process is not None:
            _close(process)
            process.kill()
            process.wait()
        self._forget()
        self.deaths = deaths
        if not self.is_given_up and any(p._tries < MOST_TRIES for p in jobs):
            self._start()
        for pending in jobs:
            if self.process is not None and pending._tries < MOST_TRIES:
                self._send(pending)
            else:
                pending._end()

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to read or to write, at most so long; whether there is."""
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            return True
        watched = select.poll()
        try:
            watched.register(process.stdout, select.POLLIN)
            if self._unsent:
                watched.register(process.stdin, select.POLLOUT)
            return bool(watched.poll(seconds * 1000))
        except (OSError, ValueError):  # closed, by another thread
            return True

    @property
    def is_busy(self) -> bool:
        return bool(self._jobs)

    def end(self) -> None:
        """Let go of the process at the end of this one. What it is compiling is of use only where that is kept."""
        if self.process is not None and not settings.cache:
            self.process.kill()
        self.leave()

    def leave(self) -> None:
        """Let go of the process: it ends by itself."""
        with self._lock:
            process = self.process
            for pending in self._jobs.values():
                pending._end()
            self._forget()
            if process is not None:
                _close(process)
                process.returncode = 0  # nobody waits for it any more


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


_workers = [_Worker() for _ in range(max(1, min(MOST_WORKERS, processors() // CORES_EACH)))]
_worker = _workers[0]
#: For programs whose compile asks a device.
_on_device = _Worker()
for _each in (*_workers, _on_device):
    atexit.register(_each.end)
    if hasattr(os, "register_at_fork"):  # a child process has workers of its own, and lets its parent's see their end
        os.register_at_fork(after_in_child=_each.leave)


def _least_busy() -> _Worker:
    """The worker that gets the next job: a running one, unless all of these have much to do."""
    there = [w for w in _workers if w.process is not None]
    found = min(there, key=lambda w: w.queued, default=_workers[0])
    if there and found.queued >= MUCH:
        return next((w for w in _workers if w.process is None), found)
    return found


def compile_in_background(text: str, device: Device) -> Pending | None:
    """Have a module compiled by another process, or find it compiled on disk.

    Args:
        text: the module before any pass, without locations: `ir.text.to_text`.

    Returns:
        What says when the program is there. None where there is no background (programs of the device have no form
        as bytes, the program depends on what only this process knows, or workers have died repeatedly): compile in
        place.

    Does not wait, and raises nothing: what is wrong with a module shows when it is compiled in place.

    >>> import smelt
    >>> from smelt.runtime.background import compile_in_background
    >>> text = smelt.make_ir(lambda x: smelt.exp(x) * 2)(smelt.zeros(4))
    >>> pending = compile_in_background(text, smelt.default_device())
    >>> program = None
    >>> if pending is not None and pending.wait(60):  # or ask `pending.ready()` now and then
    ...     program = pending.program()
    >>> program is None or len(program.kernels)
    1
    """
    return submit(Recipe(text, device), beside_device=True)


def wait_for_all(seconds: float) -> bool:
    """Wait until nothing is being compiled, at most so long; whether anything was."""
    workers = (*_workers, _on_device)
    was_busy, end = any(w.is_busy for w in workers), time.monotonic() + seconds
    for worker in workers:
        while worker.is_busy and (left := end - time.monotonic()) > 0:
            worker.wait(left)
            worker.move()
    return was_busy


def submit(recipe: Recipe, beside_device: bool = False) -> Pending | None:
    """`compile_in_background` of what a recipe says.

    Args:
        beside_device: whether it is worth another process on a device that a compile asks.
    """
    if recipe.keys is None:
        return None
    pending = Pending(recipe)
    found = recipe.find()
    if found is not None:
        pending._program, pending._over = found, True
        return pending
    portable = recipe.device.portable
    if portable is None or (portable.needs_device and not (beside_device and portable.has_room())):
        return None
    worker = _on_device if portable.needs_device else _least_busy()
    if any(w.is_given_up for w in (*_workers, worker)) or not sys.executable or getattr(sys, "frozen", False):
        return None
    pending._job = {
        "text": recipe.text, "located": recipe.located, "device": recipe.device.name, "pipeline": recipe.pipeline,
        "reader": recipe.reader, "prepare": portable.needs_device,
    }  # fmt: skip
    worker.submit(pending)
    return pending
