"""What the docstrings of public names say: of their parameters, of what they return, of what they raise.

Public is what `smelt.__all__` names, and what the modules that it names have in theirs; of a class, the methods that
itself or a base of smelt defines. A docstring may point at another: "as of `Conv2d`", "those of `Conv1d`", "see
`smelt.sum`"; what that says counts then. A method without a docstring has that of the base's.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import smelt

#: Parameters that mean the same everywhere, which docs/architecture.md and `smelt.stream` explain.
EVERYWHERE = {"self", "cls", "stream", "s"}
#: How a docstring says that another's words hold for it, too.
POINTER = re.compile(r"\b(?:as|of|in|like|see|See|takes|are|with)\s+(?:\w+\s+)?`(?:smelt\.)?([\w.]+)`")
EXAMPLE = re.compile(r"^\s*>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
ENTRY = re.compile(r"^ {4}((?:\*{0,2}\w+, )*\*{0,2}\w+): ", re.MULTILINE)
SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields):\n((?: {4}.*\n?|\n(?= {4}))*)", re.MULTILINE)


def modules() -> dict[str, ModuleType]:
    """All public modules, by name."""
    found: dict[str, ModuleType] = {}
    waiting: list[ModuleType] = [smelt]
    while waiting:
        module = waiting.pop()
        if module.__name__ in found:
            continue
        found[module.__name__] = importlib.import_module(module.__name__)
        members = (getattr(module, name) for name in getattr(module, "__all__", ()))
        waiting += [m for m in members if isinstance(m, ModuleType) and m.__name__.startswith("smelt")]
    return found


def public(module: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes in `__all__` of a module of smelt."""
    found = modules()[module]
    for name in found.__all__:
        value = getattr(found, name)
        if value is not Any and (inspect.isfunction(value) or inspect.isclass(value)):
            yield name, value


@dataclass(frozen=True)
class Documented:
    """A public callable: a function, a class (what constructs it), or a method of a class."""

    path: str
    value: Any
    owner: type | None = None

    @cached_property
    def own_text(self) -> str:
        return inspect.getdoc(self._described) or ""

    @property
    def _described(self) -> Any:
        return self.value if self.owner is None else getattr(self.owner, self.value.__name__, self.value)

    @cached_property
    def text(self) -> str:
        """The docstring with those that it points at, without examples."""
        parts, seen, waiting = [], {self.path}, [(self.own_text, self.path)]
        while waiting:
            said, _ = waiting.pop()
            parts.append(EXAMPLE.sub("", said))
            for name in POINTER.findall(said):
                target = NAMED.get(name.rpartition(".")[2]) if name not in NAMED else NAMED[name]
                if target is not None and name not in seen:
                    seen.add(name)
                    waiting.append((inspect.getdoc(target) or "", name))
        return "\n".join(parts)

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        try:
            every = inspect.signature(self.value).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p for p in every if p.name not in EVERYWHERE]

    @property
    def untold(self) -> list[str]:
        """The parameters that the docstring does not name. The first, an array that the sentence is about, needs not
        be."""
        every = self.parameters
        if len(every) == 1 and self.owner is None and not inspect.isclass(self.value):
            return []
        if every and re.match(r"(smelt\.)?(ArrayLike|array)\b", str(every[0].annotation)):
            every = every[1:]
        return [p.name for p in every if not named(p.name, self.text)]

    @property
    def sections(self) -> dict[str, str]:
        return dict(SECTION.findall(self.own_text + "\n"))

    @property
    def stale(self) -> list[str]:
        """What `Args:` lists and the callable does not take."""
        listed = [n.strip("*") for names in ENTRY.findall(self.sections.get("Args", "")) for n in names.split(", ")]
        taken = {p.name for p in self.parameters} | EVERYWHERE
        return [name for name in listed if name not in taken]

    @property
    def raised(self) -> set[str]:
        """The errors that the body raises, by name."""
        body = self.value
        if inspect.isclass(body):
            body = vars(body).get("__init__")
        try:
            source = inspect.getsource(inspect.unwrap(body))
        except (TypeError, OSError):
            return set()
        tree = ast.parse(textwrap.dedent(source))
        calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
        return {c.func.id for c in calls if isinstance(c.func, ast.Name) and c.func.id.endswith("Error")}

    @property
    def returns_several(self) -> bool:
        annotation = "" if inspect.isclass(self.value) else str(inspect.signature(self.value).return_annotation)
        return annotation.startswith("tuple[") and "..." not in annotation


def named(parameter: str, text: str) -> bool:
    """Whether a text speaks of a parameter: as a word, which the article is not."""
    if parameter == "a":
        return re.search(r"`a`|\ba[:,)\]]|[(\[]a\b|\ba [=+*/@·-]", text) is not None
    return re.search(rf"(?<![\w.])\*{{0,2}}{re.escape(parameter)}\b(?!\.\w)", text) is not None


def _named() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in modules():
        for name, value in public(module):
            found.setdefault(name, value)
            found[f"{module}.{name}".removeprefix("smelt.")] = value
            if inspect.isclass(value):
                for method in dir(value):
                    if method[0] != "_" and hasattr(value, method):
                        found.setdefault(f"{name}.{method}", getattr(value, method))
    return found


NAMED = _named()


def documented(module: str) -> Iterator[Documented]:
    """The public callables of a module that it or a module below it defines."""
    for name, value in public(module):
        if not value.__module__.startswith("smelt"):
            continue
        path = f"{module}.{name}"
        if not (inspect.isclass(value) and issubclass(value, (enum.Enum, BaseException))):
            yield Documented(path, value)
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if method[0] != "_" and inspect.isfunction(function):
                    yield Documented(f"{path}.{method}", function, value)


