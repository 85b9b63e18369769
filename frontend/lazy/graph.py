"""The lazy graph: nodes, traces, and functions made of recorded nodes.

A node is one op applied to results of other nodes; nothing runs when it is made. Nodes hold their
inputs, so work that nobody asks for dies by reference counting. Nothing here recurses: chains may
be a million nodes long (their release included, see `Node.__del__`).
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from smelt.ir.aval import Aval
from smelt.ir.errors import _internal_files, is_internal
from smelt.ir.op import Op
from smelt.runtime import Buffer

from .static_keys import attribute_key


class GraphOp(Op):
    """A kind of node that is no op of the dialect."""

    def __init__(self, name: str):
        self.name = name  # type: ignore[misc]


LEAF = GraphOp("leaf")  #: a value: never an op, always a buffer
PARAMETER = GraphOp("parameter")  #: an argument of a trace; has no value
ALIAS = GraphOp("alias")  #: an argument of a differentiated function; has its input's value
APPLY = GraphOp("apply")  #: attrs: callee (a GraphFunction), transforms

#: A result of a node.
Ref = tuple["Node", int]

NO_ATTRS: dict[str, Any] = {}


class Handle:
    """What `smelt.array` is to the modules below it: a name for a result of a node, with its dtype, shape and size."""

    __slots__ = ()

    _ref: Ref


#: Numbers of traces: a later one has a larger number.
traces = itertools.count(1)


class _State(threading.local):
    """What this thread is tracing."""

    def __init__(self) -> None:
        self.recording = 0  #: depth of differentiated functions being recorded: nodes stay whole
        self.compiling = 0  #: depth of compile/vmap traces: scalars are constants, values are absent
        self.traced = 0  #: the number of the trace that new nodes belong to; 0 outside of traces
        self.control = 0  #: the number of the innermost trace of a branch or of a loop's body; 0 outside of them
        self.deferred: list[Any] = []  #: nodes evaluated while recording, to be detached at its end


state = _State()


class Node:
    """One op applied to results of other nodes.

    Attributes:
        op: an op of the registry, a control-flow op (its functions are GraphFunctions in `attrs`), or one
            of LEAF, PARAMETER, ALIAS, APPLY.
        attrs: the op's attributes.
        inputs: what it is applied to; empty once evaluated.
        avals: one a result.
        values: one Buffer a result once evaluated, else None.
        where: the user's code object and line.
        traced: the number of the trace (of `compile`, `vmap`, `scan`, ...) that it was made in, or 0.
    """

    __slots__ = ("__weakref__", "attrs", "avals", "inputs", "op", "traced", "values", "where")

    def __init__(self, op: Op, attrs: dict[str, Any], inputs: tuple[Ref, ...], avals: tuple[Aval, ...]):
        self.op = op
        self.attrs = attrs
        self.inputs = inputs
        self.avals = avals
        self.values: list[Buffer] | None = None
        self.traced = state.traced
        frame = sys._getframe(2)
        internal = _internal_files
        while frame is not None:
            code = frame.f_code
            known = internal.get(code.co_filename)
            if known is None:
                known = is_internal(frame)
            if not known:
                self.where: Any = (code, frame.f_lineno)
                return
            frame = frame.f_back  # type: ignore[assignment]
        self.where = None

    def detach(self) -> None:
        """Forget the inputs: the values are there."""
        self.inputs = ()
        self.attrs = NO_ATTRS
        self.op = LEAF

    def __del__(self) -> None:
        # A chain of a million nodes must not be released by a million nested calls.
        inputs = self.inputs
        if not inputs:
            return
        self.inputs = ()
        queue = _release.queue
        queue.append(inputs)
        del inputs
        if not _release.active:
            _release.active = True
            try:
                while queue:
                    queue.pop()
            finally:  # an interrupt inside leaves the rest to the next one
                _release.active = False


class _Release(threading.local):
    def __init__(self) -> None:
        self.queue: list[Any] = []
        self.active = False


_release = _Release()


def leaf(buffer: Buffer) -> Node:
    """A node that is a value."""
    node = Node.__new__(Node)
    node.op = LEAF
    node.attrs = NO_ATTRS
    node.inputs = ()
    node.avals = (buffer.aval,)
    node.values = [buffer]
    node.traced = state.traced
    node.where = None
    return node


def topological(outputs: Iterable[Ref], stop: Any = None) -> list[Node]:
    """Nodes below `outputs` in the order of evaluation. Descends into no node that has values, nor
    into those for which ``stop(node)`` holds; such nodes are not listed."""
    order: list[Node] = []
    seen: set[Node] = set()
    for root, _ in outputs:
        if root in seen:
            continue
        stack: list[tuple[Node, Any]] = []
        if not (stop(root) if stop else root.values is not None):
            seen.add(root)
            stack.append((root, iter(root.inputs)))
        while stack:
            node, pending = stack[-1]
            for child, _ in pending:
                if child in seen or (stop(child) if stop else child.values is not None):
                    continue
                seen.add(child)
                stack.append((child, iter(child.inputs)))
                break
            else:
                stack.pop()
                order.append(node)
    return order


class RecordedNode(NamedTuple):
    """What a node was when it was recorded. Evaluating the node later makes it forget."""

    node: Node
    op: Op
    attrs: dict[str, Any]
    inputs: tuple[Ref, ...]
    avals: tuple[Aval, ...]
    where: Any


def snapshot(nodes: Iterable[Node]) -> list[RecordedNode]:
    """The nodes as they are now."""
    return [RecordedNode(n, n.op, n.attrs, n.inputs, n.avals, n.where) for n in nodes]


class GraphFunction:
    """A function recorded as nodes: parameters, body in order, outputs.

    Attributes:
        name: for the IR.
        parameters: references that stand for the arguments; the last `len(captured)` of them are
            values from outside that the body uses.
        outputs: references into the body (or to parameters).
        key: equal for functions that compute the same.
        names: what the user calls the arguments, as far as known.
        rules: attributes of the function in the IR that say how it is transformed; see `set_rules`.
    """

    def __init__(self, name: str, parameters: Sequence[Ref], captured: Sequence[Ref], body: list[RecordedNode],
                 outputs: Sequence[Ref]):  # fmt: skip
        self.name = name
        self.parameters = list(parameters) + list(captured)
        self.captured = list(captured)
        self.body = body
        self.outputs = list(outputs)
        self.key = structure_key(self.parameters, body, self.outputs)
        self.names: Sequence[str | None] = ()
        self.rules: dict[str, Any] = {}

    def set_rules(self, rules: dict[str, Any]) -> None:
        """Give it rules of its own (`smelt.passes.transform.custom_rules`): functions, numbers, or True for a mark."""
        self.rules = rules
        self.key = (self.key, tuple([(name, _function_keys(value)) for name, value in rules.items()]))

    @property
    def arguments(self) -> list[Aval]:
        return [n.avals[i] for n, i in self.parameters]

    @property
    def results(self) -> list[Aval]:
        return [n.avals[i] for n, i in self.outputs]


def structure_key(inputs: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref]) -> Any:
    """Equal for graphs of the same structure, attributes and types."""
    number: dict[Ref, int] = {}
    for ref in inputs:
        number.setdefault(ref, len(number))
    parts: list[Any] = [tuple((n.avals[i].shape, n.avals[i].dtype.name) for n, i in inputs)]
    for step in body:
        operands = tuple([number[r] for r in step.inputs])
        if step.op is APPLY:
            attrs: Any = (step.attrs["callee"].key, transforms_key(step.attrs["transforms"]))
        elif step.op.kind == "control":
            attrs = tuple([(k, _function_keys(v)) for k, v in step.attrs.items()])
        else:
            attrs = attrs_key(step.attrs) if step.attrs else ()
        parts.append((step.op.name, attrs, operands))
        for i in range(len(step.avals)):
            number[(step.node, i)] = len(number)
    parts.append(tuple(number[r] for r in outputs))
    return tuple(parts)


def callees(node: Node | RecordedNode) -> list[GraphFunction]:
    """The functions that a node applies, branches into or loops over."""
    if node.op is APPLY:
        return [node.attrs["callee"]]
    if node.op.kind != "control":
        return []
    found: list[GraphFunction] = []
    for value in node.attrs.values():
        found += [f for f in (value if isinstance(value, tuple) else (value,)) if isinstance(f, GraphFunction)]
    return found


def _function_keys(value: Any) -> Any:
    """An attribute with the keys of functions in place of functions."""
    if isinstance(value, tuple):
        return tuple(_function_keys(v) for v in value)
    return value.key if isinstance(value, GraphFunction) else value


def attrs_key(attrs: dict[str, Any]) -> tuple:
    """Attributes as a hashable that tells 1 from True and 0.0 from -0.0."""
    return tuple([(k, attribute_key(v)) for k, v in attrs.items()])


def transforms_key(transforms: Sequence[tuple[str, dict[str, Any]]]) -> tuple:
    return tuple((name, attrs_key(attrs)) for name, attrs in transforms)


def cut(
    parameters: Iterable[Ref],
    outputs: Sequence[Ref],
    outside: Callable[[Node], bool] | None = None,
    hoist: bool = True,
    constant: Callable[[Node], bool] | None = None,
) -> tuple[list[Node], list[Ref]]:
    """The nodes between `parameters` and `outputs`, in order, and what they use from outside.

    Args:
        outside: what does not belong to them and need not be looked below, beside leaves and parameters of others.
        hoist: whether what does not depend on a parameter stays outside, too,
        constant: with `hoist`, what does belong to them where it depends on nothing else than such nodes.
    """
    markers = {n for n, _ in parameters}

    def ends(node: Node) -> bool:
        op = node.op
        return node in markers or op is LEAF or op is PARAMETER or (outside is not None and outside(node))

    body = topological(outputs, stop=ends)
    inside = set(body)
    if hoist:
        inside, constants = set(), set()
        for node in body:
            if any(n in markers or n in inside for n, _ in node.inputs):
                inside.add(node)
            elif constant is not None and constant(node) and all(n in constants for n, _ in node.inputs):
                constants.add(node)
        inside |= constants
        body = [n for n in body if n in inside]
    used = [r for n in body for r in n.inputs] + list(outputs)
    return body, [r for r in dict.fromkeys(used) if r[0] not in inside and r[0] not in markers]


def record_function(name: str, parameters: Sequence[Ref], outputs: Sequence[Ref], keep_outside: bool) -> GraphFunction:
    """Cut the graph between `parameters` and `outputs` out as a function.

    What does not depend on a parameter is captured from outside: all of it if `keep_outside`
    (gradients: it is computed once), else only what existed before the trace, the rest being part
    of the function (compile).
    """
    outside = None if keep_outside else lambda n: not n.traced
    body, captured = cut(parameters, outputs, outside, hoist=keep_outside)
    return GraphFunction(name, parameters, captured, snapshot(body), outputs)
