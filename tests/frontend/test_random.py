"""Random numbers: determinism, state, distributions (fixed seeds, so the tests are too), arguments."""

import math
import threading
from functools import partial

import numpy as np
import pytest
import scipy.stats

import smelt
from smelt.ir.errors import DTypeError, ShapeError, TraceError
from smelt.ir.settings import override
from smelt.random.keys import _next_key, _split_on_host, _split_words

from .checks import exact

N = 50_000
KEY = smelt.random.key(12)
FLOATS = [smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64]
random = smelt.random


def values(x):
    return np.array(x).astype(np.float64)


def follows(x, distribution, tolerance=1.63):
    """Kolmogorov and Smirnov's test: the largest gap between distribution functions, at level 1 %."""
    x = values(x).ravel()
    gap = scipy.stats.kstest(x, distribution).statistic
    assert gap * math.sqrt(x.size) < tolerance


class TestKeys:
    def test_key(self):
        assert random.key(2**40 + 5).tolist() == [2**8, 5] and random.key(0).dtype is smelt.uint32
        with pytest.raises(ValueError, match=r"2\*\*64"):
            random.key(-1)

    def test_split(self):
        keys = np.array(random.split(KEY, 1000))
        assert keys.shape == (1000, 2) and len({tuple(k) for k in keys.tolist()}) == 1000
        assert random.split(KEY).shape == (2, 2)
        assert random.split(KEY, 0).shape == (0, 2)

    @pytest.mark.parametrize("bad", [smelt.array([1, 2]), smelt.array([1], dtype=smelt.uint32), 7], ids=str)
    def test_errors(self, bad):
        with pytest.raises(DTypeError, match=r"smelt\.random\.normal: a key is.*test_random\.py"):
            random.normal((2,), key=bad)

    def test_host_split_is_the_op(self):
        for seed in (0, 1, 2**32 - 1, 2**63 + 12345):
            key = random.key(seed)
            assert np.array(random.split(key)).tolist() == _split_words(*key.tolist())
            assert _split_on_host(np.asarray(key)) == _split_words(*key.tolist())


SAMPLERS = {
    "bits": lambda key: random.bits((3, 5), key=key),
    "uniform": lambda key: random.uniform(-1, 3, (3, 5), key=key),
    "normal": lambda key: random.normal((3, 5), loc=1, scale=2, key=key),
    "complex": lambda key: random.normal((3, 5), smelt.complex64, key=key),
    "randint": lambda key: random.randint(-5, 5, (3, 5), key=key),
    "bernoulli": lambda key: random.bernoulli(0.3, (3, 5), key=key),
    "truncated_normal": lambda key: random.truncated_normal(-1, 2, (3, 5), key=key),
    "gumbel": lambda key: random.gumbel((3, 5), key=key),
    "laplace": lambda key: random.laplace((3, 5), key=key),
    "categorical": lambda key: random.categorical(exact(np.eye(4, dtype=np.float32)), num_samples=5, key=key),
    "permutation": lambda key: random.permutation(17, key=key),
}


