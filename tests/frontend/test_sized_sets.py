"""Sets of a fixed size, as compiled functions need them, beside NumPy's; and what other families take for that."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import smelt
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    IndexOutOfRangeError,
    LibraryError,
    ShapeError,
    TraceError,
)

from .checks import check_gradient, exact

rng = np.random.default_rng(19)
FILL = -5
PAIRS = [(rng.integers(0, 6, n), rng.integers(0, 6, m)) for n in (0, 1, 3, 7) for m in (0, 1, 2, 6)]


def filled_up(values: np.ndarray, size: int, fill: Any) -> np.ndarray:
    return np.concatenate([values[:size], np.full(max(size - len(values), 0), fill, values.dtype)])


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_a_size(name: str, dtype: Any) -> None:
    function = getattr(smelt, name)
    for size in (0, 1, 2, 9):
        for a, b in PAIRS:
            a, b = a.astype(dtype), b.astype(dtype)
            way = smelt.compile if len(a) == 7 else lambda f: f
            found = np.asarray(way(partial(function, size=size, fill_value=FILL))(exact(a), exact(b)))
            want = filled_up(getattr(np, name)(a, b).astype(dtype), size, FILL)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, want, str((a, b)))
    rows = exact(np.array([[3, 1, 3, 5], [2, 2, 2, 2]], dtype))
    batched = smelt.vmap(lambda x: function(x, exact(np.array([3, 2], dtype)), size=4, fill_value=FILL))(rows)
    for i, row in enumerate(np.asarray(rows)):
        want = filled_up(getattr(np, name)(row, np.array([3, 2], dtype)), 4, FILL)
        np.testing.assert_array_equal(np.asarray(batched)[i], want)


def test_what_sets_are_filled_up_with() -> None:
    x, y = smelt.array([4, 2, 4, 3]), smelt.array([4, 3])
    assert smelt.intersect1d(x, y, size=3).tolist() == [3, 4, 3]
    assert smelt.intersect1d(x, [9], size=2).tolist() == [0, 0]
    assert smelt.setxor1d(x, y, size=3).tolist() == [2, 2, 2]
    assert smelt.setdiff1d(x, y, size=3).tolist() == [2, 0, 0]
    assert smelt.setdiff1d(smelt.array([9, 1, 4]), y, True, size=3, fill_value=7).tolist() == [9, 1, 7]
    assert smelt.union1d(x, y, size=5).tolist() == [2, 3, 4, 2, 2]
    both, first, second = smelt.intersect1d(x, y, return_indices=True, size=3, fill_value=0)
    assert [both.tolist(), first.tolist(), second.tolist()] == [[3, 4, 0], [3, 0, 4], [1, 0, 2]]
    nothing = smelt.intersect1d(smelt.zeros(0), y, return_indices=True, size=1)
    assert [part.item() for part in nothing] == [0, 0, 2]


def test_nans_of_sets_of_a_size() -> None:
    x, y = exact(np.array([np.nan, 1, np.nan])), exact(np.array([np.nan, 2]))
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        known = np.asarray(getattr(smelt, name)(x, y))
        found = np.asarray(getattr(smelt, name)(x, y, size=len(known)))
        np.testing.assert_array_equal(found, known, name)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_the_unique_family_of_a_size(dtype: Any) -> None:
    x = rng.integers(0, 5, (3, 4)).astype(dtype)
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        function = getattr(smelt, name)
        whole = function(exact(x))
        whole = whole if isinstance(whole, tuple) else (whole,)
        count = whole[0].size
        for size in (count, count + 3):
            found = smelt.compile(lambda v: function(v, size=size, fill_value=FILL))(exact(x))  # noqa: B023
            for one, other in zip(found if isinstance(found, tuple) else (found,), whole):
                assert one.dtype is other.dtype
                cut = np.asarray(one) if one.ndim == 2 else np.asarray(one)[:count]
                np.testing.assert_array_equal(cut, np.asarray(other))
            values = found[0] if isinstance(found, tuple) else found
            assert values.tolist()[count:] == [FILL] * (size - count)
    assert smelt.unique_counts(exact(x), size=40).counts.sum().item() == x.size
    assert type(smelt.unique_inverse(exact(x), size=2)) is type(smelt.unique_inverse(exact(x)))


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
def test_errors_of_sizes(name: str) -> None:
    function = getattr(smelt, name)
    with pytest.raises(TraceError):
        smelt.compile(function)(smelt.array([1, 2]))
    with pytest.raises(ArgumentTypeError, match="size must be an int"):
        function(smelt.array([1, 2]), size=1.5)
    with pytest.raises(AttributeValueError, match="size"):
        function(smelt.array([1, 2]), size=-1)
    for sets in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        with pytest.raises((AttributeValueError, ArgumentTypeError), match="size"):
            getattr(smelt, sets)(smelt.array([1, 2]), smelt.array([1]), size=-1)


def test_elements_that_are_not_there() -> None:
    x = exact(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    index = smelt.array([0, 7, -1, -4])
    for call in (smelt.take, smelt.compile(lambda *a, **k: smelt.take(*a, **k))):
        np.testing.assert_array_equal(np.asarray(call(x, index, 1, mode="fill")),
                                      [[1, np.nan, 3, np.nan], [4, np.nan, 6, np.nan]])  # fmt: skip
    assert smelt.take(smelt.array([1, 2]), [5, 1], mode="fill", fill_value=9).tolist() == [9, 2]
    assert smelt.take(smelt.array([1, 2]), 5, mode="fill").item() == -(2**31)
    assert smelt.take(smelt.zeros((0,)), [0], mode="fill", fill_value=1).tolist() == [1]
    batched = smelt.vmap(lambda v: smelt.take(v, index, mode="fill", fill_value=0.0))(x)
    assert batched.tolist() == [[1, 0, 3, 0], [4, 0, 6, 0]]
    check_gradient(lambda v: smelt.take(v, index, 1, mode="fill", fill_value=0), np.asarray(x))
    with pytest.raises(AttributeValueError, match="fill_value"):
        smelt.take(x, 1, fill_value=2)
    with pytest.raises(ArgumentTypeError, match="fill_value"):
        smelt.take(x, 1, mode="fill", fill_value=smelt.ones(2))  # type: ignore[arg-type]


KINDS = ("general", "symmetric", "hermitian", "positive definite", "upper triangular", "lower triangular", "diagonal",
         "gen", "sym", "her", "pos")  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_systems_that_are_known_to_be_special(kind: str, dtype: Any) -> None:
    """What stands where nothing is looked at is of no account."""
    a, b = (rng.normal(size=(4, 4)) + 9 * np.eye(4)).astype(dtype), rng.normal(size=(4, 2)).astype(dtype)
    if dtype is np.complex128:
        a = a + 1j * rng.normal(size=(4, 4))
    want = scipy.linalg.solve(a, b, assume_a=kind)
    rtol = 1e-4 if dtype is np.float32 else 1e-10
    solve = partial(smelt.linalg.solve, assume_a=kind)
    for call in (solve, smelt.compile(solve)):
        np.testing.assert_allclose(np.asarray(call(exact(a), exact(b))), want, rtol, rtol)
    batched = smelt.linalg.solve(exact(np.stack([a, a * 2])), exact(b[:, 0]), assume_a=kind)
    np.testing.assert_allclose(np.asarray(batched), [want[:, 0], want[:, 0] / 2], rtol, rtol)
    if dtype is np.float64:
        check_gradient(lambda a, b: smelt.linalg.solve(a, b, assume_a=kind), a, b)


def test_errors_of_special_systems() -> None:
    with pytest.raises(AttributeValueError, match="assume_a"):
        smelt.linalg.solve(smelt.eye(2), smelt.ones(2), assume_a="banded")
    with pytest.raises(LibraryError, match="positive definite"):
        smelt.eval(smelt.linalg.solve(-smelt.eye(2), smelt.ones(2), assume_a="pos"))
    for kind in KINDS:
        with pytest.raises(ShapeError, match="the last 2 axes"):
            smelt.linalg.solve(smelt.ones((2, 3)), smelt.ones(2), assume_a=kind)


def test_the_least_numbers_of_dtypes() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        found = smelt.finfo(getattr(smelt, dtype.__name__))
        assert found.smallest_subnormal == float(np.finfo(dtype).smallest_subnormal)
    assert smelt.finfo(smelt.bfloat16).smallest_subnormal == 2.0**-133


def test_arguments_that_had_wrong_results() -> None:
    for shape in ("", b"abc", {1}, {1: 2}):
        for call in (smelt.ones, smelt.broadcast_shapes, lambda s: smelt.reshape(smelt.ones(1), s),
                     lambda s: smelt.sum(smelt.ones((1, 1)), axis=s), smelt.random.normal):  # fmt: skip
            with pytest.raises(ArgumentTypeError, match="smelt"):
                call(shape)  # type: ignore[arg-type]
    for call in (lambda: smelt.broadcast_shapes((-2, 3)), lambda: smelt.broadcast_shapes(-7)):
        with pytest.raises(ShapeError, match="negative extent"):
            call()
    with pytest.raises(smelt.errors.OutOfMemoryError):
        smelt.broadcast_shapes(2**63)
    assert smelt.arange(0, 3, 1.7e308).tolist() == [0]
    assert smelt.arange(3, 0, -1.7e308).tolist() == [3]
    for index in (6, -7, 99, np.int64(6)):
        with pytest.raises(IndexOutOfRangeError, match="put_along_axis"):
            smelt.put_along_axis(smelt.zeros((2, 3)), index, 1.0)  # type: ignore[arg-type]
    assert smelt.put_along_axis(smelt.zeros(3), -1, 1.0).tolist() == [0, 0, 1]
    for q, name in ((2.0, "quantile"), (-1.0, "nanquantile"), (101.0, "percentile"), (np.nan, "nanpercentile")):
        for _ in range(2):  # also of a call that is remembered
            with pytest.raises(AttributeValueError, match=f"smelt.{name}: q must lie within"):
                getattr(smelt, name)(smelt.ones(3), smelt.array([q, 0.5]))
    for call in (lambda: smelt.linalg.lstsq(smelt.eye(2), smelt.ones(2), float("nan")),
                 lambda: smelt.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 1, rcond=float("nan"))):  # fmt: skip
        with pytest.raises(AttributeValueError, match="rcond"):
            call()
    x, y = rng.normal(size=(2, 30))
    for of in (np.array, smelt.array, list):
        found = smelt.histogram2d(exact(x), exact(y), of([2, 3]))[0]
        np.testing.assert_array_equal(np.asarray(found), np.histogram2d(x, y, [2, 3])[0])
    edges = np.array([-1.0, 0.0, 1.0])
    found = smelt.histogram2d(exact(x), exact(y), edges)[0]
    np.testing.assert_array_equal(np.asarray(found), np.histogram2d(x, y, edges)[0])
