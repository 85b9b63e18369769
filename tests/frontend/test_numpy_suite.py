"""What NumPy's own tests ask of functions that smelt has, too: each case beside NumPy, or refused as there."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError

A = np.arange(12.0).reshape(2, 2, 3)
INF, NAN = np.inf, np.nan

#: (name, arguments, keywords)
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("average", (A,), {"axis": (0, 1), "weights": np.array([[0, 0.5], [0.25, 1.0]])}),
    ("average", (A,), {"axis": (2, 0), "weights": np.arange(6.0).reshape(3, 2)}),
    ("average", (A,), {"axis": (1, 2), "weights": np.array([[0, 0.5, 0.5], [1, 0, 0]]), "keepdims": True}),
    ("average", (A,), {"axis": 1, "weights": np.array([1.0, 2])}),
    ("insert", (np.array([[1, 1], [2, 2], [3, 3]]), [1], [1, 2, 3]), {"axis": 1}),
    ("insert", (np.array([[1, 1], [2, 2], [3, 3]]), [1], np.array([[1], [2], [3]])), {"axis": 1}),
    ("insert", (np.array([[1, 1], [2, 2], [3, 3]]), 1, [1, 2, 3]), {"axis": 1}),
    ("insert", (np.arange(4), slice(1, 2), [7, 8]), {}),
    ("insert", (np.arange(4), np.array([True, False, True, False]), [7, 8]), {}),
    ("insert", (np.array([1, 2, 3]), np.array([True] * 4), 9), {}),
    ("delete", (np.arange(5), np.array([[0, 1], [2, 1]])), {}),
    ("interp", ([1, 2, 2.5, 3, 4], [1, 2, 3, 4], [1, 2, INF, 4]), {}),
    ("interp", (0.5, np.array([-INF, INF]), np.array([10.0, 10])), {}),
    ("interp", (np.array([NAN, 0.5]), np.array([0.0, 1]), np.array([2.0, 2])), {}),
    (
        "interp",
        ([-180, -170, -185, 185, -10, -5, 0, 365], [190, -190, 350, -350], [5 + 1j, 10 + 2j, 3 + 3j, 4 + 4j]),
        {"period": 360},
    ),
    ("interp", (0.5, [0, 1], np.array([1j, 10])), {}),
    ("interp", (np.float64(0.5), np.array([0.0, 1]), np.array([1j, 10])), {"left": 1j}),
    ("count_nonzero", (A, 1), {}),
    ("poly", ([[1, 2, 3], [4, 5, 6], [7, 8, 0]],), {}),
    ("nanstd", (np.array([1.0, NAN, 3, 8]),), {"ddof": 1}),
    ("nanvar", (np.array([[1.0, NAN, 3], [2, 5, 8]]),), {"axis": 1, "ddof": 1}),
]  # fmt: skip


def smelts(x: Any) -> Any:
    return smelt.array(x, x.dtype.name) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("case", range(len(CASES)))
def test_as_numpy(case: int) -> None:
    name, args, kwargs = CASES[case]
    want = getattr(np, name)(*args, **kwargs)
    got = getattr(smelt, name)(*map(smelts, args), **{k: smelts(v) for k, v in kwargs.items()})
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: smelt.gradient(smelt.ones((5, 5)), smelt.arange(5.0)), ArgumentTypeError),
        (lambda: smelt.einsum_path("i->", smelt.ones(2), optimize=True), ArgumentTypeError),
        (lambda: smelt.ediff1d(smelt.array([1, 2, 3]), to_end=NAN), DTypeError),
        (lambda: smelt.ediff1d(smelt.array([1, 2, 3]), to_begin=smelt.array([5.0])), DTypeError),
        (lambda: smelt.cov(smelt.ones((2, 3)), fweights=[1.5, 4.5, 1.5]), DTypeError),
        (lambda: smelt.average(smelt.ones((2, 2, 3)), axis=(0, 1), weights=[1.0, 2.0]), ShapeError),
        (lambda: smelt.insert(smelt.arange(4), [True, False], [1]), ShapeError),
        (lambda: smelt.linalg.lstsq(smelt.array([[1, 2], [3, 4]]), smelt.array([1, 2])), DTypeError),
        *[(lambda p=p: smelt.linalg.cond(smelt.zeros((3, 0, 0)), p), ShapeError) for p in (None, 1, -2, "fro")],
        (lambda: smelt.polyval(smelt.broadcast_to(smelt.array(1.0), (2**33,)), 1.0), ShapeError),
    ],
)
def test_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"test_numpy_suite\.py"):
        call()


@pytest.mark.parametrize("ends", [(0, 1), (-3, 4), (5, -300), (0.0, 22.0), (2**31 - 1, -(2**31)), (-(2**62), 2**61)])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_of_integers_is_exact(ends: tuple[float, float], endpoint: bool) -> None:
    first, last = map(int, ends)
    for num in (2, 3, 22, 23, 24, 30, 200):
        parts = num - endpoint
        want = [math.floor(first + Fraction(i * (last - first), parts)) for i in range(num)]
        assert smelt.linspace(*ends, num, endpoint, smelt.int64).tolist() == want
    for num in range(2, 200):
        assert smelt.linspace(0, num - 1, num, dtype=smelt.uint8).tolist() == list(range(num))


@pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint8, smelt.int32, smelt.uint32, smelt.int64, smelt.uint64])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_between_arrays_of_integers_is_exact(dtype: smelt.Dtype, endpoint: bool) -> None:
    low, high = int(smelt.iinfo(dtype).min), int(smelt.iinfo(dtype).max)
    first, last = map(list, zip(*itertools.product([low, high, low // 3, high // 3, 0, 9], repeat=2)))
    for num in (1, 2, 3, 7, 50):
        parts = max(num - endpoint, 1)
        want = [[math.floor(a + Fraction(i * (b - a), parts)) for a, b in zip(first, last)] for i in range(num)]
        ends = [smelt.array(v, dtype) for v in (first, last)]
        assert smelt.linspace(*ends, num, endpoint, dtype).tolist() == want
        assert [smelt.linspace(a, b, num, endpoint, dtype).tolist() for a, b in zip(first, last)] == np.transpose(
            np.array(want, object)
        ).tolist()


@pytest.mark.parametrize("ends", [(1.5, 0.0), (2.5, -2.0), (-3.0, 0.5), (0.5, 7.0), (-9.25, 5.0), (7.0, -0.5)])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_in_integers_between_fractions_is_the_floor(ends: tuple[float, float], endpoint: bool) -> None:
    first, last = map(Fraction, ends)
    for num in range(2, 60):
        want = [math.floor(first + Fraction(i, num - endpoint) * (last - first)) for i in range(num)]
        assert smelt.linspace(*ends, num, endpoint, smelt.int32).tolist() == want
        assert smelt.linspace(*map(smelt.array, ends), num, endpoint, smelt.int32).tolist() == want


@pytest.mark.parametrize("ends", [(0, 1), (2.5, -2), (1j, 3.0), ([1.0, 2.0], 5), ([[1], [7]], [3, 4, 5])], ids=str)
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_returns_its_step(ends: Any, endpoint: bool) -> None:
    for num, dtype in itertools.product((0, 1, 2, 5), (None, "float64", "complex128", "int32")):
        if dtype in ("int32", "float64") and 1j in ends:
            continue
        found, step = smelt.linspace(*ends, num, endpoint, dtype and getattr(smelt, dtype), retstep=True)
        wanted, wanted_step = np.linspace(*ends, num, endpoint, True, dtype)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-6)
        if num > endpoint:
            np.testing.assert_allclose(np.asarray(step), wanted_step, rtol=1e-6)
        else:
            assert np.isnan(np.asarray(step)).all() and np.shape(step) == np.shape(np.add(*ends))
    assert smelt.linspace(-1.5, 2, 1, dtype=smelt.int32).tolist() == [-2]
    assert smelt.linspace(smelt.array([-1.5]), 2, 1, dtype=smelt.int32).tolist() == [[-2]]


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
@pytest.mark.parametrize("number", [0.1, 1 / 3, 2, True, 0.1 + 0.3j], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_numbers_beside_arrays_of_integers_have_all_digits_of_the_dtype(name: str, number: Any, dtype: str) -> None:
    if dtype == "float64" and isinstance(number, complex):
        return
    function, kind = getattr(smelt, name), getattr(smelt, dtype)
    keywords = [{"base": 1.1}, {}] if name == "logspace" else [{}]
    for whole, named in itertools.product((3, np.int8(7), [2, 5]), keywords):
        other = smelt.array(whole)
        for ends, given in (((number, whole), (number, other)), ((whole, number), (other, number))):
            want = getattr(np, name)(*ends, 5, **named)
            np.testing.assert_allclose(np.asarray(function(*given, 5, dtype=kind, **named)), want, rtol=1e-14)


def test_a_list_is_a_sample_of_variables() -> None:
    for vector in ([0.0, 0.1, 1.0, 2.0], smelt.array([0.5, 0.2, 0.1])):
        got, found = smelt.histogramdd(vector, 3)
        want, edges = np.histogramdd(np.asarray(vector), 3)
        np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_allclose(np.asarray(found[0]), edges[0], rtol=1e-6)
    x = [[0.0, 0.1, 1.0, 2.0], [3.0, 4.0, 4.1, 5.0], [0.0, 0.0, 0.0, 1.0]]
    want, edges = np.histogramdd(x, 3)
    for sample in (x, [smelt.array(v) for v in x], smelt.array(x).T):
        got, found = smelt.histogramdd(sample, 3)
        np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_allclose(np.asarray(found), edges, rtol=1e-6)


def test_interp_beside_infinite_values() -> None:
    points, x = np.array([1.0, 3, 5, 7, 9]), np.array([0.0, 1, 2, 4, 6, 8, 9, 10])
    lines = np.array(list(itertools.product([INF, -INF, NAN, 1.0, -2.0], repeat=5)))
    interp = smelt.vmap(smelt.interp, in_axes=(None, None, 0))
    want = np.array([np.interp(x, points, line) for line in lines])
    np.testing.assert_array_equal(np.asarray(interp(smelts(x), smelts(points), smelts(lines))), want)


@pytest.mark.parametrize("order", [None, 2, -2])
def test_condition_numbers_of_singular_matrices_are_infinite(order: int | None) -> None:
    many = np.stack([np.zeros((2, 2)), np.ones((2, 2)), np.diag([1.0, 0]), np.diag([1.0, 3])])
    many[1, 0, 0] = 2
    with np.errstate(all="ignore"):
        want = np.linalg.cond(many, order)
    np.testing.assert_allclose(np.asarray(smelt.linalg.cond(smelts(many), order)), want)


def test_interp_has_its_derivatives_where_points_meet() -> None:
    x, xp = smelt.array([0.5, 1.5, 1.0]), smelt.array([0.0, 1, 2])
    by_values = smelt.grad(lambda f: smelt.interp(x, xp, f).sum())(smelt.array([1.0, 1, 3]))
    np.testing.assert_allclose(np.asarray(by_values), [0.5, 2, 0.5])


DOUBLES = np.array([0.03, 0.1, 0.35, 0.6])
#: Functions of a Python number beside an array of float64, where the number stands, and more.
BESIDE = {
    "append": "sx", "digitize": "sx", "inner": "sx", "interp": "sxx", "isin": "sx", "kron": "sx", "outer": "sx",
    "polyval": "xs", "searchsorted": "xs", "intersect1d": "sx", "setdiff1d": "sx", "setxor1d": "sx", "union1d": "sx",
}  # fmt: skip


@pytest.mark.parametrize(("name", "places"), BESIDE.items())
def test_numbers_beside_float64_are_exact(name: str, places: str) -> None:
    doubles = smelt.array(DOUBLES, smelt.float64)
    args = [doubles if place == "x" else 0.1 for place in places]
    want = getattr(np, name)(*[DOUBLES if place == "x" else 0.1 for place in places])
    np.testing.assert_allclose(np.asarray(getattr(smelt, name)(*args)), want, rtol=1e-14)


LIST = [0.1, 0.3, 0.7, 0.9]
#: The same of a list, where it stands.
BESIDE_LISTS = {
    "add": "sx", "subtract": "xs", "maximum": "sx", "power": "xs", "where": "bsx", "inner": "sx", "matmul": "xs",
    "isin": "sx", "append": "xs", "polyval": "sx", "outer": "xs", "convolve": "xs", "vecdot": "sx", "interp": "sxx",
    "array_equal": "xs", "allclose": "xs", "equal": "sx", "clip": "xsn", "union1d": "xs", "kron": "sx",
}  # fmt: skip


@pytest.mark.parametrize(("name", "places"), BESIDE_LISTS.items())
def test_lists_beside_float64_are_exact(name: str, places: str) -> None:
    there = {"s": LIST, "x": np.array(LIST), "b": np.array([True, False] * 2), "n": None}
    want = getattr(np, name)(*[there[place] for place in places])
    here = {place: smelts(value) for place, value in there.items()}
    found = getattr(smelt, name)(*[here[place] for place in places])
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-14)


def test_lists_among_float64_are_exact() -> None:
    x = smelts(np.array(LIST))
    joined = [smelt.concatenate([x, LIST])[4:], smelt.stack([LIST, x])[0], smelt.einsum("i,->i", LIST, x[0]) / x[0]]
    written = smelt.zeros_like(x)
    written[:] = LIST
    added = smelt.zeros_like(x).at[smelt.arange(4)].add(LIST)
    solved = smelt.linalg.solve(smelt.eye(4, dtype=smelt.float64), LIST)
    for found in (*joined, written, added, solved):
        np.testing.assert_allclose(np.asarray(found), LIST, rtol=1e-15)
    assert smelt.add(smelt.array([1.0]), [0.1]).dtype is smelt.float32
    assert smelt.add(x[:2], [1, 2]).dtype is smelt.float64


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_sums_and_products_as_bools(dtype: type) -> None:
    x = np.array([[0, 2, 3], [0, 0, 0], [1, 1, 2]]).astype(dtype)
    for name in ("sum", "prod", "nansum", "nanprod"):
        found = getattr(smelt, name)(smelts(x), 1, dtype=smelt.bool_)
        np.testing.assert_array_equal(np.asarray(found), getattr(np, name)(x, 1, dtype=bool), strict=True)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_fractions_of_observations_are_taken_off(name: str) -> None:
    found = getattr(smelt, name)(smelts(A), 1, ddof=0.5)
    np.testing.assert_allclose(np.asarray(found), getattr(np, name)(A, 1, ddof=0.5))


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy asks for it from 2.4 on")
def test_numpy_knows_dtypes_of_arrays() -> None:
    x = smelt.ones((2,), smelt.float16)
    assert np.result_type(x, np.int32) == np.float64 and np.can_cast(x.dtype, np.float32)
    assert x.dtype.itemsize == 2 and x.dtype.type is np.float16 and smelt.bfloat16.type is ml_dtypes.bfloat16


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rtol", [0.4, [0.1, 0.5, 0.9], [[0.2], [0.7]], [0.3] * 3, [[0.1, 0.4, 0.7], [0.9, 0, 0.1]]])
def test_tolerances_of_each_matrix(rtol: Any, dtype: str) -> None:
    a = smelt.array(np.random.default_rng(0).normal(size=(2, 3, 4, 3))).astype(getattr(smelt, dtype))
    host, limits = np.asarray(a), np.broadcast_to(rtol, (2, 3))
    near = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    for given in (rtol, np.array(rtol), smelt.array(rtol)):
        assert smelt.linalg.matrix_rank(a, rtol=given).tolist() == np.linalg.matrix_rank(host, rtol=limits).tolist()
        found, want = smelt.linalg.pinv(a, rtol=given), np.linalg.pinv(host, rtol=limits)
        np.testing.assert_allclose(np.asarray(found), want, rtol=near, atol=near)
    if "complex" not in dtype:
        slopes = smelt.grad(lambda a: smelt.linalg.pinv(a, rtol=rtol).sum())(a)
        for place in np.ndindex(2, 3):
            slope = smelt.grad(lambda m, limit: smelt.linalg.pinv(m, rtol=limit).sum())(a[place], limits[place])
            np.testing.assert_allclose(np.asarray(slopes[place]), np.asarray(slope), rtol=10 * near, atol=10 * near)


@pytest.mark.parametrize("function", [smelt.linalg.pinv, smelt.linalg.matrix_rank])
def test_tolerances_that_do_not_fit(function: Any) -> None:
    a = smelt.ones((2, 3, 4, 3))
    for rtol, error in (([0.1, 0.2], ShapeError), ([[[0.1] * 3] * 2] * 2, ShapeError), ([1j] * 3, DTypeError)):
        with pytest.raises(error, match=rf"smelt\.linalg\.{function.__name__}: rtol .*test_numpy_suite\.py"):
            function(a, rtol=rtol)
    assert function(smelt.zeros((0, 2, 2)), rtol=[]).shape[0] == 0


def test_tolerances_that_are_nan_or_traced() -> None:
    a, limits = smelt.ones((2, 2, 2)), smelt.array([smelt.nan, 0.1])
    for i, limit in enumerate((smelt.nan, 0.1)):
        assert smelt.linalg.matrix_rank(a, rtol=limits)[i] == smelt.linalg.matrix_rank(a[i], rtol=limit)
        alone = smelt.linalg.pinv(a[i], rtol=limit)
        np.testing.assert_array_equal(np.asarray(smelt.linalg.pinv(a, rtol=limits)[i]), np.asarray(alone))
    ranks = smelt.vmap(lambda m, limit: smelt.linalg.matrix_rank(m, rtol=limit))
    assert ranks(a, smelt.array([0.1, 2.0])).tolist() == [1, 0]
    compiled = smelt.compile(lambda m, limit: smelt.linalg.matrix_rank(m, rtol=limit))
    assert compiled(a, smelt.array(2.0)).tolist() == [0, 0]


def test_least_squares_need_a_number_for_a_tolerance() -> None:
    a, b = smelt.ones((3, 2)), smelt.ones(3)
    for call in (lambda: smelt.linalg.lstsq(a, b, rcond=smelt.nan), lambda: smelt.polyfit(b, b, 1, rcond=smelt.nan)):
        with pytest.raises(AttributeValueError, match="rcond must be a number, is NaN"):
            call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("number", [300, -1, 2**40])
def test_ends_out_of_bounds_for_the_integers_beside_them(number: int, dtype: str) -> None:
    start = smelt.array([1, 2], getattr(smelt, dtype))
    for kind in (None, smelt.float32, smelt.float64, smelt.int64):
        found = smelt.linspace(start, number, 3, dtype=kind)
        want = np.linspace(np.array([1, 2]), number, 3, dtype=np.int64 if kind is smelt.int64 else None)
        assert found.dtype is (kind or smelt.float32)
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)
    if number > 0:
        for name in ("geomspace", "logspace"):
            ends = (start, number, 3) if name == "geomspace" else (start, 3, 3)
            base = {} if name == "geomspace" else {"base": number}
            found, want = (getattr(f, name)(*ends, **base) for f in (smelt, np))
            np.testing.assert_allclose(np.asarray(found), want.astype(np.float32), rtol=1e-5)


def test_ends_that_are_numpys_arrays_of_no_axis() -> None:
    found = smelt.linspace(np.array(0.1), smelt.array([1, 2]), 2, dtype=smelt.float64)
    assert found[0, 0].item() == 0.1
