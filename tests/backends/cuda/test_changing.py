"""Sizes that change where arrays lie on the device ``cuda`` alone: over a driver without a GPU."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import products
from smelt.ir.errors import OutOfMemoryError
from smelt.ir.op import registry
from smelt.ir.settings import override
from smelt.lazy.arrays import emit
from smelt.lazy.execution import changing, device_plan, fragments, programs, subgraphs, tiers

from .fake_blas import FakeBlas
from .fake_driver import FakeDriver
from .fake_library import installed
from .test_device import fake, gpu
from .test_tiers import WAYS, expected, layer, numbers, on_device

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


@pytest.fixture(autouse=True)
def far_from_the_host(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tiers, "MOST_FETCHED", 0)
    fragments.fragments.clear()
    with override(tier="auto"):
        yield


@pytest.mark.parametrize("way", WAYS)
def test_a_few_kernels_for_all_sizes(fake: FakeDriver, way: str) -> None:
    function, w = WAYS[way](layer), numbers(16, 16)
    weights = on_device(w)
    with smelt.explain() as explained:
        for rows in range(2, 24):
            x = numbers(rows, 16)
            np.testing.assert_allclose(np.array(function(smelt.array(x), weights)), expected(x, w), 1e-5, 1e-6)
    assert explained.count < 6 and fake.launches


def test_a_cache_that_grows(fake: FakeDriver) -> None:
    """What it grew to stays on the device; each token takes no compile."""
    first, query = numbers(1, 2, 4, 8), numbers(1, 2, 1, 8)
    keys, held = on_device(first), first
    with smelt.explain() as explained:
        for token in range(24):
            keys = smelt.concatenate([keys, keys[:, :, token : token + 1]], axis=2)
            held = np.concatenate([held, held[:, :, token : token + 1]], axis=2)
            weights = smelt.softmax(smelt.array(query) @ keys.swapaxes(-1, -2), axis=-1)
            found = weights @ keys
            smelt.eval(found, keys)
            assert not keys._buffer.is_on_host
            e = np.exp(query @ held.swapaxes(-1, -2))
            np.testing.assert_allclose(np.array(found), e / e.sum(-1, keepdims=True) @ held, 1e-5, 1e-5)
    assert explained.count < 12


def test_a_part_of_an_array_leaves_it_where_it_is() -> None:
    x = numbers(4, 5, 6)
    held = on_device(x)
    parts = held[1:3], held[..., 2], held[:, None, ::2], held[-1], held[2, 3, 4], held[::-1], smelt.split(held, 2, 0)[1]
    assert not held._buffer.is_on_host
    wanted = x[1:3], x[..., 2], x[:, None, ::2], x[-1], x[2, 3, 4], x[::-1], x[2:]
    for found, want in zip(parts, wanted, strict=True):
        np.testing.assert_array_equal(np.array(found), want)
    assert not held._buffer.is_on_host


def test_gradients_of_batches_of_changing_size() -> None:
    w, rng = numbers(8, 3), np.random.default_rng(0)
    weights, table = on_device(w), on_device(numbers(10, 8))

    def loss(w: Any, words: Any) -> Any:
        return smelt.mean(smelt.logsumexp(smelt.take(table, words, axis=0) @ w, axis=-1))

    with smelt.explain() as explained:
        for size in range(2, 16):
            words = rng.integers(0, 10, size)
            value, gradient = smelt.value_and_grad(loss)(weights, smelt.array(words))
            smelt.eval(value, gradient)
            x = numbers(10, 8)[words]
            e = np.exp(x @ w)
            np.testing.assert_allclose(value.item(), np.log(e.sum(-1)).mean(), 1e-5)
            np.testing.assert_allclose(np.array(gradient), x.T @ (e / e.sum(-1, keepdims=True)) / size, 1e-4, 1e-6)
    assert explained.count < 16


def test_sizes_that_stay_get_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """When what the plan has taken comes to what a compile takes."""
    w = numbers(16, 16)
    weights = on_device(w)
    for rows in (3, 4):
        smelt.eval(layer(smelt.array(numbers(rows, 16)), weights))
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 1e-9)
    with smelt.explain() as explained:
        for _ in range(3):
            x = numbers(4, 16)
            np.testing.assert_allclose(np.array(layer(smelt.array(x), weights)), expected(x, w), 1e-5, 1e-6)
    assert explained.count == 1


class Compiling:
    """A program that another process compiles. `found`: it, None where that could not."""

    def __init__(self, found: Any):
        self.found, self.is_ready = found, False

    def ready(self) -> bool:
        return self.is_ready

    def program(self) -> Any:
        return self.found if self.is_ready else None


@pytest.mark.parametrize("fails", [False, True])
def test_a_plan_goes_on_until_another_process_has_compiled(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """What that gives is what runs then; where it gives nothing, the program is compiled in place."""
    w, begun = numbers(16, 16), []
    weights = on_device(w)

    def begin(inputs: Any, body: Any, outputs: Any, device: Any, beside_device: bool) -> Compiling:
        assert beside_device
        begun.append(Compiling(None if fails else programs.program_of(inputs, body, outputs, device)))
        return begun[-1]

    def function(x: Any, w: Any) -> Any:
        found = layer(x, w)  # of what comes of it there is no program on disk
        return smelt.square(found) if fails else smelt.abs(found)

    for rows in (3, 4):
        smelt.eval(function(smelt.array(numbers(rows, 16)), weights))
    monkeypatch.setattr(subgraphs, "program_in_background", begin)
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 1e-9)

    def run() -> int:
        x = numbers(4, 16)
        with smelt.explain() as explained:
            found = function(smelt.array(x), weights)
            np.testing.assert_allclose(np.array(found), (np.square if fails else np.abs)(expected(x, w)), 1e-5, 1e-6)
        return explained.count

    run()
    (pending,) = begun
    assert run() == run() == 0
    pending.is_ready = True
    assert run() == fails
    assert run() == 0 and len(begun) == 1
    kept = [program for program, _ in subgraphs.executables._entries.values()]
    assert (pending.found in kept) != fails


def test_a_device_that_is_busy_with_a_plan_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is not the processor's: what passes from one run to the next tells of it."""
    weights, now = on_device(numbers(16, 16)), itertools.count(0.0)
    clocks = SimpleNamespace(perf_counter=lambda: next(now), thread_time=lambda: 0.0)
    monkeypatch.setattr(changing, "time", clocks)
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 2.5 * changing.GAIN)
    with smelt.explain() as explained:
        for _ in range(2):
            smelt.eval(layer(smelt.array(numbers(3, 16)), weights))
        before = explained.count
        smelt.eval(layer(smelt.array(numbers(3, 16)), weights))
        assert explained.count == before
        for _ in range(3):
            smelt.eval(layer(smelt.array(numbers(3, 16)), weights))
    assert explained.count == before + 1


