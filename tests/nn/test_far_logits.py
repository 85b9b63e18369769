"""Logits of any size: what is compared is their differences, of which a loss keeps the digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import special

import smelt
from smelt import nn
from smelt.ir.settings import settings

from .checks import host

INF, NAN = np.inf, np.nan
WAYS = ["ops", "cpu", "metal:sim"]


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Iterator[Callable[..., smelt.array]]:
    """A call, op by op or compiled for a device."""
    if request.param == "ops":
        settings.tier = "ops"
        yield lambda f, *xs: f(*xs)
        return
    with smelt.stream(request.param):
        yield lambda f, *xs: smelt.compile(lambda *given: f(*given))(*xs)  # not one function with many versions


#: Rows whose differences are small numbers in every dtype, far from zero: the offset, and what is beside it.
ROWS = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 0.0, -8.0, 4.0], [16.0, 0.0, 0.0, 0.0]])
OFFSETS = {"bfloat16": 128.0, "float16": 1024.0, "float32": 2.0**22, "float64": 2.0**50}
CLASSES = np.array([1, 2, 0])
CHANCES = np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]])
NORMAL = special.log_softmax(ROWS, -1)
SLOPE = special.softmax(ROWS, -1)
CHOSEN = np.eye(4)[CLASSES]
SMOOTHED = 0.9 * CHOSEN + 0.1 / 4
#: What a function of logits and targets gives, and its derivative with respect to the logits.
CASES: dict[str, tuple[Callable[..., smelt.array], np.ndarray, np.ndarray, np.ndarray]] = {
    "log_softmax": (lambda x, _: nn.log_softmax(x), CLASSES, NORMAL, 1 - 4 * SLOPE),
    "LogSoftmax": (lambda x, _: nn.LogSoftmax()(x), CLASSES, NORMAL, 1 - 4 * SLOPE),
    "nll_loss": (lambda x, y: nn.losses.nll_loss(nn.log_softmax(x), y), CLASSES, -(CHOSEN * NORMAL).sum(-1),
                 SLOPE - CHOSEN),
    "cross_entropy": (nn.losses.cross_entropy, CLASSES, -(CHOSEN * NORMAL).sum(-1), SLOPE - CHOSEN),
    "fast.cross_entropy": (smelt.fast.cross_entropy, CLASSES, -(CHOSEN * NORMAL).sum(-1), SLOPE - CHOSEN),
    "probabilities": (nn.losses.cross_entropy, CHANCES, -(CHANCES * NORMAL).sum(-1), SLOPE - CHANCES),
    "smoothed": (lambda x, y: nn.losses.cross_entropy(x, y, label_smoothing=0.1), CLASSES,
                 -(SMOOTHED * NORMAL).sum(-1), SLOPE - SMOOTHED),
}  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.parametrize("dtype", OFFSETS)
@pytest.mark.parametrize("name", CASES)
def test_an_offset_changes_nothing(name: str, dtype: str, run: Callable[..., smelt.array]) -> None:
    function, targets, want, slope = CASES[name]
    x = smelt.array(ROWS + OFFSETS[dtype], getattr(smelt, dtype))
    y = smelt.array(targets) if targets.dtype.kind == "i" else smelt.array(targets, x.dtype)
    tolerance = {"bfloat16": 2e-2, "float16": 2e-3}.get(dtype, 1e-6)
    np.testing.assert_allclose(host(run(function, x, y)), want, tolerance, tolerance)
    found = run(smelt.grad(lambda x, y: function(x, y).sum()), x, y)
    np.testing.assert_allclose(host(found), slope, tolerance, tolerance)


def test_the_largest_numbers(run: Callable[..., smelt.array]) -> None:
    x = smelt.array([[1e30] * 4, [3e38, -3e38, 3e38, -INF], [1e30, 0.0, 1e9, -5.0]])
    half = -np.log(2)
    want = [[2 * half] * 4, [half, -INF, half, -INF], [0.0, -1e30, -1e30, -1e30]]
    np.testing.assert_allclose(host(run(nn.log_softmax, x)), want, 1e-6)
    y = smelt.array([1, 2, 0])
    for loss in (nn.losses.cross_entropy, smelt.fast.cross_entropy):
        np.testing.assert_allclose(host(run(loss, x, y)), [-2 * half, -half, 0.0], 1e-6)
    slope = run(smelt.grad(lambda x: nn.losses.cross_entropy(x, y).sum()), x)
    np.testing.assert_allclose(host(slope), [[0.25, -0.75, 0.25, 0.25], [0.5, 0, -0.5, 0], [0] * 4], 1e-6, 1e-7)


def test_infinities(run: Callable[..., smelt.array]) -> None:
    """As of JAX and PyTorch: -inf is a class that is impossible; a row of nothing else has no distribution, nor has
    one with inf."""
    x = smelt.array([[-INF, 0.0, 0.0], [INF, 0.0, 0.0], [-INF, -INF, -INF], [NAN, 0.0, 0.0]])
    want = np.array([[-INF, -np.log(2), -np.log(2)], *[[NAN] * 3] * 3])
    np.testing.assert_allclose(host(run(nn.log_softmax, x)), want, 1e-6)
    slope = run(smelt.grad(lambda x: nn.log_softmax(x)[:, 1].sum()), x)
    np.testing.assert_allclose(host(slope), [[0, 0.5, -0.5], *[[NAN] * 3] * 3], 1e-6)
    assert nn.log_softmax(smelt.zeros((3, 0))).shape == (3, 0)
    assert nn.log_softmax(smelt.array([127, -128], smelt.int8)).tolist() == [0.0, -255.0]


def test_targets_that_are_no_distribution(run: Callable[..., smelt.array]) -> None:
    """They count as in MLX: log Σ exp(y) - Σ y·t for y = x - max x, also in the derivative with respect to them."""
    x, t = smelt.array([[3.0, 1.0, 5.0]]), smelt.array([[1.0, 1.0, 0.0]])
    want = special.logsumexp([-2.0, -4.0, 0.0]) + 6
    np.testing.assert_allclose(host(run(nn.losses.cross_entropy, x, t)), [want], 1e-6)
    slope = run(smelt.grad(lambda t: nn.losses.cross_entropy(x, t).sum()), t)
    np.testing.assert_allclose(host(slope), [[2.0, 4.0, 0.0]], 1e-6)
    sure = smelt.softmax(x, axis=-1)
    np.testing.assert_allclose(
        host(run(smelt.grad(lambda t: nn.losses.cross_entropy(x, t).sum()), sure)), [[2.0, 4.0, 0.0]], 1e-6
    )


def test_sure_logits_of_two_classes(run: Callable[..., smelt.array]) -> None:
    x = smelt.array([20.0, -20.0, 60.0, 1e30, -1e30, 0.0, 20.0, INF, -INF, NAN])
    t = smelt.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.25, 0.0, 0.0, 1.0, 0.0])
    loss = lambda x: nn.losses.binary_cross_entropy(x, t, reduction="none")  # noqa: E731
    small = np.log1p(np.exp(-20.0))
    want = [small, small, np.exp(-60.0), 0, 0, np.log(2), 20 + small, INF, INF, NAN]
    np.testing.assert_allclose(host(run(loss, x)), want, 1e-6)
    slope = run(smelt.grad(lambda x: loss(x).sum()), x)
    sure = special.expit(-20.0)
    np.testing.assert_allclose(host(slope), [-sure, sure, -special.expit(-60.0), 0, 0, 0.25, 1, 1, -1, NAN], 1e-6)


@pytest.mark.parametrize("shape, axis", [((64, 300), -1), ((64, 300), 0), ((3, 200_000), -1)])
@pytest.mark.parametrize("device", WAYS[1:])
def test_no_more_kernels_than_the_plain_formula(device: str, shape: tuple[int, int], axis: int) -> None:
    def kernels(f: Callable[..., smelt.array], *given: smelt.array) -> int:
        return len(smelt.compile(f).trace(*given).lower().compile().kernels)

    with smelt.stream(device):
        x, classes = smelt.zeros(shape), smelt.zeros(shape[1 + axis], smelt.int32)
        plain = lambda x: x - smelt.logsumexp(x, axis, True)  # noqa: E731
        assert kernels(lambda x: nn.log_softmax(x, axis), x) <= kernels(plain, x)
        assert kernels(lambda x, y: nn.losses.cross_entropy(x, y, axis=axis), x, classes) <= kernels(plain, x)
        slope = kernels(smelt.grad(lambda x: (plain(x) * x).sum()), x)
        assert kernels(smelt.grad(lambda x: (nn.log_softmax(x, axis) * x).sum()), x) <= slope
