"""Large arrays without some positions, or with more, are put together of pieces where these are few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt

X = np.random.default_rng(0).standard_normal((3, 6000)).astype(np.float32)
MANY = list(range(0, 6000, 7))


@pytest.mark.parametrize("at", [0, -1, 5999, slice(3, 900), slice(None, None, 3), [4, 2, 2, 5999], MANY], ids=str)
def test_delete(at: Any) -> None:
    np.testing.assert_array_equal(np.asarray(smelt.delete(smelt.array(X), at, axis=1)), np.delete(X, at, 1))
    np.testing.assert_array_equal(np.asarray(smelt.delete(smelt.array(X), at)), np.delete(X, at))


@pytest.mark.parametrize("at", [0, 6000, -1, slice(3, 9), [4, 2, 2, 6000], MANY], ids=str)
def test_insert(at: Any) -> None:
    for values in (7.0, np.arange(3, dtype=np.float32)[:, None] if isinstance(at, (slice, list)) else np.arange(3.0)):
        found = smelt.insert(smelt.array(X), at, smelt.array(values, smelt.float32), axis=1)
        np.testing.assert_array_equal(np.asarray(found), np.insert(X, at, values, 1))


def test_all_and_none() -> None:
    assert smelt.delete(smelt.array(X), slice(None), axis=1).shape == (3, 0)
    np.testing.assert_array_equal(np.asarray(smelt.delete(smelt.array(X), [], axis=1)), X)
    np.testing.assert_array_equal(np.asarray(smelt.insert(smelt.array(X), [], [], axis=1)), X)


def test_derivatives_and_programs() -> None:
    weights = smelt.array(np.delete(X, [3, 900], 1))

    def f(x: smelt.array) -> smelt.array:
        return (smelt.delete(x, [3, 900], axis=1) * weights).sum()

    want = np.where(np.isin(np.arange(6000), [3, 900]), 0, X)
    for slope in (smelt.grad(f), smelt.compile(smelt.grad(f))):
        np.testing.assert_array_equal(np.asarray(slope(smelt.array(X))), want)
