"""Compiled functions that run the next one twice: neither traces nor programs double with each level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.passes import Pipeline
from smelt.passes.simplify import inline
from smelt.transforms import repeated_calls

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)


def nested(levels: int, apply: Callable[[Any], Any] = smelt.compile) -> Any:
    run: Any = lambda x: smelt.tanh(x) * 0.9  # noqa: E731
    for level in range(levels):
        run = apply(lambda x, inner=run, number=float(level): inner(inner(x) * 0.5 + number) - x)
    return run


@pytest.fixture
def kept_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls but the first are calls of recorded functions, and stay calls."""
    monkeypatch.setattr(repeated_calls, "MOST_TRACED", 0)
    monkeypatch.setattr(inline, "MOST_OPS", 0)
    monkeypatch.setattr(inline, "MANY_OPS", 3)


WAYS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda f: f,
    "grad": lambda f: smelt.grad(lambda x: f(x).sum()),
    "vmap": smelt.vmap,
    "vmap of grad": lambda f: smelt.vmap(smelt.grad(lambda x: f(x).sum())),
    "jvp": lambda f: lambda x: smelt.jvp(f, [x], [smelt.ones_like(x)])[1][0],
    "scan": lambda f: lambda x: smelt.scan(lambda c, row: (f(c) + row, f(row)), x[0], x)[1],
}


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
@pytest.mark.parametrize("way", WAYS)
def test_values_are_those_of_plain_functions(kept_calls: None, way: str, device: str) -> None:
    with override(device="reference"):
        want = np.asarray(WAYS[way](nested(3, lambda f: f))(smelt.array(X)))
    with override(device=device):
        function = smelt.compile(WAYS[way](nested(3)))
        np.testing.assert_allclose(np.asarray(function(smelt.array(X))), want, rtol=2e-5, atol=1e-5)


def test_calls_that_stay_are_loops_of_one_step(kept_calls: None) -> None:
    module = smelt.compile(nested(3)).trace(smelt.array(X)).lower().module
    assert "call @" in str(module)
    assert "scf.for" not in str(module)
    Pipeline.parse("inline").run(module)
    assert "scf.for" in str(module)


def test_neither_trace_nor_program_doubles_with_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "MANY_OPS", 50)
    monkeypatch.setattr(inline, "MOST_OPS", 1000)
    traced, inlined = [], []
    for levels in (16, 20, 24):
        module = smelt.compile(nested(levels)).trace(smelt.array(X)).lower().module
        traced.append(str(module).count("\n"))
        Pipeline.parse("inline,cse,dce").run(module)
        inlined.append(str(module).count("\n"))
    for lines in (traced, inlined):
        assert lines[2] - lines[1] <= 1.2 * (lines[1] - lines[0])


def called_twice(f: Any) -> list[np.ndarray]:
    """The results of two calls in one trace."""
    return [np.asarray(y) for y in smelt.compile(lambda x: [f(x), f(x)])(smelt.array(X))]


def test_what_a_function_reads_besides_its_arguments_is_read_in_each_call(kept_calls: None) -> None:
    held = {"w": smelt.array(2.0)}
    f = smelt.compile(lambda x: x * held["w"])

    def g(x: Any) -> list[Any]:
        found = [f(x), f(x)]
        held["w"] = x[0, 0]
        return [*found, f(x), f(x + 1) * held["w"]]

    want = [X * 2, X * 2, X * X[0, 0], (X + 1) * X[0, 0] ** 2]
    for y, expected in zip(smelt.compile(g)(smelt.array(X)), want):
        np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-6)


def test_numbers_that_change_are_seen_in_each_call(kept_calls: None) -> None:
    held = [1.0]
    f = smelt.compile(lambda x: x * held[0])

    def g(x: Any) -> list[Any]:
        found = []
        for i in range(4):
            found.append(f(x))
            held[0] = float(i // 2)
        return found

    for y, factor in zip(smelt.compile(g)(smelt.array(X)), (1, 0, 0, 1)):
        np.testing.assert_array_equal(np.asarray(y), X * factor)


def test_random_numbers_differ_from_call_to_call(kept_calls: None) -> None:
    f = smelt.compile(lambda x: x + smelt.random.normal(x.shape))
    first, second = called_twice(f)
    assert not np.allclose(first, second)


def test_a_counter_counts_each_call(kept_calls: None) -> None:
    count = [0]

    def f(x: Any) -> Any:
        count[0] += 1
        return x + count[0]

    first, second = called_twice(smelt.compile(f))
    np.testing.assert_allclose(second - first, np.ones_like(X), rtol=1e-6)


def test_trees_and_results_that_are_no_arrays_stay(kept_calls: None) -> None:
    f = smelt.compile(lambda d, n: {"y": d["x"] * n, "n": (n, None)})

    def g(x: Any) -> list[Any]:
        found = [f({"x": x}, n) for n in (2, 2, 3, 2)]
        assert [r["n"] for r in found] == [(2, None), (2, None), (3, None), (2, None)]
        return [r["y"] for r in found]

    for y, factor in zip(smelt.compile(g)(smelt.array(X)), (2, 2, 3, 2)):
        np.testing.assert_array_equal(np.asarray(y), X * factor)
