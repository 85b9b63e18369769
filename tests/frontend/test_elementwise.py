"""Elementwise functions against NumPy and SciPy: dtypes, shapes, special values, derivatives."""

import math
import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import smelt
from smelt.ir.errors import DTypeError, ShapeError
from smelt.ir.settings import override

from .checks import exact

FLOATS = [smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64]
#: Units in the last place of the dtype, as relative errors.
EPS = {smelt.float16: 2.0**-10, smelt.bfloat16: 2.0**-7, smelt.float32: 2.0**-23, smelt.float64: 2.0**-52}

# name: (NumPy's function, sample points)
UNARY = {
    "exp": (np.exp, (-5, 5)),
    "expm1": (np.expm1, (-2, 2)),
    "log": (np.log, (0.1, 9)),
    "log2": (np.log2, (0.1, 9)),
    "log10": (np.log10, (0.1, 9)),
    "log1p": (np.log1p, (-0.9, 9)),
    "sqrt": (np.sqrt, (0, 9)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.1, 9)),
    "reciprocal": (lambda x: 1 / x, (0.1, 9)),
    "sin": (np.sin, (-9, 9)),
    "cos": (np.cos, (-9, 9)),
    "tan": (np.tan, (-1.4, 1.4)),
    "arcsin": (np.arcsin, (-0.9, 0.9)),
    "arccos": (np.arccos, (-0.9, 0.9)),
    "arctan": (np.arctan, (-9, 9)),
    "sinh": (np.sinh, (-4, 4)),
    "cosh": (np.cosh, (-4, 4)),
    "tanh": (np.tanh, (-4, 4)),
    "arcsinh": (np.arcsinh, (-4, 4)),
    "arccosh": (np.arccosh, (1.1, 4)),
    "arctanh": (np.arctanh, (-0.9, 0.9)),
    "erf": (scipy.special.erf, (-3, 3)),
    "erfinv": (scipy.special.erfinv, (-0.9, 0.9)),
    "sigmoid": (scipy.special.expit, (-9, 9)),
    "degrees": (np.degrees, (-9, 9)),
    "radians": (np.radians, (-900, 900)),
    "square": (np.square, (-9, 9)),
    "negative": (np.negative, (-9, 9)),
    "abs": (np.abs, (-9, 9)),
    "sign": (np.sign, (-9, 9)),
    "floor": (np.floor, (-9, 9)),
    "ceil": (np.ceil, (-9, 9)),
    "trunc": (np.trunc, (-9, 9)),
    "round": (np.rint, (-9, 9)),
    "positive": (np.positive, (-9, 9)),
    "cbrt": (np.cbrt, (-9, 9)),
}


def numpy(x):
    """An array's values in float64 (or as they are, where not floating)."""
    host = np.array(x)
    return host.astype(np.float64) if x.dtype.is_float else host


def wide(x, dtype):
    """What `dtype` makes of the numbers, in float64."""
    return np.asarray(x).astype(dtype.numpy).astype(np.float64)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    function, (low, high) = UNARY[name]
    x = np.linspace(low, high, 77).reshape(7, 11).astype(dtype.numpy)
    got = getattr(smelt, name)(exact(x))
    assert got.dtype is dtype and got.shape == (7, 11)
    want = function(x.astype(np.float64))
    np.testing.assert_allclose(numpy(got), want, rtol=8 * EPS[dtype], atol=2 * EPS[dtype])


@pytest.mark.parametrize("name", ["exp", "log", "sin", "erf", "sqrt", "sigmoid", "reciprocal", "degrees", "rsqrt"])
@pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint8, smelt.int32, smelt.int64, smelt.bool_])
def test_integers_are_computed_in_float32(name, dtype):
    got = getattr(smelt, name)(smelt.array([1, 1], dtype=dtype))
    assert got.dtype is smelt.float32
    np.testing.assert_allclose(np.array(got), UNARY[name][0](np.float32(1)), rtol=1e-6)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "positive", "conjugate", "real", "nan_to_num"])
@pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint64, smelt.int64, smelt.bool_])
def test_integers_are_returned_as_they_are(name, dtype):
    x = smelt.array([0, 1], dtype=dtype)
    found = getattr(smelt, name)(x)
    assert found is not x and found._ref == x._ref  # nothing is computed; updates in place stay apart


