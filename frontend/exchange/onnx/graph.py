"""Graphs of ONNX run node by node on arrays: ops by a table of rules, subgraphs and functions by recursion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import smelt
from smelt import array
from smelt.ir import dtypes
from smelt.ir.errors import IRError, shown

from ..translating import Refused, placed

#: Subgraphs and functions nest no deeper.
MOST_DEEP = 60
#: Names of the domain of the standard's ops.
STANDARD = ("", "ai.onnx")

#: A value of a graph: an array, a sequence as a list, or nothing.
Value = Any
#: What an op means: from the node to its result, or a tuple of its results.
Rule = Callable[["Node"], Value]
RULES: dict[tuple[str, str], Rule] = {}


def rule(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Enter a rule for ops of these names."""

    def enter(function: Rule) -> Rule:
        RULES.update({(domain, name): function for name in names})
        return function

    return enter


class _Running(threading.local):
    """How deep the graphs that a thread runs nest."""

    depth = 0


_running = _Running()


class Node:
    """A node with its inputs computed: what a rule gets.

    Attributes:
        op: such as ``Add``. inputs: values; None where one is left out. outputs: how many results are asked for.
        version: of the op set.
    """

    def __init__(self, step: Step, inputs: list[Value], env: Mapping[str, Value]):
        self.step, self.inputs, self.env = step, inputs, env
        self.op, self.version, self.outputs = step.op, step.version, len(step.outputs)

    @property
    def x(self) -> array:
        """The first input."""
        return self[0]

    def __getitem__(self, i: int) -> Any:
        """An input; None where it is left out."""
        return self.inputs[i] if i < len(self.inputs) else None

    def attr(self, name: str, default: Any = None) -> Any:
        return self.step.attributes.get(name, default)

    def text(self, name: str, default: str) -> str:
        found = self.attr(name, default)
        return found if isinstance(found, str) else default

    def known(self, i: int) -> np.ndarray:
        """The elements of an input that says a shape, an axis, a count: it must not depend on what the model is given
        where a compiler asks."""
        return np.array(self[i])

    def ints(self, name: str, i: int, default: Sequence[int] | None = None) -> tuple[int, ...] | None:
        """Integers that are an attribute in some versions of the op, and input `i` in others."""
        found = self.attr(name)
        if found is None and self[i] is not None:
            found = self.known(i).reshape(-1)
        found = default if found is None else found
        return None if found is None else tuple(int(v) for v in found)

    def graph(self, name: str) -> Callable[..., list[Value]]:
        """A subgraph as a function; it sees the values around it."""
        body = self.attr(name)
        return lambda *arguments: body.run(arguments, self.env)


def word(value: Any) -> str:
    """A text of the file; protobuf's are bytes where they are no text."""
    return value if isinstance(value, str) else bytes(value).decode(errors="replace")


class Step:
    """A node as it stands in the model."""

    def __init__(self, model: Model, proto: Any, versions: Mapping[str, int]):
        self.op, self.domain = word(proto.op_type), "" if proto.domain in STANDARD else word(proto.domain)
        self.inputs, self.outputs = [word(name) for name in proto.input], [word(name) for name in proto.output]
        self.name = word(proto.name) or next(filter(None, self.outputs), "")
        self.version = versions.get(self.domain, 0)
        self.overload = word(getattr(proto, "overload", ""))
        #: Attributes of a function's node that are attributes of the function: their names there.
        self.references = {a.name: a.ref_attr_name for a in proto.attribute if a.ref_attr_name}
        self.attributes = {a.name: model.attribute(a, versions) for a in proto.attribute if not a.ref_attr_name}
        self.proto = proto

    def bound(self, attributes: Mapping[str, Any]) -> Step:
        """The node in a function that is called with these attributes."""
        if not self.references and not any(isinstance(a, Graph) for a in self.attributes.values()):
            return self
        found: Step = object.__new__(Step)
        found.__dict__.update(self.__dict__)
        given = {name: attributes[ref] for name, ref in self.references.items() if ref in attributes}
        found.attributes = {**self.attributes, **given}
        for name, value in found.attributes.items():
            if isinstance(value, Graph):
                found.attributes[name] = value.bound(attributes)
        return found


