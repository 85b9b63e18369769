"""Fourier transforms of the device ``cuda`` by cuFFT, over a library and a driver without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import transforms
from smelt.backends.gpu.library import Array, LibraryCall
from smelt.backends.gpu.manifest import Manifest
from smelt.ir.errors import DeviceError, OutOfMemoryError
from smelt.ir.settings import override

from .fake_driver import FakeDriver
from .fake_fft import FakeFft
from .fake_library import installed
from .test_device import fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


@pytest.fixture
def fft(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFft]:
    """The device's library."""
    found = FakeFft(fake)
    with installed(monkeypatch, transforms, {"cufft": found}):
        yield found


def numbers(*shape: int, dtype: Any = np.complex64) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    return x.astype(dtype)


def ran(f: Callable[..., Any], *arrays: np.ndarray) -> None:
    """A function's result on the device, beside NumPy's in double precision."""
    found = np.array(smelt.compile(lambda *xs: f(smelt.fft, *xs))(*map(smelt.array, arrays)))
    want = f(np.fft, *(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in arrays))
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5 * np.abs(want).max(initial=1))


#: Functions of `smelt.fft` or `numpy.fft`, whether they read real numbers, transforms and kernels.
CASES: dict[str, tuple[Callable[..., Any], bool, int, int]] = {
    "fft": (lambda lib, x: lib.fft(x), False, 1, 0),
    "ifft": (lambda lib, x: lib.ifft(x), False, 1, 1),
    "ortho": (lambda lib, x: lib.fft(x, norm="ortho"), False, 1, 1),
    "rfft": (lambda lib, x: lib.rfft(x), True, 1, 0),
    "rfft, mean": (lambda lib, x: lib.rfft(x, norm="forward"), True, 1, 1),
    "irfft": (lambda lib, x: lib.irfft(x), False, 1, 1),
    "irfft, odd": (lambda lib, x: lib.irfft(x, 2 * x.shape[-1] - 1), False, 1, 1),
    "cut": (lambda lib, x: lib.fft(x, x.shape[-1] // 2 + 1), False, 1, 1),
    "padded": (lambda lib, x: lib.fft(x, x.shape[-1] + 3), False, 1, 1),
    "real": (lambda lib, x: lib.fft(x), True, 1, 1),
    "another axis": (lambda lib, x: lib.fft(x, axis=0), False, 1, 2),
    "two": (lambda lib, x: lib.fft2(x), False, 2, 2),
    "there and back": (lambda lib, x: lib.irfft(lib.rfft(x) * 2, x.shape[-1]), True, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(fft: FakeFft, fake: FakeDriver, name: str) -> None:
    f, real, transforms, kernels = CASES[name]
    ran(f, numbers(3, 8, dtype=np.float32 if real else np.complex64))
    assert len(fft.done) == transforms and len(fake.launches) <= kernels + 1


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (1, 1), (2, 3, 5), (1031,), (4, 97)], ids=str)
def test_shapes(fft: FakeFft, shape: tuple[int, ...]) -> None:
    for name in ("fft", "ifft", "rfft", "irfft, odd"):
        f, real, *_ = CASES[name]
        ran(f, numbers(*shape, dtype=np.float32 if real else np.complex64))
        assert fft.done.pop()[1] == (2 * shape[-1] - 1 if name == "irfft, odd" else shape[-1]) and not fft.done


def test_empty_batches_are_not_its_work(fft: FakeFft) -> None:
    assert np.array(smelt.fft.fft(smelt.zeros((0, 4), smelt.complex64))).shape == (0, 4)
    assert not fft.done


def test_an_operand_that_is_asked_for_again_is_not_spoiled(fft: FakeFft) -> None:
    x = numbers(2, 5)
    ran(lambda lib, x: lib.irfft(x, 8) + np.float32(0) * x.real.sum(), x)
    given = smelt.array(x)
    smelt.eval(smelt.fft.irfft(given))
    np.testing.assert_array_equal(np.array(given), x)


def test_gradients(fft: FakeFft) -> None:
    x = smelt.array(numbers(2, 6, dtype=np.float32))

    def f(x: Any) -> Any:
        return (smelt.abs(smelt.fft.rfft(x)) ** 2).sum()

    found = np.array(smelt.compile(smelt.grad(f))(x))
    assert len(fft.done) >= 2
    with smelt.stream("cpu"):
        np.testing.assert_allclose(found, np.array(smelt.compile(smelt.grad(f))(x)), rtol=1e-5, atol=1e-5)


def test_in_loops_and_graphs(fft: FakeFft, fake: FakeDriver) -> None:
    """Loops stay on the GPU, and what runs again on the same memory is captured."""
    x = numbers(3, 5)  # rows at multiples of eight bytes

    def f(x: Any) -> Any:
        out, rows = smelt.scan(lambda c, row: (c + smelt.fft.fft(row), smelt.fft.ifft(row)), smelt.zeros_like(x[0]), x)
        return out + rows.sum(0)

    want, before, g, given = np.fft.fft(x).sum(0) + np.fft.ifft(x).sum(0), fake.graphs, smelt.compile(f), smelt.array(x)
    for _ in range(5):
        np.testing.assert_allclose(np.array(g(given)), want, rtol=1e-5, atol=1e-5)
    assert fake.graphs - before >= 2 and fft.captured >= 6


def test_settings(fft: FakeFft) -> None:
    with override(libraries=False):
        ran(CASES["fft"][0], numbers(3, 8))
    assert not fft.done


def test_without_a_plan(fft: FakeFft) -> None:
    fft.without.add(8)
    ran(CASES["fft"][0], numbers(3, 8))
    assert not fft.done


@pytest.mark.parametrize(("code", "kind"), [(6, DeviceError), (2, OutOfMemoryError)])
def test_errors(fft: FakeFft, code: int, kind: type[Exception]) -> None:
    fft.fails = code
    with pytest.raises(kind, match="cufftExecC2C"):
        smelt.eval(smelt.fft.fft(smelt.array(numbers(3, 8))))
    fft.fails = 0
    ran(CASES["fft"][0], numbers(3, 8))


def test_the_manifest_says_what_the_library_does(fft: FakeFft) -> None:
    program = smelt.compile(smelt.fft.fft).trace(smelt.array(numbers(3, 8))).lower().compile()
    manifest = Manifest.from_json(program.as_text("manifest"))
    assert Manifest.from_json(manifest.to_json()) == manifest
    (kernel,) = manifest.kernels
    array = Array("complex64", (3, 8))
    assert kernel.library == LibraryCall("fft", (("inverse", False), ("scale", "none")), (array,), (array,))
    assert "fft: a call by a library" in program.as_text("msl")
