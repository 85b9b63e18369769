"""Positions and counts that a narrow dtype does not hold: indices of 8 and 16 bits into longer axes, and huge arrays.

A huge array is one element, broadcast: nothing here computes its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ShapeError
from smelt.ir.settings import override

NARROW = (smelt.int8, smelt.uint8, smelt.int16, smelt.uint16)
SHAPES = ((300,), (2, 300), (300, 2), (120, 5), (3, 1, 7), (1, 40000), (70000,), (90, 2, 300))


def drawn(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Indices along each axis of an array, as far as the dtype holds them, the last ones among these."""
    most, kind = int(smelt.iinfo(dtype).max), np.array(smelt.zeros(0, dtype)).dtype
    ends = [np.array([min(n - 1, most), 0]) for n in shape]
    return tuple(np.append(rng.integers(0, end[0] + 1, 6), end).astype(kind) for end in ends)


@pytest.mark.parametrize("dtype", [*NARROW, smelt.int32, smelt.uint32, smelt.uint64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_indices_of_flattened_arrays(shape: tuple[int, ...], dtype: Any) -> None:
    along = drawn(shape, dtype, np.random.default_rng(len(shape)))
    wanted = np.ravel_multi_index(along, shape)
    found = smelt.ravel_multi_index([smelt.array(a) for a in along], shape)
    np.testing.assert_array_equal(np.array(found), wanted)
    compiled = smelt.compile(lambda *a: smelt.ravel_multi_index(a, shape))(*map(smelt.array, along))
    np.testing.assert_array_equal(np.array(compiled), wanted)
    flat = wanted[wanted <= smelt.iinfo(dtype).max].astype(along[0].dtype)
    back = smelt.unravel_index(smelt.array(flat), shape)
    for a, b in zip(back, np.unravel_index(flat, shape), strict=True):
        np.testing.assert_array_equal(np.array(a), b)


def test_indices_of_huge_flattened_arrays() -> None:
    shape = (2**20, 2**20)
    assert smelt.ravel_multi_index((smelt.array(2**19), smelt.array(3)), shape).item() == 2**39 + 3
    assert [i.item() for i in smelt.unravel_index(smelt.array(2**39 + 3), shape)] == [2**19, 3]
    assert [i.item() for i in smelt.unravel_index(smelt.array([2**31 - 1]), (2, 2**40))] == [0, 2**31 - 1]


#: What takes positions along the last axis of 300 elements; beside it the same with NumPy's widest integers.
TAKERS: dict[str, Callable[[smelt.array, smelt.array], smelt.array]] = {
    "take": lambda x, i: smelt.take(x, i, axis=1), "x[:, i]": lambda x, i: x[:, i],
    "x[i, i]": lambda x, i: x[i % 2, i],
    "take_along_axis": lambda x, i: smelt.take_along_axis(x, smelt.stack([i, i]), 1),
    "put_along_axis": lambda x, i: smelt.put_along_axis(x, i[None, :1], -1.0, 1),
    "at.add": lambda x, i: x.at[:, i].add(1.0), "set": lambda x, i: _set(x, i),
    "slice": lambda x, i: smelt.slice(x, i[:1], (1,), (2, 3)),
    "slice_update": lambda x, i: smelt.slice_update(x, smelt.ones((2, 3)), i[:1], (1,)),
    "slice of two axes": lambda x, i: smelt.slice(x, i[:2], (0, 1), (1, 250)),
    "update of two axes": lambda x, i: smelt.slice_update(x, smelt.ones((1, 250)), i[:2], (0, 1)),
    "x[:, i[0]]": lambda x, i: x[:, i[0]],
}  # fmt: skip


def _set(x: smelt.array, i: smelt.array) -> smelt.array:
    x = x + 0
    x[:, i[0]] = -1.0
    return x


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("what", TAKERS)
def test_positions_of_few_bits(what: str, dtype: Any, check: bool) -> None:
    x = smelt.arange(600.0).reshape(2, 300)
    positions = [100, 1, 127] + ([200, 250, 255] if dtype is not smelt.int8 else [])
    f = TAKERS[what]
    with override(check=check):
        narrow, wide = (f(x, smelt.array(positions, d)) for d in (dtype, smelt.int64))
        np.testing.assert_array_equal(np.array(narrow), np.array(wide))
        compiled = smelt.compile(f)(x, smelt.array(positions, dtype))
        np.testing.assert_array_equal(np.array(compiled), np.array(wide))


HUGE = (2**32 + 1,)


@pytest.mark.parametrize(
    "f",
    [smelt.argmax, smelt.argmin, smelt.argsort, smelt.nanargmax, smelt.nanargmin, lambda x: smelt.argpartition(x, 1),
     lambda x: smelt.argmax(x[None], axis=1), lambda x: smelt.searchsorted(x, 1)],
)  # fmt: skip
def test_positions_beyond_uint32_are_refused(f: Callable[[smelt.array], smelt.array]) -> None:
    with pytest.raises(ShapeError, match=r"positions .* do not fit uint32.*test_positions.py"):
        f(smelt.broadcast_to(smelt.array(1, smelt.uint8), HUGE))


def test_counts_beyond_int32() -> None:
    x = smelt.broadcast_to(smelt.array(1, smelt.uint8), (2, 2**31))
    assert smelt.count_nonzero(x, axis=0).dtype == smelt.int32
    assert smelt.count_nonzero(x, axis=1).dtype == smelt.count_nonzero(x).dtype == smelt.int64
    x = x == 1
    assert smelt.sum(x, axis=0).dtype == (x[:, 1:]).sum(axis=1).dtype == smelt.int32
    assert x.sum(axis=1).dtype == smelt.sum(x).dtype == smelt.int64
    assert smelt.sum(x, dtype=smelt.int32).dtype == smelt.int32


def test_places_in_a_vector_beyond_int32() -> None:
    x = smelt.broadcast_to(smelt.array(1, smelt.int8), (2**31 + 1,))
    assert smelt.searchsorted(x, smelt.array([0, 1, 2], smelt.int8)).tolist() == [0, 0, 2**31 + 1]
