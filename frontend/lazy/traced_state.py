"""The state of a compiled function while it is traced: placeholders stand in its arrays, and results of the trace in
its dicts and lists. Other threads see none of them: in an array they see what was there before, in a result what it
comes to for the arguments of the call that traces.

Where the thread that traces is the only one, nothing of this is done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from smelt.ir import locks
from smelt.ir.aval import Aval
from smelt.ir.symbolic import has_symbol, value_of

from .arrays import array, wrap
from .core import PARAMETER, Node, Ref, hooks, parameter, shadows, topological
from .exports import View, ViewedArray, changing, kept, put_back, slot
from .graph import GraphFunction, RecordedNode, state
from .tree_nodes import arrays_of


class _Held:
    """What is in a `TracedArray`.

    Attributes:
        owner: whose trace it is, in which thread. inside: what that sees.
        before: what others see: a reference, or a view of `exports`.
    """

    __slots__ = ("before", "inside", "owner", "thread")

    def __init__(self, owner: TracedState, inside: Ref, before: Any):
        self.owner, self.thread, self.inside, self.before = owner, threading.get_ident(), inside, before


class TracedArray(array):
    """A handle that is part of the state of a function that a thread traces."""

    __slots__ = ()

    @property
    def _ref(self) -> Ref:  # type: ignore[override]
        found = slot.__get__(self)
        if type(found) is _Held:
            found = found.inside if found.thread == threading.get_ident() else found.before
        if type(found) is View:
            with changing:
                return found.current(False)
        return found

    @_ref.setter
    def _ref(self, ref: Ref) -> None:
        with changing:
            held = slot.__get__(self)
            if type(self) is not TracedArray:  # the trace has ended
                self._ref = ref
            elif type(held) is not _Held:  # an interrupt came at its beginning
                slot.__set__(self, ref)
            elif held.thread == threading.get_ident():
                held.inside = ref
            else:  # as if the trace had not begun
                held.before = ref


TracedArray.__name__ = TracedArray.__qualname__ = array.__name__
TracedArray.__module__ = array.__module__


class TracedState:
    """What a trace puts other things into.

    Args:
        arrays: those of the state.

    Attributes:
        is_over: whether all is put back.
    """

    def __init__(self, arrays: Iterable[array]):
        self._arrays = list({id(x): x for x in arrays}.values())
        self._saved: list[tuple[array, Any]] = []
        self._shadow: Shadow | None = None
        self.is_over = False

    def begin(self, arguments: Iterable[tuple[Ref, Ref]] | None) -> None:
        """From now on this thread alone sees what it puts into the arrays.

        Args:
            arguments: placeholders and their values; None: no others can see results of the trace.
        """
        if threading.active_count() == 1:
            self._saved = [(x, kept(x)) for x in self._arrays]
            return
        if arguments is not None:
            self._shadow = Shadow(dict(arguments))
            shadows.append(self._shadow)
        with changing:
            for x in self._arrays:
                if type(x) is TracedArray:  # of a trace around this one
                    self._saved.append((x, kept(x)))
                    continue
                held = _Held(self, x._ref, slot.__get__(x))
                x.__class__ = TracedArray  # type: ignore[assignment]
                slot.__set__(x, held)

    def end(self, outputs: Any) -> None:
        """Put everything back. After an interrupt in it, a second time puts back the rest.

        Args:
            outputs: what holds results of the trace, where other threads may have found them.
        """
        try:
            if self._shadow is not None:
                new = [x for x in arrays_of(outputs) if type(x) is array]
                for x, ref in zip(new, self._shadow.of([x._ref for x in new])):
                    x._ref = ref
        finally:
            for x, before in self._saved:
                put_back(x, before)
            with changing:
                self._uncover()
            if self._shadow in shadows:
                shadows.remove(self._shadow)

    def _uncover(self) -> None:
        for x in self._arrays:
            held = slot.__get__(x)
            if type(held) is _Held and held.owner is self:
                slot.__set__(x, held.before)  # first: who finds an `array` takes what is in it for a reference
            if type(x) is TracedArray and type(slot.__get__(x)) is not _Held:
                x.__class__ = ViewedArray if type(slot.__get__(x)) is View else array  # type: ignore[assignment]


class Shadow:
    """A trace as others see it: its results are computed from the arguments of the call that traces. Where it is one on
    symbols, each stands for the size that it has in this call.

    All of its nodes are copied, those that depend on no argument, too: what another thread evaluates is a value, and no
    more a part of the trace.
    """

    def __init__(self, arguments: dict[Ref, Ref]):
        self.thread = threading.get_ident()
        self._traces = {state.traced}
        self._copies = arguments
        self._has_symbols = any(has_symbol(n.avals[i].shape) for n, i in arguments)
        self._lock = locks.lock()

    def nests(self, trace: int) -> None:
        """A trace has begun in this thread, perhaps inside of this one."""
        if self.thread == threading.get_ident():
            self._traces.add(trace)

    def of(self, refs: Sequence[Ref]) -> list[Ref]:
        """Results of the trace by nodes that belong to no trace; other references as they are."""
        with self._lock:
            return self._of(refs)

    def _of(self, refs: Sequence[Ref]) -> list[Ref]:
        copies, traces = self._copies, self._traces

        def is_done(n: Node) -> bool:
            return n.traced not in traces or n.op is PARAMETER or n.values is not None or (n, 0) in copies

        for node in topological(refs, is_done):
            attrs, avals = node.attrs, node.avals
            if self._has_symbols:
                attrs, avals = _at_values(attrs), tuple(map(_aval_at_values, avals))
            copy = Node(node.op, attrs, tuple([copies.get(r, r) for r in node.inputs]), avals)
            copy.where = node.where
            copies.update({(node, i): (copy, i) for i in range(len(node.avals))})
        return [copies.get(ref, ref) for ref in refs]


def _aval_at_values(aval: Aval) -> Aval:
    return aval.with_shape(value_of(aval.shape)) if has_symbol(aval.shape) else aval


def _at_values(x: Any) -> Any:
    """An attribute with sizes in place of symbols; of a function that it names, too."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([_at_values(item) for item in x])
    if kind is dict:
        return {key: _at_values(value) for key, value in x.items()}
    if kind is slice:
        return slice(*_at_values((x.start, x.stop, x.step)))
    return _function_at_values(x) if isinstance(x, GraphFunction) else value_of(x)


def _function_at_values(f: GraphFunction) -> GraphFunction:
    parameters = [parameter(_aval_at_values(n.avals[i])) for n, i in f.parameters]
    env = dict(zip(f.parameters, parameters))
    body: list[RecordedNode] = []
    for step in f.body:
        attrs, avals = _at_values(step.attrs), tuple(map(_aval_at_values, step.avals))
        node = Node(step.op, attrs, tuple([env[r] for r in step.inputs]), avals)
        node.where = step.where
        body.append(RecordedNode(node, step.op, attrs, node.inputs, avals, step.where))
        env.update({(step.node, i): (node, i) for i in range(len(avals))})
    found = GraphFunction(f.name, parameters, (), body, [env[r] for r in f.outputs])
    found.names = f.names
    if f.rules:
        found.set_rules(_at_values(f.rules))
    return found


def as_seen(x: array) -> array:
    """What this thread sees in an array that may be the result of another's trace."""
    ref = x._ref
    if ref[0].values is None and ref[0].traced and not state.compiling:
        for shadow in shadows.copy():
            if shadow.thread != threading.get_ident() and (new := shadow.of([ref])[0]) is not ref:
                return wrap(new)
    return x


hooks.as_seen = as_seen