class TestDeterminism:
    @pytest.mark.parametrize("name", SAMPLERS)
    def test_same_key_same_numbers(self, name):
        first = np.array(SAMPLERS[name](KEY))
        np.testing.assert_array_equal(first, np.array(SAMPLERS[name](random.key(12))))
        assert not np.array_equal(first, np.array(SAMPLERS[name](random.key(13))))

    @pytest.mark.parametrize("name", SAMPLERS)
    def test_same_numbers_everywhere(self, name):
        want = values_or_complex(SAMPLERS[name](KEY))
        with override(device="reference"):
            np.testing.assert_allclose(values_or_complex(SAMPLERS[name](KEY)), want, rtol=1e-5, atol=1e-6)
        with override(small_work=0):
            np.testing.assert_allclose(values_or_complex(SAMPLERS[name](KEY)), want, rtol=1e-5, atol=1e-6)
        got = smelt.compile(SAMPLERS[name])(KEY)
        np.testing.assert_allclose(values_or_complex(got), want, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("shape", [(40_000,), (40_001,), (200, 150), (1, 2, 3, 7001), (3, 7000)], ids=str)
    def test_kernels_that_use_both_words_of_a_block(self, shape):
        """Large arrays are made in two halves beside each other, where these are parts along an axis."""
        x = exact(np.arange(math.prod(shape), dtype=np.float32).reshape(shape))

        def draw(key, x):
            kept = random.bernoulli(0.7, shape, key)
            moved = random.uniform(shape=shape, key=key) + x[..., :1]
            return smelt.where(kept, x * 2, 0), random.bits(shape, 4, key), moved

        with override(tier="ops"):
            want = [np.array(v) for v in draw(KEY, x)]
        with override(tier="program"):
            for found, wanted in zip(smelt.compile(draw)(KEY, x), want, strict=True):
                np.testing.assert_array_equal(np.array(found), wanted)

    def test_evaluation_order_does_not_matter(self):
        random.seed(5)
        a, b = random.normal((4,)), random.normal((4,))
        b.tolist()
        first = (a.tolist(), b.tolist())
        random.seed(5)
        a = random.normal((4,)).tolist()
        assert first == (a, random.normal((4,)).tolist())

    def test_stable_values(self):
        """These numbers are promised: a seed reproduces a run of last year, and of MLX (test_random_numbers)."""
        random.seed(0)
        assert random.bits((3,)).tolist() == [3746991216, 476962823, 1190051861]
        assert random.state[0].tolist() == [4146024105, 967050713]

    def test_vmap_of_keys(self):
        keys = random.split(KEY, 3)
        got = smelt.vmap(lambda k: random.normal((4,), key=k))(keys)
        rows = [random.normal((4,), key=exact(k)) for k in np.array(keys)]
        np.testing.assert_allclose(np.array(got), np.stack([np.array(r) for r in rows]), rtol=1e-6)


def values_or_complex(x):
    host = np.array(x)
    return host if host.dtype.kind == "c" else host.astype(np.float64)


class TestState:
    def test_seed(self):
        random.seed(3)
        a = [random.uniform().item() for _ in range(4)]
        random.seed(3)
        assert a == [random.uniform().item() for _ in range(4)] and len(set(a)) == 4

    def test_compile_with_captured_state(self):
        @partial(smelt.compile, inputs=random.state, outputs=random.state)
        def draw():
            return random.uniform(shape=(2,)), random.normal((2,))

        random.seed(1)
        compiled = [[x.tolist() for x in draw()] for _ in range(3)]
        random.seed(1)
        plain = [[random.uniform(shape=(2,)).tolist(), random.normal((2,)).tolist()] for _ in range(3)]
        np.testing.assert_allclose(compiled, plain, rtol=1e-5)
        random.seed(1)
        np.testing.assert_allclose([x.tolist() for x in draw()], plain[0], rtol=1e-5)

    def test_compile_without_capture_repeats(self):
        draw = smelt.compile(lambda: random.uniform(shape=(2,)))
        first = draw().tolist()
        assert draw().tolist() == first
        random.uniform().item()  # the global state is no tracer

    def test_state_can_be_replaced(self):
        random.state[0] = random.split(KEY, 1).reshape(2)  # lazy: evaluated by the first draw
        a = random.uniform().item()
        assert a != random.uniform().item()
        random.seed(0)

    def test_threads_draw_different_keys(self):
        random.seed(0)
        found, workers = [], []

        def work():
            found.extend([tuple(_next_key().tolist()) for _ in range(200)])

        for _ in range(4):
            workers.append(threading.Thread(target=work))
            workers[-1].start()
        for w in workers:
            w.join()
        assert len(set(found)) == 800

    def test_inside_grad(self):
        random.seed(2)
        x = smelt.array([1.0, 2.0])
        g = smelt.grad(lambda v: smelt.sum(smelt.multiply(v, random.uniform(shape=(2,)))))(x)
        random.seed(2)
        assert g.tolist() == random.uniform(shape=(2,)).tolist()


class TestUniform:
    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_distribution(self, dtype):
        for low, high in ((0, 1), (-3, 5), (2, 2.5)):
            x = random.uniform(low, high, (N,), dtype, KEY)
            assert x.dtype is dtype
            v = values(x)
            assert v.min() >= low and (v.max() < high or dtype.size == 2)
            assert v.mean() == pytest.approx((low + high) / 2, abs=0.015 * (high - low) + 0.01 * (dtype.size == 2))
            if dtype.size > 2:
                follows(x, scipy.stats.uniform(low, high - low).cdf)
                assert len(np.unique(v)) > 0.95 * N

    def test_halves_use_their_precision(self):
        assert len(np.unique(values(random.uniform(shape=(N,), dtype=smelt.float16, key=KEY)))) > 3000
        assert len(np.unique(values(random.uniform(shape=(N,), dtype=smelt.bfloat16, key=KEY)))) > 700

    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_ends(self, dtype):
        assert values(random.uniform(shape=(N,), dtype=dtype, key=KEY)).max() < 1
        # Intervals of one or two numbers of the dtype: rounding may reach `high`, as in MLX.
        eps = smelt.finfo(dtype).eps
        for low, high in ((1, 1 + eps), (-1 - eps, -1), (-1, -1 + eps / 2), (-eps, 0), (4, 4 + 8 * eps)):
            x = values(random.uniform(low, high, (2000,), dtype, KEY))
            assert x.min() >= low and x.max() <= high

    def test_arrays(self):
        low, high = smelt.array([0.0, 10.0]), smelt.array([[1.0], [20.0]])
        x = values(random.uniform(low, high, (2, 2), key=KEY))
        assert (x >= [[0, 1], [0, 10]]).all() and (x < [[1, 10.0001], [20, 20]]).all()
        assert random.uniform(3, 3, (2,), key=KEY).tolist() == [3, 3]
        falling = values(random.uniform(1, 0, (N,), key=KEY))
        assert falling.min() > 0 and falling.max() <= 1
        with pytest.raises(ShapeError, match=r"smelt\.random\.uniform.*test_random\.py"):
            random.uniform(low, 1, (3,))
        with pytest.raises(DTypeError, match="int32"):
            random.uniform(dtype=smelt.int32)

    def test_derivative_in_the_bounds(self):
        g = smelt.grad(lambda h: random.uniform(0, h, (), key=KEY))(smelt.array(2.0))
        assert g.item() == pytest.approx(random.uniform(key=KEY).item())


class TestNormal:
    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_distribution(self, dtype):
        x = random.normal((N,), dtype, key=KEY)
        assert x.dtype is dtype and np.isfinite(values(x)).all()
        v = values(x)
        assert v.mean() == pytest.approx(0, abs=0.015) and v.std() == pytest.approx(1, abs=0.015)
        assert scipy.stats.kurtosis(v) == pytest.approx(0, abs=0.08)
        if dtype.size > 2:
            follows(x, scipy.stats.norm.cdf)

    def test_tails(self):
        v = np.abs(values(random.normal((10**6,), key=KEY)))
        for z in (3, 4):
            assert (v > z).mean() == pytest.approx(2 * scipy.stats.norm.sf(z), rel=0.25)
        assert v.max() > 4.5

    def test_loc_and_scale(self):
        x = random.normal((N, 2), loc=smelt.array([0.0, 5.0]), scale=2, key=KEY)
        np.testing.assert_allclose(values(x).mean(0), [0, 5], atol=0.04)
        np.testing.assert_allclose(values(x).std(0), [2, 2], atol=0.04)
        assert random.normal((), loc=smelt.array([1.0, 2.0])).shape == (2,)

    def test_complex(self):
        z = np.array(random.normal((N,), smelt.complex64, key=KEY))
        assert z.dtype == np.complex64
        follows(exact(z.real), scipy.stats.norm(scale=math.sqrt(0.5)).cdf)
        assert np.corrcoef(z.real, z.imag)[0, 1] == pytest.approx(0, abs=0.015)

    def test_neighbours_are_independent(self):
        v = values(random.normal((N,), key=KEY))
        for lag in (1, 2, 64):
            assert np.corrcoef(v[:-lag], v[lag:])[0, 1] == pytest.approx(0, abs=0.015)

    def test_multivariate(self):
        cov = np.array([[2.0, 0.7], [0.7, 1.0]], np.float32)
        x = values(random.multivariate_normal(smelt.array([1.0, -1.0]), exact(cov), (N,), key=KEY))
        np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.03)
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.05)
        batch = random.multivariate_normal(exact(np.zeros((3, 1, 2))), exact(cov), (3, 4))
        assert batch.shape == (3, 4, 2)
        with pytest.raises(ShapeError, match="multivariate_normal"):
            random.multivariate_normal(smelt.array([0.0]), exact(cov))
        with pytest.raises(TraceError, match="cov must have a value"):
            smelt.compile(lambda c: random.multivariate_normal(smelt.array([0.0, 0.0]), c))(exact(cov))


