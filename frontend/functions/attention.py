"""Attention and rotary positions, under the names of `mlx.core.fast`: compositions of other ops."""

from __future__ import annotations

import math

import numpy as np

from smelt.ir import dtypes
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..lazy.arguments import integer, number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, from_host
from ..lazy.core import remembered
from ..lazy.operands import as_floating
from ..lazy.streams import check_stream
from .arithmetic import divide, multiply
from .compositions import softmax
from .dtypes import finfo
from .joining import concatenate, stack
from .linear import matmul, wide_matmul
from .logic import where
from .ranges import arange
from .reductions import widened
from .shaping import broadcast_to, expand_dims, reshape, swapaxes
from .transcendental import cos, sin

__all__ = ["rope", "scaled_dot_product_attention"]


def rope(
    a: ArrayLike,
    dims: int,
    *,
    traditional: bool,
    base: float | None,
    scale: float,
    offset: int | ArrayLike,
    freqs: ArrayLike | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Rotary position encoding: pairs of features rotated by angles that grow with the position.

    Pair i at position p turns by scale · (p + offset) / base^(2i / dims), or by scale · (p + offset) / freqs[i]
    (Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021).

    Args:
        a: [batch, …, positions, features], floating point. dims: how many features turn, an even number; the
            rest stay as they are. traditional: pairs are neighbours (2i, 2i + 1), else (i, i + dims / 2).
        offset: of the positions: an int, a scalar array, or one integer for each of the batch.
        freqs: [dims / 2]; exactly one of `base` and `freqs` is None.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: fewer than three axes, or an operand that does not fit. AttributeValueError: both or none of `base`
        and `freqs`, a `base` that is not positive, an odd `dims`. DTypeError: `a` is not floating point, `offset` is no
        integer, `freqs` is complex. ArgumentTypeError: `dims` is no int, `base` or `scale` no number.

    >>> import smelt
    >>> x = smelt.array([[[1.0, 0.0], [1.0, 0.0]]])
    >>> smelt.fast.rope(x, 2, traditional=True, base=10000.0, scale=1.0, offset=0)
    array([[[1, 0],
            [0.540302, 0.841471]]], dtype=float32)
    """
    # As an array it is no part of what is remembered: there is another one for each token.
    start = as_array(offset) if type(offset) is int else offset
    return _rope(a, start, dims, traditional, base, scale, freqs, stream=stream)


@remembered
def _rope(
    a: ArrayLike, offset: ArrayLike, dims: int, traditional: bool, base: float | None, scale: float,
    freqs: ArrayLike | None, *, stream: StreamOrDevice,
) -> array:  # fmt: skip
    check_stream(stream)
    x = as_array(a)
    start = as_array(offset)
    dims, scale = integer("fast.rope", "dims", dims), float(number("fast.rope", "scale", scale))
    _check_rope(x, dims, base, freqs, start)
    kind = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    positions = convert(expand_dims(start, -1) + arange(x.shape[-2]), kind)
    if scale != 1:
        positions = positions * scale
    if freqs is None:
        rates = from_host(np.float64(base) ** (-np.arange(0, dims, 2) / dims), kind)
        angles = multiply(expand_dims(positions, -1), rates)
    else:
        angles = divide(expand_dims(positions, -1), as_floating(freqs))
    angles = reshape(angles, (start.size, *[1] * (x.ndim - 3), x.shape[-2], dims // 2))
    c, s = cos(angles), sin(angles)
    wide = widened(x)
    turning, rest = wide[..., :dims], x[..., dims:]
    if isinstance(traditional, np.ndarray):
        raise ArgumentTypeError(at_user_line(f"smelt.fast.rope: traditional must be a bool, is {shown(traditional)}"))
    if traditional:
        first, second = turning[..., ::2], turning[..., 1::2]
        turned = reshape(stack([first * c - second * s, first * s + second * c], -1), turning.shape)
    else:
        first, second = turning[..., : dims // 2], turning[..., dims // 2 :]
        turned = concatenate([first * c - second * s, first * s + second * c], -1)
    turned = convert(turned, x.dtype)
    return concatenate([turned, rest], -1) if rest.shape[-1] else turned


def _check_rope(x: array, dims: int, base: float | None, freqs: ArrayLike | None, start: array) -> None:
    if x.ndim < 3:
        raise ShapeError(at_user_line(f"smelt.fast.rope: needs axes [batch, …, positions, features]; a {x.aval}"))
    if not x.dtype.is_float or not start.dtype.is_integer:
        raise DTypeError(
            at_user_line(
                f"smelt.fast.rope: needs a floating-point array and an integer offset; a {x.aval}, offset {start.aval}"
            )
        )
    if (base is None) == (freqs is None):
        raise AttributeValueError(at_user_line("smelt.fast.rope: exactly one of base and freqs must be None"))
    if base is not None and not 0 < number("fast.rope", "base", base) < math.inf:
        raise AttributeValueError(at_user_line(f"smelt.fast.rope: base must be positive and finite, is {base}"))
    if dims % 2 or not 0 < dims <= x.shape[-1]:
        raise AttributeValueError(
            at_user_line(
                f"smelt.fast.rope: dims must be even and at most the number of features, is {dims}; a {x.aval}"
            )
        )
    if start.shape not in ((), (1,), (x.shape[0],)):
        raise ShapeError(
            at_user_line(f"smelt.fast.rope: one offset, or one for each of the batch; a {x.aval}, offset {start.aval}")
        )
    if freqs is not None and as_array(freqs).dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.fast.rope: freqs must hold real numbers; freqs {as_array(freqs).aval}"))
    if freqs is not None and as_array(freqs).shape != (dims // 2,):
        raise ShapeError(
            at_user_line(f"smelt.fast.rope: freqs must have dims / 2 = {dims // 2} elements, is {as_array(freqs).aval}")
        )


@remembered
def scaled_dot_product_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    scale: float,
    mask: str | ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    force_fused: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """softmax(scale · q kᵀ + mask) v for each head, with the softmax in float32.

    Args:
        q: queries, [batch, heads, queries, features]. k: keys, [batch, groups, keys, features]. v: values,
            [batch, groups, keys, features of the result]. Each group of keys serves heads / groups heads.
        mask: None; "causal": the last query sees all keys, the one before all but the last, and so on; an array
            that broadcasts to [batch, heads, queries, keys]: of bools, where False hides a key, or of numbers, which
            are added.
        sinks: [heads]: the score of one more key for each head, whose value is zero.
        force_fused: accepted for MLX's sake and ignored.

    Returns:
        [batch, heads, queries, features of the result], in the common dtype of q, k and v. A query whose keys
        are all hidden gets the mean of their values.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: operands that are not floating point. AttributeValueError:
        another string as mask. ArgumentTypeError: `scale` is no number.

    >>> import smelt
    >>> q = k = v = smelt.array([[[[1.0], [2.0]]]])
    >>> smelt.fast.scaled_dot_product_attention(q, k, v, scale=1.0, mask="causal")
    array([[[[1],
             [1.8808]]]], dtype=float32)
    """
    check_stream(stream)
    name = "smelt.fast.scaled_dot_product_attention"
    queries, keys, values = (as_array(x) for x in (q, k, v))
    scale = float(number("fast.scaled_dot_product_attention", "scale", scale))
    _check_heads(name, queries, keys, values)
    dtype = dtypes.promote(dtypes.promote(queries.dtype, keys.dtype), values.dtype)
    batch, heads, n_queries, features = queries.shape
    groups, n_keys = keys.shape[1:3]
    # Heads that share keys stand along an axis of their own: the keys need no copies.
    grouped = reshape(convert(queries, dtype), (batch, groups, heads // groups, n_queries, features))
    keys = expand_dims(convert(keys, dtype), 2)
    # A softmax magnifies what rounding loses: of scores, and of queries by a scale that is no power of two.
    is_exact = dtype.size > 2 or math.frexp(scale)[0] in (0.5, -0.5)
    scores = wide_matmul(grouped * scale if is_exact else grouped, swapaxes(keys, -1, -2))
    if not is_exact:
        scores = scores * scale
    scores = reshape(scores, (batch, heads, n_queries, n_keys))
    if mask is not None:
        scores = _masked(name, scores, mask)
    if sinks is not None:
        score = as_floating(sinks)
        if score.dtype.is_complex:
            raise DTypeError(at_user_line(f"{name}: sinks must hold real numbers; sinks {score.aval}"))
        if score.shape != (heads,):
            raise ShapeError(at_user_line(f"{name}: one sink for each of the {heads} heads; sinks {score.aval}"))
        extra = broadcast_to(reshape(convert(score, scores.dtype), (heads, 1, 1)), (*scores.shape[:-1], 1))
        scores = concatenate([extra, scores], -1)
    weights = convert(softmax(scores, -1), dtype)
    if sinks is not None:
        weights = weights[..., 1:]
    weights = reshape(weights, (batch, groups, heads // groups, n_queries, n_keys))
    found = matmul(weights, expand_dims(convert(values, dtype), 2))
    return reshape(found, (batch, heads, n_queries, values.shape[-1]))


def _check_heads(name: str, q: array, k: array, v: array) -> None:
    listed = f"q {q.aval}, k {k.aval}, v {v.aval}"
    if not all(x.dtype.is_float for x in (q, k, v)):
        raise DTypeError(at_user_line(f"{name}: operands must be floating point; {listed}"))
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ShapeError(at_user_line(f"{name}: operands have axes [batch, heads, positions, features]; {listed}"))
    if k.shape[:3] != v.shape[:3]:
        raise ShapeError(at_user_line(f"{name}: each key has a value; {listed}"))
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ShapeError(at_user_line(f"{name}: queries and keys have the same batch and features; {listed}"))
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ShapeError(at_user_line(f"{name}: the heads of q are a multiple of those of k; {listed}"))


def _masked(name: str, scores: array, mask: str | ArrayLike) -> array:
    if isinstance(mask, str):
        if mask != "causal":
            raise AttributeValueError(at_user_line(f'{name}: mask must be "causal" or an array, is {shown(mask)}'))
        n_queries, n_keys = scores.shape[-2:]
        seen = expand_dims(arange(n_keys - n_queries, n_keys), 1) >= arange(n_keys)
        return where(seen, scores, finfo(scores.dtype).min)
    given = as_array(mask)
    if given.dtype.is_complex:
        raise DTypeError(at_user_line(f"{name}: a mask holds bools or real numbers; mask {given.aval}"))
    missing = scores.ndim - given.ndim
    if missing < 0 or any(d not in (1, n) for d, n in zip(given.shape, scores.shape[missing:])):
        raise ShapeError(
            at_user_line(f"{name}: the mask must broadcast to the scores; mask {given.aval}, scores {scores.aval}")
        )
    if given.dtype is dtypes.bool_:
        return where(given, scores, finfo(scores.dtype).min)
    return scores + convert(given, scores.dtype)


explain_keywords(globals())
