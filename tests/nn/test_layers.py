"""Layers against formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.ir.settings import settings
from smelt.utils import tree_flatten

from .checks import TOLERANCE, check_gradient, close, host, rng_of

pytestmark = pytest.mark.tier("ops")


def normalized(x: np.ndarray, axes: Any, eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def grouped(x: np.ndarray, groups: int, neighbours: bool) -> np.ndarray:
    parts = np.arange(x.shape[-1]) // (x.shape[-1] // groups) if neighbours else np.arange(x.shape[-1]) % groups
    found = np.empty_like(x)
    for g in range(groups):
        found[..., parts == g] = normalized(x[..., parts == g], tuple(range(1, x.ndim)))
    return found


#: Layer, shapes of arguments, what it computes of the parameters (by path) and the arguments.
Formula = Callable[..., np.ndarray]
CASES: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]], Formula]] = {
    "Linear": (lambda: nn.Linear(3, 4), [(2, 5, 3)], lambda p, x: x @ p["weight"].T + p["bias"]),
    "Linear without bias": (lambda: nn.Linear(3, 4, bias=False), [(3,)], lambda p, x: p["weight"] @ x),
    "Identity": (nn.Identity, [(2, 3)], lambda p, x: x),
    "Bilinear": (
        lambda: nn.Bilinear(3, 4, 5), [(2, 6, 3), (2, 6, 4)],
        lambda p, x, y: np.einsum("kji,...i,...j->...k", p["weight"], x, y) + p["bias"],
    ),
    "Bilinear without bias": (
        lambda: nn.Bilinear(3, 4, 5, bias=False), [(3,), (4,)],
        lambda p, x, y: np.einsum("kji,i,j->k", p["weight"], x, y),
    ),
    "LayerNorm": (lambda: nn.LayerNorm(6), [(2, 3, 6)], lambda p, x: normalized(x, -1) * p["weight"] + p["bias"]),
    "LayerNorm without bias": (
        lambda: nn.LayerNorm(6, eps=0.1, bias=False), [(3, 6)], lambda p, x: normalized(x, -1, 0.1) * p["weight"],
    ),
    "LayerNorm alone": (lambda: nn.LayerNorm(6, affine=False), [(3, 6)], lambda p, x: normalized(x, -1)),
    "RMSNorm": (
        lambda: nn.RMSNorm(6), [(2, 3, 6)],
        lambda p, x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * p["weight"],
    ),
    "InstanceNorm": (lambda: nn.InstanceNorm(3), [(2, 5, 4, 3)], lambda p, x: normalized(x, (1, 2))),
    "InstanceNorm with weights": (
        lambda: nn.InstanceNorm(3, affine=True), [(2, 5, 3)],
        lambda p, x: normalized(x, 1) * p["weight"] + p["bias"],
    ),
    "GroupNorm": (
        lambda: nn.GroupNorm(2, 6), [(2, 3, 4, 6)], lambda p, x: grouped(x, 2, False) * p["weight"] + p["bias"],
    ),
    "GroupNorm of neighbours": (
        lambda: nn.GroupNorm(3, 6, affine=False, pytorch_compatible=True), [(2, 5, 6)],
        lambda p, x: grouped(x, 3, True),
    ),
    "BatchNorm": (lambda: nn.BatchNorm(3), [(4, 5, 3)], lambda p, x: normalized(x, (0, 1)) * p["weight"] + p["bias"]),
    "BatchNorm of running means": (
        lambda: nn.BatchNorm(3).eval(), [(4, 3)],
        lambda p, x: (x - p["running_mean"]) / np.sqrt(p["running_var"] + 1e-5) * p["weight"] + p["bias"],
    ),
    "BatchNorm alone": (
        lambda: nn.BatchNorm(3, affine=False, track_running_stats=False).eval(), [(4, 3)],
        lambda p, x: normalized(x, 0),
    ),
}  # fmt: skip


def made(name: str, dtype: Any) -> tuple[nn.Module, list[np.ndarray], list[smelt.array], np.ndarray]:
    make, shapes, formula = CASES[name]
    rng = rng_of(name)
    layer = make()
    layer.apply(lambda x: smelt.array(rng.uniform(0.5, 1.5, x.shape)).astype(dtype))
    arrays = [rng.standard_normal(shape) for shape in shapes]
    given = [smelt.array(x).astype(dtype) for x in arrays]
    parameters = {path: host(x) for path, x in smelt.utils.tree_flatten(layer.parameters())}
    return layer, arrays, given, formula(parameters, *map(host, given))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, dtype: str) -> None:
    layer, _, given, wanted = made(name, getattr(smelt, dtype))
    found = layer(*given)
    assert found.dtype is given[0].dtype
    close(found, wanted, dtype)
    if dtype == "float32":
        settings.tier = "program"
        close(smelt.compile(lambda *xs: layer(*xs))(*given), wanted, dtype)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    layer, arrays, _, _ = made(name, smelt.float64)
    check_gradient(layer, *arrays)
    keys = [k for k in ("weight", "bias") if k in layer]
    given = [smelt.array(x, smelt.float64) for x in arrays]
    if keys:
        check_gradient(
            lambda *values: layer.update(dict(zip(keys, values)))(*given), *(np.asarray(layer[k]) for k in keys)
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("make", [
    lambda: nn.BatchNorm(3), lambda: nn.InstanceNorm(3, affine=True), lambda: nn.GroupNorm(3, 3)
])  # fmt: skip
def test_normalizations_of_half_precision(make: Callable[[], nn.Module], dtype: str) -> None:
    """Squares beyond float16 are float32's, and results are rounded once; what is kept keeps its dtype."""
    layer, kind = make(), getattr(smelt, dtype)
    layer.set_dtype(kind)
    x = smelt.array(400 * rng_of("half").standard_normal((2, 64, 3))).astype(kind)
    wide = np.asarray(x.astype(smelt.float32), np.float64)
    axes = (0, 1) if isinstance(layer, nn.BatchNorm) else (1,)
    expected = (wide - wide.mean(axes, keepdims=True)) / wide.std(axes, keepdims=True)
    for found in (layer(x), smelt.compile(lambda x: layer(x), inputs=layer.state, outputs=layer.state)(x)):
        assert found.dtype is kind
        np.testing.assert_allclose(found.astype(smelt.float32), expected, rtol=float(smelt.finfo(kind).eps), atol=1e-3)
    assert {v.dtype for _, v in tree_flatten(layer.state) if isinstance(v, smelt.array)} == {kind}


