"""Gradients of depthwise convolutions in their kernels, and what else has few sums for each of many channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.program import DeviceSegment
from smelt.backends.metal.check import check as strict
from smelt.backends.metal.simulator import Options

from . import harness
from .test_contract import ORDERS, of

SCHEDULE = "contract-taps"


def gradient(w: tuple[int, ...], groups: int = 0, **options: Any) -> Callable:
    """Of a convolution in its kernel of shape `w`; by default of each channel by itself."""

    def convolved(x: Any, w: Any) -> Any:
        return smelt.conv_general(x, w, groups=groups or w.shape[0], **options)

    return lambda x, ct: smelt.vjp(lambda k: convolved(x, k), [smelt.zeros(w, x.dtype)], [ct])[1][0]


def schedules(function: Callable, *arguments: Any) -> list[str]:
    """Check values in plain and in race mode, and the text; the schedules of all kernels."""
    options = [None, *(Options(order=order, poison=True, guard=True) for order in ORDERS)]
    program = harness.check_all(function, *arguments, tolerance=1e-4, options=options)
    (segment,) = program.segments
    assert isinstance(segment, DeviceSegment)
    assert not strict(segment.text)
    assert all(kernel.threadgroup_bytes <= 32768 for kernel in segment.manifest.kernels)
    return [kernel.schedule for kernel in segment.manifest.kernels]


def layer(x: tuple[int, ...], ct: tuple[int, ...], taps: tuple[int, ...], **options: Any) -> tuple[Any, ...]:
    return gradient((x[-1], *taps, 1), **options), x, ct


LAYERS = {
    "3×3": layer((2, 9, 11, 24), (2, 9, 11, 24), (3, 3), padding=1),
    "no padding": layer((1, 10, 11, 16), (1, 8, 10, 16), (3, 2)),
    "stride": layer((2, 13, 17, 12), (2, 7, 9, 12), (3, 3), stride=2, padding=1),
    "stride that leaves some": layer((2, 14, 18, 12), (2, 7, 9, 12), (3, 3), stride=2, padding=1),
    "dilation": layer((1, 11, 12, 8), (1, 11, 12, 8), (3, 3), padding=2, kernel_dilation=2),
    "both": layer((1, 19, 23, 8), (1, 10, 12, 8), (3, 3), padding=2, kernel_dilation=2, stride=2),
    "spread": layer((1, 6, 7, 8), (1, 11, 13, 8), (3, 3), padding=1, input_dilation=2),
    "7×7": layer((1, 12, 9, 8), (1, 12, 9, 8), (7, 7), padding=3),
    "many taps": layer((1, 14, 13, 40), (1, 14, 13, 40), (11, 11), padding=5),
    "more lines of taps than threads see to": layer((1, 12, 12, 8), (1, 12, 12, 8), (9, 5), padding=([4, 2], [4, 2])),
    "odd channels": layer((1, 9, 10, 9), (1, 9, 10, 9), (3, 3), padding=1),
    "two channels at once": layer((1, 9, 10, 10), (1, 9, 10, 10), (3, 3), padding=1),
    "more channels than a threadgroup has": layer((1, 9, 10, 148), (1, 9, 10, 148), (3, 3), padding=1),
    "narrow lines": layer((3, 12, 3, 8), (3, 12, 3, 8), (3, 3), padding=1),
    "sequence": layer((3, 40, 32), (3, 40, 32), (4,), padding=([3], [0])),
    "long sequence": layer((2, 1200, 8), (2, 1200, 8), (4,), padding=([3], [0])),
    "long odd sequence": layer((2, 1201, 8), (2, 1201, 8), (4,), padding=([3], [0])),
    "volume": layer((1, 5, 6, 7, 8), (1, 5, 6, 7, 8), (3, 3, 3), padding=1),
    "one tap": (lambda x, y: smelt.einsum("nhc,nhc->c", x, y), (3, 70, 12), (3, 70, 12)),
    "no convolution": (lambda x, y: smelt.einsum("nkc,nc->kc", x, y), (90, 6, 20), (90, 20)),
    "the other way round": (lambda x, y: smelt.einsum("nc,nkc->ck", x, y), (90, 20), (90, 6, 20)),
    "many lines, few channels": layer((2, 70, 40, 8), (2, 70, 40, 8), (3, 3), padding=1),
}


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("name", LAYERS)
def test_values(name: str, dtype: str) -> None:
    function, x, y = LAYERS[name]
    found = schedules(function, of(*x, dtype=dtype), of(*y, dtype=dtype))
    assert found[0].removesuffix(" shares") == SCHEDULE or name == "one tap"


GROUPS = {
    "four by four": (16, 4, 16, {}),
    "eight outputs": (12, 2, 16, {}),
    "multiplier": (12, 12, 24, {}),
    "several channels, one output": (24, 8, 8, {}),
    "odd": (15, 5, 10, {}),
    "stride": (16, 4, 16, {"stride": 2}),
    "many groups": (144, 72, 144, {}),
}


@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str, dtype: str) -> None:
    channels, groups, outputs, options = GROUPS[name]
    function = gradient((outputs, 3, 3, channels // groups), groups, padding=1, **options)
    x = (2, 17, 21, channels) if options else (2, 9, 11, channels)
    assert schedules(function, of(*x, dtype=dtype), of(2, 9, 11, outputs, dtype=dtype))[0].startswith(SCHEDULE)


@pytest.mark.parametrize(("outputs", "channels"), [(64, 32), (32, 64)])
def test_large_groups_are_products_of_matrices(outputs: int, channels: int) -> None:
    function = gradient((outputs, 3, 3, channels // 2), 2, padding=1)
    found = schedules(function, of(1, 9, 11, channels), of(1, 9, 11, outputs))
    assert not found[0].startswith(SCHEDULE)


@pytest.mark.parametrize("dtype", ("float16", "complex64"))
def test_dtypes(dtype: str) -> None:
    function = gradient((12, 3, 3, 1), padding=1)
    found = schedules(function, of(2, 9, 11, 12, dtype=dtype), of(2, 9, 11, 12, dtype=dtype))
    assert any(schedule.startswith(SCHEDULE) for schedule in found)  # of complex numbers the conjugate comes first


@pytest.mark.parametrize("dtype", ("int32", "uint8"))
def test_integers(dtype: str) -> None:
    function, x, y = LAYERS["no convolution"]
    assert schedules(function, of(*x, dtype=dtype), of(*y, dtype=dtype))[0].startswith(SCHEDULE)


def test_what_is_not_finite_stays_in_its_windows() -> None:
    """No position is multiplied with what no window of it has, at the ends of lines least of all."""
    function = gradient((8, 3, 3, 1), padding=1)
    graph = harness.graph_of(function, of(1, 10, 13, 8), of(1, 10, 13, 8))
    program = harness.program_of(graph)
    for row, column in ((0, 0), (0, 12), (5, 12), (9, 0), (9, 12), (4, 6)):
        for number in (np.inf, np.nan):
            for which in (0, 1):
                operands = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
                operands[which][0, row, column, 3] = number
                harness.close(
                    harness.run(program, operands), harness.expected(graph, operands), program, 1e-4
                )  # fmt: skip


def test_two_kernels_where_positions_are_many() -> None:
    function, x, y = LAYERS["many lines, few channels"]
    assert schedules(function, of(*x), of(*y)) == [f"{SCHEDULE} shares", "combine"]


def test_batches_of_layers() -> None:
    """Several networks at once: channels of each are next to each other."""
    layers = smelt.vmap(gradient((12, 3, 3, 1), padding=1))
    assert schedules(layers, of(3, 1, 9, 10, 12), of(3, 1, 9, 10, 12))[0].startswith(SCHEDULE)


def test_more_behind_it() -> None:
    """An update of the kernel, in the kernel that adds up."""
    own = gradient((8, 3, 3, 1), padding=1)
    found = schedules(lambda x, ct, w: w - 0.1 * own(x, ct), of(2, 30, 30, 8), of(2, 30, 30, 8), of(8, 3, 3, 1))
    assert found in ([f"{SCHEDULE} shares", "combine"], [SCHEDULE])


@pytest.mark.parametrize("gpu", GPUS)
def test_an_element_is_read_once_by_a_thread_for_all_of_its_taps(gpu: str) -> None:
    text = harness.metal_text(gradient((96, 3, 3, 1), padding=1), of(8, 56, 56, 96), of(8, 56, 56, 96), gpu=gpu)
    assert not strict(text)
    assert text.count("*(device const float2*)") == 8 + 3 * 10  # of eight positions
