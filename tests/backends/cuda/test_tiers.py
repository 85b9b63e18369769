"""What runs on the host in place of the device ``cuda``, until its program pays: over a driver without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import driver, libraries
from smelt.ir.errors import DeviceError
from smelt.ir.settings import override
from smelt.lazy.core import topological
from smelt.lazy.execution import changing, known, tiers
from smelt.runtime import warming

from .fake_driver import FakeDriver
from .test_device import fake, gpu

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


@pytest.fixture(autouse=True)
def as_users_have_it(fake: FakeDriver) -> Iterator[None]:
    with override(tier="auto"):
        yield


def layer(x: Any, w: Any) -> Any:
    return smelt.softmax(smelt.tanh(x @ w) + 1.0, axis=-1)


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    y = np.exp(np.tanh(x @ w) + 1)
    return y / y.sum(-1, keepdims=True)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def on_device(x: np.ndarray) -> smelt.array:
    """An array that lies on the device alone."""
    with override(tier="program"):
        found = smelt.array(x)
        found = (found * 1.0).astype(found.dtype)
        smelt.eval(found)
    assert not found._buffer.is_on_host
    return found


WAYS: dict[str, Any] = {
    "lazy": lambda f: f, "compiled": smelt.compile, "shapeless": lambda f: smelt.compile(f, shapeless=True)
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_sizes_that_change_compile_nothing(fake: FakeDriver, way: str) -> None:
    function = WAYS[way](layer)
    w = numbers(16, 16)
    weights = on_device(w)
    fake.launches.clear()
    with smelt.explain() as explained:
        for rows in range(1, 40):
            x = numbers(rows, 16)
            np.testing.assert_allclose(np.array(function(smelt.array(x), weights)), expected(x, w), 1e-5, 1e-6)
    assert explained.count == 0 and not fake.launches


@pytest.mark.parametrize("way", ["lazy", "compiled"])
def test_what_returns_gets_its_program(fake: FakeDriver, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = WAYS[way](layer)
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 2e-5)
    monkeypatch.setattr(tiers, "LOADING", 0.0)
    x, w = numbers(9, 16), numbers(16, 16)
    for _ in range(200):
        found = function(smelt.array(x), smelt.array(w))
        np.testing.assert_allclose(np.array(found), expected(x, w), 1e-5, 1e-6)
    assert fake.launches


@pytest.mark.parametrize("way", ["lazy", "compiled"])
def test_what_reads_much_on_the_device_runs_there(fake: FakeDriver, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = WAYS[way](layer)
    monkeypatch.setattr(tiers, "MOST_FETCHED", 1000)
    x, w = numbers(8, 16), numbers(16, 16)
    weights = on_device(w)
    fake.launches.clear()
    np.testing.assert_allclose(np.array(function(smelt.array(x), weights)), expected(x, w), 1e-5, 1e-6)
    assert fake.launches and not weights._buffer.is_on_host


def test_kernels_of_the_user_stay_on_the_device() -> None:
    kernel = smelt.fast.metal_kernel("double", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = 2 * x[i];")

    def doubled(x: Any) -> Any:
        (y,) = kernel(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1),
                      threadgroup=(4, 1, 1))  # fmt: skip
        return y + 1

    x = smelt.array(numbers(12))
    looped = smelt.scan(lambda carry, _: (doubled(carry), None), x, smelt.arange(3))[0]
    for found, portable in ((doubled(x), False), (looped, False), (x * 2 + 1, True)):
        assert tiers.may_come_to_host(topological([found._ref])) == portable


def test_training_moves_between_both(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters that lie on the device after one step are the host's in the next, where the batch has another size."""
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 2e-4)
    monkeypatch.setattr(tiers, "LOADING", 0.0)
    w, reference = smelt.array(numbers(8, 4)), numbers(8, 4).astype(np.float64)
    gradient = smelt.grad(lambda w, x: ((x @ w) ** 2).mean())
    for step in range(60):
        rows = 5 if step % 3 else 5 + step
        x = np.random.default_rng(step).standard_normal((rows, 8)).astype(np.float32)
        w = w - 0.1 * gradient(w, smelt.array(x))
        smelt.eval(w)
        reference = reference - 0.1 * 2 * x.T @ (x @ reference) / (rows * 4)
    np.testing.assert_allclose(np.array(w), reference, 1e-4, 1e-5)
    assert fake.launches


def test_the_driver_is_ready_before_a_graph_moves(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """And another GPU can still be chosen."""
    driver._context.cache_clear()
    monkeypatch.setattr(driver, "_is_entered", False)
    monkeypatch.setattr(fake, "gpus", 2)
    monkeypatch.setattr(changing, "FIRST", float("inf"))
    monkeypatch.setattr(changing, "READY", float("inf"))
    monkeypatch.setattr(changing, "OP", 0.0)
    loaded: list[str] = []
    monkeypatch.setattr(libraries, "load", loaded.append)
    x, w = numbers(9, 16), numbers(16, 16)
    changing._met.clear()
    known.by_plan.clear()
    smelt.eval(layer(smelt.array(x), smelt.array(w)))
    warming.settle()
    assert not driver._context.cache_info().currsize
    monkeypatch.setattr(changing, "READY", 0.0)
    smelt.eval(layer(smelt.array(x), smelt.array(w)))
    warming.settle()
    assert driver._context.cache_info().currsize and not fake.launches
    assert loaded == ["nvrtc", "cublasLt"]
    monkeypatch.setattr(driver, "_ordinal", 0)
    driver.choose(1)
    driver.enter()
    with pytest.raises(DeviceError, match="this process uses GPU 1 already, and cannot use GPU 0"):
        driver.choose(0)


def test_what_is_not_there_is_missed_by_who_needs_it(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DeviceError("there is no NVIDIA driver")

    monkeypatch.setattr(driver, "warm", gone)
    monkeypatch.setattr(changing, "READY", 0.0)
    monkeypatch.setattr(changing, "OP", 0.0)
    x, w = numbers(9, 16), numbers(16, 16)
    np.testing.assert_allclose(np.array(layer(smelt.array(x), smelt.array(w))), expected(x, w), 1e-5, 1e-6)
    warming.settle()
