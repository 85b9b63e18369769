"""Reductions along long columns of which few lie beside each other, several steps at a time: the values of NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import narrow_lines, reductions
from smelt.passes.kernels import groups


def _centered(x: Any, of: Any) -> Any:
    return x - x.mean(-2, keepdims=True)


#: Of an array whose last axis is short, reduced along the one before it.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sums": lambda x, of: (x.sum(-2), x.max(-2), x.min(-2)),
    "of what is computed": lambda x, of: ((x * x[..., :1, :] + 1) * 2).sum(-2),
    "chained": lambda x, of: (_centered(x, of) ** 2).mean(-2),
    "as large": lambda x, of: of.exp(x - x.max(-2, keepdims=True)) * (x + 1).sum(-2, keepdims=True),
    "bools": lambda x, of: ((x > 0.5).any(-2), (x > -3).all(-2)),
    "places": lambda x, of: (x.argmax(-2), x.max(-2)),
    "two axes": lambda x, of: (x.reshape(*x.shape[:-2], -1, 3, x.shape[-1]) * 2).sum((-3, -2)),
    "every other": lambda x, of: (x[..., : x.shape[-2] // 2, :] * x[..., : x.shape[-2] // 2 * 2 : 2, :]).sum(-2),
    "written": lambda x, of: of.exp(x - x.max(-2, keepdims=True)) + x[..., :1, :],
    "a product": lambda x, of: of.where(x > 0, 1 + x / 1024, 1).prod(-2),
}


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small arrays are, checked for places outside of them."""
    monkeypatch.setattr(groups, "SMALL", 0)
    monkeypatch.setattr(narrow_lines, "LONG", 0)
    with smelt.ir.settings.override(check=True):
        yield


@pytest.mark.parametrize("shape", [(3 * 997, 16), (201, 3), (1, 64), (20, 3 * 67, 5), (2, 3, 99, 33), (17, 3, 64)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, shape: tuple[int, ...]) -> None:
    if name == "two axes" and shape[-2] % 3:
        shape = (*shape[:-2], 3 * shape[-2], shape[-1])
    x = np.round(np.random.default_rng(0).standard_normal(shape), 1).astype(np.float32)
    if name in ("sums", "bools", "places"):
        x[..., 0, 0], x[..., -1, 1], x[..., 0, 2] = np.nan, np.inf, -np.inf
    found = smelt.compile(lambda x: PROGRAMS[name](x, smelt))(smelt.array(x))
    with np.errstate(invalid="ignore"):
        wanted = PROGRAMS[name](x.astype(np.float64), np)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted))):
        scale = np.abs(b, where=np.isfinite(b), out=np.ones(b.shape)).max()
        np.testing.assert_allclose(np.asarray(a.astype(smelt.float64)), b, rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "complex64"])
def test_dtypes(dtype: str) -> None:
    values = np.round(np.random.default_rng(0).standard_normal((20, 500, 6)))  # exact in all dtypes
    x = smelt.array(values.astype(np.float32)).astype(getattr(smelt, dtype))
    found = smelt.compile(lambda x: (x * x[0, 0]).sum(1).astype(smelt.complex64))(x)
    wanted = (values * values[0, 0]).sum(1)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=5e-3 if x.dtype.size == 2 else 1e-6)


#: The same for a second array of as many columns, which is read where indices say, or where a condition holds.
BESIDE: dict[str, Callable[..., Any]] = {
    "by indices": lambda x, y, at, of: (y[at] * x).sum(-2),
    "by computed indices": lambda x, y, at, of: of.maximum(y[(at + 3) % y.shape[0]], x).max(-2),
    "in two axes": lambda x, y, at, of: (y.reshape(1, -1, x.shape[-1])[at * 0, at] * x).sum(-2),
    "padded": lambda x, y, at, of: (of.pad(y[:1, 1:-1], ((0, 0), (1, 1))) * x).sum(-2),
    "where it holds": lambda x, y, at, of: (of.concatenate([y[0, 1:], x[..., 0, :1].reshape(-1)[:1]]) * x).sum(-2),
}


@pytest.mark.parametrize("shape", [(3 * 97, 16), (20, 67, 5), (2, 1, 3, 6, 3)])
@pytest.mark.parametrize("name", BESIDE)
def test_operands_that_are_not_the_same_in_each_step(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = (np.round(rng.standard_normal(s), 1).astype(np.float32) for s in (shape, (11, shape[-1])))
    at = rng.integers(0, 11, shape[-2]).astype(np.int32)
    found = smelt.compile(lambda x, y, at: BESIDE[name](x, y, at, smelt))(*map(smelt.array, (x, y, at)))
    np.testing.assert_allclose(np.asarray(found), BESIDE[name](x, y, at, np), rtol=1e-5, atol=1e-5)


def test_results_are_those_of_a_thread() -> None:
    for shape, axis in (((3001, 16), 0), ((40, 120, 3), 1), ((64, 31, 5), 1)):
        x, found = smelt.array(np.random.default_rng(0).standard_normal(shape, np.float32)), []
        for threads in (1, 3, 16):
            with smelt.ir.settings.override(num_threads=threads):
                found.append(np.asarray(smelt.compile(lambda x, a=axis: smelt.softmax(x, axis=a))(x)))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7, 8, 10, 12, 15])
