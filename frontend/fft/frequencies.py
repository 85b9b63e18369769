"""The frequencies of transforms, and their order."""

from __future__ import annotations

from collections.abc import Callable

from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, at_user_line, shown
from smelt.ir.keywords import explain_keywords

from ..functions.arithmetic import divide, subtract
from ..functions.joining import roll
from ..functions.logic import less
from ..functions.ranges import arange
from ..lazy.arguments import dtype_of, integer, number
from ..lazy.arrays import ArrayLike, StreamOrDevice, array, as_array, convert, wrap
from ..lazy.movement import Axes, many_axes, select
from ..lazy.streams import check_stream

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(
    n: int,
    d: float = 1.0,
    stream: StreamOrDevice = None,
    *,
    dtype: DType | None = None,
    device: StreamOrDevice = None,
) -> array:
    """The frequencies of the elements of `fft`: 0, 1, …, -2, -1, divided by n·d.

    Args:
        n: the number of elements.
        d: the distance between them, in seconds for frequencies in hertz.
        dtype: of floats; by default float32.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Returns:
        Of shape (n,).

    Raises:
        AttributeValueError: n below 1, or a distance of 0.

    >>> import smelt
    >>> smelt.fft.fftfreq(4, 0.5)
    array([0, 0.5, -1, -0.5], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    target = floating("fft.fftfreq", dtype)
    n = integer("fft.fftfreq", "n", n, 1)
    k = arange(n)
    k = select(less(k, (n + 1) // 2), k, subtract(k, n))
    return divide(convert(k, target), _length("fft.fftfreq", n, d))


def rfftfreq(
    n: int,
    d: float = 1.0,
    stream: StreamOrDevice = None,
    *,
    dtype: DType | None = None,
    device: StreamOrDevice = None,
) -> array:
    """The frequencies of the elements of `rfft`: 0, 1, …, n // 2, divided by n·d.

    Args:
        n: the number of elements that were transformed.
        d: the distance between them, in seconds for frequencies in hertz.
        dtype: of floats; by default float32.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Returns:
        Of shape (n // 2 + 1,).

    Raises:
        AttributeValueError: n below 1, or a distance of 0.

    >>> import smelt
    >>> smelt.fft.rfftfreq(4, 0.5)
    array([0, 0.5, 1], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    target = floating("fft.rfftfreq", dtype)
    n = integer("fft.rfftfreq", "n", n, 1)
    return divide(convert(arange(n // 2 + 1), target), _length("fft.rfftfreq", n, d))


def floating(name: str, dtype: DType | None) -> DType:
    """A dtype of floats, by default float32."""
    found = dtype_of(name, dtype, dtypes.float32)
    if not found.is_float:
        raise DTypeError(at_user_line(f"smelt.{name}: dtype must be of floats, is {found.name}"))
    return found


def _length(name: str, n: int, d: float) -> float:
    """The duration of n elements at a distance of d."""
    found = n * float(number(name, "d", d))
    if not found:
        raise AttributeValueError(at_user_line(f"smelt.{name}: the distance d must not be 0, is {shown(d)}"))
    return found


def fftshift(a: ArrayLike, axes: Axes | None = None, stream: StreamOrDevice = None) -> array:
    """The second half of each axis in front of the first one: the frequency 0 comes into the middle.

    Args:
        axes: an axis or several; None is all of them.

    Raises:
        ShapeError: axes that there are not, or that repeat.

    >>> import smelt
    >>> smelt.fft.fftshift(smelt.fft.fftfreq(4))
    array([-0.5, -0.25, 0, 0.25], dtype=float32)
    """
    check_stream(stream)
    return _shifted("fft.fftshift", as_array(a), axes, lambda d: d // 2)


def ifftshift(a: ArrayLike, axes: Axes | None = None, stream: StreamOrDevice = None) -> array:
    """The inverse of `fftshift`: the middle of each axis comes to its beginning.

    Args:
        axes: an axis or several; None is all of them.

    Raises:
        ShapeError: axes that there are not, or that repeat.

    >>> import smelt
    >>> smelt.fft.ifftshift(smelt.array([-2, -1, 0, 1, 2]))
    array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    check_stream(stream)
    return _shifted("fft.ifftshift", as_array(a), axes, lambda d: -(d // 2))


def _shifted(name: str, x: array, axes: Axes | None, by: Callable[[int], int]) -> array:
    found = many_axes(name, axes, x.shape)
    return roll(x, tuple(by(x.shape[axis]) for axis in found), found) if found else wrap(x._ref)


explain_keywords(globals())
