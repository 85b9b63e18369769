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
}


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64, smelt.bfloat16, smelt.int16], ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(64,), (1000,), (1037,), (3, 4096), (5, 1000), (7, 64), (128, 128)], ids=str)
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
    kernel = smelt.compile(lambda x: x.sum(axis=0) * 2).trace(x).lower().compile().as_text("kernel")
    assert "memref.prefetch" in kernel
