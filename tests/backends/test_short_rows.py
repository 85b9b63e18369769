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


#: Of an array whose last axis is short, with NumPy's functions and with smelt's.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, of=np: x.sum(-1),
    "softmax": _softmax,
    "layer norm": _layer_norm,
    "places": lambda x, of=np: (x.argmax(-1), x.argmin(-1), x.max(-1), x.min(-1)),
    "variance beside its deviations": lambda x, of=np: (x.var(-1), x - x.mean(-1, keepdims=True)),
    "bools": _masked,
    "two axes": lambda x, of=np: (x.reshape(-1, 2, x.shape[-1]) * 2.0).sum((1, 2)),
}
#: Fewest rows that fill blocks of every length, and some over.
ROWS = 1038


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


def _numbers(shape: tuple[int, ...], special: bool = True) -> np.ndarray:
    """With ties, zeros of both signs, and rows with NaN and infinities."""
    x = np.round(np.random.default_rng(0).standard_normal(shape), 1).astype(np.float32)
    if special:
        x[3::50, ..., 0], x[5::50, ..., -1], x[7::50, ..., 1] = np.nan, np.inf, -np.inf
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
@pytest.mark.parametrize("length", [2, 3, 5, 8, 16, 17, 31, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths(name: str, length: int) -> None:
    values = _numbers((ROWS, length), special=name in ("places", "bools", "sum", "softmax"))
    text = _compare(name, smelt.array(values), values.astype(np.float64))
    if name != "two axes" or 2 * length <= short_rows.LONGEST:
        assert "_short" in text


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_rows_that_are_not_to_be_straight_code(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much work for a row, and rows apart from each other; other short ones are left to LLVM."""
    monkeypatch.setattr(short_rows, "SHORTEST", 7)
    host = _numbers((ROWS, length + 2), special=False).astype(np.float64)
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
    values = np.round(_numbers((ROWS, 12), special=False) * 3)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else getattr(np, dtype)
    host = values.astype(kind)
    _compare(name, smelt.array(values).astype(getattr(smelt, dtype)), host.astype(np.int64 if exact else np.float64))


@pytest.mark.parametrize("name", ["softmax", "places"])
def test_rows_of_larger_arrays(name: str) -> None:
    """Some columns of each row, and rows in the middle of several axes."""
    values = _numbers((2, 300, 40), special=False)
    x = smelt.array(values)
    for cut in (np.s_[:, :, :12], np.s_[:, 5:290, 3:20], np.s_[:, :, ::3], np.s_[:, :, ::-1]):
        f = smelt.compile(lambda x, cut=cut: PROGRAMS[name](x[cut], smelt))
        found, wanted = f(x), PROGRAMS[name](values[cut].astype(np.float64))
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
            np.testing.assert_allclose(np.asarray(a), b, rtol=3e-6, atol=3e-6)


def test_results_are_those_of_a_thread() -> None:
    x, found = smelt.array(_numbers((ROWS, 24), special=False)), []
    for threads in (1, 3, 16):
        with smelt.ir.settings.override(num_threads=threads):
            found.append(np.asarray(smelt.compile(lambda x: _layer_norm(x, smelt))(x)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("length", [3, 28, 70])
def test_rows_of_which_nothing_is_read(length: int) -> None:
    """Sums along an axis that what is computed has, and no argument of as many elements."""
    x = _numbers((ROWS, 2))[:, 0]
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
