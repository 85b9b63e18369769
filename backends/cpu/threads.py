"""Threads that run a program together.

Four teams, the first that this machine has is used: a pool of smelt's in C (`team.c`; not on macOS), libgomp's pool,
Grand Central Dispatch, Python threads. All are reached through ctypes, which releases Python's lock. Members of the
first two run at the same time, so they go through a whole program with barriers between kernels; the others may run one
after the other, so there every kernel is a launch of its own.

In a child process after fork all threads but one are gone. There smelt's pool and Python's threads are made anew; the
other two teams cannot be, so programs run on the calling thread.

Other processes use cores, too. So who waits looks for a fraction of a millisecond and then sleeps, which lets a member
run that has lost its core; and how many members a program has is what it runs quickest with (`Pace`).
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from smelt.ir import locks
from smelt.ir.host_threads import allowed_threads, together
from smelt.ir.settings import settings


class Team:
    """Runs a compiled function several times in parallel.

    Attributes:
        together: members run at the same time, know their number and can wait for each other.
            Else each takes the next number from a counter.
        shares: into how many parts each thread's work is cut.
        renewable: whether there are threads in a child process after fork, too.
        elastic: whether runs of different sizes may follow each other: a team that ends and makes threads each time
            takes longer for it than most programs take.
        in_python: whether members call the function through Python.
    """

    together = False
    shares = 1
    renewable = False
    elastic = False
    in_python = False

    def launch(self, call: Callable[[int], None], address: int, table: int, count: int) -> None:
        """Run the function at `address` (as a Python callable: `call`) on `table` `count` times."""
        raise NotImplementedError

    def symbols(self) -> dict[str, int]:
        """Addresses of what compiled programs call."""
        return {}


class Native(Team):
    """smelt's own pool. Programs that run at the same time share its threads: a team may be smaller than asked for."""

    together = renewable = elastic = True

    def __init__(self, functions: tuple[int, int, int, int]):
        run, *asked = functions
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)(run)
        self._symbols = dict(zip(("GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads"), asked))

    def launch(self, call, address, table, count):
        self._run(address, table, count)

    def symbols(self):
        return self._symbols


class OpenMP(Team):
    """libgomp: the quickest to start, and members keep their numbers, so caches stay warm."""

    together = True

    def __init__(self, library: Any):
        self.library = library
        self._parallel = library.GOMP_parallel
        # void GOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags)
        self._parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        self._parallel.restype = None

    def launch(self, call, address, table, count):
        self._parallel(address, table, count, 0)

    def symbols(self):
        names = ("GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads")
        return {name: ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0 for name in names}


class Dispatch(Team):
    """Grand Central Dispatch, where macOS has no libgomp.

    Its threads sit on cores of unequal speed, so each gets several shares.
    """

    shares = 4

    def __init__(self, library: Any):
        self.library = library
        self._apply = library.dispatch_apply_f
        # void dispatch_apply_f(size_t iterations, dispatch_queue_t queue, void *context,
        #                       void (*work)(void *context, size_t iteration))
        # The compiled function does not look at the second argument of `work`.
        self._apply.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self._apply.restype = None

    def launch(self, call, address, table, count):
        self._apply(count, None, table, address)  # no queue is DISPATCH_APPLY_AUTO


class PythonThreads(Team):
    """Python threads: works everywhere."""

    renewable = in_python = True

    def launch(self, call, address, table, count):
        for error in filter(None, together([functools.partial(call, table)] * count)):
            try:
                raise error
            finally:
                del error  # which refers to this frame


#: How often a waiting member of libgomp's team looks before it sleeps: 0.1 to 0.4 ms, as long as most kernels take.
#: Its own default is 10 ms and more, for which another process' thread or a member of the team cannot have the core.
_LOOKS = "10000"
#: Either says how threads of OpenMP wait; whoever has set one has decided.
_WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def _native() -> Team | None:
    # On macOS cores differ in speed, and members have equal shares.
    if sys.platform == "darwin" or settings.__dict__.get("core") == "python":
        return None
    try:
        return Native(importlib.import_module("smelt._team").functions())
    except ImportError:
        return None


def _load_openmp(name: str) -> Any:
    """libgomp, which reads how its threads wait from the environment, once: when it is loaded."""
    if any(variable in os.environ for variable in _WAITING):
        return ctypes.CDLL(name)
    os.environ[_WAITING[0]] = _LOOKS
    try:
        return ctypes.CDLL(name)
    finally:
        del os.environ[_WAITING[0]]


def _find_libgomp() -> str | None:
    import ctypes.util  # loads a dozen modules, which almost nobody needs

    return ctypes.util.find_library("gomp")


def _openmp() -> Team | None:
    # The second is asked for only if it is needed: it runs other programs.
    for find in (lambda: "libgomp.so.1", _find_libgomp):
        name = find()
        if name is not None:
            try:
                return OpenMP(_load_openmp(name))
            except (OSError, AttributeError):
                continue
    return None


def _dispatch() -> Team | None:
    if sys.platform != "darwin":
        return None
    try:
        return Dispatch(ctypes.CDLL("/usr/lib/libSystem.B.dylib"))
    except (OSError, AttributeError):
        return None


@functools.cache
def team() -> Team:
    """The best team of this machine."""
    return locks.whole(lambda: _native() or _openmp() or _dispatch() or PythonThreads())


class _State:
    forked = False


def _after_fork() -> None:
    _State.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_threads(users: Team | None = None) -> int:
    """How many threads a program of a team may use now."""
    if _State.forked and not (users or team()).renewable:
        return 1
    return allowed_threads()
