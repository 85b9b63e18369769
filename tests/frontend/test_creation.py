"""Arrays made from nothing, and operators, against NumPy and MLX's dtype rules."""

import math
import operator

import numpy as np
import pytest

import smelt
import smelt.functions.methods
from smelt.ir.errors import AttributeValueError, DTypeError, ShapeError
from tests.frontend.checks import exact, same


@pytest.mark.parametrize(
    "arguments",
    [
        (5,),
        (0,),
        (-3,),
        (2, 7),
        (7, 2),
        (0, 10, 3),
        (10, 0, -3),
        (5.0,),
        (0, 1, 0.25),
        (1, 2, 0.3),
        (3, 0, -0.5),
        (1.5, 4),
    ],
    ids=repr,
)
def test_arange(arguments):
    wanted = np.int32 if all(isinstance(a, int) for a in arguments) else np.float32
    same(smelt.arange(*arguments), np.arange(*arguments).astype(wanted), rtol=1e-6)
    same(smelt.arange(*arguments, dtype=smelt.float16), np.arange(*arguments).astype(np.float16), rtol=1e-3)


def test_arange_forms():
    same(smelt.arange(3, dtype=smelt.uint8), np.arange(3, dtype=np.uint8))
    same(smelt.arange(0, 6, step=2), np.array([0, 2, 4], np.int32))
    same(smelt.arange(stop=4, start=1), np.array([1, 2, 3], np.int32))
    same(smelt.arange(smelt.array(3)), np.arange(3, dtype=np.int32))
    same(smelt.arange(np.int64(3)), np.arange(3, dtype=np.int32))
    for call, text in (
        (lambda: smelt.arange(0, 1, 0), "step must not be zero"),
        (lambda: smelt.arange(float("inf")), "must be finite"),
    ):
        with pytest.raises(AttributeValueError, match=text) as info:
            call()
        assert "test_creation.py" in str(info.value)
    with pytest.raises(DTypeError, match="bool"):
        smelt.arange(2, dtype=smelt.bool_)


@pytest.mark.parametrize("start, stop", [(0, 10), (0.5, 1), (3, 3), (10, 0), (-0.25, -7.0)])
@pytest.mark.parametrize("sign", [1, -1])
def test_ranges_in_infinite_steps_have_their_start_at_most(start, stop, sign):
    found = smelt.arange(start, stop, sign * math.inf)
    same(found, np.array([start] if (stop - start) * sign > 0 else [], np.float32))
    whole = smelt.arange(start, stop, sign * math.inf, dtype=smelt.int32)
    same(whole, np.array(found).astype(np.int32))
    for ends in ((0, math.inf), (-math.inf, 0), (0, math.nan)):
        with pytest.raises(AttributeValueError, match="must be finite"):
            smelt.arange(*ends, sign * math.inf)
    with pytest.raises(AttributeValueError, match="must be finite"):
        smelt.arange(start, stop, math.nan)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64], ids=str)
def test_ranges_that_fall_begin_with_a_zero_that_is_not_negative(dtype):
    for f in (smelt.arange, smelt.compile(smelt.arange)):
        found = np.array(f(0, -3, -1.0, dtype=dtype).astype(smelt.float64))
        assert found.tolist() == [0, -1, -2] and not np.signbit(found[0])


@pytest.mark.parametrize("num", [0, 1, 2, 5, 50])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(num, endpoint):
    found = smelt.linspace(-1, 2.5, num, endpoint)
    same(found, np.linspace(-1, 2.5, num, endpoint).astype(np.float32), rtol=1e-6, atol=1e-6)
    same(smelt.linspace(0, 10, num, endpoint, dtype=smelt.int32), np.linspace(0, 10, num, endpoint).astype(np.int32))
    if num > 1 and endpoint:
        assert found[0].item() == -1 and found[-1].item() == 2.5


@pytest.mark.parametrize("shape", [(), 3, (2, 3), [1, 2], (0, 2)])
@pytest.mark.parametrize("dtype", [None, smelt.float32, smelt.int8, smelt.bool_, smelt.complex64, smelt.bfloat16])
def test_filled(shape, dtype):
    numpy = np.float32 if dtype is None else dtype.numpy
    for name in ("zeros", "ones", "empty"):
        expected = (np.ones if name == "ones" else np.zeros)(shape, numpy)
        same(getattr(smelt, name)(shape, dtype), expected)
        like = getattr(smelt, f"{name}_like")(exact(expected))
        same(like, expected)


