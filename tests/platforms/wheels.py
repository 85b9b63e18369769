"""Prints what a package needs, extras included, for another Linux than this one: for pip's --platform, which reads
environment markers as of the machine that it runs on.

    python tests/platforms/wheels.py pyproject.toml test demo
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

#: Tools that look at sources, and a compiler of which Linux has others.
LEFT_OUT = ("ruff", "mypy", "ziglang")


def wanted(project: dict[str, Any], extras: list[str]) -> list[str]:
    """Requirements of a package and its extras, those of extras of its own included, for Linux."""
    optional: dict[str, list[str]] = project["optional-dependencies"]
    found: list[str] = []
    for requirement in [*project["dependencies"], *(r for extra in extras for r in optional[extra])]:
        own = re.fullmatch(rf"{project['name']}\[(.*)\]", requirement)
        if own:
            found += [r for extra in own[1].split(",") for r in optional[extra]]
        elif "darwin" not in requirement:
            found.append(requirement)
    return sorted({r for r in found if not r.startswith(LEFT_OUT)})


if __name__ == "__main__":
    print(" ".join(wanted(tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"], sys.argv[2:])))
