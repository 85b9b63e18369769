"""Every error that smelt raises derives from SmeltError, and from the builtin that a NumPy user would catch."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.ir import errors
from smelt.ir.errors import SmeltError

from .sources import ROOMS, ROOT, module_name, python_files

#: What may be raised all the same: Python's protocols ask for these, or nobody outside of smelt sees them.
ALLOWED: dict[type[BaseException], str] = {
    NotImplementedError: "a method that each subclass defines",
    AttributeError: "what __getattr__ must raise",
    StopIteration: "what __next__ must raise",
    SystemExit: "the end of a command",
    AssertionError: "a mistake in smelt, not in its user's program",
}
#: Places with an exception of their own: (file, what is raised) and why.
PLACES = {
    ("ir/locks.py", "error"): "what an action raised that is done whole",
    ("ir/locks.py", "interrupt"): "what a handler of a signal raised meanwhile",
    ("ir/host_threads.py", "interrupt"): "what a handler of a signal raised while others worked",
    ("backends/device.py", "__cause__"): "what a package's own code raised, a SmeltError",
    ("backends/cpu/threads.py", "error"): "what a call raised, or an interrupt while the others still ran",
    ("backends/cuda/nvrtc.py", "CompileError"): "has no smelt; who asks makes it a DeviceError",
    ("backends/gpu/manifest.py", "KeyError"): "a look-up among a manifest's kernels, for its own callers",
    ("frontend/lazy/buffer_protocol.py", "error"): "what the export raised, a BufferExportError",
    ("ir/bytecode.py", "IndexError"): "the end of the bytes, caught by who reads them",
    ("ir/bytecode.py", "ValueError"): "what no bytecode has, caught by who reads it",
    ("passes/driver.py", "found"): "what a pass raised, or an IRError that explains it",
    ("tools/check_metal.py", "ValueError"): "caught by the command, which prints it",
    ("tools/mlir_flags.py", "ArgumentTypeError"): "argparse's, which prints it",
    ("tools/opt.py", "ArgumentTypeError"): "argparse's, which prints it",
    ("tools/usage.py", "ArgumentTypeError"): "argparse's, which prints it",
}


def raised(tree: ast.Module) -> Iterator[tuple[ast.Raise, ast.expr, ast.FunctionDef | None]]:
    """All statements `raise X` and `raise X(...)` with X and the function that they stand in."""

    def visit(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[Any]:
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield node, node.exc.func if isinstance(node.exc, ast.Call) else node.exc, function
        for child in ast.iter_child_nodes(node):
            yield from visit(child, child if isinstance(child, ast.FunctionDef) else function)

    yield from visit(tree, None)


def named_by(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation).strip("'\"")


class Resolver:
    """The exception classes that an expression behind `raise` may stand for."""

    def __init__(self, path: Path, tree: ast.Module):
        self.module = importlib.import_module(module_name(path))
        #: Imports inside functions count like those at the top.
        self.imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            for alias in node.names
        }
        self.functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}

    def class_named(self, name: str) -> list[type[BaseException]]:
        found = getattr(self.module, name, getattr(builtins, name, None))
        if found is None and name in self.imported:
            module, name = self.imported[name]
            found = getattr(importlib.import_module(module), name, None)
        return [found] if inspect.isclass(found) and issubclass(found, BaseException) else []

    def classes(self, raised: ast.expr, function: ast.FunctionDef | None) -> list[type[BaseException]]:
        if isinstance(raised, ast.Call):  # type(error)(...): of the class of one that was caught
            return self.caught(raised, function)
        name = raised.attr if isinstance(raised, ast.Attribute) else getattr(raised, "id", "")
        if isinstance(raised, ast.Attribute) and isinstance(raised.value, ast.Name) and raised.value.id != "self":
            owner = getattr(self.module, raised.value.id, None)
            found = getattr(owner, name, None)
            return [found] if inspect.isclass(found) else []
        if known := self.class_named(name):
            return known
        if name in self.functions:  # a function or method that makes the error
            return self.class_named(named_by(self.functions[name].returns))
        owners = [self.module, *(x for x in vars(self.module).values() if inspect.isclass(x))]
        for maker in (getattr(owner, name, None) for owner in owners):  # one of another module, or a method of a base
            if inspect.isfunction(maker):
                return self.class_named_in(maker.__module__, str(maker.__annotations__.get("return", "")))
        return self.assigned(name, function)

    def class_named_in(self, module: str, name: str) -> list[type[BaseException]]:
        found = getattr(sys.modules[module], name, None)
        return [found] if inspect.isclass(found) and issubclass(found, BaseException) else []

    def assigned(self, name: str, function: ast.FunctionDef | None) -> list[type[BaseException]]:
        """The classes among what a local variable, a parameter or an except clause binds."""
        found: list[type[BaseException]] = []
        if function is None:
            return found
        for node in ast.walk(function):
            value: ast.AST | None = None
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and any(named_by(t) == name for t in targets):
                value = node.value
            elif isinstance(node, ast.ExceptHandler) and node.name == name:
                value = node.type
            elif isinstance(node, ast.arguments):
                named = [*node.posonlyargs, *node.args][-len(node.defaults) :] if node.defaults else []
                value = next((d for a, d in zip(named, node.defaults) if a.arg == name), None)
            elif isinstance(node, ast.arg) and node.arg == name:
                kind = re.fullmatch(r"type\[(\w*Error)\]", named_by(node.annotation))
                found += self.class_named(kind[1]) if kind else []
            for part in self.alternatives(value):
                if isinstance(part, ast.Name):
                    found += self.class_named(part.id)
        return found

    def alternatives(self, value: ast.AST | None) -> list[ast.AST]:
        """What an expression may be: both sides of a condition, all parts of a tuple."""
        if isinstance(value, ast.IfExp):
            return self.alternatives(value.body) + self.alternatives(value.orelse)
        if isinstance(value, ast.Tuple):
            return [part for v in value.elts for part in self.alternatives(v)]
        if isinstance(value, ast.Call):
            return [value.func]
        return [value] if value is not None else []

    def caught(self, call: ast.Call, function: ast.FunctionDef | None) -> list[type[BaseException]]:
        name = getattr(call.args[0], "id", "") if ast.unparse(call.func) == "type" and call.args else ""
        return self.assigned(name, function)


@pytest.mark.parametrize("path", python_files(*ROOMS), ids=lambda p: str(p.relative_to(ROOT)))
def test_what_is_raised(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    resolver = Resolver(path, tree)
    for statement, expression, function in raised(tree):
        where = f"{path.relative_to(ROOT)}:{statement.lineno}: {ast.unparse(statement)[:100]}"
        if (str(path.relative_to(ROOT)), ast.unparse(expression).rpartition(".")[2]) in PLACES:
            continue
        classes = resolver.classes(expression, function)
        assert classes, f"{where}: which class is this? Annotate the function that makes it"
        for found in classes:
            private = found.__name__.startswith("_") and found.__module__ == resolver.module.__name__
            assert issubclass(found, (SmeltError, *ALLOWED)) or private, f"{where}: {found.__name__} is no SmeltError"


def test_the_exceptions_are_needed() -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in PLACES}
    unneeded = [(f, name) for f, name in PLACES if not re.search(rf"raise ([\w.]+\.)?{name}\b", texts[f])]
    assert not unneeded


def test_private_exceptions_are_caught_where_they_are_raised() -> None:
    for path in python_files(*ROOMS):
        text = path.read_text(encoding="utf-8")
        names = [
            node.name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ClassDef) and node.name[0] == "_" and "Exception" in map(ast.unparse, node.bases)
        ]
        for name in names:
            assert f"except {name}" in text or f", {name})" in text, f"{path.relative_to(ROOT)}: {name} escapes"


ROOTS = (SmeltError, errors.InternalError)
CLASSES = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, Exception) and c not in ROOTS]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_a_class_is_also_a_builtin_exception(kind: type[Exception]) -> None:
    assert issubclass(kind, SmeltError)
    assert any(base.__module__ == "builtins" for base in kind.__mro__ if base not in (Exception, BaseException, object))
    assert inspect.getdoc(kind)


def test_a_value_in_a_message_is_short_and_evaluates_nothing() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    endless: list[Any] = []
    endless.append(endless)

    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    for value in (deep, endless, Rude(), "x" * 10_000, 10**10_000, list(range(10_000))):
        assert len(errors.shown(value)) < 300
    lazy = smelt.ones((3, 2)) + 1
    assert errors.shown(lazy) == "an array f32[3,2]"
    assert lazy._ref[0].values is None


def test_assertions_do_nothing() -> None:
    """`python -O` leaves them out: they say what is so, to those who read and to mypy, and call nothing of smelt."""
    found = []
    for path in python_files(*ROOMS):
        asserted = [x for x in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(x, ast.Assert)]
        for node in asserted:
            called = [ast.unparse(x.func) for x in ast.walk(node) if isinstance(x, ast.Call)]
            if set(called) - {"isinstance"}:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {', '.join(called)}")
    assert not found, "\n".join(found)
