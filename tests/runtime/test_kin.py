"""What is found out about a graph is known of graphs that differ from it in sizes alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy import evaluate, sizeless
from smelt.lazy.core import APPLY, topological
from smelt.lazy.execution import subgraphs, tiers
from smelt.lazy.execution.kin import PATIENCE, kin_of
from smelt.lazy.execution.rolled import LEAST, _Repetitions, rolled_with_key
from smelt.lazy.graph import FunctionKey, inputs_of, snapshot, structure_key


def ones(*shape: int) -> smelt.array:
    found = smelt.array(np.ones(shape, np.float32))
    smelt.eval(found)
    return found


def layers(x: smelt.array) -> smelt.array:
    """Steps in no order, so no loop."""
    choose = random.Random(0)
    for _ in range(LEAST // 3):
        kind = choose.randrange(5)
        if kind == 0:
            x = smelt.softmax(x @ x.T * (1 / len(x)), axis=-1) @ x[:, ::-1]
        elif kind == 1:
            x = x + smelt.mean(x, axis=0)
        elif kind == 2:
            x = smelt.tanh(x) + smelt.arange(x.shape[1])
        else:
            x = x * 0.5 if kind == 3 else smelt.maximum(x, 0.1)
    return smelt.concatenate([x, x[:1]])[1:]


def branched(x: smelt.array) -> smelt.array:
    return smelt.cond(smelt.sum(x) > 0, lambda x: x.reshape(-1), lambda x: x.reshape(-1) * 2, x)


def derived(x: smelt.array) -> smelt.array:
    return smelt.vmap(smelt.grad(lambda row: smelt.mean(row * row)))(x)


def solved(x: smelt.array) -> smelt.array:
    return smelt.linalg.cholesky(x @ x.T + smelt.eye(len(x)))


def structure(x: smelt.array) -> Any:
    body = snapshot(topological([x._ref]))
    return structure_key(inputs_of(body), body, [x._ref])


@pytest.mark.parametrize("make", [layers, branched, derived, solved])
def test_sizes_are_renamed(make: Callable[[smelt.array], smelt.array]) -> None:
    one, other, equal = (structure(make(ones(n, m))) for n, m in ((6, 12), (7, 15), (9, 9)))
    keys = [sizeless.sizeless_key(x) for x in (one, other, equal)]
    assert one != other and keys[0] == keys[1]
    assert make is solved or keys[0] != keys[2]  # which sizes are equal is part of the structure
    assert keys == [sizeless._Renaming().function(x) for x in (one, other, equal)]  # in C as in Python


def applied(size: int) -> Any:
    """The key of a function that applies one twice which applies one twice, and so on."""
    types = (((size,), smelt.float32),)
    key = FunctionKey((types, ("sin", (), ((0, 0),)), ((1, 0),)))
    for _ in range(60):
        step = APPLY.name, (key, ()), ((0, 0),)
        key = FunctionKey((types, step, step, ((1, 0),)))
    return key.parts


def test_functions_are_renamed_once() -> None:
    one, other = applied(4), applied(5)
    assert one != other
    assert sizeless.sizeless_key(one) == sizeless.sizeless_key(other) == sizeless._Renaming().function(other)


def test_what_steps_read_from_outside() -> None:
    x, y = ones(3), ones(3) + 1
    z = smelt.exp(x + y) * y
    body = snapshot(topological([z._ref]))
    outside = [r for step in body for r in step.inputs if r[0] not in {s.node for s in body}]
    assert inputs_of(body, [x._ref, z._ref]) == list(dict.fromkeys([*outside, x._ref]))
    with pytest.raises((TypeError, AttributeError)):
        inputs_of([1])
    with pytest.raises((TypeError, AttributeError)):
        snapshot([1])


def test_repetitions_are_looked_for_in_one_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    find = _Repetitions._periods

    def periods(self: Any) -> Any:
        looked.append(len(self.body))
        return find(self)

    monkeypatch.setattr(_Repetitions, "_periods", periods)

    def found(x: smelt.array) -> int:
        refs = [x._ref]
        return len(rolled_with_key(snapshot(topological(refs)), refs, by_value=True).body)

    def loop(x: smelt.array, y: smelt.array) -> smelt.array:
        for _ in range(LEAST):
            x = smelt.sin(x @ y) + 0.25
        return x

    nothing = {found(layers(ones(n, n + 3))) for n in (20, 21, 25)}
    assert len(looked) == 1 and nothing == {looked[0]}
    graphs = [loop(ones(n, 5), ones(5, 5)) for n in (20, 21, 25)]
    lengths = {found(x) for x in graphs}
    assert len(looked) == 2 and len(lengths) == 1 and max(lengths) < LEAST
    with override(tier="program", small_work=0):
        values = [np.array(x) for x in graphs]
    for x in values[1:]:
        np.testing.assert_allclose(x, values[0][:1].repeat(len(x), 0), 1e-5)


def test_ever_new_sizes_are_given_to_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(subgraphs, "program_in_background", lambda *args, **_: asked.append("compile"))
    monkeypatch.setattr(subgraphs, "kept_program", lambda *args, **_: asked.append("look"))
    monkeypatch.setattr(tiers, "LOOK", 0.0)
    monkeypatch.setattr(tiers, "BESIDE", 0.0)
    monkeypatch.setattr(tiers, "groups_pay", lambda *args: False)
    monkeypatch.setattr(tiers.Structure, "rests", lambda self, ops, seconds: False)
    counted = []
    count = tiers.to_compile
    monkeypatch.setattr(tiers, "to_compile", lambda order: counted.append(0) or count(order))

    def met(n: int) -> list[str]:
        asked.clear()
        with override(tier="auto", small_work=0):
            smelt.eval(layers(ones(n, 2 * n + 1)))
        return sorted(set(asked))

    first = [met(n) for n in range(30, 30 + PATIENCE + 3)]
    assert first == [["compile", "look"]] * PATIENCE + [[]] * 3
    assert len(counted) == 1
    assert met(30 + PATIENCE + 2) == ["compile", "look"]  # it came again
    kin = kin_of(structure(layers(ones(40, 81))))
    assert kin.met == PATIENCE + 3 and kin.returned == 1
    assert evaluate.kin_of is kin_of
