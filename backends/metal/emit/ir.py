"""A kernel as plain Python objects: what `emit` reads from MLIR, once, before it writes anything.

Attribute access through the bindings is slow, and emission asks the same questions often (who uses a
value, what lies between two ops). Ops whose results nobody uses are left out while reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from smelt.ir import mlir

from .types import Array, Type, Types

if TYPE_CHECKING:
    from .expressions import Expression

#: Ops that write memory or order accesses to it: no load may move across one.
EFFECTS = frozenset({
    "memref.store", "vector.store", "memref.atomic_rmw", "gpu.barrier", "gpu.subgroup_mma_store_matrix",
})  # fmt: skip
#: What loads stay in front of, so that they are on their way meanwhile.
LONG = frozenset({"gpu.subgroup_mma_compute"})
LOADS = frozenset({"memref.load", "vector.load"})
#: What lanes of a simdgroup tell each other.
EXCHANGES = frozenset({"gpu.shuffle", "gpu.subgroup_reduce", "gpu.ballot"})
TERMINATORS = frozenset({"scf.yield", "scf.condition", "gpu.return", "func.return"})


class Value:
    """An SSA value.

    Attributes:
        hint: the name that its location gives it, or "".
        expression: its text, once emitted.
        deferred: whether that text stands nowhere yet, and goes to its only user.
        variable: the variable of its own that holds it, which its last user may overwrite.
    """

    __slots__ = ("block", "deferred", "expression", "hint", "index", "negative", "op", "type", "uses", "variable")

    def __init__(self, type_: Type | Array, hint: str, op: Op | None, block: Block, index: int):
        self.type, self.hint, self.op, self.block, self.index = type_, hint, op, block, index
        self.uses: list[Op] = []
        self.expression: Expression | None = None
        self.deferred = False
        self.variable: str | None = None
        self.negative: bool | None = None  #: whether it may be; None: not asked yet


def kind_of(value: Value) -> Type:
    """The type of a value that is no array."""
    assert isinstance(value.type, Type)
    return value.type


class Op:
    """An operation; `mlir` is the original, for its attributes."""

    __slots__ = ("block", "blocks", "effects", "fresh", "mlir", "name", "operands", "position", "results", "targets")

    def __init__(self, name: str, operation: Any, block: Block):
        self.name, self.mlir, self.block = name, operation, block
        self.operands: list[Value] = []
        self.results: list[Value] = []
        self.blocks: list[Block] = []
        self.position = 0
        self.effects = 0  #: how many ops before it in its block have effects
        #: Variables that the results go to, and those of them that nobody reads before the op ends.
        self.targets: list[str | None] = []
        self.fresh: set[str | None] = set()

    def attribute(self, name: str) -> Any:
        """An attribute, or None."""
        return self.mlir.attributes.get(name)

    def text(self, name: str) -> str:
        """What an enum attribute says: "add" of ``#gpu<all_reduce_op add>``."""
        return str(self.attribute(name)).rstrip(">").rpartition(" ")[2]


class Block:
    """A block; the last op is its terminator."""

    __slots__ = ("arguments", "ops", "parent")

    def __init__(self, parent: Op | None):
        self.parent = parent
        self.arguments: list[Value] = []
        self.ops: list[Op] = []

    @property
    def end(self) -> Op:
        return self.ops[-1]

    def walk(self) -> Iterator[Op]:
        """All ops, also of nested blocks, in order."""
        for op in self.ops:
            yield op
            for block in op.blocks:
                yield from block.walk()


def read_block(block: Any, types: Types) -> Block:
    """The entry block of a function, with all that is nested in it, without unused ops."""
    found = _read(block, None, types, {})
    _drop_unused(found)
    _count(found)
    return found


def location_name(location: Any) -> str:
    """``x`` of ``loc("x")``, or nothing."""
    return location.name_str if isinstance(location, mlir.ir.NameLoc) else ""


def _read(block: Any, parent: Op | None, types: Types, values: dict[Any, Value]) -> Block:
    found = Block(parent)
    for i, argument in enumerate(block.arguments):
        value = Value(types(argument.type), location_name(argument.location), None, found, i)
        values[argument] = value
        found.arguments.append(value)
    for view in block.operations:
        operation = view.operation
        op = Op(operation.name, operation, found)
        op.operands = [values[v] for v in operation.operands]
        results = list(operation.results)
        if results:
            hint = location_name(operation.location)
            for i, result in enumerate(results):
                value = values[result] = Value(types(result.type), hint, op, found, i)
                op.results.append(value)
        for region in operation.regions:
            op.blocks += [_read(inner, op, types, values) for inner in region.blocks]
        for value in op.operands:
            value.uses.append(op)
        found.ops.append(op)
    return found


def _drop_unused(block: Block) -> None:
    kept = []
    for op in reversed(block.ops):
        removable = not op.blocks and op.name not in EFFECTS and op.name not in TERMINATORS
        if removable and op.results and not any(v.uses for v in op.results):
            for value in op.operands:
                value.uses.remove(op)
            continue
        for inner in op.blocks:
            _drop_unused(inner)
        kept.append(op)
    block.ops = kept[::-1]


def _count(block: Block) -> int:
    """Number the ops and the effects before each; how many there are."""
    effects = 0
    for i, op in enumerate(block.ops):
        op.position, op.effects = i, effects
        nested = sum([_count(inner) for inner in op.blocks])
        effects += op.name in EFFECTS or op.name in LONG or nested > 0
    return effects
