"""Recurrent layers: loops over the positions of a sequence, as `smelt.scan`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line, shown

from .activation_functions import tanh
from .base import Module

__all__ = ["GRU", "LSTM", "RNN"]


class _Recurrent(Module):
    """What the kinds share."""

    def _uniform(self, hidden_size: int, *shape: int) -> array:
        bound = 1 / math.sqrt(hidden_size)
        return smelt.random.uniform(-bound, bound, shape)

    def _check(self, x: array, input_size: int) -> None:
        if x.ndim < 2 or x.shape[-1] != input_size:
            raise ShapeError(
                at_user_line(
                    f"smelt.nn.{type(self).__name__}: needs axes [..., positions, {input_size}]; x {x.aval}"
                )
            )

    def _start(self, state: array | None, x: array, hidden_size: int) -> array:
        """A state, or zeros: for each sequence of x, in its dtype."""
        shape = (*x.shape[:-2], hidden_size)
        return smelt.zeros(shape, x.dtype) if state is None else smelt.broadcast_to(state.astype(x.dtype), shape)

    def _scan(self, step: Callable[[Any, array], Any], start: Any, x: array) -> Any:
        """The states after each position, in place of the positions of x."""
        _, states = smelt.scan(step, start, smelt.moveaxis(x, -2, 0))
        return smelt.utils.tree_map(lambda y: smelt.moveaxis(y, 0, -2), states)


class RNN(_Recurrent):
    """hₜ = f(W_xh · xₜ + W_hh · hₜ₋₁ + bias), from h = 0.

    Args:
        input_size: the extent of the last axis of the argument, [..., positions, input_size].
        hidden_size: that of the states. bias: whether there is one. nonlinearity: f, tanh by default.

    Attributes:
        Wxh: [hidden_size, input_size]. Whh: [hidden_size, hidden_size]. bias: [hidden_size]. All are uniform between
            ±1/√hidden_size at first.

    Raises:
        ArgumentTypeError: `nonlinearity` is no function. ShapeError: when called with other axes.

    >>> import smelt
    >>> smelt.nn.RNN(3, 4)(smelt.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Callable[[array], array] | None = None,
    ):
        super().__init__()
        if nonlinearity is not None and not callable(nonlinearity):
            raise ArgumentTypeError(
                at_user_line(f"smelt.nn.RNN: nonlinearity must be a function, is {shown(nonlinearity)}")
            )
        self.nonlinearity = nonlinearity or tanh
        self.hidden_size = hidden_size
        self.Wxh = self._uniform(hidden_size, hidden_size, input_size)
        self.Whh = self._uniform(hidden_size, hidden_size, hidden_size)
        if bias:
            self.bias = self._uniform(hidden_size, hidden_size)

    def _extra_repr(self) -> str:
        name = getattr(self.nonlinearity, "__name__", type(self.nonlinearity).__name__)
        return (
            f"input_dims={self.Wxh.shape[1]}, hidden_size={self.hidden_size}, nonlinearity={name}, "
            f"bias={'bias' in self}"
        )

    def __call__(self, x: array, hidden: array | None = None) -> array:
        """The states after each position, [..., positions, hidden_size].

        Args:
            hidden: the state before the first position, [..., hidden_size].
        """
        self._check(x, self.Wxh.shape[1])
        x = smelt.addmm(self.bias, x, self.Wxh.T) if "bias" in self else x @ self.Wxh.T
        weight, function = self.Whh.T.astype(x.dtype), self.nonlinearity

        def step(hidden: array, x: array) -> tuple[array, array]:
            hidden = function(x + hidden @ weight)
            return hidden, hidden

        return self._scan(step, self._start(hidden, x, self.hidden_size), x)


