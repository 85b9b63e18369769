"""Random numbers under `mlx.core.random`'s names.

A key is two 32-bit words; the same key gives the same numbers on every device, whatever the
evaluation order. Without a key, functions draw one from a global state, which `seed` sets and each draw
advances. To draw from it inside `smelt.compile`, capture it, else every call repeats the numbers of the
trace::

    @partial(smelt.compile, inputs=smelt.random.state, outputs=smelt.random.state)

The words of an array come from `smelt.random_bits` (Threefry), everything else is made of ordinary
ops, so samples fuse with what uses them.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, ShapeError, TraceError, at_user_line
from smelt.ir.op import registry as ops
from smelt.runtime import Buffer

from .arrays import (
    ArrayLike,
    Scalar,
    array,
    as_array,
    broadcast_shapes,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    scalar_array,
    wrap,
)
from .elementwise import StreamOrDevice, constant
from .graph import PARAMETER, leaf
from .reductions import reshape_to

__all__ = [
    "bernoulli", "bits", "categorical", "gumbel", "key", "laplace", "multivariate_normal", "normal",
    "permutation", "randint", "seed", "split", "state", "truncated_normal", "uniform",
]  # fmt: skip

_KEY = Aval((2,), dtypes.uint32)
_WORD = 0xFFFFFFFF

# Keys and the global state


def key(seed: int) -> array:
    """The key of a seed: its upper and lower 32 bits.

    Raises:
        ValueError: the seed is not within 0 and 2**64.

    >>> import smelt
    >>> smelt.random.key(7)
    array([0, 7], dtype=uint32)
    """
    value = operator.index(seed)
    if not 0 <= value < 2**64:
        raise ValueError(at_user_line(f"smelt.random.key: the seed {value} must lie within 0 and 2**64"))
    return _key_array(value >> 32, value & _WORD)


def _key_array(high: int, low: int) -> array:
    return wrap((leaf(Buffer(_KEY, np.array((high, low), np.uint32))), 0))


def seed(seed: int) -> None:
    """Set the global state: draws without a key repeat from here.

    >>> import smelt
    >>> smelt.random.seed(3)
    >>> a = smelt.random.uniform()
    >>> smelt.random.seed(3)
    >>> smelt.array_equal(a, smelt.random.uniform())
    array(True, dtype=bool)
    """
    fresh = key(seed)
    with _lock:
        state[0]._ref = fresh._ref


def split(key: array, num: int = 2, stream: StreamOrDevice = None) -> array:
    """`num` new keys from one, as uint32 of shape [num, 2]; do not use the old one again.

    >>> import smelt
    >>> a, b = smelt.random.split(smelt.random.key(0))
    >>> a.shape
    (2,)
    """
    return emit(ops["random_split"], (_checked_key("split", key),), {"num": operator.index(num)})


_lock = threading.RLock()

#: The global state: a list that holds its key, for ``smelt.compile(inputs=…, outputs=…)``. The array in
#: it is updated in place.
state: list[array] = [_key_array(0, 0)]


def _checked_key(name: str, key: Any) -> array:
    """`key`, or one drawn from the global state in place of None."""
    if key is None:
        return _next_key()
    if not isinstance(key, array) or key.aval != _KEY:
        given = key.aval if isinstance(key, array) else type(key).__name__
        raise DTypeError(
            at_user_line(f"smelt.random.{name}: a key is {_KEY} (see smelt.random.key), this is {given}")
        )
    return key


def _next_key() -> array:
    """A fresh key; the global state advances."""
    with _lock:
        current = state[0]
        node, i = current._ref
        if node.values is None and not node.traced and node.op is not PARAMETER:
            current._buffer  # noqa: B018  (a key that was put into the state lazily: evaluates it)
            node, i = current._ref
        if node.values is not None:  # on the host: cheaper than an evaluation, and the same numbers
            first, second = _split_words(*node.values[i].array.tolist())
            current._ref = _key_array(*first)._ref
            return _key_array(*second)
        pair = emit(ops["random_split"], (current,), {"num": 2})
        current._ref = _row(pair, 0)._ref
        return _row(pair, 1)


def _row(keys: array, i: int) -> array:
    row = emit(ops["slice"], (keys,), {"start": (i, 0), "stop": (i + 1, 2), "stride": (1, 1)})
    return reshape_to(row, (2,))


def _split_words(k0: int, k1: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """`smelt.random_split` with num = 2, on Python ints."""
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    found = []
    for counter in (0, 1):
        x0, x1 = (_WORD + k0) & _WORD, (counter + k1) & _WORD
        for group in range(5):
            for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
                x0 = (x0 + x1) & _WORD
                x1 = ((x1 << r | x1 >> (32 - r)) & _WORD) ^ x0
            x0 = (x0 + keys[(group + 1) % 3]) & _WORD
            x1 = (x1 + keys[(group + 2) % 3] + group + 1) & _WORD
        found.append((x0, x1))
    return found[0], found[1]


# Arguments


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    try:
        given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        found = tuple([operator.index(d) for d in given])
    except TypeError:
        raise TypeError(
            at_user_line(f"smelt.random.{name}: shape must be an int or a sequence of ints, is {shape!r}")
        ) from None
    if any(d < 0 for d in found):
        raise ShapeError(at_user_line(f"smelt.random.{name}: shape {found} has a negative extent"))
    return found


def _float_dtype(name: str, dtype: Any, allowed: Sequence[DType] = dtypes.FLOATS) -> DType:
    found = dtypes.float32 if dtype is None else dtypes.of(dtype)
    if found not in allowed:
        listed = ", ".join(d.name for d in allowed)
        raise DTypeError(at_user_line(f"smelt.random.{name}: dtype must be one of {listed}, is {found.name}"))
    return found


def _parameter(name: str, what: str, value: ArrayLike, dtype: DType) -> array:
    """A parameter of a distribution in the dtype that samples are computed in."""
    x = scalar_array(value, dtype) if isinstance(value, (bool, int, float)) else as_array(value)
    if x.dtype.is_complex and not dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.random.{name}: {what} is {x.aval}, must be real"))
    return convert(x, dtype)


def _fits(name: str, shape: tuple[int, ...], **parameters: array) -> None:
    """The parameters must broadcast to the shape of the result."""
    if broadcast_shapes(f"random.{name}", shape, *[x.shape for x in parameters.values()]) != shape:
        listed = ", ".join(f"{k} {x.aval}" for k, x in parameters.items())
        raise ShapeError(at_user_line(f"smelt.random.{name}: {listed} must broadcast to shape {shape}"))


def _computed_in(dtype: DType) -> DType:
    """Samples of half precision are computed in float32."""
    return dtypes.float32 if dtype.size == 2 else dtype


# Short forms for what samplers are made of: scalars in them are part of the program.


def _apply(op_name: str, x: array, *rest: array | Scalar) -> array:
    """An elementwise op of x and others, broadcast to its shape."""
    dtype = next((y.dtype for y in rest if isinstance(y, array)), x.dtype)
    others = [y if isinstance(y, array) else constant(y, dtype) for y in rest]
    return emit_elementwise(ops[op_name], x, *[broadcast_to_shape(y, x.shape) for y in others])


def _bits(key: array, shape: tuple[int, ...], width: int) -> array:
    return emit(ops["random_bits"], (key,), {"shape": shape, "width": width})


def _digits(dtype: DType) -> int:
    """Bits of the significand."""
    return 53 if dtype is dtypes.float64 else 24


def _unit(key: array, shape: tuple[int, ...], dtype: DType) -> array:
    """Uniform in [0, 1): multiples of 2⁻²⁴ (2⁻⁵³ in float64)."""
    width, digits = 8 * dtype.size, _digits(dtype)
    words = _apply("right_shift", _bits(key, shape, width), width - digits)
    return _apply("mul", convert(words, dtype), 0.5**digits)


def _symmetric(key: array, shape: tuple[int, ...], dtype: DType) -> array:
    """Uniform in (-1, 1): odd multiples of 2⁻²⁴ (2⁻⁵³ in float64), so never 0 and as often x as -x."""
    width, digits = 8 * dtype.size, _digits(dtype)
    signed = dtypes.int64 if width == 64 else dtypes.int32
    words = convert(_apply("right_shift", _bits(key, shape, width), width - digits), signed)
    odd = _apply("sub", _apply("add", words, words), 2**digits - 1)
    return _apply("mul", convert(odd, dtype), 0.5**digits)


def _exponential(key: array, shape: tuple[int, ...], dtype: DType) -> array:
    """Exponential with mean 1: -log1p(-u) for u in (0, 1), fine where u is small."""
    width, digits = 8 * dtype.size, _digits(dtype)
    words = convert(_bits(key, shape, width), dtype)
    u = _apply("mul", _apply("add", words, 0.5), 0.5**width)
    u = _apply("minimum", u, 1 - 0.5**digits)
    return _apply("neg", _apply("log1p", _apply("neg", u)))


# Distributions


def bits(
    shape: Sequence[int] = (), width: int = 4, key: array | None = None, stream: StreamOrDevice = None
) -> array:
    """Uniformly random unsigned integers of `width` bytes: 1, 2, 4 or 8.

    >>> import smelt
    >>> smelt.random.bits((2, 3), width=1, key=smelt.random.key(0)).dtype
    smelt.uint8
    """
    found = _shape("bits", shape)
    if width not in (1, 2, 4, 8):
        raise ValueError(at_user_line(f"smelt.random.bits: width must be 1, 2, 4 or 8 bytes, is {width!r}"))
    return _bits(_checked_key("bits", key), found, 8 * width)


def uniform(
    low: ArrayLike = 0,
    high: ArrayLike = 1,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Uniformly distributed in [low, high).

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
    target, shape = _float_dtype("uniform", dtype), _shape("uniform", shape)
    work = _computed_in(target)
    if _is_unit(low, high) and target is work:
        return _unit(_checked_key("uniform", key), shape, work)
    lo, hi = _parameter("uniform", "low", low, target), _parameter("uniform", "high", high, target)
    _fits("uniform", shape, low=lo, high=hi)
    lo, hi = broadcast_to_shape(lo, shape), broadcast_to_shape(hi, shape)
    unit = _unit(_checked_key("uniform", key), shape, work)
    if not _is_unit(low, high):
        start = convert(lo, work)
        unit = _apply("add", _apply("mul", unit, _apply("sub", convert(hi, work), start)), start)
    return _below(convert(unit, target), lo, hi)


def _is_unit(low: ArrayLike, high: ArrayLike) -> bool:
    return type(low) in (int, float) and type(high) in (int, float) and low == 0 and high == 1


def _below(x: array, low: array, high: array) -> array:
    """x, but the number next to `high` on the side of `low` where rounding gave `high`."""
    integer = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.size]
    word = emit(ops["bitcast"], (high,), {"dtype": integer})
    # Away from zero is one up in the bits of a number, whatever its sign.
    rising = _apply("select", _apply("greater", low, high), constant(1, integer, x.shape), -1)
    step = _apply("select", _apply("less", high, 0), _apply("neg", rising), rising)
    near = emit(ops["bitcast"], (_apply("add", word, step),), {"dtype": x.dtype})
    tiny = 5e-324 if x.dtype is dtypes.float64 else 2.0**-24 if x.dtype is dtypes.float16 else 2.0**-126
    around_zero = _apply("select", _apply("greater", low, high), constant(tiny, x.dtype, x.shape), -tiny)
    near = _apply("select", _apply("equal", high, 0), around_zero, near)
    reached = _apply("logical_and", _apply("equal", x, high), _apply("not_equal", low, high))
    return _apply("select", reached, near, x)


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
        dtype: a floating dtype or complex64; float32 by default. key: None draws one from the global state.

    >>> import smelt
    >>> x = smelt.random.normal((10000,), loc=5, key=smelt.random.key(0))
    >>> smelt.round(smelt.mean(x), 1)
    array(5, dtype=float32)
    """
    target, shape = _float_dtype("normal", dtype, dtypes.INEXACT), _shape("normal", shape)
    key = _checked_key("normal", key)
    if target.is_complex:
        pair = _apply("erfinv", _symmetric(key, (2, *shape), dtypes.float32))
        parts = []
        for i in (0, 1):
            at = {"start": (i,) + (0,) * len(shape), "stop": (i + 1, *shape), "stride": (1,) * (len(shape) + 1)}
            parts.append(reshape_to(emit(ops["slice"], (pair,), at), shape))
        samples = emit_elementwise(ops["complex"], *parts)
    else:
        work = _computed_in(target)
        samples = _apply("mul", _apply("erfinv", _symmetric(key, shape, work)), math.sqrt(2))
    samples = _combined("normal", "mul", samples, "scale", scale)
    return convert(_combined("normal", "add", samples, "loc", loc), target)


