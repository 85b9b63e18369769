"""Runs the rules of ops without the compiler, and checks them against NumPy, loops and differences.

The rules run on an eager builder, which computes each op with `reference` as it is emitted; kernels'
scalar code runs on `ScalarMachine`, NumPy behind the same names.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import dtypes
from smelt.ir import op as op_module
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.dtypes import DType
from smelt.ir.index import Coordinates, Index
from smelt.ir.ops.constants import constant_array
from smelt.ir.ops.conversion import convert_array
from smelt.ir.scalar import INDEX, Scalar, ScalarLike, beside_each_other


class Eager(Builder):
    """A builder whose values are known at once."""

    def __init__(self):
        pass

    def value(self, array) -> Value:
        array = np.asarray(array)
        return Value(array, Aval(array.shape, dtypes.of(array.dtype)), self, None)

    def emit(self, op, operands, attrs):
        return self.emit_typed(op, operands, attrs, op.infer_checked([v.aval for v in operands], attrs))

    def emit_typed(self, op, operands, attrs, avals, regions=0):
        found = op.reference(*(v.mlir for v in operands), **attrs)
        found = found if isinstance(found, tuple) else (found,)
        view = OpView(op, tuple(operands), attrs, None)
        for array, aval in zip(found, avals, strict=True):
            assert (array.shape, array.dtype) == (aval.shape, aval.dtype.numpy), op
        pairs = enumerate(zip(found, avals))
        view.results = tuple(Value(np.asarray(x), a, self, view, i) for i, (x, a) in pairs)
        return view.results


def run(name, *arrays, **attrs):
    """One op, with `infer` and `reference` checked against each other."""
    return getattr(Eager(), name)(*map(Eager().value, arrays), **attrs).mlir


def full(name, attrs):
    op = op_module.get(name)
    return op, {k: attrs.get(k, spec.default) for k, spec in op.attrs.items()}


def jvp(name, primals, tangents, **attrs):
    """The tangent of the op's result as an array; None where it is zero."""
    b, (op, attrs) = Eager(), full(name, attrs)
    primals = [b.value(p) for p in primals]
    tangents = [None if t is None else b.value(t) for t in tangents]
    (found,) = op.jvp(b, primals, tangents, b.emit(op, primals, attrs), **attrs)
    return None if found is None else found.mlir


def transpose(name, ct, operands, linear, **attrs):
    b, (op, attrs) = Eager(), full(name, attrs)
    operands = [b.value(p) for p in operands]
    found = op.transpose(b, [b.value(ct)], operands, linear, **attrs)
    assert len(found) == len(operands)
    for c, x, is_linear in zip(found, operands, linear):
        assert (c is not None) == is_linear and (c is None or c.aval == x.aval)
    return [None if c is None else c.mlir for c in found]


def check_jvp(name, primals, wrt, rng, atol=1e-7, **attrs):
    """Central differences in float64 along a random direction, for each set of operands with a tangent."""
    for chosen in [(i,) for i in wrt] + ([tuple(wrt)] if len(wrt) > 1 else []):
        tangents = [rng.standard_normal(p.shape) if i in chosen else None for i, p in enumerate(primals)]
        h = 1e-6
        plus, minus = (
            run(name, *(p if t is None else p + s * t for p, t in zip(primals, tangents)), **attrs)
            for s in (h, -h)
        )
        with np.errstate(invalid="ignore"):
            want = np.where(plus == minus, 0, (plus - minus) / (2 * h))  # also where both are infinite
        np.testing.assert_allclose(jvp(name, primals, tangents, **attrs), want, rtol=1e-6, atol=atol)


def check_transpose(name, operands, linear, rng, **attrs):
    """⟨ct, f(t)⟩ = ⟨fᵀ(ct), t⟩ with the operands marked linear as t."""
    out = run(name, *operands, **attrs)
    ct = rng.standard_normal(out.shape)
    found = transpose(name, ct, operands, linear, **attrs)
    inner = sum(np.sum(c * x) for c, x in zip(found, operands) if c is not None)
    np.testing.assert_allclose(inner, np.sum(ct * out), rtol=1e-10, atol=1e-10)


