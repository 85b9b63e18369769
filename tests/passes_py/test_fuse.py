"""What becomes one kernel."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline
from smelt.passes.kernels import grouping
from smelt.passes.kernels.reachability import Reachability

from ..backends.modules import cross_entropy, f32, gelu, layer_norm, module_of, random_array, softmax

MATRIX = Aval((32, 48), f32)


def fused(avals: list[Aval], function: Callable[..., Any], fuse: str = "fuse") -> list[str]:
    """The kernels of a function; that it still computes the same is checked."""
    module = module_of(avals, function)
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    want = Interpreter(module)("main", arrays)
    Pipeline.parse(f"cse,dce,{fuse}").run(module)
    text.verify(module)
    for have, expected in zip(Interpreter(module)("main", arrays), want):
        np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-5)
    main = read_function(functions(module)["main"])
    return [op.attrs["callee"] for op in main.ops if op.op.kind == "call"]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", [softmax, layer_norm])
def test_rows_are_one_kernel(function: Any, axis: int) -> None:
    assert len(fused([MATRIX], lambda b, x: function(b, x, axis))) == 1


def test_elementwise_is_one_kernel() -> None:
    assert fused([MATRIX], gelu) == ["fused_mul_erf_add_mul"] or len(fused([MATRIX], gelu)) == 1


def test_mean_is_one_kernel() -> None:
    assert fused([MATRIX], lambda b, x: b.reduce_sum(x, axes=(1,)) * (1 / 48)) == ["fused_reduce_sum_mul"]


def test_producer_joins_a_reduction() -> None:
    assert fused([MATRIX], lambda b, x: b.reduce_sum(b.exp(x), axes=(1,))) == ["fused_exp_reduce_sum"]


def test_sum_with_the_transpose_is_one_kernel() -> None:
    square = Aval((32, 32), f32)
    assert len(fused([square], lambda b, x: x + b.transpose(x, permutation=(1, 0)))) == 1


def test_expensive_values_read_twice_are_computed_once() -> None:
    def function(b: Any, x: Any) -> Any:
        y = b.exp(b.exp(x))
        return y + b.transpose(y, permutation=(1, 0))

    assert len(fused([Aval((400, 400), f32)], function)) == 2


def test_expensive_values_are_not_computed_for_each_row() -> None:
    def function(b: Any, x: Any, y: Any) -> Any:
        return x + b.broadcast_to(b.exp(y), x.shape)

    assert len(fused([Aval((400, 400), f32), Aval((400,), f32)], function)) == 2
    assert len(fused([Aval((400, 400), f32), Aval((1, 400), f32)], function)) == 2
    assert len(fused([Aval((400, 400), f32), Aval((400, 1), f32)], function)) == 1


def test_what_is_widened_costs_its_narrow_bytes() -> None:
    """Kernels that reduce along different axes subtract for themselves: 16-bit elements are all that each reads."""

    def f(b: Any, x: Any, v: Any) -> list[Any]:
        centered = b.convert_to(x, f32) - b.broadcast_to(v, x.shape)
        return [b.reduce_sum(centered, axes=(axis,)) for axis in range(3)]

    module = module_of([Aval((16, 32, 48), dtypes.float16), Aval((48,), f32)], f)
    Pipeline.parse("cse,dce,fuse").run(module)
    kernels = [read_function(op) for name, op in functions(module).items() if name != "main"]
    assert all(v.aval.ndim == 2 for kernel in kernels for v in kernel.returns)


def test_independent_shapes_stay_apart() -> None:
    assert len(fused([MATRIX, Aval((7,), f32)], lambda b, x, y: [b.exp(x), b.exp(y)])) == 2


def test_different_axes_stay_apart() -> None:
    assert len(fused([MATRIX], lambda b, x: [b.reduce_sum(x, axes=(0,)), b.reduce_sum(x, axes=(1,))])) == 2


def test_siblings_become_one_kernel() -> None:
    def function(b: Any, x: Any) -> list[Any]:
        return [b.reduce_sum(x, axes=(1,)), b.reduce_max(x, axes=(1,)), b.reduce_sum(x * x, axes=(1,))]

    assert len(fused([MATRIX], function)) == 1


def test_several_outputs() -> None:
    assert len(fused([MATRIX, MATRIX], lambda b, x, y: [x * y, x + y, b.exp(x * y)])) == 1


def test_cross_entropy_is_rows_and_a_mean() -> None:
    assert len(fused([MATRIX, MATRIX], cross_entropy)) == 2


def test_large_values_that_depend_on_few_rows_wait_for_them() -> None:
    def function(b: Any, x: Any) -> Any:
        return x / b.broadcast_to(b.reduce_sum(x, axes=(0, 1)), x.shape)

    assert len(fused([Aval((300, 300), f32)], function)) == 2
    assert len(fused([Aval((30, 30), f32)], function)) == 1


def test_reshapes_of_stored_values_are_no_kernel() -> None:
    def function(b: Any, x: Any) -> Any:
        return b.sort(b.reshape(b.sort(x, axis=0), shape=(48, 32)), axis=0)

    assert fused([MATRIX], function) == []


def test_no_cycles() -> None:
    def function(b: Any, x: Any) -> Any:
        y = b.exp(x)
        z = b.sort(y, axis=0)
        return y * z + b.sort(z * y, axis=1)

    fused([MATRIX], function)


def test_long_chains_are_cut() -> None:
    def function(b: Any, x: Any) -> Any:
        for _ in range(1000):
            x = x * 1.001 + 0.5
        return x

    assert 5 < len(fused([Aval((8,), f32)], function)) < 100


def test_movement_goes_into_kernels_that_are_full() -> None:
    """A number that is repeated for each element, or a row for each row, is not written to memory for want of room."""

    def function(b: Any, x: Any, row: Any) -> Any:
        for i in range(6):
            x = b.sin(x * (i + 0.5)) + b.broadcast_to(b.reshape_to(row, (1, 48)), x.shape)
        return x

    kernels = fused([MATRIX, Aval((48,), f32)], function, "fuse{max-ops=4}")
    assert len(kernels) > 3 and not any("broadcast" in name or "constant" in name for name in kernels)


def test_few_joined_elements_that_are_read_often_are_joined_once() -> None:
    def function(b: Any, x: Any, *parts: Any) -> Any:
        return x * b.broadcast_to(b.reshape_to(b.concatenate(*parts, axis=0), (1, 48)), x.shape)

    rows = [Aval((24,), f32)] * 2
    assert len(fused([Aval((4096, 48), f32), *rows], function)) == 2
    assert len(fused([MATRIX, *rows], function)) == 1


def test_wide_graphs() -> None:
    def function(b: Any, *xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = b.exp(total) * 0.1 + b.sin(x)
        return [total, *(x * total for x in xs[:20])]

    fused([Aval((8,), f32)] * 150, function)


@pytest.mark.parametrize("seed", range(3))
def test_what_leads_where_is_known_of_few_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in programs of thousands of kernels, of which a part at a time is looked at."""
    monkeypatch.setattr(grouping, "Reachability", functools.partial(Reachability, part=4))
    choose = random.Random(seed)

    def function(b: Any, *xs: Any) -> Any:
        values = list(xs)
        for _ in range(60):
            x, y = choose.sample(values, 2)
            kind = choose.randrange(4)
            made = b.exp(x) * 0.01 if kind == 0 else x + y if kind == 1 else x * y if kind == 2 else b.sort(x, axis=1)
            values.append(made)
        return choose.sample(values, 12)

    fused([MATRIX] * 3, function)


