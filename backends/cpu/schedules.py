"""What all schedules share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Function
from smelt.ir.scalar import INDEX, Scalar

from . import polling
from .kernel import CpuKernel, KernelModule, Memory, buffer_type
from .loops import Split


@dataclass
class ScheduledKernel:
    """One kernel function, and how its parallel dimension is dealt out."""

    function: str
    body: Function | None  #: None: the operands are values of @main
    split: Split
    operands: list[Any]  #: values of the body, or (offset in the scratch, aval)
    copies: bool = False  #: whether it copies what a scatter updates, and does nothing else
    in_place: Sequence[tuple[int, int]] = ()  #: arguments and results of the body that may be one memory
    numbers: Sequence[int] = ()  #: what the function is told besides; see `alike`


def start_kernel(
    module: KernelModule, name: str, body: Function, results: Sequence[Aval] | None = None
) -> tuple[CpuKernel, list[Memory], Scalar, Scalar]:
    """A kernel function (arguments, results, lo, hi) and its builder."""
    avals = [v.aval for v in body.arguments]
    results = [v.aval for v in body.returns] if results is None else results
    arrays = [buffer_type(a) for a in (*avals, *results)]
    elements = polling.elements_of(body)
    asks = module.can_ask and elements >= polling.LONG_KERNEL
    types = [*arrays, buffer_type(polling.TOLD)] if asks else arrays
    index = mlir.ir.IndexType.get(body.mlir.context)
    location = body.mlir.location
    entry = module.function(name, [*types, index, index], location, noalias=range(len(arrays)))
    k = CpuKernel(module, entry, location, body)
    *memrefs, lo, hi = entry.arguments
    if asks:
        module.asking.add(name)
        first = Scalar(k, lo, INDEX).eq(k.const(0, INDEX))  # the others that begin there have nothing to do
        k.breaks = polling.Breaks(module, k, elements, first, Memory(memrefs.pop(), polling.TOLD))
    for v, memref in zip(body.arguments, memrefs):
        k.memory[v] = Memory(memref, v.aval)
    outputs = [Memory(m, a) for m, a in zip(memrefs[len(avals) :], results)]
    return k, outputs, Scalar(k, lo, INDEX), Scalar(k, hi, INDEX)
