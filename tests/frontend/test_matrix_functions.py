"""Roots, logarithms and other functions of square matrices beside SciPy and mpmath, and their derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import smelt
from smelt import linalg as L
from smelt.ir import lapack, triangular_forms
from smelt.ir.errors import LibraryError

DTYPES = {np.float32: 2e-5, np.float64: 1e-12, np.complex64: 2e-5, np.complex128: 1e-12}


def matrices(dtype: type, *lead: int, n: int = 5) -> np.ndarray:
    """Of positive real parts, far from symmetric."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((*lead, n, n))
    if issubclass(dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(x.shape)
    found = x @ np.swapaxes(x, -1, -2).conj() / n + np.triu(x) / 3 + np.eye(n)
    return found.astype(dtype)


def as_smelt(x: np.ndarray) -> smelt.array:
    return smelt.array(x, getattr(smelt, x.dtype.name))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sqrtm", "logm", "cosm", "sinm", "coshm", "sinhm"])
def test_functions(name: str, dtype: type) -> None:
    for lead, n in (((2, 3), 5), ((), 1), ((2,), 2), ((), 12)):
        x = matrices(dtype, *lead, n=n)
        x = x / np.abs(x).sum(-1).max() if name[-2] != "t" and n > 5 else x
        expected = np.reshape([getattr(scipy.linalg, name)(m) for m in x.astype(complex).reshape(-1, n, n)], x.shape)
        found = getattr(L, name)(as_smelt(x))
        assert found.dtype.name == x.dtype.name
        size = np.abs(expected).max()
        np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=DTYPES[dtype] * size)
    assert getattr(L, name)(smelt.zeros((0, 0))).shape == (0, 0)
    assert getattr(L, name)(smelt.zeros((0, 3, 3))).shape == (0, 3, 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("t", [0.5, 2.5, 0.3, -0.7, -2, 0, 3])
def test_powers(t: float, dtype: type) -> None:
    x = matrices(dtype, 2, n=4)
    values, vectors = np.linalg.eig(x.astype(complex))
    expected = vectors * values[:, None] ** t @ np.linalg.inv(vectors)
    found = L.fractional_matrix_power(as_smelt(x), t)
    assert found.dtype.name == x.dtype.name
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=20 * DTYPES[dtype] * np.abs(expected).max())
    with pytest.raises(smelt.SmeltError, match="must be finite"):
        L.fractional_matrix_power(as_smelt(x), float("nan"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sylvesters_equation(dtype: type) -> None:
    a, b = matrices(dtype, 2, n=4), matrices(dtype, n=3)
    q = matrices(dtype, n=4)[:, :3]
    found = np.asarray(L.solve_sylvester(as_smelt(a), as_smelt(b), as_smelt(q)))
    wide = np.result_type(dtype, np.float64)  # SciPy's own Schur form asks for memory it was not told in float32
    expected = [scipy.linalg.solve_sylvester(x.astype(wide), b.astype(wide), q.astype(wide)) for x in a]
    np.testing.assert_allclose(found, expected, rtol=0, atol=10 * DTYPES[dtype])
    x, right = matrices(dtype, n=4), matrices(dtype, n=4)
    expected = scipy.linalg.solve_continuous_lyapunov(x.astype(wide), right.astype(wide))
    np.testing.assert_allclose(
        np.asarray(L.solve_continuous_lyapunov(as_smelt(x), as_smelt(right))), expected, rtol=0, atol=10 * DTYPES[dtype]
    )
    assert L.solve_sylvester(smelt.zeros((0, 0)), smelt.eye(2), smelt.zeros((0, 2))).shape == (0, 2)


HARD = {
    "near to one": lambda: np.eye(3) + 1e-9 * np.arange(9).reshape(3, 3),
    "far apart": lambda: np.array([[1e-8, 1.0], [0.0, 1e8]]),
    "one Jordan block": lambda: 2 * np.eye(4) + np.diag(np.ones(3), 1),
    "nearly equal": lambda: np.array([[1.0, 1e6], [0.0, 1.0 + 1e-9]]),
    "left of zero": lambda: np.array([[-1.0, 1.0], [-1.0, -1.0]]),
    "huge": lambda: 1e30 * np.array([[2.0, 1.0], [1.0, 2.0]]),
}


@pytest.mark.parametrize("name", HARD)
def test_digits(name: str) -> None:
    x = HARD[name]()
    with mpmath.workdps(60):
        precise = mpmath.matrix(x.tolist())
        for f, oracle in ((L.sqrtm, mpmath.sqrtm), (L.logm, mpmath.logm)):

            def exact(change: np.ndarray, oracle=oracle, precise=precise) -> np.ndarray:
                return np.array(oracle(precise + mpmath.matrix(change.tolist())).tolist(), complex).real

            expected = exact(np.zeros(x.shape))
            # What a change of ε in any element of the matrix does.
            changes = np.abs(x).max() * np.finfo(float).eps * np.eye(x.size).reshape(-1, *x.shape)
            most = max(np.abs(exact(change) - expected).max() for change in changes)
            found = np.asarray(f(as_smelt(x)))
            np.testing.assert_allclose(found, expected, rtol=0, atol=20 * most + 1e-15 * np.abs(expected).max())


#: Matrices whose powers are far smaller than those of their norms, and others with norms as large.
SKEWED = {
    "a logarithm": scipy.linalg.logm(np.diag([0.32, 0.3, 0.32, 0.31]) + np.triu(np.full((4, 4), 3e4), 1)),
    "two": np.array([[1.0, 1e6], [0.0, -1.0]]),
    "nilpotent": np.array([[0.0, 1e8], [0.0, 0.0]]),
    "three": np.array([[-0.5, 1e3, 1e6], [0.0, -0.5, 1e3], [0.0, 0.0, 0.2]]),
    "turned": np.array([[1.0, -1e5], [1e-5, 1.0]]),
    "defective": np.array([[49.0, 24.0], [-64.0, 31.0]]) / 4,
    "long": np.diag(np.full(7, 300.0), 1) - np.eye(8),
    "signs that cancel": np.array([[1e3, -1e3], [1e3, -1e3]]),
}


@pytest.mark.parametrize("name", SKEWED)
def test_digits_of_exponentials(name: str) -> None:
    """Halving a matrix until its norm is small, and squaring as often, loses digits: of the first one all."""
    x, near = SKEWED[name], {"a logarithm": 1e-5, "signs that cancel": 1e-8}.get(name, 1e-12)
    with mpmath.workdps(80):
        expected = np.array(mpmath.expm(mpmath.matrix(x.tolist())).tolist(), float)
        n = len(x)
        direction = np.random.default_rng(0).normal(size=x.shape)
        block = np.block([[x, direction], [np.zeros_like(x), x]])
        slope = np.array(mpmath.expm(mpmath.matrix(block.tolist())).tolist(), float)[:n, n:]
    batch = smelt.stack([as_smelt(x), as_smelt(x / 1e9), as_smelt(np.eye(n))])
    found, (along,) = L.expm(batch)[0], smelt.jvp(lambda x: [L.expm(x)], [as_smelt(x)], [as_smelt(direction)])[1]
    for got, want in ((found, expected), (along, slope)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=near * np.abs(want).max())


@pytest.mark.parametrize("t", [0.6, 5 / 3, -0.7, 2.5])
def test_digits_of_powers(t: float) -> None:
    x = np.diag([0.32, 0.3, 0.32, 0.31]) + np.triu(np.full((4, 4), 3e4), 1)
    with mpmath.workdps(60):
        power = mpmath.expm(mpmath.mpf(t) * mpmath.logm(mpmath.matrix(x.tolist())))
        expected = np.array(power.tolist(), complex).real
    found = np.asarray(L.fractional_matrix_power(as_smelt(x), t))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_eigenvalues_beside_the_negative_axis() -> None:
    x = np.array([[-1.0, 1e-3], [-1e-3, -1.0]])
    root, logarithm = (np.asarray(f(as_smelt(x))) for f in (L.sqrtm, L.logm))
    np.testing.assert_allclose(root @ root, x, rtol=1e-12)
    np.testing.assert_allclose(scipy.linalg.expm(logarithm), x, rtol=1e-9)
    assert root[0, 0] > 0 and abs(logarithm[0, 1]) < np.pi


def test_roots_of_singular_matrices() -> None:
    projection = np.full((4, 4), 0.25)
    np.testing.assert_allclose(np.asarray(L.sqrtm(as_smelt(projection))), projection, atol=1e-7)
    assert L.sqrtm(smelt.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert L.sqrtm(smelt.diag(smelt.array([0.0, 4.0, 0.0]))).tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 0]]


def test_matrices_without_results() -> None:
    flipped = smelt.array([[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]])
    for f, what in ((L.sqrtm, "square root"), (L.logm, "logarithm")):
        with pytest.raises(LibraryError, match=f"matrix 1 of the batch has no {what} of real numbers.*complex"):
            smelt.eval(f(flipped))
        found = np.asarray(f(flipped.astype(smelt.complex64)))
        np.testing.assert_allclose(found[1, 0, 0], 1j if f is L.sqrtm else 1j * np.pi, atol=1e-6)
        assert np.isnan(np.asarray(f(smelt.full((2, 2), np.nan)))).all()
        with pytest.raises(LibraryError, match=f"has no {what}"):
            smelt.eval(f(smelt.array([[0.0, 1.0], [0.0, 0.0]])))
    with pytest.raises(LibraryError, match="matrix has no logarithm"):
        smelt.eval(L.logm(smelt.zeros((2, 2))))
    with pytest.raises(LibraryError, match="an eigenvalue that is one of -b"):
        smelt.eval(L.solve_sylvester(smelt.eye(2), -smelt.eye(2), smelt.ones((2, 2))))
    with pytest.raises(ValueError, match=r"must be \(n, n\)"):
        L.sqrtm(smelt.ones((2, 3)))


FUNCTIONS = {
    "sqrtm": L.sqrtm,
    "power": lambda x: L.fractional_matrix_power(x, -0.3),
    "logm": L.logm,
    "cosm": L.cosm,
    "sinhm": L.sinhm,
    "lyapunov": lambda x: L.solve_continuous_lyapunov(x, smelt.sin(x)),
    "batch": lambda x: smelt.vmap(lambda s: L.logm(s * x) + L.sqrtm(x))(smelt.array([1.0, 2.0], smelt.float64)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    """First and second ones against differences, and the reverse mode against the forward one."""
    x, f = matrices(np.float64, n=3) / 2, FUNCTIONS[name]
    e = np.random.default_rng(1).standard_normal(x.shape)

    def value(t: smelt.array) -> smelt.array:
        return smelt.sin(f(as_smelt(x) + t * as_smelt(e))).sum()

    zero, step = smelt.array(0.0, smelt.float64), 1e-4
    slope = smelt.grad(value)
    for function, derivative in ((value, slope), (slope, smelt.grad(slope))):
        after, before = (float(function(smelt.array(t, smelt.float64))) for t in (step, -step))
        np.testing.assert_allclose(float(derivative(zero)), (after - before) / 2 / step, rtol=1e-5, atol=1e-6)
    (forward,) = smelt.jvp(value, [zero], [smelt.array(1.0, smelt.float64)])[1]
    np.testing.assert_allclose(float(forward), float(slope(zero)), rtol=1e-9)


def test_schur_forms_without_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    given = [
        rng.standard_normal((8, 8)), rng.standard_normal((8, 8)) * 1j + 1, np.diag(np.ones(4), 1), np.zeros((3, 3)),
        np.roll(np.eye(5), 1, 0), np.ones((4, 4)), np.diag([1e-200, 1.0, 1e200]), np.eye(1), np.empty((0, 0)),
    ]  # fmt: skip
    for _ in range(2):
        for a in given:
            t, u = triangular_forms.schur(a)
            eye = np.eye(len(a))
            np.testing.assert_allclose(u @ t @ u.conj().T, a, rtol=0, atol=1e-14 * np.abs(a).max(initial=1) * 10)
            np.testing.assert_allclose(u.conj().T @ u, eye, rtol=0, atol=1e-13)
            assert not np.tril(t, -1).any()
            for of in (a, a.astype(np.complex128)):  # of real matrices, real numbers
                t, u = triangular_forms.schur_forms(of)
                assert t.dtype == u.dtype == of.dtype
                np.testing.assert_allclose(u @ t @ u.conj().T, of, rtol=0, atol=1e-13 * np.abs(a).max(initial=1))
                np.testing.assert_allclose(u.conj().T @ u, eye, rtol=0, atol=1e-13)
                assert not np.tril(t, -1 if of.dtype.kind == "c" else -2).any()
        monkeypatch.setattr(lapack, "schur", lambda a: None)
