"""Stages: each run of a pass that changed the module is one, `fixpoint` included."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt.backends.cpu import program as cpu
from smelt.backends.device import registered
from smelt.ir import text
from smelt.passes import Pipeline
from smelt.passes.driver import Instrumentation, PassRecord
from smelt.passes.stages import Stages


def _square_grad(x: Any) -> Any:
    return smelt.grad(lambda y: (smelt.exp(y) * y).sum())(x)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "plain": lambda x: smelt.exp(x) + 0,
    "grad": _square_grad,
    "vmap": smelt.vmap(smelt.sin),
    "second": lambda x: smelt.grad(lambda y: _square_grad(y).sum())(x),
    "jvp of vmap": lambda x: smelt.jvp(smelt.vmap(smelt.sin), (x,), (x,)),
    "scan": lambda x: smelt.grad(lambda y: smelt.scan(lambda c, e: (c * e, c), y.sum(), y)[0])(x),
}


@pytest.mark.parametrize("device", registered)
@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_count_what_they_change(name: str, device: str) -> None:
    """A fixpoint goes on, and analyses are made anew, where a pass counts something: then, and only then."""
    module = smelt.compile(PROGRAMS[name]).trace(smelt.ones(3)).lower().module
    content = text.to_text(module)

    def compare(record: PassRecord, module: Any) -> None:
        nonlocal content
        before, content = content, text.to_text(module)
        if not record.item.only_looks:
            assert any(record.statistics.values()) == (content != before), (record.stage, record.statistics)

    for _ in range(2):  # the second time there is little to do
        Pipeline.parse(registered[device].pipeline).run(module, Instrumentation(on_pass=compare))


def test_functions_of_control_flow_are_planned_anew() -> None:
    """Plans of a module that has been changed since, perhaps by hand, are no plans of it."""
    module = smelt.compile(PROGRAMS["scan"]).trace(smelt.ones(3)).lower().module
    Pipeline.parse(f"{cpu.PIPELINE},fixpoint(plan-buffers)").run(module)
    planned = text.to_text(module)
    stale = re.sub(r"(?<=smelt.arena_bytes = )[1-9]\d*", "0", planned)
    stale = re.sub(r"smelt.offset = array<i64: \d+>", "smelt.offset = array<i64: 4096>", stale)
    assert stale != planned
    again = text.parse(stale)
    Pipeline.parse("plan-buffers").run(again)
    assert text.to_text(again) == planned


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_stage_is_what_one_run_changed(name: str) -> None:
    module = smelt.compile(PROGRAMS[name]).trace(smelt.ones(3)).lower().module
    stages, after, ran = Stages(module), [], []
    before = {"graph": text.to_text(module)}

    def watch(record: PassRecord, module: Any) -> None:
        changed = stages.record(record, module)
        after.append((record, changed, text.to_text(module)))

    def note(record: PassRecord, module: Any) -> None:
        ran.append(record.stage)
        before[record.stage] = text.to_text(module)

    records = Pipeline.parse(cpu.PIPELINE).run(module, Instrumentation(on_pass=watch, before_pass=note))
    assert [r.stage for r in records] == ran and len(set(ran)) == len(ran)
    for record, changed, content in after:
        assert stages.text(record.stage) == content
        assert changed == (content != before[record.stage])
        assert any(record.statistics.values()) == changed, record.stage
    listed = stages.names
    assert listed[0] == "graph" and [s for s in ran if s in listed] == [s for s in listed[1:] if s in ran]
    for one in {r.name for r in records}:
        runs = [(c, t) for r, c, t in after if r.name == one]
        last = [t for c, t in runs if c][-1:]
        assert stages.text(one) == (last or [runs[0][1]])[0]
        assert (one in stages.unchanged) == (not last)
        assert (one in listed) == (not last or len(runs) == 1)
    assert stages.text("cse#1") == stages.text("cse")
    for name in ("no-such-pass", "cse#0", "cse#2", "cse#", "#1", "graph#1", "cse#1#1"):
        assert stages.text(name) is None


def test_linearize_shows_what_linearize_did() -> None:
    compiled = smelt.compile(_square_grad).trace(smelt.ones(3)).lower().compile()
    names = ("inline", "linearize", "transpose", "cse")
    assert len({compiled.as_text(name) for name in names}) == len(names)
    assert "smelt.linear_transpose" in compiled.as_text("linearize")
    assert compiled.as_text("batch") == compiled.as_text("graph")
    assert "linearize#1" in compiled.stages and "batch" in compiled.stages and "inline#1" not in compiled.stages
    assert "func private" not in compiled.as_text("inline#2")
