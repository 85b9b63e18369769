"""Functions that remember the nodes they make: for which arguments, and that what they make is the same."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError, line_of
from smelt.ir.settings import override
from smelt.lazy import core, recipes
from smelt.lazy.core import memory_of, remembered

from .checks import same


def made(x: smelt.array) -> list[tuple]:
    """The ops below an array, in order, with what tells them apart."""
    order = core.topological([x._ref], stop=lambda n: False)
    return [(n.op.name, repr(n.attrs), str(n.avals), [order.index(m) for m, _ in n.inputs]) for n in order]


def kept(function: Any) -> int:
    """How many recipes a function has outside of traces."""
    memory = memory_of(function)
    assert memory is not None
    return len(memory.outside)


X = smelt.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
K = smelt.array([1, 0, 2])

CALLS = {
    "a number": lambda x: x + 1.5,
    "another number": lambda x: x + -2.5,
    "an integer": lambda x: x * 3,
    "a number first": lambda x: 1.0 - x,
    "both": lambda x: x + x,
    "a reduction": lambda x: x.sum(-1, keepdims=True),
    "several results": lambda x: smelt.split(x, 3, axis=1)[1],
    "a list": lambda x: smelt.concatenate([x, x * 2.0], axis=0),
    "an index": lambda x: (x * 1.0)[:, ::-1],
    "an index array": lambda x: (x * 1.0)[:, K],
    "a choice": lambda x: smelt.where(x > 2.0, x, 0.0),
    "a composition": lambda x: smelt.softmax(x, axis=-1),
    "an argument by name": lambda x: smelt.fast.layer_norm(x, weight=None, bias=None, eps=1e-5),
    "itself": lambda x: x.astype(smelt.float32),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_second_call_makes_what_the_first_made(name: str) -> None:
    first = CALLS[name](X)
    second = CALLS[name](X)
    assert made(first) == made(second)
    assert first._ref[0] is not second._ref[0] or name == "itself"
    np.testing.assert_array_equal(np.array(first), np.array(second))


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, True), (1, 1.0), (False, 0)], ids=str)
def test_values_that_python_calls_equal_are_different(pair: tuple) -> None:
    @remembered
    def f(x: smelt.array, value: Any) -> smelt.array:
        return x + smelt.array(str(value).count("-") + 10 * len(type(value).__name__))

    found = [int(f(smelt.array(0), value)) for value in (*pair, *pair)]
    assert found[0] != found[1] and found[:2] == found[2:]


def test_a_number_is_an_operand_and_no_part_of_the_key() -> None:
    x = smelt.array([1.0, 2.0])
    smelt.logaddexp(x, 0.5)
    count = kept(smelt.logaddexp)
    for i in range(20):
        assert smelt.multiply(x, i / 7).tolist() == np.multiply(np.float32([1, 2]), np.float32(i / 7)).tolist()
        assert (x * i).tolist() == [i, 2 * i]
        assert smelt.logaddexp(x, i / 7).shape == smelt.logaddexp(x, i).shape == (2,)
    assert kept(smelt.logaddexp) <= count + 1


def test_integers_that_a_dtype_cannot_hold_are_refused_each_time() -> None:
    x = smelt.array([1, 2], dtype=smelt.uint8)
    assert (x + 3).tolist() == [4, 5]
    for _ in range(2):
        with pytest.raises(ValueError, match=r"300 is out of bounds for uint8.*test_remembered"):
            x + 300
    assert smelt.add(2**40, 1).dtype is smelt.int64 and smelt.add(2, 1).dtype is smelt.int32
    assert smelt.where(smelt.array(True), 2**40, 1).dtype is smelt.int64
    assert smelt.where(smelt.array(True), 2, 1).dtype is smelt.int32


def test_numbers_are_constants_inside_of_a_trace_and_arguments_outside() -> None:
    f = smelt.compile(lambda x: x * 2.0 + 1.0)
    assert f(X).tolist() == (X * 2.0 + 1.0).tolist()
    assert "dense<2.0" in f.trace(X).as_text() or "2.0" in f.trace(X).as_text()


def test_what_looks_at_values_is_called_each_time() -> None:
    y = X * 1.0
    assert y[smelt.array([True, False])].shape == (1, 3)
    assert y[smelt.array([True, True])].shape == (2, 3)
    assert y[smelt.array([False, False])].shape == (0, 3)


def test_errors_are_raised_again_with_the_users_line() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"smelt\.matmul.*test_remembered\.py:\d+"):
            X @ X


def test_nodes_know_the_line_of_each_call() -> None:
    first = smelt.softmax(X); second = smelt.softmax(X)  # fmt: skip # noqa: E702
    third = smelt.softmax(X)
    lines = [line_of(*y._ref[0].where) for y in (first, second, third)]
    assert lines[0] == lines[1] == lines[2] - 1


def test_checked_indices_are_checked_after_others_were_not() -> None:
    y, i = smelt.arange(4.0) * 1.0, smelt.array([7])
    assert y[i + 0].tolist() == [3.0]
    with override(check=True), pytest.raises(smelt.SmeltError):
        (y * 1.0)[i + 0].tolist()


def test_a_function_keeps_a_bounded_number_of_recipes() -> None:
    @remembered
    def f(x: smelt.array, i: int) -> smelt.array:
        return x + smelt.array(i)

    for i in range(recipes.MOST_RECIPES + 10):
        f(X, i)
    assert 0 < kept(f) <= recipes.MOST_RECIPES


def test_arguments_that_are_no_part_of_a_key_are_passed_on() -> None:
    index = np.array([1, 0])
    y = X * 1.0
    assert y[index].tolist() == y[[1, 0]].tolist() == [[4, 5, 6], [1, 2, 3]]
    assert smelt.take(X, index, axis=0).tolist() == [[4, 5, 6], [1, 2, 3]]
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(smelt.SmeltError):
        y[deep]


def test_threads_follow_recipes_of_one_function() -> None:
    found: list[Any] = []

    def work() -> None:
        y = X
        for i in range(200):
            y = smelt.maximum(y * 0.5 + i, 0.0)
        found.append(y.tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4 and all(x == found[0] for x in found)


def test_a_long_chain_dies_without_recursion() -> None:
    x = smelt.array(1.0)
    for _ in range(100_000):
        x = smelt.negative(x * 0.5)
    del x


def test_an_index_that_is_a_number_is_no_operand() -> None:
    for i, value in ((0, 5), (1, 5.0), (2, 7), (-1, 7)):
        x = smelt.zeros(4) * 1.0
        x[i] = value
        expected = np.zeros(4, np.float32)
        expected[i] = value
        assert x.tolist() == expected.tolist()
        assert smelt.zeros(4).at[i].add(value).tolist() == expected.tolist()


@pytest.mark.parametrize("bounds", ["{}:", ":{}", "::{}", ":, :{}", "0, {}:", "..., :{}", ":{}, None", "[0, 1], :{}"])
def test_bounds_of_slices_that_are_arrays_are_asked_for_their_values(bounds: str) -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for stop in (smelt.array(2), smelt.array([1, 1]).sum() + 1, smelt.array(1, smelt.uint8)):
        at = eval(f"np.index_exp[{bounds.format('stop')}]", {"np": np, "stop": stop})
        known = eval(f"np.index_exp[{bounds.format('stop')}]", {"np": np, "stop": int(stop)})
        taken = np.isin(x, x[known])
        for a in (smelt.array(x), smelt.array(x) + 0):
            same(a[at], x[known])
            same(a.at[at].add(1.0), x + taken)
            same(smelt.grad(lambda b, at=at: b[at].sum())(a), taken.astype(np.float32))
            a[at] = 7.0
            same(a, np.where(taken, np.float32(7), x))
    with pytest.raises(SmeltError, match=r"test_remembered"):
        smelt.compile(lambda a, n: a[:n])(smelt.array(x), smelt.array(1))
