"""Modules without MLIR: functions as lists of ops, for transformations that run without a compile.

The rules of calls, branches and loops make functions, and look up those that an op names. They do so through the
helpers of `smelt.ir.builder` and `smelt.passes.extract`, which take either a module of the bindings or a
`ListedModule`; a `ListedFunction` is its own operation, with plain values as attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Body, Builder, Function, OpView, Value
from smelt.ir.control import callees

from .tape import NeedsModule, Tape


class ListedFunction(Function):
    """A function as a list of ops.

    Attributes:
        rules: by the names of `custom_rules`: names of functions, numbers, or True for a mark; None while they are
            being written.
        has_body: False for a declaration.
    """

    __slots__ = ("has_body", "location", "module", "rules")

    def __init__(self, module: ListedModule, name: str, arguments: Sequence[Value], location: Any = None):
        self.module, self.name, self.location = module, name, location
        self.arguments, self.ops, self.returns = list(arguments), [], []
        self.rules: dict[str, Any] | None = {}
        self.has_body = True

    @property
    def mlir(self) -> Any:
        return self

    @property
    def attributes(self) -> dict[str, Any]:
        """Its rules.

        Raises:
            NeedsModule: one of them transforms this function.
        """
        if self.rules is None:
            raise NeedsModule(f"a rule of @{self.name} transforms it")
        return self.rules

    def erase(self) -> None:
        """Take it out of its module."""
        del self.module.functions[self.name]


class ListedModule:
    """Functions by name.

    Attributes:
        functions: in the order in which they were made.
    """

    def __init__(self) -> None:
        self.functions: dict[str, ListedFunction] = {}

    def new_function(
        self, name: str, arguments: Sequence[Aval], results: Sequence[Aval], location: Any
    ) -> tuple[ListedFunction, list[Value], Builder]:
        """An empty function, its arguments, and what emits its ops."""
        tape = _FunctionTape()
        tape.location = location
        values = [tape.argument(aval) for aval in arguments]
        made = self.functions[name] = tape.made = ListedFunction(self, name, values, location)
        made.ops = tape.ops
        made.returns = [tape.argument(aval) for aval in results]  # until it returns: those of a declaration
        return made, values, tape

    def keep(self, stem: str, body: Body) -> ListedFunction:
        """A function of existing ops, under an unused name."""
        name = stem
        while name in self.functions:
            name += "_"
        made = self.functions[name] = ListedFunction(self, name, body.arguments)
        made.ops, made.returns = list(body.ops), list(body.returns)
        return made

    def has_effects(self, op: OpView) -> bool:
        """Whether an op, or what it runs, is not pure."""
        return not op.op.pure or any(
            self.has_effects(inner) for name in callees(op) if name in self.functions
            for inner in self.functions[name].ops
        )  # fmt: skip

    def reached(self, ops: Sequence[OpView]) -> dict[str, ListedFunction]:
        """The functions that ops run, and those that these run.

        Raises:
            NeedsModule: one is a declaration.
        """
        found: dict[str, ListedFunction] = {}
        pending = [name for op in ops for name in callees(op)]
        while pending:
            name = pending.pop()
            if name in found or name not in self.functions:
                continue
            found[name] = function = self.functions[name]
            if not function.has_body:
                raise NeedsModule(f"@{name} has no body")
            pending += [other for op in function.ops for other in callees(op)]
        return found


class _FunctionTape(Tape):
    """What emits the ops of a listed function."""

    made: ListedFunction

    def return_(self, values: Sequence[Value]) -> None:
        self.made.returns = list(values)
