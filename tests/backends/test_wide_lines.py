"""Columns that are reduced in one go: a thread takes all of its own as one line, and values are those of any others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import reductions
from smelt.ir.settings import override

pytestmark = pytest.mark.host("kernels of the CPU")
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=0),
    "largest of absolute values": lambda x: smelt.abs(x).max(axis=0),
    "any": lambda x: (x > 2).any(axis=0),
    "argmax": lambda x: x.argmax(axis=0),
    "two at once": lambda x: (x.sum(axis=0) + (x * x).sum(axis=0), x.min(axis=0)),
    "of a slice": lambda x: x[:, 3:].sum(axis=0),
}


def _results(f: Callable[[Any], Any], x: Any) -> list[np.ndarray]:
    found = f(x)
    return [np.array(v.astype(smelt.float32)) for v in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_columns_of_any_number_by_any_threads(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, rng = REDUCTIONS[name], np.random.default_rng(0)
    for shape in ((37, 5000), (70, 4133), (33, 16400), (19, 300), (1, 4000), (3000, 130)):
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


def test_what_is_read_once_runs_as_wide_lines() -> None:
    def kernel(f: Callable[[Any], Any], *shape: int) -> str:
        x = smelt.zeros(shape)
        return smelt.compile(f).trace(x).lower().compile().as_text("kernel")

    wide = f"memref<{reductions.WIDE_BYTES // 4}xf32>"
    assert wide in kernel(lambda x: x.sum(axis=0), 64, 8192)
    assert wide not in kernel(lambda x: x.sum(axis=1), 64, 8192)
    assert wide not in kernel(lambda x: x - x.max(axis=0), 64, 8192)
