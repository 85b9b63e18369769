"""Distributions: against SciPy's, fixed numbers of a key, derivatives, transformations, and bad parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats as st

import smelt
from smelt.random import counts, gamma_family

R = smelt.random
COUNT = 8000
CONTINUOUS: dict[str, tuple[Any, Any]] = {
    "gamma 0.1": (lambda k: R.gamma(0.1, shape=(COUNT,), key=k), st.gamma(0.1)),
    "gamma 1": (lambda k: R.gamma(1.0, 2.0, (COUNT,), key=k), st.gamma(1.0, scale=2)),
    "gamma 40": (lambda k: R.gamma(40.0, shape=(COUNT,), dtype=smelt.float64, key=k), st.gamma(40.0)),
    "exponential": (lambda k: R.exponential(3.0, (COUNT,), key=k), st.expon(scale=3)),
    "chisquare": (lambda k: R.chisquare(3.0, (COUNT,), key=k), st.chi2(3)),
    "beta": (lambda k: R.beta(0.5, 2.0, (COUNT,), key=k), st.beta(0.5, 2)),
    "student_t": (lambda k: R.student_t(4.0, (COUNT,), key=k), st.t(4)),
    "dirichlet": (lambda k: R.dirichlet(smelt.array([1.0, 2.0, 3.0]), (COUNT,), key=k)[:, 1], st.beta(2, 4)),
}
DISCRETE: dict[str, tuple[Any, Any]] = {
    "poisson 0.3": (lambda k: R.poisson(0.3, (COUNT,), key=k), st.poisson(0.3)),
    "poisson 9": (lambda k: R.poisson(9.0, (COUNT,), key=k), st.poisson(9)),
    "poisson 10": (lambda k: R.poisson(10.0, (COUNT,), key=k), st.poisson(10)),
    "poisson 300": (lambda k: R.poisson(300.0, (COUNT,), key=k), st.poisson(300)),
    "binomial 10": (lambda k: R.binomial(10, 0.25, (COUNT,), key=k), st.binom(10, 0.25)),
    "binomial 30": (lambda k: R.binomial(30, 0.9, (COUNT,), key=k), st.binom(30, 0.9)),
    "binomial 100": (lambda k: R.binomial(100, 0.5, (COUNT,), key=k), st.binom(100, 0.5)),
    "binomial 5000": (lambda k: R.binomial(5000, 0.7, (COUNT,), key=k), st.binom(5000, 0.7)),
    "geometric": (lambda k: R.geometric(0.3, (COUNT,), key=k), st.geom(0.3)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    """Kolmogorov's and Smirnov's test, for three keys: one of them may be unlucky."""
    draw, law = CONTINUOUS[name]
    found = [st.kstest(np.asarray(draw(R.key(seed)), np.float64), law.cdf).pvalue for seed in range(3)]
    assert sorted(found)[1] > 0.02, found


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    """Pearson's test, for three keys."""
    draw, law = DISCRETE[name]
    found = []
    for seed in range(3):
        x = np.asarray(draw(R.key(seed)))
        values = np.arange(int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4)) + 1)
        seen, wanted = np.array([(x == v).sum() for v in values]), law.pmf(values) * COUNT
        often = wanted > 5
        rest = COUNT - wanted[often].sum()
        seen, wanted = np.append(seen[often], COUNT - seen[often].sum()), np.append(wanted[often], rest)
        seen, wanted = (seen, wanted) if rest > 5 else (seen[:-1], wanted[:-1] * seen[:-1].sum() / wanted[:-1].sum())
        found.append(st.chisquare(seen, wanted).pvalue)
    assert sorted(found)[1] > 0.02, found


def test_fixed_numbers() -> None:
    """Samples of a key are the same for ever, op by op and in kernels."""
    key = R.key(7)

    def draw(key: smelt.array) -> list[smelt.array]:
        return [
            R.gamma(smelt.array([0.3, 4.0]), key=key), R.exponential(1.0, (2,), key=key),
            R.chisquare(3.0, (2,), key=key),
            R.beta(2.0, 3.0, (2,), key=key), R.student_t(5.0, (2,), key=key),
            R.poisson(smelt.array([2.0, 50.0]), key=key),
            R.binomial(smelt.array([9, 90]), 0.4, key=key), R.geometric(0.2, (2,), key=key),
            R.choice(9, (3,), False, key=key), R.choice(9, (3,), key=key), R.choice(3, (4,), p=[1, 2, 3], key=key),
            R.dirichlet(smelt.array([1.0, 2.0]), key=key),
        ]  # fmt: skip

    for way in (lambda f: f, smelt.compile):
        for found, want in zip(way(draw)(key), FIXED, strict=True):
            np.testing.assert_allclose(np.asarray(found), want, rtol=2e-5)
    with smelt.stream("metal:sim"):
        for found, want in zip(smelt.compile(draw)(key), FIXED, strict=True):
            np.testing.assert_allclose(np.asarray(found), want, rtol=5e-5)


