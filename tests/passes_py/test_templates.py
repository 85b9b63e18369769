"""Derivatives on tapes emit the same ops whether rules run or what they have emitted before is copied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder
from smelt.ir.dtypes import float16, float32
from smelt.ir.errors import SmeltError
from smelt.ir.op import Op, registry
from smelt.passes.transform import templates
from smelt.passes.transform.listed import ListedModule
from smelt.passes.transform.tape import Recorded, Tape
from smelt.passes.transform.tape_transforms import transform

from ..ops.cases import Case, cases, plain_ops

DIFFERENTIABLE = [op for op in plain_ops() if op.differentiable and op.kind != "control"]


def applied(case: Case, same: bool) -> Recorded:
    """A function that applies an op twice; `same`: to one value as often as it takes that."""
    tape = Tape()
    arguments = [tape.argument(aval) for aval in case.avals]
    operands = [arguments[case.avals.index(aval)] for aval in case.avals] if same else arguments
    returns = [r for _ in range(2) for r in tape.emit(case.op, operands, case.kwargs)]
    return Recorded(arguments, tape.ops, returns)


def written(f: Recorded) -> list[Any]:
    """The ops of a function, with numbers for values."""
    numbers = {v: i for i, v in enumerate(f.arguments)}
    lines: list[Any] = []
    for op in f.ops:
        lines.append((op.name, repr(op.attrs), [numbers[v] for v in op.operands], [r.aval for r in op.results]))
        numbers.update((r, len(numbers) + i) for i, r in enumerate(op.results))
    return [*lines, [numbers[v] for v in f.returns]]


def derivative(case: Case, same: bool, wrt: tuple[int, ...]) -> list[Any] | str:
    """Its vector–Jacobian product, or the error about it."""
    body = applied(case, same)
    seeds = tuple(i for i, y in enumerate(body.returns) if y.dtype.is_inexact)
    try:
        return written(transform(ListedModule(), body, "vjp", {"wrt": wrt, "seeds": seeds}))
    except SmeltError as error:
        return f"{type(error).__name__}: {error}"


def variables(avals: Sequence[Aval]) -> Iterator[tuple[int, ...]]:
    """Each operand that may be differentiated by itself, and all of them."""
    inexact = [i for i, aval in enumerate(avals) if aval.dtype.is_inexact]
    return iter(dict.fromkeys([*((i,) for i in inexact), tuple(inexact)])) if inexact else iter(())


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_a_copy_is_what_the_rule_emits(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_templates", {})
    asked = [(case, same, wrt) for case in cases(op)[:8] for same in (False, True) for wrt in variables(case.avals)]
    with monkeypatch.context() as patch:
        patch.setattr(Tape, "by_rule", Builder.by_rule)
        expected = [derivative(*each) for each in asked]
    for _ in range(2):
        assert [derivative(*each) for each in asked] == expected


def case_of(name: str, *avals: Aval, **attrs: Any) -> Case:
    return Case(registry[name], avals, tuple(attrs.items()))


def test_what_differs_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types, attributes and which operands are one."""
    monkeypatch.setattr(templates, "_templates", {})
    x, y, half = Aval((2, 3), float32), Aval((3, 2), float32), Aval((2, 3), float16)
    asked = [
        (case_of("mul", x, x), False, (0,)), (case_of("mul", x, x), True, (0,)), (case_of("mul", x, x), False, (1,)),
        (case_of("mul", half, half), False, (0,)), (case_of("mul", y, y), False, (0,)),
        (case_of("reduce_sum", x, axes=(0,)), False, (0,)), (case_of("reduce_sum", x, axes=(1,)), False, (0,)),
        (case_of("convert", x, dtype=float16), False, (0,)), (case_of("convert", half, dtype=float32), False, (0,)),
    ]  # fmt: skip
    found = [derivative(*each) for each in asked]
    monkeypatch.setattr(templates, "_templates", {})
    assert [derivative(*each) for each in reversed(asked)] == found[::-1]
    for a, b in itertools.combinations(found, 2):
        assert a != b


def test_values_of_a_loop_of_python() -> None:
    """Steps are copies of the first one, whatever their number."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((3, 3)).astype(np.float32)

    def loss(w: Any, x: Any) -> Any:
        h = smelt.zeros((2, 3))
        for i in range(x.shape[0]):
            h = smelt.tanh(x[i] + h @ w)
        return smelt.sum(h * h)

    for length in (1, 4, 7, 4):
        x = rng.standard_normal((length, 2, 3)).astype(np.float32)
        found = np.asarray(smelt.grad(loss)(smelt.array(w), smelt.array(x)), np.float64)
        step = 1e-6 * rng.standard_normal(w.shape)

        def value(w: np.ndarray, x: np.ndarray = x) -> float:
            h = np.zeros((2, 3))
            for each in x:
                h = np.tanh(each + h @ w)
            return float((h * h).sum())

        expected = (value(w + step) - value(w - step)) / 2
        np.testing.assert_allclose((found * step).sum(), expected, rtol=1e-4)


def test_they_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_templates", {})
    monkeypatch.setattr(templates, "_MOST", 5)
    for n in range(1, 20):
        derivative(case_of("sin", Aval((n,), float32)), False, (0,))
        assert len(templates._templates) <= 5
