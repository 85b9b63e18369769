"""Pipelines: running passes over a module, and watching them run.

The text of a pipeline is read by `smelt.passes.pipeline_text`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir import mlir, scopes, text
from smelt.ir.builder import functions
from smelt.ir.errors import (
    ArgumentTypeError,
    IRError,
    OutOfMemoryError,
    PassError,
    PipelineError,
    SmeltError,
    at_user_line,
    innermost_line,
    shown,
)

from . import call_graph, extension
from .analysis import Analyses, active
from .kernels.check import verify_fusions
from .pipeline_text import Fixpoint, Item, UpstreamPass, check_spelling, parse_items
from .registry import Pass, is_own

MAX_ROUNDS = 64


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
    item: Item | None = None


@dataclass
class Instrumentation:
    """How closely to watch a pipeline run.

    Attributes:
        verify: check the module after each pass; after passes of other packages it is checked anyway.
        dump: a folder that receives the IR after each pass, as ``0012-fuse.mlir``; ``0008-jvp_2-unchanged.mlir`` is
            from the second run of a pass, which changed nothing.
        on_pass: called with (record, module) after each pass.
        before_pass: called with (record, module) before each pass.
        reproducers: a folder (`dump`, if that is given) for the IR before each pass, with the command that replays
            the pass. The file is written before the pass runs and removed when it is done, so a pass that fails,
            crashes or never ends leaves one behind. A pass that refuses the module leaves one in `dump` only.
        admits: asked whether a pass is to run, with the number of the run, from 1 on, and its name; this is how a
            pipeline is bisected.
        on_failure: called with (record, module) when a pass has failed, with the module as it left it.
        flags: what the command of a reproducer needs beside the passes.
    """

    verify: bool = False
    dump: str | None = None
    on_pass: Callable[[PassRecord, Any], Any] | None = None
    before_pass: Callable[[PassRecord, Any], Any] | None = None
    reproducers: str | None = None
    admits: Callable[[int, str], bool] | None = None
    on_failure: Callable[[PassRecord, Any], Any] | None = None
    flags: Sequence[str] = ()


class Pipeline:
    """A sequence of passes.

    >>> print(Pipeline.parse("inline,fixpoint(jvp,inline),cse"))
    inline,fixpoint(jvp,inline),cse
    """

    def __init__(self, items: Sequence[Item]):
        self.items = tuple(items)
        for item in self.items:
            if not isinstance(item, Item):
                rule = "a pass is an object of a subclass of Pass, a text, or a pipeline"
                raise ArgumentTypeError(at_user_line(f"{rule}, not {shown(item)}"))

    @staticmethod
    def parse(spelling: str) -> Pipeline:
        """A pipeline from text. Raises PipelineError with what is wrong."""
        found = _parsed.get(spelling) if isinstance(spelling, str) else None
        if found is not None:
            return found
        found = Pipeline(parse_items(spelling))
        if all(map(_stays, _leaves(found.items))):
            if len(_parsed) >= MOST_PARSED:
                _parsed.clear()
            _parsed[spelling] = found
        return found

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    @property
    def foreign(self) -> bool:
        """Whether code of another package takes part."""
        return any(item.foreign for item in self.items)

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
        new: list[Item] = []
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


def _leaves(items: Sequence[Item]) -> Iterator[Pass | UpstreamPass]:
    for item in items:
        if isinstance(item, Fixpoint):
            yield from _leaves(item.items)
        else:
            yield item


def _stays(item: Item) -> bool:
    """Whether a pass is always what its name stands for: those of other packages may be defined anew, and take the
    place of MLIR's own."""
    return isinstance(item, Pass) and is_own(type(item)) and not item.foreign


