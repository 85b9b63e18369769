"""Contractions, indexing, scans, sorting and random bits: each rule against NumPy or plain loops.

The rules run on an eager builder, which computes each op with `reference` as it is emitted, so a rule
is tested without the compiler; kernels' scalar code runs on `ScalarMachine`, NumPy behind the same names.
"""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import dtypes
from smelt.ir import op as op_module
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, OpView, Value
from smelt.ir.errors import AttributeValueError, DTypeError, NotDifferentiableError, ShapeError
from smelt.ir.index import Index
from smelt.ir.ops.random import threefry2x32

# Running rules without a compiler


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


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_every_example_is_one_line_of_mlir():
    families = ("contract", "indexing", "scan_sort", "random")
    names = [n for n, op in op_module.registry.items() if type(op).__module__.split(".")[-1] in families]
    assert len(names) == 12
    for name in names:
        example = op_module.get(name).example
        assert example is not None and f'"smelt.{name}"(' in example and " -> tensor<" in example


# Contractions

CONTRACTIONS = [  # shapes of lhs and rhs, their axes, the same as an einsum
    ((3, 4), (4, 5), (1,), (0,), (), (), "ik,kj->ij"),
    ((4, 3), (5, 4), (0,), (1,), (), (), "ki,jk->ij"),
    ((4,), (4,), (0,), (0,), (), (), "k,k->"),
    ((2,), (3,), (), (), (), (), "i,j->ij"),
    ((2, 3, 4), (2, 4, 5), (2,), (1,), (0,), (0,), "bik,bkj->bij"),
    ((3, 2, 4), (4, 5, 2), (2,), (0,), (1,), (2,), "ibk,kjb->bij"),
    ((2, 3, 4, 5), (5, 3, 6), (3, 1), (0, 1), (), (), "aibk,kij->abj"),
    ((2, 3, 4, 2), (3, 2, 2, 5), (3,), (1,), (1, 0), (0, 2), "abic,bcaj->baij"),
    ((2, 0, 3), (0, 4), (1,), (0,), (), (), "aki,kj->aij"),
]


def axes(c):
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    return dict(zip(names, c[2:6]))


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_is_einsum(c, rng):
    x, y = rng.standard_normal(c[0]), rng.standard_normal(c[1])
    np.testing.assert_allclose(run("dot_general", x, y, **axes(c)), np.einsum(c[-1], x, y), atol=1e-12)
    z = (x + 1j).astype(np.complex64)
    np.testing.assert_allclose(
        run("dot_general", z, y.astype(np.complex64), **axes(c)), np.einsum(c[-1], z, y), atol=1e-5
    )


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_derivatives(c, rng):
    x, y = rng.standard_normal(c[0]), rng.standard_normal(c[1])
    check_transpose("dot_general", [x, y], [True, False], rng, **axes(c))
    check_transpose("dot_general", [x, y], [False, True], rng, **axes(c))
    check_jvp("dot_general", [x, y], (0, 1), rng, **axes(c))


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_batches(c, rng):
    x, y = rng.integers(-9, 9, c[0]), rng.integers(-9, 9, c[1])
    for i, j in itertools.product([None, *range(x.ndim + 1)], [None, *range(y.ndim + 1)]):
        if i is None and j is None:
            continue
        operands = [
            z if d is None else np.stack([z, 2 * z + 1, z - 3], d) for z, d in ((x, i), (y, j))
        ]
        check_batch("dot_general", operands, (i, j), **axes(c))


def test_dot_general_batched_on_one_side_adds_no_batch_axis(rng):
    """vmap over rows of a matrix must stay one matrix product."""
    b, (op, attrs) = Eager(), full("dot_general", {"lhs_contracting": (0,), "rhs_contracting": (0,)})
    x, y = b.value(rng.standard_normal((8, 3))), b.value(rng.standard_normal((3, 4)))
    (found,), (dim,) = op.batch(b, [x, y], (0, None), **attrs)
    assert dim == 0 and found.owner.op is op and found.owner.operands == (x, y)
    assert found.owner.attrs["lhs_batch"] == ()


