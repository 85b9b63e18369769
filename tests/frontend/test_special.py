"""Special functions against mpmath and SciPy: values, special values, derivatives, and that they are compositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import smelt
from benchmarks.special_functions import error, subjects
from benchmarks.special_functions import function as of_smelt
from smelt.functions import special

SUBJECTS = subjects(40)
#: Units of the last place; see docs/accuracy.md.
BOUNDS = {"i1e": 12, "i0": 9, "i1": 18, "lgamma": 9, "zeta": 9, "gammainc": 200, "gammaincc": 200, "betainc": 200,
          "y0": 12, "k0": 12, "k0e": 12, "beta": 2500, "ellipe": 9, "fresnel": 9}  # fmt: skip
INF, NAN = np.inf, np.nan
EDGES = np.array([0.0, -0.0, 1.0, -1.0, -2.5, INF, -INF, NAN])


def f64(x: Any) -> smelt.array:
    return smelt.array(np.asarray(x), smelt.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", SUBJECTS)
def test_errors_in_units_of_the_last_place(name: str, dtype: Any) -> None:
    truth, operands, _ = SUBJECTS[name]
    assert error(name, truth, operands, dtype).max() <= BOUNDS.get(name, 6)


@pytest.mark.parametrize("name", SUBJECTS)
def test_kernels_agree(name: str) -> None:
    xs = [x.astype(np.float32) for x in SUBJECTS[name][1]]
    f = of_smelt(name)
    want = np.asarray(f(*map(smelt.array, xs)))
    for device in ("cpu", "metal:sim"):
        with smelt.stream(device):
            found = np.asarray(smelt.compile(lambda *xs: f(*xs))(*map(smelt.array, xs)))
        np.testing.assert_allclose(found, want, rtol=3e-5, atol=2e-7)
    rows = [x[:6].reshape(2, 3) for x in xs]
    batched = smelt.vmap(f)(*map(smelt.array, rows))
    np.testing.assert_allclose(np.asarray(batched), want[:6].reshape(2, 3), rtol=3e-5, atol=2e-7)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("erfc", [1, 1, 0.15729920705, 1.84270079295, 1.99959304798, 0, 2, NAN]),
        ("logit", [-INF, -INF, INF, NAN, NAN, NAN, NAN, NAN]),
        ("lgamma", [INF, INF, 0, INF, -0.05624371649767, INF, INF, NAN]),
        ("digamma", [-INF, INF, -0.5772156649, NAN, 1.1031566406, INF, NAN, NAN]),
        ("i0", [1, 1, 1.2660658778, 1.2660658778, 3.2898391441, INF, INF, NAN]),
        ("i1", [0, 0, 0.565159104, -0.565159104, -2.5167162453, INF, -INF, NAN]),
        ("i0e", [1, 1, 0.4657596076, 0.4657596076, 0.2700464416, 0, 0, NAN]),
        ("i1e", [0, 0, 0.2079104154, -0.2079104154, -0.2065846495, 0, 0, NAN]),
        ("j0", [1, 1, 0.7651976866, 0.7651976866, -0.0483837765, 0, 0, NAN]),
        ("j1", [0, 0, 0.4400505857, -0.4400505857, -0.4970941025, 0, 0, NAN]),
        ("y0", [-INF, -INF, 0.0882569642, NAN, NAN, 0, NAN, NAN]),
        ("y1", [-INF, -INF, -0.7812128213, NAN, NAN, 0, NAN, NAN]),
        ("k0", [INF, INF, 0.4210244382, NAN, NAN, 0, NAN, NAN]),
        ("k1", [INF, INF, 0.6019072302, NAN, NAN, 0, NAN, NAN]),
        ("k0e", [INF, INF, 1.1444630798, NAN, NAN, 0, NAN, NAN]),
        ("k1e", [INF, INF, 1.6361534863, NAN, NAN, 0, NAN, NAN]),
        ("exp1", [INF, INF, 0.2193839344, NAN, NAN, 0, NAN, NAN]),
        ("gamma", [INF, -INF, 1, NAN, -0.9453087205, INF, NAN, NAN]),
        ("gammasgn", [1, -1, 1, NAN, -1, 1, NAN, NAN]),
        ("factorial", [1, 1, 1, 0, 0, INF, 0, NAN]),
        ("spence", [1.6449340668, 1.6449340668, 0, NAN, NAN, -INF, NAN, NAN]),
        ("ellipk", [1.5707963268, 1.5707963268, INF, 1.3110287771, 1.1208810036, NAN, 0, NAN]),
        ("ellipe", [1.5707963268, 1.5707963268, 1, 1.9100988945, 2.3069156144, NAN, INF, NAN]),
        ("expi", [-INF, -INF, 1.8951178164, -0.2193839344, -0.02491491787, INF, 0, NAN]),
    ],
)
def test_special_values(name: str, want: list[float]) -> None:
    np.testing.assert_allclose(np.asarray(getattr(smelt, name)(f64(EDGES))), want, rtol=1e-9)


def test_special_values_of_two_operands() -> None:
    a, x = np.meshgrid([0.0, 1.0, 0.5, INF, NAN, -1.0], [0.0, 1.0, INF, NAN, -1.0])
    for name in ("gammainc", "gammaincc"):
        found = np.asarray(getattr(smelt, name)(f64(a), f64(x)))
        want = np.where(np.isnan(a + x), NAN, getattr(scipy.special, name)(a, x))  # SciPy before 1.16 has numbers there
        np.testing.assert_allclose(found, want, rtol=1e-12)
    s, q = np.meshgrid([1.0, 0.5, 2.0, 2.5], [1.0, 0.5, 1.5, INF, 0.0, -1.0, -INF])
    np.testing.assert_allclose(np.asarray(smelt.zeta(f64(s), f64(q))), scipy.special.zeta(s, q), rtol=1e-12)
    found = smelt.zeta(f64([INF, INF, INF, 2.0, 2.0]), f64([0.5, 1.0, 1.5, -0.5, NAN]))
    np.testing.assert_array_equal(np.asarray(found), [INF, 1, 0, NAN, NAN])
    found = smelt.betainc(
        f64([1, 1, 0, INF, 2, 2, 2]), f64([1, 1, 1, 1, 2, 2, 2]), f64([0, 1, 0.5, 0.5, NAN, -0.1, 1.1])
    )
    np.testing.assert_array_equal(np.asarray(found), [0, 1, NAN, NAN, NAN, NAN, NAN])


POSITIVE = np.linspace(0.3, 18, 23)
DERIVATIVES: dict[str, tuple[Callable[..., Any], list[np.ndarray], int, Callable[..., Any]]] = {
    "erfc": (smelt.erfc, [POSITIVE - 5], 0, lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "logit": (smelt.logit, [POSITIVE / 19], 0, lambda x: 1 / (x * (1 - x))),
    "lgamma": (smelt.lgamma, [POSITIVE - 3], 0, mp.digamma),
    "digamma": (smelt.digamma, [POSITIVE - 3], 0, lambda x: mp.polygamma(1, x)),
    "polygamma": (lambda x: smelt.polygamma(2, x), [POSITIVE], 0, lambda x: mp.polygamma(3, x)),
    "i0": (smelt.i0, [POSITIVE - 7], 0, lambda x: mp.besseli(1, x)),
    "i1": (smelt.i1, [POSITIVE - 7], 0, lambda x: mp.besseli(0, x) - mp.besseli(1, x) / x),
    "j0": (smelt.j0, [POSITIVE - 7], 0, lambda x: -mp.besselj(1, x)),
    "j1": (smelt.j1, [POSITIVE - 7], 0, lambda x: mp.besselj(0, x) - mp.besselj(1, x) / x),
    "y0": (smelt.y0, [POSITIVE], 0, lambda x: -mp.bessely(1, x)),
    "y1": (smelt.y1, [POSITIVE], 0, lambda x: mp.bessely(0, x) - mp.bessely(1, x) / x),
    "k0": (smelt.k0, [POSITIVE], 0, lambda x: -mp.besselk(1, x)),
    "k1": (smelt.k1, [POSITIVE], 0, lambda x: -mp.besselk(0, x) - mp.besselk(1, x) / x),
    "k0e": (smelt.k0e, [POSITIVE], 0, lambda x: mp.exp(x) * (mp.besselk(0, x) - mp.besselk(1, x))),
    "exp1": (smelt.exp1, [POSITIVE], 0, lambda x: -mp.exp(-x) / x),
    "expi": (smelt.expi, [POSITIVE * 2 - 9.1], 0, lambda x: mp.exp(x) / x),
    "gamma": (smelt.gamma, [POSITIVE - 4], 0, lambda x: mp.gamma(x) * mp.digamma(x)),
    "gamma of whole numbers": (smelt.gamma, [np.arange(1.0, 9)], 0, lambda x: mp.gamma(x) * mp.digamma(x)),
    "factorial": (smelt.factorial, [POSITIVE - 0.2], 0, lambda x: mp.gamma(x + 1) * mp.digamma(x + 1)),
    "beta of a": (
        smelt.beta, [POSITIVE / 4, POSITIVE[::-1] / 4], 0,
        lambda a, b: mp.beta(a, b) * (mp.digamma(a) - mp.digamma(a + b)),
    ),
    "spence": (smelt.spence, [POSITIVE / 3], 0, lambda x: mp.log(x) / (1 - x)),
    "ellipk": (smelt.ellipk, [1 - POSITIVE], 0, lambda m: (mp.ellipe(m) / (1 - m) - mp.ellipk(m)) / (2 * m)),
    "ellipe": (smelt.ellipe, [1 - POSITIVE], 0, lambda m: (mp.ellipe(m) - mp.ellipk(m)) / (2 * m)),
    "expn": (lambda x: smelt.expn(4, x), [POSITIVE / 2], 0, lambda x: -mp.expint(3, x)),
    "si": (lambda x: smelt.sici(x)[0], [POSITIVE - 4], 0, lambda x: mp.sin(x) / x),
    "ci": (lambda x: smelt.sici(x)[1], [POSITIVE], 0, lambda x: mp.cos(x) / x),
    "fresnel's sine": (lambda x: smelt.fresnel(x)[0], [POSITIVE / 4 - 1], 0, lambda x: mp.sin(mp.pi * x * x / 2)),
    "fresnel's cosine": (lambda x: smelt.fresnel(x)[1], [POSITIVE / 4 - 1], 0, lambda x: mp.cos(mp.pi * x * x / 2)),
    "zeta of a": (smelt.zeta, [1 + POSITIVE, POSITIVE], 0, lambda s, q: mp.zeta(s, q, 1)),
    "zeta of q": (smelt.zeta, [1 + POSITIVE, POSITIVE], 1, lambda s, q: -s * mp.zeta(s + 1, q)),
    "gammainc of x": (
        smelt.gammainc, [POSITIVE, POSITIVE[::-1]], 1, lambda a, x: x ** (a - 1) * mp.exp(-x) / mp.gamma(a),
    ),
    "gammainc of a": (
        smelt.gammainc, [POSITIVE, POSITIVE * 1.2], 0,
        lambda a, x: mp.diff(lambda a: mp.gammainc(a, 0, x, regularized=True), a),
    ),
    "gammaincc of a": (
        smelt.gammaincc, [POSITIVE, POSITIVE * 0.8], 0,
        lambda a, x: mp.diff(lambda a: mp.gammainc(a, x, mp.inf, regularized=True), a),
    ),
    "betainc of a": (
        smelt.betainc, [POSITIVE, POSITIVE[::-1], np.linspace(0.2, 0.8, 23)], 0,
        lambda a, b, x: mp.diff(lambda a: mp.betainc(a, b, 0, x, regularized=True), a),
    ),
    "betainc of x": (
        smelt.betainc, [POSITIVE, POSITIVE[::-1], np.linspace(0.2, 0.8, 23)], 2,
        lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    f, operands, argnum, truth = DERIVATIVES[name]
    some = slice(None, None, 3)  # of these mpmath tells the derivative, for which it takes long
    with mp.workdps(30):
        want = [float(truth(*map(mp.mpf, xs))) for xs in zip(*(x[some].tolist() for x in operands))]
    gradient = smelt.grad(lambda *xs: f(*xs).sum(), argnums=argnum)
    found = np.asarray(gradient(*map(f64, operands)))
    np.testing.assert_allclose(found[some], want, rtol=1e-11, atol=1e-15)
    ones = [np.ones_like(x) if i == argnum else np.zeros_like(x) for i, x in enumerate(operands)]
    second = smelt.grad(lambda *xs: gradient(*xs).sum(), argnums=argnum)

    @smelt.compile
    def in_other_ways(*xs: smelt.array) -> list[smelt.array]:
        return [gradient(*xs), smelt.jvp(f, [*xs], [*map(f64, ones)])[1][0], second(*xs)]

    compiled, forward, twice = map(np.asarray, in_other_ways(*map(f64, operands)))
    np.testing.assert_allclose(compiled, found, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(forward, found, rtol=1e-12, atol=1e-15)
    h = 1e-5
    moved = [[x + s * h * (i == argnum) for i, x in enumerate(operands)] for s in (1, -1)]
    high, low = (np.asarray(gradient(*map(f64, xs))) for xs in moved)
    scale = np.abs(twice).max()
    np.testing.assert_allclose(twice, (high - low) / (2 * h), rtol=1e-5, atol=1e-7 * scale)


@pytest.mark.parametrize("name", [n for n, (_, operands, _) in subjects(8).items() if len(operands) == 1])
def test_one_kernel(name: str) -> None:
    """In float32; series of float64 are longer, and functions of the second kind are made of two others."""
    if name not in special.__all__:
        pytest.skip("of the second kind")
    function = getattr(smelt, name)
    program = smelt.compile(lambda x: function(x)).trace(smelt.ShapeDtype((1000,), "float32")).lower().compile()
    assert len(program.kernels) == 1


def test_whole_numbers_have_whole_factorials() -> None:
    for dtype, most in ((smelt.float32, 10), (smelt.float64, 18)):
        n = smelt.arange(most, dtype=dtype)
        want = [float(math.factorial(i)) for i in range(most)]
        assert smelt.factorial(n).tolist() == want
        assert smelt.compile(lambda n: smelt.gamma(n + 1))(n).tolist() == want
    assert smelt.factorial(4).item() == 24


@pytest.mark.parametrize("dtype", [smelt.float32, smelt.float64], ids=str)
def test_integrals_of_large_operands(dtype: Any) -> None:
    """Means of numbers that are far apart take more steps; turns of large squares are lost without halves of them."""
    exponents = np.linspace(1, 37 if dtype is smelt.float32 else 300, 40)
    x = np.asarray(smelt.array(-(10.0**exponents), smelt.float64).astype(dtype))
    eps, operands = float(smelt.finfo(dtype).eps), [mp.mpf(float(v)) for v in x]
    with mp.workdps(40):
        for f, truth, ulps in ((smelt.ellipk, mp.ellipk, 4), (smelt.ellipe, mp.ellipe, 300)):
            found = np.asarray(f(smelt.array(x, dtype)))
            assert all(abs(float(v) / truth(m) - 1) < ulps * eps for v, m in zip(found, operands))
        places = np.asarray(smelt.array(10.0 ** np.linspace(0.5, 6, 40), smelt.float64).astype(dtype))
        for found, truth in zip(smelt.fresnel(smelt.array(places, dtype)), (mp.fresnels, mp.fresnelc)):
            want = [truth(mp.mpf(float(v))) for v in places]
            assert all(abs(float(v) - w) < 2 * eps for v, w in zip(np.asarray(found), want))
    huge = smelt.array([1e8, 1e20, float(smelt.finfo(dtype).max)], dtype)
    for sign in (1, -1):
        for found in smelt.fresnel(sign * huge):
            np.testing.assert_allclose(np.asarray(found), sign * 0.5, atol=1e-8)


def test_orders_of_exponential_integrals() -> None:
    x = np.array([0.0, 1e-3, 0.7, 2.0, 2.1, 9.0, 40.0, INF, NAN, -1.0])
    for n in (0, 1, 2, 5, 50):
        np.testing.assert_allclose(np.asarray(smelt.expn(n, f64(x))), scipy.special.expn(n, x), rtol=1e-13)
    with pytest.raises(ValueError, match=r"smelt\.expn: n must"):
        smelt.expn(51, 1.0)
    with pytest.raises(ValueError, match=r"smelt\.expn: n must not be negative"):
        smelt.expn(-1, 1.0)


def test_special_values_of_integrals() -> None:
    sine, cosine = (np.asarray(v) for v in smelt.sici(f64(EDGES)))
    np.testing.assert_allclose(sine, scipy.special.sici(EDGES)[0], rtol=1e-12)
    np.testing.assert_allclose(cosine[[0, 1, 2, 5, 7]], [-INF, -INF, 0.3374039229, 0, NAN], rtol=1e-9)
    assert np.isnan(cosine[[3, 4, 6]]).all()
    for found, want in zip(smelt.fresnel(f64(EDGES)), scipy.special.fresnel(EDGES)):
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-12)


def test_orders_of_polygamma_may_be_arrays() -> None:
    n, x = np.array([0.0, 1.0, 2.0, 5.0, 0.5, -1.0]), np.array([1.5, 2.5, 0.3, 4.0, 1.0, 1.0])
    want = [float(mp.polygamma(int(i), v)) if i >= 0 and i == int(i) else NAN for i, v in zip(n, x)]
    np.testing.assert_allclose(np.asarray(smelt.polygamma(f64(n), f64(x))), want, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_polygamma_of_negative_numbers(n: int) -> None:
    x = np.concatenate([-np.random.default_rng(n).uniform(0.01, 9, 40), [-0.25, -1e-3, -7.999, 0.2, 3.0]])
    want = [float((-1) ** (n + 1) * mp.factorial(n) * mp.zeta(n + 1, mp.mpf(v))) for v in x]
    np.testing.assert_allclose(np.asarray(smelt.polygamma(n, f64(x))), want, rtol=1e-11)
    slope = [float((-1) ** n * mp.factorial(n + 1) * mp.zeta(n + 2, mp.mpf(v))) for v in x]
    found = smelt.grad(lambda v: smelt.polygamma(n, v).sum())(f64(x))
    np.testing.assert_allclose(np.asarray(found), slope, rtol=1e-10)
    pole = INF if n % 2 else -INF
    found = smelt.polygamma(n, f64([0, -0.0, -1, -6, INF, -INF, NAN]))
    np.testing.assert_array_equal(np.asarray(found), [pole, pole, pole, pole, 0, NAN, NAN])


@pytest.mark.parametrize("n", range(8))
@pytest.mark.parametrize(("dtype", "near"), [(smelt.float32, 5e-6), (smelt.float64, 1e-7)])
def test_polygamma_at_negative_halves(n: int, dtype: smelt.Dtype, near: float) -> None:
    """The derivatives of the cotangent are 0 there where n is even, and large numbers cancelled that are not."""
    x = np.concatenate([-np.arange(0.5, 25), -np.arange(0.5, 25) + 2**-12, -np.arange(0.25, 9, 0.5)])
    want = [float(mp.polygamma(n, mp.mpf(v))) for v in x]
    for function in (lambda v: smelt.polygamma(n, v), smelt.compile(lambda v: smelt.polygamma(n, v))):
        np.testing.assert_allclose(np.asarray(function(smelt.array(x, dtype))), want, rtol=near, atol=near * (n < 1))


def test_what_is_left_of_a_small_order() -> None:
    """Relative to Q itself, which is small with a."""
    a, x = (v.ravel() for v in np.meshgrid([1e-12, 1e-8, 1e-4, 0.01, 0.2, 0.49], [1e-30, 1e-5, 1e-3, 0.05, 0.12, 0.5]))
    want = [float(mp.gammainc(mp.mpf(p), mp.mpf(q), mp.inf, regularized=True)) for p, q in zip(a, x)]
    np.testing.assert_allclose(np.asarray(smelt.gammaincc(f64(a), f64(x))), want, rtol=1e-13)
    single = [v.astype(np.float32) for v in (a, x)]
    want = [float(mp.gammainc(*map(mp.mpf, map(float, v)), mp.inf, regularized=True)) for v in zip(*single)]
    np.testing.assert_allclose(np.asarray(smelt.gammaincc(*map(smelt.array, single))), want, rtol=3e-6)
    chosen = [i for i in range(12, len(a)) if a[i] > 1e-5]
    a, x = a[chosen], x[chosen]

    def truth(p: float, q: float) -> float:
        return float(mp.diff(lambda t: mp.gammainc(t, mp.mpf(q), mp.inf, regularized=True), mp.mpf(p)))

    slope = [truth(*v) for v in zip(a, x)]
    found = smelt.grad(lambda p: smelt.gammaincc(p, f64(x)).sum())(f64(a))
    np.testing.assert_allclose(np.asarray(found), slope, rtol=1e-9)


def test_zeros_with_signs() -> None:
    np.testing.assert_array_equal(np.asarray(smelt.digamma(f64([0.0, -0.0]))), [-INF, INF])


@pytest.mark.parametrize("name", SUBJECTS)
def test_dtypes(name: str) -> None:
    f, count = of_smelt(name), len(SUBJECTS[name][1])
    for dtype in (smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64):
        found = f(*[smelt.array([0.5], dtype)] * count) if name != "polygamma" else f(1, smelt.array([0.5], dtype))
        assert found.dtype == dtype
    assert f(*[smelt.array([1])] * count).dtype == smelt.float32
    called = name.removesuffix("[1]")
    with pytest.raises(TypeError, match=rf"smelt.{called}: (not defined for complex|operand is complex)"):
        f(*[smelt.array([1j])] * count)
    assert f(*[smelt.zeros((0, 2))] * count).shape == (0, 2)
