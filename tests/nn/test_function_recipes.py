"""Activation functions and losses are run once for each of their types, and followed as recipes from then on."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.errors import IndexOutOfRangeError
from smelt.nn import losses
from smelt.nn.layers import activation_functions

_X = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
_CLASSES = np.array([0, 3, 1], np.int32)

_ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "cross_entropy": lambda: (smelt.array(_X), smelt.array(_CLASSES)),
    "nll_loss": lambda: (smelt.array(_X), smelt.array(_CLASSES)),
    "gaussian_nll_loss": lambda: tuple(smelt.array(_X + i) for i in range(3)),
    "triplet_loss": lambda: tuple(smelt.array(_X + i) for i in range(3)),
    "margin_ranking_loss": lambda: tuple(smelt.array(_X[0] + i) for i in range(3)),
    "prelu": lambda: (smelt.array(_X), smelt.array([0.5])),
}
_LOSSES = [name for name in losses.__all__ if name != "ctc_loss"]  # which is a loop
_PAIRS = {name: lambda: (smelt.array(_X), smelt.array(_X[::-1].copy())) for name in _LOSSES}
_FUNCTIONS = [
    *[(name, getattr(losses, name)) for name in _LOSSES],
    *[(name, getattr(activation_functions, name)) for name in activation_functions.__all__],
]


def _is_run(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether a call runs the function itself, beside what wraps it."""
    codes = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: codes.append(frame.f_code))
    try:
        function(*args)
    finally:
        sys.setprofile(before)
    return inspect.unwrap(function).__code__ in codes


@pytest.mark.parametrize(("name", "function"), _FUNCTIONS, ids=[name for name, _ in _FUNCTIONS])
def test_a_second_call_follows_a_recipe(name: str, function: Callable[..., Any]) -> None:
    made = _ARGUMENTS.get(name) or _PAIRS.get(name) or (lambda: (smelt.array(_X),))
    first = function(*made())
    again = function(*made())
    np.testing.assert_array_equal(np.array(again), np.array(first))
    assert not _is_run(function, made())


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.nll_loss])
def test_classes_are_checked_in_each_call(loss: Callable[..., Any]) -> None:
    logits, fine, wrong = smelt.array(_X), smelt.array(_CLASSES), smelt.array([0, 4, 1])
    place = 3 if loss is losses.cross_entropy else 2
    for _ in range(3):
        loss(logits, fine)
        with pytest.raises(IndexOutOfRangeError, match=f"smelt.nn.losses.{loss.__name__}: index 4 is out of range"):
            loss(logits, wrong)
        with pytest.raises(IndexOutOfRangeError, match="axis 0 with 3 elements"):
            loss(logits, smelt.array([0, 3, 1, 2]), *[None] * (place - 2), 0)
        with pytest.raises(IndexOutOfRangeError):
            loss(logits, targets=smelt.array([-5, 0, 0]))
    assert loss(logits, smelt.array([-4, -1, 0])).shape == (3,)


def test_what_is_no_array_is_converted_each_time() -> None:
    for scale in (1.0, 2.0):
        found = losses.mse_loss(_X * scale, smelt.array(_X), reduction="sum")
        np.testing.assert_allclose(np.array(found), ((scale - 1) ** 2 * _X**2).sum(), rtol=1e-5)
    for target in (0.25, 0.5):
        found = losses.l1_loss(smelt.array([1.0]), [target], reduction="sum")
        assert found.item() == 1 - target
