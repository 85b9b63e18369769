"""Launches that C hands over: as those that Python makes one by one, and no table makes it read elsewhere."""

from __future__ import annotations

import ctypes
import threading
import time
from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import driver, launches, products
from smelt.backends.cuda.executable import LibraryLaunch
from smelt.backends.cuda.launches import KERNEL, PRODUCT, LaunchList, Place, line_of
from smelt.backends.gpu.library import Matrix, MatrixProduct
from smelt.backends.strided import PlannedLaunch
from smelt.ir.errors import DeviceError, OutOfMemoryError, SmeltError
from smelt.ir.settings import override
from smelt.lazy.execution import fragments, plan_parts, tiers

from .fake_blas import MATMUL, FakeBlas
from .fake_driver import LAUNCH, FakeDriver
from .fake_library import installed
from .test_device import fake, gpu
from .test_tiers import numbers, on_device

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures

needs_c = pytest.mark.skipif(launches._found is None, reason="the module in C was not built")


class Recorded:
    """A step that says what it was launched with."""

    is_alone = False

    def __init__(self, words: Sequence[int] | None):
        self._words, self.launched = words, []  # type: ignore[var-annotated]

    def words(self) -> Sequence[int] | None:
        return self._words

    @property
    def guard(self) -> AbstractContextManager[None]:
        return nullcontext()

    def places(self, given: Sequence[Place]) -> Sequence[Place]:
        return given

    def add_to(self, graph: driver.Graph, addresses: Sequence[int]) -> None:
        raise AssertionError

    def launch(self, addresses: Sequence[int]) -> None:
        self.launched.append(list(addresses))

    def error(self, code: int) -> SmeltError:
        raise AssertionError


def listed(steps: Sequence[tuple[Any, Sequence[Place]]]) -> LaunchList:
    found = LaunchList()
    for step, places in steps:
        found.append(line_of(step, places), [(i, 0) for i in range(10)])
    return found


