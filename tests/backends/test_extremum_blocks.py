"""Positions of extrema by blocks, beside NumPy's: ties, NaN, infinities, zeros of both signs, views, any threads."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import extremum_blocks
from smelt.ir.kinds import ArgReduction
from smelt.ir.settings import override
from smelt.passes.kernels import groups

from ..compose.drawing import graph
from ..compose.kernels import Way, problems

pytestmark = pytest.mark.host("kernels of the CPU")
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool_")
#: Of blocks with and without a rest, one element, fewer steps than are taken at a time, and axes between others.
SHAPES = ((3, 4133), (4133, 3), (70, 5000), (65, 2048), (3, 2, 4096), (5, 700, 130), (1, 9000), (9000,))


def numbers(shape: tuple[int, ...], dtype: str) -> tuple[Any, np.ndarray]:
    """An array with ties and, of floats, what is compared in other ways; the same for NumPy."""
    rng = np.random.default_rng(len(shape))
    host = np.round(rng.standard_normal(shape) * 9).astype(np.float32)
    if dtype == "bool_":
        host = (host > 25).astype(np.float32)
    elif dtype.startswith("u"):
        host = np.abs(host)
    elif "float" in dtype:
        flat = host.reshape(-1)
        for special in (np.inf, -np.inf, np.nan):
            flat[rng.integers(0, flat.size, 3)] = special
        host[:1], host[..., :1][:1] = -0.0, 0.0
    x = smelt.array(host).astype(getattr(smelt, dtype))
    return x, np.asarray(x.astype(smelt.float32) if dtype == "bfloat16" else x)


def both(x: Any, axis: int, of: Any) -> tuple[Any, ...]:
    return of.argmax(x, axis=axis), of.argmin(x, axis=axis), of.argmax(x[..., ::-1], axis=axis)


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_numpys(dtype: str) -> None:
    found = [0, 0]

    def counted(which: int, f: Any) -> Any:
        def call(*args: Any) -> Any:
            found[which] += 1
            return f(*args)

        return call

    row, steps = extremum_blocks.find_in_row, extremum_blocks.find_in_steps
    with (
        mock.patch.object(extremum_blocks, "find_in_row", counted(0, row)),
        mock.patch.object(extremum_blocks, "find_in_steps", counted(1, steps)),
    ):
        for shape in SHAPES:
            x, host = numbers(shape, dtype)
            axes = range(len(shape))
            wanted = [v for axis in axes for v in both(host, axis, np)]
            for threads in (1, 3):
                with override(tier="program", cache=False, num_threads=threads):
                    got = smelt.compile(lambda x, axes=axes: [v for a in axes for v in both(x, a, smelt)])(x)
                for g, w in zip(got, wanted):
                    np.testing.assert_array_equal(np.asarray(g), w, err_msg=f"{shape} by {threads} threads")
    assert found[0] >= 4
    assert found[1] >= 4 or x.dtype.size > extremum_blocks.NARROW


@pytest.mark.parametrize("axis", [0, 1])
def test_first_of_several_nan_and_zeros(axis: int) -> None:
    host = np.full((4200, 200) if axis == 0 else (200, 4200), -0.0, np.float32)
    lines = host if axis else host.T
    for i in range(200):
        if i % 3 == 0:
            lines[i, 21 * i], lines[i, -1] = np.nan, np.nan
        elif i % 3 == 1:
            lines[i, 20 * i :: 7] = 0.0
        else:
            lines[i, 20 * i + 3 :], lines[i, 0] = np.inf, -np.inf
    for dtype in (smelt.float32, smelt.float16, smelt.bfloat16):
        with override(tier="program", cache=False):
            got = smelt.compile(lambda x: [smelt.argmax(x, axis=axis), smelt.argmin(x, axis=axis)])(
                smelt.array(host).astype(dtype)
            )
        for g, w in zip(got, (np.argmax(host, axis), np.argmin(host, axis))):
            np.testing.assert_array_equal(np.asarray(g), w)


def test_what_is_computed_and_chunks_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SMALL", 0)
    x, host = numbers((2, 70000), "float32")
    for a, h in ((x, host), (x.T, host.T)):
        for axis in (0, 1):
            with np.errstate(invalid="ignore"):
                wanted = np.argmax(np.abs(h - 2), axis=axis)
            for threads in (1, 5):
                with override(tier="program", cache=False, num_threads=threads):
                    got = smelt.compile(lambda x, axis=axis: smelt.argmax(smelt.abs(x - 2), axis=axis))(a)
                np.testing.assert_array_equal(np.asarray(got), wanted)


def test_values_that_later_loops_read_are_kept() -> None:
    x = smelt.array(np.random.default_rng(0).standard_normal((40, 6000), np.float32))

    def f(x: Any) -> Any:
        e = smelt.exp(x / 2)
        at = smelt.argmax(e, axis=-1, keepdims=True)
        return e - at.astype(smelt.float32)

    with override(tier="program", cache=False):
        found = smelt.compile(f)(x)
    with override(device="reference"):
        wanted = smelt.compile(f)(x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=2e-3)


def _is_position(op: Any) -> bool:
    return isinstance(op, ArgReduction)


def test_random_programs_reach_blocks() -> None:
    way, found = Way(beside=True, checked=True), []
    row, steps = extremum_blocks.find_in_row, extremum_blocks.find_in_steps
    chosen = [s for s in range(400) if any(_is_position(step.op) for step in graph(s, inside=True).steps)][:24]
    with (
        mock.patch.object(extremum_blocks, "find_in_row", lambda *a: found.append("row") or row(*a)),
        mock.patch.object(extremum_blocks, "find_in_steps", lambda *a: found.append("steps") or steps(*a)),
    ):
        assert not problems([graph(s, inside=True) for s in chosen], way)
    assert "row" in found
