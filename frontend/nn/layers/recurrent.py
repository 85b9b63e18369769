"""Recurrent layers: loops over the positions of a sequence, as `smelt.scan`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import smelt
from smelt import array
from smelt.ir.dtypes import DType
from smelt.ir.errors import ArgumentTypeError, ShapeError, at_user_line, shown

from ...lazy.arguments import integer
from .activation_functions import tanh
from .base import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class _Recurrent(Module):
    """What the kinds share."""

    hidden_size: int

    def _uniform(self, hidden_size: int, *shape: int) -> array:
        bound = 1 / math.sqrt(hidden_size)
        return smelt.random.uniform(-bound, bound, shape)

    def _map(self, x: array, weight: array, bias: array | None) -> array:
        return x @ weight.T if bias is None else smelt.addmm(bias, x, weight.T)

    def _check(self, x: array, axes: str, least: int) -> None:
        size = (self["Wxh"] if "Wxh" in self else self["Wx"]).shape[1]
        if x.ndim < least or x.shape[-1] != size:
            raise ShapeError(
                at_user_line(f"smelt.nn.{type(self).__name__}: needs axes [..., {axes}{size}]; x {x.aval}")
            )

    def _inputs(self, x: array) -> array:
        """What steps take of their inputs, for all positions."""
        raise NotImplementedError

    def _step(self, dtype: DType) -> Callable[[Any, array], Any]:
        """A function of a state and an input that returns the next state."""
        raise NotImplementedError

    def _begin(self, states: tuple[array | None, ...], batch: tuple[int, ...], dtype: DType) -> Any:
        """States, or zeros, for each sequence."""
        shape = (*batch, self.hidden_size)
        for s in states:
            fits = s is None or all(n in (1, m) for n, m in zip(s.shape[::-1], shape[::-1]))
            if s is not None and (s.ndim > len(shape) or not fits):
                message = f"smelt.nn.{type(self).__name__}: a state before the first position needs the shape {shape}"
                raise ShapeError(at_user_line(f"{message}; it is {s.aval}"))
        found = [smelt.zeros(shape, dtype) if s is None else smelt.broadcast_to(s.astype(dtype), shape) for s in states]
        return found[0] if len(found) == 1 else tuple(found)

    def _states(self, x: array, *states: array | None) -> Any:
        """The states after each position, in place of the positions of x."""
        self._check(x, "positions, ", 2)
        x = self._inputs(x)
        step = self._step(x.dtype)

        def at(state: Any, x: array) -> tuple[Any, Any]:
            state = step(state, x)
            return state, state

        _, found = smelt.scan(at, self._begin(states, x.shape[:-2], x.dtype), smelt.moveaxis(x, -2, 0))
        return smelt.utils.tree_map(lambda y: smelt.moveaxis(y, 0, -2), found)

    def _next(self, x: array, *states: array | None) -> Any:
        """The state after one position."""
        self._check(x, "", 1)
        x = self._inputs(x)
        return self._step(x.dtype)(self._begin(states, x.shape[:-1], x.dtype), x)


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
        self.hidden_size = integer(f"nn.{type(self).__name__}", "hidden_size", hidden_size, 1)
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
        return self._states(x, hidden)

    def _inputs(self, x: array) -> array:
        return self._map(x, self.Wxh, self.get("bias"))

    def _step(self, dtype: DType) -> Callable[[array, array], array]:
        weight, function = self.Whh.T.astype(dtype), self.nonlinearity
        return lambda hidden, x: function(x + hidden @ weight)


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
        self.hidden_size = integer(f"nn.{type(self).__name__}", "hidden_size", hidden_size, 1)
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
        return self._states(x, hidden)

    def _inputs(self, x: array) -> array:
        return self._map(x, self.Wx, self.get("b"))

    def _step(self, dtype: DType) -> Callable[[array, array], array]:
        n, weight = self.hidden_size, self.Wh.T.astype(dtype)
        bias = self.bhn.astype(dtype) if "bhn" in self else None

        def step(hidden: array, x: array) -> array:
            moved = hidden @ weight
            gates = smelt.sigmoid(x[..., : 2 * n] + moved[..., : 2 * n])
            reset, keep = gates[..., :n], gates[..., n:]
            inner = moved[..., 2 * n :] if bias is None else moved[..., 2 * n :] + bias
            new = smelt.tanh(x[..., 2 * n :] + reset * inner)
            return (1 - keep) * new + keep * hidden

        return step


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
        self.hidden_size = integer(f"nn.{type(self).__name__}", "hidden_size", hidden_size, 1)
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
        return self._states(x, hidden, cell)

    def _inputs(self, x: array) -> array:
        return self._map(x, self.Wx, self.get("bias"))

    def _step(self, dtype: DType) -> Callable[[Any, array], Any]:
        n, weight = self.hidden_size, self.Wh.T.astype(dtype)

        def step(state: tuple[array, array], x: array) -> tuple[array, array]:
            hidden, cell = state
            moved = x + hidden @ weight
            take, forget, out = (smelt.sigmoid(moved[..., i * n : (i + 1) * n]) for i in (0, 1, 3))
            cell = forget * cell + take * smelt.tanh(moved[..., 2 * n : 3 * n])
            return out * smelt.tanh(cell), cell

        return step


class RNNCell(RNN):
    """One step of an `RNN`, with the same parameters: from [..., input_size] and the last state to the next state.

    Args:
        input_size, hidden_size, bias, nonlinearity: as of `RNN`.

    >>> import smelt
    >>> smelt.nn.RNNCell(3, 4)(smelt.ones((2, 3))).shape
    (2, 4)
    """

    def __call__(self, x: array, hidden: array | None = None) -> array:
        """The state after `hidden`, both [..., hidden_size]; zeros by default."""
        return self._next(x, hidden)


class GRUCell(GRU):
    """One step of a `GRU`, with the same parameters: from [..., input_size] and the last state to the next state.

    Args:
        input_size, hidden_size, bias: as of `GRU`.

    >>> import smelt
    >>> smelt.nn.GRUCell(3, 4)(smelt.ones((2, 3))).shape
    (2, 4)
    """

    def __call__(self, x: array, hidden: array | None = None) -> array:
        """The state after `hidden`, both [..., hidden_size]; zeros by default."""
        return self._next(x, hidden)


class LSTMCell(LSTM):
    """One step of an `LSTM`, with the same parameters: from [..., input_size] and the last states to the next states.

    Args:
        input_size, hidden_size, bias: as of `LSTM`.

    >>> import smelt
    >>> hidden, cell = smelt.nn.LSTMCell(3, 4)(smelt.ones((2, 3)))
    >>> hidden.shape, cell.shape
    ((2, 4), (2, 4))
    """

    def __call__(self, x: array, hidden: array | None = None, cell: array | None = None) -> tuple[array, array]:
        """The states after `hidden` and `cell`, all [..., hidden_size]; zeros by default."""
        return self._next(x, hidden, cell)