def test_running_means() -> None:
    layer = nn.BatchNorm(2, momentum=0.25)
    x = rng_of("running").standard_normal((5, 7, 2))
    layer(smelt.array(x).astype(smelt.float32))
    close(layer.running_mean, 0.25 * x.mean((0, 1)), "float32")
    close(layer.running_var, 0.75 + 0.25 * x.var((0, 1), ddof=1), "float32")
    before = layer.running_mean
    layer.eval()(smelt.zeros((5, 2)))
    assert layer.running_mean is before
    assert set(layer.unfreeze().trainable_parameters()) == {"weight", "bias"}


def test_embedding() -> None:
    layer = nn.Embedding(5, 3)
    table = np.asarray(layer.weight)
    places = np.array([[0, 4], [2, 2]], np.int32)
    close(layer(smelt.array(places)), table[places], "float32")
    close(layer.as_linear(smelt.ones((2, 3))), np.ones((2, 3)) @ table.T, "float32")
    gradient = nn.value_and_grad(layer, lambda i: layer(i).sum())(smelt.array(places))[1]["weight"]
    assert gradient.tolist() == [[1.0] * 3, [0.0] * 3, [2.0] * 3, [0.0] * 3, [1.0] * 3]


@pytest.mark.parametrize(
    "kind, shape, together", [(nn.Dropout, (40, 50), ()), (nn.Dropout2d, (40, 3, 4, 50), (1, 2)),
                              (nn.Dropout2d, (3, 4, 50), (0, 1)), (nn.Dropout3d, (40, 3, 4, 2, 50), (1, 2, 3))]
)  # fmt: skip
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dropout(kind: Any, shape: tuple[int, ...], together: tuple[int, ...], dtype: str) -> None:
    smelt.random.seed(0)
    layer, x = kind(0.25), smelt.ones(shape, getattr(smelt, dtype))
    found = layer(x)
    assert found.dtype is x.dtype
    values = host(found)
    assert set(np.unique(values)) <= {0.0, float(host(smelt.array(1 / 0.75, x.dtype)))}
    each = values.min(together) if together else values
    np.testing.assert_array_equal(each, values.max(together) if together else values)
    assert (each == 0).mean() == pytest.approx(0.25, abs=0.06 if each.size > 100 else 0.2)
    assert layer.eval()(x) is x
    assert kind(0.0)(x) is x


