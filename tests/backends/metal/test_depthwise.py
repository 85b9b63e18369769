"""Depthwise convolutions, and what else has few numbers of its own for each of many channels, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import smelt

from . import harness
from .test_contract import of, right

SCHEDULE = "contract-depthwise"


def depthwise(channels: int, **options: Any) -> Callable:
    return lambda x, w: smelt.conv_general(x, w, groups=channels, **options)


def images_first(x: Any, w: Any) -> Any:
    """Channels before places, as others have it: nothing lies next to its neighbours as the schedule wants it."""
    return smelt.conv2d(x.transpose(0, 2, 3, 1), w, padding=1, groups=8).transpose(0, 3, 1, 2)


LAYERS = {
    "3×3": (depthwise(24, padding=1), (2, 9, 11, 24), (24, 3, 3, 1)),
    "no padding": (depthwise(16), (1, 8, 9, 16), (16, 3, 2, 1)),
    "stride": (depthwise(12, stride=2, padding=1), (2, 9, 11, 12), (12, 3, 3, 1)),
    "dilation": (depthwise(8, padding=2, kernel_dilation=2), (1, 9, 11, 8), (8, 3, 3, 1)),
    "spread": (depthwise(8, padding=1, input_dilation=2), (1, 5, 6, 8), (8, 3, 3, 1)),
    "many taps": (depthwise(40, padding=5), (1, 10, 9, 40), (40, 11, 11, 1)),
    "odd channels": (depthwise(9, padding=1), (1, 7, 5, 9), (9, 3, 3, 1)),
    "two channels at once": (depthwise(10, padding=1), (1, 7, 5, 10), (10, 3, 3, 1)),
    "more channels than a threadgroup has": (depthwise(148, padding=1), (1, 4, 6, 148), (148, 3, 3, 1)),
    "sequence": (depthwise(32, padding=([3], [0])), (3, 20, 32), (32, 4, 1)),
    "volume": (depthwise(8, padding=1), (1, 4, 5, 6, 8), (8, 3, 3, 3, 1)),
    "reversed": (depthwise(8, padding=1, flip=True), (1, 6, 5, 8), (8, 3, 3, 1)),
    "more behind it": (lambda x, w: smelt.conv2d(x, w, padding=1, groups=8) * 2 + x, (1, 9, 9, 8), (8, 3, 3, 1)),
    "no convolution": (lambda x, w: smelt.einsum("nkc,kc->nc", x, w), (33, 5, 20), (5, 20)),
    "the other way round": (lambda x, w: smelt.einsum("kc,nkc->nc", w, x), (33, 5, 20), (5, 20)),
}


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("name", LAYERS)
def test_values(name: str, dtype: str) -> None:
    function, image, taps = LAYERS[name]
    assert right(function, of(*image, dtype=dtype), of(*taps, dtype=dtype)).schedule == SCHEDULE


@pytest.mark.parametrize("dtype", ("float16", "int32", "uint8", "complex64"))
def test_dtypes(dtype: str) -> None:
    function = depthwise(12, padding=1)
    assert right(function, of(1, 9, 11, 12, dtype=dtype), of(12, 3, 3, 1, dtype=dtype)).schedule == SCHEDULE


def test_the_gradient_of_the_image() -> None:
    def gradient(x: Any, w: Any, ct: Any) -> Any:
        return smelt.vjp(lambda x: smelt.conv2d(x, w, padding=1, groups=12), [x], [ct])[1][0]

    assert right(gradient, of(1, 9, 11, 12), of(12, 3, 3, 1), of(1, 9, 11, 12)).schedule == SCHEDULE


def test_batches_of_weights() -> None:
    """Several networks at once: channels of each are next to each other."""
    layers = smelt.vmap(lambda x, w: smelt.conv2d(x, w, padding=1, groups=12))
    assert right(layers, of(3, 1, 6, 7, 12), of(3, 12, 3, 3, 1)).schedule == SCHEDULE


def test_results_whose_places_are_neighbours_are_made_otherwise() -> None:
    assert right(images_first, of(1, 8, 9, 11), of(8, 3, 3, 1)).schedule != SCHEDULE


def test_channels_are_read_and_written_as_vectors() -> None:
    text = harness.metal_text(LAYERS["3×3"][0], of(4, 9, 11, 24), of(24, 3, 3, 1))
    assert text.count("*(device const float4*)") == text.count("*(device float4*)") == 4  # positions of a thread
    assert text.count("*(threadgroup const float4*)") == 1
