"""What a pass is, and where passes are found.

A pass is a frozen dataclass whose fields are its options::

    @register_pass("my-pass")
    @dataclass(frozen=True)
    class MyPass(Pass):
        \"\"\"One sentence; before and after.\"\"\"

        limit: int = 4

        def run(self, module, statistics): ...

Other packages add passes by an entry point in the group ``smelt.passes`` that names such a class
(or a module that defines some).
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from smelt.ir.errors import PipelineError


@dataclasses.dataclass(frozen=True)
class Pass:
    """Base class of passes on the smelt dialect. Options are the dataclass's fields."""

    name: ClassVar[str] = ""

    def run(self, module: Any, statistics: Counter) -> None:
        """Change `module` in place. Count what was done in `statistics`."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The pass as it stands in a textual pipeline, with the options that differ from defaults."""
        options = [
            f"{f.name.replace('_', '-')}={_to_text(getattr(self, f.name))}"
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        ]
        return f"{self.name}{{{' '.join(options)}}}" if options else self.name


_passes: dict[str, type[Pass]] = {}
_loaded = False


def register_pass(name: str) -> Callable[[type[Pass]], type[Pass]]:
    """Class decorator: make a pass known under its name on the command line."""

    def register(cls: type[Pass]) -> type[Pass]:
        known = _passes.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise PipelineError(f"two passes are called {name!r}: {known.__module__} and {cls.__module__}")
        cls.name = name
        _passes[name] = cls
        return cls

    return register


def registry() -> dict[str, type[Pass]]:
    """All passes by name: those of this room, then those of installed packages."""
    global _loaded
    if not _loaded:
        import smelt.passes as room

        for module in pkgutil.iter_modules(room.__path__):
            importlib.import_module(f"{room.__name__}.{module.name}")
        from importlib.metadata import entry_points

        for entry in entry_points(group="smelt.passes"):
            try:
                entry.load()
            except Exception as error:
                raise PipelineError(f"the pass {entry.name!r} of {entry.value} does not load: {error}") from error
        _loaded = True
    return _passes


def short_name(name: str) -> str:
    """The name of a pass of ours without ``smelt-``, as ``mlir-opt`` users write it; other names as they are."""
    short = name.removeprefix("smelt-")
    return short if short in registry() else name


def make(name: str, options: dict[str, str]) -> Pass:
    """An instance of the pass called `name` with options given as text."""
    passes = registry()
    if name not in passes:
        from difflib import get_close_matches

        near = get_close_matches(name, passes, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise PipelineError(f"unknown pass {name!r}{hint} (`smelt-opt --list-passes` lists them)")
    cls = passes[name]
    fields = {f.name.replace("_", "-"): f for f in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise PipelineError(f"pass {name} has no option {key!r}; its options: {known}")
        values[fields[key].name] = _from_text(name, key, text, fields[key].default)
    return cls(**values)


def _to_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_text(pass_name: str, key: str, text: str, default: Any) -> Any:
    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return type(default)(text) if default is not None else text
    except (KeyError, ValueError):
        raise PipelineError(
            f"option {key} of pass {pass_name} must be a {type(default).__name__}, is {text!r}"
        ) from None
