"""The process that compiles beside a program; see `background`. Started by `background`, never imported by it.

It reads jobs from its standard input and writes programs as bytes to its standard output, one after the other. It
ends when its parent does: at the end of its input, or, where another process has a copy of the parent's end of it,
when the parent is gone; and when there was nothing to do for long. What it is compiling then goes to disk first.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import Any

from smelt.backends.device import Lazy
from smelt.ir.settings import override, settings

from .compile import compile_anew
from .device import device_named
from .frames import HEADER, frame
from .kept import Recipe

#: How far it stands back. Not far: what it makes saves more than it takes, and where the program beside it keeps all
#: cores busy (threads of a BLAS do so even between products) one that stood back by 10 would get a tenth of a core.
NICE = 3
#: How often it looks for its parent where the system cannot tell it.
WATCH_SECONDS = 2.0
#: After so long without a job it ends: it takes memory, and another is started in a second. The shorter time is for one
#: that has asked a device: it takes memory there.
IDLE_SECONDS, IDLE_ON_DEVICE = 300.0, 1.0


class _Parent:
    """The process that has started this one."""

    def __init__(self, number: int):
        self._number = number
        self.patience = IDLE_SECONDS  #: see there
        self._handle: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._handle = os.pidfd_open(number)

    def wait_for(self, descriptor: int) -> bool:
        """Wait until there is something to read; False: the parent is gone, or has nothing to do for long.

        What a parent has left that is gone is read still: a short program may end before this process has started,
        and the next one finds on disk what it asked for.
        """
        if select.select([descriptor], [], [], 0)[0]:
            return True
        watched = [descriptor] if self._handle is None else [descriptor, self._handle]
        end = time.monotonic() + self.patience
        while os.getppid() == self._number and (left := end - time.monotonic()) > 0:
            ready = select.select(watched, [], [], min(left, WATCH_SECONDS) if self._handle is None else left)[0]
            if ready:
                return descriptor in ready
        return False


def _read(descriptor: int, parent: _Parent, size: int) -> bytes | None:
    """The next `size` bytes, or None at the end."""
    found = bytearray()
    while len(found) < size:
        if not parent.wait_for(descriptor):
            return None
        part = os.read(descriptor, size - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def _compiled(job: dict[str, Any]) -> tuple[bytes, float]:
    """A program as bytes, and what processor time it took; nothing where it cannot be made here. What is made ready to
    run has its machine code on disk, too, where there is a cache."""
    with override(**job["settings"]):
        device = device_named(job["device"])
        recipe = Recipe(job["text"], device, lambda: job["located"], job["pipeline"], job["reader"])
        module = Lazy(job["reader"]).load()(job["located"])
        program = compile_anew(module, recipe.device, recipe.pipeline, prepare=job["prepare"] and settings.cache)
        return recipe.keep(program) or b"", program.worked


def main() -> None:
    """Compile until there is nobody to compile for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    jobs, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what anything prints is no answer
    parent = _Parent(int(sys.argv[1]))
    while True:
        header = _read(jobs, parent, HEADER.size)
        body = None if header is None else _read(jobs, parent, *HEADER.unpack(header))
        if body is None:
            return
        job = json.loads(body)
        start = time.perf_counter()
        if job["prepare"]:
            parent.patience = IDLE_ON_DEVICE
        try:
            content, worked = _compiled(job)
        except Exception:  # the caller compiles in place, and sees the error there
            content, worked = b"", 0.0
        about = {"id": job["id"], "seconds": time.perf_counter() - start, "worked": worked}
        rest = memoryview(frame(json.dumps(about).encode() + b"\n" + content))
        try:
            while rest:
                rest = rest[os.write(answers, rest) :]
        except OSError:
            return
