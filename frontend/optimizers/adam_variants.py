"""Optimizers that came of Adam: with Nesterov's momentum, and for large batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import smelt
from smelt import array

from .algorithms import Adam, Rate, correction
from .base import squared

__all__ = ["LAMB", "NAdam"]


class NAdam(Adam):
    """`Adam` with bias correction whose step looks ahead: lr · (g · (1 - μₜ) / (1 - μ₁…μₜ) + m · μₜ₊₁ / (1 - μ₁…μₜ₊₁)).

    That is divided by √v̂ + eps; μₜ = β₁ · (1 - 0.96^(t · momentum_decay) / 2). Dozat, "Incorporating Nesterov momentum
    into Adam", 2016.

    Args:
        learning_rate: a number, or a function of the number of steps. betas, eps: see `Adam`.
        weight_decay: what is added to g, times p. momentum_decay: as above.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.NAdam(0.5, betas=(0.0, 0.0)).apply_gradients(w, w)
    {'w': array([0.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ):
        super().__init__(learning_rate, betas, eps, bias_correction=True)
        self.weight_decay = weight_decay
        self.momentum_decay = momentum_decay

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``m`` and ``v``: zeros; ``product``: of all μ so far, 1."""
        super().init_single(parameter, state)
        state["product"] = smelt.ones(())

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        b1, b2 = self.betas
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameter
        state["m"] = m = b1 * state["m"] + (1 - b1) * gradient
        state["v"] = v = b2 * state["v"] + (1 - b2) * squared(gradient)
        step = self.step.astype(smelt.float32)
        now, then = (b1 * (1 - 0.5 * smelt.power(0.96, t * self.momentum_decay)) for t in (step, step + 1))
        state["product"] = product = state["product"] * now
        old = (self.learning_rate * (1 - now) / (1 - product)).astype(gradient.dtype)
        new = (self.learning_rate * then / (1 - product * then)).astype(gradient.dtype)
        size = smelt.sqrt(v) * smelt.rsqrt(correction(b2, step)).astype(gradient.dtype) + self.eps
        return parameter - (old * gradient + new * m) / size


class LAMB(Adam):
    """`Adam` with bias correction, where the step of each parameter is in proportion to its norm.

    u = m̂ / (√v̂ + eps) + weight_decay · p, then p - lr · u · |p| / |u|, or p - lr · u where one of the norms is 0. You
    et al., "Large batch optimization for deep learning", 2020.

    Args:
        learning_rate: a number, or a function of the number of steps. betas, eps: see `Adam`. weight_decay: as above.

    >>> import smelt
    >>> w = {"w": smelt.array([2.0])}
    >>> smelt.optimizers.LAMB(0.25, weight_decay=0.0).apply_gradients(w, w)
    {'w': array([1.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ):
        super().__init__(learning_rate, betas, eps, bias_correction=True)
        self.weight_decay = weight_decay

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        b1, b2 = self.betas
        state["m"] = m = b1 * state["m"] + (1 - b1) * gradient
        state["v"] = v = b2 * state["v"] + (1 - b2) * squared(gradient)
        first, second = (correction(b, self.step).astype(gradient.dtype) for b in (b1, b2))
        move = (m / first) / (smelt.sqrt(v / second) + self.eps) + self.weight_decay * parameter
        own, other = (_norm(x) for x in (parameter, move))
        usable = (own > 0) & (other > 0)
        ratio = smelt.where(usable, own / smelt.where(usable, other, 1), 1)
        return parameter - (self.learning_rate * ratio).astype(gradient.dtype) * move


def _norm(x: array) -> array:
    """The root of the sum of squares, in float32 at least: half precision cannot hold it."""
    x = x.astype(smelt.float32) if x.dtype in (smelt.float16, smelt.bfloat16) else x
    return smelt.sqrt(smelt.sum(squared(x)))
