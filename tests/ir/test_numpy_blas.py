"""Products by NumPy: small ones use one thread, and the library's number of threads is as it was afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from smelt.ir import numpy_blas
from smelt.ir.op import registry


class Library:
    """Notes which numbers were set."""

    def __init__(self, number: int = 4):
        self.number = number
        self.during: list[int] = []

    def set(self, number: int) -> None:
        self.number = number

    def matmul(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        self.during.append(self.number)
        return MATMUL(x, y)


MATMUL = np.matmul


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    threads = numpy_blas._Threads(lambda: found.number, found.set)
    monkeypatch.setattr(numpy_blas, "threads", lambda: threads)
    monkeypatch.setattr(np, "matmul", found.matmul)
    return found


@pytest.mark.parametrize(
    "shapes, during",
    [
        (((2, 3), (3, 4)), 4),  # too small for threads of the library's
        (((64, 128), (128, 128)), 1),
        (((8, 64, 64), (64, 64)), 1),
        (((300, 300), (300,)), 1),
        (((20_000, 1000), (1000,)), 4),
        (((400, 400), (400, 400)), 4),  # worth threads
    ],
)
def test_small_products_use_one_thread(library: Library, shapes: tuple[tuple[int, ...], ...], during: int) -> None:
    x, y = (np.ones(shape, np.float32) for shape in shapes)
    assert numpy_blas.matmul(x, y).flat[0] == shapes[1][0]
    assert library.during == [during] and library.number == 4


def test_integers_leave_the_library_alone(library: Library) -> None:
    x = np.ones((64, 128), np.int32)
    numpy_blas.matmul(x, x.T)
    assert library.during == [4]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_the_number_comes_back_after_an_error(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        raise error

    monkeypatch.setattr(np, "matmul", fail)
    x = np.ones((128, 128), np.float32)
    with pytest.raises(error):
        numpy_blas.matmul(x, x)
    assert library.number == 4


def test_the_number_that_a_user_set_stays() -> None:
    library = numpy_blas.threads()
    if library is None:
        pytest.skip("NumPy has another BLAS here")
    x = np.ones((128, 128), np.float32)
    before = library.get()
    try:
        for number in (1, 2, 3):
            library.set(number)
            numpy_blas.matmul(x, x)
            assert library.get() == number
    finally:
        library.set(before)


def test_many_threads_leave_the_number_as_it_was() -> None:
    library = numpy_blas.threads()
    before = library.get() if library is not None else 0
    x = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32)
    expected = x.astype(np.float64) @ x
    wrong: list[float] = []

    def work() -> None:
        for _ in range(200):
            wrong.append(np.abs(numpy_blas.matmul(x, x) - expected).max())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 1600 and max(wrong) < 1e-3
    assert (library.get() if library is not None else 0) == before


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_values(dtype: type) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((96, 80), (80, 72)))
    axes = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}
    found = registry["dot_general"].reference(x, y, **axes)
    wide = np.complex128 if dtype is np.complex64 else np.float64
    np.testing.assert_allclose(found, np.einsum("ij,jk->ik", x.astype(wide), y.astype(wide)), rtol=0.02, atol=0.02)
