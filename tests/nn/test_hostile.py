"""Hostile arguments of layers, losses, initializers and optimizers: errors of smelt, or results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers
from smelt.ir.errors import SmeltError

from ..frontend.test_hostile import HOSTILE, force

pytestmark = pytest.mark.usefixtures("small_heap")  # memory that is short has garbage collected

VALUES = ("None", "text", "object", "module", "function", "objects", "texts", "ragged", "endless", "dict", "no tuple",
          "-7", "1.5", "nan", "complex", "negative shape", "structure", "array", "empty array", "array of 64 axes",
          "long text")  # fmt: skip
#: Arguments of a valid call; 4 where nothing else is said.
VALID: dict[str, Any] = {
    "kernel_size": 3, "num_heads": 2, "num_groups": 2, "scale_factor": 2, "output_size": 2, "p": 0.5, "mode": "mean",
    "learning_rate": 0.1, "optimizers": [optimizers.SGD(0.1)], "layer": nn.Linear(4, 4), "name": "weight",
    "schedules": [optimizers.linear_schedule(0.0, 1.0, 4)], "boundaries": [], "sparsity": 0.5,
    "axis_1": smelt.ones((2, 4)), "labels": smelt.array([1, 2]), "max_norm": 1.0, "grads": {"w": smelt.ones(2)},
}  # fmt: skip
LAYERS = {n: c for n, c in vars(nn).items() if inspect.isclass(c) and issubclass(c, nn.Module) and c is not nn.Module}
SKIPPED = ("Optimizer", "MultiOptimizer")  # the latter takes optimizers
OPTIMIZERS = {
    n: getattr(optimizers, n) for n in optimizers.__all__ if callable(getattr(optimizers, n)) and n not in SKIPPED
}
LOSSES = {n: getattr(nn.losses, n) for n in nn.losses.__all__ if n != "ctc_loss"}
INITIALIZERS = {n: getattr(nn.init, n) for n in nn.init.__all__}
#: What is called with an argument that does not fit.
CALLED: dict[str, tuple[nn.Module, list[Any]]] = {
    "Linear": (nn.Linear(4, 4), [smelt.ones((2, 4))]), "Conv2d": (nn.Conv2d(4, 4, 3), [smelt.ones((1, 5, 5, 4))]),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 4, 3), [smelt.ones((1, 5, 4))]),
    "Embedding": (nn.Embedding(4, 4), [smelt.array([1, 2])]), "LayerNorm": (nn.LayerNorm(4), [smelt.ones((2, 4))]),
    "BatchNorm": (nn.BatchNorm(4), [smelt.ones((2, 4))]), "GroupNorm": (nn.GroupNorm(2, 4), [smelt.ones((2, 4))]),
    "InstanceNorm": (nn.InstanceNorm(4), [smelt.ones((2, 3, 4))]), "Dropout": (nn.Dropout(), [smelt.ones((2, 4))]),
    "Dropout2d": (nn.Dropout2d(), [smelt.ones((1, 2, 2, 4))]),
    "MultiHeadAttention": (nn.MultiHeadAttention(4, 2), [smelt.ones((1, 3, 4))] * 3),
    "TransformerEncoder": (nn.TransformerEncoder(1, 4, 2), [smelt.ones((1, 3, 4)), None]),
    "LSTM": (nn.LSTM(4, 4), [smelt.ones((2, 4))]), "MaxPool2d": (nn.MaxPool2d(2), [smelt.ones((1, 4, 4, 2))]),
    "Upsample": (nn.Upsample(2), [smelt.ones((1, 4, 4, 2))]), "RoPE": (nn.RoPE(4), [smelt.ones((1, 3, 4))]),
    "QuantizedLinear": (nn.QuantizedLinear(64, 4), [smelt.ones((2, 64))]),
    "Bilinear": (nn.Bilinear(4, 4, 4), [smelt.ones((2, 4))] * 2),
}  # fmt: skip


def problem(run: Callable[[], Any]) -> str:
    """What is wrong with how a call ends; nothing, if nothing is."""
    try:
        force(run())
    except SmeltError as error:
        return "" if len(str(error)) < 1500 else f"a message of {len(str(error))} characters"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def calls(function: Callable[..., Any], default: Any = 4) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments that are valid but for one."""
    parameters = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    valid = {p.name: VALID.get(p.name, default) for p in parameters if p.default is p.empty}
    for parameter in parameters:
        for what in VALUES:
            yield f"{parameter.name}={what}", {**valid, parameter.name: HOSTILE[what]()}


def wrong(function: Callable[..., Any], apply: Callable[[Any], Any] = repr, default: Any = 4) -> list[str]:
    found = [(what, problem(lambda a=arguments: apply(function(**a)))) for what, arguments in calls(function, default)]
    return [f"{what}: {text}" for what, text in found if text]


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_made(name: str) -> None:
    assert not (found := wrong(LAYERS[name])), "\n".join(found)


