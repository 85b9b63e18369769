"""Short-time Fourier transforms: of windows that move along an axis."""

from __future__ import annotations

from smelt.ir.dtypes import DType
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, at_user_line
from smelt.ir.op import registry as ops

from ..functions.arithmetic import divide, multiply
from ..functions.padding import pad
from ..lazy.arguments import integer, word
from ..lazy.arrays import (
    ArrayLike,
    StreamOrDevice,
    array,
    as_array,
    broadcast_to_shape,
    convert,
    emit,
    emit_elementwise,
    scalar_array,
)
from ..lazy.core import remembered
from ..lazy.movement import checked_shape, counting, filled, iota, padded, permuted, piece, select, to_shape
from ..lazy.streams import check_stream
from .transforms import fft, ifft, irfft, real_of, rfft

__all__ = ["istft", "stft"]

#: Where the squares of the windows sum to less, nothing is known of the signal.
_NOTHING = 1e-11


@remembered
def stft(
    x: ArrayLike,
    n_fft: int = 2048,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    norm: str = "backward",
    onesided: bool | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Short-time Fourier transform: of frames of the last axis, each times a window.

    Args:
        x: shape (…, t).
        n_fft: elements of a frame.
        hop_length: how far a frame lies behind the one before; n_fft // 4 by default, at least 1.
        win_length: elements of the window, at most `n_fft`; those of `window`, or else `n_fft`, by default.
        window: real numbers of shape (win_length,), with zeros on both sides of them up to `n_fft`; ones by default.
        center: whether frames are centered at multiples of `hop_length`, for which n_fft // 2 elements are added at
            both ends; else they begin there.
        pad_mode: what is added, as in `smelt.pad`: "reflect", "constant" or "edge".
        norm: "backward", "ortho" or "forward".
        onesided: the first n_fft // 2 + 1 frequencies alone, of real numbers; the default for these.

    Returns:
        Shape (…, frequencies, frames), complex64; complex128 where `x` is float64 or complex128.

    Raises:
        ShapeError: fewer elements than a frame has; a window of another length. DTypeError: `onesided` for complex
        numbers, a complex window. AttributeValueError: lengths below 1, a window longer than a frame, other words.

    >>> import smelt
    >>> smelt.fft.stft(smelt.ones(16), n_fft=8).shape
    (5, 9)
    """
    check_stream(stream)
    a, name = as_array(x), "fft.stft"
    real = real_of(a)
    n, hop, taper = _window(name, real, n_fft, hop_length, win_length, window)
    if not a.ndim:
        raise ShapeError(at_user_line(f"smelt.{name}: x needs an axis; x {a.aval}"))
    if onesided is None:
        onesided = not a.dtype.is_complex
    elif onesided and a.dtype.is_complex:
        rule = "the frequencies of complex numbers are not onesided"
        raise DTypeError(at_user_line(f"smelt.{name}: {rule}; x {a.aval}"))
    a = convert(a, real.complex if a.dtype.is_complex else real)
    word(name, "pad_mode", pad_mode, "reflect", "constant", "edge")
    if center:
        a = pad(a, [(0, 0)] * (a.ndim - 1) + [(n // 2, n // 2)], pad_mode)
    t = a.shape[-1]
    if t < n:
        raise ShapeError(at_user_line(f"smelt.{name}: {t} elements are less than a frame of {n}; x {as_array(x).aval}"))
    count = 1 + (t - n) // hop
    frames = emit(
        ops["gather"], (a, _places(count, n, hop)), {"axes": (a.ndim - 1,), "slice_sizes": (*a.shape[:-1], 1)}
    )
    # The axes of the places come first: (frames, n, …, 1).
    frames = permuted(to_shape(frames, (count, n, *a.shape[:-1])), (*range(2, a.ndim + 1), 0, 1))
    frames = multiply(frames, taper)
    found = rfft(frames, norm=norm) if onesided else fft(frames, norm=norm)
    return permuted(found, (*range(found.ndim - 2), found.ndim - 1, found.ndim - 2))


def _places(count: int, n: int, hop: int) -> array:
    """Where the elements of frames are: [i, j] = i·hop + j."""
    shape, dtype = (count, n), counting(count * hop + n)
    first, within = iota(shape, 0, dtype), iota(shape, 1, dtype)
    return emit_elementwise(ops["add"], emit_elementwise(ops["mul"], first, filled(shape, hop, first.dtype)), within)


def _window(
    name: str,
    dtype: DType,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: ArrayLike | None,
) -> tuple[int, int, array]:
    """The length of a frame, that of a step, and the window of a dtype with zeros around it."""
    n = integer(name, "n_fft", n_fft, 1)
    hop = max(1, n // 4) if hop_length is None else integer(name, "hop_length", hop_length, 1)
    taper = None if window is None else as_array(window)
    default = n if taper is None or taper.ndim != 1 else taper.size
    size = default if win_length is None else integer(name, "win_length", win_length, 1)
    if size > n:
        message = f"smelt.{name}: a window of {size} elements is longer than a frame, n_fft = {n}"
        raise AttributeValueError(at_user_line(message))
    if taper is None:
        taper = filled((size,), 1.0, dtype)
    if taper.dtype.is_complex:
        raise DTypeError(at_user_line(f"smelt.{name}: the window must be real; window {taper.aval}"))
    if taper.shape != (size,):
        raise ShapeError(at_user_line(f"smelt.{name}: the window must have the shape ({size},); window {taper.aval}"))
    before = (n - size) // 2
    taper = convert(taper, dtype)
    return n, hop, padded(taper, scalar_array(0.0, dtype), (before,), (n - size - before,))


@remembered
def istft(
    stft_matrix: ArrayLike,
    n_fft: int | None = None,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: array | None = None,
    center: bool = True,
    norm: str = "backward",
    onesided: bool | None = None,
    length: int | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """The inverse of `stft`: the sum of the frames, each times its window, divided by that of the squared windows.

    Of a matrix that is no transform it is the signal whose transform is nearest (Griffin and Lim, 1984). Where all
    windows are zero the result is zero.

    Args:
        stft_matrix: shape (…, frequencies, frames).
        n_fft: elements of a frame; by default 2·(frequencies - 1) if `onesided`, else as many as frequencies.
        hop_length, win_length, window, center, norm: as they were for `stft`.
        onesided: whether the other frequencies are conjugates of these; true by default.
        length: of the result, which is cut or gets zeros at its end.

    Returns:
        Shape (…, t): float32 if `onesided`, else complex64; of complex128 float64 or complex128.

    Raises:
        ShapeError: no two axes, no frame, another number of frequencies than `n_fft` has. DTypeError: a complex
        window. AttributeValueError: lengths below 1, a window longer than a frame, another norm.

    >>> import smelt
    >>> smelt.fft.istft(smelt.fft.stft(smelt.array([1.0, 2.0, 3.0, 4.0]), n_fft=2))
    array([1, 2, 3, 4], dtype=float32)
    """
    check_stream(stream)
    a, name = as_array(stft_matrix), "fft.istft"
    if a.ndim < 2 or not a.shape[-1] or not a.shape[-2]:
        raise ShapeError(at_user_line(f"smelt.{name}: needs frequencies and frames; stft_matrix {a.aval}"))
    half = onesided is None or bool(onesided)
    frequencies, count = a.shape[-2:]
    n_fft = max(1, 2 * (frequencies - 1) if half else frequencies) if n_fft is None else n_fft
    n, hop, taper = _window(name, real_of(a), n_fft, hop_length, win_length, window)
    wanted = n // 2 + 1 if half else n
    if frequencies != wanted:
        rule = f"a frame of {n} elements has {wanted} frequencies, stft_matrix has {frequencies}"
        raise ShapeError(at_user_line(f"smelt.{name}: {rule}; stft_matrix {a.aval}"))
    a = permuted(a, (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))
    frames = irfft(a, n, norm=norm) if half else ifft(a, norm=norm)
    (t,) = checked_shape(name, n + (count - 1) * hop)
    total = _overlapped(multiply(frames, taper), hop, t)
    weight = _overlapped(broadcast_to_shape(multiply(taper, taper), (count, n)), hop, t)
    start = n // 2 if center else 0
    length = None if length is None else integer(name, "length", length, 1)
    stop = t - start if length is None else min(t, start + length)
    if stop <= start:
        raise ShapeError(at_user_line(f"smelt.{name}: {count} frames have no element but those of their padding"))
    total, weight = piece(total, total.ndim - 1, start, stop), piece(weight, 0, start, stop)
    known = emit_elementwise(ops["greater"], weight, filled(weight.shape, _NOTHING, weight.dtype))
    one, zero = filled(weight.shape, 1.0, weight.dtype), filled(weight.shape, 0.0, weight.dtype)
    factor = select(known, divide(one, select(known, weight, one)), zero)
    total = multiply(total, factor)
    if length is None or length == stop - start:
        return total
    none = (0,) * (total.ndim - 1)
    return padded(total, scalar_array(0, total.dtype), (*none, 0), (*none, length - (stop - start)))


def _overlapped(frames: array, hop: int, t: int) -> array:
    """The sum of frames (…, count, n), each at its place on an axis of t elements."""
    *lead, count, n = frames.shape
    moved = permuted(frames, (frames.ndim - 2, frames.ndim - 1, *range(frames.ndim - 2)))
    updates = to_shape(moved, (count, n, *lead, 1))
    zeros = filled((*lead, t), 0, frames.dtype)
    return emit(ops["scatter"], (zeros, updates, _places(count, n, hop)), {"axes": (len(lead),), "mode": "add"})
