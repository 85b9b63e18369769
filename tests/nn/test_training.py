"""Models that train: lazily, compiled and op by op with the same losses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.ir.errors import TreeError
from smelt.ir.settings import settings


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(4, 16), nn.Linear(16, 3)]
        self.norm = nn.LayerNorm(16)
        self.dropout = nn.Dropout(0.1)

    def __call__(self, x: smelt.array) -> smelt.array:
        return self.layers[1](self.dropout(nn.gelu(self.norm(self.layers[0](x)))))


def classification() -> tuple[nn.Module, list[smelt.array], Callable[..., smelt.array]]:
    model = Classifier()
    x = smelt.random.normal((64, 4))
    labels = smelt.argmax(x[:, :3] + x[:, 1:], axis=1)

    def loss(x: smelt.array, labels: smelt.array) -> smelt.array:
        return nn.losses.cross_entropy(model(x), labels, reduction="mean")

    return model, [x, labels], loss


class Writer(nn.Module):
    """A small transformer that predicts the next of a sequence of characters."""

    def __init__(self, size: int, dims: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, dims)
        self.position = nn.SinusoidalPositionalEncoding(dims)
        self.encoder = nn.TransformerEncoder(2, dims, num_heads=2, dropout=0.1, activation=nn.gelu)

    def __call__(self, x: smelt.array) -> smelt.array:
        found = self.embedding(x) + self.position(smelt.arange(x.shape[1]))
        return self.embedding.as_linear(self.encoder(found, "causal"))


class Reader(nn.Module):
    """A recurrent network that says whether a sequence has a positive sum."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layers = [kind(2, 8), nn.Linear(8, 1)]

    def __call__(self, x: smelt.array) -> smelt.array:
        states = self.layers[0](x)
        return self.layers[1]((states[0] if isinstance(states, tuple) else states)[:, -1])[:, 0]


