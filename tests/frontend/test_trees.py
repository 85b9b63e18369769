"""Every kind of container is a tree for every function that takes trees; what holds arrays and is none is an error."""

from __future__ import annotations

import collections
import dataclasses
import os
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import TreeError
from smelt.ir.settings import override
from smelt.lazy.tree import arrays_of

from .containers import CONTAINERS, Array, Entries, Linear, Ordered, add, arrays, make, names, plus, same, total, values


def traced_identity(tree: Any) -> Any:
    return plus(tree, 1.0)


def boxed(tree: Any) -> Any:
    return {"r": plus(tree, 1.0)}


def identity_rule() -> Any:
    made = smelt.custom_function(lambda tree: plus(tree, 1.0))
    made.vjp(lambda primals, cotangents, outputs: cotangents)
    return made


#: Functions from a tree to the tree with 1 added to each array, by every function that takes trees.
ENTRY_POINTS: dict[str, Callable[[Any], Any]] = {
    "tree_map": traced_identity,
    "compile": lambda tree: smelt.compile(traced_identity)(tree),
    "compile keyword": lambda tree: smelt.compile(lambda *, t: traced_identity(t))(t=tree),
    "compile in compile": lambda tree: smelt.compile(lambda t: smelt.compile(traced_identity)(t))(tree),
    "checkpoint": lambda tree: smelt.checkpoint(traced_identity)(tree),
    "custom_function": lambda tree: identity_rule()(tree),
    "custom_vjp": lambda tree: smelt.custom_vjp(traced_identity)(tree),
    "vmap": lambda tree: smelt.vmap(traced_identity)(no_notes(tree)),
    "scan": lambda tree: smelt.scan(lambda c, x: (plus(c, 1.0), None), no_notes(tree), None, length=1)[0],
    "cond": lambda tree: smelt.cond(smelt.array(True), traced_identity, lambda t: t, no_notes(tree)),
    "while_loop": lambda tree: smelt.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, plus(c[1], 1.0)), (smelt.array(0), no_notes(tree)))[1],
    "fori_loop": lambda tree: smelt.fori_loop(0, 1, lambda i, c: plus(c, 1.0), no_notes(tree)),
    "vjp": lambda tree: smelt.vjp(boxed, [no_notes(tree)])[0]["r"],
    "jvp": lambda tree: smelt.jvp(boxed, [no_notes(tree)], [no_notes(tree)])[0]["r"],
    "linearize": lambda tree: smelt.linearize(boxed, no_notes(tree))[0]["r"],
    "grad": lambda tree: plus(smelt.grad(lambda t: total(t) / 2)(tree), 1.0),
    "value_and_grad": lambda tree: plus(smelt.value_and_grad(lambda t: total(t) / 2)(tree)[1], 1.0),
    "grad in compile": lambda tree: plus(smelt.compile(smelt.grad(lambda t: total(t) / 2))(tree), 1.0),
    "custom_function in grad": lambda tree: plus(
        smelt.grad(lambda t: total(plus(identity_rule()(t), -1.0)) / 2)(tree), 1.0),
    "checkpoint in grad": lambda tree: plus(smelt.grad(smelt.checkpoint(lambda t: total(t) / 2))(tree), 1.0),
    "grad in vmap": lambda tree: plus(smelt.vmap(smelt.grad(lambda t: total(t) / 2))(no_notes(tree)), 1.0),
}  # fmt: skip


def no_notes(tree: Any) -> Any:
    """Loops take arrays, numbers and None."""
    leaves = smelt.utils.tree_flatten(tree)
    if any(isinstance(x, str) for _, x in leaves):
        return smelt.utils.tree_map(lambda x: None if isinstance(x, str) else x, tree)
    return tree


