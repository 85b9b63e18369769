"""Rows have the same bits wherever the shares of threads begin: LLVM may make vectors of rows, and leave some over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import planner, program


def _centered(x: Any) -> Any:
    return x - x.mean(1, keepdims=True)


#: Of rows, from one addition an element to many.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(1),
    "squares": lambda x: (x * x).sum(1),
    "product": lambda x: (x * 0.1 + 1).prod(1),
    "polynomial": lambda x: (((x * 0.3 + 1) * x + 0.5) * x + 0.1).sum(1),
    "quotients": lambda x: (1 / (x * x + 1)).sum(1),
    "two sums": lambda x: smelt.stack([(x * 0.3).sum(1), (x * x).sum(1)]),
    "distances": lambda x: (x - x.max(1, keepdims=True)).square().sum(1),
    "normalized": lambda x: _centered(x) * smelt.rsqrt(_centered(x).square().mean(1, keepdims=True) + 1e-5),
    "softmax": lambda x: smelt.softmax(x, axis=1),
    "a nest": lambda x: (x[:-4].reshape(5, -1, x.shape[1]) * 0.3 + x[4:].reshape(5, -1, x.shape[1])).sum((0, 2)),
}


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads share kernels, however small."""
    monkeypatch.setattr(program, "PARALLEL_WORK", 0)
    monkeypatch.setattr(planner, "SOLO_KERNEL", 0)
    with smelt.ir.settings.override(tier="program", cache=False):
        yield


@pytest.mark.parametrize("length", [5, 8, 12, 16, 20, 24])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_one_thread(name: str, length: int) -> None:
    for rows in (999, 269):
        x = smelt.array(np.random.default_rng(0).standard_normal((rows, length)).astype(np.float32))
        found = []
        for threads in (1, 5):
            with smelt.ir.settings.override(num_threads=threads):
                found.append(np.asarray(smelt.compile(PROGRAMS[name])(x)))
        np.testing.assert_array_equal(found[0], found[1], err_msg=f"{rows} rows")
