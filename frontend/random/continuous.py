"""Samples of floating-point numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, ShapeError, TraceError, at_user_line
from smelt.ir.keywords import explain_keywords
from smelt.ir.locks import unforked
from smelt.ir.op import registry as ops

from ..functions.linear import matmul
from ..functions.reductions import reshape_to
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
)
from ..lazy.core import remembered
from ..lazy.streams import check_stream
from .keys import checked_key
from .sampling import (
    apply,
    check_fits,
    computed_in,
    exponential,
    float_dtype,
    parameter,
    parameters,
    rounded,
    shape_of,
    uniform_between,
    uniform_open,
    uniform_unit,
)


def uniform(
    low: ArrayLike = 0,
    high: ArrayLike = 1,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Uniformly distributed in [low, high).

    The numbers are low + u·(high - low) for u in [0, 1), rounded in their dtype: that may give `high` itself.

    Args:
        low, high: numbers, or arrays that broadcast to `shape`.
        shape: of the result. dtype: a floating dtype, float32 by default.
        key: see `smelt.random.key`; None draws one from the global state.

    Raises:
        ShapeError: low and high do not broadcast to `shape`. DTypeError: a dtype that is not floating.

    >>> import smelt
    >>> x = smelt.random.uniform(2, 3, (1000,), key=smelt.random.key(0))
    >>> smelt.all((x >= 2) & (x < 3))
    array(True, dtype=bool)
    """
    check_stream(stream)
    target, shape = float_dtype("uniform", dtype), shape_of("uniform", shape)
    if type(low) in (int, float) and type(high) in (int, float) and (low, high) == (0, 1):
        return convert(uniform_unit(checked_key("uniform", key), shape, target), target)
    ends = parameter("uniform", "low", low, target), parameter("uniform", "high", high, target)
    check_fits("uniform", shape, low=ends[0], high=ends[1])
    lo, hi = (convert(x, computed_in(target)) for x in ends)
    unit = uniform_unit(checked_key("uniform", key), shape, target)
    return convert(uniform_between(unit, lo, hi, target), target)


