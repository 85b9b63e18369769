"""Copies of arrays whose elements lie in another order, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, host_memory
from smelt.ir.host_loops import loops


def _views(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """A permuted, reversed, strided or repeated view of an array of up to four axes."""
    shape = [int(rng.choice([1, 2, 3, 5, 16, 17, 33, 64])) for _ in range(rng.integers(1, 5))]
    steps = [int(rng.choice([1, 1, -1, 2, -2])) for _ in shape]
    whole = (rng.random([n * abs(s) for n, s in zip(shape, steps)]) * 100).astype(dtype)
    x = whole[tuple(slice(None, None, s) for s in steps)].transpose(rng.permutation(len(shape)))
    repeats = rng.integers(0, 3)
    if repeats == 1:
        x = np.broadcast_to(x, (3, *x.shape))
    elif repeats == 2:
        x = np.broadcast_to(x[..., None], (*x.shape, 3))
    return x


@pytest.mark.skipif(loops.arrange is None, reason="no core in C")
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex64", "complex128", "bool"])
def test_views(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        x = _views(rng, dtype)
        found = np.empty(x.shape, x.dtype)
        loops.arrange(x, found)  # type: ignore[misc]
        np.testing.assert_array_equal(found, x)
        np.testing.assert_array_equal(host_memory.contiguous(x), x)
        assert host_memory.contiguous(x).flags.c_contiguous


@pytest.mark.skipif(loops.arrange is None, reason="no core in C")
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("rows, columns", [(16, 16), (17, 130), (200, 23), (512, 70), (64, 33), (65, 64), (3, 70)])
def test_turned_squares(rows: int, columns: int, dtype: str) -> None:
    """Squares overlap at the ends of rows and columns; lines a power of two apart go by a tile. No more is written."""
    whole = (np.arange(rows * (columns + 2)) % 119).astype(dtype).reshape(rows, -1)
    for x in (whole[:, :-2].T, whole[:, 1:-1].T, whole[:, -2:0:-1].T, whole[::-1, :-2].T):
        memory = np.full(x.size + 2, 7, dtype)
        loops.arrange(x, memory[1:-1].reshape(x.shape))  # type: ignore[misc]
        np.testing.assert_array_equal(memory[1:-1].reshape(x.shape), x)
        assert memory[0] == memory[-1] == 7


@pytest.mark.skipif(loops.arrange is None, reason="no core in C")
def test_errors() -> None:
    assert loops.arrange is not None
    with pytest.raises(ValueError, match="room for as many"):
        loops.arrange(np.zeros((4, 4)).T, np.zeros(15))
    with pytest.raises(ValueError, match="1, 2, 4, 8 or 16 bytes"):
        loops.arrange(np.zeros(4, "S3"), np.zeros(4, "S3"))
    with pytest.raises(TypeError, match="argument 2"):
        loops.arrange(np.zeros((4, 4)), np.zeros((4, 4)).T[::2])
    found = np.zeros((0, 3))
    loops.arrange(np.zeros((3, 0)).T, found)


def test_edges() -> None:
    x = np.zeros((300, 40), dtypes.bfloat16.numpy)
    x[3] = 1
    np.testing.assert_array_equal(host_memory.contiguous(x.T).astype(np.float32), x.T.astype(np.float32))
    for edge in (np.zeros((0, 4)).T, np.zeros(()), np.broadcast_to(np.float32(1), (5000,))):
        assert host_memory.contiguous(edge).shape == edge.shape


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.bfloat16, smelt.bool_])
def test_lazily(dtype: smelt.Dtype) -> None:
    """Op by op: results that are turned, and turned arrays that are reshaped."""
    host = np.arange(60 * 70 * 3).reshape(60, 70, 3) % 120
    x = smelt.array(host).astype(dtype)
    host = host.astype(np.bool_ if dtype is smelt.bool_ else np.float32)
    for ours, theirs in (
        (x.transpose(2, 1, 0), host.transpose(2, 1, 0)), (smelt.flip(x), np.flip(host)),
        (x.transpose(1, 0, 2).reshape(-1), host.transpose(1, 0, 2).reshape(-1)),
        (x.transpose(1, 0, 2).reshape(10, 7, 60, 3), host.transpose(1, 0, 2).reshape(10, 7, 60, 3)),
        (x[::2].T.reshape(3, -1), host[::2].T.reshape(3, -1)),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(ours.astype(smelt.float32)), theirs.astype(np.float32))
