"""Recurrent layers are loops of the program: it is as large for long sequences as for short ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt import nn

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "RNN": lambda: nn.RNN(3, 4), "GRU": lambda: nn.GRU(3, 4), "LSTM": lambda: nn.LSTM(3, 4),
}  # fmt: skip


def _ops(layer: nn.Module, length: int, gradient: bool) -> tuple[int, int]:
    """Ops of the compiled program, and loops."""

    def run(x: smelt.array) -> smelt.array:
        found = layer(x)
        return found[0] if isinstance(found, tuple) else found

    def slopes(x: smelt.array) -> Any:
        return nn.value_and_grad(layer, lambda x: (run(x) ** 2).sum())(x)

    program = smelt.compile(slopes if gradient else run).trace(smelt.ones((2, length, 3))).lower().compile()
    return program.as_text().count(" = "), program.as_text().count("scf.for")


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_programs_do_not_grow_with_sequences(name: str, gradient: bool) -> None:
    layer = LAYERS[name]()
    short, long = _ops(layer, 5, gradient), _ops(layer, 500, gradient)
    assert short == long and short[1] == 1 + gradient