def check_tangent_transposes(name, primals, wrt, rng, **attrs):
    """Reverse mode: each op of the tangent map is linear and has a transpose; ⟨ct, Jt⟩ = ⟨Jᵀct, t⟩."""
    b, (op, attrs) = Eager(), full(name, attrs)
    values = [b.value(p) for p in primals]
    tangents = [b.value(rng.standard_normal(p.shape)) if i in wrt else None for i, p in enumerate(primals)]
    (out,) = op.jvp(b, values, tangents, b.emit(op, values, attrs), **attrs)
    order, linear = [], {id(t) for t in tangents if t is not None}

    def visit(value):
        view = value.owner
        if view is not None and view not in order:
            for x in view.operands:
                visit(x)
            if any(id(x) in linear for x in view.operands):
                linear.add(id(view.results[0]))
                order.append(view)

    visit(out)
    ct = b.value(rng.standard_normal(out.shape))
    cotangents = {id(out): ct}
    for view in reversed(order):
        if (incoming := cotangents.get(id(view.results[0]))) is not None:
            marks = [id(x) in linear for x in view.operands]
            found = view.op.transpose(b, [incoming], view.operands, marks, **view.attrs)
            for x, c, mark in zip(view.operands, found, marks):
                assert mark or c is None, view.op
                cotangents[id(x)] = b.add_any(cotangents.get(id(x)), c)
    inner = sum(np.sum(cotangents[id(t)].mlir * t.mlir) for t in tangents if t is not None)
    np.testing.assert_allclose(inner, np.sum(ct.mlir * out.mlir), rtol=1e-9, atol=1e-12)


def check_batch(name, operands, dims, **attrs):
    """The batching rule against a loop; `operands` carry their batch axis at `dims`."""
    b, (op, attrs) = Eager(), full(name, attrs)
    results, out_dims = op.batch(b, [b.value(x) for x in operands], dims, **attrs)
    size = next(x.shape[d] for x, d in zip(operands, dims) if d is not None)
    rows = [
        run(name, *(x if d is None else np.take(x, i, d) for x, d in zip(operands, dims)), **attrs)
        for i in range(size)
    ]
    np.testing.assert_array_equal(results[0].mlir, np.stack(rows, out_dims[0]))


class Number(Scalar):
    """A scalar whose value is known at once."""

    def __init__(self, value: Any, dtype: DType):
        with np.errstate(all="ignore"):
            super().__init__(ScalarMachine(), dtype.numpy.type(value), dtype)

    @property
    def value(self) -> Any:
        return self.mlir


