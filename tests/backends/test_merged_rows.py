"""Reductions of which one needs the other's result, chunk by chunk: the maximum with a sum of exponentials, the sum
with squared distances. Values, special values, and that results do not depend on threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import merged_rows

#: Columns: fewer are reduced in chunks by kernels of their own.
LANES = 2048


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few steps, however short rows are."""
    monkeypatch.setattr(merged_rows, "NEAR_BYTES", 0)
    monkeypatch.setattr(merged_rows, "CHUNK_BYTES", 256)
    monkeypatch.setattr(merged_rows, "FEWEST_STEPS", 10)
    smelt.clear_cache()


def _normalized(x: Any, axis: int) -> Any:
    centered = x - x.mean(axis=axis, keepdims=True)
    return centered * smelt.rsqrt((centered * centered).mean(axis=axis, keepdims=True) + 1e-5)


PROGRAMS: dict[str, Callable[[Any, int], Any]] = {
    "softmax": lambda x, axis: smelt.softmax(x, axis=axis),
    "logsumexp": lambda x, axis: smelt.logsumexp(x, axis=axis),
    "maximum too": lambda x, axis: (smelt.logsumexp(x, axis=axis), x.max(axis=axis), (x * x).sum(axis=axis)),
    "variance": lambda x, axis: x.var(axis=axis),
    "mean too": lambda x, axis: (x.mean(axis=axis), x.std(axis=axis, ddof=1)),
    "both": lambda x, axis: x.var(axis=axis) + smelt.logsumexp(x, axis=axis),
    "normalized": _normalized,
}
SHAPES = {"columns": ((64, LANES), 0), "ragged": ((37, LANES + 5), 0), "rows": ((33, 515), 1),
          "middle": ((2, 23, LANES), 1), "one step": ((1, LANES), 0), "one element": ((40, 1), 1)}  # fmt: skip
DTYPES = {"float32": 2e-6, "bfloat16": 1e-2, "float64": 1e-14}


def _run(name: str, x: Any, axis: int) -> tuple[list[np.ndarray], str]:
    function = smelt.compile(lambda x: PROGRAMS[name](x, axis))
    found = function(x)
    results = [np.array(v.astype(smelt.float64)) for v in (found if isinstance(found, tuple) else (found,))]
    return results, function.trace(x).lower().compile().as_text("kernel")


def _expected(name: str, x: np.ndarray, axis: int) -> list[np.ndarray]:
    """In float64, by the NumPy rules."""
    with smelt.ir.settings.override(device="reference"):
        found = PROGRAMS[name](smelt.array(x.astype(np.float64), dtype=smelt.float64), axis)
        return [np.array(v) for v in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, kind: str) -> None:
    shape, axis = SHAPES[kind]
    dtype = {"ragged": "bfloat16", "middle": "float64"}.get(kind, "float32")
    values = np.random.default_rng(0).standard_normal(shape, np.float32) * 3 + 5
    x = smelt.array(values).astype(getattr(smelt, dtype))
    found, kernel = _run(name, x, axis)
    assert "_merged" in kernel or shape[axis] == 1
    host = np.asarray(x.astype(smelt.float64))
    for got, want in zip(found, _expected(name, host, axis)):
        loose = DTYPES[dtype]
        np.testing.assert_allclose(got, want, rtol=loose, atol=loose * np.nanmax(np.abs(want), initial=1.0))