def _combined(name: str, op_name: str, x: array, what: str, value: ArrayLike | None) -> array:
    """x with a parameter, broadcast together."""
    if value is None:
        return x
    y = _parameter(name, what, value, x.dtype)
    shape = broadcast_shapes(f"random.{name}", x.shape, y.shape)
    return emit_elementwise(ops[op_name], broadcast_to_shape(x, shape), broadcast_to_shape(y, shape))


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

    Raises:
        ShapeError: shapes that do not fit. TraceError: `cov` is traced by compile or vmap.

    >>> import smelt
    >>> cov = smelt.array([[2.0, 1.0], [1.0, 2.0]])
    >>> smelt.random.multivariate_normal(smelt.array([0.0, 1.0]), cov, (5,)).shape
    (5, 2)
    """
    target, shape = _float_dtype("multivariate_normal", dtype), _shape("multivariate_normal", shape)
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
        values, vectors = np.linalg.eigh(np.asarray(covariance._host(), np.float64))
    except TraceError:
        raise TraceError(
            at_user_line("smelt.random.multivariate_normal: cov must have a value; pass it from outside the trace")
        ) from None
    root = (vectors * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    from .linear import matmul

    samples = reshape_to(normal((*lead, n), target, key=key), (*lead, 1, n))
    samples = reshape_to(matmul(samples, array(root.astype(np.float32))), (*lead, n))
    return emit_elementwise(ops["add"], samples, broadcast_to_shape(center, samples.shape))


def randint(
    low: ArrayLike,
    high: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.int32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Uniformly distributed integers in [low, high); `low` where that is empty.

    No result's probability is off by more than 2⁻⁶⁴, whatever the range.

    Args:
        low, high: integers, or arrays that broadcast to `shape`.
        dtype: an integer dtype or bool; int32 by default. key: None draws one from the global state.

    Raises:
        ValueError: Python integers that the dtype cannot hold. DTypeError: a floating dtype.

    >>> import smelt
    >>> x = smelt.random.randint(0, 6, (1000,), key=smelt.random.key(0))
    >>> smelt.minmax(x)
    (array(0, dtype=int32), array(5, dtype=int32))
    """
    target = dtypes.int32 if dtype is None else dtypes.of(dtype)
    if target.is_inexact:
        raise DTypeError(
            at_user_line(f"smelt.random.randint: dtype must be an integer dtype or bool, is {target.name}")
        )
    shape = _shape("randint", shape)
    for what, value, slack in (("low", low, 0), ("high", high, 1)):
        _check_bound(what, value, slack, target)
    wide = dtypes.uint64 if target.kind in "ub" else dtypes.int64
    wide_extent = True
    if isinstance(low, int) and isinstance(high, int):
        wide_extent = target.size == 8
        lo, extent = scalar_array(low, dtypes.uint64), scalar_array(high - low if high > low else 1, dtypes.uint64)
        full = high - low == 2**64
    else:
        start, stop = _bound(low, wide), _bound(high, wide)
        _fits("randint", shape, low=start, high=stop)
        start, stop = broadcast_to_shape(start, shape), broadcast_to_shape(stop, shape)
        lo = convert(start, dtypes.uint64)
        extent = _apply("sub", convert(stop, dtypes.uint64), lo)
        extent = _apply("select", _apply("less", start, stop), extent, 1)
        full = False
    word = _bits(_checked_key("randint", key), shape, 64)
    lo, extent = broadcast_to_shape(lo, shape), broadcast_to_shape(extent, shape)
    offset = word if full else _scaled(word, extent, wide_extent)
    return convert(_apply("add", lo, offset), target)


