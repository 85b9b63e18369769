"""Short rows, a lane of a vector each: the values of NumPy, whatever lengths, dtypes, and the number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import short_rows, streaming, vector_rows

from .row_programs import PROGRAMS, ROWS, SPECIAL, compare, compare_cuts, compare_threads, numbers


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small arrays are, checked for places outside of them."""
    monkeypatch.setattr(vector_rows, "LONGEST", 0)
    monkeypatch.setattr(short_rows, "FEWEST", 0)
    monkeypatch.setattr(short_rows, "SHORTEST", 2)
    monkeypatch.setattr(short_rows, "LONGEST", 64)
    monkeypatch.setattr(short_rows, "LONGEST_RESULTS", 64)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)
    with smelt.ir.settings.override(check=True):
        yield


@pytest.mark.thinned(2)
@pytest.mark.parametrize("length", [2, 3, 5, 8, 16, 17, 31, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths(name: str, length: int) -> None:
    values = numbers((ROWS, length), special=name in SPECIAL)
    text = compare(PROGRAMS[name], smelt.array(values), values.astype(np.float64))
    if name != "two axes" or 2 * length <= short_rows.LONGEST:
        assert "_short" in text


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_rows_that_are_not_to_be_straight_code(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much work for a row, and rows apart from each other; other short ones are left to LLVM."""
    monkeypatch.setattr(short_rows, "SHORTEST", 7)
    host = numbers((ROWS, length + 2), special=False).astype(np.float64)
    cases: list[tuple[Callable[..., Any], bool]] = [
        (lambda x, of=np: x[:, :length].copy().sum(-1) if of is np else x.sum(-1), False),
        (lambda x, of=np: of.tanh(of.exp(x[:, :length] if of is np else x)).sum(-1), length >= 3),
        (lambda x, of=np: x[:, 1 : length + 1].sum(-1), length >= short_rows.SHORTEST_APART),
    ]
    for function, is_short in cases:
        part = function is not cases[2][0]
        x = smelt.array(host[:, :length] if part else host, dtype=smelt.float32)
        f = smelt.compile(lambda x, function=function: function(x, smelt))
        np.testing.assert_allclose(np.asarray(f(x)), function(host), rtol=1e-5, atol=1e-5)
        assert ("_short" in f.trace(x).lower().compile().as_text("kernel")) is is_short


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "int32", "bool_"])
@pytest.mark.parametrize("name", ["sum", "places", "softmax"])
def test_dtypes(name: str, dtype: str) -> None:
    exact = dtype.startswith(("int", "bool"))
    if (exact and name == "softmax") or (dtype == "bool_" and name == "places"):
        name = "sum"
    values = np.round(numbers((ROWS, 12), special=False) * 3)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else getattr(np, dtype)
    host = values.astype(kind).astype(np.int64 if exact else np.float64)
    compare(PROGRAMS[name], smelt.array(values).astype(getattr(smelt, dtype)), host)


@pytest.mark.parametrize("name", ["softmax", "places"])
def test_rows_of_larger_arrays(name: str) -> None:
    compare_cuts(PROGRAMS[name])


def test_results_are_those_of_a_thread() -> None:
    compare_threads()


@pytest.mark.parametrize("length", [3, 28, 70])
def test_rows_of_which_nothing_is_read(length: int) -> None:
    """Sums along an axis that what is computed has, and no argument of as many elements."""
    x = numbers((ROWS, 2))[:, 0]
    nodes = np.linspace(-1, 1, length).astype(np.float32)

    def function(x: Any, nodes: Any, of: Any = np) -> Any:
        shifted = x.reshape(-1, 1) + nodes
        return (of.exp(-shifted * shifted) * nodes).sum(-1), of.abs(shifted).max(-1)

    f, given = smelt.compile(lambda x, y: function(x, y, smelt)), (smelt.array(x), smelt.array(nodes))
    with np.errstate(all="ignore"):
        wanted = function(x.astype(np.float64), nodes.astype(np.float64))
    for a, b in zip(f(*given), wanted):
        np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-6)
    assert "_short" in f.trace(*given).lower().compile().as_text("kernel")
    empty = f(smelt.zeros((0,)), given[1])
    assert [v.shape for v in empty] == [(0,), (0,)]
