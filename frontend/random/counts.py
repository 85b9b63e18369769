"""Numbers of events: Poisson, binomial and geometric distributions.

Small means by the sum of probabilities, large ones by refusing trials (Hörmann, "The transformed rejection method for
generating Poisson random variables", 1993, and "The generation of binomial random variates", 1993); both are computed,
so that there is no loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, at_user_line
from smelt.ir.keywords import explain_keywords
from smelt.ir.op import registry as ops

from ..functions.arithmetic import abs as absolute
from ..functions.arithmetic import maximum, minimum, sqrt
from ..functions.logic import logical_and, logical_not, logical_or, where
from ..functions.reductions import sum as total
from ..functions.rounding import floor
from ..functions.sorting import cumprod, cumsum
from ..functions.special_parts import HALF_LOG_TAU, log1p_less, stirling_remainder
from ..functions.transcendental import exp, log, log1p
from ..lazy.arguments import dtype_of
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit
from ..lazy.movement import to_shape
from ..lazy.streams import check_stream
from .keys import checked_key, split
from .sampling import exponential as unit_exponential
from .sampling import parameters, uniform_unit
from .trials import first_taken

#: From this mean on trials are refused; below, these are all values that occur.
MEAN, VALUES = 10.0, 48
#: Trials of a sample, of which one is refused with a probability of at most 0.3.
TRIALS = 16
#: Numbers below it are finite as float32.
LARGEST = 3e38


def poisson(
    lam: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Poisson distributed numbers of events with mean `lam`.

    Args:
        lam: at least 0; a number, or an array that broadcasts to `shape`, which is its own shape by default.
        dtype: a dtype of numbers, int32 by default. key: None draws one from the global state.

    Raises:
        AttributeValueError: a number out of these bounds. Those of smelt arrays, NaN and infinities give NaN, 0 as an
            integer.

    >>> import smelt
    >>> x = smelt.random.poisson(3.0, (20000,), key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 1)
    array(3, dtype=float32)
    """
    check_stream(stream)
    target, (mean,), shape = _parameters("poisson", dtype, shape, lam=lam)
    few, many = split(checked_key("poisson", key))
    if isinstance(lam, (int, float)) and lam < LARGEST:  # one way will do, and smaller means share their probabilities
        if np.float32(lam) >= MEAN:
            return convert(_poisson_by_trials(many, mean), target)
        return convert(_poisson_by_sums(few, as_array(lam, mean.dtype), shape), target)
    large = mean >= MEAN
    small = _poisson_by_sums(few, where(large, 1.0, maximum(mean, 0.0)), shape)
    found = _poisson_by_trials(many, where(large, mean, MEAN))
    known = (mean >= 0) & (mean < math.inf)
    return convert(where(known, where(large, found, small), math.nan), target)


def _poisson_by_sums(key: array, mean: array, shape: tuple[int, ...]) -> array:
    return _inverted(key, shape, exp(-mean), lambda k: mean.reshape((*mean.shape, 1)) / k)


def _poisson_by_trials(key: array, mean: array) -> array:
    b = 0.931 + 2.53 * sqrt(mean)
    a = -0.059 + 0.02483 * b
    limit, factor = 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4)
    return _refused(key, a, b, mean + 0.43, limit, factor, mean + math.inf, _log_poisson, mean)


def _log_poisson(k: array, m: array) -> array:
    """log(mᵏ·e⁻ᵐ / k!), where what is large has been cancelled."""
    n = maximum(k, 1)
    found = n * log1p_less((m - n) / n, m / n) - stirling_remainder(n) - HALF_LOG_TAU - 0.5 * log(n)
    return where(k < 1, -m, found)


