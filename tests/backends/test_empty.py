"""Arrays without elements, and axes of one: kernels write what there is, and nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from smelt.ir.aval import Aval

from .modules import check, f32

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
