"""Cosine and sine transforms under SciPy's names: Fourier transforms of real numbers, and factors before or behind."""

from __future__ import annotations

import math
from collections.abc import Callable

from smelt.ir.errors import ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..functions.complex_numbers import imag, real
from ..functions.transcendental import cos, sin
from ..lazy.arguments import integer, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit, emit_elementwise
from ..lazy.core import remembered
from ..lazy.movement import Axes, filled, iota, joined, one_axis, permuted, piece, reversed_along, select, to_shape
from ..lazy.streams import check_stream
from .transforms import axes_of, real_of, resized

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

#: The type of the inverse of each type.
_INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}


def _turned(parts: tuple[array, array], step: float, start: float = 0.0) -> tuple[array, array]:
    """Real and imaginary parts of complex numbers along the last axis times e^(i·(start + k·step))."""
    re, im = parts
    angle = convert(iota(re.shape, re.ndim - 1), re.dtype) * step + start
    c, s = cos(angle), sin(angle)
    return re * c - im * s, re * s + im * c


def _last(x: array, start: int, stop: int, stride: int = 1) -> array:
    return piece(x, x.ndim - 1, start, stop, stride)


def _reversed(x: array) -> array:
    return reversed_along(x, (x.ndim - 1,))


def _fourier(x: array) -> tuple[array, array]:
    found = emit(ops["rfft"], (x,), {"scale": "none"})
    return real(found), imag(found)


def _alternating(x: array) -> array:
    """x, with another sign of each second element of the last axis."""
    odd = iota(x.shape, x.ndim - 1) % 2 == 1
    return select(odd, -x, x)


def _cosine1(x: array) -> array:
    n = x.shape[-1]
    return _fourier(joined([x, _reversed(_last(x, 1, n - 1))], x.ndim - 1))[0]