def test_dot_general_dtypes(rng):
    product = {"lhs_contracting": (1,), "rhs_contracting": (0,)}
    x = rng.integers(-128, 127, (5, 40)).astype(np.int8)
    wrapped = (x.astype(np.int64) @ x.T.astype(np.int64)).astype(np.int8)
    np.testing.assert_array_equal(run("dot_general", x, x.T, **product), wrapped)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        ones = np.ones((1, 5000), dtype)  # summed in the narrow dtype this would stop growing
        found = run("dot_general", ones, ones.T, **product)
        assert found.dtype == dtype and found[0, 0] == dtype(5000)


@pytest.mark.parametrize("c", CONTRACTIONS, ids=lambda c: c[-1])
def test_dot_general_lowers_to_matrix_products_and_to_loops(c, rng):
    x, y = rng.standard_normal(c[0]), rng.standard_normal(c[1])
    op = op_module.get("dot_general")
    left, right = Aval(x.shape, dtypes.float64), Aval(y.shape, dtypes.float64)
    form = op.canonical_form(left, right, **axes(c))
    want = np.einsum(c[-1], x, y)

    def matrices(z, permutation, layout, rows, columns):
        if layout == "plain":  # in memory as it is
            return z.reshape(form.batch, rows, columns)
        if layout == "transposed":
            return z.reshape(form.batch, columns, rows).transpose(0, 2, 1)
        return z.transpose(permutation).reshape(form.batch, rows, columns)

    for layouts in ((form.lhs_layout, form.rhs_layout), ("copy", "copy")):
        found = matrices(x, form.lhs_permutation, layouts[0], form.m, form.k) @ matrices(
            y, form.rhs_permutation, layouts[1], form.k, form.n
        )
        np.testing.assert_allclose(found.reshape(want.shape), want, atol=1e-12)

    extents = [x.shape[a] for a in c[2]]
    for at in np.ndindex(want.shape):
        total = Number(0.0, dtypes.float64)
        for contracted in np.ndindex(*extents):
            i, j = op.operand_indices(constants(at), constants(contracted), left, right, **axes(c))
            fetch = fetcher([x, y])
            total = op.accumulate(ScalarMachine(), total, fetch(0, i), fetch(1, j))
        np.testing.assert_allclose(total.value, want[at], atol=1e-12)


def test_canonical_form_spots_operands_that_need_no_copy():
    op = op_module.get("dot_general")

    def layouts(lhs, rhs, *axes_):
        names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
        avals = Aval(lhs, dtypes.float32), Aval(rhs, dtypes.float32)
        form = op.canonical_form(*avals, **dict(zip(names, axes_)))
        return form.lhs_layout, form.rhs_layout

    assert layouts((3, 4), (4, 5), (1,), (0,), (), ()) == ("plain", "plain")
    assert layouts((4, 3), (5, 4), (0,), (1,), (), ()) == ("transposed", "transposed")
    assert layouts((2, 3, 4), (2, 5, 4), (2,), (2,), (0,), (0,)) == ("plain", "transposed")
    assert layouts((3, 2, 4), (2, 4, 5), (2,), (1,), (1,), (0,)) == ("copy", "plain")
    # a batch axis of size one lies anywhere, and the order of the contracting axes is free
    assert layouts((3, 1, 4), (1, 4, 5), (2,), (1,), (1,), (0,)) == ("plain", "plain")
    assert layouts((2, 3, 4), (3, 4, 5), (2, 1), (1, 0), (), ()) == ("plain", "plain")


def test_dot_general_errors():
    product = {"lhs_contracting": (1,), "rhs_contracting": (0,)}
    x, y = np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)
    with pytest.raises(ShapeError, match=r"axis 1 of lhs has 3 elements, axis 0 of rhs has 4.*f32\[2,3\]"):
        run("dot_general", x, y, **product)
    with pytest.raises(DTypeError, match="same dtype"):
        run("dot_general", x, np.ones((3, 2)), **product)
    with pytest.raises(AttributeValueError, match="lhs has 1 contracting axes, rhs has 0"):
        run("dot_general", x, y, lhs_contracting=(1,), rhs_contracting=())
    with pytest.raises(AttributeValueError, match="repeat"):
        run("dot_general", x, x, lhs_contracting=(1,), rhs_contracting=(1,), lhs_batch=(1,), rhs_batch=(1,))


# Gather and scatter

