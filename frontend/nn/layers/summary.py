"""The table that `Module.summary` shows, and notebooks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from smelt.ir import locks
from smelt.ir.tables import columns

__all__: list[str] = []


#: Columns of numbers.
_NUMBERS = (3, 4)


class Row(NamedTuple):
    """A module: its path, its class, and of each of its own parameters name, type, bytes and whether it is trained."""

    path: str
    kind: str
    parameters: list[tuple[str, Any, int, bool]]


def _cells(rows: list[Row]) -> list[tuple[str, ...]]:
    """The texts of the table, line by line, with the sums in the last one."""
    lines: list[tuple[str, ...]] = [("module", "class", "parameters", "elements", "bytes")]
    elements = trained = size = 0
    for row in rows:
        listed = ", ".join(f"{n} {aval}" if train else f"({n} {aval})" for n, aval, _, train in row.parameters)
        count = sum(_extent(aval) for _, aval, _, _ in row.parameters)
        held = sum(nbytes for _, _, nbytes, _ in row.parameters)
        lines.append((row.path, row.kind, listed, f"{count:,}" if listed else "", f"{held:,}" if listed else ""))
        elements, size = elements + count, size + held
        trained += sum(_extent(aval) for _, aval, _, train in row.parameters if train)
    total = f"{trained:,} elements trained of {elements:,}"
    lines.append(("total", "", total, f"{elements:,}", f"{size:,}"))
    return lines


def table(rows: list[Row]) -> str:
    """Rows of text."""
    return "\n".join(columns(_cells(rows), right=_NUMBERS))


def html_table(rows: list[Row]) -> str:
    """The same as HTML."""
    escape = locks.loaded("html").escape
    found = []
    lines = _cells(rows)
    for number, line in enumerate(lines):
        kind = "th" if number in (0, len(lines) - 1) else "td"
        cells = (
            f'<{kind} style="text-align: {"right" if i in _NUMBERS else "left"}">{escape(x)}</{kind}>'
            for i, x in enumerate(line)
        )
        found.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(found)}</table>"


def _extent(aval: Any) -> int:
    return math.prod(aval.shape)
