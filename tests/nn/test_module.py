"""`Module`: what it holds, what can be done to it, and as an argument of the transformations."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.utils import tree_flatten, tree_map, tree_unflatten

pytestmark = pytest.mark.tier("ops")


class Nested(nn.Module):
    """Every kind of entry."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.layers = [nn.ReLU(), nn.Linear(3, 3), nn.Sequential(nn.Dropout(0.5))]
        self.scale = smelt.ones(3)
        self.by_name = {"shift": smelt.zeros(3), "norm": nn.LayerNorm(3)}
        self.pair = (smelt.zeros(1), nn.Tanh())
        self._cache = smelt.zeros(7)
        self.size = 3
        self.name = "nested"

    def __call__(self, x: smelt.array) -> smelt.array:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.by_name["norm"](x * self.scale + self.by_name["shift"])


def paths(tree: Any) -> set[str]:
    return {path for path, x in tree_flatten(tree) if isinstance(x, smelt.array)}


OWN = {"scale", "by_name.shift", "by_name.norm.weight", "by_name.norm.bias"}
LINEAR = {"first.weight", "first.bias", "layers.1.weight", "layers.1.bias"}


def test_what_it_holds() -> None:
    model = Nested()
    assert paths(model.parameters()) == OWN | LINEAR == paths(model.trainable_parameters())
    assert set(model.children()) == {"first", "layers", "by_name"}
    assert [p for p, _ in model.named_modules()] == [
        "", "by_name.norm", "layers.2", "layers.2.layers.0", "layers.1", "layers.0", "first",
    ]  # fmt: skip
    assert len(model.modules()) == 7 and model.modules()[0] is model
    assert [type(m).__name__ for m in model.leaf_modules()["layers"][:2]] == ["ReLU", "Linear"]
    assert set(model) == {"first", "layers", "scale", "by_name", "pair", "_cache"}
    assert model.state is model and model.training
    assert "parameters" not in model and model.size == 3
    assert repr(model).splitlines() == [
        "Nested(",
        "  (first): Linear(input_dims=2, output_dims=3, bias=True)",
        "  (layers.0): ReLU()",
        "  (layers.1): Linear(input_dims=3, output_dims=3, bias=True)",
        "  (layers.2): Sequential(",
        "    (layers.0): Dropout(p=0.5)",
        "  )",
        "  (by_name.norm): LayerNorm(3, eps=1e-05, affine=True)",
        ")",
    ]


def test_attributes() -> None:
    model = Nested()
    with pytest.raises(AttributeError, match=r"Nested has no attribute 'other'; at .*test_module.py"):
        model.other  # noqa: B018
    model.scale = None
    assert "scale" not in model and model.scale is None
    model.scale = smelt.ones(2)
    assert model["scale"] is model.scale and "scale" not in vars(model)
    del model.scale
    del model.size
    assert not hasattr(model, "scale") and not hasattr(model, "size")

    class Bare(nn.Module):  # which does not call the constructor of its base
        def __init__(self) -> None:
            self.w = smelt.zeros(1)

    assert paths(Bare().freeze().parameters()) == {"w"} and not Bare().freeze().trainable_parameters()


def test_freezing() -> None:
    model = Nested().freeze(keys="weight")
    assert paths(model.trainable_parameters()) == {p for p in OWN | LINEAR if not p.endswith("weight")}
    assert paths(model.unfreeze().trainable_parameters()) == OWN | LINEAR
    assert not paths(model.freeze().trainable_parameters())
    model.first.unfreeze(keys=["bias"])
    assert paths(model.trainable_parameters()) == {"first.bias"}
    model.unfreeze(recurse=False)
    assert paths(model.trainable_parameters()) == {"first.bias", "scale", "by_name.shift"}
    with pytest.raises(KeyError) as error:
        model.freeze(keys="weight", strict=True)
    assert isinstance(error.value, smelt.SmeltError)
    assert re.match(r"Nested has no 'weight' to freeze; at .*test_module.py", str(error.value))
    twin = tree_map(lambda x: x, model)
    twin.freeze()
    assert paths(model.trainable_parameters()) and not paths(twin.trainable_parameters())


def test_training_and_evaluation() -> None:
    model = Nested().eval()
    assert not any(m.training for m in model.modules())
    x = smelt.ones((1, 2))
    assert smelt.array_equal(model(x), model(x)).item()
    assert all(m.training for m in model.train().modules())
    model.layers[2].train(False)
    assert model.training and not model.layers[2].layers[0].training


