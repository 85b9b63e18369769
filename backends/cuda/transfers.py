"""Copies between the host and the GPU by way of pinned memory: at the speed of the bus, and without waiting for what
was launched before, unless its result is asked for."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from smelt.ir import host_threads, locks
from smelt.ir.errors import DeviceError, OutOfMemoryError

from . import driver

#: Pinned bytes for each way, and those that are copied at a time while others are on the bus.
RING_BYTES, PART_BYTES = 32 << 20, 8 << 20
#: Parts that are lent at a time, about, and at most: small ones would be many, and each is looked at.
FEW_LENT, MOST_LENT = 32, 512
#: Seconds that one thread of the host takes for a byte, about, where pages are new.
_SECONDS = 4e-10


class _Lent(NamedTuple):
    """Bytes of a ring from `start` to `end`, until the GPU has reached an event."""

    start: int
    end: int
    event: driver.Event


class Ring:
    """Pinned memory that is lent in turn."""

    def __init__(self) -> None:
        self._guard = locks.lock()
        self._address: int | None = None
        self._at = 0
        self._is_used = False
        self._lent: deque[_Lent] = deque()

    @contextlib.contextmanager
    def used(self) -> Iterator[bool]:
        """Whether the block may use it: not where there is none, nor in a handler of a signal that came while it is
        used. When the block is cut short, whatever it has begun, all of the ring is the GPU's until that has run."""
        with self._guard:
            if self._is_used or not self.address:
                yield False
                return
            try:
                self._is_used = True
                yield True
            except BaseException:
                with contextlib.suppress(DeviceError, OutOfMemoryError):
                    self.lend(self.address, RING_BYTES)
                raise
            finally:
                self._is_used = False

    @property
    def address(self) -> int:
        """Where it begins; 0 where the system has none to pin."""
        if self._address is None:
            try:
                self._address = driver.pinned(RING_BYTES)
            except OutOfMemoryError:
                self._address = 0
        return self._address

    def parts(self, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """`nbytes` bytes in parts: the offset of each, its length, and where in the ring it may lie. Waits until that
        place is no longer lent."""
        for offset in range(0, nbytes, PART_BYTES):
            length = min(PART_BYTES, nbytes - offset)
            start = self._at if self._at + length <= RING_BYTES else 0
            while any(x.start < start + length and start < x.end for x in self._lent):
                self._lent.popleft().event.wait()
            self._at = start + length
            yield offset, length, self.address + start

    def lend(self, place: int, length: int) -> driver.Event:
        """Let a part be the GPU's until all that has been launched so far has run; the event that says so."""
        while len(self._lent) > MOST_LENT:
            self._lent.popleft().event.wait()
        while len(self._lent) > FEW_LENT and self._lent[0].event.is_reached:
            self._lent.popleft()
        event, start = driver.Event(timed=False), place - self.address
        event.record()
        self._lent.append(_Lent(start, start + length, event))
        return event


@functools.cache
def ring(to_gpu: bool) -> Ring:
    """The ring for transfers in one direction."""
    return Ring()


def _move(target: int, source: int, nbytes: int) -> None:
    """Copies bytes of the host, by several threads where there are many."""

    def part(found: slice) -> None:
        ctypes.memmove(target + found.start, source + found.start, found.stop - found.start)

    host_threads.share(nbytes, nbytes * _SECONDS, part)


class Memory(driver.Memory):
    """Bytes on the GPU that are written and read by way of pinned memory."""

    def write(self, source: int, nbytes: int | None = None, offset: int = 0) -> None:
        """Copies from an address of the host to `offset`, after what was launched before, without waiting for that. The
        host may use its memory again."""
        size = self.nbytes if nbytes is None else nbytes
        way = ring(to_gpu=True)
        driver.enter()
        with way.used() as is_mine:
            if not is_mine:
                super().write(source, size, offset)
                return
            for at, length, place in way.parts(size):
                _move(place, source + at, length)
                driver.copy_async("HtoD", self.address + offset + at, place, length)
                way.lend(place, length)

    def read(self, target: int, nbytes: int | None = None, offset: int = 0) -> None:
        size = self.nbytes if nbytes is None else nbytes
        way = ring(to_gpu=False)
        driver.enter()
        with way.used() as is_mine:
            if not is_mine:
                super().read(target, size, offset)
                return
            coming: deque[tuple[driver.Event, int, int, int]] = deque()

            def arrive() -> None:
                event, at, place, length = coming.popleft()
                event.wait()
                _move(target + at, place, length)

            for at, length, place in way.parts(size):
                driver.copy_async("DtoH", place, self.address + offset + at, length)
                coming.append((way.lend(place, length), at, place, length))
                if len(coming) == RING_BYTES // PART_BYTES - 1:  # before the ring is lent anew
                    arrive()
            while coming:
                arrive()
