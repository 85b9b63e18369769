"""Rows of which a few numbers are left, and expensive functions of these, which are computed for many rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import followed_rows, reductions, vector_rows
from smelt.ir.settings import override

#: Of x[i, None, :] and y[None, j, :].
PROGRAMS: dict[str, Callable[..., Any]] = {
    "distances": lambda x, y, of: of.exp(-((x - y) ** 2).mean(-1)),
    "several": lambda x, y, of: (of.log(1 + ((x - y) ** 2).sum(-1)), (x + y).max(-1), of.tanh((x * y).min(-1))),
    "two after each other": lambda x, y, of: of.exp(-((x * y - (x * y).mean(-1, keepdims=True)) ** 2).mean(-1)),
    "a place": lambda x, y, of: of.sin((x - y).argmax(-1) * 0.25) + (x - y).max(-1),
    "with the rows' own": lambda x, y, of: of.exp((x * y).mean(-1)) * x[..., 0] + y[..., 1],
    "truth": lambda x, y, of: of.where((x > y).all(-1), 1.0, of.exp(-(x * x + y).mean(-1))),
}
SHAPES = [(40, 67, 50), (3, 129, 41), (1, 1000, 64), (200, 16, 5), (65, 64, 300)]


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each kernel of this kind."""
    found: list[int] = []

    class Counted(followed_rows.FollowedRowKernel):
        def __init__(self, *arguments: Any):
            super().__init__(*arguments)
            found.append(1)

    monkeypatch.setattr(vector_rows, "LONGEST", 0)
    monkeypatch.setattr(reductions, "FollowedRowKernel", Counted)
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, shape: tuple[int, int, int], uses: list[int]) -> None:
    a, b, length = shape
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((n, length)).astype(np.float32) for n in (a, b))
    x[0, 0], y[1 % b, 2] = np.nan, np.inf
    with override(cache=False, check=True):
        found = smelt.compile(lambda x, y: PROGRAMS[name](x[:, None], y[None], smelt))(smelt.array(x), smelt.array(y))
    with np.errstate(all="ignore"):
        wanted = PROGRAMS[name](x.astype(np.float64)[:, None], y.astype(np.float64)[None], np)
    for have, want in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
        np.testing.assert_allclose(np.asarray(have), want, rtol=3e-5, atol=3e-5)
    if length > 40 and b >= 64:
        assert uses


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int16", "complex64"])
def test_dtypes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (smelt.array(np.round(rng.standard_normal((n, 48)) * 2)).astype(getattr(smelt, dtype)) for n in (30, 70))
    f = lambda x, y: smelt.exp(-((x[:, None] * y[None]).sum(-1) / 100).astype(smelt.complex64))  # noqa: E731
    with override(cache=False):
        found = np.asarray(smelt.compile(f)(x, y))
    exact = np.asarray(x.astype(smelt.complex64)) @ np.asarray(y.astype(smelt.complex64)).T
    np.testing.assert_allclose(found, np.exp(-exact / 100), rtol=2e-2 if x.dtype.size == 2 else 1e-5)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_threads_change_no_bit(threads: int) -> None:
    rng = np.random.default_rng(0)
    x, y = (smelt.array(rng.standard_normal((n, 64)).astype(np.float32)) for n in (37, 130))
    f = smelt.compile(lambda x, y: smelt.exp(-((x[:, None] - y[None]) ** 2).sum(-1)))
    with override(num_threads=1):
        wanted = np.asarray(f(x, y))
    with override(num_threads=threads):
        np.testing.assert_array_equal(np.asarray(f(x, y)), wanted)


def test_cheap_functions_and_long_rows_stay_as_they_are(uses: list[int]) -> None:
    with override(cache=False):
        smelt.eval(smelt.compile(lambda x: x.sum(1) * 2 + 1)(smelt.ones((500, 100))))
        smelt.eval(smelt.compile(lambda x: smelt.exp(x.sum(1)))(smelt.ones((40, 5000))))
    assert not uses
