"""Maps of so few elements that one vector holds them all: straight code, without a loop.

Of a loop LLVM asks how far it can be unrolled, turned into vectors, and its addresses be strength-reduced, and it makes
several versions: for ten elements that takes two or three times as long as all the rest. A program of many ops on small
values consists of such kernels::

    x = load vector<10xf32>
    store x * x
"""

from __future__ import annotations

import itertools

import numpy as np

from smelt.backends.lowering import Fused
from smelt.backends.plan import Plan
from smelt.ir import mlir
from smelt.ir.errors import KernelError
from smelt.ir.kinds import Elementwise, Movement
from smelt.ir.scalar import INDEX

from .kernel import KernelModule
from .loops import Split
from .schedules import ScheduledKernel, start_kernel
from .vectors import WIDEST_LOAD, Lane

#: A map has no more additions than this, each counted as often as its elements fill registers of so many bytes. Up to
#: here, and probably beyond, a loop takes longer to compile.
MOST_INSTRUCTIONS, REGISTER_BYTES = 256, 64


def build_tiny_map(module: KernelModule, name: str, plan: Plan) -> ScheduledKernel | None:
    """The kernel of a map, if its elements are few and can be computed side by side."""
    body, loops = plan.body, [(n, extent) for n, extent in plan.kept_variables if extent > 1]
    if not loops or module.checks is not None or not _suits(plan):
        return None
    k, outputs, lo, hi = start_kernel(module, name, body)
    zero = k.const(0, INDEX)
    places = np.array(list(itertools.product(*(range(extent) for _, extent in loops))), np.int64)

    def compute() -> None:
        for variable in loops:
            k.bind(Fused([variable]), zero)
        with k.along({n: Lane(places[:, i], 0) for i, (n, _) in enumerate(loops)}):
            stored = [k.to_storage(k.value(v, plan.places[v]), v.dtype) for v in body.returns]
            for raw, memory in zip(stored, outputs):
                k.emit("vector.store", [raw, memory.memref, zero], [])

    try:
        k.when(lo < hi, compute)
        k.emit("func.return", [], [])
        k.entry.owner.verify()
    except (KernelError, mlir.ir.MLIRError):  # some ops cannot be computed in vectors
        module.drop(name)
        return None
    return ScheduledKernel(name, body, Split(1), [*body.arguments, *body.returns])


def _suits(plan: Plan) -> bool:
    body = plan.body
    shape, size = body.returns[0].shape, body.returns[0].aval.size
    values = [*body.arguments, *(v for op in body.ops for v in op.results)]
    kinds = {v.dtype for v in values}
    if not 1 < size <= WIDEST_LOAD or any(v.shape != shape for v in body.returns):
        return False
    if not all(v.aval.size for v in values):
        return False
    if any(d.kind == "c" or (d.kind != "b" and d.size < 4) for d in kinds):
        return False
    if not all(isinstance(op.op, (Elementwise, Movement)) or op.op.kind == "constant" for op in body.ops):
        return False
    registers = -(-size * max(d.size for d in kinds) // REGISTER_BYTES)
    return registers * sum(max(1.0, op.op.flops) for op in body.ops) <= MOST_INSTRUCTIONS
