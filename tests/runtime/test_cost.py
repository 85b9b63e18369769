"""What programs cost: bytes, operations and memory by step, and times of steps run by themselves."""

from __future__ import annotations

import pytest

import smelt
from smelt.ir import text
from smelt.ir.errors import IRError
from smelt.passes.kernels.cost import program_cost
from smelt.runtime import compile_module
from smelt.runtime.device import device_named
from smelt.runtime.measure import cost_of
from smelt.tools.op_cases import example, module_of, plain_ops

from ..devices import with_kernels


def compiled(function, *arguments):
    return smelt.compile(function).trace(*arguments).lower().compile()


def softmax_of_product(x, w):
    h = x @ w
    return smelt.softmax(h, axis=-1), h.sum(axis=0)


ARGUMENTS = smelt.ones((64, 32)), smelt.ones((32, 16))


def test_bytes_and_operations():
    (step,) = compiled(lambda x, y: smelt.exp(x) * y, smelt.ones((8, 16)), smelt.ones((16,))).cost().steps
    assert (step.kind, step.times, step.least_bytes) == ("map", 1, 4 * (128 + 16 + 128))
    assert step.ops == ("exp", "mul") and step.operations > 2 * 128 and step.intensity > 0
    assert step.lines and "test_cost.py:" in step.lines[0]


def test_products_count_their_depth():
    cost = compiled(lambda x, w: x @ w, *ARGUMENTS).cost()
    assert [s.operations for s in cost.steps] == [2 * 64 * 32 * 16]
    assert cost.least_bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16) == cost.peak_bytes


def test_words_of_a_table_are_one_space_apart():
    lines = str(compiled(lambda x: x + 1, smelt.ones(3)).cost()).splitlines()
    assert "all steps: 24 B, 3 operations" in lines


def test_memory_over_time():
    cost = compiled(softmax_of_product, *ARGUMENTS).cost()
    assert cost.arena_bytes == sum(x.nbytes for x in cost.lifetimes) == 4 * 64 * 16
    (held,) = cost.peak_holders
    assert held.nbytes == 4 * 64 * 16 and "dot_general" in held.made_by and held.first < held.last
    assert cost.peak_bytes == cost.least_bytes + cost.arena_bytes
    assert not cost.alive_at(99)


def test_steps_of_loops_count_as_often_as_they_run():
    def program(x):
        return smelt.scan(lambda c, y: (c + smelt.exp(y).sum(), c), smelt.array(0.0), x)

    cost = compiled(program, smelt.ones((7, 4))).cost()
    assert {s.times for s in cost.steps if "exp" in s.ops} == {7}
    assert cost.operations >= 7 * 4


def loops_twice_a_level(levels):
    """Functions each of which runs the next one in two loops of two steps."""

    def loop(result, callee, start):
        return f"""
            {result} = scf.for %i = %c0 to %c2 step %c1 iter_args(%y = {start}) -> (tensor<4xf32>) {{
              %z = func.call @{callee}(%y) : (tensor<4xf32>) -> tensor<4xf32>
              scf.yield %z : tensor<4xf32>
            }} {{smelt.carries = 1 : i64, smelt.constants = 0 : i64}}"""

    def function(name, callee):
        return f"""
          func.func {"" if name == "main" else "private"} @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %c2 = arith.constant 2 : index {loop("%a", callee, "%x")} {loop("%b", callee, "%a")}
            return %b : tensor<4xf32>
          }}"""

    names = ["main", *(f"f{i}" for i in range(1, levels)), "last"]
    return f"""module {{ {"".join(map(function, names, names[1:]))}
      func.func private @last(%x: tensor<4xf32>) -> tensor<4xf32> {{
        %0 = "smelt.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }}
    }}"""


def test_a_function_that_runs_at_many_places_counts_once():
    module = text.parse(loops_twice_a_level(40))
    smelt.default_pipeline("cpu").run(module)
    (step,) = program_cost(module).steps
    assert step.ops == ("sin",) and step.times == 4**40


def test_measured_steps():
    cost = compiled(softmax_of_product, *ARGUMENTS).cost(measure=True)
    assert all(s.measured > 0 and s.predicted > 0 for s in cost.steps)
    assert "measured" in str(cost) and "µs" in str(cost)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: smelt.sort(x, axis=-1) + smelt.cumsum(x, axis=0),
        lambda x: x[smelt.argmax(x, axis=0)],
        lambda x: smelt.linalg.inv(x @ x.T + smelt.eye(6)),
        lambda x: smelt.grad(lambda x: smelt.softmax(x * x).sum())(x),
        lambda x: smelt.where(x.sum() > 0, x.astype(smelt.float16), 1),
        lambda x: smelt.cond(x.sum() > 0, lambda x: x * 2, lambda x: smelt.sin(x), x),
        lambda x: smelt.random.normal((6, 6)) + x,
        lambda x: x.at[smelt.array([0, 1])].add(1.0),
        lambda x: smelt.grad(lambda x: smelt.scan(lambda c, row: (c * row, c), x[0], x)[0].sum())(x),
        lambda x: smelt.fori_loop(0, 3, lambda i, c: smelt.sort(c, axis=-1) + x, x),
    ],
)
@pytest.mark.parametrize("device", with_kernels(), ids=lambda d: d.name)
def test_steps_of_all_kinds_run_by_themselves(program, device):
    with smelt.stream(device.name):
        cost = compiled(program, smelt.ones((6, 6))).cost(measure=True)
    assert cost.steps and all(s.measured is not None for s in cost.steps), str(cost)


@pytest.mark.parametrize("op", [op for op in plain_ops() if hasattr(op, "sample")], ids=lambda op: op.name)
def test_steps_run_where_their_ops_are_defined(op):
    """No matrix made up at random has, for one, a Cholesky factor."""
    program = compile_module(module_of(example(op)), device_named("cpu"), keep_texts=True)
    assert all(s.measured is not None for s in cost_of(program, device_named("cpu")).steps)


@pytest.mark.parametrize("pipeline", ["cse", "fuse", "canonicalize,dce"])
def test_a_program_that_was_not_planned(pipeline):
    program = smelt.compile(lambda x: x + 1).trace(smelt.ones(3)).lower()
    with pytest.raises(IRError, match="not planned: a pipeline for this device ends with plan-buffers"):
        program.compile(pipeline)


def test_a_program_without_its_stages():
    program = smelt.compile(lambda x: x + 1).trace(smelt.ones(3)).lower().compile(keep_texts=False)
    with pytest.raises(IRError, match="keep_texts=True"):
        program.cost()
