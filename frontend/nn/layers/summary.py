"""The table that `Module.summary` shows."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__: list[str] = []


class Row(NamedTuple):
    """A module: its path, its class, and of each of its own parameters name, type, bytes and whether it is trained."""

    path: str
    kind: str
    parameters: list[tuple[str, Any, int, bool]]


def table(rows: list[Row]) -> str:
    """Rows of text, with the sums in the last one."""
    lines = [("module", "class", "parameters", "elements", "bytes")]
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
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    return "\n".join(
        "  ".join(x.rjust(w) if i > 2 else x.ljust(w) for i, (x, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )


def _extent(aval: Any) -> int:
    count = 1
    for n in aval.shape:
        count *= n
    return count
