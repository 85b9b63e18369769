"""A compiled function met with new sizes: it runs op by op, as far as there are no kernels for all sizes (`strided`),
until its program pays, as lazy graphs do (see `tiers`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from smelt.backends.buffer import pool
from smelt.ir import locks
from smelt.ir.errors import OutOfMemoryError
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, Executable
from smelt.runtime.device import host_of

from ..graph import GraphFunction, RecordedNode
from . import direct, strided, tiers
from .programs import kept_program, program_in_background
from .rolled import rolled
from .short_runs import SHORT, UNMEASURED, ShortRuns
from .subgraphs import executables
from .work import work

if TYPE_CHECKING:
    from smelt.runtime.background import Pending

    from .changing import Timed


class _Recorded:
    """A recorded function, found when it is first asked for: what would be compiled of it, and what it costs.

    Args:
        find: gives the function.
        ops: the same op by op.
    """

    def __init__(self, find: Callable[[], GraphFunction], ops: OpProgram, device: Device):
        self._find, self._ops, self._device = find, ops, device
        self._function: GraphFunction | None = None
        self._rolled: Sequence[RecordedNode] | None = None
        self._costs: tuple[int, float, float] | None = None

    @property
    def function(self) -> GraphFunction:
        found = self._function
        if found is None:
            found = self._function = self._find()
        return found

    @property
    def rolled(self) -> Sequence[RecordedNode]:
        """What would be compiled."""
        if self._rolled is None:
            self._rolled = rolled(self.function.body, self.function.outputs)[0]
        return self._rolled

    @property
    def costs(self) -> tuple[int, float, float]:
        """How many ops there are at least, and what they take, in element operations and by NumPy."""
        if self._costs is None:
            body = self.function.body if self._ops.costs is None else ()
            self._costs = self._ops.costs or (tiers.fewest(body), work(body), tiers.op_by_op_seconds(body))
        return self._costs

    @property
    def count(self) -> int:
        """How many ops there are to compile."""
        if self._ops.costs is None:
            self._ops.costs = (tiers.to_compile(self.rolled), *self.costs[1:])
        return self._ops.costs[0]

    def kept(self) -> Executable | None:
        """Its program, if it is on disk."""
        f = self.function
        return kept_program(f.parameters, f.body, f.outputs, self._device, f.name)

    def begin(self) -> Pending | None:
        """Its program, from another process, if one can compile it."""
        f = self.function
        return program_in_background(f.parameters, f.body, f.outputs, self._device, f.name)


class TieredExecutable(Executable):
    """A recorded function that runs op by op until its program pays.

    Args:
        function: gives the function.
        ops: the same op by op.
        make: compiles it.
        passing: whether it is likely to run once only: then no other process compiles it for later runs.
        key: what it computes, if its program was asked for: others that compute the same, of functions made anew for
            each call, say, have the same program, and all that they have taken counts. Another process begins sooner.
    """

    def __init__(
        self, function: Callable[[], GraphFunction], ops: OpProgram, device: Device, make: Callable[[], Executable],
        passing: bool = False, key: Hashable | None = None,
    ):  # fmt: skip
        super().__init__(ops.arguments, ops.results)
        self._recorded = _Recorded(function, ops, device)
        self._ops, self._device, self._host, self._make = ops, device, host_of(device), make
        self._key, self._lock = key, locks.lock()
        if key is None:
            self._structure = tiers.Structure()
            self._structure.can_wait = not passing
        else:
            self._structure = tiers.structures.get_or_make(key, tiers.Structure)
            self._structure.asked = True
        self._passing = passing
        self._program: Executable | None = None
        self._strided: OpProgram | None = None
        self._timed_plan: Timed | None = None
        self._measured = 0  #: runs op by op
        self._short: ShortRuns | None = None

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        short = self._short
        if short is not None and self._program is None and short.may_run():
            return short.run(inputs)
        return self.run_donated(inputs, ())

    @property
    def nbytes(self) -> int:
        return self._program.nbytes if self._program is not None else 1_000 * len(self._ops)

    @property
    def is_step(self) -> bool:
        return self._device.tiers and self._device.is_host and self._ops.is_pure

    @property
    def donatable(self) -> frozenset[int]:
        # What runs op by op after all writes over nothing.
        return self._program.donatable if self._program is not None else frozenset()

    def run_donated(self, inputs: Sequence[Buffer], donated: Collection[int]) -> list[Buffer]:
        structure, tier = self._structure, settings.tier
        if pool.limit and tier != "ops" and pool.expect(0, sum([aval.nbytes for aval in self.results])):
            tier = "program"  # it notices where the results are more than the limit allows
        if tier in ("auto", "strided") and self._host is not self._device and not tiers.are_near(inputs):
            found = self._run_plan(inputs)
            if found is not None:
                return found
            tier = "program"
        if tier in ("ops", "strided"):
            return self._run_ops(inputs)
        program = self._program or self._made(tier)
        if program is None or (structure.prefers_ops and tier == "auto"):
            found = structure.run_ops(lambda: self._run_ops(inputs))
            self._measured += 1
            if self._measured > UNMEASURED and structure.ops_seconds < SHORT:
                self._short = self._short_runs()
            if self._passing:  # it is met again
                structure.can_wait, self._passing = True, False
            return found
        return structure.run_program(lambda: program.run_donated(inputs, donated) if donated else program.run(inputs))

    def _run_plan(self, inputs: Sequence[Buffer]) -> list[Buffer] | None:
        """By the plan that there is on a device whose memory is its own, for sizes that are not the first; None: there
        is none, it has taken what a compile takes, or its memory does not suffice, which that of a program may."""
        if self._key is not None or self._program is not None:
            return None
        with self._lock:
            plan = self._timed_plan
            if plan is None:
                changing = locks.loaded("smelt.lazy.execution.changing")
                plan = self._timed_plan = changing.plan_of_ops(self._ops, self._device)
        if plan.pays(lambda: self._recorded.count):
            with contextlib.suppress(OutOfMemoryError):
                return plan.run(inputs)
        return None

    def _made(self, tier: str) -> Executable | None:
        """The program, if there is one now: always with the tier ``program``, else when it pays."""
        with self._lock:
            if self._program is None and tier == "program":
                self._program = self._make()
            elif self._program is None:
                if self._has_groups:
                    self._grouped()
                fewest, _, seconds = self._recorded.costs
                rests = self._structure.rests
                if not (rests(fewest, seconds) or rests(self._recorded.count, seconds)):
                    self._program = self._due()
            return self._program

    def _due(self) -> Executable | None:
        """The program, if the next run is one too many without."""

        def due() -> Executable | None:
            recorded = self._recorded
            return self._structure.program(recorded.rolled, recorded.kept, recorded.begin, self._make)

        return due() if self._key is None else executables.get_or_wait(self._key, due)

    @property
    def _has_groups(self) -> bool:
        """Whether it runs in groups: not if all of it computes less than what is worth a kernel, or takes less than it
        takes to look for groups. A family has looked for those of all sizes."""
        _, cost, seconds = self._recorded.costs
        if cost < strided.SMALL:
            return False
        known = self._strided is not None or self._ops.origin is not None
        return known or tiers.groups_pay(seconds, len(self._ops), self._structure.spent)

    def _run_ops(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        tier = settings.tier
        ops = self._ops if tier == "ops" or (tier == "auto" and not self._has_groups) else self._grouped()
        found = ops.run([b.array for b in inputs])
        return [direct.as_buffer(np.asarray(x), aval) for x, aval in zip(found, self.results)]

    def _short_runs(self) -> ShortRuns | None:
        """What the next runs are, if they go as the last one did, on the host and in no groups."""
        if self._host is not self._device or self._strided is not None or self._has_groups:
            return None
        known = self._short
        if known is None:
            return ShortRuns.of(self._ops, self._structure)
        return known.again()

    def _grouped(self) -> OpProgram:
        """The ops, in groups where they can be."""
        found = self._strided
        if found is None:
            if self._key is None:
                found = strided.program_of(self._ops, self._host)
            else:
                found = strided.grouped(self._key, self._ops, self._host)
            self._strided = found
        self._structure.runs_by(*strided.state_of(found))
        return found


def executable_of(
    function: Callable[[], GraphFunction], find_ops: Callable[[], OpProgram | None], device: Device,
    make: Callable[[], Executable], first: bool, passing: bool = False,
) -> Executable:  # fmt: skip
    """What runs a recorded function: op by op until its program pays, where that can be; else its program.

    Args:
        function: gives it. find_ops: gives it op by op, if that can be.
        make: compiles it.
        first: whether a program was asked for, and not one for other sizes: that is made at once where it soon pays,
            or is on disk.
        passing: whether it is likely to run once only.
    """
    tier = settings.tier if device.tiers else "program"
    if tier == "program":
        return make()
    if not (device.is_host or tiers.is_portable(function().body)):
        return make()
    key = None
    if first and not passing and tier == "auto":
        f = function()
        key = (f.key, device.name, settings.of_programs, settings.dump_ir, settings.debug)
        known = executables.get(key)
        if known is not None:
            return known
        if tiers.structures.get(key) is None:
            body = f.body
            if tiers.pays_at_once(body, tiers.fewest(body)) and tiers.pays_at_once(
                body, tiers.to_compile(rolled(body, f.outputs)[0])
            ):
                return executables.get_or_wait(key, make)
            kept = kept_program(f.parameters, f.body, f.outputs, device, f.name)
            if kept is not None:
                executables.put(key, kept)
                return kept
    ops = find_ops()
    return make() if ops is None else TieredExecutable(function, ops, device, make, passing, key)
