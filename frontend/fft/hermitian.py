"""Fourier transforms of what has a real one, and their inverses."""

from __future__ import annotations

from smelt.ir.errors import ShapeError, at_user_line

from ..functions.complex_numbers import conjugate
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array
from ..lazy.core import remembered
from ..lazy.movement import Axes
from ..lazy.streams import check_stream
from .transforms import along_one, axes_of, transform

__all__ = ["hfft", "hfft2", "hfftn", "ihfft", "ihfft2", "ihfftn"]


def _of_each(name: str, a: ArrayLike, s: Axes | None, axes: Axes | None) -> list[tuple[int, int | None]]:
    """The axes, at least one, and the number of elements of each."""
    x = as_array(a)
    found, sizes = axes_of(name, x, s, axes)
    if not found:
        raise ShapeError(at_user_line(f"smelt.{name}: needs at least one axis; a {x.aval}"))
    return list(zip(found, sizes))


def _listed(axes: list[tuple[int, int | None]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and axes, as arguments."""
    return tuple(-1 if n is None else n for _, n in axes), tuple(axis for axis, _ in axes)


@remembered
def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward", stream: StreamOrDevice = None
) -> array:
    """The real Fourier transform of n numbers of which the first n/2 + 1 are given, the others being conjugates.

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
    >>> smelt.fft.hfft(smelt.array([1, 2j, 0]))
    array([1, 5, 1, -3], dtype=float32)
    """
    check_stream(stream)
    return along_one("fft.hfft", conjugate(a), n, axis, norm, "to real")


@remembered
def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward", stream: StreamOrDevice = None
) -> array:
    """The inverse of `hfft`: the first n/2 + 1 elements of the inverse Fourier transform of real numbers.

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
    >>> smelt.fft.ihfft(smelt.array([1.0, 5.0, 1.0, -3.0]))
    array([1-0j, 0+2j, 0-0j], dtype=complex64)
    """
    check_stream(stream)
    return conjugate(along_one("fft.ihfft", a, n, axis, norm, "from real", inverse=True))


@remembered
def hfftn(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = None, norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The Fourier transform along several axes of what has a real one: `hfft` along the last of them.

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
    >>> smelt.fft.hfftn(smelt.array([[10.0, -2.0], [-4.0, 0.0]]))
    array([[4, 8],
           [12, 16]], dtype=float32)
    """
    check_stream(stream)
    *others, last = _of_each("fft.hfftn", a, s, axes)
    x = transform("fft.hfftn", a, *_listed(others), norm, "complex")
    return along_one("fft.hfftn", conjugate(x), last[1], last[0], norm, "to real")


@remembered
def ihfftn(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = None, norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `hfftn`, of real numbers: `ihfft` along the last axis, `ifft` along the others.

    Args:
        a: an array of real numbers.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n // 2 + 1 elements along the last axis.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. DTypeError: complex
        numbers. AttributeValueError: a size below 1, or another norm.

    >>> import smelt
    >>> smelt.real(smelt.fft.ihfftn(smelt.array([[2.0, 10.0], [12.0, 16.0]])))
    array([[10, -3],
           [-4, -1]], dtype=float32)
    """
    check_stream(stream)
    *others, last = _of_each("fft.ihfftn", a, s, axes)
    x = conjugate(along_one("fft.ihfftn", a, last[1], last[0], norm, "from real", inverse=True))
    return transform("fft.ihfftn", x, *_listed(others), norm, "complex", inverse=True)


@remembered
def hfft2(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = (-2, -1), norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The Fourier transform along two axes of what has a real one: `hfft` along the last of them.

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
    >>> smelt.fft.hfft2(smelt.array([[10.0, -2.0], [-4.0, 0.0]]))
    array([[4, 8],
           [12, 16]], dtype=float32)
    """
    check_stream(stream)
    *others, last = _of_each("fft.hfft2", a, s, axes)
    x = transform("fft.hfft2", a, *_listed(others), norm, "complex")
    return along_one("fft.hfft2", conjugate(x), last[1], last[0], norm, "to real")


@remembered
def ihfft2(
    a: ArrayLike, s: Axes | None = None, axes: Axes | None = (-2, -1), norm: str | None = "backward",
    stream: StreamOrDevice = None,
) -> array:  # fmt: skip
    """The inverse of `hfft2`, of real numbers: `ihfft` along the last axis, `ifft` along the others.

    Args:
        a: an array of real numbers.
        s: elements of each axis that are transformed, -1 for all: axes are cut, or zeros are added at their ends.
        axes: the axes; None is the last `len(s)` of them, or all where `s` is None too.
        norm: "backward", "ortho" or "forward"; None is "backward", as in NumPy.

    Returns:
        complex64 (complex128 of float64 and complex128), with n // 2 + 1 elements along the last axis.

    Raises:
        ShapeError: axes that there are not, that repeat or do not fit `s`; nothing along one. DTypeError: complex
        numbers. AttributeValueError: a size below 1, or another norm.

    >>> import smelt
    >>> smelt.real(smelt.fft.ihfft2(smelt.array([[2.0, 10.0], [12.0, 16.0]])))
    array([[10, -3],
           [-4, -1]], dtype=float32)
    """
    check_stream(stream)
    *others, last = _of_each("fft.ihfft2", a, s, axes)
    x = conjugate(along_one("fft.ihfft2", a, last[1], last[0], norm, "from real", inverse=True))
    return transform("fft.ihfft2", x, *_listed(others), norm, "complex", inverse=True)
