"""Columns reduced or scanned in one go: a thread takes all of its own as one line; values are those of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import loops, reductions, rows, scan_scatter, streaming
from smelt.ir.settings import override

from ..compose.kernels import Way, problems

pytestmark = pytest.mark.host("kernels of the CPU")
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=0),
    "largest of absolute values": lambda x: smelt.abs(x).max(axis=0),
    "any": lambda x: (x > 2).any(axis=0),
    "argmax": lambda x: x.argmax(axis=0),
    "two at once": lambda x: (x.sum(axis=0) + (x * x).sum(axis=0), x.min(axis=0)),
    "of a slice": lambda x: x[:, 3:].sum(axis=0),
}


SCANS: dict[str, Callable[[Any, int], Any]] = {
    "cumsum": lambda x, axis: smelt.cumsum(x, axis=axis),
    "cummax": lambda x, axis: smelt.cummax(x, axis=axis),
    "from the end, of a slice": lambda x, axis: smelt.cumsum(x[..., 3:] * 2, axis=axis, reverse=True),
    "of those before": lambda x, axis: smelt.cumprod(x / 4, axis=axis, inclusive=False),
}


def _results(f: Callable[[Any], Any], x: Any) -> list[np.ndarray]:
    found = f(x)
    return [np.array(v.astype(smelt.float32)) for v in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_columns_of_any_number_by_any_threads(
    name: str, dtype: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, rng = REDUCTIONS[name], np.random.default_rng(0)
    for shape in ((37, 5000), (70, 4133), (33, 16400), (19, 300), (1, 4000), (3000, 130))[first::3]:
        host = np.round(rng.standard_normal(shape) * 9).astype(np.float32)
        if dtype != "int8":
            host[0, 5], host[-1, 7], host[0, -1], host[0, 9] = np.nan, np.inf, -np.inf, -0.0
        x = smelt.array(host).astype(getattr(smelt, dtype))
        with override(device="reference"):
            wanted = _results(smelt.compile(lambda x: f(x)), x)
        found = []
        for threads in (1, 2, 5):
            with override(tier="program", cache=False, num_threads=threads):
                found.append(_results(smelt.compile(lambda x: f(x)), x))
        with monkeypatch.context() as narrow:
            narrow.setattr(reductions, "WIDE_BYTES", 0)
            with override(tier="program", cache=False):
                found.append(_results(smelt.compile(lambda x: f(x)), x))
        for values in zip(*found):
            for other in values[1:]:
                np.testing.assert_array_equal(values[0], other)
        for value, want in zip(found[0], wanted):
            np.testing.assert_allclose(value, want, rtol=2e-2 if dtype == "bfloat16" else 1e-5)


@pytest.mark.parametrize("past", [False, True], ids=["", "past the caches"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float64"])
@pytest.mark.parametrize("name", SCANS)
def test_scans_of_any_number_of_columns_by_any_threads(
    name: str, dtype: str, past: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if past:
        monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
        monkeypatch.setattr(scan_scatter, "FEWEST_PIECES", 2)
        monkeypatch.setattr(buffer, "SMALL", 0)
    f, rng = SCANS[name], np.random.default_rng(0)
    for shape, axis in (
        ((9, 5000), 0), ((7, 4133), 0), ((19, 300), 0), ((1, 4000), 0), ((0, 700), 0), ((5, 3, 2999), 1),
        ((2, 4, 9001), 1), ((70, 2, 1100), 1), ((3, 5, 7, 129), 2),
    ):  # fmt: skip
        host = np.round(rng.standard_normal(shape) * 9).astype(np.float32)
        if dtype != "int8" and host.size:
            host.flat[[5, 700, -1, 9]] = np.nan, np.inf, -np.inf, -0.0
        x = smelt.array(host).astype(getattr(smelt, dtype))
        with override(device="reference"):
            wanted = _results(smelt.compile(lambda x, axis=axis: f(x, axis)), x)
        for threads, width in ((1, scan_scatter.WIDE_BYTES), (3, scan_scatter.WIDE_BYTES), (1, 0)):
            with monkeypatch.context() as lines, override(tier="program", cache=False, num_threads=threads):
                lines.setattr(scan_scatter, "WIDE_BYTES", width)
                found = _results(smelt.compile(lambda x, axis=axis: f(x, axis)), x)
            np.testing.assert_array_equal(found[0], wanted[0], f"{shape}, {threads} threads, {width} bytes")


@pytest.mark.parametrize("past", [False, True], ids=["", "past the caches"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_columns_in_cache_are_read_again(dtype: str, past: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last two axes what is read stays in a cache, so sums and what follows from them are of whole lines."""
    if past:
        monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
        monkeypatch.setattr(buffer, "SMALL", 0)

    def f(x: Any) -> Any:
        centered = x - x.mean(axis=-2, keepdims=True)
        scaled = centered * smelt.rsqrt((centered * centered).mean(axis=-2, keepdims=True) + 1e-5)
        squares = (x * x / x.shape[-2]).sum(-2, keepdims=True)
        return x - x.max(axis=-2, keepdims=True), scaled, x.sum(axis=-2), squares * x

    rng = np.random.default_rng(0)
    shapes = (3, 40, 1024), (2, 300, 511), (17, 90, 1100), (2, 3, 30, 4133), (5, 1, 700), (3, 0, 600), (2, 70, 9001)
    loose = 3e-2 if dtype == "bfloat16" else 2e-5
    for shape in shapes:
        host = np.round(rng.standard_normal(shape) * 9).astype(np.float32)
        if host.size:
            host[0, ..., 0, 5], host[-1, ..., -1, 7], host[-1, ..., 0, 9] = np.nan, -np.inf, -0.0
        x = smelt.array(host).astype(getattr(smelt, dtype))
        parts = f if host.size else (lambda x: (x.sum(axis=-2),))
        with override(device="reference"):
            wanted = _results(smelt.compile(lambda x, parts=parts: parts(x)), x)
        every = []
        for threads in (1, 3):
            with override(tier="program", cache=False, num_threads=threads):
                every.append(_results(smelt.compile(lambda x, parts=parts: parts(x)), x))
        for one, other, want in zip(*every, wanted):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(one, want, rtol=loose, atol=loose)