@needs_c
def test_what_is_no_line_of_a_table_stands_where_it_was(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def launch(function: int, *rest: Any) -> int:
        *sizes, shared, stream, parameters, extra = rest
        pointers = (ctypes.c_void_p * 2).from_address(parameters)
        seen.append((function, sizes, [ctypes.c_uint64.from_address(p or 0).value for p in pointers]))
        assert not shared and stream is None and extra is None
        return 0

    monkeypatch.setattr(fake, "cuLaunchKernel", LAUNCH(launch))
    alone = Recorded(None)
    kernel = Recorded([KERNEL, 41, 5, 6, 7, 32, 2, 1, 2])
    nothing = Recorded([])
    alone.launch = lambda addresses: seen.append(list(addresses))  # type: ignore[method-assign]
    steps = [
        (kernel, [(0, 0), (1, 16)]), (nothing, [(9, 0)]), (alone, [(1, 4)]),
        (kernel, [(1, 0), (0, 8)]),
    ]  # fmt: skip
    listed(steps).run(array("Q", [1000, 1 << 63]))
    sizes = [5, 6, 7, 32, 2, 1]
    assert seen == [(41, sizes, [1000, (1 << 63) + 16]), [(1 << 63) + 4], (41, sizes, [1 << 63, 1008])]


@needs_c
@pytest.mark.parametrize(("code", "kind"), [(2, OutOfMemoryError), (1, DeviceError)])
def test_an_error_ends_the_list(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, code: int, kind: type) -> None:
    seen: list[int] = []

    def launch(function: int, *rest: Any) -> int:
        seen.append(function)
        return code if function == 2 else 0

    monkeypatch.setattr(fake, "cuLaunchKernel", LAUNCH(launch))
    steps = [(Recorded([KERNEL, n, 1, 1, 1, 1, 1, 1, 0]), []) for n in (1, 2, 3)]
    with pytest.raises(kind, match="cuLaunchKernel"):
        listed(steps).run(array("Q"))
    assert seen == [1, 2]


@needs_c
@pytest.mark.parametrize(
    "table",
    [
        [2], [KERNEL], [KERNEL, 1, 1, 1, 1, 1, 1, 1], [KERNEL, 1, 1, 1, 1, 1, 1, 1, 1],
        [KERNEL, 1, 1, 1, 1, 1, 1, 1, 1, 0], [KERNEL, 1, 1, 1, 1, 1, 1, 1, 1, 3, 0],
        [KERNEL, 1, 1, 1, 1, 1, 1, 1, 1, (1 << 64) - 1, 0],
        [KERNEL, 1, 1, 1, 1, 1, 1, 1, (1 << 64) - 1], [KERNEL, 1, 1, 1, 1, 1, 1, 1, 257, *[0] * 514],
        [KERNEL, 1, 1, 1, 1, 1, 1, 1, 0, 7], [PRODUCT, *[1] * 12, *[0, 0] * 3], [PRODUCT, *[1] * 12, *[0, 0] * 3, 3, 0],
        [PRODUCT, 0, *[1] * 11, *[0, 0] * 4],
    ],
)  # fmt: skip
def test_tables_that_are_none_launch_nothing(table: list[int]) -> None:
    with pytest.raises(ValueError, match="no list of launches"):
        launches._found.launch(array("Q", table), array("Q", [1, 2, 3]), 1)


@needs_c
def test_arguments_that_are_no_numbers() -> None:
    for arguments in ((1, array("Q"), 1), (array("Q"), None, 1), (array("Q"), array("Q"), "1"), ()):
        with pytest.raises(TypeError):
            launches._found.launch(*arguments)
    assert launches._found.launch(array("Q"), array("Q"), 0) == (0, False)


def _steps(x: Any, weights: Any) -> Any:
    """Kernels, products, what is sorted between them, and what is copied into parts."""
    y = smelt.softmax(x @ weights, axis=-1)
    z = smelt.sort(y + x, axis=-1)
    return smelt.concatenate([z @ weights, y], axis=0), smelt.argmax(z, axis=-1), smelt.cumsum(y, axis=0)


def _expected(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    e = np.exp(x @ w - (x @ w).max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    z = np.sort(y + x, axis=-1)
    return [np.concatenate([z @ w, y]), z.argmax(-1), y.cumsum(0)]


@pytest.mark.parametrize("native", [True, False], ids=["C", "Python"])
@pytest.mark.parametrize("library", [True, False], ids=["library", "kernels"])
def test_plans(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, native: bool, library: bool) -> None:
    """Values of plans whose steps join, over sizes that change and come again."""
    if native and launches._found is None:
        pytest.skip("the module in C was not built")
    if not native:
        monkeypatch.setattr(launches, "_found", None)
    monkeypatch.setattr(tiers, "MOST_FETCHED", 0)
    monkeypatch.setattr("smelt.lazy.execution.device_plan.LIBRARY_WORK", 0)
    blas = FakeBlas(fake)
    w = numbers(16, 16)
    with installed(monkeypatch, products, {"cublasLt": blas} if library else {}), override(tier="strided"):
        weights = on_device(w)
        for rows in (3, 5, 8, 3, 1, 5):
            x = numbers(rows, 16)
            found = _steps(smelt.array(x), weights)
            smelt.eval(found)
            for a, b in zip(found, _expected(x, w), strict=True):
                np.testing.assert_allclose(np.array(a), b, 1e-5, 1e-6)
    assert bool(blas.products) == library


@pytest.mark.parametrize("native", [True, False], ids=["C", "Python"])
def test_products_of_threads_are_put_on_the_stream_one_by_one(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    """They share a workspace, and one may be several kernels."""
    if native and launches._found is None:
        pytest.skip("the module in C was not built")
    if not native:
        monkeypatch.setattr(launches, "_found", None)
    inside, most, count = 0, 0, 0

    def product(*numbers: int | None) -> int:
        nonlocal inside, most, count
        inside, count = inside + 1, count + 1
        most = max(most, inside)
        time.sleep(0.001)  # without Python's lock, as the library
        inside -= 1
        return 0

    blas = FakeBlas(fake)
    monkeypatch.setattr(blas, "cublasLtMatmul", MATMUL(product))
    with installed(monkeypatch, products, {"cublasLt": blas}):
        lhs, rhs, out = [Matrix(i, "float16", 0, (64, 8, 1)) for i in range(3)]
        bias = Matrix(3, "float16", 0, (0, 0, 1))
        steps = [MatrixProduct(1, 8, 8, 8, lhs, rhs, out), MatrixProduct(1, 8, 8, 8, lhs, rhs, out, bias=bias)]
        found = listed([(LibraryLaunch(step), [(i, 0) for i in range(4)]) for step in steps])
        memory = driver.Memory(1 << 12)
        addresses = array("Q", [memory.address] * 10)
        errors: list[BaseException] = []

        def run() -> None:
            try:
                for _ in range(5):
                    found.run(addresses)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.free()
    assert not errors and count == 40 and most == 1


def test_memories_that_a_sequence_has_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those that nothing outside reads or returns."""
    asked: list[Any] = []

    class Kernels:
        def joins(self, program: Any) -> bool:
            return bool(program == "joins")

        def sequence(self, steps: Any, nbytes: Any, given: Any) -> Any:
            asked.append((len(steps), set(given)))
            return self

    def step(program: str, read: tuple[int, ...], written: tuple[int, ...]) -> PlannedLaunch:
        return PlannedLaunch(program, None, read, written)  # type: ignore[arg-type]

    steps = [
        step("joins", (0,), (1,)), step("joins", (1,), (2,)), step("alone", (2,), (3,)), step("joins", (3,), (4,)),
        step("joins", (4, 0), (5,)), step("joins", (5,), (6,)),
    ]  # fmt: skip
    parts = plan_parts.parts_of(steps, Kernels(), [4] * 7, {0, 6})  # type: ignore[arg-type]
    assert [part.step is None for part in parts] == [True, False, True]
    given = {0, 2, 3, 6}
    assert asked == [(2, given), (3, given)]
    assert [sorted(part.dead) for part in parts] == [[], [2], [3]]
    fragments.fragments.clear()
