"""Recurrent layers as loops over their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import smelt
from smelt import array

from ...translating import Refused
from ..graph import Node, rule

#: A step: from the state and what the input gives to the gates to the next state, whose first array is the result.
Step = Callable[[tuple[array, ...], array, Sequence[array]], tuple[array, ...]]


def _lstm(state: tuple[array, ...], x: array, weights: Sequence[array]) -> tuple[array, ...]:
    h, c = state
    i, f, g, o = smelt.split(x + _times(h, weights), 4, -1)
    c = smelt.sigmoid(f) * c + smelt.sigmoid(i) * smelt.tanh(g)
    h = smelt.sigmoid(o) * smelt.tanh(c)
    return (h if len(weights) < 3 else h @ weights[2].T), c


def _gru(state: tuple[array, ...], x: array, weights: Sequence[array]) -> tuple[array, ...]:
    (h,) = state
    (xr, xz, xn), (hr, hz, hn) = smelt.split(x, 3, -1), smelt.split(_times(h, weights), 3, -1)
    z = smelt.sigmoid(xz + hz)
    return ((1 - z) * smelt.tanh(xn + smelt.sigmoid(xr + hr) * hn) + z * h,)


def _plain(function: Callable[[array], array]) -> Step:
    return lambda state, x, weights: (function(x + _times(state[0], weights)),)


def _times(h: array, weights: Sequence[array]) -> array:
    """The state's part of the gates; weights are the matrix, and a bias or None."""
    found = h @ weights[0].T
    return found if weights[1] is None else found + weights[1]


_STEPS: dict[str, Step] = {
    "lstm": _lstm, "gru": _gru, "rnn_tanh": _plain(smelt.tanh), "rnn_relu": _plain(lambda x: smelt.maximum(x, 0)),
}  # fmt: skip


@rule("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
def _layers(n: Node, x: array, states: Any, weights: list[array], biases: bool, layers: int, dropout: float,
            train: bool, both: bool, batch_first: bool) -> list[array]:  # fmt: skip
    """Layers one after the other, each in one direction or both."""
    name = n.op.split(".")[1]
    states = states if name == "lstm" else [states]
    ways = 1 + both
    each = len(weights) // (layers * ways)
    projected = name == "lstm" and each == (5 if biases else 3)
    x = smelt.swapaxes(x, 0, 1) if batch_first else x
    last: list[tuple[array, ...]] = []
    for layer in range(layers):
        found = []
        for way in range(ways):
            k = layer * ways + way
            w_x, w_h, *rest = weights[k * each : (k + 1) * each]
            own = [w_h, rest[1] if biases else None, *(rest[-1:] if projected else [])]
            gates = x @ w_x.T
            gates = gates + rest[0] if biases else gates
            y, state = _run(_STEPS[name], tuple(s[k] for s in states), gates, own, way == 1)
            found.append(y)
            last.append(state)
        x = smelt.concatenate(found, -1) if both else found[0]
        if dropout and train and layer + 1 < layers:
            x = smelt.where(smelt.random.bernoulli(1 - dropout, x.shape), x / (1 - dropout), 0)
    x = smelt.swapaxes(x, 0, 1) if batch_first else x
    return [x, *(smelt.stack([state[i] for state in last]) for i in range(len(states)))]


def _run(step: Step, state: tuple[array, ...], gates: array, weights: list[Any], backwards: bool) -> Any:
    if gates.ndim not in (2, 3):
        raise Refused(f"of {gates.ndim} axes is not translated")

    def body(state: tuple[array, ...], x: array) -> tuple[tuple[array, ...], array]:
        state = step(state, x, weights)
        return state, state[0]

    state, y = smelt.scan(body, state, gates[::-1] if backwards else gates)
    return (y[::-1] if backwards else y), state
