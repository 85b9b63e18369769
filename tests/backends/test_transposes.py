"""Transposes in blocks, of every kind of element: what is moved keeps its bits, whatever the ends of blocks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import maps, streaming

DTYPES = {
    **{name: np.dtype(name) for name in ("bool", "int8", "uint16", "int32", "float16", "float32", "int64", "float64")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16), "complex64": np.dtype("complex64"),
}  # fmt: skip
SHAPES = [(8, 16), (64, 64), (127, 321), (300, 33), (17, 700), (16, 1), (16, 0)]
PROGRAMS = {
    "transposed": lambda x: smelt.contiguous(x.T),
    "of rows backwards": lambda x: smelt.contiguous(x[::-1].T),
    "of every other column": lambda x: smelt.contiguous(x[:, ::2].T),
    "of columns backwards": lambda x: smelt.contiguous(x[:, ::-1].T),
    "padded": lambda x: smelt.pad(x.T, 1),
    "of a part": lambda x: smelt.contiguous(x[1:, 3:].T),
    "stacked": lambda x: smelt.concatenate([x.T, x.T[:3]]),
}
HOSTS = {
    "transposed": lambda x: x.T,
    "of rows backwards": lambda x: x[::-1].T,
    "of every other column": lambda x: x[:, ::2].T,
    "of columns backwards": lambda x: x[:, ::-1].T,
    "padded": lambda x: np.pad(x.T, 1),
    "of a part": lambda x: x[1:, 3:].T,
    "stacked": lambda x: np.concatenate([x.T, x.T[:3]]),
}


def _drawn(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Any bits: NaNs of all kinds, infinities, zeros with signs and subnormal numbers."""
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def _named(dtype: str) -> smelt.Dtype:
    return getattr(smelt, "bool_" if dtype == "bool" else dtype)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streaming, and blocks, however small arrays are."""
    monkeypatch.setattr(maps, "WHOLE", 0)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_kept(name: str, dtype: str, everywhere: None) -> None:
    f = smelt.compile(PROGRAMS[name])
    for shape in SHAPES:
        x = _drawn(shape, DTYPES[dtype])
        if name == "padded" and x.dtype.kind in "fV":  # chosen between, elements are computed: NaNs are quiet
            x = np.where(np.isnan(x), x.dtype.type("nan"), x)
        found, want = np.array(f(smelt.array(x, dtype=_named(dtype)))), HOSTS[name](x)
        assert found.shape == want.shape
        assert found.tobytes() == want.tobytes(), shape


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float16", "float32", "float64"])
def test_sum_with_its_transpose(dtype: str, check: bool, everywhere: None) -> None:
    """What is computed from both orders; with checked accesses, none leaves its array."""
    rng = np.random.default_rng(1)
    x = rng.integers(-20, 21, (147, 147)).astype(DTYPES[dtype])
    with smelt.ir.settings.override(check=check):
        found = smelt.compile(lambda x: (x + x.T, x < x.T))(smelt.array(x, dtype=_named(dtype)))
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(np.array(found[0].astype(smelt.float64)), wide + wide.T)
    np.testing.assert_array_equal(np.array(found[1]), wide < wide.T)


def test_batches_are_turned(everywhere: None) -> None:
    x = np.arange(3 * 65 * 5 * 70, dtype=np.int16).reshape(3, 65, 5, 70)
    for axes in ((0, 3, 2, 1), (3, 1, 2, 0), (2, 0, 3, 1), (1, 3, 0, 2)):
        found = smelt.compile(lambda x, axes=axes: smelt.contiguous(smelt.transpose(x, axes)))(smelt.array(x))
        np.testing.assert_array_equal(np.array(found), x.transpose(axes))
