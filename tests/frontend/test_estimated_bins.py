"""Numbers of bins by rules, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.functions.estimated_bins import RULES
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, TraceError
from tests.frontend.checks import exact

rng = np.random.default_rng(5)
DATA = {
    "normal": rng.standard_normal(500), "skew": rng.exponential(3, 321), "whole": rng.integers(0, 9, 400),
    "equal": np.ones(7), "one": np.array([2.0]), "two": np.array([1.0, 5.0]), "matrix": rng.random((20, 5)),
    "none": np.zeros(0),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The number of bins")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", DATA)
def test_beside_numpy(kind: str, rule: str) -> None:
    x = DATA[kind]
    if rule == "auto" and np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("NumPy's rule was another one")
    for limits in (None, (0.25, 3.5), (2, 2), (100.0, 101.0)):
        expected, edges = np.histogram(x, rule, limits)
        found = smelt.histogram(exact(x), rule, limits)
        np.testing.assert_array_equal(np.asarray(found.hist), expected)
        rtol = 1e-12 if x.dtype == np.float64 else 1e-6
        np.testing.assert_allclose(np.asarray(found.bin_edges), edges, rtol)
        np.testing.assert_allclose(np.asarray(smelt.histogram_bin_edges(exact(x), rule, limits)), edges, rtol)


def test_lists_density_and_the_elements_of_each_call() -> None:
    for x in ([1, 2, 2, 3, 9], [1.0] * 50 + list(range(9))):
        expected, edges = np.histogram(x, "sturges", density=True)
        found = smelt.histogram(x, "sturges", density=True)
        np.testing.assert_allclose(np.asarray(found.hist), expected, 1e-6)
        np.testing.assert_allclose(np.asarray(found.bin_edges), edges, 1e-6)
    sizes = [smelt.histogram_bin_edges(smelt.array(x), "fd").size for x in ([1.0, 2, 3, 4], [1.0, 2, 3, 400])]
    assert sizes == [np.histogram_bin_edges(x, "fd").size for x in ([1.0, 2, 3, 4], [1.0, 2, 3, 400])]


@pytest.mark.parametrize("name", ["histogram", "histogram_bin_edges"])
def test_errors(name: str) -> None:
    function: Any = getattr(smelt, name)
    with pytest.raises(AttributeValueError, match=rf'smelt\.{name}: bins must be "auto".*test_estimated'):
        function(smelt.ones(3), "automatic")
    for x in ([1.0, np.nan], [np.inf, 1.0], [-1.7e308, 1.7e308]):
        with pytest.raises(AttributeValueError, match=rf"smelt\.{name}.*finite.*test_estimated"):
            function(exact(np.array(x)), "auto")
    with pytest.raises(AttributeValueError, match=rf"smelt\.{name}.*too many.*test_estimated"):
        function(exact(np.array([0.0] * 20 + [1.0] * 20 + [1e300])), "fd")
    with pytest.raises(TraceError, match=rf"smelt\.{name}.*give a number of bins"):
        smelt.compile(lambda x: function(x, "auto"))(smelt.ones(3))
    with pytest.raises(DTypeError, match=name):
        function(smelt.array([1j]), "auto")
    if name == "histogram":
        with pytest.raises(ArgumentTypeError, match=r"no weights.*test_estimated"):
            smelt.histogram(smelt.ones(3), "auto", weights=smelt.ones(3))
