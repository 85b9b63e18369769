"""Optimizers against formulas in NumPy, schedules, several optimizers as one, clipping."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.utils import tree_flatten, tree_map

from .checks import TOLERANCE, close, host, rng_of

State = dict[str, Any]

pytestmark = pytest.mark.tier("ops")


def sgd(g, p, s, t, lr=0.1, mu=0.9, decay=0.1, damp=0.2):
    g = g + decay * p
    s["v"] = mu * s.get("v", 0) + (1 - damp) * g
    return p - lr * s["v"]


def nesterov(g, p, s, t, lr=0.1, mu=0.9):
    s["v"] = mu * s.get("v", 0) + g
    return p - lr * (g + mu * s["v"])


def rmsprop(g, p, s, t, lr=0.1, alpha=0.99, eps=1e-8):
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g**2
    return p - lr * g / (np.sqrt(s["v"]) + eps)


def adagrad(g, p, s, t, lr=0.1):
    s["v"] = s.get("v", 0) + g**2
    return p - lr * g / (np.sqrt(s["v"]) + 1e-8)


def adadelta(g, p, s, t, lr=0.1, rho=0.9, eps=1e-6):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g**2
    move = np.sqrt(s.get("u", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * move**2
    return p - lr * move


def adam(g, p, s, t, lr=0.1, b1=0.9, b2=0.999, corrected=False):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g**2
    m, v = (s["m"] / (1 - b1**t), s["v"] / (1 - b2**t)) if corrected else (s["m"], s["v"])
    return p - lr * m / (np.sqrt(v) + 1e-8)


def adamw(g, p, s, t):
    return adam(g, p * (1 - 0.1 * 0.2), s, t)


def adamax(g, p, s, t, lr=0.1):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = np.maximum(0.999 * s.get("v", 0), np.abs(g))
    return p - lr * s["m"] / (s["v"] + 1e-8)


def lion(g, p, s, t, lr=0.1, decay=0.1):
    c = 0.9 * s.get("m", 0) + 0.1 * g
    s["m"] = 0.99 * s.get("m", 0) + 0.01 * g
    return p - lr * (np.sign(c) + decay * p)


def adafactor(g, p, s, t):
    keep, squares = 1 - t**-0.8, g**2 + 1e-30
    if g.ndim >= 2:
        s["exp_avg_sq_row"] = keep * s.get("exp_avg_sq_row", 0) + (1 - keep) * squares.mean(-1)
        s["exp_avg_sq_col"] = keep * s.get("exp_avg_sq_col", 0) + (1 - keep) * squares.mean(-2)
        row, col = s["exp_avg_sq_row"], s["exp_avg_sq_col"]
        v = row[..., None] * col[..., None, :] / row.mean(-1, keepdims=True)[..., None]
    else:
        v = s["exp_avg_sq"] = keep * s.get("exp_avg_sq", 0) + (1 - keep) * squares
    move = g / np.sqrt(v)
    rate = max(1e-3, np.sqrt((p**2).mean())) * min(1e-2, t**-0.5)
    return p - rate * move / max(1.0, np.sqrt((move**2).mean()))


CASES: list[tuple[Callable[[], optimizers.Optimizer], Callable[..., np.ndarray]]] = [
    (lambda: optimizers.SGD(0.1), lambda g, p, s, t: p - 0.1 * g),
    (lambda: optimizers.SGD(0.1, momentum=0.9, weight_decay=0.1, dampening=0.2), sgd),
    (lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True), nesterov),
    (lambda: optimizers.RMSprop(0.1), rmsprop),
    (lambda: optimizers.Adagrad(0.1), adagrad),
    (lambda: optimizers.AdaDelta(0.1), adadelta),
    (lambda: optimizers.Adam(0.1), adam),
    (lambda: optimizers.Adam(0.1, bias_correction=True), lambda *a: adam(*a, corrected=True)),
    (lambda: optimizers.AdamW(0.1, weight_decay=0.2), adamw),
    (lambda: optimizers.Adamax(0.1), adamax),
    (lambda: optimizers.Lion(0.1, weight_decay=0.1), lion),
    (lambda: optimizers.Adafactor(), adafactor),
]
NAMES = [f"{i}-{make().__class__.__name__}" for i, (make, _) in enumerate(CASES)]


def drawn(rng: np.random.Generator) -> Any:
    return {"layers": [rng.standard_normal((3, 4)), rng.standard_normal(5)], "scale": rng.standard_normal(())}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("make, formula", CASES, ids=NAMES)
def test_steps(make: Any, formula: Any, dtype: str) -> None:
    """Four steps; in half precision each starts from the same values."""
    kind, optimizer, rng = getattr(smelt, dtype), make(), rng_of(dtype)
    parameters = tree_map(lambda x: smelt.array(x).astype(kind), drawn(rng))
    states: dict[str, State] = {path: {} for path, _ in tree_flatten(parameters)}
    for t in range(1, 5):
        gradients = tree_map(lambda x: smelt.array(x).astype(kind), drawn(rng))
        given = dict(tree_flatten(gradients))
        wanted = {path: formula(host(given[path]), host(p), states[path], t) for path, p in tree_flatten(parameters)}
        parameters = optimizer.apply_gradients(gradients, parameters)
        for path, p in tree_flatten(parameters):
            assert p.dtype is kind
            np.testing.assert_allclose(host(p), wanted[path], 8 * TOLERANCE[dtype], 8 * TOLERANCE[dtype])
        held = dict(tree_flatten({k: v for k, v in optimizer.state.items() if k in parameters}))
        for path, state in states.items():
            for name in state:
                close(held[f"{path}.{name}"], np.asarray(state[name]), dtype)
                state[name] = host(held[f"{path}.{name}"])
    assert optimizer.step.item() == 4 and optimizer.step.dtype is smelt.uint64


@pytest.mark.parametrize("make, formula", CASES, ids=NAMES)
def test_a_compiled_step_is_traced_once(make: Any, formula: Any) -> None:
    rng = rng_of("compiled")
    plain, optimizer = make(), make()
    model = tree_map(lambda x: smelt.array(x).astype(smelt.float32), drawn(rng))
    other = tree_map(lambda x: x, model)
    optimizer.init(model)
    traces = []

    @smelt.compile(inputs=[model, optimizer.state], outputs=[model, optimizer.state])
    def step(gradients: Any) -> None:
        traces.append(1)
        model.update(optimizer.apply_gradients(gradients, model))

    for _ in range(3):
        gradients = tree_map(lambda x: smelt.array(x).astype(smelt.float32), drawn(rng))
        step(gradients)
        other = plain.apply_gradients(gradients, other)
    assert len(traces) == 1
    for (_, x), (_, y) in zip(tree_flatten(model), tree_flatten(other)):
        close(x, host(y), "float32")


def test_muon_makes_steps_of_matrices_orthogonal() -> None:
    optimizer = optimizers.Muon(1.0, weight_decay=0.0)
    rng = rng_of("muon")
    for shape in ((6, 4), (4, 6), (4, 2, 3)):
        gradient = smelt.array(rng.standard_normal(shape)).astype(smelt.float32)
        found = optimizer.apply_gradients({"w": gradient}, {"w": smelt.zeros(shape)})["w"]
        singular = np.linalg.svd(np.asarray(found).reshape(shape[0], -1), compute_uv=False)
        scale = np.sqrt(max(1, shape[-2] / shape[-1]))
        assert (singular > 0.5 * scale).all() and (singular < 1.4 * scale).all()
        optimizer = optimizers.Muon(1.0, weight_decay=0.0)


def test_the_other_options_of_adafactor() -> None:
    optimizer = optimizers.Adafactor(0.1, relative_step=False, beta_1=0.5, weight_decay=0.1, scale_parameter=False)
    found = optimizer.apply_gradients({"w": smelt.array([2.0, -2.0])}, {"w": smelt.array([1.0, 1.0])})
    close(found["w"], np.array([0.99 - 0.05, 0.99 + 0.05]), "float32")
    mixed = optimizers.Adafactor()
    found = mixed.apply_gradients({"w": smelt.ones((2, 3), smelt.float16)}, {"w": smelt.ones((2, 3))})
    assert found["w"].dtype is mixed.state["w"]["exp_avg_sq_row"].dtype is smelt.float32
    warm = optimizers.Adafactor(scale_parameter=False, warmup_init=True)
    close(warm.apply_gradients({"w": smelt.ones(1)}, {"w": smelt.zeros(1)})["w"], np.array([-1e-6]), "float32")
    with pytest.raises(smelt.SmeltError, match="needs a learning_rate"):
        optimizers.Adafactor(relative_step=False)


def test_schedules() -> None:
    steps = range(12)

    def values(schedule: Any) -> list[float]:
        return [schedule(smelt.array(t, smelt.uint64)).item() for t in steps]

    def same(schedule: Any, wanted: Callable[[int], float]) -> None:
        np.testing.assert_allclose(values(schedule), [wanted(t) for t in steps], 1e-5, 1e-7)

    same(optimizers.exponential_decay(0.5, 0.9), lambda t: 0.5 * 0.9**t)
    same(optimizers.step_decay(0.5, 0.1, 4), lambda t: 0.5 * 0.1 ** (t // 4))
    same(optimizers.cosine_decay(0.5, 8, 0.1), lambda t: 0.1 + 0.2 * (1 + np.cos(np.pi * min(t, 8) / 8)))
    same(optimizers.linear_schedule(0.5, 0.1, 8), lambda t: 0.5 - 0.4 * min(t, 8) / 8)
    joined = optimizers.join_schedules(
        [optimizers.linear_schedule(0.0, 1.0, 4), optimizers.exponential_decay(1.0, 0.5), lambda t: smelt.array(9.0)],
        [4, 8],
    )
    same(joined, lambda t: t / 4 if t < 4 else 0.5 ** (t - 4) if t < 8 else 9.0)
    for call in (
        lambda: optimizers.linear_schedule(0.0, 1.0, 0),
        lambda: optimizers.join_schedules([], []),
        lambda: optimizers.join_schedules([lambda t: t], [3]),
    ):
        with pytest.raises(smelt.SmeltError, match=r"test_optimizers\.py"):
            call()


def test_the_learning_rate() -> None:
    w = {"w": smelt.ones(1)}
    optimizer = optimizers.SGD(optimizers.linear_schedule(0.5, 0.0, 2))
    found = [optimizer.apply_gradients(w, w)["w"].item() for _ in range(3)]
    assert found == [0.5, 0.75, 1.0] and optimizer.learning_rate.item() == 0.0
    fixed = optimizers.SGD(0.5)
    fixed.learning_rate = 0.25
    assert fixed.apply_gradients(w, w)["w"].item() == 0.75
    assert fixed.state["learning_rate"].item() == 0.25


@pytest.mark.parametrize("make, formula", CASES, ids=NAMES)
def test_parameters_may_be_called_like_entries_of_the_state(make: Any, formula: Any) -> None:
    rng = rng_of("names")
    names = {"step": "a", "learning_rate": "b", "w": "w"}
    values = {name: drawn(rng) if name == "step" else rng.standard_normal(4) for name in names}
    values = tree_map(lambda x: smelt.array(x).astype(smelt.float32), values)
    plain, optimizer = make(), make()
    got, want = values, {names[k]: v for k, v in values.items()}
    for _ in range(3):
        got = optimizer.apply_gradients(got, got)
        optimizer.state = smelt.utils.tree_unflatten(tree_flatten(optimizer.state))  # as from a file
        want = plain.apply_gradients(want, want)
    assert optimizer.step.item() == 3
    for name, other in names.items():
        for (_, x), (_, y) in zip(tree_flatten(got[name]), tree_flatten(want[other]), strict=True):
            assert smelt.array_equal(x, y).item(), name


def test_states_are_kept_and_given_back() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    model.layers[0].freeze()
    first, second = optimizers.Adam(0.1), optimizers.Adam(0.1)
    gradients = tree_map(smelt.ones_like, model.trainable_parameters())
    first.init(model.trainable_parameters())
    first.update(model, gradients)
    second.state = pickle.loads(pickle.dumps(first.state))
    twin = pickle.loads(pickle.dumps(model))
    first.update(model, gradients)
    second.update(twin, gradients)
    assert first.step.item() == second.step.item() == 2
    for (path, x), (_, y) in zip(tree_flatten(model.parameters()), tree_flatten(twin.parameters())):
        assert smelt.array_equal(x, y).item(), path
    model.unfreeze()  # what is trained later gets a state then
    first.update(model, tree_map(smelt.ones_like, model.trainable_parameters()))
    assert set(first.state["layers"][0]["weight"]) == {"m", "v"}


def test_several_optimizers() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    both = optimizers.MultiOptimizer(
        [optimizers.SGD(1.0), optimizers.Adam(0.1)], [lambda path, gradient: path.endswith("bias")]
    )
    both.init(model.trainable_parameters())
    gradients = tree_map(smelt.ones_like, model.trainable_parameters())
    before = dict(tree_flatten(model.parameters()))
    both.update(model, gradients)
    for path, x in tree_flatten(model.parameters()):
        moved = before[path] - x
        wanted = 1.0 if path.endswith("bias") else 0.1 * 0.1 / np.sqrt(0.001)
        close(moved, np.full(x.shape, wanted), "float32")
    assert len(both.state["states"]) == 2 and both.learning_rate.item() == 1.0
    both.learning_rate = 0.5
    assert [o.learning_rate.item() for o in both.optimizers] == [0.5, 0.5]
    both.state = both.state
    both.update(model, gradients)
    with pytest.raises(smelt.SmeltError, match="one filter less than optimizers"):
        optimizers.MultiOptimizer([optimizers.SGD(1.0)], [lambda path, gradient: True])
    with pytest.raises(smelt.SmeltError, match="needs 2 entries under 'states'"):
        both.state = {"states": []}


def test_clipping() -> None:
    gradients = {"a": [smelt.full((3, 2), 2.0)], "b": smelt.ones(1, smelt.float16)}
    clipped, norm = optimizers.clip_grad_norm(gradients, 1.0)
    assert norm.item() == 5.0
    close(clipped["a"][0], np.full((3, 2), 0.4), "float32")
    same, _ = optimizers.clip_grad_norm(gradients, 10.0)
    half, norm = optimizers.clip_grad_norm([smelt.full(500, 30.0, smelt.float16)], 1.0)
    assert half[0].dtype is smelt.float16 and half[0][0].item() == pytest.approx(1 / math.sqrt(500), rel=1e-3)
    assert norm.dtype is smelt.float32 and norm.item() == pytest.approx(30 * math.sqrt(500), rel=1e-5)
    assert same["b"].tolist() == [1.0]
    with pytest.raises(smelt.SmeltError, match="clip_grad_norm: max_norm must not be negative, is -1"):
        optimizers.clip_grad_norm(gradients, -1.0)


@pytest.mark.parametrize("clip", [optimizers.clip_grad_norm, nn.utils.clip_grad_norm_sharded])
def test_clipping_far(clip: Any) -> None:
    """Factors that half precision takes for 0 or loses the digits of, and gradients that are integers."""
    gradients = {"half": smelt.full(2, 30000.0, smelt.float16), "ints": smelt.array([30000, -40000])}
    clipped, norm = clip(gradients, 1e-3)
    length = np.sqrt(2 * 30000.0**2 + 30000.0**2 + 40000.0**2)
    close(norm, length, "float32")
    assert [x.dtype for x in (clipped["half"], clipped["ints"])] == [smelt.float16, smelt.float32]
    np.testing.assert_allclose(np.asarray(clipped["half"]), 3e4 * 1e-3 / length, rtol=1e-3)
    np.testing.assert_allclose(np.asarray(clipped["ints"]), np.array([3e4, -4e4]) * 1e-3 / length, rtol=1e-5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: optimizers.SGD(0.1).update(nn.Linear(2, 3), {"wight": smelt.zeros(3)}),
         "SGD.apply_gradients: wight is no parameter, but has a gradient"),
        (lambda: optimizers.SGD(0.1).update(nn.Sequential(nn.Linear(2, 3)), {"layers": [{"bias": smelt.zeros(2)}]}),
         r"SGD.apply_gradients: layers.0.bias is f32\[3\], its gradient f32\[2\]"),
        (lambda: optimizers.Adam(0.1).apply_gradients({"a": smelt.zeros(3)}, {"a": 1.0}),
         "Adam.apply_gradients: a is a float, which has no gradient"),
        (lambda: optimizers.SGD(0.1, nesterov=True), "nesterov needs a positive momentum"),
        (lambda: optimizers.Adam(0.1, betas=[0.9]), r"Adam: betas must be two numbers, is \[0.9\]"),
        (lambda: optimizers.AdamW(0.1, betas=(0.9, 1.0)), r"AdamW: betas\[1\] must be at least 0 and less than 1"),
        (lambda: optimizers.Lion(0.1, betas=(-0.1, 0.9)), r"Lion: betas\[0\] must be at least 0 and less than 1"),
        (lambda: optimizers.Adam(None), "Adam: learning_rate must be a number, or a function that gives one, is None"),
        (lambda: optimizers.AdamW(0.1, eps=-1.0), "AdamW: eps must be at least 0, is -1.0"),
        (lambda: optimizers.step_decay(0.1, 0.9, 0), "step_decay: step_size must be at least 1, is 0"),
        (lambda: optimizers.cosine_decay(0.1, -1), "cosine_decay: decay_steps must be at least 1, is -1"),
        (lambda: optimizers.RMSprop(0.1, alpha=-1.0), "RMSprop: alpha must be at least 0, is -1.0"),
        (lambda: optimizers.Adagrad(0.1, eps=-1.0), "Adagrad: eps must be at least 0"),
        (lambda: optimizers.Adamax(0.1, eps=-1.0), "Adamax: eps must be at least 0"),
        (lambda: optimizers.AdaDelta(0.1, rho=-1.0), "AdaDelta: rho must be at least 0"),
    ],
)  # fmt: skip
def test_errors_name_the_path(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message) as caught:
        call()
    assert "test_optimizers.py" in str(caught.value)
