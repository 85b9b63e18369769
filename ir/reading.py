"""Decoded functions of modules: read from the IR, or kept as they were built.

Reading takes a microsecond or two for each op. While a compile is `scopes.keeping` functions, a function is read again
only after something has changed it without declaring (`renew`) that its decoded form is up to date.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from . import attributes, mlir
from . import op as _op
from .control import HELPERS, LOOPS
from .control_reading import decode_control
from .dialect import parse_aval
from .errors import IRError, at_user_line
from .op import Op
from .scopes import Scope, is_keeping, scope_of
from .values import APPLY, CALLEE, FUNCTION_OPS, OpView, Value


def aval_or_none(type_: Any) -> Any:
    return None if isinstance(type_, mlir.ir.FunctionType) else parse_aval(type_)


def mixed_maker(operation: Any) -> Any:
    """The mixed op whose function value an operation applies; None where it applies none."""
    if operation.name != APPLY.name:
        return None
    made = getattr(operation.operands[0].owner, "operation", None)
    name = "" if made is None else made.name
    return made if name.startswith("smelt.") and _op.get(name).mixed else None


def is_mixed(operation: Any) -> bool:
    """Whether an operation is part of an op of mixed types: its function value, or the application of that."""
    return mixed_maker(operation) is not None or (
        operation.name.startswith("smelt.") and _op.get(operation.name).mixed
    )


class Body(Protocol):
    """What transformations read of a function: arguments, ops in order, returned values."""

    @property
    def arguments(self) -> Sequence[Value]: ...
    @property
    def ops(self) -> Sequence[OpView]: ...
    @property
    def returns(self) -> Sequence[Value]: ...


class Function:
    """A ``func.func`` of smelt ops, decoded: arguments, ops in order, returned values."""

    has_body = True  #: False for a declaration, which only a module that is no MLIR gives as a function

    __slots__ = ("__weakref__", "_mlir", "addresses", "arguments", "derived", "name", "ops", "returns", "scope")

    def __init__(self, name: str, operation: Any):
        self.name, self._mlir, self.scope = name, operation, scope_of(operation)
        self.arguments: list[Value] = []
        self.ops: list[OpView] = []
        self.returns: list[Value] = []
        self.addresses: dict[int, OpView] | None = None  #: `ops` by where they lie in memory; see `Value.users`
        #: What has been worked out of it as it is: by backends, who change nothing any more, or until it is changed.
        self.derived: dict[Any, Any] = {}
        self.scope.function = weakref.ref(self)

    @property
    def mlir(self) -> Any:
        """The ``func.func``. Raises IRError where it has been erased or rebuilt."""
        if not self.scope.alive:
            raise IRError(at_user_line(f"@{self.name} has been erased or rebuilt since it was read; read it again"))
        return self._mlir


class NewFunction:
    """A function that a builder makes from its first op to its last, so that it need not be read.

    Attributes:
        ops: those that there are so far.
    """

    __slots__ = ("arguments", "name", "operation", "ops")

    def __init__(self, name: str, operation: Any, arguments: list[Value]):
        self.name, self.operation, self.arguments = name, operation, arguments
        self.ops: list[OpView] = []

    def keep(self, scope: Scope, returns: Sequence[Value]) -> None:
        """Keep the function decoded: as `read_function` would read it."""
        scope.changed()
        function = Function(self.name, self.operation)
        function.arguments, function.ops, function.returns = list(self.arguments), self.ops, list(returns)
        renew(function, self.ops)


def renew(function: Function, made: Iterable[OpView]) -> None:
    """Keep a function decoded after changes, which its `ops` and `returns`, and the operands of its ops, follow.

    Args:
        made: ops that a builder has made. With such that are several operations, it is read again.
    """
    if not is_keeping():
        return
    for view in made:
        if view.op.kind == "control" or view.op.mixed:
            return function.scope.changed()
        if view.attrs and view.op.kind not in ("call", "function"):
            view.attrs = attributes.decode_all(view.op, view._mlir)  # rules give lists for tuples, say
    for value in itertools.chain(function.arguments, *[view.results for view in function.ops]):
        value.builder = None
    function.addresses = None
    function.derived.clear()
    function.scope.function = weakref.ref(function)
    function.scope.keep(function)


def kept_function(operation: Any) -> Function | None:
    """A ``func.func`` that is kept decoded."""
    found: Function | None = scope_of(operation.operation).kept if is_keeping() else None
    return found


def read_function(operation: Any) -> Function:
    """Decode a ``func.func``; a function that is kept decoded (see `scopes.keeping`) is given again."""
    if isinstance(operation, Function):  # of a module that is no MLIR
        return operation
    operation = operation.operation
    if is_keeping():
        scope = scope_of(operation)
        function = scope.kept or _decoded_function(operation)
        if scope.kept is None:
            scope.keep(function)
        function.name = mlir.ir.StringAttr(operation.attributes["sym_name"]).value
        return function
    return _decoded_function(operation)


def _decoded_function(operation: Any) -> Function:
    function = Function(mlir.ir.StringAttr(operation.attributes["sym_name"]).value, operation)
    if not operation.regions[0].blocks:
        raise IRError(f"@{function.name} has no body")
    block, scope = operation.regions[0].blocks[0], function.scope
    values: dict[Any, Value] = {}
    for i, argument in enumerate(block.arguments):
        value = Value(argument, parse_aval(argument.type), None, None, i, scope)
        values[argument] = value
        function.arguments.append(value)
    for item in block.operations:
        op_ = item.operation
        name = op_.name
        if name in HELPERS:
            continue
        try:
            if name == "func.return":
                function.returns = [values[v] for v in op_.operands]
                break
            found = _decoded(op_, name, values)
        except KeyError:
            why = f"{name}: an operand is no result of a smelt op"
            raise IRError(f"{why}; in @{function.name} at {op_.location}") from None
        if found is None:
            raise IRError(f"{name} is not an op of the smelt dialect; in @{function.name} at {op_.location}")
        op, operands, attrs = found
        if op.mixed and name != APPLY.name:  # its function value: what applies it is the op
            continue
        view = OpView(op, operands, attrs, op_, scope)
        results = []
        for i, r in enumerate(op_.results):
            value = values[r] = Value(r, aval_or_none(r.type), None, view, i, scope)
            results.append(value)
        view.results = tuple(results)
        function.ops.append(view)
    return function


def _decoded(
    operation: Any, name: str, values: dict[Any, Value]
) -> tuple[Op, tuple[Value, ...], dict[str, Any]] | None:
    """An operation as an op with its operands and attributes; None where it is of another dialect.

    Raises KeyError for an operand that is not among `values`.
    """
    if name.startswith("smelt."):
        op = _op.get(name)
        attrs = {} if op.mixed else attributes.decode_all(op, operation)
        return op, tuple([values[v] for v in operation.operands]), attrs
    if name in LOOPS:
        return decode_control(operation, values)
    if name not in FUNCTION_OPS:
        return None
    if (maker := mixed_maker(operation)) is not None:
        op = _op.get(maker.name)
        return op, tuple([values[v] for v in list(operation.operands)[1:]]), attributes.decode_all(op, maker)
    attrs = {}
    if name in CALLEE:
        attrs["callee"] = mlir.ir.FlatSymbolRefAttr(operation.attributes[CALLEE[name]]).value
    return FUNCTION_OPS[name], tuple([values[v] for v in operation.operands]), attrs


Scope.reader = staticmethod(read_function)
