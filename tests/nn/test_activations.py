"""Activations against formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

import smelt
from smelt import nn
from smelt.ir.settings import settings

from .checks import TOLERANCE, check_gradient, close, rng_of


def sigmoid(x: np.ndarray) -> np.ndarray:
    return special.expit(x)


def softmax(x: np.ndarray) -> np.ndarray:
    return special.softmax(x, -1)


FORMULAS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "softmax": softmax,
    "softmin": lambda x: softmax(-x),
    "log_softmax": lambda x: special.log_softmax(x, -1),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)),
    "selu": lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.logaddexp(x, 0),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "gelu": lambda x: x * special.ndtr(x),
    "gelu_approx": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_fast_approx": lambda x: x * sigmoid(1.702 * x),
    "glu": lambda x: x[..., : x.shape[-1] // 2] * sigmoid(x[..., x.shape[-1] // 2 :]),
    "step": lambda x: (x >= 0).astype(float),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
}
#: The module of each function.
MODULES = {
    "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU, "relu2": nn.ReLU2, "relu6": nn.ReLU6,
    "leaky_relu": nn.LeakyReLU, "softmax": nn.Softmax, "softmin": nn.Softmin, "log_softmax": nn.LogSoftmax,
    "elu": nn.ELU, "celu": nn.CELU, "selu": nn.SELU, "silu": nn.SiLU, "softplus": nn.Softplus,
    "log_sigmoid": nn.LogSigmoid, "softsign": nn.Softsign, "softshrink": nn.Softshrink, "hard_shrink": nn.HardShrink,
    "gelu": nn.GELU, "glu": nn.GLU, "step": nn.Step, "mish": nn.Mish, "hardswish": nn.Hardswish,
    "hard_tanh": nn.HardTanh,
}  # fmt: skip


def points(name: str, scale: float = 2.0) -> np.ndarray:
    """Random ones, away from where any of the functions bends."""
    x = scale * rng_of(name).standard_normal((5, 8))
    for bend in (-3, -1, -0.5, 0, 0.5, 1, 3, 6):
        x = np.where(np.abs(x - bend) < 0.02, x + 0.05, x)
    return x


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", FORMULAS)
def test_values(name: str, dtype: str) -> None:
    settings.tier = "program" if dtype == "float32" else "ops"
    x = smelt.array(points(name)).astype(getattr(smelt, dtype))
    found = getattr(nn, name)(x)
    assert found.dtype is (smelt.int32 if name == "step" else x.dtype)
    close(found, FORMULAS[name](np.asarray(x.astype(smelt.float32)).astype(np.float64)), dtype)


@pytest.mark.parametrize("name", [n for n in FORMULAS if n != "step"])
def test_gradients(name: str) -> None:
    settings.tier = "ops"
    check_gradient(getattr(nn, name), points(name))


@pytest.mark.parametrize("dtype", ["bool_", "int8", "uint8", "int16", "uint16", "int32", "uint64"])
@pytest.mark.parametrize("name", [n for n in FORMULAS if n != "relu2"])
def test_integers_are_the_numbers_that_they_are(name: str, dtype: str) -> None:
    """Nothing wraps on the way to the result, which is that of the same numbers in float64. A square stays an int."""
    settings.tier = "ops"
    numbers = [-128, -127, -40, -3, -2, -1, 0, 1, 2, 3, 6, 20, 40, 127, 200, 255, 32767, 65535]
    low, high = (0, 1) if dtype == "bool_" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    fitting = [n for n in numbers if low <= n <= high]
    x = smelt.array(fitting[: len(fitting) // 2 * 2]).astype(getattr(smelt, dtype))
    found, want = (np.asarray(getattr(nn, name)(v)) for v in (x, x.astype(smelt.float64)))
    np.testing.assert_allclose(found.astype(np.float64), want, rtol=1e-5, atol=1e-6)


BENDS = np.array([-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0])
#: Where both sides do, the first is MLX's and PyTorch's.
AT_ZERO = {"relu": 0.0, "relu6": 0.0, "leaky_relu": 1.0, "elu": 1.0, "celu": 1.0, "selu": 1.0507 * 1.67326}


@pytest.mark.parametrize("name", [n for n in FORMULAS if n not in ("step", "softmax", "softmin", "log_softmax", "glu")])
def test_gradients_at_bends_are_those_of_one_side(name: str) -> None:
    """Units that are exactly zero are common; half a slope is no slope of a function that has only one there."""
    settings.tier = "ops"
    found = np.asarray(smelt.grad(lambda x: getattr(nn, name)(x).sum())(smelt.array(BENDS, smelt.float64)))
    h, f = 1e-6, FORMULAS[name]
    with np.errstate(all="ignore"):  # hard_shrink jumps
        sides = [(f(BENDS + s * 2 * h) - f(BENDS + s * h)) / (s * h) for s in (-1, 1)]
    assert np.min(np.abs(np.stack(sides) - found), axis=0).max() < 1e-4
    if name in AT_ZERO:
        np.testing.assert_allclose(found[3:5], AT_ZERO[name], atol=1e-6)
    if "shrink" not in name:  # there NaN is 0, as in MLX
        assert smelt.isnan(getattr(nn, name)(smelt.array(np.nan))).item()


@pytest.mark.parametrize("name", [n for n in FORMULAS if n not in ("step", "softmax", "softmin", "glu")])
def test_gradients_far_out_are_finite(name: str) -> None:
    settings.tier = "ops"
    far = smelt.array([-200.0, -30.0, 0.0, 30.0, 200.0])
    assert smelt.isfinite(smelt.grad(lambda x: getattr(nn, name)(x).sum())(far)).all().item()


#: What is finite or linear at infinities, with its slopes there: of -inf, of inf.
AT_INFINITIES = {
    "sigmoid": ([0, 1], [0, 0]), "tanh": ([-1, 1], [0, 0]), "relu": ([0, np.inf], [0, 1]),
    "relu6": ([0, 6], [0, 0]), "leaky_relu": ([-np.inf, np.inf], [0.01, 1]), "elu": ([-1, np.inf], [0, 1]),
    "celu": ([-1, np.inf], [0, 1]), "softplus": ([0, np.inf], [0, 1]), "log_sigmoid": ([-np.inf, 0], [1, 0]),
    "softshrink": ([-np.inf, np.inf], [1, 1]), "hard_shrink": ([-np.inf, np.inf], [1, 1]),
    "hardswish": ([0, np.inf], [0, 1]), "hard_tanh": ([-1, 1], [0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("device", ["ops", "cpu", "metal:sim"])
@pytest.mark.parametrize("name", AT_INFINITIES)
def test_infinities_and_the_largest_numbers(name: str, device: str) -> None:
    settings.tier = "ops" if device == "ops" else "program"
    function, (values, slopes) = getattr(nn, name), AT_INFINITIES[name]
    slope = smelt.grad(lambda x: function(x).sum())
    with smelt.stream("cpu" if device == "ops" else device):
        for dtype in (smelt.float32, smelt.float16, smelt.bfloat16):
            largest = float(smelt.finfo(dtype).max)
            x = smelt.array([-np.inf, np.inf, -largest, largest, np.nan]).astype(dtype)
            found, slants = smelt.compile(lambda x: (function(x), slope(x)))(x)
            want = [v if np.isfinite(v) else np.copysign(largest, v) for v in values]
            want[0] *= 0.01 if name == "leaky_relu" else 1
            found, slants = (np.asarray(v.astype(smelt.float64)) for v in (found, slants))
            np.testing.assert_allclose(found[:2], values)
            np.testing.assert_allclose(found[2:4], want, 1e-2)
            np.testing.assert_allclose(slants[:4], [*slopes, *slopes], 5e-3)
            assert np.isnan(found[4]) or "shrink" in name


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_the_functions(name: str) -> None:
    settings.tier = "ops"
    module, x = MODULES[name](), smelt.array(points(name))
    assert smelt.array_equal(module(x), getattr(nn, name)(x)).item()
    assert module.parameters() == {}


def test_options() -> None:
    settings.tier = "ops"
    x = smelt.array([-2.0, -0.25, 3.0])
    assert nn.LeakyReLU(0.5)(x).tolist() == [-1.0, -0.125, 3.0]
    assert nn.hard_tanh(x, -0.5, 0.5).tolist() == [-0.5, -0.25, 0.5]
    assert nn.Step(-1.0)(x).tolist() == [0, 1, 1] and nn.Step(3.0)(x).tolist() == [0, 0, 1]
    assert smelt.grad(lambda x: nn.prelu(x, smelt.array(0.25)))(smelt.array(0.0)).item() == 0.25
    assert smelt.grad(lambda x: nn.leaky_relu(x))(smelt.array(np.inf)).item() == 1.0
    assert nn.HardShrink(1.0)(x).tolist() == [-2.0, 0.0, 3.0]
    assert nn.Softshrink(1.0)(x).tolist() == [-1.0, 0.0, 2.0]
    assert smelt.allclose(nn.ELU(2.0)(x), nn.elu(x, 2.0)).item()
    assert smelt.allclose(nn.CELU(2.0)(x), smelt.maximum(x, 0) + 2 * smelt.expm1(smelt.minimum(x, 0) / 2)).item()
    assert nn.GLU(axis=0)(smelt.zeros((4, 3))).shape == (2, 3)
    assert smelt.array_equal(nn.GELU("tanh")(x), nn.gelu_approx(x)).item()
    assert smelt.array_equal(nn.GELU("fast")(x), nn.gelu_fast_approx(x)).item()
    with pytest.raises(smelt.SmeltError, match=r"GELU: approx must be one of none, precise, tanh, fast.*is 'x'"):
        nn.GELU("x")


def test_prelu_has_a_slope_for_each_feature() -> None:
    settings.tier = "ops"
    layer = nn.PReLU(2, 0.5)
    assert layer(smelt.array([[-2.0, 3.0]])).tolist() == [[-1.0, 3.0]]
    gradients = nn.value_and_grad(layer, lambda x: layer(x).sum())(smelt.array([[-2.0, 3.0]]))[1]
    assert gradients["weight"].tolist() == [-2.0, 0.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_slopes_far_from_zero(dtype: str) -> None:
    """Where powers of x overflow the slope of what is x or 0 is 1 or 0."""
    most = float(smelt.finfo(getattr(smelt, dtype)).max) / 4
    x = smelt.array([9.0, 11.0, 300.0, most, -11.0, -300.0, -most], getattr(smelt, dtype))
    for f in (nn.gelu, nn.gelu_approx, nn.gelu_fast_approx, nn.silu, nn.mish, nn.softplus):
        slope = smelt.grad(lambda x, f=f: f(x).sum())
        for found in (slope(x), smelt.compile(slope)(x)):
            np.testing.assert_allclose(
                np.asarray(found.astype(smelt.float32)), [1, 1, 1, 1, 0, 0, 0], atol=2e-3, err_msg=f.__name__
            )