def test_full():
    same(smelt.full((2, 2), 3), np.full((2, 2), 3, np.int32))
    same(smelt.full(2, 3.0), np.full(2, 3, np.float32))
    same(smelt.full(2, True), np.full(2, True))
    same(smelt.full((2, 3), smelt.array([1, 2, 3]), dtype=smelt.float32), np.full((2, 3), [1, 2, 3], np.float32))
    same(smelt.full_like(smelt.array([1, 2]), 2.7), np.array([2, 2], np.int32))
    with pytest.raises(ShapeError, match=r"negative extent.*test_creation.py"):
        smelt.zeros((-1, 2))
    with pytest.raises(DTypeError, match=r"smelt.ones: unknown dtype.*test_creation.py"):
        smelt.ones(2, "float7")


def test_what_is_no_dtype_is_told_what_it_may_be():
    for call in (lambda: smelt.zeros(2, 3), lambda: smelt.random.normal(smelt.random.key(0), (2, 3))):
        with pytest.raises(DTypeError, match="is not a dtype, and the sizes of a shape are one tuple; smelt has"):
            call()
    with pytest.raises(DTypeError, match="unknown dtype 'f4'; NumPy's f4 is float32; smelt has"):
        smelt.arange(3, dtype="f4")
    with pytest.raises(DTypeError, match="unknown dtype 'datetime64'; smelt has"):
        smelt.arange(3, dtype="datetime64")


@pytest.mark.parametrize("arguments", [(3,), (3, 4), (3, 4, 1), (4, 3, -2), (0,), (3, None, 9)], ids=repr)
def test_eye_and_tri(arguments):
    same(smelt.eye(*arguments), np.eye(*arguments, dtype=np.float32))
    same(smelt.tri(*arguments), np.tri(*arguments, dtype=np.float32))
    same(smelt.eye(*arguments, dtype=smelt.int32), np.eye(*arguments, dtype=np.int32))
    same(smelt.identity(arguments[0]), np.identity(arguments[0], np.float32))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("points", [0, 1, 2, 9])
def test_windows(name, points):
    same(getattr(smelt, name)(points), getattr(np, name)(points).astype(np.float32))


def test_asarray():
    x = smelt.array([1.0, 2.0])
    assert smelt.asarray(x) is x
    assert smelt.asarray(x, copy=True) is not x
    same(smelt.asarray([1, 2], smelt.float16), np.array([1, 2], np.float16))
    same(smelt.from_dlpack(np.arange(3, dtype=np.int32)), np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match=r"without a copy.*test_creation.py"):
        smelt.asarray([1], copy=False)


# Operators

A, B = np.array([[5, -3, 2], [7, 0, 1]], np.int32), np.array([2, 3, -4], np.int32)
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lt", "le", "gt", "ge", "eq", "ne"]


def test_masked_arrays_are_not_taken_for_whole_ones():
    whole = np.ma.array([1.0, 2.0], mask=[False, False])
    assert smelt.array(whole).tolist() == [1.0, 2.0]
    for masked in (np.ma.array([1.0, 2.0], mask=[False, True]), np.ma.masked):
        for use in (smelt.array, smelt.asarray, smelt.sum, lambda x: smelt.ones(2) + x):
            with pytest.raises(smelt.SmeltError, match=r"masked elements.*filled.*test_creation\.py"):
                use(masked)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name):
    f = getattr(operator, name)
    expected = f(A, B)
    if name == "truediv":
        expected = expected.astype(np.float32)
    same(f(exact(A), exact(B)), expected, rtol=1e-6)
    same(f(exact(A), B), expected, rtol=1e-6)
    same(f(A, exact(B)), expected, rtol=1e-6)
    same(f(exact(A), B.tolist()), expected, rtol=1e-6)
    same(f(exact(A), 3), f(A, 3).astype(expected.dtype), rtol=1e-6)
    same(f(3, exact(B)), f(3, B).astype(expected.dtype), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["iadd", "isub", "imul", "ifloordiv", "imod", "iand", "ior", "ixor", "ilshift", "irshift"]
)
def test_in_place_operators_are_seen_by_all(name):
    x = exact(np.abs(A) + 1)
    y = x
    found = getattr(operator, name)(x, 2)
    assert found is x is y
    same(y, getattr(operator, name)(np.abs(A) + 1, 2))
    x += 0.5
    assert y.dtype is smelt.float32