NO_TEXTS = ("scan", "cond", "while_loop", "fori_loop", "vmap", "vjp", "jvp", "linearize", "grad in vmap")


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@names
def test_every_entry_point_takes_every_container(name: str, entry: str) -> None:
    tree = make(name)
    want = plus(tree, 1.0)
    if no_notes(tree) is not tree and entry in NO_TEXTS:
        want = no_notes(want)
    with override(device="reference"):
        same(ENTRY_POINTS[entry](tree), want)
    assert values(tree) == values(make(name))


@names
def test_eval_reaches_every_array(name: str) -> None:
    tree = CONTAINERS[name](smelt.ones(2) + 1, smelt.ones(2) * 3)
    smelt.eval(tree)
    assert len(arrays(tree)) >= 2 and all(x._ref[0].values is not None for x in arrays(tree))


def hidden_arrays(tree: Any) -> set[int]:
    """The arrays in attributes of a dict, list or tuple alone: those who walk trees do not meet them."""
    held = vars(tree).values() if hasattr(tree, "__dict__") else [getattr(tree, "extra", None)]
    kept = [x for x in held if not isinstance(x, str)] if isinstance(tree, (dict, list, tuple)) else []
    entries = tree.values() if isinstance(tree, dict) else tree
    return {id(x) for x in arrays(kept)} - {id(x) for x in (entries if kept else ())}


@names
def test_utils(name: str) -> None:
    tree = make(name)
    pairs = smelt.utils.tree_flatten(tree)
    assert len({path for path, _ in pairs}) == len(pairs)
    hidden = hidden_arrays(tree)
    doubled = smelt.utils.tree_map(lambda x, y: x + y if isinstance(x, Array) else x, tree, tree)
    factors = [1 if id(x) in hidden else 2 for x in arrays(tree)]
    assert values(doubled) == [[n * v for v in x] for n, x in zip(factors, values(tree))]
    assert smelt.utils.tree_reduce(lambda n, x: n + isinstance(x, Array), tree, 0) == len(arrays(tree)) - len(hidden)
    marked = smelt.utils.tree_map_with_path(lambda path, x: path if isinstance(x, Array) else x, tree)
    assert [p for _, p in smelt.utils.tree_flatten(marked)] == [p if isinstance(x, Array) else x for p, x in pairs]
    stopped = smelt.utils.tree_map(lambda x: 1, tree, is_leaf=lambda x: x is tree)
    assert stopped == 1


def test_other_containers_with_the_same_keys_fit() -> None:
    """A module and its gradients as a plain dict, say; in dicts the keys decide, not their order."""
    module, plain = Linear(smelt.array(1.0), smelt.array(2.0)), {"bias": smelt.array(10.0), "weight": smelt.array(20.0)}
    found = smelt.utils.tree_map(lambda p, g: p - g, module, plain)
    assert (found.weight.item(), found.bias.item(), type(found)) == (-19.0, -8.0, Linear)
    found = smelt.utils.tree_map(lambda g, p: p - g, plain, module)
    assert (found["weight"].item(), found["bias"].item(), type(found)) == (-19.0, -8.0, dict)
    ordered = collections.OrderedDict(weight=smelt.array(20.0), bias=smelt.array(10.0))
    for other in (ordered, Ordered(ordered), plain, Entries(plain)):
        _, (tangent,) = smelt.jvp(lambda d: d["weight"] * 100 + d["bias"], [module], [other])
        assert tangent.item() == 2010.0, type(other)
        _, (cotangent,) = smelt.vjp(lambda d: plus(d, 0.0), [module], other)
        assert (cotangent["weight"].item(), cotangent["bias"].item()) == (20.0, 10.0)
        mapped = smelt.vmap(lambda d: d["weight"] + d["bias"], in_axes=({"bias": None, "weight": 0},))(
            {"weight": smelt.arange(3.0), "bias": other["bias"]})  # fmt: skip
        assert mapped.tolist() == [10.0, 11.0, 12.0]
    with pytest.raises(TreeError, match="keys"):
        smelt.utils.tree_map(lambda p, g: p, module, {"weight": 1})


# Methods


