"""What a function takes keeps its values: operands of many rows, whose memory lies in other orders than their axes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError
from smelt.ir.settings import override

#: Shapes in memory, and what a function gets of them: each reaches what is done for many short rows, or columns.
LAYOUTS: dict[str, tuple[tuple[int, ...], Callable[[smelt.array], smelt.array]]] = {
    "columns": ((6, 1100), lambda a: smelt.moveaxis(a, 0, -1)),
    "rows": ((1100, 6), lambda a: smelt.moveaxis(a, 0, -1)),
    "every other": ((1100, 12), lambda a: a[:, ::2]),
    "backwards": ((1100, 6), lambda a: a[::-1]),
}
ROOMS = {"smelt": smelt, "linalg": smelt.linalg, "fft": smelt.fft}
#: Parameters that tell a function which axis, how many or which place.
KEYWORDS: tuple[dict[str, Any], ...] = ({}, {"axis": 0}, {"axis": -1}, {"kth": 2, "axis": -1}, {"k": 2, "axis": -1})


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions that take an array and no file."""
    for room, module in ROOMS.items():
        for name in module.__all__:
            function = getattr(module, name)
            if not inspect.isfunction(function):
                continue
            parameters = list(inspect.signature(function).parameters.values())
            if parameters and parameters[0].annotation in ("ArrayLike", "array"):
                yield f"{room}.{name}", function


FUNCTIONS = dict(functions())


def results(function: Callable[..., Any], x: smelt.array) -> int:
    """How many ways to call it there were."""
    found = 0
    for keywords in KEYWORDS:
        for operands in ((x,), (x, x)):
            if not keywords.keys() <= inspect.signature(function).parameters.keys():
                continue
            try:
                smelt.eval(function(*operands, **keywords))
            except (SmeltError, TypeError):  # it takes no such operands
                continue
            found += 1
    return found


@pytest.mark.parametrize("tier", ["ops", "auto"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_operands_keep_their_values(dtype: str, layout: str, tier: str) -> None:
    shape, view = LAYOUTS[layout]
    values = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype(dtype) % 97
    called = 0
    for name, function in FUNCTIONS.items():
        whole = smelt.array(values)
        part = view(whole)
        smelt.eval(whole, part)
        seen = np.asarray(part).copy()
        with override(tier=tier):
            called += results(function, part)
        np.testing.assert_array_equal(np.asarray(whole), values, err_msg=name)
        np.testing.assert_array_equal(np.asarray(part), seen, err_msg=name)
    assert called > 150
