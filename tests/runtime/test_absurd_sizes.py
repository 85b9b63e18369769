"""Arrays that no memory holds: making them costs nothing, asking for their values is an error that names the operation,
the array and its bytes, and what needs none of their elements in memory is computed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import OutOfMemoryError, SmeltError
from smelt.ir.settings import settings

N, M = 10**12, 10**6
x, column = smelt.zeros(10), smelt.zeros((M, 1))
#: What is only made here, and takes N elements or more.
MADE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: smelt.zeros(N), "full": lambda: smelt.full((N,), x[0]), "empty": lambda: smelt.empty(N),
    "arange": lambda: smelt.arange(N), "small steps": lambda: smelt.arange(0, 1, 1e-14), "eye": lambda: smelt.eye(M),
    "linspace": lambda: smelt.linspace(0, 1, N), "tri": lambda: smelt.tri(M),
    "diag": lambda: smelt.diag(smelt.zeros(M)), "indices": lambda: smelt.indices((M, M))[0],
    "broadcast_to": lambda: smelt.broadcast_to(x, (N, 10)),
    "tile": lambda: smelt.tile(x, N), "repeat": lambda: smelt.repeat(x, N), "pad": lambda: smelt.pad(x, N),
    "outer": lambda: smelt.outer(smelt.zeros(M), smelt.zeros(M)), "sums": lambda: column + smelt.zeros(M),
    "products": lambda: column @ column.T, "kron": lambda: smelt.kron(smelt.zeros(M), smelt.zeros(M)),
    "fftfreq": lambda: smelt.fft.fftfreq(N), "rfftfreq": lambda: smelt.fft.rfftfreq(N),
    "fft": lambda: smelt.fft.fft(x, N),
    "cumsum": lambda: smelt.cumsum(smelt.arange(N)), "sort": lambda: smelt.sort(smelt.arange(N)),
    "stack": lambda: smelt.stack([smelt.zeros(N)] * 2), "take": lambda: x[smelt.arange(N) % 10],
    "toeplitz": lambda: smelt.linalg.toeplitz(smelt.zeros(M)), "resize": lambda: smelt.resize(x, (N,)),
}  # fmt: skip
ASKS: dict[str, Callable[[smelt.array], Any]] = {"eval": smelt.eval, "tolist": smelt.array.tolist,
                                                 "asarray": np.asarray}  # fmt: skip


@pytest.mark.parametrize("tier", ["auto", "program", "ops"])
@pytest.mark.parametrize("what", MADE)
def test_values_are_an_error(what: str, tier: str) -> None:
    settings.tier = tier
    made = MADE[what]()
    assert made.size >= N / 2
    for ask in ASKS.values() if what == "zeros" else [smelt.eval]:
        with pytest.raises(OutOfMemoryError) as info:
            ask(made)
        message = str(info.value)
        assert "bytes" in message or "iB for an array" in message, message
        assert "smelt" in message and __file__ in message, message
        assert f"[{made.shape[0]}" in message or f"({made.shape[0]}" in message or tier != "program", message
    assert (smelt.arange(3) + 1).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: smelt.zeros((2**40, 2**40)), lambda: smelt.eye(2**40), lambda: smelt.arange(1e300),
        lambda: smelt.insert(smelt.zeros(N), 1, 2.0), lambda: smelt.delete(smelt.zeros(N), 1),
        lambda: smelt.random.normal((N,)), lambda: smelt.geomspace(1, 2, N), lambda: smelt.tri(2**62, 2**62),
        lambda: smelt.array(range(N)), lambda: smelt.tril_indices(M), lambda: smelt.hanning(N),
    ],
)  # fmt: skip
def test_what_is_refused_at_once(call: Callable[[], Any]) -> None:
    with pytest.raises(SmeltError, match=r"smelt|insert|delete"):
        call()


def test_results_that_need_no_memory() -> None:
    """As the tiers choose, in a process in which nothing is compiled yet: indices of so many elements are not kept."""
    code = """
import smelt
n = 3 * 10**8
smelt.set_memory_limit(1 << 28)
x = smelt.linspace(0, 1, n).max().item()
print((smelt.arange(n) % 1000).max().item(), smelt.any(smelt.arange(n) < 0).item(), x)
"""
    environment = {k: v for k, v in os.environ.items() if k != "SMELT_TIER"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment, check=False
    )
    assert done.stdout == "999 False 1.0\n", done.stdout + done.stderr
