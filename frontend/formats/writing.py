"""Writing files so that whoever reads them meanwhile, or has mapped what was there, never sees a part."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import IO

import numpy as np


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of what `path` names when the block ends; an error leaves that as it was.

    Arrays that `load` has mapped keep the file that they came from. What is no regular file, and a folder where nobody
    can make another one, is written to where it is.
    """
    target = os.path.realpath(path)
    number, mode = None, 0o666
    temporary = os.path.join(os.path.dirname(target), f".{os.getpid()}-{os.urandom(8).hex()}.tmp")
    with contextlib.suppress(OSError):  # whatever is wrong with the path: opening it says it best
        if os.path.lexists(target):
            found = os.stat(target)
            mode = stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) and os.access(target, os.W_OK) else 0
        if mode:
            number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    if number is None:
        with open(path, "wb") as out:
            yield out
        return
    try:
        with open(number, "wb") as out:
            if mode != 0o666:
                os.chmod(temporary, mode)
            yield out
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def octets_of(elements: np.ndarray) -> memoryview:
    """The bytes of an array, in the order of its axes."""
    return np.ascontiguousarray(elements).reshape(-1).view(np.uint8).data
