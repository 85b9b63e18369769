"""Convolutions of inputs whose elements stand apart, as one for each phase, against the reference rule in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.op import registry
from smelt.lazy.arrays import emit
from smelt.passes.simplify import patterns_convolution

#: Places and groups, spatial extents, taps, how far apart, padding.
CASES = [
    (1, (5,), (3,), (2,), (1,), (2,)),
    (1, (4,), (1,), (3,), (0,), (0,)),  # phases without a tap
    (1, (4,), (2,), (3,), (-2,), (4,)),  # cut off
    (2, (3, 4), (3, 3), (2, 2), (1, 1), (2, 1)),
    (1, (3, 4), (4, 2), (2, 3), (3, 0), (-1, 2)),
    (1, (3, 4), (2, 3), (1, 2), (0, 2), (1, 3)),  # one axis alone
    (3, (2, 3, 2), (3, 2, 2), (2, 1, 3), (1, 0, 2), (1, 1, 0)),
]


@pytest.mark.parametrize(("groups", "extents", "taps", "apart", "low", "high"), CASES)
def test_values(
    groups: int, extents: Any, taps: Any, apart: Any, low: Any, high: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns_convolution, "WORK", 0)
    monkeypatch.setattr(patterns_convolution, "CHANNELS", 1)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, *extents, 2 * groups))
    w = rng.standard_normal((3 * groups, *taps, 2))
    ones = (1,) * len(extents)
    attrs = {
        "window_strides": ones, "padding_low": low, "padding_high": high, "kernel_dilation": ones,
        "input_dilation": apart, "feature_groups": groups,
    }  # fmt: skip
    expected = registry["conv_general"].reference(x, w, **attrs)

    def conv(x: smelt.array, w: smelt.array) -> smelt.array:
        return emit(registry["conv_general"], (x, w), attrs)  # which takes negative padding, too

    operands = smelt.array(x, smelt.float64), smelt.array(w, smelt.float64)
    compiled = smelt.compile(conv).trace(*operands).lower().compile()
    before, after = (f"input_dilation = array<i64: {', '.join(map(str, n))}>" for n in (apart, ones))
    assert before in compiled.as_text("graph")
    text = compiled.as_text("canonicalize")
    assert before not in text and after in text
    np.testing.assert_allclose(np.asarray(smelt.compile(conv)(*operands)), expected, atol=1e-12)


def test_gradient_of_images() -> None:
    """Of strides, which is such a convolution; and its own derivative."""
    rng = np.random.default_rng(4)
    x, w = (smelt.array(rng.standard_normal(s).astype(np.float32)) for s in ((2, 28, 28, 32), (32, 3, 3, 32)))

    def total(x: smelt.array, w: smelt.array) -> smelt.array:
        return smelt.square(smelt.conv2d(x, w, stride=2, padding=1)).sum()

    gradient = smelt.grad(total)
    compiled = smelt.compile(gradient).trace(x, w).lower().compile()
    assert "input_dilation = array<i64: 2, 2>" not in compiled.as_text("canonicalize")
    found = np.asarray(smelt.compile(gradient)(x, w))
    expected = np.zeros((2, 30, 30, 32))
    kernel, result = np.asarray(w, np.float64), np.asarray(smelt.conv2d(x, w, stride=2, padding=1), np.float64)
    for i in range(3):
        for j in range(3):
            expected[:, i : i + 27 : 2, j : j + 27 : 2] += 2 * result @ kernel[:, i, j]
    expected = expected[:, 1:29, 1:29]
    np.testing.assert_allclose(found, expected, atol=2e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("what", ["small", "few channels", "strides", "dilation"])
def test_what_stays(what: str) -> None:
    channels, size = (2 if what == "few channels" else 32), (4 if what == "small" else 60)
    x, w = smelt.zeros((1, size, size, channels)), smelt.zeros((32, 3, 3, channels))
    options: dict[str, Any] = (
        {"stride": 2} if what == "strides" else {"kernel_dilation": 2} if what == "dilation" else {}
    )

    def conv(x: smelt.array, w: smelt.array) -> smelt.array:
        return smelt.conv_general(x, w, padding=2, input_dilation=2, **options)

    text = smelt.compile(conv).trace(x, w).lower().compile().as_text("canonicalize")
    assert "input_dilation = array<i64: 2, 2>" in text
