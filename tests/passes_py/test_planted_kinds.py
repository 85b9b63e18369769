"""Faults of passes that no rewrite of one expression has: the tools name the pass, and show the fault in a few ops."""

from __future__ import annotations

import tempfile

import pytest

from smelt.ir import text
from smelt.ir.errors import SmeltError
from smelt.passes import Pipeline
from smelt.passes.driver import Instrumentation
from smelt.passes.reduction import count_ops, reduce_text
from smelt.passes.validation import ValueCheck
from smelt.tools import cli, opt

from .planted_kinds import ENDS, UNEXPANDED, VALUES, pass_of, source_of


def _said(source: str, name: str) -> str:
    """What the check says of a program before and after the pass; empty where it finds nothing."""
    module = text.parse(source)
    try:
        check = ValueCheck(module)
        Pipeline.parse(f"cse,{pass_of(name)},dce").run(module, Instrumentation(on_pass=check.on_pass))
    except SmeltError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", [*VALUES, *UNEXPANDED])
def test_each_is_named(name: str) -> None:
    said = _said(source_of(name), name)
    assert said.startswith(f"{pass_of(name)} changed a value"), said


#: All but what a second run may not show.
STEADY = [name for name in (*VALUES, *UNEXPANDED) if name != "one run of two"]


@pytest.mark.parametrize("name", STEADY)
def test_each_is_shown_in_a_few_ops(name: str) -> None:
    found = reduce_text(source_of(name), lambda s: _said(s, name).startswith(f"{pass_of(name)} changed a value"))
    assert count_ops(found) < 10, found


@pytest.mark.parametrize("name", STEADY)
def test_bisection_ends_at_each(name: str, tmp_path, capsys) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(source_of(name))
    pipeline = f"--pass-pipeline=symbol-dce,{pass_of(name)},dce"
    for limit, code in (1, 0), (2, 1):
        command = [str(path), pipeline, "--verify-values", f"--opt-bisect-limit={limit}"]
        assert opt.main(command, isolate=False) == code, capsys.readouterr().err


PROGRAM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "smelt.sin"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("name", ENDS)
def test_each_that_ends_is_named(name: str, tmp_path, capfd, monkeypatch) -> None:
    """By smelt-opt, by smelt verify, and by what smelt reduce leaves, beside which its tries leave nothing."""
    reproducers = tmp_path / "reproducers"
    reproducers.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(reproducers))
    path, small = tmp_path / "f.mlir", tmp_path / "small.mlir"
    path.write_text(PROGRAM)
    pipeline = f"--pass-pipeline=cse,{pass_of(name)},dce"
    command = [str(path), pipeline, "--pass-timeout=2"]
    assert opt.main(command) == 1
    said = capfd.readouterr().err
    assert pass_of(name) in said and ENDS[name][1] in said, said
    if name != "no end":  # for which --timeout is
        assert cli.main(["verify", str(path), pipeline]) == 1
        assert pass_of(name) in capfd.readouterr().err
    before = sorted(reproducers.iterdir())
    reduce = ["reduce", str(path), "-o", str(small), "--message", pass_of(name)]
    assert cli.main([*reduce, "--", "smelt-opt", "{}", *command[1:]]) == 0, capfd.readouterr().err
    assert count_ops(small.read_text()) == 1
    assert sorted(reproducers.iterdir()) == before