FIXED: list[list[float]] = [
    [0.26428667, 3.1020989],
    [0.046476059, 2.9151845],
    [0.99260384, 1.7231863],
    [0.43427113, 0.69133252],
    [1.0836422, -1.5512677],
    [3, 54],
    [5, 39],
    [1, 14],
    [6, 1, 2],
    [2, 3, 4],
    [1, 1, 1, 1],
    [0.13503657, 0.86496341],
]


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 6.0, 200.0])
def test_gamma_moves_with_its_parameter(a: float) -> None:
    """The number that a probability belongs to, by SciPy's inverse."""
    order = np.full(12, a)

    def draw(a: smelt.array) -> smelt.array:
        return R.gamma(a, dtype=smelt.float64, key=R.key(3))

    x, (found,) = smelt.jvp(draw, [smelt.array(order, smelt.float64)], [smelt.ones(12, smelt.float64)])
    z, h = np.asarray(x[0]), 1e-5 * a
    place = scipy.special.gammainc(a, z)
    want = (scipy.special.gammaincinv(a + h, place) - scipy.special.gammaincinv(a - h, place)) / (2 * h)
    sure = (place > 1e-10) & (place < 0.999)
    np.testing.assert_allclose(np.asarray(found)[sure], want[sure], rtol=1e-4)
    gradient = smelt.grad(lambda a: draw(a).sum())(smelt.array(order, smelt.float64))
    np.testing.assert_allclose(np.asarray(gradient), np.asarray(found), rtol=1e-9)


def test_transformations() -> None:
    keys, orders = R.split(R.key(5), 3), smelt.array([0.5, 2.0, 30.0])
    alone = [R.gamma(orders[i], shape=(2,), key=keys[i]) for i in range(3)]
    batched = smelt.vmap(lambda key, a: R.gamma(a, shape=(2,), key=key))(keys, orders)
    np.testing.assert_allclose(np.asarray(batched), np.stack(alone), rtol=1e-5)

    def slope(key: smelt.array, a: smelt.array) -> smelt.array:
        return smelt.grad(lambda a: R.gamma(a, shape=(2,), key=key).sum())(a)

    want = np.stack([np.asarray(slope(keys[i], orders[i])) for i in range(3)])
    np.testing.assert_allclose(np.asarray(smelt.vmap(slope)(keys, orders)), want, rtol=1e-4)
    counts = smelt.compile(smelt.vmap(lambda key, m: R.poisson(m, (4,), key=key)))(keys, orders)
    want = np.stack([np.asarray(R.poisson(orders[i], (4,), key=keys[i])) for i in range(3)])
    np.testing.assert_array_equal(np.asarray(counts), want)


MANY = 5000


@pytest.mark.parametrize(
    "draw",
    [
        lambda key, a: R.gamma(a, shape=(MANY,), key=key), lambda key, a: R.poisson(10 + a, (MANY,), key=key),
        lambda key, a: R.binomial(20 + smelt.floor(a), 0.5, (MANY,), key=key),
    ],
)  # fmt: skip
def test_many_samples_of_trials_that_are_refused(draw: Callable[[smelt.array, smelt.array], smelt.array]) -> None:
    """Those refused are tried again alone: a sample keeps its parameter, and batches are what their parts are."""
    keys, parameters = [R.key(5), R.key(6)], [0.5, 3.0]

    def of_each(i: int, *some: float) -> np.ndarray:
        """One program for all, whose parameters are an array."""
        return np.asarray(draw(keys[i], smelt.array(np.resize(np.float32(some), MANY))))

    alone = np.stack([of_each(i, parameters[i]) for i in range(2)])
    batched = np.asarray(smelt.vmap(draw)(smelt.stack(keys), smelt.array(parameters)))
    np.testing.assert_allclose(batched, alone, rtol=1e-4)
    compiled = smelt.compile(draw)(keys[0], smelt.array(parameters[0]))
    np.testing.assert_allclose(np.asarray(compiled), alone[0], rtol=1e-4)
    far = 1e6 if alone.dtype.kind == "f" else 290.0
    mixed = of_each(0, 0.5, far)
    few, many = mixed[::2], mixed[1::2]
    assert few.max() < 40 < many.min() and len(np.unique(many)) > 20


