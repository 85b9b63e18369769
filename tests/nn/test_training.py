"""Models that train: lazily, compiled and op by op with the same losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
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


TASKS = {"classification": classification}


def trained(task: str, optimizer: optimizers.Optimizer, how: str, steps: int) -> list[float]:
    smelt.random.seed(5)
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
    assert found["ops"][-1] < 0.8 * found["ops"][0]
    np.testing.assert_allclose(found["compiled"], found["ops"], 1e-3)
    np.testing.assert_allclose(found["lazy"], found["ops"], 1e-3)
