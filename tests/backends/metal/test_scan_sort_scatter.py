"""Scans, sorts and scatters on the simulator: values of the reference, in every order of threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.gpu.devices import GPUS
from smelt.backends.gpu.program import Program
from smelt.backends.gpu.schedules.sort import digits
from smelt.backends.metal.check import check_or_raise
from smelt.backends.metal.simulator import Options
from smelt.ir import dtypes
from smelt.ir.op import registry
from smelt.lazy.arrays import emit

from . import harness

#: Orders in which threads run, with what catches reads of memory that nobody wrote or that lies outside.
RACES = [Options(order, poison=True, guard=True) for order in ("forward", "reverse", "shuffled")]

Shape = tuple[int, ...]


def check(function: Callable, *arguments: Any, operands: Any = None, tolerance: float = 2e-5) -> Program:
    """Compare with the reference in all orders; the same bits in each."""
    graph = harness.graph_of(function, *arguments)
    program = harness.program_of(graph)
    if operands is None:
        operands = [harness.sample(a, seed=i) for i, a in enumerate(program.arguments)]
    for segment in program.segments:
        check_or_raise(segment.text)
    want = harness.expected(graph, operands)
    first = None
    for options in RACES:
        found = harness.run(program, operands, options)
        for x, y, aval in zip(found, want, program.results):
            assert x.shape == y.shape and x.dtype == y.dtype
            half = aval.dtype.is_float and aval.dtype.size == 2
            bound = 2e-2 if half else tolerance if aval.dtype.is_inexact else 0
            wide = np.complex128 if aval.dtype.is_complex else np.float64 if aval.dtype.is_float else aval.dtype.numpy
            scale = np.max(np.abs(y[np.isfinite(y)].astype(wide)), initial=1.0) if aval.dtype.is_inexact else 1.0
            np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=bound, atol=bound * scale)
        bits = [x.tobytes() for x in found]
        assert first is None or bits == first
        first = bits
    return program


def array(shape: Shape, dtype: str = "float32") -> smelt.ShapeDtype:
    return smelt.ShapeDtype(shape, dtype)


def entries(program: Program) -> list[str]:
    return [kernel.entry for kernel in program.kernels]


# Scans


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((3, 7), 1), ((300,), 0), ((9, 33), 1), ((3, 1000), 1), ((2, 2048), 1), ((2, 5001), 1),
        ((40, 3), 0), ((2, 9, 5), 1), ((5, 1, 40, 1), 2), ((4, 1), 1),
    ],
)  # fmt: skip
def test_scan(shape: Shape, axis: int, reverse: bool, inclusive: bool):
    check(lambda x: smelt.cumsum(x * 2, axis, reverse=reverse, inclusive=inclusive), array(shape, "int32"))


@pytest.mark.parametrize("dtype", [d.name for d in dtypes.NUMERIC if d.real is not dtypes.float64])
@pytest.mark.parametrize("shape, axis", [((2, 600), 1), ((30, 3), 0)])
def test_scan_dtypes(shape: Shape, axis: int, dtype: str):
    check(lambda x: smelt.cumsum(x, axis), array(shape, dtype))


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("shape, axis", [((2, 600), 1), ((30, 3), 0)])
def test_scan_ops(name: str, shape: Shape, axis: int, reverse: bool):
    operand = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(np.float32)
    if name in ("cummax", "cummin"):
        operand[0, 1] = np.nan
    if name == "logcumsumexp":
        operand[:, :2] = -np.inf
    scan = getattr(smelt, name)
    check(lambda x: scan(x, axis, reverse=reverse), array(shape), operands=[operand])


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_scan_of_truth(name: str):
    check(lambda x: getattr(smelt, name)(x, -1), array((3, 700), "bool"))


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_scan_of_a_long_row(reverse: bool, inclusive: bool):
    program = check(lambda x: smelt.cumsum(x, reverse=reverse, inclusive=inclusive), array((70001,), "int32"))
    assert [name.rpartition("_")[2] for name in entries(program)] == ["totals", "before", "cumsum"]
    check(lambda x: smelt.cumsum(x + 1, 1, reverse=reverse, inclusive=inclusive), array((3, 40000)))


@pytest.mark.parametrize("reverse", [True, False])
def test_scan_of_few_long_columns(reverse: bool):
    program = check(lambda x: smelt.cumsum(x, 0, reverse=reverse), array((2500, 3), "int32"))
    assert len(entries(program)) == 3


def test_scan_of_transposed_and_gathered():
    check(lambda x: smelt.cumsum(x.T, 1), array((700, 12), "int32"))
    check(lambda x, i: smelt.cumsum(x[i], 1), array((6, 512), "int32"), array((4,), "int32"))
    check(lambda x: smelt.cumsum(smelt.pad(x, ((0, 0), (4, 4))), 1), array((3, 504), "int32"))


@pytest.mark.parametrize("shape, axis", [((0,), 0), ((0, 5), 1), ((5, 0), 1), ((1,), 0)])
def test_scan_of_nothing(shape: Shape, axis: int):
    check(lambda x: smelt.cumsum(x, axis), array(shape))


# Sorts


def sample_keys(shape: Shape, dtype: str, seed: int = 0) -> np.ndarray:
    """Keys with many ties, and with what is hard to sort."""
    rng = np.random.default_rng(seed)
    kind = dtypes.by_name(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind in "iu":
        info = np.iinfo(kind.numpy)
        x = rng.integers(0, 9, shape).astype(kind.numpy)
        ends = np.array([info.min, info.max], kind.numpy)
        return np.where(rng.random(shape) < 0.1, rng.choice(ends, shape), x)
    x = rng.integers(-4, 5, shape) * rng.choice([1.0, 0.5, 0.0, -0.0], shape)
    x = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf], shape), x)
    return x.astype(kind.numpy)


def check_sorts(shape: Shape, axis: int, dtype: str) -> Program:
    keys = sample_keys(shape, dtype)
    program = check(lambda x: smelt.argsort(x, axis), array(shape, dtype), operands=[keys])
    graph = harness.graph_of(lambda x: smelt.sort(x, axis), array(shape, dtype))
    (found,) = harness.run(harness.program_of(graph), [keys], RACES[2])
    (want,) = harness.expected(graph, [keys])
    wide = np.float32 if dtypes.by_name(dtype).size == 2 and dtypes.by_name(dtype).is_float else want.dtype
    np.testing.assert_array_equal(found.astype(wide), want.astype(wide))
    if dtypes.by_name(dtype).is_float:
        known = ~np.isnan(want.astype(wide))
        np.testing.assert_array_equal(np.signbit(found.astype(wide))[known], np.signbit(want.astype(wide))[known])
    return program


@pytest.mark.parametrize("dtype", [d.name for d in (dtypes.bool_, *dtypes.REAL) if d.real is not dtypes.float64])
def test_sort_dtypes(dtype: str):
    check_sorts((3, 50), 1, dtype)
    check_sorts((1500,), 0, dtype)


@pytest.mark.parametrize(
    "shape, axis",
    [
        ((1,), 0), ((2,), 0), ((5, 1), 1), ((700, 3), 1), ((3, 700), 0), ((2, 100, 3), 1), ((2, 3, 33), 2),
        ((1024,), 0), ((1025,), 0), ((5000,), 0), ((2, 2049), 1), ((2500, 2), 0),
    ],
)  # fmt: skip
def test_sort(shape: Shape, axis: int):
    check_sorts(shape, axis, "float32")


@pytest.mark.parametrize("shape, axis", [((0,), 0), ((0, 5), 1), ((5, 0), 1)])
def test_sort_of_nothing(shape: Shape, axis: int):
    check_sorts(shape, axis, "float32")


def test_sort_by_merging():
    program = check_sorts((5000,), 0, "float32")
    assert entries(program) == ["argsort_blocks", "argsort_merge", "argsort_merge_1"]


@pytest.mark.parametrize(
    "dtype, shape, axis",
    [
        ("bool", (513,), 0), ("int8", (3, 700), 1), ("uint8", (600, 2), 0), ("int16", (1500,), 0),
        ("uint16", (2, 513), 1), ("float16", (2, 777), 1), ("bfloat16", (900,), 0),
    ],
)  # fmt: skip
def test_sort_of_a_tile_by_digits(dtype: str, shape: Shape, axis: int):
    assert entries(check_sorts(shape, axis, dtype)) == ["argsort_tiles"]


@pytest.mark.parametrize(
    "dtype, shape, axis", [("int8", (2, 4100), 1), ("float16", (4097,), 0), ("bool", (4100, 2), 0)]
)
def test_sort_of_a_row_by_digits(dtype: str, shape: Shape, axis: int):
    names = [name.split("_")[1] for name in entries(check_sorts(shape, axis, dtype))]
    assert names == ["count", "starts", "digits"] * -(-dtypes.by_name(dtype).bits // 8)


def test_sort_of_a_long_row_by_digits():
    assert len(entries(check_sorts((33000,), 0, "float32"))) == 4 * 3


@pytest.mark.parametrize("count", [3, 40])
def test_sort_of_many_chunks(count: int, monkeypatch: pytest.MonkeyPatch):
    """Rows of several chunks, whose counts several threads add up, and chunks of several tiles."""
    monkeypatch.setattr(digits, "ITEMS", 1)
    monkeypatch.setattr(digits, "CHUNKS", 1)
    check_sorts((2, 256 * count - 5), 1, "int8")


def test_digits_of_few_bits():
    """Targets of a scatter, of which no more bits are looked at than tell them apart."""
    program = check_scatter((300, 8), (9000, 1, 8), (0,), "add")
    assert len([name for name in entries(program) if "_sort_digits" in name]) == 2


def test_few_of_a_sort():
    """No runs are merged: see `passes.kernels.select`."""
    keys = sample_keys((2, 18000), "float32")

    def few(x: Any) -> Any:
        return smelt.sort(x)[:, -7:], smelt.argsort(x)[:, ::-1][:, :5], smelt.argsort(-x)[:, :3]

    program = check(few, array((2, 18000)), operands=[keys])
    assert {k.schedule for k in program.kernels} <= {"sort", "map"}
    assert not [e for e in entries(program) if "merge" in e] and len(program.kernels) <= 16


def test_random_sorts(monkeypatch: pytest.MonkeyPatch):
    """Rows of all lengths on a GPU of few threads, so that they are merged in many passes."""
    monkeypatch.setitem(GPUS, "simulator", replace(GPUS["simulator"], threads=32, groups=5))
    rng = np.random.default_rng(0)
    passes = []
    for dtype in ("float32", "uint8", "int64", "bfloat16"):
        shape = (int(rng.integers(1, 4)), int(rng.integers(1100, 1800)))
        passes.append(len(entries(check_sorts(shape, 1, dtype))))
    assert max(passes) >= 4, passes


# Scatters


def check_scatter(
    x: Shape, updates: Shape, axes: Shape, mode: str, dtype: str = "float32", index: str = "int32", seed: int = 0
) -> Program:
    """A scatter with repeated targets, some of them outside, with arithmetic before it."""
    rng = np.random.default_rng(seed)
    lead = updates[: len(updates) - len(x)]
    low = 0 if index.startswith("u") else -1
    indices = [rng.integers(low, x[a] + 1, lead).astype(index) for a in axes]
    kind = dtypes.by_name(dtype)

    def numbers(shape: Shape) -> np.ndarray:
        if kind.kind == "b":
            return rng.random(shape) < 0.5
        if kind.kind in "iu":
            return rng.integers(1, 9, shape).astype(kind.numpy)
        found = rng.uniform(0.5, 1.5, shape) + (1j * rng.uniform(0, 1, shape) if kind.kind == "c" else 0)
        return found.astype(kind.numpy)

    def function(x: Any, u: Any, *indices: Any) -> Any:
        if kind.kind != "b":
            x, u = x + x, u * u
        return emit(registry["scatter"], (x, u, *indices), {"axes": axes, "mode": mode})

    arguments = [array(x, dtype), array(updates, dtype), *(array(lead, index) for _ in axes)]
    return check(function, *arguments, operands=[numbers(x), numbers(updates), *indices])


@pytest.mark.parametrize("mode", ["set", "add", "mul", "max", "min"])
@pytest.mark.parametrize(
    "x, updates, axes",
    [
        ((20,), (90, 1), (0,)),  # elements, sorted
        ((20, 6), (60, 1, 6), (0,)),  # rows, sorted
        ((5, 7), (4, 12, 1, 1), (0, 1)),  # elements at two indices
        ((9, 8), (50, 3, 5), (0,)),  # windows that overlap, smaller than x
        ((20, 6), (7, 1, 5), (0,)),  # few: in order
        ((12, 5), (6, 3, 4), (0, 1)),
        ((20, 6), (1, 3, 6), (0,)),  # one
        ((20, 6), (3, 6), ()),  # one, without an index
        ((6, 20), (40, 6, 1), (1,)),
    ],
)
def test_scatter(x: Shape, updates: Shape, axes: Shape, mode: str):
    check_scatter(x, updates, axes, mode)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mode", ["set", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [d.name for d in dtypes.ALL if d.real is not dtypes.float64])
def test_scatter_dtypes(dtype: str, mode: str):
    check_scatter((15, 4), (60, 1, 4), (0,), mode, dtype)


@pytest.mark.parametrize("index", ["int8", "uint8", "uint32", "int64", "uint64"])
def test_scatter_indices(index: str):
    check_scatter((15, 4), (60, 1, 4), (0,), "add", index=index)


def test_scatter_sorts_many_updates():
    program = check_scatter((300, 8), (2500, 1, 8), (0,), "add")
    assert [name for name in entries(program) if "_sort_" in name]
    assert len(entries(program)) == 5
    assert len(entries(check_scatter((300, 8), (2500, 1, 8), (0,), "add", "int32"))) == 2


def runs_of(lengths: Sequence[int], targets: int, seed: int) -> np.ndarray:
    """Targets of which each occurs so often, in any order; the last ones are outside."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.repeat(np.arange(targets, targets - len(lengths), -1), lengths)).astype(np.int32)


