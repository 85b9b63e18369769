"""Programs that run op by op, with kernels without sizes in place of runs of ops.

What `OpProgram` does op by op, `StridedProgram` does with the groups of `smelt.ir.strided` as steps. A group runs by
its kernel where that is there, else op by op. What groups of one kernel take op by op is added up, whatever their
sizes; when that comes to what a compile costs, another process compiles the kernel, which then serves all sizes.

With the setting `tier` = ``strided`` kernels are compiled at once, in place, and always used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.backends.strided import LINE, Binding, bind
from smelt.ir import dtypes, host_calls, locks, symbolic
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.host_memory import contiguous
from smelt.ir.op import Op
from smelt.ir.op_program import OpProgram, Step, plain_rule
from smelt.ir.settings import settings
from smelt.ir.strided import READER, Item, StridedGroup, module_of, strided_groups, with_layout
from smelt.ir.symbolic import has_symbol
from smelt.runtime import Device, Executable, LruCache, explain
from smelt.runtime.compile import compile_anew, looks_on_disk
from smelt.runtime.pipelines import WITHOUT_SIZES

from ..graph import GraphFunction
from . import direct, tiers

if TYPE_CHECKING:
    from smelt.ir.values import OpView
    from smelt.runtime.background import Pending

#: Groups that compute fewer elements, all ops together, run op by op: a call of a kernel takes longer.
SMALL = 16 * 1024
#: Steps of a program in which groups are looked for.
MOST_STEPS = 20_000
#: Bindings that a step remembers, for operands that lie in other ways.
_MOST_BINDINGS = 8


class Kernel:
    """A kernel without sizes, or what is known of it so far.

    Attributes:
        executable: the kernel, as soon as it is there.
        spent: seconds that its groups have taken op by op.
    """

    def __init__(self, text: str, ops: int, device: Device):
        self.executable: Executable | None = None
        self.spent = 0.0
        self._text, self._ops, self._device = text, ops, device
        self._pending: Pending | None = None
        self._is_asked = False
        self._lock = locks.lock()

    @property
    def nbytes(self) -> int:
        return 4 * len(self._text) + (self.executable.nbytes if self.executable is not None else 1_000)

    def look(self, at_once: bool, prepare: bool = True) -> None:
        """See whether it is there now; have it compiled, if that pays.

        Args:
            at_once: whether to compile it here, if need be. prepare: and whether to make it ready to run then.
        """
        with self._lock:
            if self.executable is not None:
                return
            if at_once:
                self.executable = self._find() or self._made(prepare)
            elif self._pending is not None:
                if self._pending.ready():
                    with explain.because(self._reason):
                        self.executable = self._pending.program()
                    self._pending = None
            elif not self._is_asked and self.spent >= tiers.BESIDE * tiers.cost.seconds(self._ops, self._device):
                self._is_asked = True
                self._pending = self._begin()

    @property
    def _reason(self) -> str:
        return f"its ops have taken {self.spent * 1e3:.0f} ms, in all sizes"

    def _begin(self) -> Pending | None:
        pending = locks.loaded("smelt.runtime.background").submit(self._recipe())
        if pending is not None:
            pending.subject = self._subject()
        return pending

    def _recipe(self) -> Any:
        kept = locks.loaded("smelt.runtime.kept")
        return kept.Recipe(self._text, self._device, reader=READER, pipeline=WITHOUT_SIZES)

    def _find(self) -> Executable | None:
        found = self._recipe().find() if self._is_kept else None
        if found is not None:
            explain.note(self._subject(), found, self._device)
        return found

    def _made(self, prepare: bool) -> Executable:
        module, subject = module_of(self._text), self._subject()
        made = compile_anew(module, self._device, WITHOUT_SIZES, subject=subject, prepare=prepare)
        if self._is_kept:
            self._recipe().keep(made)
        return made

    @property
    def _is_kept(self) -> bool:
        """Whether it is on disk, too."""
        return looks_on_disk() and self._device.portable is not None

    def _subject(self) -> explain.Subject:
        return explain.Subject(NAME, self._ops, "")


#: What `explain` calls such kernels.
NAME = "kernel for all sizes"
#: By text, layout, device and checks.
kernels = LruCache(weigh=lambda kernel: kernel.nbytes)


class StridedStep:
    """A group as a step of a program, for certain sizes.

    Args:
        group: what it computes. last: its last op, for errors.
        space, results: the shapes of its full values and of its results.
        items: its ops with their attributes.

    Attributes:
        op, location: for errors. label: for profiles.
        group, space, items: as given. results: shapes and dtypes.
    """

    def __init__(
        self, group: StridedGroup, dtypes_of_results: Sequence[DType], last: OpView, space: tuple[int, ...],
        results: Sequence[tuple[int, ...]], items: Sequence[Item], device: Device,
    ):  # fmt: skip
        self.op: Op = last.op
        self.label = "group_" + "_".join(dict.fromkeys(item[0].name for item in items if item[0].flops > 0))
        self._last, self._device, self.group = last, device, group
        self.space, self.items = space, items
        self.results = list(zip(results, dtypes_of_results))
        self._work = group.ops * math.prod(space)
        self._bindings: dict[Any, tuple[Binding, Kernel]] = {}
        self._calls: list[host_calls.Call] | None = None  #: what runs it op by op, on a frame with its operands first
        self._returns: list[int] = []

    @property
    def has_kernel(self) -> bool:
        """Whether a kernel computes it; not where it is too small for one."""
        return self.group.has_kernel and self._work >= SMALL

    @property
    def location(self) -> Any:
        return self._last.location

    def run(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, by the kernel if it is there."""
        at_once = settings.tier == "strided"
        if self._work < SMALL and not at_once:
            return self._run_ops(operands)
        binding, kernel = self._bound(operands)
        if kernel.executable is None:
            kernel.look(at_once)
            if kernel.executable is None:
                start = time.thread_time()
                found = self._run_ops(operands)
                kernel.spent += time.thread_time() - start
                return found
        return self._run_kernel(kernel.executable, binding, operands)

    def _bound(self, operands: Sequence[np.ndarray]) -> tuple[Binding, Kernel]:
        key = tuple([x.strides for x in operands])
        found = self._bindings.get(key)
        if found is None or not all(x.flags.aligned for x in operands):
            group = self.group
            binding = bind(self.space, group.axes, operands, list(group.operands.values()), group.gives)
            name = (group.text, binding.layout, self._device.name, settings.of_programs)
            kernel = kernels.get_or_make(
                name, lambda: Kernel(with_layout(group.text, binding.layout), group.ops, self._device)
            )
            if len(self._bindings) >= _MOST_BINDINGS:
                self._bindings.clear()
            found = self._bindings[key] = binding, kernel
        return found

    def _run_kernel(self, kernel: Executable, binding: Binding, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.group.has_kernel = True
        arrays = list(operands)
        for i in binding.copied:
            arrays[i] = contiguous(arrays[i])
        results = [np.empty(shape, dtype.numpy) for shape, dtype in self.results]
        lines = kernel.arguments[1 + len(arrays) :]
        held: list[np.ndarray] = []

        def memory(threads: int) -> list[int]:
            width = threads * -(-binding.columns // LINE) * LINE
            held.extend([np.empty(width, aval.dtype.numpy) for aval in lines])
            return [_address(x) for x in held]

        addresses = [_address(x) for x in (binding.table, *arrays, *results)]
        kernel.run_at(addresses, self._work, memory)
        return results

    def _run_ops(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            if self._calls is None:
                return self._run_rules(operands)
            frame: list[Any] = [*map(np.asarray, operands), *[None] * (len(self.items) + 1)]
            host_calls.run(frame, self._calls)
            return [frame[i] for i in self._returns]

    def _run_rules(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results by the rules of ops; what to call for them from then on is noted."""
        place, frame = {slot: i for i, slot in enumerate(self.group.operands)}, list(operands)
        calls = host_calls.Calls()
        avals = [host_calls.aval_of(x) for x in operands]
        last = {slot: item for item in self.items for slot in item.read}
        for slot in self.group.results:
            last.pop(slot, None)
        for item in self.items:
            rule, read = plain_rule(item.op), tuple([place[slot] for slot in item.read])
            assert rule is not None
            found = np.asarray(rule(item.op, *[frame[i] for i in read], **item.attrs))
            place[item.slot] = len(frame)
            frame.append(found)
            avals.append(host_calls.aval_of(found))
            dead = tuple({place[slot] for slot in item.read if last.get(slot) is item})
            attrs, of_operands = dict(item.attrs), [avals[i] for i in read]
            calls.note(item.op, rule, attrs, None, of_operands, avals[-1], (read, place[item.slot], dead))
        self._returns = [place[slot] for slot in self.group.results]
        self._calls = calls.done(self._returns) if calls.fit else None
        return [frame[i] for i in self._returns]


def _address(x: np.ndarray) -> int:
    found: int = x.__array_interface__["data"][0]
    return found


#: Programs of graphs, by their structure.
_programs = LruCache(weigh=lambda program: program.nbytes)


def program_of_function(key: Any, f: GraphFunction, device: Device) -> OpProgram | None:
    """The program of a graph as a function, found by its structure; None where it cannot run op by op."""
    found = kept_program(key)
    if found is None:
        ops = direct.program_of(f, ())
        found = None if ops is None else grouped(key, ops, device)
    return found


def kept_program(key: Any) -> OpProgram | None:
    """The program of a structure, if it is there."""
    found: OpProgram | None = _programs.get(key)
    return found


def grouped(key: Any, program: OpProgram, device: Device) -> OpProgram:
    """`program_of`, kept by the structure."""
    found: OpProgram = _programs.get_or_wait(key, lambda: program_of(program, device))
    return found


def program_of(program: OpProgram, device: Device) -> OpProgram:
    """A program with groups as steps; the same one where it has none."""
    if len(program) > MOST_STEPS:
        return program
    found = StridedProgram(program, device)
    return found if found.groups else program


#: Held while groups are looked for on symbols: one writer at a time to what these write down.
_grouping = locks.lock()


def state_of(program: OpProgram) -> tuple[str, bool]:
    """What `explain` says of a program that `program_of` gave, and whether kernels compute all of its groups."""
    if not isinstance(program, StridedProgram):
        return "nothing in it is a kernel for all sizes", False
    groups = [step.view for step in program.steps if type(step.view) is StridedStep]
    made = sum([step.has_kernel for step in groups])
    return f"{made} of {len(groups)} kernels for all sizes are there", made == len(groups)


class StridedProgram(OpProgram):
    """An `OpProgram` whose ops run in groups, where they can.

    Args:
        program: what it does.
        single: whether a group may be one op, whatever it costs.

    Attributes:
        groups: how many there are.
    """

    def __init__(self, program: OpProgram, device: Device, single: bool = False):
        self.arguments, self.results = program.arguments, program.results
        self.run_function, self.functions, self.origin = program.run_function, program.functions, None
        layout, found = None, None
        if program.origin is not None:
            sized, values, folded = program.origin
            with _grouping:
                layout = sized.grouped.get(single)
                if layout is None:
                    layout = sized.grouped[single] = _Layout(sized, sized.numbers, single)
            found = layout.shapes(values)
        if layout is None or found is None:
            layout, folded = _Layout(program, single=single), frozenset()
            found = layout.shapes(())
        assert found is not None
        kept = iter(program.steps)
        steps = {place: next(kept) for place in range(layout.steps) if place not in folded}
        self.frame = program.frame + [None] * layout.more
        self.returns = layout.returns
        self.steps = []
        shapes = iter(found)
        for part, read, first, dead in layout.parts:
            if isinstance(part, int):
                if part in steps:
                    of = steps[part]  # as `_replace`, which takes three times as long
                    self.steps.append(Step(of.view, of.op, of.rule, of.attrs, read, first, dead))
                continue
            group, dtypes_of_results = part
            items = [Item(s.op, s.attrs, s.read, s.first) for s in [steps[i] for i in group.members]]
            space, results = next(shapes)
            last = steps[group.members[-1]].view
            step = StridedStep(group, dtypes_of_results, last, space, results, items, device)
            self.steps.append(Step(step, step.op, None, {}, read, first, dead))
        self.groups = layout.groups

    @property
    def is_pure(self) -> bool:
        return all(s.op.pure and (s.rule is not None or type(s.view) is StridedStep) for s in self.steps)

    def _noted(self) -> None:
        """Nothing: steps may come from a family, whose types have symbols, and groups name no values."""

    def _results(self, view: Any, attrs: dict[str, Any], operands: list[np.ndarray]) -> Sequence[np.ndarray]:
        if type(view) is StridedStep:
            return view.run([np.asarray(x) for x in operands])
        return super()._results(view, attrs, operands)


class _Layout:
    """The groups of a program, or of all programs of a family, and what lies in which slot.

    Args:
        numbers: the sizes of a family; None: those of the program are no symbols.
        single: as of `StridedProgram`.

    Attributes:
        parts: groups, with the dtypes of their results, and the numbers of other steps, in order; each with the slots
            that it reads, the first that it writes, and those that are emptied after it.
        returns: slots. more: how many there are beside those of the program.
        groups, steps: how many there are; steps of the program, before.
    """

    def __init__(self, program: OpProgram, numbers: symbolic.Program | None = None, single: bool = False):
        frame = program.frame
        constant = program.constant_steps
        avals: dict[int, Aval] = dict(enumerate(program.arguments))
        avals.update((i, _aval_of(x)) for i, x in enumerate(frame) if x is not None)
        sized = numbers is not None
        items = [_item(step, avals, place not in constant, sized) for place, step in enumerate(program.steps)]
        self.steps = len(items)
        found = strided_groups(items, avals, program.returns, single)
        chosen = [part for part in found if isinstance(part, StridedGroup)]
        self.groups = len(chosen)
        shapes = [(group.space, [avals[slot].shape for slot in group.results]) for group in chosen]
        self.shapes: Callable[..., Any] = lambda values: shapes
        if numbers is not None:
            run = numbers.compiled(shapes)
            self.shapes = lambda values: _run_guarded(run, values)
        moved: dict[int, int] = {}
        ends = len(frame)
        placed: list[tuple[Any, tuple[int, ...], int, int]] = []
        for part in found:
            if isinstance(part, StridedGroup):
                read = tuple([moved.get(i, i) for i in part.operands])
                moved.update(zip(part.results, range(ends, ends + len(part.results))))
                kinds = [avals[slot].dtype for slot in part.results]
                placed.append(((part, kinds), read, ends, len(part.results)))
                ends += len(part.results)
            else:
                step = program.steps[part]
                placed.append((part, tuple([moved.get(i, i) for i in step.read]), step.first, len(step.view.results)))
        self.more = ends - len(frame)
        self.returns = [moved.get(i, i) for i in program.returns]
        lasting = {i for i, x in enumerate(frame) if x is not None} | set(self.returns)
        for place in constant:
            step = program.steps[place]
            lasting.update(range(step.first, step.first + len(step.view.results)))
        self.parts: list[tuple[Any, tuple[int, ...], int, tuple[int, ...]]] = []
        for what, read, first, count in reversed(placed):
            dead = tuple({i for i in (*read, *range(first, first + count)) if i not in lasting})
            lasting.update(dead)
            self.parts.append((what, read, first, dead))
        self.parts.reverse()


def _run_guarded(run: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return run(*values)
    except ArithmeticError:
        return None


def _aval_of(x: Any) -> Aval:
    found = np.asarray(x)
    return Aval(found.shape, dtypes.of(found.dtype))


def _item(step: Step, avals: dict[int, Aval], joins: bool, sized: bool) -> Item:
    """A step as an item; `avals` gets those of its results. `sized`: whether these may have symbols."""
    found = [r.aval for r in step.view.results]
    if not sized and any(has_symbol(a.shape) for a in found):
        found = list(step.op.infer_checked([avals[i] for i in step.read], step.attrs))
    avals.update(zip(range(step.first, step.first + len(found)), found))
    return Item(step.op, step.attrs, step.read, step.first, joins)
