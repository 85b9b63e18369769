"""Losses against formulas in NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import smelt
from smelt.ir.errors import ArgumentTypeError, DTypeError
from smelt.ir.settings import override
from smelt.nn import losses

from .checks import check_gradient, close, rng_of

pytestmark = pytest.mark.tier("ops")


def floats(*shape: int, of: str = "x") -> np.ndarray:
    return rng_of(shape, of).standard_normal(shape)


def chances(*shape: int) -> np.ndarray:
    return rng_of(shape).uniform(0.05, 0.95, shape)


X, Y, Z = floats(4, 5), floats(4, 5, of="y"), floats(4, 5, of="z")
ROWS = rng_of("rows").dirichlet(np.ones(5), 4)
SIGNS = rng_of("signs").choice([-1.0, 1.0], (4, 5))
CLASSES = np.array([0, 4, 2, 2], np.int32)
NORMAL = special.log_softmax(X, -1)
PICKED = NORMAL[np.arange(4), CLASSES]

#: Loss, arguments, options, what it should be.
CASES: list[tuple[str, list[np.ndarray], dict[str, Any], np.ndarray]] = [
    ("cross_entropy", [X, CLASSES], {}, -PICKED),
    ("cross_entropy", [X.T, CLASSES], {"axis": 0}, -PICKED),
    ("cross_entropy", [X, ROWS], {}, -(ROWS * NORMAL).sum(-1)),
    ("cross_entropy", [X, CLASSES], {"label_smoothing": 0.3}, -0.7 * PICKED - 0.3 * NORMAL.mean(-1)),
    ("cross_entropy", [X, CLASSES, np.arange(4.0)], {}, -PICKED * np.arange(4.0)),
    ("binary_cross_entropy", [X, chances(4, 5)], {},
     -(chances(4, 5) * special.log_expit(X) + (1 - chances(4, 5)) * special.log_expit(-X))),
    ("binary_cross_entropy", [chances(4, 5), ROWS, np.abs(Y)], {"with_logits": False},
     -(ROWS * np.log(chances(4, 5)) + (1 - ROWS) * np.log(1 - chances(4, 5))) * np.abs(Y)),
    ("l1_loss", [X, Y], {}, np.abs(X - Y)),
    ("mse_loss", [X, Y], {}, (X - Y) ** 2),
    ("nll_loss", [X, CLASSES], {}, -X[np.arange(4), CLASSES]),
    ("gaussian_nll_loss", [X, Y, chances(4, 5)], {}, 0.5 * (np.log(chances(4, 5)) + (X - Y) ** 2 / chances(4, 5))),
    ("gaussian_nll_loss", [X, Y, chances(4, 5)], {"full": True},
     0.5 * (np.log(2 * np.pi * chances(4, 5)) + (X - Y) ** 2 / chances(4, 5))),
    ("kl_div_loss", [NORMAL, np.log(ROWS)], {}, (ROWS * (np.log(ROWS) - NORMAL)).sum(-1)),
    ("smooth_l1_loss", [X, Y], {"beta": 0.5},
     np.where(np.abs(X - Y) < 0.5, (X - Y) ** 2, np.abs(X - Y) - 0.25)),
    ("smooth_l1_loss", [X, Y], {"beta": 0.0}, np.abs(X - Y)),
    ("huber_loss", [X, Y], {"delta": 0.5},
     np.where(np.abs(X - Y) < 0.5, 0.5 * (X - Y) ** 2, 0.5 * (np.abs(X - Y) - 0.25))),
    ("log_cosh_loss", [X, Y], {}, np.log(np.cosh(X - Y))),
    ("hinge_loss", [X, SIGNS], {}, np.maximum(1 - X * SIGNS, 0)),
    ("triplet_loss", [X, Y, Z], {},
     np.maximum(np.linalg.norm(X - Y, axis=-1) - np.linalg.norm(X - Z, axis=-1) + 1, 0)),
    ("triplet_loss", [X, Y, Z], {"p": 3, "axis": 0, "margin": 0.2},
     np.maximum(np.linalg.norm(X - Y, 3, 0) - np.linalg.norm(X - Z, 3, 0) + 0.2, 0)),
    ("cosine_similarity_loss", [X, Y], {},
     (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1)),
    ("margin_ranking_loss", [X, Y, SIGNS], {"margin": 0.1}, np.maximum(-SIGNS * (X - Y) + 0.1, 0)),
]  # fmt: skip
MEANS = ("binary_cross_entropy", "l1_loss", "mse_loss", "gaussian_nll_loss", "smooth_l1_loss")


def given(x: np.ndarray, dtype: Any = smelt.float32) -> smelt.array:
    return smelt.array(x) if x.dtype == np.int32 else smelt.array(x).astype(dtype)


@pytest.mark.parametrize("name, arrays, options, wanted", CASES)
def test_values(name: str, arrays: list[np.ndarray], options: dict[str, Any], wanted: np.ndarray) -> None:
    loss: Callable[..., smelt.array] = getattr(losses, name)
    xs = [given(x) for x in arrays]
    close(loss(*xs, **options, reduction="none"), wanted, "float32")
    close(loss(*xs, **options, reduction="sum"), wanted.sum(), "float32")
    close(loss(*xs, **options, reduction="mean"), wanted.mean(), "float32")
    default = wanted.mean() if name in MEANS else wanted
    close(loss(*xs, **options), default, "float32")
    close(smelt.compile(lambda *xs: loss(*xs, **options))(*xs), default, "float32")
    half = loss(*[given(x, smelt.float16) for x in arrays], **options)
    assert half.dtype is smelt.float16
    np.testing.assert_allclose(np.asarray(half, np.float64), default, 0.03, 0.03)
    with pytest.raises(smelt.SmeltError, match=f"{name}: reduction must be none, mean or sum, is 'x'"):
        loss(*xs, **options, reduction="x")


@pytest.mark.parametrize("name, arrays, options, wanted", CASES)
def test_gradients(name: str, arrays: list[np.ndarray], options: dict[str, Any], wanted: np.ndarray) -> None:
    rest = [given(x, smelt.float64) for x in arrays[1:]]
    check_gradient(lambda x: getattr(losses, name)(x, *rest, **options), arrays[0])


def test_far_out() -> None:
    big = smelt.array([[1e4, -1e4]])
    assert losses.cross_entropy(big, smelt.array([1])).item() == 2e4
    assert losses.binary_cross_entropy(big, smelt.array([[0.0, 1.0]]), reduction="none").tolist() == [[1e4, 1e4]]
    sure = losses.binary_cross_entropy(smelt.array([0.0, 1.0]), smelt.array([1.0, 0.0]), with_logits=False)
    assert sure.item() == 100.0
    equal = smelt.zeros((1, 3))
    gradient = smelt.grad(lambda x: losses.triplet_loss(x, equal, equal).sum())(equal)
    assert smelt.isfinite(gradient).all().item()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: losses.mse_loss(smelt.zeros((2, 3)), smelt.zeros(3)),
         r"mse_loss: predictions and targets differ in shape; predictions f32\[2,3\], targets f32\[3\]"),
        (lambda: losses.cross_entropy(smelt.zeros((2, 3)), smelt.zeros((2, 4))), r"cross_entropy: targets need"),
        (lambda: losses.cross_entropy(smelt.zeros((2, 3)), smelt.zeros(2)), r"cross_entropy: .* integers"),
        (lambda: losses.cross_entropy(smelt.zeros((2, 3)), smelt.array([0, 1, 2])), r"cross_entropy: targets need"),
        (lambda: losses.cross_entropy(smelt.zeros((2, 3)), smelt.array([0, 1]), smelt.ones(3)),
         r"cross_entropy: weights need the shape of the loss; weights f32\[3\], loss f32\[2\]"),
        (lambda: losses.cross_entropy(smelt.zeros((2, 3)), smelt.array([0, 1]), label_smoothing=1.0),
         r"label_smoothing must be in \[0, 1\)"),
        (lambda: losses.binary_cross_entropy(smelt.zeros(2), smelt.zeros(3)), "inputs and targets differ in shape"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert isinstance(caught.value, smelt.SmeltError) and "test_losses.py" in str(caught.value)


@pytest.mark.parametrize("name", sorted(losses.__all__))
def test_what_makes_no_array_is_an_error_and_what_does_is_taken(name: str) -> None:
    loss = getattr(losses, name)
    parameters = inspect.signature(loss).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and "array" in str(p.annotation)]
    for bad in object(), "x", np.array(["x"]), {}:
        with pytest.raises((DTypeError, ArgumentTypeError)):
            loss(*[bad for _ in needed])
    if name not in ("ctc_loss", "nll_loss"):  # their targets are labels
        rows = [np.full((2, 3), 0.5, np.float32) for _ in needed]
        expected = loss(*map(smelt.array, rows))
        for way in (lambda x: x), np.ndarray.tolist:
            np.testing.assert_array_equal(np.asarray(loss(*map(way, rows))), np.asarray(expected))


def test_gradients_where_losses_bend() -> None:
    """At a margin that is just kept hinge and triplet losses pull no more, as in MLX; margin_ranking_loss does."""
    one, zero = smelt.array([1.0]), smelt.array([0.0])
    assert smelt.grad(lambda x: losses.hinge_loss(x, one).sum())(one).item() == 0.0
    assert smelt.grad(lambda x: losses.triplet_loss(zero, x, one + 1, axis=0, eps=0.0).sum())(one).item() == 0.0
    assert smelt.grad(lambda x: losses.margin_ranking_loss(x, one, one).sum())(one).item() == -1.0
    assert smelt.grad(lambda x: losses.gaussian_nll_loss(zero, one, x, eps=1.0).sum())(one).item() == 0.0


def test_the_similarity_of_a_vector_without_a_direction() -> None:
    """Its denominator is eps, so its derivative is that of the product; it was NaN, as that of √0 is infinite."""
    none, other = smelt.zeros((2, 2)), smelt.array([[2.0, 3.0], [0.0, 0.0]])
    slopes = smelt.grad(lambda a, b: losses.cosine_similarity_loss(a, b).sum(), argnums=(0, 1))(none, other)
    np.testing.assert_allclose(np.asarray(slopes[0]), np.asarray(other) / 1e-8, rtol=1e-6)
    assert np.all(np.asarray(slopes[1]) == 0)


@pytest.mark.parametrize("shapes", [((1, 2, 3), (2, 1, 3)), ((3,), (4, 3)), ((4, 1), (4, 3)), ((2, 1, 1), (1, 3, 1))])
def test_cosines_of_arrays_that_broadcast_along_the_axis(shapes: tuple[tuple[int, ...], ...]) -> None:
    """A vector that is one number has the length of that number repeated: cosines came out above 1."""
    x, y = (smelt.array(np.random.default_rng(i).normal(size=shape)) for i, shape in enumerate(shapes))
    for axis in range(-max(map(len, shapes)), 0):
        found = losses.cosine_similarity_loss(x, y, axis)
        wanted = losses.cosine_similarity_loss(*map(smelt.contiguous, smelt.broadcast_arrays(x, y)), axis)
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)
        assert smelt.max(smelt.abs(found)).item() < 1.00001


def test_targets_that_do_not_sum_to_one_are_weights_of_logits_without_their_maximum() -> None:
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=(4, 5)) * 4, rng.uniform(size=(4, 5))
    below = logits - logits.max(1, keepdims=True)
    loss = np.log(np.exp(below).sum(1)) - (below * targets).sum(1)
    slope = np.exp(below) / np.exp(below).sum(1, keepdims=True) - targets
    x, t = (smelt.array(v, smelt.float32) for v in (logits, targets))
    found, grads = smelt.value_and_grad(lambda x: losses.cross_entropy(x, t, reduction="sum"))(x)
    np.testing.assert_allclose(found.item(), loss.sum(), rtol=1e-5)
    np.testing.assert_allclose(np.array(grads), slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.nll_loss])
def test_numbers_without_a_class_raise_where_they_are_known_or_checked(loss: Any) -> None:
    x = smelt.array(X[:, :3])
    classes = smelt.array([0, -1, -100, 7]) + 0  # not computed yet
    assert loss(x, classes).tolist() == loss(x, smelt.array([0, 2, 0, 2])).tolist()
    classes = smelt.array([0, -1, -100, 7]) + 0
    mask = smelt.array([1.0, 1.0, 0.0, 0.0])
    slopes = np.asarray(smelt.grad(lambda x: (loss(x, classes) * mask).sum())(x))
    assert slopes[:2].any() and not slopes[2:].any()
    for bad in (3, -4, -100):
        with pytest.raises(IndexError, match=f"index {bad} is out of range for axis 1 with 3 elements"):
            loss(x[:1], smelt.array([bad]))
        with override(check=True), pytest.raises(IndexError, match="outside"):
            smelt.eval(loss(x[:1], smelt.array([bad]) + 0))
