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


@pytest.mark.host("it is about kernels of the CPU")
def test_loops_carry_the_parts() -> None:
    """Of complex numbers LLVM makes no vectors."""
    program = smelt.compile(lambda x: x.sum(1)).trace(smelt.ones((500, 1000), smelt.complex64)).lower().compile()
    carried = [line for line in program.as_text("kernel").splitlines() if "iter_args" in line]
    assert carried and all(line.endswith("-> (f32, f32) {") for line in carried)
