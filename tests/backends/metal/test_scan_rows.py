"""Scans along rows whose neighbours do not load as vectors: by way of threadgroup memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.metal.check import check_or_raise

from .harness import check, metal_text
from .test_rows import S, f32, races, run_on

#: One thread for a row, a simdgroup, a threadgroup, in chunks; full tiles, and tiles that are not.
SHAPES = [(300, 2), (257, 5), (7, 16), (1, 3), (9, 17), (5, 131), (3, 513), (2, 2049), (3, 4101), (1, 20_001)]


@pytest.mark.parametrize(("reverse", "inclusive"), [(False, True), (True, False)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape: tuple[int, int], reverse: bool, inclusive: bool) -> None:
    races(lambda x: smelt.cumsum(x * 2, 1, reverse=reverse, inclusive=inclusive), S(shape, smelt.int32))


@pytest.mark.parametrize("n", [5, 301, 4099])
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin", "logcumsumexp"])
def test_ops(name: str, n: int) -> None:
    x = np.random.default_rng(0).uniform(0.99, 1.01, (40, n)).astype(np.float32)
    if name in ("cummax", "cummin"):
        x[1, n // 2], x[2] = np.nan, -0.0
        x[2, n // 3] = 0.0
    if name == "logcumsumexp":
        x[3, : n // 2] = -np.inf
    (found,), (want,) = run_on(lambda x: getattr(smelt, name)(x, 1), x)
    np.testing.assert_allclose(found, want, rtol=2e-4)


DTYPES = [smelt.float16, smelt.bfloat16, smelt.int8, smelt.int64, smelt.complex64, smelt.bool_]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    def scan(x: Any, y: Any) -> Any:
        return [smelt.cummax(v, 1) if dtype is smelt.bool_ else smelt.cumsum(v, 1) for v in (x, y)]

    check(scan, S((70, 9), dtype), S((3, 301), dtype), tolerance=2e-2)


def test_operands_of_other_layouts() -> None:
    def scan(x: Any, y: Any) -> Any:
        return smelt.cumsum(x.T + y, 1), smelt.cumsum((x * 2)[:5, 1:].T, 1, reverse=True)

    races(scan, S((37, 8), smelt.int32), S((8, 37), smelt.int32))


def test_more_groups_than_a_grid_has() -> None:
    groups = GPUS["simulator"].groups
    program = races(lambda x: smelt.cumsum(x, 1), S((groups * 256 + 300, 3), smelt.int32))
    assert program.kernels[0].threadgroups[0] == groups


def test_strict_check() -> None:
    check_or_raise(metal_text(lambda x, y: (smelt.cumsum(x, 1), smelt.cumsum(y, 1)), S((50, 6), f32), S((9, 301), f32)))