class Plain:
    def __init__(self) -> None:
        self.w: Any = smelt.array(2.0)
        self.inner: Any = {"v": [smelt.array(1.0)]}

    @smelt.compile
    def method(self, x: Array) -> Array:
        return self.w * x + self.inner["v"][0]


class CompiledModule(Linear):
    @smelt.compile
    def method(self, x: Array) -> Array:
        return self.weight * x + self.bias


def test_methods_compiled_in_their_class_see_changes() -> None:
    plain, other = Plain(), Plain()
    assert plain.method(smelt.array(3.0)).item() == 7.0
    plain.w = smelt.array(3.0)
    assert plain.method(smelt.array(3.0)).item() == 10.0
    plain.w += 1
    assert plain.method(smelt.array(3.0)).item() == 13.0
    plain.inner["v"][0] = smelt.array(5.0)
    assert plain.method(smelt.array(3.0)).item() == 17.0
    assert other.method(smelt.array(3.0)).item() == 7.0
    module = CompiledModule(smelt.array(2.0), smelt.array(1.0))
    assert module.method(smelt.array(3.0)).item() == 7.0
    module.weight = smelt.array(3.0)
    assert module.method(smelt.array(3.0)).item() == 10.0


# What is no tree


class Opaque:
    def __init__(self) -> None:
        self.inside = {"w": [smelt.array(1.0)]}


class OpaqueSlots:
    __slots__ = ("__hidden", "w")

    def __init__(self) -> None:
        self.w = smelt.array(1.0)


class Deep:
    def __init__(self) -> None:
        self.opaque, self.number = Opaque(), 3


OPAQUE: dict[str, Callable[[], Any]] = {
    "object": Opaque,
    "object with slots": OpaqueSlots,
    "object in an object": Deep,
    "namespace": lambda: types.SimpleNamespace(w=smelt.array(1.0)),
    "mapping proxy": lambda: types.MappingProxyType({"w": smelt.array(1.0)}),
    "UserDict": lambda: collections.UserDict(w=smelt.array(1.0)),
    "set": lambda: {smelt.array(1.0)},
    "chain map": lambda: collections.ChainMap({"w": smelt.array(1.0)}),
    "values of a dict": lambda: types.SimpleNamespace(v=[types.SimpleNamespace(w=smelt.array(1.0))]),
}
PLACES = {"alone": lambda x: x, "in a tree": lambda x: {"a": [x], "b": smelt.array(1.0)}}
X = smelt.array(1.0)
TAKING: dict[str, Callable[[Any], Any]] = {
    "compile": lambda t: smelt.compile(lambda t, x: x)(t, X),
    "compile inputs": lambda t: smelt.compile(lambda x: x, inputs=[t])(X),
    "compile outputs": lambda t: smelt.compile(lambda x: x, outputs=[t])(X),
    "compile result": lambda t: smelt.compile(lambda x: t)(X),
    "trace": lambda t: smelt.compile(lambda t: X).trace(t),
    "grad": lambda t: smelt.grad(lambda p: X)((X, t)),
    "grad other argument": lambda t: smelt.grad(lambda x, t: x)(X, t),
    "value_and_grad": lambda t: smelt.value_and_grad(lambda p: X)((X, t)),
    "vjp": lambda t: smelt.vjp(lambda p: X, [(X, t)]),
    "jvp": lambda t: smelt.jvp(lambda p: X, [(X, t)], [(X, t)]),
    "vmap": lambda t: smelt.vmap(lambda x, t: x, in_axes=(0, None))(smelt.ones(2), t),
    "checkpoint": lambda t: smelt.checkpoint(lambda t: X)(t),
    "custom_function": lambda t: smelt.custom_function(lambda t: X)(t),
    "scan": lambda t: smelt.scan(lambda c, x: (c, x), t, smelt.ones(2)),
    "cond": lambda t: smelt.cond(smelt.array(True), lambda t: X, lambda t: X, t),
    "while_loop": lambda t: smelt.while_loop(lambda c: smelt.array(False), lambda c: c, t),
    "stop_gradient": lambda t: smelt.stop_gradient({"t": t}),
}  # fmt: skip