def _check_bound(what: str, value: ArrayLike, slack: int, dtype: DType) -> None:
    if not isinstance(value, int):
        return
    least, most = (0, 1) if dtype is dtypes.bool_ else (int(v) for v in _limits(dtype))
    if not least <= value <= most + slack:
        raise ValueError(at_user_line(f"smelt.random.randint: {what} {value} is out of bounds for {dtype.name}"))


def _limits(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy)
    return info.min, info.max


def _bound(value: ArrayLike, wide: DType) -> array:
    return convert(as_array(value, wide if isinstance(value, int) else None), wide)


def _scaled(word: array, extent: array, wide: bool) -> array:
    """⌊word · extent / 2⁶⁴⌋ of uint64, by products of 32-bit halves; `wide`: the extent may exceed 2³²."""

    def high(x: array) -> array:
        return _apply("right_shift", x, 32)

    def low(x: array) -> array:
        return _apply("bitwise_and", x, _WORD)

    w1, w0, e0 = high(word), low(word), low(extent) if wide else extent
    lower = high(_apply("mul", w0, e0))
    middle = _apply("add", _apply("mul", w1, e0), lower)
    if not wide:
        return high(middle)
    e1 = high(extent)
    other = _apply("add", _apply("mul", w0, e1), low(middle))
    return _apply("add", _apply("add", _apply("mul", w1, e1), high(middle)), high(other))