class Graph:
    """A graph of a model, a subgraph, or the body of a function.

    Attributes:
        inputs, outputs: names. constants: arrays by name, as the model holds them.
    """

    def __init__(self, model: Model, proto: Any, versions: Mapping[str, int]):
        self.model = model
        self.steps = [Step(model, node, versions) for node in proto.node]
        self.outputs = [word(getattr(o, "name", o)) for o in proto.output]
        self.constants: dict[str, array] = {}
        #: Whose results may be left out where they are not asked for.
        self.is_function = not hasattr(proto, "initializer")
        if hasattr(proto, "initializer"):
            self.constants = {word(t.name): model.tensor(t, f"initializer {word(t.name)}") for t in proto.initializer}
            if proto.sparse_initializer:
                raise IRError(f"{model.name}: sparse initializers have no translation; make them dense")
        names = [word(getattr(i, "name", i)) for i in proto.input]
        self.inputs = [name for name in names if name not in self.constants]

    def bound(self, attributes: Mapping[str, Any]) -> Graph:
        found: Graph = object.__new__(Graph)
        found.__dict__.update(self.__dict__)
        found.steps = [step.bound(attributes) for step in self.steps]
        return found

    def run(self, arguments: Sequence[Value], around: Mapping[str, Value] | None = None) -> list[Value]:
        """The values of its outputs."""
        if len(arguments) > len(self.inputs):
            raise IRError(f"a graph of {len(self.inputs)} inputs is given {len(arguments)}")
        env = {**(around or {}), **self.constants, **dict(zip(self.inputs, arguments))}
        env.update((name, None) for name in self.inputs[len(arguments) :])
        _running.depth += 1
        try:
            if _running.depth > MOST_DEEP:
                raise IRError(f"graphs and functions nest more than {MOST_DEEP} deep")
            for step in self.steps:
                results = self._results(step, env)
                for name, value in zip(step.outputs, results):
                    if name:
                        env[name] = value
        finally:
            _running.depth -= 1
        missing = [name for name in self.outputs if name and name not in env]
        if missing and not self.is_function:
            raise IRError(f"{self.model.name}: output {missing[0]} is computed by no node")
        return [env.get(name) for name in self.outputs]

    def _results(self, step: Step, env: Mapping[str, Value]) -> Sequence[Value]:
        where = f"{self.model.name}: node {step.name} ({step.op})"
        with placed(lambda refused: f"{where}: {step.op + ' ' if refused else ''}"):
            for name in step.inputs:
                if name and name not in env:
                    raise IRError(f"input {name} is computed by no node before it")
            inputs = [env[name] if name else None for name in step.inputs]
            if "broadcast" in step.attributes and step.version < 7:
                raise Refused("broadcasts by old rules: onnx.version_converter.convert_version(model, 21) changes them")
            node = Node(step, inputs, env)
            found = RULES.get((step.domain, step.op)) or self.model.function(step)
            if found is None:
                raise Refused(_unknown(step))
            results = found(node)
            return results if isinstance(results, tuple) else (results,)


def _unknown(step: Step) -> str:
    if step.domain and not any(domain == step.domain for domain, _ in RULES):
        return (
            f"is an op of the domain {step.domain}, which is none of the standard's; export the model without it, or "
            f"enter a rule: smelt.exchange.onnx.graph.RULES[{step.domain!r}, {step.op!r}]"
        )
    known = ", ".join(sorted(name for domain, name in RULES if domain == step.domain))
    return (
        f"has no translation; there are {known}. Export it otherwise, or enter a rule: smelt.exchange.onnx.graph.RULES"
    )