@pytest.mark.parametrize("entry", TAKING)
@pytest.mark.parametrize("kind", OPAQUE)
def test_what_holds_arrays_and_is_no_tree_is_an_error(kind: str, entry: str) -> None:
    for place in PLACES.values():
        with pytest.raises(TreeError) as caught:
            TAKING[entry](place(OPAQUE[kind]()))
        text = str(caught.value)
        assert "holds arrays" in text and "register_class" in text, text
        assert f"{os.path.basename(__file__)}:" in text, text


@pytest.mark.parametrize("kind", OPAQUE)
def test_walks_take_what_holds_arrays_and_is_no_tree_for_a_leaf(kind: str) -> None:
    x = OPAQUE[kind]()
    for place in PLACES.values():
        t = place(x)
        smelt.eval(t)
        smelt.async_eval(t)
        for mapped in smelt.utils.tree_map(lambda v: v, t), smelt.utils.tree_map_with_path(lambda path, v: v, t):
            assert (mapped if t is x else mapped["a"][0]) is x
        assert smelt.utils.tree_flatten(t)[0][1] is x
        assert smelt.utils.tree_map(lambda v, w: w, {"a": 1}, {"a": x})["a"] is x
        assert smelt.utils.tree_reduce(lambda n, v: n + (v is x), t, 0) == 1


def test_what_holds_none_is_a_leaf() -> None:
    class Settings:
        def __init__(self) -> None:
            self.number, self.parts, self.me = 1, [1, {"a": 2}], self

    settings = Settings()
    leaves = [settings, {1, 2}, types.MappingProxyType({}), lambda: X, add, Opaque, Opaque().__init__, np.ones(2),
              threading.Lock(), smelt.compile(add), object(), np.random.default_rng(0), iter([X])]  # fmt: skip
    for x in leaves:
        assert smelt.utils.tree_map(lambda x: x, [x])[0] is x
        smelt.eval([x])
    assert smelt.compile(lambda s, x: x * s.number)(settings, smelt.array(2.0)).item() == 2.0


def test_a_class_may_be_registered_later_or_twice() -> None:
    @dataclasses.dataclass
    class Late:
        a: Any
        b: Any

        def tree_flatten(self) -> Any:
            return (self.a,), self.b

        @classmethod
        def tree_unflatten(cls, static: Any, children: Any) -> Any:
            return cls(children[0], static)

    late = Late(X, 3)
    assert len(smelt.utils.tree_flatten(late)) == 2
    for _ in range(2):
        smelt.utils.register_class(Late)
        assert len(smelt.utils.tree_flatten(late)) == 1
    assert smelt.utils.tree_map(lambda x: x, late).b == 3
    with pytest.raises(TreeError):
        smelt.utils.register_class(Opaque)
    with pytest.raises(TreeError):
        smelt.utils.register_class(3)  # type: ignore[arg-type]


