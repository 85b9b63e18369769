"""Translation validation: what a program computes is compared before and after each pass.

The program runs by the `reference` rules on numbers made up, so no code generator takes part. A pass that changes a
value beyond rounding is named, with the input, the place and both values. Where results lie farther apart than rounding
makes them in a program that is well-conditioned, it is measured how far they move in this one (`conditioning.py`), in
the form that it had at the beginning and just before the pass; only what is farther is a fault of the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from smelt.ir import collector, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import function_named, functions, read_function
from smelt.ir.errors import PassError, PipelineError, SmeltError
from smelt.ir.short import to_short_text

from .call_graph import EXPAND, callees_first
from .conditioning import MULTIPLE, Counted, Movement
from .driver import PassRecord, Pipeline
from .inputs import FOR_ELEMENTS, FOR_SUMS, KINDS, Drawn, inputs_of, turns_of
from .numbering import Numbering
from .parts import parts_of
from .pipeline_text import Item
from .rewrite import mentions

#: How far results may lie apart, in units of rounding of the largest one: passes reassociate sums.
TOLERANCE = 4096
#: Kinds of ops whose sums passes may reassociate: of infinities and NaN these are not the same.
_SUMS = ("reduction", "contraction", "scan", "library", "control", "scatter")
#: Of inputs of a kind there are fewer than asked for where a program computes more elements in them: large arrays have
#: in one input what small ones have in several.
MOST_ELEMENTS = 1 << 24
#: How many times as many ops as on plain numbers a program may run: a loop may take longer on others, or not end.
MOST_TIMES = 100

#: A result that differs: its number, its values before and after, and where.
_Suspect: TypeAlias = tuple[int, np.ndarray, np.ndarray, np.ndarray]


class ValueCheck:
    """Runs ``@main`` after each pass on the same inputs: an ``on_pass`` of `Instrumentation`.

    A program with transformations means what smelt's own passes expand them to; where they do not, there is nothing to
    run until passes have expanded all, and what comes out then is what later passes must keep. Passes that keep the
    meaning of a program also keep that of programs on which they do nothing, so whatever IR there is may be checked.

    Args:
        module: before the first pass.
        count: how many inputs of each kind, at least; fewer of large programs.
        seed: of the random numbers.
        parts: whether passes also run on parts of the program alone, a few ops each (`parts.py`), where special values
            reach each operand, and each value is a result.
        drawn: numbers of which inputs are made; else they are new.

    Raises:
        IRError: there is no ``@main``, or a function that calls itself.

    Attributes:
        checked: the passes after which values were compared, by stage.
        loose: results that a pass moved by more than rounding, but no farther than they move by themselves: stage,
            number of the result, kind of inputs.

    >>> from smelt.ir import text
    >>> from smelt.passes import Pipeline
    >>> from smelt.passes.driver import Instrumentation
    >>> module = text.parse('''
    ... func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    ...   %0 = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ...   %1 = "smelt.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }''')
    >>> check = ValueCheck(module)
    >>> _ = Pipeline.parse("canonicalize,dce").run(module, Instrumentation(on_pass=check.on_pass))
    >>> check.checked
    ['canonicalize', 'dce']
    """

    def __init__(
        self, module: Any, count: int = 3, seed: int = 0, parts: bool = True, drawn: Drawn | None = None
    ):
        with mlir.lock:
            callees_first(module)  # functions that call themselves are an error, and no endless run
            main = function_named(module)
            self.arguments, self.results = [v.aval for v in main.arguments], [v.aval for v in main.returns]
        rng = np.random.default_rng(seed)
        self.inputs: list[tuple[str, list[np.ndarray]]] = []
        self._count, self._rng, self._parts, self._drawn = count, rng, parts, drawn
        self.checked: list[str] = []
        self.loose: set[tuple[str, int, str]] = set()
        self.expected: list[list[np.ndarray]] | None = None
        self._numbering = Numbering()
        self._movements: dict[int, Movement] = {}  # of the program at the beginning, by inputs
        self._parsed: dict[str, Any] = {}  # that program, and the one before a pass, by their texts
        self._begin(module)

    def _begin(self, given: Any) -> None:
        module = _expanded(given)
        if module is not None:
            self._sums = _sums(module)
            run, self.expected = Counted(module), []
            failed: SmeltError | None = None
            for kind in FOR_SUMS if self._sums else FOR_ELEMENTS:
                for turn in range(turns_of(self.arguments, kind, self._count)):
                    if turn * run.elements > MOST_ELEMENTS:
                        break
                    inputs = inputs_of(self.arguments, kind, turn, self._rng, self._drawn)
                    try:
                        results = _results(run, inputs)
                    except SmeltError as error:  # a library takes no such numbers, or a loop does not end
                        failed = failed or error
                        continue
                    self.inputs.append((kind, inputs))
                    self.expected.append(results)
                    run.most_ops = min(run.most_ops, MOST_TIMES * (run.count + 100))
            if failed is not None and not self.inputs:
                raise PipelineError(f"@main runs on no numbers made up: {failed}")
            self._most = MOST_TIMES * run.most_ops
            self._first = self._last = self._written = text.to_text(module, verified=True)
            self._computed = self._numbering.of(module)
            if module is not given:
                self._written = text.to_text(given, verified=True)

    def on_pass(self, record: PassRecord, module: Any) -> None:
        """Compare. Raises PipelineError: the pass has changed a value."""
        with collector.paused():
            self._on_pass(record, module)

    def _on_pass(self, record: PassRecord, module: Any) -> None:
        if self.expected is None:
            self._begin(module)
            return
        with mlir.lock:
            main = function_named(module)
            arguments, results = [v.aval for v in main.arguments], [v.aval for v in main.returns]
        for what, before, after in (("takes", self.arguments, arguments), ("returns", self.results, results)):
            if before != after:
                raise PipelineError(
                    f"{record.stage} changed @main: it {what} {_listed(after)}, before {_listed(before)}"
                )
        written = text.to_text(module, verified=True)
        if written == self._written:
            self.checked.append(record.stage)
            return
        self._written = written
        expanded = _expanded(module)
        if expanded is None:  # what the pass left has no meaning
            raise PipelineError(f"{record.stage} left transformations that smelt's passes do not expand")
        source = self._last
        if expanded is not module:
            module, written = expanded, text.to_text(expanded, verified=True)
        self._last = written
        if self._last == source:
            self.checked.append(record.stage)
            return
        computed, self._computed = self._computed, self._numbering.of(module)
        if self._computed == computed:  # the same ops of the same operands, in other places
            self.checked.append(record.stage)
            return
        run = Counted(module, self._most)
        for number, (kind, inputs) in enumerate(self.inputs):
            try:
                found = _results(run, inputs)
            except SmeltError as error:
                error.args = (f"{record.stage} changed a value: {error}; before there were results; {kind} inputs",)
                raise
            self._compare(record.stage, number, found, source)
        if self._parts and record.item is not None:
            self._check_parts(record, record.item, source)
        self.checked.append(record.stage)

    def _check_parts(self, record: PassRecord, item: Item, source: str) -> None:
        """Run a pass on parts of the program before it, and compare. Raises PipelineError."""
        pipeline, drawn = Pipeline([item]), Drawn()
        for name, make in parts_of(text.parse(source, own=True)):
            after = make()
            was = text.to_text(after, verified=True)
            try:
                pipeline.run(after)
                if text.to_text(after, verified=True) == was:
                    continue
                part = make()
                if self._numbering.of(part) == self._numbering.of(after):
                    continue
                check = ValueCheck(part, 1, parts=False, drawn=drawn)
            except PassError:
                raise
            except SmeltError:  # it is no program for the pass, or for a library
                continue
            try:
                check.on_pass(record, after)
            except PipelineError as error:
                error.args = (f"{error}; of ops of @{name} alone:\n{to_short_text(part).rstrip()}",)
                raise

    def report(self) -> str:
        """What was found out where no pass was at fault, in a line for people."""
        said = f"{len(self.checked)} runs of passes changed no value on {len(self.inputs)} inputs"
        if not self.loose:
            return said
        results = sorted({i for _, i, _ in self.loose})
        kinds = [kind for kind in KINDS if any(kind == k for *_, k in self.loose)]
        which = f"result{'s' * (len(results) > 1)} {', '.join(map(str, results))}"
        return (
            f"{said}, as far as rounding leaves them sure: {which} moved, on {' and '.join(kinds)} inputs, no farther "
            f"than {MULTIPLE} times as far as when all values on the way move by a unit in the last place"
        )

    def _compare(self, stage: str, number: int, found: list[np.ndarray], source: str) -> None:
        """Results of one run, of what was `source` before the pass. Raises PipelineError."""
        assert self.expected is not None
        kind, inputs = self.inputs[number]
        suspects = []
        for i, (before, after) in enumerate(zip(self.expected[number], found)):
            if (wrong := differences(before, after, self._sums)).any():
                suspects.append((i, before, after, wrong))
        if not suspects:
            return
        left = self._unexplained(number, suspects, source)
        if left is not None:
            i, before, after, wrong = left
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            raise PipelineError(
                f"{stage} changed a value: result {i} at {list(at)} was {before[at]}, is {after[at]}; "
                f"{kind} inputs ({_shown(inputs)})"
            )
        self.loose |= {(stage, i, kind) for i, *_ in suspects}

    def _unexplained(self, number: int, suspects: list[_Suspect], last: str) -> _Suspect | None:
        """The first result that lies farther off than another rounding moves it, with the places where it does."""
        inputs = self.inputs[number][1]
        for source in dict.fromkeys((self._first, last)):
            movement = self._movements.get(number) if source is self._first else None
            if movement is None:
                if source not in self._parsed:
                    self._parsed = {k: v for k, v in self._parsed.items() if k is self._first}
                    self._parsed[source] = text.parse(source, own=True)
                movement = Movement(self._parsed[source], inputs)
            if source is self._first:
                self._movements[number] = movement
            while suspects:
                suspects = [
                    (i, before, after, still)
                    for i, before, after, wrong in suspects
                    if (still := wrong & ~movement.explains(i, before, after)).any()
                ]
                if not suspects:
                    return None
                if not movement.look():
                    break
        return suspects[0]


def _expanded(module: Any) -> Any:
    """The module itself where it has no transformations, else another one, without; None where passes leave some."""
    if not mentions(module, "func.constant"):
        return module
    found = text.parse(text.to_text(module, verified=True), own=True)
    try:
        Pipeline.parse(EXPAND).run(found)
    except SmeltError:  # a function may be differentiated that has no derivative until a pass has gone over it
        return None
    return None if mentions(found, "func.constant") else found


def _results(run: Counted, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    run.count = run.elements = 0
    with np.errstate(all="ignore"):
        return [np.asarray(x) for x in run("main", inputs)]


def _sums(module: Any) -> bool:
    """Whether the module has ops whose sums passes may reassociate."""
    with mlir.lock:
        return any(op.op.kind in _SUMS for f in functions(module).values() for op in read_function(f).ops)


def differences(before: np.ndarray, after: np.ndarray, sums: bool = True) -> np.ndarray:
    """Where two results of one type differ by more than rounding, or in a sign of zero.

    Args:
        sums: whether elements are made of many, so that the largest says how far they may lie apart.

    >>> differences(np.array([1.0, 0.0]), np.array([1.0, -0.0]))
    array([False,  True])
    """
    if before.tobytes() == after.tobytes():
        return np.zeros(before.shape, bool)
    if before.dtype.kind == "c":
        return differences(before.real, after.real, sums) | differences(before.imag, after.imag, sums)
    if before.dtype.kind in "biu":
        return np.asarray(before != after)
    wide = before.astype(np.float64), after.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(wide[0]), np.abs(wide[0]), 0.0)
        epsilon = 2.0**-7 if before.dtype.itemsize == 2 else float(np.finfo(before.dtype).eps) * TOLERANCE
        near = np.abs(wide[0] - wide[1]) <= epsilon * (max(1e-30, finite.max(initial=0.0)) if sums else finite)
    same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1])) | near
    zeros = (wide[0] == 0) & (wide[1] == 0) & (np.signbit(wide[0]) != np.signbit(wide[1]))
    return np.asarray(~same | zeros)


def _listed(avals: list[Aval]) -> str:
    return f"({', '.join(map(str, avals))})"


def _shown(inputs: list[np.ndarray]) -> str:
    listed = [np.array2string(x.ravel()[:4], precision=4, separator=", ") for x in inputs[:4]]
    return ", ".join(listed)
