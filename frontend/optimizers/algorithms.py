"""The optimizers: g is a gradient, p its parameter, lr the learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, at_user_line, shown

from ..lazy.arguments import number
from ..lazy.core import remembered
from .base import Optimizer, squared

__all__ = ["SGD", "AdaDelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "RMSprop"]

#: A number, or a function of the number of steps: see `schedulers`.
Rate = float | array | Callable[[array], array]


def _not_negative(name: str, what: str, value: float) -> float:
    """A finite number of at least 0.

    Raises:
        ArgumentTypeError: no number. AttributeValueError: another one.
    """
    number(f"optimizers.{name}", what, value)
    if not 0 <= value < math.inf:
        raise AttributeValueError(at_user_line(f"smelt.optimizers.{name}: {what} must be at least 0, is {value}"))
    return value


def _check_betas(name: str, betas: Sequence[float]) -> Sequence[float]:
    """Two numbers in [0, 1); arrays are not looked at.

    Raises:
        ArgumentTypeError: not two numbers. AttributeValueError: others.
    """
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ArgumentTypeError(at_user_line(f"smelt.optimizers.{name}: betas must be two numbers, is {shown(betas)}"))
    for i, beta in enumerate(betas):
        value = beta if isinstance(beta, array) else number(f"optimizers.{name}", f"betas[{i}]", beta)
        if not isinstance(value, array) and not 0 <= value < 1:
            rule = f"betas[{i}] must be at least 0 and less than 1, is {shown(value)}"
            raise AttributeValueError(at_user_line(f"smelt.optimizers.{name}: {rule}"))
    return betas


def correction(beta: float, step: array) -> array:
    """1 - beta^step, which keeps its digits where beta is near 1."""
    return -smelt.expm1(step.astype(smelt.float32) * (math.log(beta) if beta > 0 else -math.inf))


@remembered
def _descended(gradient: array, parameter: array, rate: array) -> array:
    return parameter - rate.astype(gradient.dtype) * gradient


class SGD(Optimizer):
    """v = momentum · v + (1 - dampening) · g, then p - lr · v.

    Args:
        learning_rate: a number, or a function of the number of steps. momentum, dampening: as above.
        weight_decay: what is added to g, times p. nesterov: move by g + momentum · v.

    Raises:
        AttributeValueError: `nesterov` without momentum or with dampening.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.SGD(0.5, momentum=0.9).apply_gradients(w, w)
    {'w': array([0.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ):
        super().__init__()
        if nesterov and (momentum <= 0 or dampening != 0):
            raise AttributeValueError(
                at_user_line(
                    "smelt.optimizers.SGD: nesterov needs a positive momentum and no dampening; momentum is "
                    f"{momentum}, dampening {dampening}"
                )
            )
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = number("optimizers.SGD", "momentum", momentum)
        self.weight_decay = weight_decay
        self.dampening = number("optimizers.SGD", "dampening", dampening)
        self.nesterov = nesterov

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``v``: zeros."""
        state["v"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        if self.momentum <= 0 and not self.weight_decay:
            return _descended(gradient, parameter, self.learning_rate)
        rate = self.learning_rate.astype(gradient.dtype)
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameter
        if self.momentum <= 0:
            return parameter - rate * gradient
        added = (1 - self.dampening) * gradient if self.dampening > 0 else gradient
        state["v"] = v = self.momentum * state["v"] + added
        return parameter - rate * (gradient + self.momentum * v if self.nesterov else v)


class RMSprop(Optimizer):
    """v = alpha · v + (1 - alpha) · g², then p - lr · g / (√v + eps).

    Args:
        learning_rate: a number, or a function of the number of steps. alpha, eps: as above.

    Raises:
        AttributeValueError: `alpha` or `eps` is negative.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.RMSprop(0.05).apply_gradients(w, w)
    {'w': array([0.5], dtype=float32)}
    """

    def __init__(self, learning_rate: Rate, alpha: float = 0.99, eps: float = 1e-8):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.alpha = _not_negative("RMSprop", "alpha", alpha)
        self.eps = _not_negative("RMSprop", "eps", eps)

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``v``: zeros."""
        state["v"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate = self.learning_rate.astype(gradient.dtype)
        state["v"] = v = self.alpha * state["v"] + (1 - self.alpha) * squared(gradient)
        return parameter - rate * gradient / (smelt.sqrt(v) + self.eps)


class Adagrad(Optimizer):
    """v = v + g², then p - lr · g / (√v + eps) (Duchi, Hazan and Singer, 2011).

    Args:
        learning_rate: a number, or a function of the number of steps. eps: as above.

    Raises:
        AttributeValueError: `eps` is negative.

    >>> import smelt
    >>> w = {"w": smelt.array([2.0])}
    >>> smelt.optimizers.Adagrad(0.5).apply_gradients(w, w)
    {'w': array([1.5], dtype=float32)}
    """

    def __init__(self, learning_rate: Rate, eps: float = 1e-8):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.eps = _not_negative("Adagrad", "eps", eps)

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``v``: zeros."""
        state["v"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate = self.learning_rate.astype(gradient.dtype)
        state["v"] = v = state["v"] + squared(gradient)
        return parameter - rate * gradient / (smelt.sqrt(v) + self.eps)


class AdaDelta(Optimizer):
    """v = rho · v + (1 - rho) · g², d = g · √(u + eps) / √(v + eps), u = rho · u + (1 - rho) · d², then p - lr · d.

    Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Args:
        learning_rate: a number, or a function of the number of steps. rho, eps: as above.

    Raises:
        AttributeValueError: `rho` or `eps` is negative.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.AdaDelta(0.5, rho=0.0, eps=1.0).apply_gradients(w, w)
    {'w': array([0.646447], dtype=float32)}
    """

    def __init__(self, learning_rate: Rate, rho: float = 0.9, eps: float = 1e-6):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.rho = _not_negative("AdaDelta", "rho", rho)
        self.eps = _not_negative("AdaDelta", "eps", eps)

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``v`` and ``u``: zeros."""
        state["v"] = smelt.zeros_like(parameter)
        state["u"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate, rho = self.learning_rate.astype(gradient.dtype), self.rho
        state["v"] = v = rho * state["v"] + (1 - rho) * squared(gradient)
        move = smelt.sqrt(state["u"] + self.eps) / smelt.sqrt(v + self.eps) * gradient
        state["u"] = rho * state["u"] + (1 - rho) * squared(move)
        return parameter - rate * move


class Adam(Optimizer):
    """m = β₁ · m + (1 - β₁) · g, v = β₂ · v + (1 - β₂) · g², then p - lr · m / (√v + eps).

    Kingma and Ba, "Adam: a method for stochastic optimization", 2015.

    Args:
        learning_rate: a number, or a function of the number of steps. betas: β₁ and β₂. eps: as above.
        bias_correction: divide m by 1 - β₁ᵗ and v by 1 - β₂ᵗ, after t steps.

    Raises:
        ArgumentTypeError: `betas` is no two numbers. AttributeValueError: one of them is negative, or not less than 1;
            `eps` is negative.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.Adam(0.5, betas=(0.0, 0.0)).apply_gradients(w, w)
    {'w': array([0.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        bias_correction: bool = False,
    ):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = _check_betas(type(self).__name__, betas)
        self.eps = _not_negative(type(self).__name__, "eps", eps)
        self.bias_correction = bias_correction

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``m`` and ``v``: zeros."""
        state["m"] = smelt.zeros_like(parameter)
        state["v"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        b1, b2 = self.betas
        if not self.bias_correction:
            before, rate = (state["m"], state["v"]), self.learning_rate
            found, state["m"], state["v"] = _adam(gradient, parameter, *before, rate, b1, b2, self.eps)
            return found
        rate = self.learning_rate.astype(gradient.dtype)
        state["m"], state["v"] = m, v = _moments(gradient, state["m"], state["v"], b1, b2)
        first, second = (correction(b, self.step) for b in (b1, b2))
        grown = (rate / first).astype(gradient.dtype)
        return parameter - grown * m / (smelt.sqrt(v) * smelt.rsqrt(second).astype(gradient.dtype) + self.eps)


def _moments(gradient: array, m: array, v: array, b1: float, b2: float) -> tuple[array, array]:
    return b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * squared(gradient)


@remembered
def _adam(
    gradient: array, parameter: array, m: array, v: array, rate: array, b1: float, b2: float, eps: float
) -> tuple[array, array, array]:
    m, v = _moments(gradient, m, v, b1, b2)
    return parameter - rate.astype(gradient.dtype) * m / (smelt.sqrt(v) + eps), m, v


class AdamW(Adam):
    """`Adam` on p · (1 - lr · weight_decay) (Loshchilov and Hutter, 2019).

    Args:
        learning_rate: a number, or a function of the number of steps. betas, eps, bias_correction: see `Adam`.
        weight_decay: as above.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.AdamW(0.5, betas=(0.0, 0.0), weight_decay=0.5).apply_gradients(w, w)
    {'w': array([0.25], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ):
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate = self.learning_rate.astype(gradient.dtype)
        return super().apply_single(gradient, parameter * (1 - rate * self.weight_decay), state)


class Adamax(Adam):
    """`Adam` with v = max(β₂ · v, |g|), then p - lr · m / (v + eps).

    Args:
        learning_rate: a number, or a function of the number of steps. betas, eps: see `Adam`.

    Raises:
        AttributeValueError: `eps` is negative.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.Adamax(0.5).apply_gradients(w, w)
    {'w': array([0.95], dtype=float32)}
    """

    def __init__(self, learning_rate: Rate, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8):
        super().__init__(learning_rate, betas, eps)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate = self.learning_rate.astype(gradient.dtype)
        b1, b2 = self.betas
        state["m"] = m = b1 * state["m"] + (1 - b1) * gradient
        state["v"] = v = smelt.maximum(b2 * state["v"], smelt.abs(gradient))
        return parameter - rate * m / (v + self.eps)


class Lion(Optimizer):
    """c = β₁ · m + (1 - β₁) · g, m = β₂ · m + (1 - β₂) · g, then p - lr · (sign(c) + weight_decay · p).

    Chen et al., "Symbolic discovery of optimization algorithms", 2023.

    Args:
        learning_rate: a number, or a function of the number of steps. betas: β₁ and β₂. weight_decay: as above.

    Raises:
        ArgumentTypeError: `betas` is no two numbers. AttributeValueError: one of them is negative, or not less than 1.

    >>> import smelt
    >>> w = {"w": smelt.array([1.0])}
    >>> smelt.optimizers.Lion(0.25).apply_gradients(w, w)
    {'w': array([0.75], dtype=float32)}
    """

    def __init__(self, learning_rate: Rate, betas: Sequence[float] = (0.9, 0.99), weight_decay: float = 0.0):
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = _check_betas("Lion", betas)
        self.weight_decay = weight_decay

    def init_single(self, parameter: array, state: dict[str, Any]) -> None:
        """``m``: zeros."""
        state["m"] = smelt.zeros_like(parameter)

    def apply_single(self, gradient: array, parameter: array, state: dict[str, Any]) -> array:
        """One step of one parameter; updates `state`."""
        rate = self.learning_rate.astype(gradient.dtype)
        b1, b2 = self.betas
        m = state["m"]
        direction = smelt.sign(b1 * m + (1 - b1) * gradient)
        state["m"] = b2 * m + (1 - b2) * gradient
        if self.weight_decay > 0:
            parameter = (1 - rate * self.weight_decay) * parameter
        return parameter - rate * direction
