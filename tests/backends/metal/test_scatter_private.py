"""Many updates of few targets: threads with elements of their own for all targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.schedules.scatter import build as scatters

from ...spies import calls_of
from . import harness
from .test_scan_sort_scatter import Shape, check_scatter


@pytest.fixture(autouse=True)
def private(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How the updates of each scatter are shared."""
    return calls_of(monkeypatch, scatters, "apply_private", lambda arguments, result: arguments[2])


CASES = [
    ((10,), (3000, 1), (0,)),  # elements
    ((1,), (700, 1), (0,)),  # one target
    ((20, 6), (700, 1, 6), (0,)),  # rows
    ((7, 41), (600, 1, 41), (0,)),  # rows longer than a simdgroup
    ((5, 7), (40, 20, 1, 1), (0, 1)),  # elements at two indices
    ((9, 3), (300, 3, 3), (0,)),  # windows that overlap: elements
    ((3, 10), (900, 3, 1), (1,)),  # another axis
    ((60, 2), (1000, 1, 2), (0,)),  # few lines of threads
]


@pytest.mark.parametrize(("x", "updates", "axes"), CASES, ids=str)
def test_values(x: Shape, updates: Shape, axes: Shape, private: list[Any]) -> None:
    check_scatter(x, updates, axes, "add")
    assert private


@pytest.mark.parametrize(("mode", "dtype"), [("max", "float32"), ("min", "float32"), ("mul", "int8")])
def test_modes(mode: str, dtype: str, private: list[Any]) -> None:
    """Products of hundreds are those of small integers, which wrap: of floats they are 0 or infinite."""
    for x, updates, axes in (CASES[0], CASES[3]):
        check_scatter(x, updates, axes, mode, dtype)
    assert len(private) == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint16", "int64"])
def test_dtypes(dtype: str, private: list[Any]) -> None:
    check_scatter((6, 4), (600, 1, 4), (0,), "max" if dtype.startswith(("f", "b")) else "add", dtype)
    assert private


@pytest.mark.parametrize(
    ("x", "updates", "dtype", "mode"),
    [
        ((10,), (3000, 1), "float32", "set"),  # the last one wins
        ((10,), (3000, 1), "complex64", "add"),
        ((400,), (6500, 1), "float32", "add"),  # too many targets
        ((100,), (700, 1), "float32", "add"),  # too few updates
        ((10,), (3000, 1), "int32", "add"),  # atomics
    ],
)
def test_other_ways(x: Shape, updates: Shape, dtype: str, mode: str, private: list[Any]) -> None:
    check_scatter(x, updates, (0,), mode, dtype)
    assert not private


def test_more_groups_than_a_grid_has(monkeypatch: pytest.MonkeyPatch, private: list[Any]) -> None:
    monkeypatch.setitem(GPUS, "simulator", replace(GPUS["simulator"], groups=3))
    check_scatter((3, 200), (600, 1, 200), (0,), "add")
    assert private[0].blocks * private[0].pieces > 3


def test_special_values(private: list[Any]) -> None:
    """NaN reaches its own target alone, and -0 stays where only -0 is added, or nothing."""
    at = np.repeat(np.arange(3), [100, 400, 500]).astype(np.int32)
    for mode in ("add", "maximum"):
        x, updates = np.full(5, -0.0, np.float32), np.full(1000, -0.0, np.float32)
        updates[150] = np.nan

        def function(x: Any, u: Any, i: Any, mode: str = mode) -> Any:
            return getattr(x.at[i], mode)(u)

        graph = harness.graph_of(function, *(smelt.ShapeDtype(a.shape, smelt.array(a).dtype) for a in (x, updates, at)))
        (found,) = harness.run(harness.program_of(graph), [x, updates, at])
        np.testing.assert_array_equal(np.isnan(found), [False, True, False, False, False])
        assert np.signbit(found[[0, 2, 3, 4]]).all()
    assert len(private) == 2


def test_random_programs(private: list[Any]) -> None:
    rng = np.random.default_rng(0)
    for seed in range(5):
        targets, window = int(rng.integers(1, 30)), tuple(int(n) for n in rng.integers(1, 8, rng.integers(3)))
        mode = str(rng.choice(["add", "max", "min"]))
        check_scatter((targets, *window), (int(rng.integers(512, 900)), 1, *window), (0,), mode, seed=seed)
    assert len(private) == 5


def test_gradient_of_an_embedding(private: list[Any]) -> None:
    def function(table: Any, at: Any, cotangent: Any) -> Any:
        return smelt.vjp(lambda table: table[at], [table], [cotangent])[1][0]

    arguments = smelt.ShapeDtype((30, 8), smelt.float32), smelt.ShapeDtype((40, 20), smelt.int32)
    graph = harness.graph_of(function, *arguments, smelt.ShapeDtype((40, 20, 8), smelt.float32))
    at = np.random.default_rng(0).integers(0, 30, (40, 20)).astype(np.int32)
    cotangent = np.random.default_rng(1).standard_normal((40, 20, 8)).astype(np.float32)
    (found,) = harness.run(harness.program_of(graph), [np.zeros((30, 8), np.float32), at, cotangent])
    want = np.zeros((30, 8))
    np.add.at(want, at, cotangent)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    assert private
