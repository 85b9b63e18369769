"""Pipelines: parsing them from text, running them, watching them run.

Grammar (mlir-opt's, plus `fixpoint`)::

    pipeline := item ("," item)*
    item     := pass | "fixpoint(" pipeline ")" | "builtin.module(" pipeline ")"
    pass     := name | name "{" option=value (" " option=value)* "}"

A name that is no smelt pass is looked for among the upstream passes and handed to MLIR's own pass
manager, with its options. `fixpoint(...)` repeats its passes until the module no longer changes.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir import mlir, scopes, text
from smelt.ir.dialect import context
from smelt.ir.errors import IRError, OutOfMemoryError, PassError, PipelineError, SmeltError, innermost_line, shown

from . import call_graph, extension
from .analysis import Analyses, active
from .kernels.check import verify_fusions
from .option_text import Unreadable, split_options, walk
from .registry import Pass, find, is_own, make, require_pass

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
        finally:
            scopes.forget()  # it may have erased any function

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True)
class Fixpoint:
    """Passes repeated until nothing changes."""

    items: tuple[Any, ...]

    @property
    def foreign(self) -> bool:
        return any(getattr(item, "foreign", False) for item in self.items)

    def __str__(self) -> str:
        return f"fixpoint({','.join(map(str, self.items))})"


@dataclass
class PassRecord:
    """What one run of a pass did.

    Attributes:
        stage: the run by name: the pass's, and its number (``linearize#2``) where the pipeline may run it repeatedly.
        report: what a pass that only looks has said.
        item: the pass itself, with its options.
    """

    name: str
    seconds: float
    statistics: Counter = field(default_factory=Counter)
    stage: str = ""
    report: str = ""
    item: Any = None


@dataclass
class Instrumentation:
    """How closely to watch a pipeline run.

    verify: check the module after each pass; after those of other packages it is checked anyway. dump: a folder that
    receives the IR after each pass, as ``0012-fuse.mlir``; ``0008-jvp_2-unchanged.mlir`` is of the second run of a
    pass, which changed nothing. reproducers: a folder (`dump` if that is given) for the IR
    before each pass with the command that replays it, written before the pass runs and removed when it is done: so it
    is left by a pass that fails, crashes or never ends; by one that refuses the module, in `dump` only. on_pass:
    called with (record, module) after each pass; before_pass: before it. admits: asked with the number of each run of a
    pass, from 1 on, and its name, whether it is to run: the bisection of a pipeline. on_failure: called with (record,
    module) where a pass has failed, with the module as it left it.
    """

    verify: bool = False
    dump: str | None = None
    on_pass: Callable[[PassRecord, Any], Any] | None = None
    before_pass: Callable[[PassRecord, Any], Any] | None = None
    reproducers: str | None = None
    admits: Callable[[int, str], bool] | None = None
    on_failure: Callable[[PassRecord, Any], Any] | None = None


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
        found = _parsed.get(spelling) if isinstance(spelling, str) else None
        if found is not None:
            return found
        check_spelling(spelling)
        parser = _Parser(spelling.strip())
        items = parser.items()
        parser.expect_end()
        found = Pipeline(items)
        if all(map(_stays, _leaves(items))):
            if len(_parsed) >= MOST_PARSED:
                _parsed.clear()
            _parsed[spelling] = found
        return found

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    @property
    def foreign(self) -> bool:
        """Whether code of another package takes part."""
        return any(getattr(item, "foreign", False) for item in self.items)

    def changed(self, spelling: str) -> Pipeline:
        """The pipeline after changes as text: ``before:fuse=strength;without:cse`` (see `smelt.passes.extension`).

        Raises:
            PipelineError: they cannot be read, or this pipeline has no such pass.

        >>> print(Pipeline.parse("fixpoint(inline,jvp),cse").changed("after:inline=dce;without:cse"))
        fixpoint(inline,dce,jvp)
        """
        check_spelling(spelling)
        items = self.items
        for change in extension.changes(spelling):
            items = extension.with_change(items, change, Pipeline.parse(change.passes).items)
        return Pipeline(items)

    def before(self, name: str, *passes: Any) -> Pipeline:
        """With passes in front of each run of the one called `name` (``name#2``: of its second run alone).

        Args:
            passes: as objects, as text, or as pipelines.

        >>> print(Pipeline.parse("cse,dce").before("dce", "inline,canonicalize").after("cse", Pipeline.parse("dce")))
        cse,dce,inline,canonicalize,dce
        """
        return self._with("before", name, passes)

    def after(self, name: str, *passes: Any) -> Pipeline:
        """With passes behind each run of the one called `name`."""
        return self._with("after", name, passes)

    def replace(self, name: str, *passes: Any) -> Pipeline:
        """With passes in place of each run of the one called `name`."""
        return self._with("replace", name, passes)

    def without(self, name: str) -> Pipeline:
        """Without the runs of the pass called `name`."""
        return self._with("without", name, ())

    def _with(self, way: str, name: str, passes: Sequence[Any]) -> Pipeline:
        new: list[Any] = []
        for item in passes:
            found = Pipeline.parse(item) if isinstance(item, str) else item
            new += found.items if isinstance(found, Pipeline) else [found]
        stem, _, number = name.partition("#")
        change = extension.Change(way, stem, int(number) if number.isdigit() else 0, "")
        return Pipeline(extension.with_change(self.items, change, new))

    def run(self, module: Any, watch: Instrumentation | None = None) -> list[PassRecord]:
        """Run on a module in place; a record for each pass executed."""
        keeping = contextlib.nullcontext() if scopes.is_keeping() else scopes.keeping()
        with mlir.lock, keeping:
            run = _Run(module, watch or Instrumentation(), _repeated(self.items))
            with active(run.analyses):
                run.all(self.items)
            return run.records


#: Pipelines by their text: each compile asks for its device's.
_parsed: dict[str, Pipeline] = {}
MOST_PARSED = 64


def _leaves(items: Sequence[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Fixpoint):
            yield from _leaves(item.items)
        else:
            yield item


def _stays(item: Any) -> bool:
    """Whether a pass is always what its name stands for: those of other packages may be defined anew, and take the
    place of MLIR's own."""
    return isinstance(item, Pass) and is_own(type(item)) and not item.foreign


class _Run:
    def __init__(self, module: Any, watch: Instrumentation, repeated: Counter[str]):
        self.module, self.watch = module, watch
        #: How often each pass has run that may run more than once.
        self.runs = repeated
        self.records: list[PassRecord] = []
        self.number = 0  #: of the run of a pass
        self.analyses = Analyses(module)
        self.inside = 0  #: of how many fixpoints
        self.folder = watch.dump or watch.reproducers
        #: The module as it is, where a folder wants it.
        self.text = ""
        if self.folder:
            try:
                os.makedirs(self.folder, exist_ok=True)
            except OSError as error:
                raise self._not_written(self.folder, error) from None
            self.text = text.to_text(module)
        if watch.dump:
            self._write("0000-input.mlir", self.text)

    def all(self, items: Sequence[Any]) -> bool:
        """Run items in order; whether any of them did something."""
        changed = False
        for item in items:
            changed |= self.fixpoint(item) if isinstance(item, Fixpoint) else self.one(item)
        return changed

    def fixpoint(self, item: Fixpoint) -> bool:
        for round_ in range(MAX_ROUNDS):
            self.inside += 1
            try:
                changed = self.all(item.items)
            finally:
                self.inside -= 1
            if not changed:
                return round_ > 0
        raise PipelineError(f"{item} still changes the module after {MAX_ROUNDS} rounds")

    def one(self, item: Any) -> bool:
        watch = self.watch
        record = PassRecord(item.name, 0.0, stage=item.name, item=item)
        if item.name in self.runs:
            self.runs[item.name] += 1
            record.stage += f"#{self.runs[item.name]}"
        self.number += 1
        if watch.admits and not watch.admits(self.number, record.stage):
            return False
        if watch.before_pass:
            watch.before_pass(record, self.module)
        reproducer = self._reproducer(item) if self.folder else None
        # MLIR's own passes do not say whether they did something, which matters inside of a fixpoint; those of other
        # packages may forget to.
        is_upstream, is_foreign = isinstance(item, UpstreamPass), getattr(item, "foreign", False)
        was = text.to_text(self.module) if is_foreign or (is_upstream and self.inside) else ""
        start = time.perf_counter()
        try:
            with scopes.keeping(False) if is_foreign else contextlib.nullcontext():
                record.report = item.run(self.module, record.statistics) or ""
            record.seconds = time.perf_counter() - start
            self._check(item, record)
            differs = bool(was) and text.to_text(self.module) != was
            if differs and getattr(item, "only_looks", False):
                raise PipelineError("it only looks, by its own word, and has changed the module")
        except Exception as error:
            found = self._explained(item, error)
            if watch.on_failure:
                watch.on_failure(record, self.module)
            if reproducer and not watch.dump and not isinstance(found, PassError):
                os.remove(reproducer)
            elif reproducer:
                self._reproducer(item, found)
                if watch.dump and hasattr(found, "add_note"):
                    found.add_note(f"reproducer: {reproducer}")
            if found is error:
                raise
            raise found from error
        self.records.append(record)
        if self.folder:
            before, self.text = self.text, text.to_text(self.module)
            if watch.dump:
                same = "-unchanged" if self.text == before else ""
                self._write(f"{len(self.records):04}-{_file_name(record.stage)}{same}.mlir", self.text)
        if reproducer:
            os.remove(reproducer)
        if watch.on_pass:
            watch.on_pass(record, self.module)
        changed = differs or (any(record.statistics.values()) and not getattr(item, "only_looks", False))
        if is_upstream:
            changed = differs or not was
        if changed:
            self.analyses.invalidate(getattr(item, "preserves", ()))
        return changed

    def _check(self, item: Any, record: PassRecord) -> None:
        """Verify what a pass has left, if it is not smelt's own or somebody asked for it."""
        foreign = getattr(item, "foreign", False)
        if self.watch.verify or foreign:
            try:
                text.verify(self.module)
                verify_fusions(self.module)
            except IRError as error:
                if not foreign:
                    raise
                raise IRError(f"{error}\nthe module is not valid after the pass") from None
        if foreign and not all(isinstance(n, int) for n in record.statistics.values()):
            raise PipelineError(f"statistics count by integers, not {shown(dict(record.statistics))}")

    def _explained(self, item: Any, error: Exception) -> Exception:
        """`error` with the pass named, or if it comes from a module that the pass is not for, one that says so."""
        line = innermost_line(error)
        if isinstance(error, SmeltError):
            if line or getattr(item, "foreign", False):
                at = f", at {line}" if line and line not in str(error) else ""
                error.args = (f"{error}; in the pass {item.name}{at}",)
            return error
        try:
            call_graph.callees_first(self.module)
            if item.name not in call_graph.EXPANDING:
                call_graph.require_expanded(self.module, item.name)
        except SmeltError as cause:
            return cause
        except Exception:  # of a module that is broken: the pass is to blame
            pass
        if isinstance(error, MemoryError):
            return OutOfMemoryError(f"the pass {item.name} ran out of memory")
        return PassError(f"the pass {item.name} failed: {_said(error)}; at {line or _last_line(error)}")

    def _write(self, name: str, content: str) -> str:
        path = os.path.join(self.folder or ".", name)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        except OSError as error:
            raise self._not_written(path, error) from None
        return path

    def _not_written(self, path: str, error: OSError) -> PipelineError:
        wanted = "a folder for it (SMELT_DUMP_IR, --dump-ir-to)" if self.watch.dump else "one for such files (TMPDIR)"
        return PipelineError(f"{path}: the IR cannot be written: {error.strerror}; name {wanted}")

    def _reproducer(self, item: Any, error: Exception | None = None) -> str:
        """Write the module before a pass, with the command that replays it; the file."""
        fails = "the process ended in this pass, or was ended"
        if error is not None:
            fails = (str(error) if isinstance(error, SmeltError) else _said(error)).split("\n")[0]
        header = f"// RUN: smelt-opt %s --pass-pipeline='{item}'\n// fails: {fails}\n"
        return self._write(f"{len(self.records) + 1:04}-{_file_name(item.name)}-reproducer.mlir", header + self.text)


def _repeated(items: Sequence[Any]) -> Counter[str]:
    """A count, zero, for each pass that may run more than once."""
    names = Counter(_names(items))
    return Counter({name: 0 for name, times in names.items() if times > 1})


def _names(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Fixpoint):
            yield from 2 * list(_names(item.items))
        else:
            yield item.name


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.()-]", "_", name)[:100]


def _said(error: BaseException) -> str:
    """An exception in a message, also one that cannot be printed."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _last_line(error: BaseException) -> str:
    frames = list(traceback.walk_tb(error.__traceback__))
    return f"{frames[-1][0].f_code.co_filename}:{frames[-1][1]}" if frames else "an unknown line"


#: MLIR's own parser of pipelines recurses into nested ones.
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
        if find(name) is not None:
            return [make(name, self.options(name, braces))]
        return [self.upstream(start, braces)]

    def upstream(self, start: int, rest: str) -> Any:
        """A pass of MLIR itself; else one of smelt that is only found by loading all packages that have some."""
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
        """What stands from here to the bracket that closes; brackets in quotes are characters like others."""
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
