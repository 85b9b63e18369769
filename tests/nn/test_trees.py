"""Every layer as a tree: pickled, copied, compiled, mapped over, differentiated, checkpointed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt import nn, optimizers
from smelt.utils import tree_flatten, tree_map

#: How a layer is made, and the shapes of what it takes.
LAYERS: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]]]] = {
    "Linear": (lambda: nn.Linear(4, 3), [(2, 4)]),
    "Bilinear": (lambda: nn.Bilinear(4, 3, 2), [(2, 4), (2, 3)]),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 2), [(2, 5, 3)]),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 2), [(2, 5, 4, 3)]),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2), [(1, 3, 4, 3, 2)]),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 2, stride=2), [(2, 3, 2, 3)]),
    "LayerNorm": (lambda: nn.LayerNorm(4), [(2, 4)]),
    "RMSNorm": (lambda: nn.RMSNorm(4), [(2, 4)]),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), [(2, 3, 4)]),
    "InstanceNorm": (lambda: nn.InstanceNorm(4, affine=True), [(2, 3, 4)]),
    "BatchNorm": (lambda: nn.BatchNorm(4).eval(), [(2, 4)]),
    "PReLU": (nn.PReLU, [(2, 4)]),
    "RNN": (lambda: nn.RNN(4, 3), [(2, 5, 4)]),
    "GRU": (lambda: nn.GRU(4, 3), [(2, 5, 4)]),
    "LSTM": (lambda: nn.LSTM(4, 3), [(2, 5, 4)]),
    "GRUCell": (lambda: nn.GRUCell(4, 3), [(2, 4)]),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2), [(2, 5, 4)] * 3),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(1, 4, 2, 8), [(2, 5, 4)]),
    "WeightNorm": (lambda: nn.WeightNorm(nn.Linear(4, 3)), [(2, 4)]),
    "SpectralNorm": (lambda: nn.SpectralNorm(nn.Linear(4, 3)).eval(), [(2, 4)]),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), [(2, 4, 4, 3)]),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(2), [(2, 5, 3)]),
    "Upsample": (lambda: nn.Upsample(2, "linear"), [(2, 3, 3)]),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)), [(2, 4)]),
}


def made(name: str) -> tuple[nn.Module, list[smelt.array]]:
    smelt.random.seed(0)
    make, shapes = LAYERS[name]
    return make(), [smelt.random.normal(shape) for shape in shapes]


def call(layer: nn.Module, inputs: list[smelt.array]) -> smelt.array:
    mask = [None] if isinstance(layer, nn.TransformerEncoder) else []
    found = layer(*inputs, *mask)  # type: ignore[operator]
    return found[0] if isinstance(found, tuple) else found


def near(a: Any, b: Any) -> None:
    (left, structure), (right, other) = (tree_flatten(a), type(a)), (tree_flatten(b), type(b))
    assert structure is other and [path for path, _ in left] == [path for path, _ in right]
    for (path, x), (_, y) in zip(left, right):
        if isinstance(x, smelt.array):
            assert smelt.allclose(x, y, rtol=1e-4, atol=1e-5).item(), path


@pytest.mark.parametrize("name", LAYERS)
def test_copies(name: str) -> None:
    layer, inputs = made(name)
    wanted = call(layer, inputs)
    mapped = tree_map(lambda x: x, layer)
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer), copy.copy(layer), mapped):
        # A tree's dicts are in the order of their keys.
        assert type(other) is type(layer) and sorted(repr(other).split("\n")) == sorted(repr(layer).split("\n"))
        assert other.training == layer.training
        near(other.parameters(), layer.parameters())
        near(other.trainable_parameters(), layer.trainable_parameters())
        near([call(other, inputs)], [wanted])


@pytest.mark.parametrize("name", LAYERS)
def test_transformations(name: str) -> None:
    layer, inputs = made(name)

    def loss(layer: nn.Module, inputs: list[smelt.array]) -> smelt.array:
        return (call(layer, inputs) ** 2).sum()

    value, (own, below) = smelt.value_and_grad(loss, (0, 1))(layer, inputs)
    near([smelt.compile(loss)(layer, inputs)], [value])
    near(list(smelt.compile(smelt.grad(loss, (0, 1)))(layer, inputs)), [own, below])
    near(list(smelt.grad(smelt.checkpoint(loss), (0, 1))(layer, inputs)), [own, below])
    near([call(nn.utils.checkpoint(layer) if layer.parameters() and "Encoder" not in name else layer, inputs)],
         [call(layer, inputs)])  # fmt: skip
    if tree_flatten(layer.trainable_parameters()):
        near([nn.value_and_grad(layer, lambda inputs: loss(layer, inputs))(inputs)[0]], [value])
    # A batch of inputs, and a batch of layers.
    doubled = [smelt.stack([x, 2 * x]) for x in inputs]
    near([smelt.vmap(lambda xs: call(layer, xs))(doubled)],
         [smelt.stack([call(layer, inputs), call(layer, [2 * x for x in inputs])])])  # fmt: skip
    if tree_flatten(layer.parameters()):
        twins = tree_map(lambda x: smelt.stack([x, x]) if isinstance(x, smelt.array) else x, layer)
        near([smelt.vmap(lambda l: call(l, inputs))(twins)], [smelt.stack([call(layer, inputs)] * 2)])


class Tied(nn.Module):
    """One array in two places, a module in two places, state that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.inner = nn.Linear(4, 4)
        self.again = [self.inner, {"norm": nn.BatchNorm(4)}]
        self._seen: list[smelt.array] = []

    def __call__(self, x: smelt.array) -> smelt.array:
        found = smelt.tanh(self.again[0](self.inner(self.embedding(x))))
        found = self.again[1]["norm"](found)
        if len(self._seen) < 2:
            self._seen.append(smelt.mean(found))
        return self.embedding.as_linear(found)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Lion", "Adafactor", "Muon", "NAdam", "LAMB", "RMSprop"])
