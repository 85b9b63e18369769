"""Many floats added to many targets, as integers: values, and the same bits in every order of threads and updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.schedules.scatter import build as scatters
from smelt.backends.gpu.schedules.scatter import exact

from ...spies import calls_of
from . import harness
from .test_scan_sort_scatter import RACES, Shape, check_scatter


@pytest.fixture(autouse=True)
def applied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The scatters that are applied so; few updates are enough."""
    monkeypatch.setattr(exact, "LEAST", 64)
    return calls_of(monkeypatch, scatters, "apply_exact", lambda arguments, result: arguments[1])


def added(
    x: Any, at: Any, updates: Any, gpu: str = "simulator", dtype: Any = smelt.float32, options: Any = None
) -> np.ndarray:  # fmt: skip
    """``x.at[at].add(updates)`` on the simulator, as float64."""
    x, updates = (np.asarray(smelt.array(np.asarray(a, np.float32)).astype(dtype)) for a in (x, updates))
    arrays = [x, np.asarray(at, np.int32), updates]
    types = [smelt.ShapeDtype(a.shape, smelt.int32 if i == 1 else dtype) for i, a in enumerate(arrays)]
    graph = harness.graph_of(lambda x, i, u: x.at[i].add(u), *types)
    (found,) = harness.run(harness.program_of(graph, gpu), arrays, options)
    return found.astype(np.float64)


@pytest.mark.parametrize(
    ("x", "updates", "axes"),
    [
        ((60,), (150, 1), (0,)),
        ((300,), (77, 1), (0,)),
        ((20, 4), (67, 1, 4), (0,)),  # rows of four
        ((9, 7), (30, 3, 3), (0,)),  # windows that overlap
        ((9, 8), (70, 1, 1), (0, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_values(x: Shape, updates: Shape, axes: Shape, dtype: str, applied: list[Any]) -> None:
    check_scatter(x, updates, axes, "add", dtype)
    assert applied


@pytest.mark.parametrize("gpu", ["simulator", "nvidia"])
@pytest.mark.parametrize("spread", [1, 40, 250])
def test_sums_are_exact_and_in_no_order(gpu: str, spread: int, applied: list[Any]) -> None:
    """Of exponents close to each other, and all that there are: sums of 64 bits by halves, and whole."""
    rng = np.random.default_rng(spread)
    at = rng.integers(0, 90, 700)
    at[:200] = 7  # lanes side by side with one target
    at[300:310] = at[310:320]
    updates = (rng.standard_normal(700) * 2.0 ** rng.uniform(-spread / 2, spread / 2, 700)).astype(np.float32)
    x = rng.standard_normal(90).astype(np.float32)
    order = rng.permutation(700)
    found = [added(x, at, updates, gpu), added(x, at[order], updates[order], gpu)]
    if gpu == "simulator":
        found += [added(x, at, updates, options=options) for options in RACES]
    assert len(applied) == len(found)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    want, largest = np.zeros(90), np.abs(x.astype(np.float64))
    np.add.at(want, at, updates.astype(np.float64))
    np.maximum.at(largest, at, np.abs(updates.astype(np.float64)))
    assert (np.abs(found[0] - (want + x)) <= 2.0**-22 * np.maximum(np.abs(want), np.abs(x)) + largest * 2.0**-45).all()


def test_small_ones_are_not_lost_beside_large_ones_of_other_targets() -> None:
    at = np.arange(100)
    updates = np.geomspace(1e-44, 1e38, 100).astype(np.float32)
    np.testing.assert_array_equal(added(np.zeros(100), at, updates), updates)
    np.testing.assert_array_equal(added(np.zeros(100), at, -updates), -updates.astype(np.float64))


def test_what_cancels_leaves_the_rest() -> None:
    at, updates = np.zeros(96, np.int32), np.tile(np.float32([1e8, 1, -1e8]), 32)
    np.testing.assert_array_equal(added(np.zeros(40), at, updates)[:2], [32, 0])


@pytest.mark.parametrize("gpu", ["simulator", "nvidia"])
def test_special_values(gpu: str) -> None:
    inf, nan = np.inf, np.nan
    rows = [
        ([inf, 1, 1e30], inf), ([-inf, 1, 5], -inf), ([inf, -inf, 0], nan), ([nan, 1, 2], nan), ([1, nan, inf], nan),
        ([inf, inf, inf], inf), ([1, 2, 3], 6), ([-0.0, -0.0, -0.0], -0.0), ([3e38, 3e38, -3e38], 3e38),
        ([3e38] * 3, inf),
    ]  # fmt: skip
    updates = np.array([x for x, _ in rows] + [[0.0, 0.0, 0.0]] * 20)
    at = np.repeat(np.arange(30), 3)
    order = np.random.default_rng(0).permutation(90)
    for at_, updates_ in ((at, updates.ravel()), (at[order], updates.ravel()[order])):
        found = added(np.full(31, -0.0), at_, updates_, gpu)
        np.testing.assert_allclose(found[: len(rows)], [x for _, x in rows], rtol=1e-6)
        assert np.signbit(found[7]) and np.signbit(found[30])


def test_indices_outside_are_dropped() -> None:
    at = np.arange(90) - 20  # from the end, and then behind it
    found = added(np.ones(50), at, np.ones(90))
    np.testing.assert_array_equal(found, 1 + (np.arange(50) >= 30) + np.ones(50))


@pytest.mark.parametrize(
    ("x", "updates", "dtype", "mode"),
    [
        ((2000,), (66, 1), "float32", "add"),  # few updates of many targets
        ((60,), (150, 1), "float32", "max"),
        ((60,), (150, 1), "complex64", "add"),
        ((30, 8), (70, 1, 8), "float32", "add"),  # rows
    ],
)
def test_other_ways(x: Shape, updates: Shape, dtype: str, mode: str, applied: list[Any]) -> None:
    check_scatter(x, updates, (0,), mode, dtype)
    assert not applied
