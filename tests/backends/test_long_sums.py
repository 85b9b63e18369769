"""Sums of very many numbers keep their digits: they are sums of parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import long_sums
from smelt.ir.settings import override


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    with override(tier="program", cache=False):
        yield


def error_of(found: smelt.array, want: float) -> float:
    return float(np.max(np.abs(np.asarray(found).astype(np.float64) / want - 1)))


@pytest.mark.host("what the loops of the CPU add")
def test_equal_numbers() -> None:
    """The worst case: each addition is rounded in the same direction. It was 2.6e-4 of the first, and grew."""
    each, n = float(np.float32(0.1)), 1 << 27
    total = smelt.compile(lambda v: smelt.broadcast_to(v, (n,)).sum())
    assert error_of(total(smelt.array(0.1)), n * each) < 1e-5
    lines = smelt.compile(lambda v: smelt.broadcast_to(v, (64, n // 64)).sum(1))
    assert error_of(lines(smelt.array(0.1)), n * each / 64) < 1e-5
    twice = smelt.ones((4, 1, 2, 1))
    odd = smelt.compile(lambda v: (smelt.broadcast_to(v, (4, 1 << 12, 1, 999)) * twice).sum((1, 2, 3)))
    assert error_of(odd(smelt.array(0.1)), each * (1 << 12) * 2 * 999) < 1e-5


@pytest.mark.parametrize("shape, axes", [((3, 5003), 1), ((2, 37, 3, 41), (1, 3)), ((7001,), 0), ((2, 61, 61), (1, 2))])
def test_parts_are_the_whole(shape: tuple[int, ...], axes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several reductions of one loop, of which some are by parts: every element counts once."""
    monkeypatch.setattr(long_sums, "MOST_SUMMED", 100)
    monkeypatch.setattr(long_sums, "PARTIAL", 40)
    x = np.random.default_rng(0).standard_normal(shape)

    def several(x: smelt.array) -> tuple[smelt.array, ...]:
        extremum = smelt.argmax(x, axes) if isinstance(axes, int) else smelt.min(x, axes)
        return smelt.sum(x, axes), smelt.max(x, axes), smelt.prod(1 + x / 64, axes), extremum, smelt.var(x, axes)

    found = smelt.compile(several)(smelt.array(x, smelt.float64))
    last = np.argmax(x, axes) if isinstance(axes, int) else np.min(x, axes)
    for got, want in zip(found, (x.sum(axes), x.max(axes), (1 + x / 64).prod(axes), last, x.var(axes))):
        np.testing.assert_allclose(np.asarray(got), want, 1e-11)
