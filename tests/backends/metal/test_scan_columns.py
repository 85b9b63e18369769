"""Scans along an axis that is not contiguous: lines of threads that share columns, and chunks of few long ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.schedules.scan import build as scans
from smelt.backends.gpu.schedules.scan.columns import ColumnShape
from smelt.backends.metal.check import check_or_raise
from smelt.backends.metal.simulator import Options

from ...spies import calls_of
from .harness import check, metal_text
from .test_rows import S, f32, races, run_on

SHAPES = [((17, 2), 0), ((300, 3), 0), ((129, 40), 0), ((2, 260, 5), 1), ((3000, 7), 0), ((2, 2100, 1, 3), 1)]


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many kernels each scan of columns had."""
    return calls_of(monkeypatch, scans, "build_columns", lambda arguments, steps: len(steps))


@pytest.mark.parametrize(("reverse", "inclusive"), [(False, True), (True, False)])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_values(shape: tuple[int, ...], axis: int, reverse: bool, inclusive: bool, columns: list[int]) -> None:
    def function(x: Any) -> Any:
        return smelt.cumsum(x * 2, axis, reverse=reverse, inclusive=inclusive)

    races(function, S(shape, smelt.int32))
    assert columns == [3 if shape[axis] > 2000 else 1]


@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin", "logcumsumexp"])
def test_ops(name: str, columns: list[int]) -> None:
    x = np.random.default_rng(0).uniform(0.99, 1.01, (2300, 3)).astype(np.float32)
    if name in ("cummax", "cummin"):
        x[1500, 1], x[:, 2] = np.nan, -0.0
        x[7, 2] = 0.0
    if name == "logcumsumexp":
        x[:900, 0] = -np.inf
    (found,), (want,) = run_on(lambda x: getattr(smelt, name)(x, 0), x)
    np.testing.assert_allclose(found, want, rtol=2e-4)
    assert columns == [3]


DTYPES = [smelt.float16, smelt.bfloat16, smelt.int8, smelt.int64, smelt.complex64, smelt.bool_]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any, columns: list[int]) -> None:
    def scan(x: Any) -> Any:
        return smelt.cummax(x, 0) if dtype is smelt.bool_ else smelt.cumsum(x, 0)

    check(scan, S((70, 9), dtype), tolerance=2e-2)
    assert columns == [1]


def test_more_groups_than_a_grid_has(columns: list[int]) -> None:
    program = races(lambda x: smelt.cumsum(x, 0), S((20, 5000), f32))
    assert columns == [1] and program.kernels[0].threadgroups[0] == GPUS["simulator"].groups


def test_strict_check(columns: list[int]) -> None:
    check_or_raise(metal_text(lambda x: smelt.cumsum(smelt.exp(x), 0), S((5000, 6), f32)))
    assert columns == [3]


@pytest.mark.parametrize(
    ("columns_", "length", "size", "expected"),
    [
        (8192, 8192, 4, (16, 16, 8)),  # of a line of memory each, so that there are threadgroups enough
        (8192, 8192, 2, (32, 8, 16)),
        (16, 4_000_000, 4, (16, 16, 8)),
        (100_000, 20, 4, (32, 4, 8)),
        (1, 1000, 4, (1, 128, 8)),
        (3, 17, 8, (4, 8, 4)),
    ],
)
def test_shapes(columns_: int, length: int, size: int, expected: tuple[int, int, int]) -> None:
    shape = ColumnShape.of(GPUS["nvidia"], columns_, length, size)
    assert (shape.across, shape.lines, shape.items) == expected


def random_scan(seed: int) -> tuple[Callable[[Any], Any], tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(2, 5))
    axis = int(rng.integers(ndim - 1))
    shape = tuple(int(rng.integers(17, 1200)) if a == axis else int(rng.integers(1, 7)) for a in range(ndim))
    name = str(rng.choice(["cumsum", "cummax", "cummin"]))
    reverse = bool(rng.random() < 0.5)
    inclusive = name != "cumsum" or bool(rng.random() < 0.5)

    def function(x: Any) -> Any:
        return getattr(smelt, name)(smelt.abs(x) - 1, axis, reverse=reverse, inclusive=inclusive) * 2

    return function, shape


def test_random_programs(columns: list[int]) -> None:
    for seed in range(6):
        function, shape = random_scan(seed)
        check(function, S(shape, f32), tolerance=1e-3, options=Options(order="shuffled", poison=True))
    assert len(columns) > 3, columns