class GRU(_Recurrent):
    """r, z = σ(W·x + b + U·h), n = tanh(W·x + b + r · (U·h + b_hn)), then h = (1 - z) · n + z · h, from h = 0.

    Args:
        input_size: the extent of the last axis of the argument, [..., positions, input_size].
        hidden_size: that of the states. bias: whether there are b and b_hn.

    Attributes:
        Wx: [3 · hidden_size, input_size]. Wh: [3 · hidden_size, hidden_size]. b: [3 · hidden_size]; each for r, z and
            n. bhn: [hidden_size]. All are uniform between ±1/√hidden_size at first.

    Raises:
        ShapeError: when called with other axes.

    >>> import smelt
    >>> smelt.nn.GRU(3, 4)(smelt.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = self._uniform(hidden_size, 3 * hidden_size, input_size)
        self.Wh = self._uniform(hidden_size, 3 * hidden_size, hidden_size)
        if bias:
            self.b = self._uniform(hidden_size, 3 * hidden_size)
            self.bhn = self._uniform(hidden_size, hidden_size)

    def _extra_repr(self) -> str:
        return f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, bias={'b' in self}"

    def __call__(self, x: array, hidden: array | None = None) -> array:
        """The states after each position, [..., positions, hidden_size].

        Args:
            hidden: the state before the first position, [..., hidden_size].
        """
        self._check(x, self.Wx.shape[1])
        x = smelt.addmm(self.b, x, self.Wx.T) if "b" in self else x @ self.Wx.T
        n, weight = self.hidden_size, self.Wh.T.astype(x.dtype)
        bias = self.bhn.astype(x.dtype) if "bhn" in self else None

        def step(hidden: array, x: array) -> tuple[array, array]:
            moved = hidden @ weight
            gates = smelt.sigmoid(x[..., : 2 * n] + moved[..., : 2 * n])
            reset, keep = gates[..., :n], gates[..., n:]
            inner = moved[..., 2 * n :] if bias is None else moved[..., 2 * n :] + bias
            new = smelt.tanh(x[..., 2 * n :] + reset * inner)
            hidden = (1 - keep) * new + keep * hidden
            return hidden, hidden

        return self._scan(step, self._start(hidden, x, n), x)


class LSTM(_Recurrent):
    """i, f, o = σ(W·x + U·h + b), g = tanh(W·x + U·h + b), c = f · c + i · g, then h = o · tanh(c), from c = h = 0.

    Args:
        input_size: the extent of the last axis of the argument, [..., positions, input_size].
        hidden_size: that of the states. bias: whether there is b.

    Attributes:
        Wx: [4 · hidden_size, input_size]. Wh: [4 · hidden_size, hidden_size]. bias: [4 · hidden_size]; each for i, f,
            g and o. All are uniform between ±1/√hidden_size at first.

    Raises:
        ShapeError: when called with other axes.

    >>> import smelt
    >>> hidden, cell = smelt.nn.LSTM(3, 4)(smelt.ones((2, 5, 3)))
    >>> hidden.shape, cell.shape
    ((2, 5, 4), (2, 5, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = self._uniform(hidden_size, 4 * hidden_size, input_size)
        self.Wh = self._uniform(hidden_size, 4 * hidden_size, hidden_size)
        if bias:
            self.bias = self._uniform(hidden_size, 4 * hidden_size)

    def _extra_repr(self) -> str:
        return f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, bias={'bias' in self}"

    def __call__(self, x: array, hidden: array | None = None, cell: array | None = None) -> tuple[array, array]:
        """The states h and c after each position, [..., positions, hidden_size] both.

        Args:
            hidden, cell: h and c before the first position, [..., hidden_size].
        """
        self._check(x, self.Wx.shape[1])
        x = smelt.addmm(self.bias, x, self.Wx.T) if "bias" in self else x @ self.Wx.T
        n, weight = self.hidden_size, self.Wh.T.astype(x.dtype)

        def step(state: tuple[array, array], x: array) -> tuple[Any, Any]:
            hidden, cell = state
            moved = x + hidden @ weight
            take, forget, out = (smelt.sigmoid(moved[..., i * n : (i + 1) * n]) for i in (0, 1, 3))
            cell = forget * cell + take * smelt.tanh(moved[..., 2 * n : 3 * n])
            hidden = out * smelt.tanh(cell)
            return (hidden, cell), (hidden, cell)

        start = (self._start(hidden, x, n), self._start(cell, x, n))
        return self._scan(step, start, x)
