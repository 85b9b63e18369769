"""``--verify-diagnostics``: diagnostics are compared with ``expected-error`` comments.

As in mlir-opt::

    // expected-error @+1 {{operands must have the same shape}}
    %0 = "smelt.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>

``@+n``, ``@-n``, ``@above`` and ``@below`` shift the line, ``@unknown`` stands for no place at all;
``expected-error-re`` takes regular expressions in inner braces: ``{{shape {{.*}} is}}``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .usage import UsageError

_DIRECTIVE = re.compile(
    r"expected-(?P<kind>error|warning|note|remark)(?P<re>-re)?\s*"
    r"(?:@(?P<place>[+-]\d+|above|below|unknown))?\s*(?P<open>\{\{)"
)
_PRINTED = re.compile(
    r"^(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?P<kind>error|warning|note|remark): (?P<text>.*)$"
)


@dataclass
class Diagnostic:
    """What was reported: line 0 where it has no place."""

    line: int
    kind: str
    text: str


@dataclass
class Expectation:
    """What a comment says will be reported."""

    line: int
    kind: str
    pattern: re.Pattern
    text: str
    at: int


def parse_diagnostics(report: str) -> list[Diagnostic]:
    """Diagnostics from their printed form; lines without a place continue the message before them."""
    found: list[Diagnostic] = []
    for line in report.splitlines():
        match = _PRINTED.match(line)
        if match:
            found.append(Diagnostic(int(match["line"]), match["kind"], match["text"]))
        elif found:
            found[-1].text += "\n" + line
        else:
            found.append(Diagnostic(0, "error", line))
    return found


def parse_expectations(source: str) -> list[Expectation]:
    """All ``expected-...`` comments of a text.

    Raises:
        UsageError: one that is no regular expression, with its line and column.
    """
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        start = line.find("//")
        if start < 0:
            continue
        for match in _DIRECTIVE.finditer(line, start):
            text = _balanced(line, match.end())
            place = match["place"]
            shift = {None: 0, "above": -1, "below": 1, "unknown": -number}.get(place)
            shift = int(place) if shift is None else shift
            try:
                pattern = re.compile(_regex(text) if match["re"] else re.escape(text))
            except re.error as error:
                column = match.end() + 1
                raise UsageError(f"{number}:{column}: error: {text!r} is no regular expression: {error}") from None
            found.append(Expectation(number + shift, match["kind"], pattern, text, number))
    return found


def _balanced(line: str, start: int) -> str:
    """The text up to the ``}}`` that closes the braces opened before `start`."""
    depth, i = 1, start
    while i < len(line):
        if line.startswith("{{", i):
            depth, i = depth + 1, i + 2
        elif line.startswith("}}", i):
            depth -= 1
            if depth == 0:
                return line[start:i]
            i += 2
        else:
            i += 1
    return line[start:]


def _regex(text: str) -> str:
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts))


def mismatches(
    expected: list[Expectation], found: list[Diagnostic], everything: bool = True
) -> list[tuple[int, str]]:
    """(line, problem) for each diagnostic that did not come, and with `everything` those that nobody expected."""
    open_ = list(expected)
    problems = []
    for diagnostic in found:
        fits = next(
            (
                e
                for e in open_
                if e.line == diagnostic.line and e.kind == diagnostic.kind and e.pattern.search(diagnostic.text)
            ),
            None,
        )
        if fits is not None:
            open_.remove(fits)
        elif diagnostic.kind != "note" and everything:
            problems.append((diagnostic.line, f"unexpected {diagnostic.kind}: {diagnostic.text}"))
    problems += [(e.at, f"expected {e.kind} {e.text!r} was not produced") for e in open_]
    return problems
