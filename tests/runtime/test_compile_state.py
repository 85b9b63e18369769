"""What `inputs` and `outputs` of `smelt.compile` hold, before, between and after calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import TreeError
from smelt.lazy import tree_updates
from smelt.transforms.compiled_function import CompiledFunction

from .. import interrupts


def counter():
    state = {"total": smelt.array(0.0), "nested": [smelt.array(1.0)]}

    def step(x):
        state["total"] = state["total"] + x.sum()
        state["nested"][0] = state["nested"][0] * 2
        return state["total"]

    return state, smelt.compile(step, inputs=state, outputs=state)


def values(state):
    return state["total"].item(), state["nested"][0].item()


def test_a_trace_leaves_the_state_as_it_was() -> None:
    state, step = counter()
    step.trace(smelt.array([1.0])).lower()
    assert values(state) == (0.0, 1.0)


def test_several_versions_share_the_state() -> None:
    state, step = counter()
    for size in (1, 2, 1, 2, 1):
        step(smelt.ones(size))
    assert values(state) == (7.0, 32.0)


def test_entries_may_be_replaced_between_calls() -> None:
    state, step = counter()
    step(smelt.ones(1))
    state["total"] = smelt.array(10.0)
    step(smelt.ones(1))
    assert values(state) == (11.0, 4.0)


def test_arrays_taken_out_of_the_state_keep_their_values() -> None:
    state, step = counter()
    step(smelt.ones(1))
    before = dict(state)
    nested = state["nested"]
    step(smelt.ones(1))
    assert before["total"].item() == 1.0
    assert nested is state["nested"]


def test_an_error_leaves_the_state_as_it_was() -> None:
    state = [smelt.array(1.0)]

    def step():
        state[0] = state[0] + 1
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        smelt.compile(step, inputs=state, outputs=state)()
    assert state[0].item() == 1.0


def test_the_function_may_add_to_outputs() -> None:
    state: list = []

    def step(x):
        if not state:
            state.append(None)
        state[0] = x * 2
        return x

    f = smelt.compile(step, outputs=state)
    f(smelt.array(3.0))
    assert state[0].item() == 6.0
    f(smelt.array(4.0))
    assert state[0].item() == 8.0


def test_calls_that_share_state_take_turns():
    import threading

    state = {"n": smelt.array(0)}

    def step():
        state["n"] = state["n"] + 1

    f = smelt.compile(step, inputs=state, outputs=state)
    threads = [threading.Thread(target=lambda: [f() for _ in range(50)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert state["n"].item() == 200


@pytest.mark.parametrize("what", ["inputs", "outputs"])
def test_state_may_be_deeper_than_the_stack_of_python(what: str) -> None:
    state: list = []
    for _ in range(5000):
        state = [state]
    with pytest.raises(smelt.SmeltError, match="nests too deeply"):
        smelt.compile(lambda x: x + 1, **{what: state})(smelt.array(1.0))


def test_flags_that_are_no_flags(tmp_path: Path) -> None:
    for value in (np.array([1, 2]), smelt.array([1, 2])):
        with pytest.raises(smelt.SmeltError, match=r"smelt\.compile: shapeless must be a bool, is"):
            smelt.compile(lambda x: x, shapeless=value)
        with pytest.raises(smelt.SmeltError, match="shapeless must be a bool, is"):
            smelt.exporter(str(tmp_path / "f.smelt"), lambda x: x, shapeless=value)


@pytest.mark.parametrize("where", ["inputs", "outputs", "below"])
@pytest.mark.parametrize("what", ["SGD", "Adam", "MultiOptimizer", "random"])
def test_what_has_state_of_its_own_is_named_by_that(what: str, where: str) -> None:
    """Else it is a constant of the program, and what a step leaves in it is lost."""
    model = smelt.nn.Linear(2, 1)
    optimizers: dict[str, Any] = {
        "SGD": smelt.optimizers.SGD(0.1, momentum=0.9),
        "Adam": smelt.optimizers.Adam(0.1),
        "MultiOptimizer": smelt.optimizers.MultiOptimizer([smelt.optimizers.Adam(0.1)]),
    }
    held = optimizers.get(what, smelt.random)
    gradient = smelt.nn.value_and_grad(model, lambda x: smelt.sum(model(x)))

    def step(x: smelt.array, given: Any) -> smelt.array:
        value, found = gradient(x + smelt.random.uniform(shape=()))
        if what in optimizers:
            optimizers[what].update(model, found)
        return value

    state = {"inputs": ([model, held], model), "outputs": (model, [model, held])}
    inputs, outputs = state.get(where, ({"all": (model, [held])},) * 2)
    before = [x.tolist() for _, x in smelt.utils.tree_flatten([held.state, model.state])]
    with pytest.raises(TreeError, match=r"inputs=\[(optimizer|smelt\.random)\.state\]"):
        smelt.compile(step, inputs=inputs, outputs=outputs)(smelt.ones((3, 2)), held)
    assert [x.tolist() for _, x in smelt.utils.tree_flatten([held.state, model.state])] == before
    every = [model.state, held.state, smelt.random.state]
    call = smelt.compile(step, inputs=every, outputs=every)
    x = smelt.ones((3, 2))
    assert call(x, held).item() != call(x, held).item()  # as an argument it may be there


def test_an_interrupt_leaves_no_half_of_a_step() -> None:
    """Wherever it comes while the new state is put into the place of the old one: all of it is new, or none."""
    state: dict[str, Any] = {}

    def step() -> None:
        state["n"] = state["n"] + 1
        state["list"] = [x + 1 for x in state["list"]]
        state["tuple"][0][...] = state["tuple"][0] + 1
        state["new"] = state["n"] * 1

    def call() -> None:
        n = smelt.array(0.0)
        state.clear()
        state.update(n=n, list=[n, n + 0], tuple=(n + 0,))
        smelt.compile(step, inputs=state, outputs=state)()

    call()
    merging = (tree_updates.put, tree_updates.merged, tree_updates._merge_dict, tree_updates._in_place)
    places = 0
    for place in interrupts.everywhere(call, *merging, CompiledFunction._step):
        found = [x.item() for x in (state["n"], *state["list"], *state["tuple"])]
        assert found == [float("new" in state)] * 4, place
        places += 1
    assert places > 40
