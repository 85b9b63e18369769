"""Programs that run op by op on a device whose memory is its own: for sizes that keep changing.

A *plan* is made for the shapes of a program. Groups of ops (`smelt.ir.strided`) are kernels that serve all sizes;
views are made when it is planned, and take no time when it runs; concatenations and paddings are copies into parts of
their results. Every other op is a program of its own, compiled for its sizes when these are met first.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from smelt.backends.strided import Laid, PlannedLaunch
from smelt.ir import dtypes, mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import new_function
from smelt.ir.dialect import context
from smelt.ir.op import Op
from smelt.ir.op_program import OpProgram, Step
from smelt.ir.ops.contract import DotGeneral
from smelt.ir.ops.indexing import Scatter
from smelt.ir.ops.movement import Assembly, Reshape
from smelt.ir.plain import PlainError
from smelt.ir.settings import settings
from smelt.ir.strided import with_layout
from smelt.ir.strided_layout import StridedLayout, viewed
from smelt.ir.symbolic import has_symbol
from smelt.runtime import Buffer, Device, Executable, LruCache, explain
from smelt.runtime.compile import compile_module

from ..static_keys import attribute_key
from .as_groups import WAYS, Product, copy_of, scatter_text
from .fragments import Fragment, Launch, Placed, Recorder, Table, constants, fragments, key_of
from .plan_parts import parts_of
from .strided import Kernel, StridedProgram, StridedStep, kernels

#: Why something is compiled, for `smelt.explain`.
_REASON = "sizes change"
#: Programs of single ops, by op, attributes and types.
_single = LruCache(weigh=lambda program: program.nbytes)
#: Multiplications from which on a product is the work of the device's library, where there is one.
LIBRARY_WORK = 1 << 20
#: Updates of a scatter, which are applied one after the other, at most: more are worth a program.
MOST_UPDATES = 1 << 16
#: Bytes of a constant that plans share, at most.
MOST_SHARED = 1 << 14
#: Plans that have an op with certain sizes as a kernel for all. The next one gets a program for these sizes.
MANY = 1024


def can_run(program: OpProgram, device: Device) -> bool:
    """Whether a program can run so: it has no loops, branches and calls, nothing that was written for a device, nothing
    whose errors tell a line, and no numbers that the device's kernels have not."""
    strided = device.strided
    if strided is None:
        return False
    for op in {step.op for step in program.steps}:
        if not op.pure or op.kind in ("control", "call", "opaque") or op.tells_line:
            return False
    used = {a.dtype for a in program.arguments}
    used.update([r.aval.dtype for step in program.steps for r in step.view.results])
    return all(map(strided.takes, used))


