"""Values that parameters start with: each function returns one that takes an array and returns another of its shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import smelt
from smelt import array
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.listing import listed

from ..lacking import lacking
from ..lazy.explained import explained_maker

__all__ = [
    "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "normal", "orthogonal",
    "sparse", "uniform",
]  # fmt: skip

__dir__ = listed(globals())
if not TYPE_CHECKING:
    __getattr__ = lacking(globals())


@explained_maker
def constant(value: float, dtype: DType = smelt.float32) -> Callable[[array], array]:
    """One value everywhere.

    Args:
        value: a number, or an array that broadcasts.
        dtype: of the result, whatever that of the argument is; float32 by default.

    Returns:
        A function that returns a new array of its argument's shape.

    >>> import smelt
    >>> smelt.nn.init.constant(0.5)(smelt.zeros(2))
    array([0.5, 0.5], dtype=float32)
    """
    return lambda a: smelt.full(a.shape, value, dtype)


@explained_maker
def normal(mean: float = 0.0, std: float = 1.0, dtype: DType = smelt.float32) -> Callable[[array], array]:
    """Normally distributed.

    Args:
        mean, std: of the distribution; numbers.
        dtype: of the result, whatever that of the argument is; float32 by default.

    Returns:
        A function that returns a new array of its argument's shape.

    >>> import smelt
    >>> smelt.nn.init.normal()(smelt.zeros((2, 3))).shape
    (2, 3)
    """
    return lambda a: smelt.random.normal(a.shape, dtype, mean, std)


@explained_maker
def uniform(low: float = 0.0, high: float = 1.0, dtype: DType = smelt.float32) -> Callable[[array], array]:
    """Uniform between two numbers.

    Args:
        low, high: the ends of the range; numbers.
        dtype: of the result, whatever that of the argument is; float32 by default.

    Returns:
        A function that returns a new array of its argument's shape.

    >>> import smelt
    >>> smelt.nn.init.uniform(2.0, 3.0)(smelt.zeros(2)).min().item() >= 2.0
    True
    """
    return lambda a: smelt.random.uniform(low, high, a.shape, dtype)


@explained_maker
def identity(dtype: DType = smelt.float32) -> Callable[[array], array]:
    """The identity matrix.

    Raises:
        ShapeError: when called with an array that is no square matrix.

    >>> import smelt
    >>> smelt.nn.init.identity()(smelt.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def made(a: array) -> array:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ShapeError(at_user_line(f"smelt.nn.init.identity: needs a square matrix; a {a.aval}"))
        return smelt.eye(a.shape[0], dtype=dtype)

    return made


def _fans(name: str, a: array) -> tuple[int, int]:
    """How many elements of the argument an element of the result depends on, and the other way round."""
    if a.ndim < 2:
        raise ShapeError(at_user_line(f"smelt.nn.init.{name}: needs an array of at least two axes; a {a.aval}"))
    window = math.prod(a.shape[1:-1])
    return a.shape[-1] * window, a.shape[0] * window


def _fan(name: str, a: array, mode: str) -> int:
    fans = dict(zip(("fan_in", "fan_out"), _fans(name, a)))
    if mode not in fans:
        raise AttributeValueError(
            at_user_line(f"smelt.nn.init.{name}: mode must be fan_in or fan_out, is {shown(mode)}")
        )
    return fans[mode]


@explained_maker
def glorot_normal(dtype: DType = smelt.float32) -> Callable[..., array]:
    """Normally distributed, with deviation gain · √(2 / (fan_in + fan_out)).

    The fans of an array are the extents of its last and its first axis, times those between (Glorot and Bengio,
    "Understanding the difficulty of training deep feedforward neural networks", 2010).

    Returns:
        A function of an array and of `gain`, 1 by default. It raises ShapeError for less than two axes.

    >>> import smelt
    >>> smelt.nn.init.glorot_normal()(smelt.zeros((2, 3)), gain=2.0).shape
    (2, 3)
    """

    def made(a: array, gain: float = 1.0) -> array:
        return smelt.random.normal(a.shape, dtype, 0.0, gain * math.sqrt(2 / sum(_fans("glorot_normal", a))))

    return made


@explained_maker
def glorot_uniform(dtype: DType = smelt.float32) -> Callable[..., array]:
    """Uniform between ±gain · √(6 / (fan_in + fan_out)); see `glorot_normal`.

    >>> import smelt
    >>> smelt.nn.init.glorot_uniform()(smelt.zeros((2, 3))).shape
    (2, 3)
    """

    def made(a: array, gain: float = 1.0) -> array:
        bound = gain * math.sqrt(6 / sum(_fans("glorot_uniform", a)))
        return smelt.random.uniform(-bound, bound, a.shape, dtype)

    return made


@explained_maker
def he_normal(dtype: DType = smelt.float32) -> Callable[..., array]:
    """Normally distributed, with deviation gain / √fan.

    The fan is fan_in or fan_out of `glorot_normal` (He et al., "Delving deep into rectifiers", 2015).

    Returns:
        A function of an array, of `mode`, ``"fan_in"`` by default or ``"fan_out"``, and of `gain`, 1 by default. It
        raises ShapeError for less than two axes, AttributeValueError for another mode.

    >>> import smelt
    >>> smelt.nn.init.he_normal()(smelt.zeros((2, 3)), mode="fan_out").shape
    (2, 3)
    """

    def made(a: array, mode: Literal["fan_in", "fan_out"] = "fan_in", gain: float = 1.0) -> array:
        return smelt.random.normal(a.shape, dtype, 0.0, gain / math.sqrt(_fan("he_normal", a, mode)))

    return made


@explained_maker
def he_uniform(dtype: DType = smelt.float32) -> Callable[..., array]:
    """Uniform between ±gain · √(3 / fan); see `he_normal`.

    >>> import smelt
    >>> smelt.nn.init.he_uniform()(smelt.zeros((2, 3)), gain=2.0).shape
    (2, 3)
    """

    def made(a: array, mode: Literal["fan_in", "fan_out"] = "fan_in", gain: float = 1.0) -> array:
        bound = gain * math.sqrt(3 / _fan("he_uniform", a, mode))
        return smelt.random.uniform(-bound, bound, a.shape, dtype)

    return made


@explained_maker
def sparse(
    sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: DType = smelt.float32
) -> Callable[[array], array]:
    """Normally distributed, with zeros in random places: in each row that part of the elements, rounded up.

    Args:
        sparsity: the part of the elements that are zeros, from 0 to 1. mean, std: of the others.
        dtype: of the result, whatever that of the argument is; float32 by default.

    Returns:
        A function that returns a new array of its argument's shape.

    Raises:
        AttributeValueError: another sparsity. ShapeError: when called with an array that is no matrix.

    >>> import smelt
    >>> (smelt.nn.init.sparse(0.5)(smelt.zeros((2, 4))) == 0).sum(axis=1).tolist()
    [2, 2]
    """
    if not 0 <= sparsity <= 1:
        message = f"sparsity must be from 0 to 1, is {shown(sparsity)}"
        raise AttributeValueError(at_user_line(f"smelt.nn.init.sparse: {message}"))

    def made(a: array) -> array:
        if a.ndim != 2:
            raise ShapeError(at_user_line(f"smelt.nn.init.sparse: needs a matrix; a {a.aval}"))
        zeros = math.ceil(sparsity * a.shape[1])
        rank = smelt.argsort(smelt.argsort(smelt.random.uniform(shape=a.shape), axis=1), axis=1)
        return smelt.where(rank < zeros, 0, smelt.random.normal(a.shape, dtype, mean, std))

    return made


@explained_maker
def orthogonal(gain: float = 1.0, dtype: DType = smelt.float32) -> Callable[[array], array]:
    """`gain` times a random matrix whose rows, or columns if there are less of these, are orthogonal of length 1.

    Args:
        gain: the length of the rows or columns.
        dtype: of the result, whatever that of the argument is; float32 by default.

    Returns:
        A function that returns a new array of its argument's shape.

    Raises:
        ShapeError: when called with an array that is no matrix.

    >>> import smelt
    >>> q = smelt.nn.init.orthogonal()(smelt.zeros((2, 3)))
    >>> smelt.allclose(q @ q.T, smelt.eye(2), atol=1e-5).item()
    True
    """

    def made(a: array) -> array:
        if a.ndim != 2:
            raise ShapeError(at_user_line(f"smelt.nn.init.orthogonal: needs a matrix; a {a.aval}"))
        rows, columns = a.shape
        n = max(rows, columns)
        q, r = smelt.linalg.qr(smelt.random.normal((n, n)))
        q = q * smelt.sign(smelt.diag(r))  # so that all rotations are equally likely
        return (gain * q[:rows, :columns]).astype(dtype)

    return made
