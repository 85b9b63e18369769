"""Arrays made from nothing but numbers."""

from __future__ import annotations

from typing import Any

from smelt.backends.dlpack import is_contiguous
from smelt.ir import dtypes
from smelt.ir.dtypes import DType
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    BufferExportError,
    DeviceError,
    ShapeError,
    SmeltError,
    at_user_line,
    shown,
)
from smelt.ir.flags import flag, flags_checked
from smelt.ir.keywords import keywords_explained
from smelt.ir.op import registry as ops

from ..lazy.arguments import dtype_of, integer
from ..lazy.arrays import ArrayLike, Scalar, StreamOrDevice, array, as_array, convert, emit_elementwise, from_host, wrap
from ..lazy.core import leaf, remembered
from ..lazy.dlpack import imported, producer, taken_there
from ..lazy.movement import Axes, checked_shape, filled, iota
from ..lazy.streams import check_stream
from .diagonals import diagonal_offset, triangle_mask
from .shaping import broadcast_to
from .views import as_strided

__all__ = [
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "ones",
    "ones_like",
    "tri",
    "zeros",
    "zeros_like",
]


@remembered
def zeros(
    shape: Axes, dtype: DType | None = dtypes.float32, *, stream: StreamOrDevice = None, device: StreamOrDevice = None
) -> array:
    """An array of zeros.

    Args:
        shape: an int or a sequence of ints. dtype: float32 by default.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        ShapeError: a negative extent. ArgumentTypeError: a shape of something else than ints.

    >>> import smelt
    >>> smelt.zeros((2, 2))
    array([[0, 0],
           [0, 0]], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    return filled(checked_shape("zeros", shape), 0, dtype_of("zeros", dtype, dtypes.float32))


@remembered
def ones(
    shape: Axes, dtype: DType | None = dtypes.float32, *, stream: StreamOrDevice = None, device: StreamOrDevice = None
) -> array:
    """An array of ones.

    Args:
        shape: an int or a sequence of ints. dtype: float32 by default.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        ShapeError: a negative extent. ArgumentTypeError: a shape of something else than ints.

    >>> import smelt
    >>> smelt.ones(2, smelt.int32)
    array([1, 1], dtype=int32)
    """
    check_stream(stream)
    check_stream(device)
    return filled(checked_shape("ones", shape), 1, dtype_of("ones", dtype, dtypes.float32))


@remembered
def empty(
    shape: Axes, dtype: DType | None = dtypes.float32, *, stream: StreamOrDevice = None, device: StreamOrDevice = None
) -> array:
    """An array of zeros: there is no uninitialized memory to be seen.

    Args:
        shape: an int or a sequence of ints. dtype: float32 by default.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        ShapeError: a negative extent. ArgumentTypeError: a shape of something else than ints.

    >>> import smelt
    >>> smelt.empty(2).shape
    (2,)
    """
    check_stream(stream)
    check_stream(device)
    return filled(checked_shape("empty", shape), 0, dtype_of("empty", dtype, dtypes.float32))


@remembered
def full(
    shape: Axes,
    vals: Scalar | ArrayLike | None = None,
    dtype: DType | None = None,
    *,
    fill_value: Scalar | ArrayLike | None = None,
    stream: StreamOrDevice = None,
    device: StreamOrDevice = None,
) -> array:
    """An array of one value, or of an array that is broadcast; by default in the value's dtype.

    The value may be called `fill_value`, as in the array API standard.

    Args:
        shape: an int or a sequence of ints.
        vals: a number, or an array that broadcasts to `shape`; `fill_value` is the same.
        dtype: of the result; by default the value's.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        ArgumentTypeError: no value, or two. ShapeError: a negative extent, or a value that does not broadcast.

    >>> import smelt
    >>> smelt.full((2, 2), smelt.array([1, 2]))
    array([[1, 2],
           [1, 2]], dtype=int32)
    """
    check_stream(stream)
    check_stream(device)
    target = None if dtype is None else dtype_of("full", dtype, dtypes.float32)
    value = as_array(_value("full", vals, fill_value), target)
    return _filled_with("full", checked_shape("full", shape), value, target)


def _filled_with(name: str, shape: tuple[int, ...], value: array, dtype: DType | None) -> array:
    if value.ndim > len(shape) or any(n not in (1, m) for n, m in zip(value.shape[::-1], shape[::-1])):
        raise ShapeError(at_user_line(f"smelt.{name}: a value of shape {value.shape} does not broadcast to {shape}"))
    return broadcast_to(value if dtype is None else convert(value, dtype), shape)


def _value(name: str, vals: Any, fill_value: Any) -> Any:
    """What to fill with, by either of its names."""
    if (vals is None) == (fill_value is None):
        message = f"smelt.{name}: takes one value, vals or fill_value, got {'none' if vals is None else 'both'}"
        raise ArgumentTypeError(at_user_line(message))
    return fill_value if vals is None else vals


def _shape_like(name: str, x: array, shape: Axes | None) -> tuple[int, ...]:
    return x.shape if shape is None else checked_shape(name, shape)


@remembered
def zeros_like(
    a: ArrayLike, /, dtype: DType | None = None, *, shape: Axes | None = None, stream: StreamOrDevice = None,
    device: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Zeros in the shape of `a`, and in its dtype unless one is given.

    Args:
        dtype, shape: by default those of `a`.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    >>> import smelt
    >>> smelt.zeros_like(smelt.array([1, 2]))
    array([0, 0], dtype=int32)
    """
    check_stream(stream)
    check_stream(device)
    x = as_array(a)
    return filled(_shape_like("zeros_like", x, shape), 0, dtype_of("zeros_like", dtype, x.dtype))


