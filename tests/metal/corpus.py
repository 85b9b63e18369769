"""Small kernels that Metal accepts, and such as it refuses with the line of the error: `python -m tests.metal.corpus`.

The files of `kernels/` hold rows, each headed by `//// name`. A row is a whole text; two lines are put before it that
include Metal's library. What a line must be told follows on it: `// error: phrase`, `// warning: phrase`, and with
--strict `// remark: phrase`, or `// strict: phrase` for an error that it is then alone. A row without a mark is
accepted without an error, with --strict too, unless its name ends with `(tolerated)`.

All of it is written for these tests, from Metal's documents: no text is somebody's kernel.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "kernels"
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_MARK = re.compile(r"// (error|warning|remark|strict): (.*?)\s*$")
#: Options of `check` that a row asks for on its first line: `//// name {metal=4.0}`.
_OPTION = re.compile(r"\s*\{metal=([\d.]+)\}$")


@dataclass(frozen=True)
class Row:
    """A text and what the check must say of it: (severity, line, phrase). Lines count from the row's first."""

    family: str
    name: str
    text: str
    marks: tuple[tuple[str, int, str], ...]
    metal: str = "3.1"

    @property
    def is_refused(self) -> bool:
        """Whether Metal refuses it."""
        return any(severity == "error" for severity, _, _ in self.marks)

    @property
    def is_tolerated(self) -> bool:
        """Whether it is accepted, but smelt would write it otherwise: --strict may refuse it."""
        return self.name.endswith("(tolerated)") or any(severity == "strict" for severity, _, _ in self.marks)

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


def rows() -> list[Row]:
    """All rows, by file and place."""
    found = []
    for path in sorted(FOLDER.glob("*.metal")):
        for part in re.split(r"^//// ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, body = part.partition("\n")
            option = _OPTION.search(name)
            marks = []
            for number, line in enumerate(body.split("\n"), 1):
                if mark := _MARK.search(line):
                    marks.append((mark.group(1), number, mark.group(2)))
            metal = option.group(1) if option else "3.1"
            found.append(Row(path.stem, _OPTION.sub("", name), HEAD + body, tuple(marks), metal))
    return found


def problems(row: Row) -> list[str]:
    """What the check says of a row that it should not, and what it does not say."""
    from smelt.backends.metal.check import check

    wrong = []
    for strict in (False, True):
        found = [(d.severity, d.line - 2, d.message) for d in check(row.text, "k.metal", strict, metal=row.metal)]
        for severity, line, phrase in row.marks:
            if severity in ("strict", "remark") and not strict:
                continue
            severity = "error" if severity == "strict" else severity
            if strict and severity == "warning":
                continue
            if not any(s == severity and n == line and phrase in m for s, n, m in found):
                wrong.append(f"{'--strict: ' * strict}line {line}: no {severity} {phrase!r}")
        if strict and (row.is_refused or row.is_tolerated):
            continue
        lines = {line for severity, line, _ in row.marks if severity == "error"}
        for severity, line, message in found:
            if severity == "error" and line not in lines:
                wrong.append(f"{'--strict: ' * strict}line {line}: {message}")
    return wrong


def table(total: Mapping[tuple[str, bool], int], good: Mapping[tuple[str, bool], int]) -> str:
    """How many rows of each family there are, by (family, refused), and how many of them the check gets right."""
    families = sorted({family for family, _ in total})
    lines = [f"| {'family':24} | accepted | of | refused | of |", f"| {'---':24} | ---: | ---: | ---: | ---: |"]
    for family in [*families, "all"]:
        of = families if family == "all" else [family]
        cells = [sum(c.get((f, refused), 0) for f in of) for refused in (False, True) for c in (good, total)]
        lines.append(f"| {family:24} | {cells[0]:8} | {cells[1]:2} | {cells[2]:7} | {cells[3]:2} |")
    return "\n".join(lines)


def main() -> int:
    """Print how many rows of each family the check gets right, and those that it does not."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("families", nargs="*", help="files of kernels/; default: all")
    options = parser.parse_args()
    good: Counter[tuple[str, bool]] = Counter()
    total: Counter[tuple[str, bool]] = Counter()
    for row in rows():
        if options.families and row.family not in options.families:
            continue
        total[row.family, row.is_refused] += 1
        wrong = problems(row)
        good[row.family, row.is_refused] += not wrong
        if wrong:
            print(f"{row}\n" + "\n".join(f"    {line}" for line in wrong), file=sys.stderr)
    print(table(total, good))
    return int(good != total)


if __name__ == "__main__":
    sys.exit(main())
