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
from . import row_programs
from .row_programs import ROWS, compare, compare_cuts, compare_threads, layer_norm, numbers


def _logsumexp(x: Any, of: Any = np) -> Any:
    most = x.max(-1)
    return of.log(of.exp(x - most[..., None]).sum(-1)) + most


PROGRAMS: dict[str, Callable[..., Any]] = {
    **row_programs.PROGRAMS,
    "squares": lambda x, of=np: (x * x).sum(-1),
    "products": lambda x, of=np: (x * 0.25 + 0.75).prod(-1),
    "logsumexp": _logsumexp,
    "places in the row": lambda x, of=np: (x * of.arange(x.shape[-1])).sum(-1),
}
#: Programs that are told of NaN, infinities and zeros of both signs.
SPECIAL = (*row_programs.SPECIAL, "squares")


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


@pytest.mark.thinned(2)
@pytest.mark.parametrize("length", [2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 70, 129])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths(name: str, length: int) -> None:
    values = numbers((ROWS, length), special=name in SPECIAL)
    text = compare(PROGRAMS[name], smelt.array(values), values.astype(np.float64))
    assert "_vectors" in text or (name == "two axes" and 2 * length > vector_rows.LONGEST)


@pytest.mark.parametrize("length", [12, 72])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "int32", "int64", "bool_"])
@pytest.mark.parametrize("name", ["sum", "places", "softmax"])
def test_dtypes(name: str, dtype: str, length: int) -> None:
    exact = dtype.startswith(("int", "uint", "bool"))
    if (exact and name == "softmax") or (dtype == "bool_" and name == "places"):
        name = "sum"
    values = np.round(numbers((ROWS, length), special=False) * 3)
    values = np.abs(values) if dtype.startswith("u") else values
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else getattr(np, dtype)
    host = values.astype(kind).astype(np.int64 if exact else np.float64)
    text = compare(PROGRAMS[name], smelt.array(values).astype(getattr(smelt, dtype)), host)
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
    compare_cuts(PROGRAMS[name])


def test_numbers_of_rows_and_of_columns() -> None:
    """What is read beside the rows: a number for each of them, and one for each of their places."""
    x, rows, columns = numbers((ROWS, 21), False), numbers((ROWS, 1), False), numbers((21,), False)

    def function(x: Any, rows: Any, columns: Any) -> Any:
        shifted = (x - rows) * columns
        return (shifted * shifted).sum(-1), shifted - shifted.max(-1, keepdims=True) * rows

    given = x, rows, columns
    f = smelt.compile(function)
    for a, b in zip(f(*map(smelt.array, given)), function(*(v.astype(np.float64) for v in given))):
        np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-5)
    assert "_vectors" in f.trace(*map(smelt.array, given)).lower().compile().as_text("kernel")


def test_results_are_those_of_a_thread() -> None:
    compare_threads()


@pytest.mark.parametrize("shape", [(0, 20), (1, 20), (ROWS, 1), (3, 0, 20), (17, 20)])
def test_few_rows_and_none(shape: tuple[int, ...]) -> None:
    x = numbers(shape, special=False)
    for name in ("sum", "softmax", "places"):
        found, wanted = smelt.compile(lambda x, n=name: PROGRAMS[n](x, smelt))(smelt.array(x)), PROGRAMS[name](x)
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
            np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-6)


def test_large_arrays_leave_past_the_caches() -> None:
    values = numbers((1 << 15, 24), special=False)
    f = smelt.compile(lambda x: layer_norm(x, smelt))
    x = smelt.array(values)
    np.testing.assert_allclose(np.asarray(f(x)), layer_norm(values.astype(np.float64)), rtol=1e-4, atol=1e-4)
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
