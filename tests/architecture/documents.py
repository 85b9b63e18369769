"""README.md and docs/*.md as programs: what their code blocks print, beside what they say it prints.

=========================  ==========================================================================
```` ```python ````        runs, all blocks of a file in one interpreter; what it prints stands in the
                           ```` ```text ```` block right after it. If its first line is the comment
                           ``# examples/name.py``, it is not run, but equals that file; if it is
                           ``# needs name``, it runs where that package is installed.
```` ```console ````       lines ``$ command`` run in a folder that holds examples/; below each, its output
```` ```mlir ````          is valid if it is a module or functions (not a fragment)
```` <!-- settings --> ````  is followed by the table of settings
=========================  ==========================================================================

In an expected output ``...`` stands for anything. ``python -m tests.architecture.documents`` writes the
outputs that differ into the files.
"""

from __future__ import annotations

import doctest
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .sources import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT = 300

#: Examples find no program on disk that an earlier run has left.
NOTHING_KEPT = {"SMELT_CACHE": "0"}
RUN_BLOCKS = """
import contextlib, io, json, linecache, sys
name, blocks = json.load(sys.stdin)
space, printed = {"__name__": "__main__"}, []
for line, code in blocks:
    out = io.StringIO()
    # Line numbers are those of the document, so that errors name places a reader can find.
    with contextlib.redirect_stdout(out):
        exec(compile("\\n" * line + code, name, "exec"), space)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass
class Check:
    """One output: what the document says, and what there is."""

    what: str
    start: int  #: of the expected text, in the document
    end: int
    expected: str
    found: str

    @property
    def ok(self) -> bool:
        return doctest.OutputChecker().check_output(self.expected, self.found, doctest.ELLIPSIS)


def python_checks(path: Path) -> list[Check]:
    """The python blocks of a document."""
    source = path.read_text(encoding="utf-8")
    blocks, checks = [], []
    fences = list(FENCE.finditer(source))
    for i, fence in enumerate(fences):
        if fence.group(1) != "python":
            continue
        code = fence.group(2)
        if match := re.match(r"# (examples/\w+\.py)\n", code):
            file = ROOT / match.group(1)
            found = f"# {match.group(1)}\n{file.read_text(encoding='utf-8')}"
            checks.append(Check(match.group(1), fence.start(2), fence.end(2), code, found))
            continue
        if (match := re.match(r"# needs (\w+)\n", code)) and importlib.util.find_spec(match.group(1)) is None:
            continue
        after = fences[i + 1] if i + 1 < len(fences) else None
        has_output = (
            after is not None and after.group(1) == "text" and not source[fence.end() : after.start()].strip()
        )
        blocks.append((source.count("\n", 0, fence.start(2)), code, after if has_output else None))
    if blocks:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", RUN_BLOCKS],
                input=json.dumps([path.name, [block[:2] for block in blocks]]),
                capture_output=True, text=True, cwd=folder, timeout=TIMEOUT, env=os.environ | NOTHING_KEPT,
            )  # fmt: skip
        if done.returncode:
            raise AssertionError(f"a python block of {path.name} fails:\n{done.stderr}")
        for (line, _, after), printed in zip(blocks, map(tidy, json.loads(done.stdout))):
            what = f"python block at line {line}"
            if after is None:
                checks.append(Check(what, 0, 0, "", printed))
            else:
                checks.append(Check(what, after.start(2), after.end(2), after.group(2), printed))
    return checks


def console_checks(path: Path) -> list[Check]:
    """The commands in the console blocks of a document."""
    source = path.read_text(encoding="utf-8")
    checks = []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT / "examples", Path(folder) / "examples")
        for fence in FENCE.finditer(source):
            if fence.group(1) != "console":
                continue
            for match in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", fence.group(2), re.MULTILINE):
                start = fence.start(2) + match.start(2)
                found = shell(match.group(1), folder)
                expected = match.group(2)
                checks.append(Check(f"$ {match.group(1)}", start, start + len(expected), expected, found))
    return checks


def shell(command: str, folder: str) -> str:
    """What a command prints, with this interpreter's scripts on the path."""
    bin_folder = str(Path(sys.executable).parent)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | NOTHING_KEPT | {"PATH": path, "COLUMNS": "110"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, text=True, timeout=TIMEOUT,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    output = done.stdout if done.returncode == 0 else f"{done.stdout}[exit status {done.returncode}]\n"
    return tidy(output)


def tidy(output: str) -> str:
    """Without spaces at the ends of lines and empty lines at the end."""
    lines = re.sub(r"[ \t]+$", "", output, flags=re.MULTILINE).rstrip("\n")
    return lines + "\n" if lines else ""


def settings_checks(path: Path) -> list[Check]:
    """The table of settings, where a document has one."""
    source = path.read_text(encoding="utf-8")
    match = re.search(r"<!-- settings -->\n((?:\|.*\n)*)", source)
    if not match:
        return []
    return [Check("settings", match.start(1), match.end(1), match.group(1), settings_table())]


def settings_table() -> str:
    """The settings as a Markdown table, from the docstring of smelt.ir.settings."""
    import smelt.ir.settings as module

    lines = (module.__doc__ or "").splitlines()
    first, header, last = (i for i, line in enumerate(lines) if line.startswith("==="))
    columns = [m.span() for m in re.finditer("=+", lines[first])]
    columns[-1] = (columns[-1][0], 10_000)
    rows: list[list[str]] = []
    for line in lines[header + 1 : last]:
        # A name may be longer than its column: split the first two words, slice the rest.
        if line[:1].strip():
            name, default, *meaning = re.split(r"\s{2,}", line, maxsplit=2)
            rows.append([f"`{name}`", default, *meaning])
        else:
            rows[-1][-1] += " " + line.strip()
    text = ["| variable | default | meaning |", "| --- | --- | --- |"]
    text += [f"| {' | '.join(row)} |".replace("``", "`") for row in rows]
    return "\n".join(text) + "\n"


def mlir_blocks(path: Path) -> list[str]:
    """Complete pieces of MLIR in a document."""
    source = path.read_text(encoding="utf-8")
    found = [fence.group(2) for fence in FENCE.finditer(source) if fence.group(1) == "mlir"]
    return [code for code in found if re.match(r"(//.*\n)*(module|func\.func|#)", code)]


def all_checks(path: Path) -> list[Check]:
    return [*python_checks(path), *console_checks(path), *settings_checks(path)]


def update(path: Path) -> None:
    """Write the real outputs into a document; again, if they name lines that moved."""
    for _ in range(3):
        source = path.read_text(encoding="utf-8")
        wrong = [check for check in all_checks(path) if not check.ok and check.start]
        for check in sorted(wrong, key=lambda c: -c.start):
            source = source[: check.start] + check.found + source[check.end :]
            print(f"{path.name}: {check.what}")
        if not wrong:
            return
        path.write_text(source, encoding="utf-8")


if __name__ == "__main__":
    for document in [Path(a).resolve() for a in sys.argv[1:]] or documents():
        update(document)
