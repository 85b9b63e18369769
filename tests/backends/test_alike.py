"""Kernels that differ in numbers alone are one function of machine code, which is told these numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smelt.backends.cpu import alike, launch_tables
from smelt.backends.cpu.kernel import KernelModule
from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.settings import override

from .modules import check, compile_, module_of

#: More than share a branch, and few enough that their calls are written out.
LENGTHS = range(40, 40 + 2 * alike.FEWEST)


def _kernels(avals: list[Aval], function: Any) -> int:
    return int(compile_(module_of(avals, function)).as_text("kernel").count("func.func private @"))


def _means(b: Any, *arrays: Any) -> list[Any]:
    """Rows less their mean: the length is the end of loops, a step from row to row, and a divisor of numbers."""
    found = []
    for x in arrays:
        rows, length = x.shape
        mean = b.reduce_sum(x * x, axes=(1,)) / float(-length)
        found.append(x - b.broadcast(b.reshape(mean, shape=(rows, 1)), shape=x.shape))
    return found


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16])
def test_lengths_of_rows(dtype: Any) -> None:
    avals = [Aval((3, n), dtype) for n in LENGTHS]
    assert _kernels(avals, _means) <= 2
    tolerance = 1e-5 if dtype.size > 2 else 2e-2
    check(avals, _means, tolerance, tolerance)


def test_rows_of_a_table() -> None:
    count = launch_tables.FEWEST + 8
    avals = [Aval((2 + i % 3, 40 + i % 16), dtypes.float32) for i in range(count)]
    assert _kernels(avals, _means) <= 4
    check(avals, _means)


def test_rows_of_a_narrow_table() -> None:
    def f(b: Any, *arrays: Any) -> list[Any]:
        for _ in range(20):
            arrays = tuple(x * 0.5 for x in _means(b, *arrays))
        return list(arrays)

    avals = [Aval((2, n), dtypes.float32) for n in LENGTHS]
    assert _kernels(avals, f) <= 4
    check(avals, f)


def test_few_are_left_alone() -> None:
    assert _kernels([Aval((3, n), dtypes.float32) for n in LENGTHS[: alike.FEWEST - 1]], _means) == alike.FEWEST - 1


def test_checked_kernels_are_left_alone() -> None:
    avals = [Aval((3, n), dtypes.float32) for n in LENGTHS]
    with override(check=True):
        assert _kernels(avals, _means) >= len(LENGTHS)


@pytest.mark.parametrize(
    "text, bits",
    [
        ("13 : index", 13), ("-1 : index", -1), ("-7 : i8", -7), ("1262485504 : i32", 1262485504),
        ("-9 : i64", -9), ("1.300000e+01 : f32", int(np.float32(13).view(np.int32))),
        ("-2.5 : f64", int(np.float64(-2.5).view(np.int64))), ("0xFF800000 : f32", -(1 << 23)),
        ("0x7FF0000000000000 : f64", 0x7FF0000000000000),
    ],
)  # fmt: skip
def test_bits_of_numbers(text: str, bits: int) -> None:
    assert alike.Number.of(text) == (bits, text.split()[-1])


@pytest.mark.parametrize("text", ["true", "dense<1.0> : vector<4xf32>", "1.0 : f16", "0x7E00 : f16"])
def test_others_stay_in_the_code(text: str) -> None:
    assert alike.Number.of(text) is None


def test_what_divides_integers_stays_in_the_code() -> None:
    codes = [
        alike.Code("f", f"func.func private @(%arg0: index) attributes {{}} {{\n  %c{n} = arith.constant {n} : index\n"
                        f"  %0 = arith.{op} %arg0, %c{n} : index\n}}")
        for op in ("divui", "remsi", "addi") for n in (3, 5)
    ]  # fmt: skip
    assert [code.key == other.key for code, other in zip(codes[::2], codes[1::2])] == [False, False, True]


def test_kernels_unlike_any_other_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a kernel takes as long to make as the kernel."""
    asked, text = list[str](), KernelModule._text

    def noted(self: KernelModule, name: str) -> str:
        asked.append(name)
        return text(self, name)

    monkeypatch.setattr(KernelModule, "_text", noted)
    x = Aval((5, 40), dtypes.float32)
    assert _kernels([x], lambda b, x: [b.exp(x)]) == 1 and not asked
    assert _kernels([x, x], lambda b, x, y: [b.exp(x), b.reduce_max(x * y, axes=(1,))]) == 2 and not asked
    assert _kernels([x, Aval((5, 41), dtypes.float32)], _means) == 2 and len(asked) == 2
