"""What float32 would round, lists and NumPy's arrays, is exact where it meets float64; ranges between arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError

from .checks import exact, same

X = np.array([0.1, 0.2, 0.7])
GIVEN = [0.1, 0.3, 0.4]

#: A call of smelt's or NumPy's functions with an array of float64 and numbers given otherwise.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, x, w: m.add(x, w),
    "maximum": lambda m, x, w: m.maximum(w, x),
    "where": lambda m, x, w: m.where(x > 0.15, w, x),
    "matmul": lambda m, x, w: m.matmul(x, w),
    "einsum": lambda m, x, w: m.einsum("i,j->ij", w, x),
    "kron": lambda m, x, w: m.kron(x, w),
    "stack": lambda m, x, w: m.stack([x, w]),
    "hstack": lambda m, x, w: m.hstack([w, x]),
    "vstack": lambda m, x, w: m.vstack([w, x]),
    "dstack": lambda m, x, w: m.dstack([w, x]),
    "column_stack": lambda m, x, w: m.column_stack([w, x]),
    "append": lambda m, x, w: m.append(x, w),
    "isin": lambda m, x, w: m.isin(x, w),
    "searchsorted": lambda m, x, w: m.searchsorted(x, w).astype(np.int32 if m is np else smelt.int32),
    "digitize": lambda m, x, w: m.digitize(x, w).astype(np.int32 if m is np else smelt.int32),
    "union1d": lambda m, x, w: m.union1d(x, w),
    "interp": lambda m, x, w: m.interp(x, w, w),
    "average": lambda m, x, w: m.average(x, weights=w),
    "average-of": lambda m, x, w: m.average(w, weights=x),
    "trapezoid": lambda m, x, w: m.trapezoid(x, w),
    "trapezoid-of": lambda m, x, w: m.trapezoid(w, x),
    "gradient": lambda m, x, w: m.gradient(x, w),
    "quantile": lambda m, x, w: m.quantile(x, w),
    "percentile": lambda m, x, w: m.percentile(x, w),
    "cov": lambda m, x, w: m.cov(x, w),
    "corrcoef": lambda m, x, w: m.corrcoef(w, x),
    "cov-weights": lambda m, x, w: m.cov(x, aweights=w),
    "diff": lambda m, x, w: m.diff(x, append=w),
    "polyval": lambda m, x, w: m.polyval(w, x),
    "polymul": lambda m, x, w: m.polymul(x, w),
    "polyfit": lambda m, x, w: m.polyfit(x, w, 1),
    "polyfit-weights": lambda m, x, w: m.polyfit(x, x * x, 1, w=w),
    "multi_dot": lambda m, x, w: m.linalg.multi_dot([m.outer(x, x), w]),
    "solve": lambda m, x, w: m.linalg.solve(m.diag(x), w),
    "full_like": lambda m, x, w: m.full_like(x, w),
    "linspace": lambda m, x, w: m.linspace(x, w, 4),
    "logspace": lambda m, x, w: m.logspace(x, w, 4),
    "geomspace": lambda m, x, w: m.geomspace(x, w, 4),
}  # fmt: skip


@pytest.mark.parametrize("given", [list, np.array], ids=["list", "numpy"])
@pytest.mark.parametrize("name", CALLS)
def test_beside_float64_all_digits_count(name: str, given: Callable[[list[float]], Any]) -> None:
    if name.startswith("trapezoid") and not hasattr(np, "trapezoid"):
        pytest.skip("NumPy before 2.0 calls it trapz")
    found = CALLS[name](smelt, exact(X), given(GIVEN))
    same(found, np.asarray(CALLS[name](np, X, np.array(GIVEN))), rtol=1e-13, atol=1e-14)


def test_numpy_arrays_of_complex128_beside_wide_arrays() -> None:
    z = np.array([0.1 + 0.3j, 0.7])
    same(smelt.add(exact(z), z), z + z)
    same(smelt.add(exact(X[:2]), z), X[:2] + z)
    assert smelt.add(smelt.array([1.0, 2.0]), X[:2]).dtype is smelt.float32


ENDS: dict[str, tuple[Any, Any]] = {
    "numbers": (0.5, 3),
    "negative": (-1, -8),
    "vector": (X, 2.0),
    "broadcast": (np.array([[1.0], [2.0]]), np.array([3.0, 0.5, 8.0])),
    "complex": (1.0, 2j),
    "complex vector": (np.array([1.0, 1 - 1j]), np.array([2j, -3.0])),
    "empty": (np.zeros((0, 2)), 1.0),
}


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_ranges_between_arrays_are_those_of_numpy(name: str, ends: str, endpoint: bool) -> None:
    """Of any number and along any axis, which are made together, as one program of each way."""
    start, stop = ENDS[ends]
    shape = np.broadcast_shapes(np.shape(start), np.shape(stop))
    ours, numpy = getattr(smelt, name), getattr(np, name)
    lists = [v.tolist() if v.size else v for v in map(np.asarray, (start, stop))]
    wide = "complex128" if ends.startswith("complex") else "float64"
    lazily = [exact(np.asarray(v).astype(wide)) for v in (start, stop)]
    axes = range(-len(shape) - 1, len(shape) + 1)
    every = [{"num": num, "endpoint": endpoint, "axis": axis} for num in (0, 1, 2, 5) for axis in axes]

    def ranges(a: Any, b: Any, **more: Any) -> list[smelt.array]:
        return [ours(a, b, **options, **more) for options in every]

    ways = {
        "numbers": ranges(start, stop, dtype=getattr(smelt, wide)),
        "lists": ranges(*lists, dtype=getattr(smelt, wide)),
        "arrays": ranges(*lazily),
        "compiled": smelt.compile(ranges)(*lazily),
    }
    for way, found in ways.items():
        smelt.eval(found)
        for options, x in zip(every, found, strict=True):
            same(x, numpy(start, stop, **options).astype(wide), rtol=1e-12, atol=1e-13, what=f"{way} {options}")
    if ends != "numbers":  # both ends are there exactly
        for num in (2, 5):
            found = np.asarray(smelt.linspace(*lazily, num))
            np.testing.assert_array_equal(found[0], np.broadcast_to(start, shape))
            np.testing.assert_array_equal(found[-1], np.broadcast_to(stop, shape))


def test_ends_that_are_arrays_are_read_each_time_and_have_derivatives() -> None:
    for low in (1.0, 5.0):
        same(smelt.linspace(smelt.array(low), 9, 3), np.linspace(low, 9, 3).astype(np.float32))
    for name in ("linspace", "logspace", "geomspace"):
        found = smelt.grad(lambda x, name=name: (getattr(smelt, name)(x, 2, 5) ** 2).sum())(exact(X[0]))
        up, down = (float((getattr(np, name)(X[0] + h, 2, 5) ** 2).sum()) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(float(found), (up - down) / 2e-6, rtol=1e-6)
    rows = smelt.vmap(lambda x: smelt.linspace(x, 1, 4))(exact(X))
    same(rows, np.linspace(X, 1, 4, axis=1), rtol=1e-15)
    same(smelt.logspace(0, 1, 3, base=exact(X), axis=1), np.logspace(0, 1, 3, base=X, axis=1), rtol=1e-13)
    assert smelt.linspace(smelt.array([1, 2]), 3, 4).dtype is smelt.float32
    assert smelt.linspace(smelt.array([1.0, 2.0], smelt.float16), 3, 4).dtype is smelt.float16
    half = smelt.linspace(smelt.array([1.0, 2.0]), 3, 4, dtype=smelt.float64)
    same(half, np.linspace([1.0, 2.0], 3, 4), rtol=1e-15)


def test_ends_that_are_none() -> None:
    for f in (smelt.linspace, smelt.logspace, smelt.geomspace):
        with pytest.raises(ShapeError):
            f(smelt.ones(2), smelt.ones(3), 4)
        with pytest.raises(ShapeError, match="axis"):
            f(smelt.ones(2), 3, 4, axis=2)
        with pytest.raises(DTypeError, match="complex"):
            f(1, 2j, 4, dtype=smelt.float32)
        with pytest.raises(ArgumentTypeError, match="start"):
            f("a", 3, 4)
    with pytest.raises(AttributeValueError, match="one sign"):
        smelt.geomspace([1.0, -1.0], 3)


def test_places_of_a_gradient_keep_their_digits() -> None:
    f, places = np.float32([1, 2, 4, 8]), np.array([1e4, 1e4 + 1e-3, 1e4 + 3e-3, 1e4 + 4e-3])
    same(smelt.gradient(smelt.array(f), exact(places)), np.gradient(f.astype(np.float64), places), rtol=1e-9)
