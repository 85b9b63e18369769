"""Translation validation: wrong passes are named, right ones pass."""

from __future__ import annotations

import re

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.custom_call import Target, register_target
from smelt.ir.errors import IRError, PipelineError
from smelt.passes import Pipeline
from smelt.passes.driver import Instrumentation, PassRecord
from smelt.passes.inputs import KINDS, Drawn, inputs_of
from smelt.passes.validation import ValueCheck, differences
from smelt.tools import cli, opt

PROGRAM = """
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %i: tensor<3xi32>) -> (tensor<4xf32>, tensor<4x6xf32>) {
  %0 = "smelt.sub"(%x, %y) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "smelt.reduce_max"(%0) {axes = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
  %2 = "smelt.slice"(%x) {start = array<i64: 0, 1>, stop = array<i64: 4, 4>, stride = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %3 = "smelt.reduce_sum"(%2) {axes = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<4xf32>
  %4 = "smelt.add"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = "smelt.greater"(%x, %y) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  %6 = "smelt.select"(%5, %x, %y) : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %7 = "smelt.exp"(%6) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %4, %7 : tensor<4xf32>, tensor<4x6xf32>
}
"""  # noqa: E501

#: What a wrong pass might do: a part of the program, and what it makes of it.
WRONG = {
    "operands in another order": ('"smelt.sub"(%x, %y)', '"smelt.sub"(%y, %x)'),
    "another extremum": ('"smelt.reduce_max"', '"smelt.reduce_min"'),
    "a window moved by one": ("i64: 0, 1>, stop = array<i64: 4, 4>", "i64: 0, 2>, stop = array<i64: 4, 5>"),
    "branches swapped": ('"smelt.select"(%5, %x, %y)', '"smelt.select"(%5, %y, %x)'),
    "less for greater": ('"smelt.greater"', '"smelt.less"'),
    "another function": ('"smelt.exp"', '"smelt.expm1"'),
    "a product for a sum": ('"smelt.reduce_sum"', '"smelt.reduce_prod"'),
    "a difference for a sum": ('"smelt.add"', '"smelt.sub"'),
    "a value forgotten": ("return %4, %7", "return %4, %6"),
    "another value of the same type": ('"smelt.add"(%1, %3)', '"smelt.add"(%1, %1)'),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_passes_are_named(name):
    old, new = WRONG[name]
    assert PROGRAM.count(old) == 1
    check = ValueCheck(text.parse(PROGRAM))
    check.on_pass(PassRecord("right", 0.0, stage="right"), text.parse(PROGRAM))
    with pytest.raises(PipelineError, match=r"wrong#2 changed a value: result \d at \["):
        check.on_pass(PassRecord("wrong", 0.0, stage="wrong#2"), text.parse(PROGRAM.replace(old, new)))
    assert check.checked == ["right"]


def elementwise(op: str) -> str:
    return f"""
    func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {{
      {op}
      return %0 : tensor<8xf32>
    }}"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('%0 = "smelt.maximum"(%x, %y)', '%0 = "smelt.minimum"(%y, %x)'),
        # Right but for NaN, infinities or the sign of zero.
        ('%c = "smelt.sub"(%x, %x)', '%c = "smelt.sub"(%y, %y)'),
        ('%c = "smelt.neg"(%x)', '%c = "smelt.abs"(%x)'),
    ],
)
def test_special_values_are_seen(before, after):
    types = "(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"
    programs = []
    for op in (before, after):
        body = f"{op} : {types if ', ' in op else '(tensor<8xf32>) -> tensor<8xf32>'}"
        if op.startswith("%c"):
            body += f'\n%0 = "smelt.add"(%c, %y) : {types}'
        programs.append(text.parse(elementwise(body)))
    with pytest.raises(PipelineError, match="changed a value"):
        ValueCheck(programs[0]).on_pass(PassRecord("wrong", 0.0, stage="wrong"), programs[1])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Right but where what is added keeps a divisor from zero, or where a NaN gets lost; both with sums.
        ("x * smelt.rsqrt((x * x).mean() + 1e-5)", "x * smelt.rsqrt((x * x).mean())"),
        ("smelt.maximum(x, 0.0).sum()", "smelt.where(x > 0, x, 0.0).sum()"),
    ],
)
def test_what_only_extreme_arguments_show_is_seen(before, after):
    def module(body):
        f = eval(f"lambda x, y: ({body}, x @ y)", {"smelt": smelt})
        return text.parse(smelt.compile(f).trace(smelt.ones((4, 4)), smelt.ones((4, 4))).lower().as_text("graph"))

    ValueCheck(module(before)).on_pass(PassRecord("right", 0.0, stage="right"), module(before))
    with pytest.raises(PipelineError, match="wrong changed a value"):
        ValueCheck(module(before)).on_pass(PassRecord("wrong", 0.0, stage="wrong"), module(after))


def test_the_sign_of_zero_counts():
    assert differences(np.float32([0.0, 1.0]), np.float32([-0.0, 1.0])).tolist() == [True, False]
    assert not differences(np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf])).any()
    assert differences(np.complex64([1 + 2j]), np.complex64([1 + 3j])).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"f32": "f64"}, "it takes (f64[4,6], f64[4,6], i32[3]), before (f32[4,6], f32[4,6], i32[3])"),
        ({", %i: tensor<3xi32>": ""}, "it takes (f32[4,6], f32[4,6]), before (f32[4,6], f32[4,6], i32[3])"),
        (
            {
                "-> (tensor<4xf32>, tensor<4x6xf32>) {": "-> tensor<4xf32> {",
                "%4, %7 : tensor<4xf32>,": "%4 :",
                " tensor<4x6xf32>\n}": "tensor<4xf32>\n}",
            },
            "it returns (f32[4]), before (f32[4], f32[4,6])",
        ),
        (
            {"-> (tensor<4xf32>,": "-> (tensor<4x6xi1>,", "%4, %7 : tensor<4xf32>": "%5, %7 : tensor<4x6xi1>"},
            "it returns (i1[4,6], f32[4,6]), before",
        ),
    ],
)
def test_other_arguments_and_results_are_seen(changes, message):
    changed = PROGRAM
    for old, new in changes.items():
        changed = changed.replace(old, new)
    with pytest.raises(PipelineError, match=re.escape(f"wrong changed @main: {message}")):
        ValueCheck(text.parse(PROGRAM)).on_pass(PassRecord("wrong", 0.0, stage="wrong"), text.parse(changed))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: smelt.grad(lambda x: (smelt.softmax(x @ x.T, axis=-1) ** 2).sum())(x),
        lambda x: smelt.vmap(lambda r: smelt.sort(r) * smelt.cumsum(r))(x),
        lambda x: smelt.scan(lambda c, y: (c * 0.5 + y, c.sum()), x[0], x),
        lambda x: smelt.where(x > 0, x, -x) / smelt.maximum(x, 1e-3),
        lambda x: smelt.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x),
        lambda x: x[smelt.argmax(x, axis=0) % 4] + x.astype(smelt.float16),
    ],
)
def test_the_pipelines_of_devices_keep_values(program):
    module = smelt.compile(program).trace(smelt.ones((4, 4))).lower().module
    module = text.parse(text.to_text(module))
    check = ValueCheck(module)
    Pipeline.parse(smelt.cpu.pipeline).run(module, Instrumentation(on_pass=check.on_pass))
    assert {"canonicalize", "fuse", "plan-buffers"} <= set(check.checked)


def test_the_commands(tmp_path, capsys):
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM)
    assert cli.main(["verify", str(path), "--values"], isolate=False) == 0
    out, err = capsys.readouterr()
    assert not out and "runs of passes changed no value on 18 inputs" in err
    assert opt.main([str(path), "--canonicalize", "--cse", "--opt-bisect-limit=1"], isolate=False) == 0
    out, err = capsys.readouterr()
    assert "BISECT: running pass (1) canonicalize" in err and "BISECT: NOT running pass (2) cse" in err
    assert opt.main([str(path), "--cse", "--canonicalize", "--mlir-print-ir-after-change"], isolate=False) == 0
    assert "IR Dump After cse" not in capsys.readouterr().err


def test_verify_takes_changes_by_name(tmp_path, capsys):
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM)
    runs = []
    for changes in ("without:fuse", "after:fuse=cse,dce"):
        assert cli.main(["verify", str(path), f"--pass-pipeline={changes}"], isolate=False) == 0
        runs.append(int(capsys.readouterr().err.split(" runs of passes")[0].split()[-1]))
    assert runs[1] == runs[0] + 3
    assert cli.main(["verify", str(path), "--pass-pipeline=before:nothing=cse"], isolate=False) == 1
    assert "nothing" in capsys.readouterr().err


def test_code_of_a_file_runs_only_when_it_is_trusted(tmp_path, capsys):
    ran: list[int] = []
    target = Target("tests.validation", lambda call, x: (ran.append(1), x)[1])
    register_target(target)
    path = tmp_path / "f.mlir"
    call = lambda x: smelt.custom_call("tests.validation", x, types=smelt.ShapeDtype((3,), x.dtype))  # noqa: E731
    path.write_text(smelt.make_ir(call)(smelt.ones(3)))
    assert cli.main(["verify", str(path), "--pass-pipeline=cse"], isolate=False) == 1
    assert "run it with --custom-calls" in capsys.readouterr().err and not ran
    assert cli.main(["verify", str(path), "--pass-pipeline=cse", "--custom-calls"], isolate=False) == 0
    assert ran


def test_a_module_without_main():
    with pytest.raises(IRError, match="no function @main; it has f"):
        ValueCheck(text.parse("func.func private @f() { return }"))


def test_inputs_made_of_numbers_drawn_before_leave_those_as_they_are() -> None:
    drawn, rng = Drawn(), np.random.default_rng(0)
    shapes = {dtypes.float32: (5, 3), dtypes.int32: (), dtypes.bfloat16: (0,), dtypes.bool_: (7,)}
    avals = [Aval(shape, dtype) for dtype, shape in shapes.items()]
    for kind in KINDS:
        arrays = inputs_of(avals, kind, 0, rng, drawn)
        assert [(x.shape, x.dtype) for x in arrays] == [(a.shape, a.dtype.numpy) for a in avals]
    numbers = drawn.array(Aval((1 << 16,), dtypes.float32), "random", rng)
    assert np.isfinite(numbers).all() and not numbers.flags.writeable
    assert np.isnan(inputs_of(avals[:1], "one-NaN", 0, rng, drawn)[0]).sum() == 1
    one, other = (drawn.array(avals[0], "random", rng) for _ in range(2))
    assert (one != other).any()
