"""What is generic asks devices for what they can, and compares no names of theirs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import smelt  # noqa: F401  (backends register their devices)
from smelt.backends.device import devices, registered

from .sources import ROOMS, ROOT, python_files

BACKENDS = sorted(p.parent.name for p in (ROOT / "backends").glob("*/__init__.py"))
#: Names of devices, of folders of backends, and of what a GPU backend may be made for; "gpu" is a kind of device.
NAMES = {*registered, *BACKENDS, "nvidia", "apple"} - {"gpu"}
#: Generic: all rooms, but for the folders of backends and the pages of one backend.
PAGES = ("frontend/metal.py", "tools/check_metal.py")
GENERIC = [
    path
    for path in python_files(*ROOMS)
    if (where := path.relative_to(ROOT)).as_posix() not in PAGES
    and not (where.parts[0] == "backends" and len(where.parts) > 2)
]
#: Ways to compare a text with others.
METHODS = frozenset(("startswith", "endswith", "removeprefix", "removesuffix", "partition", "fullmatch", "match"))


def names_in(node: ast.AST) -> Iterator[str]:
    """Texts in an expression that call a device or begin like one."""
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str) and child.value.rstrip(":") in NAMES:
            yield child.value


def compared_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name wherever the name of a device decides."""
    for node in ast.walk(tree):
        found: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            found = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            found = list(node.args)
        elif isinstance(node, ast.Subscript):
            found = [node.slice]
        elif isinstance(node, ast.Dict):
            found = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.match_case):
            found = [node.pattern]
        yield from ((getattr(node, "lineno", 0), name) for part in found for name in names_in(part))


def _trees(files: Iterable[Path], *texts: str) -> Iterator[tuple[str, ast.AST]]:
    """Name and tree of each file that contains one of these texts."""
    for path in files:
        source = path.read_text(encoding="utf-8")
        if any(text in source for text in texts):
            yield path.relative_to(ROOT).as_posix(), ast.parse(source)


def test_nothing_generic_compares_names_of_devices() -> None:
    found = [
        f"{path}:{line}: {name!r}" for path, tree in _trees(GENERIC, *NAMES) for line, name in compared_names(tree)
    ]
    assert not found, f"{found}: let the device say it, see smelt.backends.device.Device"


@pytest.mark.parametrize(
    "source",
    ["d.name == 'metal'", "'cpu' in names", "name.startswith('metal')", "name in ('cpu', 'x')", "{'metal:sim': 1}",
     "x['reference']", "name.startswith(('metal:', 'x'))", "name != 'reference' and f()"],
)  # fmt: skip
def test_the_rule_sees_comparisons(source: str) -> None:
    assert list(compared_names(ast.parse(source)))


@pytest.mark.parametrize("source", ["f('cpu')", "d.kind == 'gpu'", "x = 'metal'", "d.interprets"])
def test_the_rule_leaves_names_alone_that_are_handed_on(source: str) -> None:
    assert not list(compared_names(ast.parse(source)))


def most_buffers(tree: ast.AST) -> Iterator[int]:
    """Lines that state Metal's 31 buffers: a 31 that counts no bits, or a pipeline with the number in it."""
    bits = {
        id(node.right)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift | ast.RShift)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in bits:
            text = isinstance(node.value, str) and "max-buffers=31" in node.value
            if text or (type(node.value) is int and node.value == 31):
                yield node.lineno


def test_the_limit_of_buffers_is_stated_once() -> None:
    """It is a field of the target; the numbers of NVIDIA's headers are others."""
    files = [f for f in python_files("backends", "passes", "runtime", "frontend", "tools") if "cuda/dnn/" not in str(f)]
    found = {path: list(most_buffers(tree)) for path, tree in _trees(files, "31")}
    stated = {path: lines for path, lines in found.items() if lines}
    assert list(stated) == ["backends/gpu/devices.py"] and len(stated["backends/gpu/devices.py"]) == 1, stated


@pytest.mark.parametrize("name", sorted(registered))
def test_a_device_has_all_that_is_asked_of_one(name: str) -> None:
    device = registered[name]
    assert device.is_complete and device.pipeline and device.target.name
    assert (name in devices) == (not device.missing)
    assert callable(device.executable) and callable(device.details)
    for method in ("empty", "adopt", "synchronize", "system_bytes"):
        assert callable(getattr(device.memory, method))
    assert device.lower is None or callable(device.lower)
    assert not device.stages or device.lower is not None
