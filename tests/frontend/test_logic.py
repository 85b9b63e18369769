"""Comparisons, logic, bits, special values and choice against NumPy; questions about dtypes."""

import math

import numpy as np
import pytest

import smelt
from smelt.ir.errors import DTypeError, ShapeError

from .checks import exact

SPECIAL = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan]
FLOATS = [smelt.float16, smelt.bfloat16, smelt.float32, smelt.float64]


@pytest.mark.parametrize("dtype", [*FLOATS, smelt.int8, smelt.uint64, smelt.bool_], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparison(name, dtype):
    values = SPECIAL if dtype.is_float else [0, 1]
    x, y = (v.astype(dtype.numpy) for v in np.meshgrid(values, values))
    got = getattr(smelt, name)(exact(x), exact(y))
    assert got.dtype is smelt.bool_
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x, y)
    np.testing.assert_array_equal(np.array(got), want)


def test_comparison_broadcasts_and_promotes():
    x = smelt.array([[1], [2]])
    assert smelt.less(x, smelt.array([1.5, 2.5])).tolist() == [[True, True], [False, True]]
    assert smelt.equal(x, 2).tolist() == [[False], [True]]
    with pytest.raises(ShapeError, match=r"smelt\.less.*test_logic\.py"):
        smelt.less(smelt.array([1, 2]), smelt.array([1, 2, 3]))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical(name):
    x, y = np.meshgrid([0.0, 2.0, math.nan], [0, -3])
    got = getattr(smelt, name)(exact(x), exact(y))
    np.testing.assert_array_equal(np.array(got), getattr(np, name)(x, y))
    assert smelt.logical_not(smelt.array([0, 3])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [smelt.int8, smelt.uint8, smelt.int32, smelt.uint64, smelt.bool_], ids=str)
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name, dtype):
    x, y = (v.astype(dtype.numpy) for v in np.meshgrid([0, 1, 5, 100], [0, 3, 77]))
    np.testing.assert_array_equal(
        np.array(getattr(smelt, name)(exact(x), exact(y))), getattr(np, name)(x, y)
    )
    np.testing.assert_array_equal(np.array(smelt.bitwise_invert(exact(x))), np.invert(x))


def test_shifts():
    x = smelt.array([1, -8, 3])
    assert smelt.left_shift(x, 2).tolist() == [4, -32, 12]
    assert smelt.right_shift(x, 1).tolist() == [0, -4, 1]
    for dtype in (smelt.int8, smelt.int32, smelt.uint16, smelt.uint64):
        signed, bits = smelt.issubdtype(dtype, smelt.signedinteger), 8 * dtype.size
        values = [3, 100, *[-5] * signed]
        for amount in (0, bits - 1, bits, 100, *[-1] * signed):
            within = 0 <= amount < bits
            left = [(v << amount) % 2**bits if within else 0 for v in values]
            left = [v - 2**bits * (signed and v >= 2 ** (bits - 1)) for v in left]
            right = [v >> amount if within else -(v < 0) for v in values]
            at = smelt.array(values, dtype)
            assert smelt.left_shift(at, smelt.array(amount, dtype)).tolist() == left
            assert smelt.right_shift(at, smelt.array(amount, dtype)).tolist() == right
    assert smelt.left_shift(smelt.array([True]), smelt.array([True])).dtype is smelt.uint8
    assert smelt.left_shift(smelt.array([1]), 40).tolist() == [0]
    with pytest.raises(DTypeError, match="bitwise_and"):
        smelt.bitwise_and(smelt.array([1.0]), 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "isposinf", "isneginf"])
def test_special_values(name, dtype):
    x = np.array(SPECIAL)
    got = getattr(smelt, name)(smelt.array(SPECIAL, dtype=dtype))
    np.testing.assert_array_equal(np.array(got), getattr(np, name)(x))
    for other in (smelt.int32, smelt.bool_):
        want = name == "isfinite"
        assert getattr(smelt, name)(smelt.array([0, 1], dtype=other)).tolist() == [want, want]


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_special_values_of_complex(name):
    z = np.array([1 + 1j, complex(math.inf, 0), complex(0, math.nan), complex(math.nan, math.inf)], np.complex64)
    np.testing.assert_array_equal(np.array(getattr(smelt, name)(exact(z))), getattr(np, name)(z))


