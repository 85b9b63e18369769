"""Programs that run op by op, without a compiler: for graphs seen for the first time, and for small work.

An op is computed by its `reference` rule, which is NumPy, or by a library where there is one. So the values are those
of the oracle of all tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import host_calls, profiling
from .aval import Aval
from .control import ControlOp, interpret
from .errors import OutOfMemoryError
from .interpreter import run_op, shown_line
from .op import Op
from .scopes import place
from .settings import settings
from .values import CALL, OpView, Value

#: Results of constants alone that are kept: up to this many elements, or of any size where all are one in memory.
_KEPT = 4096
#: Indices are kept up to so many: more take as long to read as to make.
_INDICES = 1 << 22
_plain: dict[type[Op], Callable[..., Any] | None] = {}


def plain_rule(op: Op) -> Callable[..., Any] | None:
    """The rule that computes one result of an op, as a function of the op, NumPy arrays and attributes, to be called
    under ``np.errstate(all="ignore")``; None: there is more to do (`run_op` does it)."""
    kind = type(op)
    try:
        return _plain[kind]
    except KeyError:
        rule: Any = None
        known = kind.reference is not Op.reference and op.kind not in ("library", "control")
        if known and not op.mixed and op.num_results == 1:
            rule = getattr(kind.reference, "__wrapped__", kind.reference)
        return _plain.setdefault(kind, rule)


def run_plain(
    op: Op, operands: Sequence[np.ndarray], attrs: dict[str, Any], where: Any = None
) -> Sequence[np.ndarray]:
    """`run_op`; call it under ``np.errstate(all="ignore")``."""
    rule = plain_rule(op)
    if rule is None or settings.check:
        return run_op(op, operands, attrs, where)
    return (rule(op, *operands, **attrs),)


class Step(NamedTuple):
    """An op of a program, on a frame: a list of arrays.

    Attributes:
        view: the op with its location; of what stands for several ops, what runs them.
        rule: as of `plain_rule`.
        read, first: the slots of operands, and the first of those of results.
        dead: slots that are emptied after it.
    """

    view: Any
    op: Op
    rule: Callable[..., Any] | None
    attrs: dict[str, Any]
    read: tuple[int, ...]
    first: int
    dead: tuple[int, ...]


class OpProgram:
    """Ops in order on numbered slots; a slot is emptied after its last use, so that its memory can be used again.

    Args:
        arguments, ops, returns: a function's.
        run_function: runs a function that a call, branch or loop names.
        functions: those that it runs, for what they keep.

    Attributes:
        steps: in order. frame: what slots hold before the first; None: nothing yet. returns: the slots of results.
        prepared: what evaluation keeps with it.
        costs: where whoever made it knows: ops of what it was made of, what these take in element operations and in
            seconds.
        origin: the program of its family, the sizes of this one, and which steps of that were computed when it was
            made; None where there is no family.
    """

    _calls: list[host_calls.Call] | None = None
    _runs = 0
    prepared: Any = None
    costs: tuple[int, float, float] | None = None
    origin: tuple[Any, Sequence[Any], frozenset[int]] | None

    def __init__(
        self,
        arguments: Sequence[Value],
        ops: Sequence[OpView],
        returns: Sequence[Value],
        run_function: Callable[[Any, Sequence[np.ndarray]], list[np.ndarray]],
        functions: Collection[OpProgram] = (),
    ):
        self.run_function, self.functions, self.origin = run_function, functions, None
        self.arguments = [v.aval for v in arguments]
        self.results = [v.aval for v in returns]
        slots: dict[Value, int] = {v: i for i, v in enumerate(arguments)}
        constants: dict[Value, np.ndarray] = {}
        self.frame: list[Any] = [None] * len(arguments)
        steps: list[tuple[OpView, tuple[int, ...], int]] = []
        with np.errstate(all="ignore"):
            for op in ops:
                known = [constants[v] for v in op.operands if v in constants]
                if len(known) == len(op.operands) and self._fold(op, known, constants):
                    for r in op.results:
                        slots[r] = len(self.frame)
                        self.frame.append(constants[r])
                    continue
                read, first = tuple([slots[v] for v in op.operands]), len(self.frame)
                for r in op.results:
                    slots[r] = len(self.frame)
                    self.frame.append(None)
                steps.append((op, read, first))
        self.returns = [slots[v] for v in returns]
        lasting = {slots[v] for v in constants} | set(self.returns)
        self.steps: list[Step] = []
        for op, read, first in reversed(steps):
            written = range(first, first + len(op.results))
            dead = tuple({i for i in (*read, *written) if i not in lasting})
            lasting.update(dead)
            self.steps.append(Step(op, op.op, plain_rule(op.op), op.attrs, read, first, dead))
        self.steps.reverse()

    def _fold(self, op: OpView, operands: list[np.ndarray], constants: dict[Value, np.ndarray]) -> bool:
        """Compute what depends on no argument, if that is worth keeping."""
        if not op.op.pure or isinstance(op.op, ControlOp) or op.op is CALL:
            return False
        if not worth_keeping(op.op, max([r.aval.size for r in op.results], default=0), operands):
            return False
        try:
            found = run_plain(op.op, operands, op.attrs, op)
        except MemoryError:  # a run says so, if it comes to that
            return False
        constants.update(zip(op.results, map(np.asarray, found)))
        return True

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def constant_steps(self) -> frozenset[int]:
        """Steps, by number, that depend on sizes alone."""
        return frozenset()

    @property
    def nbytes(self) -> int:
        """Memory that it keeps, roughly: steps, constants, and arrays among attributes."""
        constants = sum(x.nbytes for x in self.frame if x is not None and any(x.strides))
        literals = sum(getattr(v, "nbytes", 0) for step in self.steps for v in step.attrs.values())
        return 1_000 * len(self) + constants + literals + sum(f.nbytes for f in self.functions)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, which may share memory with `arrays` and with each other.

        Raises:
            OutOfMemoryError: there is no memory for a result. What the libraries of ops raise.
        """
        with np.errstate(all="ignore"):
            return self._run(arrays)

    def _run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """`run`, where NumPy is silent already."""
        frame = self.frame.copy()
        checked = settings.check
        if not checked and profiling.active is None:
            if self.as_calls() is not None:
                return self._run_calls(frame, arrays)
        frame[: len(arrays)] = arrays
        self._run_rules(frame, checked)
        return [frame[i] for i in self.returns]

    def as_calls(self) -> tuple[list[Any], list[host_calls.Call]] | None:
        """The frame on which it runs, to be copied, and the calls that do that; None where not all steps are calls."""
        if self._calls is None and self._runs == 0 and self.origin is None:
            self._calls = self._noted()
        return None if self._calls is None else (self.frame, self._calls)

    def _run_calls(self, frame: list[Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run what was noted."""
        assert self._calls is not None
        frame[: len(arrays)] = arrays
        frame.append(None)
        for i, x in enumerate(arrays):
            if type(x) is not np.ndarray:  # NumPy's scalars, of which methods of arrays know nothing
                frame[i] = np.asarray(x)
        try:
            host_calls.run(frame, self._calls)
        except MemoryError as error:
            if frame[-1] is None:
                raise
            view = self.view(frame[-1])
            raise out_of_memory(view.op, error, view) from None
        return [frame[i] for i in self.returns]

    def _noted(self) -> list[host_calls.Call] | None:
        """What the steps call, by the types of their values; None where not all can be called."""
        calls = host_calls.Calls()
        for view, op, rule, attrs, read, first, dead in self.steps:
            result = None if rule is None else view.results[0].aval
            otherwise = self._otherwise(view, attrs) if rule is None else None
            calls.note(op, rule, attrs, otherwise, [v.aval for v in view.operands], result, (read, first, dead))
        return calls.done(self.returns) if calls.fit else None

    def _otherwise(self, view: OpView, attrs: dict[str, Any]) -> Callable[..., list[np.ndarray]]:
        return functools.partial(self._result_list, view, attrs)

    def view(self, place: int) -> OpView:
        """A step, for errors."""
        view: OpView = self.steps[place].view
        return view

    def call(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """`run` with separate arguments, and arrays as results. The caller has silenced NumPy's warnings."""
        return [x if type(x) is np.ndarray else np.asarray(x) for x in self._run(arrays)]

    def _run_rules(self, frame: list[Any], checked: bool) -> None:
        """Run on a frame. Where values have types with symbols, what is called is noted in the second run."""
        profiler = profiling.active
        calls = host_calls.Calls() if self._runs == 1 and not checked and profiler is None else None
        avals: dict[int, Aval] = {}  # of what is called; those of values may have symbols
        self._runs += not checked and profiler is None
        for view, op, rule, attrs, read, first, dead in self.steps:
            operands = [frame[i] for i in read]
            try:
                if profiler is not None and op is not CALL and not isinstance(op, ControlOp):
                    name, line = getattr(view, "label", op.name), place(view.location).removeprefix("; at ")
                    found = profiler.timed(name, "op", line, self._results, view, attrs, operands)
                    frame[first : first + len(found)] = found
                elif rule is not None and not checked:
                    frame[first] = rule(op, *operands, **attrs)
                else:
                    found = self._results(view, attrs, operands)
                    frame[first : first + len(found)] = found
            except MemoryError as error:
                raise out_of_memory(op, error, view) from None
            if calls is not None:
                for i in read if rule is None else (*read, first):
                    if i not in avals:
                        avals[i] = host_calls.aval_of(frame[i])
                otherwise = self._otherwise(view, attrs) if rule is None else None
                calls.note(op, rule, attrs, otherwise, [avals[i] for i in read], avals.get(first), (read, first, dead))
            operands.clear()
            for i in dead:
                frame[i] = None
        if calls is not None and calls.fit:
            self._calls = calls.done(self.returns)

    def _result_list(self, view: OpView, attrs: dict[str, Any], *operands: np.ndarray) -> list[np.ndarray]:
        return list(self._results(view, attrs, list(operands)))

    @property
    def is_pure(self) -> bool:
        """Whether it does nothing but compute its results by single rules."""
        return all(step.op.pure and step.rule is not None for step in self.steps)

    def _results(self, view: OpView, attrs: dict[str, Any], operands: list[np.ndarray]) -> Sequence[np.ndarray]:
        if isinstance(view.op, ControlOp):
            return interpret(view.op, attrs, operands, [r.aval for r in view.results], self.run_function)
        if view.op is CALL:
            return self.run_function(attrs["callee"], operands)
        return run_op(view.op, operands, attrs, view)


def worth_keeping(op: Op, size: int, operands: Sequence[np.ndarray]) -> bool:
    """Whether a result of constants, with `size` elements, is kept, and not computed in each run."""
    if op.kind == "movement" and all(not any(x.strides) for x in operands):  # a view, or indices
        return len(operands) > 0 or size <= _INDICES
    return size <= _KEPT


def out_of_memory(op: Op, error: MemoryError, where: Any) -> OutOfMemoryError:
    """The error of an op that had no memory; `where` as in `run_op`. NumPy's message names the shape and the dtype."""
    if isinstance(error, OutOfMemoryError):
        return error
    return OutOfMemoryError(f"smelt.{op.name}: {error}{shown_line(where)}")
