"""A page from a folder of dumps: what ``SMELT_DUMP_IR``, ``--dump-ir-to`` and ``--mlir-print-ir-tree-dir`` write."""

from __future__ import annotations

import re
from pathlib import Path

from smelt.ir import text
from smelt.ir.errors import IRError

_NAME = re.compile(r"(?P<number>\d+)[-_](?P<name>.+?)(?P<same>-unchanged)?\.mlir")


def read_dumps(folder: Path) -> list[tuple[str, str, bool]]:
    """The modules of a folder in order: names of runs of passes (``jvp#2``), texts, and whether they changed anything.

    Raises:
        IRError: there are none, those of more than one compile, or what is no text.
    """
    files = sorted(folder.rglob("*.mlir")) if folder.is_dir() else []
    found = [(match, file) for file in files if (match := _NAME.fullmatch(file.name))]
    found = [(m, f) for m, f in found if not m["name"].endswith("-reproducer")]
    if not found:
        raise IRError(f"{folder}: there are no dumps of passes, such as 0001-canonicalize.mlir")
    folders = list(dict.fromkeys(file.parent for _, file in found))
    if len(folders) > 1:
        raise IRError(f"{folder}: has dumps of {len(folders)} compiles; name one, such as {folders[0]}")
    stages = []
    previous = ""
    for match, file in sorted(found, key=lambda x: int(x[0]["number"])):
        try:
            content = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise IRError(f"{file}: error: this is not MLIR text (invalid UTF-8)") from None
        name = "graph" if match["name"] == "input" else re.sub(r"_(\d+)$", r"#\1", match["name"])
        stages.append((name, content, match["same"] is None and _plain(content) != previous))
        previous = _plain(content)
    return stages


def _plain(content: str) -> str:
    return "\n".join(line for line in content.split("\n") if not line.startswith("// -----// IR Dump"))


def parsed(name: str, content: str) -> object:
    """A module; errors name the stage."""
    try:
        return text.parse(content, name)
    except IRError as error:
        raise IRError(f"stage {name}: {error}") from None
