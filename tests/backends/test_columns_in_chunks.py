"""Columns that are reduced in chunks, whose parts are combined in vectors: NumPy's values, whatever the threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import reductions
from smelt.ir.settings import override

pytestmark = pytest.mark.host("kernels of the CPU")
SHAPES = [(1024, 1024), (3001, 130), (20_000, 200), (5000, 2, 200)]
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, of: of.sum(x, axis=0),
    "max": lambda x, of: of.max(x, axis=0),
    "argmax": lambda x, of: of.argmax(x, axis=0),
    "any": lambda x, of: of.any(x > 98, axis=0),
    "what follows": lambda x, of: of.exp(of.min(x, axis=0) / 64.0) + of.argmin(x, axis=0),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_columns(name: str, dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    combined = []
    combine = reductions._build_combine
    monkeypatch.setattr(reductions, "_build_combine", lambda *args: combined.append(name) or combine(*args))
    host = np.random.default_rng(0).integers(-99, 100, shape).astype(np.int8)
    host[-1, ..., 3], host[5, ..., 3] = 99, 99
    x = smelt.array(host).astype(getattr(smelt, dtype))
    program = PROGRAMS[name]
    found = []
    for threads in (1, 2):
        with override(tier="program", cache=False, num_threads=threads):
            found.append(smelt.compile(lambda x: program(x, smelt))(x))
            smelt.eval(found[-1])
            smelt.clear_cache()
    assert combined
    assert np.asarray(smelt.array_equal(*found)).item()
    wanted = program(host.astype(np.int64 if dtype.startswith("int") else np.float32), np)
    got = np.asarray(found[0].astype(smelt.float64))
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-6
    largest = float(np.abs(wanted).max())
    np.testing.assert_allclose(got, np.asarray(wanted, float), rtol=tolerance, atol=tolerance * largest)