def binomial(
    n: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Binomially distributed: how many of `n` trials succeed, each with probability `p`.

    Args:
        n: at least 0, whole; p: from 0 to 1. Numbers, or arrays that broadcast to `shape`.
        dtype: a dtype of numbers, int32 by default. key: None draws one from the global state.

    Raises:
        AttributeValueError: a number out of these bounds. Those of smelt arrays, NaN and infinities give NaN, 0 as an
            integer.

    >>> import smelt
    >>> x = smelt.random.binomial(10, 0.25, (20000,), key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 1)
    array(2.5, dtype=float32)
    """
    check_stream(stream)
    target, (count, chance), shape = _parameters("binomial", dtype, shape, n=n, p=p)
    few, many = split(checked_key("binomial", key))
    # the rarer outcome is counted
    if isinstance(n, (int, float)) and isinstance(p, (int, float)) and n < LARGEST and p == p:  # one way will do
        rounds, rate = np.floor(np.float32(n)), min(np.float32(p), np.float32(1) - np.float32(p))
        if rounds * rate >= MEAN:
            found = _binomial_by_trials(many, floor(count), where(chance > 0.5, 1 - chance, chance))
        else:
            found = _binomial_by_sums(few, as_array(rounds), as_array(rate), shape)
        return convert(floor(count) - found if np.float32(p) > 0.5 else found, target)
    flipped = chance > 0.5
    q = where(flipped, 1 - chance, chance)
    known = (count >= 0) & (count < math.inf) & (chance >= 0)
    count = where(known, floor(count), 0.0)
    large = count * q >= MEAN
    small = _binomial_by_sums(few, where(large, 1.0, count), where(large, 0.1, q), shape)
    found = _binomial_by_trials(many, where(large, count, 40.0), where(large, q, 0.5))
    found = where(large, found, small)
    return convert(where(known, where(flipped, count - found, found), math.nan), target)


def _binomial_by_sums(key: array, n: array, p: array, shape: tuple[int, ...]) -> array:
    rounds, seldom = (x.reshape((*x.shape, 1)) for x in (n, p))
    return _inverted(
        key,
        shape,
        exp(n * log1p(-p)),
        lambda k: maximum(rounds - (k - 1), 0.0) / k * (seldom / (1 - seldom)),
    )


def _binomial_by_trials(key: array, n: array, p: array) -> array:
    spread = sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale = (2.83 + 5.1 / b) * spread
    mode = _log_binomial(floor((n + 1) * p), n, p)
    return _refused(key, a, b, n * p + 0.5, 0.92 - 4.2 / b, scale, n, _more_likely, n, p, mode)


def _more_likely(k: array, n: array, p: array, mode: array) -> array:
    return _log_binomial(k, n, p) - mode


def _log_binomial(k: array, n: array, p: array) -> array:
    """The logarithm of the probability of k of n, where what is large has been cancelled (Loader, 2000)."""
    rest = n - k
    x, y = maximum(k, 1), maximum(rest, 1)
    mean, other = n * p, n * (1 - p)
    found = x * log1p_less((mean - x) / x, mean / x) + y * log1p_less((other - y) / y, other / y)
    found = found + stirling_remainder(n) - stirling_remainder(x) - stirling_remainder(y)
    found = found + 0.5 * log(n / (x * y)) - HALF_LOG_TAU
    return where(k < 1, n * log1p(-p), where(rest < 1, n * log(p), found))


def geometric(
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Geometrically distributed: the number of the first trial that succeeds, each with probability `p`; at least 1.

    Args:
        p: from 0 (never: the largest integer) to 1; a number, or an array that broadcasts to `shape`, which is its own
            shape by default.
        dtype: a dtype of numbers, int32 by default. key: None draws one from the global state.

    Raises:
        AttributeValueError: a number out of these bounds. Those of smelt arrays give NaN, 0 as an integer.

    >>> import smelt
    >>> x = smelt.random.geometric(0.5, (20000,), key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 1)
    array(2, dtype=float32)
    """
    check_stream(stream)
    target, (chance,), shape = _parameters("geometric", dtype, shape, p=p)
    waiting = unit_exponential(checked_key("geometric", key), shape, chance.dtype)
    return convert(floor(waiting / -log1p(-chance)) + 1, target)


def _parameters(
    name: str, dtype: DType | None, shape: Sequence[int] | None, **given: ArrayLike
) -> tuple[DType, list[array], tuple[int, ...]]:
    """The dtype of samples; parameters of their shape in float32 (float64 if one is); the shape."""
    target = dtype_of(f"random.{name}", dtype, dtypes.int32)
    if target is dtypes.bool_ or target.is_complex:
        raise DTypeError(at_user_line(f"smelt.random.{name}: dtype must be one of real numbers, is {target.name}"))
    wide = any(isinstance(x, array) and x.dtype is dtypes.float64 for x in given.values())
    work = dtypes.float64 if wide else dtypes.float32
    found, whole = parameters(name, shape, work, **given)
    return target, found, whole


def _inverted(key: array, shape: tuple[int, ...], first: array, ratio: Callable[[array], array]) -> array:
    """Samples of the probabilities p(0) = `first` and p(k) = p(k - 1)·`ratio`(k), for k up to `VALUES`. `first` is of
    the shape of the samples, or one number."""
    k = convert(emit(ops["iota"], (), {"shape": (VALUES,), "axis": 0, "dtype": dtypes.int32}), first.dtype) + 1
    start = first.reshape((*first.shape, 1))
    below = start + start * cumsum(cumprod(ratio(k), -1), -1, inclusive=False)  # p(0) + … + p(k - 1)
    drawn = uniform_unit(key, shape, first.dtype).reshape((*shape, 1))
    return total(convert(drawn >= below, first.dtype), -1)


def _refused(
    key: array,
    a: array,
    b: array,
    center: array,
    limit: array,
    factor: array,
    most: array,
    weight: Callable[..., array],
    *parameters: array,
) -> array:
    """The first of some trials that is not refused: those of Hörmann's hat, k = (2a / (1/2 - |u|) + b)·u + center.

    Args:
        limit: below it, and away from the ends, the second uniform number is within the squeeze.
        factor: what that number is multiplied by. most: the largest k.
        weight: the logarithm of the probability of k, given the parameters, that it is compared with.
    """
    given = [to_shape(x, (a.size,)) for x in (a, b, center, limit, factor, most, *parameters)]

    def draw(
        keys: Sequence[array], trials: int, count: int, pick: Callable[[array], array]
    ) -> tuple[array, array]:
        a, b, center, limit, factor, most, *known = (pick(x) for x in given)
        u = uniform_unit(keys[0], (trials, count), a.dtype) - 0.5
        v = 1 - uniform_unit(keys[1], (trials, count), a.dtype)
        edge = maximum(0.5 - absolute(u), 1e-7)
        k = floor((2 * a / edge + b) * u + center)
        inside = logical_and(k >= 0, k <= most)
        kept = minimum(maximum(k, 0.0), most)
        squeezed = logical_and(edge >= 0.07, v <= limit)
        fits = log(v * factor / (a / (edge * edge) + b)) <= weight(kept, *known)
        hopeless = logical_not(b < math.inf)  # of such parameters none is taken, and there may be many of them
        return kept, logical_or(hopeless, logical_and(inside, logical_or(squeezed, fits)))

    return to_shape(first_taken([*split(key)], TRIALS, a.size, 36, draw), a.shape)


explain_keywords(globals(), "binomial geometric poisson")