@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose(equal_nan):
    x, y = np.meshgrid([*SPECIAL, 1.00001, 1e-9], [*SPECIAL, 1.000001])
    got = smelt.isclose(exact(x), exact(y), equal_nan=equal_nan)
    np.testing.assert_array_equal(np.array(got), np.isclose(x, y, equal_nan=equal_nan))
    assert smelt.allclose(smelt.array([1.0, 2]), smelt.array([1.1, 2]), rtol=0.2).item()
    assert not smelt.allclose(smelt.array([1.0, 2]), smelt.array([1.1, 2])).item()
    assert smelt.isclose(smelt.array([1, 5], dtype=smelt.uint8), smelt.array([2, 5], dtype=smelt.uint8)).tolist() == [
        False, True,
    ]  # fmt: skip


def test_array_equal():
    a = smelt.array([1.0, math.nan])
    assert not smelt.array_equal(a, a).item() and smelt.array_equal(a, a, equal_nan=True).item()
    assert not smelt.array_equal(smelt.array([1]), smelt.array([[1]])).item()
    assert smelt.array_equal(smelt.array([1, 2]), smelt.array([1.0, 2.0])).item()
    assert smelt.array_equal(1, 1).item()
    assert smelt.array_equal(smelt.array([]), smelt.array([])).item()


class TestWhere:
    def test_values(self):
        c = smelt.array([[True], [False]])
        got = smelt.where(c, smelt.array([1, 2, 3]), 0.5)
        assert got.tolist() == [[1, 2, 3], [0.5, 0.5, 0.5]] and got.dtype is smelt.float32
        assert smelt.where(smelt.array([0, 3]), 1, 2).tolist() == [2, 1]
        assert smelt.where(True, smelt.array([1, 2]), 0).tolist() == [1, 2]
        assert smelt.where(smelt.array([1.5, 0]), smelt.array(1), smelt.array([[5], [6]])).shape == (2, 2)

    def test_errors(self):
        with pytest.raises(ShapeError, match=r"smelt\.where"):
            smelt.where(smelt.array([True, False]), smelt.array([1, 2, 3]), 0)

    def test_derivative(self):
        x = smelt.array([-1.0, 2.0])
        got = smelt.grad(lambda v: smelt.sum(smelt.where(smelt.greater(v, 0), smelt.square(v), 0)))(x)
        assert got.tolist() == [0, 4]


class TestDtypes:
    def test_issubdtype(self):
        assert smelt.issubdtype(smelt.bool_, smelt.generic) and not smelt.issubdtype(smelt.bool_, smelt.number)
        assert smelt.issubdtype(smelt.uint8, smelt.integer) and not smelt.issubdtype(smelt.uint8, smelt.signedinteger)
        assert smelt.issubdtype(smelt.complex64, smelt.inexact) and smelt.issubdtype(smelt.floating, smelt.number)
        assert smelt.issubdtype(smelt.float32, smelt.float32) and not smelt.issubdtype(smelt.floating, smelt.float32)

    def test_isdtype(self):
        assert smelt.isdtype(smelt.int8, "signed integer") and smelt.isdtype(smelt.bool_, ("numeric", "bool"))
        assert smelt.isdtype(smelt.float16, smelt.float16) and not smelt.isdtype(smelt.bool_, "numeric")
        with pytest.raises(ValueError, match="kind"):
            smelt.isdtype(smelt.int8, "real")

    def test_limits(self):
        info = smelt.finfo(smelt.bfloat16)
        assert (info.bits, info.eps, info.smallest_normal, info.dtype) == (16, 2.0**-7, 2.0**-126, smelt.bfloat16)
        assert smelt.finfo(smelt.complex64).dtype is smelt.float32
        assert (smelt.iinfo(smelt.uint64).max, smelt.iinfo(smelt.int16).min) == (2**64 - 1, -(2**15))
        assert "int16" in repr(smelt.iinfo(smelt.int16)) and "float32" in repr(smelt.finfo(smelt.float32))
        with pytest.raises(DTypeError, match="iinfo"):
            smelt.finfo(smelt.int8)
        with pytest.raises(DTypeError, match="finfo"):
            smelt.iinfo(smelt.float32)

    def test_result_type(self):
        assert smelt.result_type(smelt.int8, smelt.array([1.0])) is smelt.float32
        assert smelt.result_type(1, 2.5) is smelt.float32
        with pytest.raises(ValueError, match="at least one"):
            smelt.result_type()

    def test_can_cast(self):
        assert smelt.can_cast(smelt.array([1], dtype=smelt.uint8), smelt.int16)
        assert not smelt.can_cast(smelt.float64, smelt.float32)
