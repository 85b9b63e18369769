"""Statements and control flow: the body of a kernel or of a function, line by line.

A pure op with a single user in the same block is not written where it stands: its text goes to the user
(`Value.deferred`), as long as lines stay short and no load moves across a write. Results of loops and
conditions are variables, declared before and assigned at the end of each region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..names import Names, identifier
from . import arith as emit_arith
from . import control as emit_control
from . import memory as emit_memory
from . import simd as emit_simd
from .expressions import Expression, variable
from .ir import LOADS, Block, Op, Value
from .types import Array, EmitError, Type, type_name

if TYPE_CHECKING:
    from .module import ModuleEmitter

#: Columns that a line should not exceed, and what a declaration takes of them.
_COLUMNS, _DECLARATION = 100, 18
RULES: dict[str, emit_arith.Rule] = {**emit_arith.RULES, **emit_memory.RULES, **emit_simd.RULES}
STATEMENTS: dict[str, Callable[[Body, Op], None]] = {
    **emit_memory.STATEMENTS,
    **emit_simd.STATEMENTS,
    **emit_control.STATEMENTS,
}
_DEFAULT_NAMES = {
    "memref.load": "value", "vector.load": "values", "arith.addf": "sum", "arith.addi": "sum",
    "arith.subf": "difference", "arith.subi": "difference", "arith.mulf": "product", "arith.muli": "product",
    "arith.divf": "quotient", "arith.divui": "quotient", "arith.divsi": "quotient", "arith.remui": "rest",
    "arith.remsi": "rest", "arith.cmpf": "test", "arith.cmpi": "test", "arith.select": "chosen",
    "vector.broadcast": "values", "vector.from_elements": "values", "vector.insert": "values",
    "complex.create": "number", "arith.bitcast": "bits", "math.absf": "magnitude", "math.absi": "magnitude",
    "math.roundeven": "rounded", "arith.minimumf": "smaller", "arith.maximumf": "larger",
    "arith.minnumf": "smaller", "arith.maxnumf": "larger", "arith.minsi": "smaller", "arith.maxsi": "larger",
    "arith.minui": "smaller", "arith.maxui": "larger", "arith.negf": "negative",
    "complex.neg": "negative", "complex.re": "real", "complex.im": "imag", "arith.andi": "bits",
    "arith.ori": "bits", "arith.xori": "bits", "arith.shli": "shifted", "arith.shrui": "shifted",
    "arith.shrsi": "shifted", "vector.extract": "value", "func.call": "value",
    "gpu.subgroup_mma_constant_matrix": "matrix",
}  # fmt: skip
#: Ops after which a value keeps its name.
_CASTS = frozenset((
    "arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci", "arith.extf",
    "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui",
))  # fmt: skip


class Body:
    """A function's body under construction.

    Attributes:
        names: those taken so far.
        parameters: names of parameters that hold positions, by the op that asks for them.
        wide_positions: whether positions are uint3.
        constants: names of program-scope arrays, by their symbols.
    """

    def __init__(self, program: ModuleEmitter, names: Names, block: Block) -> None:
        self.program, self.names, self.block = program, names, block
        self.constants = program.constants
        self.lines: list[str] = []
        self.parameters: dict[str, str] = {}
        self.wide_positions = False
        self.grid = self.group = (1, 1, 1)
        self._indent = "    "

    # What rules ask for

    @property
    def threads(self) -> int:
        """In a threadgroup."""
        return self.group[0] * self.group[1] * self.group[2]

    def extent(self, position: str, axis: int) -> int:
        """How many values a position takes along an axis."""
        if position == "gpu.thread_id":
            return self.group[axis]
        return self.grid[axis] * (self.group[axis] if position == "gpu.global_id" else 1)

    def use(self, value: Value) -> Expression:
        """The text of a value."""
        if value.expression is None:
            raise EmitError(f"emit: the result of {value.op.name if value.op else 'a block'} is used before it exists")
        return value.expression

    def named(self, value: Value) -> Expression:
        """The text of a value that is used more than once in it: a variable, or as short as one."""
        found = self.use(value)
        return found if found.atom else self._materialize(value)

    def helper(self, name: str, kind: Type) -> str:
        """A helper function; see `Helpers.use`."""
        return self.program.helpers.use(name, kind)

    def complex_function(self, name: str, kinds: Sequence[Type]) -> str:
        """The function for an op on complex numbers; see `Program.complex_function`."""
        return self.program.complex_function(name, kinds)

    def function(self, symbol: str) -> str:
        """What the text calls a function of the module."""
        return self.program.function(symbol)

    # Lines

    @property
    def width(self) -> int:
        """Columns that a statement may take."""
        return max(_COLUMNS - len(self._indent), 56)

    def line(self, text: str) -> None:
        self.lines.append(self._indent + text)

    def shift(self, levels: int) -> None:
        """Indent what follows."""
        self._indent = " " * (len(self._indent) + 4 * levels)

    def statement(self, op: Op, text: Callable[[], str]) -> None:
        """A line made of an op's operands."""
        self.line(self.fitted(op, text))

    def fitted(self, op: Op, text: Callable[[], str]) -> str:
        """``text()``, after giving names to deferred operands until it is short."""
        found = text()
        while len(found) > self.width and self._shorten(op.operands):
            found = text()
        return found

    def built(self, op: Op, build: Callable[[], Expression]) -> Expression:
        """``build()``, likewise."""
        found, width = build(), self.width - _DECLARATION
        while len(found.text) > width and self._shorten(op.operands):
            found = build()
        return found

    def _shorten(self, values: Sequence[Value]) -> bool:
        longest: Value | None = None
        size = 8
        for value in values:
            if value.deferred and value.expression is not None and len(value.expression.text) > size:
                longest, size = value, len(value.expression.text)
        if longest is None:
            return False
        self._materialize(longest)
        return True

    # Values

    def hint(self, value: Value, default: str = "") -> str:
        """The name that a value should have."""
        if value.hint:
            return identifier(value.hint)
        if default:
            return default
        op = value.op
        if op is None:
            return "value"
        source = op.operands[0] if op.operands else None
        if source is not None and source.expression is not None and source.expression.text.isidentifier():
            if op.name in LOADS:
                return f"{source.expression.text}_{_DEFAULT_NAMES[op.name]}"
            if op.name == "vector.extract":
                return source.expression.text.removesuffix("s")
        if source is not None and op.name in _CASTS:
            return self.hint(source)
        if isinstance(value.type, Type) and value.type.kind == "bool":
            return "test"
        if isinstance(value.type, Type) and value.type.kind == "index":
            return "at"
        return _DEFAULT_NAMES.get(op.name) or identifier(op.name.rpartition(".")[2])

    def bind(self, value: Value, name: str, mutable: bool = True) -> None:
        """A value is held by a variable of its own; `mutable`: one that is assigned after its declaration."""
        value.expression = variable(name, mutable)
        value.deferred = False
        value.variable = name

    def declare(self, value: Value, e: Expression, default: str = "") -> None:
        """``float x = ...;``"""
        assert isinstance(value.type, Type)
        if not value.uses:
            self.line(f"{e.text};")
            return
        name = self.names.take(self.hint(value, default))
        self.line(f"{type_name(value.type)} {name} = {e.text};")
        self.bind(value, name, mutable=False)

    def _materialize(self, value: Value) -> Expression:
        e = self.use(value)
        self.declare(value, e)
        return self.use(value)

    def define(self, op: Op, value: Value, e: Expression) -> None:
        """The text of a pure result: for its only user, or in a variable."""
        value.expression = e
        if e.atom or isinstance(value.type, Array):
            return
        if len(value.uses) == 1 and self._may_move(op, value.uses[0], e):
            value.deferred = True
        else:
            self.declare(value, e)

    def _may_move(self, op: Op, user: Op, e: Expression) -> bool:
        if user.block is not op.block or len(e.text) > self.width - _DECLARATION:
            return False
        return not e.loads or user.effects == op.effects

    def can_take_over(self, value: Value, user: Op) -> bool:
        """Whether `user` may overwrite the variable that holds a value, since nobody else reads it."""
        return value.variable is not None and len(value.uses) == 1 and value.block is user.block

    def take_over(self, value: Value, result: Value) -> str:
        """The variable for a result that is an operand changed in place, where that is its last use; else a new one,
        which starts as a copy of the operand."""
        op = result.op
        assert op is not None and isinstance(result.type, Type)
        if value.deferred:
            self._materialize(value)
        if self.can_take_over(value, op):
            assert value.variable is not None
            name = value.variable
            value.expression = variable(name, mutable=True)
        else:
            name = self.names.take(self.hint(result))
            self.line(f"{type_name(result.type)} {name} = {self.use(value).text};")
        self.bind(result, name)
        return name

    # Blocks

    def run(self, block: Block) -> None:
        """The lines of a block, without its terminator."""
        self.run_ops(block.ops[:-1])

    def run_ops(self, ops: Sequence[Op]) -> None:
        """The lines of some ops of a block."""
        for op in ops:
            name = op.name
            rule = RULES.get(name)
            if rule is not None:
                self.define(op, op.results[0], self._evaluate(rule, op))
            elif name in STATEMENTS:
                STATEMENTS[name](self, op)
            elif name.startswith("complex."):
                self.define(op, op.results[0], self._evaluate(emit_memory.complex_call, op))
            else:
                raise EmitError(f"emit: {name} is not in the vocabulary of Metal kernels: {op.mlir.location}")

    def _evaluate(self, rule: emit_arith.Rule, op: Op) -> Expression:
        return self.built(op, lambda: rule(self, op))

    def scope(self, block: Block) -> None:
        """A nested block, indented, with its own names; see `close`."""
        self.names.open()
        self.shift(1)
        self.run(block)

    def close(self) -> None:
        self.shift(-1)
        self.names.close()
