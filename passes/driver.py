"""Pipelines: parsing them from text, running them, watching them run.

Grammar (mlir-opt's, plus `fixpoint`)::

    pipeline := item ("," item)*
    item     := pass | "fixpoint(" pipeline ")" | "builtin.module(" pipeline ")"
    pass     := name | name "{" option=value (" " option=value)* "}"

A name that is no smelt pass is looked for among the upstream passes and handed to MLIR's own pass
manager, with its options. `fixpoint(...)` repeats its passes until the module no longer changes.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir import mlir, text
from smelt.ir.dialect import context
from smelt.ir.errors import PipelineError, SmeltError

from . import call_graph, registry
from .fusion_check import verify_fusions

MAX_ROUNDS = 64


@dataclass(frozen=True)
class UpstreamPass:
    """A pass of MLIR itself, by the text that its pass manager parses."""

    spelling: str

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

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True)
class Fixpoint:
    """Passes repeated until nothing changes."""

    items: tuple[Any, ...]

    def __str__(self) -> str:
        return f"fixpoint({','.join(map(str, self.items))})"


@dataclass
class PassRecord:
    """What one execution of a pass did."""

    name: str
    seconds: float
    statistics: Counter = field(default_factory=Counter)


@dataclass
class Instrumentation:
    """How closely to watch a pipeline run.

    verify: check the module after each pass. dump: a folder that receives the IR after each pass,
    as ``0007-fuse.mlir``, and on failure a reproducer. on_pass: called with (name, module) after
    each pass.
    """

    verify: bool = False
    dump: str | None = None
    on_pass: Any = None
    before_pass: Any = None


class Pipeline:
    """A sequence of passes.

    >>> print(Pipeline.parse("inline,fixpoint(jvp,inline),cse"))
    inline,fixpoint(jvp,inline),cse
    """

    def __init__(self, items: Sequence[Any]):
        self.items = tuple(items)

    @staticmethod
    def parse(spelling: str) -> Pipeline:
        """A pipeline from text. Raises PipelineError with what is wrong."""
        parser = _Parser(spelling.strip())
        items = parser.items()
        parser.expect_end()
        return Pipeline(items)

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    def run(self, module: Any, watch: Instrumentation | None = None) -> list[PassRecord]:
        """Run on a module in place; a record for each pass executed."""
        with mlir.lock:
            run = _Run(module, watch or Instrumentation())
            run.all(self.items)
            return run.records


class _Run:
    def __init__(self, module: Any, watch: Instrumentation):
        self.module, self.watch = module, watch
        self.records: list[PassRecord] = []
        if watch.dump:
            os.makedirs(watch.dump, exist_ok=True)
            self._write("0000-input.mlir", text.to_text(module))

    def all(self, items: Sequence[Any]) -> bool:
        """Run items in order; whether any of them did something."""
        changed = False
        for item in items:
            changed |= self.fixpoint(item) if isinstance(item, Fixpoint) else self.one(item)
        return changed

    def fixpoint(self, item: Fixpoint) -> bool:
        for round_ in range(MAX_ROUNDS):
            if not self.all(item.items):
                return round_ > 0
        raise PipelineError(f"{item} still changes the module after {MAX_ROUNDS} rounds")

    def one(self, item: Any) -> bool:
        watch = self.watch
        before = text.to_text(self.module) if watch.dump else ""
        if watch.before_pass:
            watch.before_pass(item.name, self.module)
        record = PassRecord(item.name, 0.0)
        start = time.perf_counter()
        try:
            item.run(self.module, record.statistics)
            record.seconds = time.perf_counter() - start
            if watch.verify:
                text.verify(self.module)
                verify_fusions(self.module)
        except Exception as error:
            found = self._explained(item, error)
            if watch.dump:
                note = f"reproducer: {self._reproducer(item, before, found)}"
                if hasattr(found, "add_note"):
                    found.add_note(note)
            if found is error:
                raise
            raise found from error
        self.records.append(record)
        if watch.dump:
            self._write(f"{len(self.records):04}-{item.name}.mlir", text.to_text(self.module))
        if watch.on_pass:
            watch.on_pass(item.name, self.module)
        return isinstance(item, UpstreamPass) or any(record.statistics.values())

    def _explained(self, item: Any, error: Exception) -> Exception:
        """`error`, or if it comes from a module that the pass is not for, one that says so."""
        if isinstance(error, SmeltError):
            return error
        try:
            call_graph.callees_first(self.module)
            if item.name not in call_graph.EXPANDING:
                call_graph.require_expanded(self.module, item.name)
        except SmeltError as cause:
            return cause
        return error

    def _write(self, name: str, content: str) -> str:
        path = os.path.join(self.watch.dump or ".", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def _reproducer(self, item: Any, before: str, error: Exception) -> str:
        summary = str(error).splitlines()[0] if str(error) else type(error).__name__
        header = f"// RUN: smelt-opt %s --pass-pipeline='{item}'\n// fails: {summary}\n"
        return self._write(f"{len(self.records) + 1:04}-{item.name}-reproducer.mlir", header + before)


class _Parser:
    def __init__(self, spelling: str):
        self.text, self.at = spelling, 0

    def items(self, depth: int = 0) -> list[Any]:
        if depth > 32:
            raise self.error("the pipeline nests too deeply")
        found: list[Any] = []
        if self.at == len(self.text):
            return found
        while True:
            found += self.item(depth)
            if self.peek() != ",":
                return found
            self.at += 1

    def item(self, depth: int) -> list[Any]:
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
        short = registry.short_name(name)
        if short in registry.registry():
            return [registry.make(short, self.options(short, braces))]
        return [self.upstream(start, braces)]

    def upstream(self, start: int, rest: str) -> UpstreamPass:
        spelling = self.text[start : self.at]
        name = spelling[: len(spelling) - len(rest)] if rest else spelling
        try:
            with mlir.lock, context(), mlir.ir.Location.unknown():
                mlir.passmanager.PassManager.parse(f"builtin.module({spelling})")
        except ValueError as error:
            if "does not refer to a registered pass" in str(error) or "pass pipeline" not in str(error):
                registry.make(name, {})  # raises, with a suggestion
            reason = str(error).split("error: ")[-1].strip()
            raise PipelineError(f"in pipeline {self.text!r}: {reason}") from None
        return UpstreamPass(spelling)

    def balanced(self, opening: str, closing: str) -> str:
        start, depth = self.at, 0
        while self.at < len(self.text):
            c = self.text[self.at]
            self.at += 1
            depth += (c == opening) - (c == closing)
            if depth == 0:
                return self.text[start : self.at]
        raise self.error(f"{opening!r} is not closed")

    def options(self, name: str, braces: str) -> dict[str, str]:
        options: dict[str, str] = {}
        for word in braces[1:-1].split():
            key, equals, value = word.partition("=")
            if not equals:
                raise self.error(f"option {word!r} of {name} needs a value: {word}=...")
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
        return PipelineError(f"in pipeline {self.text!r}, column {self.at + 1}: {message}")