def test_a_device_that_is_busy_with_other_plans_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that come in turn, as those of tokens do: none gets a program for the time that the others took."""
    weights, now = on_device(numbers(16, 16)), itertools.count(0.0)
    clocks = SimpleNamespace(perf_counter=lambda: next(now), thread_time=lambda: 0.0)
    monkeypatch.setattr(changing, "time", clocks)
    monkeypatch.setattr(changing, "LONGEST", 100.0)
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 9.5 * changing.GAIN)
    for rows in range(2, 12):
        smelt.eval(layer(smelt.array(numbers(rows, 16)), weights))
    with smelt.explain() as explained:
        for _ in range(8):
            for rows in range(2, 12):
                smelt.eval(layer(smelt.array(numbers(rows, 16)), weights))
    assert explained.count == 0


def test_what_no_plan_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, linear algebra with errors that tell a line, and sorts have programs, and the right values."""
    w = numbers(6, 6)
    weights = on_device(w)
    for n in range(2, 6):
        part = weights[:n, :n]
        gram = w[:n, :n] @ w[:n, :n].T + 7 * np.eye(n, dtype=np.float32)
        np.testing.assert_allclose(
            np.array(smelt.linalg.cholesky(part @ part.T + 7 * smelt.eye(n))), np.linalg.cholesky(gram), 1e-4, 1e-4
        )
        np.testing.assert_array_equal(np.array(smelt.sort(part, axis=0)), np.sort(w[:n, :n], axis=0))
        total, _ = smelt.scan(lambda carry, x: (carry + x, x), smelt.zeros(n), part)
        np.testing.assert_allclose(np.array(total), w[:n, :n].sum(0), 1e-5, 1e-5)