@pytest.mark.parametrize("name", LAYERS)
def test_errors_name_the_extent_that_is_negative(name: str) -> None:
    parameters = [p for p in inspect.signature(LAYERS[name]).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    valid = {p.name: VALID.get(p.name, 4) for p in parameters if p.default is p.empty}
    for extent in [p.name for p in parameters if p.annotation == "int" and "axis" not in p.name]:
        try:
            LAYERS[name](**{**valid, extent: -8})
        except SmeltError as error:
            assert extent in str(error).partition("; the arguments are")[0], error


@pytest.mark.parametrize("name", CALLED)
def test_layers_are_called(name: str) -> None:
    layer, given = CALLED[name]
    found = []
    for place in range(len(given)):
        for what in VALUES:
            args = [HOSTILE[what]() if i == place else x for i, x in enumerate(given)]
            if text := problem(lambda args=args: layer(*args)):
                found.append(f"{place}={what}: {text}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    assert not (found := wrong(LOSSES[name], lambda x: x, smelt.array([[0.1, 0.9], [0.5, 0.5]]))), "\n".join(found)


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name: str) -> None:
    make = INITIALIZERS[name]
    found = wrong(make, lambda f: f(smelt.zeros((4, 4))), 0.5)
    valid = make(0.5) if name in ("constant", "sparse") else make()
    found += [
        f"called with {what}: {text}" for what in VALUES if (text := problem(lambda what=what: valid(HOSTILE[what]())))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    kind = OPTIMIZERS[name]

    def step(optimizer: Any) -> Any:
        if callable(optimizer):
            return optimizer(3)
        if isinstance(optimizer, optimizers.Optimizer):
            gradients = {"w": smelt.ones((2, 2))}
            return optimizer.apply_gradients(gradients, gradients)["w"]
        return None

    found = wrong(kind, step, 0.1)
    if inspect.isclass(kind) and issubclass(kind, optimizers.Optimizer):
        for what in VALUES:
            for call in (
                lambda o, what: o.init(HOSTILE[what]()),
                lambda o, what: o.update(nn.Linear(2, 2), {"weight": HOSTILE[what]()}),
                lambda o, what: o.update(nn.Linear(2, 2), HOSTILE[what]()),
                lambda o, what: o.apply_gradients(HOSTILE[what](), {"w": smelt.ones(2)}),
            ):  # fmt: skip
                if text := problem(lambda call=call, what=what: call(kind(0.1), what)):
                    found.append(f"{what}: {text}")
    assert not found, "\n".join(found)


def test_errors_of_the_user_pass() -> None:
    class Mine(nn.Module):
        def __call__(self, x: Any) -> Any:
            raise KeyError("mine")

    def schedule(step: Any) -> Any:
        return {}["missing"]

    with pytest.raises(KeyError, match="mine"):
        nn.Sequential(nn.ReLU(), Mine())(smelt.ones(2))
    with pytest.raises(KeyError, match="missing"):
        optimizers.SGD(schedule).apply_gradients({"w": smelt.ones(2)}, {"w": smelt.ones(2)})
    with pytest.raises(SmeltError, match=r"Linear: input_dims must be an int, is 'a'; at .*test_hostile"):
        nn.Linear("a", 3)
    with pytest.raises(SmeltError, match=r"Linear: input_dims must be an int, is 8\.0; at .*test_hostile"):
        nn.Linear(8.0, 3)  # of which a function inside says that a shape consists of ints
    with pytest.raises(SmeltError, match=r"smelt.conv2d: input has 2 .*in Sequential\.layers\.0 \(Conv2d\)"):
        nn.Sequential(nn.Conv2d(3, 4, (3, 3)))(smelt.ones((1, 5, 5, 2)))  # arguments that fit are none of the error's
    with pytest.raises(SmeltError, match=r"Adam: .*'learning_rate'; there are no arguments; at .*test_hostile"):
        optimizers.Adam()  # type: ignore[call-arg]
    with pytest.raises(SmeltError, match=r"l1_loss: targets must be an array, is None"):
        nn.losses.l1_loss(np.ones(2), None)
    with pytest.raises(SmeltError, match=r"he_normal: a must be an array, is None"):
        nn.init.he_normal()(None)


LINEAR, X = nn.Linear(2, 2), smelt.ones((2, 3))
#: Calls, and what their errors say.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no layer": (lambda: nn.Sequential(nn.ReLU(), "a"), r"nn\.Sequential: modules\[1\]: needs a function, got a str"),
    "no function": (lambda: LINEAR.apply(3), r"nn\.Module\.apply: needs a function, got an int"),
    "None": (lambda: LINEAR.apply(None), r"nn\.Module\.apply: needs a function, got None"),
    "no visitor": (lambda: LINEAR.apply_to_modules(3), r"nn\.Module\.apply_to_modules: needs a function"),
    "no filter": (lambda: LINEAR.filter_and_map(None), r"nn\.Module\.filter_and_map: filter_fn: needs a function"),
    "mode": (lambda: LINEAR.train("a"), r"Module\.train: mode must be a bool, is 'a'"),
    "recurse": (lambda: LINEAR.freeze(recurse="no"), r"Module\.freeze: recurse must be a bool, is 'no'"),
    "strict": (lambda: LINEAR.unfreeze(strict="no"), r"Module\.unfreeze: strict must be a bool"),
    "keys": (lambda: LINEAR.freeze(keys=["a", 3]), r"Module\.freeze: keys are a text or a list of texts, got \['a"),
    "an array of keys": (lambda: LINEAR.unfreeze(keys=X), r"nn\.Module\.unfreeze: keys are a text or a list of texts"),
    "weights": (lambda: LINEAR.load_weights([3]), r"Linear: weights are the path of a file, or pairs .*, got 3"),
    "a path": (lambda: LINEAR.load_weights([(3, X)]), r"Linear: weights are the path of a file, or pairs"),
    "a weight": (lambda: LINEAR.load_weights([("weight", 3)]), r"Linear: weight must be a smelt\.array, is an int"),
    "a shape": (lambda: LINEAR.load_weights([("weight", X), ("bias", X[0, :2])]), r"Expected shape \(2, 2\)"),
    "no module": (lambda: optimizers.Adam(0.1).update(None, {}), r"Adam\.update: needs a module, got None"),
    "no state": (lambda: setattr(optimizers.Adam(0.1), "state", 3), r"Adam: a state is a dict, got an int"),
    "no optimizer": (lambda: optimizers.MultiOptimizer([3]), r"optimizers must be a list of optimizers, is \[3\]"),
    "no filters": (lambda: optimizers.MultiOptimizer([optimizers.SGD(0.1)] * 2, [3]), r"filters must be a list"),
    "an axis of a loss": (lambda: nn.losses.cross_entropy(X, [0, 1], axis=5), r"losses\.cross_entropy: max: axis 5"),
    "an axis of a sum": (lambda: nn.losses.kl_div_loss(X, X, axis=4), r"nn\.losses\.kl_div_loss: sum: axis 4"),
    "shapes of a loss": (lambda: nn.losses.kl_div_loss(X, X[:, :2]), r"nn\.losses\.kl_div_loss: subtract: shapes"),
    "an axis of an activation": (lambda: nn.glu(X, axis=7), r"nn\.glu: split: axis 7 out of range"),
    **{f"{made.__qualname__}": (lambda made=made: made(nn.LayerNorm(3)), r"needs a layer whose weight is a matrix")
       for made in (nn.QuantizedLinear.from_linear, nn.QQLinear.from_linear, nn.AllToShardedLinear.from_linear,
                    nn.ShardedToAllLinear.from_linear, nn.QuantizedEmbedding.from_embedding)},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(SmeltError, match=rf"{message}.*; at .*test_hostile"):
        call()


METHODS: dict[str, Callable[[Any], Any]] = {
    "freeze": lambda v: nn.Linear(2, 2).freeze(keys=v), "unfreeze": lambda v: nn.Linear(2, 2).unfreeze(keys=v),
    "update": lambda v: nn.Linear(2, 2).update(v), "update_modules": lambda v: nn.Linear(2, 2).update_modules(v),
    "apply_to_modules": lambda v: nn.Linear(2, 2).apply_to_modules(v),
    "from_linear": lambda v: nn.QuantizedLinear.from_linear(v), "from_embedding": nn.QuantizedEmbedding.from_embedding,
    "sharded": lambda v: nn.AllToShardedLinear.from_linear(v),
    "state": lambda v: setattr(optimizers.SGD(0.1), "state", v),
    "set_dtype": lambda v: nn.Linear(2, 2).set_dtype(v), "train": lambda v: nn.Linear(2, 2).train(v),
    "apply": lambda v: nn.Linear(2, 2).apply(v), "filter_and_map": lambda v: nn.Linear(2, 2).filter_and_map(v),
    "load_weights": lambda v: nn.Linear(2, 2).load_weights(v),
    "quantize": lambda v: nn.quantize(v), "quantize some": lambda v: nn.quantize(nn.Linear(64, 64), class_predicate=v),
    "value_and_grad": lambda v: nn.value_and_grad(nn.Linear(2, 2), v)(smelt.ones((1, 2))),
    "average_gradients": lambda v: nn.average_gradients(v),
    "attribute": lambda v: (lambda m: (setattr(m, "x", v), repr(m), m.parameters()))(nn.Linear(2, 2)) and None,
    "index": lambda v: smelt.zeros((2, 3)).__setitem__(v, 1.0), "rope": lambda v: smelt.fast.rope(
        smelt.ones((1, 2, 4)), 4, traditional=v, base=1e4, scale=1.0, offset=0),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    found = []
    for what in VALUES:
        if name == "load_weights" and what in ("text", "long text"):
            continue  # the file system's error
        if text := problem(lambda what=what: METHODS[name](HOSTILE[what]())):
            found.append(f"{what}: {text}")
    assert not [x for x in found if not x.startswith("function")], "\n".join(found)


def test_files_that_are_closed(tmp_path: Any) -> None:
    x = smelt.ones(2)
    with open(tmp_path / "x", "wb") as file:
        pass
    for write in (
        lambda: smelt.save(file, x), lambda: smelt.savez(file, x), lambda: smelt.save_safetensors(file, {"x": x}),
        lambda: smelt.load(file),
    ):  # fmt: skip
        with pytest.raises((SmeltError, OSError)):
            write()
