"""Results written past the caches are right at every ragged end."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import streaming

PROGRAMS = {
    "map": lambda x: x * 2 + 1,
    "two results": lambda x: (x * 2, (x > 0)),
    "row": lambda x: smelt.softmax(x.astype(smelt.float32), axis=-1).astype(x.dtype),
    "columns": lambda x: smelt.softmax(x.astype(smelt.float32), axis=0).astype(x.dtype),
    "columns and a result of columns": lambda x: (x * 2, x.astype(smelt.float32).sum(axis=0)),
    "running sums of rows": lambda x: (x.astype(smelt.float32) * 0.25).cumsum(axis=-1).astype(x.dtype),
    "running maxima of rows": lambda x: smelt.cummax(x, axis=-1),
    "running maxima of columns": lambda x: smelt.cummax(x, axis=0, reverse=True),
    "running sums of columns": lambda x: x.astype(smelt.float32).cumsum(axis=0, inclusive=False),
    "narrowing": lambda x: (x * 3).astype(smelt.int8),
    "transposed": lambda x: x.T * 2,
    "transpose": lambda x: x + x.T if x.ndim == 2 and x.shape[0] == x.shape[1] else x + 1,
    "sums and extrema of columns": lambda x: (x.astype(smelt.float32).sum(axis=0), x.max(axis=0), x.argmin(axis=0)),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64, smelt.bfloat16, smelt.int8], ids=lambda d: d.name)
@pytest.mark.parametrize(
    "shape", [(64,), (1000,), (1037,), (3, 4096), (5, 1000), (7, 64), (41, 2051), (256, 256)], ids=str
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_streamed_results(name, shape, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    x = smelt.array(rng.integers(-3, 4, shape)).astype(dtype)
    f = PROGRAMS[name]
    with smelt.ir.settings.override(device="reference"):
        want = smelt.compile(f)(x)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    monkeypatch.setattr(buffer, "SMALL", 0)  # streamed buffers come from the pool, which aligns them
    found = smelt.compile(f)(x)
    wants, founds = (v if isinstance(v, tuple) else (v,) for v in (want, found))
    for a, b in zip(founds, wants):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(
            np.array(a.astype(smelt.float32)), np.array(b.astype(smelt.float32)), rtol=1e-2, atol=1e-6
        )


def test_streaming_is_used_where_it_should_be(monkeypatch):
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    x = smelt.array(np.ones(4096, np.float32))
    kernel = smelt.compile(lambda x: x * 3).trace(x).lower().compile().as_text("kernel")
    assert "nontemporal = true" in kernel
    monkeypatch.undo()
    kernel = smelt.compile(lambda x: x * 5).trace(x).lower().compile().as_text("kernel")
    assert "nontemporal" not in kernel


def test_what_lies_far_apart_is_fetched_ahead(monkeypatch):
    x = smelt.array(np.ones((64, 640), np.float32))
    kernel = smelt.compile(lambda x: x.sum(axis=0)).trace(x).lower().compile().as_text("kernel")
    assert "prefetch" not in kernel
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    kernel = smelt.compile(lambda x: x.T * 2).trace(x).lower().compile().as_text("kernel")
    assert "memref.prefetch" in kernel and "nontemporal = true" in kernel
    kernel = smelt.compile(lambda x: x.cumsum(axis=0) * 2).trace(x).lower().compile().as_text("kernel")
    assert "memref.prefetch" in kernel


def test_the_end_of_an_operand_is_asked_for_once_for_all_lines_that_are_fetched(monkeypatch):
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    for size in (24, 640):  # of 24 columns there are fewer than a piece has
        x = smelt.array(np.arange(64 * size, dtype=np.float32).reshape(64, size) % 7)
        f = smelt.compile(lambda x: (smelt.maximum(x, 3).sum(axis=0), x.cumsum(axis=0) * 2))
        lines = f.trace(x).lower().compile().as_text("kernel").splitlines()
        fetches = [i for i, line in enumerate(lines) if "memref.prefetch" in line]
        assert fetches
        for i in fetches:
            loop = max(j for j in range(i) if "scf.for" in lines[j])
            assert not any("minui" in line for line in lines[loop:i])
        # results of less are no whole pages, as all that is streamed
        results = f(x) if size > 512 else ()
        for found, wanted in zip(results, (np.maximum(x, 3).sum(axis=0), np.cumsum(x, axis=0) * 2)):
            np.testing.assert_array_equal(np.array(found), np.array(wanted))


REDUCTIONS = {
    "logsumexp": lambda x, y: smelt.logsumexp(x, axis=-1),
    "variance": lambda x, y: x.var(axis=-1),
    "cross entropy": lambda x, y: (smelt.logsumexp(x, axis=-1) - (x * y).sum(axis=-1)).mean(),
    "three loops": lambda x, y: ((x - x.mean(axis=-1, keepdims=True)) ** 2 * y).max(axis=-1),
}


@pytest.mark.parametrize("shape", [(1, 1500), (5, 1024), (3, 4, 1537), (2, 1023)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_next_row_is_fetched_in_the_last_loop_over_this_one(name, shape, monkeypatch):
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    rng = np.random.default_rng(0)
    x, y = (smelt.array(rng.standard_normal(shape, np.float32)) for _ in "xy")
    if shape[0] == 5:
        x = smelt.where(smelt.arange(5)[:, None] == 3, smelt.array(np.nan), x)
        x[1, 1000], x[2, 7], x[4] = np.inf, -np.inf, -np.inf
    f = smelt.compile(REDUCTIONS[name])
    with smelt.ir.settings.override(device="reference"):
        wanted = smelt.compile(lambda x, y: REDUCTIONS[name](x, y))(x, y)
    if shape[-1] > 1023 and shape[0] > 1 and name == "three loops":  # logsumexp takes one
        assert "prefetch" in f.trace(x, y).lower().compile().as_text("kernel")
    found = []
    for threads in (1, 3):
        with smelt.ir.settings.override(num_threads=threads):
            results = smelt.compile(lambda x, y: REDUCTIONS[name](x, y))(x, y)
            found.append([np.array(v) for v in (results if isinstance(results, tuple) else (results,))])
    for a, b, w in zip(*found, wanted if isinstance(wanted, tuple) else (wanted,)):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, np.array(w), rtol=3e-5, atol=1e-5)
