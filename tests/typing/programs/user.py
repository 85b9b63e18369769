"""A program as a user writes it: strict checkers have nothing to say about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import smelt as mx
from smelt.utils import tree_map


@dataclass
class Params:
    w: mx.array
    b: mx.array


def loss(params: Params, x: mx.array, y: mx.array, *, decay: float = 0.0) -> mx.array:
    z = mx.tanh(x @ params.w + params.b)
    penalty = decay * (params.w**2).sum() if decay else 0
    return ((z[:, 0] - y) ** 2).mean() + penalty


@mx.compile
def step(params: Params, x: mx.array, y: mx.array, rate: float = 0.5) -> tuple[Params, mx.array]:
    value, gradient = mx.value_and_grad(loss)(params, x, y, decay=1e-3)
    new: Params = tree_map(lambda p, g: p - rate * g, params, gradient)
    return new, value


def main() -> None:
    mx.random.seed(0)
    x = mx.random.normal((64, 3))
    y = mx.where(x[:, 0] > 0, 1.0, -1) * mx.array(np.ones(64, np.float32))
    params, value = Params(w=mx.zeros((3, 1)), b=mx.zeros(1, mx.float32)), mx.array(0.0)
    for _ in range(20):
        params, value = step(params, x, y)
        mx.eval(params.w, params.b, value)
    per_example = mx.vmap(mx.grad(loss), in_axes=(None, 0, 0))(params, x[:, None], y)
    curvature = mx.hessian(lambda w: (w**4).sum())(params.w[:, 0])
    total, rows = mx.scan(lambda carry, row: (carry + row.sum(), row * 2), mx.array(0.0), x)
    print(f"loss {value.item():.3f}, {per_example.w.shape}, {curvature.shape}, {total.ndim}, {len(rows)}")
    x[0] = 2 * x[1] - 1
    x += 1
    assert (x.T.reshape(-1, 3).astype(mx.float16) <= 100).all() and not mx.isnan(x).any().item()


if __name__ == "__main__":
    main()
