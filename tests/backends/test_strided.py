"""Kernels for all sizes: the same values as ops one by one, whatever the shapes and wherever operands lie."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from smelt.backends.cpu import running
from smelt.backends.strided import bind
from smelt.ir import dtypes, strided
from smelt.ir.aval import Aval
from smelt.ir.errors import KernelError
from smelt.ir.kinds import Elementwise, Reduction
from smelt.ir.settings import override
from smelt.lazy.execution.strided import StridedStep
from smelt.tools.op_checks import tolerance

from ..ops.cases import Case, all_cases, random_operands
from .random_graphs import made
from .strided_graphs import both, laid_out, run

F32 = dtypes.float32
GRAPHS = 160


def check_graph(seeds: Sequence[int], check: bool = False) -> int:
    """Raises AssertionError, or KernelError where an access leaves its array; how many groups there were."""
    graph, arrays = made(seeds, 4000)
    ops, groups = both(graph.avals, graph)
    want = ops.run(arrays)
    arrays = [laid_out(x, (seeds[0] + i) % 5) for i, x in enumerate(arrays)]
    for found, expected in zip(run(groups, arrays, check), want, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=f"seeds {list(seeds)} of\n{graph}")
    return groups.groups


@pytest.mark.parametrize("first", range(0, GRAPHS, 40))
def test_random_graphs(first: int) -> None:
    found = sum([check_graph(range(seed, seed + 4)) for seed in range(first, first + 40, 4)])
    assert found > 20


@pytest.mark.parametrize("first", range(GRAPHS, GRAPHS + 40, 20))
def test_random_graphs_with_checked_accesses(first: int) -> None:
    for seed in range(first, first + 20, 4):
        check_graph(range(seed, seed + 4), check=True)


@pytest.mark.parametrize("how", range(5))
def test_checked_accesses_of_operands_with_gaps(how: int) -> None:
    """An operand reaches as far as it lies apart: rows of something wider, every other row, columns of a few."""

    def function(b: Any, x: Any, row: Any) -> list[Any]:
        return [b.exp(x) * x, b.reduce_sum(x * b.broadcast_to(row, x.shape), axes=(x.ndim - 1,))]

    rng = np.random.default_rng(how)
    for shape in ((4, 6), (3, 4, 5), (1, 7), (7, 1)):
        wide = rng.standard_normal((*[2 * d + 1 for d in shape[:-1]], shape[-1] + 3)).astype(np.float32)
        x = wide[tuple([slice(how % 2, 2 * d, 2) for d in shape[:-1]])][..., : shape[-1]]
        row = rng.standard_normal((1, 2 * shape[-1])).astype(np.float32)[0, how % 2 :: 2]
        arrays = [laid_out(x, how) if how > 1 else x, row]
        ops, groups = both([Aval(a.shape, F32) for a in arrays], function)
        assert groups.groups
        for found, expected in zip(run(groups, arrays, check=True), ops.run(arrays), strict=True):
            np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_random_graphs_by_a_team(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are divided, and long ones where there are few; each member has lines of its own."""
    monkeypatch.setattr(running, "ALONE", 0)
    with override(num_threads=threads):
        for seed in range(0, 40, 4):
            check_graph(range(seed, seed + 4), check=seed % 8 == 0)
        for shape in ((2, 3000), (1, 1000), (50, 70), (5, 1)):
            ops, groups = both([Aval(shape, F32)], lambda b, x: [*softmax(b, x), b.exp(x) * x])
            x = np.random.default_rng(threads).standard_normal(shape).astype(np.float32)
            for found, want in zip(run(groups, [x]), ops.run([x])):
                np.testing.assert_allclose(found, want, rtol=1e-5)


def _has_kernel(case: Case) -> bool:
    if not isinstance(case.op, (Elementwise, Reduction)) or case.op.sizes or not case.avals:
        return False
    known = (*case.avals, *case.results)
    return all(a.dtype is dtypes.bool_ or a.dtype in dtypes.REAL for a in known) and all(a.size for a in known)


@pytest.mark.parametrize("case", [c for c in all_cases() if _has_kernel(c)], ids=str)
def test_each_op_alone(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strided, "WORTH", 0.0)
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    ops, groups = both(case.avals, lambda b, *xs: b.emit(case.op, xs, case.kwargs))
    if isinstance(case.op, Elementwise):
        assert groups.groups == 1
    arrays = random_operands(case, rng)
    for found, want, aval in zip(run(groups, arrays), ops.run(arrays), case.results, strict=True):
        assert found.dtype == aval.dtype.numpy
        if aval.dtype.is_inexact:
            np.testing.assert_allclose(found.astype(float), want.astype(float), **tolerance(aval))
        else:
            np.testing.assert_array_equal(found, want)


