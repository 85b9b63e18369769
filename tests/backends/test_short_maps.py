"""Maps whose innermost loop is short, as one long loop: the values of NumPy, whatever lengths, dtypes and orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import short_maps, streaming

#: Of x, of shape (2, rows, length), with NumPy's functions and with smelt's.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "a row": lambda x, of: x + x[0, 7],
    "a row of each": lambda x, of: x * x[:, 3:4],
    "a column": lambda x, of: x - x[:, :, 1:2],
    "a column for all": lambda x, of: x + x[1:, :, :1],
    "both": lambda x, of: of.maximum(x, x[0, 0]) * x[:, :, 2:3] + x[:, 5:6],
    "bools": lambda x, of: of.where(x[:, :, :1] > 0, x, of.where(x[0, 1] > 0, x[0, 2], -x)),
    "some of each row": lambda x, of: x[:, :, :-1] + x[0, 0, :-1],
    "two results": lambda x, of: (x + x[0, 0], x * x[:, :, :1]),
    "numbers": lambda x, of: x + of.arange(x.shape[-1], dtype=of.int32).astype(x.dtype) * x[0, 0],
}


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small arrays are, checked for places outside of them."""
    monkeypatch.setattr(short_maps, "FEWEST", 0)
    monkeypatch.setattr(short_maps, "SHORTEST", 2)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)
    with smelt.ir.settings.override(check=True):
        yield


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    x = np.round(np.random.default_rng(0).standard_normal(shape) * 4).astype(np.float32)
    x[:, 3::50], x[:, 4::50, 0], x[:, 5::50, -1] = -0.0, np.nan, np.inf
    return x


@pytest.mark.parametrize("length", [4, 9, 16, 31])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths(name: str, length: int) -> None:
    x = _numbers((2, 2 * short_maps.BLOCK // length + 77, length))
    f = smelt.compile(lambda x: PROGRAMS[name](x, smelt))
    with np.errstate(invalid="ignore"):
        found, wanted = f(smelt.array(x)), PROGRAMS[name](x, np)
    assert "_short" in str(f.trace(smelt.array(x)).lower().compile().as_text("kernel"))
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
        np.testing.assert_array_equal(np.asarray(a), b)
        np.testing.assert_array_equal(np.signbit(np.asarray(a)), np.signbit(b))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "complex64"])
@pytest.mark.parametrize("name", ["both", "a row", "a column"])
def test_dtypes(name: str, dtype: str) -> None:
    values = np.round(np.random.default_rng(0).standard_normal((2, 700, 12)))  # exact in all dtypes
    if dtype == "complex64" and name == "both":
        name = "a row of each"
    f = smelt.compile(lambda x: PROGRAMS[name](x, smelt).astype(smelt.complex64))
    found = f(smelt.array(values.astype(np.float32)).astype(getattr(smelt, dtype)))
    np.testing.assert_array_equal(np.asarray(found), PROGRAMS[name](values, np))


def test_results_in_place_of_arguments() -> None:
    x, row = _numbers((2, 700, 12)), np.arange(12, dtype=np.float32)
    f = smelt.compile(lambda x, row: x + row, donate=0)
    np.testing.assert_array_equal(np.asarray(f(smelt.array(x), smelt.array(row))), x + row)
