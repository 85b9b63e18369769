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

#: From so many objects on what is made for a cache counts as old, until so many have since all were looked through.
MANY, MOST = 2_000, 200_000

#: The thread that has paused it.
_by: int | None = None
#: Objects that came to count as old since the collections of all there is were so many.
_old = _collections = 0
#: Whether somebody keeps objects from being looked at, when last asked: to ask takes as long as these are many.
_frozen = False


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
        _age()


@contextmanager
def kept() -> Iterator[None]:
    """For the time of making what a cache keeps: `paused`, and if that are many objects, what there is then counts as
    old.

    Else Python would look through all there is whenever a quarter has come to it, which the first run of each model
    brings: half of its time. Cycles that are garbage wait the longer for it, for `MOST` objects.
    """
    global _old, _collections, _frozen
    if not gc.isenabled():
        yield
        return
    with paused():
        yield
        made = gc.get_count()[0]
        if made < MANY:
            return
        if (collections := gc.get_stats()[2]["collections"]) != _collections:
            _old, _collections, _frozen = 0, collections, False
        if _old + made <= MOST:
            _old += made
            _age()


def _age() -> None:
    """Let all there is count as old, where nobody keeps objects from being looked at: that goes on."""
    global _frozen
    _frozen = _frozen or gc.get_freeze_count() > 0
    if not _frozen:
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
