"""Quantiles that are elements, or means of two: against their definitions in Hyndman and Fan, counted in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import smelt
from smelt.ir.errors import AttributeValueError


def defined(values: list[float], q: Fraction, method: str) -> float:
    ordered, n = sorted(values), len(values)
    at = n * q - (Fraction(1, 2) if method == "closest_observation" else 0)
    j = math.floor(at)
    exact = at == j
    if method == "closest_observation":
        exact = exact and j % 2 == 0
    low, high = (ordered[min(max(i, 1), n) - 1] for i in (j, j + 1))
    if not exact:
        return high
    return (low + high) / 2 if method == "averaged_inverted_cdf" else low


@pytest.mark.parametrize("method", ["inverted_cdf", "averaged_inverted_cdf", "closest_observation"])
def test_discrete_methods(method: str) -> None:
    parts = [Fraction(k, 16) for k in range(17)]  # which floating-point numbers are
    for n in range(1, 18):
        values = np.random.default_rng(n).permutation(n).astype(np.float32).tolist()
        found = smelt.quantile(smelt.array(values), [float(q) for q in parts], method=method)
        assert found.tolist() == [defined(values, q, method) for q in parts], n
        doubled = smelt.percentile(smelt.array([values, values]), [25.0, 75.0], axis=1, method=method)
        assert doubled.tolist() == [[defined(values, Fraction(k, 4), method)] * 2 for k in (1, 3)], n
        with_nan = smelt.nanquantile(smelt.array([*values, math.nan]), 0.5, method=method)
        assert with_nan.item() == defined(values, Fraction(1, 2), method), n


def test_partition_at_several_places() -> None:
    host = np.random.default_rng(0).permutation(12).reshape(2, 6)
    for kth in ([1, 4], (0, -1), [], [2]):
        found, places = smelt.partition(smelt.array(host), kth), smelt.argpartition(smelt.array(host), kth)
        for k in kth:
            assert found[:, k].tolist() == np.sort(host)[:, k].tolist()
            assert np.take_along_axis(host, np.array(places), 1)[:, k].tolist() == np.sort(host)[:, k].tolist()
    with pytest.raises(AttributeValueError, match="kth 7 out of range for 6 elements"):
        smelt.partition(smelt.array(host), [1, 7])