LONG_RUNS = {
    "one": [0, 700], "and dropped": [300, 700], "whole blocks": [0, 64, 128, 64, 1, 63, 192], "ones": [0, *[1] * 300],
    "across blocks": [0, 65, 63, 129, 2, 300, 62, 1, 1, 127], "two levels": [5, 9000, 1, 3000, 64],
}  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mode", ["set", "add", "mul", "max", "min"])
@pytest.mark.parametrize("window", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", LONG_RUNS)
def test_scatter_of_long_runs(name: str, window: Shape, mode: str):
    lengths = LONG_RUNS[name]
    rng = np.random.default_rng(1)
    at = runs_of(lengths, 400, 2)
    x = rng.uniform(0.5, 1.5, (400, *window)).astype(np.float32)
    updates = rng.uniform(0.998, 1.002, (len(at), 1, *window)).astype(np.float32)
    attrs = {"axes": (0,), "mode": mode}
    check(
        lambda x, u, i: emit(registry["scatter"], (x, u, i), attrs),
        array(x.shape), array(updates.shape), array(at.shape, "int32"),
        operands=[x, updates, at], tolerance=1e-4,
    )  # fmt: skip


def test_scatter_of_a_run_keeps_special_values():
    """A NaN reaches its own target only; -0 is not changed by sums that are elsewhere."""
    at = np.repeat(np.arange(3), [100, 200, 300]).astype(np.int32)
    for mode in ("add", "max"):
        x, updates = np.full(5, -0.0, np.float32), np.full((600, 1), -0.0, np.float32)
        updates[150] = np.nan
        attrs = {"axes": (0,), "mode": mode}
        arguments = [array(x.shape), array(updates.shape), array(at.shape, "int32")]
        graph = harness.graph_of(lambda *xs, attrs=attrs: emit(registry["scatter"], xs, attrs), *arguments)
        (found,) = harness.run(harness.program_of(graph), [x, updates, at])
        np.testing.assert_array_equal(np.isnan(found), [False, True, False, False, False])
        assert np.signbit(found[[0, 2, 3, 4]]).all()


def test_scatter_of_equal_targets_is_shared_by_many_threads():
    """1,000,000 rows that may be updates of one: kernels that leave ever fewer totals."""
    attrs = {"axes": (0,), "mode": "add"}
    arguments = [array((5000, 8)), array((1_000_000, 1, 8)), array((1_000_000,), "int32")]
    graph = harness.graph_of(lambda *xs: emit(registry["scatter"], xs, attrs), *arguments)
    found = [k for k in harness.program_of(graph, "apple8").kernels if "_runs" in k.entry]
    totals = [next(b.elements for b in k.buffers if b.name == "next_totals") for k in found]
    assert totals == [8 * n for n in (31250, 978, 32)]


@pytest.mark.parametrize(
    "x, updates, axes",
    [((0, 4), (3, 0, 4), (0,)), ((5, 4), (0, 1, 4), (0,)), ((5, 4), (3, 0, 4), (0,)), ((), (), ())],
)
def test_scatter_of_nothing(x: Shape, updates: Shape, axes: Shape):
    check_scatter(x, updates, axes, "add")


def test_scatter_by_users():
    operands = [np.zeros((6, 3), np.float32), np.array([[0, 5], [0, -1]], np.int32), np.ones((2, 2, 3), np.float32)]
    arguments = [array((6, 3)), array((2, 2), "int32"), array((2, 2, 3))]
    for name in ("add", "multiply", "maximum", "minimum"):
        check(lambda x, i, u, name=name: getattr(x.at[i], name)(u), *arguments, operands=operands)
    check(functools.partial(lambda x, i, u: x.at[i].add(u).sum(0)), *arguments, operands=operands)
