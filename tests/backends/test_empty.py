"""Arrays without elements, and axes of one: kernels write what there is, and nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.settings import override

from .modules import check, f32, side_by_side

SHAPES = [s for s in itertools.product((0, 1, 5), repeat=3) if 0 in s] + [(0, 100, 64), (0, 64, 100), (64, 0, 100)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_of_arrays_without_elements(shape: tuple[int, ...]) -> None:
    """Every set of axes: results without elements, and sums of nothing; alone and with elementwise ops around."""

    def function(b: Any, x: Any) -> list[Any]:
        found = [b.exp(x)]
        for axes in (c for n in range(4) for c in itertools.combinations(range(3), n)):
            for name in ("reduce_sum", "reduce_prod", "reduce_max"):
                if name == "reduce_max" and any(shape[a] == 0 for a in axes):
                    continue
                y = getattr(b, name)(b.exp(x), axes=axes)
                rows = tuple(1 if a in axes else d for a, d in enumerate(shape))
                found += [y, b.mul(x, b.broadcast_to(b.reshape_to(y, rows), shape))]
        found += [b.argmax(x, axis=a) for a, d in enumerate(shape) if d]
        return found

    check([Aval(shape, f32)], function)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)], ids=str)
def test_each_reduction_by_itself(axes: tuple[int, ...]) -> None:
    for shape in ((0, 100, 64), (0, 64, 100), (64, 0, 100), (64, 100, 0), (1, 0, 64)):
        check([Aval(shape, f32)], lambda b, x, axes=axes: b.reduce_sum(x, axes=axes))


@pytest.mark.parametrize(("shape", "axis"), [((0, 100, 64), 1), ((0, 64, 100), -1), ((64, 0, 100), 2)])
def test_results_without_elements(shape: tuple[int, ...], axis: int) -> None:
    """Called often enough that writes past an empty result would end the process."""
    total = smelt.compile(lambda x: x.sum(axis=axis))
    mean = smelt.compile(lambda x: x.mean(axis=axis))
    x = smelt.zeros(shape)
    for _ in range(200):
        smelt.eval(total(x), mean(x))
    assert total(x).shape == mean(x).shape == tuple(d for a, d in enumerate(shape) if a != axis % 3)


@pytest.mark.parametrize("reduction", ["sum", "min"])
@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize("by", ["pad", "concatenate"])
def test_a_reduction_beside_what_it_pads(by: str, returned: bool, reduction: str) -> None:
    @smelt.compile
    def function(k: smelt.array) -> tuple[smelt.array, ...]:
        twice = k * 2
        c = smelt.pad(twice, [(0, 0), (0, 240), (0, 0)]) if by == "pad" else (
            smelt.concatenate([twice, smelt.zeros((4, 240, 32))], axis=1)
        )  # fmt: skip
        found = (c, getattr(smelt, reduction)(c, axis=-1))
        return (*found, k * 2) if returned else found

    x = np.random.default_rng(0).standard_normal((4, 16, 32)).astype(np.float32)
    wide = np.pad(2 * x, [(0, 0), (0, 240), (0, 0)])
    want = (wide, getattr(np, reduction)(wide, axis=-1), 2 * x)
    for _ in range(40):
        for have, expected in zip(function(smelt.array(x)), want):
            np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("checked", [False, True])
def test_gathers_of_nothing_under_reductions(checked: bool) -> None:
    """What reads where there is nothing to read: loops that are one have no strides then."""
    cases: list[Any] = []
    for shape in (s for n in (1, 2, 3) for s in itertools.product((0, 1, 3), repeat=n) if 0 in s):
        for axis in (a for a, d in enumerate(shape) if d):
            window = tuple(1 if a == axis else d for a, d in enumerate(shape))
            for axes in (tuple(range(len(shape) + 1)), (0,), (len(shape),)):

                def case(b: Any, x: Any, i: Any, axis: int = axis, window: Any = window, axes: Any = axes) -> Any:
                    return b.reduce_sum(b.gather(x, i - i, axes=(axis,), slice_sizes=window), axes=axes)

                cases.append(([Aval(shape, dtypes.uint8), Aval((3,), dtypes.int16)], case))
    assert len(cases) > 60
    with override(check=checked):
        check(*side_by_side(cases))
