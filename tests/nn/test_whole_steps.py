"""What all optimizers, and functions that change modules, owe: a step or change is made as a whole, or not at all; and
steps go where gradients do, of complex numbers and of arrays without elements, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.ir.errors import SmeltError
from smelt.utils import tree_flatten

from .checks import rng_of

pytestmark = pytest.mark.tier("ops")

#: One of each class that has steps of its own.
CLASSES = [
    found for name in optimizers.__all__
    if isinstance(found := getattr(optimizers, name), type) and issubclass(found, optimizers.Optimizer)
    and found not in (optimizers.Optimizer, optimizers.MultiOptimizer)
]  # fmt: skip
#: Optimizers, alone and together.
MAKERS: dict[str, Callable[[], optimizers.Optimizer]] = {
    **{found.__name__: lambda found=found: found(learning_rate=0.1) for found in CLASSES},
    "several": lambda: optimizers.MultiOptimizer(
        [optimizers.Adam(0.1), optimizers.MultiOptimizer([optimizers.LBFGS(), optimizers.SGD(0.1, 0.9)],
                                                         [lambda path, _: path == "b"])],
        [lambda path, _: path == "a"],
    ),
    "scheduled": lambda: optimizers.AdamW(optimizers.linear_schedule(0.1, 0.0, 10)),
}  # fmt: skip


def host(x: smelt.array) -> np.ndarray:
    return np.asarray(x.astype(smelt.float32) if x.dtype in (smelt.float16, smelt.bfloat16) else x)


def close(found: Any, wanted: Any, tolerance: float) -> None:
    np.testing.assert_allclose(host(found) if isinstance(found, smelt.array) else found, wanted, tolerance, tolerance)


def arrays(seed: str, **shapes: tuple[int, ...]) -> dict[str, smelt.array]:
    rng = rng_of(seed)
    return {name: smelt.array(rng.standard_normal(shape).astype(np.float32)) for name, shape in shapes.items()}


def bits(tree: Any) -> list[tuple[str, Any]]:
    return [(path, host(x).tobytes()) for path, x in tree_flatten(tree)]


def holders(state: Any) -> list[int]:
    """The identities of the dicts and lists of a state, which compiled steps capture."""
    inside = list(state.values()) if isinstance(state, dict) else state if isinstance(state, list) else []
    return [id(state), *(i for x in inside for i in holders(x))] if isinstance(state, (dict, list)) else []


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_a_step_that_fails_leaves_the_state_as_it_was(name: str, begun: bool) -> None:
    shapes = {"a": (3, 2), "b": (4,), "c": (2, 2)}
    parameters, gradients = arrays("parameters", **shapes), arrays("gradients", **shapes)
    one, other = MAKERS[name](), MAKERS[name]()
    if begun:
        for optimizer in (one, other):
            optimizer.apply_gradients(gradients, parameters)
    members = one._members()
    before = [(bits(m.state), holders(m.state)) for m in members]
    wrong = {**gradients, "c": smelt.ones(3)}
    with pytest.raises(SmeltError):
        one.apply_gradients(wrong, parameters)
    assert [(bits(m.state), holders(m.state)) for m in members] == before
    found, wanted = (optimizer.apply_gradients(gradients, parameters) for optimizer in (one, other))
    assert bits(found) == bits(wanted)
    assert [bits(m.state) for m in members] == [bits(m.state) for m in other._members()]


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "several"])
def test_one_array_is_a_tree(name: str) -> None:
    (p,), (g,) = (arrays(seed, x=(3, 2)).values() for seed in ("p", "g"))
    alone, in_a_dict = MAKERS[name](), MAKERS[name]()
    alone.init(p)
    for _ in range(2):
        close(alone.apply_gradients(g, p), host(in_a_dict.apply_gradients({"x": g}, {"x": p})["x"]), 0)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("name", MAKERS)
def test_parameters_without_elements(name: str, shape: tuple[int, ...]) -> None:
    tree = {"a": smelt.zeros(shape), "b": smelt.ones(2)}
    found = MAKERS[name]().apply_gradients(tree, tree)
    assert found["a"].shape == shape and np.isfinite(host(found["b"])).all()


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("LBFGS", "several")])
def test_complex_steps_turn_with_their_gradients(name: str) -> None:
    """What a step makes of turned numbers is what it makes of these, turned: no part of them is scaled by itself. And
    complex numbers that are real take the steps of these."""
    shapes = {"a": (3, 2), "b": (4,), "c": (2, 2)}
    real, push = arrays("real", **shapes), arrays("push", **shapes)
    turn = np.complex64(0.6 + 0.8j)

    def steps(factor: Any) -> Any:
        optimizer, parameters = MAKERS[name](), {k: x * factor for k, x in real.items()}
        for i in range(3):
            gradients = {k: (x + i * parameters[k] * (1 / factor)) * factor for k, x in push.items()}
            parameters = optimizer.apply_gradients(gradients, parameters)
        return parameters

    plain, turned = steps(1.0), steps(turn)
    for k, x in plain.items():
        close(host(turned[k]) / turn, host(x).astype(np.complex64), 1e-3 if name == "Muon" else 2e-5)


def test_lbfgs_moves_both_parts_of_complex_numbers() -> None:
    goal = smelt.array([1 - 2j, 3j])
    start = smelt.zeros_like(goal)
    found, value = optimizers.LBFGS().minimize(lambda z: smelt.square(smelt.abs(z - goal)).sum(), start)
    assert value.item() < 1e-8
    close(found, host(goal), 1e-3)


@pytest.mark.parametrize("clip", [optimizers.clip_grad_norm, nn.utils.clip_grad_norm_sharded])
def test_clipping_complex_gradients(clip: Any) -> None:
    tree, norm = clip({"a": smelt.array([3 + 4j]), "b": smelt.array([0.0, 12.0])}, 6.5)
    close(norm, np.float32(13), 1e-6)
    close(tree["a"], np.array([1.5 + 2j], np.complex64), 1e-6)
    close(tree["b"], np.array([0, 6], np.float32), 1e-6)


# Modules


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 2)), nn.Linear(2, 2, bias=False))


CHANGES: dict[str, Callable[[nn.Sequential], Any]] = {
    "update": lambda m: m.update({"layers": [{"weight": smelt.zeros((3, 2))}, {}, {"bias": smelt.zeros(2)}]}),
    "update with no array": lambda m: m.update({"layers": [{"weight": smelt.zeros((3, 2))}, {"layers": 1}]}),
    "apply": lambda m: m.apply(lambda x: x if x.ndim == 2 else None),
    "update_modules": lambda m: m.update_modules({"layers": [nn.ReLU(), {"layers": [nn.ReLU(), nn.ReLU()]}]}),
    "load_weights": lambda m: m.load_weights([("layers.0.weight", smelt.zeros((3, 2)))]),
    "freeze": lambda m: m.layers[1].freeze(keys=["weight"], strict=True),
    "unfreeze": lambda m: m.freeze(keys="bias").unfreeze(keys=["bias"], strict=True),
    "quantize": lambda m: nn.quantize(m, 2, 4),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_fails_leaves_the_module_as_it_was(name: str) -> None:
    model = two_layers()
    if name == "unfreeze":
        model.freeze(keys="bias")
    before, shown, trained = bits(model.parameters()), repr(model), bits(model.trainable_parameters())
    with pytest.raises(SmeltError):
        CHANGES[name](model)
    assert (bits(model.parameters()), repr(model), bits(model.trainable_parameters())) == (before, shown, trained)


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float16, smelt.bfloat16])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_many_integers(mode: Any, dtype: smelt.Dtype) -> None:
    """Bags by offsets are bags of one length, also where the sums are far beyond what halves count."""
    bags = nn.EmbeddingBag(8, 3, mode)
    bags.weight = smelt.array(rng_of("bags").uniform(0.25, 1, (8, 3)).astype(np.float32)).astype(dtype)
    x = smelt.array(rng_of("integers").integers(0, 8, (2, 6000)), smelt.int32)
    found = bags(x.reshape(-1), offsets=smelt.array([0, 6000, 12000]))
    close(found[:2], host(bags(x)), 3e-5 if dtype is smelt.float32 else 8e-3)
    assert host(found[2]).tolist() == [0, 0, 0] and found.dtype is dtype
