"""Products of matrices."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array

from ...translating import Refused
from ..graph import Node, rule


@rule("MatMul")
def _matmul(n: Node) -> array:
    return smelt.matmul(n[0], n[1])


@rule("Gemm")
def _gemm(n: Node) -> array:
    x = n[0].T if n.attr("transA", 0) else n[0]
    y = n[1].T if n.attr("transB", 0) else n[1]
    found, alpha, beta = smelt.matmul(x, y), n.attr("alpha", 1.0), n.attr("beta", 1.0)
    found = found if alpha == 1 else found * alpha
    if n[2] is None or beta == 0:
        return found.astype(n.x.dtype)
    return (found + (n[2] if beta == 1 else n[2] * beta)).astype(n.x.dtype)


@rule("Einsum")
def _einsum(n: Node) -> array:
    return smelt.einsum(n.attr("equation").replace(" ", ""), *n.inputs)


@rule("Det")
def _det(n: Node) -> array:
    return smelt.linalg.det(n.x)


@rule("Adam", domain="ai.onnx.preview.training")
def _adam(n: Node) -> tuple[Any, ...]:
    """A step for each array: values, then gradients, then both moments."""
    rate, step, values, gradients, first, second = _grouped(n, 4)
    a, b = n.attr("alpha", 0.9), n.attr("beta", 0.999)
    found: list[tuple[array, array, array]] = []
    for x, g, v, h in zip(values, gradients, first, second):
        g = g + n.attr("norm_coefficient", 0.0) * x
        v, h = a * v + (1 - a) * g, b * h + (1 - b) * g * g
        t = step.astype(x.dtype)
        adjusted = smelt.where(step > 0, rate * smelt.sqrt(1 - b**t) / (1 - a**t), rate)
        x = x - adjusted * v / (smelt.sqrt(h) + n.attr("epsilon", 0.0))
        found.append(((1 - n.attr("norm_coefficient_post", 0.0)) * x, v, h))
    return tuple(part for parts in zip(*found) for part in parts)


@rule("Adagrad", domain="ai.onnx.preview.training")
def _adagrad(n: Node) -> tuple[Any, ...]:
    rate, step, values, gradients, squares = _grouped(n, 3)
    rate = rate / (1 + step.astype(rate.dtype) * n.attr("decay_factor", 0.0))
    found: list[tuple[array, array]] = []
    for x, g, h in zip(values, gradients, squares):
        g = g + n.attr("norm_coefficient", 0.0) * x
        h = h + g * g
        found.append((x - rate * g / (smelt.sqrt(h) + n.attr("epsilon", 0.0)), h))
    return tuple(part for parts in zip(*found) for part in parts)


@rule("Momentum", domain="ai.onnx.preview.training")
def _momentum(n: Node) -> tuple[Any, ...]:
    rate, step, values, gradients, momenta = _grouped(n, 3)
    a, b = n.attr("alpha"), n.attr("beta")
    mode = n.text("mode", "standard")
    if mode not in ("standard", "nesterov"):
        raise Refused(f"has mode {mode!r}; there are standard, nesterov")
    found: list[tuple[array, array]] = []
    for x, g, v in zip(values, gradients, momenta):
        g = g + n.attr("norm_coefficient", 0.0) * x
        v = a * v + smelt.where(step > 0, b, 1.0).astype(x.dtype) * g
        found.append((x - rate * (g + a * v if mode == "nesterov" else v), v))
    return tuple(part for parts in zip(*found) for part in parts)


def _grouped(n: Node, groups: int) -> tuple[Any, ...]:
    """The first two inputs, then equally long lists of the others."""
    rest = n.inputs[2:]
    count = len(rest) // groups
    return (n[0], n[1], *(rest[i * count : (i + 1) * count] for i in range(groups)))
