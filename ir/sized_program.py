"""Programs for all sizes of a family: laid out once, bound to sizes in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import symbolic
from .aval import Aval
from .errors import IRError
from .op_program import OpProgram, run_plain, worth_keeping
from .symbolic import has_symbol
from .values import OpView, Value


class SizedProgram(OpProgram):
    """An `OpProgram` with symbols of a `symbolic.Program` in avals and attributes: it does not run, but can be bound.

    Args:
        arguments, ops, returns: a function's, without calls, branches and loops.
        numbers: the program of the symbols.
    """

    def __init__(
        self, arguments: Sequence[Value], ops: Sequence[OpView], returns: Sequence[Value], numbers: symbolic.Program
    ):
        super().__init__(arguments, ops, returns, _no_function)
        constant = {i for i, x in enumerate(self._frame) if x is not None}
        self._sized: list[int] = []  # steps with symbols among their attributes
        self._constant: list[int] = []  # steps that depend on sizes alone
        for place, (view, op, _, attrs, read, first, _) in enumerate(self._steps):
            if any(map(has_symbol, attrs.values())):
                self._sized.append(place)
            if op.pure and constant.issuperset(read):
                self._constant.append(place)
                constant.update(range(first, first + len(view.results)))
        self._steps = [(*step[:-1], tuple([i for i in step[-1] if i not in constant])) for step in self._steps]
        self._bind = numbers.compiled(
            [
                [v.aval.shape for v in (*arguments, *returns)],
                [self._steps[place][3] for place in self._sized],
                [max([r.aval.size for r in self._steps[place][0].results]) for place in self._constant],
            ]
        )
        self._taken = len(arguments)

    def _fold(self, op: OpView, operands: list[np.ndarray], constants: dict[Value, np.ndarray]) -> bool:
        sized = any(map(has_symbol, op.attrs.values())) or any(has_symbol(r.aval.shape) for r in op.results)
        return not sized and super()._fold(op, operands, constants)

    def bound(self, values: Sequence[Any], run_function: Callable[..., list[np.ndarray]]) -> OpProgram | None:
        """The program for sizes, as `OpProgram` makes it of ops for these sizes; None where those may be other ops.

        Args:
            values: of the symbols.
            run_function: as of `OpProgram`.
        """
        try:
            found = self._bind(*values)
        except (ArithmeticError, MemoryError):
            return None
        if found is None:
            return None
        shapes, attributes, extents = found
        dtypes = [a.dtype for a in (*self.arguments, *self.results)]
        avals = [Aval(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
        steps, frame = self._steps.copy(), self._frame.copy()
        for place, attrs in zip(self._sized, attributes):
            view, op, rule, _, *rest = steps[place]
            steps[place] = (view, op, rule, attrs, *rest)
        folded = set()
        with np.errstate(all="ignore"):
            for place, size in zip(self._constant, extents):
                view, op, _, attrs, read, first, _ = steps[place]
                operands = [frame[i] for i in read]
                if all(x is not None for x in operands) and worth_keeping(op, size, operands):
                    results = run_plain(op, operands, attrs, view)
                    frame[first : first + len(results)] = map(np.asarray, results)
                    folded.add(place)
        if folded:
            steps = [step for place, step in enumerate(steps) if place not in folded]
        program = OpProgram.__new__(OpProgram)
        program.arguments, program.results = avals[: self._taken], avals[self._taken :]
        program._run_function, program._functions = run_function, ()
        program._frame, program._steps, program._returns = frame, steps, self._returns
        return program


def _no_function(f: Any, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    raise IRError("a program of a family has no functions")
