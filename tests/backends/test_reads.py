"""However a kernel reads an operand (repeated, tiled, rolled, padded, turned), every schedule computes what NumPy does.

An index with a quotient or a remainder in it has no steps; a schedule that takes it for one that stands still, or for
one that goes on, reads the wrong element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends import buffer
from smelt.backends.cpu import narrow_lines, short_maps, short_rows, streaming
from smelt.passes.kernels import groups

Read = Callable[[Any, Any], Any]


def _blocks(a: Any) -> tuple[int, int]:
    """A number of columns that blocks divide, and the size of a block."""
    width = next((n for n in (8, 4, 3, 2) if a.shape[1] >= n), 1)
    return a.shape[1] // width * width, width


def _block_columns(a: Any, of: Any) -> Any:
    whole, width = _blocks(a)
    turned = of.swapaxes(a[:, :whole].reshape(a.shape[0], width, whole // width), 1, 2).reshape(a.shape[0], whole)
    return of.concatenate([turned, a[:, whole:]], axis=1)


#: An array of the same shape, whose elements are those of `a`.
READS: dict[str, Read] = {
    "as it is": lambda a, of: a,
    "a row for all": lambda a, of: of.broadcast_to(a[1:2] if a.shape[0] > 1 else a, a.shape),
    "a column for all": lambda a, of: of.broadcast_to(a[:, -1:], a.shape),
    "each three times": lambda a, of: of.repeat(a[:, : -(-a.shape[1] // 3)], 3, axis=1)[:, : a.shape[1]],
    "each eight times": lambda a, of: of.repeat(a[:, : -(-a.shape[1] // 8)], 8, axis=1)[:, : a.shape[1]],
    "three over and over": lambda a, of: of.tile(a[:, :3], (1, -(-a.shape[1] // min(3, a.shape[1]))))[:, : a.shape[1]],
    "rows twice": lambda a, of: of.repeat(a[: -(-a.shape[0] // 2)], 2, axis=0)[: a.shape[0]],
    "rows over and over": lambda a, of: of.tile(a[:5], (-(-a.shape[0] // min(5, a.shape[0])), 1))[: a.shape[0]],
    "backwards": lambda a, of: a[:, ::-1],
    "rows backwards": lambda a, of: a[::-1],
    "rolled": lambda a, of: of.roll(a, 3, axis=1),
    "rows rolled": lambda a, of: of.roll(a, -2, axis=0),
    "rolled flat": lambda a, of: of.roll(a.reshape(-1), 5).reshape(a.shape),
    "every other": lambda a, of: of.concatenate([a[:, ::2], a[:, 1::2]], axis=1),
    "padded": lambda a, of: of.pad(a[:, 1:], ((0, 0), (1, 0))),
    "rows padded": lambda a, of: of.pad(a[1:], ((0, 1), (0, 0))),
    "reshaped and turned": lambda a, of: a.reshape(a.shape[1], a.shape[0]).T,
    "blocks of columns turned": _block_columns,
    "by indices": lambda a, of: a[:, of.arange(a.shape[1]) * 5 % a.shape[1]],
    "rows by indices": lambda a, of: a[of.arange(a.shape[0]) * 3 % a.shape[0]],
}

Consumer = Callable[[Any, Any, Any, Any], Any]

#: Of an operand `x` that is plain, `y` that is read somehow, and a matrix `m` with as many rows as they have columns.
CONSUMERS: dict[str, Consumer] = {
    "map": lambda x, y, m, of: x * 2 + y,
    "map, turned": lambda x, y, m, of: (x + y).T * 2,
    "map of both": lambda x, y, m, of: of.concatenate([y[:, 1:] + x[:, 1:], y[:, :1] * x[:, :1]], axis=1),
    "sums": lambda x, y, m, of: (x * y).sum(1),
    "sum and largest": lambda x, y, m, of: of.concatenate([(x + y).sum(1), (x * y).max(1)]),
    "centered": lambda x, y, m, of: (y - y.mean(1, keepdims=True)) * x,
    "of columns": lambda x, y, m, of: (x + y).sum(0),
    "of columns, centered": lambda x, y, m, of: y - y.mean(0, keepdims=True) + x,
    "of all": lambda x, y, m, of: (x * y).sum(),
    "where largest": lambda x, y, m, of: y.argmax(1),
    "running": lambda x, y, m, of: (x + y).cumsum(1),
    "running down": lambda x, y, m, of: (x + y).cumsum(0),
    "times matrix": lambda x, y, m, of: y @ m,
    "few rows times matrix": lambda x, y, m, of: y[:3] @ m,
    "matrix times it": lambda x, y, m, of: m.T @ y.T,
    "row times it": lambda x, y, m, of: m.T[:1] @ y.T,
    "rows times it": lambda x, y, m, of: m.T[:7] @ (y * 2).T,
    "matrix times it, as it lies": lambda x, y, m, of: x.T @ y,
    "rows times it, as it lies": lambda x, y, m, of: x.T[:3] @ y,
    "row times it, as it lies": lambda x, y, m, of: x.T[:1] @ y,
    "square": lambda x, y, m, of: y.T @ x,
    "in place of": lambda x, y, m, of: of.where(x > 0, y, x),
}
SHAPES = [(700, 12), (67, 31), (40, 256), (9, 4000), (2100, 3), (1, 5000), (130, 64), (33, 96)]


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However small arrays are, checked for places outside of them."""
    for module, names in ((short_maps, ("FEWEST",)), (short_rows, ("FEWEST",)), (narrow_lines, ("LONG",))):
        for name in names:
            monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(groups, "SMALL", 0)
    monkeypatch.setattr(buffer, "SMALL", 0)
    monkeypatch.setattr(streaming, "STREAM_BYTES", 1)
    with smelt.ir.settings.override(check=True):
        yield


@pytest.mark.thinned(8)
@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_values(shape: tuple[int, int], read: str, consumer: str) -> None:
    random = np.random.default_rng(0)
    x, a = (random.permutation(np.arange(shape[0] * shape[1]) % 251 - 125.0).reshape(shape) for _ in range(2))
    m = random.integers(-3, 4, (shape[1], 20)).astype(np.float64)

    def program(x: Any, a: Any, m: Any, of: Any) -> Any:
        return CONSUMERS[consumer](x, READS[read](a, of), m, of)

    arrays = [smelt.array(v.astype(np.float32)) for v in (x, a, m)]
    found = np.asarray(smelt.compile(lambda x, a, m: program(x, a, m, smelt))(*arrays))
    wanted = program(x, a, m, np)
    if not np.array_equal(found, wanted.astype(np.float32)):  # as most are, of which some have millions of elements
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * abs(wanted).max())
