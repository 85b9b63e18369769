"""docs/pipeline.svg: one function at each station of the compiler, as the compiler prints it.

``python -m tests.architecture.pictures`` draws it anew; a test compares it with what there is.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import smelt

from .sources import ROOT

PICTURE = ROOT / "docs" / "pipeline.svg"

#: In pixels: of a letter of the text, of a line, and around a box.
LETTER, LINE, MARGIN, GAP = 6.65, 16, 14, 30
WIDTH = 1000
STYLE = """
  text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #24292f }
  .title { font: bold 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif }
  .note { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #57606a }
  .box { fill: #f6f8fa; stroke: #d0d7de; rx: 6px }
  .page { fill: #ffffff }
  .arrow { stroke: #57606a; stroke-width: 1.4; fill: none; marker-end: url(#tip) }
"""


def length(x, y):
    return smelt.sqrt(x * x + y * y)


@dataclass
class Box:
    """A station: a title, what made it (beside the arrow that leads to it), its text; where it stands."""

    title: str
    note: str
    lines: Sequence[str]
    x: float = 0
    y: float = 0
    width: float = 0

    @property
    def height(self) -> float:
        return (len(self.lines) + 1) * LINE + 2 * MARGIN

    def svg(self) -> str:
        rows = [
            f'<text x="{self.x + MARGIN}" y="{self.y + MARGIN + LINE * (i + 2) - 4}" xml:space="preserve">'
            f"{escape(line, quote=False)}</text>"
            for i, line in enumerate(self.lines)
        ]
        title = (
            f'<text class="title" x="{self.x + MARGIN}" y="{self.y + MARGIN + LINE - 5}">{escape(self.title)}</text>'
        )
        frame = f'<rect class="box" x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}"/>'
        return "\n".join([frame, title, *rows])


def stations() -> list[Box]:
    """The function in Python, as traced, after the passes, and as a kernel of the CPU and of Metal."""
    x = smelt.ones(1024)
    lowered = smelt.compile(length).trace(x, x).lower()
    program = lowered.compile()
    after = program.as_text("fuse", short=True).split("\n\n")[-1]
    loop = re.search(r"^ *scf\.for .*?^ *\}", program.as_text("kernel"), re.MULTILINE | re.DOTALL)
    metal = lowered.to_metal().as_text("msl")
    assert loop is not None
    return [
        Box("Python", "", inspect.getsource(length).splitlines()),
        Box("graph IR", "trace", _short(lowered.as_text(short=True))),
        Box("kernels", "differentiate, batch, simplify, fuse", _short(after)),
        Box("kernel IR, LLVM, machine code", "CPU", textwrap.dedent(loop.group()).splitlines()),
        Box("Metal", "GPU", metal[metal.index("kernel void") :].rstrip().splitlines()),
    ]


def picture() -> str:
    """The drawing: what all devices share from top to bottom, the backends side by side below."""
    boxes = stations()
    for box in boxes:
        box.width = round(max(len(line) for line in box.lines) * LETTER + 2 * MARGIN)
    shared, backends = boxes[:3], boxes[3:]
    parts: list[str] = []
    below: float = MARGIN
    for above, box in zip([None, *shared], shared):
        box.x, box.y = (WIDTH - box.width) / 2, below
        below = box.y + box.height + 1.3 * GAP
        if above is not None:
            parts += _arrow(above, box)
    at = (WIDTH - sum(box.width for box in backends) - GAP * (len(backends) - 1)) / 2
    for box in backends:
        box.x, box.y = at, below
        at += box.width + GAP
        parts += _arrow(shared[-1], box)
    parts += [box.svg() for box in boxes]
    height = below + max(box.height for box in backends) + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}">\n'
        f"<style>{STYLE}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#57606a"/></marker></defs>\n'
        f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _short(text: str) -> list[str]:
    return [line for line in text.rstrip().splitlines() if not line.startswith("//")]


def _arrow(start: Box, end: Box) -> list[str]:
    """An arrow with what happens on the way."""
    x, y, to_x, to_y = start.x + start.width / 2, start.y + start.height, end.x + end.width / 2, end.y - 5
    middle = (y + to_y) / 2
    line = f"M{x:.0f} {y:.0f} C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
    side, anchor = (12, "start") if to_x >= x else (-12, "end")
    return [
        f'<path class="arrow" d="{line}"/>',
        f'<text class="note" text-anchor="{anchor}" x="{to_x + side:.0f}" y="{to_y - 8:.0f}">{escape(end.note)}</text>',
    ]


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
