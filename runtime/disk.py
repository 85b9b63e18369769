"""A cache of compiled programs on disk, which processes share.

An entry is a file of its own, called by its key: a mark, a checksum of key and content, the content. It is written
under another name and moved into place in one step, so whoever reads sees all of it or nothing, whenever a writer dies.
What is damaged, also because the machine died before its disk had it, or was put under another key, does not pass the
checksum and is deleted: nobody waits for the disk, which may take seconds where much is written.
Entries are machine code, so only files and folders are trusted that belong to this user and that nobody else can
write; links are not followed. Beyond `settings.cache_disk_bytes` the entries used least recently are deleted: looked at
is the whole folder then, so not for each entry that is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

from smelt.backends.store import keep_in
from smelt.ir.folders import cache_place
from smelt.ir.settings import settings

MARK = b"smelt program 1\n"
_HEADER = struct.Struct(f"<{len(MARK)}s32sQ")
SUFFIX = ".program"
#: Files under construction that are older were left by a writer that died.
ABANDONED_SECONDS = 600
#: An entry has no more bytes.
MOST_BYTES = 1 << 30
_UNTRUSTED = stat.S_IWGRP | stat.S_IWOTH
#: Entries that a process writes before it looks at the folder again, in which others write as well; and the part of
#: what may be there that is free after entries were deleted.
PUTS, FREE = 32, 16


class Entry(NamedTuple):
    """A file of the cache. `used`: when it was last read or written, in seconds since 1970."""

    name: str
    nbytes: int
    used: float


class DiskCache:
    """Contents by key, in the folder that the settings name when it is used.

    Nothing here raises: where the disk is full, or the folder somebody else's, there is no cache.

    Attributes:
        hits, misses, writes: how often.
        damaged: entries that were deleted because their checksum was wrong.
    """

    def __init__(self) -> None:
        self.hits = self.misses = self.writes = self.damaged = 0
        self._swept: tuple[str | None, int] | None = None  #: the folder and the bound that were looked at last
        self._room = self._puts = 0  #: bytes and entries that may be written before the next time

    def get(self, key: str) -> bytes | None:
        """The content under `key`, or None."""
        with _folder(create=False) as folder:
            content = None if folder is None else self._read(folder, key)
        if content is None:
            self.misses += 1
        else:
            self.hits += 1
        return content

    def _read(self, folder: int, key: str) -> bytes | None:
        name = key + SUFFIX
        try:
            number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return None
        try:
            found = os.fstat(number)
            if not _is_trusted(found) or not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                return None
            with os.fdopen(number, "rb", closefd=False) as file:
                data = file.read(found.st_size)  # as many bytes are allocated before the first is read
        except (OSError, MemoryError):
            return None
        finally:
            os.close(number)
        content = _content(key, data)
        with contextlib.suppress(OSError):
            if content is None:
                self.damaged += 1
                os.unlink(name, dir_fd=folder)
            else:
                os.utime(name, dir_fd=folder, follow_symlinks=False)
        return content

    def put(self, key: str, content: bytes) -> bool:
        """Keep `content` under `key`; whether that was done."""
        if len(content) + _HEADER.size > min(MOST_BYTES, settings.cache_disk_bytes):
            return False
        with _folder(create=True) as folder:
            if folder is None:
                return False
            temporary = f".{os.getpid()}-{os.urandom(8).hex()}"
            try:
                self._write(folder, temporary, key, content)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                return False
            self.writes += 1
            self._bound(folder, len(content) + _HEADER.size)
        return True

    def _bound(self, folder: int, written: int) -> None:
        """Keep the folder within its bound, after `written` more bytes."""
        most = settings.cache_disk_bytes
        self._room -= written
        self._puts -= 1
        if self._swept != (_place(), most) or self._room < 0 or self._puts < 0:
            self._room = most - _sweep(folder, most)
            self._swept, self._puts = (_place(), most), PUTS

    @staticmethod
    def _write(folder: int, temporary: str, key: str, content: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(_HEADER.pack(MARK, _checksum(key, content), len(content)))
            file.write(content)
        os.rename(temporary, key + SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)

    def drop(self, key: str) -> None:
        """Forget what is under `key`."""
        with _folder(create=False) as folder, contextlib.suppress(OSError):
            if folder is not None:
                os.unlink(key + SUFFIX, dir_fd=folder)

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first."""
        with _folder(create=False) as folder:
            return [] if folder is None else _entries(folder)

    def is_empty(self) -> bool:
        """Whether there is nothing to be found: no need to work out a key."""
        with _folder(create=False) as folder:
            if folder is None:
                return True
            with contextlib.suppress(OSError), os.scandir(folder) as files:
                return not any(file.name.endswith(SUFFIX) for file in files)
            return True

    def clear(self) -> int:
        """Delete all entries, and what dead writers have left; how many entries that were."""
        with _folder(create=False) as folder:
            if folder is None:
                return 0
            found = len(_entries(folder))
            _sweep(folder, 0, abandoned=0)
            return found

    @property
    def place(self) -> str | None:
        """The folder, whether it exists or not; None if no folder may be used."""
        return _place()


#: That of this process.
disk = DiskCache()
keep_in(disk)


def _place() -> str | None:
    found = cache_place()
    if found is None or not hasattr(os, "geteuid") or os.open not in os.supports_dir_fd:
        return None
    return os.path.join(found, f"programs-{os.geteuid()}")


@contextlib.contextmanager
def _folder(create: bool) -> Iterator[int | None]:
    """The folder as a file descriptor; None where there is none that can be trusted."""
    place, number = _place(), None
    if place is not None:
        with contextlib.suppress(OSError):
            if create:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(place, 0o700)
            number = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield number if number is not None and _is_trusted(os.fstat(number)) else None
    finally:
        if number is not None:
            os.close(number)


def _is_trusted(found: os.stat_result) -> bool:
    """Whether nobody else can have written a file or folder."""
    return found.st_uid == os.geteuid() and not found.st_mode & _UNTRUSTED


def _checksum(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()


def _content(key: str, data: bytes) -> bytes | None:
    """The content of an entry, if the whole of it is as it was written under `key`."""
    if len(data) < _HEADER.size:
        return None
    mark, checksum, size = _HEADER.unpack_from(data)
    content = data[_HEADER.size :]
    if mark != MARK or size != len(content) or checksum != _checksum(key, content):
        return None
    return content


def _entries(folder: int) -> list[Entry]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if file.name.endswith(SUFFIX):
                    found.append(Entry(file.name, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def _sweep(folder: int, most: int, abandoned: float = ABANDONED_SECONDS) -> int:
    """Delete what was used least recently, if there are more than `most` bytes, and what dead writers have left; how
    many bytes there are then."""
    entries = _entries(folder)
    total = sum(entry.nbytes for entry in entries)
    wanted = most if total <= most else most - most // FREE
    for entry in entries:
        if total <= wanted:
            break
        with contextlib.suppress(OSError):
            os.unlink(entry.name, dir_fd=folder)
        total -= entry.nbytes
    with contextlib.suppress(OSError), os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):
                is_left = file.name.startswith(".") and not file.name.endswith(SUFFIX)
                if is_left and time.time() - file.stat(follow_symlinks=False).st_mtime >= abandoned:
                    os.unlink(file.name, dir_fd=folder)
    return total
