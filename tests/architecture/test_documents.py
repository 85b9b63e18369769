"""The code in README.md, docs/ and the docstrings runs and prints what they say."""

from __future__ import annotations

import argparse
import doctest
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from smelt.ir import text
from smelt.passes import registry as pass_registry
from smelt.tools import opt
from smelt.tools.commands import command_parser

from .documents import FENCE, Check, console_checks, documents, mlir_blocks, python_checks, settings_checks
from .pictures import PICTURE, picture
from .sources import ROOMS, ROOT, module_name, python_files

DOCUMENTS = pytest.mark.parametrize("path", documents(), ids=lambda p: p.name)


def report(checks: list[Check]) -> None:
    wrong = [f"{c.what}\nexpected:\n{c.expected}\nfound:\n{c.found}" for c in checks if not c.ok]
    assert not wrong, "\n\n".join([*wrong, "to update: python -m tests.architecture.documents"])


@DOCUMENTS
def test_python_blocks(path: Path) -> None:
    report(python_checks(path))


def test_the_readme_names_every_page() -> None:
    named = set(re.findall(r"\(docs/([\w-]+\.md)\)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert named == {path.name for path in (ROOT / "docs").glob("*.md")}


@DOCUMENTS
def test_console_blocks(path: Path) -> None:
    report(console_checks(path))


@DOCUMENTS
def test_commands_named_in_the_text_exist(path: Path) -> None:
    """Commands in the text, which nothing runs: their tools, subcommands, flags and modules are there."""
    prose = FENCE.sub("", path.read_text(encoding="utf-8"))
    tools = command_parser()
    subcommands = next(a.choices for a in tools._actions if isinstance(a, argparse._SubParsersAction))
    passes = {f"--{prefix}{name}" for name in pass_registry() for prefix in ("", "smelt-")}
    for words in (span.split() for span in re.findall(r"`((?:smelt|smelt-opt|python -m) [^`]+)`", prose)):
        if words[0] == "python":
            assert importlib.util.find_spec(words[2]) is not None, words
            continue
        flags = {word.partition("=")[0] for word in words if word.startswith("--") and len(word) > 2}
        if words[0] == "smelt":
            assert words[1] in subcommands, words
            flags = flags if "--" not in words else set()
        parser = subcommands[words[1]] if words[0] == "smelt" else opt._parser()
        known = {flag for action in parser._actions for flag in action.option_strings} | passes
        assert flags <= known, (path.name, words, flags - known)


@DOCUMENTS
def test_settings_tables(path: Path) -> None:
    report(settings_checks(path))


@DOCUMENTS
def test_mlir_blocks(path: Path) -> None:
    for code in mlir_blocks(path):
        text.parse(code, path.name)


@DOCUMENTS
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_picture_shows_what_the_compiler_prints() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run python -m tests.architecture.pictures"


@pytest.mark.parametrize("path", python_files(*ROOMS), ids=lambda p: str(p.relative_to(ROOT)))
def test_doctests(path: Path) -> None:
    module = importlib.import_module(module_name(path))
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not result.failed
