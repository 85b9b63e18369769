"""Ops with one wrong rule each, as another package may have them.

`test_check_ops.py` has them imported in another process, so that they are no ops of this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder
from smelt.ir.index import Coordinates
from smelt.ir.kinds import Elementwise, Movement, Reduction, silent
from smelt.ir.library import Library
from smelt.ir.op import Cotangents, Flags, Int, Ints, NotDifferentiable, Operand, Tangents, Values, only, require
from smelt.ir.scalar import Scalar, ScalarBuilder


class Softsign(Elementwise, name="planted_none"):
    """All rules are right.

    ``%0 = "smelt.planted_none"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return x / (1 + np.abs(x))

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        scale = b.abs(primals[0]) + 1
        return [only(tangents) / (scale * scale)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return x / (k.math("absf", x) + 1)


class Power(Softsign, name="planted_power"):
    """The derivative lacks a power.

    ``%0 = "smelt.planted_power"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [only(tangents) / (b.abs(primals[0]) + 1)]


class Sign(Softsign, name="planted_sign"):
    """The derivative of negative numbers has another sign.

    ``%0 = "smelt.planted_sign"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        scale = b.abs(primals[0]) + 1
        return [only(tangents) * b.sign(primals[0]) / (scale * scale)]


class Kernel(Softsign, name="planted_kernel"):
    """The kernel computes something else.

    ``%0 = "smelt.planted_kernel"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return x / (k.math("absf", x) + 1.001)


class Raises(Softsign, name="planted_raises"):
    """The derivative is an error of Python.

    ``%0 = "smelt.planted_raises"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [only(tangents) / primals[1]]


class Lacks(Elementwise, name="planted_lacks"):
    """There is no derivative, and no reason for that.

    ``%0 = "smelt.planted_lacks"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    accepts = dtypes.FLOATS

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x)

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.math("absf", x)


class Widens(Softsign, name="planted_widens"):
    """The reference has another dtype than `infer` says.

    ``%0 = "smelt.planted_widens"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x / (1 + np.abs(x.astype(np.float64)))


class Second(Elementwise, name="planted_second"):
    """x · exp(y), whose derivative by y alone is wrong.

    ``%0 = "smelt.planted_second"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>``
    """

    x: Operand
    y: Operand
    accepts = dtypes.FLOATS

    @silent
    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x * np.exp(y)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        found = [None if tangents[0] is None else tangents[0] * b.exp(primals[1])]
        found += [None if tangents[1] is None else tangents[1] * (results[0] if found[0] is not None else primals[0])]
        return [b.add_any(*found)]

    def lower(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        from smelt.ir import elementary

        return x * elementary.exp(k, y)


class Shear(Movement, name="planted_shear"):
    """The transpose rotates the same way.

    ``%0 = "smelt.planted_shear"(%x) {by = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    x: Operand
    by: Int
    linearity = "jointly"

    def infer(self, x: Aval, *, by: Int) -> Aval:
        require(x.ndim == 2 and x.size > 0, "x must be a matrix that is not empty")
        return x

    def reference(self, x: np.ndarray, *, by: Int) -> np.ndarray:
        rows, columns = np.indices(x.shape)
        return x[rows, (columns + rows * by) % x.shape[1]]

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, by: Int) -> Cotangents:
        return [b.planted_shear(only(cotangents), by=by)]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, by: Int) -> Coordinates:
        i, j = index
        return i, (j + i * by) % operand.shape[1]


class Sizes(Shear, name="planted_sizes"):
    """The kernel is right for eight columns.

    ``%0 = "smelt.planted_sizes"(%x) {by = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, by: Int) -> Cotangents:
        return [b.planted_sizes(only(cotangents), by=-by)]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, by: Int) -> Coordinates:
        i, j = index
        return i, (j + i * by) % 8 % operand.shape[1]


class Steps(Sizes, name="planted_steps"):
    """The kernel is right for one value of the attribute.

    ``%0 = "smelt.planted_steps"(%x) {by = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, by: Int) -> Cotangents:
        return [b.planted_steps(only(cotangents), by=-by)]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, by: Int) -> Coordinates:
        i, j = index
        return i, (j + i * (1 if by > 0 else -1)) % operand.shape[1]


class Back(Steps, name="planted_back"):
    """The transpose is that of one value of the attribute.

    ``%0 = "smelt.planted_back"(%x) {by = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, by: Int) -> Cotangents:
        return [b.planted_back(only(cotangents), by=-1)]

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, by: Int) -> Coordinates:
        return Shear.map_index(self, index, operand, result, by=by)


