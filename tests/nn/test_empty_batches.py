"""A batch of nothing has a result of nothing, of the shape that a batch of two has but for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn

pytestmark = pytest.mark.tier("ops")


#: A layer, and what it is called with but for the batch.
LAYERS: list[tuple[Callable[[], Any], list[tuple[int, ...]]]] = [
    (lambda: nn.Linear(3, 4), [(3,)]),
    (lambda: nn.Bilinear(3, 4, 5), [(3,), (4,)]),
    (lambda: nn.LayerNorm(6), [(3, 6)]),
    (lambda: nn.RMSNorm(6), [(3, 6)]),
    (lambda: nn.GroupNorm(2, 6), [(3, 6)]),
    (lambda: nn.GroupNorm(2, 6, pytorch_compatible=True), [(3, 6)]),
    (lambda: nn.InstanceNorm(3, affine=True), [(4, 3)]),
    (lambda: nn.GLU(), [(4,)]),
    (lambda: nn.Softmax(), [(4,)]),
    (lambda: nn.LogSoftmax(), [(4,)]),
    (lambda: nn.PReLU(), [(4,)]),
    (lambda: nn.Conv1d(2, 4, 3), [(7, 2)]),
    (lambda: nn.Conv2d(4, 4, 3, groups=2), [(6, 5, 4)]),
    (lambda: nn.ConvTranspose2d(2, 4, 3, 2), [(4, 5, 2)]),
    (lambda: nn.MaxPool1d(3, 2, 1), [(7, 2)]),
    (lambda: nn.MaxPool2d(2), [(6, 5, 4)]),
    (lambda: nn.AvgPool2d(3, 1), [(6, 5, 4)]),
    (lambda: nn.Upsample(2.5, "linear"), [(4, 5, 2)]),
    (lambda: nn.RoPE(4), [(3, 5, 6)]),
    (lambda: nn.RoPE(4, traditional=True), [(3, 5, 6)]),
    (lambda: nn.ALiBi(), [(4, 3, 5)]),
    (lambda: nn.SinusoidalPositionalEncoding(6), [(3,)]),
    (lambda: nn.RNN(3, 4), [(5, 3)]),
    (lambda: nn.GRU(3, 4), [(5, 3)]),
    (lambda: nn.LSTM(3, 4), [(5, 3)]),
    (lambda: nn.MultiHeadAttention(8, 2), [(5, 8), (3, 8), (3, 8)]),
    (lambda: nn.TransformerEncoder(1, 8, 2), [(5, 8), (2, 5, 5)]),
    (lambda: nn.TransformerDecoder(1, 8, 2), [(5, 8), (3, 8), (2, 5, 5), (2, 5, 3)]),
]  # fmt: skip


@pytest.mark.parametrize("make, shapes", LAYERS, ids=[f"{i}-{type(f()).__name__}" for i, (f, _) in enumerate(LAYERS)])
def test_values_and_gradients(make: Callable[[], Any], shapes: list[tuple[int, ...]]) -> None:
    layer = make()
    found, whole = (smelt.utils.tree_flatten(layer(*(smelt.ones((n, *s)) for s in shapes))) for n in (0, 2))
    assert [(path, x.shape) for path, x in found] == [(path, (0, *x.shape[1:])) for path, x in whole]
    for _, x in found:
        assert np.asarray(x).size == 0

    def loss(layer: Any, *xs: Any) -> Any:
        return sum(x.sum() for _, x in smelt.utils.tree_flatten(layer(*xs)))

    gradients = smelt.grad(loss, (0, 1))(layer, *(smelt.ones((0, *s)) for s in shapes))
    assert gradients[1].shape == (0, *shapes[0])
    for path, x in smelt.utils.tree_flatten(gradients[0]):
        if isinstance(x, smelt.array):
            assert not np.asarray(x).any(), path