class Pictures(nn.Module):
    """Convolutions, running means and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, stride=2),
            nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2), lambda x: x.reshape(x.shape[0], -1), nn.Linear(8, 2),
        )  # fmt: skip

    def __call__(self, x: smelt.array) -> smelt.array:
        return self.layers(x)


def writing() -> tuple[nn.Module, list[smelt.array], Callable[..., smelt.array]]:
    model = Writer(7, 16)
    text = smelt.array(np.arange(4 * 9).reshape(4, 9) * 3 % 7)

    def loss(text: smelt.array) -> smelt.array:
        return nn.losses.cross_entropy(model(text[:, :-1]), text[:, 1:], reduction="mean")

    return model, [text], loss


def reading(kind: Any) -> Callable[..., Any]:
    def task() -> tuple[nn.Module, list[smelt.array], Callable[..., smelt.array]]:
        model = Reader(kind)
        x = smelt.random.normal((32, 6, 2))
        positive = (x.sum(axis=(1, 2)) > 0).astype(smelt.float32)

        def loss(x: smelt.array, positive: smelt.array) -> smelt.array:
            return nn.losses.binary_cross_entropy(model(x), positive)

        return model, [x, positive], loss

    return task


def seeing() -> tuple[nn.Module, list[smelt.array], Callable[..., smelt.array]]:
    model = Pictures()
    x = smelt.random.normal((16, 12, 12, 1))
    labels = (x[:, :6].sum(axis=(1, 2, 3)) > x[:, 6:].sum(axis=(1, 2, 3))).astype(smelt.int32)

    def loss(x: smelt.array, labels: smelt.array) -> smelt.array:
        return nn.losses.cross_entropy(model(x), labels, label_smoothing=0.1, reduction="mean")

    return model, [x, labels], loss


TASKS = {
    "classification": classification,
    "writing": writing,
    "reading by RNN": reading(nn.RNN),
    "reading by GRU": reading(nn.GRU),
    "reading by LSTM": reading(nn.LSTM),
    "seeing": seeing,
}


def trained(task: str, optimizer: optimizers.Optimizer, how: str, steps: int) -> list[float]:
    smelt.random.seed(4)
    model, data, loss = TASKS[task]()
    smelt.eval(model.state, data)
    loss_and_gradients = nn.value_and_grad(model, loss)

    def step(*data: smelt.array) -> smelt.array:
        value, gradients = loss_and_gradients(*data)
        gradients, _ = optimizers.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return value

    state: list[Any] = [model.state, optimizer.state, smelt.random.state]
    if how == "compiled":
        optimizer.init(model.trainable_parameters())
        step = smelt.compile(step, inputs=state, outputs=state)
    settings.tier = "ops" if how == "ops" else "program"
    losses = []
    for _ in range(steps):
        value = step(*data)
        smelt.eval(state)
        losses.append(value.item())
    return losses


@pytest.mark.parametrize("task", TASKS)
def test_the_ways_to_train_agree(task: str) -> None:
    steps = 12
    rate = optimizers.join_schedules(
        [optimizers.linear_schedule(0.0, 2e-2, 3), optimizers.cosine_decay(2e-2, 20)], [3]
    )
    found = {how: trained(task, optimizers.AdamW(rate), how, steps) for how in ("ops", "compiled", "lazy")}
    assert found["ops"][-1] < 0.95 * found["ops"][0]
    np.testing.assert_allclose(found["compiled"], found["ops"], 2e-3)
    np.testing.assert_allclose(found["lazy"], found["ops"], 2e-3)


@pytest.mark.parametrize("how", ["lazy", "compiled"])
@pytest.mark.parametrize("kind", [lambda: nn.BatchNorm(4), lambda: nn.Dropout(0.5)], ids=["BatchNorm", "Dropout"])
def test_a_checkpoint_of_what_has_state(kind: Any, how: str) -> None:
    """Running means and random numbers are those of the same steps without it."""
    settings.tier = "ops"

    def trained(checkpointed: bool) -> tuple[list[float], Any]:
        smelt.random.seed(0)
        model, optimizer = nn.Sequential(nn.Linear(2, 4), kind(), nn.Linear(4, 1)), optimizers.SGD(0.1)
        optimizer.init(model.trainable_parameters())
        x = smelt.random.normal((8, 2))
        block = nn.utils.checkpoint(model) if checkpointed else model
        loss_and_gradients = nn.value_and_grad(model, lambda x: block(x).square().mean())

        def step(x: smelt.array) -> smelt.array:
            value, gradients = loss_and_gradients(x)
            optimizer.update(model, gradients)
            return value

        state: list[Any] = [model.state, optimizer.state, smelt.random.state]
        if how == "compiled":
            step = smelt.compile(step, inputs=state, outputs=state)
        return [step(x).item() for _ in range(3)], model.parameters()

    found, wanted = trained(True), trained(False)
    np.testing.assert_allclose(found[0], wanted[0], 1e-5)
    for (path, a), (_, b) in zip(*(smelt.utils.tree_flatten(x[1]) for x in (found, wanted))):
        assert smelt.allclose(a, b, atol=1e-6).item(), path


def test_integers_among_the_parameters_are_constants() -> None:
    class Picks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.order = smelt.array([2, 0])
            self.masks = [smelt.array([True, False])]

        def __call__(self, x: smelt.array) -> smelt.array:
            return smelt.where(self.masks[0], self.layer(x)[:, self.order], 0)

    x = smelt.array([[1.0, 2.0, 3.0]])
    for decay, compiled in itertools.product((0.0, 0.1), (False, True)):
        model, optimizer = Picks(), optimizers.AdamW(0.1, weight_decay=decay)

        def step(x: smelt.array, model: Picks = model, optimizer: optimizers.Optimizer = optimizer) -> Any:
            loss, gradients = nn.value_and_grad(model, lambda x: model(x).sum())(x)
            optimizer.update(model, gradients)
            return loss, gradients

        state = [model.state, optimizer.state]
        run = smelt.compile(step, inputs=state, outputs=state) if compiled else step
        before = np.asarray(model.layer.weight)
        for _ in range(2):
            loss, gradients = run(x)
        assert np.asarray(gradients["layer"]["weight"]).tolist() == [[0, 0, 0], [0, 0, 0], [1, 2, 3]]
        assert gradients["order"].tolist() == [0, 0] and gradients["order"].dtype is smelt.int32
        assert gradients["masks"][0].tolist() == [False, False]
        assert model.order.tolist() == [2, 0] and model.order.dtype is smelt.int32
        assert model.masks[0].tolist() == [True, False]
        assert not np.array_equal(before, np.asarray(model.layer.weight)) and isinstance(loss.item(), float)
    with pytest.raises(TreeError, match="no parameter of Positions is trainable"):
        nn.value_and_grad(Positions(), lambda: smelt.array(1.0))()


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places = smelt.arange(3)
