"""Layers beyond those of MLX, against formulas in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn

from .checks import check_gradient, close, host, rng_of

DTYPES = ("float32", "float16", "bfloat16")


def pooled(x: np.ndarray, sizes: tuple[int | None, ...], mean: bool) -> np.ndarray:
    for axis, count in enumerate(sizes, 1):
        if count is not None:
            n = x.shape[axis]
            parts = [x.take(range(i * n // count, -(-(i + 1) * n // count)), axis) for i in range(count)]
            x = np.stack([part.mean(axis) if mean else part.max(axis) for part in parts], axis)
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(3,), (4,), (1,), (9,), (3, 4), (None, 2), (2, 3, 1)])
@pytest.mark.parametrize("kind", ["Avg", "Max"])
def test_adaptive_pooling(kind: str, sizes: tuple[int | None, ...], dtype: str) -> None:
    layer = getattr(nn, f"Adaptive{kind}Pool{len(sizes)}d")(sizes)
    x = rng_of(sizes).standard_normal((*(2, 8, 6, 5)[: len(sizes) + 1], 3))
    given = smelt.array(x).astype(getattr(smelt, dtype))
    close(layer(given), pooled(host(given), sizes, kind == "Avg"), dtype)
    assert layer(given).dtype is given.dtype
    if dtype == "float32":
        check_gradient(layer, x)


def bag_of(kind: str) -> tuple[nn.EmbeddingBag, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    layer = nn.EmbeddingBag(7, 3, kind)  # type: ignore[arg-type]
    return layer, np.asarray(layer.weight), {"mean": np.mean, "sum": np.sum, "max": np.max}[kind]  # type: ignore


@pytest.mark.parametrize("kind", ["mean", "sum", "max"])
def test_embedding_bag(kind: str) -> None:
    layer, table, formula = bag_of(kind)
    x = np.array([[1, 2, 6], [4, 4, 0]], np.int32)
    close(layer(smelt.array(x)), formula(table[x], axis=1), "float32")  # type: ignore[call-arg]
    flat, offsets = np.array([1, 2, 6, 4, 0], np.int32), np.array([0, 3, 3, 4], np.int32)
    ends = [*offsets[1:], len(flat)]
    wanted = [formula(table[flat[a:b]], axis=0) if b > a else np.zeros(3) for a, b in zip(offsets, ends)]  # type: ignore
    close(layer(smelt.array(flat), offsets=smelt.array(offsets)), np.array(wanted), "float32")
    check_gradient(lambda w: layer.update({"weight": w})(smelt.array(flat), offsets=smelt.array(offsets)), table)


def test_weights_of_integers() -> None:
    layer, table, _ = bag_of("sum")
    x, weights = np.array([[1, 2], [4, 0]], np.int32), np.array([[0.5, 2.0], [1.0, -1.0]], np.float32)
    close(layer(smelt.array(x), weights=smelt.array(weights)), (table[x] * weights[..., None]).sum(1), "float32")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_weight_norm(axis: int) -> None:
    layer = nn.Conv1d(3, 4, 2) if axis == 0 else nn.Linear(3, 4)
    x = rng_of("wn").standard_normal((2, 5, 3)).astype(np.float32)
    normed = nn.WeightNorm(layer, axis=axis)
    plain = layer(smelt.array(x))
    close(normed(smelt.array(x)), host(plain), "float32")
    direction = layer.weight
    normed.scale = normed.scale * 2
    bias = host(layer.bias)
    close(normed(smelt.array(x)), (host(plain) - bias) * 2 + bias, "float32")
    assert layer.weight is direction
    _, gradients = nn.value_and_grad(normed, lambda: smelt.sum(normed(smelt.array(x)) ** 2))()
    # along v itself nothing changes
    along = (gradients["layer"]["weight"] * direction).sum().item()
    assert abs(along) < 1e-3 * smelt.abs(gradients["scale"]).sum().item()


@pytest.mark.parametrize("make", [lambda: nn.Linear(5, 3), lambda: nn.Conv2d(2, 3, 2)])
def test_spectral_norm(make: Callable[[], nn.Module]) -> None:
    smelt.random.seed(0)
    normed = nn.SpectralNorm(make(), steps=30)
    weight = host(normed.layer.weight)
    x = rng_of("sn").standard_normal((2, 5) if weight.ndim == 2 else (1, 3, 3, 2)).astype(np.float32)
    largest = np.linalg.svd(weight.reshape(len(weight), -1), compute_uv=False)[0]
    bias = host(normed.layer.bias)
    plain = host(normed.layer(smelt.array(x)))
    found = normed(smelt.array(x))
    np.testing.assert_allclose(host(found), (plain - bias) / largest + bias, 1e-3, 1e-4)
    assert set(normed.unfreeze().trainable_parameters()) == {"layer"}
    left = normed.left
    normed.eval()(smelt.array(x))
    assert normed.left is left


def test_cells_step_as_their_layers() -> None:
    x = smelt.array(rng_of("cells").standard_normal((2, 4, 3))).astype(smelt.float32)
    for layer, cell in ((nn.RNN, nn.RNNCell), (nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell)):
        whole = layer(3, 5)
        step = cell(3, 5)
        step.update(whole.parameters())
        wanted = whole(x)
        state: Any = ()
        for i in range(4):
            found = step(x[:, i], *state)
            state = found if isinstance(found, tuple) else (found,)
            for a, b in zip(state, wanted if isinstance(wanted, tuple) else (wanted,)):
                assert smelt.allclose(a, b[:, i], atol=1e-6).item()


def test_flatten() -> None:
    assert nn.Flatten()(smelt.ones((2, 3, 4, 5))).shape == (2, 60)
    assert nn.Flatten(0, 1)(smelt.ones((2, 3, 4, 5))).shape == (6, 4, 5)
    assert repr(nn.Flatten()) == "Flatten(start_axis=1, end_axis=-1)"


def sum_over_paths(p: np.ndarray, target: tuple[int, ...], blank: int) -> float:
    """The probability of a target, path by path."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=p.shape[0]):
        squeezed = tuple(k for k, _ in itertools.groupby(path) if k != blank)
        if squeezed == target:
            total += float(np.prod(p[range(len(path)), list(path)]))
    return total


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("target", [(), (1,), (1, 1), (3, 1), (1, 3, 1)])
def test_ctc_loss(target: tuple[int, ...], blank: int) -> None:
    x = rng_of(target, blank).standard_normal((2, 5, 4))
    log_probs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    targets = smelt.array(np.array([[*target, 3, 3]] * 2, np.int32))
    lengths = smelt.array([len(target)] * 2)

    def loss(log_probs: smelt.array) -> smelt.array:
        return nn.losses.ctc_loss(log_probs, targets, smelt.array([5, 4]), lengths, blank)

    wanted = [-np.log(sum_over_paths(np.exp(log_probs[i, : 5 - i]), target, blank)) for i in range(2)]
    np.testing.assert_allclose(np.asarray(loss(smelt.array(log_probs, smelt.float64))), wanted, 1e-9)
    check_gradient(loss, log_probs)
    close(smelt.compile(loss)(smelt.array(log_probs, smelt.float32)), np.array(wanted), "float32")


