"""Gather and scatter against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from smelt.ir import dtypes
from smelt.ir import op as op_module
from smelt.ir.aval import Aval
from smelt.ir.errors import AttributeValueError, DTypeError, NotDifferentiableError, ShapeError
from smelt.ir.host_loops import loops
from smelt.ir.ops.host_indexing import FEW, rows, write_rows
from smelt.lazy import core

from .rules import (
    Number,
    ScalarMachine,
    check_batch,
    check_jvp,
    check_tangent_transposes,
    check_transpose,
    constants,
    elements,
    fetcher,
    jvp,
    run,
    transpose,
)

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


@pytest.mark.skipif(core.native is None, reason="there is no core in C")
@pytest.mark.parametrize("combine", [None, np.add, np.multiply, np.maximum, np.minimum])
def test_rows_written_in_c_are_those_of_numpy(combine: np.ufunc | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that meet, rows that are not there, several indices, all dtypes, NaN and overflow; bit by bit."""
    rng = np.random.default_rng(6)
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    names += ["float16", "float32", "float64", "bool", "complex64"]
    shapes = (((7, 5), 1), ((3, 4, 5), 2), ((1, 9), 1), ((5, 0), 1), ((9,), 1))
    for dtype, (shape, lead) in itertools.product(names, shapes):
        count = int(rng.integers(0, 40))
        places = [rng.integers(-2, d + 2, count).astype(kind) for d, kind in zip(shape[:lead], ("int32", "int64"))]
        x, updates = rng.standard_normal(shape) * 50, rng.standard_normal((count, *[1] * lead, *shape[lead:])) * 50
        if np.dtype(dtype).kind == "f":
            x[rng.random(shape) < 0.1], updates[rng.random(updates.shape) < 0.1] = np.nan, np.nan
        with np.errstate(all="ignore"):
            x, updates = x.astype(dtype), updates.astype(dtype)
            found, expected = x.copy(), x.copy()
            write_rows(combine, found, updates, *places, shape[:lead])
            with monkeypatch.context() as without:
                without.setattr(loops, "write_rows", None)
                write_rows(combine, expected, updates, *places, shape[:lead])
        np.testing.assert_array_equal(found, expected, err_msg=f"{dtype} {shape}")


@pytest.mark.skipif(core.native is None, reason="there is no core in C")
def test_rows_that_do_not_fit_are_refused() -> None:
    x, rows, places = np.zeros((4, 3), np.float32), np.ones((2, 3), np.float32), np.array([0, 9])
    assert loops.write_rows is not None
    loops.write_rows(x, rows, places, 3, "f", 4, 1)
    np.testing.assert_array_equal(x.sum(1), [3, 0, 0, 0])
    changes = ({1: rows[:1]}, {2: places[:1]}, {3: 0}, {3: 5}, {3: 2**62}, {4: "b"}, {5: 3}, {5: -4}, {6: 5}, {6: -1})
    for changed in changes:
        given = [changed.get(i, v) for i, v in enumerate((x, rows, places, 3, "f", 4, 1))]
        with pytest.raises(ValueError):
            loops.write_rows(*given)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("mode", COMBINE)
def test_one_window_is_a_slice(mode: str, dtype: str, rng: np.random.Generator) -> None:
    """A call of its own; a window that would leave x is dropped, and x stays as it is."""
    x, updates = ((rng.standard_normal(shape) * 4).astype(dtype) for shape in ((6, 5, 4), (2, 1, 4)))
    before, scatter = x.copy(), op_module.get("scatter")
    for at in itertools.product((-1, 0, 3, 4, 5), (0, 4, 5)):
        indices = [np.array(i, np.int32) for i in at]
        avals = [Aval(a.shape, dtypes.of_numpy(a.dtype)) for a in (x, updates, *indices)]
        call = scatter.host_call(avals, avals[0], axes=(0, 1), mode=mode)
        found = call.function(x, updates, *indices, *call.extra)
        want = scatter_by_loops(x, updates, indices, (0, 1), mode)
        np.testing.assert_array_equal(found, want, strict=True)
        np.testing.assert_array_equal(found, run("scatter", x, updates, *indices, axes=(0, 1), mode=mode), strict=True)
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("shape", [(), (3, 2), (FEW,), (FEW + 1,)])
@pytest.mark.parametrize("inside", [False, True])
def test_few_places_and_many_are_found_alike(
    dtype: str, shape: tuple[int, ...], inside: bool, rng: np.random.Generator
) -> None:
    """Places beyond the ends are the nearest ones for a gather, and none for a scatter, however many there are."""
    extents = (4, 3, 5)
    x = rng.integers(0, 100, (*extents, 2)).astype(np.int32)
    ends = np.iinfo(dtype)
    drawn = [rng.integers(0, d, shape) for d in extents]
    if not inside:
        odd = [rng.choice([ends.min, ends.max, d, d - 1], shape) for d in extents]
        drawn = [np.where(rng.random(shape) < 0.3, o, i) for i, o in zip(drawn, odd)]
    indices = [i.astype(dtype) for i in drawn]
    found = rows(x, *indices, extents, (*shape, 1, 1, 1, 2))
    places = [np.clip(i.astype(np.int64), 0, d - 1) for i, d in zip(indices, extents)]
    np.testing.assert_array_equal(found.reshape(*shape, 2), x[tuple(places)])

    updates = rng.integers(0, 100, (*shape, 1, 1, 1, 2)).astype(np.int32)
    expected, out = x.copy(), x.copy()
    flat = [i.reshape(-1).astype(np.int64) for i in indices]
    for *place, update in zip(*flat, updates.reshape(-1, 2)):
        if all(0 <= i < d for i, d in zip(place, extents)):
            expected[tuple(place)] += update
    write_rows(np.add, out, updates, *indices, extents)
    np.testing.assert_array_equal(out, expected)
