"""The lazy graph: functions made of recorded nodes, and keys of their structure. Nodes are those of `core`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary

import numpy as np

from smelt.ir.aval import Aval
from smelt.ir.op import Op

from .core import ALIAS as ALIAS
from .core import APPLY, LEAF, PARAMETER, native, topological
from .core import NO_ATTRS as NO_ATTRS
from .core import GraphOp as GraphOp
from .core import Handle as Handle
from .core import Node as Node
from .core import Ref as Ref
from .core import leaf as leaf
from .core import parameter as parameter
from .core import parameter_below as parameter_below
from .core import state as state
from .core import traces as traces
from .core import varies as varies
from .static_keys import attribute_key

#: Attributes of a parameter whose argument nobody has after the call (``donate=``).
GIVEN: dict[str, Any] = {"given": True}


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


def inputs_of(body: Sequence[RecordedNode], outputs: Iterable[Ref] = ()) -> list[Ref]:
    """What steps, and `outputs`, read of nodes that are none of the steps, in order of appearance."""
    inside = {step.node for step in body}
    read = [ref for step in body for ref in step.inputs]
    return list(dict.fromkeys([ref for ref in (*read, *outputs) if ref[0] not in inside]))


class FunctionKey:
    """What a function computes, as a key: equal ones are one object while it lives, with its hash."""

    __slots__ = ("__weakref__", "_hash", "parts")

    def __new__(cls, parts: Any) -> FunctionKey:
        made = super().__new__(cls)
        made.parts = parts
        try:
            made._hash = hash(parts)
        except TypeError:  # sizes are symbols: equal to no other
            made._hash = id(made)
            return made
        known = _keys.get(made)
        found = known() if known is not None else None
        if found is None:
            _keys[made] = ReferenceType(made)
        return made if found is None else found

    parts: Any
    _hash: int

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is FunctionKey and self._hash == other._hash and self.parts == other.parts)


_keys: WeakKeyDictionary[FunctionKey, ReferenceType[FunctionKey]] = WeakKeyDictionary()


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
        work: element operations of a call, once they were counted (`execution/work.py`).

    Args:
        structure: its `structure_key`, where that is known, or what `key` is of it.
    """

    def __init__(self, name: str, parameters: Sequence[Ref], captured: Sequence[Ref], body: list[RecordedNode],
                 outputs: Sequence[Ref], structure: Any = None):  # fmt: skip
        self.name = name
        self.parameters = list(parameters) + list(captured)
        self.captured = list(captured)
        self.body = body
        self.outputs = list(outputs)
        self.key: FunctionKey = (
            structure
            if type(structure) is FunctionKey
            else FunctionKey(structure or structure_key(self.parameters, body, self.outputs))
        )
        self.names: Sequence[str | None] = ()
        self.work: float | None = None
        self.rules: dict[str, Any] = {}

    def set_rules(self, rules: dict[str, Any]) -> None:
        """Give it rules of its own (`smelt.passes.transform.custom_rules`): functions, numbers, or True for a mark."""
        self.rules = rules
        self.key = FunctionKey((self.key, tuple([(name, _function_keys(value)) for name, value in rules.items()])))

    @property
    def arguments(self) -> list[Aval]:
        return [n.avals[i] for n, i in self.parameters]

    @property
    def results(self) -> list[Aval]:
        return [n.avals[i] for n, i in self.outputs]


def structure_key(inputs: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref]) -> Any:
    """Equal for graphs of the same structure, attributes and types, and of the same lines where running names them."""
    number: dict[Ref, int] = {}
    for ref in inputs:
        number.setdefault(ref, len(number))
    parts: list[Any] = [tuple((n.avals[i].shape, n.avals[i].dtype.name) for n, i in inputs)]
    for step in body:
        parts.append((*step_key(step), tuple([number[r] for r in step.inputs])))
        for i in range(len(step.avals)):
            number[(step.node, i)] = len(number)
    parts.append(tuple(number[r] for r in outputs))
    return tuple(parts)


def step_key(step: RecordedNode) -> tuple[str, Any]:
    """Op and attributes, and the line where running names it."""
    op, given = step.op, step.attrs
    if op is APPLY:
        return op.name, (given["callee"].key, transforms_key(given["transforms"]))
    if op.kind == "control":
        return op.name, tuple([(k, _function_keys(v)) for k, v in given.items()])
    attrs = attrs_key(given) if given else ()
    if op.tells_line:
        return op.name, (attrs, step.where)
    _plain_names[op] = op.name
    return op.name, attrs


#: The names of ops that were met whose steps are told by name and attributes alone.
_plain_names: dict[Any, str] = {}


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
    known = _attrs_keys.get(id(attrs))
    if known is not None:  # it holds the dictionary, so this is the one
        return known[1]
    key = tuple([(k, attribute_key(v)) for k, v in attrs.items()])
    if all(map(_is_small, attrs.values())):
        if len(_attrs_keys) >= _MOST_KEYS:
            _attrs_keys.clear()
        _attrs_keys[id(attrs)] = attrs, key
    return key


def _is_small(value: Any) -> bool:
    """Whether an attribute may be kept after the nodes that have it: neither arrays nor functions are in it."""
    if isinstance(value, tuple):
        return all(map(_is_small, value))
    return not isinstance(value, (np.ndarray, GraphFunction))


#: Keys of attributes by identity: nodes of a recipe share theirs, and nobody changes them.
_attrs_keys: dict[int, tuple[dict[str, Any], tuple]] = {}
_MOST_KEYS = 4096


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
    ends: Any = markers
    if outside is not None:

        def ends(node: Node) -> bool:
            op = node.op
            return node in markers or op is LEAF or op is PARAMETER or outside(node)

    body = topological(outputs, stop=ends)
    inside = set(body)
    if hoist:
        dependent, constants = set(markers), set()
        for node in body:
            for n, _ in node.inputs:
                if n in dependent:
                    dependent.add(node)
                    break
            else:
                if constant is not None and constant(node) and all(n in constants for n, _ in node.inputs):
                    constants.add(node)
        inside = (dependent - markers) | constants
        body = [n for n in body if n in inside]
    used = [r for n in body for r in n.inputs] + list(outputs)
    return body, [r for r in dict.fromkeys(used) if r[0] not in inside and r[0] not in markers]


def dependent_on(parameters: Iterable[Ref], outputs: Sequence[Ref]) -> tuple[list[RecordedNode], list[Ref]]:
    """The nodes below `outputs` that depend on `parameters`, in order, and what they use besides."""
    body, captured = cut(parameters, outputs)
    return snapshot(body), captured


def record_function(name: str, parameters: Sequence[Ref], outputs: Sequence[Ref], keep_outside: bool) -> GraphFunction:
    """Cut the graph between `parameters` and `outputs` out as a function.

    What does not depend on a parameter is captured from outside: all of it if `keep_outside`
    (gradients: it is computed once), else only what existed before the trace, the rest being part
    of the function (compile).
    """
    if keep_outside:
        steps, captured = dependent_on(parameters, outputs)
    else:
        body, captured = cut(parameters, outputs, lambda n: not n.traced, hoist=False)
        steps = snapshot(body)
    return GraphFunction(name, parameters, captured, steps, outputs)


if native is not None:
    native.connect_keys(step_key, _attrs_keys, _plain_names, PARAMETER, RecordedNode)
    structure_key, dependent_on = native.structure_key, native.dependent_on
    snapshot, inputs_of = native.snapshot, native.inputs_of
