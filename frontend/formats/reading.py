"""Reading from files that may have less than they say, and mapping them into memory."""

from __future__ import annotations

import io
import math
import mmap
import os
from collections.abc import Callable
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from smelt.ir.errors import FileFormatError, OutOfMemoryError, shown

_CHUNK = 1 << 20
Restore: TypeAlias = "Callable[[np.ndarray], np.ndarray]"
#: An array of a file has no more axes.
MAX_AXES = 64


def left_in(source: IO[bytes]) -> int:
    """Bytes from here to the end of a file that can seek."""
    here = source.tell()
    end = source.seek(0, os.SEEK_END)
    if not (isinstance(here, int) and isinstance(end, int)):
        raise FileFormatError(f"it must be able to seek, it is at {shown(here if isinstance(end, int) else end)}")
    source.seek(here)
    return max(0, end - here)


def take(source: IO[bytes], count: int, what: str) -> bytes:
    """`count` bytes. Raises FileFormatError where the file has less, before memory is taken for them."""
    parts: list[bytes] = []
    missing = count
    while missing:
        part = source.read(min(missing, _CHUNK))
        if not isinstance(part, bytes):
            raise FileFormatError(f"it must be open for reading bytes, reading gives {shown(part)}")
        if not part or len(part) > missing:
            raise FileFormatError(f"it ends {missing} bytes before the end of {what}")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def elements(source: IO[bytes], dtype: np.dtype, shape: tuple[int, ...], have: int, what: str) -> np.ndarray:
    """An array of `shape` from the next bytes of a file, which says that it has `have` more.

    Raises FileFormatError where they are too few for the shape; OutOfMemoryError where memory is.
    """
    size = math.prod(shape) * dtype.itemsize
    if size > have:
        raise FileFormatError(f"{what} has {have} bytes, {dtype.name}{list(shape)} needs {size}")
    try:
        found = np.empty(size, np.uint8)
    except MemoryError:
        raise OutOfMemoryError(f"no memory for the {size} bytes of {what}") from None
    at = 0
    while at < size:
        part = take(source, min(size - at, _CHUNK), what)
        found[at : at + len(part)] = np.frombuffer(part, np.uint8)
        at += len(part)
    return _typed(found, dtype).reshape(shape) if size else np.empty(shape, dtype)


def _typed(octets: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype == np.bool_:
        octets = (octets != 0).view(np.uint8)  # any other byte would be no bool
    return octets.view(dtype)


class Later(NamedTuple):
    """Elements of a file that are read when somebody asks for them.

    Attributes:
        shape: of the array.
        read: gives it, C-contiguous. Raises OutOfMemoryError.
    """

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


Elements: TypeAlias = "np.ndarray | Later"


class Data:
    """The rest of a file, of which arrays are taken at offsets.

    A file of the system is mapped into memory, so that a part of it is read when somebody looks at it; of others copies
    are read, as they are of elements that do not lie as their dtype needs them.
    """

    def __init__(self, source: IO[bytes]):
        self._source = source
        self._start = source.tell()
        self.size = left_in(source)
        self._mapped = _mapping(source)

    def elements(self, at: int, dtype: np.dtype, shape: tuple[int, ...], what: str) -> np.ndarray:
        """The array that begins `at` bytes behind the start. Raises as `reading.elements`."""
        have = max(0, self.size - at)
        size = math.prod(shape) * dtype.itemsize
        place = self._start + at
        mapped = self._mapped
        if mapped is None or not 0 < size <= have:
            self._source.seek(place)
            return elements(self._source, dtype, shape, have, what)
        if place + size > len(mapped):  # it has become shorter since it was measured
            raise FileFormatError(f"it ends before the end of {what}")
        octets = np.frombuffer(mapped, np.uint8, size, place)
        if place % dtype.alignment == 0 and dtype != np.bool_:
            return octets.view(dtype).reshape(shape)
        try:
            return _typed(octets if dtype == np.bool_ else octets.copy(), dtype).reshape(shape)
        except MemoryError:
            raise OutOfMemoryError(f"no memory for the {size} bytes of {what}") from None

    def later(
        self, at: int, dtype: np.dtype, shape: tuple[int, ...], what: str, restore: Restore | None = None
    ) -> Elements:
        """As `elements`, and what `restore` makes of them; later, where that is a copy that can wait.

        Other programs write headers of any length, so that most elements lie at odd places: to copy them all would
        read all of a file of which little may be used.
        """
        place = self._start + at
        stays = restore is None and place % dtype.alignment == 0 and dtype != np.bool_
        if stays or self._mapped is None or not 0 < math.prod(shape) * dtype.itemsize <= self.size - at:
            found = self.elements(at, dtype, shape, what)
            return found if restore is None else restore(found)
        if place + math.prod(shape) * dtype.itemsize > len(self._mapped):
            raise FileFormatError(f"it ends before the end of {what}")

        def read() -> np.ndarray:
            found = self.elements(at, dtype, shape, what)
            return found if restore is None else restore(found)

        return Later(shape, read)

    def close(self) -> None:
        """Leave the file behind the end of its data; arrays keep the mapping."""
        self._source.seek(self._start + self.size)


def _mapping(source: Any) -> mmap.mmap | None:
    """All of a file of the system, read-only; None for others, such as what is decompressed from one."""
    raw = source.raw if type(source) is io.BufferedReader else source
    if type(raw) is not io.FileIO:
        return None
    try:
        return mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # empty, or no regular file
        return None
