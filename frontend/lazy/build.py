"""From recorded nodes to a module of the smelt dialect."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value, functions, new_function
from smelt.ir.dialect import context
from smelt.ir.errors import OutOfMemoryError, line_of
from smelt.ir.interpreter import shown_line
from smelt.ir.op import registry

from .execution.rolled import rolled
from .graph import ALIAS, APPLY, GraphFunction, Node, RecordedNode, Ref, callees

#: 64-bit addresses reach so many elements of 8 bytes.
MOST_ELEMENTS = 1 << 60


def build_module(
    inputs: Sequence[Ref], body: Sequence[RecordedNode], outputs: Sequence[Ref], names: Sequence[str | None] = ()
) -> Any:
    """A module whose ``@main`` maps `inputs` to `outputs`; the functions it applies are private."""
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        _ModuleBuilder(module).function("main", inputs, body, outputs, public=True, names=names)
        return module


def build_functions(found: Sequence[tuple[str, GraphFunction]]) -> tuple[Any, dict[Any, str]]:
    """A module with these functions under their names, and those that they apply; and the names of the latter by key.

    Args:
        found: names, of which the first is "main", and functions.
    """
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        builder = _ModuleBuilder(module)
        builder.taken |= {name for name, _ in found}
        for name, f in found:
            builder.function(name, f.parameters, f.body, f.outputs, public=True, names=f.names)
        return module, builder.made


class _ModuleBuilder:
    def __init__(self, module: Any):
        self.module = module
        self.made: dict[Any, str] = {}
        self.taken = {"main"}
        self.files: dict[tuple[CodeType, int], Any] = {}

    def function(
        self,
        name: str,
        parameters: Sequence[Ref],
        body: Sequence[RecordedNode],
        outputs: Sequence[Ref],
        public: bool = False,
        names: Sequence[str | None] = (),
    ) -> None:
        body, outputs = rolled(body, outputs)
        applied = {id(f): f for n in body for f in callees(n)}
        symbols = {key: self.callee(f) for key, f in applied.items()}
        ir = mlir.ir
        unknown = ir.Location.unknown(context())
        locations = [
            ir.Location.name(n, context=context()) if n else unknown
            for n in (list(names) + [None] * len(parameters))[: len(parameters)]
        ]
        _, arguments, b = new_function(
            self.module,
            name,
            [n.avals[i] for n, i in parameters],
            [n.avals[i] for n, i in outputs],
            unknown,
            public=public,
            argument_locations=locations,
        )
        env: dict[Ref, Value] = {}
        for ref, value in zip(parameters, arguments):
            env.setdefault(ref, value)
        for step in body:
            b.location = self.location(step)
            check_sizes(step)
            operands = [env[r] for r in step.inputs]
            if step.op is APPLY:
                f: GraphFunction = step.attrs["callee"]
                results: Sequence[Value] = apply(
                    b, symbols[id(f)], f.arguments, f.results, step.attrs["transforms"], operands
                )
            elif step.op.kind == "control":
                attrs = {k: _with_symbols(v, symbols) for k, v in step.attrs.items()}
                results = b.control(step.op, operands, attrs, step.avals)
            elif step.op is ALIAS:
                results = operands
            else:
                results = b.emit_typed(step.op, operands, step.attrs, step.avals)
            for i, value in enumerate(results):
                env[(step.node, i)] = value
        b.location = unknown
        b.return_([env[r] for r in outputs])

    def callee(self, f: GraphFunction) -> str:
        """The symbol of a recorded function, built on first use; equal functions share one."""
        if f.key not in self.made:
            stem = "".join(c if c.isalnum() or c == "_" else "_" for c in f.name) or "f"
            name, i = stem, 0
            while name in self.taken:
                i += 1
                name = f"{stem}_{i}"
            self.taken.add(name)
            self.function(name, f.parameters, f.body, f.outputs, names=f.names)
            self.made[f.key] = name
            if f.rules:
                self.rules(name, f.rules)
        return self.made[f.key]

    def rules(self, name: str, rules: dict[str, Any]) -> None:
        """Write the rules of a function as attributes; functions among them are built."""
        ir, ctx = mlir.ir, context()
        for key, value in rules.items():
            if isinstance(value, GraphFunction):
                attr = ir.FlatSymbolRefAttr.get(self.callee(value), ctx)
            elif value is True:
                attr = ir.UnitAttr.get(ctx)
            elif isinstance(value, tuple):
                attr = ir.DenseI64ArrayAttr.get(list(value), ctx)
            else:
                attr = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, ctx), value)
            functions(self.module)[name].attributes[key] = attr

    def location(self, step: RecordedNode) -> Any:
        """The user's line as an MLIR location."""
        if step.where is None:
            return mlir.ir.Location.unknown(context())
        found = self.files.get(step.where)
        if found is None:
            code, at = step.where
            found = mlir.file_location(code.co_filename, line_of(code, at), 0, context())
            self.files[step.where] = found
        return found


def _with_symbols(value: Any, symbols: dict[int, str]) -> Any:
    """An attribute with names in place of functions."""
    if isinstance(value, tuple):
        return tuple(_with_symbols(v, symbols) for v in value)
    return symbols[id(value)] if isinstance(value, GraphFunction) else value


def check_sizes(step: RecordedNode | Node) -> None:
    """Raise OutOfMemoryError where a result has more elements than can be addressed."""
    for aval in step.avals:
        if aval.size >= MOST_ELEMENTS:
            message = f"smelt.{step.op.name}: an array {aval} has more elements than can be addressed"
            raise OutOfMemoryError(message + shown_line(step.where))


def apply(
    b: Builder,
    symbol: str,
    arguments: Sequence[Aval],
    results: Sequence[Aval],
    transforms: Sequence[tuple[str, dict[str, Any]]],
    operands: Sequence[Value],
) -> Sequence[Value]:
    """Apply a function, or what transformations make of it."""
    if not transforms:
        return b.call(symbol, operands, results)
    function = b.function(symbol, arguments, results)
    for name, attrs in transforms:
        function = b.transform(registry[name], function, attrs)
    return b.apply(function, operands)