class _Run:
    """One run of a pipeline over a module."""

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

    def all(self, items: Sequence[Item]) -> bool:
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

    def one(self, item: Pass | UpstreamPass) -> bool:
        """Run a pass and report it to whoever watches; whether it changed the module."""
        watch, record = self.watch, self._new_record(item)
        if watch.admits and not watch.admits(self.number, record.stage):
            return False
        if watch.before_pass:
            watch.before_pass(record, self.module)
        reproducer = self._reproducer(item) if self.folder else None
        before = text.to_text(self.module) if self._is_compared(item) else None
        has_main = item.foreign and _has_main(self.module)
        try:
            differs = self._run_and_check(item, record, before)
            if has_main and not _has_main(self.module):
                raise IRError("the module has no function @main after the pass")
        except Exception as error:
            found = self._explained(item, error)
            self._report_failure(item, record, found, reproducer)
            if found is error:
                raise
            raise found from error
        self._report_success(record, reproducer)
        if isinstance(item, UpstreamPass):
            changed = differs or before is None
        else:
            changed = differs or (any(record.statistics.values()) and not item.only_looks)
        if changed:
            self.analyses.invalidate(item.preserves)
        return changed

    def _new_record(self, item: Pass | UpstreamPass) -> PassRecord:
        record = PassRecord(item.name, 0.0, stage=item.name, item=item)
        if item.name in self.runs:
            self.runs[item.name] += 1
            record.stage += f"#{self.runs[item.name]}"
        self.number += 1
        return record

    def _is_compared(self, item: Pass | UpstreamPass) -> bool:
        """Whether texts tell if the pass did something. MLIR's own passes do not say, which matters inside of a
        fixpoint; those of other packages may forget to."""
        return item.foreign or (isinstance(item, UpstreamPass) and self.inside > 0)

    def _run_and_check(self, item: Pass | UpstreamPass, record: PassRecord, before: str | None) -> bool:
        """Run a pass and check what it leaves; whether the module's text is no longer `before`, if that is known."""
        start = time.perf_counter()
        with scopes.keeping(False) if item.foreign else contextlib.nullcontext():
            record.report = item.run(self.module, record.statistics) or ""
        record.seconds = time.perf_counter() - start
        self._check(item, record)
        differs = before is not None and text.to_text(self.module) != before
        if differs and item.only_looks:
            raise PipelineError("it only looks, by its own word, and has changed the module")
        return differs

    def _report_failure(
        self, item: Pass | UpstreamPass, record: PassRecord, error: Exception, reproducer: str | None
    ) -> None:  # fmt: skip
        if self.watch.on_failure:
            self.watch.on_failure(record, self.module)
        if reproducer is None:
            return
        if not self.watch.dump and not isinstance(error, PassError):
            os.remove(reproducer)
            return
        self._reproducer(item, error)
        if self.watch.dump and hasattr(error, "add_note"):
            error.add_note(f"reproducer: {reproducer}")

    def _report_success(self, record: PassRecord, reproducer: str | None) -> None:
        self.records.append(record)
        if self.folder:
            before, self.text = self.text, text.to_text(self.module)
            if self.watch.dump:
                same = "-unchanged" if self.text == before else ""
                self._write(f"{len(self.records):04}-{_file_name(record.stage)}{same}.mlir", self.text)
        if reproducer is not None:
            os.remove(reproducer)
        if self.watch.on_pass:
            self.watch.on_pass(record, self.module)

    def _check(self, item: Pass | UpstreamPass, record: PassRecord) -> None:
        """Verify what a pass has left, if it is not smelt's own or somebody asked for it."""
        foreign = item.foreign
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

    def _explained(self, item: Pass | UpstreamPass, error: Exception) -> Exception:
        """`error` with the pass named, or if it comes from a module that the pass is not for, one that says so."""
        line = innermost_line(error)
        if isinstance(error, SmeltError):
            if line or item.foreign:
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

    def _reproducer(self, item: Pass | UpstreamPass, error: Exception | None = None) -> str:
        """Write the module before a pass, with the command that replays it; the file."""
        fails = "the process ended in this pass, or was ended"
        if error is not None:
            fails = (str(error) if isinstance(error, SmeltError) else _said(error)).split("\n")[0]
        flags = "".join(f" {shlex.quote(flag)}" for flag in self.watch.flags)
        header = f"// RUN: smelt-opt %s --pass-pipeline='{item}'{flags}\n// fails: {fails}\n"
        return self._write(f"{len(self.records) + 1:04}-{_file_name(item.name)}-reproducer.mlir", header + self.text)


def _has_main(module: Any) -> bool:
    return "main" in functions(module)


def _repeated(items: Sequence[Item]) -> Counter[str]:
    """A count, zero, for each pass that may run more than once."""
    names = Counter(_names(items))
    return Counter({name: 0 for name, times in names.items() if times > 1})


def _names(items: Sequence[Item]) -> Iterator[str]:
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
