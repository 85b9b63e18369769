"""Calls of compiled functions that share state take turns, in whatever threads they are: each reads what the one before
has left, so no update is lost, and none sees the state in the middle of another's trace.

Functions have one lock each. Which of them share state is looked at only when calls of several are under way: a call
then takes the locks of those that do, too. A thread alone pays for an entry in a list.
"""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol

from ..lazy import tree
from ..lazy.arrays import array
from ..lazy.tree_nodes import attributes

__all__: list[str] = []


class Stateful(Protocol):
    """A function with state.

    Attributes:
        shared: of what its state is made (`parts_of`) while a trace has put other arrays into it; else empty.
    """

    _lock: Any
    _inputs: Any
    _outputs: Any
    shared: frozenset[int]


#: The functions of which calls are under way, once for each call.
under_way: list[Stateful] = []


class Turn:
    """Locks that are held together. A thread waits for one of them while it holds none of the others: who has it may be
    about to take those, in a call within a call.

    Calls within calls may come to wait for each other all the same, those of functions that share nothing. Then one of
    them does without what it waits for, as if the calls around it were its own thread's.
    """

    def __init__(self, locks: list[Any]):
        self._locks = locks
        self._held: list[Any] = []

    def __enter__(self) -> None:
        try:
            while True:
                first, *others = self._locks
                if not self._take(first):
                    return
                for lock in others:
                    self._held += filter(_TRY, (lock,))
                    if self._held[-1] is not lock:
                        break
                else:
                    return
                self.release()
                self._locks = [lock, *(other for other in self._locks if other is not lock)]
        except BaseException:
            self.release()
            raise

    def _take(self, lock: Any) -> bool:
        """Wait for a lock; False where its thread waits for one of this one's."""
        self._held += filter(_TRY, (lock,))  # no interrupt comes between the taking and the noting
        while not self._held:
            me = threading.get_ident()
            try:
                mine = {id(other._lock) for other in list(under_way) if other._lock._is_owned()}
                _waiting[me] = id(lock), mine
                if mine and _leads_to(me):
                    return False
                self._held += filter(_WAIT, (lock,))
            finally:
                _waiting.pop(me, None)
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let go of what is held. What an interrupt keeps `__exit__` from does `release`."""
        with contextlib.suppress(IndexError):  # no interrupt comes between the forgetting and the releasing
            deque(map(_RELEASE, iter(self._held.pop, None)), 0)


_WAIT, _TRY = operator.methodcaller("acquire", True, 0.05), operator.methodcaller("acquire", False)
_RELEASE = operator.methodcaller("release")

#: Of threads that wait for a lock: which one, and those that they have.
_waiting: dict[int, tuple[int, set[int]]] = {}


def _leads_to(thread: int) -> bool:
    """Whether threads wait for each other in a circle in which `thread` is the one to give way: that with the least
    number."""
    waiting = dict(_waiting)
    circle = [thread]
    while True:
        wanted, _ = waiting[circle[-1]]
        follower = next((other for other, (_, has) in waiting.items() if wanted in has), None)
        if follower is None:
            return False
        if follower in circle:
            return follower == thread and thread == min(circle)
        circle.append(follower)


def release(held: Any) -> None:
    """A call of a function is over, which held what `turn_of` gives."""
    if type(held) is Turn:
        held.release()


@contextlib.contextmanager
def turn(function: Stateful) -> Iterator[None]:
    """While something else than a call does what a call does."""
    held: Any = None
    try:
        under_way.append(function)
        held = turn_of(function)
        with held:
            yield
    finally:
        try:
            under_way.remove(function)  # as in a call
        except ValueError:
            pass
        finally:
            release(held)


def turn_of(function: Stateful) -> Any:
    """What a call of a function holds while it runs, where calls of several are under way. Its own entry in `under_way`
    is there already: of two calls at least one finds the other's."""
    others = {id(other): other for other in list(under_way) if other is not function}
    if not others:
        return function._lock
    mine = _parts(function)
    sharing = [other._lock for other in others.values() if not mine.isdisjoint(_parts(other))]
    return Turn([function._lock, *sharing])


def _parts(function: Stateful) -> frozenset[int]:
    return parts_of((function._inputs, function._outputs)) | function.shared


def parts_of(state: Any) -> frozenset[int]:
    """The identities of all that can be assigned to in a state: its arrays, and what holds them."""
    found: set[int] = set()
    left = [state]
    while left:
        x = left.pop()
        if id(x) in found:
            continue
        if isinstance(x, array):
            found.add(id(x))
        elif tree.is_node(x):
            if type(x) is not tuple:
                found.add(id(x))
            left += _below(x)
    return frozenset(found)


def _below(x: Any) -> list[Any]:
    """What a node holds. Another thread may change it meanwhile, so it is copied at once."""
    if isinstance(x, dict):
        found = list(dict.values(x))
    elif isinstance(x, list | tuple | deque):
        found = list(x)
    else:
        found = [child for _, child in tree.children(x) or []]
    return found if type(x) in _BARE else [*found, *attributes(x).values()]


#: Classes without attributes.
_BARE = (dict, list, tuple, deque)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=under_way.clear)
