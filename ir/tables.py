"""Tables of text, in columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows of cells as lines, with two spaces between columns; those in `right` end at one place, others begin there.

    >>> print(*columns([("name", "ms"), ("a", "10"), ("bc", "7")], right=[1]), sep="\\n")
    name  ms
    a     10
    bc     7
    """
    widths = [max(map(len, cells)) for cells in zip(*rows)]

    def line(row: Sequence[str]) -> str:
        padded = [cell.rjust(n) if i in right else cell.ljust(n) for i, (cell, n) in enumerate(zip(row, widths))]
        return "  ".join(padded).rstrip()

    return [line(row) for row in rows]
