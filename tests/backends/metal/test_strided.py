"""Kernels for all sizes on a GPU, and plans of them: the values of ops one by one, over the simulator."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.buffer import Buffer
from smelt.backends.gpu import strided, strided_scatter
from smelt.backends.metal.check import check_or_raise
from smelt.backends.strided import Laid
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.op_program import OpProgram
from smelt.ir.settings import override
from smelt.ir.strided import module_of, with_layout
from smelt.ir.strided_layout import StridedLayout
from smelt.lazy.execution.as_groups import scatter_text
from smelt.lazy.execution.device_plan import DevicePlan, can_run
from smelt.lazy.execution.strided import kernels
from smelt.runtime.compile import compile_anew
from smelt.runtime.pipelines import WITHOUT_SIZES

from ...devices import chosen_device
from ..random_graphs import made
from ..strided_graphs import recorded

SIM = smelt.Device("metal:sim")
#: Of plans: the one that was asked for, if its memory is its own.
DEVICE = SIM if chosen_device().is_host else chosen_device()


def planned(function: Callable[..., Sequence[Any]], arrays: Sequence[np.ndarray]) -> tuple[OpProgram, DevicePlan]:
    avals = [Aval(x.shape, dtypes.of(x.dtype)) for x in arrays]
    ops = OpProgram(*recorded(avals, function), lambda f, operands: [])
    assert can_run(ops, DEVICE)
    return ops, DevicePlan(ops, DEVICE)


def run(plan: DevicePlan, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [b.array for b in plan.run([Buffer.of(x, Aval(x.shape, dtypes.of(x.dtype))) for x in arrays])]


def compare(function: Callable[..., Sequence[Any]], *arrays: np.ndarray, rtol: float = 1e-5) -> DevicePlan:
    """Raises AssertionError where a plan has other values than the ops one by one."""
    ops, plan = planned(function, arrays)
    for found, want in zip(run(plan, arrays), ops.run(arrays), strict=True):
        assert (found.shape, found.dtype) == (np.shape(want), np.asarray(want).dtype)
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(found.astype(wide), np.asarray(want).astype(wide), rtol, rtol)
    return plan


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(shape).standard_normal(shape) * 3).astype(dtype)


def programs(plan: DevicePlan) -> int:
    """Steps that are compiled for their sizes."""
    return sum([step.table is None for step in plan.steps])


@pytest.mark.parametrize("seed", range(0, 48, 4))
def test_random_graphs(seed: int) -> None:
    graph, arrays = made(range(seed, seed + 4), 4000)
    compare(graph, *map(np.ascontiguousarray, arrays), rtol=1e-4)


PRODUCTS = {
    "matrices": ((4, 70), (70, 3), (1,), (0,), (), ()),
    "scores": ((2, 3, 4, 8), (2, 3, 9, 8), (3,), (3,), (0, 1), (0, 1)),
    "values": ((2, 3, 4, 9), (2, 3, 9, 8), (3,), (2,), (0, 1), (0, 1)),
    "vectors": ((700,), (700,), (0,), (0,), (), ()),
    "outer": ((7,), (9,), (), (), (), ()),
    "two axes": ((3, 4, 5), (5, 3, 6), (0, 2), (1, 0), (), ()),
    "nothing": ((4, 0), (0, 3), (1,), (0,), (), ()),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, dtype: Any) -> None:
    left, right, lhs, rhs, lhs_batch, rhs_batch = PRODUCTS[name]

    def product(b: Any, x: Any, y: Any) -> list[Any]:
        return [b.dot_general(x, y, lhs_contracting=lhs, rhs_contracting=rhs, lhs_batch=lhs_batch, rhs_batch=rhs_batch)]

    tolerance = 2e-3 if dtype == np.float16 else 1e-4
    compare(product, numbers(*left, dtype=dtype), numbers(*right, dtype=dtype), rtol=tolerance)


INDICES = np.array([0, 4, -1, 9, 2])
GATHERS = {
    "rows": lambda b, x, i: b.gather(x, i, axes=(0,), slice_sizes=(1, 6, 7)),
    "windows": lambda b, x, i: b.gather(x, i, axes=(1,), slice_sizes=(5, 3, 2)),
    "a transpose": lambda b, x, i: b.gather(b.transpose(x, permutation=(2, 0, 1)), i, axes=(1,), slice_sizes=(7, 2, 3)),
    "backwards": lambda b, x, i: b.gather(b.reverse(x, axes=(0, 2)), i, i, axes=(0, 2), slice_sizes=(1, 2, 3)),
    "none": lambda b, x, i: b.gather(x, b.slice(i, start=(0,), stop=(0,), stride=(1,)),
                                     axes=(1,), slice_sizes=(5, 1, 7)),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.int64, np.uint64])
@pytest.mark.parametrize("name", GATHERS)
def test_gathers(name: str, dtype: Any) -> None:
    """Indices out of range are clamped, those beyond the largest int, too."""
    plan = compare(lambda b, x, i: [GATHERS[name](b, x, i)], numbers(5, 6, 7), INDICES.astype(dtype))
    assert programs(plan) == 0


PIECES = {
    "concatenate": lambda b, x, y, v: b.concatenate(b.transpose(x, permutation=(1, 0)), y, axis=1),
    "of nothing": lambda b, x, y, v: b.concatenate(b.slice(y, start=(0, 0), stop=(4, 0), stride=(1, 1)), y, axis=1),
    "pad": lambda b, x, y, v: b.pad(x, v, low=(1, 0), high=(2, 3), interior=(0, 2)),
    "views": lambda b, x, y, v: b.mul(b.reverse(x, axes=(0, 1)), x),
    "a view": lambda b, x, y, v: b.reverse(x, axes=(1,)),
    "positions": lambda b, x, y, v: b.mul(x, b.iota(shape=(3, 4), axis=1, dtype=dtypes.float32)),
    "an argument": lambda b, x, y, v: x,
    "twice": lambda b, x, y, v: b.add(y, b.broadcast(v, shape=(4, 5))),
}


@pytest.mark.parametrize("name", PIECES)
def test_views_and_what_is_put_together(name: str) -> None:
    plan = compare(lambda b, *operands: [PIECES[name](b, *operands)] * 2, numbers(3, 4), numbers(4, 5), numbers())
    assert programs(plan) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.uint32, np.bool_])
def test_reductions(dtype: Any) -> None:
    names = ["reduce_sum", "reduce_max", "reduce_min"] if dtype is not np.bool_ else ["reduce_any", "reduce_all"]
    x = (numbers(3, 5, 300) > 0) if dtype is np.bool_ else numbers(3, 5, 300).astype(dtype)

    def emitted(b: Any, x: Any) -> list[Any]:
        return [getattr(b, name)(x, axes=axes) for name in names for axes in ((2,), (0,), (1, 2), (0, 1, 2), (1,))]

    assert programs(compare(emitted, x, rtol=2e-2 if dtype == np.float16 else 1e-5)) == 0


@pytest.mark.parametrize("dtype", [np.complex64, np.float16, np.int8, np.bool_, np.uint64, dtypes.bfloat16.numpy])
def test_dtypes_that_are_copied(dtype: Any) -> None:
    def joined(b: Any, x: Any) -> list[Any]:
        return [b.concatenate(b.transpose(x, permutation=(1, 0)), b.reshape(x, shape=(4, 3)), axis=0)]

    assert programs(compare(joined, numbers(3, 4).astype(dtype))) == 0


def test_more_arrays_than_a_kernel_may_have() -> None:
    arrays = [numbers(5, n + 1)[:, :4].copy() for n in range(3, 43)]

    def function(b: Any, *xs: Any) -> list[Any]:
        total = xs[0]
        for x in xs[1:]:
            total = b.add(b.exp(b.neg(total)), x)
        row = b.reduce_sum(total, axes=(1,))
        return [total, row, b.mul(total, b.broadcast(b.reshape(row, shape=(5, 1)), shape=(5, 4)))]

    assert programs(compare(function, *arrays, rtol=1e-4)) == 0


def test_many_axes() -> None:
    x = numbers(*[2, 1, 2, 2] * 3)

    def turned(b: Any, x: Any) -> list[Any]:
        return [b.exp(b.transpose(x, permutation=tuple(range(x.ndim))[::-1])), b.reduce_sum(x, axes=(1, 4, 9))]

    compare(turned, x)


def test_complex_numbers() -> None:
    x = (numbers(3, 40) + 1j * numbers(3, 40)[::-1]).astype(np.complex64)

    def function(b: Any, x: Any) -> list[Any]:
        sums = [b.reduce_sum(x, axes=(1,)), b.reduce_sum(x, axes=(0,)), b.reduce_prod(x, axes=(0,))]
        return [*sums, b.mul(x, b.reverse(x, axes=(1,))), b.real(x), b.exp(x), b.abs(x)]

    assert programs(compare(function, x, rtol=1e-4)) == 0


def test_special_values() -> None:
    x = np.array([[np.nan, 1, -0.0], [np.inf, -np.inf, 0], [-np.inf, -np.inf, -np.inf]], np.float32)
    compare(lambda b, x: [b.reduce_max(x, axes=(1,)), b.reduce_min(x, axes=(0,)), b.exp(x), b.neg(x)], x)


def test_sizes_share_kernels() -> None:
    """Each size by the kernels of the first, but for those that ops with sizes met before get."""

    def softmax(b: Any, x: Any) -> list[Any]:
        shape = (*x.shape[:-1], 1)
        top = b.reshape(b.reduce_max(x, axes=(1,)), shape=shape)
        e = b.exp(b.sub(x, b.broadcast(top, shape=x.shape)))
        return [b.div(e, b.broadcast(b.reshape(b.reduce_sum(e, axes=(1,)), shape=shape), shape=x.shape))]

    compare(softmax, numbers(3, 70))
    before = kernels.misses
    for shape in ((4, 71), (9, 100), (2, 999)):
        assert programs(compare(softmax, numbers(*shape))) == 0
    assert kernels.misses == before


@pytest.mark.parametrize("narrow", [1 << 30, 0])
def test_texts(narrow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is emitted is Metal, with indices of both widths; in any order of threads it gives the same."""
    monkeypatch.setattr(strided, "NARROW", narrow)
    text = json.dumps(
        [1, [["f32", True], ["f16", True]],
         [["smelt.exp", {}, [0], True], ["smelt.reduce_sum", {}, [2], False], ["smelt.div", {}, [2, 3], True]],
         [[4, True], [3, False]]]
    )  # fmt: skip
    x, y = numbers(5, 130), numbers(130, 5, dtype=np.float16)
    at = Laid(StridedLayout(0, (130, 1)), True), Laid(StridedLayout(0, (1, 5)), True)
    results = Laid(StridedLayout(0, (130, 1)), True), Laid(StridedLayout(0, (1,)), False)
    binding = strided.METAL_KERNELS.bind((5, 130), 1, at, results)
    assert binding is not None
    assert strided.GroupLayout.read(binding.layout).bits == (32 if narrow else 64)
    for race in ("", "forward", "reverse", "shuffled"):
        with override(race=race):
            kernel = compile_anew(module_of(with_layout(text, binding.layout)), SIM, WITHOUT_SIZES, keep_texts=True)
            check_or_raise(kernel.as_text("msl"))
            out, row = np.empty((5, 130), np.float32), np.empty(5, np.float32)
            buffers = [Buffer.of(a, Aval(a.shape, dtypes.of(a.dtype))) for a in (binding.table, x, y, out, row)]
            strided.METAL_KERNELS.launch(kernel, buffers[:3], buffers[3:])
        e = np.exp(x)
        np.testing.assert_allclose(row, e.sum(1), 1e-5)
        np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), 1e-5)