@pytest.mark.parametrize("name", sorted(set(UNARY) - {"erf", "erfinv", "sigmoid"}))
def test_special_values(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, 3e38], np.float32)
    got = np.array(getattr(smelt, name)(exact(x)))
    with np.errstate(all="ignore"):
        want = UNARY[name][0](x.astype(np.float64)).astype(np.float32)
    if name in ("sin", "cos", "tan"):  # 3e38 is no number to compare libraries at
        got, want = got[:-1], want[:-1]
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_special_values_of_the_others():
    x = smelt.array([0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_allclose(np.array(smelt.sigmoid(x)), [0.5, 1, 0, np.nan])
    np.testing.assert_allclose(np.array(smelt.erf(x)), [0, 1, -1, np.nan])
    np.testing.assert_array_equal(np.array(smelt.erfinv(smelt.array([1.0, -1.0, 2.0]))), [np.inf, -np.inf, np.nan])


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "arctan2": np.arctan2,
    "power": np.power,
}


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2, 3)), ((0, 3), (1, 3))], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype, shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 4, s).astype(dtype.numpy) for s in shapes)
    got = getattr(smelt, name)(exact(x), exact(y))
    want = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    assert got.dtype is dtype and got.shape == want.shape
    if name in ("floor_divide", "remainder") and dtype.size == 2:
        want = BINARY[name](x.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(numpy(got), wide(want, dtype), rtol=8 * EPS[dtype], atol=4 * EPS[dtype])


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_floor_divide_rounds_the_exact_quotient(dtype):
    rng = np.random.default_rng(0)
    x, y = (smelt.array(np.round(rng.uniform(-9, 9, 2000), 1), dtype) for _ in range(2))
    y = smelt.where(smelt.abs(y) < 0.05, smelt.full_like(y, 0.1), y)
    x = smelt.concatenate([x, smelt.array([1, 6, -1e-7, 0], dtype)])
    y = smelt.concatenate([y, smelt.full((4,), 0.1, dtype)])
    want = [math.floor(Fraction(a) / Fraction(b)) for a, b in zip(x.tolist(), y.tolist())]
    read = smelt.from_stablehlo(smelt.to_stablehlo(operator.floordiv, x, y))
    for tier in ("ops", "program"):
        with override(tier=tier, small_work=0):
            np.testing.assert_array_equal(numpy(x // y), want)
            np.testing.assert_array_equal(numpy(read(x, y)), want)
    quotient, rest = smelt.divmod(x.astype(smelt.float64), y.astype(smelt.float64))
    np.testing.assert_allclose(numpy(quotient * y.astype(smelt.float64) + rest), numpy(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint8, smelt.int32, smelt.uint32, smelt.int64, smelt.uint64])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "floor_divide", "remainder", "maximum", "minimum"])
def test_binary_integers(name, dtype):
    info = smelt.iinfo(dtype)
    values = np.array([info.min, info.max, 1, 2, 3, 7, 100], dtype.numpy)
    x, y = np.meshgrid(values, values[values != 0])
    got = np.array(getattr(smelt, name)(exact(x), exact(y)))
    with np.errstate(all="ignore"):
        want = BINARY[name](x, y)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == dtype.numpy


def test_division_of_integers_by_zero():
    x, zero = smelt.array([5, -5]), smelt.array([0, 0])
    assert (x.dtype, smelt.floor_divide(x, zero).tolist(), smelt.remainder(x, zero).tolist()) == (
        smelt.int32, [0, 0], [0, 0],
    )  # fmt: skip
    assert smelt.divide(x, zero).tolist() == [math.inf, -math.inf]


def test_divmod():
    q, r = smelt.divmod(smelt.array([7.5, -7.5]), 2)
    assert (q.tolist(), r.tolist()) == ([3, -4], [1.5, 0.5])


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (smelt.int32, 2, smelt.int32), (smelt.uint8, 2, smelt.uint8), (smelt.bool_, 2, smelt.int32),
        (smelt.int32, 2.5, smelt.float32), (smelt.float16, 2.5, smelt.float16), (smelt.bfloat16, 2, smelt.bfloat16),
        (smelt.float32, 2j, smelt.complex64), (smelt.float64, 2.5, smelt.float64), (smelt.int8, True, smelt.int8),
        (smelt.int8, smelt.uint8, smelt.int16), (smelt.float16, smelt.bfloat16, smelt.float32),
        (smelt.int64, smelt.float16, smelt.float16), (smelt.uint64, smelt.int8, smelt.float32),
        (smelt.bool_, smelt.uint16, smelt.uint16),
    ],
)  # fmt: skip
def test_promotion(a, b, want):
    x = smelt.array([1], dtype=a)
    y = smelt.array([1], dtype=b) if isinstance(b, smelt.Dtype) else b
    assert smelt.multiply(x, y).dtype is want
    assert smelt.multiply(y, x).dtype is want
    assert smelt.result_type(x, b) is want