@pytest.mark.parametrize("steps", [0, 1, 4, 11, 16, 37, 128])
def test_middle_axes(channels: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few channels, as pictures and points in space have, in lines as short as such rows are."""
    monkeypatch.undo()
    x = np.round(np.random.default_rng(0).standard_normal((64, steps, channels)), 2).astype(np.float32)
    if steps:
        x[0, 0, 0], x[0, -1, -1], x[1, 0, -1], x[2], x[3] = np.nan, np.inf, -np.inf, -0.0, x[3, :1]

    def program(x: Any, of: Any) -> Any:
        largest = x.max(1, keepdims=True) if steps else 0
        return x.sum(1), (x * x).sum(1), (x - largest) * x.sum(1, keepdims=True), *((x.max(1),) if steps else ())

    made = []

    def counted(*arguments: Any) -> Any:
        made.append(narrow_lines.NarrowRowKernel(*arguments))
        return made[-1]

    monkeypatch.setattr(reductions, "NarrowRowKernel", counted)
    with smelt.ir.settings.override(cache=False, check=True, tier="program"):
        found = smelt.compile(lambda x: program(x, smelt))(smelt.array(x))
    with np.errstate(invalid="ignore"):
        wanted = program(x.astype(np.float64), np)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-4)
    assert made or channels == 1 or steps * channels < 64


@pytest.mark.parametrize("shape", [(13, 13, 0), (13, 0, 5), (3, 40, 2, 0), (0, 40, 3)], ids=str)
def test_no_elements(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an array that is moved, so that axes without elements stay apart from others."""
    monkeypatch.undo()
    x = np.zeros(shape[::-1], np.float32)
    for axis in range(len(shape)):
        with smelt.ir.settings.override(cache=False, tier="program"):
            found = smelt.compile(lambda x, axis=axis: x.T[1:].sum(axis))(smelt.array(x))
        np.testing.assert_array_equal(np.asarray(found), x.T[1:].sum(axis))


@pytest.mark.parametrize("shape", [(64, 1024, 16), (32, 8, 64, 3), (2, 64, 1024, 100)])
def test_middle_axes_are_no_columns(shape: tuple[int, ...]) -> None:
    """Rows that lie apart are units for threads: they are not cut into chunks, and what follows is one kernel."""
    x = smelt.zeros(shape)
    texts = [
        smelt.compile(f).trace(x).lower().compile().as_text("plan-buffers")
        for f in (lambda x: x.sum(-2), lambda x: (x - x.mean(-2, keepdims=True)) ** 2)
    ]
    apart = math.prod(shape[:-2]) >= groups.FEW_ROWS
    assert ["smelt.chunks" not in text for text in texts] == [apart] * 2
    assert texts[1].count("call @") == (1 if apart else 2)


@pytest.mark.parametrize("window", [2, 3])
@pytest.mark.parametrize("channels", [3, 8, 32, 64])
def test_short_lines_are_added_up_as_they_are(window: int, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of windows that lie beside each other: to combine several steps of each took most of the time."""
    monkeypatch.undo()
    monkeypatch.setattr(reductions, "NarrowRowKernel", lambda *_: pytest.fail("several steps at once"))
    x = np.random.default_rng(0).standard_normal((4, 6 * window, 5 * window, channels)).astype(np.float32)
    parts = x.reshape(4, 6, window, 5, window, channels)
    for pool, wanted in ((smelt.nn.MaxPool2d, parts.max((2, 4))), (smelt.nn.AvgPool2d, parts.mean((2, 4)))):
        with smelt.ir.settings.override(cache=False):
            found = smelt.compile(pool(window))(smelt.array(x))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize("steps", [1, 2, 4, 9])
@pytest.mark.parametrize("channels", [4, 8, 16])
def test_lines_that_are_vectors(channels: int, steps: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few steps each: LLVM unrolled loops over the lanes before it made vectors, and left single numbers."""
    monkeypatch.undo()
    values = np.random.default_rng(0).integers(-9, 10, (900, steps, channels)).astype(np.float64)
    if dtype.startswith("float"):
        values[0, 0, 0], values[1, -1, -1], values[2, 0], values[3] = np.nan, np.inf, -np.inf, -0.0
    x = smelt.array(values).astype(getattr(smelt, dtype))

    def program(x: Any, of: Any) -> Any:
        return x.max(1), x.min(1), (x * 1.0).sum(1), x.argmax(1), (x > 3).any(1), (x - x[:, :1]).sum(1)

    with smelt.ir.settings.override(cache=False, tier="program"):
        found = smelt.compile(lambda x: program(x, smelt))(x)
        text = smelt.compile(lambda x: x.max(1)).trace(x).lower().compile().as_text("kernel")
    with np.errstate(invalid="ignore"):
        wanted = program(values, np)
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(np.asarray(a.astype(smelt.float64)), b)
    if x.size > 1 << 15 and x.dtype.size * channels <= 64 and steps > 2:
        assert "loop_annotation<unroll = #loop_unroll>" in text
