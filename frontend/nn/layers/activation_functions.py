"""Activations: functions of single elements, and a few of rows."""

from __future__ import annotations

import math

import smelt
from smelt import array

from ..operands import in_float32, takes_arrays

__all__ = [
    "celu", "elu", "gelu", "gelu_approx", "gelu_fast_approx", "glu", "hard_shrink", "hard_tanh", "hardswish",
    "leaky_relu", "log_sigmoid", "log_softmax", "mish", "prelu", "relu", "relu2", "relu6", "selu", "sigmoid",
    "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "step", "tanh",
]  # fmt: skip

# Each function takes an array of any shape and floating-point dtype and returns one of both. Where a function bends its
# derivative is that of one side, as in MLX and PyTorch, so these choose: `maximum` would halve it. NaN stays NaN.


@takes_arrays
def sigmoid(x: array) -> array:
    """1 / (1 + exp(-x)).

    >>> import smelt
    >>> smelt.nn.sigmoid(smelt.array([0.0, 100.0]))
    array([0.5, 1], dtype=float32)
    """
    return smelt.sigmoid(x)


@takes_arrays
def relu(x: array) -> array:
    """max(x, 0).

    >>> import smelt
    >>> smelt.nn.relu(smelt.array([-1.0, 2.0]))
    array([0, 2], dtype=float32)
    """
    return smelt.where(x <= 0, 0, x)


@takes_arrays
def relu2(x: array) -> array:
    """max(x, 0)².

    >>> import smelt
    >>> smelt.nn.relu2(smelt.array([-1.0, 2.0]))
    array([0, 4], dtype=float32)
    """
    return smelt.square(relu(x))


@takes_arrays
def relu6(x: array) -> array:
    """min(max(x, 0), 6).

    >>> import smelt
    >>> smelt.nn.relu6(smelt.array([-1.0, 2.0, 8.0]))
    array([0, 2, 6], dtype=float32)
    """
    return smelt.where(x >= 6, 6.0, relu(x))


@takes_arrays
def leaky_relu(x: array, negative_slope: float = 0.01) -> array:
    """x where that is positive, else negative_slope · x; for slopes up to 1.

    >>> import smelt
    >>> smelt.nn.leaky_relu(smelt.array([-1.0, 2.0]), 0.5)
    array([-0.5, 2], dtype=float32)
    """
    # The larger of both, also where both are infinite: there the slope is that of the scaled one.
    return smelt.where((negative_slope - 1) * x > 0, negative_slope * x, x)


@takes_arrays
def softmax(x: array, axis: int | tuple[int, ...] = -1) -> array:
    """exp(x) / Σ exp(x) along an axis.

    >>> import smelt
    >>> smelt.nn.softmax(smelt.array([1.0, 1.0]))
    array([0.5, 0.5], dtype=float32)
    """
    return smelt.softmax(x, axis=axis)


@takes_arrays
def softmin(x: array, axis: int | tuple[int, ...] = -1) -> array:
    """softmax(-x) along an axis.

    >>> import smelt
    >>> smelt.nn.softmin(smelt.array([1.0, 1.0]))
    array([0.5, 0.5], dtype=float32)
    """
    return smelt.softmax(-floating(x), axis=axis)


@takes_arrays
def log_softmax(x: array, axis: int = -1) -> array:
    """x - log Σ exp(x) along an axis; as accurate for large x as for small ones.

    >>> import smelt
    >>> smelt.nn.log_softmax(smelt.array([1e30, 1e30]))
    array([-0.693147, -0.693147], dtype=float32)
    """
    if not x.size:
        return x
    wide = widened(x)
    top, rest = largest_and_rest(wide, axis)
    return (wide - top - rest).astype(x.dtype if x.dtype.is_inexact else wide.dtype)


def widened(x: array) -> array:
    """In the dtype in which rows are summed: half precision as float32, integers too."""
    return x.astype(smelt.result_type(x.dtype, smelt.float32))


def floating(x: array) -> array:
    """float32 of integers: among them sums, products and -x wrap, and unsigned ones have no negative bounds."""
    return x if x.dtype.is_inexact else x.astype(smelt.float32)