class TestRandint:
    @pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint8, smelt.int16, smelt.int32, smelt.uint32, smelt.int64,
                                       smelt.uint64], ids=lambda d: d.name)  # fmt: skip
    def test_distribution(self, dtype):
        for low, high in ((0, 10), (3, 100)):
            x = np.array(random.randint(low, high, (N,), dtype, KEY))
            assert x.dtype == dtype.numpy
            counts = np.bincount(x.astype(np.int64) - low, minlength=high - low)
            assert len(counts) == high - low and scipy.stats.chisquare(counts).pvalue > 0.001

    @pytest.mark.parametrize("dtype", [smelt.int8, smelt.int32, smelt.uint32, smelt.int64, smelt.uint64], ids=str)
    def test_whole_range(self, dtype):
        info = smelt.iinfo(dtype)
        x = np.array(random.randint(info.min, info.max + 1, (N,), dtype, KEY)).astype(np.float64)
        span = float(info.max) + 1 - info.min
        assert scipy.stats.kstest((x - info.min + 0.5 * (dtype.size == 1)) / span, "uniform").statistic < 0.012

    def test_wide_ranges(self):
        low, high = -(2**62), 2**62 + 2**61  # wider than int64
        x = np.array(random.randint(low, high, (N,), smelt.int64, KEY)).astype(np.float64)
        follows(exact((x - low) / (high - low)), scipy.stats.uniform.cdf)

    @pytest.mark.parametrize("low", [2**24 - 1, 2**24 + 1, 2**53, -(2**62), 2**63 - 4])
    def test_narrow_ranges_far_from_zero(self, low):
        """Numbers that float32 does not tell apart."""
        x = np.array(random.randint(low, low + 3, (1000,), smelt.int64, KEY))
        assert set(x.tolist()) == {low, low + 1, low + 2}
        y = random.randint(smelt.array(low, smelt.int64), low + 3, (1000,), smelt.int64, KEY)
        np.testing.assert_array_equal(np.array(y), x)
        bounds = smelt.array([low, low]), smelt.array([low + 3, low])
        x = np.array(random.randint(*bounds, (1000, 2), smelt.int64, KEY))
        assert set(x[:, 0].tolist()) == {low, low + 1, low + 2} and (x[:, 1] == low).all()

    @pytest.mark.parametrize("low, high", [(2**63 + 5, 2**63 + 9), (2**62, 2**62 + 4), (0, 4), (2**62, 0),
                                           (2**64 - 4, 2**63)])  # fmt: skip
    def test_bounds_beyond_int64(self, low, high):
        for kind in (smelt.uint64, smelt.int64) if high < 2**63 and low < 2**63 else (smelt.uint64,):
            bounds = smelt.array([low], kind), smelt.array([high], smelt.uint64)
            x = np.array(random.randint(*bounds, (1000,), smelt.uint64, KEY))
            assert set(x.tolist()) == set(range(low, max(high, low + 1)))

    def test_arrays(self):
        low, high = smelt.array([0, 10, -5]), smelt.array([5, 11, -1])
        x = np.array(random.randint(low, high, (1000, 3), key=KEY))
        assert (x.min(0) == [0, 10, -5]).all() and (x.max(0) == [4, 10, -2]).all()
        y = random.randint(0, smelt.array([3.7, 9.0]), (500, 2), key=KEY)
        assert (np.array(y).max(0) == [2, 8]).all() and (np.array(y).min(0) == 0).all()
        assert random.randint(smelt.array(5), 5, (2,)).tolist() == [5, 5]

    def test_arguments(self):
        assert random.randint(7, 7, (2,)).tolist() == [7, 7]
        assert set(random.randint(0, 2, (100,), smelt.bool_, KEY).tolist()) == {False, True}
        with pytest.raises(ValueError, match=r"high 300 is out of bounds for uint8.*test_random\.py"):
            random.randint(0, 300, (2,), smelt.uint8)
        with pytest.raises(DTypeError, match="float32"):
            random.randint(0, 3, (2,), smelt.float32)
        with pytest.raises(ShapeError, match="randint"):
            random.randint(smelt.array([0, 1]), 3, (3,))


