"""Threads that run a program together: libgomp's pool through ctypes.

Without libgomp, and in a child process after fork (whose pool's threads are gone), programs run on
the calling thread.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from typing import Any


@functools.cache
def openmp() -> Any:
    """libgomp, or None."""
    for name in ("libgomp.so.1", ctypes.util.find_library("gomp")):
        if name is None:
            continue
        try:
            library = ctypes.CDLL(name)
            library.GOMP_parallel.argtypes = [
                ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint,
            ]  # fmt: skip
            library.GOMP_parallel.restype = None
            return library
        except (OSError, AttributeError):
            continue
    return None


class _State:
    forked = False


def _after_fork() -> None:
    _State.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@functools.cache
def wanted_threads() -> int:
    """SMELT_NUM_THREADS, else the processors that this process may use."""
    text = os.environ.get("SMELT_NUM_THREADS", "")
    if text.isdigit() and int(text) > 0:
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_threads() -> int:
    """How many threads a program may use now."""
    return 1 if _State.forked or openmp() is None else wanted_threads()


def symbols() -> dict[str, int]:
    """Addresses of what compiled programs call."""
    library = openmp()
    if library is None:
        return {}
    return {
        name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for name in ("GOMP_barrier", "omp_get_thread_num")
    }
