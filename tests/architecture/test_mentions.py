"""What docstrings and comments name in backticks exists: code that was renamed leaves no stale names."""

from __future__ import annotations

import ast
import io
import pkgutil
import re
import tokenize

import pytest

from smelt.ir.settings import settings

from .sources import ROOMS, ROOT, python_files

NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)`(?!`)")
#: Names of other projects, and names made up for an example.
ELSEWHERE = {"onlyFirstLaneUsed", "stem_1", "stem_2"}
FILES = python_files(*ROOMS, "benchmarks")


def docstrings(tree: ast.Module) -> set[int]:
    """The lines on which docstrings and other strings that are statements begin."""
    return {
        n.value.lineno
        for n in ast.walk(tree)
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)
    }


def split(source: str) -> tuple[set[str], set[str]]:
    """The words of a file's code, strings included, and the names that its docstrings and comments mention."""
    words, mentioned, texts = set[str](), set[str](), docstrings(ast.parse(source))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start[0] in texts):
            mentioned.update(NAME.findall(token.string))
        else:
            words.update(re.findall(r"\w+", token.string))
    return words, mentioned


def others() -> set[str]:
    """The words of what is no Python: the parts in C and headers, and declarations of types."""
    found = set[str]()
    for pattern in ("*.c", "*.h", "*.pyi", "*.js"):
        for room in ROOMS:
            for path in (ROOT / room).rglob(pattern):
                found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return found


SPLIT = {path: split(path.read_text(encoding="utf-8")) for path in FILES}
KNOWN = (
    set[str]().union(*(words for words, _ in SPLIT.values()), others(), ELSEWHERE)
    | {part for path in FILES for part in path.relative_to(ROOT).with_suffix("").parts}
    | {f"SMELT_{name.upper()}" for name in dir(settings)}
    | {"pyi", "py"}
)


@pytest.mark.parametrize("room", ROOMS)
def test_names_in_backticks_exist(room: str) -> None:
    stale = [
        f"{path.relative_to(ROOT)}: `{name}`"
        for path, (_, mentioned) in SPLIT.items()
        if path.is_relative_to(ROOT / room)
        for name in sorted(mentioned)
        if name.rpartition(".")[2] not in KNOWN
    ]
    assert not stale, "\n".join(stale)


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_full_names_lead_to_something() -> None:
    """Those of two parts may be attributes of the dialect."""
    full = {
        (str(path.relative_to(ROOT)), name)
        for path, (_, mentioned) in SPLIT.items()
        for name in mentioned
        if name.startswith("smelt.") and name.count(".") > 1
    }
    assert len(full) > 50
    assert not [(path, name) for path, name in sorted(full) if not resolves(name)]


def test_a_stale_name_is_found() -> None:
    words, mentioned = split('"""See `gone`; ``text``."""\nx = "kept"  # `x.also_gone`\n')
    assert mentioned == {"gone", "x.also_gone"} and "kept" in words and not {"gone", "also_gone"} & words
    assert resolves("smelt.passes.driver.Pipeline") and not resolves("smelt.passes.driver.NoSuchClass")
