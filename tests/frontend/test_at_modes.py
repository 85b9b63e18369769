"""``x.at[index]`` with modes for what is out of range, against a model in NumPy that goes element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, IndexOutOfRangeError, ShapeError

HOST = np.arange(24, dtype=np.float32).reshape(4, 6)
FAR = [0, -1, 3, 4, -4, -5, 100, -100, 2]

INDICES: dict[str, Any] = {
    "list": FAR,
    "numpy": np.array(FAR),
    "int": 7,
    "negative": -9,
    "inside": 2,
    "second axis": (slice(None), FAR),
    "ellipsis": (..., FAR),
    "slice beside": (FAR, slice(1, 5, 2)),
    "both": ([0, 9, 1], [-7, 2, 5]),
    "int and list": (5, [0, 1]),
    "apart": (FAR, None, slice(2, None), None),
    "matrix": np.array(FAR).reshape(3, 3),
    "small": np.array([0, 200, -128 + 256], np.uint8),
    "wide": np.array([2**40, -(2**40), 1]),
    "unsigned": np.array([2**63 + 5, 0], np.uint64),
    "mask": (np.array([True, False, True, True]), [0, 8, -9]),
}


def model(index: Any, mode: str, shape: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """The index with entries clipped, and which elements of the result are there."""
    entries = list(index) if isinstance(index, tuple) else [index]
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    for at in dots:
        entries[at : at + 1] = [slice(None)] * (len(shape) - len(entries) + 1)
    inside: list[Any] = []
    axis = 0
    for i, e in enumerate(entries):
        if e is None:
            continue
        if isinstance(e, (int, list, np.ndarray)) and np.asarray(e).dtype != bool:
            d = shape[axis]
            wide = np.vectorize(int, otypes=[object])(np.asarray(e))
            wrapped = np.where(wide < 0, wide + d, wide)
            inside.append(np.asarray((wrapped >= 0) & (wrapped < d), bool))
            clipped = np.clip(wrapped, 0, d - 1)
            entries[i] = int(clipped) if isinstance(e, int) else np.asarray(clipped).astype(np.int64)
        axis += 1
    places = np.ones(shape, bool)[tuple(entries)]
    # Where an entry is out of range is seen by reading an array that has another value there.
    grid = tuple(entries)
    lead = np.broadcast_shapes(*[m.shape for m in inside]) if inside else ()
    all_inside = np.ones(lead, bool)
    for m in inside:
        all_inside = all_inside & m
    if not inside or all_inside.ndim == 0:
        return grid, places & all_inside
    numbers = np.arange(all_inside.size).reshape(lead)
    position = [slice(None) if isinstance(e, slice) or e is None else None for e in entries]
    first = next(i for i, p in enumerate(position) if p is None)
    before = sum(1 for p in position[:first] if p is not None)
    behind = places.ndim - before - numbers.ndim
    return grid, places & all_inside.reshape(*[1] * before, *lead, *[1] * behind)


def variants(index: Any) -> list[Any]:
    """The index as it is, and with arrays of smelt's in the place of lists and NumPy's arrays."""
    entries = index if isinstance(index, tuple) else (index,)
    made = tuple(
        smelt.array(e, smelt.int64 if np.asarray(e).dtype == np.int64 else None)
        if isinstance(e, (list, np.ndarray)) else e
        for e in entries
    )  # fmt: skip
    return [index, made if isinstance(index, tuple) else made[0]]


@pytest.mark.parametrize("name", INDICES)
def test_get(name: str) -> None:
    for index in variants(INDICES[name]):
        clipped, inside = model(INDICES[name], "clip", HOST.shape)
        x = smelt.array(HOST)
        for read in (lambda m, i=index, x=x, **o: x.at[i].get(mode=m, **o),
                     lambda m, i=index, x=x, **o: (x + 0).at[i].get(mode=m, **o)):  # fmt: skip
            np.testing.assert_array_equal(np.array(read("clip")), HOST[clipped])
            np.testing.assert_array_equal(np.array(read("fill")), np.where(inside, HOST[clipped], np.nan))
            np.testing.assert_array_equal(np.array(read(None, fill_value=-3)), np.where(inside, HOST[clipped], -3))
            np.testing.assert_array_equal(np.array(read("drop", fill_value=5)), np.where(inside, HOST[clipped], 5))


UPDATES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "set": lambda x, i, v: x.__setitem__(i, v),
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "divide": np.divide.at,
    "maximum": np.maximum.at,
    "minimum": np.minimum.at,
}


@pytest.mark.parametrize("name", [n for n in INDICES if n != "mask"])
@pytest.mark.parametrize("update", UPDATES)
def test_updates(name: str, update: str) -> None:
    value = 2.0
    clipped, inside = model(INDICES[name], "clip", HOST.shape)
    where = np.arange(24).reshape(4, 6)[clipped]
    for index in variants(INDICES[name]):
        for mode, places in (("drop", where[inside]), ("fill", where[inside]), ("clip", where.reshape(-1))):
            expected = HOST.copy()
            UPDATES[update](expected.reshape(-1), places, np.float32(value))
            found = getattr(smelt.array(HOST).at[index], update)(value, mode=mode)
            np.testing.assert_allclose(np.array(found), expected, rtol=1e-6, err_msg=f"{mode} {index}")


def test_fill_values_by_dtype() -> None:
    for dtype, value in ((smelt.int8, -128), (smelt.uint16, 65535), (smelt.bool_, True), (smelt.int32, -(2**31))):
        assert smelt.zeros(2, dtype).at[5].get(mode="fill").item() == value
    assert np.isnan(smelt.zeros(2, smelt.complex64).at[[5]].get(mode="fill").item())
    assert smelt.zeros((0, 2)).at[[0, 1]].get(mode="fill", fill_value=4).tolist() == [[4, 4], [4, 4]]
    assert smelt.zeros((0, 2)).at[[0, 1]].set(4, mode="drop").shape == (0, 2)


def test_modes_under_transformations() -> None:
    x, i = smelt.array([1.0, 2.0, 3.0]), smelt.array([0, 5, -1])
    f = lambda x, i: (x.at[i].get(fill_value=0) ** 2).sum()  # noqa: E731
    assert smelt.grad(f)(x, i).tolist() == [2, 0, 6] == smelt.compile(smelt.grad(f))(x, i).tolist()
    g = lambda x, i: x.at[i].add(1, mode="clip")  # noqa: E731
    assert smelt.vmap(g, in_axes=(None, 0))(x, smelt.array([0, 9])).tolist() == [[2, 2, 3], [1, 2, 4]]
    assert x.at[[0, 7]].apply(lambda v: v * 10, mode="drop").tolist() == [10, 2, 3]
    assert x.at[i].get(mode="promise_in_bounds").shape == (3,)


def test_wrong_uses() -> None:
    x = smelt.zeros((2, 3))
    with pytest.raises(AttributeValueError, match=r"mode.*drop.*test_at_modes\.py"):
        x.at[0].set(1, mode="wrap")
    with pytest.raises((AttributeValueError, ArgumentTypeError)):
        x.at[0].get(mode=3)
    with pytest.raises(IndexOutOfRangeError):
        x.at[0, 0, 0].get(mode="fill")
    with pytest.raises(IndexOutOfRangeError):
        x.at.get(mode="fill")
    with pytest.raises(IndexOutOfRangeError):
        x.at[5].set(1)
    with pytest.raises(ShapeError):
        x.at[[0, 5]].set(smelt.zeros(7), mode="drop")
