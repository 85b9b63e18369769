"""Reductions and what is made of them against NumPy and SciPy."""

import math

import numpy as np
import pytest
import scipy.special

import smelt
from smelt.ir.errors import ShapeError

from .checks import exact

AXES = [None, 0, -1, (0, 2), (1,), (-1, 0), [2, 1], ()]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
FLOATS = [smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64]
TOLERANCE = {smelt.float16: 4e-3, smelt.bfloat16: 3e-2, smelt.float32: 2e-6, smelt.float64: 1e-14}


def numpy_axis(axis):
    return tuple(axis) if isinstance(axis, list) else axis


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "median", "all", "any"])
def test_axes(name, axis, keepdims):
    if name == "median" and axis == ():
        pytest.skip("NumPy's median has no empty tuple of axes")
    got = getattr(smelt, name)(exact(X), axis=axis, keepdims=keepdims)
    want = getattr(np, name)(X.astype(np.float64), axis=numpy_axis(axis), keepdims=keepdims)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.array(got), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "median"])
def test_dtypes(name, dtype):
    x = X.astype(dtype.numpy)
    got = getattr(smelt, name)(exact(x), axis=1)
    assert got.dtype is dtype
    want = getattr(np, name)(x.astype(np.float64), axis=1)
    np.testing.assert_allclose(np.array(got).astype(np.float64), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        (smelt.bool_, smelt.int32), (smelt.int8, smelt.int32), (smelt.int16, smelt.int32), (smelt.int32, smelt.int32),
        (smelt.int64, smelt.int64), (smelt.uint8, smelt.uint32), (smelt.uint16, smelt.uint32),
        (smelt.uint32, smelt.uint32), (smelt.uint64, smelt.uint64),
    ],
)  # fmt: skip
def test_sums_of_integers(dtype, want):
    x = smelt.array(np.ones((300, 2)), dtype=dtype)
    for axis in (None, 0, ()):
        assert smelt.sum(x, axis).dtype is smelt.prod(x, axis).dtype is want
    assert smelt.sum(x, 0).tolist() == [300, 300]
    assert smelt.max(x).dtype is dtype
    assert smelt.mean(x).dtype is smelt.var(x).dtype is smelt.std(x).dtype is smelt.median(x).dtype is smelt.float32
    assert (smelt.mean(x).item(), smelt.var(x).item()) == (1, 0)


def test_empty():
    x = exact(np.zeros((0, 3), np.float32))
    assert (smelt.sum(x, 0).tolist(), smelt.prod(x, 0).tolist()) == ([0, 0, 0], [1, 1, 1])
    assert smelt.all(x).item() and not smelt.any(x).item()
    assert math.isnan(smelt.mean(x).item())
    for name in ("max", "min", "argmax", "argmin", "median", "logsumexp", "minmax"):
        with pytest.raises(ShapeError, match=rf"smelt\.{name}: no elements.*test_reductions\.py"):
            getattr(smelt, name)(x)
    assert smelt.max(x, axis=1).shape == (0,)


def test_nan():
    x = smelt.array([[1.0, math.nan, 3.0], [1.0, 2.0, 3.0]])
    for name in ("max", "min", "sum", "mean", "median"):
        got = getattr(smelt, name)(x, axis=1).tolist()
        assert math.isnan(got[0]) and not math.isnan(got[1])
    assert smelt.argmax(x, axis=1).tolist() == [1, 2]
    assert smelt.all(x).item()


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg(name, axis, keepdims):
    x = np.round(X)
    got = getattr(smelt, name)(exact(x), axis, keepdims)
    want = getattr(np, name)(x, axis, keepdims=keepdims)
    assert got.dtype is smelt.uint32
    np.testing.assert_array_equal(np.array(got), want)


