"""Reductions whose states merge: the maximum with a sum of exponentials, the sum with squared distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.schedules.rows import build as rows

from ...spies import calls_of
from .test_rows import S, f32, races, run_on

#: Elements of a row too long for the registers of `FEW`.
LONG = 1600
#: A GPU with few registers, so that short rows are long.
FEW = replace(GPUS["simulator"], row_values=4, row_threads=64, max_threads=64, threads=64)


@pytest.fixture(autouse=True)
def few_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPUS, "simulator", FEW)


def normalized(x: Any, axis: int) -> Any:
    centered = x - smelt.mean(x, axis=axis, keepdims=True)
    return centered * smelt.rsqrt(smelt.mean(centered * centered, axis=axis, keepdims=True) + 1e-5)


def gradient(x: Any, ct: Any, axis: int) -> Any:
    return smelt.vjp(lambda x: normalized(x, axis), [x], [ct])[1][0]


FUNCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "softmax": lambda x, axis: smelt.softmax(x, axis=axis),
    "logsumexp": lambda x, axis: smelt.logsumexp(x, axis=axis),
    "log_softmax": lambda x, axis: x - smelt.logsumexp(x, axis=axis, keepdims=True),
    "maximum_too": lambda x, axis: (smelt.logsumexp(x, axis=axis), smelt.max(x, axis=axis), smelt.argmax(x, axis=axis)),
    "variance": lambda x, axis: smelt.var(x, axis=axis),
    "mean_too": lambda x, axis: (smelt.mean(x, axis=axis), smelt.std(x, axis=axis, ddof=1)),
    "normalized": normalized,
    "gradient": lambda x, axis: gradient(x, smelt.cos(3 * x), axis),
}
SHAPES = [((LONG, 16), 0), ((1501, 21), 0), ((3000, 1), 0), ((7, 4099), 1), ((4, 700, 10), 1), ((16, 20000), 1)]


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs each fusion had."""
    return calls_of(monkeypatch, rows, "merged_states", lambda arguments, states: len(states))


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, shape: tuple[int, ...], axis: int, merges: list[int]) -> None:
    program = races(lambda x: FUNCTIONS[name](x, axis), S(shape, f32), tolerance=2e-4)
    assert sum(merges)
    if shape[1] == 20000 and name in ("logsumexp", "variance"):
        assert [k.schedule for k in program.kernels] == ["row chunks", "combine"]


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "log_softmax", "variance", "mean_too"])
def test_no_array_is_read_once_more(name: str) -> None:
    """A loop for both, and one for what is as long as the row."""
    x = S((LONG, 16), f32)
    program = races(lambda x: FUNCTIONS[name](x, 0), x, tolerance=2e-4)
    nbytes = LONG * 16 * 4
    loops = 2 if name in ("softmax", "log_softmax") else 1
    assert loops * nbytes <= sum(k.bytes_read for k in program.kernels) < (loops + 0.5) * nbytes


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_all_sums_of_a_gradient_in_one_loop(shape: tuple[int, ...], axis: int) -> None:
    """Means, squared distances and what the cotangent adds to them; then one loop for the result."""
    x = S(shape, f32)
    program = races(lambda x, ct: gradient(x, ct, axis), x, x, tolerance=2e-4)
    nbytes = 2 * int(np.prod(shape)) * 4
    assert 2 * nbytes <= sum(k.bytes_read for k in program.kernels) < 2.5 * nbytes


