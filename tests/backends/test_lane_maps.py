"""Maps with short last axes, in vectors whose lanes are told their places: NumPy's values, reads checked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import lane_maps, maps, streaming
from smelt.ir.settings import override

#: Of x and y of one shape (rows, length) and z of (rows, 3), with smelt's functions and with NumPy's.
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "repeat": (lambda x, y, z: smelt.repeat(x, 3, axis=1), lambda x, y, z: np.repeat(x, 3, axis=1)),
    "repeat rows": (lambda x, y, z: smelt.repeat(x, 2, axis=0), lambda x, y, z: np.repeat(x, 2, axis=0)),
    "repeat all": (lambda x, y, z: smelt.repeat(x, 2), lambda x, y, z: np.repeat(x, 2)),
    "stack": (lambda x, y, z: smelt.stack([x, y], axis=2), lambda x, y, z: np.stack([x, y], axis=2)),
    "stack between": (lambda x, y, z: smelt.stack([x, y], axis=1), lambda x, y, z: np.stack([x, y], axis=1)),
    "join": (lambda x, y, z: smelt.concatenate([x, z, y], axis=1), lambda x, y, z: np.concatenate([x, z, y], axis=1)),
    "tile": (lambda x, y, z: smelt.tile(x, (1, 3)), lambda x, y, z: np.tile(x, (1, 3))),
    "pad": (lambda x, y, z: smelt.pad(x, ((0, 0), (2, 1))), lambda x, y, z: np.pad(x, ((0, 0), (2, 1)))),
    "pad both": (lambda x, y, z: smelt.pad(x, ((1, 2), (1, 1))), lambda x, y, z: np.pad(x, ((1, 2), (1, 1)))),
    "flip": (lambda x, y, z: smelt.flip(x, 1), lambda x, y, z: np.flip(x, 1)),
    "roll": (lambda x, y, z: smelt.roll(x, 1, 1), lambda x, y, z: np.roll(x, 1, 1)),
    "rest": (lambda x, y, z: smelt.contiguous(x[:, 1:]), lambda x, y, z: x[:, 1:]),
    "every other, back": (lambda x, y, z: smelt.contiguous(x.reshape(-1)[::-2]), lambda x, y, z: x.reshape(-1)[::-2]),
    "a row": (lambda x, y, z: smelt.where(x > 0, x, y[0]), lambda x, y, z: np.where(x > 0, x, y[0])),
    "a column": (lambda x, y, z: smelt.where(x > 0, x, y[:, :1]), lambda x, y, z: np.where(x > 0, x, y[:, :1])),
}
LENGTHS = (1, 2, 3, 8, 17)


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small arrays are."""
    monkeypatch.setattr(lane_maps, "FEWEST", 0)
    monkeypatch.setattr(maps, "WHOLE", 0)
    monkeypatch.setattr(buffer, "SMALL", 0)
    with override(tier="program", cache=False):
        yield


def _arrays(rows: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x, y, z = (np.round(rng.standard_normal((rows, n)) * 4).astype(np.float32) for n in (length, length, 3))
    x[3::50], x[4::50, 0], x[5::50, -1], x[6::50, 0] = -0.0, np.nan, np.inf, -np.inf
    return [x, y, z]


def _check(name: str, arrays: list[np.ndarray], dtype: str = "float32") -> bool:
    """Compare with NumPy; whether the schedule was taken."""
    of_smelt, of_numpy = PROGRAMS[name]
    given = [smelt.array(a).astype(getattr(smelt, dtype)) for a in arrays]
    f = smelt.compile(of_smelt)
    found = f(*given).astype(smelt.float32)
    wanted = of_numpy(*(np.asarray(a.astype(smelt.float32)) for a in given))
    np.testing.assert_array_equal(np.asarray(found), wanted)
    np.testing.assert_array_equal(np.signbit(np.asarray(found)), np.signbit(wanted))
    return "_lanes" in str(f.trace(*given).lower().compile().as_text("kernel"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths(name: str) -> None:
    with override(check=True):
        taken = [_check(name, _arrays(333, length)) for length in LENGTHS]
    assert any(taken)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int64", "bool_"])
@pytest.mark.parametrize("name", ["repeat all", "stack", "join", "pad both", "flip", "a row"])
def test_dtypes(name: str, dtype: str) -> None:
    arrays = _arrays(200, 4)
    if dtype in ("int8", "int64"):
        arrays = [np.nan_to_num(a, nan=3, posinf=7, neginf=-7) for a in arrays]
    assert _check(name, arrays, dtype)


def test_results_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_maps, "is_large", lambda aval: True)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    for name in PROGRAMS:
        _check(name, _arrays(777, 3))


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17])
def test_few_rows(rows: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # programs are traced for each shape
        for name in ("repeat", "stack", "join", "pad both", "flip"):
            _check(name, _arrays(rows, 3))


def test_signalling_nans_keep_their_bits() -> None:
    bits = np.array([[0x7D01, 0x7E00, 0xFC00]] * 64, np.uint16)
    found = smelt.compile(lambda x: smelt.flip(x, 1))(smelt.array(bits.view(np.float16)))
    np.testing.assert_array_equal(np.asarray(found).view(np.uint16), bits[:, ::-1])


def test_results_in_place_of_arguments() -> None:
    x, row = _arrays(700, 3)[0], np.arange(3, dtype=np.float32)
    f = smelt.compile(lambda x, row: x + row, donate=0)
    np.testing.assert_array_equal(np.asarray(f(smelt.array(x), smelt.array(row))), x + row)


def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_maps, "TILE", 64)
    for threads in (1, 2, 3):
        with override(num_threads=threads):
            assert _check("join", _arrays(1001, 3))