WINDOWS = [  # shape of x, axes, window, shape of the indices
    ((6,), (0,), (1,), (4,)),
    ((6, 3), (0,), (1, 3), (2, 2)),
    ((6, 3), (1,), (2, 2), (5,)),
    ((4, 5, 3), (2, 0), (2, 4, 1), (3,)),
    ((4, 5), (0, 1), (1, 1), (7,)),
    ((4, 5), (0, 1), (2, 3), ()),
    ((4, 5), (), (4, 2), ()),
    ((4, 5), (0,), (4, 5), (2,)),
    ((4, 5), (1,), (1, 1), (0,)),
]


def random_indices(rng, shape, axes, at, dtype=np.int32, outside=2):
    return [rng.integers(-outside, shape[a] + outside, at).astype(dtype) for a in axes]


def starts_at(indices, axes, i, ndim):
    start = [0] * ndim
    for j, a in enumerate(axes):
        start[a] = int(indices[j][i])
    return start


def gather_by_loops(x, indices, axes, window, at):
    out = np.empty((*at, *window), x.dtype)
    for i in np.ndindex(at):
        start = [
            min(max(s, 0), d - w) for s, d, w in zip(starts_at(indices, axes, i, x.ndim), x.shape, window)
        ]
        out[i] = x[tuple(slice(s, s + w) for s, w in zip(start, window))]
    return out


