"""Hostile operands of the activations: a result, or an error of smelt that names the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import smelt
from smelt import nn
from smelt.ir.errors import SmeltError
from smelt.nn.layers import activation_functions

from ..frontend.test_hostile import HOSTILE, NO_ARRAYS, force, has_errors_of_its_own

pytestmark = pytest.mark.usefixtures("small_heap")
LIMIT = 1 << 28


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    before = smelt.set_memory_limit(LIMIT)
    yield
    smelt.set_memory_limit(before)


@pytest.mark.tier("ops")
@pytest.mark.parametrize("name", activation_functions.__all__)
def test_hostile_operands(name: str) -> None:
    function, wrong = getattr(nn, name), {}
    for parameter in inspect.signature(function).parameters.values():
        for what, make in HOSTILE.items():
            value = make()
            if has_errors_of_its_own(parameter, value):
                continue
            operands = {"x": smelt.ones((2, 4)), **({"alpha": smelt.ones(4)} if name == "prelu" else {})}
            try:
                force(function(**{**operands, parameter.name: value}))
                if parameter.name == "x" and what in NO_ARRAYS:
                    wrong[parameter.name, what] = "accepted"
            except SmeltError as error:
                if __file__ not in str(error):
                    wrong[parameter.name, what] = f"no line in {error}"
            except Exception as error:
                wrong[parameter.name, what] = repr(error)[:200]
    assert not wrong


@pytest.mark.parametrize("name", activation_functions.__all__)
def test_what_can_be_an_array_is_one(name: str) -> None:
    more = (smelt.ones(2),) if name == "prelu" else ()
    rows = [[-1.5, 0.5], [2.0, -0.25]]
    want = getattr(nn, name)(smelt.array(rows), *more)
    for given in (rows, np.array(rows), tuple(map(tuple, rows))):
        found = getattr(nn, name)(given, *more)
        assert isinstance(found, smelt.array) and found.dtype == want.dtype and found.tolist() == want.tolist()
