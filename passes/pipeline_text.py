"""The text of a pipeline, and the items that it consists of.

Grammar (mlir-opt's, plus `fixpoint`)::

    pipeline := item ("," item)*
    item     := pass | "fixpoint(" pipeline ")" | "builtin.module(" pipeline ")"
    pass     := name | name "{" option=value (" " option=value)* "}"

A name that is no smelt pass is looked up among the upstream passes and handed to MLIR's own pass manager, with its
options. `fixpoint(...)` repeats its passes until the module no longer changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from smelt.ir import mlir, scopes, text
from smelt.ir.dialect import context
from smelt.ir.errors import PipelineError, SmeltError, shown

from .option_text import Unreadable, split_options, walk
from .registry import Pass, find, make, require_pass


@dataclass(frozen=True)
class UpstreamPass:
    """A pass of MLIR itself, by the text that its pass manager parses."""

    spelling: str
    only_looks: ClassVar[bool] = False
    preserves: ClassVar[tuple[str, ...]] = ()
    foreign: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.spelling.split("{")[0]

    def run(self, module: Any, statistics: Counter) -> None:
        try:
            manager = mlir.passmanager.PassManager.parse(f"builtin.module({self.spelling})", context())
        except ValueError as error:
            raise PipelineError(f"{self.spelling}: {error}") from None
        try:
            manager.run(module.operation)
        except mlir.ir.MLIRError as error:
            raise SmeltError(text.diagnostics(error, self.name)) from None
        finally:
            scopes.forget()  # it may have erased any function

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True)
class Fixpoint:
    """Passes repeated until nothing changes."""

    items: tuple[Item, ...]

    @property
    def foreign(self) -> bool:
        return any(item.foreign for item in self.items)

    def __str__(self) -> str:
        return f"fixpoint({','.join(map(str, self.items))})"


#: What a pipeline consists of.
Item: TypeAlias = Pass | UpstreamPass | Fixpoint

#: Limits on texts, since MLIR's own parser recurses into nested pipelines.
MAX_NESTING, MAX_CHARACTERS = 200, 1 << 20


def check_spelling(spelling: str) -> None:
    """Raise PipelineError for what cannot be handed to MLIR's parser of pipelines."""
    if not isinstance(spelling, str):
        raise PipelineError(f"a pipeline is a text, not {shown(spelling)}")
    if len(spelling) > MAX_CHARACTERS:
        raise PipelineError(f"the pipeline has {len(spelling)} characters; the limit is {MAX_CHARACTERS}")
    depth = 0
    for at, c in enumerate(spelling):
        if c == "\0" or 0xD800 <= ord(c) < 0xE000:
            raise PipelineError(f"in pipeline {shown(spelling)}, column {at + 1}: {shown(c)} is no character of a name")
        depth += (c in "({[") - (c in ")}]")
        if depth > MAX_NESTING:
            raise PipelineError(f"in pipeline {shown(spelling)}, column {at + 1}: the pipeline nests too deeply")


def parse_items(spelling: str) -> list[Item]:
    """The items that a text spells. Raises PipelineError with what is wrong."""
    check_spelling(spelling)
    parser = _Parser(spelling.strip())
    items = parser.items()
    parser.expect_end()
    return items


class _Parser:
    """A recursive-descent parser of the grammar above; `at` is the column that it has come to."""

    def __init__(self, spelling: str):
        self.text, self.at = spelling, 0

    def items(self, depth: int = 0) -> list[Item]:
        if depth > 32:
            raise self.error("the pipeline nests too deeply")
        found: list[Item] = []
        if self.at == len(self.text):
            return found
        while True:
            found += self.item(depth)
            if self.peek() != ",":
                return found
            self.at += 1

    def item(self, depth: int) -> list[Item]:
        self.skip_space()
        start = self.at
        while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "-_."):
            self.at += 1
        name = self.text[start : self.at]
        if not name:
            raise self.error("a pass name is expected")
        if self.peek() == "(" and name in ("fixpoint", "builtin.module"):
            self.at += 1
            inner = self.items(depth + 1)
            if self.peek() != ")":
                raise self.error("')' is expected")
            self.at += 1
            return [Fixpoint(tuple(inner))] if name == "fixpoint" else inner
        if self.peek() == "(":  # an upstream nest such as func.func(...)
            return [self.upstream(start, self.balanced("(", ")"))]
        braces = self.balanced("{", "}") if self.peek() == "{" else ""
        if find(name) is not None:
            return [make(name, self.options(name, braces))]
        return [self.upstream(start, braces)]

    def upstream(self, start: int, rest: str) -> Item:
        """A pass of MLIR itself, or else one that is only found once every package that offers passes is loaded."""
        spelling = self.text[start : self.at]
        name = spelling[: len(spelling) - len(rest)] if rest else spelling
        try:
            with mlir.lock, context(), mlir.ir.Location.unknown():
                mlir.passmanager.PassManager.parse(f"builtin.module({spelling})")
        except ValueError as error:
            if "does not refer to a registered pass" in str(error) or "pass pipeline" not in str(error):
                require_pass(name)
                return make(name, self.options(name, rest) if rest.startswith("{") else {})
            reason = str(error).split("error: ")[-1].strip()
            raise PipelineError(f"in pipeline {shown(self.text)}: {reason}") from None
        return UpstreamPass(spelling)

    def balanced(self, opening: str, closing: str) -> str:
        """The text from here to the matching bracket; brackets inside of quotes do not count."""
        start, depth = self.at, 0
        try:
            for at, _ in walk(self.text, start):
                c = self.text[at]
                depth += (c == opening) - (c == closing)
                if depth == 0:
                    self.at = at + 1
                    return self.text[start : self.at]
        except Unreadable:
            raise self.error("quotes or brackets are not closed") from None
        self.at = len(self.text)
        raise self.error(f"{opening!r} is not closed")

    def options(self, name: str, braces: str) -> dict[str, str]:
        options: dict[str, str] = {}
        try:
            found = split_options(braces[1:-1])
        except Unreadable:
            raise self.error("quotes or brackets are not closed") from None
        for key, value in found:
            if key in options:
                raise self.error(f"option {key} of {name} is given twice")
            options[key] = value
        return options

    def peek(self) -> str:
        self.skip_space()
        return self.text[self.at] if self.at < len(self.text) else ""

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def expect_end(self) -> None:
        if self.peek():
            raise self.error(f"unexpected {self.text[self.at :][:20]!r}")

    def error(self, message: str) -> PipelineError:
        return PipelineError(f"in pipeline {shown(self.text)}, column {self.at + 1}: {message}")
