"""`smelt.fft`: values against NumPy and SciPy, derivatives as transforms of their own, errors where they are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import smelt
from smelt.ir import dtypes
from smelt.ir.settings import override

DEVICES = ("cpu", "metal:sim", "reference")
each_device = pytest.mark.parametrize("device", DEVICES)
NORMS = ("backward", "ortho", "forward", None)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
REAL = ("rfft", "ihfft", "rfftn", "rfft2")
TO_REAL = ("irfft", "hfft", "irfftn", "irfft2")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def numbers(rng: np.random.Generator, name: str, *shape: int) -> np.ndarray:
    x = rng.standard_normal(shape)
    return x.astype(np.float32) if name in REAL else (x + 1j * rng.standard_normal(shape)).astype(np.complex64)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def close(found: Any, want: Any, bound: float = 2e-6) -> None:
    found = np.asarray(found)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=0, atol=bound * max(1.0, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 17, 97, 101, 128, 210, 1009, 4096, 10007])
@pytest.mark.parametrize("name", ONE)
def test_sizes(rng: np.random.Generator, name: str, n: int) -> None:
    x = numbers(rng, name, 2, n)
    for norm in NORMS:
        if name in TO_REAL:
            for m in (2 * n - 2, 2 * n - 1):
                if m:
                    found = getattr(smelt.fft, name)(smelt.array(x), m, norm=norm)
                    assert found.dtype == smelt.float32
                    close(found, getattr(np.fft, name)(wide(x), m, norm=norm))
        else:
            found = getattr(smelt.fft, name)(smelt.array(x), norm=norm)
            assert found.dtype == smelt.complex64
            close(found, getattr(np.fft, name)(wide(x), norm=norm))


@each_device
@pytest.mark.parametrize("name", ONE)
def test_axes_and_lengths(rng: np.random.Generator, name: str, device: str) -> None:
    x = numbers(rng, name, 3, 4, 5)
    with smelt.stream(device):
        for axis in (-3, -2, -1, 0, 1, 2):
            for n in (None, 1, 2, 3, 4, 7, 12):
                found = getattr(smelt.fft, name)(smelt.array(x), n, axis)
                close(found, getattr(np.fft, name)(wide(x), n, axis))


@pytest.mark.parametrize("name", MANY)
def test_several_axes(rng: np.random.Generator, name: str) -> None:
    x = numbers(rng, name, 3, 4, 5, 6)
    function, truth = getattr(smelt.fft, name), getattr(np.fft, name)
    close(function(smelt.array(x)), truth(wide(x)))
    axes: Any
    for axes in ((0,), (1, 2), (3, 0), (2, 1), (-1, -3, 0), [0, 1, 2, 3]):
        if name.endswith("2") and len(axes) > 2:
            continue
        for norm in NORMS:
            close(function(smelt.array(x), axes=axes, norm=norm), truth(wide(x), axes=axes, norm=norm))
        for s in ([2, 7, 3, 1][: len(axes)], [5, 4, 8, 9][: len(axes)]):
            close(function(smelt.array(x), s, axes), truth(wide(x), s, axes))
            close(
                smelt.compile(lambda x, s=s, axes=axes: function(x, s, axes))(smelt.array(x)), truth(wide(x), s, axes)
            )
    if "n" in name:
        close(function(smelt.array(x), (2, 3)), truth(wide(x), (2, 3), (-2, -1)))
    s = (-1, 3)
    want = (8 if name in TO_REAL else 5, 3)
    close(function(smelt.array(x), s, (2, 0)), truth(wide(x), (5, 3), (2, 0)))
    close(function(smelt.array(x), (3, -1), (0, 2)), truth(wide(x), (3, want[0]), (0, 2)))


def test_no_axes() -> None:
    found = smelt.fft.fftn(smelt.array([1.0, 2.0]), axes=())
    assert found.dtype == smelt.complex64 and found.tolist() == [1, 2]
    for f in (smelt.fft.rfftn, smelt.fft.irfftn):
        with pytest.raises(ValueError, match="needs at least one axis"):
            f(smelt.ones(3), axes=())


def test_empty_batches() -> None:
    x = smelt.zeros((0, 4))
    for name in ONE:
        want = getattr(np.fft, name)(np.zeros((0, 4)))
        assert getattr(smelt.fft, name)(x).shape == want.shape
    assert smelt.fft.fft2(smelt.zeros((0, 2, 3))).shape == (0, 2, 3)


@pytest.mark.parametrize(
    "dtype", [smelt.bool_, smelt.uint8, smelt.int32, smelt.float16, smelt.bfloat16, smelt.float64, *dtypes.COMPLEX]
)
def test_dtypes(dtype: smelt.Dtype) -> None:
    x = smelt.array([1, 0, 3, 2]).astype(dtype)
    host = np.asarray(x.astype(smelt.complex64))
    real = smelt.float64 if dtype.real is smelt.float64 else smelt.float32
    assert smelt.fft.fft(x).dtype is real.complex
    assert smelt.fft.irfft(x).dtype is real
    close(smelt.fft.fft(x), np.fft.fft(host))
    close(smelt.fft.irfft(x), np.fft.irfft(host))
    if not dtype.is_complex:
        close(smelt.fft.rfft(x), np.fft.rfft(host.real))


def test_lists_and_arrays_of_other_layouts(rng: np.random.Generator) -> None:
    close(smelt.fft.fft([1, 2, 3]), np.fft.fft([1, 2, 3]))
    x = rng.standard_normal((6, 8)).astype(np.float32)
    y = smelt.array(x)
    for f in (lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[:, 3:]):
        close(smelt.fft.rfft(f(y), axis=0), np.fft.rfft(f(x), axis=0))
        close(smelt.fft.fft2(f(y)), np.fft.fft2(f(x)))


def test_inverses(rng: np.random.Generator) -> None:
    x = smelt.array(rng.standard_normal((3, 7, 8)).astype(np.float32))
    for norm in NORMS:
        close(smelt.fft.irfftn(smelt.fft.rfftn(x, norm=norm), norm=norm), np.asarray(x))
        close(smelt.fft.irfft(smelt.fft.rfft(x, axis=1, norm=norm), 7, 1, norm), np.asarray(x))
        close(smelt.real(smelt.fft.ifftn(smelt.fft.fftn(x, norm=norm), norm=norm)), np.asarray(x))
        close(smelt.fft.hfft(smelt.fft.ihfft(x, norm=norm), norm=norm), np.asarray(x))


def test_numbers_that_are_not_finite(rng: np.random.Generator) -> None:
    x = numbers(rng, "fft", 3, 6)
    x[1, 2] = np.inf
    found = np.asarray(smelt.fft.fft(smelt.array(x)))
    assert not np.isfinite(found[1]).any()
    close(found[[0, 2]], np.fft.fft(x[[0, 2]]))


# Derivatives


def test_derivatives_are_transforms(rng: np.random.Generator) -> None:
    """A linear map is its own derivative; that of a sum of squares is by Parseval 2·n·x."""
    x, t = (smelt.array(rng.standard_normal(12).astype(np.float32)) for _ in range(2))
    for f in (smelt.fft.rfft, smelt.fft.fft, lambda x: smelt.fft.fft2(x.reshape(3, 4)), smelt.fft.ihfft):
        _, (found,) = smelt.jvp(f, [x], [t])
        close(found, np.asarray(f(t)))

    def energy(x: smelt.array) -> smelt.array:
        y = smelt.fft.fft(x)
        return (smelt.real(y) ** 2 + smelt.imag(y) ** 2).sum()

    for way in (smelt.grad, lambda f: smelt.compile(smelt.grad(f))):
        close(way(energy)(x), 24 * np.asarray(x))
    close(smelt.hessian(energy)(x), 24 * np.eye(12), 1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_gradients_by_the_matrix(rng: np.random.Generator, n: int) -> None:
    """Of a weighted sum of the results: the weights times the matrix that NumPy's transforms of unit vectors are."""
    m = n // 2 + 1
    weights = rng.standard_normal((2, m)).astype(np.float32)

    def spectrum(x: smelt.array) -> smelt.array:
        y = smelt.fft.rfft(x)
        return (smelt.real(y) * smelt.array(weights[0]) + smelt.imag(y) * smelt.array(weights[1])).sum()

    matrix = np.fft.rfft(np.eye(n))
    x = smelt.array(rng.standard_normal(n).astype(np.float32))
    close(smelt.grad(spectrum)(x), matrix.real @ weights[0] + matrix.imag @ weights[1])

    taken = rng.standard_normal(n).astype(np.float32)

    def signal(re: smelt.array, im: smelt.array) -> smelt.array:
        return (smelt.fft.irfft(re + im * 1j, n) * smelt.array(taken)).sum()

    re, im = (smelt.array(rng.standard_normal(m).astype(np.float32)) for _ in range(2))
    found = smelt.grad(signal, argnums=(0, 1))(re, im)
    close(found[0], np.fft.irfft(np.eye(m), n) @ taken)
    close(found[1], np.fft.irfft(1j * np.eye(m), n) @ taken)