def test_numpy_and_lists_are_operands():
    assert smelt.add(np.array([1, 2], np.int32), smelt.array([1.5, 2])).tolist() == [2.5, 4]
    assert smelt.add([1, 2], smelt.array(1)).tolist() == [2, 3]
    assert smelt.add(1, 2).item() == 3
    x = np.array([1.5, -2], ml_dtypes.bfloat16)
    assert smelt.abs(exact(x)).dtype is smelt.bfloat16


@pytest.mark.parametrize("other", ["ab", None, {"a": 1}, {1}], ids=repr)
@pytest.mark.parametrize("x", [smelt.array(3), smelt.array([1.0, 2.0])], ids=["integer", "floats"])
def test_what_is_no_number_is_no_operand(x, other):
    for op in (operator.add, operator.mul, operator.matmul, operator.and_, operator.lt, operator.imul):
        for a, b in ((x, other), (other, x)):
            with pytest.raises((DTypeError, TypeError)):
                op(a, b)
    assert (x == other) is False and (x != other) is True


def test_integers_do_not_become_quotients_in_place():
    x = smelt.array([4, 6])
    with pytest.raises(DTypeError, match="write x = x / y"):
        x /= 2
    x //= 2
    assert x.tolist() == [2, 3] and x.dtype is smelt.int32
    y = smelt.array([1.0])
    y /= smelt.array([2])
    assert y.tolist() == [0.5]


class TestPower:
    @pytest.mark.parametrize("n", [-8, -3, -2, -1, 0, 1, 2, 3, 7, 8, 9, 20, 0.5, -0.5, 1.5, 2.0, -1.25])
    @pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
    def test_scalar_exponent(self, n, dtype):
        x = np.linspace(0.5, 1.7, 31).astype(dtype.numpy)
        got = smelt.power(exact(x), n)
        assert got.dtype is dtype
        np.testing.assert_allclose(numpy(got), x.astype(np.float64) ** n, rtol=10 * EPS[dtype])

    @pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 13])
    @pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint16, smelt.int32, smelt.int64])
    def test_integers(self, n, dtype):
        x = np.array([0, 1, 2, 3, 5], dtype.numpy)
        got = smelt.power(exact(x), n)
        assert got.dtype is dtype
        np.testing.assert_array_equal(np.array(got), x**n)

    def test_negative_powers_of_integers(self):
        assert smelt.power(smelt.array([1, -1, 2, -3]), -3).tolist() == [1, -1, 0, 0]

    def test_scalar_base(self):
        assert smelt.power(2, smelt.array([0, 1, 10])).tolist() == [1, 2, 1024]
        assert smelt.power(smelt.array([True, False]), 2).dtype is smelt.int32
        assert smelt.power(smelt.array([4]), 0.5).tolist() == [2.0]

    def test_derivatives(self):
        for n in (0, 1, 2, 3, -2, 0.5, 1.5):
            got = smelt.grad(lambda x, n=n: smelt.power(x, n))(smelt.array(1.7)).item()
            assert got == pytest.approx(n * 1.7 ** (n - 1), rel=1e-6)


class TestClip:
    def test_bounds(self):
        x = np.array([-3.0, -1, 0, 1, 3, np.nan], np.float32)
        for low, high in ((-1, 1), (None, 1), (-1, None), (np.float32(-2), 0.5)):
            np.testing.assert_array_equal(np.array(smelt.clip(exact(x), low, high)), np.clip(x, low, high))
        low = smelt.array([[-1.0], [0.5]])
        np.testing.assert_array_equal(np.array(smelt.clip(exact(x), low, 1)), np.clip(x, np.array(low), 1))
        assert smelt.clip(smelt.array([1, 5]), None, 3).tolist() == [1, 3]
        assert smelt.clip(smelt.array([1, 5]), 1.5, 3).tolist() == [1.5, 3]

    def test_derivative_at_a_limit_is_that_of_the_limit(self):
        x = smelt.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        for low, high in ((-1, 1), (-1, None), (None, 1)):
            inside = [(low is None or v > low) and (high is None or v < high) for v in x.tolist()]
            got = smelt.grad(lambda v, lo=low, hi=high: smelt.sum(smelt.clip(v, lo, hi)))(x)
            assert got.tolist() == [float(i) for i in inside]

    def test_errors(self):
        with pytest.raises(DTypeError, match="clip"):
            smelt.clip(smelt.array(True), False, True)