def test_ctc_loss_without_a_path() -> None:
    log_probs = smelt.log(smelt.full((2, 3, 4), 0.25))
    targets = smelt.array([[1, 1, 1], [1, 2, 3]])
    value, gradient = smelt.value_and_grad(lambda x: nn.losses.ctc_loss(x, targets, reduction="sum"))(log_probs)
    assert value.item() == float("inf")
    assert not smelt.any(smelt.isnan(gradient)).item() and smelt.all(gradient[0] == 0).item()
    assert nn.losses.ctc_loss(log_probs, targets)[1].item() == pytest.approx(3 * np.log(4))
    half = nn.losses.ctc_loss(log_probs.astype(smelt.bfloat16), targets, reduction="none")
    assert half.dtype is smelt.bfloat16 and half[0].item() == float("inf")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), r"AdaptiveAvgPool2d: output_size must be .* 2 of them"),
        (lambda: nn.AdaptiveMaxPool1d(0), r"AdaptiveMaxPool1d: output_size must be a positive int or None, is 0"),
        (lambda: nn.AdaptiveAvgPool1d(2)(smelt.ones((2, 3))), r"AdaptiveAvgPool1d: needs 3 axes"),
        (lambda: nn.EmbeddingBag(3, 2, "x"), r"EmbeddingBag: mode must be mean, sum or max"),  # type: ignore[arg-type]
        (lambda: nn.EmbeddingBag(3, 2)(smelt.array([1]), weights=smelt.ones(1)), "weights go with mode sum"),
        (lambda: nn.EmbeddingBag(3, 2)(smelt.array([[1]]), offsets=smelt.array([0])), "with offsets both have one"),
        (lambda: nn.WeightNorm(nn.ReLU()), r"WeightNorm: needs a layer with a parameter 'weight', got ReLU\(\)"),
        (lambda: nn.SpectralNorm(nn.Linear(1, 1), "w"), r"SpectralNorm: needs a layer with a parameter 'w'"),
        (lambda: nn.GRUCell(3, 4)(smelt.ones((2, 4))), r"GRUCell: needs axes \[..., 3\]; x f32\[2,4\]"),
        (lambda: nn.losses.ctc_loss(smelt.ones((1, 2)), smelt.ones((1, 2))), r"ctc_loss: needs log_probs \[batch"),
        (lambda: nn.losses.ctc_loss(smelt.ones((1, 2, 3)), smelt.array([[1]]), blank=3), "one of 3 classes, is 3"),
        (lambda: nn.losses.ctc_loss(smelt.ones((1, 2, 3)), smelt.array([[1]]), smelt.array([1, 2])),
         r"input_lengths needs one entry for each of the batch; input_lengths i32\[2\]"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message):
        call()


def test_numbers_may_be_computed() -> None:
    """Chances and sizes by NumPy, chances by smelt: models make them by linspace."""
    for p in (np.float32(0.25), np.array(0.25), smelt.array(0.25), smelt.linspace(0, 1, 5)[1]):
        assert repr(nn.Dropout(p)) == "Dropout(p=0.25)"
        assert [type(d) for d in (nn.Dropout2d(p), nn.Dropout3d(p))] == [nn.Dropout2d, nn.Dropout3d]
    for wrong in (np.float32(1.0), smelt.array(-0.5), smelt.array([0.5, 0.5]), np.True_):
        with pytest.raises(smelt.SmeltError, match="p must be at least 0 and less than 1, is"):
            nn.Dropout(wrong)
    assert nn.AdaptiveAvgPool2d((np.int64(2), None))(smelt.ones((1, 4, 3, 2))).shape == (1, 2, 3, 2)