@pytest.mark.host("it counts kernels of the CPU")
def test_batches(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    for axis in range(3):
        want = np.stack([np.fft.rfft(np.take(x, i, axis), axis=0) for i in range(x.shape[axis])])
        close(smelt.vmap(lambda x: smelt.fft.rfft(x, axis=0), in_axes=axis)(smelt.array(x)), want)
    program = smelt.compile(smelt.vmap(smelt.fft.fft)).trace(smelt.array(x)).lower().compile()
    assert [k.schedule for k in program.kernels].count("host") == 1


@pytest.mark.parametrize("tier", ["ops", "program"])
def test_tiers(rng: np.random.Generator, tier: str) -> None:
    x = rng.standard_normal((4, 6)).astype(np.float32)
    with override(tier=tier, small_work=0):
        close(smelt.fft.rfft2(smelt.array(x)) * 2, 2 * np.fft.rfft2(x))
        gradient = smelt.grad(lambda x: (smelt.fft.irfft(x) ** 2).sum())
        close(gradient(smelt.array(x)), np.asarray(smelt.compile(gradient)(smelt.array(x))))


# Frequencies


def test_frequencies() -> None:
    for n in (1, 2, 5, 8, 1000):
        for d in (1.0, 0.5, 3, 1e-3):
            np.testing.assert_allclose(smelt.fft.fftfreq(n, d), np.fft.fftfreq(n, d), rtol=1e-6)
            np.testing.assert_allclose(smelt.fft.rfftfreq(n, d), np.fft.rfftfreq(n, d), rtol=1e-6)
    assert smelt.fft.fftfreq(4).dtype == smelt.fft.rfftfreq(4).dtype == smelt.float32


def test_shifts() -> None:
    for shape in ((5,), (4,), (3, 4), (2, 3, 5), (0, 3)):
        x = np.arange(np.prod(shape)).reshape(shape)
        for name in ("fftshift", "ifftshift"):
            function, truth = getattr(smelt.fft, name), getattr(np.fft, name)
            assert np.array_equal(function(smelt.array(x)), truth(x))
            for axis in range(len(shape)):
                assert np.array_equal(function(smelt.array(x), axis), truth(x, axis))
                assert np.array_equal(function(smelt.array(x), [axis, 0][: axis + 1]), truth(x, [axis, 0][: axis + 1]))


# Short-time transforms


@pytest.mark.parametrize(("n", "hop", "size"), [(8, 2, 8), (8, 3, 5), (7, 7, 7), (6, 4, 6), (5, 1, 4), (1, 1, 1)])
def test_short_time_transforms(rng: np.random.Generator, n: int, hop: int, size: int) -> None:
    x = rng.standard_normal((2, 30)).astype(np.float32)
    window = np.hamming(size).astype(np.float32)
    before = (n - size) // 2
    whole = np.pad(window, (before, n - size - before))
    for center, mode in ((True, "reflect"), (True, "edge"), (True, "constant"), (False, "reflect")):
        ends = n // 2 if center else 0
        padded = np.pad(x, [(0, 0), (ends, ends)], mode)  # type: ignore[call-overload]
        frames = np.lib.stride_tricks.sliding_window_view(padded, n, -1)[:, ::hop] * whole
        found = smelt.fft.stft(
            smelt.array(x), n, hop, window=smelt.array(window), center=center, pad_mode=mode, win_length=size
        )
        close(found, np.swapaxes(np.fft.rfft(frames), -1, -2))
        both = smelt.fft.stft(
            smelt.array(x), n, hop, window=smelt.array(window), center=center, pad_mode=mode, onesided=False
        )
        close(both, np.swapaxes(np.fft.fft(frames), -1, -2))
        if hop <= size:
            whole_length = hop * ((padded.shape[-1] - n) // hop) + n - 2 * ends
            for half, matrix in ((True, found), (False, both)):
                again = smelt.fft.istft(
                    matrix, n, hop, window=smelt.array(window), center=center, onesided=half, win_length=size
                )
                first = 0 if center else before  # zeros of the window are on nothing else there
                last = whole_length - (0 if center else n - size - before)
                assert again.shape == (2, whole_length)
                assert again.dtype == (smelt.float32 if half else smelt.complex64)
                close(np.asarray(again)[:, first:last], x[:, first:last], 1e-5)


def test_short_time_transform_beside_scipy(rng: np.random.Generator) -> None:
    x = rng.standard_normal(100).astype(np.float32)
    window = scipy.signal.get_window("hann", 16).astype(np.float32)
    _, _, want = scipy.signal.stft(
        x, window=window, nperseg=16, noverlap=12, boundary="zeros", padded=False, scaling="spectrum"
    )
    found = smelt.fft.stft(smelt.array(x), 16, 4, window=smelt.array(window), pad_mode="constant")
    close(found, want * window.sum())


def test_defaults_of_short_time_transforms() -> None:
    x = smelt.arange(20, dtype=smelt.float32)
    s = smelt.fft.stft(x, n_fft=8)
    assert s.shape == (5, 11)
    close(smelt.fft.istft(s), np.arange(20.0), 1e-5)
    close(smelt.fft.istft(s, length=15), np.arange(15.0), 1e-5)
    longer = np.asarray(smelt.fft.istft(s, length=30))
    assert longer.shape == (30,) and not longer[24:].any()
    close(longer[:20], np.arange(20.0), 1e-5)
    assert smelt.fft.stft(x.astype(smelt.complex64), n_fft=8).shape == (8, 11)
    assert smelt.fft.stft(smelt.ones(3000)).shape == (1025, 6)


def test_derivative_of_a_spectrogram(rng: np.random.Generator) -> None:
    x, t = (smelt.array(rng.standard_normal(24).astype(np.float32)) for _ in range(2))
    window = smelt.array(np.hanning(8).astype(np.float32))

    def power(x: smelt.array) -> smelt.array:
        s = smelt.fft.stft(x, 8, 2, window=window)
        return (smelt.real(s) ** 2 + smelt.imag(s) ** 2).sum()

    along = float((smelt.grad(power)(x) * t).sum())
    h = 1e-2
    assert along == pytest.approx((float(power(x + h * t)) - float(power(x - h * t))) / (2 * h), rel=1e-3)
    batch = smelt.stack([x, t])
    close(smelt.vmap(smelt.grad(power))(batch), np.stack([smelt.grad(power)(v) for v in (x, t)]))
    again = smelt.vmap(lambda x: smelt.fft.istft(smelt.fft.stft(x, 8, 2, window=window), window=window, hop_length=2))
    close(smelt.compile(again)(batch), np.asarray(batch), 1e-5)


# Errors

ones = smelt.ones


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: smelt.fft.fft(1.0), ValueError, "axis -1 out of range for shape ()"),
        (lambda: smelt.fft.fft(ones((2, 3)), axis=2), ValueError, "smelt.fft.fft: axis 2 out of range"),
        (lambda: smelt.fft.fft(ones((2, 0))), ValueError, "needs at least one element along each axis; a c"),
        (lambda: smelt.fft.irfft(ones(1)), ValueError, "needs at least one element"),
        (lambda: smelt.fft.fft(ones(3), 0), ValueError, "smelt.fft.fft: n must be at least 1, is 0"),
        (lambda: smelt.fft.fft(ones(3), 2.5), TypeError, "n must be an int, is 2.5"),
        (lambda: smelt.fft.fft(ones(3), norm="none"), ValueError, 'norm must be "backward", "ortho" or "forward"'),
        (lambda: smelt.fft.rfft(ones(3) * 1j), TypeError, "needs real numbers; take smelt.real of them"),
        (lambda: smelt.fft.fft(ones(3), axis=None), TypeError, "an axis is an int, got NoneType"),
        (lambda: smelt.fft.fftn(ones(3), (0,)), ValueError, "a number of elements must be at least 1, is 0"),
        (lambda: smelt.fft.fftn(ones(3), (2.5,)), TypeError, "sizes consist of ints, got"),
        (lambda: smelt.fft.fft2(ones(3)), ValueError, "axis -2 out of range for shape (3,)"),
        (lambda: smelt.fft.fftn(ones((2, 3)), axes=(0, 0)), ValueError, "repeat an axis"),
        (lambda: smelt.fft.fftn(ones((2, 3)), (2,), (0, 1)), ValueError, "1 sizes for 2 axes"),
        (lambda: smelt.fft.fftfreq(0), ValueError, "n must be at least 1"),
        (lambda: smelt.fft.rfftfreq(4, 0), ValueError, "the distance d must not be 0"),
        (lambda: smelt.fft.fftshift(ones(3), 1), ValueError, "axis 1 out of range"),
        (lambda: smelt.fft.stft(ones(3), 8, center=False), ValueError, "3 elements are less than a frame of 8"),
        (lambda: smelt.fft.stft(ones(20), 8, 0), ValueError, "hop_length must be at least 1"),
        (lambda: smelt.fft.stft(ones(20), 8, win_length=9), ValueError, "a window of 9 elements is longer"),
        (lambda: smelt.fft.stft(ones(20), 8, window=ones((2, 2))), ValueError, "the window must have the shape (8,)"),
        (lambda: smelt.fft.stft(ones(20), 8, window=ones(4) * 1j), TypeError, "the window must be real"),
        (lambda: smelt.fft.stft(ones(20) * 1j, 8, onesided=True), TypeError, "are not onesided"),
        (lambda: smelt.fft.stft(ones(20), 8, pad_mode="wrap"), ValueError, "pad_mode must be"),
        (lambda: smelt.fft.stft(1.0, 8), ValueError, "x needs an axis"),
        (lambda: smelt.fft.istft(ones(5)), ValueError, "needs frequencies and frames"),
        (lambda: smelt.fft.istft(ones((5, 3)), 12), ValueError, "has 7 frequencies, stft_matrix has 5"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, smelt.SmeltError)
    assert re.search(rf"{re.escape(__file__)}:\d+$", str(caught.value))