def largest_and_rest(x: array, axis: int) -> tuple[array, array]:
    """What log Σ exp(x) along an axis consists of: the maximum, of which no derivative depends, and what is added.

    Where x is large their sum has no digit of the second; so what is compared with it has the maximum taken off first.
    """
    top = smelt.stop_gradient(smelt.max(x, axis=axis, keepdims=True))
    return top, smelt.log(smelt.sum(smelt.exp(x - top), axis=axis, keepdims=True))


@takes_arrays
@in_float32
def elu(x: array, alpha: float = 1.0) -> array:
    """x where that is positive, else alpha · (exp(x) - 1).

    >>> import smelt
    >>> smelt.nn.elu(smelt.array([-1.0, 2.0]))
    array([-0.632121, 2], dtype=float32)
    """
    # The other branch is kept finite: its derivative is multiplied by zero.
    return smelt.where(x > 0, x, alpha * smelt.expm1(_negative(x)))


def _negative(x: array) -> array:
    return smelt.where(x > 0, 0, x)


@takes_arrays
@in_float32
def celu(x: array, alpha: float = 1.0) -> array:
    """max(x, 0) + min(alpha · (exp(x / alpha) - 1), 0).

    >>> import smelt
    >>> smelt.nn.celu(smelt.array([-2.0, 2.0]), 2.0)
    array([-1.26424, 2], dtype=float32)
    """
    return smelt.where(x > 0, x, alpha * smelt.expm1(_negative(x) / alpha))


@takes_arrays
@in_float32
def selu(x: array) -> array:
    """1.0507 · elu(x, 1.67326).

    >>> import smelt
    >>> smelt.nn.selu(smelt.array([0.0, 2.0]))
    array([0, 2.1014], dtype=float32)
    """
    return elu(x, 1.67326) * 1.0507


@takes_arrays
@in_float32
def silu(x: array) -> array:
    """x · sigmoid(x).

    >>> import smelt
    >>> smelt.nn.silu(smelt.array([0.0, 1.0]))
    array([0, 0.731059], dtype=float32)
    """
    return x * smelt.sigmoid(x)


@takes_arrays
def softplus(x: array) -> array:
    """log(1 + exp(x)).

    >>> import smelt
    >>> smelt.nn.softplus(smelt.array([0.0, 100.0]))
    array([0.693147, 100], dtype=float32)
    """
    return smelt.logaddexp(x, 0)


@takes_arrays
def log_sigmoid(x: array) -> array:
    """log sigmoid(x).

    >>> import smelt
    >>> smelt.nn.log_sigmoid(smelt.array([0.0, -100.0]))
    array([-0.693147, -100], dtype=float32)
    """
    return -softplus(-floating(x))


@takes_arrays
@in_float32
def softsign(x: array) -> array:
    """x / (1 + |x|).

    >>> import smelt
    >>> smelt.nn.softsign(smelt.array([-1.0, 3.0]))
    array([-0.5, 0.75], dtype=float32)
    """
    x = floating(x)
    return smelt.divide(x, 1 + smelt.abs(x))


@takes_arrays
@in_float32
def softshrink(x: array, lambd: float = 0.5) -> array:
    """x moved by `lambd` towards zero; zero where that is less than `lambd` away.

    >>> import smelt
    >>> smelt.nn.softshrink(smelt.array([-2.0, 0.25, 2.0]))
    array([-1.5, 0, 1.5], dtype=float32)
    """
    x = floating(x)
    return smelt.where(smelt.abs(x) > lambd, x - smelt.sign(x) * lambd, 0)


@takes_arrays
def hard_shrink(x: array, lambd: float = 0.5) -> array:
    """x where |x| is more than `lambd`, else 0.

    >>> import smelt
    >>> smelt.nn.hard_shrink(smelt.array([-2.0, 0.25, 2.0]))
    array([-2, 0, 2], dtype=float32)
    """
    return smelt.where(smelt.abs(floating(x)) > lambd, x, 0)


