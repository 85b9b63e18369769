"""Contractions on the CPU: every kind of kernel around the sizes of its blocks, in every dtype and order of axes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.contraction import analyse
from smelt.backends.cpu import program as cpu
from smelt.backends.cpu.contract import build, channels, dots, elements, lines, panels, tiles
from smelt.backends.cpu.contract.tiles import Sides
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.dtypes import DType
from smelt.ir.interpreter import Interpreter
from smelt.ir.settings import override
from smelt.passes import Pipeline

from .modules import compile_, f32, gelu, module_of, random_array, run, side_by_side

PASSES = "cse,dce,fuse{contractions=true},plan-buffers"
#: Rows, depth, columns; the kernel that it takes to be where the right operand is read along its rows.
SIZES = [
    (1, 1, 1, "elements"), (3, 5, 4, "elements"), (8, 3, 40, "elements"), (100, 1, 100, "elements"),
    (9, 16, 16, "panels"), (8, 4, 64, "lines"), (17, 4, 64, "panels"), (16, 7, 1040, "lines"),
    (17, 200, 33, "panels"), (97, 193, 129, "panels"),
    (1, 70, 300, "lines"), (300, 70, 1, "dots"), (2, 64, 300, "lines"), (5, 37, 63, "panels"),
    (3, 1025, 65, "lines"), (96, 192, 128, "panels"), (1, 130, 20003, "lines"), (7, 33, 4999, "lines"),
    (1, 517, 130, "lines"), (3, 700, 2, "dots"), (1, 4099, 1, "dots"), (200, 513, 9, "panels"), (1, 64, 31, "elements"),
    (1, 5000, 9, "lines"), (300, 75, 1, "dots"),
    (301, 64, 8, "panels"), (300, 70, 5, "panels"), (70, 256, 12, "panels"), (301, 64, 2, "dots"), (70, 300, 8, "dots"),
]  # fmt: skip
DTYPES = list(dtypes.NUMERIC)
ORDERS = ["ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ij", "bik,bkj->bij", "ibk,kjb->bij", "aik,kj->aij"]


def product(b: Any, x: Any, y: Any, order: str) -> Any:
    """An einsum of two operands whose result has batch axes first, then those of x, then those of y."""
    left, right = order.split("->")[0].split(",")
    out = order.split("->")[1]
    batch = [a for a in left if a in right and a in out]
    summed = [a for a in left if a in right and a not in out]

    def axes(names: str, of: Sequence[str]) -> tuple[int, ...]:
        return tuple(names.index(a) for a in of)

    return b.dot_general(
        x, y, lhs_contracting=axes(left, summed), rhs_contracting=axes(right, summed),
        lhs_batch=axes(left, batch), rhs_batch=axes(right, batch),
    )  # fmt: skip


def operands(order: str, dtype: DType, m: int, k: int, n: int, b: int = 3, a: int = 2) -> list[Aval]:
    extents = {"i": m, "k": k, "j": n, "b": b, "a": a}
    return [Aval(tuple(extents[c] for c in names), dtype) for names in order.split("->")[0].split(",")]


def products(orders: Sequence[str], dtype: DType, *sizes: int) -> tuple[list[Aval], Callable[..., Any]]:
    """An einsum in several orders of axes, each of operands of its own."""
    return side_by_side([(operands(o, dtype, *sizes), functools.partial(product, order=o)) for o in orders])


def agrees(avals: Sequence[Aval], body: Callable[..., Any], passes: str = PASSES) -> cpu.Program:
    """Compile a function into kernels that are contractions, and compare with the interpreter."""
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    module = module_of(avals, body)
    want = Interpreter(module)("main", arrays)
    program = compile_(module, passes)
    assert {kernel.schedule for kernel in program.kernels} == {"contract"}
    depth = max(max(a.shape, default=1) for a in avals)
    for have, expected in zip(run(program, arrays), want):
        close(have, expected, depth)
    return program


def close(have: np.ndarray, want: np.ndarray, depth: int) -> None:
    dtype = dtypes.of(want.dtype)
    if dtype.kind in "iu":
        np.testing.assert_array_equal(have, want)
        return
    wide = np.complex128 if dtype.kind == "c" else np.float64
    tolerance = {2: 2**-7 if dtype is dtypes.bfloat16 else 2**-10, 4: 1e-6, 8: 1e-14}
    scale = tolerance[dtype.real.size] * max(1.0, depth**0.5) * 3
    np.testing.assert_allclose(have.astype(wide), want.astype(wide), rtol=tolerance[dtype.real.size], atol=scale)


@pytest.mark.parametrize(("m", "k", "n", "kernel"), SIZES)
def test_sizes_around_those_of_blocks(m: int, k: int, n: int, kernel: str) -> None:
    avals = operands("ik,kj->ij", f32, m, k, n)
    module = module_of(avals, functools.partial(product, order="ik,kj->ij"))
    Pipeline.parse(PASSES).run(module)
    found = analyse(read_function(next(f for name, f in functions(module).items() if name != "main")))
    assert build.path(found) is {
        "elements": elements.build_elements, "panels": panels.build_panels, "dots": dots.build_dots,
        "lines": lines.build_lines,
    }[kernel]  # fmt: skip
    agrees(avals, functools.partial(product, order="ik,kj->ij"))


@pytest.mark.parametrize("size", [(20, 37, 50), (1, 300, 70), (5, 41, 130), (3, 6, 5)], ids=str)
def test_axes_in_any_order(size: tuple[int, int, int]) -> None:
    agrees(*products(ORDERS, f32, *size))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [(20, 137, 50), (1, 300, 70), (5, 171, 130), (3, 6, 5)], ids=str)
def test_every_dtype(dtype: DType, size: tuple[int, int, int]) -> None:
    agrees(*products(("ik,kj->ij", "bik,bjk->bij"), dtype, *size))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "iu"], ids=str)
def test_integers_wrap(dtype: DType) -> None:
    largest = np.iinfo(dtype.numpy).max
    x = np.full((9, 40), largest - 2, dtype.numpy)
    avals = [Aval(x.shape, dtype), Aval(x.T.shape, dtype)]
    program = compile_(module_of(avals, functools.partial(product, order="ik,kj->ij")), PASSES)
    (found,) = run(program, [x, x.T])
    assert (found == np.array((int(largest) - 2) ** 2 * 40 % 2**dtype.bits).astype(np.uint64).astype(dtype.numpy)).all()


def test_half_precision_is_summed_in_float32() -> None:
    for dtype, order in itertools.product((dtypes.float16, dtypes.bfloat16), ("ik,kj->ij", "ik,jk->ij")):
        avals = operands(order, dtype, 9, 5000, 40)
        program = compile_(module_of(avals, functools.partial(product, order=order)), PASSES)
        (found,) = run(program, [np.ones(a.shape, a.dtype.numpy) for a in avals])
        assert (found.astype(np.float32) == np.float32(5000).astype(dtype.numpy).astype(np.float32)).all()


@pytest.mark.parametrize("size", [(0, 5, 7), (5, 0, 7), (5, 7, 0), (20, 0, 40), (0, 0, 0)], ids=str)
def test_empty_axes(size: tuple[int, int, int]) -> None:
    for order in ("ik,kj->ij", "bik,bkj->bij"):
        agrees(operands(order, f32, *size), functools.partial(exponentials, order=order))


@pytest.mark.parametrize("size", [(20, 37, 50), (1, 300, 70), (5, 41, 130), (3, 6, 5), (4, 200, 3)], ids=str)
@pytest.mark.parametrize("order", ["ik,kj->ij", "ik,jk->ij", "ki,kj->ij"])
def test_nan_and_infinity_stay_in_their_row_and_column(size: tuple[int, int, int], order: str) -> None:
    avals = operands(order, f32, *size)
    x, y = (random_array(a, i) for i, a in enumerate(avals))
    x[(0, 2) if order.startswith("ik") else (2, 0)] = np.nan
    y[2, -1] = -np.inf
    (found,) = run(compile_(module_of(avals, functools.partial(product, order=order)), PASSES), [x, y])
    with np.errstate(all="ignore"):
        want = np.einsum(order, x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def exponentials(b: Any, x: Any, y: Any, order: str) -> Any:
    return b.exp(product(b, x, y, order))


def linear(b: Any, x: Any, w: Any, c: Any) -> Any:
    """A layer with everything that may follow a product: bias, nonlinearity, residual, conversion."""
    y = gelu(b, product(b, x, w, "ik,jk->ij") + b.broadcast_to(c, (x.shape[0], w.shape[0])))
    return b.convert(y + b.slice(x, start=(0, 0), stop=y.shape, stride=(1, 1)), dtype=dtypes.float32)


@pytest.mark.parametrize("size", [(20, 137, 50), (1, 300, 70), (5, 171, 130), (3, 6, 5)], ids=str)
@pytest.mark.parametrize("dtype", [f32, dtypes.float16, dtypes.bfloat16, dtypes.float64], ids=str)
def test_what_follows_is_part_of_the_kernel(size: tuple[int, int, int], dtype: DType) -> None:
    m, k, n = size
    arrays = [random_array(a, i) for i, a in enumerate([Aval((m, k), dtype), Aval((n, k), dtype), Aval((n,), dtype)])]
    module = module_of([Aval(a.shape, dtype) for a in arrays], linear)
    wide = module_of([Aval(a.shape, dtypes.float64) for a in arrays], linear)
    (want,) = Interpreter(wide)("main", [a.astype(np.float64) for a in arrays])
    program = compile_(module, PASSES)
    assert [kernel.schedule for kernel in program.kernels] == ["contract"] and program.arena_bytes == 0
    (found,) = run(program, arrays)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4 if dtype.size > 2 else 3e-3)  # erf in half precision


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)], ids=str)
def test_results_may_lie_in_another_order(order: tuple[int, ...]) -> None:
    def body(b: Any, x: Any, y: Any) -> Any:
        found = b.reshape(product(b, x, y, "ik,kj->ij"), shape=(4, 6, 40))
        return b.tanh(b.transpose(found, permutation=order))

    agrees(operands("ik,kj->ij", f32, 24, 50, 40), body)


def test_operands_are_read_where_they_lie() -> None:
    """Movement in front of a product: parts, other orders, repeated rows."""

    def body(b: Any, x: Any, y: Any) -> Any:
        part = b.slice(b.transpose(x, permutation=(2, 0, 1)), start=(1, 0, 0), stop=(30, 3, 5), stride=(2, 1, 1))
        rows = b.reshape(part, shape=(15, 15))
        return product(b, rows, b.broadcast_to(y, (15, 40)), "ik,kj->ij")

    agrees([Aval((3, 5, 31), f32), Aval((40,), f32)], body)


#: Of x and w; strides, padding before and behind, dilation of the kernel and of the input, groups.
WINDOWS = [
    ((2, 50, 5), (7, 3, 5), (1,), (1,), (1,), (1,), (1,), 1),
    ((2, 50, 5), (40, 3, 5), (2,), (3,), (1,), (2,), (1,), 1),
    ((1, 30, 8), (24, 5, 2), (1,), (2,), (2,), (1,), (3,), 4),
    ((3, 20, 40), (20, 4, 40), (3,), (-1,), (9,), (1,), (2,), 1),
    ((2, 9, 11, 6), (17, 3, 2, 6), (1, 2), (1, 0), (1, 3), (2, 1), (1, 1), 1),
    ((1, 700, 1), (1, 90, 1), (1,), (0,), (0,), (1,), (1,), 1),
    # Blocks of windows, most of which are inside of the image; none is; every other element is padding.
    ((2, 12, 14, 3), (20, 5, 5, 3), (2, 2), (2, 2), (2, 2), (1, 1), (1, 1), 1),
    ((1, 9, 9, 1), (16, 5, 5, 1), (1, 1), (2, 2), (2, 2), (1, 1), (1, 1), 1),
    ((1, 4, 5, 3), (16, 7, 7, 3), (1, 1), (3, 3), (4, 3), (1, 1), (1, 1), 1),
    ((2, 10, 11, 4), (18, 3, 3, 4), (1, 1), (2, 1), (1, 2), (1, 1), (2, 2), 1),
    ((1, 10, 11, 12), (18, 3, 3, 12), (1, 1), (-1, 2), (2, -2), (2, 1), (1, 1), 1),
    ((2, 10, 11, 12), (36, 3, 3, 6), (1, 2), (1, 2), (2, 0), (1, 1), (1, 1), 2),
]  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("case", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", [f32, dtypes.float16, dtypes.int32, dtypes.complex64], ids=str)
def test_windows_with_padding_around_them(case: Any, dtype: DType) -> None:
    names = ("window_strides", "padding_low", "padding_high", "kernel_dilation", "input_dilation", "feature_groups")
    attrs = dict(zip(names, case[2:]))
    with override(check=True):
        agrees([Aval(shape, dtype) for shape in case[:2]], lambda b, x, w: b.conv_general(x, w, **attrs))
    agrees([Aval(shape, dtype) for shape in case[:2]], lambda b, x, w: b.conv_general(x, w, **attrs))
    if dtype is f32:
        agrees([Aval(shape, dtype) for shape in case[:2]], lambda b, x, w: b.tanh(b.conv_general(x, w, **attrs)))


@pytest.mark.parametrize("team", [1, 2, 3, 7])
def test_any_number_of_threads_gives_the_same_bits(team: int) -> None:
    avals = [Aval((200, 400), f32), Aval((400, 300), f32), Aval((300, 4), f32)]

    def body(b: Any, x: Any, y: Any, z: Any) -> Any:
        first = product(b, x, y, "ik,kj->ij")
        return [first, product(b, first, z, "ik,kj->ij"), product(b, z, first, "ki,jk->ij")]

    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    program = compile_(module_of(avals, body), PASSES)
    with override(num_threads=1):
        want = run(program, arrays)
    with override(num_threads=team):
        for have, expected in zip(run(program, arrays), want):
            assert have.tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [(70, 500, 300), (300, 200, 40)], ids=str)
def test_the_number_of_processors_changes_no_bit(size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides how large the blocks of a result are."""
    avals = operands("ki,kj->ij", f32, *size)
    arrays, found = [random_array(a, i) for i, a in enumerate(avals)], []
    for count in (1, 2, 16):
        monkeypatch.setattr(panels, "processors", lambda count=count: count)
        program = compile_(module_of(avals, functools.partial(product, order="ki,kj->ij")), PASSES)
        found += run(program, arrays)
    assert len({x.tobytes() for x in found}) == 1