def test_contractions_read_transposed_operands_in_place() -> None:
    def function(b: Any, x: Any, y: Any) -> Any:
        return b.dot_general(x, y, lhs_contracting=(0,), rhs_contracting=(1,), lhs_batch=(1,), rhs_batch=(2,))

    calls = fused([Aval((5, 3, 4), f32), Aval((6, 5, 3), f32)], function)
    assert all("transpose" in name for name in calls) and len(calls) == 2


def test_integers_and_bools() -> None:
    a = Aval((6, 5), dtypes.int32)
    assert len(fused([a], lambda b, x: b.reduce_any(b.equal(x, b.zeros_like(x)), axes=(1,)))) == 1


def test_operands_that_are_not_looked_at() -> None:
    def function(b: Any, x: Any, i: Any) -> Any:
        return b.gather(x, i + i, axes=(0,), slice_sizes=(1,))

    assert len(fused([Aval((1,), f32), Aval((3,), dtypes.int32)], function)) == 1


def test_equal_groups_share_a_kernel() -> None:
    def function(b: Any, x: Any, y: Any) -> list[Any]:
        return [softmax(b, b.sort(v, axis=0)) for v in (x, y)] + [b.sort(softmax(b, x, axis=0), axis=0)]

    kernels = fused([MATRIX, MATRIX], function)
    assert len(kernels) == 3 and len(set(kernels)) == 2


