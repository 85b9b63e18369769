"""Rows that are a few vectors each: the values of NumPy, whatever lengths, dtypes, and the number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import build, streaming, vector_rows

from ..compose.kernels import Way, problems


def _softmax(x: Any, of: Any = np) -> Any:
    e = of.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: Any, of: Any = np) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    weights = of.arange(x.shape[-1]) + 0.5
    return centered / of.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5) * weights


def _masked(x: Any, of: Any = np) -> Any:
    kept = x > -0.5
    most = of.where(kept, x, -of.array(np.float32(np.inf))).max(-1)
    return most, kept.any(-1), kept.all(-1), kept & (x == x.max(-1, keepdims=True))


def _logsumexp(x: Any, of: Any = np) -> Any:
    most = x.max(-1)
    return of.log(of.exp(x - most[..., None]).sum(-1)) + most


#: Of an array whose last axis is short, with NumPy's functions and with smelt's.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, of=np: x.sum(-1),
    "squares": lambda x, of=np: (x * x).sum(-1),
    "products": lambda x, of=np: (x * 0.25 + 0.75).prod(-1),
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "layer norm": _layer_norm,
    "places": lambda x, of=np: (x.argmax(-1), x.argmin(-1), x.max(-1), x.min(-1)),
    "variance beside its deviations": lambda x, of=np: (x.var(-1), x - x.mean(-1, keepdims=True)),
    "bools": _masked,
    "two axes": lambda x, of=np: (x.reshape(-1, 2, x.shape[-1]) * 2.0).sum((1, 2)),
    "places in the row": lambda x, of=np: (x * of.arange(x.shape[-1])).sum(-1),
}
#: Programs that are told of NaN, infinities and zeros of both signs.
SPECIAL = ("places", "bools", "sum", "softmax", "squares")
#: Fewest rows that fill blocks of every length, and some over.
ROWS = 1038


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small arrays are, checked for places outside of them."""
    monkeypatch.setattr(vector_rows, "FEWEST", 0)
    monkeypatch.setattr(vector_rows, "SHORTEST", 2)
    for name in ("LONGEST_BOOLS", "LONGEST_CHEAP", "LONGEST_RESULTS", "LONGEST_LARGE"):
        monkeypatch.setattr(vector_rows, name, vector_rows.LONGEST)
    monkeypatch.setattr(vector_rows, "IDLE", math.inf)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)
    with smelt.ir.settings.override(check=True):
        yield


def _numbers(shape: tuple[int, ...], special: bool = True) -> np.ndarray:
    """With ties, zeros of both signs, and rows with NaN and infinities at both ends, and several NaN."""
    x = np.round(np.random.default_rng(0).standard_normal(shape), 1).astype(np.float32)
    if special:
        x[3::50, ..., 0], x[5::50, ..., -1], x[7::50, ..., 1], x[13::50, ..., -1] = np.nan, np.inf, -np.inf, np.nan
        x[15::50, ..., shape[-1] // 2 :] = np.nan
        x[9::50], x[11::50, ..., ::2] = -0.0, -0.0
    return x


def _compare(name: str, x: Any, host: np.ndarray) -> str:
    """Compare with float64; the text of the kernel."""
    f = smelt.compile(lambda x: PROGRAMS[name](x, smelt))
    found = f(x)
    with np.errstate(all="ignore"):
        wanted = PROGRAMS[name](host)
    pairs = zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted)))
    loose = {2: 1.6e-2, 8: 1e-12}.get(x.dtype.size, 3e-6)
    for a, b in pairs:
        scale = np.abs(b, where=np.isfinite(b), out=np.ones(b.shape)).max()
        np.testing.assert_allclose(np.asarray(a.astype(smelt.float64)), b, rtol=loose, atol=loose * scale)
    return str(f.trace(x).lower().compile().as_text("kernel"))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("length", [2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 70, 129])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths(name: str, length: int) -> None:
    values = _numbers((ROWS, length), special=name in SPECIAL)
    text = _compare(name, smelt.array(values), values.astype(np.float64))
    assert "_vectors" in text or (name == "two axes" and 2 * length > vector_rows.LONGEST)