@pytest.mark.parametrize("size", [(20, 137, 50), (3, 300, 60), (70, 300, 1), (97, 193, 129)], ids=str)
@pytest.mark.parametrize("order", ["ik,kj->ij", "ik,jk->ij"])
def test_the_width_of_registers_changes_no_bit(
    size: tuple[int, int, int], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    avals = operands(order, f32, *size)
    arrays, found = [random_array(a, i) for i, a in enumerate(avals)], []
    for wide in (True, False):
        for module in (tiles, panels, dots):
            monkeypatch.setattr(module, "has_wide_registers", lambda wide=wide: wide)
        found += run(compile_(module_of(avals, functools.partial(product, order=order)), PASSES), arrays)
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize(
    "size", [(20, 137, 50), (1, 300, 70), (5, 41, 130), (70, 300, 1), (3, 6, 5), (97, 193, 129)], ids=str
)
@pytest.mark.parametrize("dtype", [f32, dtypes.float16, dtypes.int8, dtypes.complex64], ids=str)
def test_every_access_is_checked(size: tuple[int, int, int], dtype: DType) -> None:
    with override(check=True):
        program = agrees(*products(("ik,kj->ij", "bik,bjk->bij"), dtype, *size))
        assert "smelt_report" in program.as_text("kernel")


def test_the_wider_operand_gives_the_columns() -> None:
    for m, n in ((1, 300), (300, 1), (2, 200), (100, 3)):
        avals = operands("ik,kj->ij", f32, m, 50, n)
        module = module_of(avals, functools.partial(product, order="ik,kj->ij"))
        Pipeline.parse(PASSES).run(module)
        body = read_function(next(f for name, f in functions(module).items() if name != "main"))
        assert Sides.of(analyse(body)).columns.extent == max(m, n)


def test_products_left_to_a_library_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt.backends.cpu import blas

    monkeypatch.setattr(blas, "library", lambda: None)
    for order in ("ik,kj->ij", "ibk,kjb->bij"):
        avals = operands(order, f32, 20, 37, 50)
        arrays = [random_array(a, i) for i, a in enumerate(avals)]
        program = compile_(module_of(avals, functools.partial(product, order=order)))
        assert "host" not in [kernel.schedule for kernel in program.kernels]
        (found,) = run(program, arrays)
        np.testing.assert_allclose(found, np.einsum(order, *arrays), rtol=1e-4, atol=1e-4)


#: Shape of the images, taps a side, and how windows lie.
BY_CHANNEL = [
    ((2, 7, 9, 33), 3, {"padding_low": (1, 1), "padding_high": (1, 1)}),
    ((1, 9, 8, 32), 3, {"padding_low": (2, 0), "padding_high": (0, 1), "window_strides": (2, 3)}),
    ((1, 6, 6, 130), 2, {"input_dilation": (2, 1), "kernel_dilation": (1, 2)}),
    ((1, 1, 1, 35), 5, {"padding_low": (2, 2), "padding_high": (3, 2)}),
    ((2, 13, 11, 40), 7, {"padding_low": (3, 3), "padding_high": (3, 3), "window_strides": (2, 2)}),
    ((1, 3, 14, 387), 5, {"padding_low": (2, 2), "padding_high": (2, 2)}),
    ((3, 5, 6, 24), 3, {"padding_low": (2, 1), "padding_high": (2, 2), "input_dilation": (2, 2)}),
    ((1, 1, 77, 19), 4, {"padding_low": (3, 3), "padding_high": (0, 0)}),
]


@pytest.mark.parametrize(("shape", "taps", "windows"), BY_CHANNEL)
def test_convolutions_by_channel(shape: tuple[int, ...], taps: int, windows: dict[str, Any]) -> None:
    """Lines of channels in the middle of an image and at its edges, with numbers that are none on either side."""
    count = shape[-1]
    attrs = {"window_strides": (1, 1), "padding_low": (0, 0), "padding_high": (0, 0), "input_dilation": (1, 1)}
    attrs |= {"kernel_dilation": (1, 1), **windows, "feature_groups": count}
    for dtype in (f32, dtypes.float16, dtypes.bfloat16, dtypes.float64, dtypes.int8, dtypes.complex64):
        avals = [Aval(shape, dtype), Aval((count, taps, taps, 1), dtype)]
        module = module_of(avals, lambda b, x, w: b.conv_general(x, w, **attrs))
        arrays = [random_array(a, i) for i, a in enumerate(avals)]
        cases = [arrays]
        if dtype.kind == "f":
            cases.append([a.copy() for a in arrays])
            for a in cases[1]:
                a[..., 0, 0, 0], a[0, 0], a[-1, -1, -1, -1] = np.inf, -0.0, np.nan
        wanted = [Interpreter(module)("main", case)[0] for case in cases]
        Pipeline.parse(PASSES).run(module)
        body = analyse(read_function(next(f for name, f in functions(module).items() if name != "main")))
        is_real, wide = dtype.kind == "f", body.result.aval.size > body.depth.extent * count
        assert (channels.Channels.of(body) is not None) == (is_real and wide and count >= 16)
        program = compile_(module, "plan-buffers")
        for case, want in zip(cases, wanted):
            close(run(program, case)[0], want, taps * taps)


#: Channels, outputs and groups: few outputs a group beside each other in a vector.
BY_GROUPS = [(64, 64, 16), (40, 80, 40), (36, 24, 12), (96, 48, 12), (32, 32, 2)]


@pytest.mark.parametrize(("channels_in", "outputs", "groups"), BY_GROUPS)
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_by_small_groups(channels_in: int, outputs: int, groups: int, stride: int) -> None:
    attrs = {"window_strides": (stride, 1), "input_dilation": (1, stride)}
    attrs |= {"padding_low": (1, 1), "padding_high": (1, 0), "kernel_dilation": (1, 1), "feature_groups": groups}
    per_group = outputs // groups
    for dtype in (f32, dtypes.bfloat16, dtypes.float64):
        avals = [Aval((2, 9, 11, channels_in), dtype), Aval((outputs, 3, 2, channels_in // groups), dtype)]
        module = module_of(avals, lambda b, x, w: b.conv_general(x, w, **attrs))
        cases = [[random_array(a, i) for i, a in enumerate(avals)] for _ in range(2)]
        cases[1][1][0, 0, 0, 0] = np.inf
        wanted = [Interpreter(module)("main", case)[0] for case in cases]
        Pipeline.parse(PASSES).run(module)
        body = analyse(read_function(next(f for name, f in functions(module).items() if name != "main")))
        assert (channels.Channels.of(body) is not None) == (per_group <= tiles.lanes_of(dtype) // 2)
        program = compile_(module, "plan-buffers")
        for case, want in zip(cases, wanted):
            close(run(program, case)[0], want, 6 * channels_in // groups)


ROWS = [(1001, 70, 16), (203, 2100, 9), (64, 64, 32),
        (97, 1, 16), (9, 300, 12), (301, 512, 3), (77, 4160, 1), (3, 64, 2)]  # fmt: skip


@pytest.mark.parametrize(("rows", "depth", "columns"), ROWS)
def test_rows_are_read_where_they_lie(rows: int, depth: int, columns: int) -> None:
    """Products with few columns, of rows that lie apart, backwards, in batches, and of other dtypes."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, rows, 2 * depth + 3)), rng.standard_normal((depth, columns))

    def products(x: Any, y: Any) -> Any:
        first, last = x[0], x[:, :, 1 : depth + 1]
        return first[:, 3 : 3 + depth] @ y, first[::-1, :depth] @ y, last @ y, x[1, ::3, :depth] @ y

    wanted = products(x, y)
    for dtype, loose in ((smelt.float32, 1e-4), (smelt.float64, 1e-11), (smelt.float16, 3e-1)):
        found = smelt.compile(products)(smelt.array(x, dtype), smelt.array(y, dtype))
        for f, w in zip(found, wanted):
            np.testing.assert_allclose(np.asarray(f.astype(smelt.float64)), w, rtol=loose / 10, atol=loose)
    with override(check=True):
        checked = smelt.compile(lambda *a: products(*a))(*(smelt.array(v.astype(np.float32)) for v in (x, y)))
    np.testing.assert_allclose(np.asarray(checked[0]), wanted[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "permutation"),
    [((128, 64, 64), (0, 2, 1)), ((40, 7, 2000), (0, 2, 1)), ((33, 300, 40), (0, 2, 1)), ((20, 3, 5, 70), (0, 3, 1, 2)),
     ((16, 9, 40, 33), (0, 2, 3, 1)), ((300, 2, 33), (0, 2, 1))],
)  # fmt: skip
@pytest.mark.parametrize("flat", [False, True])
def test_vectors_times_transposes(shape: tuple[int, ...], permutation: tuple[int, ...], flat: bool) -> None:
    """The matrix is read in the order in which it lies, the result is written in another one."""
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(shape[0]).astype(np.float32)
    turned = x.transpose(permutation)
    y = rng.standard_normal(turned.shape[1:]).astype(np.float32)

    def f(v: Any, x: Any, y: Any) -> Any:
        found = smelt.transpose(x, permutation)
        found = (v @ found.reshape(shape[0], -1)).reshape(y.shape) if flat else smelt.tensordot(v, found, 1)
        return found * 0.5 + y

    with override(tier="program"):
        compiled = smelt.compile(f)
        found = np.asarray(compiled(*map(smelt.array, (v, x, y))))
    expected = np.tensordot(v.astype(np.float64), turned.astype(np.float64), 1) * 0.5 + y
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_vector_reads_a_transpose_as_it_lies() -> None:
    """In lines of neighbours, as without the transpose, not element by element."""
    v, x = Aval((128,), f32), Aval((128, 64, 64), f32)
    sums = {"lhs_contracting": (0,), "rhs_contracting": (0,), "lhs_batch": (), "rhs_batch": ()}

    def f(b: Any, v: Any, x: Any) -> Any:
        return b.transpose(b.dot_general(v, x, **sums), permutation=(1, 0)) * 0.5

    module = module_of([v, x], f)
    Pipeline.parse(PASSES).run(module)
    body = read_function(next(f for name, f in functions(module).items() if name != "main"))
    assert build.path(analyse(body)) is lines.build_lines


@pytest.mark.parametrize(("dtype", "loose"), [("float32", 1e-5), ("float64", 1e-13), ("bfloat16", 2e-2)])
@pytest.mark.parametrize(("shape", "taps", "stride"), [((2, 9, 8, 40), 3, 1), ((3, 11, 7, 33), 5, 2)])
def test_weights_gradients_by_channel(
    shape: tuple[int, ...], taps: int, stride: int, dtype: str, loose: float
) -> None:  # fmt: skip
    """In many channels it is one kernel, whatever meets the zeros around the images."""
    rng, pad = np.random.default_rng(0), taps // 2
    places = [(n - 1) // stride + 1 for n in shape[1:3]]
    x, ct = rng.standard_normal(shape), rng.standard_normal((shape[0], *places, shape[3]))

    def gradient(x: Any, w: Any, ct: Any) -> Any:
        layer = lambda w: smelt.conv2d(x, w, stride=stride, padding=pad, groups=shape[3])  # noqa: E731
        return smelt.vjp(layer, [w], [ct])[1][0]

    w = smelt.zeros((shape[3], taps, taps, 1), getattr(smelt, dtype))
    compiled = None
    for special in (0.0, np.inf, np.nan):
        if special:
            ct[0, 0, 1, 3] = ct[-1, -1, -1, -1] = special
        arrays = [smelt.array(x, w.dtype), w, smelt.array(ct, w.dtype)]
        compiled = compiled or smelt.compile(gradient).trace(*arrays).lower().compile()
        assert "conv_general" in compiled.as_text("plan-buffers")
        seen, known = (np.asarray(a.astype(smelt.float64)) for a in (arrays[0], arrays[2]))
        seen, wanted = np.pad(seen, ((0, 0), (pad, pad), (pad, pad), (0, 0))), np.zeros(w.shape)
        for i, j in itertools.product(range(taps), repeat=2):
            ends = [at + (n - 1) * stride + 1 for at, n in zip((i, j), places)]
            with np.errstate(invalid="ignore"):
                wanted[:, i, j, 0] = (seen[:, i : ends[0] : stride, j : ends[1] : stride] * known).sum((0, 1, 2))
        found = np.asarray(smelt.compile(gradient)(*arrays).astype(smelt.float64))
        np.testing.assert_allclose(found, wanted, rtol=loose, atol=loose * 20)
