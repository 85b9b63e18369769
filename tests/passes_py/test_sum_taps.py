"""Convolutions of each channel by itself with few large windows, as sums: that values stay, and what is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.op import registry
from smelt.ir.settings import override
from smelt.lazy.arrays import emit

#: Images, extents, taps of the result, strides of its places, how far apart kernel elements stand, padding.
CASES = [
    (1, (9,), (3,), (1,), (1,), (0,), (0,)),
    (3, (9,), (2,), (2,), (1,), (1,), (1,)),
    (2, (8, 9), (3, 2), (1, 1), (1, 1), (1, 0), (1, 0)),
    (2, (11, 12), (2, 3), (2, 1), (1, 2), (0, 2), (1, 2)),
    (2, (9, 9), (3, 3), (1, 1), (1, 1), (2, 2), (-1, 0)),  # cut off
    (1, (4, 5, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), (1, 0, 1), (0, 1, 0)),
]


@pytest.mark.parametrize("dtype", ("float64", "int32"))
@pytest.mark.parametrize(("n", "extents", "places", "strides", "apart", "low", "high"), CASES)
def test_values(
    n: int, extents: Any, places: Any, strides: Any, apart: Any, low: Any, high: Any, dtype: str
) -> None:  # fmt: skip
    groups, rng = 4, np.random.default_rng(3)
    room = [e + a + b - (m - 1) * s for e, a, b, m, s in zip(extents, low, high, places, strides)]
    taps = tuple((r - 1) // d + 1 for r, d in zip(room, apart))
    high = tuple(h - (r - ((t - 1) * d + 1)) for h, r, t, d in zip(high, room, taps, apart))
    x, w = (rng.integers(-9, 9, s).astype(dtype) for s in ((1, *extents, groups * n), (groups, *taps, n)))
    attrs = {
        "window_strides": strides, "padding_low": low, "padding_high": high, "kernel_dilation": apart,
        "input_dilation": (1,) * len(extents), "feature_groups": groups,
    }  # fmt: skip
    expected = registry["conv_general"].reference(x, w, **attrs)
    assert expected.shape == (1, *places, groups)

    def conv(x: smelt.array, w: smelt.array) -> smelt.array:
        return emit(registry["conv_general"], (x, w), attrs)  # which takes negative padding, too

    kind = getattr(smelt, dtype)
    operands = smelt.array(x, kind), smelt.array(w, kind)
    compiled = smelt.compile(conv).trace(*operands).lower().compile()
    assert "conv_general" in compiled.as_text("graph") and "conv_general" not in compiled.as_text("sum-taps")
    np.testing.assert_array_equal(np.asarray(smelt.compile(conv)(*operands)), expected)


@pytest.mark.parametrize("what", ["many places", "two outputs", "one group", "spread"])
def test_what_stays(what: str) -> None:
    groups, outputs = (1 if what == "one group" else 4), (2 if what == "two outputs" else 1)
    x = smelt.zeros((1, 200, 4 * groups))
    w = smelt.zeros((groups * outputs, 100 if what == "many places" else 198, 4))
    options: dict[str, Any] = {"groups": groups}
    if what == "spread":
        options |= {"input_dilation": 2, "padding": ([-199], [0])}
        w = smelt.zeros((groups, 199, 4))

    def conv(x: smelt.array, w: smelt.array) -> smelt.array:
        return smelt.conv_general(x, w, **options)

    assert "conv_general" in smelt.compile(conv).trace(x, w).lower().compile().as_text("sum-taps")


@pytest.mark.parametrize("width", [1, 3, 16, 33, 700])
def test_products_with_vectors_are_sums(width: int) -> None:
    rng = np.random.default_rng(0)
    host, vector = rng.standard_normal((20_000 // width + 1, width), np.float32), rng.standard_normal(width, np.float32)
    x, v = smelt.array(host), smelt.array(vector)

    def products(x, v):
        return x @ v, v @ x.T, smelt.tensordot(x, x, 2)

    compiled = smelt.compile(products).trace(x, v).lower().compile()
    assert "dot_general" in compiled.as_text("graph") and "reduce_sum" in compiled.as_text("sum-taps")
    with override(tier="program"):
        along, again, square = smelt.compile(products)(x, v)
        slope = smelt.compile(smelt.grad(lambda x, v: ((x @ v) ** 2).sum(), argnums=1))(x, v)
    wide = host.astype(np.float64)
    np.testing.assert_allclose(np.asarray(along), wide @ vector, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(np.asarray(again), wide @ vector, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(np.asarray(square), (wide**2).sum(), rtol=1e-4)
    np.testing.assert_allclose(np.asarray(slope), 2 * (wide @ vector) @ wide, rtol=2e-3, atol=1e-1)