class TestOthers:
    def test_bits(self):
        for width, dtype in ((1, smelt.uint8), (2, smelt.uint16), (4, smelt.uint32), (8, smelt.uint64)):
            x = random.bits((N,), width, KEY)
            assert x.dtype is dtype
            ones = np.unpackbits(np.array(x).view(np.uint8).reshape(N, width), axis=1).mean(0)
            np.testing.assert_allclose(ones, 0.5, atol=0.012)
        with pytest.raises(ValueError, match="width"):
            random.bits((2,), 3)

    def test_bernoulli(self):
        for p in (0.0, 0.1, 0.5, 1.0):
            assert values(random.bernoulli(p, (N,), KEY)).mean() == pytest.approx(p, abs=0.008)
        p = smelt.array([0.0, 0.25, 1.0], dtype=smelt.float16)
        x = random.bernoulli(p, (N, 3), KEY)
        assert x.dtype is smelt.bool_
        np.testing.assert_allclose(values(x).mean(0), [0, 0.25, 1], atol=0.008)
        assert random.bernoulli(p).shape == (3,) and random.bernoulli().shape == ()
        with pytest.raises(DTypeError, match="bernoulli"):
            random.bernoulli(smelt.array([1]))

    @pytest.mark.parametrize("bounds", [(-1, 1), (-0.5, 3), (1, 2), (-8, 8)], ids=str)
    def test_truncated_normal(self, bounds):
        x = random.truncated_normal(*bounds, (N,), key=KEY)
        assert values(x).min() >= bounds[0] and values(x).max() <= bounds[1]
        follows(x, scipy.stats.truncnorm(*bounds).cdf)
        half = random.truncated_normal(*bounds, (N,), smelt.bfloat16, KEY)
        assert half.dtype is smelt.bfloat16 and values(half).max() <= bounds[1]
        assert random.truncated_normal(smelt.array([0.0, 1.0]), 2).shape == (2,)
        assert random.truncated_normal(2.0, -2.0, (3,)).tolist() == [2.0] * 3

    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_gumbel_and_laplace(self, dtype):
        g, e = random.gumbel((N,), dtype, KEY), random.laplace((N,), dtype, 1.0, 2.0, KEY)
        assert g.dtype is e.dtype is dtype and np.isfinite(values(g)).all() and np.isfinite(values(e)).all()
        if dtype.size > 2:
            follows(g, scipy.stats.gumbel_r.cdf)
            follows(e, scipy.stats.laplace(1, 2).cdf)
        assert values(g).mean() == pytest.approx(0.5772, abs=0.02)
        assert values(e).mean() == pytest.approx(1, abs=0.04)


