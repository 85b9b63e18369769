"""What passes and rules see of a function: `Value` with arithmetic, `OpView`, and the errors about wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import mlir
from . import op as _op
from .aval import Aval
from .dtypes import DType
from .errors import ArgumentTypeError, IRError, SmeltError, at_user_line, shown
from .op import K, Op, of_kind
from .scopes import Scope, users_of

if TYPE_CHECKING:
    from .builder import Builder


class FunctionOp(Op):
    """One of the upstream ``func`` ops that stand in smelt functions; it has no rules here."""

    num_results = -1

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind  # type: ignore[misc]


CALL = FunctionOp("func.call", "call")  #: attrs: callee
FUNCTION = FunctionOp("func.constant", "function")  #: attrs: callee
APPLY = FunctionOp("func.call_indirect", "apply")  #: the function is operand 0

FUNCTION_OPS = {op.name: op for op in (CALL, FUNCTION, APPLY)}
#: Kinds of the ops that refer to functions.
STRUCTURAL = ("call", "function", "apply", "transform")
CALLEE = {"func.call": "callee", "func.constant": "value"}


class OpView:
    """An op of the smelt dialect, decoded: definition, operands, attributes, results."""

    __slots__ = ("_mlir", "attrs", "op", "operands", "results", "scope")

    def __init__(
        self, op: Op, operands: tuple[Value, ...], attrs: dict[str, Any], operation: Any, scope: Scope | None = None
    ):
        self.op, self.operands, self.attrs, self._mlir, self.scope = op, operands, attrs, operation, scope
        self.results: tuple[Value, ...] = ()

    @property
    def mlir(self) -> Any:
        """The operation of the bindings. Raises IRError where it has been erased."""
        if self.scope is None or self.standing:
            return self._mlir
        raise IRError(f"{full_name(self.op)} is read after it was erased, or its function was rebuilt; read it again")

    @property
    def standing(self) -> bool:
        """Whether the op has not been erased."""
        try:
            return self.scope is not None and self.scope.alive and self._mlir.attached
        except RuntimeError:
            return False

    def erase(self) -> None:
        """Erase the op. Raises IRError while something reads its results."""
        self.mlir.erase()

    def rules(self, kind: type[K]) -> K:
        """The op with the rules of a kind: ``op.rules(Reduction).identity(dtype)``. IRError: it is of another."""
        return of_kind(self.op, kind)

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def location(self) -> Any:
        return self.mlir.location

    def __repr__(self) -> str:
        return f"<smelt.{self.op.name} {self.attrs}>"


class Value:
    """An SSA value with its aval, the op that made it, and arithmetic that emits ops."""

    __slots__ = ("_mlir", "aval", "builder", "index", "owner", "scope")

    aval: Aval  #: of a function value, None

    def __init__(
        self, value: Any, aval: Any, builder: Builder | None, owner: OpView | None, index: int = 0,
        scope: Scope | None = None,
    ):  # fmt: skip
        self._mlir, self.aval, self.builder, self.owner, self.index = value, aval, builder, owner, index
        self.scope = scope

    @property
    def mlir(self) -> Any:
        """The value of the bindings. Raises IRError where its op or function has been erased."""
        if self.scope is None or self.standing:
            return self._mlir
        raise IRError(f"{self!r} is read after its op was erased, or its function was rebuilt; read it again")

    @property
    def standing(self) -> bool:
        """Whether the value still is one of its function."""
        owner = self.owner
        return owner.standing if owner is not None else self.scope is not None and self.scope.alive

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    def defined_by(self, name: str) -> OpView | None:
        """The op that made this value if it is called `name`, else None."""
        owner = self.owner
        return owner if owner is not None and owner.op.name == name else None

    @property
    def users(self) -> tuple[OpView, ...]:
        """The ops that read this value, in order, each once. A return is not among them.

        Raises:
            IRError: its op or function has been erased.
        """
        if self.scope is None:
            return ()
        return tuple(users_of(self.mlir, self.scope))

    def _binary(self, name: str, other: Value | float | complex, swap: bool = False) -> Value:
        b = self._building()
        if not isinstance(other, Value):
            other = b.full(self.aval.shape, other, self.aval.dtype)
        pair = (other, self) if swap else (self, other)
        return b.emit(_op.registry[name], pair, {})[0]

    def __add__(self, other: Value | float | complex) -> Value:
        return self._binary("add", other)

    def __radd__(self, other: Value | float | complex) -> Value:
        return self._binary("add", other, True)

    def __sub__(self, other: Value | float | complex) -> Value:
        return self._binary("sub", other)

    def __rsub__(self, other: Value | float | complex) -> Value:
        return self._binary("sub", other, True)

    def __mul__(self, other: Value | float | complex) -> Value:
        return self._binary("mul", other)

    def __rmul__(self, other: Value | float | complex) -> Value:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Value | float | complex) -> Value:
        return self._binary("div", other)

    def __rtruediv__(self, other: Value | float | complex) -> Value:
        return self._binary("div", other, True)

    def __neg__(self) -> Value:
        return self._building().neg(self)

    def _building(self) -> Builder:
        """The builder that makes this value's function."""
        if self.builder is None:
            raise IRError(
                at_user_line(f"{self!r} is a value of a function that was read; compute with the operands handed in")
            )
        return self.builder

    def __repr__(self) -> str:
        return f"<value {self.aval}>"


