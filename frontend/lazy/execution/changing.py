"""Graphs on a device whose memory is its own: where they run, and plans in place of programs.

What is small runs op by op on the host, as everything does that is met for the first time (`tiers`). It moves to the
device when it reads much that lies there, or when graphs with the same ops have taken longer on the host than kernels
take to compile. There it runs by a plan (`device_plan`), whose kernels serve all sizes, until what that has taken comes
to what a program for its sizes takes to compile; and until another process has compiled that, if one can.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from smelt.ir import profiling
from smelt.ir.errors import OutOfMemoryError
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, Executable, LruCache, warming
from smelt.runtime.compile import is_loaded

from ..graph import APPLY, GraphFunction, Node, RecordedNode, callees
from . import device_plan, direct, tiers
from .device_plan import DevicePlan

if TYPE_CHECKING:
    from smelt.runtime.background import Pending

#: Processor seconds on the host after which graphs with the same ops run on the device: what it takes to compile the
#: kernels of a plan, several at once; and before any was, to load the compiler besides.
PATIENCE, FIRST = 0.3, 1.0
#: Those after which another thread gets the device ready (`Device.warm`).
READY = 0.1
#: Processor seconds that a plan of new sizes takes for each op: what takes less on the host stays there.
OP = 2e-5
#: The part of what a device needs for a plan that a program would save, and the longest time from one run to the next
#: that is taken for the device's, in seconds.
GAIN, LONGEST = 0.5, 1.0


class Met:
    """What is known of graphs that have the same ops in the same order, whatever their sizes.

    Attributes:
        spent, least: processor seconds that they have taken on the host, all together and in the quickest run.
        is_on_device: whether they run on the device, although all that they read may come to the host.
        may_have_program: whether one of them may have a program, in this process or on disk.
    """

    __slots__ = ("is_on_device", "least", "may_have_program", "spent")

    def __init__(self) -> None:
        self.spent, self.least, self.is_on_device, self.may_have_program = 0.0, float("inf"), False, True

    def took(self, seconds: float) -> None:
        """One of them has run on the host."""
        self.least = min(self.least, seconds)
        self.spent += seconds

    def moves(self, device: Device, ops: int, work: float, seconds: float) -> bool:
        """Whether they had better run on the device from now on.

        Args:
            ops, work, seconds: how many ops one of them has, and what it takes op by op, in element operations and by
                NumPy.
        """
        expected = self.least if self.spent else seconds
        taken, limit = self.spent + expected, PATIENCE if is_loaded(device) else FIRST
        if taken < min(READY, limit) or expected < OP * ops or work < settings.small_work:
            return self.is_on_device
        if taken >= limit:
            self.is_on_device = True
        else:
            warming.begin(device)
        return self.is_on_device


class Timed:
    """A plan, where there is one, and what it has taken.

    Attributes:
        spent: processor seconds of its runs, and a part of the time until the next run of any plan, which the device
            may have had to do with it. What it took to make it is not among them: most of that are kernels that serve
            other sizes.
        latest: which of all was run last, while there is one, and when.
    """

    latest: ClassVar[tuple[weakref.ref[Timed], float] | None] = None

    def __init__(self, plan: DevicePlan | None, device: Device):
        self._plan, self._device = plan, device
        self.spent = 0.0
        self._count: int | None = None
        self._pending: Pending | None = None
        self._is_asked = False

    @property
    def nbytes(self) -> int:
        return 1_000 if self._plan is None else self._plan.nbytes

    def pays(self, count: Callable[[], int]) -> bool:
        """Whether there is one, which has not taken what the compile of a program takes. `count` gives how many ops
        that has."""
        if self._plan is None:
            return False
        if settings.tier == "strided" or not self.spent:
            return True
        seconds, device = tiers.cost.seconds, self._device
        if self.spent < seconds(0, device):
            return True
        if self._count is None:
            self._count = count()
        return self.spent < seconds(self._count, device)

    def waits(self, begin: Callable[[], Pending | None]) -> bool:
        """Whether it goes on although it has, because the program is not there yet. `begin` has that compiled by
        another process, if that can be."""
        if self._plan is not None and not self._is_asked:
            self._is_asked, self._pending = True, begin()
        return self._plan is not None and self._pending is not None and not self._pending.ready()

    @property
    def successor(self) -> Executable | None:
        """What another process has compiled, once nothing waits any more."""
        return None if self._pending is None else self._pending.program()

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        """Raises OutOfMemoryError, and is over: a program, which plans its memory, may need less."""
        plan = self._plan
        if plan is None:
            raise OutOfMemoryError("there was no memory for the plan")
        start, began = time.thread_time(), time.perf_counter()
        if Timed.latest is not None:
            before, when = Timed.latest[0](), Timed.latest[1]
            if before is not None:
                before.spent += GAIN * min(max(began - when, 0.0), LONGEST)
        Timed.latest = weakref.ref(self), began
        try:
            found = plan.run(inputs)
        except OutOfMemoryError:
            self._plan = None
            raise
        self.spent += time.thread_time() - start
        return found


#: Plans, by what they compute with which sizes.
_plans = LruCache(weigh=lambda plan: plan.nbytes)
#: By the ops of a graph.
_met = LruCache(weigh=lambda met: 2_000)


def met(order: Iterable[Node | RecordedNode]) -> Met:
    """What is known of graphs with the ops of this one."""
    key = tuple([(n.op, *[len(f.body) for f in callees(n)]) if n.op is APPLY else n.op for n in order])
    found: Met = _met.get_or_make(key, Met)
    return found


def plan_of_ops(ops: OpProgram | None, device: Device) -> Timed:
    """The plan of what runs op by op; None: nothing does."""
    if ops is None or not (_may_plan(device) and device_plan.can_run(ops, device)):
        return Timed(None, device)
    return Timed(DevicePlan(ops, device), device)


def plan_of(
    key: Hashable, function: Callable[[], GraphFunction], device: Device, has_program: Callable[[], bool]
) -> Timed:
    """The plan of a function for its sizes. There is none where a program runs.

    Args:
        key: what it computes, with its sizes. function: gives it, with no loop that the user did not write.
        has_program: whether it has been compiled before.
    """
    if not _may_plan(device):
        return Timed(None, device)

    def make() -> Timed:
        if settings.tier != "strided" and has_program():
            return Timed(None, device)
        return plan_of_ops(direct.program_of(function(), ()), device)

    found: Timed = _plans.get(key) or _plans.get_or_wait(key, make)
    return found


def _may_plan(device: Device) -> bool:
    """Whether there are plans; where accesses are checked, or what runs is timed, programs run."""
    return device.strided is not None and not settings.check and profiling.active is None
