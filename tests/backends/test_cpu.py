"""Compiled programs against the interpreter."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.errors import SmeltError

from .modules import (
    check,
    compile_,
    cross_entropy,
    f32,
    gelu,
    layer_norm,
    module_of,
    random_array,
    run,
    side_by_side,
    softmax,
)

SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (1, 3, 1, 5), (0, 3), (3, 0), (40, 7, 3), (200, 300)]
LARGE = [(70000,), (3, 50000), (50000, 3), (300, 5, 40)]


def subsets(n: int) -> list[tuple[int, ...]]:
    return [axes for r in range(n + 1) for axes in itertools.combinations(range(n), r)]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_every_dtype_is_loaded_and_stored(dtype: Any) -> None:
    tolerance = 2e-2 if dtype.is_float and dtype.size == 2 else 1e-5
    aval = Aval((37,), dtype)
    check([aval, aval], lambda b, x, y: [b.add(x, y), b.select(b.equal(x, y), x, y)], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", list(dtypes.NUMERIC), ids=lambda d: d.name)
def test_sums_of_every_dtype(dtype: Any) -> None:
    tolerance = 3e-2 if dtype.is_float and dtype.size == 2 else 1e-4
    aval = Aval((9, 70), dtype)
    cases = [([aval], lambda b, x, axes=axes: b.reduce_sum(x, axes=axes)) for axes in subsets(2)]
    check(*side_by_side(cases), tolerance, tolerance)


@pytest.mark.parametrize("shape", SHAPES + LARGE, ids=str)
@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max"])
def test_reductions_over_every_set_of_axes(shape: tuple[int, ...], op: str) -> None:
    cases = [
        ([Aval(shape, f32)], lambda b, x, axes=axes: getattr(b, op)(x, axes=axes))
        for axes in subsets(len(shape))
        if op != "reduce_max" or all(shape[a] for a in axes)
    ]
    check(*side_by_side(cases), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("shape", [s for s in SHAPES + LARGE if any(s)], ids=str)
def test_argmax_and_argmin(shape: tuple[int, ...]) -> None:
    cases = [
        ([Aval(shape, f32)], lambda b, x, axis=axis: [b.argmax(x, axis=axis), b.argmin(x, axis=axis)])
        for axis, extent in enumerate(shape)
        if extent
    ]
    check(*side_by_side(cases))


def test_argmax_of_nan_and_of_equal_elements() -> None:
    x = np.array([[1, 3, 3, 2], [1, np.nan, 9, np.nan], [-np.inf] * 4], np.float32)
    program = compile_(module_of([Aval((3, 4), f32)], lambda b, x: b.argmax(x, axis=1)))
    assert run(program, [x])[0].tolist() == [1, 1, 0]


def test_any_and_all() -> None:
    for op in ("reduce_any", "reduce_all"):
        for axes in subsets(2):
            check([Aval((6, 9), dtypes.bool_)], lambda b, x, op=op, axes=axes: getattr(b, op)(x, axes=axes))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", [softmax, layer_norm])
def test_row_programs(function: Any, axis: int) -> None:
    shapes = [(4, 8), (33, 70), (3, 5000), (600, 17), (1, 40000)]
    cases = [([Aval(shape, f32)], lambda b, x: function(b, x, axis)) for shape in shapes]
    check(*side_by_side(cases), rtol=1e-3, atol=1e-4)


def test_softmax_over_a_middle_axis() -> None:
    check([Aval((5, 40, 7), f32)], lambda b, x: softmax(b, x, 1))


def test_cross_entropy() -> None:
    check([Aval((32, 48), f32)] * 2, cross_entropy, rtol=1e-4)


def test_whole_array_normalized() -> None:
    def function(b: Any, x: Any) -> Any:
        return x / b.broadcast_to(b.reduce_sum(x * x, axes=(0, 1)), x.shape)

    for shape in ((6, 7), (400, 300)):
        check([Aval(shape, f32)], function, rtol=1e-3)


def test_movement() -> None:
    a, v = Aval((6, 10), f32), Aval((), f32)

    def function(b: Any, x: Any, value: Any) -> list[Any]:
        t = b.transpose(x, permutation=(1, 0))
        return [
            t,
            b.reshape(t, shape=(4, 15)) + 1.0,
            b.slice(x, start=(1, 2), stop=(6, 9), stride=(2, 3)),
            b.pad(x, value, low=(1, 0), high=(2, 3), interior=(0, 2)),
            b.concatenate(x, x * 2.0, axis=1),
            b.reverse(x, axes=(0, 1)),
            b.broadcast(x, shape=(3, 6, 10)) * 3.0,
            b.iota(shape=(4, 5), axis=1, dtype=f32) + 0.5,
            x,
            b.reshape(x, shape=(60,)),
        ]

    program = check([a, v], function)
    assert program.aliases == {8: 0, 9: 0}


@pytest.mark.parametrize("shape", [(64, 64), (300, 200), (3, 130, 70)], ids=str)
def test_transposes_in_blocks(shape: tuple[int, ...]) -> None:
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    check([Aval(shape, f32)], lambda b, x: b.transpose(b.exp(x), permutation=order))


def test_equal_results_share_memory() -> None:
    program = check([Aval((5,), f32)], lambda b, x: (y := b.exp(x)) and [y, y, b.reshape(y, shape=(5, 1))])
    assert program.aliases == {1: ("result", 0), 2: ("result", 0)}


def test_literals_and_gathers() -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)

    def function(b: Any, i: Any) -> list[Any]:
        rows = b.literal(table)
        return [b.gather(rows * 2.0, i, axes=(0,), slice_sizes=(1, 3)), rows]

    check([Aval((9,), dtypes.int32)], function)


MATMULS = [
    ((3, 4), (4, 5), (1,), (0,), (), ()), ((4, 3), (4, 5), (0,), (0,), (), ()),
    ((3, 4), (5, 4), (1,), (1,), (), ()), ((4, 3), (5, 4), (0,), (1,), (), ()),
    ((4,), (4,), (0,), (0,), (), ()), ((3, 4), (4,), (1,), (0,), (), ()), ((4,), (5, 4), (0,), (1,), (), ()),
    ((4, 3), (4,), (0,), (0,), (), ()), ((4,), (4, 5), (0,), (0,), (), ()), ((3,), (5,), (), (), (), ()),
    ((2, 3, 4), (2, 4, 5), (2,), (1,), (0,), (0,)), ((20, 3, 4), (20, 4, 5), (2,), (1,), (0,), (0,)),
    ((3, 2, 4), (4, 2, 5), (2,), (0,), (1,), (1,)), ((2, 200, 64), (2, 64, 200), (2,), (1,), (0,), (0,)),
    ((300, 200), (200, 400), (1,), (0,), (), ()), ((3, 0), (0, 5), (1,), (0,), (), ()),
    ((2, 3, 4, 5), (5, 6, 3), (3, 1), (0, 2), (), ()),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "int32"])
def test_contractions(dtype: str) -> None:
    kind = dtypes.by_name(dtype)
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    tolerance = 5e-2 if dtype == "bfloat16" else 1e-3
    cases = [
        ([Aval(x, kind), Aval(y, kind)], lambda b, x, y, axes=axes: b.dot_general(x, y, **dict(zip(names, axes))))
        for x, y, *axes in MATMULS
    ]
    check(*side_by_side(cases), tolerance, tolerance)


def test_contractions_between_kernels() -> None:
    attrs = {"lhs_contracting": (1,), "rhs_contracting": (0,)}

    def function(b: Any, x: Any, v: Any, w: Any) -> Any:
        hidden = gelu(b, b.dot_general(x, v, **attrs))
        return softmax(b, b.dot_general(hidden, w, **attrs))

    program = check([Aval(s, f32) for s in ((90, 30), (30, 70), (70, 20))], function, rtol=1e-3, atol=1e-4)
    assert [k.schedule for k in program.kernels] == ["contract", "map", "contract", "row"]


@pytest.mark.parametrize("shape", [(7,), (40, 30), (5, 6, 7), (3, 600)], ids=str)
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "logcumsumexp"])
def test_scans(op: str, shape: tuple[int, ...]) -> None:
    def function(b: Any, x: Any) -> list[Any]:
        return [
            getattr(b, op)(x * 0.5, axis=axis, reverse=reverse, inclusive=inclusive)
            for axis in range(len(shape))
            for reverse in (False, True)
            for inclusive in (False, True)
        ]

    check([Aval(shape, f32)], function, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("extent", [511, 512, 1300])
@pytest.mark.parametrize(("reverse", "inclusive"), [(False, True), (True, False), (True, True)])
def test_long_scans_of_expensive_values(extent: int, reverse: bool, inclusive: bool) -> None:
    def function(b: Any, x: Any) -> Any:
        return b.cumsum(b.sin(x), axis=1, reverse=reverse, inclusive=inclusive)

    program = check([Aval((3, extent), f32)], function, rtol=1e-4, atol=1e-4)
    assert [k.schedule for k in program.kernels] == ["scan"]


@pytest.mark.parametrize("mode", ["set", "add", "mul", "max", "min"])
def test_scatters(mode: str) -> None:
    avals = [Aval((6, 40), f32), Aval((9, 1, 40), f32), Aval((9,), dtypes.int32)]
    check(avals, lambda b, x, u, i: b.scatter(x, u * 2.0, i, axes=(0,), mode=mode))
    avals = [Aval((8, 5), f32), Aval((9, 2, 1), f32), Aval((9,), dtypes.int32), Aval((9,), dtypes.int32)]
    check(avals, lambda b, x, u, i, j: b.scatter(x, u, i, j, axes=(0, 1), mode=mode))


def test_host_steps_stand_between_kernels() -> None:
    check([Aval((9, 8), f32)], lambda b, x: b.exp(b.sort(x * 2.0, axis=1)) + 1.0)


def test_long_chains() -> None:
    def function(b: Any, x: Any) -> Any:
        for _ in range(600):
            x = x * 0.999 + 0.001
        return x

    assert len(check([Aval((64,), f32)], function).kernels) > 1


def test_arena_is_reused() -> None:
    def function(b: Any, x: Any) -> Any:
        for _ in range(8):
            x = b.sort(b.exp(-x), axis=0)
        return x

    assert check([Aval((1000,), f32)], function).arena_bytes <= 3 * 4032


@pytest.mark.parametrize("shape", [(0,), (0, 5), (4, 0), (2, 0, 3)], ids=str)
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    order = tuple(reversed(range(len(shape))))
    check([Aval(shape, f32)], lambda b, x: [b.exp(x), b.transpose(x, permutation=order), b.cumsum(x, axis=0)])


def test_texts() -> None:
    program = compile_(module_of([Aval((4, 8), f32)], softmax))
    assert "scf.for" in program.as_text("kernel") and "smelt" not in program.as_text("kernel")
    assert "llvm.func" in program.as_text("llvm")
    with pytest.raises(ValueError, match="stage must be"):
        program.as_text("metal")


def test_kernels_that_are_alike_are_one() -> None:
    def f(b: Any, x: Any, y: Any, n: Any) -> list[Any]:
        twice = [b.mul(b.add(v, v), v) for v in (x, y)]
        return [*twice, b.mul(b.sub(n, n), n)]

    avals = [Aval((20, 30), f32), Aval((1, 20, 1, 30), f32), Aval((20, 30), dtypes.int32)]
    check(avals, f)
    text = compile_(module_of(avals, f)).as_text("kernel")
    assert text.count("func.func private") == 2 and text.count("call @fused") == 3


@pytest.mark.parametrize("sizes", [(600, 700), (90_000, 100_000), (600, 100_000), (3, 40)], ids=str)
def test_kernels_that_differ_in_the_number_of_elements_are_one(sizes: tuple[int, int]) -> None:
    def f(b: Any, *xs: Any) -> list[Any]:
        sums = [b.mul(b.add(x, x), x) for x in xs]
        rows = [b.reduce_sum(b.reshape(s, shape=(s.shape[0] // 10, 10)), axes=(1,)) for s in sums[:2] if s.shape[0] > 9]
        return [*sums, *(b.mul(b.add(r, r), r) for r in rows)]

    avals = [Aval((n,), d) for d in (f32, dtypes.bfloat16) for n in sizes]
    check(avals, f, rtol=1e-4, atol=1e-4)


def test_two_python_threads_run_one_program() -> None:
    aval = Aval((300, 500), f32)
    program = compile_(module_of([aval], softmax))
    inputs = [random_array(aval, i) for i in range(4)]
    want = [run(program, [x])[0] for x in inputs]
    failures: list[int] = []

    def work(i: int) -> None:
        for _ in range(20):
            if not np.array_equal(run(program, [inputs[i]])[0], want[i]):
                failures.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failures


def test_bfloat16_keeps_subnormals_and_rounds_to_even():
    import smelt

    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(dtypes.bfloat16.numpy)
    wide = x.astype(np.float32)
    finite = np.isfinite(wide)
    with smelt.ir.settings.override(small_work=0):
        same = np.array(smelt.array(x) * 1)
        third = np.array(smelt.array(x) / 3)
    np.testing.assert_array_equal(same.view(np.uint16)[finite], bits[finite])
    with np.errstate(invalid="ignore"):
        want = (wide / np.float32(3)).astype(dtypes.bfloat16.numpy)
    np.testing.assert_array_equal(third.view(np.uint16)[finite], want.view(np.uint16)[finite])


def test_bfloat16_scatter_of_a_slice():
    import smelt

    with smelt.ir.settings.override(small_work=0):
        y = smelt.zeros((2, 3, 4, 5), dtype=smelt.bfloat16)
        y[0, 1:, :, smelt.array([0, 1, 2])] = smelt.array(2.0, dtype=smelt.bfloat16)
        assert np.array(y.astype(smelt.float32)).sum() == 2 * 2 * 4 * 3


def test_a_program_is_made_for_the_target_there_is():
    lowered = smelt.compile(smelt.exp).trace(smelt.ones(2)).lower()
    assert lowered.lower_for("cpu", "cpu").kernels
    with pytest.raises(SmeltError, match=r"have one target, cpu, not 'nonsense'"):
        lowered.lower_for("cpu", "nonsense")