def bernoulli(
    p: ArrayLike = 0.5,
    shape: Sequence[int] | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """True with probability p, as bool.

    Args:
        p: a number, or a floating array that broadcasts to `shape`.
        shape: of the result; that of `p` by default. key: None draws one from the global state.

    >>> import smelt
    >>> smelt.random.bernoulli(smelt.array([0.0, 1.0]))
    array([False,  True], dtype=bool)
    """
    x = scalar_array(float(p), dtypes.float32) if isinstance(p, (int, float)) else as_array(p)
    if not x.dtype.is_float:
        raise DTypeError(at_user_line(f"smelt.random.bernoulli: p is {x.aval}, must be floating"))
    x = convert(x, _computed_in(x.dtype))
    shape = x.shape if shape is None else _shape("bernoulli", shape)
    _fits("bernoulli", shape, p=x)
    return _apply("less", _unit(_checked_key("bernoulli", key), shape, x.dtype), broadcast_to_shape(x, shape))


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
    target = _float_dtype("truncated_normal", dtype)
    lo = _parameter("truncated_normal", "lower", lower, target)
    hi = _parameter("truncated_normal", "upper", upper, target)
    if shape is None:
        shape = broadcast_shapes("random.truncated_normal", lo.shape, hi.shape)
    shape = _shape("truncated_normal", shape)
    _fits("truncated_normal", shape, lower=lo, upper=hi)
    work = _computed_in(target)
    lo, hi = (broadcast_to_shape(convert(x, work), shape) for x in (lo, hi))
    first, last = (_apply("erf", _apply("mul", x, math.sqrt(0.5))) for x in (lo, hi))
    unit = _unit(_checked_key("truncated_normal", key), shape, work)
    place = _apply("add", _apply("mul", unit, _apply("sub", last, first)), first)
    samples = _apply("mul", _apply("erfinv", place), math.sqrt(2))
    return convert(_apply("clamp", lo, samples, hi), target)


def gumbel(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Standard Gumbel distributed: -log(-log(u)) for uniform u.

    >>> import smelt
    >>> smelt.random.gumbel((2, 3)).shape
    (2, 3)
    """
    target, shape = _float_dtype("gumbel", dtype), _shape("gumbel", shape)
    waiting = _exponential(_checked_key("gumbel", key), shape, _computed_in(target))
    return convert(_apply("neg", _apply("log", waiting)), target)


def laplace(
    shape: Sequence[int] = (),
    dtype: DType | None = dtypes.float32,
    loc: float = 0.0,
    scale: float = 1.0,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Laplace distributed with mean `loc` and density exp(-|x - loc| / scale) / (2 scale).

    >>> import smelt
    >>> smelt.random.laplace((2, 3)).shape
    (2, 3)
    """
    target, shape = _float_dtype("laplace", dtype), _shape("laplace", shape)
    u = _symmetric(_checked_key("laplace", key), shape, _computed_in(target))
    size = _apply("neg", _apply("log1p", _apply("neg", _apply("abs", u))))
    samples = _apply("mul", _apply("sign", u), size)
    samples = _combined("laplace", "mul", samples, "scale", scale)
    return convert(_combined("laplace", "add", samples, "loc", loc), target)


def categorical(
    logits: array,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    num_samples: int | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Indices along an axis, drawn with probabilities softmax(logits), as uint32.

    Args:
        logits: unnormalized log-probabilities; -inf never occurs.
        axis: of the categories.
        shape: of the result; that of logits without the axis must broadcast to it, and is the default.
        num_samples: draws for each distribution, along a new last axis. Excludes `shape`.

    Raises:
        ValueError: both `shape` and `num_samples`. ShapeError: an axis or shape that does not fit.

    >>> import smelt
    >>> smelt.random.categorical(smelt.array([[0.0, -float("inf")], [-float("inf"), 0.0]]))
    array([0, 1], dtype=uint32)
    """
    x = as_array(logits)
    if x.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.random.categorical: logits are {x.aval}, must be real"))
    x = convert(x, x.dtype if x.dtype is dtypes.float64 else dtypes.float32)
    if shape is not None and num_samples is not None:
        raise ValueError(at_user_line("smelt.random.categorical: shape and num_samples exclude each other"))
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(at_user_line(f"smelt.random.categorical: axis {axis} out of range for shape {x.shape}"))
    axis %= x.ndim
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    if not x.shape[axis]:
        raise ShapeError(at_user_line(f"smelt.random.categorical: no categories along axis {axis} of {x.shape}"))
    if num_samples is not None:
        x = reshape_to(x, (*x.shape, 1))
        found = (*rest, *_shape("categorical", num_samples))
    else:
        found = rest if shape is None else _shape("categorical", shape)
        if broadcast_shapes("random.categorical", found, rest) != found:
            raise ShapeError(
                at_user_line(f"smelt.random.categorical: {rest} (logits without axis) must broadcast to {found}")
            )
    place = axis + len(found) - x.ndim + 1
    full = (*found[:place], x.shape[axis], *found[place:])
    noise = gumbel(full, x.dtype, key)
    return emit(ops["argmax"], (_apply("add", noise, x),), {"axis": place})


def permutation(
    x: int | array, axis: int = 0, key: array | None = None, stream: StreamOrDevice = None
) -> array:
    """A random order: of 0, …, x - 1 as uint32 for an int, else of the array's parts along an axis.

    >>> import smelt
    >>> smelt.sum(smelt.random.permutation(5))
    array(10, dtype=uint32)
    """
    if isinstance(x, int):
        (n,) = _shape("permutation", x)
        return emit(ops["argsort"], (_bits(_checked_key("permutation", key), (n,), 64),), {"axis": 0})
    source = as_array(x)
    if not -source.ndim <= axis < source.ndim:
        raise ShapeError(at_user_line(f"smelt.random.permutation: axis {axis} out of range for {source.aval}"))
    axis %= source.ndim
    n = source.shape[axis]
    if not source.size:
        return source
    order = permutation(n, key=key)
    sizes = tuple(1 if i == axis else d for i, d in enumerate(source.shape))
    parts = emit(ops["gather"], (source, order), {"axes": (axis,), "slice_sizes": sizes})
    rows = reshape_to(parts, (n, *source.shape[:axis], *source.shape[axis + 1 :]))
    back = (*range(1, axis + 1), 0, *range(axis + 1, source.ndim))
    return rows if axis == 0 else emit(ops["transpose"], (rows,), {"permutation": back})
