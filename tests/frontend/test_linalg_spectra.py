"""`smelt.linalg`: eigenvalues, singular values, norms and the exponential, against NumPy, SciPy and differences."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import smelt
from smelt.ir.settings import override

from .test_linalg import close, each_device, wide
from .test_linalg_systems import check_derivatives

L = smelt.linalg
SHAPES = ((3, 3), (4, 2), (2, 4), (1, 1), (0, 0), (0, 3, 3), (2, 5, 4, 3), (2, 3, 4), (30, 20))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(13)


def symmetric(x: smelt.array) -> smelt.array:
    return x + x.swapaxes(-1, -2)


@each_device
def test_symmetric_matrices(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in ((3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 5, 4, 4), (40, 40)):
            a = rng.standard_normal(shape)
            for triangle in ("L", "U"):
                part = np.tril(a) if triangle == "L" else np.swapaxes(np.triu(a), -1, -2)
                whole = part + np.swapaxes(np.tril(part, -1), -1, -2)
                w, v = L.eigh(wide(a), triangle)
                close(w, np.linalg.eigvalsh(whole))
                close(L.eigvalsh(wide(a), triangle), np.linalg.eigvalsh(whole))
                close(v * w[..., None, :], whole @ np.asarray(v), 1e-9)
                square = np.asarray(v.swapaxes(-1, -2) @ v)
                close(square, np.broadcast_to(np.eye(shape[-1]), square.shape))


@pytest.mark.parametrize("size", [3, 20, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_other_triangle_is_not_looked_at(size: int, dtype: str, rng: np.random.Generator) -> None:
    """Neither by values nor by derivatives, whatever stands there; on the diagonal neither imaginary parts."""
    a = rng.standard_normal((2, size, size)).astype(dtype)
    if dtype.startswith("complex"):
        a = (a + 1j * rng.standard_normal(a.shape)).astype(dtype)
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    for triangle in ("L", "U"):
        given = np.tri(size, dtype=bool) if triangle == "L" else np.tri(size, dtype=bool).T
        part = np.where(given, a, 0)
        whole = part + np.swapaxes(np.where(np.eye(size, dtype=bool), 0, part), -1, -2).conj()
        whole = np.where(np.eye(size, dtype=bool), whole.real, whole)
        hidden = smelt.array(np.where(given, a, np.nan).astype(dtype), getattr(smelt, dtype))
        w, v = L.eigh(hidden, triangle)
        close(w, np.linalg.eigvalsh(whole), tolerance)
        close(L.eigvalsh(hidden, triangle), np.linalg.eigvalsh(whole), tolerance)
        close(v * w[..., None, :], whole @ np.asarray(v), tolerance)
        for function in (lambda x, t=triangle: L.eigh(x, t)[0].max(), lambda x, t=triangle: L.eigvalsh(x, t).max()):
            slope = np.asarray(smelt.grad(function)(smelt.array(a)))
            assert np.isfinite(slope).all() and not slope[:, ~given].any() and slope[:, given].any()


@each_device
def test_singular_values(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in SHAPES:
            a = rng.standard_normal(shape)
            m, n = shape[-2:]
            k = min(m, n)
            want = np.linalg.svd(a, compute_uv=False)
            close(L.svdvals(wide(a)), want)
            close(L.svd(wide(a), compute_uv=False), want)
            for full in (True, False):
                u, s, vt = L.svd(wide(a), full_matrices=full)
                assert u.shape[-2:] == (m, m if full else k) and vt.shape[-2:] == (n if full else k, n)
                close(s, want)
                close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a)
                for square in (u.swapaxes(-1, -2) @ u, vt @ vt.swapaxes(-1, -2)):
                    close(square, np.broadcast_to(np.eye(square.shape[-1]), square.shape))


@each_device
def test_pseudoinverses_and_least_squares(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in SHAPES:
            a = rng.standard_normal(shape)
            if min(shape):
                close(L.pinv(wide(a)), np.linalg.pinv(a), 1e-8)
                assert np.array_equal(L.matrix_rank(wide(a)), np.linalg.matrix_rank(a))
        low = rng.standard_normal((5, 2)) @ rng.standard_normal((2, 4))
        close(L.pinv(wide(low)), np.linalg.pinv(low, 1e-12), 1e-8)
        assert L.matrix_rank(wide(low)).item() == 2 and L.matrix_rank(smelt.zeros((2, 3))).item() == 0
        b = rng.standard_normal((5, 2))
        for a in (rng.standard_normal((5, 3)), low, rng.standard_normal((5, 7))):
            x, left, rank, s = L.lstsq(wide(a), wide(b))
            want = np.linalg.lstsq(a, b, rcond=1e-12)
            close(x, want[0], 1e-8)
            close(left, ((a @ want[0] - b) ** 2).sum(0))
            assert rank.item() == want[2]
            close(s, want[3])
            close(L.lstsq(wide(a), wide(b[:, 0]))[0], want[0][:, 0], 1e-8)


@each_device
def test_matrices_of_any_kind(rng: np.random.Generator, device: str) -> None:
    with smelt.stream(smelt.Device(device)):
        for shape in ((3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 4, 4), (20, 20)):
            a = rng.standard_normal(shape).astype(np.float32)
            for x in (a, (a + 1j * rng.standard_normal(shape)).astype(np.complex64)):
                w, v = L.eig(smelt.array(x))
                assert w.dtype == v.dtype == smelt.complex64
                close(x @ np.asarray(v), np.asarray(v * w[..., None, :]), 1e-4)
                close(w, np.linalg.eigvals(x), 1e-4)
                close(L.eigvals(smelt.array(x)), np.linalg.eigvals(x), 1e-4)
    assert L.eigvals(wide(np.eye(2))).tolist() == [1, 1]


@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 60.0])
def test_exponentials(rng: np.random.Generator, size: float) -> None:
    for shape in ((3, 3), (1, 1), (2, 5, 4, 4)):
        a = size * rng.standard_normal(shape)
        a = a - np.swapaxes(a, -1, -2) * 0.9
        np.testing.assert_allclose(L.expm(wide(a)), scipy.linalg.expm(a), rtol=1e-8, atol=1e-10)
    if size < 10:
        c = (size * (rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))).astype(np.complex64)
        close(L.expm(smelt.array(c)), scipy.linalg.expm(c), 1e-5)
    assert L.expm(smelt.zeros((0, 0))).shape == (0, 0)


FUNCTIONS: dict[str, Callable[[smelt.array], smelt.array]] = {
    "eigh": lambda a: L.eigh(a)[1] ** 2 + L.eigh(a)[0],
    "eigh of U": lambda a: L.eigh(a, "U")[1] ** 2,
    "eigvalsh": L.eigvalsh,
    "svd": lambda a: (L.svd(a)[0] ** 2)[..., :3] @ L.svd(a)[2] ** 2,
    "thin svd": lambda a: L.svd(a, full_matrices=False)[0] @ L.svd(a, full_matrices=False)[2],
    "svdvals": L.svdvals,
    "pinv": L.pinv,
    "lstsq": lambda a: L.lstsq(a, smelt.sin(a[..., :2]))[0],
    "residuals": lambda a: L.lstsq(a[..., :2], smelt.sin(a))[1],
    "expm": lambda a: L.expm(a / 3),
    "norm": L.norm,
    "nuclear norm": lambda a: L.norm(a, "nuc"),
    "2-norm": lambda a: L.matrix_norm(a, ord=2),
    "1-norm": lambda a: L.norm(a, 1),
    "p-norm": lambda a: L.norm(a, 3, axis=1),
    "vector norm": lambda a: L.vector_norm(a, ord=1.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(rng: np.random.Generator, name: str) -> None:
    a = rng.standard_normal((3, 3)) + np.diag([1.0, 4.0, 9.0])
    check_derivatives(rng, FUNCTIONS[name], a)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
@pytest.mark.parametrize("name", ["svdvals", "thin svd", "pinv", "nuclear norm"])
def test_derivatives_of_oblong_matrices(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> None:
    a = rng.standard_normal(shape)
    a[:3, :3] += np.diag([1.0, 4.0, 9.0])
    check_derivatives(rng, FUNCTIONS[name], a)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_and_tiers(rng: np.random.Generator, name: str) -> None:
    many = rng.standard_normal((2, 3, 3)) + np.diag([1.0, 4.0, 9.0])
    f = FUNCTIONS[name]
    want = np.stack([np.asarray(f(wide(one))) for one in many])
    for axis in (0, 2):
        x = wide(np.moveaxis(many, 0, axis))
        close(smelt.vmap(f, in_axes=axis)(x), want)
    gradient = smelt.grad(lambda a: (f(a) ** 2).sum())
    gradients = np.stack([np.asarray(gradient(wide(one))) for one in many])
    for tier in ("ops", "program"):
        with override(tier=tier, small_work=0):
            close(smelt.vmap(f)(wide(many)) * 2, 2 * want)
            close(smelt.vmap(gradient)(wide(many)), gradients, 1e-8)
    with smelt.stream("metal:sim"):
        single = smelt.array(many.astype(np.float32))
        close(smelt.compile(smelt.vmap(f))(single), want, 1e-4)


# Repeated and zero values


def test_repeated_eigenvalues(rng: np.random.Generator) -> None:
    """What does not depend on the choice of vectors has the right derivative."""
    q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    a = q @ np.diag([1.0, 2.0, 2.0, 3.0]) @ q.T

    def squared(a: smelt.array) -> smelt.array:
        w, v = L.eigh((a + a.T) / 2)
        return (v * w * w) @ v.T

    weights = rng.standard_normal((4, 4))
    weights = weights + weights.T
    for x in (np.eye(4) * 2, a):
        found = smelt.grad(lambda x: L.eigvalsh(x).sum())(wide(x))
        close(found, np.eye(4), 1e-9)
        assert np.isfinite(np.asarray(smelt.grad(lambda x: (squared(x) * wide(weights)).sum())(wide(x)))).all()
    close(smelt.grad(lambda x: (squared(x) * wide(np.eye(4))).sum())(wide(a)), 2 * a, 1e-8)


def test_repeated_and_zero_singular_values(rng: np.random.Generator) -> None:
    for x in (np.eye(3), np.zeros((3, 3)), np.ones((3, 2))):
        for f in (lambda a: L.svdvals(a).sum(), lambda a: (L.svd(a)[0] ** 2).sum(), lambda a: L.norm(a, 2)):
            assert np.isfinite(np.asarray(smelt.grad(f)(wide(x)))).all()
    close(smelt.grad(lambda a: L.norm(a, "nuc"))(wide(np.eye(3))), np.eye(3))
    t = rng.standard_normal((3, 3))
    _, (found,) = smelt.jvp(L.pinv, [wide(np.eye(3))], [wide(t)])
    close(found, -t)


def test_norms_of_zeros_have_the_derivative_zero() -> None:
    zero = wide(np.zeros((3, 3)))
    for f in (L.norm, lambda a: L.norm(a, 3, axis=0).sum(), lambda a: L.norm(a, "fro"), L.vector_norm):
        assert not np.asarray(smelt.grad(f)(zero)).any()


@pytest.mark.parametrize("order", [0.5, 1, 1.5, -0.5, -1, -2])
def test_norms_of_any_order_have_slopes_beside_zeros(order: float) -> None:
    """An element of 0 has the slope 0, where it is infinite on both sides, too, and others have theirs."""
    norm = lambda x: L.vector_norm(x, ord=order)  # noqa: E731
    for norms in (smelt.grad(norm), smelt.compile(smelt.grad(norm))):
        assert not np.asarray(norms(wide(np.zeros(3)))).any()
        found = np.asarray(norms(wide(np.array([0.0, 2.0, -3.0]))))
        want = np.asarray(norms(wide(np.array([2.0, -3.0])))) if order > 0 else np.zeros(2)
        np.testing.assert_allclose(found, [0.0, *want], rtol=1e-12)


# Norms


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, -1, -2, -1.5, np.inf, -np.inf])
def test_norms_of_vectors(rng: np.random.Generator, order: Any) -> None:
    x = rng.standard_normal((3, 4, 5))
    for axis in (0, 1, -1, (1,)):
        for keep in (True, False):
            flat = axis if isinstance(axis, int) else axis[0]
            close(L.norm(wide(x), order, axis, keep), np.linalg.norm(x, order, flat, keep))
    close(L.norm(wide(x[0, 0]), order), np.linalg.norm(x[0, 0], order))
    c = (x + 1j * x[::-1]).astype(np.complex64)
    close(L.norm(smelt.array(c), order, 1), np.linalg.norm(c, order, 1), 1e-5)
    if order is not None:
        for axes in (None, 1, (0, 2)):
            for keep in (True, False):
                want = np.linalg.vector_norm(x, axis=axes, ord=order, keepdims=keep) if hasattr(
                    np.linalg, "vector_norm"
                ) else None  # fmt: skip
                if want is not None:
                    close(L.vector_norm(wide(x), axis=axes, ord=order, keepdims=keep), want)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(rng: np.random.Generator, order: Any) -> None:
    x = rng.standard_normal((3, 4, 5))
    for axes in ((0, 1), (2, 0), (-1, -2), [1, 2]):
        for keep in (True, False):
            close(L.norm(wide(x), order, axes, keep), np.linalg.norm(x, order, tuple(axes), keep))
    close(L.norm(wide(x[0]), order), np.linalg.norm(x[0], order))
    for keep in (True, False):
        close(L.matrix_norm(wide(x), ord=order or "fro", keepdims=keep), np.linalg.norm(x, order, (1, 2), keep))


def test_norms_of_other_things() -> None:
    assert L.norm(smelt.arange(4)).item() == pytest.approx(np.sqrt(14))
    assert L.norm(smelt.ones((2, 2, 2))).item() == pytest.approx(np.sqrt(8))
    assert L.norm(smelt.ones((2, 2, 2)), keepdims=True).shape == (1, 1, 1)
    assert L.norm(smelt.array([3 + 4j])).item() == 5
    assert L.norm([3.0, 4.0]).item() == 5
    assert L.norm(smelt.zeros(0)).item() == 0
    assert np.isnan(L.norm(smelt.array([np.nan, 1.0])).item())


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16])
@pytest.mark.parametrize("order", [None, 2, 3, 0.5, -2, 1, np.inf])
def test_norms_of_half_precision_are_those_of_single_precision(dtype: smelt.Dtype, order: Any) -> None:
    """Whose powers have room: 300² is beyond float16."""
    x = smelt.array([[300.0, -0.01], [500.0, 2.0]]).astype(dtype)
    axes = -1 if order is not None else None
    for f in (L.norm, smelt.compile(L.norm)):
        found, want = f(x, ord=order, axis=axes), L.norm(x.astype(smelt.float32), ord=order, axis=axes)
        assert found.dtype == dtype
        np.testing.assert_array_equal(
            np.asarray(found.astype(smelt.float32)), np.asarray(want.astype(dtype).astype(smelt.float32))
        )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(value: float) -> None:
    a = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([2.0, 4.0, 5.0])]).astype(np.float32)
    a[0, 1, 1] = value
    x = smelt.array(a)
    for f in (
        L.eigvalsh, lambda a: L.eigh(a)[1], L.svdvals, lambda a: L.svd(a)[0], L.pinv, L.eigvals, L.expm,
        lambda a: L.eig(a)[1],
    ):  # fmt: skip
        found = np.asarray(f(x))
        assert np.isnan(found[0]).any()
        close(found[1], np.asarray(f(x[1:]))[0], 1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: L.eigh(smelt.ones((2, 3))), ValueError, "smelt.eigh: the last 2 axes of a must be (n, n)"),
        (lambda: L.eigh(smelt.eye(2), "X"), ValueError, 'UPLO must be "L" or "U"'),
        (lambda: L.eigvalsh(smelt.array([[1]])), TypeError, "a is int32, must be one of float32, float64"),
        (lambda: L.svd(smelt.ones(3)), ValueError, "smelt.svd: a has 1 axes, must have at least 2: (m, n)"),
        (lambda: L.svdvals(smelt.array([[1]])), TypeError, "a is int32, must be one of"),
        (lambda: L.pinv(smelt.ones(3)), ValueError, "smelt.linalg.pinv: needs matrices"),
        (lambda: L.pinv(smelt.eye(2), rtol="x"), TypeError, "rtol must be a number"),
        (lambda: L.lstsq(smelt.ones((3, 2)), smelt.ones((2, 1))), ValueError, "a has 3 rows, b has 2"),
        (lambda: L.eig(smelt.ones((2, 3))), ValueError, "the last 2 axes of a must be (n, n)"),
        (lambda: L.expm(smelt.ones((2, 3))), ValueError, "the last 2 axes of a must be (n, n)"),
        (lambda: L.norm(smelt.ones((2, 3)), 3), ValueError, "the order of a norm of matrices must be"),
        (lambda: L.norm(smelt.ones(3), "fro"), ValueError, "the order of a norm of vectors must be a number"),
        (lambda: L.norm(smelt.ones((2, 3, 4)), 2), ValueError, "one axis of vectors or two of matrices"),
        (lambda: L.norm(smelt.ones((2, 3, 4)), axis=(0, 1, 2)), ValueError, "one axis of vectors or two of matrices"),
        (lambda: L.norm(smelt.ones(3), 2, 1), ValueError, "axis 1 out of range"),
        (lambda: L.matrix_norm(smelt.ones(3)), ValueError, "needs matrices"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, smelt.SmeltError)
    assert re.search(rf"{re.escape(__file__)}:\d+$", str(caught.value))


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16])
def test_half_precision_is_an_error_that_says_what_to_do(dtype: smelt.Dtype) -> None:
    for function in (smelt.linalg.pinv, smelt.linalg.matrix_rank, smelt.linalg.svdvals):
        with pytest.raises(smelt.SmeltError, match=r"must be one of .*convert it first.*test_linalg_spectra\.py"):
            function(smelt.ones((2, 3), dtype))


NAMES = {
    "eig": ("eigenvalues", "eigenvectors"), "eigh": ("eigenvalues", "eigenvectors"), "qr": ("Q", "R"),
    "slogdet": ("sign", "logabsdet"), "svd": ("U", "S", "Vh"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_results_have_the_names_of_the_standard(name):
    function, x = getattr(smelt.linalg, name), smelt.array([[2.0, 1.0], [1.0, 3.0]])
    want = [np.asarray(part) for part in function(x)]
    ways = {
        "again": lambda: function(x), "compiled": lambda: smelt.compile(lambda a: function(a))(x),
        "checkpoint": lambda: smelt.checkpoint(lambda a: function(a))(x),
        "branch": lambda: smelt.cond(smelt.array(True), lambda a: function(a), lambda a: function(a + 1), x),
        "batch": lambda: smelt.utils.tree_map(lambda a: a[0], smelt.vmap(function)(x[None])),
        "tangent": lambda: smelt.jvp(lambda a: function(a), [x], [x])[0],
        "pickle": lambda: pickle.loads(pickle.dumps(function(x))),
    }
    for way, call in ways.items():
        found = call()
        assert type(found) is type(function(x)), way
        assert found._fields == NAMES[name]
        for part, expected in zip(NAMES[name], want):
            np.testing.assert_allclose(np.asarray(getattr(found, part)), expected, rtol=1e-5, atol=1e-6, err_msg=way)
