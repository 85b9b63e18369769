"""Functions that users of NumPy and SciPy reach for: values beside theirs, derivatives beside differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.special

import smelt
from smelt.ir.errors import SmeltError

RNG = np.random.default_rng(7)
INF, NAN = np.inf, np.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-20, 1e20, INF, -INF, NAN])
SMALL = 10.0 ** -RNG.uniform(0, 300, 40)
WIDE = np.concatenate([RNG.normal(size=20) * 3, SPECIAL])


def f64(x: Any) -> smelt.array:
    x = np.asarray(x)
    return smelt.array(x, {"f": smelt.float64, "c": smelt.complex128}.get(x.dtype.kind))


def agree(found: Any, want: Any, rtol: float = 1e-13, atol: float = 0) -> None:
    if isinstance(want, (list, tuple)):
        assert len(found) == len(want)
        for a, b in zip(found, want):
            agree(a, b, rtol, atol)
        return
    found = np.asarray(found)
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(found, want, rtol=rtol, atol=atol)



def _betaln(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """SciPy's own is right to nine digits where one is large."""
    with mp.workdps(50):
        each = [(mp.mpf(float(x)), mp.mpf(float(y))) for x, y in zip(a, b)]
        return np.array([float(mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)) for x, y in each])


PAIRS = [v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL)]
ELEMENTWISE: dict[str, tuple[Callable[..., Any], list[np.ndarray], float]] = {
    "exp2": (np.exp2, [WIDE], 1e-14),
    "cbrt": (np.cbrt, [WIDE], 3e-16),
    "sinc": (np.sinc, [np.where(np.abs(WIDE) < 1e9, WIDE, 7.25)], 1e-14),
    "angle": (np.angle, [WIDE], 1e-15),
    "logaddexp2": (np.logaddexp2, PAIRS, 1e-14),
    "heaviside": (np.heaviside, PAIRS, 0),
    "fmax": (np.fmax, PAIRS, 0),
    "fmin": (np.fmin, PAIRS, 0),
    "fmod": (np.fmod, PAIRS, 0),
    "modf": (np.modf, [WIDE], 0),
    "xlogy": (scipy.special.xlogy, PAIRS, 1e-14),
    "xlog1py": (scipy.special.xlog1py, PAIRS, 1e-14),
    "entr": (scipy.special.entr, [WIDE], 1e-14),
    "rel_entr": (scipy.special.rel_entr, PAIRS, 1e-14),
    "kl_div": (scipy.special.kl_div, [np.abs(v[np.isfinite(PAIRS[0]) & np.isfinite(PAIRS[1])]) for v in PAIRS], 1e-14),
    "erfcx": (scipy.special.erfcx, [np.concatenate([WIDE, [-26.0, -5.5, 40.0]])], 1e-13),
    "erfcinv": (scipy.special.erfcinv, [np.concatenate([RNG.uniform(0, 2, 40), SMALL, SPECIAL])], 1e-13),
    "ndtr": (scipy.special.ndtr, [WIDE], 1e-13),
    "log_ndtr": (scipy.special.log_ndtr, [np.concatenate([WIDE, [-40.0, -1e4, 8.0]])], 1e-13),
    "ndtri": (scipy.special.ndtri, [np.concatenate([RNG.uniform(0, 1, 40), SMALL])], 1e-12),
    "betaln": (_betaln, [10.0 ** RNG.uniform(-3, 8, 60), 10.0 ** RNG.uniform(-3, 8, 60)], 1e-12),
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    truth, operands, rtol = ELEMENTWISE[name]
    with np.errstate(all="ignore"):
        want = truth(*operands)
    f = getattr(smelt, name)
    agree(f(*map(f64, operands)), want, rtol, 1e-15 if name in ("sinc", "ndtri", "erfcinv") else 0)
    singles = [v.astype(np.float32) for v in operands]
    with np.errstate(all="ignore"):
        want = truth(*[v.astype(np.float64) for v in singles])
        want = [v.astype(np.float32) for v in want] if isinstance(want, tuple) else want.astype(np.float32)
    found = smelt.compile(f)(*map(smelt.array, singles))
    assert (found[0] if isinstance(found, tuple) else found).dtype == smelt.float32
    agree(found, want, 2e-6 if name != "betaln" else 1e-5, {"betaln": 1e-6, "sinc": 1e-16}.get(name, 1e-38))
    for part in f(*[smelt.zeros((0, 2), smelt.float16)] * len(operands)), f(*[smelt.array(1)] * len(operands)):
        for one in part if isinstance(part, tuple) else [part]:
            assert one.dtype == (smelt.float16 if one.ndim else smelt.int32 if name in ("fmax", "fmin", "fmod")
                                 else smelt.float32)  # fmt: skip


SMOOTH = np.array([0.3, 0.7, 0.11, 0.95, 0.49])
POINTS = smelt.array([[0.1, 0.2]] * 3 + [[1.0, 1.0]] * 2)
DERIVATIVES: dict[str, Callable[..., Any]] = {
    **{n: getattr(smelt, n) for n in ("exp2", "cbrt", "sinc", "erfcx", "erfcinv", "ndtr", "log_ndtr", "ndtri", "entr")},
    "sinc around 0": lambda x: smelt.sinc(x - 0.49),
    "erfcinv of little": lambda x: smelt.erfcinv(x * 1e-30) * 10,
    "log_ndtr far": lambda x: smelt.log_ndtr(-8 * x),
    **{n: lambda x, n=n: getattr(smelt, n)(x, 1.3 - x)
       for n in ("logaddexp2", "fmax", "fmin", "fmod", "xlogy", "xlog1py", "rel_entr", "kl_div", "betaln")},
    "modf": lambda x: smelt.modf(5 * x)[0],
    "angle": lambda x: smelt.angle(x + 1j * (1 - 3 * x)),
    "multigammaln": lambda x: smelt.multigammaln(x + 2, 3),
    "polyval": lambda x: smelt.polyval(x, x[:, None]).sum(1),
    "vander": lambda x: smelt.vander(x, 4).sum(1),
    "rot90": lambda x: smelt.rot90(smelt.outer(x, x * x), 3)[1],
    "fill_diagonal": lambda x: smelt.fill_diagonal(smelt.outer(x, x), x * x).sum(1),
    "insert": lambda x: smelt.insert(x, [1, 4], x[:2] * x[1:3])[:5],
    "unwrap": lambda x: smelt.unwrap(x * 20),
    "correlate": lambda x: smelt.correlate(x, x * x, "same"),
    "cumulative_trapezoid": lambda x: smelt.cumulative_trapezoid(x * x, x * 3 + 1, initial=0),
    "toeplitz": lambda x: (smelt.linalg.toeplitz(x, x * x) @ x),
    "block_diag": lambda x: smelt.linalg.block_diag(x, x * x).sum(0)[:5],
    "cond": lambda x: smelt.linalg.cond(smelt.outer(x, x) + smelt.diag(x)) * x,
    "tensorsolve": lambda x: smelt.linalg.tensorsolve(smelt.diag(x + 1) + 0.1, x),
    "histogramdd": lambda x: smelt.histogramdd(POINTS, 2, weights=x)[0][0] * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    """Reverse, forward and second ones against differences."""
    f, x = DERIVATIVES[name], f64(SMOOTH)
    weights = f64(np.array([1.0, -0.5, 0.25, 2.0, 0.75]))

    def loss(x: smelt.array) -> smelt.array:
        return (f(x) * weights[: f(x).size]).sum()

    gradient = smelt.grad(loss)
    h = 1e-5

    def difference(g: Callable[..., Any]) -> np.ndarray:
        columns = []
        for i in range(5):
            step = np.zeros(5)
            step[i] = h
            columns.append((np.asarray(g(f64(SMOOTH + step))) - np.asarray(g(f64(SMOOTH - step)))) / (2 * h))
        return np.stack(columns, -1)

    found = np.asarray(gradient(x))
    scale = np.abs(found).max() + 1
    np.testing.assert_allclose(found, difference(loss), rtol=1e-6, atol=1e-8 * scale)
    direction = f64(np.array([0.5, 1.0, -1.0, 0.3, 0.2]))
    _, (forward,) = smelt.jvp(loss, [x], [direction])
    np.testing.assert_allclose(float(forward.item()), found @ np.asarray(direction), rtol=1e-10, atol=1e-12 * scale)
    twice = np.asarray(smelt.grad(lambda x: (gradient(x) * direction).sum())(x))
    want = np.asarray(direction) @ difference(gradient)
    np.testing.assert_allclose(twice, want, rtol=1e-5, atol=1e-6 * (np.abs(want).max() + 1))


def test_derivatives_at_edges() -> None:
    slope = smelt.grad(lambda x, y: smelt.xlogy(x, y).sum(), argnums=(0, 1))(f64([0.0, 0.0, 2.0]), f64([3.0, 0.0, 4.0]))
    agree(slope, [np.array([math.log(3), 0, math.log(4)]), np.array([0, 0, 0.5])])
    agree(smelt.grad(lambda x: smelt.cbrt(x).sum())(f64([0.0, -0.0, -8.0])), [INF, INF, 1 / 12])
    third = smelt.grad(smelt.grad(smelt.grad(smelt.sinc)))
    assert abs(third(f64(0.0)).item()) < 1e-12
    agree(smelt.grad(smelt.grad(smelt.sinc))(f64(0.0)), -(np.pi**2) / 3, 1e-12)


def numpys(name: str, *args: Any, **kw: Any) -> tuple[str, tuple[Any, ...], dict[str, Any], Any]:
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return name, args, kw, found(*args, **kw)


A, M, V = np.arange(24.0).reshape(2, 3, 4), RNG.normal(size=(4, 4)), RNG.normal(size=7)
I = np.array([5, 0, -12, 18, 7, 120, -1])
CASES = [
    *[numpys("rot90", A, k, axes) for k in (-1, 0, 1, 2, 3, 7) for axes in ((0, 1), (2, 0), (-1, 1))],
    numpys("flipud", A), numpys("fliplr", A), numpys("append", A, 5.0), numpys("append", A, A[:, :1], axis=1),
    numpys("delete", V, 3), numpys("delete", V, [0, -1, 3]), numpys("delete", A, slice(0, 3, 2), axis=1),
    numpys("delete", A, 1), numpys("delete", V, V > 0), numpys("delete", V, []), numpys("delete", A, -1, axis=-1),
    numpys("insert", V, 2, 9.0), numpys("insert", V, [1, 1, 6], [1.0, 2.0, 3.0]), numpys("insert", V, 7, [1.0, 2.0]),
    numpys("insert", A, 1, 5.0, axis=1), numpys("insert", A, [0, 2], A[:, :1], axis=1), numpys("insert", A, 0, 3.0),
    numpys("insert", M, 1, [1.0, 2.0, 3.0, 4.0], axis=1), numpys("insert", M, [1], [[1], [2], [3], [4]], axis=1),
    numpys("insert", V, slice(0, 4, 2), 8.0), numpys("insert", M, -1, M[:2], axis=0),
    numpys("resize", V, (2, 5)), numpys("resize", V, (3,)), numpys("resize", np.zeros(0), (2,)),
    numpys("block", [[M, np.ones((4, 2))], [np.zeros((1, 6))]]), numpys("block", [V, 1.0]), numpys("block", M),
    numpys("ediff1d", I), numpys("ediff1d", V, to_end=[9.0, 8.0], to_begin=1.0), numpys("ediff1d", V[:1]),
    numpys("indices", (2, 3)), numpys("indices", (2, 0)), numpys("indices", (2, 3), sparse=True),
    numpys("tril_indices", 4), numpys("tril_indices", 4, -1, 3), numpys("triu_indices", 3, 1, 5),
    numpys("triu_indices", 0), numpys("diag_indices", 3, 3), numpys("bitwise_count", I),
    numpys("bitwise_count", np.array([0, 255, 77], np.uint8)), numpys("bitwise_count", np.array([-(2**63), 2**62, -3])),
    numpys("gcd", I, I[::-1].copy()), numpys("lcm", I, np.array(4)), numpys("gcd", I[:, None], np.array([0, 6])),
    numpys("gcd", np.array([255, 18], np.uint8), np.array([34, 0], np.uint8)),
    numpys("vander", V), numpys("vander", I[:4], 3, increasing=True), numpys("vander", V, 0),
    numpys("polyval", V, M), numpys("polyval", [2, 3], I), numpys("polyval", np.zeros(0), V),
    *[numpys("correlate", a, v, mode) for mode in ("valid", "same", "full")
      for a, v in ((V, V[:3]), (V[:3], V), (V[:2], V), (V, V[:4]), (V + 1j * V**2, V[:3] * 1j), (V[:4] * 1j, V + 1j))],
    numpys("union1d", I, [5, 6]), numpys("intersect1d", I, [5, 7, 6, 5]), numpys("setdiff1d", I, [5, 0]),
    numpys("setxor1d", I, [5, 6, 6]), numpys("intersect1d", [3, 1, 3, 2], [2, 3, 5], return_indices=True),
    numpys("setdiff1d", np.zeros(0), V), numpys("intersect1d", V, np.zeros(0)),
    numpys("unwrap", np.cumsum(V * 3)), numpys("unwrap", A * 2.5, axis=0), numpys("unwrap", I % 7, period=7, discont=4),
    numpys("angle", M + 1j * M.T, deg=True), numpys("exp2", M + 1j * M.T),
    numpys("histogram2d", V, V[::-1].copy(), 3), numpys("histogram2d", V, V**2, [2, [0.0, 1.0, 9.0]], density=True),
    numpys("histogram2d", V, V, [0.0, 0.5, 2.0]), numpys("histogramdd", M[:, :3], 2, weights=V[:4]),
    numpys("linalg.cond", M), numpys("linalg.cond", M, 1), numpys("linalg.cond", M, "fro"),
    numpys("linalg.cond", M, -2), numpys("linalg.cond", np.ones((2, 2))[None] * 0), numpys("linalg.cond", M, np.inf),
    numpys("linalg.tensorinv", RNG.normal(size=(4, 2, 8)), ind=2), numpys("linalg.tensorinv", M, ind=1),
    numpys("linalg.tensorsolve", RNG.normal(size=(2, 3, 6)), RNG.normal(size=(2, 3))),
    numpys("linalg.tensorsolve", RNG.normal(size=(4, 2, 2)), RNG.normal(size=4)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_beside_numpy(case: tuple[str, tuple[Any, ...], dict[str, Any], Any]) -> None:
    name, args, kw, want = case
    f: Any = smelt
    for part in name.split("."):
        f = getattr(f, part)
    convert = [f64(a) if isinstance(a, np.ndarray) and a.dtype != bool else a for a in args]
    if name == "block" and isinstance(args[0], list):
        convert = [[[f64(b) for b in row] if isinstance(row, list) else f64(row) for row in args[0]]]
    if name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        convert = [f64(a) for a in args]
    if name in ("histogramdd",):
        want = (want[0], list(want[1]))
    found = f(*convert, **{k: f64(v) if isinstance(v, np.ndarray) else v for k, v in kw.items()})
    agree(found, want, 1e-11, 1e-12)


def test_fill_diagonal() -> None:
    for shape, val, wrap in (((3, 3), 5.0, False), ((7, 3), [1.0, 2.0], True), ((7, 3), [1.0, 2.0], False),
                             ((2, 5), [1.0, 2.0, 3.0], False), ((3, 3, 3), [7.0, 8.0], False)):  # fmt: skip
        want = RNG.normal(size=shape)
        found = smelt.fill_diagonal(f64(want), val, wrap)
        np.fill_diagonal(want, val, wrap)
        agree(found, want)


def test_beside_scipy() -> None:
    agree(smelt.cumulative_trapezoid(f64(A), axis=1), scipy.integrate.cumulative_trapezoid(A, axis=1))
    agree(smelt.cumulative_trapezoid(f64(V), f64(np.sort(V)), initial=0),
          scipy.integrate.cumulative_trapezoid(V, np.sort(V), initial=0))  # fmt: skip
    for at, d in ([2.5, 7.0], 4), ([1100.0, 1e4], 2000):
        agree(smelt.multigammaln(f64(at), d), [scipy.special.multigammaln(v, d) for v in at])
    agree(smelt.linalg.toeplitz(f64(V), f64(V[:3] * 2)), scipy.linalg.toeplitz(V, V[:3] * 2))
    agree(smelt.linalg.toeplitz(f64(V * 1j)), scipy.linalg.toeplitz(V * 1j))
    agree(smelt.linalg.block_diag(f64(M), f64(V), f64(2.0)), scipy.linalg.block_diag(M, V, 2.0))
    positive = M @ M.T + np.eye(4)
    factor = smelt.linalg.cho_factor(f64(positive))
    agree(smelt.linalg.cho_solve(factor, f64(V[:4])), np.linalg.solve(positive, V[:4]), 1e-11)


def test_powers_of_two_of_complex_numbers_that_are_not_finite() -> None:
    parts = [-np.inf, -1.5, 0.0, np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in (-0.0, 1.0, np.inf, np.nan)])
    with np.errstate(invalid="ignore"):
        want = np.exp([complex(a * np.log(2), b * np.log(2)) for a, b in zip(z.real, z.imag)])
    np.testing.assert_allclose(np.asarray(smelt.exp2(smelt.array(z))), want, rtol=1e-6)


def test_batches_and_kernels() -> None:
    """vmap and the simulated GPU give what the function itself gives."""
    x = smelt.array(SMOOTH.astype(np.float32))
    for name in ("cbrt", "exp2", "sinc", "erfcinv", "ndtri", "erfcx", "log_ndtr", "entr"):
        f = getattr(smelt, name)
        want = np.asarray(f(x))
        np.testing.assert_allclose(np.asarray(smelt.vmap(f)(x)), want, rtol=2e-6)
        with smelt.stream("metal:sim"):
            np.testing.assert_allclose(np.asarray(smelt.compile(f)(x)), want, rtol=1e-5)
    rows = smelt.array([[12, 18, 7], [8, 27, 21]])
    np.testing.assert_array_equal(np.asarray(smelt.vmap(smelt.gcd)(rows[0], rows[1])), [4, 9, 7])
    np.testing.assert_array_equal(np.asarray(smelt.compile(smelt.lcm)(rows[0], rows[1])), [24, 54, 21])


@pytest.mark.parametrize(
    "call",
    [
        lambda: smelt.delete(smelt.arange(3), 3), lambda: smelt.insert(smelt.arange(3), 4, 1),
        lambda: smelt.insert(smelt.arange(3), [0, 1], [1, 2, 3]), lambda: smelt.rot90(smelt.arange(3)),
        lambda: smelt.rot90(smelt.zeros((2, 2)), 1, (0, 0)), lambda: smelt.gcd(1.5, smelt.array([1.5])),
        lambda: smelt.bitwise_count(smelt.array([1.5])), lambda: smelt.block([[smelt.arange(3)], smelt.arange(3)]),
        lambda: smelt.block([]), lambda: smelt.tril_indices(-1), lambda: smelt.polyval(1.0, 2.0),
        lambda: smelt.linalg.tensorsolve(smelt.zeros((2, 3)), smelt.zeros(2)),
        lambda: smelt.compile(lambda x: smelt.setdiff1d(x, x))(smelt.arange(3)),
        lambda: smelt.compile(lambda x: smelt.delete(x, x))(smelt.arange(3)),
        lambda: smelt.linalg.toeplitz(smelt.zeros((2, 2))), lambda: smelt.linalg.block_diag(),
        lambda: smelt.histogram2d(smelt.zeros(3), smelt.zeros(4)), lambda: smelt.unwrap(1.0),
        lambda: smelt.roots(smelt.zeros((2, 2))), lambda: smelt.polyfit(smelt.zeros(3), smelt.zeros(4), 1),
        lambda: smelt.polyfit(smelt.zeros(3), smelt.zeros(3), -1), lambda: smelt.poly(smelt.zeros((2, 3))),
        lambda: smelt.polyint(smelt.zeros(3), 2, smelt.zeros(3)), lambda: smelt.polyint(smelt.zeros(3), 2**31),
        lambda: smelt.polyder(smelt.zeros(3), -1),
        lambda: smelt.y0(smelt.array(1j)),
        lambda: smelt.fmod(smelt.array(1j), 1.0), lambda: smelt.multigammaln(smelt.array([1.0]), 0),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any]) -> None:
    with pytest.raises(SmeltError, match=r"test_familiar_names\.py"):
        call()


def _moments(name: str, *args: Any, **kw: Any) -> np.ndarray:
    return np.asarray(getattr(smelt.random, name)(*args, key=smelt.random.key(3), **kw), np.float64)


@pytest.mark.parametrize(
    ("name", "args", "law"),
    [
        ("lognormal", (0.3, 0.5), ("lognorm", (0.5, 0, math.exp(0.3)))), ("cauchy", (1.0, 2.0), ("cauchy", (1, 2))),
        ("logistic", (1.0, 2.0), ("logistic", (1, 2))), ("rayleigh", (2.0,), ("rayleigh", (0, 2))),
        ("weibull", (1.7, 2.0), ("weibull_min", (1.7, 0, 2))), ("pareto", (2.5,), ("pareto", (2.5,))),
        ("maxwell", (), ("maxwell", ())), ("triangular", (-1.0, 0.5, 2.0), ("triang", (0.5, -1, 3))),
        ("f", (3.0, 7.0), ("f", (3, 7))),
    ],
)  # fmt: skip
def test_distributions(name: str, args: tuple[float, ...], law: tuple[str, tuple[float, ...]]) -> None:
    """By Kolmogorov's and Smirnov's distance, of which 1.95 / √n is exceeded once in a thousand times."""
    import scipy.stats

    samples = np.sort(_moments(name, *args, shape=(4000,)))
    below = getattr(scipy.stats, law[0])(*law[1]).cdf(samples)
    distance = np.abs(below - (np.arange(4000) + 0.5) / 4000).max()
    assert distance < 1.95 / math.sqrt(4000)


def test_discrete_and_orthogonal() -> None:
    signs = _moments("rademacher", (2000,))
    assert set(signs) == {-1, 1} and abs(signs.mean()) < 0.08
    counts = _moments("multinomial", 100, smelt.array([0.2, 0.3, 0.5]), (200,))
    assert counts.shape == (200, 3) and (counts.sum(1) == 100).all()
    np.testing.assert_allclose(counts.mean(0), [20, 30, 50], atol=1.2)
    for dtype in (smelt.float64, smelt.complex64):
        q = np.asarray(smelt.random.orthogonal(4, (3,), dtype, smelt.random.key(1)))
        np.testing.assert_allclose(q @ q.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-5)
    slope = smelt.grad(lambda s: smelt.random.weibull(1.5, s, (5,), key=smelt.random.key(0)).sum())(smelt.array(2.0))
    np.testing.assert_allclose(slope.item(), _moments("weibull", 1.5, 1.0, (5,)).sum() * 0 + np.asarray(
        smelt.random.weibull(1.5, 1.0, (5,), key=smelt.random.key(0))).sum(), rtol=1e-5)  # fmt: skip


def test_polynomials() -> None:
    p, q = RNG.normal(size=5), RNG.normal(size=3)
    for m in (0, 1, 3, 5, 7):
        agree(smelt.polyder(f64(p), m), np.polyder(p, m))
        agree(smelt.polyint(f64(p), m, f64(np.arange(m)) if m else 0), np.polyint(p, m, np.arange(m) if m else None))
    agree(smelt.polymul(f64(p), f64(q)), np.polymul(p, q))
    agree(smelt.polymul(smelt.array([1, 2]), smelt.array([3])), np.array([3, 6]))
    for roots in (p, q, p[:1], p + 1j):
        agree(smelt.poly(f64(roots)), np.poly(roots), 1e-12)
    agree(smelt.real(smelt.poly(f64(np.outer(q, q) + np.eye(3)))), np.poly(np.outer(q, q) + np.eye(3)), 1e-12)
    series = [p, np.concatenate([q, [0.0, 0.0]]), q + 1j * p[:3], q[:2]]
    for s in series:
        found = np.sort_complex(np.asarray(smelt.roots(f64(s))))
        np.testing.assert_allclose(found, np.sort_complex(np.roots(s)), rtol=1e-12)
    assert smelt.roots(f64([2.0])).shape == (0,)
    x, y, w = np.linspace(-3, 40, 30), RNG.normal(size=(30, 2)), RNG.uniform(0.1, 2, 30)
    agree(smelt.polyfit(f64(x), f64(y), 4), np.polyfit(x, y, 4), 1e-9)
    agree(smelt.polyfit(f64(x), f64(y[:, 0]), 3, f64(w)), np.polyfit(x, y[:, 0], 3, w=w), 1e-9)

    def residue(y: smelt.array) -> smelt.array:
        return (smelt.polyval(smelt.polyfit(f64(x), y, 2), f64(x)) ** 2).sum()

    slope, at, h = np.asarray(smelt.grad(residue)(f64(y[:, 0]))), y[:, 0], 1e-5
    for i in (0, 13):
        step = h * np.eye(30)[i]
        want = (residue(f64(at + step)).item() - residue(f64(at - step)).item()) / (2 * h)
        np.testing.assert_allclose(slope[i], want, rtol=1e-6)
    moved = smelt.jvp(lambda s: smelt.roots(s), [f64(p)], [f64(np.eye(5)[2])])[1][0]
    found = np.asarray(smelt.roots(f64(p)))
    np.testing.assert_allclose(np.asarray(moved), -(found**2) / np.polyval(np.polyder(p), found), rtol=1e-9)
