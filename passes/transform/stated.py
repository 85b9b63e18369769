"""Transformations of functions that other packages state: `Transform.expand` says what they compute.

Before::

    %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
    %g = "smelt.acme_iterate"(%f) {times = 3 : i64} : (...) -> (...)
    %0 = func.call_indirect %g(%x) : (tensor<4xf32>) -> tensor<4xf32>

After::

    %g = func.constant @f_acme_iterate : (tensor<4xf32>) -> tensor<4xf32>
    %0 = func.call_indirect %g(%x) : (tensor<4xf32>) -> tensor<4xf32>

    func.func private @f_acme_iterate(%x: tensor<4xf32>) -> tensor<4xf32>  // a loop that runs @f
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Body, Builder, Function, Value, fresh_name, new_function
from smelt.ir.errors import IRError
from smelt.ir.op import registry as ops
from smelt.ir.ops.call import Transform

from .expand import expand_transforms
from .tape import Tape


class FunctionCallee:
    """A function of a module, or one that is only recorded; see `smelt.ir.ops.call.Callee`."""

    def __init__(self, module: Any, name: str, body: Body):
        self.module, self.name, self.body = module, name, body
        self.arguments: list[Aval] = [a.aval for a in body.arguments]
        self.results: list[Aval] = [r.aval for r in body.returns]

    def __call__(self, b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return b.inline(self.body, operands) if isinstance(b, Tape) else b.call(self.name, operands, self.results)

    def reordered(self, order: Sequence[int]) -> FunctionCallee:
        avals = [self.arguments[i] for i in sorted(range(len(order)), key=order.__getitem__)]
        name = fresh_name(self.module, f"{self.name}_reordered")
        operation, arguments, b = new_function(self.module, name, avals, self.results)
        results = self(b, [arguments[i] for i in order])
        b.return_(results)
        return FunctionCallee(self.module, name, _Body(arguments, results, getattr(operation, "ops", ())))


class _Body:
    """What is known of a function that was just made."""

    def __init__(self, arguments: Sequence[Value], returns: Sequence[Value], made: Sequence[Any]):
        self.arguments, self.returns, self.ops = arguments, returns, made


def stated_transforms() -> list[Transform]:
    """The transformations that say what they are."""
    return [op for op in ops.values() if isinstance(op, Transform) and op.is_stated]


def emit_stated(op: Transform, b: Builder, f: FunctionCallee, operands: Sequence[Value], results: Sequence[Aval],
                attrs: dict[str, Any]) -> list[Value]:  # fmt: skip
    """What a transformation computes.

    Raises:
        IRError: results of other types than it states.
    """
    found = list(op.expand(b, f, operands, **attrs))
    if [v.aval for v in found] != list(results):
        want, have = (", ".join(map(str, side)) for side in (results, [v.aval for v in found]))
        raise IRError(f"smelt.{op.name}: expand returns ({have}), signature says ({want})")
    return found


def expand_stated(module: Any) -> int:
    """Replace the transformations that are stated by functions; how many."""
    return sum(expand_transforms(module, op.name, functools.partial(_expanded, op)) for op in stated_transforms())


def _expanded(op: Transform, module: Any, function: Function, attrs: dict[str, Any]) -> str:
    f = FunctionCallee(module, function.name, function)
    taken, returned = op.signature(f.arguments, f.results, **attrs)
    name = fresh_name(module, f"{function.name}_{op.name}")
    _, arguments, b = new_function(module, name, taken, returned, function.mlir.location)
    b.return_(emit_stated(op, b, f, arguments, returned, attrs))
    return name
