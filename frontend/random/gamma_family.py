"""The gamma distribution and what is made of it: chi-squared, beta, Dirichlet and Student's t; waiting times.

Samples are computed as logarithms, so that those of small parameters neither vanish nor lose their digits. They have
derivatives with respect to the parameters: the number that a probability belongs to moves with these (Figurnov, Mohamed
and Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.keywords import explain_keywords

from ..functions.arithmetic import sqrt
from ..functions.compositions import softmax
from ..functions.incomplete import gammainc
from ..functions.logic import logical_and, logical_not, logical_or, where
from ..functions.special import digamma, lgamma
from ..functions.transcendental import exp, log, sigmoid
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, broadcast_to_shape, convert
from ..lazy.movement import to_shape
from ..lazy.streams import check_stream
from ..transforms.custom import custom_jvp
from ..transforms.grad import jvp, stop_gradient
from .keys import checked_key, split
from .sampling import (
    RANGES,
    check_fits,
    check_range,
    computed_in,
    float_dtype,
    float_parameters,
    known_values,
    normal_unit,
    parameter,
    shape_of,
)
from .sampling import exponential as unit_exponential
from .trials import first_taken

#: Trials of a sample; one is refused with a probability of at most 0.05, so all of them never are.
TRIALS = 8


def exponential(
    scale: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Exponentially distributed with mean `scale`: density exp(-x / scale) / scale.

    Args:
        scale: a number, or an array that broadcasts to `shape`, which is its own shape by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.exponential(smelt.array([1.0, 2.0]), key=smelt.random.key(0)).shape
    (2,)
    """
    check_stream(stream)
    target, (mean,), shape = float_parameters("exponential", dtype, shape, scale=scale)
    return convert(unit_exponential(checked_key("exponential", key), shape, mean.dtype) * mean, target)


def gamma(
    a: ArrayLike,
    scale: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Gamma distributed: density proportional to xᵃ⁻¹·exp(-x / scale). Differentiable in `a` and `scale`.

    Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), without a loop.

    Args:
        a: above 0, and scale: numbers, or arrays that broadcast to `shape`, which is that of both by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> x = smelt.random.gamma(3.0, shape=(20000,), key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 1)
    array(3, dtype=float32)
    """
    check_stream(stream)
    target, (order, size), shape = float_parameters("gamma", dtype, shape, a=a, scale=scale)
    return convert(exp(_log_gamma(order, checked_key("gamma", key), shape)) * size, target)


def chisquare(
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Chi-squared distributed: the sum of the squares of `df` standard normal numbers. Differentiable in `df`.

    Args:
        df: above 0; a number or an array.
        shape: of the result; by default that of the parameters. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> x = smelt.random.chisquare(4.0, (20000,), key=smelt.random.key(1))
    >>> smelt.round(smelt.mean(x), 1)
    array(4, dtype=float32)
    """
    check_stream(stream)
    target, (count,), shape = float_parameters("chisquare", dtype, shape, df=df)
    return convert(exp(_log_gamma(count * 0.5, checked_key("chisquare", key), shape)) * 2, target)


