"""Steps of smelt's optimizers are followed as recipes: what they give is what `apply_single` gives, which those of
other packages are asked for each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt import optimizers
from smelt.optimizers import Optimizer
from smelt.utils import tree_flatten

pytestmark = pytest.mark.tier("ops")

OPTIMIZERS: list[type[Optimizer]] = [
    kind
    for name in optimizers.__all__
    if isinstance(kind := getattr(optimizers, name), type) and issubclass(kind, Optimizer) and kind is not Optimizer
    and kind.apply_single is not Optimizer.apply_single
]  # fmt: skip
SHAPES: dict[str, tuple[int, ...]] = {"a": (2, 3), "b": (2, 3), "c": (4,), "d": (), "e": (2, 1, 3)}


def of_another_package(kind: type[Optimizer]) -> type[Optimizer]:
    return type(kind.__name__, (kind,), {"__module__": __name__})


def numbers(seed: int) -> dict[str, Any]:
    key = smelt.random.key(seed)
    found: dict[str, Any] = {name: smelt.random.normal(shape, key=key) for name, shape in SHAPES.items()}
    found["half"] = {"layers": [found["a"].astype(smelt.float16), found["c"].astype(smelt.complex64)]}
    return found


def changed(value: Any) -> Any:
    """Another setting of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value / 2 + 0.01
    return tuple(map(changed, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=lambda kind: kind.__name__)
def test_what_recipes_give(kind: type[Optimizer]) -> None:
    own, other = (made(learning_rate=0.125) for made in (kind, of_another_package(kind)))  # type: ignore[call-arg]
    parameters = {own: numbers(0), other: numbers(0)}
    if kind.__name__ == "Muon":  # which refuses them
        for given in parameters.values():
            given["half"]["layers"].pop()
    settings = [name for name, value in vars(own).items() if name[0] != "_" and changed(value) != value]
    for n in range(3 + len(settings)):
        gradients = numbers(n + 1)
        if kind.__name__ == "Muon":
            gradients["half"]["layers"].pop()
        for optimizer, given in parameters.items():
            if n >= 3:
                setattr(optimizer, settings[n - 3], changed(getattr(optimizer, settings[n - 3])))
            if n == 2:
                optimizer.learning_rate = 0.25
            parameters[optimizer] = optimizer.apply_gradients(gradients, given)
        for pair in ((parameters[own], parameters[other]), (own.state, other.state)):
            for (path, x), (same, y) in zip(*map(tree_flatten, pair), strict=True):
                assert (path, x.dtype) == (same, y.dtype), n
                # An array of which NumPy has a view is part of no recipe; some are, towards the end.
                look = np.asarray if n > 3 else lambda x: np.array(x.tolist())
                np.testing.assert_array_equal(look(x), look(y), f"{path}, step {n}")


@pytest.mark.parametrize("changed", [optimizers.Adam, optimizers.AdamW], ids=lambda kind: kind.__name__)
def test_a_method_that_a_program_replaces(changed: type[Optimizer], monkeypatch: pytest.MonkeyPatch) -> None:
    """In a class, in one above it, or of one optimizer, after a step has been followed."""
    given = {"w": smelt.array([1.0, 2.0])}

    def stepped(optimizer: Optimizer) -> Any:
        return optimizer.apply_gradients(given, given)["w"].tolist()

    own, other = optimizers.AdamW(0.5), of_another_package(optimizers.AdamW)(0.5)  # type: ignore[call-arg]
    assert stepped(own) == stepped(other)
    with monkeypatch.context() as patch:
        patch.setattr(changed, "apply_single", lambda self, gradient, parameter, state: parameter * 3)
        assert stepped(own) == stepped(other) != [1, 2]
        assert stepped(own) == [3, 6] or changed is optimizers.Adam  # which gets it after the decay
        other.apply_gradients(given, given)
    assert stepped(own) == stepped(other)
    own.apply_single = lambda gradient, parameter, state: parameter * 4  # type: ignore[method-assign]
    assert stepped(own) == [4, 8]


def test_a_schedule_may_give_a_number() -> None:
    given, rates = {"w": smelt.array([1.0, 2.0])}, iter([0.5, 0.5, 0.25, 0, smelt.array(1.0)])
    optimizer = optimizers.SGD(lambda step: next(rates))
    found = [optimizer.apply_gradients(given, given)["w"].tolist() for _ in range(4)]
    assert found == [[0.5, 1], [0.75, 1.5], [1, 2], [0, 0]]