def test_of_equal_ones_the_second_has_the_derivative():
    """As in MLX: ``maximum(x, 0)`` has none at zero. Optimized programs have it, too, where constants change places."""
    x, y = smelt.array([1.0, 2.0, 3.0]), smelt.array([3.0, 2.0, 1.0])
    for run in (lambda f: f, smelt.compile):
        dx, dy = run(smelt.grad(lambda a, b: smelt.sum(smelt.maximum(a, b)), argnums=(0, 1)))(x, y)
        assert (dx.tolist(), dy.tolist()) == ([0, 0, 1], [1, 1, 0])
        dx, dy = run(smelt.grad(lambda a, b: smelt.sum(smelt.minimum(a, b)), argnums=(0, 1)))(x, y)
        assert (dx.tolist(), dy.tolist()) == ([1, 0, 0], [0, 1, 1])


@pytest.mark.parametrize(
    "f, wanted",
    [
        (lambda x: smelt.maximum(x, 2), [0, 0, 1]),
        (lambda x: smelt.maximum(2, x), [0, 1, 1]),
        (lambda x: smelt.minimum(x, 2), [1, 0, 0]),
        (lambda x: smelt.minimum(2, x), [1, 1, 0]),
    ],
)
def test_of_a_number_and_an_equal_array_the_second_has_the_derivative(f, wanted):
    x, recorded = smelt.array([1.0, 2.0, 3.0]), smelt.compile(f)  # a program of its own, differentiated afterwards
    for run in (lambda f: f, smelt.compile):
        assert run(smelt.grad(lambda x: f(x).sum()))(x).tolist() == wanted
        assert run(lambda x: smelt.jvp(f, [x], [smelt.ones(3)])[1][0])(x).tolist() == wanted
        assert run(smelt.grad(lambda x: recorded(x).sum()))(x).tolist() == wanted


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("sign", "floor", "ceil", "trunc", "round")])
def test_derivative_against_differences(name):
    function, (low, high) = UNARY[name]
    x = np.linspace(low + 0.13, high - 0.11, 5)
    got = smelt.grad(lambda v: smelt.sum(getattr(smelt, name)(v)))(exact(x))
    h = 1e-6
    np.testing.assert_allclose(np.array(got), (function(x + h) - function(x - h)) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_round(decimals):
    x = np.array([1.2345, -2.5, 0.5, 1.5, 155.0, 145.0, -15.05], np.float32)
    np.testing.assert_array_equal(np.array(smelt.round(exact(x), decimals)), np.round(x, decimals))
    n = np.array([15, 25, -149, 123456789, 2147483500], np.int32)
    np.testing.assert_array_equal(np.array(smelt.round(exact(n), decimals)), np.round(n, decimals))
    half = np.array([1000.5, 0.123], np.float16)
    np.testing.assert_allclose(
        np.array(smelt.round(exact(half), decimals)), np.round(half.astype(np.float32), decimals), rtol=1e-3
    )


FAR = [0.0, -0.0, 1e-45, 0.5, 2.5, 123456.7, 16777217.0, 1.5e30, 1e38, 3.4e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("decimals", [-308, -100, -40, -39, -38, -20, -7, -2, 2, 7, 20, 38, 39, 40, 100, 308])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_far_numbers(dtype, decimals):
    """Beside exact rounding of the fractions that the numbers are: the scaled ones may overflow, and the scale."""
    with np.errstate(over="ignore"):
        x = np.array([*FAR, *(-v for v in FAR)], dtype)
    unit = Fraction(10) ** -decimals
    wanted = [v if not np.isfinite(v) else float(round(Fraction(float(v)) / unit) * unit) for v in x]
    for run in (lambda f: f, smelt.compile):
        found = np.array(run(lambda v: smelt.round(v, decimals))(exact(x)))
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(found, np.array(wanted).astype(dtype), rtol=4 * np.finfo(dtype).eps, atol=0)
        assert (np.signbit(found) == np.signbit(x))[~np.isnan(x)].all()
    assert np.array(smelt.grad(lambda v: smelt.round(v, decimals).sum())(exact(x))).tolist() == [0] * len(x)


@pytest.mark.parametrize("places", [1, 2, 3, 5, 9, 18, 19, 20, 300])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_rounding_integers(dtype, places):
    """Exact, to the nearest multiple that the dtype has."""
    low, high = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    unit = 10**places
    near = [low, high, 0, 1, 5, 15, 25, 50, 150, 250]
    near += [n + d for n in (unit // 2, unit, 3 * unit // 2) for d in (-1, 0, 1)]
    values = sorted({v for n in near for v in (n, -n, low + abs(n), high - abs(n)) if low <= v <= high})
    wanted = [min(max(round(Fraction(v, unit)), -(-low // unit)), high // unit) * unit for v in values]
    for run in (lambda f: f, smelt.compile):
        found = run(lambda v: smelt.round(v, -places))(exact(np.array(values, dtype)))
        assert found.tolist() == (wanted if dtype != "bool" else [False] * len(values))


class TestComplex:
    z = np.array([1 + 2j, -3j, 0, -2.5 + 0.5j], np.complex64)

    @pytest.mark.parametrize("name", ["real", "imag", "conj", "abs", "sign", "exp", "sqrt", "square", "round"])
    def test_functions(self, name):
        got = getattr(smelt, name)(exact(self.z))
        np.testing.assert_allclose(np.array(got), getattr(np, name)(self.z), rtol=1e-6)

    def test_real_arrays(self):
        x = smelt.array([1.0, 2.0])
        assert smelt.real(x)._ref == smelt.conj(x)._ref == x._ref and smelt.imag(x).tolist() == [0, 0]

    def test_not_supported(self):
        for name in ("floor", "erf"):
            with pytest.raises(DTypeError, match=rf"smelt\.{name}.*test_elementwise"):
                getattr(smelt, name)(exact(self.z))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_nan_to_num(dtype):
    x = smelt.array([math.nan, math.inf, -math.inf, 1.5], dtype=dtype)
    limit = smelt.finfo(dtype).max
    assert numpy(smelt.nan_to_num(x)).tolist() == [0, limit, -limit, 1.5]
    assert numpy(smelt.nan_to_num(x, 7, 8, 9)).tolist() == [7, 8, 9, 1.5]
    z = smelt.array([complex(math.nan, math.inf)])
    assert smelt.nan_to_num(z, posinf=2).tolist() == [2j]


def test_stop_gradient():
    x = smelt.array([1.0, 2.0])
    assert smelt.stop_gradient(x).tolist() == [1, 2]
    assert smelt.grad(lambda v: smelt.sum(smelt.multiply(v, smelt.stop_gradient(v))))(x).tolist() == [1, 2]


def test_aliases():
    for a, b in (("acos", "arccos"), ("asinh", "arcsinh"), ("atan2", "arctan2"), ("pow", "power")):
        assert getattr(smelt, a) is getattr(smelt, b)


class TestErrors:
    def test_shapes(self):
        with pytest.raises(ShapeError, match=r"smelt\.add: shapes \(2,\) and \(3,\).*test_elementwise\.py"):
            smelt.add(smelt.array([1, 2]), smelt.array([1, 2, 3]))

    def test_bools(self):
        with pytest.raises(DTypeError, match="bool"):
            smelt.negative(smelt.array([True]))

    def test_stream_is_accepted(self):
        assert smelt.exp(smelt.array(0.0), stream=None).item() == 1
        assert smelt.add(smelt.array(1), 1, None).item() == 2


def test_compiled_equals_uncompiled():
    def f(x):
        y = smelt.clip(smelt.power(smelt.sin(x), 3), -0.5, 0.5)
        return smelt.nan_to_num(smelt.log(y)) + smelt.round(smelt.degrees(x), 2)

    x = exact(np.linspace(-3, 3, 1000).astype(np.float32))
    np.testing.assert_allclose(np.array(smelt.compile(f)(x)), np.array(f(x)), rtol=2e-5)


def test_scalars_do_not_retrace_lazy_graphs():
    from smelt.ir.settings import override
    from smelt.lazy.evaluate import executables

    x = exact(np.ones(8, np.float32))
    with override(small_work=0):
        before = None
        for value in (1.5, 2.5, 3.5):
            y = smelt.clip(smelt.add(smelt.multiply(x, value), value + 1), -value, 100 * value)
            assert y.tolist() == [2 * value + 1] * 8
            size = len(executables)
            assert before is None or size == before
            before = size
