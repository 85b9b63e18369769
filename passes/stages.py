"""Stages: the texts of a module between the passes of a pipeline, by name.

A pass that may run more than once, as in ``fixpoint(...)``, is a stage each time: ``linearize#1`` is what its first
run left, ``linearize#2`` what its second did. Its plain name stands for the last run that changed the module. The one
run of any other pass may be called by a number, too: ``fuse#1`` is ``fuse``.
"""

from __future__ import annotations

from typing import Any

from smelt.ir import text
from smelt.ir.short import to_short_text

from .driver import PassRecord


class Stages:
    """Texts of a module while a pipeline runs on it: `record` is an ``on_pass`` of `Instrumentation`.

    A run that changed nothing has the text of the stage before. The stage before all passes is called ``graph``.

    >>> from smelt.passes import Pipeline
    >>> from smelt.passes.driver import Instrumentation
    >>> module = text.parse("func.func private @f() { return }")
    >>> stages = Stages(module)
    >>> _ = Pipeline.parse("cse,fixpoint(inline)").run(module, Instrumentation(on_pass=stages.record))
    >>> stages.names, stages.unchanged
    (['graph', 'cse', 'inline#1'], {'cse'})
    >>> stages.text("inline") == stages.text("inline#1") == stages.text("inline#2") == "module {\\n}\\n"
    True
    """

    def __init__(self, module: Any):
        self._last = text.to_text(module)  # verified here, and from then on by those who change it
        self._located_last = text.to_text(module, locations=True, verified=True)
        self._texts = {"graph": self._last}
        self._located = {"graph": self._located_last}  #: with lines of the user
        self._runs: list[tuple[str, str, bool]] = []  #: pass, stage, whether it changed something

    def record(self, record: PassRecord, module: Any) -> bool:
        """Keep the text of `module` after a run of a pass; whether it differs from the one before."""
        found = text.to_text(module, verified=True)
        changed = found != self._last
        if changed:
            self._last = found
            self._located_last = text.to_text(module, locations=True, verified=True)
        self._texts[record.stage] = self._last
        self._located[record.stage] = self._located_last
        self._runs.append((record.name, record.stage, changed))
        return changed

    def text(self, name: str) -> str | None:
        """The module at a stage, by the name of a run or of a pass; None where there is none."""
        return self._texts.get(self._stage(name))

    def located(self, name: str) -> str | None:
        """`text` with locations."""
        return self._located.get(self._stage(name))

    def short(self, name: str, lines: bool = False) -> str | None:
        """The module at a stage in the short form (see `smelt.ir.short`); None where there is no such stage."""
        found = self.located(name)
        return None if found is None else to_short_text(text.parse(found, own=True), lines)

    def _stage(self, name: str) -> str:
        if name in self._texts:
            return name
        base, _, number = name.rpartition("#")
        if number.isdecimal() and base:
            numbered = [stage for found, stage, _ in self._runs if found == base]
            return numbered[int(number) - 1] if 1 <= int(number) <= len(numbered) else ""
        runs = [(changed, stage) for found, stage, changed in self._runs if found == name]
        return next((stage for changed, stage in reversed(runs) if changed), runs[0][1] if runs else "")

    @property
    def unchanged(self) -> set[str]:
        """The passes that changed nothing in any of their runs."""
        return {name for name, _, _ in self._runs} - {name for name, _, changed in self._runs if changed}

    @property
    def names(self) -> list[str]:
        """The stages in order: each run that changed something, and once each pass that never did."""
        never = self.unchanged
        return list(dict.fromkeys(["graph", *(n if n in never else s for n, s, c in self._runs if c or n in never)]))
