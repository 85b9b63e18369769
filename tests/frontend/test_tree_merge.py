"""`smelt.utils.tree_merge`."""

from __future__ import annotations

import pytest

import smelt
from smelt.utils import tree_merge


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