@pytest.mark.parametrize("first", [0.0, 1e3, -3e4])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_gradient_far_from_zero(first: float, axis: int) -> None:
    rng = np.random.default_rng(0)
    x, ct = rng.normal(1e3, 3, (LONG, 16)).astype(np.float32), rng.standard_normal((LONG, 16), np.float32)
    x[:200] = first
    ct[:, 3] += 100
    x, ct = (v if axis == 0 else np.ascontiguousarray(v.T) for v in (x, ct))
    (found,), _ = run_on(lambda x, ct: gradient(x, ct, axis), x, ct)
    wide, far = x.astype(np.float64), ct.astype(np.float64)
    apart = wide - wide.mean(axis, keepdims=True)
    inverse = 1 / np.sqrt((apart * apart).mean(axis, keepdims=True) + 1e-5)
    unit = apart * inverse
    want = inverse * (far - far.mean(axis, keepdims=True) - unit * (far * unit).mean(axis, keepdims=True))
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-4 * np.abs(inverse * far).max())


def test_a_gradient_of_what_is_no_number() -> None:
    x, ct = (np.random.default_rng(i).standard_normal((LONG, 16)).astype(np.float32) for i in range(2))
    x[5, 0], x[7, 1], ct[9, 2], ct[1300, 3] = np.nan, np.inf, np.nan, -np.inf
    (found,), (want,) = run_on(lambda x, ct: gradient(x, ct, 0), x, ct)
    assert not np.isfinite(found[:, :4]).any() and np.isfinite(found[:, 4:]).all()
    np.testing.assert_allclose(found[:, 4:], want[:, 4:], rtol=0, atol=1e-4)


