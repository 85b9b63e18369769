"""Transposes in blocks turn squares in registers, and what does not fill one in smaller ones."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import maps, streaming
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Value
from smelt.ir.settings import override

from ..spies import calls_of
from .modules import compile_, module_of

pytestmark = pytest.mark.host("about kernels of the CPU")


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "complex64"])
def test_edges_of_all_widths(dtype: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All remainders of squares, at both edges, in one program, with registers of any width."""
    monkeypatch.setattr(maps, "has_wide_registers", lambda: wide)
    sizes = [(n, 64 * 16 + n) for n in (17, 18, 20, 24, 28, 33, 47)]
    rng = np.random.default_rng(0)
    hosts = [rng.integers(-100, 100, size).astype(dtype) for size in (*sizes, *(s[::-1] for s in sizes))]

    def turned(*xs: smelt.array) -> list[smelt.array]:
        return [x.T + smelt.ones_like(x.T) for x in xs]

    with override(tier="program", cache=False):
        for found, x in zip(smelt.compile(turned)(*map(smelt.array, hosts)), hosts):
            np.testing.assert_array_equal(np.asarray(found), x.T + np.ones((), dtype))


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16"])
def test_blocks_of_rows_follow_each_other(dtype: str, check: bool) -> None:
    """Of several groups of blocks, and of some that are left over; in batches, and beside what lies in order."""
    rng = np.random.default_rng(0)
    hosts = [rng.integers(-50, 50, size).astype(dtype) for size in ((300, 3001), (2, 130, 1500), (3001, 300))]

    def turned(x, batch, other):
        return smelt.contiguous(x.T), smelt.contiguous(batch.swapaxes(1, 2)), x.T + other, smelt.contiguous(x[::-1].T)

    x, batch, other = hosts
    with override(tier="program", check=check):
        found = smelt.compile(turned)(*map(smelt.array, hosts))
    for y, want in zip(found, (x.T, batch.swapaxes(1, 2), x.T + other, x[::-1].T)):
        np.testing.assert_array_equal(np.asarray(y), want)


@pytest.mark.parametrize(("dtype", "lanes"), [("int8", 16), ("int16", 8), ("float32", 16)])
def test_lines_of_memory_are_turned_at_once(dtype: str, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of narrow elements, several squares side by side."""
    monkeypatch.setattr(maps, "has_wide_registers", lambda: True)

    def shape(arguments, _):
        first, *_ = lines = arguments[1]
        return len(lines), first.mlir.type.shape[0] * first.dtype.size

    shapes = calls_of(monkeypatch, maps.CpuKernel, "transposed", shape)
    with override(tier="program", cache=False):
        smelt.eval(smelt.compile(lambda x: smelt.contiguous(x.T))(smelt.zeros((1024, 1024), getattr(smelt, dtype))))
    assert set(shapes) == {(lanes, streaming.LINE_BYTES)}


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_what_is_left_of_narrow_elements_is_part_of_whole_squares(
    dtype: str, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few columns and many, few rows and many, a last block of a row or a column; none is read by itself."""
    monkeypatch.setattr(maps, "has_wide_registers", lambda: wide)
    few = (9, 15, 17, 23, 31, 63, 65, 66, 129, 130, 143)
    sizes = [*((n, 1000) for n in few), *((1000, n) for n in few), *((3, 300 + n, 257 + n) for n in range(0, 18, 5))]
    rng = np.random.default_rng(0)
    hosts = [rng.integers(-100, 100, size).astype(dtype) for size in sizes]
    for check in (False, True):
        with override(tier="program", cache=False, check=check):
            turned = smelt.compile(lambda *xs: [smelt.contiguous(x.swapaxes(-1, -2)) for x in xs])
            for found, x in zip(turned(*map(smelt.array, hosts)), hosts):
                np.testing.assert_array_equal(np.asarray(found), x.swapaxes(-1, -2))
    singly = calls_of(monkeypatch, maps.CpuKernel, "load", lambda *_: None)
    with override(tier="program", cache=False):
        for size in ((15, 1000), (23, 1000), (1000, 31), (1000, 66), (63, 127)):
            smelt.eval(smelt.compile(lambda x: smelt.contiguous(x.T))(smelt.zeros(size, getattr(smelt, dtype))))
    assert not singly or not wide


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("compared", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "complex64", "complex128"])
def test_blocks_leave_room_on_the_stack(
    dtype: str, compared: bool, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of some systems have half a megabyte: also where lines are wide because results are narrow."""
    monkeypatch.setattr(maps, "has_wide_registers", lambda: wide)
    sizes = calls_of(monkeypatch, maps.CpuKernel, "scratch", lambda arguments, _: arguments[1] * arguments[2].size)

    def turned(b: Builder, x: Value, y: Value) -> Value:
        x, y = (b.transpose(v, permutation=(1, 0)) for v in (x, y))
        return b.equal(x, y) if compared else b.add(x, y)

    with override(cache=False):
        compile_(module_of([Aval((5001, 4999), getattr(dtypes, dtype))] * 2, turned))
    assert 0 < sum(sizes) < 400 << 10


@pytest.mark.parametrize("width", [8, 9, 10, 15, 16, 17])
def test_few_columns(width: int) -> None:
    """Lines of few columns, of several dtypes, beside what lies otherwise, in batches, and what asks for places."""
    rng = np.random.default_rng(0)
    host, bias = rng.standard_normal((width, 3001), np.float32), rng.standard_normal(width, np.float32)
    batch, other = rng.standard_normal((5, width, 500), np.float32), rng.standard_normal((3001, width), np.float32)

    def turned(x, b, batch, other):
        wide = x.astype(smelt.float64).T
        places = smelt.arange(3001)[:, None] * smelt.arange(width)
        return x.T > 0, x.T + b, batch.swapaxes(1, 2) * 2, x.T * other, wide * wide, x.T + places, smelt.tril(x.T)

    t = host.T
    wanted = (
        t > 0, t + bias, batch.swapaxes(1, 2) * 2, t * other, t.astype(np.float64) ** 2,
        t + np.arange(3001, dtype=np.float32)[:, None] * np.arange(width, dtype=np.float32), np.tril(t),
    )  # fmt: skip
    for check in (False, True):
        with override(tier="program", check=check):
            for found, want in zip(smelt.compile(turned)(*map(smelt.array, (host, bias, batch, other))), wanted):
                np.testing.assert_allclose(np.asarray(found), want, rtol=1e-6)


def test_smaller_squares_are_made_where_something_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    sides: list[int] = []
    kernel = maps.CpuKernel
    transposed = kernel.transposed

    def counted(k, lines):
        sides.append(len(lines))
        return transposed(k, lines)

    monkeypatch.setattr(kernel, "transposed", counted)
    with override(tier="program"):
        for left_over, wanted in ((0, {16}), (8, {16, 8}), (4, {16, 4}), (13, {16, 8, 4}), (3, {16})):
            sides.clear()
            width = 1024 + left_over
            x = smelt.array(np.arange(1024 * width, dtype=np.float32).reshape(width, 1024))
            smelt.eval(smelt.compile(lambda x: x.T * 2.5)(x))
            assert set(sides) == wanted
