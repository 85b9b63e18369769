"""Kernels of functions that are written here, and not by `fuse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, Value, fresh_name, new_function, read_function
from smelt.ir.dialect import context
from smelt.passes.extract import named_location

from ..kernel import GpuModule
from .maps import build_map
from .rows.build import build_row
from .schedule import ScheduledKernel, Scratch, ScratchPlan


def build_written(
    module: GpuModule, before: Any, name: str, read: Sequence[Value | Scratch], write: Sequence[Value | Scratch],
    compute: Callable[[Builder, list[Value]], Sequence[Value]], names: Sequence[Value] = (),
    scratch: ScratchPlan | None = None,
) -> list[ScheduledKernel]:  # fmt: skip
    """The kernels that compute elements one by one, or of a row each.

    Args:
        before: the function in front of which the new one stands.
        read, write: what the kernels read and write.
        compute: builds the values that are written, of those that are read.
        names: values that are called as what is read.
        scratch: for rows: each element that is written is made of reductions of a last axis. None: it is made of
            elements.
    """
    around, location = before.parent.opview, before.location
    named = [named_location(v, location) for v in names] or None
    operation, arguments, b = new_function(
        around, fresh_name(around, name), [x.aval for x in read], [x.aval for x in write], location, before=before,
        argument_locations=named,
    )  # fmt: skip
    b.return_(list(compute(b, arguments)))
    operation.attributes["smelt.fusion"] = mlir.ir.StringAttr.get("map" if scratch is None else "row", context())
    function = read_function(operation)
    outer: dict[Any, Value | Scratch] = dict(zip((*function.arguments, *function.returns), (*read, *write)))
    if scratch is None:
        steps = build_map(module, function)
    else:
        steps = build_row(module, function, [tuple(range(x.aval.ndim)) for x in write], scratch)
    return [replace(step, operands=[outer.get(x, x) for x in step.operands]) for step in steps]
