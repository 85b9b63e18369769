"""Products by NumPy use one thread of the library's, whose number of threads is as it was afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from smelt.ir import numpy_blas
from smelt.ir.op import registry
from smelt.ir.settings import override


class Library:
    """Notes which numbers were set."""

    def __init__(self, number: int = 4):
        self.number = number
        self.during: list[int] = []

    def set(self, number: int) -> None:
        self.number = number

    def matmul(self, x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        self.during.append(self.number)
        return MATMUL(x, y, out=out)


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
        (((2, 3), (3, 4)), [4]),  # too small for threads of the library's
        (((64, 128), (128, 128)), [1]),
        (((8, 64, 64), (64, 64)), [1]),
        (((300, 300), (300,)), [1]),
        (((4000, 1000), (1000,)), [1] * 4),  # worth threads of smelt's
        (((600, 600), (600, 600)), [1] * 16),
        (((16, 200, 200), (200, 200)), [1] * 3),
    ],
)
def test_products_use_one_thread_of_the_library(
    library: Library, shapes: tuple[tuple[int, ...], ...], during: list[int]
) -> None:
    x, y = (np.ones(shape, np.float32) for shape in shapes)
    with override(num_threads=3):
        found = numpy_blas.matmul(x, y)
    assert found.flat[0] == shapes[1][0] and library.during == during and library.number == 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize(
    "left, right",
    [
        ((4, 500, 32), (4, 32, 500)), ((1000, 512), (512, 384)), ((300, 700), (700, 1100)), ((1, 700), (700, 5000)),
        ((5000, 700), (700,)), ((700,), (700, 5000)), ((2, 3, 300, 64), (1, 3, 64, 257)),
        ((1, 500, 100), (40, 100, 500)),
    ],
)  # fmt: skip
def test_bits_do_not_depend_on_the_number_of_threads(
    left: tuple[int, ...], right: tuple[int, ...], dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_blas, "BYTE", 1e-8)  # so much work that they are cut
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in (left, right))
    found = []
    for count in (1, 2, 5):
        with override(num_threads=count):
            found.append(numpy_blas.matmul(x, y))
    assert found[0].dtype == dtype and len({z.tobytes() for z in found}) == 1
    np.testing.assert_allclose(found[0], np.matmul(x, y), rtol=1e-3, atol=1e-3)


def test_ranges_cover_a_matrix() -> None:
    for rows, columns, parts in ((1, 1, 16), (64, 64, 16), (1000, 257, 7), (5000, 1, 16), (130, 130, 2)):
        seen = np.zeros((rows, columns), int)
        down, across = numpy_blas._grid(rows, columns, parts)
        for r in down:
            for c in across:
                seen[r, c] += 1
        assert (seen == 1).all() and all(r.start < r.stop for r in (*down, *across))


def test_wide_integers_leave_the_library_alone(library: Library) -> None:
    x = np.ones((64, 128), np.int64)
    numpy_blas.matmul(x, x.T)
    assert library.during == [4]


@pytest.mark.parametrize(("dtype", "products"), [(np.int16, 1), (np.int32, 3)])
def test_those_that_are_products_of_floats_are_computed_by_one_thread(
    library: Library, dtype: type[np.integer], products: int
) -> None:  # fmt: skip
    x = np.ones((64, 128), dtype)
    assert (numpy_blas.matmul(x, x.T) == 128).all()
    assert library.during == [1] * products and library.number == 4


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_the_number_comes_back_after_an_error(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
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
