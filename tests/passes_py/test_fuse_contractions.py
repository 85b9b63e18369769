"""Contractions as kernels, and bounds on a kernel's arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import Function, functions, read_function
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline
from smelt.passes.kernels.contraction_places import contraction_plan, is_contraction

from ..backends.modules import f32, gelu, module_of, over, random_array, softmax


def fused(
    avals: list[Aval], function: Callable[..., Any], options: str = "contractions=true max-buffers=31"
) -> list[Function]:
    """The kernels of a function in the order of their calls; that it still computes the same is checked."""
    module = module_of(avals, function)
    arrays = [random_array(a, i) for i, a in enumerate(avals)]
    want = Interpreter(module)("main", arrays)
    Pipeline.parse(f"cse,dce,fuse{{{options}}}").run(module)
    text.verify(module)
    for have, expected in zip(Interpreter(module)("main", arrays), want):
        np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-5)
    found = functions(module)
    main = read_function(found["main"])
    kernels = [read_function(found[op.attrs["callee"]]) for op in main.ops if op.op.kind == "call"]
    for kernel in kernels:
        check_kernel(kernel)
    return kernels


def check_kernel(kernel: Function) -> None:
    """What is promised of a kernel with a contraction."""
    contractions = [op for op in kernel.ops if is_contraction(op)]
    assert (schedule_of(kernel) == "contract") == bool(contractions)
    if not contractions:
        return
    (op,) = contractions
    plan = contraction_plan(kernel)
    assert plan.op is op and len(plan.at) == op.results[0].ndim
    assert len(plan.output) == kernel.returns[0].ndim
    assert len({v.shape for v in kernel.returns}) == 1
    stack = list(op.operands)
    while stack:
        owner = stack.pop().owner
        if owner is not None:
            assert owner.op.flops == 0
            stack += owner.operands


def schedule_of(kernel: Function) -> str:
    return mlir.ir.StringAttr(kernel.mlir.attributes["smelt.fusion"]).value


def schedules(kernels: list[Function]) -> list[str]:
    return [schedule_of(k) for k in kernels]


def dot(b: Any, x: Any, y: Any) -> Any:
    """The last axis of x with the first of y."""
    return b.dot_general(x, y, lhs_contracting=(x.ndim - 1,), rhs_contracting=(0,))


def matrix(*shape: int) -> Aval:
    return Aval(shape, f32)


def linear(b: Any, x: Any, w: Any, c: Any) -> Any:
    y = dot(b, x, w)
    return gelu(b, y + b.broadcast_to(c, y.shape))


@pytest.mark.parametrize("shape", [(6, 5), (2, 3, 5), (1, 5), (5,)])
def test_linear_layers_are_one_kernel(shape: tuple[int, ...]) -> None:
    assert schedules(fused([matrix(*shape), matrix(5, 4), matrix(4)], linear)) == ["contract"]


def test_alone() -> None:
    (kernel,) = fused([matrix(6, 5), matrix(5, 4)], dot)
    assert kernel.name == "kernel_dot_general"


def test_layouts_are_left_to_the_kernel() -> None:
    def function(b: Any, x: Any, y: Any) -> Any:
        return b.dot_general(x, y, lhs_contracting=(0,), rhs_contracting=(1,), lhs_batch=(1,), rhs_batch=(2,))

    assert len(fused([matrix(5, 3, 4), matrix(6, 5, 3)], function)) == 1


def test_without_the_option_contractions_stay() -> None:
    assert fused([matrix(6, 5), matrix(5, 4)], dot, "max-buffers=31") == []


def test_the_heads_of_attention_move_behind_the_product() -> None:
    def function(b: Any, x: Any, w: Any) -> Any:
        heads = b.reshape(dot(b, x, w), shape=(2, 3, 4, 5))
        return b.exp(b.transpose(heads, permutation=(0, 2, 1, 3)))

    (kernel,) = fused([matrix(6, 7), matrix(7, 20)], function)
    assert [str(i) for i in contraction_plan(kernel).output] == ["div(c0, 3)", "div(c1, 5)", "mod(c0, 3)", "mod(c1, 5)"]


def test_rows_of_a_product_are_another_kernel() -> None:
    kernels = fused([matrix(6, 5), matrix(5, 4)], lambda b, x, w: softmax(b, dot(b, x, w)))
    assert schedules(kernels) == ["contract", "row"]


def test_products_of_vectors_lie_in_no_memory() -> None:
    """Each kernel that reads these computes them."""
    a, c, k = Aval((8, 64, 1), f32), Aval((8, 1, 64), f32), Aval((1, 8), f32)

    def of_examples(b: Any, x: Any, y: Any, z: Any) -> Any:
        outer = b.broadcast_to(x, (8, 64, 64)) * b.broadcast_to(y, (8, 64, 64))
        return dot(b, z, outer), b.reduce_sum(outer * outer, axes=(1, 2))

    module = module_of([a, c, k], of_examples)
    Pipeline.parse("cse,dce,fuse{contractions=true max-buffers=31}").run(module)
    text.verify(module)
    kernels = [read_function(f) for name, f in functions(module).items() if name != "main"]
    assert sorted(schedules(kernels)) == ["contract", "row"]
    assert all(v.aval.size < 8 * 64 * 64 for kernel in kernels for v in kernel.arguments)


def test_what_is_in_front_lies_in_memory() -> None:
    kernels = fused([matrix(6, 5), matrix(5, 4)], lambda b, x, w: dot(b, b.exp(x), b.exp(w)))
    assert schedules(kernels) == ["map", "map", "contract"]


def test_the_residual_is_read_at_the_end() -> None:
    def function(b: Any, x: Any, w: Any) -> Any:
        x = b.exp(x)
        return dot(b, x, w) * 0.5 + x

    assert schedules(fused([matrix(6, 5), matrix(5, 5)], function)) == ["map", "contract"]


def test_products_that_are_needed_elsewhere() -> None:
    def function(b: Any, x: Any, w: Any) -> list[Any]:
        y = dot(b, x, w)
        return [y, b.exp(y), b.reduce_sum(y, axes=(1,))]

    kernels = fused([matrix(6, 5), matrix(5, 4)], function)
    assert schedules(kernels) == ["contract", "row"] and len(kernels[0].returns) == 2


def test_products_that_several_kernels_need_in_other_places() -> None:
    def function(b: Any, x: Any, w: Any) -> list[Any]:
        y = dot(b, x, w)
        return [y + b.transpose(y, permutation=(1, 0)), b.broadcast_to(b.reshape(y, shape=(5, 1, 5)), (5, 2, 5)) * 2.0]

    assert schedules(fused([matrix(5, 5), matrix(5, 5)], function))[0] == "contract"


def test_two_products_in_one_sum() -> None:
    kernels = fused([matrix(6, 5), matrix(5, 4)], lambda b, x, w: dot(b, x, w) + dot(b, b.exp(x), w))
    assert schedules(kernels).count("contract") == 2 and len(kernels) == 3


def test_concatenated_products() -> None:
    def function(b: Any, x: Any, w: Any) -> Any:
        return b.concatenate(dot(b, x, w), x, axis=0)

    assert schedules(fused([matrix(5, 5), matrix(5, 5)], function)) == ["contract", "map"]


@pytest.mark.parametrize("shapes", [((0, 5), (5, 4)), ((3, 0), (0, 4)), ((5,), (5,)), ((1, 1), (1, 1))])
def test_small_shapes(shapes: Any) -> None:
    def function(b: Any, x: Any, w: Any) -> Any:
        return b.exp(dot(b, x, w))

    assert "contract" in schedules(fused([matrix(*s) for s in shapes], function))


def test_names_of_arguments() -> None:
    module = text.parse("""
        func.func @main(%x: tensor<6x6xf32> loc("inputs"), %w: tensor<6x6xf32> loc("weights")) -> tensor<6x6xf32> {
          %0 = "smelt.sort"(%x) {axis = 0 : i64} : (tensor<6x6xf32>) -> tensor<6x6xf32>
          %1 = "smelt.add"(%0, %w) : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
          return %1 : tensor<6x6xf32>
        }""")
    Pipeline.parse("fuse").run(module)
    (call,) = (op for op in read_function(functions(module)["main"]).ops if op.op.kind == "call")
    kernel = read_function(functions(module)[call.attrs["callee"]])
    assert [a.mlir.location.name_str for a in kernel.arguments] == ["sort", "weights"]


# How many arrays


def test_sums_of_many_arrays() -> None:
    def function(b: Any, *xs: Any) -> Any:
        total = xs[0]
        for i, x in enumerate(xs[1:]):
            total = b.exp(total) * (0.1 + i) + x
        return total

    assert len(fused([matrix(8)] * 25, function)) == 1
    kernels = fused([matrix(8)] * 90, function)
    assert len(kernels) == 4
    assert all(len(k.arguments) + len(k.returns) <= 31 for k in kernels)


def test_numbers_are_no_arrays() -> None:
    def function(b: Any, x: Any) -> Any:
        for i in range(40):
            x = x * (i + 1.5)
        return x

    assert len(fused([matrix(8)], function)) == 1


class RandomProgram:
    """Products, reductions, movement and arithmetic on few shapes, with several results."""

    shapes = ((4, 6), (6, 4), (2, 2, 6), (4,), (6,), (6, 6), (24,))

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.avals = [matrix(*self.r.choice(self.shapes)) for _ in range(4)]

    def __call__(self, b: Any, *arguments: Any) -> list[Any]:
        values = list(arguments)
        for _ in range(self.r.randint(4, 24)):
            values.append(self.step(b, values))
        return [values[-1], *self.r.sample(values[4:], 2)]

    def step(self, b: Any, values: list[Any]) -> Any:
        r = self.r
        x = r.choice(values[-6:])
        kind = r.randrange(7)
        if kind == 0:
            order = tuple(r.sample(range(x.ndim), x.ndim))
            return b.transpose(x, permutation=order)
        if kind == 1:
            same = [s for s in self.shapes if np.prod(s) == x.aval.size]
            return b.reshape_to(x, r.choice([*same, x.shape]))
        if kind == 2 and x.ndim:
            return over(b, "reduce_max", x, r.randrange(x.ndim))
        if kind in (3, 4):
            pairs = [(y, i, j) for y in values for i, d in enumerate(x.shape) for j, e in enumerate(y.shape) if d == e]
            pairs = [p for p in pairs if x.ndim + p[0].ndim <= 4]
            if pairs:
                y, i, j = r.choice(pairs)
                return b.dot_general(x, y, lhs_contracting=(i,), rhs_contracting=(j,)) * 0.1
        others = [y for y in values if y.shape == x.shape]
        y = r.choice(others)
        return b.tanh(x) if y is x else x + y * 0.5


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    program = RandomProgram(seed)
    limit = 5 if seed % 2 else 31
    state = program.r.getstate()

    def function(b: Any, *arguments: Any) -> list[Any]:
        program.r.setstate(state)  # a module is built twice
        return program(b, *arguments)

    for kernel in fused(program.avals, function, f"contractions=true max-buffers={limit}"):
        assert len(kernel.arguments) + len(kernel.returns) <= limit


def test_other_dtypes() -> None:
    a = Aval((4, 4), dtypes.int32)
    assert schedules(fused([a, a], lambda b, x, y: dot(b, x, y) + x)) == ["contract"]
