"""Stages: each run of a pass that changed the module is one, `fixpoint` included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import smelt
from smelt.backends.cpu import program as cpu
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
        if any(record.statistics.values()) and record.name != "fuse":
            assert changed or record.name == "canonicalize"
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
