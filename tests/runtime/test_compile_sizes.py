"""`smelt.compile` called with one shape after another: after a few one trace serves all, where none can tell."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
import smelt.nn as nn
import smelt.optimizers as optimizers
from smelt.ir.settings import override
from smelt.transforms import shapeless, versions
from smelt.transforms.compiled_function import PATIENCE

from .test_compile_shapeless import PROGRAMS, TRACED, _sample

SCALE = 2.0
SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def by_ops() -> Iterator[None]:
    with override(tier="ops"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _traces(f: Any) -> int:
    return f._store.traces


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_at_every_shape(name: str) -> None:
    program, truth, _ = PROGRAMS[name]
    f = smelt.compile(program)
    before = _traces(f)  # compiled functions of one function share them, those of other tests too
    ndim = len(next(s for s in PROGRAMS[name][2] if s))
    for k in range(12):
        x = _sample(tuple([4 + 2 * k + 3 * i * (k % 3) for i in range(ndim)]), k)
        np.testing.assert_allclose(f(smelt.array(x, smelt.float64)), truth(x), rtol=1e-10, atol=1e-10)
    assert _traces(f) - before <= (PATIENCE + 1) * ndim or name in TRACED


def test_versions_that_have_gone_need_no_trace() -> None:
    f = smelt.compile(lambda x: (x * 2 + x.shape[0]).sum(axis=0))
    for n in (*range(2, versions.MAX_VERSIONS + 10), *range(2, 8)):
        assert f(smelt.ones((n, 3))).tolist() == [(2.0 + n) * n] * 3
    assert _traces(f) <= 2 * (PATIENCE + 1)  # 3 columns are a family of their own beside 3 rows


def test_what_a_function_refers_to_counts_at_new_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    f = smelt.compile(lambda x: x * SCALE)
    for n in range(2, 8):
        assert f(smelt.ones(n)).tolist() == [2.0] * n
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    for n in range(8, 14):
        assert f(smelt.ones(n)).tolist() == [3.0] * n


def test_functions_that_change_what_they_refer_to_are_traced_for_each_shape() -> None:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        SEEN.append(x.shape)
        return x * count

    SEEN.clear()
    compiled = smelt.compile(f)
    for n in range(2, 12):
        assert compiled(smelt.ones(n)).tolist() == [n - 1.0] * n
    assert [(n,) for n in range(2, 12)] == SEEN
    assert all(type(n) is int for (n,) in SEEN)


def test_what_is_printed_and_named_by_sizes_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    table = {f"w{n}": float(n) for n in range(2, 12)}

    def f(x: Any) -> Any:
        print(x.shape)
        return x * table[f"w{x.shape[0]:d}"]

    compiled = smelt.compile(f)
    for n in range(2, 12):
        assert compiled(smelt.ones(n)).tolist() == [float(n)] * n
    assert {f"({n},)" for n in range(2, 12)} == set(capsys.readouterr().out.splitlines())


def test_functions_of_numpy_on_sizes() -> None:
    """Those of a size that stays as it is are no reason for a trace."""

    def f(x: Any) -> Any:
        rows = np.int64(2) * x.shape[0]
        return (x / np.sqrt(x.shape[-1])).reshape(rows, -1) + np.maximum(x.shape[-1], 3)

    compiled = smelt.compile(f)
    for n in range(2, 20):
        x = np.random.default_rng(n).standard_normal((n, 64))
        want = (x / 8).reshape(2 * n, -1) + 64
        np.testing.assert_allclose(compiled(smelt.array(x)), want, rtol=1e-4, atol=1e-5)
    assert _traces(compiled) <= PATIENCE + 1


def test_powers_of_sizes_are_traced_once_for_all() -> None:
    def f(q: Any, k: Any) -> Any:
        return smelt.softmax(q @ k.T * q.shape[-1] ** -0.5, axis=-1) * q.shape[0] ** 2

    compiled = smelt.compile(f)
    for n in range(20, 40):
        q, k = (np.random.default_rng(n + i).standard_normal((n + 100 * i, 2 * n + 1)) for i in range(2))
        scores = np.exp(q @ k.T * (2 * n + 1) ** -0.5)
        want = scores / scores.sum(axis=-1, keepdims=True) * n**2
        np.testing.assert_allclose(compiled(smelt.array(q), smelt.array(k)), want, rtol=1e-3)
    assert _traces(compiled) <= PATIENCE + 1


def test_whether_modules_train_is_part_of_what_a_function_refers_to() -> None:
    module = smelt.nn.Dropout(0.5)

    def f(x: Any) -> Any:
        return module(x)

    first = smelt.compile(f)
    for n in range(20, 26):
        assert set(np.array(first(smelt.ones(n))).tolist()) == {0.0, 2.0}
    module.eval()
    assert smelt.compile(f)(smelt.ones(20)).tolist() == [1.0] * 20  # shares nothing with what trains
    for n in range(26, 32):
        assert first(smelt.ones(n)).tolist() == [1.0] * n


def _training(compiled: bool) -> tuple[list[float], Any]:
    """Losses of steps with batches of changing size, the last of them with what does not train."""
    smelt.random.seed(3)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm(8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 3))
    optimizer = optimizers.Adam(1e-2)
    smelt.eval(model.parameters())
    state = [model.state, optimizer.state, smelt.random.state]
    gradients = nn.value_and_grad(model, lambda m, x, y: nn.losses.cross_entropy(m(x), y).mean())

    def step(x: Any, y: Any) -> Any:
        loss, g = gradients(model, x, y)
        optimizer.update(model, g)
        return loss

    chosen = smelt.compile(step, inputs=state, outputs=state) if compiled else step
    losses = []
    for n in (*range(9, 25), *range(9, 14)):
        losses.append(chosen(*_batch(n)).item())
    model.eval()
    for n in range(25, 32):
        losses.append(chosen(*_batch(n)).item())
    return losses, chosen


def _batch(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return smelt.array(rng.standard_normal((n, 5)).astype(np.float32)), smelt.array(rng.integers(0, 3, n))


def test_steps_of_training_with_batches_of_all_sizes() -> None:
    found, step = _training(True)
    np.testing.assert_allclose(found, _training(False)[0], rtol=2e-4)
    assert _traces(step) <= 3 * (PATIENCE + 1)  # the first, without momenta; training; after it


def test_state_that_follows_sizes() -> None:
    state: dict[str, Any] = {"last": smelt.zeros(2), "rows": 0, "sum": smelt.zeros(4)}

    def f(x: Any) -> Any:
        state["last"] = x[:, 0] * 2
        state["rows"] = x.shape[0]
        state["sum"] = state["sum"] + x.sum(axis=0)
        return state["last"].sum() + state["rows"]

    step = smelt.compile(f, inputs=state, outputs=state)
    total = np.zeros(4)
    for n in (*range(5, 15), *range(5, 9)):
        x = np.random.default_rng(n).standard_normal((n, 4))
        total += x.sum(axis=0)
        assert step(smelt.array(x)).item() == pytest.approx(2 * x[:, 0].sum() + n, abs=1e-4)
        np.testing.assert_allclose(state["last"], 2 * x[:, 0], rtol=1e-5)
        assert state["rows"] == n
        np.testing.assert_allclose(state["sum"], total, atol=1e-4)


def test_state_of_several_sizes_needs_a_few_traces() -> None:
    state: dict[str, Any] = {"last": smelt.zeros(2)}

    def f(x: Any) -> Any:
        before = state["last"].sum()
        state["last"] = x * 2
        return before

    step = smelt.compile(f, inputs=state, outputs=state)
    before = 0.0
    for n in range(3, 30):
        assert step(smelt.ones(n)).item() == before
        assert state["last"].tolist() == [2.0] * n
        before = 2.0 * n
    assert _traces(step) <= 2 * (PATIENCE + 1)


def test_no_call_waits_for_both_parts_of_what_is_known_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    traced, sized_ops = shapeless._traced, shapeless._sized_ops
    monkeypatch.setattr(shapeless, "_traced", lambda *args: (made.append("trace"), traced(*args))[1])
    monkeypatch.setattr(shapeless, "_sized_ops", lambda *args: (made.append("ops"), sized_ops(*args))[1])
    f = smelt.compile(lambda x: (smelt.exp(x) * 2.5 + x.shape[0]).sum(axis=0))
    rounds = []
    for n in range(3, 12):
        made.clear()
        np.testing.assert_allclose(f(smelt.ones((n, 2))), np.full(2, n * (np.e * 2.5 + n)), rtol=1e-6)
        rounds += [[*made]]
    assert rounds == [[]] * PATIENCE + [["trace"], ["ops"], [], [], []]