class ScalarMachine:
    """A `ScalarBuilder` that computes with NumPy, in the dtypes of the operands: float64 and half precision too."""

    source_dtype: DType | None = None
    checks_indices = False
    is_half = False

    def _apply(self, function: Callable[..., Any], *xs: Scalar, dtype: DType | None = None) -> Number:
        with np.errstate(all="ignore"):
            return Number(function(*(x.mlir for x in xs)), dtype or xs[0].dtype)

    def div_coarse(self, x: Scalar, y: Scalar) -> Scalar:
        return self.div(x, y)

    def const(self, value: Any, dtype: DType) -> Scalar:
        return Number(constant_array(value, dtype), dtype)

    def table(self, values: Sequence[float], dtype: DType) -> Callable[[Scalar], Scalar]:
        return lambda i: self.const(values[int(i.mlir)], dtype)

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        with np.errstate(all="ignore"):
            return Number(convert_array(np.asarray(x.mlir), dtype), dtype)

    def bitcast(self, x: Scalar, dtype: DType) -> Scalar:
        return Number(x.mlir.view(dtype.numpy), dtype)

    def bitcast_storage(self, x: Scalar, dtype: DType) -> Scalar:
        return self.bitcast(x, dtype)

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.add, x, y)

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.subtract, x, y)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.multiply, x, y)

    def div(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.divide, x, y)

    def neg(self, x: Scalar) -> Scalar:
        return self._apply(np.negative, x)

    def fma(self, x: Scalar, y: ScalarLike, z: ScalarLike) -> Scalar:
        """With two roundings."""
        return x * y + z

    add_reassociating = add
    mul_reassociating = mul

    def bitwise(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        functions = {
            "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
            "shli": np.left_shift, "shrsi": np.right_shift, "shrui": np.right_shift,
        }  # fmt: skip
        return self._apply(functions[name], x, y)

    def int_div(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(lambda a, b: abs(int(a)) // abs(int(b)) * (-1 if (a < 0) != (b < 0) else 1), x, y)

    def int_rem(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.fmod, x, y)

    def math(self, name: str, *xs: Scalar) -> Scalar:
        return self._apply({"absf": np.fabs, "roundeven": np.rint}.get(name) or getattr(np, name), *xs)

    def minimum(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.minimum, x, y)

    def maximum(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.maximum, x, y)

    def compare(self, predicate: str, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(getattr(operator, predicate), x, y, dtype=dtypes.bool_)

    def select(self, c: Scalar, x: ScalarLike, y: ScalarLike) -> Scalar:
        return beside_each_other(x, y)[0 if c.mlir else 1]

    def usually(self, quick: Callable[[], tuple[Scalar, Scalar]], general: Callable[[], Scalar]) -> Scalar:
        return general()

    def isnan(self, x: Scalar) -> Scalar:
        return self.compare("ne", x, x)

    def logical_and(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.logical_and, x, y)

    def logical_or(self, x: Scalar, y: Scalar) -> Scalar:
        return self._apply(np.logical_or, x, y)

    def complex(self, real: Scalar, imag: Scalar) -> Scalar:
        return Number(complex(real.mlir, imag.mlir), real.dtype.complex)

    def real(self, x: Scalar) -> Scalar:
        return self._apply(np.real, x, dtype=x.dtype.real)

    def imag(self, x: Scalar) -> Scalar:
        return self._apply(np.imag, x, dtype=x.dtype.real)

    def if_(
        self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar], dtype: DType
    ) -> Scalar:
        return then() if condition.mlir else otherwise()

    guarded = if_

    def for_(
        self,
        lower: Scalar,
        upper: Scalar,
        body: Callable[..., Sequence[Scalar] | None],
        carries: Sequence[Scalar] = (),
        step: int = 1,
    ) -> list[Scalar]:
        for i in range(int(lower.mlir), int(upper.mlir), step):
            carries = body(Number(i, INDEX), *carries) or ()
        return list(carries)

    def index(self, index: Index, dtype: DType = INDEX) -> Scalar:
        assert index.is_constant
        return Number(np.array(index.const).astype(dtype.numpy), dtype)

    def dynamic(self, x: Scalar, lo: int, hi: int) -> Index:
        return Index(min(max(int(x.mlir), lo), hi))

    def literal_element(self, array: np.ndarray, aval: Aval, index: Coordinates) -> Scalar:
        return Number(array[tuple(i.const for i in index)], aval.dtype)


def constants(at):
    return tuple(Index(int(i)) for i in at)


def fetcher(arrays):
    def fetch(i, index):
        at = tuple(x.const for x in index)
        assert all(0 <= p < d for p, d in zip(at, arrays[i].shape, strict=True))
        return Number(arrays[i][at], dtypes.of(arrays[i].dtype))

    return fetch


def elements(name, *arrays, **attrs):
    """The op's result, element by element from its `element` rule."""
    op, attrs = full(name, attrs)
    avals = [Aval(x.shape, dtypes.of(x.dtype)) for x in arrays]
    result = op.infer(*avals, **attrs)
    out = np.empty(result.shape, result.dtype.numpy)
    for at in np.ndindex(out.shape):
        out[at] = op.element(ScalarMachine(), constants(at), fetcher(arrays), avals, result, **attrs).value
    return out
