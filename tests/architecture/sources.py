"""The files of the repository and the modules that they are, for the tests beside this file."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Each room may import those to its left.
ROOMS = ("ir", "passes", "backends", "runtime", "frontend", "tools")


def python_files(*folders: str) -> list[Path]:
    """All Python files below folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """The name under which a file of a room is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "frontend":
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts.pop()
    return ".".join(["smelt", *parts])


def repository_paths() -> list[Path]:
    """Files and links that git tracks or would track; none outside a clone."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT, capture_output=True, check=True, text=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return []
    return sorted(ROOT / name for name in listed.stdout.split("\0") if name)


def repository_files() -> list[Path]:
    """Those of `repository_paths` that are there, and files."""
    return [path for path in repository_paths() if path.is_file()]