def test_other_operators():
    x = smelt.array([2.0, 3.0])
    same(x**2, np.array([4, 9], np.float32))
    same(2**x, np.array([4, 8], np.float32), rtol=1e-6)
    same(-x, np.array([-2, -3], np.float32))
    same(abs(-x), np.array([2, 3], np.float32))
    same(+x, np.array([2, 3], np.float32))
    same(~smelt.array([True, False]), np.array([False, True]))
    same(smelt.array([1, 2]) << 1, np.array([2, 4], np.int32))
    same(8 >> smelt.array([1, 2]), np.array([4, 2], np.int32))
    same(x @ x, np.array(13, np.float32))
    x @= smelt.array([[1.0], [1.0]])
    same(x, np.array([5], np.float32))


def test_python_scalars_are_weak():
    half = smelt.array([1.0, 2.0], smelt.float16)
    assert (half * 2.5).dtype is smelt.float16 and (2 - half).dtype is smelt.float16
    assert (smelt.array([1, 2], smelt.int8) + 1).dtype is smelt.int8
    assert (smelt.array([1, 2]) * 1.5).dtype is smelt.float32
    assert (smelt.array([True]) + 1).dtype is smelt.int32
    assert (smelt.array([1]) / 2).dtype is smelt.float32
    assert (half * 1j).dtype is smelt.complex64
    zero, negative = smelt.array(1.0) * 0.0, smelt.array(1.0) * -0.0
    assert np.signbit(np.asarray(negative)) and not np.signbit(np.asarray(zero))
    same(smelt.array([True]) + True, np.array([True]))


def test_unknown_operands():
    x = smelt.array([1.0])
    assert x.__add__(object()) is NotImplemented and x.__iadd__(object()) is NotImplemented
    with pytest.raises(TypeError):
        x + "a"
    assert (x == "a") is False and (x != None) is True  # noqa: E711

    class Other:
        def __radd__(self, x):
            return "other"

    assert x + Other() == "other"
    assert {x: 1}[x] == 1


def test_the_class_has_mlx_methods():
    for names in smelt.functions.methods.METHODS.values():
        for name in names.split():
            assert callable(getattr(smelt.array, name))
    x = smelt.array([[1.0, 4.0]])
    same(x.sqrt(), np.array([[1, 2]], np.float32))
    same(x.var(correction=1), np.array(4.5, np.float32))
    same(x.real, np.array([[1, 4]], np.float32))
    assert bytes(x) == np.array([[1, 4]], np.float32).tobytes()
    assert x.__array_namespace__() is smelt


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.5, 300.7, 1e30, -1e30, 2.0**31, 2.0**63, 2.0**64])
@pytest.mark.parametrize("dtype", [d for d in smelt.ir.dtypes.ALL if d.is_integer], ids=str)
def test_a_float_becomes_an_integer_the_same_way_everywhere(dtype, value):
    """The nearest integer towards 0 that there is, 0 for NaN, as by `astype`; NumPy's cast depends on the machine."""

    def written(x):
        x[0] = value
        return x[0]

    zeros = smelt.zeros(2, dtype)
    info = np.iinfo(dtype.numpy)
    want = 0 if math.isnan(value) else info.max if value >= info.max else info.min if value <= info.min else int(value)
    for found in (
        smelt.array(value, smelt.float64).astype(dtype),
        smelt.array(value, dtype),
        smelt.array([value], dtype)[0],
        smelt.full((2,), value, dtype)[1],
        smelt.full_like(zeros, value)[1],
        smelt.pad(zeros, 1, constant_values=value)[0],
        written(smelt.zeros(2, dtype)),
        smelt.compile(lambda x: smelt.full((2,), value, dtype) + x)(zeros)[0],
        smelt.compile(written)(zeros),
        smelt.vmap(lambda x: smelt.full((), value, dtype) + x)(zeros)[0],
    ):
        assert (found.dtype, found.item()) == (dtype, want)


@pytest.mark.parametrize("val", [[1e308], [[1e308, -1e308]], (1e308, 2), [1e308 + 1j], 1e308], ids=repr)
def test_numbers_beyond_float32_are_infinities_without_a_warning(val):
    """NumPy's warnings are errors in many programs' tests."""
    with np.errstate(all="raise"):
        assert np.isinf(np.asarray(smelt.array(val)).real.flat[0])
        assert smelt.array(val, dtype=smelt.complex128).abs().flatten()[0].item() == 1e308
        assert smelt.isinf(smelt.array(val, dtype=smelt.complex64)).any().item()
