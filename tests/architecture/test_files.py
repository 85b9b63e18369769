"""What holds for every file: its length, and what it does not name."""

from __future__ import annotations

import re

import pytest

from .sources import ROOMS, ROOT, python_files, repository_files, repository_paths

MAX_LINES = 600

# Spelled in pieces, so that this file does not name them either.
UNWANTED = re.compile(
    "|".join(
        [
            r"\bpypi" + r"\.org",
            "python" + "hosted",
            "npm" + r"js\.(?:org|com)",
            "download" + r"\.pytorch",
            "conda" + "-forge",
            r"(?<![\w.])/(?:ro" + "ot|wo" + "rk|ho" + "me|Us" + r"ers)/\w",
            r"(?<![\w.])/tm" + "p/venv",
            r"(?<![\w.])/op" + "t/(?:pypi|wheels)",
        ]
    )
)


def test_files_are_short() -> None:
    files = python_files(*ROOMS, "tests", "benchmarks", "examples")
    files += [p for room in ROOMS for p in (ROOT / room).rglob("*.*") if p.suffix in (".c", ".cpp", ".h")]
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    long = {name: n for name, n in lines.items() if n > MAX_LINES}
    assert not long, f"split them: {long}"


def test_no_command_left_a_file_behind() -> None:
    """Files at the top are few, and say by their names what they are."""
    top = {p.name for p in repository_files() if p.parent == ROOT and p.suffix not in (".md", ".toml", ".py", ".in")}
    assert top <= {"LICENSE", "Makefile", ".gitignore"}, top


def test_nothing_is_a_link() -> None:
    """One that leads out of the repository takes the place of what a clone has there, of an environment, say."""
    assert not [str(path.relative_to(ROOT)) for path in repository_paths() if path.is_symlink()]


#: What lies at the top beside the rooms.
TOP = {
    ".ci", ".github", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile",
    "README.md", "benchmarks", "build_backend.py", "docs", "examples", "pyproject.toml", "tests",
}  # fmt: skip


def test_nothing_is_left_at_the_top() -> None:
    """What a program wrote where it was started is no part of the repository."""
    found = {path.relative_to(ROOT).parts[0] for path in repository_paths() if path.exists()}
    assert not found - TOP - {*ROOMS}, f"ignore, move or delete it, or name it here: {found - TOP - {*ROOMS}}"


def test_no_file_names_a_registry_or_a_place_on_somebodys_machine() -> None:
    files = repository_files()
    if not files:
        pytest.skip("not a git clone")
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if match := UNWANTED.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match.group()}")
    assert not found, "\n".join(found)
