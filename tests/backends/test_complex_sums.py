"""Sums of complex numbers: two sums in vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

SUMS = {
    "rows": lambda x: x.sum(1),
    "columns": lambda x: x.sum(0),
    "all": lambda x: x.sum(),
    "squares": lambda x: (x * x).sum(1),
    "beside others": lambda x: x.sum(1) + abs(x).max(1) + x.real.sum(1),
}


@pytest.mark.parametrize("dtype", [smelt.complex64, smelt.complex128])
@pytest.mark.parametrize("name", SUMS)
def test_values(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    host = rng.standard_normal((67, 1003)) + 1j * rng.standard_normal((67, 1003))
    with override(tier="program"):
        found = smelt.compile(SUMS[name])(smelt.array(host, dtype))
    assert found.dtype is dtype
    tolerance = 1e-5 if dtype is smelt.complex64 else 1e-13
    np.testing.assert_allclose(np.asarray(found), SUMS[name](host), rtol=tolerance, atol=1e3 * tolerance)


@pytest.mark.parametrize("dtype", [smelt.complex64, smelt.complex128])
def test_short_rows(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for length in (1, 2, 3, 4, 5, 8, 13, 28, 31, 64, 65):
        host = rng.standard_normal((4001, length)) + 1j * rng.standard_normal((4001, length))
        for function in (lambda x: x.sum(1), lambda x: (x * x).sum(1) + abs(x).max(1), lambda x: x[:, ::2].mean(1)):
            found = smelt.compile(function)(smelt.array(host, dtype))
            tolerance = 1e-5 if dtype is smelt.complex64 else 1e-13
            np.testing.assert_allclose(np.asarray(found), function(host), rtol=tolerance, atol=10 * tolerance)


@pytest.mark.host("it is about kernels of the CPU")
@pytest.mark.parametrize(("dtype", "length"), [(smelt.complex64, 4), (smelt.complex64, 13), (smelt.complex128, 3)])
def test_loops_over_short_rows_stay(dtype: Any, length: int) -> None:
    """But for those of few bytes: of straight code with pairs LLVM makes no vectors."""
    program = smelt.compile(lambda x: x.sum(1)).trace(smelt.ones((20_001, length), dtype)).lower().compile()
    assert ("loop_annotation" in program.as_text("kernel")) is (length != 4)


@pytest.mark.host("it is about kernels of the CPU")
def test_loops_carry_the_parts() -> None:
    """Of complex numbers LLVM makes no vectors."""
    program = smelt.compile(lambda x: x.sum(1)).trace(smelt.ones((500, 1000), smelt.complex64)).lower().compile()
    carried = [line for line in program.as_text("kernel").splitlines() if "iter_args" in line]
    assert carried and all(line.endswith("-> (f32, f32) {") for line in carried)