def test_compiled_training_is_plain_training(name: str) -> None:
    """Whole steps with all state captured, as modules share layers, and lists grow."""
    x, y = smelt.array([0, 1, 2, 3]), smelt.array([1, 2, 3, 4])
    found = []
    for compiled in (False, True):
        smelt.random.seed(0)
        model = Tied()
        optimizer = getattr(optimizers, name)(0.05)
        optimizer.init(model.trainable_parameters())
        loss = lambda x, y, model=model: nn.losses.cross_entropy(model(x), y, reduction="mean")  # noqa: E731
        run = nn.value_and_grad(model, loss)
        state = [model.state, optimizer.state]

        def step(x: smelt.array, y: smelt.array, parts: Any = (run, optimizer, model)) -> smelt.array:
            run, optimizer, model = parts
            value, gradients = run(x, y)
            optimizer.update(model, gradients)
            return value

        if compiled:
            plain = step
            step = smelt.compile(lambda x, y, plain=plain: plain(x, y), inputs=state, outputs=state)
        values = [step(x, y).item() for _ in range(4)]
        assert model.again[0] is model.inner
        assert len(model._seen) == 2
        assert values[-1] < values[0]
        found.append((values, model.again[1]["norm"].running_mean.tolist()))
    for a, b in zip(*found):
        assert a == pytest.approx(b, rel=2e-3, abs=1e-4)


class Normal:
    """No tree, but it holds arrays."""

    def __init__(self, mean: float) -> None:
        self.mean = smelt.array(mean)


class WithObject(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = smelt.array(1.0)
        self.base = Normal(2.0)

    def __call__(self, x: smelt.array) -> smelt.array:
        return (x - self.base.mean) * self.shift


def test_arrays_of_objects_in_modules_are_constants_that_are_seen() -> None:
    model, x = WithObject(), smelt.array(5.0)
    assert [path for path, _ in tree_flatten(model.parameters())] == ["shift"]
    whole, captured = smelt.compile(lambda model, x: model(x)), smelt.compile(lambda x: model(x), inputs=model.state)
    for _ in range(2):
        assert whole(model, x).item() == captured(x).item() == 3
    assert smelt.grad(lambda model: model(x))(model).shift.item() == 3
    model.base.mean = smelt.array(4.0)
    assert whole(model, x).item() == captured(x).item() == 1
    model.base.mean -= 1  # the same handle, with another value
    assert whole(model, x).item() == captured(x).item() == 2
    model.base = Normal(0.0)
    assert whole(model, x).item() == captured(x).item() == 5
    model.shift = smelt.array(2.0)
    assert whole(model, x).item() == captured(x).item() == 10
    assert smelt.vmap(model)(smelt.array([1.0, 2.0])).tolist() == [2, 4]
    assert pickle.loads(pickle.dumps(model))(x).item() == 10
