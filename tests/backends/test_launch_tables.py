"""Many launches of few kernels run from a table, and compute what the interpreter does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import launch_tables, program
from smelt.backends.cpu.planner import PlannedOp
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.settings import override

from .modules import check, compile_, f32, module_of

SQUARE = Aval((4, 4), f32)
INDICES = Aval((4,), dtypes.int32)
STEPS = 2 * launch_tables.FEWEST


def _text(avals: list[Aval], function: Any) -> str:
    return compile_(module_of(avals, function)).as_text("kernel")


def test_arguments_results_and_temporaries() -> None:
    def f(b: Any, x: Any, y: Any) -> list[Any]:
        found = [x, y]
        for i in range(STEPS):
            found.append(b.dot_general(found[-1], found[-2 if i % 3 else 0], **matmul))
            found.append(b.sin(found[-1]))
        return [found[5], x, *found[-3:], found[-1]]

    matmul = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}
    text = _text([SQUARE, SQUARE], f)
    assert text.count("scf.index_switch") == 1 and text.count("func.call") < STEPS / 2
    check([SQUARE, SQUARE], f)


def test_updates_in_place_and_of_copies() -> None:
    def f(b: Any, x: Any, y: Any, i: Any) -> list[Any]:
        kept = [x]
        for n in range(STEPS):
            rows = b.reshape(b.sin(y) if n % 2 else y, shape=(4, 1, 4))
            kept.append(b.scatter(kept[-1], rows, i, axes=(0,), mode="add"))
            y = b.dot_general(y, x, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=())
            y = b.sin(y) * 0.5  # and errors do not grow
        return [kept[7], kept[-1]]

    check([SQUARE, SQUARE, INDICES], f)


def test_many_results() -> None:
    """Each launch has a branch of its own, so nothing is gained: the calls are written out."""

    def f(b: Any, x: Any) -> list[Any]:
        factors = [x * float(i) for i in range(launch_tables.FEWEST)]
        return [b.dot_general(x, v, **matmul) for v in factors]

    matmul = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}
    check([SQUARE], f)


def test_checked_kernels_have_none() -> None:
    def f(b: Any, x: Any) -> list[Any]:
        for _ in range(STEPS):
            x = b.sin(b.dot_general(x, x, lhs_contracting=(1,), rhs_contracting=(0,), lhs_batch=(), rhs_batch=()))
        return [x]

    with override(check=True):
        assert "scf.index_switch" not in _text([SQUARE], f)
        check([SQUARE], f)
    assert "scf.index_switch" in _text([SQUARE], f)


@pytest.mark.parametrize("count", [launch_tables.FEWEST, 5 * launch_tables.FEWEST])
def test_a_step_over_many_arrays_is_one_kernel(count: int) -> None:
    """The arguments and results of a wide function are in the table, too. With many arrays there are so many ops that
    each would be a kernel, if all had to do with each other."""
    shapes = [(1 + i % 5, 2 + i % 3) for i in range(count)]
    pairs = [Aval(shape, f32) for shape in shapes for _ in range(2)]

    def f(b: Any, *values: Any) -> list[Any]:
        *arrays, rate = values
        found = []
        for x, y in zip(arrays[::2], arrays[1::2]):
            moved = x * 0.9 + y * 0.1
            found += [x - b.broadcast(rate, shape=x.shape) * moved, moved]
        return [*found, arrays[0], found[0]]

    text = check([*pairs, Aval((), f32)], f, passes=program.PIPELINE).as_text("kernel")
    assert text.count("scf.index_switch") == 1
    assert text.count("func.func private") <= 2


def _moved(b: Any, x: Any, y: Any) -> list[Any]:
    moved = x * 0.9 + y * 0.1
    return [x - moved * 0.1, moved]


@pytest.mark.parametrize("sizes", [(70, 70), (3, 5), (8, 130)])
@pytest.mark.parametrize("count", [100, 200])
def test_a_team_runs_a_table_together(sizes: tuple[int, int], count: int) -> None:
    """Those who run it wait once where what was written is read, not after each of hundreds of launches."""
    pairs = [Aval((sizes[i % 2], 64), f32) for i in range(count) for _ in range(2)]

    def f(b: Any, *values: Any) -> list[Any]:
        return [r for x, y in zip(values[::2], values[1::2]) for r in _moved(b, x, y)]

    with override(num_threads=2):
        made = check(pairs, f, passes=program.PIPELINE)
        text = made.as_text("kernel")
    assert text.count("scf.index_switch") == 1
    assert text.count(f"call @{program.BARRIER}") == 0


def test_a_team_waits_in_a_table_where_it_must() -> None:
    square = Aval((96, 96), f32)
    matmul = {"lhs_contracting": (1,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}

    def f(b: Any, x: Any, y: Any) -> list[Any]:
        for _ in range(STEPS):
            x, y = b.sin(b.dot_general(y, x, **matmul)) * 0.2, x
        return [x, y]

    with override(num_threads=2):
        text = check([square, square], f).as_text("kernel")
    assert text.count("scf.index_switch") == 1
    assert text.count(f"call @{program.BARRIER}") == 1  # in the loop, for rows that say so


@pytest.mark.parametrize("touched, expected", [
    ([[("table", 0, True)], [("table", 1, True)], [("table", 2, True)]], [False, False, False]),
    ([[("table", 0, True)], [("table", 0, False)], [("table", 0, False)]], [False, True, False]),
    ([[("table", 0, False)], [("table", 0, False)], [("table", 0, True)]], [False, False, True]),
    ([[("table", 3, False)], [("table", 4, True)]], [False, True]),  # 4 may lie in 3
    ([[("table", 4, False)], [("table", 3, True)]], [False, False]),
    ([[("arena", 0, True)], [("arena", 64, True)], [("arena", 32, False)]], [False, False, True]),
    ([[("arena", 0, False)], [("arena", 32, False)], [("arena", 32, True)]], [False, False, True]),
])  # fmt: skip
def test_who_must_wait(touched: list[list[tuple[str, int, bool]]], expected: list[bool]) -> None:
    step: Any = None
    launches = [
        launch_tables.Launch(step, [], [((where, at), 64, written) for where, at, written in some], 1, True, None)
        for some in touched
    ]
    assert launch_tables.waits(launches, {("table", 4): [("table", 3)]}) == expected


def test_wide_functions_with_few_launches() -> None:
    avals = [Aval((3,), f32)] * 70

    def f(b: Any, *values: Any) -> list[Any]:
        return [b.sin(values[3]), values[4], values[5] + values[6]]

    text = _text(avals, f)
    assert text.count("llvm.inttoptr") == 5 and "scf.index_switch" not in text
    check(avals, f)


@pytest.mark.parametrize("size", [4, 200])
@pytest.mark.parametrize("checked", [False, True])
def test_wide_functions_with_loops_host_steps_and_threads(size: int, checked: bool) -> None:
    def f(*xs: smelt.array) -> Any:
        total, steps = smelt.scan(lambda c, x: (c + x @ xs[3], c.sum()), xs[0], smelt.stack(xs[1:3]))
        factor = smelt.linalg.cholesky(xs[4] @ xs[4].T + smelt.eye(size))
        return total, steps, factor, [smelt.sin(x) * 0.5 + total for x in xs], xs[5]

    rng = np.random.default_rng(0)
    arrays = [smelt.array(rng.standard_normal((size, size)).astype(np.float32) / size) for _ in range(40)]
    with override(check=checked):
        found = smelt.compile(f)(*arrays)
        smelt.eval(found)
    with override(tier="ops"):
        expected = f(*arrays)
        smelt.eval(expected)
    smelt.utils.tree_map(lambda x, y: np.testing.assert_allclose(x, y, 1e-4, 1e-5), found, expected)


def test_what_loops_run_counts_where_it_is_written_out() -> None:
    """LLVM takes far longer for a function of many calls; a loop over a model's layer is hundreds of them."""

    def kernel() -> PlannedOp:
        return PlannedOp(cast(Any, None), "kernel")

    def loop(calls: int, shared: bool = False) -> PlannedOp:
        body = SimpleNamespace(is_shared=shared, planned_ops=[kernel() for _ in range(calls)])
        return PlannedOp(cast(Any, None), "control", bodies=(cast(Any, body),))

    def sizes(ops: list[PlannedOp]) -> list[int]:
        found = [part for part, _ in launch_tables.written_out(ops, 10)]
        assert [op for part in found for op in part] == ops
        return [len(part) for part in found]

    assert sizes([]) == []
    assert sizes([kernel() for _ in range(23)]) == [10, 10, 3]
    assert sizes([loop(4) for _ in range(5)]) == [2, 2, 1]
    assert sizes([kernel(), loop(30), loop(30), kernel(), kernel()]) == [1, 1, 1, 2]
    assert sizes([loop(30, shared=True) for _ in range(12)]) == [10, 2]


def test_loops_in_functions_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "CALLS", 4)
    rng = np.random.default_rng(0)
    layers = [smelt.array(rng.standard_normal((3, 8, 8)).astype(np.float32) / 8) for _ in range(4)]

    def f(x: smelt.array) -> Any:
        for weights in layers:
            x = smelt.scan(lambda c, w: (smelt.softmax(smelt.tanh(c @ w) @ c, axis=-1), None), x, weights)[0]
        return x

    x = smelt.array(rng.standard_normal((8, 8)).astype(np.float32))
    with override(cache=False):
        found = np.asarray(smelt.compile(f)(x))
    with override(tier="ops"):
        np.testing.assert_allclose(found, np.asarray(f(x)), 1e-5, 1e-6)
