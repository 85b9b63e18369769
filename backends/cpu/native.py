"""Machine code for the pieces of a function: calls of kernels, loops and branches around them.

Every member of a team runs the same code. Each takes its share of every kernel, then waits for the
others; what decides a branch or ends a loop is read from memory after such a wait, so all go the
same way. A loop or branch of small kernels is left to the first member alone.

A loop runs its function on the elements of stacked arrays where they lie. A carry is read in one of
two buffers and written in the other, in turn; the first is read where the operand lies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import OpView, Value
from smelt.ir.control import COND, WHILE
from smelt.ir.dialect import context
from smelt.ir.dtypes import int8
from smelt.ir.scalar import INDEX, Kernel, Scalar
from smelt.passes.plan_buffers import Workspace, offsets_of, origin, scratch_of, workspace

from .kernel import CpuKernel, KernelModule, Memory, buffer_type
from .parts import Body, Piece
from .schedules import Step

#: Bytes that a thread copies at least.
COPY_GRAIN = 4096


class Place(NamedTuple):
    """Where an array lies: `offset` bytes into a memref of bytes, or (None) the whole of a memref of its elements."""

    memref: Any
    offset: Scalar | int | None


Places = dict[Value, Place]


def bytes_type(nbytes: int) -> Any:
    """The memref of an array's bytes."""
    return buffer_type(Aval((nbytes,), int8))


def places_of(body: Body, arguments: Sequence[Place], returned: dict[Value, Place], arena: Place) -> Places:
    """Where the values of a function lie, given its arguments, returned values, and arena."""
    places = dict(zip(body.function.arguments, arguments))
    for op in body.function.ops:
        for v, offset in zip(op.results, offsets_of(op)):
            if offset == -2:
                places[v] = places[origin(v)]
            else:
                places[v] = returned[v] if offset == -1 else _shift(arena, offset)
    return places


def _shift(place: Place, by: Scalar | int) -> Place:
    assert place.offset is not None
    return Place(place.memref, by if isinstance(place.offset, int) and place.offset == 0 else place.offset + by)


