"""Reading from files that may have less than they say, and mapping them into memory."""

from __future__ import annotations

import io
import math
import mmap
import os
from typing import IO, Any

import numpy as np

from smelt.ir.errors import FileFormatError, OutOfMemoryError, shown

_CHUNK = 1 << 20
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
    if dtype == np.bool_:
        found = (found != 0).view(np.uint8)  # any other byte would be no bool
    return found.view(dtype).reshape(shape) if size else np.empty(shape, dtype)


class Data:
    """The rest of a file, of which arrays are taken at offsets.

    A file of the system is mapped into memory, so that a part of it is read when somebody looks at it; of others, and
    of elements that do not lie as their dtype needs them, copies are read.
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
        if mapped is None or not 0 < size <= have or place % dtype.alignment or dtype == np.bool_:
            self._source.seek(place)
            return elements(self._source, dtype, shape, have, what)
        if place + size > len(mapped):  # it has become shorter since it was measured
            raise FileFormatError(f"it ends before the end of {what}")
        return np.frombuffer(mapped, np.uint8, size, place).view(dtype).reshape(shape)

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
