"""Layers with packed weights, beside the layers that they are made from."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> smelt.array:
    return smelt.array(RNG.standard_normal(shape).astype(np.float32))


FORMS: list[dict] = [{}, {"bits": 3, "group_size": 32}, {"mode": "mxfp4"}, {"mode": "mxfp8"}, {"mode": "nvfp4"}]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_linear(form: dict, bias: bool) -> None:
    layer, x = nn.Linear(64, 5, bias), numbers(3, 64)
    packed = layer.to_quantized(**form)
    weight = smelt.dequantize(*packed._parts(), **packed._format, dtype=smelt.float32)
    want = x @ weight.T + (layer.bias if bias else 0)
    np.testing.assert_allclose(np.array(packed(x)), np.array(want), atol=1e-5)
    np.testing.assert_allclose(np.array(packed(x)), np.array(layer(x)), atol=0.6)
    assert list(packed.trainable_parameters()) == ["bias"] * bias
    assert not layer.freeze().to_quantized(**form).trainable_parameters()
    compiled = smelt.compile(packed)
    np.testing.assert_allclose(np.array(compiled(x)), np.array(want), atol=1e-5)


def test_scales_that_are_trained() -> None:
    """What was chosen inside of a model, through it and by the layer, as it is done to distil a quantized model."""
    model, x = nn.Sequential(nn.Linear(64, 5), nn.BatchNorm(5)), numbers(3, 64)
    nn.quantize(model)
    model.freeze()
    for layer in model.modules():
        if hasattr(layer, "bits"):
            layer.unfreeze(keys=["scales", "biases"], recurse=False)

    def loss(x: smelt.array) -> smelt.array:
        return (model.layers[0](x) ** 2).sum()

    found = nn.value_and_grad(model, loss)(x)[1]["layers"][0]
    assert sorted(found) == ["biases", "scales"]
    residual = 2 * model.layers[0](x)
    want = smelt.grad(lambda b: (residual * (x @ smelt.repeat(b, 64, axis=1).T)).sum())(model.layers[0].biases)
    np.testing.assert_allclose(np.array(found["biases"]), np.array(want), rtol=1e-4)


@pytest.mark.parametrize("form", [{}, {"bits": 8}, {"mode": "mxfp4"}])
def test_embedding(form: dict) -> None:
    layer = nn.Embedding(10, 64)
    packed = layer.to_quantized(**form)
    table = np.array(smelt.dequantize(*packed._parts(), **packed._format).astype(smelt.float32))
    for at in (3, [1, 9], [[0], [4]]):
        found = packed(smelt.array(at)).astype(smelt.float32)
        np.testing.assert_array_equal(np.array(found), table[np.array(at)])
    for at in (3, -1, [1, 9], [[0], [4]], slice(2, 5), None, range(3), np.array([2, 0])):  # what `Embedding` takes
        found = packed(at).astype(smelt.float32)
        np.testing.assert_array_equal(np.array(found), table[list(at) if isinstance(at, range) else at])
        assert layer(at).shape == found.shape
    x = numbers(2, 64)
    np.testing.assert_allclose(np.array(packed.as_linear(x)), np.array(x) @ table.T, atol=1e-4)


def test_both_sides() -> None:
    layer, x = nn.QQLinear(64, 5, mode="mxfp8"), numbers(3, 64)
    before, weight = layer(x), layer.weight
    assert "weight" in layer.trainable_parameters()
    layer.quantize()
    layer.quantize()
    assert layer.weight.dtype is smelt.uint32 and not layer.trainable_parameters()
    np.testing.assert_allclose(np.array(layer(x)), np.array(before), atol=1e-5)
    layer.dequantize()
    np.testing.assert_allclose(np.array(layer.weight.astype(smelt.float32)), np.array(weight), rtol=0.07, atol=1e-3)
    assert "weight" in layer.trainable_parameters() and "scales" not in layer
    gradient = nn.value_and_grad(layer, lambda x: layer(x).sum())(x)[1]
    assert gradient["weight"].shape == (5, 64)
    model = nn.Sequential(layer).eval()
    assert layer.weight.dtype is smelt.uint32
    assert model.train() is model and layer.weight.dtype is smelt.bfloat16 and layer.trainable_parameters()
    layer.freeze().eval().train()
    assert not layer.trainable_parameters()
    assert nn.QQLinear.from_linear(nn.Linear(64, 4, bias=False).eval()).weight.dtype is smelt.uint32


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 64)
        self.layers = [nn.Linear(64, 64), nn.Linear(64, 4, bias=False)]
        self.norm = nn.RMSNorm(64)

    def __call__(self, x: smelt.array) -> smelt.array:
        return self.layers[1](self.norm(nn.relu(self.layers[0](self.words(x)))))


def test_models() -> None:
    model, x = Network(), smelt.array([[1, 2, 6]])
    before = model(x)
    nn.quantize(model, 32, 8)
    kinds = [type(m).__name__ for _, m in model.named_modules()]
    assert sorted(kinds) == ["Network", "QuantizedEmbedding", "QuantizedLinear", "QuantizedLinear", "RMSNorm"]
    np.testing.assert_allclose(np.array(model(x)), np.array(before), atol=0.1)
    trained = [path for path, _ in smelt.utils.tree_flatten(model.trainable_parameters())]
    assert trained == ["layers.0.bias", "norm.weight"]
    other = Network()
    nn.quantize(other, 32, 8)
    file = io.BytesIO()
    smelt.savez(file, **dict(smelt.utils.tree_flatten(model.parameters())))
    file.seek(0)
    other.load_weights(list(smelt.load(file, format="npz").items()))
    np.testing.assert_array_equal(np.array(other(x)), np.array(model(x)))
    np.testing.assert_array_equal(np.array(pickle.loads(pickle.dumps(model))(x)), np.array(model(x)))
    step = nn.value_and_grad(model, lambda x: (model(x) ** 2).sum())
    assert step(x)[1]["norm"]["weight"].shape == (64,)


def test_chosen_layers() -> None:
    model = Network()
    asked = []

    def choose(path: str, module: nn.Module) -> bool | dict:
        asked.append(path)
        return {"bits": 2, "group_size": 64, "mode": "affine"} if path == "layers.1" else path == "words"

    nn.quantize(model, bits=8, class_predicate=choose)
    assert sorted(asked) == ["layers.0", "layers.1", "norm", "words"]
    assert model.layers[1].bits == 2 and model.words.bits == 8 and type(model.layers[0]) is nn.Linear
    both = nn.Sequential(nn.Linear(64, 4, bias=False))
    nn.quantize(both, mode="nvfp4", quantize_input=True)
    assert type(both.layers[0]) is nn.QQLinear


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: nn.quantize(nn.Sequential(nn.Linear(60, 4))), ShapeError, "groups of 64"),
        (lambda: nn.QuantizedLinear(64, 4, bits=7), AttributeValueError, r"nn\.QuantizedLinear: bits of mode 'affine'"),
        (lambda: nn.quantize(nn.Sequential(nn.Embedding(4, 64)), quantize_input=True), AttributeValueError, "integers"),
        (lambda: nn.QQLinear.from_linear(nn.Linear(64, 4)), AttributeValueError, "has a bias"),
        (
            lambda: nn.quantize(Network(), class_predicate=lambda path, module: path == "norm"),
            AttributeValueError, "'norm', a RMSNorm, which cannot be quantized",
        ),
        (
            lambda: nn.quantize(Network(), class_predicate=lambda path, module: 3),
            ArgumentTypeError, "must return a bool or a dict",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_users_line(call, error, message) -> None:
    with pytest.raises(error, match=message) as info:
        call()
    assert "test_quantized.py" in str(info.value)


def test_layers_that_take_weights_draw_random_numbers_as_in_mlx() -> None:
    """What is drawn after a model has been quantized, parameters of adapters say, is MLX's too."""
    linear, embedding = nn.Linear(64, 64, bias=False), nn.Embedding(64, 64)
    for take, build in (
        (lambda: nn.QuantizedLinear.from_linear(linear), lambda: nn.QuantizedLinear(64, 64)),
        (lambda: nn.QuantizedEmbedding.from_embedding(embedding), lambda: nn.QuantizedEmbedding(64, 64)),
        (lambda: nn.QQLinear.from_linear(linear), lambda: nn.QQLinear(64, 64)),
        (lambda: nn.AllToShardedLinear.from_linear(linear), lambda: nn.AllToShardedLinear(64, 64, bias=False)),
    ):
        drawn = []
        for make in (take, build):
            smelt.random.seed(5)
            kind = type(make())
            drawn.append(smelt.random.uniform(shape=(2,)).tolist())
        assert drawn[0] == drawn[1], kind


def test_parameters_have_the_order_of_mlx() -> None:
    """That of the state of optimizers, too, and of what is summed over all gradients."""
    made = nn.QuantizedLinear(64, 8)
    for layer in made, nn.Linear(64, 8).to_quantized():
        assert list(layer.parameters()) == ["weight", "scales", "biases", "bias"]
    assert not made.trainable_parameters() and list(made.unfreeze(keys="scales").trainable_parameters()) == ["scales"]
