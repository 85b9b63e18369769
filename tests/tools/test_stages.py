"""The stages of a module, as the commands list, print and write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smelt.tools import cli

from .test_tools import GOOD


def test_a_listing_marks_the_passes_that_changed_nothing(run: Any, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import smelt\nf = smelt.grad(lambda x: smelt.sin(x))\n")
    code, out, _ = run("dump", f"{program}:f", "f32[]", "--stage=list", main=cli.main)
    lines = out.splitlines()
    assert code == 0 and lines[:4] == ["graph", "batch  (changed nothing)", "jvp  (changed nothing)", "linearize#1"]
    code, out, _ = run("dump", f"{program}:f", "f32[]", "--stage=linearize", main=cli.main)
    assert code == 0 and "smelt.linear_transpose" in out


def test_printed_ir_and_files_number_the_runs(run: Any, tmp_path: Path) -> None:
    file, folder = tmp_path / "good.mlir", tmp_path / "ir"
    file.write_text(GOOD)
    options = ("--pass-pipeline=fixpoint(inline,cse),dce", f"--dump-ir-to={folder}", "--mlir-print-ir-after-all")
    code, _, err = run(file, *options)
    assert code == 0
    headers = [line for line in err.splitlines() if line.startswith("// -----//")]
    names = [h.removeprefix("// -----// IR Dump After ").removesuffix(" //----- //") for h in headers]
    assert [n.split()[0] for n in names[:2]] == ["inline#1", "cse#1"] and names[-1].split()[0] == "dce"
    files = sorted(p.name for p in folder.iterdir())[1:]
    assert [f[5:].removesuffix(".mlir").replace("_", "#") for f in files] == [
        n.replace(" (changed nothing)", "-unchanged") for n in names
    ]
    assert run(file, options[0], "--mlir-print-ir-after=cse#2")[2].count("IR Dump") == 1
    assert run(file, options[0], "--mlir-print-ir-before=cse")[2].count("IR Dump") == 2