PRODUCTS = {
    "matrices": ((6, 8), (8, 10), "ik,kj->ij"),
    "transposed": ((8, 6), (10, 8), "ki,jk->ij"),
    "batches": ((3, 6, 8), (3, 8, 10), "bik,bkj->bij"),
    "heads": ((2, 6, 3, 8), (2, 7, 3, 8), "bihk,bjhk->bhij"),
    "one row": ((1, 8), (8, 10), "ik,kj->ij"),
    "two axes of rows": ((2, 6, 8), (8, 10), "aik,kj->aij"),
    "two summed axes": ((6, 2, 8), (2, 8, 10), "iak,akj->ij"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_large_products_are_the_library_s(name: str, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of parts of arrays, too: where their axes are no matrices, of copies."""
    monkeypatch.setattr(device_plan, "LIBRARY_WORK", 0)
    blas = FakeBlas(fake)
    left, right, formula = PRODUCTS[name]
    x, y = (numbers(*[d + 2 for d in shape]) for shape in (left, right))
    i, j = (tuple([slice(1, d + 1) for d in shape]) for shape in (left, right))
    with installed(monkeypatch, products, {"cublasLt": blas}):
        a, b = on_device(x), on_device(y)
        with override(tier="strided"):
            found = np.array(smelt.einsum(formula, a[i], b[j]))
    np.testing.assert_allclose(found, np.einsum(formula, x[i], y[j]), 1e-4, 1e-4)
    assert len(blas.products) == (name != "one row")  # that is a sum, by a kernel for all sizes


#: By name the shape, what is updated, and whether some of it lies outside.
PLACES: dict[str, tuple[tuple[int, ...], Any]] = {
    "rows": ((7, 40), lambda n: (np.arange(n) * 5 % 7,)),
    "rows with others between": ((7, 40), lambda n: (np.arange(n) % 7 - 3,)),
    "short rows": ((7, 3), lambda n: (np.arange(n) * n % 7,)),
    "elements": ((7, 40), lambda n: (np.arange(n) * 5 % 7, np.arange(n) * 3 % 40)),
    "columns": ((3, 7, 5), lambda n: (slice(None), np.arange(n) * 3 % 7)),
    "inner and outer axis": ((3, 4, 5), lambda n: (np.arange(n) % 3, slice(None), np.arange(n) * 2 % 5)),
    "two axes of indices": ((7, 2, 3), lambda n: (np.arange(2 * n).reshape(2, n) * 3 % 7,)),
}
MODES = ("add", "multiply", "maximum", "minimum", "set")


#: One kernel serves all places: other types are tried at two.
SCATTERS = [(places, "float32") for places in PLACES] + list(
    itertools.product(("rows", "elements"), ("int32", "float16", "bool", "uint8"))
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("places", "dtype"), SCATTERS)
def test_scatters_have_one_kernel_for_all_sizes(places: str, mode: str, dtype: str) -> None:
    """Updates that meet are applied in order."""
    shape, index = PLACES[places]
    x = (10 * numbers(*shape)).astype(dtype)
    held = on_device(x)
    with smelt.explain() as explained:
        for n in (2, 3, 5, 8):
            at = index(n)
            updates = (5 * np.abs(numbers(*x[at].shape))).astype(dtype)
            want, given = x.copy(), [smelt.array(a) if isinstance(a, np.ndarray) else a for a in at]
            if mode == "set":
                want[at] = updates
            else:
                getattr(np, mode).at(want, at, updates)
            found = getattr(held.at[tuple(given)], mode)(smelt.array(updates))
            np.testing.assert_array_equal(np.array(found), want)
    assert explained.count <= 5


def test_updates_outside_are_dropped() -> None:
    x = numbers(5, 4)
    held, scatter = on_device(x), registry["scatter"]
    for n in (3, 4, 6):
        indices = np.array([2**31 - 1, -1, 4, 5, 0, -(2**31)][:n], np.int32)
        updates = numbers(n, 1, 4)
        operands = [held, smelt.array(updates), smelt.array(indices)]
        found = emit(scatter, operands, {"axes": (0,), "mode": "add"})
        np.testing.assert_array_equal(np.array(found), scatter.reference(x, updates, indices, axes=(0,), mode="add"))


def test_what_takes_long_on_the_host_moves_to_the_device(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any size, although all that it reads is near; what takes little stays, however often it runs."""
    monkeypatch.setattr(tiers, "MOST_FETCHED", 1 << 24)
    monkeypatch.setattr(tiers, "op_by_op_seconds", lambda order: 0.0)
    monkeypatch.setattr(changing, "FIRST", 0.02)
    monkeypatch.setattr(changing, "PATIENCE", 0.02)
    monkeypatch.setattr(changing.Met, "took", took := _Took(changing.Met.took))
    w = numbers(16, 16)
    for seconds, moved in ((0.015, True), (1e-6, False)):
        changing._met.clear()
        took.seconds = seconds
        for rows in range(2, 8):
            fake.launches.clear()
            x = numbers(rows, 16)
            np.testing.assert_allclose(np.array(layer(smelt.array(x), smelt.array(w))), expected(x, w), 1e-5, 1e-6)
        assert bool(fake.launches) == moved


class _Took:
    """A run on the host takes so many seconds."""

    def __init__(self, took: Any):
        self.took, self.seconds = took, 0.0

    def __get__(self, met: Any, owner: Any) -> Any:
        return lambda seconds: self.took(met, self.seconds)


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_that_takes_too_much_memory_is_a_program(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def out_of_memory(*args: Any) -> None:
        tried.append(way)
        raise OutOfMemoryError("the GPU could not allocate")

    monkeypatch.setattr(device_plan.DevicePlan, "run", out_of_memory)
    # A function and sizes that no other way has compiled.
    function, w = WAYS[way](lambda *args: layer(*args)), numbers(16, 17 + list(WAYS).index(way))
    weights = on_device(w)
    for rows in (3, 4, 4, 5):
        x = numbers(rows, 16)
        np.testing.assert_allclose(np.array(function(smelt.array(x), weights)), expected(x, w), 1e-5, 1e-6)
    assert tried


def test_graphs_on_the_host_start_no_process_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes take turns on a GPU: that is worth it for a program of graphs that run there."""
    asked: list[bool] = []

    def begin(inputs: Any, body: Any, outputs: Any, device: Any, beside_device: bool) -> None:
        asked.append(beside_device)

    monkeypatch.setattr(subgraphs, "program_in_background", begin)
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 1e-9)
    monkeypatch.setattr(tiers.CompileCost, "in_place", lambda *args: 1e9)
    monkeypatch.setattr(changing, "FIRST", float("inf"))
    monkeypatch.setattr(changing, "PATIENCE", float("inf"))
    x, w = numbers(32, 16), numbers(16, 16)
    with override(small_work=0):
        for _ in range(3):
            smelt.eval(layer(smelt.array(x), smelt.array(w)))
    assert asked and not any(asked)
