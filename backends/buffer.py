"""Memory of arrays. Large blocks come from a pool, to which they return when nothing refers to them any more.

The elements of an array lie in the host's memory, in a device's, or in both; arrays do not change, so a copy stays
valid. When elements that lie on a device alone are asked for, a copy on the host is made, and kept.
"""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable, Iterable, Sequence
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from smelt.ir import dtypes, host_memory, locks
from smelt.ir.aval import Aval
from smelt.ir.errors import OutOfMemoryError, at_user_line

from .counting import Counted, forget, instances
from .pool import Pool

#: Blocks below this size come from malloc, which keeps them itself.
SMALL = 64 * 1024
ALIGNMENT = 64
#: The bytes of memory that a checked program (SMELT_CHECK=1) has not written: NaN as a float of any width.
POISON = 0xFF


def size_class(nbytes: int) -> int:
    """Sizes are rounded up to an eighth of their power of two, so that near sizes share blocks."""
    if nbytes <= SMALL:
        return SMALL
    step = 1 << max(12, nbytes.bit_length() - 4)
    return -(-nbytes // step) * step


class _Memory(np.ndarray):
    """Memory of the pool. Being of a class of its own it is never the base of a view of a view of it: NumPy passes
    over bases of the same class only."""

    __slots__ = ("start",)

    start: int  #: where the aligned part begins


class CpuPool(Pool):
    """The CPU's memory, as NumPy has it."""

    _expected = 0  #: bytes that were expected since arrays outside were counted

    def size_of(self, nbytes: int) -> int:
        return size_class(nbytes)

    def make(self, size: int) -> _Memory:
        memory = _Memory((size + ALIGNMENT,), np.uint8)
        memory.start = -memory.__array_interface__["data"][0] % ALIGNMENT
        return memory

    def empty(self, aval: Aval) -> np.ndarray:
        """Uninitialized memory as an array of `aval`. Its base is the owner of the block."""
        nbytes = aval.nbytes
        try:
            memory = self.take(nbytes)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(f"an array {aval}: {error}") from None
        owner = memory.view(np.ndarray)
        self.lend(owner, memory, nbytes)
        return np.ndarray(aval.shape, aval.dtype.numpy, owner, memory.start)

    def expect(self, nbytes: int, others: int = 0) -> bool:
        """Count arrays to come whose memory is not the pool's, where there is a limit; `others`: that may be.

        Arrays in use are counted one by one only when those that were made since the last time might exceed it.

        Returns:
            Whether `others` would exceed it: then their memory has to be the pool's, which says so.

        Raises:
            OutOfMemoryError: they would.
        """
        self._expected += nbytes + others
        if self._active + self.outside + self._expected <= self.limit:
            return False
        if (active := self._recount()) + nbytes > self.limit:
            gc.collect()
            if (active := self._recount()) + nbytes > self.limit:
                raise OutOfMemoryError(at_user_line(self.why_limited(nbytes, active)))
        self._expected = nbytes + others
        return active + nbytes + others > self.limit

    def _recount(self) -> int:
        self.outside, self._expected = outside_bytes(), 0
        return self.active_bytes + self.outside

    def _make_room(self, nbytes: int, size: int) -> None:
        self._recount()
        super()._make_room(nbytes, size)


pool = CpuPool()


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """``numpy.empty``, of large arrays from the pool."""
    aval = Aval(shape, dtypes.of(dtype))
    return pool.empty(aval) if aval.nbytes > SMALL else np.empty(shape, dtype)


host_memory.use_memory(_empty)
#: All pools in use: that of the CPU's memory first, those of devices as they are used.
pools: list[Any] = [pool]


first_byte: Any = c_char.from_buffer
#: A type of which buffers are made, its shape, and NumPy's dtype if such buffers are small.
Blank: TypeAlias = "tuple[Aval, tuple[int, ...], np.dtype | None]"


class Block(Protocol):
    """A part of a device's memory, which is the device's own again when nothing refers to it any more."""

    def to_host(self, aval: Aval) -> np.ndarray:
        """The bytes as a C-contiguous NumPy array of `aval`, when what was launched before has written them."""
        ...


class Memory(Protocol):
    """Where the arrays of a device lie."""

    def empty(self, aval: Aval) -> Buffer:
        """A buffer whose elements the device's programs write. Raises OutOfMemoryError."""
        ...

    def adopt(self, buffer: Buffer) -> Buffer:
        """A buffer with the same elements where the device's programs read them; where they do already, `buffer`."""
        ...

    def synchronize(self) -> None:
        """Wait for what has been launched. Raises what it failed of."""
        ...

    def system_bytes(self) -> int | None:
        """What the system has given, used or not; None where it is part of the host's."""
        ...


class HostMemory:
    """The host's memory: that of NumPy's arrays."""

    def empty(self, aval: Aval) -> Buffer:
        return Buffer.empty(aval)

    def adopt(self, buffer: Buffer) -> Buffer:
        return buffer

    def synchronize(self) -> None:
        """Programs on the host have ended when their call returns."""

    def system_bytes(self) -> int | None:
        return None


#: Held while an array gets another place: two threads may ask for one.
_placing = locks.lock()


class Buffer(Counted):
    """The elements of one array: a C-contiguous NumPy view of memory, a block of a device's memory, or both.

    Attributes:
        aval: shape and dtype.
        array: the elements, shaped and typed. Where they are on a device alone they are copied when this is asked for.
        address: where `array` is.
        home: the block of a device's memory in which the elements are (too), or None. It stays the same.
    """

    __slots__ = ("__weakref__", "address", "array", "aval", "home")

    address: int
    array: np.ndarray
    aval: Aval
    home: Any

    def __init__(self, aval: Aval, array: np.ndarray):
        self.aval = aval
        self.array = array
        try:
            self.address = addressof(first_byte(array))  # a quarter of what `__array_interface__` costs
        except (TypeError, ValueError):  # read-only, empty, or of bfloat16
            self.address = array.__array_interface__["data"][0]
        self.home = None

    @staticmethod
    def empty(aval: Aval) -> Buffer:
        """Uninitialized memory for an array of `aval`."""
        dtype = aval.dtype
        if 0 < aval.size * dtype.size <= SMALL and dtype is not dtypes.bfloat16:  # which no buffer is of
            found = Buffer.__new__(Buffer)
            found.aval = aval
            found.array = array = np.empty(aval.shape, dtype.numpy)
            found.address = addressof(first_byte(array))
            found.home = None
            return found
        if aval.nbytes <= SMALL:
            return Buffer(aval, np.empty(aval.shape, dtype.numpy))
        return Buffer(aval, pool.empty(aval))

    @staticmethod
    def blanks(avals: Iterable[Aval]) -> list[Blank]:
        """What `empties` makes buffers of again and again."""
        return [
            (a, a.shape, a.dtype.numpy if 0 < a.nbytes <= SMALL and a.dtype is not dtypes.bfloat16 else None)
            for a in avals
        ]

    @staticmethod
    def empties(blanks: Sequence[Blank]) -> list[Buffer]:
        """`empty` for several, which are known before."""
        made = []
        if pool.limit:
            pool.expect(sum([aval.nbytes for aval, _, dtype in blanks if dtype is not None]))
        for aval, shape, dtype in blanks:
            if dtype is None:
                made.append(Buffer.empty(aval))
                continue
            found = Buffer.__new__(Buffer)
            found.aval = aval
            found.array = array = np.empty(shape, dtype)
            found.address = addressof(first_byte(array))
            found.home = None
            made.append(found)
        return made

    @staticmethod
    def of(array: np.ndarray, aval: Aval) -> Buffer:
        """A buffer over the memory of a NumPy array, which must not change any more."""
        if not array.flags.c_contiguous:
            try:
                array = host_memory.contiguous(array)
            except MemoryError:
                message = f"smelt has no memory for an array {aval}, {aval.nbytes:,} bytes"
                raise OutOfMemoryError(at_user_line(message)) from None
        return Buffer(aval, array)

    @staticmethod
    def at(aval: Aval, block: Block) -> Buffer:
        """A buffer whose elements are on a device alone."""
        buffer = _Remote.__new__(_Remote)
        buffer.aval = aval
        buffer.home = block
        return buffer

    @staticmethod
    def later(aval: Aval, read: Callable[[], np.ndarray]) -> Buffer:
        """A buffer whose elements `read` gives, C-contiguous, when somebody asks for them."""
        buffer = _Later.__new__(_Later)
        buffer.aval = aval
        buffer.home = None
        buffer.read = read
        return buffer

    @property
    def is_on_host(self) -> bool:
        """Whether the host has the elements already."""
        return True

    @property
    def is_of_device(self) -> bool:
        """Whether its elements began on a device, wherever they have been copied to since."""
        return False

    @staticmethod
    def renew(held: list[Buffer], n: int) -> bool:
        """Replace ``held[n]`` by another buffer of the same memory; whether nothing else refers to that memory.

        This is found out by dropping the reference to the block for a moment, and looking whether it has died.
        """
        buffer = held[n]
        if buffer.home is not None:
            return False
        own: Any = buffer.array.base
        memory: Any = getattr(own, "base", None)
        lease = pool.suspend(own) if isinstance(memory, _Memory) else None
        if lease is None:  # in no block of the pool
            return False
        aval, offset = buffer.aval, buffer.address - memory.__array_interface__["data"][0]
        del buffer, own
        held[n] = None  # type: ignore[call-overload]
        owner = lease()
        died = owner is None
        if died:
            owner = memory.view(np.ndarray)
            pool.lend(owner, memory, aval.nbytes)
        else:
            pool.resume(lease)
        held[n] = Buffer(aval, np.ndarray(aval.shape, aval.dtype.numpy, owner, offset))
        return died

    @property
    def is_pooled(self) -> bool:
        """Whether the memory is a block of the pool, which knows its references; that of NumPy's results is not."""
        return isinstance(getattr(self.array.base, "base", None), _Memory)

    def housed(self, block: Block) -> Buffer:
        """The same elements with `block`, which holds them, as their home: this buffer if it had none, else another."""
        with _placing:
            if self.home is None:
                self.home = block
                return self
        other = Buffer(self.aval, self.array) if self.is_on_host else Buffer.at(self.aval, block)
        other.home = block
        return other

    def poison(self) -> None:
        """Fill fresh memory with bytes that are no likely value: NaN where they are floats."""
        self.array.reshape(-1).view(np.uint8).fill(POISON)

    def reshaped(self, aval: Aval) -> Buffer:
        """The same memory as an array of another shape, or dtype of that size (itself where both are the same)."""
        if aval == self.aval:
            return self
        if not self.is_on_host:
            return Buffer.at(aval, self.home)
        other = Buffer(aval, self.array.view(aval.dtype.numpy).reshape(aval.shape))
        other.home = self.home
        return other


class _Remote(Buffer):
    """A buffer that began on a device alone. (A class of its own: with ``__getattr__`` all attributes cost more.)"""

    __slots__ = ()

    @property
    def is_on_host(self) -> bool:
        try:
            _address_of(self)
        except AttributeError:
            return False
        return True

    @property
    def is_of_device(self) -> bool:
        return True

    if not TYPE_CHECKING:  # a type checker knows the names

        def __getattr__(self, name: str) -> Any:
            # Called for a slot that is empty: the host's view of elements that are on a device alone.
            if name not in ("array", "address"):
                raise AttributeError(f"a buffer has no {name!r}")
            with _placing:
                if not self.is_on_host:
                    array = self.home.to_host(self.aval)
                    self.array = array
                    self.address = array.__array_interface__["data"][0]  # last: it tells that both are there
            return object.__getattribute__(self, name)


class _Later(Buffer):
    """A buffer whose elements are still where they are read from, a file perhaps, until somebody asks for them.

    Attributes:
        read: what gives them; None afterwards.
    """

    __slots__ = ("read",)

    read: Callable[[], np.ndarray] | None

    @property
    def is_on_host(self) -> bool:
        return self.read is None

    def reshaped(self, aval: Aval) -> Buffer:
        return self if aval == self.aval else Buffer(self.aval, self.array).reshaped(aval)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Called for a slot that is empty. Two threads may both read: what they get is the same.
            if name not in ("array", "address"):
                raise AttributeError(f"a buffer has no {name!r}")
            read = self.read
            array = None if read is None else read()
            with _placing:
                if self.read is not None:
                    self.array = array
                    self.address = array.__array_interface__["data"][0]
                    self.read = None  # last: it tells that both are there
            return object.__getattribute__(self, name)


_address_of = Buffer.__dict__["address"].__get__


def memories(buffers: Iterable[Buffer]) -> list[tuple[Any, int]]:
    """What owns the memory of buffers, each once, and its bytes; not what is mapped from files."""
    found: dict[int, tuple[Any, int]] = {}
    for buffer in buffers:
        owner, nbytes = _owner(buffer)
        if not isinstance(owner, mmap.mmap):
            found[id(owner)] = (owner, nbytes)
    return list(found.values())


def _owner(buffer: Buffer) -> tuple[Any, int]:
    """What owns the memory of a buffer, and its bytes."""
    owner: Any = buffer.array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    held = owner.obj if isinstance(owner, memoryview) else owner
    return held, owner.nbytes if isinstance(owner, np.ndarray) else buffer.aval.nbytes


def outside_bytes() -> int:
    """Bytes of arrays whose memory no pool has: small ones, and what libraries have made.

    They are counted when somebody asks, so that making one costs nothing.
    """
    found: dict[int, tuple[Any, int]] = {}
    for buffer in instances():
        if getattr(buffer, "home", buffer) is not None or not buffer.is_on_host:  # of a device, or just being made
            continue
        owner, nbytes = _owner(buffer)
        if isinstance(owner, (_Memory, mmap.mmap)):  # as it is for good
            forget(buffer)
        else:
            found[id(owner)] = (owner, nbytes)  # holds the owner: no other one gets its id
    return sum(nbytes for _, nbytes in found.values())


def scratch(nbytes: int) -> Any:
    """An aligned temporary block: (address, keep-alive). Freed when the keep-alive dies."""
    buffer = Buffer.empty(Aval((max(nbytes, 1),), dtypes.uint8))
    return buffer.address, buffer
