"""Which entries of a module are parameters, and what stands in their places while a gradient is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.nn import Module


class _Odd(Module):
    """Entries in all kinds of containers."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = smelt.array([2.0, 3.0])
        self.again = self.shared
        self._hidden = smelt.array([1.0])
        self.table = {"a": smelt.array([1.0]), "_b": smelt.array([2.0]), "inner": {"c": [smelt.array([3.0])]}}
        self.layers = [nn.Linear(2, 2), (nn.Linear(1, 1), smelt.array([1.0])), {"x": nn.ReLU()}, []]
        self.pair = (nn.Linear(1, 1), smelt.array([4.0]))
        self.positions = smelt.arange(3)
        self.size = 3

    def __call__(self, x: Any) -> Any:
        return (self.shared * x + self.again * x * x).sum() * self.table["a"].sum()


def test_parameters_are_what_their_filters_let_through() -> None:
    model = _Odd()
    model._no_grad = frozenset({"again", "layers.2", "table.a", "table.inner.c"})
    model.layers[0].freeze(keys="bias")
    for chosen in (Module.valid_parameter_filter, Module.trainable_parameter_filter):
        one_by_one = model.filter_and_map(lambda m, k, v, chosen=chosen: chosen(m, k, v))
        found = model.filter_and_map(chosen)
        assert str(found) == str(one_by_one)
        assert smelt.utils.tree_flatten(found) == smelt.utils.tree_flatten(one_by_one)
    assert model.parameters()["layers"][1:] == [{}, {"x": {}}, []]
    trainable = model.trainable_parameters()
    assert trainable["table"] == {"a": {}, "_b": model.table["_b"], "inner": {"c": {}}}
    assert "again" not in trainable and trainable["layers"][2] == {} and list(trainable["layers"][0]) == ["weight"]


def test_an_array_in_two_places_has_two_gradients() -> None:
    model, x = _Odd(), smelt.array([3.0, 5.0])
    shared = model.shared
    value, found = nn.value_and_grad(model, lambda x: model(x))(x)
    assert value.item() == 2 * 3 + 3 * 5 + 2 * 9 + 3 * 25
    np.testing.assert_array_equal(np.array(found["shared"]), [3, 5])
    np.testing.assert_array_equal(np.array(found["again"]), [9, 25])
    assert model.shared is shared and model.again is shared


def test_what_a_function_changes_in_a_model_stays() -> None:
    model, x = _Odd(), smelt.array([1.0, 1.0])
    bias = model.layers[0].bias

    def loss(x: Any) -> Any:
        model._hidden = model._hidden + 1
        model.layers[0].bias = model.shared * 10
        model.extra = model.shared + 1
        return model(x)

    for times in (1, 2):
        nn.value_and_grad(model, loss)(x)
        assert model._hidden.item() == 1 + times
        assert model.extra.tolist() == [3.0, 4.0] and model.layers[0].bias.tolist() == [20.0, 30.0]
        assert model.layers[0].bias is not bias
        model.pop("extra")


def test_an_update_of_its_own_is_asked() -> None:
    class Noted(nn.Linear):
        def update(self, parameters: Any, strict: bool = True) -> Any:
            noted.append(list(parameters))
            return super().update(parameters, strict)

    noted: list[Any] = []
    model = Noted(2, 1)
    nn.value_and_grad(model, lambda x: model(x).sum())(smelt.ones((1, 2)))
    assert noted == [["weight", "bias"]] * 2


def test_an_error_in_the_function_puts_the_parameters_back() -> None:
    model = _Odd()
    before = smelt.utils.tree_flatten(model.parameters())
    for bad in (lambda x: 1 / 0, lambda x: model(x) * smelt.ones(3)):
        with pytest.raises((ZeroDivisionError, smelt.SmeltError)):
            nn.value_and_grad(model, bad)(smelt.array([1.0, 1.0]))
        assert all(x is y for (_, x), (_, y) in zip(before, smelt.utils.tree_flatten(model.parameters())))


@pytest.mark.parametrize("filter_fn", [nn.Module.valid_parameter_filter, nn.Module.trainable_parameter_filter])
def test_a_filter_is_any_callable(filter_fn: Any) -> None:
    """Also an object that has no hash."""

    class Filter:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, module: nn.Module, key: str, value: Any) -> bool:
            return bool(filter_fn(module, key, value))

    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm(3))
    model.layers[0].freeze(keys="bias")
    assert str(model.filter_and_map(Filter())) == str(model.filter_and_map(filter_fn))
