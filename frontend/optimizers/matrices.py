"""Optimizers that tell matrices from vectors."""

from __future__ import annotations

from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, at_user_line

from .algorithms import Rate
from .base import Optimizer, squared

__all__ = ["Adafactor", "Muon"]


class Adafactor(Optimizer):
    """`RMSprop` whose second moments of matrices are kept as those of their rows and columns.

    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018.

    Args:
        learning_rate: a number, a function of the number of steps, or None with `relative_step`.
        eps: what is added to squares of gradients, and the least size of a parameter that scales a step.
        clip_threshold: steps are scaled down where the root of the mean of their squares is larger.
        decay_rate: the second moments at step t keep the part 1 - t^decay_rate.
        beta_1: what part of the last step a step keeps; None: nothing.
        weight_decay: p · lr · weight_decay is taken off. scale_parameter: multiply steps by the size of the parameter.
        relative_step: lr is 1/√t, but at most 0.01, or t · 1e-6 with `warmup_init`.

    Raises:
        AttributeValueError: no learning rate, and no `relative_step`.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.Adafactor().apply_gradients(w, w)
    {'w': array([0.99], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ):
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        elif not relative_step:
            raise AttributeValueError(
                at_user_line("smelt.optimizers.Adafactor: needs a learning_rate where relative_step is false")
            )
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``exp_avg_sq_row`` and ``exp_avg_sq_col`` of arrays of two axes and more, else ``exp_avg_sq``: zeros.
        ``exp_avg`` where there is `beta_1`."""
        dtype, shape = parameter.dtype, parameter.shape
        if parameter.ndim >= 2:
            state["exp_avg_sq_row"] = smelt.zeros(shape[:-1], dtype)
            state["exp_avg_sq_col"] = smelt.zeros((*shape[:-2], shape[-1]), dtype)
        else:
            state["exp_avg_sq"] = smelt.zeros_like(parameter)
        if self.beta_1 is not None:
            state["exp_avg"] = smelt.zeros_like(parameter)

    def _rate(self, size: array) -> array:
        if self.relative_step:
            step = self.step.astype(smelt.float32)
            most = 1e-6 * step if self.warmup_init else 1e-2
            rate = smelt.minimum(most, smelt.rsqrt(step))
        else:
            rate = self.learning_rate
        rate = rate.astype(size.dtype)
        return rate * smelt.maximum(self.eps[1], size) if self.scale_parameter else rate

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        kept = (1.0 - smelt.power(self.step.astype(smelt.float32), self.decay_rate)).astype(parameter.dtype)
        squares = squared(gradient) + self.eps[0]
        if gradient.ndim >= 2:
            row = state["exp_avg_sq_row"] = kept * state["exp_avg_sq_row"] + (1 - kept) * smelt.mean(squares, axis=-1)
            col = state["exp_avg_sq_col"] = kept * state["exp_avg_sq_col"] + (1 - kept) * smelt.mean(squares, axis=-2)
            scale = smelt.expand_dims(smelt.rsqrt(row / smelt.mean(row, axis=-1, keepdims=True)), -1)
            move = scale * smelt.expand_dims(smelt.rsqrt(col), -2) * gradient
        else:
            state["exp_avg_sq"] = v = kept * state["exp_avg_sq"] + (1 - kept) * squares
            move = smelt.rsqrt(v) * gradient
        rate = self._rate(_size(parameter))
        move = rate * (move / smelt.maximum(1.0, _size(move) / self.clip_threshold))
        if self.beta_1 is not None:
            state["exp_avg"] = move = self.beta_1 * state["exp_avg"] + (1 - self.beta_1) * move
        if self.weight_decay:
            parameter = parameter - self.weight_decay * rate * parameter
        return parameter - move


def _size(x: array) -> array:
    """The root of the mean of the squares."""
    return smelt.sqrt(smelt.mean(squared(x)))


class Muon(Optimizer):
    """`SGD` with momentum, where steps of matrices are made nearly orthogonal.

    Arrays of more axes are matrices of their first axis and the rest. Vectors are moved by `SGD`'s rule; embeddings
    and last layers should get another optimizer: see `MultiOptimizer` (Jordan et al., "Muon", 2024).

    Args:
        learning_rate: a number, or a function of the number of steps. momentum: m = momentum · m + (1 - momentum) · g.
        weight_decay: what is added to g, times p. nesterov: move by momentum · m + (1 - momentum) · g.
        ns_steps: how many steps are made towards orthogonality.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.Muon(0.5, momentum=0.5, weight_decay=0.0, nesterov=False).apply_gradients(w, w)
    {'w': array([0.75], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``v``: zeros."""
        state["v"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate, mu = self.learning_rate.astype(gradient.dtype), self.momentum
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameter
        state["v"] = v = mu * state["v"] + (1 - mu) * gradient
        move = (1 - mu) * gradient + mu * v if self.nesterov else v
        if move.ndim >= 2 and move.size:
            shape = move.shape
            move = _orthogonalized(move.flatten(1), self.ns_steps).reshape(shape)
            rate = rate * max(1, shape[-2] / shape[-1]) ** 0.5
        return parameter - rate * move


def _orthogonalized(x: array, steps: int) -> array:
    """A matrix with its singular values moved near 1, by an iteration of Newton and Schulz's kind."""
    a, b, c = 3.4445, -4.7750, 2.0315  # a polynomial that is steep at 0, and between 0.7 and 1.2 near 1
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / (smelt.sqrt(smelt.sum(squared(x))) + 1e-7)
    for _ in range(steps):
        square = x @ (smelt.conjugate(x).T if x.dtype.is_complex else x.T)
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if tall else x
