"""Keywords that users of NumPy, SciPy and JAX give: values beside theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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
        smelt.take(exact(x), [1], mode="fill")


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