def test_changing() -> None:
    model = Nested()
    bias = model.first.bias
    assert model.update({"scale": smelt.zeros(3), "layers": [{}, {"bias": smelt.ones(3)}]}) is model
    assert model.layers[1].bias.tolist() == [1.0] * 3 and model.scale.tolist() == [0.0] * 3
    assert model.first.bias is bias
    model.apply(lambda x: x + 1, lambda module, key, value: key == "scale")
    assert model.scale.tolist() == [1.0] * 3 and model.first.bias is bias
    model.set_dtype(smelt.float16)
    assert {x.dtype for _, x in tree_flatten(model.parameters())} == {smelt.float16}
    model.update_modules({"layers": [nn.Tanh()], "by_name": {"norm": nn.Identity()}})
    assert isinstance(model.layers[0], nn.Tanh) and isinstance(model.by_name["norm"], nn.Identity)
    model.update({"nothing": smelt.zeros(3), "layers": [{}] * 9}, strict=False)
    model.update_modules({"nothing": nn.Tanh(), "scale": nn.Tanh()}, strict=False)
    assert "nothing" not in model


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.update({"first": {"wight": smelt.zeros(2)}}), "Nested has no parameter first.wight"),
        (lambda m: m.update({"layers": [{}, {}, {}, {"w": smelt.zeros(1)}]}), r"Nested has no parameter layers\.3"),
        (lambda m: m.update({"first": {"bias": 3.0}}), "Nested: first.bias is an array, got a float for it"),
        (lambda m: m.update({"first": smelt.zeros(2)}), "Nested: first is a Linear, got an array for it"),
        (lambda m: m.update_modules({"first": {"inner": nn.Tanh()}}), "Nested has no module first.inner"),
        (lambda m: m.update_modules({"scale": nn.Linear(1, 1)}), "Nested: scale is an array, got a Linear for it"),
        (lambda m: m.load_weights([("first.bias", np.zeros(3))], strict=False),
         "Nested: first.bias must be a smelt.array, is a ndarray"),
        (lambda m: m.load_weights([("first.bias", smelt.zeros(3))]),
         r"Nested: Missing \d+ parameters: by_name.norm.bias, "),
        (lambda m: m.load_weights([*tree_flatten(m.parameters()), ("more", smelt.zeros(3))]),
         "Nested: Received 1 parameters not in model: more; strict=False"),
        (lambda m: m.load_weights([*tree_flatten(m.parameters()), ("first.bias", smelt.zeros(4))]),
         r"Expected shape \(3,\) but received shape \(4,\) for parameter first.bias, which is f32\[3\]"),
        (lambda m: m.save_weights("weights.bin"), "saved as .npz or .safetensors, not as weights.bin"),
        (lambda m: m.filter_and_map(lambda *_: True, is_leaf_fn=lambda *_: False), "which is no leaf"),
    ],
)  # fmt: skip
def test_errors_name_the_path(change: Any, message: str) -> None:
    model = Nested()
    before = dict(tree_flatten(model.parameters()))
    with pytest.raises((smelt.SmeltError), match=message) as caught:
        change(model)
    assert "test_module.py" in str(caught.value)
    assert all(before[path] is x for path, x in tree_flatten(model.parameters()))


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_files(tmp_path: Path, suffix: str) -> None:
    model, other = Nested().set_dtype(smelt.bfloat16), Nested()
    model.save_weights(tmp_path / f"w.{suffix}")
    other.load_weights(str(tmp_path / f"w.{suffix}"))
    for (path, x), (_, y) in zip(tree_flatten(model.parameters()), tree_flatten(other.parameters())):
        assert x.dtype is y.dtype is smelt.bfloat16 and smelt.array_equal(x, y).item(), path
    other.first.load_weights([("bias", smelt.zeros(3))], strict=False)
    assert other.first.bias.tolist() == [0.0] * 3


@pytest.mark.parametrize("twin", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "copy"])
def test_copies(twin: Any) -> None:
    model = Nested().eval()
    model.first.freeze()
    other = twin(model)
    x = smelt.ones((1, 2))
    assert smelt.array_equal(model(x), other(x)).item()
    assert paths(other.trainable_parameters()) == paths(model.trainable_parameters())
    assert repr(other) == repr(model) and other.size == 3 and not other.training
    other.scale = smelt.zeros(3)
    assert model.scale.tolist() == [1.0] * 3


def test_summary() -> None:
    model = Nested()
    model.first.freeze(keys="bias")
    lines = model.summary().splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == [
        "first", "layers.0", "layers.1", "layers.2", "layers.2.layers.0", "by_name.norm",
    ]  # fmt: skip
    assert "weight f32[3,2], (bias f32[3])" in lines[2] and lines[2].split()[-2:] == ["9", "36"]
    assert "30 elements trained of 33" in lines[-1] and lines[-1].split()[-2:] == ["33", "132"]


# As an argument of the transformations


def test_gradients_are_trees_like_the_trainable_parameters() -> None:
    model = Nested().eval()
    model.first.freeze(keys="bias")
    x = smelt.array([[1.0, 2.0]])
    value, gradients = nn.value_and_grad(model, lambda x: (model(x) ** 2).sum())(x)
    assert paths(gradients) == paths(model.trainable_parameters())
    whole = smelt.grad(lambda m: (m(x) ** 2).sum())(model)
    assert type(whole) is Nested and value.item() > 0
    for path, gradient in tree_flatten(gradients):
        assert smelt.allclose(gradient, dict(tree_flatten(whole))[path]).item(), path


