"""Loops and branches around a backend's launches, as structured control flow over memory.

A loop runs its function on the elements of stacked arrays where they lie. A carry is read in one of
two buffers and written in the other, in turn; the first is read where the operand lies. A carry of
which the body only updates elements stays in one buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, Value
from smelt.ir.control import COND, WHILE
from smelt.ir.dialect import context
from smelt.ir.dtypes import int8
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.plan_buffers import ALIGNMENT, Workspace, offsets_of, origin, scratch_of, workspace

from .bodies import Body, PlannedOp, carries_in_place
from .memory import Memory, MemoryKernel


class Storage(NamedTuple):
    """Where an array lies: `offset` bytes into a memref of bytes, or (None) the whole of a memref of its elements.

    `alignment`: a number of bytes that divides its address.
    """

    memref: Any
    offset: Scalar | int | None
    alignment: int = ALIGNMENT

    def shifted(self, by: int) -> Storage:
        """The place `by` bytes further on."""
        assert self.offset is not None
        offset = by if isinstance(self.offset, int) and self.offset == 0 else self.offset + by
        return Storage(self.memref, offset, math.gcd(self.alignment, by))

    def element(self, i: Scalar, nbytes: int) -> Storage:
        """Element i, of `nbytes` bytes, of the array at this place."""
        assert self.offset is not None
        return Storage(self.memref, i * nbytes + self.offset, math.gcd(self.alignment, nbytes))


StorageMap = dict[Value, Storage]


def bytes_type(nbytes: int) -> Any:
    """The memref of an array's bytes."""
    return MemoryKernel.buffer_type(Aval((nbytes,), int8))


def places_of(
    body: Body[Any], arguments: Sequence[Storage], returned: dict[Value, Storage], arena: Storage
) -> StorageMap:
    """Where the values of a function lie, given its arguments, returned values, and arena."""
    places = dict(zip(body.function.arguments, arguments))
    for op in body.function.ops:
        for v, offset in zip(op.results, offsets_of(op)):
            if offset == -2:
                places[v] = places[origin(v)]
            else:
                places[v] = returned[v] if offset == -1 else arena.shifted(offset)
    return places


class Given(NamedTuple):
    """The arrays that a shared function runs on, each once.

    Attributes:
        places: where they lie. sizes: their bytes.
        table: which of them each argument of the function is, and where each result goes (None: nowhere).
    """

    places: list[Storage]
    sizes: list[int]
    table: tuple[int | None, ...]

    @staticmethod
    def of(body: Body[Any], arguments: Sequence[Storage], targets: Sequence[Storage | None]) -> Given:
        given = [*arguments, *targets]
        places = {id(place): place for place in given if place is not None}
        number = {key: i for i, key in enumerate(places)}
        sizes = [0] * len(places)
        for v, place in zip((*body.function.arguments, *body.function.returns), given):
            if place is not None:
                sizes[number[id(place)]] = v.aval.nbytes
        return Given(list(places.values()), sizes, tuple(None if x is None else number[id(x)] for x in given))

    @property
    def alignments(self) -> tuple[int, ...]:
        return tuple(place.alignment for place in self.places)

    def split(
        self, body: Body[Any], memrefs: Sequence[Any]
    ) -> tuple[list[Storage], list[Storage | None]]:
        """Inside of the function, whose arguments the arrays are: arguments and targets as `ControlEmitter.run` takes
        them."""
        places = [Storage(memref, 0, place.alignment) for memref, place in zip(memrefs, self.places)]
        found = [None if i is None else places[i] for i in self.table]
        n = len(body.function.arguments)
        return [place for place in found[:n] if place is not None], found[n:]


class _Carry(NamedTuple):
    """Where a carry that changes is, where it goes, and where it goes after that: memrefs of bytes."""

    now: Any
    then: Any
    after: Any


