"""Samples that are functions of one uniform, exponential or normal number; differentiable in their parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, ShapeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..functions.arithmetic import abs as absolute
from ..functions.arithmetic import sign, sqrt
from ..functions.diagonals import diagonal
from ..functions.logic import where
from ..functions.reductions import sum as total
from ..functions.transcendental import exp, log, tan
from ..lazy.arguments import dtype_of, integer
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert
from ..lazy.movement import iota
from ..lazy.streams import check_stream
from ..linalg.factors import qr
from .continuous import normal
from .discrete import bits, categorical
from .gamma_family import chisquare
from .keys import checked_key, split
from .sampling import (
    RANGES,
    check_range,
    float_dtype,
    float_parameters,
    known_values,
    normal_unit,
    shape_of,
    uniform_open,
    uniform_unit,
)
from .sampling import exponential as unit_exponential

__all__ = [
    "cauchy", "f", "logistic", "lognormal", "maxwell", "multinomial", "orthogonal", "pareto", "rademacher", "rayleigh",
    "triangular", "weibull",
]  # fmt: skip


def lognormal(
    mean: ArrayLike = 0.0,
    sigma: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Numbers whose logarithm is normally distributed with this mean and standard deviation.

    Args:
        mean, sigma: numbers, or arrays that broadcast to `shape`, which is that of both by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.lognormal(0.0, 0.5, (2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (middle, spread), shape = float_parameters("lognormal", dtype, shape, mean=mean, sigma=sigma)
    return convert(exp(middle + spread * normal_unit(checked_key("lognormal", key), shape, middle.dtype)), target)


def cauchy(
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Cauchy distributed around `loc`: half of all numbers are within `scale`. They have no mean.

    Args:
        loc, scale: numbers, or arrays that broadcast to `shape`, which is that of both by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.cauchy(shape=(2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (middle, spread), shape = float_parameters("cauchy", dtype, shape, loc=loc, scale=scale)
    u = uniform_open(checked_key("cauchy", key), shape, middle.dtype)
    return convert(middle + spread * tan(u * (math.pi / 2)), target)


def logistic(
    loc: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Logistically distributed around `loc`: the probability of numbers below x is sigmoid((x - loc) / scale).

    Args:
        loc, scale: numbers, or arrays that broadcast to `shape`, which is that of both by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.logistic(shape=(2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (middle, spread), shape = float_parameters("logistic", dtype, shape, loc=loc, scale=scale)
    first, second = split(checked_key("logistic", key))
    # The logarithm of the quotient of two waiting times
    one, other = (unit_exponential(k, shape, middle.dtype) for k in (first, second))
    return convert(middle + spread * (log(one) - log(other)), target)


def rayleigh(
    scale: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Rayleigh distributed: the length of two normal numbers of standard deviation `scale`.

    Args:
        scale: above 0; a number or an array.
        shape: of the result; by default that of the parameters. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.rayleigh(2.0, (2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (size,), shape = float_parameters("rayleigh", dtype, shape, scale=scale)
    waiting = unit_exponential(checked_key("rayleigh", key), shape, size.dtype)
    return convert(size * sqrt(2 * waiting), target)


def weibull(
    a: ArrayLike,
    scale: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Weibull distributed: `scale` times an exponential number to the power of 1 / a.

    Args:
        a: above 0, and scale: numbers, or arrays that broadcast to `shape`, which is that of both by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.weibull(2.0, shape=(2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (order, size), shape = float_parameters("weibull", dtype, shape, a=a, scale=scale)
    waiting = unit_exponential(checked_key("weibull", key), shape, order.dtype)
    return convert(size * exp(log(waiting) / where(order > 0, order, math.nan)), target)


def pareto(
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Pareto distributed from 1 on: larger ones than x have the probability x⁻ᵃ. (NumPy's begin at 0: one less.)

    Args:
        a: above 0; a number, or an array that broadcasts to `shape`, which is its own by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.pareto(3.0, (2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (order,), shape = float_parameters("pareto", dtype, shape, a=a)
    waiting = unit_exponential(checked_key("pareto", key), shape, order.dtype)
    return convert(exp(waiting / where(order > 0, order, math.nan)), target)


def maxwell(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Maxwell distributed: the length of three standard normal numbers.

    Args:
        shape: of the result. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.maxwell((2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, whole = float_dtype("maxwell", dtype), shape_of("maxwell", shape)
    parts = normal((3, *whole), dtypes.float64 if target is dtypes.float64 else dtypes.float32,
                   key=checked_key("maxwell", key))  # fmt: skip
    return convert(sqrt(total(parts * parts, 0)), target)


def triangular(
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Between `left` and `right`, with a density that rises linearly up to `mode` and falls behind it.

    Args:
        left, mode, right: in this order; numbers, or arrays that broadcast to `shape`, theirs by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    Raises:
        AttributeValueError: numbers in another order. Those of smelt arrays give NaN.

    >>> import smelt
    >>> smelt.random.triangular(0.0, 1.0, 3.0, (2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    given = {"left": left, "mode": mode, "right": right}
    target, (low, top, high), shape = float_parameters("triangular", dtype, shape, **given)
    ends = [known_values(x) for x in given.values()]
    for (one, less), (other, more) in itertools.pairwise(zip(given, ends)):
        if less is not None and more is not None and np.any(less > more):
            listed = ", ".join(f"{name} {shown(x)}" for name, x in given.items())
            message = f"smelt.random.triangular: {one} must be at most {other}; {listed}"
            raise AttributeValueError(at_user_line(message))
    u = uniform_unit(checked_key("triangular", key), shape, low.dtype)
    width, rise = high - low, top - low
    known = (rise >= 0) & (top <= high)
    below = u * width < rise
    up = low + sqrt(where(below, u * width * rise, 1.0))
    down = high - sqrt(where(below, 1.0, (1 - u) * width * (high - top)))
    return convert(where(known, where(below, up, down), math.nan), target)


def f(
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Fisher's F distributed with these degrees of freedom: the quotient of two mean squares.

    Args:
        dfnum, dfden: above 0; numbers or arrays, which broadcast.
        shape: of the result; by default that of the parameters. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.f(3.0, 5.0, (2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (above, below), shape = float_parameters("f", dtype, shape, dfnum=dfnum, dfden=dfden)
    first, second = split(checked_key("f", key))
    one = chisquare(above, shape, above.dtype, first) / above
    return convert(one / (chisquare(below, shape, below.dtype, second) / below), target)


def rademacher(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """-1 and 1, equally often.

    Args:
        shape: of the result. dtype: int32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.rademacher((2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, whole = dtype_of("random.rademacher", dtype, dtypes.int32), shape_of("rademacher", shape)
    drawn = convert(bits(whole, 1, key=checked_key("rademacher", key)) & 1, dtypes.int32)
    return convert(drawn * 2 - 1, target)


def multinomial(
    n: int,
    pvals: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """How often each of k outcomes is drawn in n trials.

    Args:
        n: the number of trials, 2²⁰ at most.
        pvals: shape (…, k), the probabilities of the outcomes; they are divided by their sum.
        shape: of the samples without the axis of the outcomes; that of pvals by default.
        dtype: of the counts. key: as of `uniform`.

    Returns:
        An array of shape (*shape, k), int32 by default.

    Raises:
        ShapeError: `pvals` is no vector, or does not broadcast to `shape`. AttributeValueError: another n.

    >>> import smelt
    >>> smelt.random.multinomial(10, smelt.array([0.5, 0.5])).sum()
    array(10, dtype=int32)
    """
    check_stream(stream)
    count, parts = integer("random.multinomial", "n", n, 0), as_array(pvals)
    check_range("multinomial", "pvals", known_values(pvals), RANGES["pvals"])
    target = dtype_of("random.multinomial", dtype, dtypes.int32)
    if count > 1 << 20:
        raise AttributeValueError(at_user_line(f"smelt.random.multinomial: {count} trials are too many"))
    if not parts.ndim or not parts.dtype.is_float:
        raise ShapeError(at_user_line(f"smelt.random.multinomial: pvals must be floats on an axis, are {parts.aval}"))
    whole = parts.shape[:-1] if shape is None else shape_of("multinomial", shape)
    drawn = categorical(log(parts), shape=(count, *whole), key=checked_key("multinomial", key))
    kinds = parts.shape[-1]
    each = iota((kinds,), 0)
    hits = convert(convert(drawn, dtypes.int32).reshape((*drawn.shape, 1)) == each, dtypes.int32)
    return convert(total(hits, 0), target)


def orthogonal(
    n: int,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Orthogonal matrices of n rows, uniformly distributed (Haar's measure); of complex dtypes unitary ones.

    Args:
        n: the number of rows. shape: how many matrices. dtype: a floating or complex dtype.
        key: as of `uniform`.

    >>> import smelt
    >>> q = smelt.random.orthogonal(3)
    >>> smelt.allclose(q @ q.T, smelt.eye(3), atol=1e-5)
    array(True, dtype=bool)
    """
    check_stream(stream)
    size, target = integer("random.orthogonal", "n", n, 0), float_dtype("orthogonal", dtype, dtypes.INEXACT)
    whole = (*shape_of("orthogonal", shape), size, size)
    work = target if target.size > 2 else dtypes.float32
    q, r = qr(normal(whole, work, key=checked_key("orthogonal", key)))
    turn = diagonal(r, 0, -2, -1)
    if target.is_complex:
        length = absolute(turn)
        turn = turn / where(length == 0, 1, length)
    else:
        turn = sign(turn)
    return convert(q * turn.reshape((*turn.shape[:-1], 1, size)), target)


explain_keywords(globals())
