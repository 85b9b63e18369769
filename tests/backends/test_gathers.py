"""Kernels that read at places computed from arrays of indices, around every movement, in every schedule.

Such a place exists only where its element is computed: no schedule may load or fetch there ahead of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import streaming
from smelt.ir.settings import override

SHAPE = (8, 72, 100)

MOVES: dict[str, Callable] = {
    "transpose": lambda x: x.swapaxes(-1, -2),
    "rotate": lambda x: smelt.transpose(x, (2, 0, 1)),
    "reshape": lambda x: x.reshape(x.shape[0], -1, 10),
    "slice": lambda x: x[:, 3::2, 1:],
    "reverse": lambda x: x[:, ::-1, ::-1],
    "pad": lambda x: smelt.pad(x, [(0, 0), (2, 1), (1, 3)], constant_values=2.5),
    "padded transpose": lambda x: smelt.pad(x, [(0, 0), (2, 1), (1, 3)]).swapaxes(-1, -2),
    "concatenate": lambda x: smelt.concatenate([x, 2 * x[:, :5]], axis=1).swapaxes(1, 2),
    "broadcast": lambda x: smelt.broadcast_to(x[:, :, None], (*x.shape[:2], 2, *x.shape[2:])).swapaxes(1, 3)[:, :, 0],
}

#: How a gather and a movement follow each other.
ORDERS: dict[str, Callable] = {
    "rows after": lambda move, x, i: move(x)[i],
    "columns after": lambda move, x, i: move(x)[:, i],
    "last axis after": lambda move, x, i: move(x)[..., i],
    "before": lambda move, x, i: move(x[i]),
    "between": lambda move, x, i: move(move(x)[:, i][i]),
    "two gathers": lambda move, x, i: move(x)[i][:, i],
    "two axes": lambda move, x, i: move(x)[i, i],
}

#: What reads the result, so that every schedule is used.
USES: dict[str, Callable] = {
    "map": lambda g: g * 2 + 1,
    "softmax": lambda g: smelt.softmax(g, axis=-1),
    "layer norm": lambda g: (g - smelt.mean(g, axis=-1, keepdims=True)) * smelt.rsqrt(g.var(axis=-1, keepdims=True)),
    "rows": lambda g: smelt.sum(g, axis=-1),
    "columns": lambda g: smelt.max(g, axis=0),
    "all": lambda g: g.sum(),
    "argmax": lambda g: smelt.argmax(g, axis=-1),
    "scan": lambda g: smelt.cumsum(g, axis=-1),
    "scan of columns": lambda g: smelt.cumsum(g, axis=0),
    "sort": lambda g: smelt.sort(g, axis=-1),
    "product": lambda g: g.reshape(-1, g.shape[-1]) @ smelt.ones((g.shape[-1], 3)),
    "scatter": lambda g: g.at[smelt.array([1, 0])].add(g[:2]),
}


#: Those whose results are written past the caches when they are large.
STREAMED = ("map", "softmax", "layer norm")


def _chosen(move: str, order: str, uses: tuple[str, ...]) -> list[str]:
    """A third of the uses, so that all pairs of a move, an order and a use come up."""
    first = list(MOVES).index(move) + list(ORDERS).index(order)
    return [use for n, use in enumerate(uses) if (n - first) % 3 == 0]


def _run(
    move: str, cases: list[tuple[str, str]], arrays: list, indices: Any, device: str, check: bool = False
) -> list:
    def every(xs: list, i: Any) -> list:
        return [USES[use](ORDERS[order](MOVES[move], x, i)) for x, (order, use) in zip(xs, cases)]

    with override(device=device, check=check):
        return [np.array(v) for v in smelt.compile(every)(arrays, indices)]


@pytest.mark.parametrize("streamed", [False, True], ids=["checked", "streamed"])
@pytest.mark.parametrize("move", MOVES)
def test_gathers_around_movements(move, streamed):
    cases = [(order, use) for order in ORDERS for use in _chosen(move, order, STREAMED if streamed else tuple(USES))]
    rng = np.random.default_rng(0)
    arrays = [smelt.array(rng.uniform(-1, 1, SHAPE).astype(np.float32)) for _ in cases]
    indices = smelt.array([3, -1, 0, 7, 3])
    want = _run(move, cases, arrays, indices, "reference")
    if streamed:
        with mock.patch.multiple(streaming, STREAM_BYTES=1), mock.patch.multiple(buffer, SMALL=0):
            found = _run(move, cases, arrays, indices, "cpu")
    else:
        found = _run(move, cases, arrays, indices, "cpu", check=True)
    for case, a, b in zip(cases, found, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, case
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=str(case))


def test_no_value_is_kept_from_outside_its_array():
    """A costly value that two loops over a row read is computed once, but not where the row is longer than it."""

    def function(x: Any) -> Any:
        y = smelt.erf(smelt.exp(x))
        zeros, ones = (smelt.pad(y, [(0, 0), (2, 3)], constant_values=value) for value in (0, 1))
        return smelt.sum(ones - smelt.max(zeros, axis=-1, keepdims=True), axis=-1)

    x = smelt.array(np.random.default_rng(0).uniform(-1, 1, (40, 33)).astype(np.float32))
    with override(device="reference"):
        want = np.array(smelt.compile(function)(x))
    with override(check=True):
        np.testing.assert_allclose(np.array(smelt.compile(function)(x)), want, rtol=1e-5)
