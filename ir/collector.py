"""Python's collector of cycles, left alone for a while.

It looks through everything that has been made since it last looked, over and over, while a compile makes objects by
the hundred thousand and few cycles: for a long program that takes a quarter of the time.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: The thread that has paused it.
_by: int | None = None


@contextmanager
def paused() -> Iterator[None]:
    """No collection meanwhile, in no thread. For one thread at a time; within another pause it does nothing."""
    global _by
    if not gc.isenabled():
        yield
        return
    _by = threading.get_ident()
    gc.disable()
    try:
        yield
    finally:
        _by = None
        gc.enable()


def _after_fork_in_child() -> None:
    """The thread that paused it is not in a child of another thread."""
    global _by
    if _by is not None and _by != threading.get_ident():
        _by = None
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