@pytest.mark.parametrize("length", [12, 72])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "int32", "int64", "bool_"])
@pytest.mark.parametrize("name", ["sum", "places", "softmax"])
def test_dtypes(name: str, dtype: str, length: int) -> None:
    exact = dtype.startswith(("int", "uint", "bool"))
    if (exact and name == "softmax") or (dtype == "bool_" and name == "places"):
        name = "sum"
    values = np.round(_numbers((ROWS, length), special=False) * 3)
    values = np.abs(values) if dtype.startswith("u") else values
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else getattr(np, dtype)
    host = values.astype(kind)
    text = _compare(
        name, smelt.array(values).astype(getattr(smelt, dtype)), host.astype(np.int64 if exact else np.float64)
    )
    assert "_vectors" in text


def test_zero_is_more_than_its_negative() -> None:
    """Wherever in a row it is."""
    x = np.full((ROWS, 19), -0.0, np.float32)
    x[np.arange(0, ROWS, 2), np.arange(0, ROWS, 2) % 19] = 0.0
    largest, smallest = smelt.compile(lambda x: (x.max(-1), (-x).min(-1)))(smelt.array(x))
    np.testing.assert_array_equal(np.signbit(np.asarray(largest)), np.arange(ROWS) % 2 == 1)
    np.testing.assert_array_equal(np.signbit(np.asarray(smallest)), np.arange(ROWS) % 2 == 0)


@pytest.mark.parametrize("name", ["softmax", "places", "squares"])
def test_rows_of_larger_arrays(name: str) -> None:
    """Some columns of each row, and rows in the middle of several axes."""
    values = _numbers((2, 300, 40), special=False)
    x = smelt.array(values)
    for cut in (np.s_[:, :, :12], np.s_[:, 5:290, 3:20], np.s_[:, :, ::3], np.s_[:, :, ::-1]):
        f = smelt.compile(lambda x, cut=cut: PROGRAMS[name](x[cut], smelt))
        found, wanted = f(x), PROGRAMS[name](values[cut].astype(np.float64))
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
            np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-6)


def test_numbers_of_rows_and_of_columns() -> None:
    """What is read beside the rows: a number for each of them, and one for each of their places."""
    x, rows, columns = _numbers((ROWS, 21), False), _numbers((ROWS, 1), False), _numbers((21,), False)

    def function(x: Any, rows: Any, columns: Any) -> Any:
        shifted = (x - rows) * columns
        return (shifted * shifted).sum(-1), shifted - shifted.max(-1, keepdims=True) * rows

    given = x, rows, columns
    f = smelt.compile(function)
    for a, b in zip(f(*map(smelt.array, given)), function(*(v.astype(np.float64) for v in given))):
        np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-5)
    assert "_vectors" in f.trace(*map(smelt.array, given)).lower().compile().as_text("kernel")


def test_results_are_those_of_a_thread() -> None:
    x, found = smelt.array(_numbers((ROWS, 24), special=False)), []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            found.append(np.asarray(smelt.compile(lambda x: _layer_norm(x, smelt))(x)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("shape", [(0, 20), (1, 20), (ROWS, 1), (3, 0, 20), (17, 20)])
def test_few_rows_and_none(shape: tuple[int, ...]) -> None:
    x = _numbers(shape, special=False)
    for name in ("sum", "softmax", "places"):
        found, wanted = smelt.compile(lambda x, n=name: PROGRAMS[n](x, smelt))(smelt.array(x)), PROGRAMS[name](x)
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
            np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-6)


def test_large_arrays_leave_past_the_caches() -> None:
    values = _numbers((1 << 15, 24), special=False)
    f = smelt.compile(lambda x: _layer_norm(x, smelt))
    x = smelt.array(values)
    np.testing.assert_allclose(np.asarray(f(x)), _layer_norm(values.astype(np.float64)), rtol=1e-4, atol=1e-4)
    text = f.trace(x).lower().compile().as_text("kernel")
    assert "_vectors" in text and "nontemporal" in text


@pytest.mark.parametrize("first", [0, 40, 80])
def test_random_graphs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of random graphs, however few: each forty have some."""
    monkeypatch.setattr(vector_rows, "MOST_ROWS", 1)
    found: list[Any] = []

    def counted(*arguments: Any) -> Any:
        found.append(vector_rows.build_vector_rows(*arguments))
        return found[-1]

    monkeypatch.setattr(build, "build_vector_rows", counted)
    way = Way(checked=True)
    assert not problems(way.graphs(range(first, first + 40)), way)
    assert any(found)
