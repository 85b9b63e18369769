"""Errors inside of models name the path of the layer; what does not fit a model, the path of the parameter."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn, optimizers


class Block(nn.Module):
    """Holds layers in every way: as entries, in lists, in dicts, inside of others."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.inner = [nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 5)), {"last": nn.Linear(4, 2)}]

    def __call__(self, x: smelt.array) -> smelt.array:
        sequence, named = self.inner
        return self.head(named["last"], sequence(self.first(x)))

    def head(self, layer: nn.Module, x: smelt.array) -> smelt.array:
        return layer(x)


CALLS: dict[str, Callable[[nn.Module], Callable[[smelt.array], Any]]] = {
    "plain": lambda model: model,
    "compiled": lambda model: smelt.compile(model),
    "checkpoint": lambda model: nn.utils.checkpoint(model),
    "vmap": lambda model: smelt.vmap(model),
    "gradient": lambda model: nn.value_and_grad(model, lambda x: model(x).sum()),
}


@pytest.mark.parametrize("way", CALLS)
def test_a_call_names_the_layer(way: str) -> None:
    with pytest.raises(smelt.SmeltError) as caught:
        CALLS[way](Block())(smelt.ones((2, 3)))
    assert "; in Block.inner.1.last (Linear); at " in str(caught.value)
    assert str(caught.value).startswith("smelt.matmul: lhs has 5 ")
    with pytest.raises(smelt.SmeltError, match=r"; in Block\.first \(Linear\); at "):
        CALLS[way](Block())(smelt.ones((2, 4)))


def test_quantizing_names_the_layer() -> None:
    with pytest.raises(smelt.SmeltError, match=r"groups of 64; w f32\[4,3\]; in Block\.first \(Linear\); at "):
        nn.quantize(Block())
    with pytest.raises(smelt.SmeltError, match=r"in Block\.inner\.1\.last \(Linear\); at "):
        nn.quantize(Block(), 3, 5, class_predicate=lambda path, module: path.endswith("last"))


def test_a_layer_that_is_made_for_a_call_is_part_of_the_method_that_calls_it() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = [Made(), Made()]

        def __call__(self, x: smelt.array) -> smelt.array:
            return self.blocks[1](x)

    class Made(nn.Module):
        def __call__(self, x: smelt.array) -> smelt.array:
            return nn.Linear(3, 4)(x)

    with pytest.raises(smelt.SmeltError, match=r"; in Outer\.blocks\.1 \(Made\); at "):
        Outer()(smelt.ones((2, 5)))


def test_an_error_keeps_nothing_of_the_functions_that_it_passes() -> None:
    """Python's copies of their variables would, until they end."""

    class Value:
        pass

    def caller(value: Value | None) -> Any:
        seen = weakref.ref(value)
        with pytest.raises(smelt.SmeltError):
            smelt.ones((2, 3)) @ smelt.ones((2, 3))
        value = None
        return seen()

    found = caller(Value())
    assert found is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects do not know their class")
def test_methods_that_call_their_module_otherwise() -> None:
    class Other(nn.Module):
        def __init__(this) -> None:
            super().__init__()
            this.layers = [nn.Linear(3, 4), nn.Linear(5, 2)]

        def __call__(this, x: smelt.array) -> smelt.array:
            for layer in this.layers:
                x = layer(x)
            return x

    with pytest.raises(smelt.SmeltError, match=r"; in Other\.layers\.1 \(Linear\); at "):
        Other()(smelt.ones((2, 3)))


def test_errors_of_layers_name_their_path_too() -> None:
    model = nn.Sequential(nn.Sequential(nn.BatchNorm(3)))
    message = r"BatchNorm: needs .*; in Sequential\.layers\.0\.layers\.0 \(BatchNorm\)"
    with pytest.raises(smelt.SmeltError, match=message):
        model(smelt.ones(3))


def test_a_layer_alone_has_no_path() -> None:
    with pytest.raises(smelt.SmeltError) as caught:
        nn.Linear(3, 4)(smelt.ones((2, 5)))
    assert "; in " not in str(caught.value)


def test_modules_that_do_not_hold_each_other() -> None:
    """A module that calls one that it does not hold: the innermost holder counts."""

    class Caller(nn.Module):
        def __call__(self, x: smelt.array) -> smelt.array:
            return block(x)

    block = Block()
    with pytest.raises(smelt.SmeltError, match=r"; in Block\.inner\.1\.last \(Linear\); at "):
        Caller()(smelt.ones((2, 3)))


def one(value: Any) -> dict[str, Any]:
    return {"weight": smelt.ones((1, 2)), "bias": value}


