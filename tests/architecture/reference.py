"""What the docstrings of public names say: of their parameters, of what they return, of what they raise.

Public is what `smelt.__all__` names, and what the modules that it names have in theirs; of a class, the methods that
it defines. What another docstring says counts, too, where one points at it ("as of `Conv2d`", "see `smelt.sum`"), is a
variation of it (it begins with "`savez`, …"), or is that of a method which overrides another. A class that others make
("What `from_torch` returns") says nothing of its constructor.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import smelt

#: Parameters that mean the same everywhere: see `smelt.stream`.
EVERYWHERE = {"self", "cls", "stream", "s"}
#: How a docstring says that another's words hold for it, too; its beginning with the name is one way.
POINTER = re.compile(r"(?:\A|\b(?:[Aa]s(?: of| in)?|those of|like|[Ss]ee|What)\s+)`([\w.]+)`")
MADE_BY_OTHERS = re.compile(r"\AWhat `[\w.]+` (?:returns|makes)|\A[^.]*`[\w.]+`(?: (?:and|or) `[\w.]+`)* makes? one")
EXAMPLE = re.compile(r"^\s*>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
ENTRY = re.compile(r"^ {4}((?:\*{0,2}\w+, )*\*{0,2}\w+): ", re.MULTILINE)


@cache
def modules() -> dict[str, ModuleType]:
    """All public modules, by name."""
    found: dict[str, ModuleType] = {}
    waiting: list[ModuleType] = [smelt]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
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


@cache
def by_name() -> dict[str, Any]:
    """What a docstring may point at: functions, classes and their methods, under their names and paths."""
    found: dict[str, Any] = {}
    for module in modules():
        for name, value in public(module):
            found.setdefault(name, value)
            found[f"{module}.{name}".removeprefix("smelt.")] = value
            if inspect.isclass(value):
                methods = {m: getattr(value, m, None) for m in dir(value) if m[0] != "_"}
                found |= {f"{name}.{m}": function for m, function in methods.items() if function is not None}
    return found


@dataclass(frozen=True)
class Documented:
    """A public callable: a function, a class (what constructs it), or a method of a class."""

    path: str
    value: Any
    owner: type | None = None

    @property
    def own_text(self) -> str:
        """Its docstring, or that of the method which it overrides."""
        return inspect.getdoc(self.value) or next(self._overridden(), "")

    def _overridden(self) -> Iterator[str]:
        for base in self.owner.__mro__[1:] if self.owner else ():
            if self.value.__name__ in vars(base) and base.__module__.startswith("smelt"):
                yield inspect.getdoc(vars(base)[self.value.__name__]) or ""

    @cached_property
    def whole_text(self) -> str:
        """The docstring with those that it points at."""
        parts, seen, waiting = [], {self.path}, [self.own_text, *self._overridden()]
        while waiting:
            parts.append(waiting.pop())
            for name in POINTER.findall(parts[-1]):
                target = self._named(name)
                if target is not None and name not in seen:
                    seen.add(name)
                    waiting.append(inspect.getdoc(target) or "")
        return "\n\n".join(parts)

    def _named(self, name: str) -> Any:
        sibling = f"{self.owner.__name__}.{name}" if self.owner else ""  # of a class a docstring names the method alone
        return by_name().get(sibling) or by_name().get(name.removeprefix("smelt."))

    @property
    def text(self) -> str:
        """That without the examples."""
        return EXAMPLE.sub("", self.whole_text)

    @property
    def has_example(self) -> bool:
        """A method may leave that to its class, or to what its docstring points at; a class to what makes it."""
        if self.owner is None:
            return ">>> " in (self.whole_text if MADE_BY_OTHERS.search(self.own_text) else self.own_text)
        return ">>> " in self.whole_text or Documented("", self.owner).has_example

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        try:
            every = inspect.signature(self.value).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p for p in every if p.name not in EVERYWHERE]

    @property
    def untold(self) -> list[str]:
        """The parameters that the text does not name. A function's only one needs no name, nor does a first one that
        is an array: what it does to these is said by its first sentence."""
        every = self.parameters
        if inspect.isclass(self.value) and MADE_BY_OTHERS.search(self.own_text):
            return []
        if len(every) == 1 and inspect.isfunction(self.value) and self.owner is None:
            return []
        if every and re.match(r"(smelt\.)?(ArrayLike|array)\b", str(every[0].annotation)):
            every = every[1:]
        return [p.name for p in every if not is_named(p.name, self.text)]

    @property
    def stale(self) -> list[str]:
        """What `Args:` lists and the callable does not take."""
        section = re.search(r"^Args:\n((?: {4}.*\n|\n(?= {4}))*)", self.own_text + "\n", re.MULTILINE)
        listed = [n.strip("*") for names in ENTRY.findall(section[1] if section else "") for n in names.split(", ")]
        taken = {p.name for p in self.parameters} | EVERYWHERE
        return [name for name in listed if name not in taken]

    @property
    def untold_errors(self) -> list[str]:
        """The errors that the body raises by name, and the text does not name."""
        body = vars(self.value).get("__init__") if inspect.isclass(self.value) else self.value
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(body))))
        except (TypeError, OSError):
            return []
        calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
        raised = {c.func.id for c in calls if isinstance(c.func, ast.Name) and c.func.id.endswith("Error")}
        return sorted(name for name in raised if name not in self.text)

    @property
    def returns_untold(self) -> bool:
        """Whether it returns a tuple of different things, and the text does not say which."""
        annotation = "" if inspect.isclass(self.value) else str(inspect.signature(self.value).return_annotation)
        several = annotation.startswith("tuple[") and "..." not in annotation
        return several and re.search(r"Returns:|\b([Rr]eturns?|pairs?|and|gives)\b", self.text) is None


def is_named(parameter: str, text: str) -> bool:
    """Whether a text speaks of a parameter: as a word, which the article is not."""
    if parameter == "a":
        return re.search(r"`a`|\ba[:,)\]]|[(\[]a\b|\ba [=+*/@·-]", text) is not None
    return re.search(rf"(?<![\w.])\*{{0,2}}{re.escape(parameter)}\b(?!\.\w)", text) is not None


def documented(module: str) -> Iterator[Documented]:
    """The public callables of a module of smelt."""
    for name, value in public(module):
        if not value.__module__.startswith("smelt"):
            continue
        if not (inspect.isclass(value) and issubclass(value, (enum.Enum, BaseException))):
            yield Documented(f"{module}.{name}", value)
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if method[0] != "_" and inspect.isfunction(function):
                    yield Documented(f"{module}.{name}.{method}", function, value)
