"""Memory that is kept for reuse, of any device.

Fresh pages cost more than most kernels (a 0.5 GB result spends some 130 ms in page faults), so blocks return to a
pool when nothing refers to them any more.

A block belongs to its owner, the object at the base of every view of it. When the owner dies, its lease, a weak
reference, goes into a queue that the pool drains. An owner may die anywhere: in a collection of garbage inside
`take`, in another thread, in a handler of a signal. So nothing here takes a lock; every step is one operation of a
container, which is atomic, and after each step the pool is whole. An exception between two steps (Ctrl-C) can at
most leave a sum too high, and what is refused for a sum is counted first.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections import deque
from typing import Any

from smelt.ir.errors import OutOfMemoryError, at_user_line
from smelt.ir.settings import settings


@functools.lru_cache(maxsize=4096)
def size_class(nbytes: int, smallest: int = 256) -> int:
    """Bytes of the block that holds `nbytes`: rounded up to an eighth of the power of two below, and to `smallest`,
    so that near sizes share blocks."""
    step = max(smallest, 1 << max(0, nbytes.bit_length() - 4))
    return max(smallest, -(-nbytes // step) * step)


class Lease(weakref.ref):
    """What the pool knows of a block in use: a weak reference to its owner."""

    __slots__ = ("memory", "prompt", "size")

    memory: Any
    size: int
    prompt: Any


class Pool:
    """Blocks by size. Thread-safe, and safe in destructors and handlers of signals.

    A device's pool says in `size_of` which sizes there are and in `make` where memory comes from.

    Attributes:
        limit: bytes in use that `take` refuses to exceed; 0: none.
        outside: bytes of arrays besides those of the pool that count, as far as they are known.
    """

    #: Where its memory is, for errors.
    where = ""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.outside = 0
        self._free: dict[int, list[Any]] = {}
        self._lent: dict[int, Lease] = {}
        self._returned: deque[Lease] = deque()
        self._active = self._cached = self._peak = self._sweep_at = 0

    # What devices differ in

    def size_of(self, nbytes: int) -> int:
        """The size of the block that holds `nbytes`."""
        raise NotImplementedError

    @property
    def most_cached(self) -> int:
        """Bytes that are kept for reuse at most."""
        return settings.pool_bytes

    def put(self, blocks: list[Any], memory: Any) -> None:
        """Keep memory among blocks of its size; one operation."""
        blocks.append(memory)

    def next_of(self, blocks: list[Any]) -> Any:
        """Which of the blocks is used next, no longer among them; one operation. Raises IndexError if there is none."""
        return blocks.pop()

    def make(self, size: int) -> Any:
        """Fresh memory. Raises MemoryError."""
        raise NotImplementedError

    def why(self, nbytes: int) -> str:
        """What to say when there is none."""
        return f"smelt could not allocate {nbytes:,} bytes; {self.active_bytes:,} are in use"

    def why_limited(self, nbytes: int, active: int) -> str:
        """What to say when the limit allows no more."""
        return (
            f"smelt was asked for {nbytes:,} bytes{self.where}; {active:,} are in use and the limit, set by "
            f"smelt.set_memory_limit, is {self.limit:,}"
        )

    # Blocks

    def take(self, nbytes: int) -> Any:
        """Memory for `nbytes`, uninitialized. `lend` gives it an owner.

        Raises:
            OutOfMemoryError: there is none, or more would be in use than the limit allows.
        """
        size = self.size_of(nbytes)
        if self._returned:
            self.settle()
        if self.limit and self._active + self.outside + size > self.limit:
            self._make_room(nbytes, size)
        try:
            memory = self.next_of(self._free[size])
            self._cached -= size
        except (KeyError, IndexError):
            memory = self._fresh(nbytes, size)
        return memory

    def lend(self, owner: Any, memory: Any, nbytes: int) -> None:
        """Take `memory` back when `owner` dies, which holds it and is the base of every view of it."""
        # Nobody may need memory again, so what is beyond the limit goes at once; after the lease is in the queue,
        # for the callbacks of later references come first.
        prompt = weakref.ref(owner, self._settle_soon)
        lease = Lease(owner, self._returned.append)
        size = self.size_of(nbytes)
        lease.memory, lease.size, lease.prompt = memory, size, prompt
        if len(self._lent) > self._sweep_at:
            self.sweep()
        number = id(lease)
        self._lent[number] = lease
        self._active += size
        if self._active > self._peak:
            self._peak = self._active

    def suspend(self, owner: Any) -> Lease | None:
        """Do not take the block of `owner` back when it dies: whoever asks for this lends it again, or resumes. None
        where the block is none of this pool."""
        for lease in weakref.getweakrefs(owner):
            if isinstance(lease, Lease) and self._lent.pop(id(lease), None) is not None:
                self._active -= lease.size
                return lease
        return None

    def resume(self, lease: Lease) -> None:
        """Take the block back when its owner dies, after all; the owner lives."""
        self._lent[id(lease)] = lease
        self._active += lease.size

    def settle(self) -> None:
        """Take back what owners have left."""
        while True:
            try:
                lease = self._returned.popleft()
            except IndexError:
                return
            self._take_back(lease)

    def sweep(self) -> None:
        """`settle`, and find leases that an exception kept from being taken back."""
        self.settle()
        for lease in list(self._lent.values()):
            if lease() is None:
                self._take_back(lease)
        self._sweep_at = 2 * len(self._lent) + 64

    def _take_back(self, lease: Lease) -> None:
        if self._lent.pop(id(lease), None) is None:
            return
        size, most = lease.size, self.most_cached
        self._active -= size
        if self._cached + size <= most or self._count_cached() + size <= most:
            self._cached += size
            self.put(self._free.setdefault(size, []), lease.memory)

    def _settle_soon(self, owner: Any, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing():
            self.settle()

    def clear(self) -> None:
        """Give all memory kept for reuse back to the system."""
        self.settle()
        while self._free:
            try:
                size, blocks = self._free.popitem()
            except KeyError:  # another thread was quicker
                break
            self._cached -= size * len(blocks)

    def _fresh(self, nbytes: int, size: int) -> Any:
        if self.limit and self._active + self.outside + self._cached + size > self.limit:
            self.clear()
        for prepare in (self.clear, gc.collect, self.clear):
            try:
                return self.make(size)
            except MemoryError:
                prepare()
        try:
            return self.make(size)
        except MemoryError:
            raise OutOfMemoryError(at_user_line(self.why(nbytes))) from None

    def _make_room(self, nbytes: int, size: int) -> None:
        """Look for arrays that nobody can reach any more. Raises OutOfMemoryError if the limit stays exceeded."""
        if self.active_bytes + self.outside + size > self.limit:
            gc.collect()
        active = self.active_bytes + self.outside
        if active + size > self.limit:
            raise OutOfMemoryError(at_user_line(self.why_limited(nbytes, active)))

    # Sums

    @property
    def active_bytes(self) -> int:
        """In use by blocks."""
        self.sweep()
        return sum([lease.size for lease in list(self._lent.values())])

    @property
    def cached_bytes(self) -> int:
        """Kept for reuse."""
        self.settle()
        return self._count_cached()

    @property
    def peak_bytes(self) -> int:
        """The most that were in use at once since the start, or since it was set."""
        return self._peak

    @peak_bytes.setter
    def peak_bytes(self, nbytes: int) -> None:
        self._peak = nbytes

    def _count_cached(self) -> int:
        return sum([size * len(blocks) for size, blocks in list(self._free.items())])