def _cosine2(x: array) -> array:
    """Of the even elements, and behind them the odd ones from the end (Makhoul, 1980)."""
    n, axis = x.shape[-1], x.ndim - 1
    order = joined([_last(x, 0, n, 2), _reversed(_last(x, 1, n, 2))], axis) if n > 1 else x
    re, im = _turned(_fourier(order), -math.pi / (2 * n))
    return joined([re, _reversed(_last(-im, 1, (n + 1) // 2))], axis) * 2


def _cosine3(x: array) -> array:
    """The steps of `_cosine2` from the end to the beginning."""
    n, axis, half = x.shape[-1], x.ndim - 1, x.shape[-1] // 2 + 1
    re = _last(x, 0, half)
    im = -_reversed(_last(x, n - half + 1, n))
    im = joined([filled((*x.shape[:-1], 1), 0, x.dtype), im], axis)
    re, im = _turned((re, im), math.pi / (2 * n))
    found = emit(ops["irfft"], (emit_elementwise(ops["complex"], re, im),), {"n": n, "scale": "none"})
    count = (n + 1) // 2
    even, odd = _last(found, 0, count), _reversed(_last(found, count, n))
    if n % 2:
        odd = joined([odd, filled((*x.shape[:-1], 1), 0, x.dtype)], axis)
    pairs = joined([to_shape(part, (*part.shape, 1)) for part in (even, odd)], axis + 1)
    return _last(to_shape(pairs, (*x.shape[:-1], 2 * count)), 0, n)


def _cosine4(x: array) -> array:
    n = x.shape[-1]
    re, im = _turned((x, filled(x.shape, 0, x.dtype)), -math.pi / (2 * n))
    wide = resized(emit_elementwise(ops["complex"], re, im), [x.ndim - 1], [2 * n])
    found = _last(emit(ops["fft"], (wide,), {"inverse": False, "scale": "none"}), 0, n)
    return _turned((real(found), imag(found)), -math.pi / (2 * n), -math.pi / (4 * n))[0] * 2


def _sine1(x: array) -> array:
    zero = filled((*x.shape[:-1], 1), 0, x.dtype)
    whole = joined([zero, x, zero, -_reversed(x)], x.ndim - 1)
    return -_last(_fourier(whole)[1], 1, x.shape[-1] + 1)


def _sine2(x: array) -> array:
    return _reversed(_cosine2(_alternating(x)))


def _sine3(x: array) -> array:
    return _alternating(_cosine3(_reversed(x)))


def _sine4(x: array) -> array:
    return _alternating(_cosine4(_reversed(x)))


_COSINES: dict[int, Callable[[array], array]] = {1: _cosine1, 2: _cosine2, 3: _cosine3, 4: _cosine4}
_SINES: dict[int, Callable[[array], array]] = {1: _sine1, 2: _sine2, 3: _sine3, 4: _sine4}


def _scaled_ends(x: array, kind: int, sines: bool, factor: float) -> array:
    """Elements times a factor that make the transform orthogonal: those with an angle of which the others have two."""
    n = x.shape[-1]
    ends = {1: [] if sines else [0, n - 1], 4: []}.get(kind, [n - 1 if sines else 0])
    if not ends:
        return x
    at = iota(x.shape, x.ndim - 1)
    chosen = at == ends[0]
    for end in ends[1:]:
        chosen = chosen | (at == end)
    return select(chosen, x * factor, x)


def _one(name: str, x: array, kind: int, axis: int, norm: str, sines: bool, inverse: bool) -> array:
    """The transform of real numbers along one axis."""
    n = x.shape[axis]
    if n < (2 if kind == 1 and not sines else 1):
        needs = "two elements" if kind == 1 and not sines else "at least one element"
        raise ShapeError(at_user_line(f"smelt.{name}: type {kind} needs {needs} along each axis; a {x.aval}"))
    kind = _INVERSES[kind] if inverse else kind
    order = (*(i for i in range(x.ndim) if i != axis), axis)
    x = permuted(x, order)
    count = 2 * (n + (0 if kind != 1 else 1 if sines else -1))
    if norm == "ortho" and kind in (1, 3):
        x = _scaled_ends(x, kind, sines, math.sqrt(2))
    x = (_SINES if sines else _COSINES)[kind](x)
    if norm == "ortho":
        x = _scaled_ends(x, kind, sines, math.sqrt(0.5)) if kind in (1, 2) else x
        x = x * math.sqrt(1 / count)
    elif (norm == "backward") == inverse:
        x = x * (1 / count)
    return permuted(x, tuple(order.index(i) for i in range(x.ndim)))


def _along(
    name: str, a: ArrayLike, type: int, s: Axes | None, axes: Axes | None, norm: str | None, sines: bool, inverse: bool
) -> array:
    kind = integer(name, "type", type)
    word(name, "type", str(kind), "1", "2", "3", "4")
    norm = "backward" if norm is None else word(name, "norm", norm, "backward", "ortho", "forward")
    x = as_array(a)
    found, asked = axes_of(name, x, s, axes)
    if x.dtype.is_complex:
        parts = [_along(name, part, kind, s, axes, norm, sines, inverse) for part in (real(x), imag(x))]
        return emit_elementwise(ops["complex"], *parts)
    x = convert(x, real_of(x))
    x = resized(x, found, [x.shape[axis] if n is None else n for axis, n in zip(found, asked)])
    for axis in found:
        x = _one(name, x, kind, axis, norm, sines, inverse)
    return x


def _along_one(
    name: str, a: ArrayLike, type: int, n: int | None, axis: int, norm: str | None, sines: bool, inverse: bool
) -> array:
    x = as_array(a)
    size = None if n is None else (integer(name, "n", n, 1),)
    return _along(name, x, type, size, (one_axis(name, axis, x.shape),), norm, sines, inverse)


@remembered
def dct(
    a: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The discrete cosine transform along an axis, of type 2: result[k] = 2·Σⱼ a[j] · cos(πk(2j + 1) / 2n).

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4: of type 1 cosines of πkj / (n - 1), the first and last element of which count half;
            of type 3 of π(2k + 1)j / 2n, the first of which counts half; of type 4 of π(2k + 1)(2j + 1) / 4n.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: no such axis, or not enough elements. AttributeValueError: another type or norm, or n below 1.

    >>> import smelt
    >>> smelt.fft.dct(smelt.array([1.0, 2.0, 4.0]))
    array([14, -5.19615, 1], dtype=float32)
    """
    check_stream(stream)
    return _along_one("fft.dct", a, type, n, axis, norm, False, False)


@remembered
def dctn(
    a: ArrayLike, type: int = 2, s: Axes | None = None, axes: Axes | None = None, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """`dct` along several axes, one after the other.

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; not enough elements along one.
        AttributeValueError: another type or norm, or a size below 1.

    >>> import smelt
    >>> round(smelt.fft.dctn(smelt.ones((2, 2)))[0, 0].item(), 3)
    16.0
    """
    check_stream(stream)
    return _along("fft.dctn", a, type, s, axes, norm, False, False)


@remembered
def idct(
    a: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `dct` of the same type.

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: no such axis, or not enough elements. AttributeValueError: another type or norm, or n below 1.

    >>> import smelt
    >>> smelt.fft.idct(smelt.array([1.0, 2.0, 4.0]))
    array([1.41068, -1.16667, 0.255983], dtype=float32)
    """
    check_stream(stream)
    return _along_one("fft.idct", a, type, n, axis, norm, False, True)


@remembered
def idctn(
    a: ArrayLike, type: int = 2, s: Axes | None = None, axes: Axes | None = None, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """`idct` along several axes, one after the other.

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; not enough elements along one.
        AttributeValueError: another type or norm, or a size below 1.

    >>> import smelt
    >>> round(smelt.fft.idctn(smelt.ones((2, 2)))[0, 0].item(), 3)
    0.364
    """
    check_stream(stream)
    return _along("fft.idctn", a, type, s, axes, norm, False, True)


@remembered
def dst(
    a: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The discrete sine transform along an axis, of type 2: result[k] = 2·Σⱼ a[j] · sin(π(k + 1)(2j + 1) / 2n).

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4: of type 1 sines of π(k + 1)(j + 1) / (n + 1); of type 3 of π(2k + 1)(j + 1) / 2n,
            the last of which counts half; of type 4 of π(2k + 1)(2j + 1) / 4n.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: no such axis, or not enough elements. AttributeValueError: another type or norm, or n below 1.

    >>> import smelt
    >>> smelt.fft.dst(smelt.array([1.0, 2.0, 4.0]))
    array([9, -5.19615, 6], dtype=float32)
    """
    check_stream(stream)
    return _along_one("fft.dst", a, type, n, axis, norm, True, False)


@remembered
def dstn(
    a: ArrayLike, type: int = 2, s: Axes | None = None, axes: Axes | None = None, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """`dst` along several axes, one after the other.

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; not enough elements along one.
        AttributeValueError: another type or norm, or a size below 1.

    >>> import smelt
    >>> round(smelt.fft.dstn(smelt.ones((2, 2)))[0, 0].item(), 3)
    8.0
    """
    check_stream(stream)
    return _along("fft.dstn", a, type, s, axes, norm, True, False)


@remembered
def idst(
    a: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `dst` of the same type.

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: no such axis, or not enough elements. AttributeValueError: another type or norm, or n below 1.

    >>> import smelt
    >>> smelt.fft.idst(smelt.array([1.0, 2.0, 4.0]))
    array([1.41068, -0.333333, 0.255983], dtype=float32)
    """
    check_stream(stream)
    return _along_one("fft.idst", a, type, n, axis, norm, True, True)


@remembered
def idstn(
    a: ArrayLike, type: int = 2, s: Axes | None = None, axes: Axes | None = None, norm: str | None = None,
    *, stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """`idst` along several axes, one after the other.

    Args:
        a: an array of any dtype; of complex numbers both parts are transformed.
        type: 1, 2, 3 or 4.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in SciPy.

    Returns:
        float32, or float64 where `a` has that; complex of complex numbers.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; not enough elements along one.
        AttributeValueError: another type or norm, or a size below 1.

    >>> import smelt
    >>> round(smelt.fft.idstn(smelt.ones((2, 2)))[0, 0].item(), 3)
    0.364
    """
    check_stream(stream)
    return _along("fft.idstn", a, type, s, axes, norm, True, True)