class Emitter:
    """Emits pieces into one function.

    Args:
        members, me: how many members run, and which of them this one is.
        barrier: the function in which members wait for each other; None where there is one.
    """

    def __init__(
        self, module: KernelModule, k: CpuKernel, found: dict[str, Any], members: Scalar, me: Scalar,
        barrier: str | None,
    ):  # fmt: skip
        self.module, self.k, self.found = module, k, found
        self.members, self.me, self.barrier = members, me, barrier

    # Memory

    def _at(self, offset: Scalar | int) -> Scalar:
        return self.k.const(offset, INDEX) if isinstance(offset, int) else offset

    def typed(self, place: Place, aval: Aval) -> Any:
        """The memref of an array's elements."""
        kind = buffer_type(aval)
        if place.offset is None:
            if place.memref.type != kind:
                raise AssertionError("a view changes its size")
            return place.memref
        return self.k.emit("memref.view", [place.memref, self._at(place.offset)], [kind]).result

    def raw(self, place: Place, nbytes: int) -> Any:
        """The memref of an array's bytes."""
        return self.typed(place, Aval((nbytes,), int8))

    def read(self, place: Place, aval: Aval) -> Scalar:
        """An array of one element."""
        return self.k.read(Memory(self.typed(place, aval), aval), self.k.const(0, INDEX))

    # Pieces

    def pieces(self, pieces: Sequence[Piece], places: Places, arena: Place, final: bool = False) -> None:
        """Run pieces in order. `final`: nothing comes after them, so nobody need wait for the last."""
        for i, piece in enumerate(pieces):
            last = final and i + 1 == len(pieces)
            if piece.kind == "kernel":
                for j, step in enumerate(piece.steps):
                    self._kernel(piece.op, step, places, arena)
                    if not (last and j + 1 == len(piece.steps)):
                        self.wait()
            elif self.barrier is not None and piece.solo:
                with self._alone():
                    self._control(piece, places, arena)
                self.wait()
            else:
                self._control(piece, places, arena)

    def wait(self) -> None:
        if self.barrier is not None:
            self.k.emit("func.call", [], [], callee=mlir.ir.FlatSymbolRefAttr.get(self.barrier, context()))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Code that only the first member runs, without the others."""
        k, saved = self.k, (self.members, self.me, self.barrier)
        one, zero = k.const(1, INDEX), k.const(0, INDEX)
        operation = k.emit("scf.if", [self.me.eq(zero)], [], regions=2)
        self.members, self.me, self.barrier = one, zero, None
        with k.inside(mlir.ir.Block.create_at_start(operation.regions[0], [])):
            yield
            k.emit("scf.yield", [], [])
        self.members, self.me, self.barrier = saved

    def _kernel(self, op: OpView, step: Step, places: Places, arena: Place) -> None:
        outer = {v: v for v in (*op.operands, *op.results)}
        if step.body is not None:
            outer = dict(zip(step.body.arguments, op.operands)) | dict(zip(step.body.returns, op.results))
        base = scratch_of(op)
        memrefs = [
            self.typed(places[outer[x]], outer[x].aval)
            if isinstance(x, Value)
            else self.typed(_shift(arena, base + x[0]), x[1])
            for x in step.operands
        ]
        self._share(step.function, memrefs, step.split.extent, step.split.grain)

    def _share(self, function: str, memrefs: Sequence[Any], extent: int, grain: int) -> None:
        """Call a kernel for this member's part of its range."""
        lo, hi = share(self.k, self.me, self.members, extent, grain)
        self.k.emit("func.call", [*memrefs, lo, hi], [], callee=mlir.ir.FlatSymbolRefAttr.get(function, context()))

    def copy(self, source: Place, target: Place, nbytes: int) -> None:
        """Copy an array; nobody waits."""
        if nbytes:
            name = _copy_kernel(self.module, nbytes)
            self._share(name, [self.raw(source, nbytes), self.raw(target, nbytes)], nbytes, COPY_GRAIN)

    # Control flow

    def _control(self, piece: Piece, places: Places, arena: Place) -> None:
        """A branch or a loop. Whoever leaves it need not wait for the others."""
        op = piece.op
        space, base = workspace(op, self.found), _shift(arena, scratch_of(op))
        operands = [places[v] for v in op.operands]
        results = [places[v] for v in op.results]
        if op.op is COND:
            self._cond(piece, operands, results, _shift(base, space.arena))
        elif op.op is WHILE:
            self._while(piece, operands, results, space, base)
        else:
            self._scan(piece, operands, results, space, base)

    def run(
        self, body: Body, arguments: Sequence[Place], targets: Sequence[Place | None], arena: Place
    ) -> Places:  # fmt: skip
        """A function's pieces, and copies of returned values that are other values' memory; then all wait.

        `targets`: where the returned values go; None: nowhere.
        """
        aliases, returns = body.aliases(), body.function.returns
        returned = {origin(v): t for i, (v, t) in enumerate(zip(returns, targets)) if i not in aliases and t}
        places = places_of(body, arguments, returned, arena)
        self.pieces(body.pieces, places, arena)
        moved = [(v, t) for i, (v, t) in enumerate(zip(returns, targets)) if i in aliases and t]
        self._copies([(places[v], target, v.aval.nbytes) for v, target in moved])
        return places

    def _copies(self, moved: Sequence[tuple[Place, Place, int]]) -> None:
        """Copies none of which reads what another writes."""
        for source, target, nbytes in moved:
            self.copy(source, target, nbytes)
        if moved:
            self.wait()

    def _cond(self, piece: Piece, operands: list[Place], results: list[Place], arena: Place) -> None:
        index, *arguments = operands
        bodies = [self.body_of(piece, name) for name in piece.op.attrs["branches"]]
        k, aval = self.k, piece.op.operands[0].aval
        number = k.convert(self.read(index, aval), INDEX)
        cases = mlir.ir.DenseI64ArrayAttr.get(list(range(len(bodies) - 1)), context())
        operation = k.emit("scf.index_switch", [number], [], regions=len(bodies), cases=cases)
        for region, body in zip(operation.regions, (bodies[-1], *bodies[:-1])):
            with k.inside(mlir.ir.Block.create_at_start(region, [])):
                self.run(body, arguments, results, arena)
                k.emit("scf.yield", [], [])
        self.wait()  # all have read the index

    def body_of(self, piece: Piece, name: str) -> Body:
        return next(body for body in piece.bodies if body.function.name == name)

    def _loop_state(
        self, piece: Piece, first: Sequence[Place], results: Sequence[Place], space: Workspace, base: Place,
        into_scratch: bool = False,
    ) -> list[Any]:  # fmt: skip
        """For each carry that changes: where it is now, where it goes, where it goes after that.

        `into_scratch`: it goes to the scratch first, else to the result.
        """
        state = []
        for place, result, offset, v in zip(first, results, space.carries, piece.op.results):
            if offset is not None:
                nbytes = v.aval.nbytes
                two = [self.raw(result, nbytes), self.raw(_shift(base, offset), nbytes)]
                state += [self.raw(place, nbytes), *(two[::-1] if into_scratch else two)]
        return state

    @staticmethod
    def _carried(
        state: Sequence[Any], first: Sequence[Place], space: Workspace
    ) -> tuple[list[Place], list[Place | None], list[Any]]:
        """Inside a loop: where carries are, where they go, and the next state."""
        now: list[Place] = []
        then: list[Place | None] = []
        after: list[Any] = []
        values = iter(state)
        for place, offset in zip(first, space.carries):
            if offset is None:
                now.append(place)
                then.append(None)
                continue
            at, to, other = next(values), next(values), next(values)
            now.append(Place(at, 0))
            then.append(Place(to, 0))
            after += [to, other, to]
        return now, then, after

    def _constant_carries(
        self, piece: Piece, first: Sequence[Place], results: Sequence[Place], space: Workspace, every: bool = False
    ) -> list[tuple[Place, Place, int]]:
        """The copies that give carries which no iteration changes to the results."""
        pairs = zip(first, results, space.carries, piece.op.results)
        return [(x, y, v.aval.nbytes) for x, y, offset, v in pairs if every or offset is None]

    def _while(
        self, piece: Piece, operands: list[Place], results: list[Place], space: Workspace, base: Place
    ) -> None:  # fmt: skip
        k, attrs, n = self.k, piece.op.attrs, piece.op.attrs["constants"]
        constants, first = operands[:n], operands[n:]
        condition, body = self.body_of(piece, attrs["cond"]), self.body_of(piece, attrs["body"])
        arena, flag = _shift(base, space.arena), _shift(base, space.flag)
        state = self._loop_state(piece, first, results, space, base)
        types = [v.type for v in state]
        operation = k.emit("scf.while", state, types, regions=2)
        before, after = (
            mlir.ir.Block.create_at_start(r, types, [k.location] * len(types)) for r in operation.regions
        )
        with k.inside(before):
            inner = list(before.arguments)
            now, _, _ = self._carried(inner, first, space)
            (verdict,) = condition.function.returns
            # A verdict that is an argument is read where it lies.
            is_argument = 0 in condition.aliases()
            places = self.run(condition, [*constants, *now], [None if is_argument else flag], arena)
            again = self.read(places[verdict], verdict.aval)
            k.emit("scf.condition", [again, *inner], [])
        with k.inside(after):
            now, then, following = self._carried(list(after.arguments), first, space)
            self.run(body, [*constants, *now], then, arena)
            k.emit("scf.yield", following, [])
        found = list(operation.results)
        varying = [i for i, offset in enumerate(space.carries) if offset is not None]
        for i, at in zip(varying, found[::3]):
            nbytes = piece.op.results[i].aval.nbytes
            target = self.raw(results[i], nbytes)
            elsewhere = self._address(at).ne(self._address(target))
            k.when(elsewhere, functools.partial(self.copy, Place(at, 0), Place(target, 0), nbytes))
        for source, target, nbytes in self._constant_carries(piece, first, results, space):
            self.copy(source, target, nbytes)
        self.wait()  # all have read the verdict

    def _address(self, memref: Any) -> Scalar:
        k = self.k
        found = k.emit("memref.extract_aligned_pointer_as_index", [memref], [k.type(INDEX)]).result
        return Scalar(k, found, INDEX)

    def _scan(
        self, piece: Piece, operands: list[Place], results: list[Place], space: Workspace, base: Place
    ) -> None:  # fmt: skip
        k, attrs = self.k, piece.op.attrs
        n, m, length = attrs["constants"], attrs["carries"], attrs["length"]
        constants, first, xs = operands[:n], operands[n : n + m], operands[n + m :]
        carries, stacked = results[:m], results[m:]
        (body,) = piece.bodies
        arguments, returns = body.function.arguments, body.function.returns
        state = []
        if length:  # the last iteration writes the results
            state = self._loop_state(piece, first, carries, space, base, into_scratch=length % 2 == 0)

        def iteration(i: Scalar, *state: Any) -> list[Any]:
            at = k.const(length - 1, INDEX) - i if attrs["reverse"] else i
            now, then, following = self._carried(state, first, space)
            elements = [_shift(x, at * v.aval.nbytes) for x, v in zip(xs, arguments[n + m :])]
            slots = [_shift(y, at * v.aval.nbytes) for y, v in zip(stacked, returns[m:])]
            into = [y if t is None else _shift(base, t) for y, t in zip(slots, space.elements)]
            self.run(body, [*constants, *now, *elements], [*then, *into], _shift(base, space.arena))
            moved = zip(into, slots, space.elements, returns[m:])
            self._copies([(x, y, v.aval.nbytes) for x, y, t, v in moved if t is not None])
            return following

        if length:
            self._for(length, state, iteration)
        self._copies(self._constant_carries(piece, first, carries, space, every=not length))

    def _for(self, length: int, state: Sequence[Any], body: Callable[..., list[Any]]) -> None:
        k = self.k
        types = [v.type for v in state]
        bounds = [k.const(x, INDEX) for x in (0, length, 1)]
        operation = k.emit("scf.for", [*bounds, *state], types, regions=1)
        kinds = [k.type(INDEX), *types]
        block = mlir.ir.Block.create_at_start(operation.regions[0], kinds, [k.location] * len(kinds))
        with k.inside(block):
            i, *inner = block.arguments
            k.emit("scf.yield", body(Scalar(k, i, INDEX), *inner), [])


