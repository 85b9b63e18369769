"""`smelt.utils.tree_merge`, and how the functions of trees are called."""

from __future__ import annotations

import pytest

import smelt
from smelt.utils import tree_map, tree_map_with_path, tree_merge, tree_reduce


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
