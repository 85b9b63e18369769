"""Compiled functions called with arguments that have no values yet: they run with the rest, in order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError
from smelt.ir.settings import override
from smelt.lazy.core import COMPILED
from smelt.lazy.execution import steps

TIERS = pytest.mark.parametrize("tier", ["program", "ops", "auto"])


def is_noted(x: smelt.array) -> bool:
    """Whether an array is the result of a compiled function that has not run."""
    node = x._ref[0]
    return node.values is None and (node.op is COMPILED or any(n.op is COMPILED for n, _ in node.inputs))


def two(x: smelt.array, y: smelt.array) -> tuple[smelt.array, smelt.array]:
    return smelt.sin(x) + y, (x * y).sum()


@TIERS
def test_a_call_waits_for_its_arguments(tier: str) -> None:
    f = smelt.compile(two)
    with override(tier=tier):
        x, y = smelt.ones(5) * 0.5, smelt.ones(5)
        smelt.eval(y)
        a, b = f(x, y)
        assert is_noted(a) and is_noted(b) and a.shape == (5,) and b.dtype == smelt.float32
        c = smelt.exp(a) * b
        np.testing.assert_allclose(c, np.exp(np.sin(0.5) + 1) * 2.5 * np.ones(5), 1e-5)
        assert not is_noted(a)
        np.testing.assert_allclose(a, np.full(5, np.sin(0.5) + 1), 1e-5)
        again, _ = f(y, y)
        assert again._ref[0].values is not None  # arguments with values are run on at once


@TIERS
def test_a_chain_runs_in_order_and_keeps_what_is_asked_for(tier: str) -> None:
    f = smelt.compile(lambda x: (smelt.cos(x), x.sum()))
    with override(tier=tier):
        x, want, sums = smelt.ones(300) * 2, np.full(300, 2, np.float32), []
        for _ in range(40):
            x, total = f(x * 0.5)
            sums.append(total)
        for total in sums:
            np.testing.assert_allclose(total, (want * 0.5).sum(), 1e-4)
            want = np.cos(want * 0.5)
        np.testing.assert_allclose(x, want, 1e-4)


@TIERS
def test_what_is_captured_and_static(tier: str) -> None:
    k = smelt.ones(4) * 3
    f = smelt.compile(lambda x, n: {"y": x * k + n, "n": n})
    with override(tier=tier):
        found = f(smelt.ones(4) * 2, 5)
        assert found["n"] == 5
        np.testing.assert_array_equal(found["y"], np.full(4, 11, np.float32))


@TIERS
def test_state_is_updated_in_order(tier: str) -> None:
    held = {"w": smelt.ones(3) * 2}
    f = smelt.compile(lambda x: held.update(w=held["w"] * x + 1) or held["w"].sum(), inputs=held, outputs=held)
    with override(tier=tier):
        first = f(smelt.ones(3) * 2)
        w = held["w"]
        second = f(smelt.ones(3) * 3)
        assert is_noted(w) and is_noted(second)
        assert (second.item(), first.item()) == (48.0, 15.0)
        np.testing.assert_array_equal(w, [5.0] * 3)
        np.testing.assert_array_equal(held["w"], [16.0] * 3)


@TIERS
def test_random_keys_stay_in_order(tier: str) -> None:
    def draws(lazily: bool) -> list[np.ndarray]:
        smelt.random.seed(3)
        f = smelt.compile(lambda x: smelt.random.normal(x.shape) + x, inputs=smelt.random.state,
                          outputs=smelt.random.state)  # fmt: skip
        found = []
        for i in range(3):
            x = smelt.zeros(4) * i
            if not lazily:
                smelt.eval(x)
            found += [f(x), smelt.random.normal((4,))]
        return [np.array(x) for x in reversed(found)]

    with override(tier=tier):
        np.testing.assert_array_equal(draws(True), draws(False))


def test_transformations_use_results_that_have_no_value_yet() -> None:
    f, x = smelt.compile(lambda x: smelt.sin(x)), smelt.ones(3) * 0.5
    y = f(x * 1)
    np.testing.assert_allclose(smelt.grad(lambda w: (w * y).sum())(x), np.sin([0.5] * 3), 1e-6)
    y = f(x * 1)
    np.testing.assert_allclose(smelt.vmap(lambda w: w * y)(smelt.ones((2, 3))), np.sin([[0.5] * 3] * 2), 1e-6)
    y = f(x * 1)
    np.testing.assert_allclose(smelt.compile(lambda w: w + y)(x), 0.5 + np.sin([0.5] * 3), 1e-6)
    y = f(x * 1)
    np.testing.assert_allclose(smelt.scan(lambda c, a: (c + a * y, a), y, smelt.ones((2, 3)))[0], 3 * np.sin([0.5] * 3))
    np.testing.assert_allclose(smelt.grad(lambda w: f(w * 2).sum())(x), 2 * np.cos([1.0] * 3), 1e-6)


@TIERS
def test_an_error_names_the_call(tier: str) -> None:
    f = smelt.compile(lambda x: smelt.linalg.cholesky(x))
    with override(tier=tier):
        smelt.eval(f(smelt.eye(3)))
        wrong = f(-smelt.eye(3))  # here
        line = Path(__file__).read_text(encoding="utf-8").split("# here")[0].count("\n") + 1
        for _ in range(2):
            with pytest.raises(SmeltError, match=rf"called at .*test_compile_lazily\.py:{line}"):
                smelt.eval(wrong)


def test_async_and_threads() -> None:
    f, x = smelt.compile(two), smelt.ones(5) * 0.5
    a, b = f(x, x)
    smelt.async_eval(a)
    smelt.synchronize()
    assert b.item() == 1.25
    shared, _ = f(x, x)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: (f(shared, x * i)[1] + shared.sum()).item(), range(12)))
    one = (np.sin(0.5) + 0.5) * 5
    np.testing.assert_allclose(found, [one * 0.5 * i + one for i in range(12)], 1e-5)


def test_a_long_chain_does_not_recurse() -> None:
    f, x = smelt.compile(lambda x: x + 1), smelt.zeros(3) * 2
    for _ in range(5000):
        x = f(x)
    np.testing.assert_array_equal(x, [5000.0] * 3)


def test_a_call_on_little_is_a_step_of_a_plan() -> None:
    """Where its memory is worth nothing and it has no effects; each function has its own captured arrays."""

    def made(scale: smelt.array, **options: Any) -> Any:
        f = smelt.compile(lambda x: (smelt.sin(x) * scale, x.sum()), **options)
        f(smelt.ones(4)), f(smelt.ones(50_000))
        return f

    def is_plain(*results: smelt.array) -> bool:
        return steps.plan([x._ref for x in results]).plain

    with override(tier="auto"):
        scales = [smelt.array([1.0, 2.0, 3.0, 4.0]), smelt.array([5.0, 6.0, 7.0, 8.0])]
        smelt.eval(scales)
        first, second = (made(smelt.concatenate([scale] * n)[:1]) for n, scale in enumerate(scales, 1))
        x = smelt.ones(4) * 0.5
        for _ in range(3):  # each time the same plan
            y, total = first(x * 2.0)
            z, _ = second(y + total)
            assert is_plain(y, total, z)
            np.testing.assert_allclose(z, np.sin(np.sin(np.ones(4)) + 4) * 5, 1e-5)
            np.testing.assert_allclose(y, np.sin(np.ones(4)), 1e-5)
        assert not is_plain(*first(smelt.ones(50_000) * 2.0))
        assert not is_plain(*made(scales[0][:1], donate=0)(smelt.ones(4) * 2.0))