def test_counts_and_pairs():
    x = smelt.array([[1.0, 0.0, math.nan], [0.0, 0.0, 2.0]])
    got = smelt.count_nonzero(x, axis=1)
    assert got.tolist() == [2, 1] and got.dtype is smelt.int32
    low, high = smelt.minmax(exact(X), axis=(0, 1), keepdims=True)
    np.testing.assert_array_equal(np.array(low), X.min((0, 1), keepdims=True))
    np.testing.assert_array_equal(np.array(high), X.max((0, 1), keepdims=True))


def test_scalars():
    assert smelt.sum(3).item() == 3
    x = smelt.array(2.5)
    for name in ("sum", "prod", "max", "min", "mean", "median", "logsumexp"):
        assert getattr(smelt, name)(x).item() == 2.5
    assert (smelt.argmax(x).item(), smelt.var(x).item(), smelt.softmax(x).item()) == (0, 0, 1)
    assert smelt.argmax(x, keepdims=True).shape == ()


class TestErrors:
    @pytest.mark.parametrize("name", ["sum", "max", "mean", "std", "all", "argmin", "softmax", "logsumexp", "median"])
    def test_axis(self, name):
        message = rf"smelt\.{name}: axis 3 out of range for shape \(3, 4, 5\); at .*test_reductions\.py"
        with pytest.raises(ShapeError, match=message):
            getattr(smelt, name)(exact(X), axis=3)
        with pytest.raises(TypeError, match="axis"):
            getattr(smelt, name)(exact(X), axis=1.5)

    def test_repeated(self):
        with pytest.raises(ShapeError, match="twice"):
            smelt.sum(exact(X), axis=(0, -3))
        with pytest.raises(TypeError, match="argmax"):
            smelt.argmax(exact(X), axis=(0, 1))


class TestMoments:
    @pytest.mark.parametrize("ddof", [0, 1, 2])
    @pytest.mark.parametrize("name", ["var", "std"])
    def test_ddof(self, name, ddof):
        got = getattr(smelt, name)(exact(X), 2, True, ddof)
        np.testing.assert_allclose(np.array(got), getattr(np, name)(X, 2, keepdims=True, ddof=ddof), rtol=1e-5)

    def test_no_freedom(self):
        assert math.isnan(smelt.var(smelt.array([1.0]), ddof=1).item())
        assert smelt.var(smelt.array([1.0, 2.0]), ddof=3).item() == math.inf

    def test_stable_far_from_zero(self):
        x = (RNG.normal(size=10_000) + 1e4).astype(np.float32)
        assert smelt.var(exact(x)).item() == pytest.approx(np.var(x.astype(np.float64)), rel=1e-4)

    def test_half_precision_does_not_overflow(self):
        x = exact(np.full(100_000, 3, np.float16))
        assert smelt.mean(x).item() == 3
        assert smelt.var(exact(np.tile([-200, 200], 5000).astype(np.float16))).item() == 40000

    def test_complex(self):
        z = (RNG.normal(size=20) + 1j * RNG.normal(size=20)).astype(np.complex64)
        assert smelt.var(exact(z)).dtype is smelt.float32
        np.testing.assert_allclose(np.array(smelt.var(exact(z))), np.var(z), rtol=1e-5)
        np.testing.assert_allclose(np.array(smelt.mean(exact(z))), np.mean(z), rtol=1e-5)


class TestSoftmax:
    @pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), [1, 2]], ids=str)
    def test_values(self, axis):
        got = smelt.softmax(exact(X * 10), axis)
        np.testing.assert_allclose(np.array(got), scipy.special.softmax(X * 10, numpy_axis(axis)), rtol=2e-5, atol=1e-7)

    def test_extremes(self):
        x = smelt.array([1e4, -1e4, -math.inf, 1e4])
        assert smelt.softmax(x).tolist() == [0.5, 0, 0, 0.5]
        assert smelt.softmax(exact(np.zeros((0, 3), np.float32)), -1).shape == (0, 3)
        assert smelt.softmax(smelt.array([1, 1])).tolist() == [0.5, 0.5]

    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_precise(self, dtype):
        x = (X * 3).astype(dtype.numpy)
        got = smelt.softmax(exact(x), -1, precise=True)
        assert got.dtype is dtype
        want = scipy.special.softmax(x.astype(np.float64), -1)
        np.testing.assert_allclose(np.array(got).astype(np.float64), want, rtol=TOLERANCE[dtype], atol=1e-7)