class Plain(optimizers.Optimizer):
    pass


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda m: m.load_weights(list(one(smelt.ones(2)).items())), ValueError,
         r"Linear: Expected shape \(1,\) but received shape \(2,\) for parameter bias, which is f32\[1\]"),
        (lambda m: m.load_weights(list(one(smelt.ones(1, smelt.int32)).items())), TypeError,
         r"Linear: bias is f32\[1\], got i32\[1\] for it; convert it"),
        (lambda m: m.load_weights([("bias", smelt.ones(1))]), TypeError, "Linear: Missing 1 parameters: weight;"),
        (lambda m: m.load_weights([*one(smelt.ones(1)).items(), ("more", smelt.ones(1))]), TypeError,
         "Linear: Received 1 parameters not in model: more;"),
        (lambda m: m.update({"more": smelt.ones(1)}), TypeError, "Linear has no parameter more"),
        (lambda m: optimizers.SGD(0.1).update(m, {"bias": smelt.ones(2)}), ValueError,
         r"SGD.*bias is f32\[1\], its gradient f32\[2\]"),
        (lambda m: optimizers.SGD(0.1).update(m, {"bias": smelt.ones(1, smelt.int32)}), TypeError,
         r"SGD.*bias is f32\[1\], its gradient i32\[1\], of integers"),
        (lambda m: optimizers.SGD(0.1).update(m, {"bias": smelt.ones(1, smelt.complex64)}), TypeError,
         r"SGD.*bias is f32\[1\], its gradient complex<f32>\[1\], of complex numbers"),
        (lambda m: optimizers.SGD(0.1).update(m, {"bias": np.ones(1)}), TypeError,
         r"SGD.*bias is f32\[1\], its gradient a ndarray"),
        (lambda m: optimizers.SGD(0.1).update(m, None), TypeError, "SGD.*gradients must be a tree of arrays, is None"),
        (lambda m: optimizers.SGD(0.1).update(m, {"b": smelt.ones(1)}), TypeError, "SGD.*: b is no parameter"),
        (lambda m: nn.value_and_grad(m.freeze(), lambda: m.bias.sum())(), TypeError,
         "no parameter of Linear is trainable"),
        (lambda m: Plain().update(m, {"bias": smelt.ones(1)}), NotImplementedError,
         r"Plain defines no apply_single\(gradient, parameter, state\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit(call: Callable[[nn.Module], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message) as caught:
        call(nn.Linear(2, 1))
    assert isinstance(caught.value, error)
    assert "test_places.py:" in str(caught.value)


@pytest.mark.parametrize(
    "layer, shapes, message",
    [
        (nn.BatchNorm(4), [(2, 5)], r"BatchNorm: x has 5 channels, weight 4; x f32\[2,5\], weight f32\[4\]"),
        (nn.BatchNorm(4, affine=False), [(2, 5)], "BatchNorm: x has 5 channels, running_mean 4; "),
        (nn.GroupNorm(2, 4), [(2, 3, 6)], "GroupNorm: x has 6 channels, weight 4; "),
        (nn.InstanceNorm(4, affine=True), [(2, 3, 6)], "InstanceNorm: x has 6 channels, weight 4; "),
        (nn.Bilinear(3, 4, 5), [(2, 3), (2, 3)], r"Bilinear: needs .* x1 f32\[2,3\], x2 f32\[2,3\]"),
        (nn.Bilinear(3, 4, 5), [(2, 3), (3, 4)], r"Bilinear: needs .* x1 f32\[2,3\], x2 f32\[3,4\]"),
        (nn.RNN(3, 4), [(2, 5, 3), (2, 5)], r"RNN: a state .* the shape \(2, 4\); it is f32\[2,5\]"),
        (nn.GRU(3, 4), [(2, 5, 3), (3, 4)], r"GRU: a state .* the shape \(2, 4\); it is f32\[3,4\]"),
        (nn.LSTM(3, 4), [(5, 3), (2, 4)], r"LSTM: a state .* the shape \(4,\); it is f32\[2,4\]"),
    ],
)  # fmt: skip
def test_layers_say_what_they_are_for(layer: nn.Module, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^smelt\.nn\.{message}"):
        layer(*(smelt.ones(shape) for shape in shapes))


def test_what_broadcasts_is_for_all_channels() -> None:
    """As in MLX."""
    x = smelt.ones((2, 5, 6))
    assert nn.GroupNorm(1, 1)(x).shape == nn.BatchNorm(1)(x).shape == x.shape
    assert nn.Bilinear(3, 4, 5)(smelt.ones((2, 3, 3)), smelt.ones((4,))).shape == (2, 3, 5)
    assert nn.RNN(3, 4)(smelt.ones((2, 5, 3)), smelt.ones((4,))).shape == (2, 5, 4)


def test_half_precision_is_loaded_for_single() -> None:
    layer = nn.Linear(2, 1).load_weights([(k, x.astype(smelt.float16)) for k, x in one(smelt.ones(1)).items()])
    assert layer.bias.dtype is smelt.float16


def test_the_table_of_a_notebook() -> None:
    text = nn.Sequential(nn.Linear(2, 3).freeze(keys="bias"), nn.ReLU())._repr_html_()
    assert text.startswith("<table><tr><th") and text.count("<tr>") == 5
    for cell in ("layers.0", "weight f32[3,2], (bias f32[3])", "6 elements trained of 9", ">36<"):
        assert cell in text


def test_activations_and_upsampling_under_their_modules() -> None:
    found = {name for name in nn.layers.activations.__all__ if name[0].isupper()}
    assert len(found) == 25 and all(getattr(nn, name) is getattr(nn.layers.activations, name) for name in found)
    x = smelt.array([[[1.0], [3.0]]])
    functions = nn.layers.upsample
    for mode in ("nearest", "linear", "cubic"):
        found = getattr(functions, f"upsample_{mode}")(x, (2,))
        assert smelt.array_equal(found, nn.Upsample((2,), mode)(x)).item()