@pytest.mark.parametrize(
    ("draw", "share"),
    [(lambda key: R.gamma(1.0, shape=(MANY,), key=key), 9), (lambda key: R.gamma(1e-3, shape=(MANY,), key=key), 9),
     (lambda key: R.poisson(10.0, (MANY,), key=key), 36), (lambda key: R.binomial(20, 0.5, (MANY,), key=key), 36)],
)  # fmt: skip
def test_shares_of_refused_trials(
    draw: Callable[[smelt.array], smelt.array], share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is put aside for those refused is far from full, at the parameters at which most are."""
    seen = []

    def spy(keys: Any, trials: int, count: int, limit: int, trial: Any, *_: Any) -> smelt.array:
        found, taken = trial(keys, 1, count, lambda x: x)
        seen.append((limit, count, count - int(taken.sum().item())))
        return found[0]

    for module in (counts, gamma_family):
        monkeypatch.setattr(module, "first_taken", spy)
    draw(R.key(0))
    ((limit, count, refused),) = seen
    assert limit == share and refused + 3 * refused**0.5 < count * share / 100


def test_special_parameters() -> None:
    np.testing.assert_array_equal(
        np.asarray(R.binomial(smelt.array([5, 5, 0, 5000]), smelt.array([0, 1, 0.5, 1]))), [0, 5, 0, 5000]
    )
    np.testing.assert_array_equal(np.asarray(R.poisson(smelt.zeros(3))), 0)
    np.testing.assert_array_equal(np.asarray(R.geometric(smelt.ones(3))), 1)
    assert np.isnan(np.asarray(R.gamma(smelt.array([-1.0, 0.0])))).all()
    tiny = np.asarray(R.beta(1e-3, 1e-3, (50,), key=R.key(0)))
    assert ((tiny >= 0) & (tiny <= 1)).all()
    sums = np.asarray(R.dirichlet(smelt.full((4,), 1e-3), (50,), key=R.key(0))).sum(-1)
    np.testing.assert_allclose(sums, 1, rtol=1e-5)
    for dtype in (smelt.float16, smelt.bfloat16, smelt.float64):
        assert R.gamma(2.0, shape=(3,), dtype=dtype).dtype == dtype
    assert R.poisson(2.0, (3,), smelt.float32).dtype == smelt.float32
    assert R.gamma(smelt.ones((2, 1)), smelt.ones(3)).shape == (2, 3) and R.exponential().shape == ()


#: Of each distribution: arguments that are right, and for some a value that it must not be.
BOUNDED: dict[str, tuple[dict[str, float], dict[str, list[float]]]] = {
    "exponential": ({}, {"scale": [-1]}), "gamma": ({"a": 1.0}, {"a": [-1, 0], "scale": [-1]}),
    "chisquare": ({"df": 1.0}, {"df": [-1, 0]}), "beta": ({"a": 1.0, "b": 1.0}, {"a": [-1, 0], "b": [0]}),
    "student_t": ({"df": 1.0}, {"df": [0]}), "f": ({"dfnum": 1.0, "dfden": 1.0}, {"dfnum": [0], "dfden": [-1]}),
    "poisson": ({}, {"lam": [-1]}), "binomial": ({"n": 3, "p": 0.5}, {"n": [-1], "p": [-0.5, 2]}),
    "geometric": ({"p": 0.5}, {"p": [-1, 1.5]}), "lognormal": ({}, {"sigma": [-1]}), "cauchy": ({}, {"scale": [-1]}),
    "logistic": ({}, {"scale": [-1]}), "rayleigh": ({}, {"scale": [-1]}), "pareto": ({"a": 1.0}, {"a": [0]}),
    "weibull": ({"a": 1.0}, {"a": [0], "scale": [-1]}),
    "triangular": ({"left": 0.0, "mode": 1.0, "right": 2.0}, {"left": [1.5], "mode": [3, -1], "right": [0.5]}),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
def test_parameters_out_of_bounds(name: str) -> None:
    """Errors where the call has the number; NaN where an array has it, also under `compile`."""
    right, wrong = BOUNDED[name]
    draw = getattr(R, name)
    for what, values in wrong.items():
        for value in values:
            half = smelt.bfloat16.numpy
            for known in (value, [1.0, value], np.float32(value), np.array([value, 1.0]), np.array([value], half)):
                with pytest.raises(ValueError, match=rf"smelt.random.{name}: .*{what}"):
                    draw(**{**right, what: known})
            for way in (lambda f: f, smelt.compile):
                sample = way(lambda x, what=what: draw(**{**right, what: x}, dtype=smelt.float32))
                found = sample(smelt.array(float(value)))
                assert np.isnan(found.item()), (what, value)
    draw(**{**dict.fromkeys(wrong, 1.0), **right, next(iter(wrong)): smelt.nan})  # nobody says that NaN is wrong


@pytest.mark.parametrize("name", BOUNDED)
def test_special_numbers_are_as_arrays_of_them(name: str) -> None:
    right, _ = BOUNDED[name]
    draw = getattr(R, name)
    for what in right or {"scale": 0, "lam": 0, "sigma": 0}:
        for value in (smelt.nan, smelt.inf, 1e39, 1e30):
            try:
                number = draw(**{**right, what: value}, shape=(3,), dtype=smelt.float32, key=R.key(0))
            except TypeError:  # no such parameter
                continue
            except ValueError as error:  # one that must not be
                assert what in str(error)
                continue
            array = draw(**{**right, what: smelt.array(value)}, shape=(3,), dtype=smelt.float32, key=R.key(0))
            np.testing.assert_allclose(np.asarray(number), np.asarray(array), rtol=1e-6, err_msg=f"{what} {value}")
            if value != value:
                assert np.isnan(np.asarray(number)).all(), what


@pytest.mark.parametrize("bad", [smelt.nan, smelt.inf, -1.0])
@pytest.mark.parametrize(
    ("draw", "good", "mean"),
    [(lambda x, key: R.gamma(x, key=key), 3.0, 3.0),
     (lambda x, key: R.poisson(x, None, smelt.float32, key), 50.0, 50.0),
     (lambda x, key: R.binomial(x, 0.5, None, smelt.float32, key), 100.0, 50.0)],
)  # fmt: skip
def test_parameters_without_samples_beside_others(
    draw: Callable[[smelt.array, smelt.array], smelt.array], good: float, mean: float, bad: float
) -> None:
    """However many there are, the others have samples of their own."""
    found = np.asarray(draw(smelt.array([bad] * 3 * MANY + [good] * MANY), R.key(1)))
    assert np.isnan(found[: 3 * MANY]).all()
    np.testing.assert_allclose(found[3 * MANY :].mean(), mean, rtol=0.02)
    if good == 3.0:
        assert len(np.unique(found[3 * MANY :])) > 0.999 * MANY


@pytest.mark.parametrize("mean", [2.0**31, 1e12, 1e30])
def test_large_means(mean: float) -> None:
    kinds = [smelt.int64, smelt.float32, smelt.float64]
    for lam in (mean, smelt.array([mean], dtype=smelt.float64)):
        every = [R.poisson(lam, (200,), dtype, R.key(2)) for dtype in kinds]
        smelt.eval(every)
        for dtype, found in zip(kinds, every):
            want = min(mean, 2.0**63) if dtype is smelt.int64 else mean
            np.testing.assert_allclose(np.asarray(found).astype(float).mean(), want, rtol=max(1e-6, mean**-0.5))


def test_parameters_that_do_not_fit() -> None:
    for draw in (lambda x, y: R.gamma(x, y), lambda x, y: R.triangular(x, y, 4.0)):
        with pytest.raises(smelt.errors.ShapeError, match=r"\(2,\) and \(3,\)"):
            draw([1.0, 1.0], [2.0, 2.0, 2.0])


def test_weights_that_are_negative() -> None:
    for call in (
        lambda x: R.dirichlet(x), lambda x: R.choice(2, (3,), p=x), lambda x: R.multinomial(3, np.array(x)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"is -1\.0"):
            call([2.0, -1.0])


def test_choice_and_shuffle() -> None:
    x = smelt.array([[1, 2, 3], [4, 5, 6]])
    assert R.choice(x, (4, 2), axis=1).shape == (2, 4, 2)
    assert sorted(np.asarray(R.choice(x, (3,), replace=False, axis=1))[0]) == [1, 2, 3]
    often = np.bincount(np.asarray(R.choice(4, (20000,), p=[1, 2, 3, 4], key=R.key(1))), minlength=4) / 20000
    np.testing.assert_allclose(often, [0.1, 0.2, 0.3, 0.4], atol=0.015)
    for seed in range(20):
        found = np.asarray(R.choice(5, (3,), replace=False, p=[0.5, 0, 0.2, 0.2, 0.1], key=R.key(seed)))
        assert len(set(found)) == 3 and 1 not in found
    assert R.choice(5).shape == () and R.choice(smelt.zeros((0, 2)), (0,)).shape == (0, 2)
    y = smelt.arange(12).reshape(4, 3)
    R.shuffle(y, key=R.key(0))
    assert np.array_equal(np.sort(np.asarray(y)[:, 0]), [0, 3, 6, 9])
    assert np.array_equal(np.asarray(y), np.asarray(R.permutation(smelt.arange(12).reshape(4, 3), key=R.key(0))))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: R.gamma(smelt.ones(3), shape=(2,)), ValueError, r"smelt\.random\.gamma: .*cannot be broadcast|must"),
        (lambda: R.gamma(1j), TypeError, "must be real"),
        (lambda: R.gamma(1.0, dtype=smelt.int32), TypeError, r"smelt\.random\.gamma: dtype must be one of"),
        (lambda: R.poisson(1.0, dtype=smelt.complex64), TypeError, r"smelt\.random\.poisson: dtype"),
        (lambda: R.dirichlet(1.0), ValueError, r"smelt\.random\.dirichlet: alpha must have an axis"),
        (lambda: R.choice(0, (2,)), ValueError, "2 elements cannot be chosen from 0"),
        (lambda: R.choice(3, (4,), replace=False), ValueError, "4 elements cannot be chosen from 3"),
        (lambda: R.choice(3, (4,), p=[1.0]), ValueError, "p must have the shape"),
        (lambda: R.shuffle(np.ones(3)), ValueError, "x must be an array"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("mean", [0, 0.5, 4.0, 9.9999999999, 10, 50.0])
def test_poisson_of_a_number_is_that_of_an_array(mean: float) -> None:
    """Which way is taken is known beforehand then, and samples are the same."""
    key = smelt.random.key(8)
    np.testing.assert_array_equal(
        smelt.random.poisson(mean, (500, 3), key=key),
        smelt.random.poisson(smelt.full((3,), mean, smelt.float32), (500, 3), key=key),
    )
    assert smelt.random.poisson(mean, (), key=key).shape == () and smelt.random.poisson(mean, (0, 2)).size == 0


@pytest.mark.parametrize("n", [0, 1, 15, 40, 1000.5])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.7, 1.0])
def test_binomial_of_numbers_is_that_of_arrays(n: float, p: float) -> None:
    """As of Poisson's."""
    key = smelt.random.key(8)
    np.testing.assert_array_equal(
        smelt.random.binomial(n, p, (300, 3), key=key),
        smelt.random.binomial(smelt.full((3,), n, smelt.float32), smelt.array(p), (300, 3), key=key),
    )


def test_samples_of_the_gamma_family_do_not_depend_on_how_axes_lie() -> None:
    """They are computed in one line, and parameters stand where their samples do."""
    key, orders = smelt.random.key(7), smelt.array([0.4, 1.0, 5.0])
    line = np.asarray(smelt.random.gamma(smelt.tile(orders, 20), shape=(60,), key=key))
    np.testing.assert_array_equal(smelt.random.gamma(orders, shape=(4, 5, 3), key=key), line.reshape(4, 5, 3))
    vectors = np.asarray(smelt.random.dirichlet(orders, (4, 5), key=key))
    np.testing.assert_allclose(vectors, (line / line.reshape(20, 3).sum(1).repeat(3)).reshape(4, 5, 3), rtol=1e-4)
    assert smelt.random.gamma(orders, shape=(0, 3), key=key).shape == (0, 3)
