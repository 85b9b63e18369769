"""Remarks: what a pass decided, about which line of the user, and why. The kinds are LLVM's: passed, missed, analysis.

A pass makes remarks only if somebody collects them, so they cost nothing otherwise::

    if remarks.wanted():
        remarks.add(Remark("fuse", "missed", "recompute", f"exp is not computed in @{name}: {reason}", line))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

#: A rewrite that took place; one that did not, and why; what the pass found out.
KINDS = ("passed", "missed", "analysis")


@dataclass(frozen=True)
class Remark:
    """What a pass decided.

    Attributes:
        pass_name: the pass.
        kind: "passed", "missed" or "analysis".
        rule: what decided, in a word: `str` of many remarks can be sorted by it.
        text: a sentence for the reader.
        line: of the user's program, as ``model.py:17``; empty where it is unknown.
        function: of the module in which that is.
        about: names of what it is about: of two kernels, the one that writes and the one that reads.
        numbers: that decided, by name.
    """

    pass_name: str
    kind: str
    rule: str
    text: str
    line: str = ""
    function: str = ""
    about: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line, as compilers print them."""
        return f"{self.line or '<unknown>'}: remark: {self.text} [{self.pass_name}: {self.kind}, {self.rule}]"


_found: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


@contextmanager
def collected(wanted: bool = True) -> Iterator[list[Remark]]:
    """The remarks that passes make inside of the block; none where they are not `wanted`.

    >>> with collected() as found:
    ...     add(Remark("fuse", "missed", "cycle", "no", "model.py:3"))
    >>> print(found[0])
    model.py:3: remark: no [fuse: missed, cycle]
    """
    found: list[Remark] = []
    token = _found.set(found if wanted else None)
    try:
        yield found
    finally:
        _found.reset(token)


def wanted() -> bool:
    """Whether somebody collects remarks."""
    return _found.get() is not None


def add(remark: Remark) -> None:
    """Keep a remark, if somebody collects them."""
    found = _found.get()
    if found is not None:
        found.append(remark)


def to_yaml(remarks: Sequence[Remark]) -> str:
    """Remarks in the form of LLVM's files of them (``-fsave-optimization-record``), which its viewers read."""
    return "".join(_document(r) for r in remarks)


def _document(remark: Remark) -> str:
    name, _, line = remark.line.rpartition(":")
    lines = [f"--- !{remark.kind.capitalize()}", f"Pass: {remark.pass_name}", f"Name: {_quoted(remark.rule)}"]
    if line.isdigit():
        lines.append(f"DebugLoc: {{ File: {_quoted(name)}, Line: {line}, Column: 0 }}")
    lines += [f"Function: {_quoted(remark.function)}", "Args:", f"  - String: {_quoted(remark.text)}"]
    lines += [f"  - {key}: {_quoted(str(value))}" for key, value in remark.numbers.items()]
    return "\n".join([*lines, "...", ""])


def _quoted(text: Any) -> str:
    return "'" + str(text).replace("'", "''").replace("\n", " ") + "'"
