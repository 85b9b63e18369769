"""Compiled functions that still run op by op, and take microseconds: the runs that are not measured give the same, and
end where the function is to run in another way."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy import core
from smelt.lazy.evaluate import executables
from smelt.lazy.execution import tiered, tiers
from smelt.lazy.execution.short_runs import UNMEASURED

RUNS = 4 * UNMEASURED


class Compiling:
    """A program that another process compiles until somebody says that it is there."""

    def __init__(self) -> None:
        self.is_over = False

    def ready(self) -> bool:
        return self.is_over

    def program(self) -> Any:
        return None


@pytest.fixture(autouse=True)
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiling]:
    found = Compiling()
    executables.clear()
    tiers.structures.clear()
    monkeypatch.setattr(tiers, "pays_at_once", lambda *args: False)
    monkeypatch.setattr(tiered, "program_in_background", lambda *args, **kwargs: found)
    monkeypatch.setattr(tiered, "kept_program", lambda *args: None)
    with override(tier="auto", small_work=0):
        yield found
    executables.clear()
    tiers.structures.clear()


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 0.9, shape).astype(np.float32)


X, W = numbers(8, 8), numbers(8, 8)

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, w: smelt.tanh(x @ w),
    "several": lambda x, w: (x + w, {"a": x.sum(), "b": [x]}),
    "argument": lambda x, w: (w, x),
    "constants": lambda x, w: (smelt.ones((2, 3)), smelt.arange(4) + 1, x * 2.5),
    "views": lambda x, w: (x[0], x.T, smelt.broadcast_to(w[:1], (3, 8)), x.reshape(2, 32)[:, ::2]),
    "scalars": lambda x, w: x.sum() * w.max(),
    "halves": lambda x, w: (x.astype(smelt.bfloat16) * 2, (x > w).astype(smelt.int8), x > 0.5),
    "sorted": lambda x, w: smelt.sort(x, axis=-1) + smelt.cumsum(w, axis=0),
    "empty": lambda x, w: x[:0].sum() + w[3:3].sum(axis=0),
    "silent": lambda x, w: smelt.log(x - x) / (w - w),
}


@pytest.mark.skipif(core.native is None, reason="without the C core all runs are measured")
def test_most_runs_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    run_ops = tiers.Structure.run_ops
    monkeypatch.setattr(tiers.Structure, "run_ops", lambda self, run: measured.append(1) or run_ops(self, run))
    f, x, w = smelt.compile(lambda x, w: smelt.tanh(x @ w)), smelt.array(X), smelt.array(W)
    for _ in range(RUNS):
        f(x, w)
    assert len(measured) < RUNS / 2


def test_runs_that_are_not_measured_count_as_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    f, x, w = smelt.compile(lambda x, w: smelt.tanh(x @ w)), smelt.array(X), smelt.array(W)
    for _ in range(RUNS):
        f(x, w)
    executable = f._store.recent.executable
    structure, before = executable._structure, 0 if executable._short is None else executable._short.left
    structure.library, structure.own = 8e-6, 1.0  # of a run of 10 µs
    structure.taken = structure.spent = 0.0
    structure.ops_seconds = 10e-6
    monkeypatch.setattr(tiers.time, "thread_time", lambda: next(clock) * 10e-6)
    for _ in range(RUNS):
        f(x, w)
    counted = RUNS + (0 if executable._short is None else executable._short.left - before)
    assert structure.taken == pytest.approx(counted * 10e-6)
    assert structure.spent == pytest.approx(counted * structure.saved(10e-6))
    assert structure.spent < 0.5 * structure.taken


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("error")
def test_all_runs_give_the_same(name: str) -> None:
    f = FUNCTIONS[name]
    compiled, wanted = smelt.compile(f), f(smelt.array(X), smelt.array(W))
    for run in range(RUNS):
        found = compiled(smelt.array(X), smelt.array(W))
        for (path, one), (_, other) in zip(smelt.utils.tree_flatten(found), smelt.utils.tree_flatten(wanted)):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(
                np.asarray(one.astype(smelt.float32)), np.asarray(other.astype(smelt.float32)), 1e-6,
                err_msg=f"{path}, run {run}",
            )  # fmt: skip


def test_results_are_no_views_that_change_with_each_other() -> None:
    f = smelt.compile(FUNCTIONS["argument"])
    x, w = smelt.array(X), smelt.array(W)
    for _ in range(RUNS):
        first, second = f(x, w)
        np.asarray(second)[:] = 7  # a view of memory of its own
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(first, W)


def test_state_is_updated_in_each_run() -> None:
    state = {"n": smelt.array(0.0)}

    def step(x: smelt.array) -> smelt.array:
        state["n"] = state["n"] + x
        return state["n"] * 2

    compiled = smelt.compile(step, inputs=state, outputs=state)
    for i in range(RUNS):
        assert compiled(smelt.array(1.0)).item() == 2 * (i + 1)
    assert state["n"].item() == RUNS


def test_they_end_when_the_program_is_there(compiling: Compiling) -> None:
    f, x, w = smelt.compile(lambda x, w: smelt.tanh(x @ w)), smelt.array(X), smelt.array(W)
    for _ in range(RUNS + 1):
        f(x, w)
    executable = f._store.recent.executable
    assert executable._program is None
    compiling.is_over = True  # what it gives is None: the caller compiles in place
    np.testing.assert_allclose(f(x, w), np.tanh(X @ W), 1e-5)
    assert executable._program is not None


@pytest.mark.parametrize("changed", [{"tier": "program"}, {"check": True}])
def test_settings_that_change_hold_at_once(changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    f, x, w = smelt.compile(lambda x, w: smelt.tanh(x @ w)), smelt.array(X), smelt.array(W)
    for _ in range(RUNS + 1):
        f(x, w)
    executable = f._store.recent.executable
    asked = []
    run = tiered.TieredExecutable.run_donated
    monkeypatch.setattr(
        tiered.TieredExecutable, "run_donated", lambda self, *given: asked.append(1) or run(self, *given)
    )
    with override(**changed):
        executable.run([smelt.array(a)._ref[0].values[0] for a in (X, W)])
    assert asked


def test_without_memory_the_op_is_named() -> None:
    f, x, w = smelt.compile(lambda x, w: smelt.sin(smelt.sort(x) @ w)), smelt.array(X), smelt.array(W)
    for _ in range(RUNS + 1):
        f(x, w)
    executable = f._store.recent.executable
    if executable._short is None:
        pytest.skip("without the C core all runs are measured")

    def none_left(*given: Any) -> Any:
        raise MemoryError("none left")

    calls = executable._short._calls
    (place,) = [i for i, step in enumerate(executable._ops.steps) if step.op.name == "sin"]
    calls[place] = (none_left, *tuple(calls[place])[1:])
    with pytest.raises(smelt.errors.OutOfMemoryError, match=r"smelt\.sin: none left; at .*test_short_runs\.py"):
        for _ in range(UNMEASURED):
            f(x, w)


def test_nothing_is_kept() -> None:
    f, x, w = smelt.compile(FUNCTIONS["several"]), smelt.array(X), smelt.array(W)
    for _ in range(RUNS):
        f(x, w)
    tracemalloc.start()
    try:
        for _ in range(RUNS):
            f(x, w)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20 * RUNS):
            f(x, w)
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()