class Model:
    """What the graphs of a model share: its name, functions, and how tensors are read."""

    def __init__(self, onnx: Any, proto: Any, name: str):
        self.onnx, self.name = onnx, name
        self.versions = self._versions(proto.opset_import)
        self._functions: dict[tuple[str, str, str], Any] = {
            ("" if f.domain in STANDARD else word(f.domain), word(f.name), word(getattr(f, "overload", ""))): f
            for f in proto.functions
        }
        self._bodies: dict[Any, Graph] = {}
        self.graph = Graph(self, proto.graph, self.versions)

    @staticmethod
    def _versions(imports: Any) -> dict[str, int]:
        return {"" if i.domain in STANDARD else i.domain: i.version for i in imports}

    def tensor(self, proto: Any, what: str) -> array:
        """A tensor of the file as an array."""
        kind = type_name(self.onnx, proto.data_type)
        if kind not in DTYPES:
            raise IRError(f"{self.name}: {what} is of type {kind}, for which smelt has no dtype")
        try:
            values = self.onnx.numpy_helper.to_array(proto)
        except Exception as error:  # whatever the package makes of wrong sizes and files
            raise IRError(f"{self.name}: {what} cannot be read: {shown(error)}") from None
        return smelt.array(values, DTYPES[kind])

    def attribute(self, proto: Any, versions: Mapping[str, int]) -> Any:
        """The value of an attribute: numbers, texts, arrays, graphs, or lists of these."""
        kinds = self.onnx.AttributeProto
        if proto.type == kinds.GRAPH:
            return Graph(self, proto.g, versions)
        if proto.type == kinds.TENSOR:
            kind = type_name(self.onnx, proto.t.data_type)
            return self.tensor(proto.t, f"attribute {proto.name}") if kind in DTYPES else proto.t
        try:
            found = self.onnx.helper.get_attribute_value(proto)
        except ValueError as error:
            raise IRError(f"{self.name}: attribute {proto.name} cannot be read: {shown(error)}") from None
        if isinstance(found, bytes):
            return found.decode(errors="replace")
        if isinstance(found, (int, float)):
            return found
        listed = list(found) if isinstance(found, Sequence) or hasattr(found, "__len__") else found
        if isinstance(listed, list) and listed and isinstance(listed[0], bytes):
            return [text.decode(errors="replace") for text in listed]
        return listed

    def function(self, step: Step) -> Rule | None:
        """A function of the model, or of the standard, for an op that has no rule."""
        key = (step.domain, step.op, step.overload)
        proto = self._functions.get(key)
        if proto is not None:
            body = self._bodies.get(key)
            if body is None:
                body = Graph(self, proto, {**self.versions, **self._versions(proto.opset_import)})
                self._bodies[key] = body
            defaults = {a.name: self.attribute(a, self.versions) for a in proto.attribute_proto}
            return lambda node: tuple(body.bound({**defaults, **step.attributes}).run(node.inputs))
        return lambda node: self._standard(node)

    def _standard(self, node: Node) -> tuple[Value, ...]:
        """An op that the standard defines by others."""
        step, defs = node.step, self.onnx.defs
        try:
            schema = defs.get_schema(step.op, step.version or defs.onnx_opset_version(), step.domain)
        except Exception:  # the package's error, which is no class of its interface
            raise Refused(_unknown(step)) from None
        text: bytes = b""
        if schema.has_function:
            versions = [v for v in schema.function_opset_versions if v <= step.version] or [0]
            text = schema.get_function_with_opset_version(max(versions))
        elif schema.has_context_dependent_function:
            versions = [v for v in schema.context_dependent_function_opset_versions if v <= step.version] or [0]
            types = [self._type(x).SerializeToString() for x in node.inputs]
            text = schema.get_context_dependent_function_with_opset_version(
                max(versions), step.proto.SerializeToString(), types
            )
        if not text:
            raise Refused(_unknown(step))
        proto = self.onnx.FunctionProto()
        proto.ParseFromString(text)
        body = Graph(self, proto, {**self.versions, **self._versions(proto.opset_import)})
        given = {name: a.default_value for name, a in schema.attributes.items()}
        defaults = {name: self.attribute(a, self.versions) for name, a in given.items() if a.type}
        return tuple(body.bound({**defaults, **step.attributes}).run(node.inputs))

    def _type(self, x: Value) -> Any:
        """The type of a value as the package says it."""
        if not isinstance(x, array):
            return self.onnx.TypeProto()
        names = {dtype: name for name, dtype in DTYPES.items()}
        kind = self.onnx.TensorProto.DataType.Value(names[x.dtype])
        return self.onnx.helper.make_tensor_type_proto(kind, x.shape)


def type_name(onnx: Any, code: int) -> str:
    """ONNX's name of a type of elements."""
    kinds = onnx.TensorProto.DataType
    return str(kinds.Name(code)) if code in kinds.values() else f"number {code}"


#: Types of elements by ONNX's names.
DTYPES = {
    "FLOAT": dtypes.float32, "DOUBLE": dtypes.float64, "FLOAT16": dtypes.float16, "BFLOAT16": dtypes.bfloat16,
    "INT8": dtypes.int8, "INT16": dtypes.int16, "INT32": dtypes.int32, "INT64": dtypes.int64,
    "UINT8": dtypes.uint8, "UINT16": dtypes.uint16, "UINT32": dtypes.uint32, "UINT64": dtypes.uint64,
    "BOOL": dtypes.bool_, "COMPLEX64": dtypes.complex64, "COMPLEX128": dtypes.complex128,
}  # fmt: skip
