"""A normalizing flow: two half moons as a Gaussian that invertible layers have bent (RealNVP).

Each layer moves and scales one coordinate by functions of the other one, so the determinant of its Jacobian is a sum of
scales; the last lines check that against `smelt.jacrev`. Run it: ``python examples/normalizing_flow.py``.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import smelt
from smelt import nn, optimizers


def moons(rng, n, noise=0.08):
    """Points on two half circles that reach into each other."""
    angle = rng.uniform(0, np.pi, n)
    upper = rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle)) - 0.5
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle)) - 0.25
    return (np.stack([x, y], 1) + noise * rng.standard_normal((n, 2))).astype(np.float32)


class Coupling(nn.Module):
    """One coordinate scaled and moved by functions of the other one."""

    def __init__(self, moved, hidden):
        super().__init__()
        self.moved = moved
        first, inner, last = nn.Linear(1, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 2)
        self.net = nn.Sequential(first, nn.SiLU(), inner, nn.SiLU(), last)

    def terms(self, kept):
        found = self.net(kept)
        return smelt.tanh(found[..., :1]), found[..., 1:]

    def split(self, x):
        return (x[..., :1], x[..., 1:]) if self.moved else (x[..., 1:], x[..., :1])

    def join(self, kept, moved):
        return smelt.concatenate([kept, moved] if self.moved else [moved, kept], axis=-1)

    def __call__(self, x):
        """Towards the Gaussian, with the logarithm of the determinant."""
        kept, moved = self.split(x)
        scale, shift = self.terms(kept)
        return self.join(kept, (moved - shift) * smelt.exp(-scale)), -scale[..., 0]

    def back(self, z):
        kept, moved = self.split(z)
        scale, shift = self.terms(kept)
        return self.join(kept, moved * smelt.exp(scale) + shift)


class Flow(nn.Module):
    def __init__(self, layers=8, hidden=64):
        super().__init__()
        self.layers = [Coupling(i % 2, hidden) for i in range(layers)]

    def __call__(self, x):
        """Logarithms of densities."""
        total = 0.0
        for layer in self.layers:
            x, determinant = layer(x)
            total = total + determinant
        return total - 0.5 * (x**2).sum(-1) - math.log(2 * math.pi)

    def sample(self, n):
        z = smelt.random.normal((n, 2))
        for layer in reversed(self.layers):
            z = layer.back(z)
        return z


def drawn(points, size=23, reach=2.2):
    """Points as a picture of characters."""
    ends = [[-1.2, 1.2], [-reach, reach]]
    counts, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(size, 2 * size), range=ends)
    shades = np.minimum(counts / max(1.0, counts.max()) * 12, 4).astype(int)
    return "\n".join("".join(" .:*#"[s] for s in row) for row in shades[::-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")

    smelt.random.seed(0)
    rng = np.random.default_rng(0)
    flow = Flow()
    optimizer = optimizers.Adam(optimizers.cosine_decay(2e-3, options.steps))
    optimizer.init(flow.trainable_parameters())
    loss_and_gradients = nn.value_and_grad(flow, lambda x: -flow(x).mean())
    state = [flow.state, optimizer.state]

    def step(x):
        value, gradients = loss_and_gradients(x)
        optimizer.update(flow, gradients)
        return value

    step = smelt.compile(step, inputs=state, outputs=state)
    start = time.perf_counter()
    for i in range(1, options.steps + 1):
        value = step(smelt.array(moons(rng, options.batch)))
        if i % max(1, options.steps // 10) == 0:
            print(f"step {i:5}  loss {value.item():.4f}  {time.perf_counter() - start:.1f} s", flush=True)

    test = smelt.array(moons(np.random.default_rng(1), 4096))
    print(f"negative log likelihood of new points  {-flow(test).mean().item():.4f}")
    x = test[0]

    def whole(x):
        for layer in flow.layers:
            x, _ = layer(x)
        return x

    jacobian = np.asarray(smelt.jacrev(whole)(x), np.float64)
    layers = sum(float(layer(y)[1].item()) for layer, y in walked(flow, x))
    print(f"log |det J| by layers {layers:.5f}, by jacrev {np.log(abs(np.linalg.det(jacobian))):.5f}")
    print(drawn(np.asarray(flow.sample(4000))))


def walked(flow, x):
    """Each layer and what reaches it."""
    for layer in flow.layers:
        yield layer, x
        x, _ = layer(x)


if __name__ == "__main__":
    main()
