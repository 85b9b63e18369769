"""Recorded functions as lists of ops, without a module: for what runs op by op.

The rules of ops emit with a `Builder`, and where its ops go is the builder's affair. A `Tape` keeps them in a list
(a Wengert list). Branches, loops, and calls of functions with rules of their own, name functions of a `ListedModule`.

Loaded by the first such function; what transforms them (`tape_transforms`), by the first that is transformed.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from smelt.ir.aval import Aval
from smelt.ir.builder import CALL, Body, Builder, OpView, Value
from smelt.ir.errors import InternalError, line_of
from smelt.ir.op import Op
from smelt.ir.scopes import Scope

from ..dependence import cone
from .templates import Group, Rule, Template, run_rule

if TYPE_CHECKING:
    from .listed import ListedModule


class NeedsModule(InternalError):
    """What only the passes can transform, or say what is wrong with."""


class UserPlace(NamedTuple):
    """A location: where the user wrote an op (see `smelt.ir.errors.line_of`)."""

    code: CodeType
    at: int
    start_col: int = 0

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def start_line(self) -> int:
        return line_of(self.code, self.at)


class Place(NamedTuple):
    """What stands in for the operation of an op that is in no module."""

    location: Any


class Recorded(NamedTuple):
    """A function as a list of ops."""

    arguments: Sequence[Value]
    ops: Sequence[OpView]
    returns: Sequence[Value]

    def pruned(self, module: ListedModule) -> Recorded:
        """The function without the ops that nothing it returns is computed from."""
        needed = cone(self.returns)
        kept = [op for op in self.ops if any(r in needed for r in op.results) or module.has_effects(op)]
        return self._replace(ops=kept)


class Tape(Builder):
    """Emits ops into a list.

    Attributes:
        ops: what has been emitted, in order.
        location: the user's line of what comes next.
    """

    def __init__(self) -> None:
        self.ops: list[OpView] = []
        self.location: UserPlace | None = None

    def argument(self, aval: Aval) -> Value:
        """A value from outside."""
        return Value(None, aval, self, None)

    def emit(self, op: Op, operands: Sequence[Value], attrs: dict[str, Any]) -> tuple[Value, ...]:
        return self.emit_typed(op, operands, attrs, op.infer_checked([v.aval for v in operands], attrs))

    def emit_typed(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], avals: Sequence[Aval]
    ) -> tuple[Value, ...]:
        view = OpView(op, tuple(operands), attrs, Place(self.location))
        view.results = tuple([Value(None, aval, self, view, i) for i, aval in enumerate(avals)])
        self.ops.append(view)
        return view.results

    def fresh(self) -> Tape:
        """An empty tape, at the same user's line."""
        tape = Tape()
        tape.location = self.location
        return tape

    def by_rule(self, rule: Rule, groups: Sequence[Group], attrs: dict[str, Any]) -> Sequence[Value | None]:
        return run_rule(self, rule, groups, attrs)

    def emit_template(self, template: Template, values: list[Value]) -> list[Value | None]:
        """What a rule has emitted once, on other values; what the rule returns."""
        place, ops = Place(self.location), self.ops
        for op, attrs, reads, avals in template.ops:
            view = OpView(op, tuple([values[i] for i in reads]), attrs, place)
            view.results = tuple([Value(None, aval, self, view, i) for i, aval in enumerate(avals)])
            values += view.results
            ops.append(view)
        return [None if i is None else values[i] for i in template.outs]

    def clone(self, op: OpView, operands: Sequence[Value]) -> tuple[Value, ...]:
        with self.at(op.location):
            return self.emit_typed(op.op, operands, op.attrs, [r.aval for r in op.results])

    def inline(self, body: Body, operands: Sequence[Value]) -> list[Value]:
        """Emit a function's ops on these operands; what it returns."""
        env = dict(zip(body.arguments, operands))
        for op in body.ops:
            env.update(zip(op.results, self.clone(op, [env[v] for v in op.operands])))
        return [env[v] for v in body.returns]

    def call(self, callee: str, operands: Sequence[Value], results: Sequence[Aval]) -> tuple[Value, ...]:
        return self.emit_typed(CALL, operands, {"callee": callee}, results)

    def control(
        self, op: Op, operands: Sequence[Value], attrs: dict[str, Any], results: Sequence[Aval]
    ) -> tuple[Value, ...]:
        return self.emit_typed(op, operands, attrs, results)

    @property
    def scope(self) -> Scope:
        raise NeedsModule("a tape is no function of a module")
