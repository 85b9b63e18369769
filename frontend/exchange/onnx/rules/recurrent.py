"""Recurrent layers, as scans over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import smelt
from smelt import array

from ...translating import Refused
from ..graph import Node, rule

Step = Callable[[Any, Any], Any]


def _activations(n: Node, each: int, default: tuple[str, ...]) -> list[list[Callable[[array], array]]]:
    """The functions of each direction."""
    names = [
        str(a) for a in n.attr("activations") or default * (1 + (n.text("direction", "forward") == "bidirectional"))
    ]
    alphas, betas = list(n.attr("activation_alpha") or []), list(n.attr("activation_beta") or [])

    def made(name: str) -> Callable[[array], array]:
        def number(values: list[float], standard: float) -> float:
            return values.pop(0) if values else standard

        name = name.lower()
        plain: dict[str, Callable[[array], array]] = {
            "sigmoid": smelt.sigmoid, "tanh": smelt.tanh, "relu": lambda x: smelt.maximum(x, 0),
            "softsign": lambda x: x / (1 + smelt.abs(x)), "softplus": lambda x: smelt.logaddexp(x, 0),
        }  # fmt: skip
        if name in plain:
            return plain[name]
        if name == "affine":
            a, b = number(alphas, 1.0), number(betas, 0.0)
            return lambda x: a * x + b
        if name == "leakyrelu":
            a = number(alphas, 0.01)
            return lambda x: smelt.where(x < 0, a * x, x)
        if name == "thresholdedrelu":
            a = number(alphas, 1.0)
            return lambda x: smelt.where(x > a, x, 0)
        if name == "scaledtanh":
            a, b = number(alphas, 1.0), number(betas, 1.0)
            return lambda x: a * smelt.tanh(b * x)
        if name == "hardsigmoid":
            a, b = number(alphas, 0.2), number(betas, 0.5)
            return lambda x: smelt.clip(a * x + b, 0, 1)
        if name == "elu":
            a = number(alphas, 1.0)
            return lambda x: smelt.where(x < 0, a * smelt.expm1(x), x)
        raise Refused(f"has activation {name!r}, which is none of the standard's")

    found = [made(name) for name in names]
    return [found[i : i + each] for i in range(0, len(found), each)]


def _layers(n: Node, gates: int, default: tuple[str, ...], make: Callable[..., Step], states: int) -> tuple[array, ...]:
    """What the three kinds share: directions, lengths, layouts."""
    x, w, r, bias, lengths = n[0], n[1], n[2], n[3], n[4]
    hidden = n.attr("hidden_size", r.shape[-1])
    batch_first = n.attr("layout", 0)
    x = smelt.swapaxes(x, 0, 1) if batch_first else x
    time, batch = x.shape[:2]
    direction, clip = n.text("direction", "forward"), n.attr("clip", 0.0)
    each = _activations(n, len(default), default)
    outs: list[array] = []
    lasts: list[list[array]] = []
    at = smelt.arange(time)
    for d in range(w.shape[0]):
        backwards = direction == "reverse" or d == 1
        starts = []
        for i in range(states):
            given = n[5 + i]
            if given is None:
                starts.append(smelt.zeros((batch, hidden), x.dtype))
            else:
                starts.append(given[:, d] if batch_first else given[d])
        b = smelt.zeros((2 * gates * hidden,), x.dtype) if bias is None else bias[d]
        bounded = [_bounded(f, clip) for f in each[d]]
        peephole = n[7][d] if states == 2 and n[7] is not None else None
        step = make(n, r[d], b[gates * hidden :], bounded, hidden, peephole)
        given_x = x @ w[d].T + b[: gates * hidden]

        def masked(carry: tuple[array, ...], item: tuple[array, array], step: Step = step) -> Any:
            row, t = item
            new = step(carry, row)
            if lengths is None:
                return new, new[0]
            lives = (t < lengths.astype(t.dtype))[:, None]
            kept = tuple(smelt.where(lives, a, b) for a, b in zip(new, carry))
            return kept, smelt.where(lives, new[0], 0)

        last, ys = smelt.scan(masked, tuple(starts), (given_x, at), reverse=backwards)
        outs.append(ys)
        lasts.append(list(last))
    y = smelt.stack(outs, 1)
    finals = [smelt.stack([last[i] for last in lasts], 0) for i in range(states)]
    if batch_first:
        y = smelt.transpose(y, (2, 0, 1, 3))
        finals = [smelt.swapaxes(f, 0, 1) for f in finals]
    return (y, *finals)


def _bounded(f: Callable[[array], array], clip: float) -> Callable[[array], array]:
    return (lambda x: f(smelt.clip(x, -clip, clip))) if clip else f


@rule("RNN")
def _rnn(n: Node) -> tuple[array, ...]:
    def make(n: Node, r: array, b: array, fs: Any, hidden: int, _: Any) -> Step:
        return lambda carry, row: (fs[0](row + carry[0] @ r.T + b),)

    return _layers(n, 1, ("Tanh",), make, 1)


@rule("GRU")
def _gru(n: Node) -> tuple[array, ...]:
    def make(n: Node, r: array, b: array, fs: Any, hidden: int, _: Any) -> Step:
        after = n.attr("linear_before_reset", 0)

        def step(carry: tuple[array], row: array) -> tuple[array]:
            (h,) = carry
            gates = row[:, : 2 * hidden] + h @ r[: 2 * hidden].T + b[: 2 * hidden]
            z, reset = fs[0](gates[:, :hidden]), fs[0](gates[:, hidden:])
            own, shift = r[2 * hidden :], b[2 * hidden :]
            mixed = reset * (h @ own.T + shift) if after else (reset * h) @ own.T + shift
            new = fs[1](row[:, 2 * hidden :] + mixed)
            return ((1 - z) * new + z * h,)

        return step

    return _layers(n, 3, ("Sigmoid", "Tanh"), make, 1)


@rule("LSTM")
def _lstm(n: Node) -> tuple[array, ...]:
    def make(n: Node, r: array, b: array, fs: Any, hidden: int, peephole: array | None) -> Step:
        together = n.attr("input_forget", 0)

        def step(carry: tuple[array, array], row: array) -> tuple[array, array]:
            h, c = carry
            i, o, f, new = smelt.split(row + h @ r.T + b, 4, axis=-1)
            if peephole is not None:
                pi, po, pf = smelt.split(peephole, 3)
                i, f = i + pi * c, f + pf * c
            i = fs[0](i)
            f = 1 - i if together else fs[0](f)
            c = f * c + i * fs[1](new)
            o = fs[0](o + po * c if peephole is not None else o)
            return o * fs[2](c), c

        return step

    return _layers(n, 4, ("Sigmoid", "Tanh", "Tanh"), make, 2)
