"""Measurements as a table of Markdown. Needs no smelt, so that it runs beside kernels that were made elsewhere."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..machine import number


@dataclass
class Result:
    """A row with its times; `bound`: what it waits for beside memory; `failure`: why there are no times."""

    name: str
    nbytes: int = 0
    milliseconds: float = math.nan
    copy: float = math.nan
    bound: str = ""
    failure: str = ""

    @property
    def fraction(self) -> float:
        """Of the speed of a copy; what failed has none, and stands first."""
        return -1.0 if self.failure else self.copy / self.milliseconds


def report(machine: str, found: Sequence[Result], worst: int = 1000) -> str:
    """How many rows are how fast, and the slowest of them."""
    fractions = sorted(row.fraction for row in found if not row.failure)
    low = sum(f < 0.75 for f in fractions)
    lines = []
    if fractions:
        lines.append(
            f"{machine}: {len(fractions)} rows, {low} below 0.75 of the copy; median "
            f"{statistics.median(fractions):.2f}, lowest {fractions[0]:.2f}."
        )
    lines += ["", "| row | MB | ms | copy, ms | of the copy | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for row in sorted(found, key=lambda row: row.fraction)[:worst]:
        if row.failure:
            lines.append(f"| {row.name} | | | | | {row.failure} |")
            continue
        cells = [row.name, number(row.nbytes / 1e6), number(row.milliseconds), number(row.copy)]
        lines.append(f"| {' | '.join(cells)} | **{row.fraction:.2f}** | {row.bound} |")
    return "\n".join(lines) + "\n"


def write(document: Path, mark: str, text: str) -> None:
    """Put a table between ``<!-- mark -->`` and ``<!-- end of mark -->``."""
    page = document.read_text(encoding="utf-8")
    start, end = page.index(f"<!-- {mark} -->"), page.index(f"<!-- end of {mark} -->")
    document.write_text(f"{page[:start]}<!-- {mark} -->\n{text}{page[end:]}", encoding="utf-8")
