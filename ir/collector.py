"""Python's collector of cycles, left alone for a while.

It looks through everything that has been made since it last looked, over and over, while a compile makes objects by
the hundred thousand and few cycles: for a long program that takes a quarter of the time. So does an import, whose
objects stay.
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


@contextmanager
def lasting() -> Iterator[None]:
    """For the time of an import: `paused`, and what there is then counts as old: modules, their functions and classes
    stay, and to look through those of smelt alone takes longer than a step of a small model."""
    with paused():
        yield
        if not gc.get_freeze_count():  # else somebody keeps objects from being looked at, which goes on
            gc.freeze()
            gc.unfreeze()  # to the oldest generation


def _after_fork_in_child() -> None:
    """The thread that paused it is not in a child of another thread."""
    global _by
    if _by is not None and _by != threading.get_ident():
        _by = None
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
