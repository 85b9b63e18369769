"""What ``@main`` does, as steps of a manifest: launches, loops and branches around them, and calls of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from smelt.ir import mlir

from ...gpu.manifest import Branch, BufferSlot, Call, Launch, Local, Loop, Step
from . import literals
from .ir import Block, Op, Value
from .types import Array, EmitError, Type

_INDEX = Type("index", 64)
#: What does not change an integer that was read; a comparison is that of a stored bool with 0.
_CONVERSIONS = frozenset(("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.cmpi"))


@dataclass(frozen=True)
class _Number:
    """``constant + Σ stride · iteration`` over the loops around."""

    constant: int = 0
    strides: Mapping[int, int] | None = None

    def plus(self, other: _Number, sign: int = 1) -> _Number:
        strides = dict(self.strides or {})
        for loop, stride in (other.strides or {}).items():
            strides[loop] = strides.get(loop, 0) + sign * stride
        return _Number(self.constant + sign * other.constant, strides)

    def times(self, factor: int) -> _Number:
        return _Number(self.constant * factor, {k: v * factor for k, v in (self.strides or {}).items()})


@dataclass(frozen=True)
class _Read:
    """An integer in memory."""

    place: BufferSlot
    bytes: int


class Steps:
    """Reads the blocks of ``@main``.

    Args:
        places: where its arguments lie.
        entries: what the text calls a kernel, by its symbol.
        bodies: the functions that it calls, by their symbols.

    Attributes:
        functions: their steps, callees first.
    """

    def __init__(self, places: dict[Value, BufferSlot], entries: Mapping[str, str], bodies: Mapping[str, Block]):
        self.places, self.entries, self.bodies = places, entries, bodies
        self.functions: list[tuple[Step, ...]] = []
        self._known: dict[str, int] = {}
        self._numbers: dict[Value, _Number] = {}
        self._read: dict[Value, _Read] = {}
        self._loops = self._locals = 0

    def block(self, block: Block) -> tuple[Step, ...]:
        """The steps of a block, without its terminator."""
        found: list[Step] = []
        for op in block.ops[:-1]:
            if op.name == "gpu.launch_func":
                symbol = str(op.attribute("kernel")).rpartition("@")[2]
                buffers = tuple(self.places[v] for v in op.operands if isinstance(v.type, Array))
                found.append(Launch(self.entries[symbol], buffers))
            elif op.name == "scf.for":
                found.append(self._for(op))
            elif op.name == "scf.while":
                found.append(self._while(op))
            elif op.name == "scf.index_switch":
                found.append(self._switch(op))
            elif op.name == "func.call":
                found.append(self._call(op))
            else:
                self._value(op)
        return tuple(found)

    def _value(self, op: Op) -> None:
        numbers = self._numbers
        (result,) = op.results
        if op.name == "arith.constant":
            numbers[result] = _Number(literals.attribute_bits(op.attribute("value"), _INDEX)[0])
        elif op.name in ("arith.addi", "arith.subi"):
            a, b = (numbers[v] for v in op.operands)
            numbers[result] = a.plus(b, 1 if op.name == "arith.addi" else -1)
        elif op.name == "arith.muli":
            a, b = (numbers[v] for v in op.operands)
            a, b = (a, b) if not b.strides else (b, a)
            if b.strides:
                raise EmitError("emit: a product of loop counters in @main")
            numbers[result] = a.times(b.constant)
        elif op.name == "memref.view":
            self.places[result] = _shifted(self.places[op.operands[0]], numbers[op.operands[1]])
        elif op.name == "memref.load" and isinstance(result.type, Type):
            self._read[result] = _Read(self.places[op.operands[0]], -(-result.type.bits // 8))
        elif op.name in _CONVERSIONS and op.operands[0] in self._read:
            self._read[result] = self._read[op.operands[0]]
        else:
            raise EmitError(f"emit: {op.name} in @main")

    def _call(self, op: Op) -> Call:
        symbol = mlir.ir.FlatSymbolRefAttr(op.attribute("callee")).value
        if symbol not in self._known:
            block = self.bodies[symbol]
            self.places |= {value: BufferSlot("parameter", i) for i, value in enumerate(block.arguments)}
            steps = self.block(block)
            self._known[symbol] = len(self.functions)
            self.functions.append(steps)
        return Call(self._known[symbol], tuple(self.places[v] for v in op.operands))

    def _enter(self, arguments: Sequence[Value]) -> range:
        """New locals for the arguments of a block."""
        first = self._locals
        self._locals += len(arguments)
        for i, value in enumerate(arguments, first):
            self.places[value] = BufferSlot("local", i)
        return range(first, self._locals)

    def _moving(self, numbers: range, start: Sequence[BufferSlot], end: Op) -> tuple[Local, ...]:
        following = [self.places[v] for v in end.operands]
        return tuple(Local(i, a, b) for i, a, b in zip(numbers, start, following))

    def _for(self, op: Op) -> Loop:
        (body,) = op.blocks
        low, stop, step = (self._numbers[v] for v in op.operands[:3])
        if low != _Number() or step != _Number(1) or stop.strides:
            raise EmitError("emit: a loop of @main does not count from 0 to a known number")
        start = [self.places[v] for v in op.operands[3:]]
        number, self._loops = self._loops, self._loops + 1
        counter, *arguments = body.arguments
        self._numbers[counter] = _Number(0, {number: 1})
        numbers = self._enter(arguments)
        steps = self.block(body)
        for result, i in zip(op.results, numbers):
            self.places[result] = BufferSlot("local", i)
        return Loop(number, stop.constant, self._moving(numbers, start, body.end), (), None, steps)

    def _while(self, op: Op) -> Loop:
        before, after = op.blocks
        start = [self.places[v] for v in op.operands]
        number, self._loops = self._loops, self._loops + 1
        numbers = self._enter(before.arguments)
        condition = self.block(before)
        again, *forwarded = before.end.operands
        for values in (after.arguments, op.results):
            self.places |= dict(zip(values, [self.places[v] for v in forwarded]))
        steps = self.block(after)
        moving = self._moving(numbers, start, after.end)
        return Loop(number, None, moving, condition, self._read[again].place, steps)

    def _switch(self, op: Op) -> Branch:
        read = self._read[op.operands[0]]
        default, *cases = op.blocks
        if list(mlir.ir.DenseI64ArrayAttr(op.attribute("cases"))) != list(range(len(cases))):
            raise EmitError("emit: the cases of a branch in @main do not count from 0")
        return Branch(read.place, read.bytes, tuple(self.block(block) for block in (*cases, default)))


def _shifted(place: BufferSlot, by: _Number) -> BufferSlot:
    strides = {loop: stride for loop, stride in (by.strides or {}).items() if stride}
    if place.strides:
        strides = dict(_Number(0, strides).plus(_Number(0, dict(place.strides))).strides or {})
    return replace(place, offset=place.offset + by.constant, strides=tuple(sorted(strides.items())))
