"""Optimizers beyond those of MLX, against formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers

from .checks import host, rng_of


def gradients(n: int = 6) -> list[np.ndarray]:
    rng = rng_of("gradients")
    return [rng.standard_normal((3, 4)) for _ in range(n)]


def steps(optimizer: Any, compiled: bool = False) -> np.ndarray:
    w = {"w": smelt.array(np.arange(12.0).reshape(3, 4) / 6 - 1, smelt.float64)}
    optimizer.init(w)

    def step(g: smelt.array, w: Any) -> Any:
        return optimizer.apply_gradients({"w": g}, w)

    if compiled:
        step = smelt.compile(step, inputs=optimizer.state, outputs=optimizer.state)
    for g in gradients():
        w = step(smelt.array(g, smelt.float64), w)
    return np.asarray(w["w"])


def nadam(p: np.ndarray, rate: float, b1: float, b2: float, eps: float, decay: float) -> np.ndarray:
    m = v = np.zeros_like(p)
    product = 1.0
    for t, g in enumerate(gradients(), 1):
        g = g + decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        now, then = (b1 * (1 - 0.5 * 0.96 ** (i * 4e-3)) for i in (t, t + 1))
        product *= now
        move = (1 - now) / (1 - product) * g + then / (1 - product * then) * m
        p = p - rate * move / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


def lamb(p: np.ndarray, rate: float, b1: float, b2: float, eps: float, decay: float) -> np.ndarray:
    m = v = np.zeros_like(p)
    for t, g in enumerate(gradients(), 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        move = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps) + decay * p
        p = p - rate * np.linalg.norm(p) / np.linalg.norm(move) * move
    return p


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
def test_muon(nesterov: bool, compiled: bool) -> None:
    """The polynomial of a matrix is that of its singular values."""
    p = np.arange(12.0).reshape(3, 4) / 6 - 1
    v = np.zeros_like(p)
    for g in gradients():
        g = g + 0.1 * p
        v = 0.9 * v + 0.1 * g
        move = 0.1 * g + 0.9 * v if nesterov else v
        left, s, right = np.linalg.svd(move, full_matrices=False)
        s = s / np.sqrt((s**2).sum())
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        p = p - 0.05 * (left * s) @ right
    found = steps(optimizers.Muon(0.05, momentum=0.9, weight_decay=0.1, nesterov=nesterov), compiled)
    np.testing.assert_allclose(found, p, 1e-5, 1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name, formula", [("NAdam", nadam), ("LAMB", lamb)])
def test_variants_of_adam(name: str, formula: Any, compiled: bool) -> None:
    start = np.arange(12.0).reshape(3, 4) / 6 - 1
    found = steps(getattr(optimizers, name)(0.05, betas=[0.8, 0.95], eps=1e-6, weight_decay=0.1), compiled)
    np.testing.assert_allclose(found, formula(start, 0.05, 0.8, 0.95, 1e-6, 0.1), 2e-6)


def test_lamb_of_nothing() -> None:
    w = {"w": smelt.zeros(3)}
    found = optimizers.LAMB(0.5, weight_decay=0.0).apply_gradients({"w": smelt.ones(3)}, w)
    np.testing.assert_allclose(host(found["w"]), -0.5, 1e-5)
    assert smelt.all(optimizers.LAMB(0.5).apply_gradients(w, w)["w"] == 0).item()


def test_lbfgs_takes_the_steps_of_the_formula() -> None:
    """Two steps on a parabola: H is made of one change, then."""
    a = np.diag([1.0, 3.0, 10.0])
    p = np.array([1.0, -2.0, 0.5])
    optimizer = optimizers.LBFGS(0.7, history=3)
    w = {"w": smelt.array(p, smelt.float64)}
    for _ in range(2):
        w = optimizer.apply_gradients({"w": smelt.array(a, smelt.float64) @ w["w"]}, w)
    first = p - 0.7 * min(1, 1 / np.abs(a @ p).sum()) * (a @ p)
    s, y = first - p, a @ (first - p)
    rho = 1 / (y @ s)
    left = np.eye(3) - rho * np.outer(s, y)
    h = left @ (np.eye(3) * (s @ y) / (y @ y)) @ left.T + rho * np.outer(s, s)
    np.testing.assert_allclose(np.asarray(w["w"]), first - 0.7 * h @ a @ first, 1e-6)


def test_lbfgs_compiles_once_and_ends_where_the_gradient_does() -> None:
    optimizer = optimizers.LBFGS(history=4)
    w = {"a": smelt.array([3.0]), "b": smelt.array([[1.0, -1.0]])}
    optimizer.init(w)

    @smelt.compile(inputs=optimizer.state, outputs=optimizer.state)
    def step(w: Any) -> Any:
        gradients = smelt.grad(lambda w: (w["a"] ** 2).sum() + 5 * (w["b"] ** 2).sum())(w)
        return optimizer.apply_gradients(gradients, w)

    for _ in range(20):
        w = step(w)
    assert max(smelt.abs(x).max().item() for x in w.values()) < 1e-4
    assert "1 versions" in repr(step)


def test_minimize() -> None:
    def valley(p: Any) -> smelt.array:
        x, y = p["x"], p["y"]
        return ((1 - x) ** 2 + 100 * (y - x**2) ** 2).sum()

    start = {"x": smelt.array([-1.2, 2.0], smelt.float64), "y": smelt.array([1.0, -1.0], smelt.float64)}
    found, value = optimizers.LBFGS().minimize(valley, start, steps=200)
    assert value.item() < 1e-12
    np.testing.assert_allclose(np.asarray(found["x"]), 1, 1e-5)


def test_averages() -> None:
    rng = rng_of("averages")
    places = rng.standard_normal((5, 2)).astype(np.float32)
    model = nn.Linear(2, 1, bias=False)
    model.weight = smelt.array(places[:1])
    average = optimizers.EMA(0.9)
    average.init(model)

    @smelt.compile(inputs=average.state, outputs=average.state)
    def take(w: smelt.array) -> None:
        average.update({"weight": w})

    wanted = places[:1]
    for place in places[1:]:
        take(smelt.array(place[None]))
        wanted = 0.9 * wanted + 0.1 * place
    np.testing.assert_allclose(host(average.averages["weight"]), wanted, 1e-5)
    average.swap(model)
    np.testing.assert_allclose(host(model.weight), wanted, 1e-5)
    average.swap(model)
    np.testing.assert_array_equal(host(model.weight), places[:1])
    early = optimizers.EMA(0.9, warmup=True)
    early.init({"w": smelt.zeros(1)})
    early.update({"w": smelt.ones(1)})
    assert early.averages["w"].item() == pytest.approx(1 - 2 / 11)


def test_a_step_with_averages_is_traced_once() -> None:
    model, optimizer, average, beside = nn.Linear(2, 1), optimizers.Adam(0.1), optimizers.EMA(0.9), optimizers.EMA(0.9)
    optimizer.init(model.trainable_parameters())
    average.init(model)
    beside.init(model)
    state, x = [model.state, optimizer.state, average.state], smelt.random.normal((8, 2))

    @smelt.compile(inputs=state, outputs=state)
    def step(x: smelt.array) -> None:
        _, gradients = nn.value_and_grad(model, lambda x: (model(x) ** 2).mean())(x)
        optimizer.update(model, gradients)
        average.update(model)

    for _ in range(4):
        step(x)
        beside.update(model)
    assert "1 versions" in repr(step)
    for name in ("weight", "bias"):
        np.testing.assert_allclose(host(average.averages[name]), host(beside.averages[name]), 1e-5)


def test_averages_of_what_has_no_mean() -> None:
    average = optimizers.EMA(0.5)
    average.init({"w": smelt.array([1.0]), "count": smelt.array([1]), "scale": 1.0})
    average.update({"w": smelt.array([3.0]), "count": smelt.array([4]), "scale": 2.0})
    found = average.averages
    assert (found["w"].item(), found["count"].item(), found["scale"]) == (2.0, 4, 2.0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: optimizers.EMA(1.5), r"EMA: decay must be in \[0, 1\], is 1.5"),
        (lambda: optimizers.EMA(0.9, smelt.nn.Linear(1, 1)), "EMA: warmup must be a bool, is Linear"),
        (lambda: optimizers.LBFGS(history=0), "LBFGS: history must be at least 1, is 0"),
        (lambda: optimizers.LBFGS().apply_gradients({"b": smelt.ones(1)}, {"a": smelt.ones(1)}), "b is no parameter"),
    ],
)
def test_bad_arguments(call: Any, message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message):
        call()


def test_averages_of_other_parameters() -> None:
    average = optimizers.EMA()
    average.init({"a": smelt.ones(1)})
    for given, message in (({"b": smelt.ones(1)}, "a has an average, but is no parameter"),
                           ({"a": smelt.ones(2)}, r"EMA: a is f32\[2\], its average f32\[1\]"),
                           ({"a": 2.0}, "EMA: a is .*, its average")):  # fmt: skip
        with pytest.raises(smelt.SmeltError, match=message):
            average.update(given)


def test_optimizers_of_others_schedule_their_options() -> None:
    """As subclasses of MLX's optimizers do."""

    class Halving(optimizers.Optimizer):
        def __init__(self, learning_rate: Any, eps: Any = 0.5):
            super().__init__()
            self._maybe_schedule("learning_rate", learning_rate)
            self._maybe_schedule("eps", eps)

        def init_single(self, parameter: smelt.array, state: dict[str, Any]) -> None:
            state["sum"] = smelt.zeros_like(parameter)

        def apply_single(self, gradient: smelt.array, parameter: smelt.array, state: dict[str, Any]) -> smelt.array:
            state["sum"] = state["sum"] + gradient
            return parameter - self.learning_rate.astype(gradient.dtype) * state["sum"] * self.state["eps"]

    optimizer = Halving(lambda step: 1.0 / (1 + step), 2.0)
    w = {"w": smelt.array([8.0])}
    for _ in range(2):
        w = optimizer.apply_gradients({"w": smelt.array([1.0])}, w)
    # Steps of 1 / 1 and 1 / 2, and sums of 1 and 2.
    assert w["w"].item() == 8 - 2 * 1 - 2 * 0.5 * 2


@pytest.mark.parametrize("given", [5, [1], {"learning_rate": 5}, "ab"])
def test_schedulers_are_functions(given: Any) -> None:
    with pytest.raises(smelt.SmeltError, match=r"Optimizer: schedulers is a dict of functions.*test_more_optimizers"):
        optimizers.Optimizer(schedulers=given)


@pytest.mark.parametrize("gradient", [np.ones(2, np.float32), 1.0, [smelt.ones(2)]], ids=["NumPy", "number", "list"])
def test_a_gradient_is_an_array(gradient: Any) -> None:
    """A parameter never stays what it is without a word."""
    with pytest.raises(smelt.SmeltError, match=r"apply_gradients: w"):
        optimizers.SGD(0.1).apply_gradients({"w": gradient}, {"w": smelt.ones(2)})
    none = optimizers.SGD(0.1).apply_gradients({"w": None}, {"w": smelt.ones(2)})
    assert none["w"].tolist() == [1.0, 1.0]
