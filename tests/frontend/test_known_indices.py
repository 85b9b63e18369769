"""Indices out of range of arrays whose values are there: an error of the call, whichever function takes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.functions.known_indices import Refusal

X = smelt.array(np.arange(12, dtype=np.float32).reshape(3, 4))
Index = Callable[[smelt.array], Any]

#: Functions of an index of axis 0 of three elements.
READ: dict[str, Index] = {
    "x[i]": lambda i: X[i],
    "of what is not computed": lambda i: (X * 2.0)[i],
    "beside a slice": lambda i: X.T[:, i],
    "beside an ellipsis": lambda i: X.T[..., i],
    "beside a new axis": lambda i: X[None, i, 1:],
    "beside an int": lambda i: X[i, 0],
    "beside a list": lambda i: X.T[[0, 1], i[:2]],
    "behind a mask": lambda i: smelt.zeros((2, 2, 3))[smelt.array([[True, True], [False, False]]), i[:2]],
    "behind a mask of NumPy": lambda i: smelt.zeros((2, 2, 3))[np.array([[True, True], [False, False]]), i[:2]],
    "behind True": lambda i: X[True, i],
    "take": lambda i: smelt.take(X, i, axis=0),
    "take along another axis": lambda i: smelt.take(X.T, i, 1),
    "take of a list": lambda i: smelt.take([1.0, 2.0, 3.0], i),
    "take_along_axis": lambda i: smelt.take_along_axis(X, i[:, None], axis=0),
    "take_along_axis by names": lambda i: smelt.take_along_axis(X.T, indices=i[None]),
    "at.get": lambda i: X.at[i].get(),
    "gather_mm": lambda i: smelt.gather_mm(smelt.ones((3, 1, 2)), smelt.ones((3, 2, 1)), i, i),
    "gather_mm of the second": lambda i: smelt.gather_mm(smelt.ones((1, 2)), smelt.ones((3, 2, 1)), rhs_indices=i),
    "gather_qmm": lambda i: smelt.gather_qmm(
        smelt.ones((1, 1, 64)), *smelt.quantize(smelt.ones((3, 2, 64))), rhs_indices=i
    ),
    "gather_qqmm": lambda i: smelt.gather_qqmm(
        smelt.ones((1, 32)), smelt.ones((3, 2, 32)), rhs_indices=i, mode="mxfp8"
    ),
    "Embedding": lambda i: nn.Embedding(3, 2)(i),
    "QuantizedEmbedding": lambda i: nn.QuantizedEmbedding(3, 64)(i),
    "EmbeddingBag": lambda i: nn.EmbeddingBag(3, 2)(i[None]),
    "cross_entropy": lambda i: nn.losses.cross_entropy(smelt.zeros((i.size, 3)), i),
    "nll_loss": lambda i: nn.losses.nll_loss(smelt.zeros((i.size, 3)), i),
    "in a gradient": lambda i: smelt.grad(lambda x: x[i].sum())(X),
    "an argument of a loss": lambda i: smelt.value_and_grad(
        lambda x, labels: nn.losses.cross_entropy(x, labels, reduction="mean")
    )(smelt.zeros((i.size, 3)), i),
    "of a trace": lambda i: smelt.compile(lambda x: x[i])(X),
    "moved": lambda i: X[i.reshape(-1, 1)[:, 0][::-1]],
    "converted": lambda i: X[i.astype(smelt.int64)],
}


def put(i: smelt.array) -> smelt.array:
    y = smelt.array(X)
    y[i] = 5.0
    return y


def put_beside(i: smelt.array) -> smelt.array:
    y = smelt.zeros((2, 3))
    y[:, i] += 1.0
    return y


def put_in_large(i: smelt.array) -> smelt.array:
    y = smelt.zeros((3, 1 << 19))
    smelt.eval(y)
    y[i] = 5.0
    return y


WRITE: dict[str, Index] = {
    "x[i] = v": put,
    "x[:, i] += v": put_beside,
    "x[i] = v of a large array": put_in_large,
    "at.add": lambda i: X.at[i].add(1.0),
    "at.set": lambda i: X.T.at[..., i].set(1.0),
    "at.divide": lambda i: X.at[i].divide(2.0),
    "put_along_axis": lambda i: smelt.put_along_axis(X, i[:, None], smelt.array(1.0), axis=0),
    "put_along_axis by place": lambda i: smelt.put_along_axis(X, i[:, None], smelt.array(1.0), 0),
}
CALLS = READ | WRITE


def index(*values: int) -> smelt.array:
    found = smelt.array(values)
    smelt.eval(found)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_what_is_there_is_checked(name: str) -> None:
    for good in (index(0, 2, 1), index(-3, -1, 0)):
        smelt.eval(CALLS[name](good))
    for bad in (index(0, 3, 1), index(0, -4, 1), index(2**31 - 1, 0, 0)):
        for _ in range(2):  # a call that is remembered, too
            with pytest.raises(IndexError, match=str(min(bad.tolist(), key=lambda v: -abs(v)))):
                CALLS[name](bad)


def test_other_dtypes() -> None:
    for dtype in (smelt.int8, smelt.uint8, smelt.int16, smelt.uint16, smelt.uint32, smelt.int64, smelt.uint64):
        assert X[smelt.array([2, 0], dtype)].shape == (2, 4)
        with pytest.raises(IndexError, match="index 3 is out of range for axis 0 with 3 elements"):
            X[smelt.array([0, 3], dtype)]
    long = smelt.zeros(300)
    assert long[smelt.array([200, 255], smelt.uint8)].shape == (2,)
    with pytest.raises(IndexError):
        X[smelt.array([-1]).astype(smelt.uint8)]
    with pytest.raises(IndexError):
        smelt.unravel_index(index(6), (2, 3))
    with pytest.raises(IndexError):
        smelt.ravel_multi_index((index(1), index(-1)), (2, 3))


def test_the_message_names_the_line() -> None:
    with pytest.raises(IndexError, match=r"index 7 is out of range for axis 0 with 3 elements; f32\[3,4\]; at .*:\d+"):
        X[index(7)]


def test_what_is_left_out_is_not_looked_at() -> None:
    wide = index(9, 0, 2)
    np.testing.assert_array_equal(np.array(X[wide[1:]]), np.array(X)[[0, 2]])
    padded = smelt.array(np.full((4, 2048), -9, np.int32))
    padded[:, :2] = 1
    smelt.eval(padded)
    assert X[padded[:, :2]].shape == (4, 2, 4)


def test_nothing_is_computed_for_the_check() -> None:
    later = index(0, 7) + 0
    found = X[later]
    assert later._ref[0].values is None
    np.testing.assert_array_equal(np.array(found), np.array(X)[[0, 2]])
    step = smelt.compile(lambda x, i: x[i])
    np.testing.assert_array_equal(np.array(step(X, index(0, 7))), np.array(X)[[0, 2]])


def test_modes_say_what_becomes_of_them() -> None:
    i = index(0, 7, -9)
    np.testing.assert_array_equal(np.array(X.at[i].get(mode="clip")), np.array(X)[[0, 2, 0]])
    assert np.isnan(np.array(X.at[i].get(mode="fill"))[1:]).all()
    assert np.isnan(np.array(X.at[i].get(fill_value=float("nan")))[1:]).all()
    expected = np.array(X)
    expected[0] += 1
    np.testing.assert_array_equal(np.array(X.at[i].add(1.0, mode="drop")), expected)
    assert smelt.slice(X, index(9), (0,), (1, 4)).tolist() == [[8.0, 9.0, 10.0, 11.0]]



def test_where_warnings_are_errors_each_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refusal, "of_mlx", True)
    monkeypatch.setattr(Refusal, "warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="index 7 is out of range"):
                X[index(7)]


@pytest.mark.parametrize("kind", [list, np.array, smelt.array], ids=["list", "numpy", "smelt"])
@pytest.mark.parametrize("name", ["take", "take_along_axis", "put_along_axis", "gather_mm", "gather_qmm"])
def test_errors_name_the_function_that_was_called(name: str, kind: Callable[[list[int]], Any]) -> None:
    x, experts = smelt.ones((4,)), smelt.ones((2, 32, 32))
    packed = smelt.quantize(experts, 32, 4)
    calls: dict[str, Callable[[Any], smelt.array]] = {
        "take": lambda i: smelt.take(x, i),
        "take_along_axis": lambda i: smelt.take_along_axis(x, i, 0),
        "put_along_axis": lambda i: smelt.put_along_axis(x, i, 1.0, 0),
        "gather_mm": lambda i: smelt.gather_mm(experts, experts, rhs_indices=i),
        "gather_qmm": lambda i: smelt.gather_qmm(experts, *packed, None, i, group_size=32, bits=4),
    }
    for _ in range(3):  # what has been called before is recorded another way
        with pytest.raises(IndexError, match=rf"^smelt\.{name}: "):
            calls[name](kind([9]))


def test_errors_of_ends_and_values_name_the_function() -> None:
    ragged: Any = [[1, 2], [3]]
    for call in (smelt.geomspace, smelt.logspace):
        with pytest.raises(ValueError, match=rf"^smelt\.{call.__name__}: uneven"):
            call(ragged, 2.0)
    with pytest.raises(ValueError, match=r"^smelt\.put_along_axis: a value of shape"):
        smelt.put_along_axis(smelt.ones(4), smelt.array([0, 1]), smelt.ones(3), 0)
    with pytest.raises(IndexError, match=r"^smelt: index 9"):
        smelt.ones(4)[9]