COMBINE = {
    "set": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


def scatter_by_loops(x, updates, indices, axes, mode):
    out, lead = x.copy(), updates.ndim - x.ndim
    window = updates.shape[lead:]
    for i in np.ndindex(updates.shape[:lead]):
        start = starts_at(indices, axes, i, x.ndim)
        if all(0 <= s <= d - w for s, d, w in zip(start, x.shape, window)):
            at = tuple(slice(s, s + w) for s, w in zip(start, window))
            out[at] = COMBINE[mode](out[at], updates[i])
    return out


@pytest.mark.parametrize("w", WINDOWS, ids=str)
def test_gather(w, rng):
    shape, axes_, window, at = w
    x, indices = rng.standard_normal(shape), random_indices(rng, shape, axes_, at)
    attrs = {"axes": axes_, "slice_sizes": window}
    want = gather_by_loops(x, indices, axes_, window, at)
    np.testing.assert_array_equal(run("gather", x, *indices, **attrs), want)
    np.testing.assert_array_equal(elements("gather", x, *indices, **attrs), want)
    check_jvp("gather", [x, *indices], (0,), rng, **attrs)
    check_transpose("gather", [x, *indices], [True, *(False for _ in indices)], rng, **attrs)


@pytest.mark.parametrize("w", WINDOWS, ids=str)
def test_gather_batches(w, rng):
    shape, axes_, window, at = w
    attrs = {"axes": axes_, "slice_sizes": window}
    for dim in (None, *range(len(shape) + 1)):
        for index_dim in (None, *range(len(at) + 1)):
            if dim is None and (index_dim is None or not axes_):
                continue
            x = rng.standard_normal(shape if dim is None else (*shape[:dim], 3, *shape[dim:]))
            indices = [random_indices(rng, shape, axes_, at) for _ in range(3)]
            if index_dim is None:
                indices = indices[0]
            else:
                indices = [np.stack(each, index_dim) for each in zip(*indices)]
            check_batch("gather", [x, *indices], (dim, *(index_dim for _ in axes_)), **attrs)
    if len(axes_) == 2 and at == (7,):  # only one of two index tensors batched
        i, j = random_indices(rng, shape, axes_, (3, 7))
        check_batch("gather", [rng.standard_normal(shape), i, j[0]], (None, 0, None), **attrs)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_gather_clamps_in_any_index_dtype(dtype, rng):
    x = rng.standard_normal(300)
    index = np.array([0, 5, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    want = x[np.array([min(max(int(i), 0), 299) for i in index])].reshape(4, 1)
    attrs = {"axes": (0,), "slice_sizes": (1,)}
    np.testing.assert_array_equal(run("gather", x, index, **attrs), want)
    check_transpose("gather", [x, index], [True, False], rng, **attrs)


@pytest.mark.parametrize("mode", COMBINE)
@pytest.mark.parametrize("w", WINDOWS, ids=str)
def test_scatter(w, mode, rng):
    shape, axes_, window, at = w
    x, updates = rng.standard_normal(shape), rng.standard_normal((*at, *window))
    indices = random_indices(rng, shape, axes_, at)
    attrs = {"axes": axes_, "mode": mode}
    want = scatter_by_loops(x, updates, indices, axes_, mode)
    np.testing.assert_allclose(run("scatter", x, updates, *indices, **attrs), want, rtol=1e-14)
    check_jvp("scatter", [x, updates, *indices], (0, 1), rng, **attrs)
    check_tangent_transposes("scatter", [x, updates, *indices], (0, 1), rng, **attrs)
    if mode in ("add", "set"):
        for linear in ((True, False), (False, True), (True, True)):
            operands = [z if is_linear else np.zeros_like(z) for z, is_linear in zip((x, updates), linear)]
            marks = [*linear, *(False for _ in indices)]
            check_transpose("scatter", [*operands, *indices], marks, rng, **attrs)
    else:
        with pytest.raises(NotDifferentiableError, match="not linear"):
            transpose("scatter", x, [x, updates, *indices], [True, False, *(False for _ in indices)], **attrs)

    op, out = op_module.get("scatter"), x.copy()  # the way in which a backend runs it
    avals = [Aval(z.shape, dtypes.of(z.dtype)) for z in (x, updates, *indices)]
    for at_update in np.ndindex(updates.shape):
        machine, fetch = ScalarMachine(), fetcher([x, updates, *indices])
        inside, target = op.place(machine, constants(at_update), fetch, avals, **attrs)
        if inside.value:
            to = tuple(i.const for i in target)
            old, new = Number(out[to], dtypes.float64), fetch(1, constants(at_update))
            out[to] = op.combine(machine, old, new, mode=mode).value
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("mode", COMBINE)
@pytest.mark.parametrize("w", WINDOWS, ids=str)
def test_scatter_batches(w, mode, rng):
    shape, axes_, window, at = w
    for dim, update_dim, index_dim in itertools.product((None, 0, len(shape)), (None, 0, 1), (None, len(at))):
        if dim is update_dim is None and (index_dim is None or not axes_):
            continue
        x = rng.integers(-9, 9, shape if dim is None else (*shape[:dim], 3, *shape[dim:]))
        extents = [*at, *window]
        if update_dim is not None:
            extents.insert(update_dim, 3)
        updates = rng.integers(-9, 9, extents)
        indices = [random_indices(rng, shape, axes_, at) for _ in range(3)]
        if index_dim is None:
            indices = indices[0]
        else:
            indices = [np.stack(each, index_dim) for each in zip(*indices)]
        dims = (dim, update_dim, *(index_dim for _ in axes_))
        check_batch("scatter", [x, updates, *indices], dims, axes=axes_, mode=mode)


def test_scatter_repeated_places(rng):
    index = np.array([1, 1, 2, 1, 9], np.int32)
    attrs = {"axes": (0,)}
    x, u = np.arange(1.0, 5.0), np.array([[3.0], [4.0], [5.0], [6.0], [7.0]])
    assert run("scatter", x, u, index, mode="set", **attrs).tolist() == [1, 6, 5, 4]
    assert run("scatter", x, u, index, mode="mul", **attrs).tolist() == [1, 2 * 72, 15, 4]
    to_x, to_u, _ = transpose("scatter", np.ones(4), [x, u, index], [True, True, False], mode="set", **attrs)
    assert to_x.tolist() == [1, 0, 0, 1]
    assert to_u.ravel().tolist() == [0, 0, 1, 1, 0]  # the last of several, and none for the dropped one


@pytest.mark.parametrize("zeros", [(), (0,), (0, 1), (0, 2), (0, 1, 3)])
def test_scatter_mul_derivative_is_exact_at_zeros(zeros, rng):
    index = np.array([1, 1, 2, 1], np.int32)
    x, u = rng.standard_normal(4), rng.standard_normal((4, 1))
    u[list(zeros)] = 0
    check_jvp("scatter", [x, u, index], (0, 1), rng, axes=(0,), mode="mul")
    x[1] = 0
    check_jvp("scatter", [x, u, index], (0, 1), rng, axes=(0,), mode="mul")


@pytest.mark.parametrize("mode", ["max", "min"])
def test_scatter_extremum_shares_among_ties(mode):
    x, u, index = np.array([2.0, 5.0]), np.array([[2.0], [2.0], [5.0]]), np.array([0, 0, 1], np.int64)
    attrs = {"axes": (0,), "mode": mode}
    tx, tu = np.array([3.0, 0]), np.array([[6.0], [9.0], [4.0]])
    found = jvp("scatter", [x, u, index], [tx, tu, None], **attrs)
    assert found.tolist() == [6, 2]


def test_scatter_dtypes(rng):
    index = np.array([0, 2, 2], np.uint32)
    for dtype in dtypes.ALL:
        x, u = rng.integers(0, 2, 4).astype(dtype.numpy), rng.integers(0, 2, (3, 1)).astype(dtype.numpy)
        for mode in COMBINE:
            if dtype.is_complex and mode in ("max", "min"):
                with pytest.raises(DTypeError):
                    run("scatter", x, u, index, axes=(0,), mode=mode)
                continue
            want = scatter_by_loops(x, u, [index], (0,), mode)
            np.testing.assert_array_equal(run("scatter", x, u, index, axes=(0,), mode=mode), want)


def test_indexing_errors():
    x, index = np.ones((4, 5), np.float32), np.zeros(3, np.int32)
    with pytest.raises(DTypeError, match="index tensor is float32"):
        run("gather", x, x, axes=(0,), slice_sizes=(1, 5))
    with pytest.raises(AttributeValueError, match="do not fit"):
        run("gather", x, index, axes=(0,), slice_sizes=(5, 5))
    with pytest.raises(AttributeValueError, match="one entry an axis"):
        run("gather", x, index, axes=(0,), slice_sizes=(1,))
    with pytest.raises(ShapeError, match="one index tensor an axis"):
        run("gather", x, index, axes=(0, 1), slice_sizes=(1, 1))
    with pytest.raises(ShapeError, match="same shape"):
        run("gather", x, index, index[:2], axes=(0, 1), slice_sizes=(1, 1))
    with pytest.raises(AttributeValueError, match="out of range"):
        run("gather", x, index, axes=(2,), slice_sizes=(1, 1))
    with pytest.raises(AttributeValueError, match='mode "avg"'):
        run("scatter", x, np.ones((3, 1, 5), np.float32), index, axes=(0,), mode="avg")
    with pytest.raises(ShapeError, match="window"):
        run("scatter", x, np.ones((3, 1, 6), np.float32), index, axes=(0,), mode="add")
    with pytest.raises(DTypeError, match="dtype of x"):
        run("scatter", x, np.ones((3, 1, 5)), index, axes=(0,), mode="add")


# Scans and sorting

SCANS = {
    "cumsum": np.sum, "cumprod": np.prod, "cummax": np.max, "cummin": np.min,
    "logcumsumexp": lambda v: np.log(np.sum(np.exp(v))),
}  # fmt: skip
VARIANTS = [{"reverse": r, "inclusive": i} for r in (False, True) for i in (False, True)]


def scan_by_loops(name, x, axis, reverse, inclusive):
    op, out = op_module.get(name), np.empty_like(x)
    x, view = np.moveaxis(x, axis, -1), np.moveaxis(out, axis, -1)
    for at in np.ndindex(x.shape):
        i = at[-1]
        seen = x[at[:-1]][i + (not inclusive) :] if reverse else x[at[:-1]][: i + inclusive]
        view[at] = SCANS[name](seen) if seen.size else op.identity(dtypes.of(x.dtype))
    return out


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_scans(name, variant, rng):
    for shape, axis in (((5,), 0), ((3, 6, 2), 1), ((4, 1), 1), ((0, 3), 0), ((3, 0), 0)):
        x = rng.standard_normal(shape)
        attrs = {"axis": axis, **variant}
        want = scan_by_loops(name, x, **attrs)
        np.testing.assert_allclose(run(name, x, **attrs), want, rtol=1e-12, atol=1e-14)
        if shape[axis]:
            check_jvp(name, [x], (0,), rng, **attrs)
            if x.size:
                check_tangent_transposes(name, [x], (0,), rng, **attrs)
        for dim in range(len(shape) + 1):
            check_batch(name, [np.stack([x, x + 1], dim)], (dim,), **attrs)
        if name == "cumsum":
            check_transpose(name, [x], [True], rng, **attrs)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_scans_by_steps_of_combine(name, rng):
    """What a backend does: start from the identity, combine in order."""
    op = op_module.get(name)
    for dtype in (dtypes.int8, dtypes.uint16, dtypes.float32, dtypes.float64):
        x = rng.integers(0, 5, 9).astype(dtype.numpy)
        state, out = Number(op.identity(dtype), dtype), []
        for v in x:
            state = op.combine(ScalarMachine(), state, Number(v, dtype))
            out.append(state.value)
        np.testing.assert_array_equal(run(name, x, axis=0), np.array(out))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("zeros", [(0,), (2, 5), (0, 6), tuple(range(7))])
def test_cumprod_derivative_is_exact_at_zeros(zeros, variant, rng):
    x = rng.standard_normal(7)
    x[list(zeros)] = 0
    check_jvp("cumprod", [x], (0,), rng, axis=0, **variant)


def test_logcumsumexp_far_from_overflow(rng):
    x = np.array([-np.inf, -np.inf, 1000.0, 999.0, -1000.0, 3000.0])
    found = run("logcumsumexp", x, axis=0)
    two = 1000 + np.log1p(np.exp(-1))
    np.testing.assert_allclose(found[2:], [1000, two, two, 3000])
    assert np.all(found[:2] == -np.inf)
    t = rng.standard_normal(6)
    p = 1 / (1 + np.exp(-1))
    want = [0, 0, t[2], p * t[2] + (1 - p) * t[3], p * t[2] + (1 - p) * t[3], t[5]]
    np.testing.assert_allclose(jvp("logcumsumexp", [x], [t], axis=0), want, atol=1e-12)


def test_cumulative_extrema_give_ties_to_the_latest():
    x, t = np.array([1.0, 3, 3, 2, 3, 5]), np.arange(6.0)
    assert jvp("cummax", [x], [t], axis=0).tolist() == [0, 1, 2, 2, 4, 5]
    assert jvp("cummax", [x], [t], axis=0, inclusive=False).tolist() == [0, 0, 1, 2, 2, 4]
    assert jvp("cummax", [-x], [t], axis=0, reverse=True).tolist() == [0, 3, 3, 3, 4, 5]
    assert jvp("cummin", [-x], [t], axis=0).tolist() == [0, 1, 2, 2, 4, 5]


def test_scan_dtypes(rng):
    for dtype in (np.float16, ml_dtypes.bfloat16):
        found = run("cumsum", np.ones(5000, dtype), axis=0)  # would stop growing in the narrow dtype
        assert found.dtype == dtype and found[-1] == dtype(5000)
        x, t = rng.standard_normal((2, 8)).astype(dtype)
        for name in SCANS:
            assert jvp(name, [x], [t], axis=0).dtype == dtype
    assert run("cumsum", np.full(3, 100, np.int8), axis=0).tolist() == [100, -56, 44]
    x = np.array([False, True, False])
    assert run("cummax", x, axis=0).tolist() == [False, True, True]
    assert run("cummin", x, axis=0, inclusive=False).tolist() == [True, False, False]
    assert np.isnan(run("cummax", np.array([1, np.nan, 2.0]), axis=0)).tolist() == [False, True, True]
    with pytest.raises(DTypeError):
        run("cumsum", x, axis=0)
    with pytest.raises(AttributeValueError):
        run("cumsum", np.ones(3), axis=1)


@pytest.mark.parametrize("dtype", (dtypes.bool_, *dtypes.REAL), ids=lambda d: d.name)
def test_sort(dtype, rng):
    x = rng.integers(0, 20, (4, 30, 3)).astype(dtype.numpy)
    for axis in range(3):
        for dim in range(4):
            check_batch("sort", [np.stack([x, x[::-1]], dim)], (dim,), axis=axis)
            check_batch("argsort", [np.stack([x, x[::-1]], dim)], (dim,), axis=axis)
        lines = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).tolist()
        found = np.moveaxis(run("sort", x, axis=axis), axis, -1).reshape(-1, x.shape[axis]).tolist()
        at = np.moveaxis(run("argsort", x, axis=axis), axis, -1).reshape(-1, x.shape[axis]).tolist()
        assert found == [sorted(line) for line in lines]
        assert at == [sorted(range(len(line)), key=line.__getitem__) for line in lines]  # Python's is stable


@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=lambda d: d.name)
def test_sort_puts_nan_last(dtype):
    x = np.array([np.nan, 2, -np.inf, np.inf, np.nan, 0]).astype(dtype.numpy)
    found = run("sort", x, axis=0)
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found.astype(float), [-np.inf, 0, 2, np.inf, np.nan, np.nan])
    assert run("argsort", x, axis=0).tolist() == [2, 5, 1, 3, 0, 4]


