"""Runs the rules of ops without the compiler, and checks them against NumPy, loops and differences.

The rules run on an eager builder, which computes each op with `reference` as it is emitted; kernels'
scalar code runs on `ScalarMachine`, NumPy behind the same names.
"""

from __future__ import annotations

import numpy as np

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import dtypes
from smelt.ir import op as op_module
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.index import Index


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


class Number:
    """A scalar of `ScalarMachine`."""

    def __init__(self, value, dtype):
        with np.errstate(all="ignore"):
            self.value, self.dtype = dtype.numpy.type(value), dtype

    def _apply(self, function, x, dtype=None):
        x = x.value if isinstance(x, Number) else self.dtype.numpy.type(x)
        with np.errstate(all="ignore"):
            return Number(function(self.value, x), dtype or self.dtype)

    def __add__(self, x):
        return self._apply(np.add, x)

    def __mul__(self, x):
        return self._apply(np.multiply, x)

    def __xor__(self, x):
        return self._apply(np.bitwise_xor, x)

    def __or__(self, x):
        return self._apply(np.bitwise_or, x)

    def __and__(self, x):
        return self._apply(np.bitwise_and, x)

    def __lshift__(self, x):
        return self._apply(np.left_shift, x)

    def __rshift__(self, x):
        return self._apply(np.right_shift, x)

    def __ge__(self, x):
        return self._apply(np.greater_equal, x, dtypes.bool_)

    def __le__(self, x):
        return self._apply(np.less_equal, x, dtypes.bool_)

    def eq(self, x):
        return self._apply(np.equal, x, dtypes.bool_)


class ScalarMachine:
    """What `lower` and `element` rules ask of a kernel, computed at once."""

    checks_indices = False

    def const(self, value, dtype):
        return Number(value, dtype)

    def index(self, index, dtype):
        assert index.is_constant
        return Number(np.array(index.const).astype(dtype.numpy), dtype)

    def dynamic(self, scalar, lo, hi):
        return Index(min(max(int(scalar.value), lo), hi))

    def convert(self, x, dtype):
        return Number(np.array(x.value).astype(dtype.numpy), dtype)

    def select(self, c, x, y):
        return x if c.value else y

    def logical_and(self, x, y):
        return x & y

    def add(self, x, y):
        return x + y

    def mul(self, x, y):
        return x * y

    def fma(self, x, y, z):
        return x * y + z

    def maximum(self, x, y):
        return x._apply(np.maximum, y)

    def minimum(self, x, y):
        return x._apply(np.minimum, y)


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