empty_like = zeros_like


@remembered
def ones_like(
    a: ArrayLike, /, dtype: DType | None = None, *, shape: Axes | None = None, stream: StreamOrDevice = None,
    device: StreamOrDevice = None,
) -> array:  # fmt: skip
    """Ones in the shape of `a`, and in its dtype unless one is given.

    Args:
        dtype, shape: by default those of `a`.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    >>> import smelt
    >>> smelt.ones_like(smelt.array([2.0, 3.0]))
    array([1, 1], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    x = as_array(a)
    return filled(_shape_like("ones_like", x, shape), 1, dtype_of("ones_like", dtype, x.dtype))


@remembered
def full_like(
    a: ArrayLike,
    vals: Scalar | ArrayLike | None = None,
    dtype: DType | None = None,
    *,
    fill_value: Scalar | ArrayLike | None = None,
    shape: Axes | None = None,
    stream: StreamOrDevice = None,
    device: StreamOrDevice = None,
) -> array:
    """`vals` broadcast to the shape of `a`, in its dtype unless one is given.

    Args:
        vals: a number, or an array that broadcasts to the shape; `fill_value` is the same.
        dtype, shape: by default those of `a`.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    Raises:
        ArgumentTypeError: no value, or two. ShapeError: one that does not broadcast.

    >>> import smelt
    >>> smelt.full_like(smelt.array([1, 2]), 7)
    array([7, 7], dtype=int32)
    """
    check_stream(stream)
    check_stream(device)
    x = as_array(a)
    target = dtype_of("full_like", dtype, x.dtype)
    value = as_array(_value("full_like", vals, fill_value), target)
    return _filled_with("full_like", _shape_like("full_like", x, shape), value, target)


@remembered
def tri(
    n: int, m: int | None = None, k: int = 0, dtype: DType | None = None, *, stream: StreamOrDevice = None
) -> array:
    """An n-by-m matrix of ones on and below the k-th diagonal, and zeros above; empty where n or m is negative.

    Args:
        dtype: float32 by default.

    >>> import smelt
    >>> smelt.tri(2, 3)
    array([[1, 0, 0],
           [1, 1, 0]], dtype=float32)
    """
    check_stream(stream)
    sizes = [integer("tri", what, d) for what, d in (("n", n), ("m", n if m is None else m))]
    rows, columns = checked_shape("tri", tuple([max(d, 0) for d in sizes]))
    mask = triangle_mask(rows, columns, diagonal_offset("tri", k, rows, columns))
    return convert(mask, dtype_of("tri", dtype, dtypes.float32))


@remembered
def eye(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: DType | None = dtypes.float32,
    *,
    stream: StreamOrDevice = None,
    device: StreamOrDevice = None,
) -> array:
    """An n-by-m matrix of ones on the k-th diagonal, and zeros elsewhere.

    Args:
        n, m: how many rows and columns; m is n by default. k: above the main diagonal where positive.
        dtype: float32 by default.
        device: as `stream`: it has to exist, and arrays are evaluated on the default device.

    >>> import smelt
    >>> smelt.eye(2, k=1)
    array([[0, 1],
           [0, 0]], dtype=float32)
    """
    check_stream(stream)
    check_stream(device)
    shape = checked_shape("eye", (n, n if m is None else m))
    i, j = iota(shape, 0), iota(shape, 1)
    if k := diagonal_offset("eye", k, *shape):
        i = emit_elementwise(ops["add"], i, filled(shape, k, i.dtype))
    return convert(emit_elementwise(ops["equal"], i, j), dtype_of("eye", dtype, dtypes.float32))


@remembered
def identity(n: int, dtype: DType | None = dtypes.float32, *, stream: StreamOrDevice = None) -> array:
    """The n-by-n identity matrix.

    Args:
        dtype: float32 by default.

    >>> import smelt
    >>> smelt.identity(2)
    array([[1, 0],
           [0, 1]], dtype=float32)
    """
    check_stream(stream)
    checked_shape("identity", (n, n))
    return eye(n, dtype=dtype)


@keywords_explained
def asarray(
    a: ArrayLike,
    dtype: DType | None = None,
    *,
    copy: bool | None = None,
    device: StreamOrDevice = None,
    stream: StreamOrDevice = None,
) -> array:
    """`a` as an array: itself if it is one (unless `copy`), else a new one with its data.

    Args:
        dtype: by default that of the data; Python's floats are float32.
        copy: True for a new array, False for an error where one is needed. device: as `stream`: it has to exist, and
            arrays are evaluated on the default device.

    Raises:
        AttributeValueError: ``copy=False``, but the data must be copied.

    >>> import smelt
    >>> smelt.asarray([1, 2], dtype=smelt.float32)
    array([1, 2], dtype=float32)
    """
    check_stream(device)
    check_stream(stream)
    if copy is not None:
        copy = flag("asarray", "copy", copy)
    target = None if dtype is None else dtype_of("asarray", dtype, dtypes.float32)
    if copy is False and (not isinstance(a, array) or target not in (None, a.dtype)):
        raise AttributeValueError(
            at_user_line(f"smelt.asarray: a {type(a).__name__} cannot become an array without a copy")
        )
    if isinstance(a, array) and issubclass(type(a), array):
        return a if target in (None, a.dtype) and not copy else wrap((convert(a, target or a.dtype))._ref)
    return array(a, target)


@keywords_explained
@flags_checked
def from_dlpack(x: Any, /, *, device: StreamOrDevice = None, copy: bool | None = None) -> array:
    """An array with a copy of the data of any object with ``__dlpack__``.

    What lies on an NVIDIA GPU stays there, and is copied only with ``copy=True``: nobody may write to it any more.

    Args:
        x: an array of any library that has it, or a capsule. device: as `stream`. copy: see above.

    Raises:
        ArgumentTypeError: it has no such method. AttributeValueError: ``copy=False`` of data in the host's memory.
        BufferExportError: it exports no data, or none in the memory of a device that is here.
        DTypeError: elements that smelt has no dtype for.

    >>> import numpy, smelt
    >>> smelt.from_dlpack(numpy.arange(2, dtype="int32"))
    array([0, 1], dtype=int32)
    """
    check_stream(device)
    if isinstance(x, array):
        return wrap(x._ref)
    x = producer(x)
    if not hasattr(x, "__dlpack__") or isinstance(x, type):
        raise ArgumentTypeError(at_user_line(f"smelt.from_dlpack: {shown(x)} has no __dlpack__"))
    try:
        there = taken_there(x, bool(copy))
        if there is None:
            if copy is False:
                message = "smelt.from_dlpack: data of other libraries is copied; copy=False cannot be"
                raise AttributeValueError(at_user_line(message))
            return from_host(imported(x))
        buffer, tensor = there
        aval, strides = tensor.aval, tensor.strides
        if is_contiguous(aval.shape, strides):
            return wrap((leaf(buffer.reshaped(aval)), 0))
        return as_strided(wrap((leaf(buffer), 0)), aval.shape, strides)
    except DeviceError as error:
        message = f"smelt.from_dlpack: a {type(x).__name__} exports no data that is in reach: {error}"
        raise BufferExportError(at_user_line(message)) from None
    except SmeltError:
        raise
    except Exception as error:  # whatever its library raises
        raise BufferExportError(
            at_user_line(f"smelt.from_dlpack: a {type(x).__name__} exports no data: {error}")
        ) from None