def test_dropout_under_compile_draws_anew() -> None:
    layer, state = nn.Dropout(0.5), smelt.random.state
    draw = smelt.compile(lambda x: layer(x), inputs=state, outputs=state)
    x = smelt.ones(100)
    assert not smelt.array_equal(draw(x), draw(x)).item()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.Linear(3, 4)(smelt.zeros((2, 5))), r"f32\[2,5\]"),
        (lambda: nn.Dropout(1.0), r"Dropout: p must be at least 0 and less than 1, is 1.0"),
        (lambda: nn.Dropout2d(-0.1), r"Dropout2d: p must be"),
        (lambda: nn.Dropout2d()(smelt.zeros(3)), r"Dropout2d: needs 3 axes.*x f32\[3\]"),
        (lambda: nn.BatchNorm(3)(smelt.zeros(3)), r"BatchNorm: needs two to four axes; x f32\[3\]"),
        (lambda: nn.BatchNorm(3)(smelt.zeros((1, 1, 3))), r"BatchNorm: training needs more than .*f32\[1,1,3\]"),
        (lambda: nn.InstanceNorm(3)(smelt.zeros((3, 3))), r"InstanceNorm: needs axes"),
        (lambda: nn.GroupNorm(4, 8)(smelt.zeros((1, 6))), r"GroupNorm: .*4 equal groups; x f32\[1,6\]"),
        (lambda: nn.GroupNorm(4, 6), r"GroupNorm: 6 channels are not 4 equal groups"),
        (lambda: nn.init.identity()(smelt.zeros((2, 3))), r"identity: needs a square matrix; a f32\[2,3\]"),
        (lambda: nn.init.he_normal()(smelt.zeros(3)), r"he_normal: needs an array of at least two axes"),
        (lambda: nn.init.he_uniform()(smelt.zeros((2, 3)), mode="x"), r"he_uniform: mode must be fan_in or fan_out"),
        (lambda: nn.init.sparse(0.5)(smelt.zeros(3)), r"sparse: needs a matrix"),
        (lambda: nn.init.orthogonal()(smelt.zeros(3)), r"orthogonal: needs a matrix"),
        (lambda: nn.init.sparse(-0.5), r"sparse: sparsity must be from 0 to 1, is -0.5"),
        (lambda: nn.GroupNorm(0, 4), r"smelt.nn.GroupNorm: num_groups must be at least 1, is 0"),
        (lambda: nn.MultiHeadAttention(8, 0), r"smelt.nn.MultiHeadAttention: num_heads must be at least 1, is 0"),
        (lambda: nn.TransformerEncoder(-1, 8, 2), r"TransformerEncoder: num_layers must not be negative, is -1"),
        (lambda: nn.GRU(2, 0), r"smelt.nn.GRU: hidden_size must be at least 1, is 0"),
        (lambda: nn.Bilinear(0, 3, 4), r"smelt.nn.Bilinear: input1_dims must be at least 1, is 0"),
        (lambda: nn.SinusoidalPositionalEncoding(0), r"Encoding: dims must be at least 2, is 0"),
        (lambda: nn.ALiBi()(smelt.zeros((2, 2))), r"ALiBi: needs axes \[batch, .*scores f32\[2,2\]"),
        (lambda: nn.quantize(3), r"smelt.nn.quantize: needs a module, got an int"),  # type: ignore[arg-type]
        (lambda: nn.fully_shard(3), r"smelt.nn.FullyShardedModule: needs a module"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message) as caught:
        call()
    assert "test_layers.py" in str(caught.value)


@pytest.mark.parametrize("dtype", [*TOLERANCE, "float64"])
def test_initial_values(dtype: str) -> None:
    smelt.random.seed(1)
    kind = getattr(smelt, dtype)
    a = smelt.zeros((60, 3, 40))
    window = {"in": 120, "out": 180}
    for make, std, uniform in [
        (nn.init.normal(0.0, 2.0, kind), 2.0, False),
        (nn.init.uniform(-3.0, 3.0, kind), np.sqrt(3.0), True),
        (nn.init.glorot_normal(kind), np.sqrt(2 / 300), False),
        (nn.init.glorot_uniform(kind), np.sqrt(2 / 300), True),
        (nn.init.he_normal(kind), np.sqrt(1 / window["in"]), False),
        (nn.init.he_uniform(kind), np.sqrt(1 / window["in"]), True),
    ]:
        found = make(a)
        values = host(found)
        assert found.dtype is kind and found.shape == a.shape
        assert values.std() == pytest.approx(std, rel=0.05) and abs(values.mean()) < 0.05 * std
        assert (np.abs(values).max() <= np.sqrt(3) * std * 1.02) is np.True_ if uniform else True
    assert host(nn.init.he_normal(kind)(a, mode="fan_out", gain=3.0)).std() == pytest.approx(
        3 / np.sqrt(window["out"]), rel=0.05
    )
    assert nn.init.constant(2.5, kind)(a).dtype is kind
    assert nn.init.identity(kind)(smelt.zeros((2, 2))).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    sparse = host(nn.init.sparse(0.3, dtype=kind)(smelt.zeros((5, 10))))
    assert (sparse == 0).sum(1).tolist() == [3] * 5
    for shape in ((4, 6), (6, 4)):
        q = host(nn.init.orthogonal(2.0, kind)(smelt.zeros(shape)))
        product = q @ q.T if shape[0] < shape[1] else q.T @ q
        np.testing.assert_allclose(product, 4 * np.eye(4), atol=0.2 if dtype == "bfloat16" else 0.02)
