"""Reductions of what is made of transposes, which read it as it lies: the values of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override

RNG = np.random.default_rng(0)
FLOATS = np.where(RNG.random((40, 50)) < 0.1, np.nan, RNG.standard_normal((40, 50))).astype(np.float32)
WORDS = RNG.integers(0, 2**62, (40, 50)).astype(np.uint64) * 3
BIG = 2**63 + 5

#: An array, and a program of smelt or NumPy and of that.
PROGRAMS: dict[str, tuple[np.ndarray, Callable[[Any, Any], Any]]] = {
    "infinities": (FLOATS, lambda m, x: m.nanmax(x.T, axis=0)),
    "two reductions": (FLOATS, lambda m, x: m.nanmin(x.T, axis=1)),
    "complex constants": (FLOATS + 1j, lambda m, x: m.where(m.isnan(x.T), 1 + 2j, x.T).sum(0)),
    "bools": (FLOATS > 0, lambda m, x: (~x.T).any(0)),
    "a chain": (FLOATS, lambda m, x: m.nan_to_num(x.T).sum(1)),
    "places": (FLOATS, lambda m, x: m.where(m.isnan(x.T), -np.inf, x.T).argmax(0)),
    "three axes": (FLOATS, lambda m, x: m.nan_to_num(x.reshape(4, 10, 50).transpose(2, 0, 1) * 2).argmin(1)),
    "another dtype": (FLOATS, lambda m, x: (x.T > 0).astype(m.int32).sum(0)),
    "two operands": (FLOATS, lambda m, x: m.nan_to_num(x.T * x.T + 1).max(0)),
    "one not turned": (FLOATS, lambda m, x: m.nan_to_num(x[:, :40].T + x[:, :40]).max(0)),
    "merged axes": (FLOATS[:, :6], lambda m, x: (m.nan_to_num(x)[:, :, None] * x[:, None]).reshape(40, -1).max(1)),
    "merged and split": (WORDS[:, :6] % 7, lambda m, x: (x.T[:, :, None] + x.T[:, None]).reshape(3, 3200).sum(1)),
    "merged and read": (WORDS[:, :6] % 7, lambda m, x: (lambda y: y.sum(1) + y[:, 3])(
        (x.T[:, :, None] * x.T[:, None]).reshape(6, -1)
    )),
    "read twice": (FLOATS, lambda m, x: (lambda y: y.sum(0) + y[0].sum())(m.nan_to_num(x.T) * 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    host, program = PROGRAMS[name]
    with override(tier="program"):
        found = smelt.compile(lambda x: program(smelt, x))(smelt.array(host))
    np.testing.assert_allclose(np.asarray(found), program(np, host), rtol=1e-4, atol=1e-4)


def test_words() -> None:
    with override(tier="program"):
        found = smelt.compile(lambda x: (x.T ^ smelt.array(BIG, smelt.uint64)).max(0))(smelt.array(WORDS))
    np.testing.assert_array_equal(np.asarray(found), (WORDS.T ^ np.uint64(BIG)).max(0))


def test_gradient() -> None:
    x = np.full((3, 4), 0.5, np.float32)
    with override(tier="program"):
        found = smelt.compile(smelt.grad(lambda x: (smelt.exp(x.T) * 2).sum(0)[2]))(smelt.array(x))
    expected = np.zeros_like(x)
    expected[2] = 2 * np.exp(np.float32(0.5))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def merged(shape: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Shapes of as many elements: neighbours merged, axes of one element left out or put in."""
    found = {shape, (int(np.prod(shape)),), (1, *shape), tuple(n for n in shape if n != 1)}
    found |= {(*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :]) for i in range(len(shape) - 1)}
    return found


@pytest.mark.parametrize("shape", [(1, 3, 2, 0), (2, 1, 3), (3, 1, 1), (1, 1), (2, 3), (0, 1), (1, 2, 1, 3, 1)])
def test_axes_of_one_element_and_of_none(shape: tuple[int, ...]) -> None:
    """Whatever a reshape does, rewrites come to an end, and to NumPy's values."""
    host = np.arange(max(shape[-1], 1), dtype=np.float32)[: shape[-1]]

    def results(m: Any, x: Any) -> list[Any]:
        spread = m.broadcast_to(x, shape)
        views = [m.sqrt(m.reshape(spread, to)) for to in sorted(merged(shape))]
        return [m.sum(view, axis=a) for view in views for a in (*range(view.ndim), tuple(range(view.ndim)))]

    with override(tier="program"):
        found = smelt.compile(lambda x: results(smelt, x))(smelt.array(host))
    for got, want in zip(found, results(np, host), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)
