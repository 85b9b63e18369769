"""Reductions in chunks: what is planned for their partial results holds them, of every op and dtype."""

from __future__ import annotations

import pytest

from smelt.backends.accumulate import Accumulator
from smelt.ir.aval import Aval
from smelt.ir.builder import functions, read_function
from smelt.ir.dtypes import DType
from smelt.ir.kinds import ArgReduction, Reduction
from smelt.ir.op import Op, registry
from smelt.passes import Pipeline
from smelt.passes.kernels.analysis import is_row_reduction, split_chunks
from smelt.passes.kernels.plan_buffers import ALIGNMENT, scratch_bytes

from .modules import module_of

REDUCTIONS = [(op, d) for op in registry.values() if isinstance(op, (Reduction, ArgReduction)) for d in op.accepts]


@pytest.mark.parametrize("op, dtype", REDUCTIONS, ids=lambda x: x.name)
def test_partial_results_fit_their_scratch(op: Op, dtype: DType) -> None:
    attrs = {"axis": 1} if isinstance(op, ArgReduction) else {"axes": (1,)}
    module = module_of([Aval((2, 1 << 17), dtype)], lambda b, x: b.emit(op, [x], attrs)[0])
    Pipeline.parse("fuse,plan-buffers").run(module)
    found = functions(module)
    (call,) = read_function(found["main"]).ops
    body = read_function(found[call.attrs["callee"]])
    chunks = split_chunks(body)
    states = [Accumulator(o, ()).partial_avals(2 * chunks) for o in body.ops if is_row_reduction(o)]
    assert chunks > 1 and len(states) == 1
    assert sum(-(-a.nbytes // ALIGNMENT) * ALIGNMENT for a in states[0]) <= scratch_bytes(call, found)
