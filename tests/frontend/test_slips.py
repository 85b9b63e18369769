"""Slips of people who come from other libraries: errors of smelt that say what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.ir.errors import SmeltError

X = smelt.array([[1.0, 2.0], [3.0, 4.0]])
MODEL = nn.Linear(2, 2)


class Forward(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


class Called(Forward):
    def __call__(self, x: Any) -> Any:
        return self.forward(x) + 1


def swapped() -> None:
    gradients = {"weight": smelt.zeros((2, 2))}
    optimizers.SGD(0.1).update(gradients, MODEL)


SLIPS: dict[str, tuple[Any, str]] = {
    "sizes for a view": (lambda: X.view(4, 1), r"smelt\.view: .*x\.reshape"),
    "a size for a view": (lambda: X.view(-1), r"smelt\.view: .*x\.reshape"),
    "forward": (lambda: Forward()(X), r"Forward has no __call__, .*forward: rename it"),
    "a class as a layer": (lambda: nn.Sequential(MODEL, nn.ReLU), r"modules\[1\] is the class ReLU.*ReLU\(…\)"),
    "bools as classes": (lambda: nn.losses.cross_entropy(X, X[0] > 1), r"integers: targets\.astype\(smelt\.int32\)"),
    "gradients first": (swapped, r"SGD\.update: the module comes first, then its gradients"),
    "a model as a rate": (lambda: optimizers.Adam(MODEL, 0.1), r"learning_rate must .*given to init and update"),
    "parameters as a rate": (lambda: optimizers.SGD(MODEL.parameters()), r"learning_rate .*given to init and update"),
    "out": (lambda: np.add(X, 1, out=X), r"numpy\.add: .*assign the result"),
    "at": (lambda: np.add.at(X, 0, 1), r"numpy\.add: .*x\.at\[indices\]\.add\(values\)"),
    "dates": (lambda: smelt.array(np.array(["2020-01-01"], "M8[D]")), r"of dtype datetime64\[D\]"),
    "objects": (lambda: smelt.array(np.array(["a"], object)), "of dtype object"),
    "a generator": (lambda: smelt.array(i for i in range(3)), r"of type generator; make a list of it first"),  # type: ignore[arg-type]
    "a set": (lambda: smelt.array({1, 2}), r"of type set; make a list of it first"),  # type: ignore[arg-type]
    "a device": (lambda: smelt.array([1.0], device="cpu"), r"'device'; .*`with smelt\.stream\(device\):`"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("slip", SLIPS)
def test_the_error_says_what_to_write(slip: str) -> None:
    use, says = SLIPS[slip]
    with pytest.raises(SmeltError, match=rf"{says}[\s\S]*; at .*test_slips\.py"):
        use()


def test_what_is_called_otherwise_is_left_alone() -> None:
    assert Called()(smelt.array(1.0)).item() == 2.0
    assert not callable(nn.Module()) and callable(MODEL)
    model = {"w": smelt.ones(2)}
    optimizers.SGD(0.5).update(model, {"w": smelt.ones(2)})  # any tree with an update
    assert model["w"].tolist() == [0.5, 0.5]
    assert nn.losses.cross_entropy(X, smelt.array([0, 1], smelt.uint8)).shape == (2,)


@pytest.mark.parametrize("name", ["metal:1", "mps", "mps:0"])
def test_a_device_that_is_called_otherwise(name: str) -> None:
    missing = {d.name: d.missing for d in smelt.backends.device.registered.values()}["metal"]
    if not missing:
        pytest.skip("there is such a device")
    with pytest.raises(SmeltError, match=f"there is no device '{name}'; metal: {missing}"):
        smelt.set_default_device(name)  # type: ignore[arg-type]


def test_a_profile_shows_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    with smelt.profile(prints=False) as found:
        smelt.eval(smelt.exp(X))
    assert repr(found) == str(found) and "exp" in repr(found)
