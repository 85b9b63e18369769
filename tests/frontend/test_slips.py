"""Slips of people who come from other libraries: errors of smelt that say what to write instead."""

from __future__ import annotations

from io import BytesIO
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

    @property
    def size(self) -> Any:
        return self.sise


class Table:
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.array([["a", 1], ["b", 2]], object)

    def __repr__(self) -> str:
        return str(self.__array__())


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
    "axes one by one": (lambda: X.sum(0, 1), r"smelt\.sum: keepdims must be a bool, is 1; several axes are one tuple"),  # type: ignore[arg-type]
    "arrays one by one": (lambda: smelt.concatenate(X, X), r"concatenate: an axis is .*; several arrays are one list"),  # type: ignore[arg-type]
    "a table of texts": (lambda: smelt.array(Table()), r"of \[\['a' 1\] \['b' 2\]\], of type Table.* dtype object"),  # type: ignore[arg-type]
    "a dict": (lambda: smelt.array({"a": X}), r"of \{'a': an array f32\[2,2\]\}, of type dict"),  # type: ignore[arg-type]
    "a dict to save": (lambda: smelt.save("x", {"a": X}), r"save: .*smelt\.savez\(file, \*\*dict\("),  # type: ignore[arg-type]
    "a dict for savez": (lambda: smelt.savez("x", {"a": X}), r"savez: .*smelt\.savez\(file, \*\*dict\("),  # type: ignore[arg-type]
    "a dict in a dict": (lambda: smelt.save_safetensors("x", {"a": {"b": X}}), r"needs arrays, .*dict\(.*tree_flatten"),  # type: ignore[dict-item]
    "text to load": (lambda: smelt.load(BytesIO(b"a,b\n1,2\n")), r"does not begin as a \.npy, .*numpy\.loadtxt"),
    "an integer": (lambda: smelt.grad(smelt.sin)(1), r"an int; pass smelt\.array\(x, smelt\.float32\)"),  # type: ignore[arg-type]
    "a NumPy loss": (lambda: smelt.grad(lambda x: np.asarray(x).sum())(X), r"returned a float32, .*smelt's"),
    "a format": (lambda: smelt.compile(lambda x: f"{x.sum():.2f}")(X), r"traced array .* was asked for by a format"),
    "a pair as gradients": (lambda: optimizers.SGD(1).update(MODEL, (X, {})), r"gradients is a tuple .*gives \(value,"),
    "an array for a layer": (lambda: nn.ReLU(X), r"ReLU: too many positional arguments; its parameters are none"),  # type: ignore[call-arg]
    "an axis for a layer": (lambda: nn.Softmax(dim=1), r"Softmax: got an unexpected keyword argument 'dim'"),  # type: ignore[call-arg]
    "a name misspelt": (lambda: MODEL.weigth, r"Linear has no attribute 'weigth'; did you mean weight\?"),
    "in a property": (lambda: Called().size, r"Called has no attribute 'sise'"),
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


def test_numbers_behind_an_axis_are_no_flags() -> None:
    smelt.sum(X, 0, True)  # a recipe of which 1 must not be taken for True
    for f in (smelt.sum, smelt.max, smelt.all, smelt.mean, smelt.argmax, smelt.logsumexp, smelt.median):
        with pytest.raises(SmeltError, match="must be a bool, is 1; several axes are one tuple"):
            f(X, 0, 1)  # type: ignore[arg-type]
    assert smelt.sum(X, 0, keepdims=1).shape == (1, 2)  # type: ignore[arg-type]
    assert smelt.sum(X, 0, np.bool_(True)).shape == (1, 2)  # type: ignore[arg-type]


def test_what_a_trace_left_behind_is_explained_alike() -> None:
    kept = []

    @smelt.compile
    def f(x: smelt.array) -> smelt.array:
        kept.append(x)
        return x

    f(X)
    uses = (lambda: kept[0].tolist(), lambda: smelt.grad(lambda x: (x * kept[0]).sum())(X),
            lambda: smelt.compile(lambda x: x * kept[0])(X))  # fmt: skip
    for use in uses:
        with pytest.raises(SmeltError, match=r"traced a function that has returned since.*compile\(\.\.\., inputs="):
            use()


def test_a_profile_shows_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    with smelt.profile(prints=False) as found:
        smelt.eval(smelt.exp(X))
    assert repr(found) == str(found) and "exp" in repr(found)
