"""Transposes in blocks: right at every edge, and no access outside of the arrays."""

from __future__ import annotations

import pytest

import smelt
from smelt.backends.metal.simulator import Options

from .harness import check

f32, f16, i8 = smelt.float32, smelt.float16, smelt.int8
S = smelt.ShapeDtype
SHAPES = [(64, 64), (64, 100), (100, 64), (63, 65), (65, 63), (33, 97), (30, 70), (66, 66), (16, 200), (3, 40, 70)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [f32, f16, i8], ids=lambda d: d.name)
def test_edges_of_blocks(shape: tuple[int, ...], dtype: smelt.Dtype) -> None:
    for order in ("forward", "shuffled"):
        options = Options(order=order, poison=True, guard=True)
        program = check(lambda x: smelt.swapaxes(x, -1, -2) + x.dtype.numpy.type(1), S(shape, dtype), options=options)
        assert [kernel.schedule for kernel in program.kernels] == ["transpose"]


@pytest.mark.parametrize("n", [33, 64, 66, 97, 100])
def test_edges_of_mirrored_blocks(n: int) -> None:
    program = check(lambda x: x + x.T, S((n, n), f32), options=Options(order="reverse", poison=True, guard=True))
    assert [kernel.schedule for kernel in program.kernels] == ["transpose"]