def beta(
    a: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Beta distributed: density proportional to xᵃ⁻¹·(1 - x)ᵇ⁻¹. Differentiable in `a` and `b`.

    Args:
        a, b: above 0; numbers or arrays, which broadcast.
        shape: of the result; by default that of the parameters. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> x = smelt.random.beta(2.0, 2.0, (20000,), key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 2)
    array(0.5, dtype=float32)
    """
    check_stream(stream)
    target, (first, second), shape = float_parameters("beta", dtype, shape, a=a, b=b)
    one, other = split(checked_key("beta", key))
    return convert(sigmoid(_log_gamma(first, one, shape) - _log_gamma(second, other, shape)), target)


def student_t(
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Student's t distributed with `df` degrees of freedom. Differentiable in `df`.

    Args:
        df: above 0; a number or an array.
        shape: of the result; by default that of the parameters. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.student_t(5.0, (2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, (count,), shape = float_parameters("student_t", dtype, shape, df=df)
    one, other = split(checked_key("student_t", key))
    half = count * 0.5
    scale = exp((log(half) - _log_gamma(half, other, shape)) * 0.5)
    return convert(normal_unit(one, shape, count.dtype) * scale, target)


def dirichlet(
    alpha: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Dirichlet distributed vectors of positive numbers whose sum is 1. Differentiable in `alpha`.

    Args:
        alpha: above 0, of shape (…, n).
        shape: of the samples without the axis of the vectors; alpha's by default.
        dtype: a floating dtype, float32 by default. key: as of `uniform`.

    Raises:
        ShapeError: `alpha` is no vector, or does not broadcast to `shape`.

    >>> import smelt
    >>> x = smelt.random.dirichlet(smelt.array([1.0, 2.0, 3.0]), (2,), key=smelt.random.key(0))
    >>> smelt.allclose(smelt.sum(x, axis=-1), 1)
    array(True, dtype=bool)
    """
    check_stream(stream)
    target = float_dtype("dirichlet", dtype)
    check_range("dirichlet", "alpha", known_values(alpha), RANGES["alpha"])
    orders = parameter("dirichlet", "alpha", alpha, computed_in(target))
    if not orders.ndim:
        raise ShapeError(at_user_line(f"smelt.random.dirichlet: alpha must have an axis; alpha {orders.aval}"))
    lead = orders.shape[:-1] if shape is None else shape_of("dirichlet", shape)
    whole = (*lead, orders.shape[-1])
    check_fits("dirichlet", whole, alpha=orders)
    logarithms = _log_gamma(broadcast_to_shape(orders, whole), checked_key("dirichlet", key), whole)
    return convert(softmax(logarithms, axis=-1), target)


def _log_gamma(a: array, key: array, shape: tuple[int, ...]) -> array:
    """Logarithms of gamma distributed numbers; NaN unless a > 0.

    They are computed in one line, whose length kernels are indifferent to: that of rows may be short.
    """
    *keys, last = split(key, 3)
    count = math.prod(shape)
    orders = to_shape(broadcast_to_shape(a, shape), (count,))
    fixed = stop_gradient(orders)

    def draw(
        keys: Sequence[array], trials: int, count: int, pick: Callable[[array], array]
    ) -> tuple[array, array]:
        order, steps = pick(fixed), normal_unit(keys[0], (trials, count), a.dtype)
        found, taken = _trial(order, steps, unit_exponential(keys[1], (trials, count), a.dtype))
        hopeless = logical_not(logical_and(order > 0, order < math.inf))  # none is taken, and there may be many of them
        return found, logical_or(hopeless, taken)

    found = first_taken(keys, TRIALS, count, 9, draw)
    return to_shape(_chosen(orders, found, unit_exponential(last, (count,), a.dtype)), shape)


def _shifted(a: array) -> tuple[array, array]:
    """The parameter of the trials, and where a is less than 1, whose samples are made of those for a + 1."""
    small = a < 1
    return where(small, a + 1, a) - 1 / 3, small


def _trial(a: array, steps: array, limits: array) -> tuple[array, array]:
    """What the parameter is multiplied by, and whether that is not refused."""
    d, _ = _shifted(a)
    v = 1 + steps / (sqrt(d) * 3)
    v = v * v * v
    positive = where(v > 0, v, 1)
    return positive, logical_and(v > 0, -limits < 0.5 * steps * steps + d * (1 - positive + log(positive)))


def _sample(a: array, found: array, waiting: array) -> array:
    """Of a trial that was not refused. Below 1, a sample for a + 1 times u^(1 / a)."""
    d, small = _shifted(a)
    known = where(a > 0, a, float("nan"))
    return log(d) + log(found) - where(small, waiting / known, known * 0)


def _slope(tangent: array, logarithm: array, a: array, *_: array) -> array:
    """The sample z moves so that P(a, z) stays: d log z / da = -∂P/∂a / (z·∂P/∂z)."""
    tiny = logarithm < (-23.0 if a.dtype is dtypes.float64 else -11.0)
    kept = where(tiny, 0.0, logarithm)
    z = exp(kept)
    _, (moved,) = jvp(lambda a: gammainc(a, z), [a], [a * 0 + 1])
    density = exp(a * kept - z - lgamma(a))
    # where z is tiny, P is zᵃ / Γ(a + 1)
    near_zero = (digamma(a + 1) - where(tiny, logarithm, 0.0)) / a
    return tangent * where(tiny, near_zero, -moved / density)


_chosen = custom_jvp(_sample)
_chosen.defjvps(_slope, None, None)


explain_keywords(globals(), "beta chisquare dirichlet exponential gamma student_t")