class Batch(Sizes, name="planted_batch"):
    """The batch rule takes the rows of all elements for those of one.

    ``%0 = "smelt.planted_batch"(%x) {by = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>``
    """

    def map_index(self, index: Coordinates, operand: Aval, result: Aval, *, by: Int) -> Coordinates:
        return Shear.map_index(self, index, operand, result, by=by)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags, *, by: Int) -> Cotangents:
        return [b.planted_batch(only(cotangents), by=-by)]

    def batch(self, b: Builder, operands: Values, dims: Any, *, by: Int) -> Any:
        (x,) = operands
        order = (dims[0], *(d for d in range(3) if d != dims[0]))
        n, rows, columns = (x.shape[d] for d in order)
        flat = b.reshape_to(b.transpose(x, permutation=order), (n * rows, columns))
        return [b.reshape_to(b.planted_batch(flat, by=by), (n, rows, columns))], [0]


class Largest(Reduction, name="planted_largest"):
    """max |x|, whose combination forgets the sign of one of two.

    ``%0 = "smelt.planted_largest"(%x) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>``
    """

    accepts = dtypes.FLOATS
    not_differentiable = NotDifferentiable("it is not stated")

    def reference(self, x: np.ndarray, *, axes: Ints) -> np.ndarray:
        return np.max(np.abs(x), axis=axes, initial=0).astype(x.dtype)

    def identity(self, dtype: Any) -> float:
        return 0.0

    def combine(self, k: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return k.maximum(x, y)


class Hartley(Library, name="planted_hartley"):
    """The library has another sign than the reference.

    ``%0 = "smelt.planted_hartley"(%x) : (tensor<8xf32>) -> tensor<8xf32>``
    """

    x: Operand
    core = "(n)->(n)"
    linearity = "jointly"

    def host(self, x: np.ndarray) -> np.ndarray:
        found = np.fft.fft(x)
        return (found.real + found.imag).astype(x.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        k = np.arange(x.shape[-1])
        angle = 2 * np.pi / len(k) * np.outer(k, k)
        return (x @ (np.cos(angle) + np.sin(angle))).astype(x.dtype)

    def transpose(self, b: Builder, cotangents: Cotangents, operands: Values, linear: Flags) -> Cotangents:
        return [b.planted_hartley(only(cotangents))]


class Nowhere(Softsign, name="planted_nowhere"):
    """Of numbers above 100 alone, and no `sample` says so.

    ``%0 = "smelt.planted_nowhere"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    @silent
    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x - 100)

    def jvp(self, b: Builder, primals: Values, tangents: Tangents, results: Values) -> Tangents:
        return [only(tangents) / (results[0] * 2)]

    def lower(self, k: ScalarBuilder, x: Scalar) -> Scalar:
        return k.math("sqrt", x - 100)


class Somewhere(Nowhere, name="planted_somewhere"):
    """The same, with a `sample`.

    ``%0 = "smelt.planted_somewhere"(%x) : (tensor<4xf32>) -> tensor<4xf32>``
    """

    def sample(self, rng: np.random.Generator, x: Aval) -> list[np.ndarray]:
        return [np.asarray(rng.uniform(110, 120, x.shape)).astype(x.dtype.numpy)]