def test_tiles_of_several_axes_by_any_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread's tiles may begin and end inside of a line, and be of several."""
    rng = np.random.default_rng(0)
    for shape in ((3, 20, 5000), (2, 17, 9001), (5, 9, 700), (70, 3, 1100), (2, 3, 5, 2100)):
        x = smelt.array(np.round(rng.standard_normal(shape) * 9).astype(np.float32))
        wanted = np.asarray(x).sum(axis=-2), np.asarray(x).max(axis=-2)
        for threads in (1, 2, 3, 5, 7):
            with override(tier="program", cache=False, num_threads=threads):
                found = smelt.compile(lambda x: (x.sum(axis=-2), x.max(axis=-2)))(x)
            for value, want in zip(found, wanted):
                np.testing.assert_array_equal(np.asarray(value), want)


@pytest.mark.parametrize("first", [0, 60])
def test_random_graphs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of random graphs, however few: each sixty have tiles that come together."""
    monkeypatch.setattr(rows, "LINE", 4)
    monkeypatch.setattr(rows, "FEWEST", 4)
    monkeypatch.setattr(rows, "line_width", lambda loops, size=4: min(4, loops[-1].extent))
    for module in (reductions, scan_scatter):
        monkeypatch.setattr(module, "line_width", rows.line_width)
    found: list[bool] = []
    bounds = loops._bounds

    def counted(k: Any, nest: Any, *rest: Any) -> Any:
        found.append(nest.together > 1)
        return bounds(k, nest, *rest)

    monkeypatch.setattr(loops, "_bounds", counted)
    way = Way(checked=True)
    assert not problems(way.graphs(range(first, first + 60)), way)
    assert any(found)


def test_scans_run_as_wide_lines() -> None:
    x = smelt.zeros((64, 8192))
    text = smelt.compile(lambda x: smelt.cumsum(x, axis=0)).trace(x).lower().compile().as_text("kernel")
    assert f"memref<{scan_scatter.WIDE_BYTES // 8}xf64>" in text  # the totals


def test_what_is_read_once_runs_as_wide_lines() -> None:
    def kernel(f: Callable[[Any], Any], *shape: int) -> str:
        x = smelt.zeros(shape)
        return smelt.compile(f).trace(x).lower().compile().as_text("kernel")

    wide = f"memref<{reductions.WIDE_BYTES // 4}xf32>"
    assert wide in kernel(lambda x: x.sum(axis=0), 64, 8192)
    assert wide not in kernel(lambda x: x.sum(axis=1), 64, 8192)
    assert wide not in kernel(lambda x: x - x.max(axis=0), 64, 8192)
    assert wide in kernel(lambda x: x - x.max(axis=1, keepdims=True), 4, 64, 8192)