class DevicePlan:
    """A program for certain shapes.

    Args:
        program: what it does; see `can_run`.
        device: one with `Device.strided`.

    Attributes:
        steps: in order.
    """

    def __init__(self, program: OpProgram, device: Device):
        assert device.strided is not None
        self._device, self._kernels = device, device.strided
        self._memories: list[Aval] = []
        self._constants: dict[int, Buffer] = {}
        self.steps: list[Launch] = []
        self._of_programs = device.name, settings.of_programs
        self._fragments: set[Fragment] = set()
        self._is_frequent = self._without = False  #: of the op that is being planned
        grouped = StridedProgram(program, device, single=True)
        frame: list[Any] = [None] * len(grouped.frame)
        for i, aval in enumerate(grouped.arguments):
            frame[i] = self._fresh(aval)
        for i, x in enumerate(grouped.frame):
            if x is not None:
                frame[i] = self._constant(x)
        self._inputs = len(grouped.arguments)
        for step in grouped.steps:
            read = [frame[i] for i in step.read]
            is_group = isinstance(step.view, StridedStep)
            found = self._group_kept(step.view, read) if is_group else self._op_kept(step, read)
            frame[step.first : step.first + len(found)] = found
        self._results = [self._whole(frame[i]) for i in grouped.returns]
        lasting = {*range(self._inputs), *self._constants, *(x.memory for x in self._results)}
        nbytes = [aval.nbytes for aval in self._memories]
        self._parts = parts_of(self._ready(), self._kernels, nbytes, lasting)
        for fragment in self._fragments:
            fragment.plans += 1

    @property
    def nbytes(self) -> int:
        return 2_000 * len(self.steps) + sum(b.aval.nbytes for b in self._constants.values())

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        """The results of buffers."""
        memory = self._device.memory
        held: list[Buffer | None] = [None] * len(self._memories)
        for i, buffer in self._constants.items():
            held[i] = buffer
        held[: len(inputs)] = [memory.adopt(b) for b in inputs]
        for part in self._parts:
            if part.sequence is not None:
                part.sequence.run([self._buffer(held, i) for i in part.sequence.given])
            elif part.step is not None:
                self._run_step(part.step, held)
            for i in part.dead:
                held[i] = None
        return [self._buffer(held, x.memory).reshaped(x.aval) for x in self._results]

    def _run_step(self, step: PlannedLaunch, held: list[Buffer | None]) -> None:
        program = step.program
        if step.table is None:
            taken = [self._buffer(held, i).reshaped(a) for i, a in zip(step.read, program.arguments)]
            for i, buffer in zip(step.written, program.run(taken)):
                held[i] = buffer
        else:
            read, written = ([self._buffer(held, i) for i in numbers] for numbers in (step.read, step.written))
            self._kernels.launch(program, [step.table, *read], written)

    def _buffer(self, held: list[Buffer | None], i: int) -> Buffer:
        """A memory, which is made when it is first written, or never where it has no elements."""
        found = held[i]
        if found is None:
            found = held[i] = self._device.memory.empty(self._memories[i])
        return found

    # Memory

    def _fresh(self, aval: Aval) -> Placed:
        self._memories.append(aval)
        return Placed(len(self._memories) - 1, aval, StridedLayout.contiguous(aval.shape))

    def _constant(self, x: Any) -> Placed:
        """An array of the host, whose elements are kept once."""
        x = np.asarray(x)
        kept = np.ascontiguousarray(x[tuple(slice(1) if not step and n > 1 else slice(None)
                                            for step, n in zip(x.strides, x.shape))])  # fmt: skip
        aval = Aval(kept.shape, dtypes.of(kept.dtype))
        found = self._fresh(aval)
        self._constants[found.memory] = self._kept_constant(kept, aval)
        strides = [0 if n != m else step for n, m, step in zip(x.shape, kept.shape, found.place.strides)]
        return Placed(found.memory, aval.with_shape(x.shape), StridedLayout(0, tuple(strides)))

    def _ready(self) -> list[PlannedLaunch]:
        """The steps, for which what was missing is compiled and sent, all at once."""
        kernels = {id(step.program): step.program for step in self.steps if isinstance(step.program, Kernel)}
        with explain.because(_REASON):
            for kernel in kernels.values():
                if kernel.executable is None:
                    kernel.look(True, prepare=False)
        programs: list[Any] = [
            step.program.executable if isinstance(step.program, Kernel) else step.program for step in self.steps
        ]
        self._kernels.prepare(list({id(x): x for x in programs}.values()))
        tables = {id(step.table): step.table for step in self.steps if step.table is not None}
        unsent = [table for table in tables.values() if table.buffer is None]
        sent = self._kernels.sent([table.numbers for table in unsent]) if unsent else []
        for table, buffer in zip(unsent, sent):
            table.buffer = self._device.memory.adopt(buffer)
        return [
            PlannedLaunch(program, None if step.table is None else step.table.buffer, step.read, step.written)
            for step, program in zip(self.steps, programs)
        ]

    def _kept_constant(self, x: np.ndarray, aval: Aval) -> Buffer:
        """A constant on the device, which plans share if it is small."""

        def sent() -> Buffer:
            return self._device.memory.adopt(Buffer.of(x, aval))

        if aval.nbytes > MOST_SHARED:
            return sent()
        found: Buffer = constants.get_or_make((self._device.name, aval, x.tobytes()), sent)
        return found

    def _in_order(self, x: Placed, first: Sequence[int]) -> Placed:
        """The same array, whose elements lie in the order of its axes but for those that come first."""
        order = [*first, *(a for a in range(x.aval.ndim) if a not in first)]
        moved = x._replace(
            aval=x.aval.with_shape([x.aval.shape[a] for a in order]),
            place=StridedLayout(x.place.offset, tuple([x.place.strides[a] for a in order])),
        )
        found = self._fresh(moved.aval)
        self._copy(moved, found)
        strides = [found.place.strides[order.index(a)] for a in range(x.aval.ndim)]
        return found._replace(aval=x.aval, place=StridedLayout(0, tuple(strides)))

    def _whole(self, x: Placed) -> Placed:
        """The same elements in memory of their own, in order."""
        if x.is_whole and x.aval.size == self._memories[x.memory].size:
            return x
        found = self._fresh(x.aval)
        self._copy(x, found)
        return found

    # Steps

    def _group_kept(self, step: StridedStep, read: Sequence[Placed]) -> list[Placed]:
        what = step.group.text, step.group.axes, step.space, tuple(step.results), self._of_programs
        return self._kept(what, read, lambda: self._group(step, read))

    def _op_kept(self, step: Step, read: Sequence[Placed]) -> list[Placed]:
        op, attrs = step.op, step.attrs
        what = op, tuple([(k, attribute_key(v)) for k, v in attrs.items()]), self._of_programs
        return self._kept(what, read, lambda: self._op(op, attrs, read, self._avals(step, read)))

    def _avals(self, step: Step, read: Sequence[Placed]) -> list[Aval]:
        avals = [r.aval for r in step.view.results]
        if any(has_symbol(a.shape) for a in avals):
            return list(step.op.infer_checked([x.aval for x in read], step.attrs))
        return avals

    def _kept(self, what: Hashable, read: Sequence[Placed], make: Callable[[], list[Placed]]) -> list[Placed]:
        """The results of a step, as it was planned before, if its operands lay so then."""
        key = key_of(what, read, self._memories)
        known: Fragment | None = fragments.get(key)
        recorder = Recorder(tuple([x.memory for x in read]), len(self._memories))
        if known is not None and not (known.without_sizes and known.plans >= MANY):
            self._fragments.add(known)
            return self._placed(known, recorder)
        steps = len(self.steps)
        self._is_frequent, self._without = known is not None, False
        found = make()
        constants = {recorder.number(i): b for i, b in self._constants.items() if i >= recorder.first}
        made = Fragment(
            [recorder.launch(step) for step in self.steps[steps:]], self._memories[recorder.first :], constants,
            [x._replace(memory=recorder.number(x.memory)) for x in found], self._without,
        )  # fmt: skip
        fragments.put(key, made)
        self._fragments.add(made)
        return found

    def _placed(self, fragment: Fragment, recorder: Recorder) -> list[Placed]:
        """A fragment as part of this plan."""
        numbers = [*recorder.operands, *range(recorder.first, recorder.first + len(fragment.memories))]
        self._memories += fragment.memories
        for i, buffer in fragment.constants.items():
            self._constants[numbers[i]] = buffer
        for step in fragment.launches:
            read, written = tuple([numbers[i] for i in step.read]), tuple([numbers[i] for i in step.written])
            self.steps.append(Launch(step.program, step.table, read, written))
        return [Placed(numbers[i], aval, place) for i, aval, place in fragment.results]

    def _op(self, op: Op, attrs: dict[str, Any], read: Sequence[Placed], avals: Sequence[Aval]) -> list[Placed]:
        if len(read) == 1 and len(avals) == 1:
            place = viewed(op, attrs, read[0].place, read[0].aval, avals[0])
            if place is not None:
                return [Placed(read[0].memory, avals[0], place)]
        if isinstance(op, Reshape) and avals[0].size:
            return self._op(op, attrs, [self._whole(read[0])], avals)
        if not read and op.kind == "movement":
            return [self._constant(op.reference(**attrs))]
        if isinstance(op, Assembly):
            found = self._fresh(avals[0])
            for piece in op.pieces([x.aval for x in read], **attrs):
                self._fill(read[piece.operand], found, piece.start, piece.step)
            return [found]
        if not any(aval.size for aval in avals):
            return [self._fresh(aval) for aval in avals]
        ways = (self._library_product, self._without_sizes, self._scatter, self._program)
        return next(filter(None, (way(op, attrs, read, avals) for way in ways)))

    def _library_product(
        self, op: Op, attrs: Mapping[str, Any], read: Sequence[Placed], avals: Sequence[Aval]
    ) -> list[Placed]:  # fmt: skip
        """A product by the device's library; nothing for other ops, for little work, and where there is none."""
        if not isinstance(op, DotGeneral):
            return []
        product = Product.of(op, attrs, [x.aval for x in read], [x.place for x in read])
        if product.size < LIBRARY_WORK or product.has_vector:
            return []
        loops = product.matrices()
        if loops is None:
            batches = op.loops(*(x.aval.ndim for x in read), **attrs)[0]
            read = [self._in_order(x, [axes[i] for axes in batches]) for i, x in enumerate(read)]
            loops = Product.of(op, attrs, [x.aval for x in read], [x.place for x in read]).matrices()
            if loops is None:
                return []
        batch, rows, columns, depth = loops
        strides = [(batch.left, rows.left, depth.left), (batch.right, depth.right, columns.right)]
        operands = [(self._memories[x.memory], StridedLayout(x.place.offset, s)) for x, s in zip(read, strides)]
        extents = batch.extent, rows.extent, columns.extent, depth.extent
        program = self._kernels.product(read[0].aval.dtype, avals[0].dtype, extents, operands)
        if program is None:
            return []
        found = self._fresh(avals[0])
        self.steps.append(Launch(program, None, _memories(read), _memories([found])))
        return [found]

    def _without_sizes(
        self, op: Op, attrs: Mapping[str, Any], read: Sequence[Placed], avals: Sequence[Aval]
    ) -> list[Placed]:  # fmt: skip
        """An op as a kernel for all sizes; nothing where there is none, or where its sizes are worth a program."""
        taken, places = [x.aval for x in read], [x.place for x in read]
        group = None
        with contextlib.suppress(PlainError):  # an attribute that no text holds
            group = next(filter(None, [way(op, attrs, taken, places) for way in WAYS]), None)
        if group is None or self._is_frequent:
            return []
        self._without = True
        found = self._fresh(avals[0])
        results = [Laid(found.place, not group.axes)]
        binding = self._kernels.bind(group.space, group.axes, group.operands, results, group.gathered)
        if binding is None:
            return []
        self._launch(group.text, 2, binding, read, [found])
        return [found]

    def _scatter(
        self, op: Op, attrs: Mapping[str, Any], read: Sequence[Placed], avals: Sequence[Aval]
    ) -> list[Placed]:  # fmt: skip
        """A scatter as a kernel for all sizes, if its windows extend along no indexed axis."""
        if not isinstance(op, Scatter) or self._is_frequent or not attrs["axes"]:
            return []
        x, updates, *indices = read
        lead, axes = updates.aval.ndim - x.aval.ndim, attrs["axes"]
        count, window = math.prod(updates.aval.shape[:lead]), updates.aval.shape[lead:]
        if not (updates.aval.size and count <= MOST_UPDATES and all(window[a] == 1 for a in axes)):
            return []
        found = self._fresh(avals[0])
        places = [(x.aval.shape[a] - 1, found.place.strides[a]) for a in axes]
        binding = self._kernels.scatter(attrs["mode"], count, window, found.place.strides, places)
        if binding is None:
            return []
        self._without = True
        self._copy(x, found)
        given = [self._whole(v) for v in (updates, *indices)]
        self._launch(scatter_text([v.aval.dtype for v in given]), 2, binding, given, [found])
        return [found]

    def _fill(self, x: Placed, target: Placed, start: Sequence[int], step: Sequence[int]) -> None:
        if not x.aval.ndim and target.aval.ndim:
            x = x._replace(aval=target.aval, place=StridedLayout(x.place.offset, (0,) * target.aval.ndim))
        self._copy(x, target._replace(place=target.place.part(start, step)))

    def _program(
        self, op: Op, attrs: Mapping[str, Any], read: Sequence[Placed], avals: Sequence[Aval]
    ) -> list[Placed]:  # fmt: skip
        """A program of a single op, for its sizes."""
        read = [self._whole(x) for x in read]
        found = [self._fresh(aval) for aval in avals]
        program = _program_of(op, attrs, [x.aval for x in read], self._device)
        self.steps.append(Launch(program, None, _memories(read), _memories(found)))
        return found

    def _group(self, step: StridedStep, read: Sequence[Placed]) -> list[Placed]:
        group = step.group
        found = [self._fresh(Aval(shape, dtype)) for shape, dtype in step.results]
        operands = [Laid(x.place, full) for x, full in zip(read, group.operands.values())]
        results = [Laid(x.place, full) for x, full in zip(found, group.gives)]
        binding = self._kernels.bind(step.space, group.axes, operands, results)
        if binding is None:
            read = [self._whole(x) for x in read]
            operands = [Laid(x.place, full) for x, full in zip(read, group.operands.values())]
            binding = self._kernels.bind(step.space, group.axes, operands, results)
        if binding is None:
            return self._one_by_one(step, read)
        self._launch(group.text, group.ops, binding, read, found)
        return found

    def _one_by_one(self, step: StridedStep, read: Sequence[Placed]) -> list[Placed]:
        """A group that works on more arrays than a kernel may."""
        values = dict(zip(step.group.operands, read))
        for item in step.items:
            operands = [values[i] for i in item.read]
            avals = item.op.infer_checked([x.aval for x in operands], dict(item.attrs))
            (values[item.slot],) = self._op(item.op, dict(item.attrs), operands, avals)
        return [values[slot] for slot in step.group.results]

    def _copy(self, x: Placed, target: Placed) -> None:
        """Let elements lie elsewhere, too."""
        if not x.aval.size:
            return
        group = copy_of(x.aval, x.place)
        binding = self._kernels.bind(group.space, 0, group.operands, [Laid(target.place, True)])
        assert binding is not None, "two arrays, none of whose axes are reduced, can always be bound"
        self._launch(group.text, 1, binding, [x], [target])

    def _launch(
        self, text: str, ops: int, binding: Any, read: Sequence[Placed], written: Sequence[Placed]
    ) -> None:  # fmt: skip
        device = self._device
        name = (text, binding.layout, device.name, settings.of_programs)
        kernel = kernels.get_or_make(name, lambda: Kernel(with_layout(text, binding.layout), ops, device))
        self.steps.append(Launch(kernel, Table(binding.table), _memories(read), _memories(written)))


def _memories(arrays: Iterable[Placed]) -> tuple[int, ...]:
    return tuple([x.memory for x in arrays])


def _key(op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval], device: Device) -> Hashable:
    """What a program of a single op is found by."""
    return op, tuple([(k, attribute_key(v)) for k, v in attrs.items()]), *avals, device.name, settings.of_programs


def _program_of(op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval], device: Device) -> Executable:
    def make() -> Executable:
        with explain.because(_REASON):
            return compile_module(_module_of(op, attrs, avals), device, name=f"smelt.{op.name}", prepare=False)

    found: Executable = _single.get_or_wait(_key(op, attrs, avals, device), make)
    return found


def _module_of(op: Op, attrs: Mapping[str, Any], avals: Sequence[Aval]) -> Any:
    """A module whose ``@main`` is an op."""
    with mlir.lock:
        module = mlir.ir.Module.create(mlir.ir.Location.unknown(context()))
        results = op.infer_checked(avals, dict(attrs))
        _, arguments, b = new_function(module, "main", list(avals), list(results), public=True)
        b.return_(list(b.emit(op, arguments, dict(attrs))))
        return module
