"""Counts, quantiles, correlations and reductions that leave NaN out, against NumPy."""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError, TraceError
from tests.frontend.checks import check_gradient, exact, same

rng = np.random.default_rng(11)
SHAPES = ((7,), (3, 4), (2, 3, 4))
#: float64 is compared closely, the others as NumPy computes in float64.
DTYPES = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "int32": 2e-5}


def made(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (rng.integers(-1, 3, shape) if dtype == "int32" else rng.standard_normal(shape)).astype(dtype)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def near(found: smelt.array, expected: Any, dtype: str) -> None:
    """Computed in float64, compared as far as the dtype goes."""
    tolerance = DTYPES[dtype]
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def axes(host: np.ndarray) -> list[Any]:
    return [None, *range(-host.ndim, host.ndim), *([(0, 1), (1, 0)] if host.ndim > 1 else [])]


# Counts


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_digitize(dtype: str, right: bool) -> None:
    for edges in ([0, 1, 3], [3, 1, 0], [2], [1, 1, 1], [1, 1, 0]):
        host, bins = rng.integers(-1, 5, (3, 4)).astype(dtype), np.array(edges, dtype)
        found = smelt.digitize(exact(host), exact(bins), right=right)
        same(found, np.digitize(host, bins, right=right).astype(np.int32))
    same(smelt.digitize(smelt.zeros((0, 2)), smelt.array([1.0])), np.zeros((0, 2), np.int32))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("edges", [[0, 2, np.nan], [np.nan, 2, 0], [np.nan, np.nan], [-np.inf, 0, np.inf], [np.inf, 1]])
def test_digitize_by_special_bins(edges: list[float], right: bool) -> None:
    host = np.array([np.nan, np.inf, -np.inf, 0, 1, 2])
    same(smelt.digitize(exact(host), edges, right=right), np.digitize(host, edges, right=right).astype(np.int32))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64"])
def test_bincount(dtype: str) -> None:
    for size in (0, 1, 50):
        host, weights = rng.integers(0, 9, size).astype(dtype), rng.random(size).astype(np.float32)
        x, w = exact(host), exact(weights)
        signed = host.astype(np.int64)  # NumPy counts no uint64
        for least in (0, 20):
            same(smelt.bincount(x, minlength=least), np.bincount(signed, minlength=least).astype(np.int32))
            same(smelt.bincount(x, w, least), np.bincount(signed, weights, least), rtol=1e-6)
        compiled = smelt.compile(lambda x: smelt.bincount(x, length=4))
        same(compiled(x), np.bincount(signed[signed < 4], minlength=4).astype(np.int32))
    same(smelt.bincount(smelt.array([-3, 1, 900]), length=2), np.array([0, 1], np.int32))
    with pytest.raises(AttributeValueError, match="-3"):
        smelt.bincount(smelt.array([1, -3]))
    with pytest.raises(TraceError, match="length="):
        smelt.compile(smelt.bincount)(smelt.array([1]))
    with pytest.raises(DTypeError, match="integers"):
        smelt.bincount(smelt.array([1.5]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("bins", [1, 5, [0.0, 1.0, 1.5, 4.0], [-2, 2]], ids=str)
def test_histogram(bins: Any, dtype: str) -> None:
    for shape in ((0,), (1,), (40,), (4, 5)):
        host, weights = made(shape, dtype), rng.random(shape)
        for limits, heavy, density in itertools.product((None, (-1, 2), (0, 0)), (None, weights), (False, True)):
            if density and not host.size:
                continue
            expected, edges = np.histogram(host, bins, limits, weights=heavy, density=density)
            found = smelt.histogram(exact(host), bins, limits, density, None if heavy is None else exact(heavy))
            np.testing.assert_allclose(np.asarray(found.bin_edges), edges, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(np.asarray(found.hist), expected, rtol=2e-6)
            same(smelt.histogram_bin_edges(exact(host), bins, limits), np.asarray(found.bin_edges))
    same(smelt.histogram(smelt.array([np.nan, 1.0]), [0.0, 2.0]).hist, np.array([1], np.int32))


def test_histogram_in_traces() -> None:
    host = made((100,), "float32")
    compiled = smelt.compile(lambda x: smelt.histogram(x, 8))
    same(compiled(smelt.array(host))[0], np.histogram(host, 8)[0].astype(np.int32))
    rows = made((3, 20), "float32")
    counts = smelt.vmap(lambda x: smelt.histogram(x, 4, (-2, 2)).hist)(smelt.array(rows))
    same(counts, np.stack([np.histogram(r, 4, (-2, 2))[0] for r in rows]).astype(np.int32))
    check_gradient(lambda w: smelt.histogram(exact(np.arange(20.0)), 3, weights=w).hist, rng.random(20))
    for wrong in ({"bins": 0}, {"range": (2, 1)}, {"range": (0, np.inf)}, {"bins": [[1, 2]]}, {"weights": [1.0]}):
        with pytest.raises((AttributeValueError, ShapeError)):
            smelt.histogram(smelt.arange(3), **wrong)


# Quantiles

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "interpolated_inverted_cdf", "hazen", "weibull",
           "median_unbiased", "normal_unbiased")  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_quantile(method: Any, dtype: str) -> None:
    """In float64 of every shape, in other dtypes of one, which changes from method to method."""
    turn = METHODS.index(method) + list(DTYPES).index(dtype)
    for shape in SHAPES if dtype == "float64" else (SHAPES[turn % len(SHAPES)],):
        host = made(shape, dtype)
        wide = host.astype(np.float64)
        holes = np.where(rng.random(shape) < 0.3, np.nan, wide)
        for axis, q in itertools.product(axes(host), (0.3, 0, 1, 0.5, [0.25, 0.75, 0.5], [[0.1], [0.9]])):
            near(smelt.quantile(exact(host), q, axis, method=method), np.quantile(wide, q, axis, method=method), dtype)
            if dtype != "int32" and np.ndim(q) < 2:  # NumPy's nanquantile has axes of q elsewhere
                given = exact(holes.astype(dtype))
                expected = np.nanquantile(holes.astype(dtype).astype(np.float64), q, axis, method=method, keepdims=True)
                near(smelt.nanquantile(given, q, axis, method=method, keepdims=True), expected, dtype)
                expected = np.quantile(holes, q, axis, method=method)
                assert (np.isnan(np.asarray(smelt.quantile(given, q, axis, method=method))) == np.isnan(expected)).all()


def test_percentile() -> None:
    host = made((3, 4), "float64")
    same(smelt.percentile(exact(host), [10, 50], axis=1), np.percentile(host, [10, 50], axis=1), rtol=1e-12)
    parts = smelt.array([0.1, 0.5, 0.9])
    same(smelt.quantile(exact(host), parts), np.quantile(host, np.asarray(parts)), rtol=1e-6)
    same(smelt.compile(lambda x, q: smelt.quantile(x, q, 0))(exact(host), parts),
         np.quantile(host, np.asarray(parts), 0), rtol=1e-5)  # fmt: skip
    check_gradient(lambda x: smelt.quantile(x, [0.2, 0.7], axis=1), host)
    for wrong in ({"q": 101}, {"q": -1}, {"q": [50, 120]}, {"q": 50, "method": "middle"}):
        with pytest.raises(AttributeValueError):
            smelt.percentile(exact(host), **wrong)
    with pytest.raises(ShapeError, match="no elements"):
        smelt.percentile(smelt.zeros((0, 2)), 50, axis=0)
    assert smelt.percentile(smelt.zeros((0, 2)), [50, 20], axis=1).shape == (2, 0)


# Means and correlations


@pytest.mark.parametrize("dtype", DTYPES)
def test_average_and_ptp(dtype: str) -> None:
    for shape in SHAPES:
        host, weights = made(shape, dtype), rng.random(shape)
        for axis in axes(host):
            near(smelt.ptp(exact(host), axis), np.ptp(host, axis), dtype)
            near(smelt.average(exact(host), axis), np.average(host, axis), dtype)
            for heavy in (weights, *([rng.random(shape[axis])] if isinstance(axis, int) else [])):
                expected = np.average(host.astype(np.float64), axis, heavy, returned=True)
                found = smelt.average(exact(host), axis, exact(heavy), returned=True)
                for one, other in zip(found, expected):
                    near(one, other, dtype)
    with pytest.raises(ShapeError, match="weights"):
        smelt.average(smelt.ones((2, 3)), 0, weights=smelt.ones(3))


def test_cov_and_corrcoef() -> None:
    for shape, complex_too in itertools.product(((9,), (3, 9), (1, 9)), (False, True)):
        host, other = rng.standard_normal(shape), rng.standard_normal(9)
        if complex_too:
            host = (host + 1j * rng.standard_normal(shape)).astype(np.complex64)
        tolerance = 2e-5 if complex_too else 1e-12
        often, much = rng.integers(1, 4, 9), rng.random(9)
        for options in ({}, {"bias": True}, {"ddof": 2}, {"fweights": often}, {"aweights": much},
                        {"fweights": often, "aweights": much}, {"y": other}):  # fmt: skip
            given = {k: exact(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
            same(smelt.cov(exact(host), **given), np.cov(host, **options), rtol=tolerance, atol=tolerance)
        found = smelt.corrcoef(exact(host), exact(other))
        same(found, np.corrcoef(host, other), rtol=tolerance, atol=tolerance)
        if host.ndim > 1:  # the transposed rows, also where there is one row or one column
            for x in (host, host.T):
                found, wanted = smelt.cov(exact(x), rowvar=False, bias=True), np.cov(x.T, bias=True)
                same(found, wanted, rtol=tolerance, atol=tolerance)
    check_gradient(lambda x: smelt.corrcoef(x), rng.standard_normal((3, 8)))
    for wrong in ({"y": smelt.ones(3)}, {"fweights": [1]}, {"aweights": [[1.0]]}):
        with pytest.raises(ShapeError):
            smelt.cov(smelt.ones((2, 9)), **wrong)
    with pytest.raises(ShapeError, match="matrices"):
        smelt.cov(smelt.ones((2, 2, 2)))


# Without NaN


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64"])
@pytest.mark.parametrize("name", [
    "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian", "nancumsum", "nancumprod",
    "nanargmax", "nanargmin",
])  # fmt: skip
def test_nan_reductions(name: str, dtype: str) -> None:
    if dtype == "complex64" and name not in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nancumsum"):
        return
    for shape in SHAPES:
        host = made(shape, "float64" if dtype == "complex64" else dtype)
        host = (host + 1j * made(shape, "float32")).astype(np.complex64) if dtype == "complex64" else host
        if dtype != "int32":
            if name in ("nanargmax", "nanargmin"):
                host.flat[host.size // 2] = np.nan
            else:
                host[rng.random(shape) < 0.4] = np.nan
                host[0] = np.nan
        wide = host.astype(np.complex128 if dtype == "complex64" else np.float64)
        single = name.startswith(("nancum", "nanarg"))
        for axis in [a for a in axes(host) if not (single and isinstance(a, tuple))]:
            expected = getattr(np, name)(wide, axis)
            found = getattr(smelt, name)(exact(host), axis)
            tolerance = 2e-2 if dtype == "float16" else DTYPES.get(dtype, 2e-5)
            assert found.shape == np.shape(expected)
            host_found = np.asarray(found)
            host_found = host_found if dtype == "complex64" else host_found.astype(np.float64)
            np.testing.assert_allclose(host_found, expected, rtol=tolerance, atol=tolerance)
            if not name.startswith("nancum") and name != "nanmedian":
                assert getattr(smelt, name)(exact(host), axis, keepdims=True).ndim == (host.ndim)
    if name in ("nanvar", "nanstd"):
        expected = getattr(np, name)(wide.real, 0, ddof=1)
        same(getattr(smelt, name)(exact(wide.real), 0, correction=1), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nancumsum", "nancumprod"])
def test_sums_and_products_without_nan_in_another_dtype(name):
    host = np.array([[100.0, np.nan, 3.0], [100.0, 7.0, np.nan]], np.float16)
    for dtype in (np.float32, np.int64):
        wanted = getattr(np, name)(np.nan_to_num(host, nan=float("prod" in name)).astype(dtype), 1)
        found = getattr(smelt, name)(exact(host), axis=1, dtype=getattr(smelt, np.dtype(dtype).name))
        same(found, wanted, rtol=0)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"])
def test_nan_reductions_of_infinities(name: str) -> None:
    """An infinity is a number: what it makes a NaN of stays one, as NumPy has it."""
    host = np.array([[1.0, np.inf, np.nan], [2.0, -np.inf, np.inf], [np.nan, 1.0, -np.inf], [np.nan, 3.0, 4.0]])
    function = getattr(smelt, name)
    for dtype in (np.float32, np.float64, np.float16):
        for along in (function, smelt.compile(function)):
            with np.errstate(invalid="ignore"):
                expected = getattr(np, name)(host.astype(dtype), 1)
            np.testing.assert_array_equal(np.asarray(along(exact(host.astype(dtype)), 1)), expected)


def test_derivatives_without_nan() -> None:
    x = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, 4.0]])
    for name in ("nansum", "nanmean", "nanvar", "nanstd", "nanmax", "nanprod"):
        gradient = np.asarray(smelt.grad(lambda v, n=name: getattr(smelt, n)(v, 1).sum())(exact(x)))
        assert np.isfinite(gradient).all() and gradient[0, 1] == 0, name


def test_nans_of_complex_numbers_are_passed_over() -> None:
    x = np.array([[np.nan, complex(-np.inf, -5)], [1 - 2j, complex(0, np.nan)], [np.nan, np.nan]], np.complex64)
    for name in ("nanmax", "nanmin"):
        for axis in (None, 0, 1):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = getattr(np, name)(x, axis=axis)
            found = np.asarray(getattr(smelt, name)(smelt.array(x), axis=axis))
            np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
            np.testing.assert_array_equal(found[~np.isnan(found)], np.asarray(want)[~np.isnan(want)])


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_means_of_integers_are_asked_for(name: str) -> None:
    with pytest.raises(DTypeError, match=f"smelt.{name}: dtype must be of floats or complex numbers, is int32"):
        getattr(smelt, name)(smelt.ones(3), dtype=smelt.int32)


@pytest.mark.parametrize("row", [[1.0, np.inf], [np.inf, np.inf], [-np.inf, 1.0, np.nan], [1.0, 2.0, np.inf, np.inf]])
def test_the_median_between_infinities(row: list[float]) -> None:
    for found, wanted in ((smelt.nanmedian, np.nanmedian), (smelt.median, np.median)):
        np.testing.assert_array_equal(np.array(found(smelt.array(row))), wanted(np.array(row)))


def test_edges_of_bins_that_are_known_are_in_order() -> None:
    x = smelt.array([0.5, 2.0])
    for call in (
        lambda: smelt.histogram(x, [3, 2, 1]), lambda: smelt.histogram(x, np.array([0.0, 2.0, 1.0])),
        lambda: smelt.histogram_bin_edges(x, (1, 0)), lambda: smelt.histogram2d(x, x, [[0, 1], [3, 2]]),
        lambda: smelt.digitize(x, [0.0, 1.0, 0.5]),
    ):  # fmt: skip
        for _ in range(2):
            with pytest.raises(AttributeValueError, match=r"edges of bins must ascend.*at .*test_statistics"):
                call()
    down, mixed = smelt.array([3.0, 2.0, 1.0]), smelt.array([0.0, 2.0, 1.0])
    for call in (
        lambda: smelt.histogram(x, down), lambda: smelt.histogram(x, bins=mixed), lambda: smelt.digitize(x, mixed),
        lambda: smelt.histogram_bin_edges(x, down), lambda: smelt.histogram2d(x, x, [[0, 1], down]),
        lambda: smelt.histogram2d(x, x, mixed), lambda: smelt.histogramdd(smelt.ones((2, 2)), bins=[down, 3]),
    ):  # fmt: skip
        for _ in range(2):
            with pytest.raises(AttributeValueError, match=r"edges of bins must ascend.*at .*test_statistics"):
                call()
    assert smelt.digitize(x, down).tolist() == [3, 1]
    assert smelt.digitize(x, [1.0, 0.0]).tolist() == [1, 0]
    assert smelt.histogram(x, [0, 1, 1, 2])[0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_weighted_quantiles(name: str, dtype: str) -> None:
    for shape, axis in (((7,), None), ((7,), 0), ((5, 4), 0), ((5, 4), 1), ((5, 4), (0, 1)), ((2, 3, 4), (2, 0))):
        x = made(shape, dtype)
        if name.startswith("nan") and dtype != "int32":
            x.reshape(-1)[::3] = np.nan
        q = np.array([[0.0, 0.2, 0.5], [0.51, 0.9, 1.0]]) * (100 if "percentile" in name else 1)
        along = shape if axis is None else tuple(shape[i] for i in np.atleast_1d(axis))
        for size in {shape, along}:
            few = rng.integers(1, 4, size)
            few.flat[-1] = name.startswith("nan")
            for weights in (few, rng.random(size)):
                options: dict[str, Any] = {"axis": axis, "method": "inverted_cdf"}
                if not name.startswith("nan") or size == shape:
                    expected = getattr(np, name)(x, q, weights=weights, **options)
                    found = getattr(smelt, name)(exact(x), q, weights=exact(weights), **options)
                    where_known = np.isfinite(expected)
                    np.testing.assert_array_equal(np.asarray(found)[where_known], expected[where_known])
        kept = getattr(smelt, name)(exact(x), 0.5, weights=exact(np.ones(shape)), keepdims=True, **options)
        plain = getattr(smelt, name)(exact(x), 0.5, keepdims=True, **options)
        np.testing.assert_array_equal(np.asarray(kept), np.asarray(plain))


def test_weights_of_quantiles_that_are_none() -> None:
    x = smelt.array([3.0, 1.0, 2.0])
    with pytest.raises(AttributeValueError, match="inverted_cdf"):
        smelt.quantile(x, 0.5, weights=x)
    with pytest.raises(ShapeError, match="weights"):
        smelt.quantile(x, 0.5, method="inverted_cdf", weights=[1.0, 2.0])
    assert np.isnan(smelt.quantile(x, 0.5, method="inverted_cdf", weights=[0, 0, 0]).item())
    assert smelt.quantile(x, 0.0, method="inverted_cdf", weights=[1, 0, 1]).item() == 2
    with_nan = smelt.array([3.0, float("nan"), 2.0])
    assert np.isnan(smelt.quantile(with_nan, 0.5, method="inverted_cdf", weights=[1, 1, 1]).item())
    assert smelt.nanquantile(with_nan, 1.0, method="inverted_cdf", weights=[1, 1, 1]).item() == 3
    options: dict[str, Any] = {"method": "inverted_cdf", "weights": [1, 2, 3]}
    check_gradient(lambda v: smelt.quantile(v, 0.5, **options), np.array([3.0, 1.0, 2.0]))


@pytest.mark.parametrize("given", ["float32", "float64", "int32", "complex64"])
def test_cov_and_corrcoef_in_a_dtype(given: str) -> None:
    x, y = made((3, 6), "float64").astype(given), made((2, 6), "float64").astype(given)
    if given == "complex64":
        x = x + (1j * made((3, 6), "float64")).astype(given)
    for dtype in ("complex128",) if given == "complex64" else ("float32", "float64", "complex128"):
        for name in ("cov", "corrcoef"):
            found = getattr(smelt, name)(exact(x), exact(y), dtype=getattr(smelt, dtype))
            assert found.dtype is getattr(smelt, dtype)
            expected, rtol = getattr(np, name)(x, y, dtype=dtype), 1e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-6)
    assert smelt.cov(exact(x), dtype=smelt.complex64).dtype is smelt.complex64
    if given != "complex64":
        assert smelt.cov(exact(x), dtype=smelt.float16).dtype is smelt.float16
    with pytest.raises(DTypeError, match="floats"):
        smelt.cov(smelt.ones((2, 3)), dtype=smelt.int32)


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile", "cov"])
def test_negative_weights_are_refused_where_they_are_known(name: str) -> None:
    x = smelt.array([3.0, 1.0, 2.0])
    keywords, args = ((("fweights", "aweights"), ()) if name == "cov" else (("weights",), (0.5,)))
    method: dict[str, Any] = {} if name == "cov" else {"method": "inverted_cdf"}
    for keyword in keywords:
        known = [[-1, 1, 2], np.array([-1, 1, 2]), smelt.array([-1, 1, 2])]
        if keyword != "fweights":
            known += [(1.0, -0.5, 1.0), np.array([1, -1, 1], "f"), smelt.array([1, -1, 1], smelt.bfloat16)]
        for weights in known:
            for _ in range(2):
                with pytest.raises(AttributeValueError, match=rf"{name}: {keyword} must not be negative.*test_stat"):
                    getattr(smelt, name)(x, *args, **{keyword: weights}, **method)
        getattr(smelt, name)(x, *args, **{keyword: [1, 0, 2]}, **method)
    if name == "cov":
        with pytest.raises(AttributeValueError, match="fweights must not"):
            smelt.cov(x, None, True, False, None, [-1, 1, 1])
        return
    for weights in ([-1.0, 3, 1], [np.nan, 1, 1], [np.inf, 1, 1], [0.0, 0, 0]):
        f = smelt.compile(lambda w: getattr(smelt, name)(x, 0.5, weights=w, **method))
        assert np.isnan(f(smelt.array(weights)).item())