SPECIAL: dict[str, Callable[[np.ndarray], Any]] = {
    "minus infinity": lambda x: x.__setitem__(slice(None), -np.inf),
    "minus infinity first": lambda x: x.__setitem__(slice(0, 30), -np.inf),
    "infinity": lambda x: x.__setitem__(5, np.inf),
    "infinities": lambda x: x.__setitem__(slice(3, 39), np.inf),
    "both infinities": lambda x: (x.__setitem__(5, np.inf), x.__setitem__(50, -np.inf)),
    "NaN": lambda x: x.__setitem__(41, np.nan),
    "NaN and infinity": lambda x: (x.__setitem__(0, np.inf), x.__setitem__(63, np.nan)),
    "nothing but NaN": lambda x: x.__setitem__(slice(None), np.nan),
    "ties": lambda x: x.__setitem__(slice(None), 3.0),
    "zeros": lambda x: x.__setitem__(slice(0, 64, 2), -0.0),
    "large": lambda x: x.__setitem__(slice(None), x * np.float32(1e15)),
    "largest": lambda x: x.__setitem__(slice(0, 64, 3), np.finfo(np.float32).max),
    "rising": lambda x: x.__setitem__(slice(None), np.arange(64) / 4),
    "far from zero": lambda x: x.__setitem__(slice(None), x + 1e4),
    "an outlier first": lambda x: x.__setitem__(0, 1e6),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("axis", [0, 1])
def test_special_values(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((64, LANES)).astype(np.float32)
    for column, special in enumerate(SPECIAL.values()):
        special(x[:, column])
    host = x if axis == 0 else np.ascontiguousarray(x.T)
    found, kernel = _run("maximum too", smelt.array(host), axis)
    squares, _ = _run("variance", smelt.array(host), axis)
    assert "_merged" in kernel
    exact = host.astype(np.float64)
    with np.errstate(all="ignore"):
        for got, want in zip(found[:2], _expected("maximum too", host, axis)):
            np.testing.assert_allclose(got, want, rtol=2e-6)
        fits = [i for i, name in enumerate(SPECIAL) if name != "largest"]  # whose squares are infinite
        want = exact.var(axis)[fits]
        np.testing.assert_allclose(squares[0][fits], want, rtol=5e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_nan_is_one_whatever_its_bits_are(axis: int) -> None:
    places = np.arange(12)
    for dtype in (np.float64, np.float32):
        x = np.zeros((64, LANES), dtype)
        bits = x.view(f"i{x.itemsize}")
        bits[places + 20, places] = np.array([np.inf, -np.inf], dtype).view(bits.dtype)[places % 2] + (1 << places)
        host = x if axis == 0 else np.ascontiguousarray(x.T)
        (found,), kernel = _run("logsumexp", smelt.array(host), axis)
        assert "_merged" in kernel
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), places)


def test_sums_of_exponentials_merge_in_short_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take less arithmetic than a maximum and a sum by themselves, unless results are as long as rows."""
    monkeypatch.setattr(merged_rows, "NEAR_BYTES", 1 << 40)
    smelt.clear_cache()
    x = np.random.default_rng(0).standard_normal((32, merged_rows.LONG), np.float32)
    found, kernel = _run("logsumexp", smelt.array(x), 1)
    assert "_merged" in kernel
    np.testing.assert_allclose(found[0], _expected("logsumexp", x, 1)[0], rtol=2e-6)
    for name, part in (("softmax", x), ("logsumexp", x[:, : merged_rows.LONG - 1]), ("variance", x)):
        assert "_merged" not in _run(name, smelt.array(part), 1)[1]


def test_constant_columns_have_no_variance() -> None:
    found, _ = _run("variance", smelt.array(np.full((64, LANES), 0.1, np.float32)), 0)
    assert (found[0] >= 0).all() and (found[0] < 1e-8).all()


@pytest.mark.parametrize("name", ["logsumexp", "variance"])
def test_as_accurate_as_two_readings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors against float64 are no larger than those of a kernel that goes over everything twice."""
    x = (np.random.default_rng(1).standard_normal((5000, LANES)) + 10).astype(np.float32)
    want = _expected(name, x, 0)[0]

    def error() -> float:
        return float(np.abs(_run(name, smelt.array(x), 0)[0][0] / want - 1).max())

    merged = error()
    monkeypatch.setattr(merged_rows, "NEAR_BYTES", 1 << 40)
    smelt.clear_cache()
    assert merged <= 1.1 * error() + 6e-8


def test_results_do_not_depend_on_threads() -> None:
    x = smelt.array(np.random.default_rng(0).standard_normal((64, LANES + 64), np.float32))
    found = []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            found.append(_run("both", x, 0)[0][0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