def share(k: Kernel, me: Scalar, count: Scalar, extent: int, grain: int) -> tuple[Scalar, Scalar]:
    """This thread's part of a range: lo and hi, multiples of `grain` but for the end."""
    units = -(-extent // grain)
    end = k.const(extent, INDEX)

    def bound(i: Scalar) -> Scalar:
        at = k.op("arith.divui", [i * units, count], INDEX)
        if grain > 1:
            at = k.op("arith.minui", [at * grain, end], INDEX)
        return at

    return bound(me), bound(me + 1)


def _copy_kernel(module: KernelModule, nbytes: int) -> str:
    """A kernel that copies `nbytes` bytes; its name."""
    name = f"copy_{nbytes}_bytes"
    if name not in module.declared:
        module.declared.add(name)
        index = mlir.ir.IndexType.get(context())
        unknown = mlir.ir.Location.unknown(context())
        kind = bytes_type(nbytes)
        entry = module.function(name, [kind, kind, index, index], unknown, noalias=(0, 1))
        k = CpuKernel(module, entry, unknown, None)
        source, target, lo, hi = entry.arguments

        def element(i: Scalar) -> None:
            byte = k.emit("memref.load", [source, i], [kind.element_type]).result
            k.emit("memref.store", [byte, target, i], [])

        k.loop(None, Scalar(k, lo, INDEX), Scalar(k, hi, INDEX), element)
        k.emit("func.return", [], [])
    return name
