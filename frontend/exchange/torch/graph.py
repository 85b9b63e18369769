"""Graphs of torch.export run node by node on arrays: ops by a table of rules, subgraphs by recursion."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import smelt
from smelt import array
from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import IRError, ShapeError

from ..translating import OpenAval, Refused, placed

#: A value of a graph: an array, a number, a list of values, or nothing.
Value = Any
#: What an op means: from the node and the arguments of its schema, in order, to its result or a list of its results.
Rule = Callable[..., Value]
#: By overload (``aten.div.Tensor_mode``), or for all overloads of an op (``aten.div``).
RULES: dict[str, Rule] = {}

#: Types of elements by PyTorch's names.
DTYPES = {
    "bool": dtypes.bool_, "uint8": dtypes.uint8, "uint16": dtypes.uint16, "uint32": dtypes.uint32,
    "uint64": dtypes.uint64, "int8": dtypes.int8, "int16": dtypes.int16, "int32": dtypes.int32,
    "int64": dtypes.int64, "float16": dtypes.float16, "bfloat16": dtypes.bfloat16, "float32": dtypes.float32,
    "float64": dtypes.float64, "complex64": dtypes.complex64, "complex128": dtypes.complex128,
}  # fmt: skip
#: Modules of the functions with which the sizes of a program of open shapes are computed.
_NUMBERS = ("_operator", "math", "builtins")


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a rule for ops of these names."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def rule_of(name: str) -> Rule | None:
    """The rule of an overload."""
    return RULES.get(name) or RULES.get(name.rpartition(".")[0])


def stated(fake: Any) -> OpenAval:
    """The type that PyTorch states of a result."""
    return OpenAval(tuple(d if isinstance(d, int) else None for d in fake.shape), dtype_of(fake.dtype))


def dtype_of(kind: Any) -> DType:
    """The dtype of one of PyTorch's."""
    name = str(kind).removeprefix("torch.")
    if name not in DTYPES:
        raise Refused(f"has elements of type {name}, for which smelt has no dtype")
    return DTYPES[name]


class Node:
    """A node of a graph: what a rule gets beside the arguments.

    Attributes:
        op: such as ``aten.add.Tensor``.
    """

    def __init__(self, program: Program, node: Any, target: Any):
        self.program, self.node, self.op = program, node, str(target)

    @property
    def fakes(self) -> list[Any]:
        """What PyTorch knows of the results; None of one that is no tensor."""
        found = self.node.meta.get("val")
        listed = found if isinstance(found, (tuple, list)) else [found]
        return [f if hasattr(f, "dtype") and hasattr(f, "shape") else None for f in listed]

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        return dtype_of(self.fakes[0].dtype)

    def given(self, i: int) -> Any:
        """What PyTorch knows of argument `i`, which is a tensor."""
        return self.node.args[i].meta["val"]

    def graph(self, body: Any) -> Callable[..., list[Value]]:
        """A subgraph as a function."""
        return lambda *arguments: self.program.run(body, arguments)


