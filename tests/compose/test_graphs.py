"""Random graphs of every op through kernels, in every way that these are scheduled and run.

`make test-long` runs many more.
"""

from __future__ import annotations

from collections import Counter

import pytest

from ..examples import examples
from .drawing import OPS, graph
from .kernels import WAYS, problems

#: Graphs in one program.
TOGETHER = 10


@pytest.mark.parametrize("batch", range(examples(1)))
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_kernels_agree_with_the_reference(way, batch):
    first = (WAYS.index(way) * 1000 + batch) * TOGETHER
    wrong = problems(way.graphs(range(first, first + TOGETHER)), way)
    assert not wrong, "\n\n".join(wrong)


def test_graphs_reach_what_they_should():
    """Every op, dtype, kind of shape, and NaN; a new op that no graph has is to be drawn in `drawing`."""
    ops: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for seed in range(600):
        drawn = graph(seed)
        for step in drawn.steps:
            ops.update([step.op.name] if step.op is not None else [])
            seen.update([step.aval.dtype.name, *(f"axis of {d}" for d in step.aval.shape if d < 2)])
            seen["large"] += step.aval.size > 30_000
            seen["odd axis"] += any(d > 8 and d % 2 for d in step.aval.shape)
            seen["NaN"] += step.known.special
            seen[step.known.grade.name] += 1
        seen["result beside a reduction"] += len(drawn.returns) > 1 and any(
            drawn.steps[i].op is not None and drawn.steps[i].op.kind == "reduction" for i in drawn.returns
        )
        seen["argument returned"] += any(drawn.steps[i].op is None for i in drawn.returns)
        moved = {i for i, s in enumerate(drawn.steps) if s.op is not None and s.op.kind == "movement"}
        seen["gather after movement"] += any(
            s.op is not None and s.op.kind == "gather" and s.operands[0] in moved for s in drawn.steps
        )
    assert not {op.name for op in OPS} - ops.keys()
    rare = {what: n for what, n in seen.items() if n < 10}
    assert not rare
    assert {"axis of 0", "axis of 1", "large", "odd axis", "NaN", "gather after movement"} <= seen.keys()