def test_sort_derivative(rng):
    check_jvp("sort", [rng.standard_normal((3, 5))], (0,), rng, axis=1)
    check_jvp("sort", [rng.standard_normal((3, 5))], (0,), rng, axis=0)
    check_tangent_transposes("sort", [rng.standard_normal((3, 5))], (0,), rng, axis=0)


# Random bits

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    "key, counter, block",  # published with Random123
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(key, counter, block):
    words = [np.array([w], np.uint32) for w in (*key, *counter)]
    assert tuple(int(x[0]) for x in threefry2x32(*words)) == block
    numbers = [Number(w, dtypes.uint32) for w in (*key, *counter)]
    assert tuple(int(x.value) for x in threefry2x32(*numbers)) == block


def test_random_bits_are_blocks_of_threefry():
    key = np.array([5, 6], np.uint32)
    zero = np.zeros(1, np.uint32)
    blocks = [threefry2x32(key[:1], key[1:], zero, np.array([n], np.uint32)) for n in range(6)]
    first, second = ([int(b[i][0]) for b in blocks] for i in (0, 1))
    for width in (8, 16, 32):
        found = run("random_bits", key, shape=(2, 3), width=width)
        assert found.dtype == f"uint{width}"
        assert found.ravel().tolist() == [x % 2**width for x in first]
    wide = run("random_bits", key, shape=(2, 3), width=64)
    assert wide.ravel().tolist() == [(x << 32) + y for x, y in zip(first, second)]
    split = run("random_split", key, num=2)
    want = [threefry2x32(*(np.array([w], np.uint32) for w in (5, 6, ONES, i))) for i in range(2)]
    assert split.tolist() == [[int(x[0]), int(y[0])] for x, y in want]


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_random_elements_are_the_reference(width, rng):
    for batch in ((), (3,), (2, 2)):
        keys = rng.integers(0, 2**32, (*batch, 2)).astype(np.uint32)
        for shape in ((), (4,), (2, 3)):
            attrs = {"shape": shape, "width": width}
            found = run("random_bits", keys, **attrs)
            np.testing.assert_array_equal(found, elements("random_bits", keys, **attrs))
            for dim in range(len(batch) + 1):
                check_batch("random_bits", [np.stack([keys, keys + np.uint32(1)], dim)], (dim,), **attrs)
        np.testing.assert_array_equal(run("random_split", keys, num=3), elements("random_split", keys, num=3))
        check_batch("random_split", [np.stack([keys, keys ^ np.uint32(9)])], (0,), num=3)


