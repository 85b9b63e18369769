"""L-BFGS: steps of Newton's method, with curvature that is read off the last gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line

from ..lazy.tree import flatten, kind_of, unflatten
from ..utils import tree_flatten, tree_map_with_path
from .algorithms import Rate
from .base import Optimizer, whole_or_nothing

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """p - lr · H · g, where H is made of the last `history` changes of p and g (Liu and Nocedal, 1989).

    For functions that are the same at each step. All parameters are one vector; the first step is
    lr · g · min(1, 1 / Σ|g|). `minimize` looks for the length of each step besides, and needs no learning rate.

    Args:
        learning_rate: a number, or a function of the number of steps. history: how many changes are kept.

    Raises:
        AttributeValueError: `history` is less than 1. TreeError: the gradients are not those of all parameters.
            ShapeError: one of another shape.

    >>> import smelt
    >>> optimizer = smelt.optimizers.LBFGS()
    >>> w = {"w": smelt.array([4.0, 2.0])}
    >>> for _ in range(8):
    ...     w = optimizer.apply_gradients({"w": smelt.array([2.0, 4.0]) * w["w"]}, w)
    >>> smelt.max(smelt.abs(w["w"])).item() < 1e-3
    True
    """

    def __init__(self, learning_rate: Rate = 1.0, history: int = 10):
        super().__init__()
        if history < 1:
            raise AttributeValueError(at_user_line(f"smelt.optimizers.LBFGS: history must be at least 1, is {history}"))
        self._maybe_schedule("learning_rate", learning_rate)
        self.history = history

    def init(self, parameters: Any) -> None:
        """Make the state for parameters: the ``moves`` of the vector of all, and the ``changes`` of its gradient."""
        like = _vector(parameters)
        for name, shape in (("moves", (self.history, like.size)), ("changes", (self.history, like.size)),
                            ("place", like.shape), ("gradient", like.shape)):  # fmt: skip
            self._state[name] = smelt.zeros(shape, like.dtype)
        self._initialized = True

    def apply_gradients(self, gradients: Any, parameters: Any) -> Any:
        """The new values of parameters; see `Optimizer.apply_gradients`. Needs the gradients of all parameters."""
        chosen = self._parameters_of(gradients, dict(tree_flatten(parameters)))
        with whole_or_nothing(self):
            if not self._initialized:
                self.init(gradients)
            for name, schedule in self._schedulers.items():
                self._state[name] = schedule(self.step)
            gradient = _vector(gradients)
            scale = smelt.where(self.step == 0, smelt.minimum(1, 1 / smelt.sum(smelt.abs(gradient))), 1)
            move = self._direction(gradient, _vector(chosen)) * (self.learning_rate * scale)
            return _moved(gradients, chosen, move)

    def _parameters_of(self, gradients: Any, held: dict[str, Any]) -> list[array]:
        """For each gradient its parameter.

        Raises:
            TreeError: there is none, or the gradient is no array. ShapeError: it has another shape.
        """
        found = []
        paths = flatten(tree_map_with_path(lambda path, _: path, gradients))[0]
        for path, gradient in zip(paths, flatten(gradients)[0]):
            parameter = held.get(path)
            if not isinstance(parameter, array):
                raise self._misfit("apply_gradients", path, "is no parameter, but has a gradient")
            if not isinstance(gradient, array):
                both = f"is {parameter.aval}, its gradient {kind_of(gradient)}"
                raise self._misfit("apply_gradients", path, both)
            if gradient.shape != parameter.shape:
                both = f"is {parameter.aval}, its gradient {gradient.aval}"
                raise self._misfit("apply_gradients", path, both, ShapeError)
            found.append(parameter)
        return found

    def _direction(self, gradient: array, place: array) -> array:
        """-H · g, after the last change is taken in."""
        state = self._state
        move, change = place - state["place"], gradient - state["gradient"]
        taken = (self.step > 0) & (smelt.sum(move * change) > 1e-10)  # else H would not be positive definite
        for name, new in (("moves", move), ("changes", change)):
            state[name] = smelt.where(taken, smelt.concatenate([state[name][1:], new[None]]), state[name])
        state |= {"place": place, "gradient": gradient, "step": self.step + 1}
        moves, changes = state["moves"], state["changes"]
        curvatures = smelt.sum(moves * changes, axis=1)
        inverse = smelt.where(curvatures > 0, 1 / smelt.where(curvatures > 0, curvatures, 1), 0)  # 0: not yet filled
        parts: list[array] = []
        for i in reversed(range(self.history)):
            parts.append(inverse[i] * smelt.sum(moves[i] * gradient))
            gradient = gradient - parts[-1] * changes[i]
        filled = curvatures[-1] > 0
        gradient = gradient * smelt.where(
            filled, curvatures[-1] / smelt.where(filled, smelt.sum(smelt.square(changes[-1])), 1), 1
        )
        for i in range(self.history):
            gradient = gradient + moves[i] * (parts.pop() - inverse[i] * smelt.sum(changes[i] * gradient))
        return -gradient

    def minimize(
        self, fn: Callable[[Any], array], parameters: Any, steps: int = 100, tolerance: float = 1e-6
    ) -> tuple[Any, array]:
        """Parameters at which a function is small, and its value there.

        Each step is halved until the function falls by what its slope promises (Armijo's rule).

        Args:
            fn: of a tree of parameters, returns a scalar. steps: how many, at most.
            tolerance: where the largest element of the gradient is smaller, or no step helps, that is the end.

        >>> import smelt
        >>> def valley(p):
        ...     return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        >>> found, value = smelt.optimizers.LBFGS().minimize(valley, smelt.array([-1.2, 1.0]))
        >>> smelt.max(smelt.abs(found - 1)).item() < 1e-2, value.item() < 1e-4
        (True, True)
        """
        value_and_gradient = smelt.compile(smelt.value_and_grad(fn))
        value, gradients = value_and_gradient(parameters)
        for step in range(steps):
            gradient = _vector(gradients)
            if bool(smelt.max(smelt.abs(gradient)) <= tolerance):
                break
            place = _vector(parameters)
            direction = self._direction(gradient, place) if step else self._first(parameters, gradient, place)
            slope, old, length = smelt.sum(gradient * direction).item(), value.item(), 1.0
            if -slope <= smelt.finfo(value.dtype).eps * max(1.0, abs(old)):
                break  # what is left to gain is less than rounding
            while True:
                tried = _moved(parameters, flatten(parameters)[0], length * direction)
                value, gradients = value_and_gradient(tried)
                if math.isfinite(value.item()) and value.item() <= old + 1e-4 * length * slope:
                    break
                length /= 2
                if length < 1e-10:
                    return parameters, smelt.array(old)
            parameters = tried
        return parameters, value

    def _first(self, parameters: Any, gradient: array, place: array) -> array:
        self.init(parameters)
        self._state["step"] = smelt.zeros_like(self.step)
        direction = self._direction(gradient, place)
        return direction * smelt.minimum(1, 1 / smelt.sum(smelt.abs(gradient)))


def _vector(tree: Any) -> array:
    """All arrays of a tree as one of real numbers, of single precision at least. Of complex ones the parts."""
    leaves = [part for x in flatten(tree)[0] if isinstance(x, array) for part in _parts(x)]
    dtype = smelt.float64 if any(x.dtype is smelt.float64 for x in leaves) else smelt.float32
    return smelt.concatenate([x.reshape(-1).astype(dtype) for x in leaves]) if leaves else smelt.zeros(0)


def _parts(x: array) -> list[array]:
    return [smelt.real(x), smelt.imag(x)] if x.dtype.is_complex else [x]


def _moved(like: Any, parameters: list[Any], move: array) -> Any:
    """Parameters, moved by the parts of a vector, in a tree of a structure."""
    values, start = [], 0
    for x in parameters:
        parts = []
        for part in _parts(x):
            parts.append(move[start : start + x.size].reshape(x.shape).astype(part.dtype))
            start += x.size
        values.append(x + (parts[0] if len(parts) == 1 else smelt.stack(parts, -1).view(x.dtype)[..., 0]))
    return unflatten(flatten(like)[1], values)
