"""The `chains` schedule: chains of the same operands, by one step of a library, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from smelt.ir.builder import Function, OpView, Value, read_function

from ...kernel import GpuModule
from ..schedule import ScheduledKernel, Scratch, ScratchPlan
from .library_gradient import library_gradient


def build_chains(
    module: GpuModule, body: Function, scratch: ScratchPlan, found: Mapping[str, Any],
    build: Callable[[Function], list[ScheduledKernel]],
) -> list[ScheduledKernel]:  # fmt: skip
    """The steps that run a body of calls of fusions.

    Args:
        found: the functions of its module. build: makes the steps of one fusion.
    """
    calls = [(op, read_function(found[op.attrs["callee"]])) for op in body.ops]
    between: dict[Value, Scratch] = {}

    def built(ops: Collection[OpView]) -> list[ScheduledKernel]:
        steps = []
        for op, callee in calls:
            if op in ops:
                between.update((v, scratch.take(v.aval)) for v in op.results if v not in body.returns)
                places = [between.get(v, v) for v in (*op.operands, *op.results)]
                outer: dict[Any, Value | Scratch] = dict(zip((*callee.arguments, *callee.returns), places))
                steps += [replace(step, operands=[outer.get(x, x) for x in step.operands]) for step in build(callee)]
        return steps

    gradient = library_gradient(module, body, calls)
    if gradient is None:
        return built(body.ops)
    return gradient.build(module, body, scratch, between, built)