def test_random_bits_of_arrays_beyond_4_gigaelements():
    """The offset's high word is part of the counter."""
    op, key = op_module.get("random_bits"), np.array([1, 2], np.uint32)
    attrs = {"shape": (2**20, 2**14), "width": 32}
    aval = Aval((2,), dtypes.uint32)
    at = 2**19 + 3, 77
    n = at[0] * 2**14 + at[1]
    found = op.element(
        ScalarMachine(), constants(at), fetcher([key]), [aval], op.infer(aval, **attrs), **attrs
    ).value
    want = threefry2x32(*(np.array([w], np.uint32) for w in (1, 2, n >> 32, n & ONES)))[0][0]
    assert n >> 32 and found == want


def test_random_bits_are_uniform():
    bits = run("random_bits", np.array([0, 42], np.uint32), shape=(1 << 16,), width=32)
    ones = np.unpackbits(bits.view(np.uint8).reshape(-1, 4), axis=1).mean(0)
    assert np.all(np.abs(ones - 0.5) < 5 * 0.5 / 256)  # five standard deviations, each of 32 bits
    counts = np.bincount(bits >> 24, minlength=256)
    assert ((counts - 256.0) ** 2 / 256).sum() < 255 + 5 * np.sqrt(2 * 255)


def test_random_errors():
    key = np.zeros(2, np.uint32)
    with pytest.raises(DTypeError, match="key is int32"):
        run("random_bits", np.zeros(2, np.int32), shape=(3,), width=32)
    with pytest.raises(ShapeError, match="2 words"):
        run("random_split", np.zeros(3, np.uint32), num=2)
    with pytest.raises(AttributeValueError, match="width 12"):
        run("random_bits", key, shape=(3,), width=12)
    with pytest.raises(AttributeValueError, match="negative"):
        run("random_bits", key, shape=(-3,), width=32)