class Program:
    """Runs graphs, and says where something stands in them.

    Args:
        torch: the package. name: of the program, for errors.
    """

    def __init__(self, torch: Any, name: str):
        self.torch, self.name = torch, name

    def run(self, module: Any, arguments: Sequence[Value]) -> list[Value]:
        """The results of a graph for the values of its placeholders."""
        env: dict[Any, Value] = {}
        given = iter(arguments)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = self._attribute(module, node)
            elif node.op == "output":
                found = self._value(node.args[0], env)
                return list(found) if isinstance(found, (tuple, list)) else [found]
            else:
                env[node] = self._result(node, env)
        raise IRError(f"{self.name}: a graph does not end with an output")

    def _attribute(self, module: Any, node: Any) -> Value:
        """A subgraph, or a tensor that the graph holds."""
        found = operator.attrgetter(node.target)(module)
        return constant(found) if isinstance(found, self.torch.Tensor) else found

    def _value(self, argument: Any, env: Mapping[Any, Value]) -> Value:
        """An argument of a node, with nodes replaced by their values."""
        if isinstance(argument, (tuple, list)):
            return [self._value(a, env) for a in argument]
        if isinstance(argument, dict):
            return {key: self._value(a, env) for key, a in argument.items()}
        return env[argument] if isinstance(argument, self.torch.fx.Node) else argument

    def _result(self, node: Any, env: Mapping[Any, Value]) -> Value:
        args = [self._value(a, env) for a in node.args]
        named = {key: self._value(a, env) for key, a in node.kwargs.items()}
        if on_numbers(node.target):
            return node.target(*args, **named)
        with placed(lambda refused: self.place(node) + (" " if refused else ": ")):
            return fitted(Node(self, node, node.target), self.apply(node, node.target, args, named))

    def apply(self, node: Any, target: Any, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
        """The results of an op by its rule."""
        found = rule_of(str(target))
        if found is None:
            raise Refused(
                "has no translation; write the program without it, or enter a rule: "
                f"smelt.exchange.torch.graph.RULES[{str(target)!r}]"
            )
        schema = getattr(target, "_schema", None)
        return found(Node(self, node, target), *(bound(schema, args, named) if schema else [*args, *named.values()]))

    def place(self, node: Any) -> str:
        """A node for errors: the program, the line of the user's that made it, the op."""
        lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
        others = tuple(os.path.dirname(file) for file in (self.torch.__file__, __file__))
        mine = [line for line in lines if not line[0].startswith((*others, "<"))]
        where = f"{self.name} ({mine[-1][0]}:{mine[-1][1]})" if mine else self.name
        return f"{where}: {node.target}"


def on_numbers(target: Any) -> bool:
    """Whether a function of Python is called, on sizes or for an element of a list."""
    if hasattr(target, "_schema"):
        return False
    return getattr(target, "__module__", None) in _NUMBERS or getattr(target, "__name__", "").startswith("sym_")


def bound(schema: Any, args: Sequence[Value], named: Mapping[str, Value]) -> list[Value]:
    """The arguments of an op in the order of its schema, with its defaults."""
    stated = schema.arguments
    rest = [named.get(a.name, a.default_value if a.has_default_value() else None) for a in stated[len(args) :]]
    return [*args, *rest]


def fitted(n: Node, results: Value) -> Value:
    """Results in the dtypes that PyTorch states, which promotes otherwise.

    Raises:
        Refused: a result of another shape: the op means something else here.
    """
    listed = results if isinstance(results, (tuple, list)) else [results]
    found = []
    for y, fake in zip(listed, n.fakes):
        if isinstance(y, array) and fake is not None:
            wanted = stated(fake)
            y = converted(y, wanted.dtype)
            if len(y.shape) != len(wanted.shape) or any(d not in (None, k) for k, d in zip(y.shape, wanted.shape)):
                raise Refused(f"gives {list(y.shape)} here, and {list(fake.shape)} in PyTorch")
        found.append(y)
    return [*found, *listed[len(found) :]] if isinstance(results, (tuple, list)) else found[0] if found else results


def converted(x: array, dtype: DType) -> array:
    """To bool by comparison with 0; floats to integers towards 0; complex numbers to their real parts."""
    if x.dtype is dtype:
        return x
    if dtype is dtypes.bool_:
        return x != 0
    return (smelt.real(x) if x.dtype.is_complex and not dtype.is_complex else x).astype(dtype)


def constant(tensor: Any) -> array:
    """The elements of a tensor, which are copied.

    Raises:
        Refused: elements of a type that smelt has no dtype for, or no dense tensor.
    """
    kind = dtype_of(tensor.dtype)
    if str(tensor.layout) != "torch.strided":
        raise Refused(f"is a tensor of the layout {tensor.layout}; make it dense with .to_dense()")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if not (plain.is_cpu or plain.is_cuda):
        plain = plain.cpu()
    if not plain.numel():
        return smelt.zeros(tuple(plain.shape), kind)
    if kind in (dtypes.float64, dtypes.complex128):  # what comes in by DLPack has 32 bits then, as in MLX
        return smelt.array(plain.cpu().numpy(), kind)
    return smelt.from_dlpack(plain)


def _category(dtype: DType) -> int:
    return 0 if dtype is dtypes.bool_ else 3 if dtype.is_complex else 2 if dtype.is_float else 1


def common(*values: array | bool | int | float | complex) -> list[Any]:
    """Operands in one dtype, as PyTorch finds it: arrays with axes decide; those without, and numbers, only where they
    are of a higher category (bool, integer, float, complex)."""
    best: DType | None = None
    for group in ([v for v in values if isinstance(v, array) and v.ndim],
                  [v for v in values if isinstance(v, array) and not v.ndim],
                  [v for v in values if not isinstance(v, array)]):  # fmt: skip
        if group:
            found = smelt.result_type(*[v.dtype for v in group]) if isinstance(group[0], array) else _usual(group)
            if best is None or _category(found) > _category(best):
                best = found if best is None or isinstance(group[0], array) else _raised(best, found)
    assert best is not None
    return [converted(v, best) if isinstance(v, array) else v for v in values]


def _usual(numbers: Sequence[Any]) -> DType:
    """The dtype of Python's numbers."""
    kinds = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float32, complex: dtypes.complex64}
    found = [kinds[type(v)] for v in numbers]
    return max(found, key=_category)


def _raised(dtype: DType, number: DType) -> DType:
    """A number beside floats of 64 bits makes these complex of 128."""
    return dtypes.complex128 if number.is_complex and dtype is dtypes.float64 else number


def check(holds: bool, message: str) -> None:
    """An assertion of the program about its sizes."""
    if not holds:
        raise ShapeError(message)
