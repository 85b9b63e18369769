"""Passes, ops and rewrites in a file that is no package: ``--load-pass-plugin=FILE`` of commands that run passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = '''
from dataclasses import dataclass

from smelt.ir.builder import functions, read_function
from smelt.passes import Pass, register_pass
from smelt.passes.rewrite import rebuild
from smelt.passes.rewrites import RewriteSet, Term, ops

halves = RewriteSet("file-halves")


@halves.rewrite(reals=True)
def sum_of_equals(x: Term):
    return x + x >> 2 * x


@register_pass("file-log-exp")
@dataclass(frozen=True)
class LogExp(Pass):
    """log(exp(x)) → x, of @main."""

    def run(self, module, statistics):
        def visit(b, op, operands):
            maker = operands[0].defined_by("exp") if op.name == "log" else None
            if maker is None:
                return b.clone(op, operands)
            statistics["removed"] += 1
            return [maker.operands[0]]

        rebuild(module, read_function(functions(module)["main"]), visit)


@register_pass("file-raises")
@dataclass(frozen=True)
class Raises(Pass):
    """An error of Python."""

    def run(self, module, statistics):
        return 1 / 0


def f(x):
    import smelt

    return smelt.log(smelt.exp(x))
'''
PROGRAM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "smelt.log"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "f.mlir").write_text(PROGRAM)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "broken.py").write_text("1 / 0\n")
    return tmp_path


def command(folder: Path, *words: str) -> tuple[int, str]:
    """What a command returns and prints, in a process of its own: what a plugin defines stays there."""
    done = subprocess.run(
        [sys.executable, "-m", "smelt.tools", *words], cwd=folder, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


MINE = "--load-pass-plugin=mine.py"


@pytest.mark.parametrize(
    "words, said",
    [
        (["opt", "f.mlir", MINE, "--file-log-exp", "--dce"], "    return %arg0 : tensor<4xf32>"),
        (["opt", "f.mlir", "--load-dialect-plugin", "mine", "--file-log-exp", "--dce"], "    return %arg0 : tensor"),
        (["opt", MINE, "--list-passes"], "--file-log-exp\n    log(exp(x)) → x, of @main."),
        (["opt", MINE, "--check-rewrites=file-halves"], "sum-of-equals: within 1 ulp"),
        (["verify", "f.mlir", MINE, "--pass-pipeline=before:cse=file-log-exp"], "file-log-exp changed a value"),
        (["view", "f.mlir", MINE, "--pass-pipeline=before:fuse=file-log-exp", "-o", "page.html"], "page.html"),
        (["dump", "mine.py:f", "f32[4]", "--pass-pipeline=before:fuse=file-log-exp", "--stage=list"], "file-log-exp"),
        (["dump", "mine.py:f", "f32[4]", MINE, "--pass-pipeline=after:cse=file-log-exp", "--stage=list"], "log-exp"),
        (["opt", "f.mlir", "--load-pass-plugin=none.py", "--cse"], "none.py: there is no such file"),
        (["opt", "f.mlir", "--load-pass-plugin=folder.py", "--cse"], "folder.py is a folder"),
        (["opt", "f.mlir", "--load-pass-plugin=broken.py", "--cse"], "broken.py cannot be imported: ZeroDivisionError"),
        (["opt", "f.mlir", "--file-log-exp"], "unknown pass 'file-log-exp'"),
    ],
)
def test_commands_run_what_a_file_defines(folder: Path, words: list[str], said: str) -> None:
    code, text = command(folder, *words)
    assert said in text and "internal error" not in text, text
    failing = any(word in said for word in ("changed a value", "no such", "cannot", "unknown", "is a folder"))
    assert code == int(failing), text


def test_a_reproducer_says_which_file_it_needs_and_has_it_run_only_if_asked(folder: Path) -> None:
    code, text = command(folder, "opt", "f.mlir", MINE, "--file-raises", "--dump-ir-to=dumps")
    assert code == 1 and "the pass file-raises failed: ZeroDivisionError" in text
    (reproducer,) = (folder / "dumps").glob("*-reproducer.mlir")
    again = "opt", str(reproducer), "--run-reproducer"
    code, text = command(folder, *again)
    flag = re.search(r"if you trust that, (--load-pass-plugin=\S*mine\.py)", text)
    assert code == 1 and flag, text
    code, text = command(folder.parent, *again, flag[1])
    assert code == 1 and "the pass file-raises failed: ZeroDivisionError" in text


def test_reduce_loads_it_for_each_try(folder: Path) -> None:
    tried = ["--message", "file-raises failed", "--", "smelt-opt", "{}", MINE, "--file-raises"]
    code, text = command(folder, "reduce", "f.mlir", "-o", "small.mlir", *tried)
    assert code == 0 and "0 ops are left" in text, text
