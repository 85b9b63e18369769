"""Programs for all sizes of a family: laid out once, bound to sizes in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import host_calls, symbolic
from .aval import Aval
from .errors import IRError
from .op_program import OpProgram, run_plain, worth_keeping
from .settings import settings
from .symbolic import has_symbol
from .values import OpView, Value


class SizedProgram(OpProgram):
    """An `OpProgram` with symbols of a `symbolic.Program` in avals and attributes: it does not run, but can be bound.

    Args:
        arguments, ops, returns: a function's, without calls, branches and loops.
        numbers: the program of the symbols.
        costs: as of `OpProgram`, with symbols.
    """

    def __init__(
        self, arguments: Sequence[Value], ops: Sequence[OpView], returns: Sequence[Value], numbers: symbolic.Program,
        costs: tuple[int, Any, Any] | None = None,
    ):  # fmt: skip
        super().__init__(arguments, ops, returns, _no_function)
        self.grouped: dict[bool, Any] = {}  #: what `strided` knows of its groups, by whether one op is one
        calls, self._sized_calls = self._noted(), []
        if calls is not None:
            self._sized_calls = [place for place, call in enumerate(calls) if has_symbol(call.extra)]
        self._calls = calls
        extras = [calls[place].extra for place in self._sized_calls] if calls is not None else []
        constant = {i for i, x in enumerate(self.frame) if x is not None}
        self._sized: list[int] = []  # steps with symbols among their attributes
        self._constant: list[int] = []  # steps that depend on sizes alone
        for place, step in enumerate(self.steps):
            if any(map(has_symbol, step.attrs.values())):
                self._sized.append(place)
            if step.op.pure and constant.issuperset(step.read):
                self._constant.append(place)
                constant.update(range(step.first, step.first + len(step.view.results)))
        self.steps = [step._replace(dead=tuple([i for i in step.dead if i not in constant])) for step in self.steps]
        self.numbers = numbers
        self._outputs = [
            [v.aval.shape for v in (*arguments, *returns)],
            [self.steps[place].attrs for place in self._sized],
            [max([r.aval.size for r in self.steps[place].view.results]) for place in self._constant],
        ]
        self._quick = numbers.compiled((extras, costs))
        self._taken = len(arguments)

    @property
    def constant_steps(self) -> frozenset[int]:
        return frozenset(self._constant)

    _is_pure: bool | None = None

    @property
    def is_pure(self) -> bool:
        if self._is_pure is None:
            self._is_pure = super().is_pure
        return self._is_pure

    _bound: Callable[..., Any] | None = None

    @property
    def _bind(self) -> Callable[..., Any]:
        """What `made` needs for sizes: seldom asked for."""
        if self._bound is None:
            self._bound = self.numbers.compiled(self._outputs)
        return self._bound

    def _noted(self) -> list[host_calls.Call] | None:
        """The steps as calls of NumPy, with symbols; None where that takes values."""
        if any(step.rule is None for step in self.steps):
            return None
        try:
            return super()._noted()
        except Exception:  # a rule that symbols are nothing for
            return None

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
            found = self._quick(*values)
        except (ArithmeticError, MemoryError):
            return None
        if found is None:
            return None
        extras, costs = found
        if self._calls is None:
            made = self.made(values, run_function)
            if made is not None:
                made.costs = costs
            return made
        calls: list[Any] = self._calls.copy()
        for place, extra in zip(self._sized_calls, extras):
            function, before, _, names, read, first, dead = calls[place]
            calls[place] = (function, before, extra, names, read, first, dead)
        return BoundProgram(self, values, calls, costs, run_function)

    def made(self, values: Sequence[Any], run_function: Callable[..., list[np.ndarray]]) -> OpProgram | None:
        """`bound`, as ops with attributes."""
        try:
            found = self._bind(*values)
        except (ArithmeticError, MemoryError):
            return None
        if found is None:
            return None
        shapes, attributes, extents = found
        dtypes = [a.dtype for a in (*self.arguments, *self.results)]
        avals = [Aval(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
        steps, frame = self.steps.copy(), self.frame.copy()
        for place, attrs in zip(self._sized, attributes):
            steps[place] = steps[place]._replace(attrs=attrs)
        folded = set()
        with np.errstate(all="ignore"):
            for place, size in zip(self._constant, extents):
                step = steps[place]
                operands = [frame[i] for i in step.read]
                if all(x is not None for x in operands) and worth_keeping(step.op, size, operands):
                    try:
                        results = run_plain(step.op, operands, step.attrs, step.view)
                    except MemoryError:  # a run says so, if it comes to that
                        continue
                    frame[step.first : step.first + len(results)] = map(np.asarray, results)
                    folded.add(place)
        if folded:
            steps = [step for place, step in enumerate(steps) if place not in folded]
        program = OpProgram.__new__(OpProgram)
        program.arguments, program.results = avals[: self._taken], avals[self._taken :]
        program.run_function, program.functions = run_function, ()
        program.frame, program.steps, program.returns = frame, steps, self.returns
        program.origin = self, values, frozenset(folded)
        return program


class BoundProgram(OpProgram):
    """A `SizedProgram` for sizes: calls of NumPy. Its ops are made of it where somebody asks for them.

    Args:
        calls: those of the program. values, run_function: as of `SizedProgram.bound`.
    """

    def __init__(
        self, sized: SizedProgram, values: Sequence[Any], calls: list[Any], costs: Any,
        run_function: Callable[..., list[np.ndarray]],
    ):  # fmt: skip
        self._sized, self._values, self._calls = sized, values, calls
        self.returns, self.run_function, self.costs, self.functions = sized.returns, run_function, costs, ()

    def __getattr__(self, name: str) -> Any:
        """What an `OpProgram` keeps of its ops: made when it is first asked for."""
        if name not in ("arguments", "results", "steps", "frame", "origin"):
            raise AttributeError(f"{type(self).__name__} has no {name}")
        whole = self._sized.made(self._values, self.run_function)
        assert whole is not None
        self.arguments, self.results, self.origin = whole.arguments, whole.results, whole.origin
        self.steps, self.frame = whole.steps, whole.frame
        return self.__dict__[name]

    @property
    def is_pure(self) -> bool:
        return self._sized.is_pure

    def __len__(self) -> int:
        return len(self._sized)

    @property
    def nbytes(self) -> int:
        return 200 * len(self)

    def _run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        if settings.check:
            return super()._run(arrays)
        return self._run_calls(self._sized.frame.copy(), arrays)

    def as_calls(self) -> tuple[list[Any], list[Any]] | None:
        return None if self._calls is None else (self._sized.frame, self._calls)

    def view(self, place: int) -> OpView:
        view: OpView = self._sized.steps[place].view
        return view


def _no_function(f: Any, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    raise IRError("a program of a family has no functions")