class ControlEmitter:
    """Emits the planned ops of functions into one function; a backend adds launches and copies.

    Args:
        k: the builder of the function.
        found: the functions of the module.
    """

    def __init__(self, k: MemoryKernel, found: dict[str, Any]):
        self.k, self.found = k, found

    # What a backend adds

    def launch(self, planned: Any, places: StorageMap, arena: Storage) -> None:
        """Run the steps of a kernel, but for a copy of an operand that is the result (`is_done`)."""
        raise NotImplementedError

    @staticmethod
    def is_done(planned: PlannedOp, step: Any, places: StorageMap) -> bool:
        """Whether a step copies an operand to where it is: before a scatter in place."""
        return step.copies and any(places[v] is places[planned.op.results[0]] for v in planned.op.operands)

    def copy(self, source: Storage, target: Storage, nbytes: int) -> None:
        """Copy an array; nobody waits."""
        raise NotImplementedError

    def wait(self) -> None:
        """What was written is seen by what comes next."""

    def settle(self, source: Storage, target: Storage, nbytes: int) -> None:
        """Copy an array that may be there already."""
        self.copy(source, target, nbytes)

    def enter_loop(self, planned: Any) -> Any:
        """Called before a loop; `goes_on` and `count` get the result."""
        return None

    def goes_on(self, again: Scalar, entered: Any) -> Scalar:
        """Whether a loop of unknown length goes on whose condition says `again`."""
        return again

    # Memory

    def typed(self, place: Storage, aval: Aval) -> Any:
        """The memref of an array's elements."""
        kind = self.k.buffer_type(aval)
        if place.offset is None:
            if place.memref.type != kind:
                raise AssertionError("a view changes its size")
            return place.memref
        offset = self.k.const(place.offset, INDEX) if isinstance(place.offset, int) else place.offset
        return self.k.emit("memref.view", [place.memref, offset], [kind]).result

    def raw(self, place: Storage, nbytes: int) -> Any:
        """The memref of an array's bytes."""
        return self.typed(place, Aval((nbytes,), int8))

    def read(self, place: Storage, aval: Aval) -> Scalar:
        """An array of one element."""
        return self.k.read(Memory(self.typed(place, aval), aval), self.k.const(0, INDEX))

    # Planned ops

    def emit_ops(self, planned_ops: Sequence[Any], places: StorageMap, arena: Storage) -> None:
        """Run planned ops in order; what they wrote is seen by what comes next."""
        for planned in planned_ops:
            if planned.kind == "control":
                self.control(planned, places, arena)
            else:
                self.launch(planned, places, arena)

    def run(
        self, body: Body[Any], arguments: Sequence[Storage], targets: Sequence[Storage | None], arena: Storage
    ) -> StorageMap:  # fmt: skip
        """A function's planned ops, and copies of returned values that are other values' memory; then all wait.

        `targets`: where the returned values go; None: nowhere.
        """
        aliases, returns = body.aliases(), body.function.returns
        returned = {origin(v): t for i, (v, t) in enumerate(zip(returns, targets)) if i not in aliases and t}
        places = places_of(body, arguments, returned, arena)
        self.emit_ops(body.planned_ops, places, arena)
        moved = [(v, t) for i, (v, t) in enumerate(zip(returns, targets)) if i in aliases and t]
        self._copies([(places[v], target, v.aval.nbytes) for v, target in moved])
        return places

    def _copies(self, moved: Sequence[tuple[Storage, Storage, int]]) -> None:
        """Copies that are independent: none reads what another writes."""
        for source, target, nbytes in moved:
            self.copy(source, target, nbytes)
        if moved:
            self.wait()

    # Control flow

    def control(self, planned: PlannedOp, places: StorageMap, arena: Storage) -> None:
        """A branch or a loop. A member that leaves it need not wait for the others."""
        op = planned.op
        space, base = workspace(op, self.found), arena.shifted(scratch_of(op))
        operands = [places[v] for v in op.operands]
        results = [places[v] for v in op.results]
        if op.op is COND:
            self._cond(planned, operands, results, base.shifted(space.arena))
        elif op.op is WHILE:
            self._while(planned, operands, results, space, base)
        else:
            self._scan(planned, operands, results, space, base)

    def _cond(self, planned: PlannedOp, operands: list[Storage], results: list[Storage], arena: Storage) -> None:
        index, *arguments = operands
        bodies = [planned.body(name) for name in planned.op.attrs["branches"]]
        k, aval = self.k, planned.op.operands[0].aval
        number = k.convert(self.read(index, aval), INDEX)
        cases = mlir.ir.DenseI64ArrayAttr.get(list(range(len(bodies) - 1)), context())
        operation = k.emit("scf.index_switch", [number], [], regions=len(bodies), cases=cases)
        for region, body in zip(operation.regions, (bodies[-1], *bodies[:-1])):
            with k.inside(mlir.ir.Block.create_at_start(region, [])):
                self.run(body, arguments, results, arena)
                k.emit("scf.yield", [], [])
        self.wait()  # all have read the index

    def _loop_state(
        self, op: OpView, first: Sequence[Storage], results: Sequence[Storage], space: Workspace, base: Storage,
        into_scratch: bool = False,
    ) -> list[Any]:  # fmt: skip
        """A `_Carry` for each carry that changes, one after the other.

        `into_scratch`: it goes to the scratch first, else to the result.
        """
        state: list[Any] = []
        for place, result, offset, v in zip(first, results, space.carries, op.results):
            if offset is not None:
                nbytes = v.aval.nbytes
                two = [self.raw(result, nbytes), self.raw(base.shifted(offset), nbytes)]
                state += _Carry(self.raw(place, nbytes), *(two[::-1] if into_scratch else two))
        return state

    def _kept_in_place(
        self, op: OpView, body: Body[Any], first: list[Storage], results: Sequence[Storage], space: Workspace
    ) -> Workspace:
        """Carries that are updated in place begin, and stay, where their results lie."""
        carries, moved = list(space.carries), []
        for i in carries_in_place(body, self.found, op.attrs["constants"], len(carries)):
            carries[i] = None
            moved.append((first[i], results[i], op.results[i].aval.nbytes))
            first[i] = results[i]
        self._copies(moved)
        return replace(space, carries=tuple(carries))

    @staticmethod
    def _carried(
        state: Sequence[Any], first: Sequence[Storage], results: Sequence[Storage], space: Workspace
    ) -> tuple[list[Storage], list[Storage | None], list[Any]]:
        """Inside a loop: where carries are, where they go, and the next state."""
        now: list[Storage] = []
        then: list[Storage | None] = []
        following: list[Any] = []
        values = iter(state)
        for place, result, offset in zip(first, results, space.carries):
            if offset is None:
                now.append(place)
                then.append(result if place is result else None)
                continue
            carry = _Carry(next(values), next(values), next(values))
            written = math.gcd(result.alignment, ALIGNMENT)
            now.append(Storage(carry.now, 0, math.gcd(place.alignment, written)))
            then.append(Storage(carry.then, 0, written))
            following += _Carry(carry.then, carry.after, carry.then)
        return now, then, following

    def _constant_carries(
        self, op: OpView, first: Sequence[Storage], results: Sequence[Storage], space: Workspace, every: bool = False
    ) -> list[tuple[Storage, Storage, int]]:
        """The copies that give carries which no iteration changes to the results."""
        pairs = zip(first, results, space.carries, op.results)
        return [(x, y, v.aval.nbytes) for x, y, offset, v in pairs if (every or offset is None) and x is not y]

    def _while(
        self, planned: PlannedOp, operands: list[Storage], results: list[Storage], space: Workspace, base: Storage
    ) -> None:  # fmt: skip
        k, op, n = self.k, planned.op, planned.op.attrs["constants"]
        constants, first = operands[:n], operands[n:]
        condition, body = planned.body(op.attrs["cond"]), planned.body(op.attrs["body"])
        arena, flag = base.shifted(space.arena), base.shifted(space.flag)
        space = self._kept_in_place(op, body, first, results, space)
        state = self._loop_state(op, first, results, space, base)
        types = [v.type for v in state]
        entered = self.enter_loop(planned)
        operation = k.emit("scf.while", state, types, regions=2)
        before, after = (
            mlir.ir.Block.create_at_start(r, types, [k.location] * len(types)) for r in operation.regions
        )
        with k.inside(before):
            inner = list(before.arguments)
            now, _, _ = self._carried(inner, first, results, space)
            (verdict,) = condition.function.returns
            # A verdict that is an argument is read where it lies.
            is_argument = 0 in condition.aliases()
            places = self.run(condition, [*constants, *now], [None if is_argument else flag], arena)
            again = self.goes_on(self.read(places[verdict], verdict.aval), entered)
            k.emit("scf.condition", [again, *inner], [])
        with k.inside(after):
            now, then, following = self._carried(list(after.arguments), first, results, space)
            self.run(body, [*constants, *now], then, arena)
            k.emit("scf.yield", following, [])
        varying = [i for i, offset in enumerate(space.carries) if offset is not None]
        for i, at in zip(varying, list(operation.results)[::3]):
            alignment = math.gcd(first[i].alignment, results[i].alignment)
            self.settle(Storage(at, 0, alignment), results[i], op.results[i].aval.nbytes)
        for source, target, nbytes in self._constant_carries(op, first, results, space):
            self.copy(source, target, nbytes)
        self.wait()  # all have read the verdict

    def _scan(
        self, planned: PlannedOp, operands: list[Storage], results: list[Storage], space: Workspace, base: Storage
    ) -> None:  # fmt: skip
        k, op, attrs = self.k, planned.op, planned.op.attrs
        n, m, length = attrs["constants"], attrs["carries"], attrs["length"]
        constants, first, xs = operands[:n], operands[n : n + m], operands[n + m :]
        carries, stacked = results[:m], results[m:]
        (body,) = planned.bodies
        arguments, returns = body.function.arguments, body.function.returns
        state = []
        space = self._kept_in_place(op, body, first, carries, space)
        if length:  # the last iteration writes the results
            state = self._loop_state(op, first, carries, space, base, into_scratch=length % 2 == 0)

        def iteration(i: Scalar, *state: Any) -> list[Any]:
            at = k.const(length - 1, INDEX) - i if attrs["reverse"] else i
            now, then, following = self._carried(state, first, carries, space)
            elements = [x.element(at, v.aval.nbytes) for x, v in zip(xs, arguments[n + m :])]
            slots = [y.element(at, v.aval.nbytes) for y, v in zip(stacked, returns[m:])]
            into = [y if t is None else base.shifted(t) for y, t in zip(slots, space.elements)]
            self.run(body, [*constants, *now, *elements], [*then, *into], base.shifted(space.arena))
            moved = zip(into, slots, space.elements, returns[m:])
            self._copies([(x, y, v.aval.nbytes) for x, y, t, v in moved if t is not None])
            return following

        if length:
            self.count(length, state, iteration, self.enter_loop(planned))
        self._copies(self._constant_carries(op, first, carries, space, every=not length))

    def count(self, length: int, state: Sequence[Any], body: Callable[..., list[Any]], entered: Any) -> None:
        """``for i in range(length): state = body(i, *state)``."""
        k = self.k
        types = [v.type for v in state]
        bounds = [k.const(x, INDEX) for x in (0, length, 1)]
        operation = k.emit("scf.for", [*bounds, *state], types, regions=1)
        kinds = [k.type(INDEX), *types]
        block = mlir.ir.Block.create_at_start(operation.regions[0], kinds, [k.location] * len(kinds))
        with k.inside(block):
            i, *inner = block.arguments
            k.emit("scf.yield", body(Scalar(k, i, INDEX), *inner), [])
