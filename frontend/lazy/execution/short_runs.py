"""Runs of a compiled function op by op that take microseconds: to find out each time what runs, and to measure it,
would take as long as the runs."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.backends.buffer import pool
from smelt.ir import profiling
from smelt.ir.op_program import OpProgram, out_of_memory
from smelt.ir.settings import settings
from smelt.runtime import Buffer

from .. import core
from ..silent import silently
from .tiers import Structure

#: Seconds that a run takes at most.
SHORT = 1e-4
#: So many runs follow one that was measured, and are taken for as long as the shortest that was.
UNMEASURED = 8


class ShortRuns:
    """Runs of calls of NumPy alone, in the C core, as long as nothing says that they are to run in another way.

    Attributes:
        left: how many there may be before one is measured again.
    """

    def __init__(self, ops: OpProgram, structure: Structure):
        found = ops.as_calls()
        assert found is not None
        frame, self._calls = found
        self._frame = [*frame, None]
        self._ops, self._structure, self._pending = ops, structure, structure.pending
        self._returns, self._results = list(ops.returns), list(ops.results)
        self.left = UNMEASURED

    @staticmethod
    def of(ops: OpProgram, structure: Structure) -> ShortRuns | None:
        """None where a step is more than a call, or may call code of users; and without the C core."""
        fits = core.native is not None and ops.is_pure and not settings.check and profiling.active is None
        return ShortRuns(ops, structure) if fits and ops.as_calls() is not None else None

    def again(self) -> ShortRuns:
        """The same after a run that was measured: only now those before it count."""
        self._structure.ran_again(UNMEASURED - self.left)
        self.left, self._pending = UNMEASURED, self._structure.pending
        return self

    def may_run(self) -> bool:
        """Whether the next run is one of them."""
        pending = self._structure.pending
        return (
            self.left > 0 and settings.tier == "auto" and not pool.limit and not settings.check
            and profiling.active is None and pending is self._pending and (pending is None or not pending.is_over)
        )  # fmt: skip

    def run(self, inputs: Sequence[Buffer]) -> list[Buffer]:
        assert core.native is not None
        self.left -= 1
        frame = self._frame.copy()
        try:
            return silently(
                core.native.run_on_buffers, frame, self._calls, list(inputs), self._returns, self._results
            )
        except MemoryError as error:
            if frame[-1] is None:
                raise
            view = self._ops.view(frame[-1])
            raise out_of_memory(view.op, error, view) from None
