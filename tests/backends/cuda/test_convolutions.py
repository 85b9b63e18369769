"""Convolutions of the device ``cuda`` by cuDNN, over a library and a driver without a GPU."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cuda import convolutions
from smelt.backends.gpu.devices import GPUS
from smelt.ir.settings import override

from .fake_dnn import FakeDnn
from .fake_driver import FakeDriver
from .test_device import _forget, fake, gpu
from .test_products import ALL

pytestmark = pytest.mark.usefixtures("small_heap")
assert fake and gpu  # fixtures


@pytest.fixture
def dnn(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDnn]:
    """The device's library."""
    found = FakeDnn(fake)
    monkeypatch.setattr(convolutions, "load", lambda name: found)
    monkeypatch.setitem(GPUS, "nvidia", ALL)
    _forget()
    with override(tier="program"):
        yield found
    _forget()


def numbers(*shape: int) -> np.ndarray:
    """Of which sums are exact in every dtype."""
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(np.float32)


def oracle(
    x: np.ndarray, w: np.ndarray, ct: np.ndarray, stride: Any, padding: Any, kernel_dilation: Any, groups: int
) -> list[np.ndarray]:
    """The result of a convolution, and the cotangents of its operands; tap by tap, place by place."""
    low, high = padding
    x = x.astype(np.float64)
    padded = np.pad(x, [(0, 0), *zip(low, high), (0, 0)])
    y, dx, dw = np.zeros(ct.shape), np.zeros(padded.shape), np.zeros(w.shape)
    each, outputs = w.shape[-1], w.shape[0] // groups
    for place in itertools.product(*map(range, ct.shape[1:-1])):
        for tap in itertools.product(*map(range, w.shape[1:-1])):
            at = tuple(i * s + t * d for i, s, t, d in zip(place, stride, tap, kernel_dilation))
            for g in range(groups):
                c, o = slice(g * each, (g + 1) * each), slice(g * outputs, (g + 1) * outputs)
                kernel = w[(o, *tap)]
                y[(slice(None), *place, o)] += padded[(slice(None), *at, c)] @ kernel.T
                dx[(slice(None), *at, c)] += ct[(slice(None), *place, o)] @ kernel
                dw[(o, *tap)] += ct[(slice(None), *place, o)].T @ padded[(slice(None), *at, c)]
    inside = tuple(slice(a, a + n) for a, n in zip(low, x.shape[1:-1]))
    return [y, dx[(slice(None), *inside)], dw]


def ran(
    shape: tuple[int, ...], filter: tuple[int, ...], dtype: Any = smelt.float32, stride: Any = 1, padding: Any = 0,
    kernel_dilation: Any = 1, groups: int = 1,
) -> None:  # fmt: skip
    """A convolution and both of its gradients on the device, beside NumPy's."""
    axes = len(shape) - 2
    stride, kernel_dilation = ((n,) * axes if isinstance(n, int) else n for n in (stride, kernel_dilation))
    padding = ((padding,) * axes, (padding,) * axes) if isinstance(padding, int) else padding
    options = {"stride": stride, "padding": padding, "kernel_dilation": kernel_dilation, "groups": groups}
    x, w = numbers(*shape), numbers(*filter)
    spatial = [
        (n + low + high - (k - 1) * d - 1) // s + 1
        for n, low, high, k, d, s in zip(shape[1:], *padding, filter[1:], kernel_dilation, stride)
    ]
    ct = numbers(shape[0], *spatial, filter[0])

    @smelt.compile
    def both(x: Any, w: Any, ct: Any) -> Any:
        y, pull = smelt.vjp(lambda *a: smelt.conv_general(*a, **options), [x, w], [ct])
        return y[0], *pull

    found = [np.array(a.astype(smelt.float64)) for a in both(*(smelt.array(a).astype(dtype) for a in (x, w, ct)))]
    for name, out, want in zip(("result", "image", "filter"), found, oracle(x, w, ct, **options)):
        rounded = np.array(smelt.array(want).astype(dtype).astype(smelt.float64))
        np.testing.assert_array_equal(out, rounded, err_msg=name)


#: Shapes of images and filters, and options.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1-d": ((2, 9, 8), (16, 3, 8), {"padding": 1}),
    "1-d, strides": ((2, 9, 8), (16, 3, 8), {"stride": 2}),
    "2-d": ((2, 7, 6, 8), (16, 3, 3, 8), {"padding": 1}),
    "no padding": ((2, 7, 6, 8), (16, 3, 2, 8), {}),
    "strides": ((2, 7, 8, 8), (16, 3, 3, 8), {"padding": 1, "stride": 2}),
    "strides, even": ((2, 8, 8, 8), (16, 3, 3, 8), {"padding": 1, "stride": 2}),
    "strides that leave some": ((2, 9, 10, 8), (16, 2, 3, 8), {"stride": (3, 4)}),
    "stem": ((2, 16, 16, 3), (8, 7, 7, 3), {"padding": 3, "stride": 2}),
    "dilation": ((2, 9, 9, 8), (16, 3, 3, 8), {"padding": 2, "kernel_dilation": 2}),
    "dilation and strides": ((2, 9, 9, 8), (16, 3, 3, 8), {"padding": 2, "kernel_dilation": (2, 1), "stride": 2}),
    "unequal padding": ((2, 7, 6, 8), (16, 3, 3, 8), {"padding": ((0, 2), (1, 0))}),
    "unequal padding, strides": ((2, 7, 6, 8), (16, 3, 3, 8), {"padding": ((0, 1), (1, 2)), "stride": 2}),
    "much padding": ((1, 4, 4, 8), (16, 3, 3, 8), {"padding": 4}),
    "groups": ((2, 7, 6, 8), (12, 3, 3, 4), {"padding": 1, "groups": 2}),
    "groups, strides": ((2, 7, 6, 8), (12, 3, 3, 4), {"padding": 1, "groups": 2, "stride": 2}),
    "depthwise": ((2, 7, 6, 8), (8, 3, 3, 1), {"padding": 1, "groups": 8}),
    "two channels a group": ((2, 7, 6, 8), (8, 3, 3, 2), {"padding": 1, "groups": 4}),
    "one place": ((2, 3, 3, 8), (16, 3, 3, 8), {}),
    "one image": ((1, 6, 6, 8), (16, 3, 3, 8), {"padding": 1}),
    "one channel": ((2, 6, 6, 1), (8, 3, 3, 1), {"padding": 1}),
    "one result": ((2, 6, 6, 8), (1, 3, 3, 8), {"padding": 1}),
    "a row": ((2, 1, 6, 8), (16, 1, 3, 8), {"padding": ((0, 1), (0, 1))}),
    "3-d": ((2, 4, 5, 4, 4), (8, 3, 2, 3, 4), {"padding": 1}),
    "3-d, all": (
        (1, 5, 6, 5, 4), (8, 2, 3, 3, 2),
        {"padding": ((0, 1, 2), (1, 1, 0)), "stride": (1, 2, 2), "kernel_dilation": (2, 1, 1), "groups": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(dnn: FakeDnn, name: str) -> None:
    """The three of them by the library, from arrays as they lie; the filter's of few channels is a sum of its own."""
    shape, filter, options = CASES[name]
    ran(shape, filter, **options)
    assert sorted(found["written"] for found in dnn.done) == (["x", "y"] if name == "depthwise" else ["w", "x", "y"])