def normal(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    loc: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Normally distributed with mean `loc` (0) and standard deviation `scale` (1).

    Complex numbers have independent parts of variance 1/2 each.

    Args:
        shape: of the samples, with which loc and scale broadcast.
        dtype: a floating or complex dtype; float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> x = smelt.random.normal((10000,), loc=5, key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 1)
    array(5, dtype=float32)
    """
    check_stream(stream)
    target, shape = float_dtype("normal", dtype, dtypes.INEXACT), shape_of("normal", shape)
    key = checked_key("normal", key)
    if target.is_complex:
        pair = apply("erfinv", uniform_open(key, (*shape, 2), target.real))
        parts = []
        for i in (0, 1):
            at = {"start": (0,) * len(shape) + (i,), "stop": (*shape, i + 1), "stride": (1,) * (len(shape) + 1)}
            parts.append(reshape_to(emit(ops["slice"], (pair,), at), shape))
        samples = emit_elementwise(ops["complex"], *parts)
        if scale is not None:
            samples = _combined("normal", "mul", samples, "scale", scale, target)
    else:
        if scale is None:
            samples = _standard(key, shape, target)
        else:
            work = computed_in(target)
            samples = _inverted(key, shape, target)
            spread = parameter("normal", "scale", scale, target)
            spread = rounded(apply("mul", convert(spread, work), _root_two(target)), target)
            samples = _combined("normal", "mul", samples, "scale", spread, target)
    return convert(_combined("normal", "add", samples, "loc", loc, target), target)


def _inverted(key: array, shape: tuple[int, ...], target: DType) -> array:
    """Normal with variance 1/2, rounded to a dtype."""
    return rounded(apply("erfinv", uniform_open(key, shape, computed_in(target))), target)


@remembered
def _standard(key: array, shape: tuple[int, ...], target: DType) -> array:
    return rounded(apply("mul", _inverted(key, shape, target), _root_two(target)), target)


def _root_two(target: DType) -> float:
    return float(np.asarray(math.sqrt(2), target.numpy))


def _combined(name: str, op_name: str, x: array, what: str, value: ArrayLike | None, target: DType) -> array:
    """x with a parameter, broadcast together."""
    if value is None:
        return x
    y = convert(parameter(name, what, value, target), x.dtype)
    shape = broadcast_shapes(f"random.{name}", x.shape, y.shape)
    found = emit_elementwise(ops[op_name], broadcast_to_shape(x, shape), broadcast_to_shape(y, shape))
    return rounded(found, target)


def multivariate_normal(
    mean: array,
    cov: array,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Jointly normal vectors with the given mean [..., n] and covariance [..., n, n].

    The root of the covariance is taken on the host, so `cov` must have a value.

    Args:
        shape: of the samples without the axis of the vectors; mean and cov broadcast with it.
        dtype: float32.
        key: as of `uniform`.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: another dtype. TraceError: `cov` is traced by compile or vmap.

    >>> import smelt
    >>> cov = smelt.array([[2.0, 1.0], [1.0, 2.0]])
    >>> smelt.random.multivariate_normal(smelt.array([0.0, 1.0]), cov, (5,)).shape
    (5, 2)
    """
    check_stream(stream)
    target, shape = float_dtype("multivariate_normal", dtype), shape_of("multivariate_normal", shape)
    if target is not dtypes.float32:
        raise DTypeError(at_user_line(f"smelt.random.multivariate_normal: dtype must be float32, is {target.name}"))
    center, covariance = convert(as_array(mean), target), convert(as_array(cov), target)
    if center.ndim < 1 or covariance.ndim < 2 or covariance.shape[-2:] != (center.shape[-1],) * 2:
        raise ShapeError(
            at_user_line(
                "smelt.random.multivariate_normal: mean [..., n] and cov [..., n, n] expected; "
                f"mean {center.aval}, cov {covariance.aval}"
            )
        )
    n = center.shape[-1]
    lead = broadcast_shapes("random.multivariate_normal", shape, center.shape[:-1], covariance.shape[:-2])
    try:
        root = _root(np.asarray(covariance._host(), np.float64))
    except TraceError:
        raise TraceError(
            at_user_line("smelt.random.multivariate_normal: cov must have a value; pass it from outside the trace")
        ) from None
    samples = reshape_to(normal((*lead, n), target, key=key), (*lead, 1, n))
    samples = reshape_to(matmul(samples, array(root.astype(np.float32))), (*lead, n))
    return emit_elementwise(ops["add"], samples, broadcast_to_shape(center, samples.shape))


@unforked
def _root(covariance: np.ndarray) -> np.ndarray:
    """R with RRᵀ = covariance, for matrices on the last two axes."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def truncated_normal(
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Standard normal, conditional on lying in [lower, upper].

    Args:
        lower, upper: numbers, or arrays that broadcast to `shape`.
        shape: of the result; that of lower and upper together by default.
        dtype: a floating dtype, float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> x = smelt.random.truncated_normal(-1, 1, (1000,), key=smelt.random.key(0))
    >>> smelt.all(smelt.abs(x) <= 1)
    array(True, dtype=bool)
    """
    check_stream(stream)
    target = float_dtype("truncated_normal", dtype)
    work, root = computed_in(target), _root_two(target)
    (lo, hi), shape = parameters("truncated_normal", shape, target, lower=lower, upper=upper)
    lo, hi = convert(lo, work), convert(hi, work)
    first, last = (rounded(apply("erf", rounded(apply("div", x, root), target)), target) for x in (lo, hi))
    unit = uniform_unit(checked_key("truncated_normal", key), shape, target)
    place = uniform_between(unit, first, last, target)
    samples = rounded(apply("mul", rounded(apply("erfinv", place), target), root), target)
    return convert(apply("maximum", apply("minimum", samples, hi), lo), target)  # of no room at all, lower; as in MLX


def gumbel(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Standard Gumbel distributed: -log(-log(u)) for uniform u.

    Args:
        shape: of the result. dtype: a floating dtype, float32 by default.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.gumbel((2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, shape = float_dtype("gumbel", dtype), shape_of("gumbel", shape)
    return standard_gumbel(checked_key("gumbel", key), shape, target)


@remembered
def standard_gumbel(key: array, shape: tuple[int, ...], target: DType) -> array:
    """-log(-log(u))."""
    if target is dtypes.float64:
        waiting = exponential(key, shape, target)
    else:
        waiting = apply("neg", rounded(apply("log", uniform_unit(key, shape, target)), target))
    return convert(apply("neg", apply("log", waiting)), target)


def laplace(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    loc: float = 0.0,
    scale: float = 1.0,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Laplace distributed with mean `loc` and density exp(-|x - loc| / scale) / (2 scale).

    Args:
        shape: of the result. dtype: a floating dtype, float32 by default. loc, scale: numbers.
        key: as of `uniform`.

    >>> import smelt
    >>> smelt.random.laplace((2, 3)).shape
    (2, 3)
    """
    check_stream(stream)
    target, shape = float_dtype("laplace", dtype), shape_of("laplace", shape)
    u = uniform_open(checked_key("laplace", key), shape, computed_in(target))
    samples = rounded(apply("mul", apply("sign", u), apply("log1p", apply("neg", apply("abs", u)))), target)
    samples = _combined("laplace", "mul", samples, "scale", scale, target)
    return convert(_combined("laplace", "add", samples, "loc", loc, target), target)


explain_keywords(globals(), "gumbel laplace multivariate_normal normal truncated_normal uniform")
