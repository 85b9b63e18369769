"""`smelt.linalg`: equations, inverses, determinants, LU factors and products, against NumPy, SciPy and differences."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import smelt
from smelt.ir.errors import LibraryError
from smelt.ir.settings import override

from .test_linalg import close, each_device, positive, wide

L = smelt.linalg


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12)


def regular(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape) + 3 * np.eye(shape[-1])[::-1]


def along(f: Callable[..., Any], x: np.ndarray, t: np.ndarray, h: float = 1e-6) -> np.ndarray:
    return (np.asarray(f(wide(x + h * t))) - np.asarray(f(wide(x - h * t)))) / (2 * h)


def check_derivatives(rng: np.random.Generator, f: Callable[[smelt.array], smelt.array], x: np.ndarray) -> None:
    """Forward, reverse and reverse over forward against differences."""
    t = rng.standard_normal(x.shape)
    want = along(f, x, t)
    _, (found,) = smelt.jvp(f, [wide(x)], [wide(t)])
    close(found, want, 1e-6)
    weights = wide(rng.standard_normal(want.shape))

    def total(x: smelt.array) -> smelt.array:
        return (f(x) * weights).sum()

    gradient = smelt.grad(total)
    np.testing.assert_allclose((np.asarray(gradient(wide(x))) * t).sum(), (want * np.asarray(weights)).sum(), rtol=1e-5)
    np.testing.assert_allclose(smelt.compile(gradient)(wide(x)), gradient(wide(x)), rtol=1e-8, atol=1e-10)
    _, (second,) = smelt.jvp(gradient, [wide(x)], [wide(t)])
    close(second, along(gradient, x, t), 1e-5)


FUNCTIONS: dict[str, Callable[[smelt.array], smelt.array]] = {
    "solve": lambda a: L.solve(a, smelt.sin(a[..., :2])),
    "inv": L.inv,
    "tri_inv": L.tri_inv,
    "upper tri_inv": lambda a: L.tri_inv(a + 2 * smelt.eye(4, dtype=smelt.float64), upper=True),
    "det": L.det,
    "slogdet": lambda a: L.slogdet(a)[1],
    "lu": lambda a: L.lu(a)[1] @ L.lu(a)[2] + L.lu(a)[1],
    "lu_factor": lambda a: L.lu_factor(a)[0],
    "lu_solve": lambda a: L.lu_solve(L.lu_factor(a), smelt.sin(a[..., :2])),
    "cho_solve": lambda a: L.cho_solve((L.cholesky(a @ a.swapaxes(-1, -2)), True), a),
    "cholesky_inv": lambda a: L.cholesky_inv(L.cholesky(a @ a.swapaxes(-1, -2))),
    "matrix_power": lambda a: L.matrix_power(a, 3) + L.matrix_power(a, -2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 4, 4)])
def test_derivatives(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> None:
    check_derivatives(rng, FUNCTIONS[name], regular(rng, *shape) + 2 * np.eye(4) * ("tri" in name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_are_loops(rng: np.random.Generator, name: str) -> None:
    many = regular(rng, 3, 4, 4) + 2 * np.eye(4) * ("tri" in name)
    f = FUNCTIONS[name]
    for axis in (0, 2):
        x = wide(np.moveaxis(many, 0, axis))
        want = np.stack([np.asarray(f(wide(one))) for one in many])
        close(smelt.vmap(f, in_axes=axis)(x), want)
        close(smelt.compile(smelt.vmap(f, in_axes=axis))(x), want)
    gradient = smelt.grad(lambda a: (f(a) ** 2).sum())
    close(smelt.vmap(gradient)(wide(many)), np.stack([np.asarray(gradient(wide(one))) for one in many]), 1e-8)


@pytest.mark.parametrize("tier", ["ops", "program"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tiers(rng: np.random.Generator, name: str, tier: str) -> None:
    a = regular(rng, 4, 4) + 2 * np.eye(4) * ("tri" in name)
    want = np.asarray(FUNCTIONS[name](wide(a)))
    with override(tier=tier, small_work=0):
        close(FUNCTIONS[name](wide(a)) * 2, 2 * want)


@each_device
def test_solve(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        a, b = regular(rng, 2, 1, 4, 4), rng.standard_normal((5, 4, 3))
        close(L.solve(wide(a), wide(b)), np.linalg.solve(a, b[None]))
        close(L.solve(wide(a[0, 0]), wide(b[0, :, 0])), np.linalg.solve(a[0, 0], b[0, :, 0]))
        assert L.solve(wide(a), wide(b[0, :, 0])).shape == (2, 1, 4)
        for n, k in ((0, 0), (3, 0), (1, 1)):
            assert L.solve(wide(np.eye(n)), wide(np.ones((n, k)))).shape == (n, k)
        assert L.solve(smelt.zeros((0, 3, 3)), smelt.zeros((3, 2))).shape == (0, 3, 2)
        assert L.solve([[2.0]], [4.0]).tolist() == [2.0]


@each_device
def test_inverses(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in ((3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 5, 4, 4), (40, 40)):
            a = regular(rng, *shape)
            close(L.inv(wide(a)), np.linalg.inv(a))
            lower = np.tril(a) + 5 * np.eye(shape[-1])
            close(L.tri_inv(wide(lower + np.triu(a, 1))), np.linalg.inv(lower), 1e-8)
            close(L.tri_inv(wide(np.swapaxes(lower, -1, -2)), True), np.linalg.inv(np.swapaxes(lower, -1, -2)), 1e-8)
            p = positive(rng, *shape)
            close(L.cholesky_inv(L.cholesky(wide(p))), np.linalg.inv(p))
            close(L.cholesky_inv(L.cholesky(wide(p), True), True), np.linalg.inv(p))


@each_device
def test_determinants(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in ((3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 5, 4, 4), (12, 12)):
            a = regular(rng, *shape)
            close(L.det(wide(a)), np.linalg.det(a))
            for found, want in zip(L.slogdet(wide(a)), np.linalg.slogdet(a)):
                close(found, want)
        sign, log = L.slogdet(smelt.zeros((2, 2)))
        assert (sign.item(), log.item()) == (0, -np.inf)
        assert L.slogdet(smelt.eye(300) * 1e-3)[1].item() == pytest.approx(300 * np.log(1e-3), rel=1e-6)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_derivative_of_the_determinant_of_singular_matrices(rng: np.random.Generator, rank: int) -> None:
    """It is the matrix of cofactors: zero from two missing ranks on."""
    a = rng.standard_normal((3, rank)) @ rng.standard_normal((rank, 3))
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)
    ]
    close(smelt.grad(L.det)(wide(a)), np.array(cofactors), 1e-9)


@each_device
def test_lu(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in (
            (3, 3),
            (4, 2),
            (2, 4),
            (1, 1),
            (0, 0),
            (3, 0),
            (0, 3),
            (0, 2, 2),
            (2, 5, 4, 4),
            (90, 70),
            (70, 90),
        ):
            a = rng.standard_normal(shape)
            p, left, right = L.lu(wide(a))
            assert p.dtype == smelt.uint32 and p.shape == shape[:-1]
            product = np.asarray(left @ right)
            close(np.take_along_axis(product, np.asarray(p)[..., None].astype(int), -2), a)
            factors, pivots = L.lu_factor(wide(a))
            assert pivots.dtype == smelt.uint32 and pivots.shape == (*shape[:-2], min(shape[-2:]))
            close(smelt.triu(factors)[..., : min(shape[-2:]), :], np.asarray(right))
            if len(shape) == 2 and min(shape):
                want, steps = scipy.linalg.lu_factor(a)
                close(factors, want)
                assert np.array_equal(pivots, steps)


def test_lu_of_singular_matrices() -> None:
    a = np.array([[0.0, 1, 2], [0, 3, 4], [0, 5, 6]])
    p, left, right = L.lu(wide(a))
    close((left @ right)[p], a)
    close(L.lu(smelt.zeros((2, 2)))[2], np.zeros((2, 2)))


def test_solving_by_factors(rng: np.random.Generator) -> None:
    a, b = regular(rng, 2, 4, 4), rng.standard_normal((4, 3))
    for trans, matrix in ((0, a), (1, np.swapaxes(a, -1, -2)), (2, np.swapaxes(a, -1, -2))):
        close(L.lu_solve(L.lu_factor(wide(a)), wide(b), trans), np.linalg.solve(matrix, b))
    close(L.lu_solve(L.lu_factor(wide(a[0])), wide(b[:, 0])), np.linalg.solve(a[0], b[:, 0]))
    c = (a[0] + 1j * rng.standard_normal((4, 4))).astype(np.complex64)
    for trans in (0, 1, 2):
        want = scipy.linalg.lu_solve(scipy.linalg.lu_factor(c), b.astype(np.complex64), trans)
        close(L.lu_solve(L.lu_factor(smelt.array(c)), smelt.array(b.astype(np.float32)), trans), want, 1e-4)
    p = positive(rng, 2, 4, 4)
    for lower in (True, False):
        factor = L.cholesky(wide(p), upper=not lower)
        close(L.cho_solve((factor, lower), wide(b)), np.linalg.solve(p, b))
        close(L.cho_solve((factor, lower), wide(b[:, 0]))[0], np.linalg.solve(p[0], b[:, 0]))


def test_complex_numbers(rng: np.random.Generator) -> None:
    a = (regular(rng, 2, 4, 4) + 1j * rng.standard_normal((2, 4, 4))).astype(np.complex64)
    x = smelt.array(a)
    close(L.inv(x), np.linalg.inv(a), 1e-4)
    close(L.det(x), np.linalg.det(a), 1e-4)
    close(L.solve(x, x[..., :1]), np.linalg.solve(a, a[..., :1]), 1e-4)
    sign, log = L.slogdet(x)
    assert (sign.dtype, log.dtype) == (smelt.complex64, smelt.float32)
    close(sign * smelt.exp(log), np.linalg.det(a), 1e-3)
    p, left, right = L.lu(x)
    close(np.take_along_axis(np.asarray(left @ right), np.asarray(p)[..., None].astype(int), -2), a, 1e-5)
    close(L.matrix_power(x, -2), np.linalg.matrix_power(a, -2), 1e-4)
    triangle = np.tril(a) + 3 * np.eye(4, dtype=np.complex64)
    close(L.tri_inv(smelt.array(triangle)), np.linalg.inv(triangle), 1e-4)


def test_powers(rng: np.random.Generator) -> None:
    a = regular(rng, 2, 3, 3)
    for n in (-3, -1, 0, 1, 2, 3, 7, 10):
        close(L.matrix_power(wide(a), n), np.linalg.matrix_power(a, n), 1e-8)
    whole = np.array([[1, 1], [1, 0]])
    assert np.array_equal(L.matrix_power(smelt.array(whole), 30), np.linalg.matrix_power(whole, 30))


# Products


def test_cross(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((5, 1, 3))
    close(L.cross(wide(x), wide(y)), np.cross(x, y))
    close(L.cross(wide(x.T), wide(x[::-1].T), 0), np.cross(x.T, x[::-1].T, axis=0))
    close(L.cross(smelt.array([1.0, 2.0]), smelt.array([3.0, 5.0])), np.array([0.0, 0, -1]))
    close(L.cross(smelt.array([1.0, 2.0, 3.0]), smelt.array([3.0, 5.0])), np.array([-15.0, 9, -1]))
    t = rng.standard_normal((4, 3))
    check_derivatives(rng, lambda x: L.cross(x, wide(t)) * x, x)


def test_multi_dot(rng: np.random.Generator) -> None:
    for shapes in (
        ((2, 3), (3, 4)),
        ((10, 100), (100, 5), (5, 50)),
        ((3,), (3, 4), (4, 2), (2,)),
        ((3,), (3, 4), (4, 5)),
    ):
        xs = [rng.standard_normal(s) for s in shapes]
        close(L.multi_dot([wide(x) for x in xs]), np.linalg.multi_dot(xs))
    close(L.multi_dot([wide(np.ones(3)), wide(np.ones(3))]), np.array(3.0))


def test_parts_of_matrices(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 3, 4))
    for offset in (-1, 0, 2):
        close(L.diagonal(wide(x), offset=offset), np.diagonal(x, offset, -2, -1))
        close(L.trace(wide(x), offset=offset), np.trace(x, offset, -2, -1))
    assert L.trace(smelt.ones((2, 2)), dtype=smelt.float64).dtype == smelt.float64
    for name in ("matmul", "matrix_transpose", "outer", "tensordot", "vecdot"):
        assert getattr(L, name) is getattr(smelt, name)


# Errors

SINGULAR = smelt.array(np.stack([np.eye(3), np.ones((3, 3))]).astype(np.float32))


def failing(f: Callable[[smelt.array], Any]) -> Callable[[smelt.array], Any]:
    return lambda a: f(a) * 2


@each_device
@pytest.mark.parametrize(
    ("op", "f"),
    [
        ("solve", lambda a: L.solve(a, a)),
        ("inv", L.inv),
        ("inv", lambda a: L.matrix_power(a, -1)),
        ("inv", smelt.grad(lambda a: L.slogdet(a)[1].sum())),
    ],
)
def test_singular_matrices(op: str, f: Callable[[smelt.array], smelt.array], device: str) -> None:
    message = rf"smelt.{op}: matrix 1 of the batch is singular; a f32\[2,3,3\].*; at {re.escape(__file__)}:\d+$"
    with smelt.stream(smelt.Device(device)):
        for way in (f, smelt.compile(f)):
            with pytest.raises(LibraryError, match=message) as caught:
                smelt.eval(way(SINGULAR))
            assert isinstance(caught.value, np.linalg.LinAlgError)
            smelt.eval(way(SINGULAR + smelt.eye(3)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(value: float) -> None:
    a = np.stack([np.eye(3), 2 * np.eye(3)]).astype(np.float32)
    a[0, 1, 2] = a[0, 1, 0] = a[0, 1, 1] = value
    x = smelt.array(a)
    for f in (L.inv, L.det, lambda a: L.slogdet(a)[1], lambda a: L.solve(a, a), smelt.grad(lambda a: L.det(a).sum())):
        found = np.asarray(f(x))
        assert not np.isfinite(found[0]).all()
        close(found[1], np.asarray(f(x[1:]))[0], 1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: L.inv(smelt.ones((2, 3))), ValueError, "smelt.inv: the last 2 axes of a must be (n, n)"),
        (lambda: L.det(smelt.ones(3)), ValueError, "smelt.det: a has 1 axes, must have at least 2: (n, n)"),
        (lambda: L.inv(smelt.array([[1]])), TypeError, "a is int32, must be one of float32, float64, complex64, "),
        (lambda: L.solve(smelt.eye(2), smelt.ones((3, 1))), ValueError, "here (3, 1), with n = 2"),
        (lambda: L.solve(smelt.eye(2), 1.0), ValueError, "b is a number, must be a vector or matrices"),
        (lambda: L.tri_inv(smelt.ones((2, 3))), ValueError, "the last 2 axes of a must be (n, n)"),
        (lambda: L.matrix_power(smelt.ones((2, 3)), 2), ValueError, "needs square matrices"),
        (lambda: L.matrix_power(smelt.eye(2), 0.5), TypeError, "n must be an int"),
        (lambda: L.cho_solve(smelt.eye(2), smelt.ones(2)), TypeError, "c_and_lower must be a pair"),
        (lambda: L.lu_solve((smelt.eye(2), [0]), smelt.ones(2)), ValueError, "pivots must have the shape (2,)"),
        (lambda: L.lu_solve(L.lu_factor(smelt.eye(2)), smelt.ones(2), 3), ValueError, "trans must be 0, 1 or 2"),
        (lambda: smelt.eval(L.lu_solve((smelt.eye(2), [0, 2]), smelt.ones(2))), ValueError, "the number of no row"),
        (lambda: L.cross(smelt.ones(4), smelt.ones(4)), ValueError, "a has 4 elements along axis -1, must have 2 or 3"),
        (lambda: L.cross(smelt.ones((2, 3)), smelt.ones((4, 3))), ValueError, "cannot be broadcast together"),
        (lambda: L.multi_dot([smelt.ones((2, 2))]), ValueError, "needs a list of at least two arrays, got 1"),
        (lambda: L.multi_dot([smelt.ones((2, 3)), smelt.ones((2, 3))]), ValueError, "array 1 has 2 rows, not 3"),
        (lambda: L.trace(smelt.ones(3)), ValueError, "needs at least two axes"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, smelt.SmeltError)
    assert re.search(rf"{re.escape(__file__)}:\d+$", str(caught.value))


SHAPES = ((5, 3), (3, 5), (100, 20), (20, 100), (40, 40), (7, 24, 18), (2, 3, 18, 24), (0, 3), (3, 0))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_least_squares_of_every_rank(shape: tuple[int, ...], dtype: str) -> None:
    """Of full rank by QR, of others by singular values: the shortest solution in any case."""
    rng = np.random.default_rng(0)
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-11

    def numbers(*size: int) -> np.ndarray:
        found = rng.standard_normal(size)
        return (found + 1j * rng.standard_normal(size) if "complex" in dtype else found).astype(dtype)

    for columns, rank in itertools.product((1, 3), ("full", "less", "nearly")):
        a, b = numbers(*shape), numbers(*shape[:-1], columns)
        if rank != "full" and a.size:
            a[..., -1, :], a[..., :, -1] = a[..., 0, :], a[..., :, 0]
            if rank == "nearly":  # within the default tolerance of another rank
                a[..., -1, -1] *= 1 + np.finfo(dtype).eps
        if a.ndim > 2:  # beside matrices of full rank
            a[0] = numbers(*shape[1:])
        wide = a.astype(np.complex128 if "complex" in dtype else np.float64)
        expected = np.linalg.pinv(wide, max(shape[-2:]) * np.finfo(dtype).eps) @ b
        found = np.asarray(smelt.linalg.lstsq(*(smelt.array(x, getattr(smelt, dtype)) for x in (a, b)))[0])
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1e-30))


def test_least_squares_of_what_is_not_finite() -> None:
    a, b = np.random.default_rng(1).standard_normal((2, 60, 30)), np.ones((60, 1))
    a[0, 3, 4] = np.nan
    found = np.asarray(smelt.linalg.lstsq(smelt.array(a, smelt.float64), smelt.array(b, smelt.float64))[0])
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], np.linalg.lstsq(a[1], b, rcond=None)[0], rtol=1e-10)
