"""Runs the RUN lines of a lit file, in this process where they are simple.

A line of the form ``[not] smelt-opt ARGS [2>&1] [| [not] smelt-opt ...] [| filecheck ARGS]`` needs no
new process: that saves most of the time of some hundred files. Anything else, and everything if
``SMELT_LIT=process``, goes to lit.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from smelt.tools import opt

ROOT = Path(__file__).parent

#: What only a shell understands.
_SHELL = re.compile(r"&&|\|\||[;<>`$]|%t|%S")


class LitError(AssertionError):
    """A RUN line that failed, with what it printed."""


def lit_files() -> list[Path]:
    """All lit files of the test suite; what lies in a folder `programs` other tests read."""
    return sorted(path for path in ROOT.rglob("*.mlir") if path.parent.name != "programs")


def run_lines(path: Path) -> list[str]:
    """The RUN lines of a file; a backslash at the end joins the next one."""
    found: list[str] = []
    joining = False
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\s*//\s*RUN:\s*(.*)", line)
        if not match:
            continue
        text = match[1].rstrip()
        if joining:
            found[-1] += " " + text.rstrip("\\")
        else:
            found.append(text.rstrip("\\"))
        joining = text.endswith("\\")
    return found


def run_file(path: Path) -> None:
    """Run a lit file. Raises LitError when it fails."""
    lines = run_lines(path)
    if not lines:
        raise LitError(f"{path} has no RUN line")
    if os.environ.get("SMELT_LIT") == "process" or any(_needs_process(line) for line in lines):
        run_with_lit(path)
        return
    for line in lines:
        _run_line(line, path)


def run_with_lit(path: Path) -> None:
    """Run a lit file by lit itself, in processes of its own."""
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or "PASS:" not in done.stdout:
        raise LitError(done.stdout + done.stderr)


def _needs_process(line: str) -> bool:
    return bool(_SHELL.search(line.replace("2>&1", ""))) or not all(
        re.match(r"\s*(not\s+)?(smelt-opt|filecheck)\b", command) for command in _pipe(line)
    )


def _pipe(line: str) -> list[str]:
    """The commands of a pipe; bars in quotes do not separate."""
    parts: list[str] = [""]
    quote = ""
    for c in line:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        if c == "|" and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def _run_line(line: str, path: Path) -> None:
    stdin = ""
    for command in _pipe(line):
        merged = "2>&1" in command
        words = [w.replace("%s", str(path)) for w in shlex.split(command.replace("2>&1", ""))]
        negated = words[0] == "not"
        name, *arguments = words[negated:]
        if name == "filecheck":
            check(stdin, arguments, line)
            return
        out, err = io.StringIO(), io.StringIO()
        saved = sys.stdin
        sys.stdin = io.StringIO(stdin)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out if merged else err):
                code = opt.main(arguments, isolate=False)
        finally:
            sys.stdin = saved
        if bool(code) is not negated:
            raise LitError(f"RUN: {line}\nexit code {code}\n{err.getvalue()}{out.getvalue()}")
        stdin = out.getvalue()


def check(text: str, arguments: list[str], line: str = "") -> None:
    """Compare a text with the CHECK lines of a file."""
    options = parse_argv_options(["filecheck", *arguments])
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
        matcher = Matcher(options, FInput("<stdin>", text), Parser.from_opts(options))
        code = matcher.run()
    if code:
        raise LitError(f"RUN: {line}\n{errors.getvalue()}\n--- checked text:\n{text}")
