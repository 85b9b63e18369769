"""Convolutions against sums written out, one product at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, ShapeError
from smelt.ir.op import get
from smelt.ir.text import parse
from smelt.passes import Pipeline
from tests.frontend.checks import check_gradient

OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 3},
    {"padding": 2, "dilation": 3},
    {"stride": 3, "padding": 1, "dilation": 2, "groups": 2},
    {"groups": 4, "padding": 1},
]


def summed(x: np.ndarray, w: np.ndarray, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Any:
    (n, length, _), (outputs, taps, per_group) = x.shape, w.shape
    places = (length + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    out = np.zeros((n, places, outputs))
    for b, i, o, k, c in itertools.product(*map(range, (n, places, outputs, taps, per_group))):
        at = i * stride + k * dilation - padding
        if 0 <= at < length:
            out[b, i, o] += x[b, at, o // (outputs // groups) * per_group + c] * w[o, k, c]
    return out


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float16, smelt.int32], ids=str)
def test_conv1d_is_the_sum_over_its_window(options: dict[str, Any], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-5, 6, (2, 9, 4))
    w = rng.integers(-5, 6, (8, 3, 4 // options.get("groups", 1)))
    found = smelt.conv1d(smelt.array(x, dtype), smelt.array(w, dtype), **options)
    assert found.dtype is dtype
    np.testing.assert_array_equal(np.asarray(found), summed(x, w, **options))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_conv1d_has_derivatives(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 9, 4)), rng.standard_normal((8, 3, 4 // options.get("groups", 1)))
    check_gradient(lambda x, w: smelt.conv1d(x, w, **options), x, w)


@pytest.mark.parametrize("in_axes", [(0, None), (2, 1), (None, 3)])
def test_conv1d_is_batched_by_channels_and_groups(in_axes: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(2)
    options = {"stride": 2, "padding": 1, "groups": 2}
    xs, ws = rng.integers(-5, 6, (3, 2, 7, 4)), rng.integers(-5, 6, (3, 6, 3, 2))
    operands = [z[0] if axis is None else np.moveaxis(z, 0, axis) for z, axis in zip((xs, ws), in_axes)]
    found = smelt.vmap(lambda x, w: smelt.conv1d(x, w, **options), in_axes)(*map(smelt.array, operands))
    want = [summed(xs[i if in_axes[0] is not None else 0], ws[i if in_axes[1] is not None else 0], **options) for i in
            range(3)]  # fmt: skip
    np.testing.assert_array_equal(np.asarray(found), np.stack(want))


def test_derivatives_of_a_convolution_are_convolutions() -> None:
    x, w = smelt.ones((2, 9, 4)), smelt.ones((8, 3, 4))

    def gradients(x: smelt.array, w: smelt.array) -> Any:
        return smelt.grad(lambda x, w: smelt.conv1d(x, w, 2, 1, 2).sum(), (0, 1))(x, w)

    module = parse(smelt.make_ir(gradients)(x, w))
    Pipeline.parse("fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce").run(module)
    text = str(module)
    assert text.count('"smelt.conv_general"') == 2
    assert not any(word in text for word in ("scf.for", "smelt.scatter", "smelt.pad"))


@pytest.mark.parametrize("option", ["stride", "padding", "kernel_dilation", "input_dilation"])
def test_one_entry_is_for_all_axes(option: str) -> None:
    x, w = smelt.arange(100.0).reshape(1, 5, 5, 4), smelt.ones((3, 2, 2, 4))
    expected = smelt.conv_general(x, w, **{option: 2}).tolist()
    for one in [(2,), [2]] + ([([2], [2])] if option == "padding" else []):
        assert smelt.conv_general(x, w, **{option: one}).tolist() == expected


def test_conv_general_has_all_options() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.integers(-5, 6, (2, 4, 5, 3)), rng.integers(-5, 6, (2, 2, 3, 3))
    found = smelt.conv_general(
        x, w, stride=(1, 2), padding=([1, 0], [0, 3]), kernel_dilation=2, input_dilation=(3, 1), flip=True
    )
    wide = np.zeros((2, 10 + 1, 5 + 3, 3), int)
    wide[:, 1::3, :5] = x
    taps = w[:, ::-1, ::-1]
    want = np.zeros((2, 9, 2, 2), int)
    for i, j, k, m in itertools.product(range(9), range(2), range(2), range(3)):
        want[:, i, j] += wide[:, i + 2 * k, 2 * j + 2 * m] @ taps[:, k, m].T
    np.testing.assert_array_equal(np.asarray(found), want)


def test_padding_multiplies_and_nan_stays() -> None:
    weight = smelt.array([[[math.nan], [1.0]]])
    assert np.isnan(np.asarray(smelt.conv1d(smelt.ones((1, 1, 1)), weight, padding=1))).all()


@pytest.mark.parametrize(
    ("error", "rule", "call"),
    [
        (ShapeError, r"conv1d: input and weight must have 3 axes; input f32\[4,4\]",
         lambda: smelt.conv1d(smelt.ones((4, 4)), smelt.ones((4, 3, 4)))),
        (ShapeError, "conv1d: input has 4 channels, weight has 4 for each of 2 groups",
         lambda: smelt.conv1d(smelt.ones((1, 4, 4)), smelt.ones((4, 3, 4)), groups=2)),
        (ShapeError, "input has 8 channels, weight has 3 for each of 1 groups; channels are the last axis",
         lambda: smelt.conv2d(smelt.ones((1, 3, 8, 8)), smelt.ones((4, 3, 3, 3)))),
        (ShapeError, "the window does not fit on axis 1 of input, padding included",
         lambda: smelt.conv1d(smelt.ones((1, 4, 4)), smelt.ones((4, 3, 4)), dilation=2)),
        (AttributeValueError, "stride must be at least 1, is 0",
         lambda: smelt.conv1d(smelt.ones((1, 4, 4)), smelt.ones((4, 3, 4)), stride=0)),
        (ArgumentTypeError, "padding must be an int",
         lambda: smelt.conv1d(smelt.ones((1, 4, 4)), smelt.ones((4, 3, 4)), padding=0.5)),  # type: ignore[arg-type]
        (AttributeValueError, "stride needs one entry for each of 1 spatial axes",
         lambda: smelt.conv_general(smelt.ones((1, 4, 4)), smelt.ones((4, 3, 4)), stride=(1, 2))),
    ],
)  # fmt: skip
def test_errors_say_what_does_not_fit(error: type[Exception], rule: str, call: Any) -> None:
    with pytest.raises(error, match=rule):
        call()


@pytest.mark.parametrize("room", [1, 40, 500, 10**6])
@pytest.mark.parametrize(
    "x, w, strides, low, high, dilation, spread",
    [
        ((3, 9, 7, 2), (4, 3, 2, 2), (2, 1), (1, 0), (1, 2), (1, 2), (1, 1)),
        ((2, 11, 3), (5, 4, 3), (1,), (2,), (-1,), (2,), (3,)),
        ((4, 3), (2, 3), (), (), (), (), ()),
        ((2, 6, 5, 1), (2, 6, 5, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)),
    ],
)
def test_windows_are_copied_in_parts(
    monkeypatch: pytest.MonkeyPatch, room: int, x: Any, w: Any, strides: Any, low: Any, high: Any, dilation: Any,
    spread: Any,
) -> None:  # fmt: skip
    """By the rule, however many windows one product takes; beside two groups, which take them tap by tap."""
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-4, 5, shape).astype(np.float32) for shape in (x, w))
    attrs = {
        "window_strides": strides, "padding_low": low, "padding_high": high, "kernel_dilation": dilation,
        "input_dilation": spread,
    }  # fmt: skip
    op = get("conv_general")
    monkeypatch.setattr("smelt.ir.ops.convolution._WINDOWS", room)
    found = op.reference(left, right, feature_groups=1, **attrs)
    twice = op.reference(np.concatenate([left, left], -1), np.concatenate([right, right], 0), feature_groups=2, **attrs)
    np.testing.assert_array_equal(np.concatenate([found, found], -1), twice)
