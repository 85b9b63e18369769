"""A graph that has run by its program runs by it again: what a plan hands to a program, and what it gets back."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import OutOfMemoryError, SmeltError
from smelt.ir.settings import override, settings
from smelt.lazy import evaluate
from smelt.lazy.evaluate import executables
from smelt.lazy.execution import known, tiers
from smelt.lazy.execution.bound import BoundProgram
from smelt.lazy.execution.rolled import LEAST
from smelt.lazy.execution.steps import plan

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BoundProgram]]:
    """Programs are made at once, in place; those that plans ran by, one a run."""
    executables.clear()
    tiers.structures.clear()
    known.by_plan.clear()
    settings.small_work = 0
    for name in ("seconds", "in_place"):
        monkeypatch.setattr(tiers.CompileCost, name, lambda *args: 0.0)
    monkeypatch.setattr(tiers.Structure, "prefers_ops", False)
    found: list[BoundProgram] = []
    run = evaluate._ran_by_program

    def noted(plan: Any, program: BoundProgram) -> bool:
        ran = run(plan, program)
        if ran:
            found.append(program)
        return ran

    monkeypatch.setattr(evaluate, "_ran_by_program", noted)
    with override(tier="auto"):
        yield found
    tiers.structures.clear()
    known.by_plan.clear()


def given(*shape: int) -> smelt.array:
    x = smelt.array(RNG.uniform(0.2, 0.8, shape).astype(np.float32))
    smelt.eval(x)
    return x


def layer(x: smelt.array, w: smelt.array) -> list[smelt.array]:
    h = smelt.tanh(x @ w)
    return [h, smelt.mean(h * w, axis=0), x[1:] - w[:-1]]


def swapped(x: smelt.array, w: smelt.array) -> list[smelt.array]:
    """Reads its operands in another order than its results need them, some of them twice."""
    return [w * x - x, smelt.where(x > w, w, x), w + x]


def several(x: smelt.array, w: smelt.array) -> list[smelt.array]:
    value, gradients = smelt.value_and_grad(lambda x, w: smelt.sum(smelt.sin(x @ w) * x), argnums=(0, 1))(x, w)
    return [value, *gradients, value * 2]


def numbers(x: smelt.array, w: smelt.array) -> list[smelt.array]:
    return [x * float(RNG.integers(2, 9)) * 0 + w, smelt.exp(x) / 3]


def held(x: smelt.array, w: smelt.array) -> list[smelt.array]:
    h = smelt.exp(x)
    kept.append(h)
    return [smelt.sum(h * w), h + 1]


def long(x: smelt.array, w: smelt.array) -> list[smelt.array]:
    """Longer than what is searched for repetitions, of which there are none."""
    for i in range(LEAST // 2):
        x = (x * 0.5, x + w, smelt.sin(x), smelt.maximum(x, 0.1))[(i * i + i // 3) % 4] + 0.25
    return [x]


kept: list[smelt.array] = []


@pytest.mark.parametrize("f", [layer, swapped, several, numbers, held, long], ids=lambda f: f.__name__)
def test_values_are_those_of_the_operands_that_are_there(f: Callable[..., Any], bound: list[BoundProgram]) -> None:
    for i in range(8):
        x, w = given(6, 6), given(6, 6)
        if i == 5:
            w = x  # one value twice: another structure
        found = f(x, w)
        smelt.eval(found)
        with override(tier="ops"):
            want = f(x, w)
            smelt.eval(want)
        for a, b in zip(found, want):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)
    while len(kept) > 1:
        np.testing.assert_allclose(np.asarray(kept.pop()), np.asarray(kept.pop()), rtol=2e-5)
    assert len(bound) >= 3


def test_loops_in_place_of_repetitions_are_found_each_time(bound: list[BoundProgram]) -> None:
    """They depend on which operands are one value."""
    for i in range(6):
        x, w = given(4), given(4)
        ws = [w] * LEAST if i != 4 else [w] * (LEAST - 1) + [given(4)]
        found = x
        for v in ws:
            found = smelt.sin(found * v) + v
        want = np.asarray(x)
        for v in ws:
            want = np.sin(want * np.asarray(v)) + np.asarray(v)
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4)
    assert not bound


def test_errors_name_the_line_of_each_run(bound: list[BoundProgram]) -> None:
    good, bad = smelt.eye(3), -smelt.eye(3)
    smelt.eval(good, bad)
    for _ in range(5):
        smelt.eval(smelt.linalg.cholesky(good) + 1)
    ways = [
        lambda: smelt.linalg.cholesky(bad) + 1,
        lambda: smelt.linalg.cholesky(bad) + 1,
    ]
    for way in ways:
        with pytest.raises(SmeltError, match=rf"cholesky.*test_bound.py:{way.__code__.co_firstlineno}"):
            smelt.eval(way())


def test_settings_and_caches_count(bound: list[BoundProgram]) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    assert len(bound) == 1
    misses = executables.misses
    with override(libraries=not settings.libraries):
        smelt.eval(layer(x, w))
    assert len(bound) == 1 and executables.misses == misses + 1
    executables.clear()
    smelt.eval(layer(x, w))
    assert len(bound) == 1 and executables.misses == misses + 2
    for tier in ("ops", "program"):
        with override(tier=tier):
            smelt.eval(layer(x, w))
    assert len(bound) == 1


def test_what_somebody_else_has_in_work_is_waited_for(bound: list[BoundProgram], monkeypatch: Any) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    began, may_end = threading.Event(), threading.Event()
    program = bound[0].program()
    assert program is not None
    slow, runs = type(program).run, list[int]()

    def waits(self: Any, inputs: Any) -> Any:
        runs.append(threading.get_ident())
        began.set()
        may_end.wait(10)
        return slow(self, inputs)

    monkeypatch.setattr(type(program), "run", waits)
    found = layer(x, w)
    threads = [threading.Thread(target=smelt.eval, args=(found,)) for _ in range(3)]
    threads[0].start()
    assert began.wait(10)
    for thread in threads[1:]:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join(20)
    assert len(runs) == 1
    want = np.tanh(np.asarray(x) @ np.asarray(w))
    np.testing.assert_allclose(np.asarray(found[0]), want, rtol=1e-5)


def test_memory_that_there_is_not_names_what_did_not_fit(bound: list[BoundProgram], monkeypatch: Any) -> None:
    x, w = given(5, 5), given(5, 5)
    for _ in range(4):
        smelt.eval(layer(x, w))
    program = bound[0].program()

    def fails(self: Any, inputs: Any) -> Any:
        raise OutOfMemoryError("no memory")

    found = layer(x, w)
    with monkeypatch.context() as patch:
        patch.setattr(type(program), "run", fails)
        with pytest.raises(OutOfMemoryError, match=r"the largest result is f32\[5,5\]"):
            smelt.eval(found)
    smelt.eval(found)
    np.testing.assert_allclose(np.asarray(found[2]), np.asarray(x)[1:] - np.asarray(w)[:-1], rtol=1e-6)


def check_what_is_let_go() -> None:
    for _ in range(5):
        x, w = given(5, 5), given(5, 5)
        found = layer(x, w)
        seen = weakref.ref(x._ref[0])
        smelt.eval(found)
        del x, w
    gc.collect()
    assert seen() is None


def test_evaluated_nodes_let_go_of_what_they_were_made_from(bound: list[BoundProgram]) -> None:
    check_what_is_let_go()
    assert bound


def check_a_derivative() -> None:
    """Of a function that evaluates inside."""

    def f(x: smelt.array) -> smelt.array:
        y = smelt.sin(x) * smelt.exp(x)
        smelt.eval(y)
        return smelt.sum(y * y)

    x = given(4)
    at = np.asarray(x).astype(np.float64)
    want = 2 * np.sin(at) * np.exp(2 * at) * (np.sin(at) + np.cos(at))
    for _ in range(6):
        np.testing.assert_allclose(np.asarray(smelt.grad(f)(x)), want, rtol=1e-5)


def test_a_derivative_looks_at_what_was_evaluated_inside(bound: list[BoundProgram]) -> None:
    check_a_derivative()
    assert bound


def test_what_a_plan_takes_and_gives() -> None:
    x, w = given(3), given(3)
    y = x * w
    found = plan([y._ref])
    owned = [object()]
    assert found.claim(owned) and not found.claim(owned) and found.owner is None
    assert [b is n.values[0] for b, n in zip(found.values((1, 0)), (w._ref[0], x._ref[0]))] == [True, True]
    with pytest.raises(IndexError):
        found.values((7,))
    with pytest.raises(ValueError, match="0 values for 1 results"):
        found.give([], owned)
    found.give([w._ref[0].values[0]], owned)
    assert y._ref[0].values[0] is w._ref[0].values[0] and not y._ref[0].inputs
