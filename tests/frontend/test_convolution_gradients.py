"""Gradients of convolutions whose windows are single elements, or of one channel each, and of all others.

A convolution is linear in each operand: so its gradient has the same product with a change of the operand as the
cotangent has with the convolution of that change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 9, 10, 8), (16, 1, 1, 8), {}),
    ((2, 9, 10, 8), (16, 1, 1, 8), {"stride": (2, 3)}),
    ((2, 9, 10, 8), (16, 1, 1, 8), {"stride": 2, "padding": 1}),
    ((2, 9, 10, 8), (16, 1, 1, 4), {"groups": 2}),
    ((1, 1, 1, 8), (16, 1, 1, 8), {}),
    ((2, 9, 8), (16, 1, 8), {"stride": 4, "kernel_dilation": 3}),
    ((2, 9, 10, 32), (64, 3, 3, 32), {}),
    ((2, 9, 10, 32), (64, 3, 3, 32), {"stride": 2, "padding": 1}),
    ((2, 19, 10, 32), (64, 3, 3, 32), {"kernel_dilation": 2, "padding": 1}),
    ((2, 9, 10, 32), (64, 3, 3, 32), {"input_dilation": 2, "padding": 1}),
    ((1, 19, 10, 32), (64, 5, 1, 32), {"padding": ((2, 1), (0, 3))}),
    ((2, 5, 6, 7, 16), (32, 3, 3, 3, 16), {"padding": 1}),
    ((2, 100, 1), (20, 5, 1), {}),
    ((2, 9, 10, 8), (8, 3, 3, 1), {"groups": 8, "padding": 1}),
    ((2, 9, 10, 8), (8, 5, 5, 1), {"groups": 8, "padding": 2, "stride": (3, 2)}),
    ((2, 9, 10, 8), (8, 3, 3, 1), {"groups": 8, "kernel_dilation": 2, "stride": 2}),
    ((2, 9, 10, 8), (8, 3, 3, 1), {"groups": 8, "input_dilation": 2, "padding": 1}),
    ((2, 9, 10, 8), (16, 3, 3, 1), {"groups": 8, "padding": 1}),
    ((2, 9, 10, 8), (8, 1, 1, 1), {"groups": 8}),
    ((1, 1, 1, 8), (8, 3, 3, 1), {"groups": 8, "padding": 1, "stride": 2}),
    ((2, 19, 8), (8, 5, 1), {"groups": 8, "padding": ((2,), (1,))}),
    ((1, 40, 3), (3, 30, 1), {"groups": 3}),
    ((1, 90, 3), (3, 60, 1), {"groups": 3}),
    ((2, 30, 31, 16), (16, 3, 3, 1), {"groups": 16, "padding": 1}),
    ((2, 30, 31, 16), (16, 3, 3, 1), {"groups": 16, "padding": 1, "stride": 2}),
    ((2, 30, 31, 72), (72, 3, 3, 1), {"groups": 72, "padding": ((0, 2), (1, 0)), "kernel_dilation": (2, 3)}),
    ((2, 12, 13, 8), (8, 7, 7, 1), {"groups": 8, "padding": 3}),
    ((2, 6, 7, 5, 8), (8, 3, 3, 3, 1), {"groups": 8, "padding": 1, "stride": (1, 2, 1)}),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "options"), CASES, ids=str)
def test_gradients(x_shape: tuple[int, ...], w_shape: tuple[int, ...], options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    x, w, dx, dw = (smelt.array(rng.standard_normal(s).astype(np.float32)) for s in (x_shape, w_shape) * 2)

    def convolved(x: smelt.array, w: smelt.array) -> smelt.array:
        return smelt.conv_general(x, w, **options)

    def gradients(x: smelt.array, w: smelt.array, ct: smelt.array) -> Any:
        return smelt.vjp(convolved, [x, w], [ct])[1]

    ct = smelt.array(rng.standard_normal(convolved(x, w).shape).astype(np.float32))
    of_x, of_w = (float((ct * convolved(*change)).sum()) for change in ((dx, w), (x, dw)))
    for function in (gradients, smelt.compile(gradients)):
        gx, gw = function(x, w, ct)
        assert gx.shape == x_shape and gw.shape == w_shape
        np.testing.assert_allclose([float((gx * dx).sum()), float((gw * dw).sum())], [of_x, of_w], rtol=2e-3, atol=3e-2)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16, smelt.complex64])
def test_depthwise_kernels_of_other_dtypes(dtype: smelt.Dtype) -> None:
    rng = np.random.default_rng(2)
    x, ct = (smelt.array(rng.standard_normal((3, 12, 12, 4)).astype(np.float32)) for _ in range(2))
    w = smelt.zeros((4, 3, 3, 1))

    def gradient(*arrays: smelt.array) -> smelt.array:
        x, w, ct = arrays
        return smelt.vjp(lambda w: smelt.conv2d(x, w, padding=1, groups=4), [w], [ct])[1][0]

    found = smelt.compile(gradient)(*(a.astype(dtype) for a in (x, w, ct)))
    assert found.dtype == dtype
    np.testing.assert_allclose(np.array(found.astype(smelt.float32)), np.array(gradient(x, w, ct)), atol=0.3, rtol=2e-2)
