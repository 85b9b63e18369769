"""Comparisons and what is chosen by them, logic on bools, bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..aval import Aval
from ..errors import DTypeError
from ..host_loops import loops
from ..host_memory import contiguous, empty
from ..index import Index
from ..kinds import Comparison, Elementwise, silent
from ..op import Avals, Cotangents, Flags, HostCall, NotDifferentiable, Operand, Values, only, require, require_dtype
from ..scalar import Scalar, ScalarBuilder
from ..short_axes import LEAST_SHIFTED, shifted

if TYPE_CHECKING:
    from ..builder import Builder

_TRUTH = NotDifferentiable("the result is a truth value")
_BITS = NotDifferentiable("the result is a pattern of bits")
_BITS_OF = (dtypes.bool_, *dtypes.INTEGERS)


class Equal(Comparison, name="equal"):
    """Whether equal: x = y. NaN equals nothing.

    ``%0 = "smelt.equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = "=="
    complement = "not_equal"
    commutative = True
    not_differentiable = _TRUTH
    ufunc = np.equal

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.equal(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x.eq(y)


class NotEqual(Comparison, name="not_equal"):
    """Whether different: x ≠ y. NaN differs from everything, itself included.

    ``%0 = "smelt.not_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = "!="
    complement = "equal"
    commutative = True
    not_differentiable = _TRUTH
    ufunc = np.not_equal

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.not_equal(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x.ne(y)


class Less(Comparison, name="less"):
    """Whether smaller: x < y. False where either is NaN. Complex numbers by their real part, then by the other.

    ``%0 = "smelt.less"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = "<"
    not_differentiable = _TRUTH
    ufunc = np.less

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.less(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x < y

    def margin(self, x: Index, y: Index) -> Index:
        return y - x - 1


class LessEqual(Comparison, name="less_equal"):
    """Whether not larger: x ≤ y. False where either is NaN. Complex numbers by their real part, then by the other.

    ``%0 = "smelt.less_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = "<="
    not_differentiable = _TRUTH
    ufunc = np.less_equal

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.less_equal(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x <= y

    def margin(self, x: Index, y: Index) -> Index:
        return y - x


class Greater(Comparison, name="greater"):
    """Whether larger: x > y. False where either is NaN. Complex numbers by their real part, then by the other.

    ``%0 = "smelt.greater"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = ">"
    not_differentiable = _TRUTH
    ufunc = np.greater

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.greater(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x > y

    def margin(self, x: Index, y: Index) -> Index:
        return x - y - 1


class GreaterEqual(Comparison, name="greater_equal"):
    """Whether not smaller: x ≥ y. False where either is NaN. Complex numbers by their real part, then by the other.

    ``%0 = "smelt.greater_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = ">="
    not_differentiable = _TRUTH
    ufunc = np.greater_equal

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.greater_equal(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x >= y

    def margin(self, x: Index, y: Index) -> Index:
        return x - y


#: Elements from which on `select` is worth a loop of its own.
_LEAST = 2048


def _selected(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``np.where``, which has a branch for each element."""
    if loops.select is None or condition.size < _LEAST or x.dtype != y.dtype:
        return np.where(condition, x, y)
    whole = [z for z in (condition, x, y) if z.size > 1]
    if not condition.flags.c_contiguous and all(z.flags.f_contiguous and z.shape == condition.shape for z in whole):
        return _selected(condition.T, x.T, y.T).T
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    found = empty(shape, x.dtype)
    arrays = [_whole(condition, shape), *[z if z.size == 1 else _whole(z, shape) for z in (x, y)], found]
    loops.select(*[a.view(np.uint16) if a.dtype.kind == "V" else a for a in arrays])  # no buffer is of bfloat16
    return found


def _whole(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if x.shape == shape:
        return contiguous(x)
    found = empty(shape, x.dtype)
    np.copyto(found, x)
    return found


class Select(Elementwise, name="select"):
    """x where the condition holds, else y.

    ``%0 = "smelt.select"(%c, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    condition: Operand
    x: Operand
    y: Operand
    linearity = "jointly"
    linear_operands = (1, 2)

    def infer(self, condition: Aval, x: Aval, y: Aval) -> Aval:
        require_dtype(condition, (dtypes.bool_,), "condition")
        require(condition.shape == x.shape == y.shape, "operands must have the same shape")
        require(x.dtype is y.dtype, "x and y must have the same dtype", DTypeError)
        return x

    def reference(self, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return _selected(condition, x, y)

    def host_call(self, operands: Avals, result: Aval) -> HostCall | None:
        return HostCall(_selected, spreads=True)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        ct, condition = only(cotangents), operands[0]
        zero = b.zeros_like(ct)
        return [
            None,
            b.select(condition, ct, zero) if linear[1] else None,
            b.select(condition, zero, ct) if linear[2] else None,
        ]

    def lower(self, k: ScalarBuilder, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        return k.select(condition, x, y)


class LogicalAnd(Elementwise, name="logical_and"):
    """Both: x ∧ y.

    ``%0 = "smelt.logical_and"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = "and"
    accepts = (dtypes.bool_,)
    commutative = True
    not_differentiable = _TRUTH
    ufunc = np.logical_and

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logical_and(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y


class LogicalOr(Elementwise, name="logical_or"):
    """Either: x ∨ y.

    ``%0 = "smelt.logical_or"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>``
    """

    x: Operand
    y: Operand
    symbol = "or"
    accepts = (dtypes.bool_,)
    commutative = True
    not_differentiable = _TRUTH
    ufunc = np.logical_or

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logical_or(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y


class LogicalNot(Elementwise, name="logical_not"):
    """The opposite: ¬x.

    ``%0 = "smelt.logical_not"(%x) : (tensor<4xi1>) -> tensor<4xi1>``
    """

    x: Operand
    symbol = "not"
    accepts = (dtypes.bool_,)
    not_differentiable = _TRUTH
    ufunc = np.logical_not

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.logical_not(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return ~x


class BitwiseAnd(Elementwise, name="bitwise_and"):
    """The bits set in both: x & y.

    ``%0 = "smelt.bitwise_and"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = "&"
    accepts = _BITS_OF
    commutative = True
    not_differentiable = _BITS
    ufunc = np.bitwise_and

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.bitwise_and(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y


class BitwiseOr(Elementwise, name="bitwise_or"):
    """The bits set in either: x | y.

    ``%0 = "smelt.bitwise_or"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = "|"
    accepts = _BITS_OF
    commutative = True
    not_differentiable = _BITS
    ufunc = np.bitwise_or

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.bitwise_or(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y


class BitwiseXor(Elementwise, name="bitwise_xor"):
    """The bits set in one only: x ^ y.

    ``%0 = "smelt.bitwise_xor"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = "^"
    accepts = _BITS_OF
    commutative = True
    not_differentiable = _BITS
    ufunc = np.bitwise_xor

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.bitwise_xor(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x ^ y


class BitwiseInvert(Elementwise, name="bitwise_invert"):
    """All bits flipped: ~x. For bool, logical not.

    ``%0 = "smelt.bitwise_invert"(%x) : (tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    symbol = "~"
    accepts = _BITS_OF
    not_differentiable = _BITS
    ufunc = np.invert

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.invert(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return ~x


class LeftShift(Elementwise, name="left_shift"):
    """x · 2^y, wrapped. Where y is negative or not below the number of bits, 0.

    ``%0 = "smelt.left_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = "<<"
    accepts = dtypes.INTEGERS
    not_differentiable = _BITS
    ufunc = np.left_shift

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.left_shift(x, y)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        inside = _inside(k, y)
        return k.select(inside, x << k.select(inside, y, 0), 0)


class RightShift(Elementwise, name="right_shift"):
    """⌊x / 2^y⌋. Where y is negative or not below the number of bits, all bits are the sign.

    ``%0 = "smelt.right_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>``
    """

    x: Operand
    y: Operand
    symbol = ">>"
    accepts = dtypes.INTEGERS
    not_differentiable = _BITS

    ufunc = np.right_shift

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return shifted(x, y)

    def host_call(self, operands: Avals, result: Aval, *_: Any, **attrs: Any) -> HostCall | None:
        is_small = type(result.size) is int and result.size < LEAST_SHIFTED
        if result.dtype is not dtypes.uint32 or is_small:
            return super().host_call(operands, result)
        return HostCall(shifted, spreads=True)

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        inside = _inside(k, y)
        if x.dtype.kind == "u":
            return k.select(inside, x >> k.select(inside, y, 0), 0)
        return x >> k.select(inside, y, x.dtype.bits - 1)


def _inside(k: ScalarBuilder, y: Scalar) -> Scalar:
    """Whether hardware defines a shift by `y`: negative amounts are large as unsigned numbers."""
    unsigned = dtypes.by_name("u" + y.dtype.name.removeprefix("u"))
    return k.bitcast(y, unsigned) < y.dtype.bits
