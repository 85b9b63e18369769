"""Keywords that users of NumPy, SciPy and JAX give: values beside theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import smelt
from smelt.ir.errors import ArgumentTypeError, AttributeValueError, IndexOutOfRangeError, ShapeError
from tests.frontend.checks import check_gradient, exact

rng = np.random.default_rng(3)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "full_like", "empty_like"])
def test_in_another_shape(name: str) -> None:
    given = (7,) if name == "full_like" else ()
    for like in (smelt.array([1, 2]), [1.5, 2.5], smelt.ones((2, 0), smelt.float16)):
        for shape in ((2, 3), 3, (), (0, 2)):
            found = getattr(smelt, name)(like, *given, shape=shape)
            assert found.shape == np.zeros(shape).shape and found.dtype is getattr(smelt, name)(like, *given).dtype
            if name != "empty_like":
                assert (found == (7 if given else name == "ones_like")).all()
    with pytest.raises(ShapeError):
        getattr(smelt, name)(smelt.ones(2), *given, shape=(-1,))
    assert smelt.full_like(smelt.ones(5), [1, 2], shape=(3, 2)).tolist() == [[1, 2]] * 3


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_take_of_indices_out_of_range(mode: Any, axis: Any) -> None:
    x = rng.standard_normal((3, 4))
    for index in (7, -20, [5, -9, 2], np.array([[1, -1], [100, -100]], np.int8), np.array([200], np.uint8), [2**40]):
        whole, extent = np.asarray(index), x.size if axis is None else x.shape[axis]
        wide = whole.astype(np.int64)  # NumPy's own "wrap" goes one extent at a time
        expected = np.take(x, np.clip(wide, 0, extent - 1) if mode == "clip" else wide % extent, axis)
        as_array = smelt.array(whole, getattr(smelt, str(whole.dtype)))
        for given in (index, as_array):
            np.testing.assert_array_equal(np.asarray(smelt.take(exact(x), given, axis, mode=mode)), expected)
        compiled = smelt.compile(lambda x, i: smelt.take(x, i, axis, mode=mode))
        np.testing.assert_array_equal(np.asarray(compiled(exact(x), as_array)), expected)
    many = smelt.arange(300)
    assert smelt.take(many, smelt.array([250], smelt.uint8), mode=mode).item() == 250
    with pytest.raises(ShapeError, match="no elements"):
        smelt.take(smelt.zeros((0,)), [1], mode=mode)
    with pytest.raises(IndexOutOfRangeError):
        smelt.take(exact(x), smelt.array([100]), axis)
    with pytest.raises(AttributeValueError, match="mode must be"):
        smelt.take(exact(x), [1], mode="other")


def test_where_of_a_condition_has_a_size() -> None:
    condition = smelt.array([[0, 1], [1, 1]])
    for size in (0, 2, 3, 5):
        expected = smelt.nonzero(condition, size=size, fill_value=-1)
        compiled = smelt.compile(lambda c, size=size: smelt.where(c, size=size, fill_value=-1))
        for found in (smelt.where(condition, size=size, fill_value=-1), compiled(condition)):
            assert [i.tolist() for i in found] == [i.tolist() for i in expected]
    with pytest.raises(ArgumentTypeError, match="of a condition alone"):
        smelt.where(condition, 1, 2, size=3)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_logsumexp_of_powers_with_factors(dtype: str) -> None:
    x, b = rng.standard_normal((3, 4)).astype(dtype), rng.random((3, 4)).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * rng.standard_normal((3, 4))
    b[0, 1], b[2] = 0, 0
    rtol = 1e-5 if dtype == "float32" else 1e-12
    for axis in (None, 0, 1, (0, 1)):
        for large in (0.5, 1e5, np.inf, np.nan):  # where the factor is 0
            x[0, 1] = large
            expected = np.asarray(scipy.special.logsumexp(x, axis, b=b))
            found = np.asarray(smelt.logsumexp(exact(x), axis, b=exact(b)))
            np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=rtol, atol=1e-300)
            left = np.ones((3, 4), bool)
            left[0, 1] = False
            without = smelt.logsumexp(exact(x), axis, where=exact(left))
            np.testing.assert_allclose(
                np.exp(np.asarray(without)), np.exp(np.asarray(scipy.special.logsumexp(x, axis, b=left))), rtol=rtol
            )
    factors = smelt.array([1.0, float("nan"), 3.0])  # what `where` leaves out leaves its factor out
    mask = smelt.array([True, False, True])
    of_two = smelt.logsumexp(smelt.array([1.0, float("nan"), 2.0]), b=factors, where=mask)
    assert of_two.item() == pytest.approx(np.log(np.e + 3 * np.e**2))
    gradients = smelt.grad(lambda x, b: smelt.logsumexp(x, b=b, where=mask), argnums=(0, 1))(smelt.ones(3), factors)
    np.testing.assert_allclose(np.asarray(gradients), [[0.25, 0, 0.75], [0.25, 0, 0.25]], 1e-6)
    assert smelt.logsumexp(smelt.array([1.0, 2.0]), b=2).item() == pytest.approx(np.log(2 * (np.e + np.e**2)))
    assert np.isnan(smelt.logsumexp(smelt.array([1.0, 2.0]), b=-1.0).item())


def test_derivatives_of_logsumexp_by_its_factors() -> None:
    x, b = rng.standard_normal(5), rng.random(5)
    b[1] = 0
    check_gradient(lambda x, b: smelt.logsumexp(x, b=b), x, b)
    check_gradient(lambda x: smelt.logsumexp(x, where=smelt.array([True, False, True, True, False])), x)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: smelt.sort(x, kind="stable"), "equal elements keep their order"),
        (lambda x: smelt.linalg.pinv(x, rcond=1e-3), "here it is rtol"),
        (lambda x: smelt.linalg.matrix_rank(x, hermitian=True), "computed as others are"),
        (lambda x: smelt.linalg.solve_triangular(x, x, lower=True), "upper= says the opposite"),
        (lambda x: smelt.isin(element=x, test_elements=x), "here it is x1"),
        (lambda x: smelt.array([1], ndmin=2), "atleast_2d"),
        (lambda x: smelt.nn.gelu(x, approximate=True), "gelu_approx"),
        (lambda x: smelt.median(x, overwrite_input=True), "no argument is written over"),
        (lambda x: smelt.einsum("ij->i", x, optimize=True), "the order of products is found"),
    ],
)
def test_keywords_that_there_are_not_say_what_is_here(call: Any, said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"{said}.*test_familiar_keywords"):
        call(smelt.eye(2))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_logsumexp_with_a_sign(dtype: str) -> None:
    x, b = rng.standard_normal((3, 4)).astype(dtype), rng.standard_normal((3, 4)).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * rng.standard_normal((3, 4))
    x[0, 0], b[1] = 800, 0
    for axis in (None, 0, 1, (0, 1)):
        for keepdims in (False, True):
            for factors in (None, b):
                want = scipy.special.logsumexp(x, axis, b=factors, keepdims=keepdims, return_sign=True)
                given = None if factors is None else exact(factors)
                found = smelt.logsumexp(exact(x), axis, b=given, keepdims=keepdims, return_sign=True)
                assert isinstance(found, tuple)
                for one, expected in zip(found, want, strict=True):
                    np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-12, atol=1e-14)
                    assert str(one.dtype)[6:] == np.asarray(expected).dtype.name
    for special in ([-np.inf, -np.inf], [np.inf, 1.0], [np.nan, 1.0]):
        want = scipy.special.logsumexp(special, return_sign=True)
        np.testing.assert_array_equal([v.item() for v in smelt.logsumexp(special, return_sign=True)], want)
    factors = exact(np.array([1.0, -2.0, 0.5]))
    check_gradient(lambda x: smelt.logsumexp(x, b=factors, return_sign=True)[0], np.array([0.3, 0.9, -0.5]))


@pytest.mark.parametrize("join", ["concatenate", "stack", "concat"])
def test_joined_in_a_dtype(join: str) -> None:
    for dtype in (smelt.float64, smelt.int8, smelt.complex64, smelt.bool_):
        for parts in ([[1, 2], [0.1, 3.0]], [smelt.array([1, 2]), smelt.array([0.5, 0.0])], [[1, 0]] * 40):
            found = getattr(smelt, join)(parts, dtype=dtype)
            whole = [smelt.asarray(p, dtype=dtype) for p in parts]
            assert found.dtype is dtype
            np.testing.assert_array_equal(np.asarray(found), np.asarray(getattr(smelt, join)(whole)))
    assert getattr(smelt, join)([[0.1]], dtype=smelt.float64).tolist() in ([0.1], [[0.1]])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_repeat_to_a_length(axis: Any) -> None:
    x = rng.standard_normal((3, 4))
    extent = x.size if axis is None else x.shape[axis]
    for repeats in (2, 0, np.arange(extent), np.full(extent, 3, np.uint8)):
        for length in (0, 1, 5, 40):
            places = np.repeat(np.arange(extent), repeats)
            places = np.concatenate([places, np.full(length, extent - 1)])[:length].astype(int)
            expected = np.take(x, places, axis)
            counts = smelt.array(np.asarray(repeats, np.int32))
            call = smelt.compile(lambda x, r, n=length: smelt.repeat(x, r, axis, total_repeat_length=n))
            for found in (smelt.repeat(exact(x), repeats, axis, total_repeat_length=length), call(exact(x), counts)):
                np.testing.assert_array_equal(np.asarray(found), expected)
    check_gradient(lambda x: (smelt.repeat(x, [2, 0, 1], total_repeat_length=5) ** 2).sum(), rng.standard_normal(3))
    with pytest.raises(ShapeError, match="no element"):
        smelt.repeat(smelt.zeros((0,)), 2, total_repeat_length=3)
    with pytest.raises(AttributeValueError):
        smelt.repeat(smelt.ones(2), 2, total_repeat_length=-1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_repeat_to_a_length_by_any_integers(dtype: str) -> None:
    """As with integers of Python, whatever their sums; negative ones count as 0."""
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for repeats in ([most, 1, 2], [1, most, most], [0, least, 2], [2, least, 1], [most, most, most]):
        for length in (0, 4, 300, 70000):
            counts = [min(max(n, 0), length) for n in repeats]
            places = (np.repeat(np.arange(3), counts).tolist() + [2] * length)[:length]
            x, r = exact([5, 6, 7]), smelt.array(np.array(repeats, dtype))
            call = smelt.compile(lambda x, r, n=length: smelt.repeat(x, r, total_repeat_length=n))
            for found in (smelt.repeat(x, r, total_repeat_length=length), call(x, r)):
                np.testing.assert_array_equal(np.asarray(found), np.asarray(x)[places])
    n = 50000  # sums beyond int32
    found = smelt.repeat(smelt.arange(n), smelt.full((n,), most, getattr(smelt, dtype)), total_repeat_length=n)
    np.testing.assert_array_equal(np.asarray(found), np.arange(n) // min(most, n))


def test_nothing_repeated_to_no_length() -> None:
    assert smelt.repeat(smelt.zeros((2, 0)), 3, 1, total_repeat_length=0).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_unique_nans(dtype: str) -> None:
    x = np.array([2, np.nan, 1, np.nan, 2, np.inf, np.nan], dtype)
    for equal in (True, False):
        want = np.unique(x, True, True, True, equal_nan=equal)
        found = smelt.unique(exact(x), None, True, True, True, equal_nan=equal)
        for one, expected in zip(found, want, strict=True):
            np.testing.assert_array_equal(np.asarray(one), expected)
    rows = np.array([[1, np.nan], [0, 2], [1, np.nan], [0, 2]], dtype)
    for equal, count in ((True, 2), (False, 3)):
        assert smelt.unique(exact(rows), axis=0, equal_nan=equal).shape == (count, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_triangular_systems_turned_and_with_ones(dtype: str) -> None:
    a, b = rng.standard_normal((2, 4, 4)).astype(dtype), rng.standard_normal((2, 4, 3)).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * rng.standard_normal(a.shape)
    for upper in (False, True):
        for trans in (0, 1, 2, "N", "T", "C"):
            for ones in (False, True):
                keywords: Any = {"trans": trans, "unit_diagonal": ones}
                given = a.copy()
                if ones:
                    given[:, 1, 1] = np.nan
                given[:, 0 if not upper else 3, 3 if not upper else 0] = np.inf  # in the other triangle
                found = np.asarray(smelt.linalg.solve_triangular(exact(given), exact(b), upper=upper, **keywords))
                for i in range(2):
                    want = scipy.linalg.solve_triangular(a[i], b[i], lower=not upper, **keywords)
                    np.testing.assert_allclose(found[i], want, rtol=1e-10)
                if dtype == "float64":
                    check_gradient(
                        lambda a, up=upper, k=keywords: smelt.linalg.solve_triangular(a, exact(b), upper=up, **k).sum(),
                        a + 3 * np.eye(4),
                    )
    for wrong in (3, -1, "X", None):
        with pytest.raises(AttributeValueError, match="trans must be"):
            smelt.linalg.solve_triangular(smelt.eye(2), smelt.ones(2), trans=wrong)  # type: ignore[arg-type]