class TestCategorical:
    def test_distribution(self):
        p = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
        x = random.categorical(exact(np.log(p)), num_samples=N, key=KEY)
        assert x.dtype is smelt.uint32 and x.shape == (N,)
        np.testing.assert_allclose(np.bincount(np.array(x)) / N, p, atol=0.008)

    def test_shapes(self):
        logits = exact(np.zeros((2, 3, 4), np.float32))
        assert random.categorical(logits).shape == (2, 3)
        assert random.categorical(logits, 1).shape == (2, 4)
        assert random.categorical(logits, 0, num_samples=7).shape == (3, 4, 7)
        assert random.categorical(logits, shape=(5, 2, 3)).shape == (5, 2, 3)
        with pytest.raises(ShapeError, match="broadcast"):
            random.categorical(logits, shape=(2, 4))
        with pytest.raises(ShapeError, match="axis 3"):
            random.categorical(logits, 3)
        with pytest.raises(ValueError, match="exclude"):
            random.categorical(logits, shape=(2, 3), num_samples=2)

    @pytest.mark.parametrize("n", [1, 3, 100_000])
    def test_draws_do_not_depend_on_how_they_are_computed(self, n):
        logits = exact(np.random.default_rng(0).standard_normal(n).astype(np.float32))
        draws = [
            lambda logits: random.categorical(logits, num_samples=2000, key=KEY),
            lambda logits: random.choice(n, (2000,), p=smelt.exp(logits), key=KEY),
        ]
        for draw in draws:
            found = np.array(draw(logits))
            assert (found != np.array(smelt.compile(draw)(logits))).sum() < 3
            assert found.max() < n and (n < 100 or np.unique(found).size > 1500)

    def test_what_has_no_weight(self):
        logits = exact(np.array([-np.inf, 0, -np.inf, 3, -np.inf], np.float32))
        found = np.array(random.categorical(logits, num_samples=1000, key=KEY))
        assert set(found) == {1, 3}
        found = np.array(random.choice(4, (1000,), p=exact(np.array([0, 1e-30, 1e-30, 0], np.float32)), key=KEY))
        assert set(found) == {1, 2}

    def test_axis(self):
        logits = np.full((3, 4, 5), -np.inf, np.float32)
        logits[:, 2, :] = 0
        assert (np.array(random.categorical(exact(logits), 1, key=KEY)) == 2).all()
        assert (np.array(random.categorical(exact(logits), 1, num_samples=2, key=KEY)) == 2).all()


