"""The transforms themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import DTypeError, ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..lazy.arguments import integer, word
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, emit, scalar_array, wrap
from ..lazy.core import remembered
from ..lazy.movement import Axes, many_axes, one_axis, padded, permuted, shape_tuple, sliced
from ..lazy.streams import check_stream

__all__ = [
    "fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

#: What the library multiplies by, forward and backward, by the names of `norm`.
_SCALES = {"backward": ("none", "mean"), "ortho": ("ortho", "ortho"), "forward": ("mean", "none")}


def axes_of(name: str, x: array, s: Axes | None, axes: Axes | None) -> tuple[tuple[int, ...], list[int | None]]:
    """The axes of a transform, counted from the front, and how many elements of each; None is all of them."""
    sizes = None if s is None else shape_tuple(name, s, "sizes consist")
    if axes is not None:
        axes = shape_tuple(name, axes, "axes consist")
    elif sizes is not None:
        axes = tuple(range(-len(sizes), 0))
    found = many_axes(name, axes, x.shape)
    if sizes is None:
        return found, [None] * len(found)
    if len(found) != len(sizes):
        raise ShapeError(at_user_line(f"smelt.{name}: {len(sizes)} sizes for {len(found)} axes; a {x.aval}"))
    return found, [None if n == -1 else integer(name, "a number of elements", n, 1) for n in sizes]


def resized(x: array, axes: Sequence[int], sizes: Sequence[int]) -> array:
    """Axes cut, or with zeros behind their elements."""
    want = list(x.shape)
    for axis, n in zip(axes, sizes):
        want[axis] = n
    kept = [min(n, d) for n, d in zip(want, x.shape)]
    x = sliced(x, [0] * x.ndim, kept)
    return padded(x, scalar_array(0, x.dtype), [0] * x.ndim, [n - d for n, d in zip(want, kept)])


def _along(x: array, steps: Sequence[tuple[int, str, dict[str, Any]]]) -> array:
    """Ops of the last axis, applied to one axis after the other."""
    order = tuple(range(x.ndim))  # axis i is the axis order[i] of what is asked for
    for axis, op, attrs in steps:
        at = order.index(axis)
        permutation = (*(i for i in range(x.ndim) if i != at), at)
        order = tuple(order[i] for i in permutation)
        x = emit(ops[op], (permuted(x, permutation),), attrs)
    return permuted(x, tuple(order.index(i) for i in range(x.ndim)))


def real_of(x: array) -> DType:
    """The dtype of the parts of what `x` is transformed in."""
    return dtypes.float64 if x.dtype.real is dtypes.float64 else dtypes.float32


def transform(
    name: str, a: ArrayLike, s: Axes | None, axes: Axes | None, norm: str | None, kind: str, inverse: bool = False
) -> array:
    """All of the transforms: `kind` is "complex", "to real" or "from real"; the last axis is the one of real numbers.

    `inverse` is the direction of the transform of complex numbers, and that for which `norm` is read.
    """
    scale = _SCALES["backward" if norm is None else word(name, "norm", norm, *_SCALES)][inverse]
    x = as_array(a)
    if kind == "from real" and x.dtype.is_complex:
        rule = "needs real numbers; take smelt.real of them, or a transform of complex numbers"
        raise DTypeError(at_user_line(f"smelt.{name}: {rule}; a {x.aval}"))
    real = real_of(x)
    x = convert(x, real if kind == "from real" else real.complex)
    found, asked = axes_of(name, x, s, axes)
    if not found:
        if kind == "complex":
            return wrap(x._ref)
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least one axis; a {x.aval}"))
    sizes = [x.shape[axis] if n is None else n for axis, n in zip(found, asked)]
    n = sizes[-1]
    if kind == "to real":
        n = 2 * (n - 1) if asked[-1] is None else n
        sizes[-1] = n // 2 + 1
    if n < 1 or 0 in sizes:
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least one element along each axis; a {x.aval}"))
    x = resized(x, found, sizes)
    steps = [(axis, "fft", {"inverse": inverse, "scale": scale}) for axis in reversed(found)]
    if kind == "from real":
        return _along(x, [(found[-1], "rfft", {"scale": scale}), *steps[1:]])
    if kind == "to real":
        return _along(x, [*steps[1:], (found[-1], "irfft", {"n": n, "scale": scale})])
    return _along(x, steps)


def along_one(
    name: str, a: ArrayLike, n: int | None, axis: int, norm: str | None, kind: str, inverse: bool = False
) -> array:
    """`transform` of one axis."""
    x = as_array(a)
    size = None if n is None else (integer(name, "n", n, 1),)
    return transform(name, x, size, (one_axis(name, axis, x.shape),), norm, kind, inverse)


@remembered
def fft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward", stream: StreamOrDevice = None
) -> array:
    """The discrete Fourier transform along an axis: result[k] = Σⱼ a[j] · e^(-2πijk/n).

    Args:
        a: an array of any dtype.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n elements along the axis.

    Raises:
        ShapeError: no such axis, or nothing along it. AttributeValueError: n below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.fft(smelt.array([1.0, 2.0, 3.0, 4.0]))
    array([10+0j, -2+2j, -2+0j, -2-2j], dtype=complex64)
    """
    check_stream(stream)
    return along_one("fft.fft", a, n, axis, norm, "complex")


@remembered
def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward", stream: StreamOrDevice = None
) -> array:
    """The inverse of `fft`: result[j] = 1/n · Σₖ a[k] · e^(+2πijk/n).

    Args:
        a: an array of any dtype.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n elements along the axis.

    Raises:
        ShapeError: no such axis, or nothing along it. AttributeValueError: n below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.ifft(smelt.array([4.0, 0.0, 0.0, 0.0]))
    array([1+0j, 1+0j, 1+0j, 1+0j], dtype=complex64)
    """
    check_stream(stream)
    return along_one("fft.ifft", a, n, axis, norm, "complex", inverse=True)


@remembered
def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward", stream: StreamOrDevice = None
) -> array:
    """The Fourier transform of real numbers: the first n/2 + 1 elements; the others are conjugates of these.

    Args:
        a: an array of real numbers.
        n: elements of the axis that are transformed: it is cut, or zeros are added at its end; None is all of it.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n // 2 + 1 elements along the axis.

    Raises:
        ShapeError: no such axis, or nothing along it. DTypeError: complex numbers. AttributeValueError: n below 1, or
        another norm.

    >>> import smelt
    >>> smelt.fft.rfft(smelt.array([1.0, 2.0, 3.0, 4.0]))
    array([10+0j, -2+2j, -2+0j], dtype=complex64)
    """
    check_stream(stream)
    return along_one("fft.rfft", a, n, axis, norm, "from real")


@remembered
def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward", stream: StreamOrDevice = None
) -> array:
    """The inverse of `rfft`: n real numbers from n/2 + 1 elements of their Fourier transform.

    Args:
        a: an array of any dtype. The imaginary part of a[0], and of a[n/2] where n is even, is not looked at.
        n: elements of the result, by default 2·(m - 1) for m elements of `a`; n // 2 + 1 of these are read, or zeros.
        axis: the axis that is transformed.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        float32 (float64 of float64 and complex128), with n elements along the axis.

    Raises:
        ShapeError: no such axis, or nothing along it. AttributeValueError: n below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.irfft(smelt.array([10, -2 + 2j, -2]))
    array([1, 2, 3, 4], dtype=float32)
    """
    check_stream(stream)
    return along_one("fft.irfft", a, n, axis, norm, "to real", inverse=True)


@remembered
def fftn(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = None, norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The Fourier transform along several axes, one after the other.

    Args:
        a: an array of any dtype.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64; complex128 of float64 and complex128.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. AttributeValueError:
        a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.fftn(smelt.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10+0j, -2+0j],
           [-4+0j, 0+0j]], dtype=complex64)
    """
    check_stream(stream)
    return transform("fft.fftn", a, s, axes, norm, "complex")


