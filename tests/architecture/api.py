"""docs/api.md: every name of MLX and of the array API standard, and what it is here; README.md: how many there are.

``python -m tests.architecture.api`` writes both, and the table of `differences`. The names, with those of their
parameters, are in api_names.json beside this file: MLX 0.32.4, and the standard 2025.12.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import smelt

from . import differences
from .sources import ROOT

PAGE, README = ROOT / "docs" / "api.md", ROOT / "README.md"
NAMES: dict[str, dict[str, dict[str, str]]] = json.loads(Path(__file__).with_name("api_names.json").read_text())
TITLES = {"mlx": "MLX 0.32.4", "standard": "The array API standard 2025.12"}

#: What is here under its name, but takes or does something else, and what to write: by inventory and name.
DIFFERENT: dict[str, str] = {
    "mlx.core.fast.cuda_kernel": "an error: smelt runs no CUDA text; write `fast.metal_kernel`, or `custom_call`",
    "mlx.core.fast.precompiled_cuda_kernel": "an error, as `cuda_kernel`",
    "mlx.core.set_wired_limit": "checked and ignored: no memory is kept resident",
    "mlx.core.export_function": "MLIR text, not MLX's own bytes: [files](files.md); those are not read",
    "mlx.core.import_function": "reads what `export_function` writes, and no `custom_call` unless told to",
    "mlx.core.depends": "states no order in traced functions, where values are all there is",
    "mlx.core.load": "damaged files are errors; bfloat16 and 64-bit elements of .gguf stay what they are",
    "mlx.core.linalg.cholesky": "a matrix that is not positive definite is an error",
}  # fmt: skip
#: What is not here, and why.
ABSENT: dict[str, str] = {
    **dict.fromkeys(
        [f"mlx.extension.{name}" for name in NAMES["mlx"]["mlx.extension"]],
        "builds C++ extensions of MLX itself; see [ops of your own](add-an-op.md), and `custom_call`",
    ),
}  # fmt: skip


@dataclass
class Entry:
    """A name of an inventory. `found`: what smelt has, or None; `lacking`: parameters that it does not take."""

    inventory: str
    module: str
    name: str
    found: Any
    lacking: list[str]

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def entries(inventory: str) -> Iterator[Entry]:
    """All names of an inventory."""
    for module, names in NAMES[inventory].items():
        for name, signature in names.items():
            found = lookup(module, name)
            yield Entry(inventory, module, name, found, lacking(found, signature))


def lookup(module: str, name: str) -> Any:
    """What smelt calls so; None where it has none."""
    place = re.sub(r"^(mlx\.core|mlx|array_api)\b", "smelt", module)
    found: Any
    if place == "smelt.array":
        found = smelt.array
    else:
        try:
            found = importlib.import_module(place)
        except ImportError:
            return None
    for part in name.split("."):
        fields = getattr(found, "__dataclass_fields__", {})
        try:
            found = fields[part] if part in fields else getattr(found, part)
        except AttributeError:
            return None
    return found if found is not None else "None"


def lacking(found: Any, signature: str) -> list[str]:
    """The parameters of a signature by name, of those that callers write, that `found` does not take."""
    if not callable(found) or not signature:
        return []
    try:
        parameters = inspect.signature(found).parameters.values()
    except (ValueError, TypeError):
        return []
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return []
    given = [part.strip() for part in signature[1:-1].split(",") if part.strip()]
    named = given[given.index("/") + 1 :] if "/" in given else given
    taken = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
    return [n for n in named if n.isidentifier() and n not in taken and n not in ("self", "stream", "s")]


def page() -> str:
    """The text of the document."""
    lines = [
        "# Names", "",
        "Every public name of MLX and of the array API standard, and what smelt has under it. Written by",
        "`python -m tests.architecture.api`, and tested.",
    ]  # fmt: skip
    for inventory, title in TITLES.items():
        every = list(entries(inventory))
        there = sum(e.found is not None for e in every)
        lines += ["", f"## {title}", "", f"{there} of {len(every)} names."]
        for module in NAMES[inventory]:
            lines += ["", *section(module, [e for e in every if e.module == module])]
    return "\n".join(lines) + "\n"


def section(module: str, found: list[Entry]) -> Iterator[str]:
    """What the document says of a module."""
    yield f"### {module}"
    yield ""
    present = [e.name for e in found if e.found is not None and not note(e)]
    yield f"Present: {', '.join(f'`{n}`' for n in present)}." if present else "Present: none."
    rows = [(e.name, "different", note(e)) for e in found if e.found is not None and note(e)]
    rows += [(e.name, "absent", ABSENT.get(e.path, "not there yet")) for e in found if e.found is None]
    if rows:
        yield from ("", "| name | is | note |", "| --- | --- | --- |")
        for name, kind, text in rows:
            yield f"| `{name}` | {kind} | {text} |"


def note(entry: Entry) -> str:
    """How what is there differs."""
    known = DIFFERENT.get(entry.path, "")
    if known or not entry.lacking:
        return known
    return f"takes no {', '.join(f'`{n}=`' for n in entry.lacking)}"


def summary() -> str:
    """The table of README.md: a row a module with the modules below it, as far as they are named apart."""
    lines = ["| names of | there | not there, or different |", "| --- | ---: | --- |"]
    for inventory, title in TITLES.items():
        groups: dict[str, list[Entry]] = {}
        for entry in entries(inventory):
            groups.setdefault(".".join(entry.module.split(".")[:2]) if inventory == "mlx" else title, []).append(entry)
        for name, found in groups.items():
            there = sum(e.found is not None for e in found)
            odd = [f"`{e.name}`" for e in found if note(e) or e.found is None]
            called = f"`{name}`" if inventory == "mlx" else name
            lines.append(f"| {called} | {there} of {len(found)} | {', '.join(odd)} |")
    return "\n".join(lines) + "\n"


def with_summary(readme: str) -> str:
    """README.md with the table between its marks."""
    start, end = (readme.index(f"<!-- {mark} -->") for mark in ("names", "end of names"))
    return f"{readme[:start]}<!-- names -->\n{summary()}{readme[end:]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8")), encoding="utf-8")
    differences.PAGE.write_text(
        differences.with_table(differences.PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
