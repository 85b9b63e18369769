"""Flags of mlir-opt: each is taken, or said to be lacking; those about printing, reproducers and remarks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from smelt.ir.text import to_text
from smelt.tools import opt
from smelt.tools.mlir_flags import LACKING, WITHOUT_EFFECT

from .test_tools import fails

LITERAL = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = "smelt.literal"() {value = dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "smelt.mul"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("product")
  return %0 : tensor<4xf32>
}
"""
TWICE = """
func.func @main(%x: tensor<4096xf32>) -> (tensor<f32>, tensor<4096xf32>) {
  %e = "smelt.exp"(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  %s = "smelt.reduce_sum"(%e) {axes = array<i64: 0>} : (tensor<4096xf32>) -> tensor<f32>
  %p = "smelt.cumsum"(%e) {axis = 0 : i64, reverse = false} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %s, %p : tensor<f32>, tensor<4096xf32>
}
"""


def flags_of_mlir_opt() -> list[str]:
    """The flags, passes left out, of the tool that comes with the bindings; none where there is none."""
    tool = Path(sys.executable).with_name("torch-mlir-opt")
    if not tool.exists():
        return []
    text = subprocess.run([tool, "--help-hidden"], capture_output=True, text=True, check=True).stdout
    text = re.sub(r"(?ms)^Compiler passes to run.*?(?=^[A-Z])", "", text)
    return sorted({f"--{flag}" for flag in re.findall(r"^  --?([A-Za-z][\w-]+)", text, re.MULTILINE)})


def test_each_flag_of_mlir_opt_is_taken_or_said_to_be_lacking():
    flags = flags_of_mlir_opt()
    if not flags:
        pytest.skip("the bindings have no tool like mlir-opt")
    known = {flag for action in opt._parser()._actions for flag in action.option_strings}
    assert len(flags) > 80
    assert [f for f in flags if f not in {*known, *LACKING, *WITHOUT_EFFECT, "--pass-pipeline"}] == []


def test_flags_without_effect_change_nothing(run, good):
    for flag in WITHOUT_EFFECT:
        assert run(good, flag, "-cse") == run(good, "--cse")


@pytest.fixture
def literal(tmp_path):
    path = tmp_path / "literal.mlir"
    path.write_text(LITERAL)
    return str(path)


@pytest.mark.parametrize(
    "flag, there, gone",
    [
        ("--mlir-print-local-scope", "5.0", "..."),
        ("--mlir-elide-elementsattrs-if-larger=2", "dense_resource<__elided__>", "5.0"),
        ("--mlir-elide-elementsattrs-if-larger=4", "5.0", "elided"),
        ("--mlir-pretty-debuginfo", ':3:8\n    %1 = "smelt.mul"', "loc("),
        ("--mlir-print-skip-regions", "module {...}", "smelt"),
        ("--mlir-use-nameloc-as-prefix", '%product = "smelt.mul"', "%1"),
        ("--mlir-print-assume-verified", "5.0", "..."),
    ],
)
def test_printing(run, literal, flag, there, gone):
    code, out, err = run(literal, flag)
    assert code == 0 and err == "" and there in out and gone not in out
    printed = run(literal, flag, "--cse", "--mlir-print-ir-after-all", "--emit=dot")[2]
    assert there in printed and gone not in printed
    fails(run(literal, flag, "--emit=dot"), "it is a form of the dialect's IR")
    fails(run(literal, flag, "--short"), "ask for different things")


def test_the_pipeline_is_printed(run, good):
    assert run(good, "--dump-pass-pipeline", "-p", "cse,fixpoint(dce)")[2] == "Pass pipeline: cse,fixpoint(dce)\n"


def test_round_trip(run, good, monkeypatch):
    assert run(good, "--verify-roundtrip")[0] == 0
    texts = iter([True, False])

    def misprinted(module):
        return to_text(module) if next(texts) else to_text(module).replace("smelt.mul", "smelt.add")

    monkeypatch.setattr("smelt.ir.text.to_text", misprinted)
    fails(run(good, "--verify-roundtrip"), "printed and read again, line", "`%", "smelt.add", "not `%")


def test_reproducers_go_where_they_are_told(run, good, tmp_path):
    path = tmp_path / "repro.mlir"
    assert run(good, "--cse", "--dce", f"--mlir-generate-reproducer={path}")[0] == 0
    assert path.read_text().startswith("// RUN: smelt-opt %s --pass-pipeline=cse,dce\n")
    assert run(str(path), "--run-reproducer")[1] == run(good, "--cse", "--dce")[1]
    assert "cannot be written" in run(good, f"--mlir-generate-reproducer={tmp_path}/none/f.mlir")[2]


def test_remarks_are_chosen(run, tmp_path):
    path = tmp_path / "twice.mlir"
    path.write_text(TWICE)
    every = run(str(path), "--fuse", "--remarks")[2].splitlines()
    kinds = {kind: [line for line in every if f": {kind}, " in line] for kind in ("passed", "missed")}
    assert all(kinds.values())
    for kind, lines in kinds.items():
        assert run(str(path), "--fuse", f"--remarks-filter-{kind}=fuse")[2].splitlines() == lines
    assert run(str(path), "--fuse", "--remarks-filter=^kernel$")[2].splitlines() == kinds["passed"]
    assert run(str(path), "--fuse", "--remarks-filter=none")[2] == ""
    assert "is no regular expression" in run(str(path), "--remarks-filter=[")[2]
    out = tmp_path / "r.yaml"
    run(str(path), "--fuse", "--remarks-filter-missed=.", f"--remarks-output-file={out}")
    assert "!Missed" in out.read_text() and "!Passed" not in out.read_text()