@remembered
def ifftn(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = None, norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `fftn`.

    Args:
        a: an array of any dtype.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64; complex128 of float64 and complex128.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. AttributeValueError:
        a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.ifftn(smelt.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1+0j, 1+0j],
           [1+0j, 1+0j]], dtype=complex64)
    """
    check_stream(stream)
    return transform("fft.ifftn", a, s, axes, norm, "complex", inverse=True)


@remembered
def rfftn(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = None, norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The Fourier transform of real numbers along several axes: `rfft` along the last one, `fft` along the others.

    Args:
        a: an array of real numbers.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n // 2 + 1 elements along the last of the axes.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. DTypeError: complex
        numbers. AttributeValueError: a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.rfftn(smelt.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])).shape
    (2, 2)
    """
    check_stream(stream)
    return transform("fft.rfftn", a, s, axes, norm, "from real")


@remembered
def irfftn(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = None, norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `rfftn`: `ifft` along all of the axes but the last, `irfft` along that one.

    Args:
        a: an array of any dtype.
        s: sizes of the axes of the result; -1 is that of `a`, and of the last axis 2·(m - 1) for m elements.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        float32; float64 of float64 and complex128.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. AttributeValueError:
        a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.irfftn(smelt.array([[10, -2], [-4, 0]]))
    array([[1, 2],
           [3, 4]], dtype=float32)
    """
    check_stream(stream)
    return transform("fft.irfftn", a, s, axes, norm, "to real", inverse=True)


@remembered
def fft2(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = (-2, -1), norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The Fourier transform along two axes, one after the other.

    Args:
        a: an array of any dtype.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64; complex128 of float64 and complex128.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. AttributeValueError:
        a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.fft2(smelt.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10+0j, -2+0j],
           [-4+0j, 0+0j]], dtype=complex64)
    """
    check_stream(stream)
    return transform("fft.fft2", a, s, axes, norm, "complex")


@remembered
def ifft2(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = (-2, -1), norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `fft2`.

    Args:
        a: an array of any dtype.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64; complex128 of float64 and complex128.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. AttributeValueError:
        a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.ifft2(smelt.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[1+0j, 1+0j],
           [1+0j, 1+0j]], dtype=complex64)
    """
    check_stream(stream)
    return transform("fft.ifft2", a, s, axes, norm, "complex", inverse=True)


@remembered
def rfft2(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = (-2, -1), norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The Fourier transform of real numbers along two axes: `rfft` along the last one, `fft` along the others.

    Args:
        a: an array of real numbers.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n // 2 + 1 elements along the last of the axes.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. DTypeError: complex
        numbers. AttributeValueError: a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.rfft2(smelt.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])).shape
    (2, 2)
    """
    check_stream(stream)
    return transform("fft.rfft2", a, s, axes, norm, "from real")


@remembered
def irfft2(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = (-2, -1), norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `rfft2`: `ifft` along all of the axes but the last, `irfft` along that one.

    Args:
        a: an array of any dtype.
        s: sizes of the axes of the result; -1 is that of `a`, and of the last axis 2·(m - 1) for m elements.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        float32; float64 of float64 and complex128.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. AttributeValueError:
        a size below 1, or another norm.

    >>> import smelt
    >>> smelt.fft.irfft2(smelt.array([[10, -2], [-4, 0]]))
    array([[1, 2],
           [3, 4]], dtype=float32)
    """
    check_stream(stream)
    return transform("fft.irfft2", a, s, axes, norm, "to real", inverse=True)
