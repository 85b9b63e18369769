"""Machine code for the planned ops of a function: calls of kernels, loops and branches around them.

Every member of a team runs the same code. Each takes its share of every kernel, then waits for the
others; what decides a branch or ends a loop is read from memory after such a wait, so all go the
same way. A loop or branch of small kernels is left to the first member alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smelt.backends.control import ControlEmitter, Given, Storage, StorageMap, bytes_type
from smelt.backends.memory import Memory
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Value
from smelt.ir.dialect import context
from smelt.ir.dtypes import bool_, int64
from smelt.ir.scalar import INDEX, Scalar
from smelt.passes.kernels.cost import trips
from smelt.passes.kernels.plan_buffers import arena_bytes, origin

from .kernel import CpuKernel, KernelModule
from .loops import share
from .planner import Body, PlannedOp, operands_of
from .polling import Cell, Polling, poll
from .schedules import ScheduledKernel

#: Bytes that a thread copies at least.
COPY_GRAIN = 4096


class Emitter(ControlEmitter):
    """Emits planned ops into one function.

    Args:
        members, me: how many members run, and which of them this one is.
        barrier: the function in which members wait for each other; None where there is one.
        told: memory for one int64 that all members see, if there are long loops. All of them end when Python
            says so to one.
        shared: arguments of the program and results that may lie where these do.
        stopped: of a function that another one calls: where this one keeps whether Python said so.
    """

    k: CpuKernel

    def __init__(
        self, module: KernelModule, k: CpuKernel, found: dict[str, Any], members: Scalar, me: Scalar,
        barrier: str | None, told: Memory | None = None, shared: Collection[tuple[Value, Value]] = (),
        stopped: Memory | None = None,
    ):  # fmt: skip
        super().__init__(k, found)
        self.module, self.shared = module, shared
        self.members, self.me, self.barrier = members, me, barrier
        self.told = told
        if told is not None:
            self.stopped = Cell(k, bool_, stopped)
            if stopped is None:
                self.stopped.write(k.const(False, bool_))

    def emit_ops(
        self, planned_ops: Sequence[PlannedOp], places: StorageMap, arena: Storage, final: bool = False
    ) -> None:
        """Run planned ops in order. `final`: nothing comes after them, so nobody need wait for the last."""
        end = 0
        for solo, some in itertools.groupby(planned_ops, lambda p: self.barrier is not None and p.solo):
            together = list(some)
            end += len(together)
            last = final and end == len(planned_ops)
            if solo:
                with self._alone():
                    self._emit_each(together, places, arena)
                if not last:
                    self.wait()
            else:
                self._emit_each(together, places, arena, last)

    def _emit_each(
        self, planned_ops: Sequence[PlannedOp], places: StorageMap, arena: Storage, final: bool = False
    ) -> None:  # fmt: skip
        for i, planned in enumerate(planned_ops):
            if planned.kind == "kernel":
                self.launch(planned, places, arena, final and i + 1 == len(planned_ops))
            else:
                self.control(planned, places, arena)

    def run(
        self, body: Body, arguments: Sequence[Storage], targets: Sequence[Storage | None], arena: Storage
    ) -> StorageMap:  # fmt: skip
        if not body.is_shared or self.k.checks is not None:  # reports name the op of each run
            return super().run(body, arguments, targets, arena)
        given = Given.of(body, arguments, targets)
        key = body.function.name, self.barrier, given.table, given.alignments, arena.alignment
        name = self.module.bodies.get(key)
        if name is None:
            name = self.module.bodies[key] = f"body_{len(self.module.bodies)}"
            self._emit_function(name, body, given, arena.alignment)
        memrefs = [self.raw(place, size) for place, size in zip(given.places, given.sizes)]
        memrefs.append(self.raw(arena, arena_bytes(self.found[body.function.name])))
        if self.told is not None:
            memrefs += [self.told.memref, self.stopped.memory.memref]
        self.k.call(name, memrefs, *([] if self.barrier is None else [self.members, self.me]))
        found: StorageMap = dict(zip(body.function.arguments, arguments))
        return found | {v: t for v, t in zip(body.function.returns, targets) if t is not None}

    def _emit_function(self, name: str, body: Body, given: Given, alignment: int) -> None:
        """The function of a body. `alignment`: of its arena."""
        module, location = self.module, body.function.mlir.location
        types = [bytes_type(n) for n in (*given.sizes, arena_bytes(self.found[body.function.name]))]
        types += [] if self.told is None else [self.told.memref.type, self.stopped.memory.memref.type]
        several = self.barrier is not None
        index = [self.k.type(INDEX)] * 2 if several else []
        entry = module.function(name, [*types, *index], location)
        k = CpuKernel(module, entry, location, None)
        n, memrefs = len(given.places), list(entry.arguments)
        told, stopped = (
            (None, None)
            if self.told is None
            else (Memory(memrefs[n + 1], self.told.aval), Memory(memrefs[n + 2], self.stopped.memory.aval))
        )
        members, me = (Scalar(k, x, INDEX) for x in memrefs[-2:]) if several else (k.const(1, INDEX), k.const(0, INDEX))
        emitter = Emitter(module, k, self.found, members, me, self.barrier, told, (), stopped)
        super(Emitter, emitter).run(body, *given.split(body, memrefs), Storage(memrefs[n], 0, alignment))
        k.emit("func.return", [], [])

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

    def launch(self, planned: PlannedOp, places: StorageMap, arena: Storage, final: bool = False) -> None:
        for i, step in enumerate(planned.steps):
            if self.is_done(planned, step, places):
                continue
            memrefs = [
                self.typed(places[x] if isinstance(x, Value) else arena.shifted(x), aval)
                for x, aval in operands_of(planned, step)
            ]
            if step.function in self.module.asking:
                assert self.told is not None
                memrefs.append(self.told.memref)

            waits = not (final and i + 1 == len(planned.steps))
            run = functools.partial(self._run, step, memrefs, waits)
            if (elsewhere := self._is_elsewhere(planned, step, places)) is None:
                run()
            else:
                self.k.when(elsewhere, run)

    def _run(self, step: ScheduledKernel, memrefs: Sequence[Any], waits: bool) -> None:
        self._share(step.function, memrefs, step.split.extent, step.split.grain, step.numbers)
        if waits:
            self.wait()

    def _is_elsewhere(self, planned: PlannedOp, step: Any, places: StorageMap) -> Scalar | None:
        """Whether an argument that a step copies to a result is not there already: it was given up, and lies where the
        result is to be. None: it is known not to be."""
        if not (step.copies and step.in_place):
            return None
        ((i, j),) = step.in_place
        source, target = origin(planned.op.operands[i]), planned.op.results[j]
        if (source, target) not in self.shared:
            return None
        return self.k.address_of(places[source].memref).ne(self.k.address_of(places[target].memref))

    def _share(
        self, function: str, memrefs: Sequence[Any], extent: int, grain: int, numbers: Sequence[int] = ()
    ) -> None:
        """Call a kernel for this member's part of its range. `numbers`: its further arguments."""
        key = self.me.mlir, self.members.mlir, extent, grain
        lo, hi = self._once(key, lambda: share(self.k, self.me, self.members, extent, grain))
        self.k.call(function, memrefs, lo, hi, *(self.k.const(n, int64) for n in numbers))

    def typed(self, place: Storage, aval: Aval) -> Any:
        """The memref of an array's elements, which must lie in the memory that it is a part of."""
        if isinstance(place.offset, int) and not 0 <= place.offset <= place.memref.type.shape[0] - aval.nbytes:
            raise AssertionError(f"{aval} at byte {place.offset} does not fit into {place.memref.type}")
        if self.k.checks is not None and isinstance(place.offset, Scalar):
            place = Storage(place.memref, self.k.in_range(place.memref, place.offset, aval), place.alignment)
        if isinstance(place.offset, int):
            key = place.memref, place.offset, aval
            return self._once(key, lambda: super(Emitter, self).typed(place, aval))
        return super().typed(place, aval)

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made before where it can still be seen, else what `make` makes."""
        found: Any = self.k.lookup(key)
        if found is None:
            found = self.k.scopes[-1][key] = make()
        return found

    def copy(self, source: Storage, target: Storage, nbytes: int) -> None:
        if nbytes:
            name = _copy_kernel(self.module, nbytes)
            self._share(name, [self.raw(source, nbytes), self.raw(target, nbytes)], nbytes, COPY_GRAIN)

    def settle(self, source: Storage, target: Storage, nbytes: int) -> None:
        memref = self.raw(target, nbytes)
        elsewhere = self.k.address_of(source.memref).ne(self.k.address_of(memref))
        self.k.when(elsewhere, functools.partial(self.copy, source, Storage(memref, 0), nbytes))

    def enter_loop(self, planned: PlannedOp) -> Polling | None:
        return Polling(self.k, planned.work / trips(planned.op)) if planned.long else None

    def goes_on(self, again: Scalar, entered: Polling) -> Scalar:
        self._ask(entered)
        return again & ~self.stopped.read()

    def count(
        self, length: int, state: Sequence[Any], body: Callable[..., list[Any]], entered: Polling | None
    ) -> None:  # fmt: skip
        if entered is None:
            super().count(length, state, body, entered)
            return
        k = self.k
        types = [k.type(INDEX), *(v.type for v in state)]
        operation = k.emit("scf.while", [k.const(0, INDEX), *state], types, regions=2)
        for region, end in zip(operation.regions, ("scf.condition", "scf.yield")):
            block = mlir.ir.Block.create_at_start(region, types, [k.location] * len(types))
            i, *inner = block.arguments
            at = Scalar(k, i, INDEX)
            with k.inside(block):
                if end == "scf.condition":
                    k.emit(end, [self.goes_on(at < length, entered), at, *inner], [])
                else:
                    k.emit(end, [at + 1, *body(at, *inner)], [])

    def _ask(self, entered: Polling) -> None:
        """Now and then the first member asks Python whether to go on, and tells the others."""
        k, zero, told = self.k, self.k.const(0, INDEX), self.told
        assert told is not None

        def ask() -> None:
            k.when(self.me.eq(zero), lambda: k.write(k.convert(poll(self.module, k), int64), told, zero))
            self.wait()
            self.stopped.write(k.read(told, zero).ne(k.const(0, int64)))
            self.wait()

        k.when(entered.due(k), ask)


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
