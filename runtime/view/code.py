"""The text of each kernel, cut out of what backends made of a whole program."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

#: Characters of all kernels' texts together: of what does not fit, `smelt dump --stage` prints it.
MOST = 1_500_000
_BEGIN = re.compile(r"^(\s*)(?:func\.func|llvm\.func|kernel void)\s+(?:(?:private|internal)\s+)?@?([\w.$-]+)\(")


def kernels_of(text: str, names: Collection[str]) -> dict[str, str]:
    """The definitions of functions in a text of MLIR or Metal, by name.

    >>> text = "module {\\n  func.func @f(%x: f32) {\\n    return\\n  }\\n  func.func private @g()\\n}"
    >>> kernels_of(text, {"f", "g"})
    {'f': 'func.func @f(%x: f32) {\\n  return\\n}'}
    """
    found: dict[str, str] = {}
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        begin = _BEGIN.match(lines[at])
        if begin is None or begin[2] not in names:
            at += 1
            continue
        indent, start = begin[1], at
        while at < len(lines) and lines[at] != f"{indent}}}":
            at += 1
            if at < len(lines) and at > start and _BEGIN.match(lines[at]):
                break
        if at < len(lines) and lines[at] == f"{indent}}}":
            found[begin[2]] = "\n".join(line.removeprefix(indent) for line in lines[start : at + 1])
            at += 1
    return found


def code_of(texts: Mapping[str, str], names: Collection[str]) -> dict[str, dict[str, str]]:
    """The texts of kernels by stage, as many as a page holds: where there are too many, of each stage the shortest."""
    found = {stage: kernels_of(text, names) for stage, text in texts.items()}
    left, code = MOST, {}
    for i, (stage, kernels) in enumerate(sorted(found.items(), key=lambda item: sum(map(len, item[1].values())))):
        room = left // (len(found) - i)
        kept = set()
        for name in sorted(kernels, key=lambda name: len(kernels[name])):
            if len(kernels[name]) > room:
                break
            kept.add(name)
            room, left = room - len(kernels[name]), left - len(kernels[name])
        if kept:
            code[stage] = {name: text for name, text in kernels.items() if name in kept}
    return {stage: code[stage] for stage in texts if stage in code}
