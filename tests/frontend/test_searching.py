"""Masks read and written, where elements are, distinct elements, membership: against NumPy."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.functions import sorting
from smelt.ir.errors import AttributeValueError, IndexOutOfRangeError, ShapeError, SmeltError, TraceError
from smelt.ir.settings import settings
from tests.frontend.checks import exact, same

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "complex64")
SHAPES = ((0,), (1,), (7,), (3, 4), (0, 3), (2, 0, 3), (2, 3, 4))
rng = np.random.default_rng(5)


def made(shape: tuple[int, ...], dtype: str, among: int = 3) -> np.ndarray:
    """Few different values, so that some are zero and many are equal."""
    found = rng.integers(0, among, shape).astype(dtype)
    return found * (1 + 1j) if dtype == "complex64" else found


# Masks


def entries(extents: tuple[int, ...]) -> list[Any]:
    """What an index may consist of besides a mask, for axes of these extents."""
    first = extents[0] if extents else 1
    return [slice(None), slice(None, None, -2), slice(1, None), 0, -1, None, ..., [0, first - 1], np.array(0)]


def masked_indices() -> list[Any]:
    shape = (3, 4, 5)
    masks = {n: [rng.random(shape[at : at + n]) > 0.5 for at in range(4 - n)] for n in (1, 2, 3)}
    found: list[Any] = [m for n in masks for m in masks[n][:1]]
    for one, at in zip(masks[1], range(3)):
        for before in itertools.product(*[entries(shape[i:]) for i in range(at)]):
            if sum(e is ... for e in before) < 2 and not any(e is None for e in before[1:]):
                found.append((*before, one))
    for two, at in zip(masks[2], range(2)):
        found += [(*[slice(None)] * at, two), (*[0] * at, two), (*[slice(None)] * at, two, None), (..., two)]
    found += [(masks[1][0], slice(None), masks[1][2]), (masks[1][0], masks[1][0].nonzero()[0])]
    found += [np.zeros(3, bool), np.zeros((3, 4), bool), np.ones((3, 4, 5), bool), (slice(None), np.zeros(4, bool))]
    found += [True, False, (True, 0), (0, False), (..., np.bool_(True)), (slice(None), [True, False, True, True])]
    return found


X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def valid(index: Any) -> bool:
    try:
        X[index]
    except IndexError:
        return False
    return True


INDICES = [i for i in masked_indices() if valid(i)]


def in_smelt(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(in_smelt(e) for e in index)
    return smelt.array(index) if isinstance(index, (list, np.ndarray)) and np.ndim(index) else index


@pytest.mark.parametrize("convert", [lambda i: i, in_smelt], ids=["numpy", "smelt"])
def test_masks_are_read_and_written_as_numpys(convert: Callable[[Any], Any]) -> None:
    for index in INDICES[:: 1 if settings.small_work else 4]:  # fewer where each is compiled
        expected = X[index]
        given = convert(index)
        same(smelt.array(X)[given], expected)
        values = [np.float32(7), -np.arange(1, expected.size + 1, dtype=np.float32).reshape(expected.shape)]
        if expected.ndim:
            values.append(values[1][..., :1])
            if not isinstance(index, np.ndarray):  # NumPy's way for masks alone takes no more axes
                values.append(-np.ones((1, *expected.shape), np.float32))
        for value in values:
            host, x = X.copy(), smelt.array(X)
            host[index] = value
            x[given] = smelt.array(value)
            same(x, host)
            if value.ndim > expected.ndim:
                continue
            host, x = X.copy(), smelt.array(X)
            host[index] += value
            x[given] += value
            same(x, host)


@pytest.mark.parametrize("name, operation", [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
    ("maximum", np.maximum), ("minimum", np.minimum),
])  # fmt: skip
def test_at_takes_masks(name: str, operation: np.ufunc) -> None:
    for index in INDICES[::5]:
        host = X.copy()
        operation.at(host, index, np.float32(3))
        same(getattr(smelt.array(X).at[in_smelt(index)], name)(3.0), host)


def test_masks_of_slices_are_written_inside_of_traces() -> None:
    """Nothing is evaluated where the value does not depend on how many elements the mask has."""
    mask = np.array([True, False, True, True])

    def write(x: smelt.array, m: smelt.array) -> smelt.array:
        x = smelt.array(x)
        x[:, m] = 5
        return x.at[..., m, :].add(smelt.ones((3, 1, 5)))

    expected = X.copy()
    expected[:, mask] = 5
    expected[..., mask, :] += 1
    same(smelt.compile(write)(smelt.array(X), smelt.array(mask)), expected)
    masks = np.stack([mask, ~mask])
    found = smelt.vmap(write, in_axes=(None, 0))(smelt.array(X), smelt.array(masks))
    same(found[0], expected)


@pytest.mark.parametrize("index", [
    np.ones((3, 4, 4), bool), (slice(None), np.ones(3, bool)), (0, np.ones((4, 4), bool)), np.ones((3, 4, 5, 1), bool),
    (..., np.ones(4, bool)), (np.ones(3, bool), np.ones(3, bool), np.ones(3, bool)),
])  # fmt: skip
def test_masks_that_do_not_fit(index: Any) -> None:
    with pytest.raises((ShapeError, IndexOutOfRangeError)):
        smelt.array(X)[index]
    with pytest.raises((ShapeError, IndexOutOfRangeError)):
        smelt.array(X)[index] = 1


@pytest.mark.parametrize("value", [(3, 2, 5), (5,), (3, 5, 5), (1, 1, 3, 4, 5)])
def test_values_that_do_not_fit(value: tuple[int, ...]) -> None:
    x, mask = smelt.array(X), smelt.array([True, True, True, False])
    if value == (5,):
        x[:, mask] = np.zeros(value)  # broadcast along the last axis
        return
    with pytest.raises(ShapeError):
        x[:, mask] = np.zeros(value)


# Where elements are


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(shape: tuple[int, ...], dtype: str) -> None:
    host = made(shape, dtype)
    x, expected = exact(host), np.nonzero(host)
    for found in (smelt.nonzero(x), smelt.where(x)):
        for i, j in zip(found, expected):
            same(i, j.astype(np.int32))
    same(smelt.argwhere(x), np.argwhere(host).astype(np.int32))
    same(smelt.flatnonzero(x), np.flatnonzero(host).astype(np.int32))
    sizes = [0, 1, expected[0].size, expected[0].size + 3]
    compiled = smelt.compile(lambda x: [smelt.nonzero(x, size=size, fill_value=-1) for size in sizes])
    for size, places in zip(sizes, compiled(x), strict=True):
        for i, j in zip(places, expected, strict=True):
            wanted = np.full(size, -1, np.int32)
            wanted[: j.size] = j[:size]
            same(i, wanted)


def test_nonzero_of_no_axes() -> None:
    with pytest.raises(ShapeError, match="scalar"):
        smelt.nonzero(smelt.array(3))
    assert smelt.argwhere(smelt.array(3)).shape == (1, 0)
    assert smelt.argwhere(smelt.array(0)).shape == (0, 0)


def test_fill_values_of_each_axis() -> None:
    found = smelt.argwhere(smelt.array([[0, 1], [0, 0]]), size=2, fill_value=(8, 9))
    same(found, np.array([[0, 1], [8, 9]], np.int32))
    with pytest.raises(AttributeValueError, match="fill_value"):
        smelt.nonzero(smelt.ones((2, 2)), size=2, fill_value=(1, 2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_compress_and_extract(dtype: str) -> None:
    for shape in SHAPES:
        host = made(shape, dtype, 100)
        mask = rng.random(shape) > 0.5
        same(smelt.extract(mask, exact(host)), np.extract(mask, host))
        cases = []
        for axis in (None, *range(-host.ndim, host.ndim)):
            extent = host.size if axis is None else host.shape[axis]
            for length in {extent, extent // 2}:
                test = rng.random(length) > 0.4
                expected = np.compress(test, host, axis=axis)
                same(smelt.compress(test, exact(host), axis=axis), expected)
                if (length < extent) is (axis is not None and axis < 0) or not extent:
                    cases.append((axis, test, expected))

        def sized(tests: list[smelt.array], x: smelt.array, cases: list[Any] = cases) -> list[smelt.array]:
            """Into one more place than there are elements."""
            return [
                smelt.compress(test, x, axis, size=int(host.sum()) + 1, fill_value=1)
                for test, (axis, host, _) in zip(tests, cases)
            ]

        found = smelt.compile(sized)([smelt.array(test) for _, test, _ in cases], exact(host))
        for (axis, test, expected), whole in zip(cases, map(np.asarray, found), strict=True):
            at, count = 0 if axis is None else axis, int(test.sum())
            same(np.take(whole, np.arange(count), axis=at), expected)
            assert (np.take(whole, [count], axis=at) == 1).all()


def test_compress_beyond_the_end() -> None:
    with pytest.raises(IndexOutOfRangeError, match="holds at 3"):
        smelt.compress([False, False, False, True], smelt.arange(3))
    same(smelt.compress([True, False, False, False], smelt.arange(3)), np.array([0], np.int32))
    with pytest.raises(ShapeError, match="vector"):
        smelt.compress([[True]], smelt.arange(3))


def test_derivatives_pass_through_what_is_selected() -> None:
    def loss(x: smelt.array) -> smelt.array:
        kept = smelt.compress([True, False, True], x, axis=1)
        return (kept * kept).sum() + 3 * smelt.unique_values(x).sum() + (x[x > 2] * 5).sum()

    x = np.array([[1, 2, 3], [1, 5, 6]], np.float32)
    first = np.array([[1, 1, 1], [0, 1, 1]], np.float32)
    expected = np.where([True, False, True], 2 * x, 0) + 3 * first + 5 * (x > 2)
    same(smelt.grad(loss)(smelt.array(x)), expected.astype(np.float32))


@pytest.mark.parametrize("function", [
    smelt.nonzero, smelt.where, smelt.argwhere, smelt.flatnonzero, lambda x: smelt.compress(x.flatten(), x),
    lambda x: smelt.extract(x, x), smelt.unique, smelt.unique_all, smelt.unique_counts, smelt.unique_inverse,
    smelt.unique_values, lambda x: x[x > 0],
])  # fmt: skip
def test_without_values_it_is_an_error_that_names_the_way(function: Callable[[smelt.array], Any]) -> None:
    for transformed in (smelt.compile(function), smelt.vmap(function)):
        with pytest.raises(TraceError, match=r"size=|smelt\.where"):
            transformed(smelt.ones((2, 3, 3)))


def test_where_takes_one_or_three() -> None:
    with pytest.raises(TypeError, match="both x and y"):
        smelt.where(smelt.array([True]), 1)  # type: ignore[call-overload]


# Distinct elements and membership


@pytest.mark.parametrize("shape", [(), *SHAPES], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(shape: tuple[int, ...], dtype: str) -> None:
    host = made(shape, dtype)
    if dtype == "float32" and host.size > 3:
        host.reshape(-1)[[0, 2]] = np.nan
    values, first, inverse, counts = np.unique(
        host, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    found = smelt.unique_all(exact(host))
    same(found.values, values)
    same(found.indices, first.astype(np.int32))
    same(found.inverse_indices, inverse.reshape(host.shape).astype(np.int32))
    same(found.counts, counts.astype(np.int32))
    same(smelt.unique_values(exact(host)), values)
    same(smelt.unique_counts(exact(host)).counts, counts.astype(np.int32))
    same(smelt.unique_inverse(exact(host)).inverse_indices, found.inverse_indices)
    if dtype != "complex64":
        same(smelt.unique(exact(host)), np.unique(host))


@pytest.mark.parametrize("shape, axis", [
    ((7, 2), 0), ((2, 7), 1), ((4, 9, 2), -2), ((6,), 0), ((1, 3), 0), ((3, 0), 0), ((0, 3), 0), ((5, 1), 0),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32"])
def test_unique_along_an_axis(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    host = np.random.default_rng(5).integers(0, 2, shape).astype(dtype)
    flags: Any = {"return_index": True, "return_inverse": True, "return_counts": True}
    if host.size:
        values, first, inverse, counts = np.unique(host, axis=axis, **flags)
    else:  # NumPy has no word for rows without elements
        n = shape[axis]
        values = host[:1] if n else host
        first, inverse, counts = np.zeros(min(n, 1)), np.zeros(n), np.full(min(n, 1), n)
    found = smelt.unique(smelt.array(host), axis=axis, **flags)
    same(found[0], values)
    for got, wanted in zip(found[1:], (first, inverse, counts)):
        np.testing.assert_array_equal(got, wanted.reshape(-1))
    n = values.shape[axis]
    sized = smelt.compile(lambda x: smelt.unique(x, n + 2, fill_value=1, axis=axis))(smelt.array(host))
    np.testing.assert_array_equal(np.take(sized, range(n), axis), values)
    assert (np.take(sized, [n, n + 1], axis) == 1).all()


def test_rows_with_a_nan_in_the_same_place_are_one() -> None:
    x = smelt.array([[math.nan, 1.0], [0.0, 1.0], [math.nan, 1.0], [-0.0, 1.0]])
    values, counts = smelt.unique(x, return_counts=True, axis=0)
    same(values, np.array([[0, 1], [math.nan, 1]], np.float32))
    assert counts.tolist() == [2, 2]
    with pytest.raises(SmeltError, match="axis"):
        smelt.unique(x, axis=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_isin(dtype: str) -> None:
    for shape in [(), *SHAPES]:
        for among in ((0,), (1,), (3,), (5, 4)):
            x, y = made(shape, dtype, 6), made(among, dtype, 6)
            if dtype == "float32" and x.size and y.size:
                x.reshape(-1)[0] = y.reshape(-1)[0] = np.nan
            for invert in (False, True):
                same(smelt.isin(exact(x), exact(y), invert=invert), np.isin(x, y, invert=invert))
    same(smelt.isin(smelt.array([1, 2]), 2), np.array([False, True]))
    same(smelt.isin(2, smelt.array([1, 2])), np.array(True))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_with_an_order(side: Any) -> None:
    host = rng.integers(0, 20, 33).astype(np.float32)
    order = np.argsort(host)
    at = np.arange(-1, 22, dtype=np.float32).reshape(1, -1)
    expected = np.searchsorted(host, at, side=side, sorter=order).astype(np.uint32)
    same(smelt.searchsorted(smelt.array(host), smelt.array(at), side=side, sorter=order), expected)
    with pytest.raises(ShapeError, match="sorter"):
        smelt.searchsorted(smelt.array(host), smelt.array(at), sorter=[0, 1])
    for bad in (len(host), -len(host) - 1):  # at each call, not at the first one alone
        wrong = np.concatenate([order[:-1], [bad]])
        for sorter in (smelt.array(wrong), smelt.array(wrong), wrong, wrong.tolist()):
            with pytest.raises(IndexError, match="out of range"):
                smelt.searchsorted(smelt.array(host), smelt.array(at), side, sorter)


@pytest.mark.parametrize(
    "dtype",
    [smelt.bool_, smelt.int8, smelt.int16, smelt.int32, smelt.int64, smelt.uint64, smelt.float16, smelt.bfloat16,
     smelt.float32, smelt.float64, smelt.complex64],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("size", [0, 1, 7, 20_000])
def test_unique_in_each_dtype_is_numpys(dtype: Any, size: int) -> None:
    rng = np.random.default_rng(3)
    given = rng.integers(0, 2 if dtype is smelt.bool_ else 50, size).astype(np.float64)
    if dtype.is_inexact:
        for value in (np.nan, np.inf, -np.inf, -0.0):
            given[rng.random(size) < 0.1] = value
    x = smelt.array(given).astype(dtype)[::-1]
    host = np.asarray(x.astype(smelt.float32) if dtype is smelt.bfloat16 else x)
    _, first, inverse, counts = np.unique(
        host, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    found = smelt.unique_all(x)
    for got, expected in zip(found[1:], (first, inverse, counts)):
        np.testing.assert_array_equal(got, expected.reshape(-1))
    for values in (found.values, smelt.unique_values(x)):
        assert values.dtype == dtype
        got = np.asarray(values.astype(smelt.float32) if dtype is smelt.bfloat16 else values)
        np.testing.assert_array_equal(got, host[first])
        assert dtype.is_complex or (np.signbit(got[got == 0]) == np.signbit(host[first][got == 0])).all()


def test_masks_of_several_axes() -> None:
    """Those of the leading axes, in any layout, empty ones, and those of nothing; with a derivative."""
    rng = np.random.default_rng(0)
    host = rng.standard_normal((5, 4, 3)).astype(np.float32)
    for mask in (host > 0, host[..., 0] > 0, (host[..., 0] > 0).T.copy().T, host > 99, np.ones((5, 4), bool)):
        for given in (mask, smelt.array(mask)):
            same(smelt.array(host)[given], host[mask])
            for found, want in zip(smelt.nonzero(smelt.array(mask)), np.nonzero(mask), strict=True):
                same(found, want.astype(np.int32))
        slope = smelt.grad(lambda x, mask=mask: (x[mask] ** 2).sum())(smelt.array(host))
        same(slope, np.where(mask if mask.ndim == 3 else mask[..., None], 2 * host, 0))
    none = np.zeros((0, 4), bool)
    same(smelt.zeros((0, 4, 2))[smelt.array(none)], np.zeros((0, 2), np.float32))
    assert [i.shape for i in smelt.nonzero(smelt.zeros((3, 0)))] == [(0,), (0,)]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [*DTYPES, "uint64"])
def test_few_and_many_values_are_searched_for_alike(dtype: str, side: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are counted, for many there is a binary search."""
    for size in (0, 1, 2, 7, 64):
        x, v = made((size,), dtype, 9), made((3, 5), dtype, 9)
        if dtype in ("float16", "float32", "complex64"):
            v[0, :2] = np.nan, np.inf
            x[size // 2 :][:1] = np.nan
        x.sort()
        expected = np.searchsorted(x, v, side=side).astype(np.uint32)
        for counted in (sorting.COUNTED, -1):
            monkeypatch.setattr(sorting, "COUNTED", counted)
            find = lambda x, v: smelt.searchsorted(x, v, side)  # noqa: E731
            assert "gather" not in str(smelt.make_ir(find)(exact(x), exact(v))) or counted < 0
            same(find(exact(x), exact(v)), expected)
            same(smelt.compile(find)(exact(x), exact(v)), expected)
            monkeypatch.undo()


def test_a_place_for_one_value_is_few_ops() -> None:
    """Op by op each costs microseconds: a binary search in 1000 elements is a hundred of them."""
    module = str(smelt.make_ir(smelt.searchsorted)(smelt.zeros(1000), smelt.array(1.0)))
    assert module.count('"smelt.') < 20
