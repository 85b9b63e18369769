"""Arguments that NumPy's and SciPy's functions take, beyond the usual ones: values beside theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import smelt
from smelt.ir.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    IndexOutOfRangeError,
    LibraryError,
    ShapeError,
)
from tests.frontend.checks import check_gradient, exact

rng = np.random.default_rng(8)
CORNERS = np.array([0, 1, 2.5, 0.1 + 0.1j, 1 + 2j, -3.3 - 0.2j, 0.2, -7, 1e3 + 0.5j, 1e-9j])


def close(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_sinc_of_complex_numbers(dtype: str) -> None:
    x = CORNERS.astype(dtype)
    for call in (smelt.sinc, smelt.compile(smelt.sinc), smelt.vmap(smelt.sinc)):
        close(call(exact(x)), np.sinc(x.astype(np.complex128)), 1e-12 if dtype == "complex128" else 2e-5)
    assert smelt.sinc(exact(np.array([1, -5, 2], dtype))).tolist() == [0, 0, 0]
    check_gradient(lambda x: smelt.real(smelt.sinc(x * (1 + 0.5j))), np.array([0.1, 0.2, 0.7, -1.3]))


def test_products_of_complex_logarithms() -> None:
    x, y = (v.reshape(-1) for v in np.meshgrid([0, 1, 2j, -1.5 + 1j], [0.5, 1j, -3, 1 + 1j, -0.5]))
    for name, function in (("xlogy", scipy.special.xlogy), ("xlog1py", scipy.special.xlog1py)):
        ours: Any = getattr(smelt, name)
        for call in (ours, smelt.compile(ours), smelt.vmap(ours)):
            close(call(exact(x), exact(y)), function(x, y))
        for pole in (0, -1, np.inf, complex(0, np.inf)):
            close(ours(exact(np.array([0j])), exact(np.array([pole], complex))), 0)
        close(ours(exact(np.array([2.0])), exact(np.array([1j]))), function(2.0, 1j))
        assert ours(smelt.array(0.0), smelt.array(1.0)).dtype is smelt.float32


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_extrema_of_complex_numbers_beside_nan(name: str) -> None:
    parts = np.array([0, 1, 1 + 1j, np.nan, complex(0, np.nan), -1 - 1j])
    x, y = (v.reshape(-1) for v in np.meshgrid(parts, parts))
    for call in (getattr(smelt, name), smelt.compile(getattr(smelt, name))):
        found, expected = np.asarray(call(exact(x), exact(y))), getattr(np, name)(x, y)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(found[~np.isnan(found)], expected[~np.isnan(found)])


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap", ("wrap", "clip")])
@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_indices_in_either_order(order: Any, mode: Any) -> None:
    rows, columns = ([0, 1, 1], [2, 0, 1]) if mode == "raise" else ([1, 5, -9], [2, -1, 100])
    expected = np.ravel_multi_index((rows, columns), (2, 3), mode, order)
    function = lambda i, j: smelt.ravel_multi_index((i, j), (2, 3), mode, order)  # noqa: E731
    for call in (function, smelt.compile(function), smelt.vmap(function)):
        assert call(smelt.array(rows), smelt.array(columns)).tolist() == expected.tolist()
    found = smelt.unravel_index(smelt.array(expected), (2, 3), order)
    assert [i.tolist() for i in found] == [i.tolist() for i in np.unravel_index(expected, (2, 3), order)]


def test_errors_of_flat_indices() -> None:
    for mode, error in (("fill", AttributeValueError), (None, AttributeValueError), (("clip",), ShapeError)):
        with pytest.raises(error, match=r"smelt\.ravel_multi_index.*mode"):
            smelt.ravel_multi_index((0, 0), (2, 3), mode)  # type: ignore[arg-type]
    for call in (lambda: smelt.ravel_multi_index((0, 0), (2, 3), order="K"), lambda: smelt.unravel_index(0, (2,), "A")):
        with pytest.raises(AttributeValueError, match=r"order must be"):
            call()
    with pytest.raises(IndexOutOfRangeError, match="0 elements"):
        smelt.ravel_multi_index((0, 0), (2, 0), "clip")


@pytest.mark.filterwarnings("ignore:Polyfit may be")
@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("w", [None, [1, 2, 3, 4, 5, 6.0]])
def test_what_polyfit_tells_of_a_fit(w: Any, columns: tuple[int, ...]) -> None:
    x, y = np.arange(6.0), rng.standard_normal((6, *columns))
    for cov in (True, "unscaled"):
        expected = np.polyfit(x, y, 2, w=w, cov=cov)
        found = smelt.polyfit(exact(x), exact(y), 2, w, cov=cov)
        close(found[0], expected[0], 1e-9)
        close(found[1], np.broadcast_to(expected[1], (3, 3, *columns)), 1e-9)
    for found, expected in zip(smelt.polyfit(exact(x), exact(y), 2, w, full=True), np.polyfit(x, y, 2, w=w, full=True)):
        assert found.shape == np.shape(expected)
        close(found, expected, 1e-9)
    near = smelt.polyfit(exact(x), exact(y), 2, w, rcond=0.5)
    close(near, np.polyfit(x, y, 2, rcond=0.5, w=w), 1e-9)
    check_gradient(lambda y: smelt.polyfit(exact(x), y, 1, w, cov=True)[1], y)


def test_errors_of_polyfit() -> None:
    x = smelt.arange(3.0)
    for keywords, error, said in (
        ({"cov": "scaled"}, AttributeValueError, "cov must be"), ({"cov": True}, AttributeValueError, "unscaled"),
        ({"cov": "unscaled", "full": True}, ArgumentTypeError, "exclude"), ({"rcond": "a"}, ArgumentTypeError, "rcond"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            smelt.polyfit(x, x, 2, **keywords)  # type: ignore[call-overload]


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("triangle", ["L", "u"])
def test_eigenvalues_beside_another_matrix(triangle: str, dtype: str) -> None:
    a, b = (rng.standard_normal((2, 4, 4)).astype(dtype) for _ in range(2))
    if dtype == "complex128":
        a, b = a + 1j * rng.standard_normal((2, 4, 4)), b + 1j * rng.standard_normal((2, 4, 4))
    a, b = a + a.conj().swapaxes(-1, -2), b @ b.conj().swapaxes(-1, -2) + np.eye(4, dtype=dtype)
    read = (np.tril if triangle == "L" else np.triu)(a)  # and nothing else
    rtol = 1e-4 if dtype == "float32" else 1e-10
    for call in (smelt.linalg.eigh, smelt.compile(smelt.linalg.eigh)):
        w, v = call(exact(read), triangle, b=exact(b))
        close(w, [scipy.linalg.eigh(x, y)[0] for x, y in zip(a, b)], rtol)
        w, v = np.asarray(w), np.asarray(v)
        close(a @ v, b @ v * w[:, None], rtol)
        close(v.conj().swapaxes(-1, -2) @ b @ v, np.broadcast_to(np.eye(4), (2, 4, 4)), rtol)
    close(smelt.linalg.eigvalsh(exact(read), triangle, b=exact(b)), w, rtol)
    close(smelt.vmap(lambda x: smelt.linalg.eigvalsh(x, triangle, b=exact(b[0])))(exact(read))[0], w[0], rtol)
    if dtype == "float64":
        check_gradient(lambda a, b: smelt.linalg.eigvalsh(a, b=b), a[0], b[0])
        check_gradient(lambda a, b: smelt.linalg.eigh(a, b=b)[1] ** 2, a[0], b[0])


def test_errors_of_another_matrix() -> None:
    for function in (smelt.linalg.eigh, smelt.linalg.eigvalsh):
        with pytest.raises(ShapeError, match="one size"):
            function(smelt.eye(2), b=smelt.eye(3))
        with pytest.raises(LibraryError, match="positive definite"):
            smelt.eval(function(smelt.eye(2), b=-smelt.eye(2)))
        with pytest.raises(AttributeValueError, match="UPLO must be"):
            function(smelt.eye(2), "X", b=smelt.eye(2))


def test_tolerances_and_replacements_for_each_element() -> None:
    x, y = np.array([[1.0, 2.0, 3.0]]), np.array([[1.1], [2.0]])
    for rtol, atol in (([0, 0.1, 1.0], 0), (0.0, [[0.2], [1.0]]), (np.array([0.1]), [0.0, 0.5, 0.1])):
        expected = np.isclose(x, y, rtol, atol)
        for of in (list, np.array, smelt.array):
            both = [v if isinstance(v, (int, float)) else of(v) for v in (rtol, atol)]
            assert smelt.isclose(exact(x), exact(y), *both).tolist() == expected.tolist()
            assert smelt.allclose(exact(x), exact(y), *both).item() is bool(expected.all())
    far, infinite = smelt.array([1.0, math.inf, 1.0, math.inf, math.nan]), smelt.array([2, 1, math.inf, math.inf, 1])
    assert smelt.isclose(far, infinite, atol=math.inf).tolist() == [True, False, False, True, False]
    assert smelt.isclose(smelt.ones(2), smelt.ones(2), smelt.ones((3, 1))).shape == (3, 2)
    z = np.array([[np.nan, np.inf, -np.inf], [1, np.nan, np.inf]])
    found = smelt.compile(lambda z, v: smelt.nan_to_num(z, v, [[5], [6]], 7))(exact(z), smelt.array([1.0, 2.0, 3.0]))
    close(found, np.nan_to_num(z, nan=[1.0, 2.0, 3.0], posinf=np.array([[5], [6]]), neginf=7))
    with pytest.raises(DTypeError, match="isclose: rtol"):
        smelt.isclose(1.0, 1.0, [1j])
    with pytest.raises(ShapeError, match="nan_to_num"):
        smelt.nan_to_num(smelt.ones(2), [1, 2, 3])


def test_dtypes_of_stacks() -> None:
    for name in ("vstack", "hstack"):
        found = getattr(smelt, name)([smelt.array([1, 2]), [3.5, 4]], dtype=smelt.float64)
        assert found.dtype is smelt.float64
        close(found, getattr(np, name)([[1, 2], [3.5, 4]]))
