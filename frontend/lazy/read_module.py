"""Functions of a module of the smelt dialect as recorded functions: the reverse of `build`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import functions, read_function
from smelt.ir.control import ControlOp
from smelt.ir.errors import IRError
from smelt.ir.ops.call import Transform
from smelt.ir.values import APPLY as APPLY_VALUE
from smelt.ir.values import CALL, FUNCTION, OpView, Value

from .core import APPLY, NO_ATTRS
from .graph import GraphFunction, Node, RecordedNode, Ref, parameter

#: Functions apply each other no deeper.
MOST_DEEP = 100

#: A function value: what is applied, and the transformations of it.
Transformed = tuple[GraphFunction, tuple[tuple[str, dict[str, Any]], ...]]


class ModuleReader:
    """Reads functions of a module, each once.

    Args:
        check: is called with each op, and raises where it may not be there.
        where: the place in the user's program that its nodes have.
    """

    def __init__(self, module: Any, check: Callable[[OpView], None], where: Any = None):
        self._functions = functions(module)
        self._check, self._where = check, where
        self._made: dict[str, GraphFunction | None] = {}
        self._depth = 0

    def function(self, name: str) -> GraphFunction:
        """The function of that name.

        Raises:
            IRError: there is none, or it applies itself.
        """
        if name not in self._functions:
            raise IRError(f"the module has no function @{name}")
        if name not in self._made:
            if self._depth >= MOST_DEEP:
                raise IRError(f"functions apply each other more than {MOST_DEEP} deep")
            self._made[name] = None
            self._depth += 1
            self._made[name] = self._read(name)
            self._depth -= 1
        found = self._made[name]
        if found is None:
            raise IRError(f"@{name} applies itself")
        return found

    def _read(self, name: str) -> GraphFunction:
        operation = self._functions[name]
        read = read_function(operation)
        env: dict[Value, Ref] = {}
        applied: dict[Value, Transformed] = {}
        parameters: list[Ref] = []
        for value in read.arguments:
            parameters.append(parameter(value.aval))
            env[value] = parameters[-1]
        body: list[RecordedNode] = []
        for view in read.ops:
            self._check(view)
            if view.op is FUNCTION:
                applied[view.results[0]] = self.function(view.attrs["callee"]), ()
            elif isinstance(view.op, Transform):
                f, transforms = applied[view.operands[0]]
                applied[view.results[0]] = f, (*transforms, (view.op.name, view.attrs))
            else:
                node = self._node(view, env, applied)
                body.append(RecordedNode(node, node.op, node.attrs, node.inputs, node.avals, node.where))
                env.update((value, (node, i)) for i, value in enumerate(view.results))
        found = GraphFunction(name, parameters, (), body, self._refs(read.returns, env))
        rules = self._rules(operation)
        if rules:
            found.set_rules(rules)
        return found

    def _node(self, view: OpView, env: dict[Value, Ref], applied: dict[Value, Transformed]) -> Node:
        op: Any = view.op
        attrs, operands = view.attrs, view.operands
        if op is CALL:
            op, attrs = APPLY, {"callee": self.function(attrs["callee"]), "transforms": ()}
        elif op is APPLY_VALUE:
            f, transforms = applied[operands[0]]
            op, attrs, operands = APPLY, {"callee": f, "transforms": transforms}, operands[1:]
        elif isinstance(op, ControlOp):
            attrs = {k: self._callees(v) if k in op.callees else v for k, v in attrs.items()}
        node = Node(op, attrs or NO_ATTRS, tuple(self._refs(operands, env)), tuple([v.aval for v in view.results]))
        node.where = self._where
        return node

    def _callees(self, value: Any) -> Any:
        return tuple(map(self.function, value)) if isinstance(value, tuple) else self.function(value)

    @staticmethod
    def _refs(values: Sequence[Value], env: dict[Value, Ref]) -> list[Ref]:
        try:
            return [env[v] for v in values]
        except KeyError:
            raise IRError("a function is used where an array belongs") from None

    def _rules(self, operation: Any) -> dict[str, Any]:
        """What a function says of how it is transformed; see `GraphFunction.set_rules`."""
        ir = mlir.ir
        kinds: list[tuple[Any, Callable[[Any], Any]]] = [
            (ir.FlatSymbolRefAttr, lambda a: self.function(a.value)), (ir.UnitAttr, lambda a: True),
            (ir.DenseI64ArrayAttr, tuple), (ir.IntegerAttr, lambda a: a.value),
        ]  # fmt: skip
        found: dict[str, Any] = {}
        for named in operation.attributes:
            name = named if isinstance(named, str) else named.name
            if not name.startswith("smelt."):
                continue
            attr = operation.attributes[name]
            for kind, value in kinds:
                try:
                    cast = kind(attr)
                except (ValueError, TypeError):
                    continue
                found[name] = value(cast)
                break
            else:
                raise IRError(f"{name} of a function is {attr}, no function, number or mark")
        return found
