"""Graphs of ops: straight-line programs with elements to run them on, of which it is known how exact each value is.

A `Graph` can be emitted into a module and evaluated by the reference rules; `differences` compares. `drawing` draws
them at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value
from smelt.ir.op import Op

from .exactness import Known, eps_of, scale_of


@dataclass
class Step:
    """A value: an argument, or an op applied to earlier values by their numbers."""

    op: Op | None
    operands: tuple[int, ...]
    attrs: dict[str, Any]
    aval: Aval
    known: Known


@dataclass
class Graph:
    """A straight-line program.

    Attributes:
        inputs: the arguments' elements, in the order of the arguments among the steps.
        returns: numbers of the values that are the results; one may be there twice, or be an argument.
    """

    seed: int
    steps: list[Step] = field(default_factory=list)
    inputs: list[np.ndarray] = field(default_factory=list)
    returns: list[int] = field(default_factory=list)

    @property
    def arguments(self) -> list[Aval]:
        return [s.aval for s in self.steps if s.op is None]

    def run(self, arguments: Sequence[Any], apply: Callable[[Op, list, dict[str, Any]], Any]) -> list:
        """All values, with `apply(op, operands, attrs)` as what an op does."""
        values: list[Any] = []
        rest = iter(arguments)
        for s in self.steps:
            values.append(next(rest) if s.op is None else apply(s.op, [values[i] for i in s.operands], s.attrs))
        return values

    def emit(self, b: Builder, arguments: Sequence[Value]) -> list[Value]:
        """Append the ops; the results."""
        values = self.run(arguments, lambda op, operands, attrs: b.emit(op, operands, attrs)[0])
        return [values[i] for i in self.returns]

    def reference(self) -> list[np.ndarray]:
        """All values by the reference rules."""
        with np.errstate(all="ignore"):
            return self.run(self.inputs, lambda op, operands, attrs: np.asarray(op.reference(*operands, **attrs)))

    def differences(self, found: Sequence[np.ndarray]) -> str:
        """Where results differ from the reference; empty where none does."""
        values = self.reference()
        scales, wild = self._magnitudes(values)
        for n, (i, have) in enumerate(zip(self.returns, found, strict=True)):
            problem = _difference(np.asarray(have), values[i], self.steps[i], scales[i], wild[i])
            if problem:
                return f"result {n} (%{i}: {self.steps[i].aval}): {problem}\n{self}"
        return ""

    def _magnitudes(self, values: list[np.ndarray]) -> tuple[list[float], list[bool]]:
        """For each value, to what its error is relative, and whether it came near the end of its dtype's range."""
        scales: list[float] = []
        wild: list[bool] = []
        for s, out in zip(self.steps, values):
            if s.op is None or s.known.exact:
                scales.append(0.0)
                wild.append(False)
                continue
            avals = [self.steps[i].aval for i in s.operands]
            operands = [scales[i] or _largest(values[i]) for i in s.operands]
            scales.append(scale_of(s.op, operands, avals, s.attrs, out))
            wide = np.abs(out.astype(np.complex128))
            half = s.aval.dtype is dtypes.float16
            top = (wide > (3e4 if half else 1e37)) & (half | np.isfinite(wide))
            wild.append(any(wild[i] for i in s.operands) or bool(top.any()))
        return scales, wild

    def __str__(self) -> str:
        lines = [f"seed {self.seed}"]
        for i, s in enumerate(self.steps):
            what = "argument" if s.op is None else f"{s.op.name}({', '.join(f'%{j}' for j in s.operands)}) {s.attrs}"
            notes = ", special" * s.known.special
            lines.append(f"  %{i} = {what} : {s.aval}  {s.known.grade.name.lower()} to {s.known.bound:g}{notes}")
        return "\n".join([*lines, f"  return {', '.join(f'%{i}' for i in self.returns)}"])


def _largest(x: np.ndarray) -> float:
    wide = np.abs(x.astype(np.complex128)).reshape(-1)
    return float(wide[np.isfinite(wide)].max(initial=0.0))


def _difference(have: np.ndarray, want: np.ndarray, step: Step, scale: float, wild: bool) -> str:
    aval, known = step.aval, step.known
    if have.shape != aval.shape or have.dtype != aval.dtype.numpy:
        return f"it is {have.dtype}{list(have.shape)}"
    if aval.dtype.kind in "biu":
        bad = have != want
    else:
        kind = np.complex128 if aval.dtype.is_complex else np.float64
        have, want = have.astype(kind), want.astype(kind)
        with np.errstate(all="ignore"):
            same = (have == want) | (np.isnan(have) & np.isnan(want))
            if not known.exact:
                eps = max(known.eps, eps_of(aval.dtype))
                same |= np.abs(have - want) <= eps * (np.abs(want) + scale)
                same |= wild & ~(np.isfinite(have) & np.isfinite(want)) | (wild and aval.dtype is dtypes.float16)
        bad = ~same
        if known.exact and known.signed and not aval.dtype.is_complex:
            bad |= ~np.isnan(want) & (np.signbit(have) != np.signbit(want))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements differ, first {list(at)}: {have[at]!r}, not {want[at]!r}"


def without_dead(g: Graph) -> Graph:
    """The graph without what no result depends on."""
    alive = set(g.returns)
    for i in reversed(range(len(g.steps))):
        if i in alive:
            alive.update(g.steps[i].operands)
    kept = [i for i in range(len(g.steps)) if i in alive]
    number = {i: n for n, i in enumerate(kept)}
    inputs = iter(g.inputs)
    elements = {i: next(inputs) for i, s in enumerate(g.steps) if s.op is None}
    steps = [replace(g.steps[i], operands=tuple(number[j] for j in g.steps[i].operands)) for i in kept]
    return Graph(g.seed, steps, [elements[i] for i in kept if i in elements], [number[i] for i in g.returns])
