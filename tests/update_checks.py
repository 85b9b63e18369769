"""Write the CHECK and VALUE lines of lit files anew, from what smelt-opt prints now.

    python -m tests.update_checks tests/diffrules/*.mlir

Each CHECK-LABEL of a function is followed by the whole function anew; VALUE lines stand before
@main. Read the diff: this makes the tests agree with the program, right or wrong.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

from smelt.tools import opt

from .litfile import _pipe, run_lines


def check_lines(function: list[str]) -> list[str]:
    """CHECK lines for one printed function; SSA names become variables."""
    lines, names = [], {}

    def variables(text: str) -> str:
        text = text.replace("[[", r"{{\[\[}}")
        return re.sub(r"%\w+", lambda m: f"%[[{names[m[0]]}]]" if m[0] in names else m[0], text)

    for printed in function:
        line = printed.strip()
        if line.startswith("func.func"):
            lines.append(f"// CHECK-LABEL: {line.split('(')[0]}(")
        elif match := re.match(r"(%\w+)(:\d+)? = (.*)", line):
            body = variables(match[3])
            names[match[1]] = f"V{match[1][1:].upper()}"
            lines.append(f"// CHECK-NEXT: %[[{names[match[1]]}:.*]]{match[2] or ''} = {body}")
        elif printed != "  }":
            lines.append(f"// CHECK-NEXT: {variables(line)}")
    return lines


def functions_of(printed: str) -> dict[str, list[str]]:
    """The functions of a printed module, by name."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in printed.splitlines():
        if line.startswith("  func.func"):
            current = found.setdefault(re.findall(r"@(\w+)", line)[0], [])
        if line.startswith("  ") and line.strip():
            current.append(line)
    return found


def output_of(path: Path, line: str) -> str:
    """What the first command of a RUN line prints."""
    words = [w.replace("%s", str(path)) for w in shlex.split(_pipe(line)[0])]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if opt.main(words[1:], isolate=False):
            raise SystemExit(f"{path}: {line} fails")
    return out.getvalue()


def value_lines(printed: str) -> list[str]:
    """VALUE lines for what ``--execute`` prints."""
    results = [line.replace("[[", r"{{\[\[}}") for line in printed.splitlines()]
    return [f"// VALUE{'-NEXT' if i else ''}: {result}" for i, result in enumerate(results)]


def update(path: Path) -> None:
    """Rewrite the checks of one file."""
    runs = run_lines(path)
    printed = next((output_of(path, r) for r in runs if r.rstrip().endswith("filecheck %s")), "")
    values = next((output_of(path, r) for r in runs if r.rstrip().endswith("--check-prefix=VALUE")), "")
    found = functions_of(printed)
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if label := re.match(r"// CHECK-LABEL: .*@(\w+)\(", line):
            lines += check_lines(found[label[1]])
        elif not re.match(r"// (CHECK-NEXT|VALUE)", line):
            if values and re.match(r"func\.func .*?@main\(", line):
                lines += value_lines(values)
            lines.append(line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        update(Path(argument))
