"""Trees that are taken apart without optree: all that is known of them is what optree says, on generated trees."""

from __future__ import annotations

import collections
import gc
import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import smelt
from smelt.lazy import plain_trees as rules
from smelt.lazy import tree as trees
from smelt.lazy import tree_calls, tree_nodes
from smelt.lazy.plain_trees import NAMESPACE, STATES, WALKS, PlainStructure

_leaves = st.sampled_from([1, 2.5, None, "text", True, np.float32(1.5), smelt.array(1.0), object])
_keys = [st.text("ab_", max_size=2), st.integers(-3, 3)]


def _below(child: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(child, max_size=4)
    dicts = [st.lists(st.tuples(keys, child), max_size=4).map(dict) for keys in _keys]
    return st.one_of(lists, lists.map(tuple), *dicts)


plain_trees = st.recursive(_leaves, _below, max_leaves=12)


def by_optree(tree: Any, space: str) -> tuple[list[Any], Any]:
    found: tuple[list[Any], Any] = tree_calls.tree_flatten(tree, none_is_leaf=True, namespace=space)
    return found


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def ordered(tree: Any) -> Any:
    """With what a comparison of dicts does not see: their order, and which of them are which objects."""
    if isinstance(tree, dict):
        return [(k, ordered(v)) for k, v in tree.items()]
    return (type(tree), [ordered(v) for v in tree]) if isinstance(tree, (list, tuple)) else id(tree)


@given(plain_trees, st.sampled_from([NAMESPACE, STATES, WALKS]))
def test_leaves_and_what_is_made_of_others_are_those_of_optree(tree: Any, space: str) -> None:
    leaves, structure = trees.flatten(tree, space=space) if space != WALKS else tree_nodes.walk(tree)
    expected, spec = by_optree(tree, space)
    assert isinstance(structure, PlainStructure) and same(leaves, expected)
    assert structure.num_leaves == spec.num_leaves and structure.is_leaf() == spec.is_leaf()
    others = [object() for _ in leaves]
    assert ordered(trees.unflatten(structure, others)) == ordered(tree_calls.tree_unflatten(spec, others))
    assert structure.paths() == tree_calls.paths(spec)
    assert trees.is_tuple_of_leaves(structure) == trees.is_tuple_of_leaves(spec)
    assert set(trees.keys_of(structure)) >= set(trees.keys_of(spec)), "optree names those above leaves alone"
    if space == NAMESPACE:
        assert trees.paths(tree, "x") == [a.codify("x") for a in tree_calls.accessors(spec)]


@given(plain_trees, plain_trees, st.sampled_from([NAMESPACE, STATES]), st.sampled_from([NAMESPACE, STATES]))
def test_structures_are_equal_where_optrees_are(a: Any, b: Any, first: str, second: str) -> None:
    mine, theirs = trees.flatten(a, space=first)[1], trees.flatten(b, space=second)[1]
    assert (mine == theirs) == (by_optree(a, first)[1] == by_optree(b, second)[1])
    assert (mine == by_optree(b, second)[1]) == (mine == theirs) == (by_optree(b, second)[1] == mine)
    assert mine != theirs or hash(mine) == hash(theirs)


@given(plain_trees, plain_trees)
def test_trees_are_mapped_alike_and_refused_alike(a: Any, b: Any) -> None:
    """A subclass of list around them lets optree do it."""

    class Other(list):
        pass

    def mapped(*args: Any) -> str:
        try:
            return repr(trees.tree_map(lambda *xs: str(list(map(id, xs))), *args))
        except smelt.errors.TreeError as error:
            return str(error).partition("; at ")[0]

    assert mapped([a], [b]) == mapped(Other([a]), Other([b]))


@pytest.mark.parametrize(
    "tree",
    [
        {1.0: 2}, {True: 1}, {(1,): 2}, {"a": 1, 2: 3}, collections.OrderedDict(a=1),
        collections.defaultdict(list, a=1), collections.namedtuple("P", "x")(1), collections.deque([1]),
        [smelt.nn.Linear(2, 2)],
    ],
)  # fmt: skip
def test_everything_else_is_left_to_optree(tree: Any) -> None:
    for found in (tree, [tree], {"a": (1, tree)}):
        leaves, structure = trees.flatten(found)
        expected, spec = by_optree(found, NAMESPACE)
        assert not isinstance(structure, PlainStructure) and structure == spec and same(leaves, expected)


def test_a_class_that_is_registered_later_is_a_node_from_then_on() -> None:
    class Registered:
        __slots__ = ()

        def tree_flatten(self) -> tuple[tuple[int, ...], None]:
            return (1, 2), None

        @classmethod
        def tree_unflatten(cls, static: None, children: Any) -> Registered:
            return cls()

    x = Registered()
    assert trees.flatten([x])[0] == [x]
    smelt.utils.register_class(Registered)
    assert trees.flatten([x])[0] == [1, 2]


def test_nothing_is_left_to_the_collector() -> None:
    trees_ = [{"b": 1, "a": {1: 2}}, [{"a": (1, {})}], {}, {"a": smelt.array(1.0)}]

    def structures() -> int:
        return sum(isinstance(x, (rules._Keys, PlainStructure)) for x in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = structures()
        for tree in trees_:
            for space in (NAMESPACE, STATES):
                leaves, structure = trees.flatten(tree, space=space)
                assert trees.unflatten(structure, leaves) == tree
                del leaves, structure
        assert structures() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("depth", [10, 99, 100, 101, 300, 600, 900, 980])
@pytest.mark.parametrize("kind", [list, dict])
def test_deep_trees_are_whole(kind: type, depth: int) -> None:
    leaf, other = smelt.array(1.0), smelt.array(2.0)
    tree: Any = leaf
    for _ in range(depth):
        tree = [tree, other] if kind is list else {"k": tree, "z": other}
    (leaves, structure), again = trees.flatten(tree), trees.flatten(tree)[1]
    assert len(leaves) == depth + 1 and structure == again and hash(structure) == hash(again)
    assert same(trees.flatten(trees.unflatten(structure, leaves))[0], leaves)
    assert len(set(trees.paths(tree, "x"))) == depth + 1
    assert same(trees.flatten(smelt.utils.tree_map(lambda x: x, tree))[0], leaves)
    found = smelt.compile(lambda t: smelt.add(*trees.flatten(t)[0][:2]))(tree)
    assert found.item() == 3


def test_a_tree_that_another_thread_changes_is_one_that_it_was() -> None:
    class Leaf:
        __slots__ = ()

    inner: list[Any] = [Leaf()]
    entries: dict[str, Any] = {"b": Leaf()}
    tree = [inner, entries, 7]

    def is_plain(kind: type) -> bool:  # called in the midst of it, as another thread may run
        inner.append(1)
        entries["a"] = 2
        return True

    found = rules.flatten(tree, False, {int}, is_plain)
    assert found is not None
    leaves, structure = found
    first, second, last = structure.unflatten(leaves)
    assert last == 7 and first == inner[: len(first)] and all(entries[key] is x for key, x in second.items())


def test_programs_with_plain_trees_do_not_load_optree() -> None:
    code = """
import sys
import smelt
from smelt.utils import tree_map
parameters = {"w": smelt.ones((3, 2)), "layers": [smelt.zeros((2,)), (smelt.ones((2,)), None)]}
step = smelt.value_and_grad(lambda p, x: (x @ p["w"] + p["layers"][0]).sum())
value, gradients = step({"w": parameters["w"], "layers": [parameters["layers"][0]]}, smelt.ones((4, 3)))
smelt.eval(tree_map(lambda x: x * 2, gradients), parameters)
smelt.eval(smelt.vmap(lambda p, x: p["a"] * x)({"a": smelt.ones((3,))}, smelt.arange(3)))
smelt.eval(smelt.compile(lambda p, x: {"y": p["a"] * x})({"a": smelt.ones((3,))}, smelt.arange(3)))
print("optree" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "False\n"