class TestLogSumExp:
    @pytest.mark.parametrize("keepdims", [False, True])
    @pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)], ids=str)
    def test_values(self, axis, keepdims):
        got = smelt.logsumexp(exact(X * 50), axis, keepdims)
        want = scipy.special.logsumexp(X.astype(np.float64) * 50, axis, keepdims=keepdims)
        np.testing.assert_allclose(np.array(got), want, rtol=1e-5)

    def test_infinities(self):
        inf = math.inf
        x = smelt.array([[-inf, -inf], [inf, 0.0], [-inf, 2.0], [inf, -inf], [inf, inf]])
        assert smelt.logsumexp(x, 1).tolist() == [-inf, inf, 2.0, inf, inf]
        assert math.isnan(smelt.logsumexp(smelt.array([math.nan, inf])).item())

    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_dtypes(self, dtype):
        x = X.astype(dtype.numpy)
        got = smelt.logsumexp(exact(x), -1)
        assert got.dtype is dtype
        want = scipy.special.logsumexp(x.astype(np.float64), -1)
        np.testing.assert_allclose(np.array(got).astype(np.float64), want, rtol=TOLERANCE[dtype])

    def test_logaddexp(self):
        inf = math.inf
        x, y = np.meshgrid(np.array([0, 1, -50, 1000, inf, -inf, math.nan], np.float32), [0.5, -1000, inf, -inf])
        with np.errstate(all="ignore"):
            want = np.logaddexp(x, y)
        np.testing.assert_allclose(np.array(smelt.logaddexp(exact(x), exact(y))), want, rtol=1e-6)
        assert smelt.logaddexp(smelt.array([0]), 0).dtype is smelt.float32
        slope = smelt.grad(lambda v: smelt.sum(smelt.logaddexp(v, 0.0)))(smelt.array([0.0, 2.0]))
        assert slope.tolist() == pytest.approx([0.5, 1 / (1 + math.exp(-2))])


W = RNG.normal(size=(3, 4))
FUNCTIONS = {
    "sum": lambda x: smelt.sum(x * x, 1),
    "prod": lambda x: smelt.prod(x, 1),
    "max": lambda x: smelt.max(x, 1),
    "min": lambda x: smelt.min(x),
    "mean": lambda x: smelt.mean(x * x, 0),
    "var": lambda x: smelt.var(x, 1, ddof=1),
    "std": lambda x: smelt.std(x, 0),
    "median": lambda x: smelt.median(x, 1),
    "softmax": lambda x: smelt.softmax(x, 1),
    "softmax of all": lambda x: smelt.softmax(x),
    "logsumexp": lambda x: smelt.logsumexp(x, 1),
    "logaddexp": lambda x: smelt.logaddexp(x, exact(W)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivative_against_differences(name):
    x = RNG.normal(size=(3, 4)) + 0.3
    y = FUNCTIONS[name](exact(x))
    weights = RNG.normal(size=y.shape)

    def loss(v):
        return smelt.sum(FUNCTIONS[name](v) * exact(weights))

    got = np.array(smelt.grad(loss)(exact(x)))
    direction = RNG.normal(size=x.shape)
    h = 1e-6
    up, down = (loss(exact(x + s * h * direction)).item() for s in (1, -1))
    assert np.sum(got * direction) == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)


def test_compiled_equals_uncompiled():
    def f(x):
        return smelt.softmax(x, -1), smelt.logsumexp(x, 1), smelt.var(x, (0, 1)), smelt.argmax(x, -1), smelt.mean(x)

    x = exact(RNG.normal(size=(16, 33)).astype(np.float32))
    for a, b in zip(smelt.compile(f)(x), f(x)):
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-5, atol=1e-6)