def test_classes_met_by_many_threads_at_once() -> None:
    failures = []

    def work(kinds: list[type]) -> None:
        try:
            for kind in kinds:
                assert smelt.utils.tree_map(lambda x: x + 1, kind(a=1)) == {"a": 2}
        except Exception as error:
            failures.append(error)

    kinds = [type(f"Kind{i}", (dict,), {}) for i in range(200)]
    threads = [threading.Thread(target=work, args=(kinds,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_merging_trees_that_contain_themselves_ends() -> None:
    a: dict = {}
    b: dict = {}
    a["x"], b["x"] = a, b
    with pytest.raises(TreeError, match="contains itself"):
        smelt.utils.tree_merge(a, b)


class Late(dict):
    """A dict that is a tree because it holds arrays."""


ORDERS: list[Callable[[dict], dict]] = [dict, Late, collections.OrderedDict, lambda d: {"in": [d]}]


@pytest.mark.parametrize("kind", ORDERS)
def test_walks_meet_dicts_in_their_own_order(kind: Callable[[dict], dict]) -> None:
    backward = kind({"w": X, "b": X + 1, "a": {"z": X + 2, "c": X + 3}})
    forward = kind({"a": {"c": X + 3, "z": X + 2}, "b": X + 1, "w": X})
    ends = ["w", "b", "z", "c"]
    assert [path[-1] for path, _ in smelt.utils.tree_flatten(backward)] == ends
    seen: list = []
    smelt.utils.tree_map(lambda x, y: seen.append((x.item(), y.item())), backward, forward)
    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert smelt.utils.tree_reduce(lambda found, x: [*found, x.item()], backward, []) == [1, 2, 3, 4]
    again = smelt.utils.tree_unflatten(smelt.utils.tree_flatten(backward))
    assert [path[-1] for path, _ in smelt.utils.tree_flatten(again)] == ends
    total = lambda t: smelt.utils.tree_reduce(lambda s, x: 2 * s + x, t, smelt.array(0.0))  # noqa: E731
    gradients = smelt.grad(total)(backward)
    assert [(p[-1], x.item()) for p, x in smelt.utils.tree_flatten(gradients)] == list(zip(ends, (8, 4, 2, 1)))


def test_compiled_functions_see_the_order_of_dicts() -> None:
    stacked = lambda d: smelt.stack(list(d.values()))  # noqa: E731
    for shapeless in False, True:
        f = smelt.compile(stacked, shapeless=shapeless)
        for _ in range(3):
            for kind in dict, Late:
                assert f(kind(a=X, b=X + 1)).tolist() == [1, 2]
                assert f(kind(b=X + 1, a=X)).tolist() == [2, 1]
    state = {"a": X, "b": X + 1}
    f = smelt.compile(lambda: stacked(state), inputs=state, outputs=state)
    for keys, wanted in ("ab", [1, 2]), ("ba", [2, 1]), ("ab", [1, 2]):
        for key in keys:
            state[key] = state.pop(key)
        assert f().tolist() == f().tolist() == wanted and list(state) == list(keys)
    traced: list = []

    def named(**arrays: smelt.array) -> smelt.array:
        traced.append(list(arrays))
        return smelt.stack(list(arrays.values()))

    f = smelt.compile(named)
    for _ in range(3):
        assert f(a=X, b=X + 1).tolist() == [1, 2] and f(b=X + 1, a=X).tolist() == [2, 1]
    assert traced == [["a", "b"], ["b", "a"]]

    def plain(a: smelt.array, b: smelt.array) -> smelt.array:
        traced.append("plain")
        return a - 2 * b

    f = smelt.compile(plain)
    for _ in range(3):
        assert f(b=X + 1, a=X).item() == f(a=X, b=X + 1).item() == -3
    assert traced.count("plain") == 1  # names of arguments have no order


@names
def test_arrays_of_a_tree_are_those_among_its_leaves(name: str) -> None:
    inner = make(name)
    views = [smelt.ones((3, 2))[0], np.ones(2), None, 2.0, ("text", {})]
    model = smelt.nn.Sequential(smelt.nn.Linear(2, 3), smelt.nn.BatchNorm(3), smelt.nn.Dropout(0.5))
    for tree in (inner, [inner, {"more": make(name), 4: views}, model], Entries(a=inner, b=[model])):
        assert {id(x) for x in arrays_of(tree)} == {id(x) for x in arrays(tree)}


def test_arrays_of_what_is_no_tree() -> None:
    class Holder:
        def __init__(self) -> None:
            self.x = smelt.ones(2)

    around: list[Any] = []
    around.append({"a": around})
    for tree, message in (({"a": [Holder()]}, "holds arrays"), (around, "contains itself")):
        with pytest.raises(TreeError, match=message):
            arrays_of(tree)
