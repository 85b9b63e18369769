"""What becomes an array: numbers in sequences and what follows a protocol of arrays. All else is an error that names
the function that was called, and the type; nothing is read that an object only seems to have."""

from __future__ import annotations

import array
import collections
import enum
import io
import itertools
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock, Mock, NonCallableMagicMock

import numpy as np
import pytest

import smelt
from smelt.ir.errors import DTypeError, OutOfMemoryError, ShapeError, SmeltError

from .test_hostile import Endless


class Level(enum.IntEnum):
    LOW = 3


class Count(int):
    pass


class Row:
    """A sequence that is registered nowhere."""

    def __init__(self, *entries: Any, length: int | None = None):
        self.entries, self.length = entries, len(entries) if length is None else length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        return self.entries[i]


class Capsule:
    """What has DLPack and nothing else."""

    def __dlpack__(self, **more: Any) -> Any:
        return np.arange(2.0).__dlpack__(**more)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
REFUSED: dict[str, Callable[[], Any]] = {
    "MagicMock": MagicMock, "Mock": Mock, "NonCallableMagicMock": NonCallableMagicMock, "mapping": collections.UserDict,
    "MagicMock of a list": lambda: MagicMock(spec=list), "MagicMock of an array": lambda: MagicMock(spec=np.ndarray),
    "MagicMock of smelt's array": lambda: MagicMock(spec=smelt.array),
    "MagicMock of length 2": lambda: MagicMock(__len__=lambda self: 2, __iter__=lambda self: iter([Mock(), Mock()])),
    "no entries": Row, "fewer entries than its length": lambda: Row(1.0, length=2),
    "more entries than its length": lambda: Row(1.0, 2.0, length=1), "Endless": Endless, "texts": lambda: Row("a"),
    "masked": lambda: MASKED, "UserString": lambda: collections.UserString("1"), "counter": collections.Counter,
    "2**64": lambda: 2**64, "-1 and 2**63": lambda: [-1, 2**63], "range to 2**64": lambda: range(2**64, 2**64 + 2),
    "range over zero to 2**63": lambda: range(-1, 2**63 + 2, 2**63 + 1),
    "set": set, "generator": lambda: (i for i in ()),
}  # fmt: skip
TAKES: dict[str, Callable[[Any], Any]] = {
    "array": smelt.array, "asarray": smelt.asarray, "sin": smelt.sin, "where": lambda x: smelt.where(True, x, x),
    "full": lambda x: smelt.full((2,), x), "add": lambda x: smelt.add(x, smelt.zeros(2)),
    "stack": lambda x: smelt.stack([x]),
    "linalg.norm": smelt.linalg.norm, "fft.fft": smelt.fft.fft, "save": lambda x: smelt.save(io.BytesIO(), x),
    "savez": lambda x: smelt.savez(io.BytesIO(), x),
    "savez_compressed": lambda x: smelt.savez_compressed(io.BytesIO(), a=x),
    "save_safetensors": lambda x: smelt.save_safetensors(io.BytesIO(), {"w": x}),
    "save_gguf": lambda x: smelt.save_gguf(io.BytesIO(), {"w": x}),
    "quantile": lambda x: smelt.quantile([1.0, 2.0], [x]),
}  # fmt: skip


@pytest.mark.parametrize("name, what", [c for c in itertools.product(TAKES, REFUSED) if c != ("add", "2**64")])
def test_what_is_refused(name: str, what: str) -> None:
    for value in (REFUSED[what](), [REFUSED[what]()], [[1], (REFUSED[what](),)]):
        with pytest.raises(SmeltError) as info:
            TAKES[name](value)
        assert isinstance(info.value, (TypeError, ValueError))
        if not what.startswith(("2**", "-1", "range")):
            assert f"smelt.{name}: " in str(info.value) or "smelt.save_gguf" in str(info.value)


def test_the_type_is_named() -> None:
    for value, text in (
        (MagicMock(), "of type MagicMock, which is no sequence"),
        (Row(1.0, length=2), "of type Row: its length is 2, and it has other entries"),
        ([1.0, None], "with NoneType in it"),
        (10**30, "fit neither int64 nor uint64"),
    ):
        with pytest.raises(DTypeError, match=text):
            smelt.array(value)


@pytest.mark.parametrize(
    "value, wanted",
    [
        (collections.deque([1, 2]), np.array([1, 2], np.int32)),
        (collections.UserList([1.5, 2]), np.array([1.5, 2], np.float32)),
        (collections.deque(), np.array([], np.float32)),
        (Row(1, 2), np.array([1, 2], np.int32)),
        ([Row(1, 2), range(2)], np.array([[1, 2], [0, 1]], np.int32)),
        (array.array("h", [1, 2]), np.array([1, 2], np.int16)),
        ([Capsule(), [5, 6]], np.array([[0, 1], [5, 6]], np.float32)),
        (Level.LOW, np.array(3, np.int32)),
        ([Level.LOW, Count(2), True], np.array([3, 2, 1], np.int32)),
        ([np.float64(1), 2], np.array([1, 2], np.float32)),
        ([10**30, 0.5], np.array([1e30, 0.5], np.float32)),
        ([-(2**63), 2**63 - 1], np.array([-(2**63), 2**63 - 1])),
        ([0, 2**64 - 1], np.array([0, 2**64 - 1], np.uint64)),
        (np.ma.array([1, 2]), np.array([1, 2])),
    ],
)
def test_what_is_taken(value: Any, wanted: np.ndarray) -> None:
    found = smelt.array(value)
    assert found.dtype.numpy == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(np.array(found), wanted)
    whole = smelt.uint64 if wanted.dtype == np.uint64 else smelt.int64
    for dtype in (smelt.float64, whole) if wanted.dtype.kind in "iu" else (smelt.float64,):
        expected = np.array(np.asarray(wanted, object), dtype.numpy)
        np.testing.assert_allclose(np.array(smelt.array(value, dtype)), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "value",
    [range(0), range(5), range(7, -8, -3), range(2**31 - 2, 2**31 + 2), range(2**63 - 1, 2**63 + 2), range(100_000),
     range(-(2**63), 2**63, 2**62), range(2**64 - 1, 2**63, -(2**61))],
)  # fmt: skip
def test_ranges(value: range) -> None:
    found = smelt.array(value)
    assert found.tolist() == list(value) and found.dtype == smelt.array(list(value)).dtype
    assert smelt.array(value, smelt.float32).tolist() == smelt.array(list(value), smelt.float32).tolist()


def test_a_range_is_as_large_as_it_says() -> None:
    for value in (range(2**50), range(-(2**63), 2**63)):
        with pytest.raises((OutOfMemoryError, ShapeError)):
            smelt.array(value)


def test_entries_without_end() -> None:
    for call in (lambda v: smelt.zeros(v), lambda v: smelt.grad(smelt.sum, argnums=v)):
        for endless in (itertools.count(), Endless(), itertools.repeat(1)):
            with pytest.raises(SmeltError):
                call(endless)
