"""Threads that run a program together.

Three teams, the first that this machine has is used: libgomp's pool, Grand Central Dispatch, Python
threads. All are reached through ctypes, which releases Python's lock. Members of a libgomp team run at
the same time, so they go through a whole program with barriers between kernels; the others may run
one after the other, so there every kernel is a launch of its own.

In a child process after fork all threads but one are gone. There Python's threads are made anew; the other two teams
cannot be, so programs run on the calling thread.

Other processes use cores, too. So who waits looks for a fraction of a millisecond and then sleeps, which lets a member
run that has lost its core; and a short program that its team takes longer for than the calling thread alone is run by
that alone, for a while (`Pace`).
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smelt.ir import locks
from smelt.ir.host_threads import allowed_threads

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Team:
    """Runs a compiled function several times in parallel.

    Attributes:
        together: members run at the same time, know their number and can wait for each other.
            Else each takes the next number from a counter.
        shares: into how many parts each thread's work is cut.
        renewable: whether there are threads in a child process after fork, too.
    """

    together = False
    shares = 1
    renewable = False

    def launch(self, call: Callable[[int], None], address: int, table: int, count: int) -> None:
        """Run the function at `address` (as a Python callable: `call`) on `table` `count` times."""
        raise NotImplementedError

    def symbols(self) -> dict[str, int]:
        """Addresses of what compiled programs call."""
        return {}


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
    """A pool of Python threads: works everywhere."""

    renewable = True

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0
        self._process = os.getpid()

    def launch(self, call, address, table, count):
        process = os.getpid()
        if self._pool is None or self._size < count - 1 or self._process != process:
            self._size, self._process = count - 1, process
            concurrent = locks.whole(lambda: importlib.import_module("concurrent.futures"))
            self._pool = concurrent.ThreadPoolExecutor(self._size, "smelt")
        calls, error = _Calls(call, table), None
        try:
            futures: list[Any] = []
            try:
                while len(futures) < count - 1:
                    futures.append(self._pool.submit(calls.run))
            except RuntimeError:  # the interpreter is shutting down
                for _ in range(count - 1 - len(futures)):
                    call(table)
            call(table)
            for future in futures:
                future.result()
        except BaseException as raised:
            error = raised
        while True:  # an interrupt ends no call: the memory that they write to may go afterwards
            try:
                if calls.over():
                    break
            except BaseException as raised:
                error = error or raised
        if error is not None:
            raise error


class _Calls:
    """The calls of one launch by other threads."""

    def __init__(self, call: Callable[[int], None], table: int):
        self._call, self._table = call, table
        self._lock = locks.lock()
        self._running, self._closed = 0, False

    def run(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._running += 1
        try:
            self._call(self._table)
        finally:
            with self._lock:
                self._running -= 1

    def over(self) -> bool:
        """Let no more calls begin; whether none is running."""
        with self._lock:
            self._closed = True
            if not self._running:
                return True
        time.sleep(0.0005)
        return False


#: How often a waiting member of libgomp's team looks before it sleeps: 0.1 to 0.4 ms, as long as most kernels take.
#: Its own default is 10 ms and more, for which another process' thread or a member of the team cannot have the core.
_LOOKS = "10000"
#: Either says how threads of OpenMP wait; whoever has set one has decided.
_WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


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
    return locks.whole(lambda: _openmp() or _dispatch() or PythonThreads())


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


class Pace:
    """Whether a team or the calling thread alone runs a short program, as its runs went.

    Members of a team wait for each other. Where one has lost its core to another process all wait, and the calling
    thread alone is quicker. So when runs of the team get longer, one run is tried alone; if that is quicker the next
    ones are alone, too, until the team is tried again. What tries cost is a small part of the time between them.

    Several threads may use it at once; a lost update costs a try.

    Args:
        work: of the program, in bytes moved, where it is known.
    """

    __slots__ = (
        "_alone", "_best", "_expected", "_is_alone", "_next_try", "_patience", "_recent", "_runs", "_spent", "_team",
        "_tries",
    )  # fmt: skip

    #: Seconds until the next try, at least; and by how much they are more than what the last one lost.
    PAUSE, SHARE = 0.005, 50
    #: A try alone may take so many seconds; longer programs are tried when the team has run `SHARE` times as long as a
    #: try can lose, and after a try that has lost `RARER` times as seldom.
    LONGEST_TRY = 0.02
    RARER = 4
    #: The first try: of a program that met a busy machine from the beginning.
    FIRST_TRY = 32
    #: Bytes that a thread moves in a second, at least. A team that takes longer than this is tried against at once:
    #: many small kernels, on a machine that has been busy from the beginning.
    SPEED = 1e9
    #: Runs and seconds of a try of the team, at least, of which the later half counts: its threads were asleep, and
    #: where the system wakes them on the caller's core it takes its time to spread them.
    TEAM_RUNS, TEAM_TIME = 16, 0.016
    #: A try of the team that has lost so many seconds is over.
    MOST_LOST = 0.05

    def __init__(self, work: float = 0.0) -> None:
        self._expected = work / self.SPEED or float("inf")  # what the calling thread alone takes at most
        self._best = self._recent = float("inf")  # seconds of the team's runs: the shortest, and an average
        self._alone = float("inf")  # an average of the runs alone
        self._runs = 0  # of the team
        self._is_alone = False  # whether runs are alone until the next try
        self._tries = False  # whether the next run is a try alone
        self._team: list[float] = []  # the runs of a try of the team
        self._next_try = 0.0
        self._spent = 0.0  # by the team, since a try of a long program
        self._patience = float(self.SHARE)

    def wants_team(self, now: float) -> bool:
        """Who is to run the program now, at a time in seconds."""
        return now >= self._next_try if self._is_alone else not self._tries

    def ran(self, by_team: bool, seconds: float, now: float, members: int) -> None:
        """What the run took that ends now."""
        if by_team and self._is_alone:
            runs = self._team
            runs.append(seconds)
            is_long = len(runs) >= self.TEAM_RUNS and now >= self._next_try + self.TEAM_TIME
            if is_long or sum(runs) - len(runs) * self._alone > self.MOST_LOST:
                later = runs[len(runs) // 2 :]
                self._team = []
                self._recent = sum(later) / len(later)
                self._is_alone = self._recent >= 0.9 * self._alone
                self._wait(now, sum(runs) - len(runs) * self._alone)
        elif by_team:
            self._runs += 1
            self._best = min(1.01 * self._best, seconds)
            before = self._recent
            self._recent = seconds if self._runs <= 2 else before + (min(seconds, 4 * before) - before) / 8
            slow = self._recent > 1.5 * self._best or (self._runs > 1 and self._best > self._expected)
            most = min(self._best * members, self._expected)  # that it takes alone
            if most >= self.LONGEST_TRY:
                self._spent += seconds
                self._tries = self._spent >= self._patience * max(most - self._recent, 0.1 * most)
            elif self._runs == self.FIRST_TRY or (slow and now >= self._next_try):
                self._tries = True
        elif self._tries:
            self._tries = False
            self._alone = seconds
            self._is_alone = seconds < 0.9 * self._recent
            self._spent, self._patience = 0.0, self.SHARE if self._is_alone else self.RARER * self._patience
            self._wait(now, seconds - self._recent)
        else:
            self._alone += (seconds - self._alone) / 4

    def _wait(self, now: float, lost: float) -> None:
        """Let some time pass until the next try, after one that lost so many seconds."""
        self._next_try = now + max(self.PAUSE, self.SHARE * lost)
