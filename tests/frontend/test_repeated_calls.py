"""Calls of compiled functions that are like the last one take a shorter way: to the same results."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy.arrays import array
from smelt.transforms.compiled_function import CompiledFunction

X, Y = smelt.array([1.0, 2.0]), smelt.array([3.0, 5.0])


class Pair(NamedTuple):
    a: Any
    b: Any


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


TREES = [
    {"a": X, "b": [Y, (X,)]},
    {"b": [Y, (X,)], "a": X},  # a function sees the order of its dicts
    {"a": X, "b": (Y, [X])},
    {"a": X, "b": [Y, (X,)], "c": None},
    {"a": X, "b": [Y, (X, X)]},
    {"a": X, "b": [Y]},
    {"a": X, "c": [Y, (X,)]},
    {"a": X, 1: [Y, (X,)]},
    {"a": X, True: [Y, (X,)]},
    {"a": 1.0, "b": [Y, (X,)]},
    {"a": 1, "b": [Y, (X,)]},
    {"a": {}, "b": [], "c": ()},
    OrderedDict(a=X, b=[Y, (X,)]),
    Pair(X, Y),
    [X, Y],
    (X, Y),
    X,
]


@pytest.mark.parametrize("first", range(len(TREES)))
def test_trees_are_told_apart(first: int) -> None:
    """Whatever tree was met before."""
    f = smelt.compile(lambda tree: (smelt.utils.tree_map(lambda x: x, tree), repr(smelt.utils.tree_map(str, tree))))
    f(TREES[first])
    assert taken(f, TREES[first]) == (first not in (7, 8))  # keys that may be equal to others are looked at
    for tree in TREES:
        f(TREES[first])
        if tree is not TREES[first]:
            assert not taken(f, tree)
        for _ in range(2):
            found, _ = f(tree)
            assert type(found) is type(tree) and str(smelt.utils.tree_map(str, found)) == str(
                smelt.utils.tree_map(str, tree)
            )


def test_large_trees_are_repeated() -> None:
    """With other values, and not where one of them is of another type, not evaluated, or of a changed list."""
    f = smelt.compile(lambda tree, scale: {name: sum(xs) * scale for name, xs in tree.items()})

    def tree_of(value: float) -> dict[str, list]:
        return {f"w{i}": [smelt.array([value + i]) for _ in range(3)] for i in range(100)}

    assert f(tree_of(0.0), 2.0)["w7"].item() == 42
    other = tree_of(1.0)
    assert taken(f, other, 2.0) and not taken(f, other, 2) and f(other, 2.0)["w7"].item() == 48
    other["w7"][1] = smelt.array([1])
    assert not taken(f, other, 2.0) and f(other, 2.0)["w7"].item() == 34
    f(tree_of(0.0), 2.0)
    other["w7"][1] = X.sum(keepdims=True)
    assert not taken(f, other, 2.0) and f(other, 2.0)["w7"].item() == 38
    other["w7"].append(X)
    assert not taken(f, other, 2.0)


def test_written_views_are_seen() -> None:
    f = smelt.compile(lambda tree: tree["x"] * 2.0)
    x = smelt.array([1.0, 2.0])
    f({"x": x})
    view = np.asarray(x)
    assert taken(f, {"x": x}) and f({"x": x}).tolist() == [2, 4]
    view[0] = 5.0
    assert f({"x": x}).tolist() == [10, 4]


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
    f = smelt.compile(lambda x, i: x[i + 0])  # an index whose value is there is an error of the call
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
