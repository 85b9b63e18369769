"""Convolutions, transposed ones, pooling and upsampling, against loops in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.ir.settings import settings

from .checks import TOLERANCE, check_gradient, close, host, rng_of

pytestmark = pytest.mark.tier("ops")


def windows(x: np.ndarray, extents: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """[batch, places…, window…, channels]."""
    n = len(extents)
    counts = [(e - d * (k - 1) - 1) // s + 1 for e, k, s, d in zip(x.shape[1:], extents, stride, dilation)]
    found = np.empty((x.shape[0], *counts, *extents, x.shape[-1]))
    for place in itertools.product(*map(range, counts)):
        cut = tuple(slice(p * s, p * s + d * (k - 1) + 1, d) for p, s, k, d in zip(place, stride, extents, dilation))
        found[(slice(None), *place)] = x[(slice(None), *cut)]
    assert found.ndim == 2 * n + 2
    return found


def padded(x: np.ndarray, padding: Sequence[int], value: float = 0.0) -> np.ndarray:
    return np.pad(x, [(0, 0), *((p, p) for p in padding), (0, 0)], constant_values=value)


def option(layer: Any, what: str) -> Sequence[int]:
    """One for each axis."""
    found = getattr(layer, what)
    return (found,) * (layer.weight.ndim - 2) if isinstance(found, int) else found


def convolution(layer: Any, x: np.ndarray) -> np.ndarray:
    weight, n = host(layer.weight), x.ndim - 2
    stride, padding, dilation = (option(layer, what) for what in ("stride", "padding", "dilation"))
    found = windows(padded(x, padding), weight.shape[1:-1], stride, dilation)
    parts = []
    for w, f in zip(np.split(weight, layer.groups), np.split(found, layer.groups, -1)):
        flat = f.reshape(*f.shape[: n + 1], -1)
        parts.append(flat @ w.reshape(w.shape[0], -1).T)
    return np.concatenate(parts, -1) + (host(layer.bias) if "bias" in layer else 0)


def transposed(layer: Any, x: np.ndarray) -> np.ndarray:
    """Each element of x adds the window times itself."""
    weight = host(layer.weight)
    stride, padding, dilation = (option(layer, what) for what in ("stride", "padding", "dilation"))
    spatial = (stride, padding, dilation, weight.shape[1:], option(layer, "output_padding"))
    options = list(zip(x.shape[1:], *spatial))
    full = [(e - 1) * s + d * (k - 1) + 1 + p + o for e, s, p, d, k, o in options]
    found = np.zeros((x.shape[0], *full, weight.shape[0]))
    for place in itertools.product(*map(range, x.shape[1:-1])):
        for tap in itertools.product(*map(range, weight.shape[1:-1])):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation))
            found[(slice(None), *at)] += x[(slice(None), *place)] @ weight[(slice(None), *tap)].T
    cut = [
        slice(p, p + (e - 1) * s - 2 * p + d * (k - 1) + 1 + o) for e, s, p, d, k, o in options
    ]
    return found[(slice(None), *cut)] + (host(layer.bias) if "bias" in layer else 0)


def pooled(layer: Any, x: np.ndarray) -> np.ndarray:
    mean = type(layer).__name__.startswith("Avg")
    x = padded(x, layer._padding, 0.0 if mean else -np.inf)
    found = windows(x, layer._kernel_size, layer._stride, (1,) * (x.ndim - 2))
    axes = tuple(range(x.ndim - 1, 2 * x.ndim - 3))
    return found.mean(axes) if mean else found.max(axes)


CASES: list[tuple[Callable[[], nn.Module], tuple[int, ...], Callable[[Any, np.ndarray], np.ndarray]]] = [
    (lambda: nn.Conv1d(2, 4, 3), (2, 7, 2), convolution),
    (lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False), (2, 9, 4), convolution),
    (lambda: nn.Conv2d(2, 3, (3, 2), (2, 1), (1, 0), (1, 2)), (2, 6, 5, 2), convolution),
    (lambda: nn.Conv2d(4, 4, 3, groups=4), (1, 5, 4, 4), convolution),
    (lambda: nn.Conv3d(2, 3, 2, stride=2, padding=1), (1, 4, 5, 3, 2), convolution),
    (lambda: nn.ConvTranspose1d(2, 4, 3), (2, 5, 2), transposed),
    (lambda: nn.ConvTranspose1d(2, 4, 3, 2, 1, 2, 1), (2, 5, 2), transposed),
    (lambda: nn.ConvTranspose1d(2, 4, 2, stride=3, padding=2), (2, 5, 2), transposed),
    (lambda: nn.ConvTranspose1d(2, 4, 1, stride=2, padding=1, output_padding=1, bias=False), (2, 5, 2), transposed),
    (lambda: nn.ConvTranspose2d(2, 3, (3, 2), (2, 1), (1, 0)), (2, 4, 3, 2), transposed),
    (lambda: nn.ConvTranspose3d(1, 2, 2, 2), (1, 2, 3, 2, 1), transposed),
    (lambda: nn.MaxPool1d(2), (2, 7, 3), pooled),
    (lambda: nn.MaxPool1d(3, 2, 1), (2, 7, 3), pooled),
    (lambda: nn.MaxPool2d((3, 2), 1), (2, 5, 4, 3), pooled),
    (lambda: nn.MaxPool2d(4, 3), (2, 5, 6, 3), pooled),
    (lambda: nn.MaxPool3d(2, padding=1), (1, 3, 4, 5, 2), pooled),
    (lambda: nn.AvgPool1d(3, 2, 1), (2, 7, 3), pooled),
    (lambda: nn.AvgPool2d(2), (2, 5, 6, 3), pooled),
    (lambda: nn.AvgPool3d((1, 2, 3), (2, 1, 1)), (1, 3, 4, 5, 2), pooled),
]
NAMES = [f"{i}-{type(make()).__name__}" for i, (make, *_) in enumerate(CASES)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("make, shape, formula", CASES, ids=NAMES)
def test_values(make: Any, shape: tuple[int, ...], formula: Any, dtype: str) -> None:
    rng = rng_of(shape)
    layer = make()
    layer.apply(lambda x: smelt.array(rng.standard_normal(x.shape)).astype(getattr(smelt, dtype)))
    x = smelt.array(rng.standard_normal(shape)).astype(getattr(smelt, dtype))
    found = layer(x)
    assert found.dtype is x.dtype
    close(found, formula(layer, host(x)), dtype)
    if dtype == "float32":
        settings.tier = "program"
        close(smelt.compile(layer)(x), formula(layer, host(x)), dtype)


@pytest.mark.parametrize("make, shape, formula", CASES, ids=NAMES)
def test_gradients(make: Any, shape: tuple[int, ...], formula: Any) -> None:
    layer = make().apply(lambda x: x.astype(smelt.float64))
    x = rng_of(shape).standard_normal(shape)
    check_gradient(layer, x)
    if keys := [k for k in ("weight", "bias") if k in layer]:
        given = smelt.array(x, smelt.float64)
        check_gradient(
            lambda *values: layer.update(dict(zip(keys, values)))(given), *(np.asarray(layer[k]) for k in keys)
        )


def test_options_are_attributes() -> None:
    """Models compute with them, and subclasses set them."""
    for kind in (nn.Conv1d, nn.ConvTranspose1d):
        layer = kind(2, 2, np.int64(3), stride=2, padding=1, dilation=2)
        assert (layer.stride, layer.padding, layer.dilation) == (2, 1, 2)
        x = smelt.random.normal((1, 9, 2))
        wanted = layer(x)
        layer.stride, layer.padding, layer.dilation = 2, (1,), (2,)
        np.testing.assert_array_equal(np.asarray(layer(x)), np.asarray(wanted))
        layer.output_padding = 0
        layer(x)
    layer = nn.Conv2d(2, 2, 3, stride=2, dilation=2)
    assert (layer.stride, layer.padding, layer.dilation) == ((2, 2), (0, 0), 2)
    assert nn.QuantizedEmbedding(10, 64).dims == nn.QuantizedEmbedding.from_embedding(nn.Embedding(10, 64)).dims == 64
    x = smelt.random.normal((1, 3, 2))
    for factor in (smelt.prod(smelt.array([2, 1])), np.float32(2), (np.array(2),)):
        np.testing.assert_array_equal(np.asarray(nn.Upsample(factor)(x)), np.asarray(nn.Upsample(2)(x)))


TIED: list[tuple[Callable[[], Any], tuple[int, ...]]] = [
    (lambda: nn.MaxPool1d(2), (2, 7, 3)),
    (lambda: nn.MaxPool1d(3, 2, 1), (2, 7, 3)),
    (lambda: nn.MaxPool2d(2), (2, 5, 6, 3)),
    (lambda: nn.MaxPool2d((3, 2), 1), (2, 5, 4, 3)),
    (lambda: nn.MaxPool2d(3, 2, 1), (1, 6, 5, 2)),
    (lambda: nn.MaxPool2d((2, 3), (1, 3)), (1, 5, 7, 2)),
    (lambda: nn.MaxPool3d(2, 1, padding=1), (1, 3, 2, 4, 1)),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make, shape", TIED, ids=[str(i) for i in range(len(TIED))])
def test_the_largest_of_a_window_share_its_derivative(make: Any, shape: tuple[int, ...], compiled: bool) -> None:
    """Equally, as in MLX; of a window at the rim those inside."""
    settings.tier = "program" if compiled else "ops"
    layer, rng = make(), rng_of(shape)
    x, t = rng.integers(0, 3, shape).astype(np.float64), rng.standard_normal(shape)
    kernel, stride, pad = layer._kernel_size, layer._stride, layer._padding
    sides = [(0, 0), *((p, p) for p in pad), (0, 0)]
    padded, moved = np.pad(x, sides, constant_values=-np.inf), np.pad(t, sides)
    axes = tuple(range(1 + len(kernel), 1 + 2 * len(kernel)))
    inside, tangents = (windows(v, kernel, stride, (1,) * len(kernel)) for v in (padded, moved))
    chosen = inside == inside.max(axes, keepdims=True)
    pushed = (tangents * chosen).sum(axes) / chosen.sum(axes)
    weights = rng.standard_normal(pushed.shape)
    pulled = np.zeros_like(padded)
    for place in np.ndindex(*pushed.shape[1:-1]):
        at = (slice(None), *place)
        share = chosen[at] / chosen[at].sum(axis=tuple(range(1, 1 + len(kernel))), keepdims=True)
        cut = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, stride, kernel))
        pulled[(slice(None), *cut)] += share * np.expand_dims(weights[at], tuple(range(1, 1 + len(kernel))))
    pulled = pulled[(slice(None), *(slice(p, p + n) for p, n in zip(pad, shape[1:])), slice(None))]
    run = smelt.compile if compiled else lambda f: f
    v, c, w = (smelt.array(a.astype(np.float32)) for a in (x, t, weights))
    close(run(lambda v, c: smelt.jvp(layer, [v], [c])[1][0])(v, c), pushed, "float32")
    gradient = smelt.grad(lambda v: (layer(v) * w).sum())
    close(run(gradient)(v), pulled, "float32")
    if not compiled:
        close(smelt.vmap(gradient)(smelt.stack([v, 2 * v]))[1], pulled, "float32")
        # a linear function of what it derives: no second derivative, and half of that of the square is the first again
        square = smelt.grad(lambda v: (layer(v) ** 2).sum() / 2)
        second = smelt.jvp(square, [v], [c])[1][0]
        close((second * c).sum(), (pushed**2).sum(), "float32")


def test_weights_at_first_are_for_what_a_group_sees() -> None:
    for layer, sees in ((nn.Conv1d(64, 64, 3, groups=64), 3), (nn.Conv2d(32, 64, 3, groups=4), 72)):
        assert 0.9 < smelt.abs(layer.weight).max().item() * sees**0.5 <= 1


def test_what_they_show() -> None:
    assert repr(nn.Conv1d(2, 4, 3)) == (
        "Conv1d(2, 4, kernel_size=3, stride=1, padding=0, dilation=1, groups=1, bias=True)"
    )
    assert "kernel_size=(3, 3), stride=(2, 2)" in repr(nn.ConvTranspose2d(2, 4, 3, 2))
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"
    layer = nn.Conv2d(2, 4, 3)
    assert set(layer) == {"weight", "bias"} and layer.stride == (1, 1)
    twins = smelt.utils.tree_map(lambda a, b: smelt.stack([a, b]), layer, nn.Conv2d(2, 4, 3))
    found = smelt.vmap(lambda m, x: m(x), in_axes=(0, None))(twins, smelt.ones((1, 4, 4, 2)))
    assert found.shape == (2, 1, 2, 2, 4)
    whole = nn.MaxPool1d(2, padding=1)(smelt.array([[[3], [1], [2]]]))
    assert whole.dtype is smelt.int32 and whole.reshape(-1).tolist() == [3, 2]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "Conv2d: channels must be 2 equal groups; 3 come in, 4 go out"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), "Conv2d: kernel_size must be an int or 2 of them"),
        (lambda: nn.Conv1d(3, 4, 3, stride=1.5), "Conv1d: stride must be an int, is 1.5"),  # type: ignore[arg-type]
        (lambda: nn.Conv2d(0, 4, 3), "smelt.nn.Conv2d: in_channels must be at least 1, is 0"),
        (lambda: nn.Conv2d(2, 4, 3, groups=0), "smelt.nn.Conv2d: groups must be at least 1, is 0"),
        (lambda: nn.Conv2d(2, 4, (3, 0)), "smelt.nn.Conv2d: kernel_size must be at least 1, is 0"),
        (lambda: nn.Conv3d(2, 4, 3, stride=0), "smelt.nn.Conv3d: stride must be at least 1, is 0"),
        (lambda: nn.Conv1d(2, 4, 3, dilation=0), "smelt.nn.Conv1d: dilation must be at least 1, is 0"),
        (lambda: nn.ConvTranspose2d(2, 4, 0), "ConvTranspose2d: kernel_size must be at least 1, is 0"),
        (lambda: nn.MaxPool2d(2, padding=-1), "MaxPool2d: padding must not be negative, is -1"),
        (lambda: nn.MaxPool2d(2, stride=0), "MaxPool2d: stride must be at least 1, is 0"),
        (lambda: nn.MaxPool2d(2)(smelt.zeros((4, 4, 1))), r"MaxPool2d: needs 4 axes.*x f32\[4,4,1\]"),
        (lambda: nn.AvgPool1d(5)(smelt.zeros((1, 4, 1))), r"AvgPool1d: a window of 5 does not fit on axis 1"),
        (lambda: nn.Conv1d(3, 4, 3)(smelt.zeros((1, 8, 2))), r"f32\[1,8,2\]"),
        (lambda: nn.Upsample(2, "best"), "Upsample: mode must be nearest, linear or cubic, is 'best'"),
        (lambda: nn.Upsample(-1.0), "Upsample: scale_factor must be positive"),
        (lambda: nn.Upsample(2, "linear", True, True), "antialias does not go with align_corners"),
        (lambda: nn.Upsample((2, 2))(smelt.zeros((1, 4, 1))), "Upsample: 2 factors for 1 spatial axes"),
        (lambda: nn.Upsample(2)(smelt.zeros((4, 1))), "Upsample: needs axes"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(smelt.SmeltError, match=message) as caught:
        call()
    assert "test_windows.py" in str(caught.value)


def row(*values: float, dtype: Any = smelt.float32) -> smelt.array:
    return smelt.array(values, dtype).reshape(1, -1, 1)


def test_upsampling_by_hand() -> None:
    x = row(1.0, 5.0, 2.0, 8.0)
    assert nn.Upsample(2)(x).reshape(-1).tolist() == [1, 1, 5, 5, 2, 2, 8, 8]
    assert nn.Upsample(1.5)(x).reshape(-1).tolist() == [1, 1, 5, 2, 2, 8]
    assert nn.Upsample(0.5)(x).reshape(-1).tolist() == [1, 2]
    assert nn.Upsample(2, "linear")(x).reshape(-1).tolist() == [1, 2, 4, 4.25, 2.75, 3.5, 6.5, 8]
    corners = nn.Upsample(1.75, "linear", align_corners=True)(x).reshape(-1).tolist()
    assert corners == [1, 3, 5, 3.5, 2, 5, 8]
    assert nn.Upsample(0.5, "linear", antialias=True)(row(0.0, 0.0, 7.0, 0.0, 0.0, 0.0)).reshape(-1).tolist() == (
        pytest.approx([1.0, 2.625, 0.0])
    )
    cubic = nn.Upsample(2, "cubic")(x).reshape(-1)
    assert cubic[0].item() == pytest.approx(1 - 4 * 0.10546875)
    # A line stays a line where all taps lie inside, but for the cubic kernel of slope -0.75; a constant stays one.
    line = smelt.arange(12.0).reshape(1, -1, 1)
    for mode, smooth in itertools.product(("linear", "cubic"), (False, True)):
        found = nn.Upsample(2, mode, antialias=smooth)(line).reshape(-1)
        if mode == "linear" or smooth:
            close(found[6:-6], (np.arange(24.0) / 2 - 0.25)[6:-6], "float32")
        same = nn.Upsample((0.6, 1.7), mode, antialias=smooth)(smelt.ones((1, 5, 6, 2)))
        close(same, np.ones((1, 3, 10, 2)), "float32")


def test_upsampling_keeps_dtypes_and_has_gradients() -> None:
    for dtype in TOLERANCE:
        kind = getattr(smelt, dtype)
        assert nn.Upsample(2.5, "linear")(row(1.0, 2.0, dtype=kind)).dtype is kind
    assert nn.Upsample(3)(row(1, 2, dtype=smelt.int32)).dtype is smelt.int32
    assert nn.Upsample(3, "linear")(row(1, 2, dtype=smelt.int32)).dtype is smelt.float32
    x = rng_of("upsample").standard_normal((1, 4, 3, 2))
    for mode in ("nearest", "linear", "cubic"):
        check_gradient(nn.Upsample((1.5, 2.0), mode), x)


@pytest.mark.parametrize("dtype", ["bool_", "uint8", "int32", "float16", "complex64"])
def test_windows_beyond_the_edge_of_any_dtype(dtype: str) -> None:
    x = smelt.array([[[0], [1], [1], [0], [1]]]).astype(getattr(smelt, dtype))
    assert nn.MaxPool1d(2, 2, 1)(x)[0, :, 0].astype(smelt.float32).tolist() == [0, 1, 1]
    assert nn.MaxPool1d(2, 2, 1)(x).dtype is x.dtype