class TestPermutation:
    def test_of_numbers(self):
        x = random.permutation(1000, key=KEY)
        assert x.dtype is smelt.uint32 and sorted(x.tolist()) == list(range(1000))
        assert random.permutation(0).shape == (0,)

    def test_all_orders_are_equally_likely(self):
        keys = random.split(KEY, 6000)
        orders = np.array(smelt.vmap(lambda k: random.permutation(3, key=k))(keys))
        counts = np.unique(orders @ [9, 3, 1], return_counts=True)[1]
        assert len(counts) == 6 and scipy.stats.chisquare(counts).pvalue > 0.001

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_of_arrays(self, axis):
        x = np.arange(2 * 5 * 7).reshape(2, 5, 7)
        got = np.array(random.permutation(exact(x), axis, KEY))
        order = np.array(random.permutation(x.shape[axis], key=KEY))
        np.testing.assert_array_equal(got, np.take(x, order, axis))
        with pytest.raises(ShapeError, match="axis 3"):
            random.permutation(exact(x), 3)


@pytest.mark.parametrize("shape", [(), 3, (2, 0), [4, 1]], ids=str)
def test_shapes(shape):
    want = (3,) if shape == 3 else tuple(shape)
    for sampler in (random.uniform, partial(random.randint, 0, 5), random.bernoulli):
        assert sampler(shape=shape).shape == want
    assert random.normal(shape).shape == random.gumbel(shape).shape == want
    with pytest.raises(ShapeError, match="negative"):
        random.normal((2, -1))
    with pytest.raises(TypeError, match="shape"):
        random.normal((2.5,))


@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_one_number_beside_many(shape):
    """A word of no axes in the middle of a map over many elements."""
    key, many = smelt.random.key(3), smelt.broadcast_to(smelt.array(2.0), (1 << 17,))
    with override(tier="program"):
        found = smelt.compile(lambda k, s: smelt.random.normal(shape, key=k) * s)(key, many)
    np.testing.assert_allclose(np.array(found)[..., :5], 2 * smelt.random.normal(key=key).item(), rtol=1e-6)
