"""The table of rules, and what a rule gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir import text as texts
from smelt.ir.aval import Aval
from smelt.ir.builder import new_function, read_function
from smelt.ir.dialect import context
from smelt.ir.errors import IRError, SmeltError
from smelt.ir.values import OpView

from ..writer import Tensor, UntranslatedError, Writer

#: From an op to its results: ``rule(call)``.
Rule = Callable[["Call"], "Tensor | Sequence[Tensor]"]
RULES: dict[str, Rule] = {}
#: Those that linalg needs in their place.
LOOPS: dict[str, Rule] = {}


class Call:
    """An op of the dialect whose operands are written: `writer`, `operands`, `attrs`, the types of its results."""

    def __init__(
        self, writer: Writer, name: str, operands: Sequence[Tensor], attrs: dict[str, Any], avals: Sequence[Aval]
    ):
        self.writer, self.name, self.operands, self.attrs = writer, name, list(operands), attrs
        self.avals = list(avals)

    @property
    def x(self) -> Tensor:
        """The first operand."""
        return self.operands[0]

    @property
    def aval(self) -> Aval:
        return self.avals[0]


def rule(*names: str, table: dict[str, Rule] = RULES) -> Callable[[Rule], Rule]:
    """Enter a rule for ops of these names, without the dialect's."""

    def enter(function: Rule) -> Rule:
        table.update((name, function) for name in names)
        return function

    return enter


def written(writer: Writer, view: OpView, env: Mapping[Any, Tensor]) -> Sequence[Tensor]:
    """The results of an op whose operands are written in `env`.

    Raises:
        IRError: it has no translation.
    """
    try:
        found = writer.own_rules.get(view.op.name) or RULES.get(view.op.name)
        if found is None:
            raise UntranslatedError(_untranslated(view))
        operands = [env[v] for v in view.operands]
        results = found(Call(writer, view.op.name, operands, view.attrs, [v.aval for v in view.results]))
    except UntranslatedError as error:
        raise IRError(_placed(view, str(error))) from None
    except SmeltError as error:
        raise IRError(_placed(view, str(error))) from error
    made = [results] if isinstance(results, Tensor) else list(results)
    for tensor, value in zip(made, view.results):
        if tensor.aval != value.aval:
            raise IRError(_placed(view, f"was written as {tensor.aval}, it is {value.aval}"))
    return made


def composed(writer: Writer, body: Callable[..., Any], operands: Sequence[Tensor]) -> list[Tensor]:
    """What ``body(b, *values)`` makes of tensors by ops of the dialect."""
    module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
    operation, values, b = new_function(module, "body", [x.aval for x in operands], [])
    found = body(b, *values)
    b.return_(list(found) if isinstance(found, (tuple, list)) else [found])
    read = read_function(operation)
    env: dict[Any, Tensor] = dict(zip(read.arguments, operands))
    for view in read.ops:
        env.update(zip(view.results, written(writer, view, env)))
    return [env[v] for v in read.returns]


def _untranslated(view: OpView) -> str:
    if view.op.kind == "opaque":
        target = view.attrs.get("target")
        return f"@{target} is code of this program, which StableHLO cannot hold; leave it out, or write it with ops"
    return "has no translation; enter a rule for it in smelt.backends.exchange.rules.table.RULES"


def _placed(view: OpView, why: str) -> str:
    line = texts.line_of(view.location)
    return f"smelt.{view.op.name} {why}" + (f"; at {line}" if line else "")
