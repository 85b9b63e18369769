"""Functions that are compiled anew for each call, and compute the same: one program, and all that they take counts."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy.evaluate import executables
from smelt.lazy.execution import tiered, tiers

pytestmark = [pytest.mark.tier("auto"), pytest.mark.usefixtures("small_heap")]

X = smelt.array(np.linspace(0.1, 0.9, 35, dtype=np.float32).reshape(5, 7))


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No programs, and none from another process."""
    executables.clear()
    tiers.structures.clear()
    monkeypatch.setattr(tiered, "program_in_background", lambda *_, **__: None)
    yield
    tiers.structures.clear()


def softened(x: smelt.array, by: float) -> smelt.array:
    return smelt.softmax(x * by, axis=-1) - smelt.mean(x, axis=0)


def expected(by: float) -> np.ndarray:
    x = np.asarray(X, np.float64)
    e = np.exp(x * by)
    return e / e.sum(-1, keepdims=True) - x.mean(0)


def made_anew(by: float) -> Callable[[smelt.array], smelt.array]:
    return smelt.compile(lambda x: softened(x, by))


def test_what_was_asked_for_again_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "AT_ONCE", 1e9)
    with smelt.explain() as explained:
        for by in (2.0, 2.0, 3.0, 2.0):
            np.testing.assert_allclose(made_anew(by)(X), expected(by), 1e-5, 1e-6)
    assert explained.count == 2


def test_what_they_take_together_brings_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "pays_at_once", lambda *args: False)
    cost = tiers.CompileCost()
    monkeypatch.setattr(tiers, "cost", cost)
    monkeypatch.setattr(cost, "in_place", lambda ops: limit)
    limit, counts = 1e9, []
    with smelt.explain() as explained:
        for call in range(9):
            if call == 6:
                limit = 1e-9
            np.testing.assert_allclose(made_anew(2.0)(X), expected(2.0), 1e-5, 1e-6)
            counts.append(explained.count)
    assert counts == [0] * 6 + [1] * 3
    (structure,) = [entry[0] for entry in tiers.structures._entries.values()]
    assert structure.asked and structure.spent > 0


@pytest.mark.parametrize("other", ["dtype", "shape", "constant", "check", "captured type"])
def test_what_differs_has_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.setattr(tiers, "AT_ONCE", 1e9)
    held = [smelt.array([2.0]), smelt.array([2])]

    def run(x: smelt.array, which: int) -> np.ndarray:
        by = 2.0 + which * (other == "constant")
        array = held[which * (other == "captured type")]
        with override(check=bool(which) and other == "check"):
            return np.asarray(smelt.compile(lambda x: x * by + array)(x))

    x, y = X, {"dtype": X.astype(smelt.float16), "shape": X[:3]}.get(other, X)
    with smelt.explain() as explained:
        found = run(x, 0), run(y, 1)
    np.testing.assert_allclose(found[0], np.asarray(X) * 2 + 2, 1e-6)
    np.testing.assert_allclose(found[1], np.asarray(y) * (3 if other == "constant" else 2) + 2, 1e-2)
    assert explained.count == 2


@pytest.mark.parametrize("at_once", [0.0, 1e9])
def test_what_they_capture_is_theirs_and_goes_with_them(monkeypatch: pytest.MonkeyPatch, at_once: float) -> None:
    monkeypatch.setattr(tiers, "AT_ONCE", at_once)
    nodes: list[Any] = []
    for i in range(4):
        weight = smelt.array(np.full(7, i, np.float32))
        nodes.append(weakref.ref(weight._ref[0]))
        np.testing.assert_array_equal(smelt.compile(lambda x, w=weight: x * w)(X), np.asarray(X) * i)
        del weight
    gc.collect()
    assert [ref() for ref in nodes] == [None] * 4
