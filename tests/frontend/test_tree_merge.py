"""`smelt.utils.tree_merge`, and how the functions of trees are called."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest

import smelt
from smelt.utils import tree_flatten, tree_map, tree_map_with_path, tree_merge, tree_reduce, tree_unflatten


class Pair(NamedTuple):
    a: Any
    b: Any


class Vector(tuple):
    pass


class Row(list):
    pass


def test_places_are_filled_from_both() -> None:
    assert tree_merge({"a": {}, "b": 1, "c": [None, 2]}, {"a": 3, "c": [4], "d": {}}) == {
        "a": 3, "b": 1, "c": [4, 2], "d": {},
    }  # fmt: skip
    assert tree_merge((1, None), (None, 2, 3)) == (1, 2, 3)
    assert tree_merge({}, None) == {} and tree_merge(None, []) == [] and tree_merge(None, None) is None
    x = smelt.zeros(2)
    assert tree_merge({"a": x}, {"b": x})["b"] is x


def test_leaves_in_the_same_place() -> None:
    assert tree_merge({"a": [1], "b": 2}, {"a": [3], "b": 4}, lambda x, y: x * 10 + y) == {"a": [13], "b": 24}
    with pytest.raises(ValueError, match=r"both trees have something at a\.0 \(an int, an int\); give merge_fn") as e:
        tree_merge({"a": [1]}, {"a": [2]})
    assert isinstance(e.value, smelt.SmeltError)
    with pytest.raises(smelt.SmeltError, match=r"something at the top \(a list, an int\)"):
        tree_merge([1], 2)


def test_names_of_arguments_are_those_of_mlx() -> None:
    tree = {"a": [1, 2]}
    assert tree_map(fn=lambda x: x + 1, tree=tree) == {"a": [2, 3]}
    assert tree_map_with_path(fn=lambda p, x: p, tree=tree, path=None) == {"a": ["a.0", "a.1"]}
    assert tree_map_with_path(fn=lambda p, x: p, tree=tree, path="t") == {"a": ["t.a.0", "t.a.1"]}
    assert tree_reduce(fn=lambda x, y: x + y, tree=tree, initializer=10) == 13


@pytest.mark.parametrize("kind", [list, tuple, Row, Vector, Pair._make])
def test_sequences_keep_their_class(kind: Any) -> None:
    tree = kind([1, None])
    found = tree_merge(tree, kind([None, 2]))
    assert type(found) is type(tree) and list(found) == [1, 2]


def test_empty_containers_of_two_kinds_do_not_merge() -> None:
    for a, b in itertools.product([{}, [], ()], repeat=2):
        if type(a) is type(b):
            assert tree_merge({"x": a}, {"x": b}) == {"x": a}
        else:
            with pytest.raises(ValueError, match=r"at x\.0 there are a \w+ and a \w+"):
                tree_merge({"x": [a]}, {"x": [b]})


@pytest.mark.parametrize("other", [{"a": 10, "b": [20, 30], "c": 4}, {"b": (20, 30, 40), "a": 10}])
def test_other_trees_may_have_more(other: Any) -> None:
    assert tree_map(lambda x, y: x + y, {"a": 1, "b": [2, 3]}, other) == {"a": 11, "b": [22, 33]}
    paths = tree_map_with_path(lambda path, x, y: (path, y), {"b": [2, 3]}, other)
    assert paths == {"b": [("b.0", 20), ("b.1", 30)]}


def test_the_state_of_an_optimizer_beside_parameters() -> None:
    parameters = {"w": [smelt.ones(2), smelt.ones(3)]}
    optimizer = smelt.optimizers.Adam(0.1)
    optimizer.init(parameters)
    shapes = tree_map(lambda x, state: state["m"].shape == x.shape, parameters, optimizer.state)
    assert shapes == {"w": [True, True]}


@pytest.mark.parametrize("tree, other, message", [
    ({"a": 1, "b": 2}, {"a": 1, "c": 2}, r"the first tree has the keys \['a', 'b'\], but there are \['a', 'c'\]"),
    ([{"a": [1, 2]}], [{"a": [1]}], r"the first tree\[0\]\['a'\] has 2 entries, but there are 1"),
    ({"a": [1]}, {"a": 1}, r"the first tree\['a'\] is a list, but there is an int"),
    ({"a": [1]}, {"a": {0: 1}}, r"the first tree\['a'\] is a list, but there is a dict"),
])  # fmt: skip
def test_other_trees_that_lack_something(tree: Any, other: Any, message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message):
        tree_map(lambda x, y: x, tree, other)


def test_keys_that_are_no_indices_make_dicts() -> None:
    for keys in (["01", "1", "2"], ["00"], ["-1", "0"], ["1_0"], ["\u00b2"], ["\u0661", "0"], ["0", "a"]):
        tree = {key: i for i, key in enumerate(keys)}
        assert tree_unflatten(tree_flatten(tree)) == tree
    assert tree_unflatten([("2", "c"), ("0", "a")]) == ["a", {}, "c"]
    assert tree_unflatten([(str(i), i) for i in range(12)]) == list(range(12))


def test_arrays_in_attributes_are_seen_by_transformations_alone() -> None:
    layer = smelt.nn.Linear(2, 2)
    object.__setattr__(layer, "hidden", smelt.array(3.0))
    assert [path for path, _ in tree_flatten(layer)] == ["weight", "bias"]
    assert tree_reduce(lambda n, x: n + x.size, layer, 0) == 6
    doubled = tree_map(lambda x: 2 * x, layer)
    assert doubled.hidden is layer.hidden and doubled.bias.tolist() == (2 * layer.bias).tolist()
    assert smelt.grad(lambda m: m.hidden * m.hidden)(layer).hidden.item() == 6.0
    f = smelt.compile(lambda m: m.hidden + 1)
    assert f(layer).item() == 4.0
    object.__setattr__(layer, "hidden", smelt.array(5.0))
    assert f(layer).item() == 6.0
