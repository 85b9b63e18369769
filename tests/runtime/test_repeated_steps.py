"""A call of a compiled function with state that is like the last one takes a shorter way, which must not be seen: what
may happen to the state between two calls, for each kind of state, against the same function uncompiled."""

from __future__ import annotations

import copy
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy import alike, core
from smelt.transforms.repeated_steps import RepeatedStep
from smelt.transforms.versions import LEAST_GIVEN

array = smelt.array


class Layer(smelt.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.rate, self.name = array([1.0, 2.0]), 0.5, "layer"
        self.inner = smelt.nn.Linear(1, 1)
        self.inner.weight, self.inner.bias = array([[3.0]]), array([4.0])


class Noting(dict[str, Any]):
    """A dict that does something else when it is assigned to."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setitem__("noted", array(1.0))


def nested() -> Any:
    return {"b": array([1.0, 2.0]), "a": [array(3.0), {"z": array(4.0), "y": array(5.0)}], "rate": 0.5, "none": None}


STATES: dict[str, Any] = {
    "nested": nested,
    "module": Layer,
    "list": lambda: [Layer(), nested(), {}],
    "tuple": lambda: (Layer(), nested()),
    "arrays in a tuple": lambda: {"a": (array([1.0]), array([2.0])), "b": array([3.0])},
    "two places": lambda: (lambda x: {"a": x, "b": x, "c": array([1.0, 1.0])})(array([1.0, 2.0])),
    "own assignment": lambda: {"a": Noting(b=array([1.0]))},
    "ordered": lambda: [smelt.utils.tree_map(lambda x: x, nested())],
}


def places(state: Any) -> list[tuple[Any, Any]]:
    """Dicts and lists in a state, and keys under which they hold arrays."""
    if isinstance(state, dict):
        pairs = list(state.items())
    elif isinstance(state, (list, tuple)):
        pairs = list(enumerate(state))
    else:
        return []
    own = [(state, key) for key, x in pairs if isinstance(x, array) and not isinstance(state, tuple)]
    return own + [place for _, x in pairs for place in places(x)]


def holders(state: Any, kind: type) -> list[Any]:
    below = state.values() if isinstance(state, dict) else state if isinstance(state, (list, tuple)) else []
    return [state] * isinstance(state, kind) + [found for x in below for found in holders(x, kind)]


def _alias(state: Any) -> None:
    (a, i), *rest = places(state)
    for b, j in rest:
        if b[j].shape == a[i].shape:
            b[j] = a[i]
            return


def _reorder(state: Any) -> None:
    for holder in holders(state, dict):
        for key in sorted(holder, reverse=True):
            holder[key] = holder.pop(key)


def _attribute(name: str, value: Any) -> Any:
    def change(state: Any) -> None:
        for module in holders(state, Layer):
            setattr(module, name, value)

    return change


def _first(change: Any) -> Any:
    def changed(state: Any) -> None:
        holder, key = places(state)[0]
        holder[key] = change(holder[key])

    return changed


def _all_lists(change: Any) -> Any:
    return lambda state: [change(x) for x in holders(state, list)]


def _all_dicts(change: Any) -> Any:
    return lambda state: [change(x) for x in holders(state, dict)]


CHANGES: dict[str, Any] = {
    "nothing": lambda state: None,
    "another value": _first(lambda x: x * 3 + 1),
    "not evaluated": _first(lambda x: x + smelt.sum(x)),
    "another dtype": _first(lambda x: x.astype(smelt.float16)),
    "another shape": _first(lambda x: smelt.stack([x, x])),
    "one in two places": _alias,
    "in place": lambda state: places(state)[0][0][places(state)[0][1]].__iadd__(1),
    "another order": _reorder,
    "another number": _all_dicts(lambda d: d.update(rate=0.25) if "rate" in d else None),
    "a number of another type": _all_dicts(lambda d: d.update(rate=1) if "rate" in d else None),
    "an attribute": _attribute("rate", 0.25),
    "an attribute of another type": _attribute("rate", True),
    "a new attribute": _attribute("more", 2),
    "an attribute that is a set": _attribute("held", frozenset([1])),
    "an entry more": _all_dicts(lambda d: dict.__setitem__(d, "new", array([7.0]))),
    "an entry less": lambda state: places(state)[-1][0].pop(places(state)[-1][1]),
    "a longer list": _all_lists(lambda x: x.append(array(9.0))),
    "other containers": _all_dicts(lambda d: d.update({k: copy.copy(v) for k, v in d.items() if type(v) is dict})),
    "frozen": lambda state: [module.freeze() for module in holders(state, Layer)],
    "evaluating": lambda state: [module.eval() for module in holders(state, Layer)],
}


def step_of(state: Any) -> Any:
    def step(x: Any, *, more: Any = None) -> Any:
        total = x * 0
        for n, (holder, key) in enumerate(places(state)):
            rate = holder.get("rate", 0.125) if isinstance(holder, dict) else 0.125
            rate = getattr(holder, "rate", rate) + getattr(holder, "more", 0) + len(getattr(holder, "_no_grad", ()))
            holder[key] = holder[key] * rate + (n + 1) * x + float(getattr(holder, "training", False))
            total = total + smelt.sum(holder[key])
        return {"total": total, "count": len(places(state))}

    return step


def seen(x: Any) -> Any:
    """What there is of a tree, as values that compare."""
    if isinstance(x, array):
        return str(x.dtype), x.tolist()
    if isinstance(x, dict):
        return type(x).__name__, [(key, seen(value)) for key, value in x.items()], getattr(x, "__dict__", None)
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [seen(value) for value in x]
    return type(x).__name__, x


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", STATES)
def test_what_happens_between_calls_is_seen(kind: str, name: str) -> None:
    state, other = STATES[kind](), STATES[kind]()
    compiled, plain = smelt.compile(step_of(state), inputs=state, outputs=state), step_of(other)
    for n in range(6):
        x = array(float(n))
        if n == 3:
            CHANGES[name](state)
            CHANGES[name](other)
        before = [(holder[key], seen(holder[key])) for holder, key in places(state)] if n == 4 else []
        containers = {id(holder) for holder, _ in places(state)}
        assert seen(compiled(x)) == seen(plain(x)), n
        assert seen(state) == seen(other), n
        assert containers == {id(holder) for holder, _ in places(state)}
        for old, value in before:  # which somebody has taken out of the state
            assert seen(old) == value


@pytest.mark.parametrize("kind", ["nested", "module", "list", "tuple"])
def test_the_short_way_is_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state, taken = STATES[kind](), []
    run = RepeatedStep.run

    def noted(self: RepeatedStep, *args: Any) -> Any:
        taken.append(run(self, *args))
        return taken[-1]

    monkeypatch.setattr(RepeatedStep, "run", noted)
    step = smelt.compile(step_of(state), inputs=state, outputs=state)
    for _ in range(4):
        step(array(1.0))
    assert taken and all(results is not None for results in taken)


def test_a_state_of_which_little_would_be_saved_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    state, taken = {"w": smelt.ones((LEAST_GIVEN // 8,)), "v": smelt.ones((LEAST_GIVEN // 16,))}, list[Any]()
    smelt.eval(state)
    run = RepeatedStep.run

    def noted(self: RepeatedStep, *args: Any) -> Any:
        taken.append(run(self, *args))
        return taken[-1]

    def step(x: array) -> array:
        state["w"], state["v"] = state["w"] * x, state["v"] + x
        return x

    monkeypatch.setattr(RepeatedStep, "run", noted)
    with override(tier="program"):
        f = smelt.compile(step, inputs=state, outputs=state)
        for _ in range(4):
            f(array(2.0))
    assert taken and all(results is not None for results in taken)
    assert (smelt.max(state["w"]).item(), smelt.min(state["v"]).item()) == (16, 9)


def test_the_short_way_is_taken_again_with_an_equal_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    state, taken = Layer(), []
    run = RepeatedStep.run

    def noted(self: RepeatedStep, *args: Any) -> Any:
        results = run(self, *args)
        taken.append(results is not None)
        return results

    monkeypatch.setattr(RepeatedStep, "run", noted)
    step = smelt.compile(step_of(state), inputs=state, outputs=state)
    for n in range(6):
        if n == 3:
            state.rate = float("0.5")
        step(array(1.0))
    assert taken[-4:] == [True, False, True, True]


def test_only_read_and_only_written_state() -> None:
    read, written = nested(), {"last": array(0.0), "sum": array(0.0)}

    def step(x: Any) -> Any:
        written["last"] = x * read["b"][1]
        written["sum"] = x + read["rate"]
        return x + 1

    compiled = smelt.compile(step, inputs=read, outputs=written)
    for n in range(5):
        assert compiled(array(float(n))).item() == n + 1
        assert (written["last"].item(), written["sum"].item()) == (2 * n, n + 0.5)
        if n == 2:
            written["last"], written["sum"] = array([1.0, 2.0]), array(3.0) * 2


def test_an_error_in_a_repeated_call_leaves_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    state = nested()
    step = smelt.compile(step_of(state), inputs=state, outputs=state)
    for _ in range(3):
        step(array(1.0))
    before = seen(state)
    executable = step._steps.last.call.version.executable  # type: ignore[attr-defined]

    def fails(buffers: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(executable, "run", fails, raising=False)
        with pytest.raises(MemoryError):
            step(array(1.0))
    assert seen(state) == before


HOLDS = {
    "the array": lambda x: (lambda: x.tolist()),
    "work that is done later": lambda x: (lambda y: lambda: y.tolist())(x * 1),
    "another array of the same value": lambda x: (lambda y: lambda: y.tolist())(smelt.stop_gradient(x)),
    "a view of NumPy's": lambda x: (lambda y: lambda: y.tolist())(np.asarray(x)),
    "its memory": lambda x: (lambda y: lambda: y.tolist())(memoryview(x)),
    "a dict": lambda x: (lambda y: lambda: y["x"].tolist())({"x": x}),
    "a function": lambda x: (lambda f: lambda: f(array(1.0)).tolist())(smelt.compile(lambda y: x * y)),
    "a derivative": lambda x: (lambda y: lambda: y.tolist())(smelt.grad(lambda y: (y * x).sum())(x)),
}


@pytest.mark.parametrize("name", HOLDS)
def test_who_has_an_array_of_the_state_keeps_its_value(name: str) -> None:
    state = {"a": array([1.0, 2.0]), "b": [array([3.0, 4.0])]}
    step = smelt.compile(step_of(state), inputs=state, outputs=state)
    for _ in range(3):
        step(array(1.0))
    looks = [(look, look()) for look in (HOLDS[name](state["a"]), HOLDS[name](state["b"][0]))]
    unseen = [HOLDS[name](state["a"]), HOLDS[name](state["b"][0])]
    for _ in range(3):
        step(array(1.0))
    assert [look() for look, _ in looks] == [value for _, value in looks] == [look() for look in unseen]


def test_an_array_with_a_weak_reference_gets_no_other_value() -> None:
    state = nested()
    step = smelt.compile(step_of(state), inputs=state, outputs=state)
    for _ in range(3):
        step(array(1.0))
    found, value = weakref.ref(state["b"]), state["b"].tolist()
    step(array(1.0))
    assert state["b"].tolist() != value and found() is None


@pytest.mark.parametrize("kind", ["nested", "module", "list", "tuple", "arrays in a tuple"])
def test_arrays_of_the_state_that_are_results(kind: str) -> None:
    """Those that are read, that got another value in place, and that stand in another place."""
    state, other = STATES[kind](), STATES[kind]()

    def step_of(state: Any) -> Any:
        def step(x: Any) -> Any:
            (a, i), *rest = places(state)
            a[i] += x
            for b, j in rest:
                if b[j].shape == a[i].shape:
                    a[i], b[j] = b[j], a[i]
            return [b[j] for b, j in places(state)], a[i], smelt.utils.tree_map(lambda y: y, state)

        return step

    compiled, plain = smelt.compile(step_of(state), inputs=state, outputs=state), step_of(other)
    results = [(compiled(array(float(n))), seen(plain(array(float(n))))) for n in range(5)]
    assert [seen(result) for result, _ in results] == [wanted for _, wanted in results]
    assert seen(state) == seen(other)


@pytest.mark.skipif(core.native is None, reason="Python keeps what it has in work")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collections begin between bytecodes alone")
def test_what_is_replaced_lives_until_it_is() -> None:
    """To make an array may start a collection, and that runs anything."""
    x = array([1.0])
    state, held, lives = {"x": x}, weakref.ref(x), []
    pattern = alike.pattern_of(state, [])
    buffer = array([2.0])._ref[0].values[0]  # type: ignore[index]
    del x

    def collecting(phase: str, info: Any) -> None:
        state.clear()
        lives.append(held() is not None)

    before = gc.get_threshold()
    gc.callbacks.append(collecting)
    try:
        gc.set_threshold(1)
        alike.put_like((pattern,), (state,), [buffer])
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collecting)
    assert all(lives)
