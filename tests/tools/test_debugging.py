"""smelt diff, reproducers, printing between passes, and flags of mlir-opt that are not here."""

from __future__ import annotations

import re

from smelt.tools import cli, opt
from smelt.tools.mlir_flags import LACKING

from .test_tools import GOOD, fails


def test_diff(run, good, tmp_path, capsys):
    other = tmp_path / "other.mlir"
    other.write_text(GOOD.replace("smelt.mul", "smelt.add"))
    assert cli.main(["diff", good, good], isolate=False) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["diff", good, str(other)], isolate=False) == 1
    out = capsys.readouterr().out
    assert out.startswith("@main: 4 ops the same, 1 changed, 1 removed, 1 added\n  - mul(%2, %3) : f32[2]  (line 7)\n")
    assert cli.main(["diff", "-q", good, str(other)], isolate=False) == 1
    assert capsys.readouterr().out == ""
    assert cli.main(["diff", good, str(tmp_path / "nowhere")], isolate=False) == 2
    assert "cannot be read" in capsys.readouterr().err
    other.write_text("func.func @main(")
    for isolate in (False, True):
        assert cli.main(["diff", good, str(other)], isolate=isolate) == 2


def test_run_reproducer(run, good, tmp_path):
    path = tmp_path / "f.mlir"
    for header in (
        "// RUN: smelt-opt %s --pass-pipeline='cse,dce'\n// fails: never\n",
        "// RUN: smelt-opt %s --cse --dce | filecheck %s\n",
    ):
        path.write_text(header + GOOD)
        code, out, _ = run(str(path), "--run-reproducer")
        assert code == 0 and out.count("smelt.sqrt") == 1
    resource = '{-# external_resources: { mlir_reproducer: { pipeline: "builtin.module(cse,dce)" } } #-}'
    path.write_text(f"{GOOD}\n{resource}\n")
    assert run(str(path), "--run-reproducer")[1].count("smelt.sqrt") == 1
    fails(run(good, "--run-reproducer"), "the file names no passes")
    path.write_text("// RUN: smelt-opt %s --cse\n" + GOOD)
    fails(run(str(path), "--run-reproducer", "--dce"), "the command line has dce, too")


def test_ir_to_files_and_after_a_failure(run, good, tmp_path):
    folder = tmp_path / "tree"
    tree = f"--mlir-print-ir-tree-dir={folder}"
    code, _, err = run(good, "--cse", "--dce", "--mlir-print-ir-after-all", "--mlir-print-ir-before=dce", tree)
    assert code == 0 and err == ""
    inside = folder / "builtin_module_no-symbol-name"
    assert sorted(p.name for p in inside.iterdir()) == ["0_cse.mlir", "1_dce_before.mlir", "2_dce.mlir"]
    first, rest = (inside / "0_cse.mlir").read_text().split("\n", 1)
    assert first == "// -----// IR Dump After cse //----- //" and rest == run(good, "--cse")[1]
    failing = tmp_path / "vjp.mlir"
    failing.write_text(
        "func.func private @f(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n"
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
        "  %f = constant @f : (tensor<f32>) -> tensor<f32>\n"
        '  %g = "smelt.batch"(%f) {in_axes = array<i64: 0>, out_axes = array<i64: 0>, size = 2 : i64} : '
        "((tensor<f32>) -> tensor<f32>) -> ((tensor<2xf32>) -> tensor<2xf32>)\n"
        "  return %x : tensor<f32>\n}\n"
    )
    code, _, err = run(str(failing), "--cse", "--fuse", "--mlir-print-ir-after-failure")
    assert code == 1 and err.count("IR Dump After fuse Failed") == 1 and '"smelt.batch"' in err
    assert "IR Dump After cse" not in err


def test_flags_of_mlir_opt_that_are_not_here_say_what_to_use(run, good):
    known = {flag for action in opt._parser()._actions for flag in action.option_strings}
    assert not known & set(LACKING)
    for flag, instead in LACKING.items():
        code, out, err = run(good, f"{flag}=1")
        assert code == 2 and out == "" and f"{flag} of mlir-opt is not here: {instead}" in err
        for named in re.findall(r"--[a-z][a-z-]+[a-z]", instead):
            assert named in known or named == "--stage"


def test_flags_as_the_tests_of_mlir_write_them(run, good, tmp_path):
    """With one dash, and with values that may be left out."""
    for flags in (["-canonicalize"], ["-pass-pipeline=builtin.module(func.func(cse))"], ["-opt-bisect-limit", "1"]):
        assert run(*flags, good) == run(*[f"-{flag}" if flag[0] == "-" else flag for flag in flags], good)
        assert run(*flags, good)[0] == 0
    path = tmp_path / "out.mlir"
    assert run(good, f"-o{path}")[0] == 0 and "smelt.mul" in path.read_text()
    assert "--help-list of mlir-opt is not here" in run("-help-list")[2]
    assert "unknown pass 'nonsense'" in run("-nonsense", good)[2]


def test_parts_are_divided_by_other_lines(run, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text(GOOD + "// ====\n" + GOOD)
    code, out, err = run("--split-input-file=// ====", "--output-split-marker=// ++++", str(path))
    assert code == 0 and out.count("// ++++\n") == 1 and out.count("func.func") == 2, err


def test_only_what_is_expected_is_compared(run, tmp_path):
    path = tmp_path / "f.mlir"
    wrong = GOOD.replace("smelt.mul", "smelt.mull")
    path.write_text(wrong)
    assert run("-verify-diagnostics", str(path))[0] == 1
    assert run("--verify-diagnostics=only-expected", str(path))[0] == 0
    path.write_text("// expected-error @unknown {{nothing}}\n" + wrong)
    code, _, err = run("-verify-diagnostics=only-expected", str(path))
    assert code == 1 and "'nothing' was not produced" in err and "unexpected" not in err


def test_the_generic_form(run, good):
    code, out, _ = run("-mlir-print-op-generic", good)
    assert code == 0 and '"func.func"() <{' in out
    said = run("--short", "--mlir-print-op-generic", good)[2]
    assert "--short and --mlir-print-op-generic ask for different things" in said