def test_groups_that_differ_in_a_constant_are_different_kernels() -> None:
    kernels = fused([MATRIX, MATRIX], lambda b, x, y: [b.sort(x, axis=0) * 2.0, b.sort(y, axis=0) * 3.0])
    assert len(set(kernels)) == 2


def test_what_argmax_reads_is_computed_once_where_that_is_expensive() -> None:
    wide = Aval((64, 3000), f32)
    assert len(fused([wide], lambda b, x: b.argmax(x * 2.0 + 1.0, axis=1))) == 1
    assert fused([wide], lambda b, x: b.argmax(b.sin(b.exp(x)) * 2.0, axis=1)) == [
        "fused_exp_sin", "fused_mul_argmax"
    ]  # fmt: skip
    # Neighbouring rows that run together need one loop only.
    assert len(fused([wide], lambda b, x: b.argmax(b.sin(b.exp(x)), axis=0))) == 1


def _many(b: Any, x: Any, y: Any) -> list[Any]:
    """Three hundred ops of six sorts, each of which reads what one of the last few made."""
    values = [x, y]
    for i in range(60):
        z, w = values[-1 - i % 2], values[-1 - i % 5 % len(values)]
        spread = b.broadcast_to(b.reduce_max(z, axes=(0,)), z.shape)
        values.append(b.minimum(b.tanh(z + w) * spread, b.abs(w) - z))
    return values[-3:]


def test_many_ops_on_tiny_values_are_few_different_kernels() -> None:
    tiny = [Aval((4, 4), f32)] * 2
    kernels = fused(tiny, _many, "fuse{apart=16}")
    assert len(kernels) > 100 and len(set(kernels)) < 12
    assert len(fused(tiny, _many, "fuse{apart=15}")) < 100
    assert len(fused(tiny, _many)) < 100


def test_few_ops_on_tiny_values_are_fused() -> None:
    assert len(fused([Aval((4, 4), f32)], lambda b, x: softmax(b, x, 1), "fuse{apart=1024}")) == 1


@pytest.mark.parametrize("variants", [1, 9])
def test_movement_of_tiny_values_is_a_kernel_where_each_reader_would_be_another(variants: int) -> None:
    ways = [(op, i) for op in ("add", "sub", "mul", "maximum", "minimum") for i in (0, 1)][:variants]

    def moved(b: Any, x: Any, y: Any) -> Any:
        for i in range(96):
            op, first = ways[i % len(ways)]
            turned = b.transpose(x, permutation=(1, 0))
            operands = (turned, y) if first else (y, turned)
            x = b.tanh(getattr(b, op)(*operands))
        return x

    kernels = fused([Aval((4, 4), f32)] * 2, moved, "fuse{apart=16}")
    if variants == 1:  # one kernel for all, and no call more
        assert len(set(kernels)) == 2 and len(kernels) == 2 * 96
    else:
        assert len(set(kernels)) == 1 + 1 + 5 and len(kernels) == 3 * 96
