"""Calls of compiled functions that are like the last one take a shorter way: to the same results."""

from __future__ import annotations

from typing import Any

import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy.arrays import array
from smelt.transforms.compile import CompiledFunction

X, Y = smelt.array([1.0, 2.0]), smelt.array([3.0, 5.0])


def taken(f: CompiledFunction, *args: Any, **kwargs: Any) -> bool:
    """Whether a call would be taken for a repeated one."""
    repeated = f._repeated
    return repeated is not None and repeated.buffers(args, kwargs) is not None


def test_the_same_types_are_repeated_and_others_are_not() -> None:
    f = smelt.compile(lambda x, y: x - y)
    assert f(X, Y).tolist() == [-2, -3]
    assert taken(f, Y, X) and f(Y, X).tolist() == [2, 3]
    assert not taken(f, X, smelt.array([1, 2])) and f(X, smelt.array([1, 2])).tolist() == [0, 0]
    assert not taken(f, X, smelt.array([1.0])) and f(X, smelt.array([1.0])).tolist() == [0, 1]
    assert not taken(f, X) and not taken(f, X, Y, Y)
    with pytest.raises(TypeError):
        f(X)
    assert f(X, Y).tolist() == [-2, -3]


def test_arguments_by_name_in_any_order() -> None:
    f = smelt.compile(lambda x, *, b, a: x * a - b)
    assert f(X, b=Y, a=X).tolist() == f(X, a=X, b=Y).tolist() == [-2, -1]
    assert taken(f, X, a=X, b=Y) and taken(f, X, b=Y, a=X)
    assert f(X, a=Y, b=X).tolist() == f(X, b=X, a=Y).tolist() == [2, 8]
    g = smelt.compile(lambda x, y: x - y)
    assert g(X, y=Y).tolist() == g(X, Y).tolist() == g(y=Y, x=X).tolist() == [-2, -3]


@pytest.mark.parametrize(
    "values", [(1, True, 1, 2), (0, False, None, 0), ("a", "b", "a"), (1, 1.0, 1), (0.0, -0.0)], ids=str
)
def test_static_arguments_are_told_apart(values: tuple) -> None:
    f = smelt.compile(lambda x, value: (x, repr(value)))
    for value in (*values, *values):
        found, text = f(X, value)
        assert text == repr(value) and found.tolist() == [1, 2]


def test_lazy_arguments_are_evaluated() -> None:
    f = smelt.compile(lambda x: x + 1.0)
    f(X)
    lazy = X * 3.0
    assert not taken(f, lazy)
    assert f(lazy).tolist() == [4, 7] and f(lazy).tolist() == [4, 7]


def test_results_of_all_kinds() -> None:
    c = smelt.array([7.0])
    for function, expected in {
        (lambda x: x + c): [8, 9],
        (lambda x: (x, x + 1)): ([1, 2], [2, 3]),
        (lambda x: (x,)): ([1, 2],),
        (lambda x: [x, 3]): [[1, 2], 3],
        (lambda x: (x, None)): ([1, 2], None),
        (lambda x: ((x,), x)): (([1, 2],), [1, 2]),
        (lambda x: {"b": x, "a": "text"}): {"a": "text", "b": [1, 2]},
        (lambda x: ()): (),
        (lambda x: 5): 5,
    }.items():
        f = smelt.compile(function)
        for _ in range(3):
            found = f(X)
            listed = smelt.utils.tree_map(lambda v: v.tolist() if isinstance(v, array) else v, found)
            assert listed == expected and type(found) is (
                array if isinstance(expected, list) and expected[0] == 8 else type(expected)
            )


@pytest.mark.host("on others an index is not checked")
def test_devices_checks_and_traces_are_minded() -> None:
    f = smelt.compile(lambda x, i: x[i])
    i = smelt.array([5])
    assert f(X, i).tolist() == f(X, i).tolist() == [2]
    with smelt.stream(smelt.reference):
        assert f(X, i).tolist() == [2]
    with override(check=True), pytest.raises(smelt.SmeltError):
        f(X, i).tolist()
    assert smelt.grad(lambda x: f(x, i).sum())(X).tolist() == [0, 1]
    assert smelt.vmap(f, in_axes=(0, None))(smelt.stack([X, Y]), i).tolist() == [[2], [5]]
    with override(disable_compile=True):
        assert f(X, i).tolist() == [2]


def test_each_result_is_its_own() -> None:
    f = smelt.compile(lambda x: x * 2.0)
    results = [f(X) for _ in range(5)]
    results[1] += 1.0
    assert [r.tolist() for r in results] == [[2, 4], [3, 5], [2, 4], [2, 4], [2, 4]]
