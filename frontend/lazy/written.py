"""Recorded graphs as text, and back: what a program is found by on disk, and what a worker process compiles.

The text is JSON: functions in an order in which each comes after those that it applies; the last is the program. A
function has the types of its parameters, its nodes, and the numbers of what it returns. A node is its op, attributes,
operands and the types of its results; values are numbered, parameters first. Lines of the user stand in a text of
their own, since a graph is the same wherever it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json import dumps, loads
from typing import Any

from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.errors import line_of
from smelt.ir.op import Op, get
from smelt.ir.plain import PlainError, attrs_of, aval_of, plain, plain_attrs, plain_aval, value_of

from .build import build_module
from .core import ALIAS, APPLY, NO_ATTRS, PARAMETER
from .graph import GraphFunction, Node, RecordedNode, Ref, callees

#: Of the form.
VERSION = 1
_CONTROL: dict[str, Op] = {op.name: op for op in (COND, WHILE, SCAN)}
_GRAPH: dict[str, Op] = {"apply": APPLY, "alias": ALIAS}


class WrittenGraph:
    """A graph as text. It holds no node: a worker may have it for long, and nodes have values.

    Attributes:
        text: without lines of the user. Equal for graphs of the same structure, attributes and types.
    """

    def __init__(self, text: str, functions: Sequence[Sequence[RecordedNode]]):
        self.text = text
        self._places = [[step.where for step in body] for body in functions]

    def located(self) -> str:
        """`text`, and in a second line where each node was made."""
        lines: dict[Any, Any] = {None: None}
        for where in {where for places in self._places for where in places if where is not None}:
            code, at = where
            lines[where] = [code.co_filename, line_of(code, at)]
        return self.text + "\n" + dumps([[lines[where] for where in places] for places in self._places])


def write_graph(
    parameters: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref], names: Sequence[str | None] = ()
) -> WrittenGraph | None:
    """A graph as text; None where an attribute has no form as text."""
    writer = _Writer()
    try:
        writer.function("main", parameters, body, outputs, names, {})
    except PlainError:
        return None
    text = dumps([VERSION, writer.functions], separators=(",", ":"))
    return WrittenGraph(text, writer.bodies)


class _Writer:
    def __init__(self) -> None:
        self.functions: list[Any] = []
        self.bodies: list[Sequence[RecordedNode]] = []
        self.numbers: dict[Any, int] = {}

    def number(self, f: GraphFunction) -> int:
        """The number of a function, written on first use; equal functions share one."""
        found = self.numbers.get(f.key)
        if found is None:
            self.function(f.name, f.parameters, f.body, f.outputs, f.names, f.rules)
            found = self.numbers[f.key] = len(self.functions) - 1
        return found

    def function(
        self, name: str, parameters: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref],
        names: Sequence[str | None], rules: dict[str, Any],
    ) -> None:  # fmt: skip
        known = {id(f): self.number(f) for step in body for f in callees(step)}

        def of_functions(value: Any) -> Any:
            """An attribute, with the numbers of functions."""
            if isinstance(value, GraphFunction):
                return {"function": known[id(value)] if id(value) in known else self.number(value)}
            return [of_functions(v) for v in value] if isinstance(value, tuple) else plain(value)

        values: dict[Ref, int] = {}
        for i, ref in enumerate(parameters):
            values.setdefault(ref, i)
        count = len(parameters)
        nodes: list[Any] = []
        for op_node, op, attrs, inputs, avals, _ in body:
            if op is APPLY:
                transforms = [[what, plain_attrs(given)] for what, given in attrs["transforms"]]
                written: Any = {"callee": of_functions(attrs["callee"]), "transforms": transforms}
                kind = "graph.apply"
            elif op.kind == "control":
                written, kind = {k: of_functions(v) for k, v in attrs.items()}, f"control.{op.name}"
            elif op is ALIAS:
                written, kind = {}, "graph.alias"
            else:
                written, kind = plain_attrs(attrs) if attrs else {}, f"smelt.{op.name}"
            nodes.append([kind, written, [values[r] for r in inputs], [plain_aval(a) for a in avals]])
            for i in range(len(avals)):
                values[(op_node, i)] = count
                count += 1
        self.functions.append(
            {
                "name": name,
                "parameters": [plain_aval(n.avals[i]) for n, i in parameters],
                "names": list(names),
                "nodes": nodes,
                "outputs": [values[r] for r in outputs],
                "rules": {k: of_functions(v) for k, v in rules.items()},
            }
        )
        self.bodies.append(body)


def read_graph(text: str) -> tuple[GraphFunction, Sequence[str | None]]:
    """The graph of a text, with lines or without, and the names of its parameters.

    Raises:
        PlainError: the text is of another version, or has a value of no form. Else what Python raises for a text that
            `write_graph` has not written.
    """
    first, _, second = text.partition("\n")
    version, written = loads(first)
    if version != VERSION:
        raise PlainError(f"a graph of version {version}")
    lines = loads(second) if second else [[None] * len(f["nodes"]) for f in written]
    functions: list[GraphFunction] = []
    for f, places in zip(written, lines):
        functions.append(_read_function(f, places, functions))
    return functions[-1], written[-1]["names"]


def _read_function(f: dict[str, Any], places: Sequence[Any], functions: Sequence[GraphFunction]) -> GraphFunction:
    def with_functions(found: Any) -> Any:
        if isinstance(found, dict) and "function" in found:
            return functions[found["function"]]
        return tuple([with_functions(x) for x in found]) if isinstance(found, list) else value_of(found)

    values: list[Ref] = [(_node(PARAMETER, {}, (), (aval_of(a),)), 0) for a in f["parameters"]]
    parameters = list(values)
    body: list[RecordedNode] = []
    for (kind, written, operands, types), place in zip(f["nodes"], places):
        room, _, name = kind.partition(".")
        op = _GRAPH[name] if room == "graph" else _CONTROL[name] if room == "control" else get(name)
        if op is APPLY:
            transforms = tuple([(what, attrs_of(given)) for what, given in written["transforms"]])
            attrs: dict[str, Any] = {"callee": with_functions(written["callee"]), "transforms": transforms}
        elif op.kind == "control":
            attrs = {k: with_functions(v) for k, v in written.items()}
        else:
            attrs = attrs_of(written)
        node = _node(op, attrs, tuple([values[i] for i in operands]), tuple([aval_of(a) for a in types]))
        node.where = None if place is None else _place(*place)
        body.append(RecordedNode(node, op, attrs, node.inputs, node.avals, node.where))
        values += [(node, i) for i in range(len(node.avals))]
    found = GraphFunction(f["name"], parameters, (), body, [values[i] for i in f["outputs"]])
    found.names = f["names"]
    if f["rules"]:
        found.set_rules({k: with_functions(v) for k, v in f["rules"].items()})
    return found


def _node(op: Op, attrs: dict[str, Any], inputs: tuple[Ref, ...], avals: Any) -> Node:
    node = Node.__new__(Node)
    node.op, node.attrs, node.inputs, node.avals = op, attrs or NO_ATTRS, inputs, avals
    node.values, node.traced, node.where = None, 0, None
    return node


_CODE: Callable[[], None] = lambda: None  # noqa: E731


def _place(file: str, line: int) -> Any:
    """What stands for a line of the user's code."""
    return _CODE.__code__.replace(co_filename=file, co_firstlineno=line), 0


def module_of(text: str) -> Any:
    """The module of a graph as text; see `read_graph`."""
    f, names = read_graph(text)
    return build_module(f.parameters, f.body, f.outputs, names)
