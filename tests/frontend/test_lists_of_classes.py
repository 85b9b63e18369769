"""Lists and numbers of classes of the user: what they hold counts, and what fails or does not end is refused."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError

X = smelt.array([[1.0, 2, 3], [4, 5, 6]])


class Failing(list):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("it refuses")


class Endless(list):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield 1


class Long(list):
    """It says that it is longer than it is."""

    def __len__(self) -> int:
        return 10**12


class Pair(NamedTuple):
    first: int
    second: int


class Level(enum.IntEnum):
    LOW = 1


class Sevens(int):
    def __int__(self) -> int:
        return 7


class Halves(float):
    def __float__(self) -> float:
        return 0.5


#: What takes lists.
TAKES: dict[str, Callable[[Any], Any]] = {
    "array": smelt.array,
    "nested": lambda v: smelt.array([[1, 2], v]),
    "beside an array": lambda v: smelt.array([X[0, :2], v]),
    "stack": smelt.stack,
    "concatenate": smelt.concatenate,
    "vstack": smelt.vstack,
    "zeros": smelt.zeros,
    "reshape": lambda v: smelt.reshape(X, v),
    "sum": lambda v: smelt.sum(X[None], axis=v),
    "index": lambda v: X[v],
    "assign": lambda v: smelt.array(X).__setitem__(v, 0),
    "at": lambda v: X.at[v].add(1),
    "pad": lambda v: smelt.pad(X, v),
    "pads": lambda v: smelt.pad(X, [v, (0, 0)]),
    "transpose": lambda v: smelt.transpose(X[None], v),
    "split": lambda v: smelt.split(X, v, axis=1),
    "take": lambda v: smelt.take(X, v),
    "flip": lambda v: smelt.flip(X[None], v),
    "roll": lambda v: smelt.roll(X, (1, 1), v),
    "percentile": lambda v: smelt.percentile(X, v),
    "tile": lambda v: smelt.tile(X, v),
    "where": lambda v: smelt.where(v, X[:, :2], 0),
    "full": lambda v: smelt.full((2,), v),
    "einsum": lambda v: smelt.einsum("ij,j", X[:, :2], v),
    "partition": lambda v: smelt.partition(X, v),
    "uniform": lambda v: smelt.random.uniform(shape=v),
    "repeat": lambda v: smelt.repeat(X, v, axis=0),
}


@pytest.mark.parametrize("name", TAKES)
def test_lists_that_fail_or_do_not_end_are_refused(name: str) -> None:
    for hostile in (Failing([1, 2]), Endless([1, 2])):
        with pytest.raises(SmeltError, match=r"test_lists_of_classes\.py"):
            TAKES[name](hostile)


@pytest.mark.parametrize("name", TAKES)
def test_a_length_that_is_wrong_stops_nothing(name: str) -> None:
    try:
        found = TAKES[name](Long([1, 2]))
    except SmeltError as error:
        assert "test_lists_of_classes.py" in str(error)
    else:
        smelt.eval(found)


@pytest.mark.parametrize("name", ["array", "stack", "zeros", "index", "pad", "split", "take", "where", "full"])
def test_named_tuples_are_read_as_tuples(name: str) -> None:
    got, want = TAKES[name](Pair(1, 0)), TAKES[name]((1, 0))
    for one, other in zip(got if isinstance(got, list) else [got], want if isinstance(want, list) else [want]):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_numbers_of_other_classes_are_the_numbers_that_they_are() -> None:
    assert smelt.array(Sevens(3)).item() == 3
    assert smelt.array([1, Sevens(3)]).tolist() == [1, 3]
    assert smelt.array([Halves(3.0)]).tolist() == [3.0]
    assert smelt.array([Level.LOW, 2]).tolist() == [1, 2]
    assert (smelt.array([1, 2]) + Sevens(3)).tolist() == [4, 5]


def test_a_named_tuple_is_an_index_of_several_axes() -> None:
    x = smelt.array(X)
    assert x[Pair(1, 0)].item() == 4
    x[Pair(1, 0)] = 9
    assert x.tolist() == [[1, 2, 3], [9, 5, 6]]
    assert x.at[Pair(0, 2)].add(1).tolist() == [[1, 2, 4], [9, 5, 6]]
    assert smelt.compile(lambda x: x[Pair(1, 0)])(x).item() == 9
