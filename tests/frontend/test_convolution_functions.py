"""`conv2d`, `conv3d`, `convolve` and transposed convolutions, against loops over their definition."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt

from .test_linalg import each_device


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(14)


def spread(
    x: np.ndarray, w: np.ndarray, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    more: Sequence[int], groups: int,
) -> np.ndarray:  # fmt: skip
    """The transposed convolution: each element of x, times the weight, is added where the window puts it."""
    n, *extents, channels = x.shape
    out, *window, _ = w.shape
    whole = [(d - 1) * s + e * (k - 1) + 1 for d, s, e, k in zip(extents, stride, dilation, window)]
    found = np.zeros((n, *(d + p + m for d, p, m in zip(whole, padding, more)), out))
    for at in itertools.product(*map(range, extents)):
        for k in itertools.product(*map(range, window)):
            place = (slice(None), *(i * s + j * e for i, s, j, e in zip(at, stride, k, dilation)))
            for g in range(groups):
                rows = slice(g * out // groups, (g + 1) * out // groups)
                part = x[(slice(None), *at, slice(g * channels // groups, (g + 1) * channels // groups))]
                found[(*place, rows)] += part @ w[(rows, *k)].T
    cut = tuple(slice(p, d - p + m) for p, d, m in zip(padding, whole, more))
    return found[(slice(None), *cut)]


def slid(
    x: np.ndarray, w: np.ndarray, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> np.ndarray:
    """The convolution: the weight times each window."""
    x = np.pad(x, [(0, 0), *((p, p) for p in padding), (0, 0)])
    n, *extents, channels = x.shape
    out, *window, _ = w.shape
    sizes = [(d - e * (k - 1) - 1) // s + 1 for d, e, k, s in zip(extents, dilation, window, stride)]
    found = np.zeros((n, *sizes, out))
    for at in itertools.product(*map(range, sizes)):
        for k in itertools.product(*map(range, window)):
            place = (slice(None), *(i * s + j * e for i, s, j, e in zip(at, stride, k, dilation)))
            for g in range(groups):
                rows = slice(g * out // groups, (g + 1) * out // groups)
                part = x[(*place, slice(g * channels // groups, (g + 1) * channels // groups))]
                found[(slice(None), *at, rows)] += part @ w[(rows, *k)].T
    return found


OPTIONS = [
    ((1, 1, 1), (0, 0, 0), (1, 1, 1), (0, 0, 0), 1),
    ((2, 1, 2), (1, 0, 1), (1, 2, 1), (1, 0, 1), 1),
    ((1, 2, 1), (0, 1, 1), (2, 1, 1), (0, 1, 0), 2),
    ((3, 2, 2), (2, 1, 0), (1, 1, 2), (2, 2, 0), 2),
]


@each_device
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_values(rng: np.random.Generator, n: int, options: Any, device: str) -> None:
    stride, padding, dilation, more = (o[:n] for o in options[:4])
    groups = options[4]
    x = rng.standard_normal((2, *(5, 4, 6)[:n], 4)).astype(np.float32)
    w = rng.standard_normal((6, *(3, 2, 2)[:n], 4 // groups)).astype(np.float32)
    given: list[Any] = [[o[0] if n == 1 else o for o in (stride, padding, dilation)], more[0] if n == 1 else more]
    with smelt.stream(smelt.Device(device)):
        plain = getattr(smelt, f"conv{n}d")(smelt.array(x), smelt.array(w), *given[0], groups)
        np.testing.assert_allclose(plain, slid(x, w, stride, padding, dilation, groups), rtol=1e-4, atol=1e-4)
        found = getattr(smelt, f"conv_transpose{n}d")(smelt.array(x), smelt.array(w), *given[0], given[1], groups)
        np.testing.assert_allclose(found, spread(x, w, stride, padding, dilation, more, groups), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("far", [2**31, 2**62, 2**63 - 1])
def test_steps_beyond_the_input(far: int) -> None:
    x, w = smelt.ones((1, 3, 3, 2)), smelt.ones((1, 2, 1, 2))
    for run in (lambda f: f, smelt.compile):
        found = run(lambda x, w: smelt.conv2d(x, w, stride=far, dilation=(1, far)))(x, w)
        assert found.shape == (1, 1, 1, 1) and found.item() == 4
    with pytest.raises(smelt.SmeltError, match="does not fit"):
        smelt.conv2d(x, w, dilation=far)


def test_negative_padding_cuts(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((2, 7, 9, 3)), rng.standard_normal((4, 2, 3, 3))
    cut = slid(x[:, 1:-1, 2:-2], w, (2, 1), (0, 0), (1, 1), 1)
    wide = np.pad(spread(x, w, (2, 1), (0, 0), (1, 1), (0, 0), 1), [(0, 0), (1, 1), (2, 2), (0, 0)])
    x, w = smelt.array(x), smelt.array(w)
    options: dict[str, Any] = {"stride": (2, 1), "padding": (-1, -2)}
    for run in (lambda f: f, smelt.compile):
        np.testing.assert_allclose(run(lambda x, w: smelt.conv2d(x, w, **options))(x, w), cut, rtol=1e-4, atol=1e-4)
        found = run(lambda x, w: smelt.conv_transpose2d(x, w, **options))(x, w)
        np.testing.assert_allclose(found, wide, rtol=1e-4, atol=1e-4)


def test_padding_beyond_the_window_cuts(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((1, 9, 2)).astype(np.float32), rng.standard_normal((3, 2, 2)).astype(np.float32)
    found = smelt.conv_transpose1d(smelt.array(x), smelt.array(w), padding=3)
    np.testing.assert_allclose(found, spread(x, w, [1], [3], [1], [0], 1), rtol=1e-5, atol=1e-5)


def test_a_transposed_convolution_is_the_transpose(rng: np.random.Generator) -> None:
    """⟨y, conv(x)⟩ = ⟨convᵀ(y), x⟩, with the channels of the weight exchanged."""
    x = smelt.array(rng.standard_normal((2, 7, 9, 3)).astype(np.float32))
    w = smelt.array(rng.standard_normal((4, 3, 3, 3)).astype(np.float32))
    y, pull = smelt.vjp(lambda x: smelt.conv2d(x, w, 2, 1), [x], [smelt.conv2d(x, w, 2, 1)])
    found = smelt.conv_transpose2d(y[0], w.transpose(3, 1, 2, 0), 2, 1)
    np.testing.assert_allclose(found, pull[0], rtol=1e-4, atol=1e-4)


def test_gradients_and_batches(rng: np.random.Generator) -> None:
    x = smelt.array(rng.standard_normal((1, 5, 4, 2)), smelt.float64)
    w = smelt.array(rng.standard_normal((3, 2, 2, 2)), smelt.float64)

    def f(x: smelt.array, w: smelt.array) -> smelt.array:
        return (smelt.conv_transpose2d(x, w, 2, 1, output_padding=1) ** 2).sum()

    gradients = smelt.grad(f, argnums=(0, 1))(x, w)
    compiled = smelt.compile(smelt.grad(f, argnums=(0, 1)))(x, w)
    for i, (g, c) in enumerate(zip(gradients, compiled)):
        t = rng.standard_normal(g.shape)
        ends = [float(f(*(v + s * t if i == j else v for j, v in enumerate((x, w))))) for s in (1e-6, -1e-6)]
        assert (np.asarray(g) * t).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
        np.testing.assert_allclose(g, c, rtol=1e-10)
    many = smelt.stack([x, 2 * x])
    found = smelt.vmap(lambda x: smelt.conv_transpose2d(x, w, 2))(many)
    np.testing.assert_allclose(found[1], smelt.conv_transpose2d(2 * x, w, 2), rtol=1e-10)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve(rng: np.random.Generator, mode: Any) -> None:
    for m, n in ((3, 3), (7, 2), (2, 7), (1, 1), (5, 4), (4, 5), (100, 9)):
        a, v = rng.standard_normal(m).astype(np.float32), rng.standard_normal(n).astype(np.float32)
        found = smelt.convolve(smelt.array(a), smelt.array(v), mode)
        np.testing.assert_allclose(found, np.convolve(a, v, mode), rtol=1e-5, atol=1e-5)
    assert smelt.convolve([1, 2], [1, 2]).tolist() == [1, 4, 4]


ones = smelt.ones
X, W = ones((1, 4, 4, 1)), ones((1, 2, 2, 1))
LINE, K = ones((1, 4, 1)), ones((1, 2, 1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: smelt.conv2d(ones((1, 4, 4)), ones((1, 2, 2, 1))), ValueError, "must have 4 axes"),
        (lambda: smelt.conv2d(X, ones((1, 2, 2, 2))), ValueError, "input has 1 channels, weight has 2"),
        (lambda: smelt.conv2d(X, W, (1, 1, 1)), ValueError, "each of 2 spatial axes"),
        (lambda: smelt.conv2d(X, ones((1, 5, 2, 1))), ValueError, "does not fit on axis 1"),
        (lambda: smelt.conv3d(ones((1, 4, 4, 4, 1)), W[:, None], 0), ValueError, "stride must be at least 1"),
        (lambda: smelt.conv_transpose1d(LINE, K, 0), ValueError, "stride must be at least 1"),
        (lambda: smelt.conv_transpose1d(LINE, K, output_padding=-1), ValueError, "output_padding must not be"),
        (lambda: smelt.conv_transpose1d(LINE, K, 1.5), TypeError, "stride must be an int"),
        (lambda: smelt.conv_transpose1d(LINE, K, padding=9), ValueError, "does not fit"),
        (lambda: smelt.convolve(ones((2, 2)), ones(2)), ValueError, "needs vectors with elements"),
        (lambda: smelt.convolve(ones(0), ones(2)), ValueError, "needs vectors with elements"),
        (lambda: smelt.convolve(ones(3), ones(2), "x"), ValueError, 'mode must be "full", "same" or "valid"'),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, smelt.SmeltError)
    assert re.search(rf"{re.escape(__file__)}:\d+$", str(caught.value))


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_gradients_of_weights_where_the_input_is_spread(groups: int, stride: int, dilation: int) -> None:
    """The inner product with any weights is that of the cotangent with what these give; in batches as alone."""
    rng = np.random.default_rng(5)

    def random(*shape: int) -> smelt.array:
        return smelt.array(rng.standard_normal(shape), dtype=smelt.float64)

    x, w, other = random(2, 5, 4, 2 * groups), random(2 * groups, 3, 2, 2), random(2 * groups, 3, 2, 2)
    for low, high, kernel_dilation, flip in itertools.product((0, 1, 3), (0, 2), (1, 2), (False, True)):

        def layer(w: smelt.array) -> smelt.array:
            return smelt.conv_general(
                x, w, stride, ([low] * 2, [high] * 2), kernel_dilation, dilation, groups, flip  # noqa: B023
            )

        if layer(w).size == 0:
            continue
        ct = random(*layer(w).shape)
        of_weights = smelt.vjp(layer, [w], [ct])[1][0]
        np.testing.assert_allclose((other * of_weights).sum(), (layer(other) * ct).sum(), rtol=1e-9, atol=1e-9)
        several = smelt.vmap(lambda c: smelt.vjp(layer, [w], [c])[1][0])(smelt.stack([ct, 2 * ct]))
        np.testing.assert_allclose(several[1], 2 * of_weights, rtol=1e-9, atol=1e-9)
