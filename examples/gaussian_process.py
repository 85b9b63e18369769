"""Gaussian process regression: the scales of a kernel are found by the gradient of the marginal likelihood.

The likelihood is a Cholesky factor, a system of equations and a determinant; `smelt.linalg` differentiates all of it,
and L-BFGS does the rest. Run it: ``python examples/gaussian_process.py``.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import smelt
from smelt import optimizers

LENGTH, NOISE = 0.3, 0.1  # of what the data are drawn from


def observed(n, seed=0):
    """Points, a smooth function there, and what is seen of it."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 3, n))
    truth = np.sin(4 * x) + 0.5 * np.sin(9 * x)
    return x, truth, truth + NOISE * rng.standard_normal(n)


def kernel(p, a, b):
    """What two points have to do with each other: exp(scale) · exp(-(a - b)² / 2 length²)."""
    return smelt.exp(p["scale"] - 0.5 * ((a[:, None] - b[None, :]) * smelt.exp(-p["length"])) ** 2)


def factor(p, x):
    noise = (smelt.exp(2 * p["noise"]) + 1e-10) * smelt.eye(x.size, dtype=x.dtype)
    return smelt.linalg.cholesky(kernel(p, x, x) + noise)


def solved(l, y):
    """(L·Lᵀ)⁻¹ · y."""
    return smelt.linalg.solve_triangular(l.T, smelt.linalg.solve_triangular(l, y, upper=False), upper=True)


def negative_log_likelihood(p, x, y):
    l = factor(p, x)
    fit = 0.5 * (y * solved(l, y[:, None])[:, 0]).sum()
    return fit + smelt.log(smelt.diagonal(l)).sum() + 0.5 * x.size * math.log(2 * math.pi)


def predicted(p, x, y, at):
    """Mean and deviation at other points."""
    l, across = factor(p, x), kernel(p, x, at)
    mean = across.T @ solved(l, y[:, None])[:, 0]
    half = smelt.linalg.solve_triangular(l, across, upper=False)
    return mean, smelt.sqrt(smelt.exp(p["scale"]) - (half**2).sum(0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    for name, number in vars(options).items():
        if isinstance(number, int) and number < 1:
            parser.error(f"--{name} must be at least 1")

    points, truth, seen = observed(options.points)
    x, y = smelt.array(points, smelt.float64), smelt.array(seen, smelt.float64)
    p = {name: smelt.array(0.0, smelt.float64) for name in ("length", "scale", "noise")}
    print(f"{x.size} points; negative log likelihood at the start {negative_log_likelihood(p, x, y).item():.2f}")
    start = time.perf_counter()
    p, value = optimizers.LBFGS().minimize(lambda p: negative_log_likelihood(p, x, y), p, options.steps)
    length, scale, noise = (smelt.exp(p[name]).item() for name in ("length", "scale", "noise"))
    print(f"negative log likelihood    {value.item():.2f} after {time.perf_counter() - start:.1f} s")
    print(f"length {length:.3f}, scale {scale:.3f}, noise {noise:.3f} (drawn with {NOISE})")

    mean, deviation = (np.asarray(a) for a in predicted(p, x, y, x))
    error = np.sqrt(np.mean((mean - truth) ** 2))
    covered = np.mean(np.abs(mean - truth) < 2 * deviation)
    print(f"error of the mean          {error:.4f}")
    print(f"within two deviations      {covered:.1%}")


if __name__ == "__main__":
    main()