@pytest.mark.parametrize("race", ["", "forward", "reverse", "shuffled"])
@pytest.mark.parametrize("columns", [2, 70, 600, 2000])
def test_rows_that_lie_side_by_side(columns: int, race: str) -> None:
    """A vector times a matrix, and its rows with the greatest: lanes have rows, in any number."""
    text = json.dumps(
        [1, [["f32", True], ["f32", True]],
         [["smelt.mul", {}, [0, 1], True], ["smelt.reduce_sum", {}, [2], False], ["smelt.reduce_max", {}, [1], False]],
         [[3, False], [4, False]]]
    )  # fmt: skip
    rows = 45
    x, w = numbers(columns), numbers(columns, rows)
    at = Laid(StridedLayout(0, (0, 1)), True), Laid(StridedLayout(0, (1, rows)), True)
    binding = strided.METAL_KERNELS.bind((rows, columns), 1, at, [Laid(StridedLayout(0, (1,)), False)] * 2)
    assert binding is not None and strided.GroupLayout.read(binding.layout).across
    with override(race=race):
        kernel = compile_anew(module_of(with_layout(text, binding.layout)), SIM, WITHOUT_SIZES, keep_texts=True)
        check_or_raise(kernel.as_text("msl"))
        found = np.full(rows, np.nan, np.float32), np.full(rows, np.nan, np.float32)
        buffers = [Buffer.of(a, Aval(a.shape, dtypes.of(a.dtype))) for a in (binding.table, x, w, *found)]
        strided.METAL_KERNELS.launch(kernel, buffers[:3], buffers[3:])
    np.testing.assert_allclose(found[0], x @ w, 1e-4, 1e-4)
    np.testing.assert_array_equal(found[1], w.max(0))


@pytest.mark.parametrize("narrow", [1 << 30, 0])
@pytest.mark.parametrize("race", ["", "forward", "reverse", "shuffled"])
@pytest.mark.parametrize("width", [3, 40])
def test_scatters_in_any_order_of_threads(
    width: int, race: str, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(strided_scatter, "NARROW", narrow)
    old, updates, indices = numbers(7, width), numbers(20, width), np.arange(-2, 18, dtype=np.int32) * 3 % 9
    binding = strided.METAL_KERNELS.scatter("add", 20, (1, width), (width, 1), [(6, width)])
    assert binding is not None
    text = with_layout(scatter_text([dtypes.float32, dtypes.int32]), binding.layout)
    found = old.copy()
    with override(race=race):
        kernel = compile_anew(module_of(text), SIM, WITHOUT_SIZES, keep_texts=True)
        check_or_raise(kernel.as_text("msl"))
        buffers = [Buffer.of(a, Aval(a.shape, dtypes.of(a.dtype))) for a in (binding.table, updates, indices, found)]
        strided.METAL_KERNELS.launch(kernel, buffers[:3], buffers[3:])
    want, inside = old.copy(), indices < 7
    np.add.at(want, indices[inside], updates[inside])
    np.testing.assert_array_equal(found, want)
