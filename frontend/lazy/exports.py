"""Memory of arrays that others write to: ``np.asarray(x)``, ``memoryview(x)``, ``torch.from_dlpack(x)``.

While there is such a view of its memory, a handle is a `ViewedArray`. The view has memory that nothing else refers to:
the array's own where that is so, else a copy. What uses the handle asks for its node; then the view's elements are
compared with those that it had when the handle was used last, and where somebody has written there the handle gets a
node with a copy of what is there now. So the handle sees what is written, and nothing else does: neither what shares
the values of its former nodes nor what was recorded on them and has not run yet. When the last view is gone the handle
is an `array` again. Arrays of which there is no such view pay nothing.

Functions that are differentiated see what is written and know nothing about where it comes from: to the derivative the
array is what it was.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from smelt.backends.buffer import SMALL
from smelt.ir import locks
from smelt.ir.aval import Aval
from smelt.ir.op import registry
from smelt.runtime import Buffer

from .arrays import array, emit, emit_elementwise, wrap
from .core import LEAF, Ref, hooks, leaf, shadows
from .evaluate import evaluate
from .graph import state

#: Bytes that are compared at a time.
_COMPARED = 1 << 20

slot: Any = array.__dict__["_ref"]
#: Held while a handle begins to be viewed, or is looked up.
changing = locks.lock()


class View:
    """What is known of a viewed handle.

    Attributes:
        aval: of the array.
        buffer, memory: what the views show.
        ref: the array as it was used last; None where it was not used since the view was made.
        seen: the elements that `memory` had then.
        origin: what it is to derivatives, inside of functions that are differentiated.
        owner: what all views keep alive.
    """

    __slots__ = ("aval", "buffer", "memory", "origin", "owner", "ref", "seen")

    def __init__(self, buffer: Buffer, ref: Ref | None, seen: np.ndarray | None):
        self.aval, self.buffer, self.memory, self.ref, self.seen = buffer.aval, buffer, buffer.array, ref, seen
        self.origin = ref if state.recording and ref is not None and ref[0].op is not LEAF else None
        self.owner: Any = lambda: None

    def show(self) -> np.ndarray:
        """An array over the memory, which others may write to."""
        owner = self.owner()
        if owner is None:
            # An array on a memoryview is the base of all views of it, and of their views.
            flat: Any = self.memory.reshape(-1).view(np.uint8)
            owner = np.asarray(memoryview(flat))
            self.owner = weakref.ref(owner)
        return owner.view(self.memory.dtype).reshape(self.memory.shape)

    def current(self, is_over: bool) -> Ref:
        """The array as it is now."""
        if self.ref is None or not _are_same(self.memory, self.seen):
            buffer = self.buffer
            if not is_over:
                buffer = Buffer.empty(self.aval)
                buffer.array[...] = self.memory
            self.seen = buffer.array
            self.ref = (leaf(buffer), 0)
            if state.recording and self.origin is not None:
                self.ref = _with_derivative(self.ref, self.origin)
        return self.ref


def _are_same(memory: np.ndarray, seen: Any) -> bool:
    """Whether two arrays have the same bytes."""
    if memory.nbytes <= SMALL:
        return bool(memory.tobytes() == seen.tobytes())
    a: Any = memory.reshape(-1).view(np.uint8)
    b: Any = seen.reshape(-1).view(np.uint8)
    return all(np.array_equal(a[i : i + _COMPARED], b[i : i + _COMPARED]) for i in range(0, a.size, _COMPARED))


def _with_derivative(value: Ref, origin: Ref) -> Ref:
    """An array with the elements of `value`, and the derivatives of `origin`."""
    new, old = wrap(value), wrap(origin)
    if not (new.dtype.is_float or new.dtype.is_complex):
        return value
    # new - (stopped - old) is new, to the sign of its zeros; where old is infinite or no number, it has no derivative.
    difference = emit_elementwise(registry["sub"], emit_elementwise(registry["stop_gradient"], old), old)
    zero = wrap((leaf(Buffer.of(np.zeros(new.shape, new.dtype.numpy), new.aval)), 0))
    is_number = emit_elementwise(registry["equal"], difference, difference)
    difference = emit(registry["select"], [is_number, difference, zero])
    return emit_elementwise(registry["sub"], new, difference)._ref


class ViewedArray(array):
    """A handle on an array of which others have a view that they may write to."""

    __slots__ = ()

    @property
    def _ref(self) -> Ref:  # type: ignore[override]
        with changing:
            view = slot.__get__(self)
            if type(view) is not View:  # another thread saw its end, and may trace with it by now
                return view if type(self) is ViewedArray else self._ref
            is_over = view.owner() is None
            ref = view.current(is_over)
            if is_over:
                self._become(ref)
            return ref

    @_ref.setter
    def _ref(self, ref: Ref) -> None:
        # An update in place makes another array of the handle. The views keep the memory that they show.
        with changing:
            if type(self) is ViewedArray:
                self._become(ref)
            else:
                self._ref = ref

    def _become(self, ref: Ref) -> None:
        slot.__set__(self, ref)
        self.__class__ = array  # type: ignore[assignment]

    @property
    def aval(self) -> Aval:
        view = slot.__get__(self)
        if type(view) is View:
            return view.aval
        node, i = self._ref
        return node.avals[i]


ViewedArray.__name__ = ViewedArray.__qualname__ = array.__name__
ViewedArray.__module__ = array.__module__


def export(x: array) -> np.ndarray:
    """The elements of `x` in memory that others may write to; `x` sees what they write, and nothing else does."""
    aval = x.aval
    if not aval.size:
        return np.empty(aval.shape, aval.dtype.numpy)
    while True:
        if type(x) not in (array, ViewedArray) or (shadows and hooks.as_seen(x) is not x):  # a thread traces with it
            return x._host().copy()
        if x._ref[0].values is None:
            evaluate((x._ref,))
        found = _shown(x)
        if found is not None:
            return found


def _shown(x: array) -> np.ndarray | None:
    """A view of an evaluated array; None where another thread has made something else of it."""
    with changing:
        held = slot.__get__(x)
        if type(held) is View and type(x) is ViewedArray:
            return held.show()
        if type(x) not in (array, ViewedArray) or held[0].values is None:
            return None
        aval = held[0].avals[held[1]]
        del held  # it refers to the memory
        x.__class__ = ViewedArray  # type: ignore[assignment]  # who uses it now waits for the lock
        try:
            own = _own_memory(x)
            if own is not None:
                view = View(own, None, None)
            else:
                ref = slot.__get__(x)
                seen, copy = ref[0].values[ref[1]].array, Buffer.empty(aval)
                copy.array[...] = seen
                view = View(copy, ref, seen)
        except BaseException:
            x.__class__ = array  # type: ignore[assignment]
            raise
        slot.__set__(x, view)
        return view.show()


def _own_memory(x: array) -> Buffer | None:
    """The array's own memory, where nothing else refers to that, and the array has it no more; a copy of a small array
    costs less than to find out."""
    node, i = slot.__get__(x)
    if node.op is not LEAF or node.avals[i].nbytes <= SMALL or state.recording:
        return None
    held, same = [node.values[i]], weakref.ref(node)
    slot.__set__(x, None)
    del node
    if Buffer.renew(held, 0):
        return held[0]
    slot.__set__(x, (same() or leaf(held[0]), i if same() else 0))
    return None


def write_in_place(x: array, write: Callable[[np.ndarray], None]) -> bool:
    """Write to the memory of an evaluated array; False where something else refers to that, too.

    An array whose memory is not the pool's gets a copy that is: then the next time can tell.
    """
    return locks.signals_later(functools.partial(_write_in_place, x, write))


def _write_in_place(x: array, write: Callable[[np.ndarray], None]) -> bool:
    with changing:
        if type(x) is not array:
            return False
        x.__class__ = ViewedArray  # type: ignore[assignment]  # who uses it now waits for the lock
        try:
            own = _own_memory(x)
            if own is None:
                node, i = slot.__get__(x)
                shared = node.values[i]
                if shared.home is not None or shared.is_pooled:
                    return False
                own = Buffer.empty(shared.aval)
                own.array[...] = shared.array
            try:
                write(own.array)
            finally:
                slot.__set__(x, (leaf(own), 0))
            return True
        finally:
            x.__class__ = array  # type: ignore[assignment]


def kept(x: array) -> Any:
    """What `put_back` makes `x` again, whatever is assigned to it meanwhile."""
    return slot.__get__(x) if type(x) in (array, ViewedArray) else x._ref


def put_back(x: array, before: Any) -> None:
    with changing:
        if type(before) is View:
            x.__class__ = ViewedArray  # type: ignore[assignment]
            slot.__set__(x, before)
        else:
            x._ref = before
