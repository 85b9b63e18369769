"""Scatters of single elements whose places and values are computed some at a time, against the reference rule."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.backends.cpu.scan_scatter import CHUNK
from smelt.ir import dtypes
from smelt.ir.op import registry
from smelt.ir.settings import override
from smelt.lazy.arrays import emit

SHAPES = [((40,), (2 * CHUNK + 3,)), ((5, 9), (CHUNK + 1,)), ((7, 6), (3, CHUNK)), ((3, 4, 5), (CHUNK + 5, 2))]
DTYPES = [dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.bool_, dtypes.complex64, dtypes.float64]


@pytest.mark.parametrize("mode", ["add", "set", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_values(dtype: dtypes.DType, mode: str) -> None:
    """Of one to three axes, with places that are dropped on both sides; the last one of "set" stays."""
    rng = np.random.default_rng(7)
    if dtype.is_complex and mode in ("max", "min"):
        pytest.skip("complex numbers have their own order")

    def numbers(shape: tuple[int, ...]) -> smelt.array:
        found = smelt.array(rng.integers(-3, 4, shape).astype(np.float32) / 2)
        return found.astype(dtype)

    programs, operands, expected = [], [], []
    for extents, lead in SHAPES:
        indices = [smelt.array(rng.integers(-2, d + 2, lead, np.int32)) for d in extents]
        x, updates = numbers(extents), numbers(lead)
        attrs = {"axes": tuple(range(len(extents))), "mode": mode}
        programs.append(attrs)
        operands.append((x, updates, *indices))
        whole = np.asarray(updates.astype(smelt.float32 if dtype is dtypes.bfloat16 else dtype))
        start = np.asarray(x.astype(smelt.float32 if dtype is dtypes.bfloat16 else dtype))
        moved = [np.asarray(i) + 1 for i in indices]
        twice = whole | whole if dtype is dtypes.bool_ else whole + whole
        given = twice.reshape(*lead, *[1] * len(extents))
        expected.append(registry["scatter"].reference(start, given, *moved, **attrs))

    def scattered(operands: list[tuple[smelt.array, ...]]) -> list[smelt.array]:
        found = []
        for (x, updates, *indices), attrs in zip(operands, programs):
            given = (updates | updates if dtype is dtypes.bool_ else updates + updates).reshape(
                *updates.shape, *[1] * x.ndim
            )
            found.append(emit(registry["scatter"], (x, given, *[i + 1 for i in indices]), attrs))
        return found

    with override(small_work=0):
        found = smelt.compile(scattered)(operands)
        smelt.eval(found)
    for have, want in zip(found, expected):
        have = np.asarray(have.astype(smelt.float32) if dtype is dtypes.bfloat16 else have)
        # Sums in half precision are rounded after each update, in either way; products may be infinite.
        tolerance = 0.05 if dtype.size == 2 else 1e-5
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance, equal_nan=True)