@takes_arrays
@in_float32
def gelu(x: array) -> array:
    """x · Φ(x), with the normal distribution function Φ.

    >>> import smelt
    >>> smelt.nn.gelu(smelt.array([-1.0, 1.0]))
    array([-0.158655, 0.841345], dtype=float32)
    """
    return x * (1 + smelt.erf(x / math.sqrt(2))) / 2


@takes_arrays
@in_float32
def gelu_approx(x: array) -> array:
    """`gelu` by tanh: 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).

    >>> import smelt
    >>> smelt.nn.gelu_approx(smelt.array([-1.0, 1.0]))
    array([-0.158808, 0.841192], dtype=float32)
    """
    x = floating(x)
    near = smelt.clip(x, -40, 40)  # powers of larger x are infinite, and so was the derivative
    # ½ · (1 + tanh y) as sigmoid(2 · y), which does not cancel where x is negative.
    scale = 2 * math.sqrt(2 / math.pi)
    return x * smelt.sigmoid(near * (scale + 0.044715 * scale * (near * near)))


@takes_arrays
@in_float32
def gelu_fast_approx(x: array) -> array:
    """`gelu` by sigmoid: x · sigmoid(1.702 · x).

    >>> import smelt
    >>> smelt.nn.gelu_fast_approx(smelt.array([0.0, 1.0]))
    array([0, 0.845796], dtype=float32)
    """
    return x * smelt.sigmoid(1.702 * x)


@takes_arrays
@in_float32
def glu(x: array, axis: int = -1) -> array:
    """The first half of an axis times the sigmoid of the second.

    Returns:
        The shape of `x` with half the extent of `axis`.

    >>> import smelt
    >>> smelt.nn.glu(smelt.array([2.0, 0.0]))
    array([1], dtype=float32)
    """
    first, second = smelt.split(x, 2, axis=axis)
    return first * smelt.sigmoid(second)


@takes_arrays
def step(x: array, threshold: float = 0.0) -> array:
    """1 where x is at least `threshold`, else 0, as int32.

    >>> import smelt
    >>> smelt.nn.step(smelt.array([-1.0, 1.0]))
    array([0, 1], dtype=int32)
    """
    return smelt.where(x >= threshold, 1, 0)


@takes_arrays
def prelu(x: array, alpha: array) -> array:
    """x where that is positive, else alpha · x.

    >>> import smelt
    >>> smelt.nn.prelu(smelt.array([-1.0, 2.0]), smelt.array([0.25]))
    array([-0.25, 2], dtype=float32)
    """
    return smelt.where(x > 0, x, alpha * _negative(x))


@takes_arrays
@in_float32
def mish(x: array) -> array:
    """x · tanh(softplus(x)).

    >>> import smelt
    >>> smelt.nn.mish(smelt.array([0.0, 1.0]))
    array([0, 0.865098], dtype=float32)
    """
    return x * smelt.tanh(softplus(x))


@takes_arrays
@in_float32
def hardswish(x: array) -> array:
    """x · min(max(x + 3, 0), 6) / 6.

    >>> import smelt
    >>> smelt.nn.hardswish(smelt.array([-4.0, 0.0, 3.0]))
    array([0, 0, 3], dtype=float32)
    """
    x = floating(x)
    # Nothing and x itself where they are meant: 0 · ∞ is neither, and 6 · x may be infinite.
    middle = smelt.where(smelt.abs(x) < 3, x, 0)
    return smelt.where(x <= -3, 0, smelt.where(x < 3, middle * (middle + 3) / 6, x))


@takes_arrays
def hard_tanh(x: array, min_val: float = -1.0, max_val: float = 1.0) -> array:
    """x, but not less than `min_val` and not more than `max_val`.

    >>> import smelt
    >>> smelt.nn.hard_tanh(smelt.array([-4.0, 0.5, 3.0]))
    array([-1, 0.5, 1], dtype=float32)
    """
    return smelt.where(x >= max_val, max_val, smelt.where(x <= min_val, min_val, x))


@takes_arrays
def tanh(x: array) -> array:
    """The hyperbolic tangent.

    >>> import smelt
    >>> smelt.nn.tanh(smelt.array([0.0, 100.0]))
    array([0, 1], dtype=float32)
    """
    return smelt.tanh(x)