SPECIAL = {
    "minus infinity": lambda x: x.__setitem__((slice(None), 0), -np.inf),
    "minus infinity first": lambda x: x.__setitem__((slice(0, 800), 0), -np.inf),
    "infinity": lambda x: x.__setitem__((5, 0), np.inf),
    "infinities": lambda x: x.__setitem__((slice(3, 9), 0), np.inf),
    "both infinities": lambda x: (x.__setitem__((5, 0), np.inf), x.__setitem__((1500, 0), -np.inf)),
    "NaN": lambda x: x.__setitem__((1301, 0), np.nan),
    "NaN and infinity": lambda x: (x.__setitem__((0, 0), np.inf), x.__setitem__((LONG - 1, 0), np.nan)),
    "ties": lambda x: x.__setitem__((slice(None), 0), 3.0),
    "large": lambda x: x.__setitem__((slice(None), 0), x[:, 0] * 1e15),
    "rising": lambda x: x.__setitem__((slice(None), 0), np.arange(LONG) / 10),
    "far from zero": lambda x: x.__setitem__((slice(None), 0), x[:, 0] + 1e4),
    "an outlier first": lambda x: x.__setitem__((0, 0), 1e6),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("axis", [0, 1])
def test_special_values(special: str, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((LONG, 16)).astype(np.float32)
    SPECIAL[special](x)
    x = x if axis == 0 else np.ascontiguousarray(x.T)

    def function(x: Any) -> Any:
        return smelt.softmax(x, axis=axis), smelt.logsumexp(x, axis=axis), smelt.max(x, axis=axis)

    with np.errstate(all="ignore"):
        for found, want in zip(*run_on(function, x)):
            np.testing.assert_allclose(found, want, rtol=2e-4, atol=1e-7)
        found, _ = run_on(lambda x: smelt.var(x, axis=axis), x)
        exact = x.astype(np.float64).var(axis)
        np.testing.assert_allclose(found[0], exact.astype(np.float32), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("first", [0.0, 1e4, -3e6, 1e-30])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_first_element_far_from_the_others(first: float, axis: int) -> None:
    """It is what a thread measures distances from."""
    x = np.random.default_rng(0).normal(1e4, 3, (LONG, 16)).astype(np.float32)
    x[:200] = first
    x = x if axis == 0 else np.ascontiguousarray(x.T)
    found, _ = run_on(lambda x: FUNCTIONS["mean_too"](x, axis), x)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(found[0], wide.mean(axis), rtol=1e-6)
    np.testing.assert_allclose(found[1], wide.std(axis, ddof=1), rtol=1e-4)


def test_constant_columns_have_no_variance() -> None:
    x = np.full((LONG, 16), 0.1, np.float32)
    found, _ = run_on(lambda x: smelt.var(x, axis=0), x)
    assert (found[0] >= 0).all() and (found[0] < 1e-8).all()


def test_rows_that_stay_in_registers_are_as_before(merges: list[int]) -> None:
    """Two loops over registers cost nothing, and no exponential has to be scaled down."""
    program = races(lambda x: smelt.softmax(x, axis=1), S((70, 200), f32))
    assert sum(merges) and [k.bytes_read for k in program.kernels] == [70 * 200 * 4]


NOT_MERGED = {
    "of other elements": lambda x, y: smelt.exp(x - smelt.max(y, axis=0)).sum(axis=0),
    "of another axis": lambda x, y: smelt.exp(x - smelt.max(x, axis=1, keepdims=True)).sum(axis=0),
    "of two maxima": lambda x, y: smelt.exp(x - smelt.max(x, axis=0) - smelt.max(y, axis=0)).sum(axis=0),
    "of a minimum": lambda x, y: smelt.exp(x - smelt.min(x, axis=0)).sum(axis=0),
    "with a weight": lambda x, y: (smelt.exp(x - smelt.max(x, axis=0)) * y).sum(axis=0),
    "of a product": lambda x, y: ((x - smelt.mean(x, axis=0)) * (y - smelt.mean(y, axis=0))).sum(axis=0),
}


@pytest.mark.parametrize("name", NOT_MERGED)
def test_what_does_not_merge(name: str, merges: list[int]) -> None:
    races(NOT_MERGED[name], S((700, 24), f32), S((700, 24), f32), tolerance=1e-3)
    assert not sum(merges)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16])
@pytest.mark.parametrize("name", ["softmax", "logsumexp", "variance", "normalized"])
def test_half_precision(name: str, dtype: Any, merges: list[int]) -> None:
    races(lambda x: FUNCTIONS[name](x, 0), S((1500, 20), dtype), tolerance=2e-2)
    assert sum(merges)


@pytest.mark.parametrize("groups", [1, 64])
@pytest.mark.parametrize("shape", [(40, 1024), (900, 512)], ids=["columns", "chunks"])
def test_columns_of_halves_divide_by_reciprocals(
    shape: tuple[int, int], groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread's several columns have divisors of their own, also where a threadgroup goes over more columns."""
    monkeypatch.setitem(GPUS, "simulator", replace(FEW, groups=groups))
    program = races(lambda x: x / (smelt.abs(x).sum(0, keepdims=True) + 1), S(shape, smelt.bfloat16), tolerance=2e-2)
    assert any("reciprocals[" in segment.text for segment in program.segments)


def random_statistics(seed: int) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """A program with statistics of random axes, of random arithmetic, which other arithmetic uses."""
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 16, 33, 400], ndim))
    axes = tuple(int(a) for a in np.flatnonzero(rng.random(ndim) < 0.6)) or (0,)
    before = [lambda x, y: x, lambda x, y: x * 3 + y, lambda x, y: smelt.maximum(x, y), lambda x, y: -smelt.abs(x)]
    first, second = rng.integers(len(before), size=2)
    kinds = ["softmax", "logsumexp", "variance", "normalized"]
    kind, other = rng.choice(kinds, 2)
    weighted = bool(rng.random() < 0.5)

    def function(x: Any, y: Any) -> Any:
        found = FUNCTIONS[kind](before[first](x, y), axes)
        more = FUNCTIONS[other](before[second](x, y), axes)
        if weighted:
            found = found * (found if found.ndim < x.ndim else y)
        return (found + 1, more) if found.shape == more.shape else (found, more)

    return function, shape


def test_random_programs(merges: list[int]) -> None:
    for seed in range(40):
        function, shape = random_statistics(seed)
        races(function, S(shape, f32), S(shape, f32), tolerance=5e-4)
    assert sum(merges) > 40  # of eighty
