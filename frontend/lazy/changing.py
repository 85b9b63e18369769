"""Sizes that change on a device whose memory is its own, where what is read lies there: plans in place of programs.

The first sizes of a structure get a program, as everything does there. Where it comes with others, these run by a plan
(`device_plan`), until what that has taken comes to what a program would take to compile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence

from smelt.ir import profiling
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import settings
from smelt.runtime import Buffer, Device, LruCache

from . import device_plan, direct, families, tiers
from .device_plan import DevicePlan
from .graph import GraphFunction


class Timed:
    """A plan, and what it has taken.

    Attributes:
        spent: processor seconds of its runs. What it took to make it is not among them: most of that are kernels that
            serve other sizes, too.
    """

    def __init__(self, program: OpProgram, device: Device):
        self._plan, self._device = DevicePlan(program, device), device
        self.spent = 0.0

    @property
    def nbytes(self) -> int:
        return self._plan.nbytes

    def is_due(self, ops: int) -> bool:
        """Whether it has taken what the compile of a program of so many ops takes."""
        return settings.tier != "strided" and self.spent >= tiers.cost.seconds(ops, self._device)

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        start = time.thread_time()
        found = self._plan.run(inputs)
        self.spent += time.thread_time() - start
        return found


class _Never:
    """In place of the plan of what can have none."""

    nbytes = 1_000


_NEVER = _Never()
#: Plans, by what they compute with which sizes; and the first of those, by what they compute.
_plans = LruCache(weigh=lambda plan: plan.nbytes)
_first = LruCache(weigh=lambda key: 2_000)


def plan_of_ops(ops: OpProgram, device: Device) -> Timed | None:
    """The plan of what runs op by op; None where there can be none."""
    return Timed(ops, device) if _may_plan(device) and device_plan.can_run(ops, device) else None


def plan_of(key: Hashable, function: Callable[[], GraphFunction], device: Device) -> Timed | None:
    """The plan of a function for its sizes; None where these are the first, or where there can be none.

    Args:
        key: what it computes, with its sizes. function: gives it, with no loop that the user did not write.
    """
    if not _may_plan(device):
        return None
    found = _plans.get(key)
    if found is None:
        f = function()
        if settings.tier != "strided" and not _are_others(key, f):
            return None

        def make() -> Timed | _Never:
            ops = direct.program_of(f, ())
            return _NEVER if ops is None or not device_plan.can_run(ops, device) else Timed(ops, device)

        found = _plans.get_or_wait(key, make)
    return None if found is _NEVER else found


def _may_plan(device: Device) -> bool:
    """Whether there are plans; where accesses are checked, or what runs is timed, programs run."""
    return device.strided is not None and not settings.check and profiling.active is None


def _are_others(key: Hashable, f: GraphFunction) -> bool:
    """Whether the function has been met with other sizes."""
    family = families.structure_without_sizes(f)
    return family is not None and _first.get_or_make(family, lambda: key) != key
