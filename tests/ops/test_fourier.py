"""The loops in C that make Fourier transforms, against the definition by NumPy's matrix products in float64."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import fourier
from smelt.ir.host_loops import loops
from smelt.lazy import core

pytestmark = pytest.mark.skipif(core.native is None, reason="there is no core in C")

#: All radices and their products, primes, lengths of either kind of plan, and such as do not fill vectors.
SIZES = (*range(1, 68), 77, 91, 97, 121, 127, 128, 129, 130, 143, 169, 192, 250, 256, 257, 360, 509, 512, 1000, 1009)
rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def vectors(vector_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "vector_bytes", vector_bytes)


@pytest.mark.parametrize("n", [12, 30, 400, 1000, 1009, 4096, 4100])
def test_bits_do_not_depend_on_vectors(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = numbers((19, n), np.complex64), numbers((19, 2 * n), np.float64)
    half = np.fft.rfft(y)

    def all_bits() -> list[bytes]:
        columns = fourier.fft_of_columns(np.ascontiguousarray(x.T).T, False, 1.0)
        found = [fourier.fft(x, False, 1.0), fourier.rfft(y, 1.0), fourier.irfft(half, 2 * n, 1.0), columns]
        return [z.tobytes() for z in found if z is not None]

    own = all_bits()
    monkeypatch.setattr(loops, "vector_bytes", 16 if loops.vector_bytes > 16 else core.native.vector_bytes())
    assert all_bits() == own


@functools.lru_cache(maxsize=1)
def matrix(n: int) -> np.ndarray:
    """Of the forward transform; made once for all tries of a size."""
    k = np.arange(n)
    return np.exp(k * (-2j * np.pi / n))[np.outer(k, k) % n]


def by_definition(x: np.ndarray, inverse: bool) -> np.ndarray:
    forward = matrix(x.shape[-1])
    return x.astype(np.complex128) @ (forward.conj() if inverse else forward)


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    found = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


def near(found: np.ndarray, expected: np.ndarray, dtype: Any) -> None:
    assert found.shape == expected.shape
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error < (4e-15 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 8 else 2e-6)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n: int) -> None:
    for kind, real in ((np.complex64, np.float32), (np.complex128, np.float64)):
        for rows in (1, 3, 16, 17):
            x, y = numbers((rows, n), kind), numbers((rows, n), real)
            for inverse in (False, True):
                found = fourier.fft(x, inverse, 0.5)
                assert found is not None or n == 1
                if found is not None:
                    assert found.dtype == kind
                    near(found, by_definition(x, inverse) / 2, kind)
            coefficients = by_definition(y, False)[:, : n // 2 + 1]
            found = fourier.rfft(y, 2.0)
            if found is not None:
                near(found, coefficients * 2, real)
                assert not found[:, [0] if n % 2 else [0, n // 2]].imag.any()
            noisy = coefficients.astype(kind)
            noisy[:, 0] += 3j  # does not count, nor does that of n/2
            found = fourier.irfft(noisy, n, 1 / n)
            if found is not None:
                assert found.dtype == real
                near(found, y, real)


@pytest.mark.parametrize("n", [3, 9, 15, 63, 101, 1009, 1155, 1023, 9999])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_numbers_of_real_elements(n: int, dtype: Any) -> None:
    """As complex numbers, where that is quicker; into memory that is given, too."""
    x = numbers((-(-fourier.FEW // n), n), dtype)
    expected = np.fft.rfft(x.astype(np.float64)) / n
    out = np.empty(expected.shape, np.complex64 if dtype is np.float32 else np.complex128)
    for found in (fourier.rfft(x, 1 / n), fourier.rfft(x[::-1], 1 / n, out)):
        if dtype is np.float32 and fourier.radices(n) is not None:
            assert found is not None
        if found is not None:
            assert found.dtype == out.dtype and found.flags.c_contiguous
            near(found if found is not out else found[::-1], expected, dtype)


@pytest.mark.parametrize("n", [12, 96, 1024, 1009, 4100])
def test_rows_do_not_touch_each_other(n: int) -> None:
    x = numbers((19, n), np.complex64)
    expected = fourier.fft(x, False, 1.0)
    x[3, n // 2], x[18, 0] = np.nan, np.inf
    found = fourier.fft(x, False, 1.0)
    others = [i for i in range(19) if i not in (3, 18)]
    np.testing.assert_array_equal(found[others], expected[others])
    assert not np.isfinite(found[[3, 18]]).any()
    for i in others:  # nor does it matter beside how many they stand
        np.testing.assert_array_equal(fourier.fft(x[i : i + 1], False, 1.0)[0], expected[i])


def test_strides_and_batches() -> None:
    x = numbers((4, 6, 10), np.complex64)
    for view in (x[:, ::2], x.transpose(2, 0, 1), x[::-1, :, 1::3], np.broadcast_to(x[0, 0], (3, 10))):
        for axis in range(view.ndim):
            found = smelt.fft.fft(smelt.array(view), axis=axis)
            np.testing.assert_allclose(np.asarray(found), np.fft.fft(view, axis=axis), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [2, 13, 64, 100, 1024, 2048])
def test_columns(n: int) -> None:
    """Of arrays whose transformed axis is not the last one in memory; the result lies as they do."""
    for kind in (np.complex64, np.complex128):
        for before, after in (((), (1,)), ((2,), (17,)), ((1, 3), (2, 5))):
            x = numbers((*before, n, *after), kind)
            view = np.moveaxis(x, len(before), -1)
            for inverse in (False, True):
                found = fourier.fft_of_columns(view, inverse, 0.5)
                if not view.flags.c_contiguous:
                    assert found is not None and found.dtype == kind and found.strides == view.strides
                    near(found, by_definition(view, inverse) / 2, kind)
    x = numbers((3, 40, 130, 7), np.complex64)  # shared by threads
    for axis in range(3):
        found = np.asarray(smelt.fft.fft(smelt.array(x), axis=axis))
        near(found, np.fft.fft(x.astype(np.complex128), axis=axis), np.complex64)
    for other in (x[:, ::2].swapaxes(2, 3), x[..., :0].swapaxes(2, 3), numbers((5, 34), np.complex64)[:, ::2]):
        assert fourier.fft_of_columns(other, False, 1.0) is None


def test_a_long_transform() -> None:
    for n in (1 << 18, 3 * 5 * 7 * 11 * 13 * 4, 100_003):
        x = numbers((n,), np.complex64)
        near(np.asarray(smelt.fft.fft(smelt.array(x))), np.fft.fft(x.astype(np.complex128)), np.complex64)
        y = numbers((2 * n,), np.float32)
        near(np.asarray(smelt.fft.rfft(smelt.array(y))), np.fft.rfft(y.astype(np.float64)), np.float32)


def test_batches_that_threads_share() -> None:
    """Each writes its rows into the result; of what only pocketfft makes they are copied there."""
    for n in (512, 509, 250, 251):
        x, y = numbers((1600, 2, n), np.complex64), numbers((1600, 2, n), np.float32)
        half = np.fft.rfft(y.astype(np.float64)).astype(np.complex64)
        near(np.asarray(smelt.fft.fft(smelt.array(x))), np.fft.fft(x.astype(np.complex128)), np.complex64)
        near(np.asarray(smelt.fft.ifft(smelt.array(x), axis=0)), np.fft.ifft(x, axis=0), np.complex64)
        near(np.asarray(smelt.fft.rfft(smelt.array(y))), half, np.complex64)
        near(np.asarray(smelt.fft.irfft(smelt.array(half), n)), y, np.float32)


def test_arrays_that_do_not_fit_are_refused() -> None:
    x, plan = numbers((2, 12), np.complex64), fourier.plan(12, False)
    none = np.zeros(0, np.float32)
    good = (x, np.empty_like(x), loops.vector_bytes, False, 0, False, 1.0, *plan, none)
    core.native.fourier(*good)
    wrong = {1: np.empty(23, np.complex64), 2: 48, 3: True, 4: 7, 7: (3, 5), 8: plan.first_turns[1:], 9: (2,)}
    for place, value in wrong.items():
        with pytest.raises((ValueError, TypeError)):
            core.native.fourier(*good[:place], value, *good[place + 1 :])
    with pytest.raises(ValueError):
        core.native.fourier(x, np.empty((2, 13), np.complex64), 16, False, fourier.FROM_REAL, False, 1.0, *plan, none)
    with pytest.raises(ValueError):
        core.native.fourier(*good[:7], (6, 2), *good[8:])


def test_tables() -> None:
    for n in (7, 8, 360, 1009):
        k = np.arange(3 * n)
        exact = [np.exp(-2j * np.pi * (int(i) % n) / n) for i in k]
        np.testing.assert_allclose(fourier.turns(k, n), exact, atol=3e-16)
    assert fourier.radices(2 * 3 * 4 * 5 * 7 * 11 * 13) is not None and fourier.radices(17) is None


def test_columns_that_do_not_fit_are_refused() -> None:
    x, (radices, turns) = numbers((2, 12, 17), np.complex64), fourier._one_piece(12, False)
    blocks = 2 * -(-17 // (loops.vector_bytes // 4))
    good = (x, np.empty_like(x), loops.vector_bytes, False, False, 1.0, radices, turns, 17, 0, blocks)
    core.native.fourier_columns(*good)
    wrong = {
        0: x[:, :11], 1: np.empty(23, np.complex64), 2: 8, 3: True, 6: (3, 5), 7: turns[1:], 8: 16, 9: -1,
        10: blocks + 1,
    }  # fmt: skip
    for place, value in [*wrong.items(), (8, 0)]:
        with pytest.raises((ValueError, TypeError, BufferError)):
            core.native.fourier_columns(*good[:place], value, *good[place + 1 :])
