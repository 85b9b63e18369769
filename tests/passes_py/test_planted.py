"""Wrong rewrites, wherever they stand in a program: verify names them, bisection finds them, reduce shows them."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.errors import PipelineError
from smelt.passes import Pipeline
from smelt.passes.driver import Instrumentation
from smelt.passes.reduction import count_ops, reduce_text
from smelt.passes.validation import ValueCheck
from smelt.tools import cli, opt

from .planted import AROUND, PLANTED, pass_of, source_of


def _said(source: str, name: str) -> str:
    """What the check says of a program before and after the planted pass; empty where it finds nothing."""
    module = text.parse(source)
    check = ValueCheck(module)
    try:
        Pipeline.parse(f"cse,{pass_of(name)},dce").run(module, Instrumentation(on_pass=check.on_pass))
    except PipelineError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", PLANTED)
def test_each_is_named(name: str, around: str) -> None:
    said = _said(source_of(name, around), name)
    assert said.startswith(f"{pass_of(name)} changed a value"), said


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", PLANTED)
def test_each_is_shown_in_a_few_ops(name: str) -> None:
    source = source_of(name, "between layers")
    found = reduce_text(source, lambda s: f"{pass_of(name)} changed a value" in _said(s, name))
    assert count_ops(found) < min(10, count_ops(source)), found


def test_the_commands(tmp_path, capsys) -> None:
    path, small, name = tmp_path / "f.mlir", tmp_path / "small.mlir", "the sign of zero"
    path.write_text(source_of(name, "in a loop"))
    pipeline = f"--pass-pipeline=canonicalize,{pass_of(name)},cse"
    verify = ["verify", str(path), pipeline]
    assert cli.main(verify, isolate=False) == 1
    said = capsys.readouterr().err
    assert f"error: {pass_of(name)} changed a value: result 0 at" in said and "of ops of @" in said, said
    for limit, code in (1, 0), (2, 1), (3, 1):
        assert opt.main([str(path), pipeline, "--verify-values", f"--opt-bisect-limit={limit}"], isolate=False) == code
    message = ["--message", f"{pass_of(name)} changed a value"]
    assert cli.main(["reduce", str(path), "-o", str(small), *message, "--", "smelt", "verify", "{}", pipeline]) == 0
    assert count_ops(small.read_text()) <= 5


@pytest.mark.parametrize("around", ["in a loop", "with its derivative"])
def test_a_difference_shows_what_the_pass_did(tmp_path, capsys, around) -> None:
    """And not that loops run functions in which something is different."""
    before, after, name = tmp_path / "a.mlir", tmp_path / "b.mlir", "sides of a padding"
    before.write_text(source_of(name, around))
    assert opt.main([str(before), f"--{pass_of(name)}", "-o", str(after)], isolate=False) == 0
    assert cli.main(["diff", str(before), str(after)], isolate=False) == 1
    lines = capsys.readouterr().out.strip().split("\n")
    assert lines[0].startswith("@lambda_: " if around == "in a loop" else "@main: ") and lines[1:]
    assert all(line.startswith("  ~ pad(") and ": high (" in line for line in lines[1:]), lines
