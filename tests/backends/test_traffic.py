"""Estimates of the bytes that kernels move."""

from __future__ import annotations

from typing import Any

import pytest

from smelt.ir import dtypes
from smelt.ir.aval import Aval

from .modules import compile_, f32, module_of, softmax

WIDE = 4 * 4_000_000  #: bytes of a row that no cache holds


def traffic(avals: list[Aval], function: Any) -> list[tuple[str, int, int]]:
    program = compile_(module_of(avals, function))
    return [(k.schedule, k.bytes_moved, k.least_bytes) for k in program.kernels]


def test_maps_move_the_least() -> None:
    aval = Aval((1000, 300), f32)
    n = aval.nbytes
    assert traffic([aval, aval], lambda b, x, y: b.exp(x) * x + y) == [("map", 3 * n, 3 * n)]
    assert traffic([aval], lambda b, x: b.transpose(x, permutation=(1, 0))) == [("map", 2 * n, 2 * n)]


def test_elements_that_no_loop_addresses_are_not_read() -> None:
    n = 4 * 1000
    found = traffic([Aval((8, 1000), f32)], lambda b, x: b.slice(x, start=(3, 0), stop=(4, 1000), stride=(1, 1)))
    assert found == [("map", 2 * n, 9 * n)]


@pytest.mark.parametrize(("columns", "reads"), [(1000, 1), (4_000_000, 2)])
def test_rows_that_leave_the_cache_are_read_by_every_stage(columns: int, reads: int) -> None:
    aval = Aval((16, columns), f32)
    assert traffic([aval], softmax) == [("row", (1 + reads) * aval.nbytes, 2 * aval.nbytes)]


@pytest.mark.parametrize(("columns", "reads"), [(1000, 1), (4_000_000, 2)])
def test_argmax_reads_long_rows_twice(columns: int, reads: int) -> None:
    aval = Aval((16, columns), f32)
    (found,) = traffic([aval], lambda b, x: b.argmax(x, axis=1))
    assert found == ("row", reads * aval.nbytes + 64, aval.nbytes + 64)


def test_partial_results_are_counted() -> None:
    aval = Aval((4_000_000,), f32)
    ((schedule, moved, least),) = traffic([aval], lambda b, x: b.reduce_sum(x, axes=(0,)))
    assert schedule == "split" and least == WIDE + 4 and least < moved < least + 4096


def test_gathers_fetch_lines() -> None:
    table, at = Aval((100_000, 64), f32), Aval((5000,), dtypes.int32)
    ((_, rows, _),) = traffic(
        [table, at], lambda b, t, i: b.gather(t, i, axes=(0,), slice_sizes=(1, 64)) * 1.0
    )
    assert rows == 5000 * 64 * 4 * 2 + 5000 * 4
    ((_, single, least),) = traffic(
        [Aval((6_400_000,), f32), at], lambda b, t, i: b.gather(t, i, axes=(0,), slice_sizes=(1,)) * 1.0
    )
    assert single == 5000 * (64 + 4 + 4) and least == 4 * 6_400_000 + 5000 * 8


def test_scatter_reads_and_writes_what_it_updates() -> None:
    x, u, i = Aval((50, 40), f32), Aval((9, 1, 40), f32), Aval((9,), dtypes.int32)
    (found,) = traffic([x, u, i], lambda b, x, u, i: b.scatter(x, u, i, axes=(0,), mode="add"))
    assert found == ("scatter", 2 * x.nbytes + 3 * u.nbytes + i.nbytes, 2 * x.nbytes + u.nbytes + i.nbytes)