def test_value_and_grad_leaves_the_model_as_it_was() -> None:
    model = nn.Linear(2, 1)
    before = dict(model)
    nn.value_and_grad(model, lambda: model.weight.sum())()
    assert all(model[k] is x for k, x in before.items())

    def fails() -> smelt.array:
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        nn.value_and_grad(model, fails)()
    assert all(model[k] is x for k, x in before.items())
    (value, extra), _ = nn.value_and_grad(model, lambda: (model.weight.sum(), {"more": smelt.ones(2)}))()
    assert value.ndim == 0 and extra["more"].shape == (2,)
    with pytest.raises(smelt.SmeltError, match="no parameter of Linear is trainable"):
        nn.value_and_grad(model.freeze(), lambda: model.weight.sum())()
    with pytest.raises(smelt.SmeltError, match="needs a module, got a dict"):
        nn.value_and_grad({}, lambda: 0)  # type: ignore[arg-type]


def test_state_that_a_differentiated_function_changes() -> None:
    norm = nn.BatchNorm(2, momentum=1.0)
    x = smelt.array([[1.0, 2.0], [3.0, 6.0]])
    nn.value_and_grad(norm, lambda x: norm(x).sum())(x)
    assert norm.running_mean.tolist() == [2.0, 4.0]
    norm.extra = [smelt.zeros(1)]

    def grows() -> smelt.array:
        norm.extra.append(norm.weight.sum())
        norm.count = smelt.ones(1)
        return norm.weight.sum()

    nn.value_and_grad(norm, grows)()
    assert norm.extra[1].item() == 2.0 and norm.count.tolist() == [1.0]


def test_a_model_under_every_transformation() -> None:
    model = Nested().eval()
    x = smelt.array([[1.0, 2.0], [3.0, -1.0]])
    plain = model(x)
    assert smelt.allclose(smelt.compile(model)(x), plain, atol=1e-5).item()
    assert smelt.allclose(smelt.compile(lambda m, x: m(x))(model, x), plain, atol=1e-5).item()
    assert smelt.allclose(smelt.vmap(model)(x[:, None])[:, 0], plain, atol=1e-5).item()
    assert smelt.allclose(nn.utils.checkpoint(model)(x), plain, atol=1e-5).item()
    twins = [nn.Linear(2, 3) for _ in range(4)]
    stacked = tree_map(lambda *xs: smelt.stack(xs), *twins)
    found = smelt.vmap(lambda m, x: m(x), in_axes=(0, None))(stacked, x)
    for one, result in zip(twins, found):
        assert smelt.allclose(result, one(x)).item()


def test_checkpoints_have_gradients() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    x = smelt.array([[1.0, 2.0]])
    block = nn.utils.checkpoint(model)
    value, gradients = nn.value_and_grad(model, lambda x: block(x).sum())(x)
    wanted, others = nn.value_and_grad(model, lambda x: model(x).sum())(x)
    assert value.item() == wanted.item()
    for (path, g), (_, w) in zip(tree_flatten(gradients), tree_flatten(others)):
        assert smelt.allclose(g, w).item(), path
    doubled = nn.utils.checkpoint(model, lambda x: 2 * model(x))
    assert doubled(x).item() == pytest.approx(2 * model(x).item())


def test_compiled_state() -> None:
    """Nested modules, state that grows, one array in two places."""
    model = Nested().eval()
    model.tied = model.first.weight

    @smelt.compile(inputs=model.state, outputs=model.state)
    def step(x: smelt.array) -> smelt.array:
        found = model(x)
        model.scale = model.scale + 1
        model._cache = found
        return found

    x = smelt.ones((1, 2))
    for i in range(3):
        wanted = model(x)
        assert smelt.allclose(step(x), wanted, atol=1e-6).item()
        assert model.scale.tolist() == [2.0 + i] * 3 and model._cache.shape == (1, 3)
    assert smelt.array_equal(model.tied, model.first.weight).item()
    model.extra = smelt.zeros(2)
    step(x)
    assert model.extra.tolist() == [0.0, 0.0]


class Numbered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for i, layer in enumerate([nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 2)]):
            self[str(i)] = layer


@pytest.mark.parametrize("strict", [True, False])
def test_numbered_children_take_the_lists_that_their_names_unflatten_to(strict: bool) -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mlp = Numbered()

    model = Holder()
    flat = [(name, smelt.full(x.shape, 3.0)) for name, x in tree_flatten(model.parameters())]
    assert {name.split(".")[1] for name, _ in flat} == {"0", "2"}
    model.update(tree_unflatten(flat), strict=strict)
    assert all(smelt.array_equal(x, smelt.full(x.shape, 3.0)) for _, x in tree_flatten(model.parameters()))
    model.load_weights([(name, x + 1) for name, x in flat], strict=strict)
    assert model.mlp["2"].weight[0, 0].item() == 4.0
    with pytest.raises(ValueError, match=r"mlp\.3"):
        model.update({"mlp": [{}, {}, {}, {"weight": smelt.zeros(1)}]})