def full_name(op: Op) -> str:
    return op.name if "." in op.name or op.kind == "control" else f"smelt.{op.name}"


def inferred(op: Op, operands: Sequence[Value], attrs: dict[str, Any]) -> tuple[Aval, ...]:
    """Result types of an op that a pass or a rule asks for."""
    op.check_given(operands, attrs)
    avals: list[Any] = [getattr(v, "aval", None) for v in operands]
    if None in avals:
        i = avals.index(None)
        message = f"operand {i} of smelt.{op.name} is no tensor, it is {shown(operands[i])}"
        raise ArgumentTypeError(at_user_line(message))
    return op.infer_checked(avals, attrs)


def misread(name: str, operands: Sequence[Any], scope: Scope) -> SmeltError:
    """The error about operands that an op of the function being built may not read."""
    if not scope.alive:
        return IRError(at_user_line(f"{name}: the function of this builder has been erased or rebuilt"))
    try:
        listed = list(operands)
    except TypeError:
        return ArgumentTypeError(at_user_line(f"{name} takes a sequence of values, got {shown(operands)}"))
    for i, value in enumerate(listed):
        what = f"operand {i} of {name}"
        if not isinstance(value, Value):
            message = f"{what} must be a value of the function being built, is {shown(value)}"
            return ArgumentTypeError(at_user_line(message))
        what += f" ({value.aval})" if value.aval is not None else ""
        if value.scope is None:
            return IRError(at_user_line(f"{what} is known by its type alone and has no value here"))
        if not value.standing:
            return IRError(at_user_line(f"{what} is gone: its op was erased, or its function was rebuilt"))
        if value.scope is not scope:
            return IRError(
                at_user_line(
                    f"{what} is a value of {value.scope} as it was read, not of the function being built; take the new "
                    "operands that a visit is handed, or map old values to new"
                )
            )
    return IRError(at_user_line(f"{name}: its operands cannot be read"))


def check_clone(op: OpView, operands: Sequence[Value]) -> None:
    """Raise IRError unless an op has the same results on other operands."""
    name = full_name(op.op)
    if len(operands) != len(op.operands):
        message = f"{name} was read with {len(op.operands)} operands, it is cloned with {len(operands)}"
        raise IRError(at_user_line(message))
    if op.op.kind in (*STRUCTURAL, "control") or not all(isinstance(v, Value) for v in operands):
        return  # the verifier compares signatures; `read` names what is no value
    made, had = list(inferred(op.op, operands, op.attrs)), [r.aval for r in op.results]
    if made != had:
        given, want, have = (", ".join(map(str, x)) for x in ([v.aval for v in operands], had, made))
        message = f"{name} cannot be cloned on {given}: its results were {want}, they would be {have}; emit it"
        raise IRError(at_user_line(message))


def function_type_of(function: Any) -> Any:
    """The type of a function value."""
    if not isinstance(function, Value) or function.aval is not None:
        message = f"a function value is needed, as `function` makes one; got {shown(function)}"
        raise ArgumentTypeError(at_user_line(message))
    return mlir.ir.FunctionType(function.mlir.type)