def softmax(b: Any, x: Any) -> list[Any]:
    shape = x.shape
    kept = (*shape[:-1], 1)
    top = b.reshape_to(b.reduce_max(x, axes=(len(shape) - 1,)), kept)
    e = b.exp(x - b.broadcast_to(top, shape))
    total = b.reshape_to(b.reduce_sum(e, axes=(len(shape) - 1,)), kept)
    return [e / b.broadcast_to(total, shape), top]


def test_one_kernel_serves_all_shapes_and_ranks() -> None:
    texts = set()
    for shape in ((4, 5), (1, 5), (3, 1, 7), (2, 3, 4, 5), (8, 300), (300, 2), (2,)):
        ops, groups = both([Aval(shape, F32)], softmax)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        for found, want in zip(run(groups, [x]), ops.run([x])):
            np.testing.assert_allclose(found, want, rtol=1e-6)
        texts.update(step.view.group.text for step in groups.steps if isinstance(step.view, StridedStep))
    assert len(texts) == 1


def test_extents_of_one_along_what_is_reduced_run_op_by_op() -> None:
    _, groups = both([Aval((3, 1), F32)], softmax)
    x = np.array([[1.0], [2.0], [np.nan]], np.float32)
    found, top = run(groups, [x])
    np.testing.assert_array_equal(found, [[1], [1], [np.nan]])
    np.testing.assert_array_equal(top, x)


def test_sizes_that_part_are_another_program_of_the_same_kernels() -> None:
    def f(b: Any, x: Any, y: Any) -> list[Any]:
        rows = b.reduce_sum(b.exp(x), axes=(1,))
        return [b.neg(b.exp(rows)) + b.exp(y)]

    for n, m in ((5, 5), (5, 7), (7, 5), (1, 4)):
        ops, groups = both([Aval((n, m), F32), Aval((n,), F32)], f)
        arrays = [np.full((n, m), 0.1, np.float32), np.arange(n, dtype=np.float32)]
        np.testing.assert_allclose(run(groups, arrays)[0], ops.run(arrays)[0], rtol=1e-6)


def test_a_column_sum_beside_a_square_is_not_taken_for_a_row_value() -> None:
    def f(b: Any, x: Any) -> list[Any]:
        y = b.exp(x)
        columns = b.reduce_sum(y, axes=(0,))
        rows = b.reduce_sum(y, axes=(1,))
        return [y - b.broadcast_to(columns, x.shape), y - b.broadcast_to(rows, x.shape)]

    ops, groups = both([Aval((4, 4), F32)], f)
    x = np.arange(16, dtype=np.float32).reshape(4, 4) / 10
    for found, want in zip(run(groups, [x]), ops.run([x])):
        np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("how", range(5))
def test_operands_may_lie_anywhere(how: int) -> None:
    def f(b: Any, x: Any, y: Any) -> list[Any]:
        return [b.exp(x) * y + y]

    shape = (6, 7, 5)
    rng = np.random.default_rng(how)
    arrays = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]
    ops, groups = both([Aval(shape, F32)] * 2, f)
    want = ops.run(arrays)[0]
    found = run(groups, [laid_out(arrays[0], how), np.broadcast_to(arrays[1], shape)], check=True)[0]
    np.testing.assert_allclose(found, want, rtol=1e-6)
    first = np.broadcast_to(arrays[1][:1, :, :1], shape)
    np.testing.assert_allclose(
        run(groups, [laid_out(arrays[0], how), first])[0], ops.run([arrays[0], first])[0], rtol=1e-6
    )


def test_an_access_outside_of_an_array_is_an_error_in_checked_kernels() -> None:
    _, groups = both([Aval((4, 5), F32)], lambda b, x: [b.exp(b.exp(x))])
    (step,) = [s[0] for s in groups.steps]
    x = np.zeros((4, 5), np.float32)
    run(groups, [x], check=True)
    binding, kernel = step._bindings[(x.strides,)]
    wrong = binding.table.copy()
    wrong[3] = 21  # columns
    with pytest.raises(KernelError, match=r"loads element 20"):
        step._run_kernel(kernel.executable, binding._replace(table=wrong), [x])


def test_tables_say_where_arrays_lie() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    found = bind((2, 3, 4), 1, [x, x[:, :, 0]], [True, False], [True, False])
    assert found.layout == "cr"
    np.testing.assert_array_equal(found.table, [1, 1, 6, 4, 0, 0, 4, 24, 0, 0, 4, 21, 0, 0, 4, 24, 0, 0, 1, 6])
    assert found.copied == ()
    turned = bind((3, 2, 4), 0, [x.transpose(1, 0, 2)], [True], [True])
    np.testing.assert_array_equal(turned.table[:8], [1, 3, 2, 4, 0, 4, 12, 24])
    assert bind((4, 3, 2), 0, [x.T], [True], [True]).copied == (0,)
