"""Loops: a scan whose elements have nothing to do with each other becomes one kernel, before `fuse`.

Before::

    %0:2 = scf.for ... { func.call @body ... } {smelt.carries = 1 : i64}      // @body: elementwise ops

After::

    %0:2 = func.call @loop(%first, %xs) : (tensor<8xf32>, tensor<100x8xf32>) -> (tensor<8xf32>, tensor<100x8xf32>)

    func.func private @loop(...) attributes {smelt.fusion = "loop"}           // the scan
    func.func private @body(...) attributes {smelt.fusion = "loop body"}

Each thread runs all steps for its elements and keeps their carries in registers: instead of a launch a step there is
one, and carries are in no memory. A body may read a carry where it computes its next value, constants and the elements
of the xs anywhere; carries of one element, such as counters, every thread computes for itself. Loops whose length is
not known, or large, stay: a kernel cannot be interrupted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import Builder, Function, OpView, Value, function_operation, functions, read_function
from smelt.ir.control import SCAN, callees
from smelt.ir.dialect import context
from smelt.ir.index import Index, linearize, variables
from smelt.ir.text import line_of

from .. import remarks
from ..call_graph import require_expanded
from ..extract import copy_function, extract, name_of, named_location, outputs_of, reassemble, rename_calls
from ..registry import Pass, register_pass
from ..rewrite import is_fusion, unplaced_functions
from .analysis import Coordinates, collect_reads, is_pointwise, users_of

#: Registers of a thread for carries, in bytes.
MOST_CARRIED = 128
#: Additions that a thread may make one after the other: about a tenth of a second.
MOST_WORK = 1 << 25


@register_pass("loops")
@dataclass(frozen=True)
class LoopsPass(Pass):
    """Outline scans of elementwise ops as kernels.

    Attributes:
        max_buffers: bounds the arrays that a kernel reads and writes; 0: any number.
        max_ops: bounds the ops of a step.
    """

    max_buffers: int = 0
    max_ops: int = 512

    def run(self, module: Any, statistics: Counter) -> None:
        """Raises PipelineError where a transformation is left: it could not look into kernels."""
        require_expanded(module, self.name)
        found = functions(module)
        bodies = [read_function(f) for f in unplaced_functions(module)]
        loops = [(f, [op for op in f.ops if self._is_one_kernel(op, found)]) for f in bodies]
        inside = {op for _, ops in loops for op in ops}
        others = {name for f in bodies for op in f.ops if op not in inside for name in callees(op)}
        text, made = mlir.ir.StringAttr.get("loop body", context()), dict[str, str]()
        taken = dict.fromkeys(found, 1)
        for function, ops in loops:
            for op in ops:
                name = op.attrs["body"]
                if name not in made:  # somebody else may need it as it is
                    made[name] = copy_function(module, name, "_loop") if name in others else name
                    taken[made[name]] = 1
                    function_operation(module, made[name]).attributes["smelt.fusion"] = text
            if ops:
                _outline(module, function, ops, made, taken)
                statistics["kernels"] += len(ops)

    def _is_one_kernel(self, op: OpView, found: dict[str, Any]) -> bool:
        if op.op is not SCAN or is_fusion(found[op.attrs["body"]]):
            return False
        body = read_function(found[op.attrs["body"]])
        buffers = len(op.operands) + len(op.results)
        if len(body.ops) > self.max_ops or (self.max_buffers and buffers > self.max_buffers):
            return False
        reason = why_not(op, body)
        if remarks.wanted():
            said = f"a scan of {op.attrs['length']} steps is {'no' if reason else 'one'} kernel"
            remarks.add(remarks.Remark("loops", "missed" if reason else "passed", "loop",
                                       f"{said}: {reason}" if reason else said, line_of(op.location)))  # fmt: skip
        return not reason


@dataclass(frozen=True)
class LoopPlan:
    """Where the body of a loop that is one kernel stands.

    Attributes:
        loops: a variable c0, c1, ... for each axis of what the threads share, of which none has one element.
        places: where each returned value is computed: there, or at its only element.
    """

    loops: Coordinates
    places: tuple[Coordinates, ...]


def loop_plan(op: OpView, body: Function) -> LoopPlan | str:
    """How the elements of a scan are computed each by itself; or why they are not."""
    n, m = op.attrs["constants"], op.attrs["carries"]
    if not op.attrs["length"]:
        return "it has no steps"
    for inner in body.ops:
        if not is_pointwise(inner) or len(inner.results) != 1:
            return f"smelt.{inner.name} does not compute elements one by one"
    if op.attrs["length"] * sum(1 + inner.op.flops for inner in body.ops) > MOST_WORK:
        return "it has too many steps for a kernel, which cannot be interrupted"
    carries = body.arguments[n : n + m]
    if sum(v.dtype.size for v in carries) > MOST_CARRIED:
        return "its carries have too many bytes"
    shape = max((v.shape for v in body.returns), key=math.prod, default=())
    extents = [n for n in shape if n != 1]
    if any([n for n in v.shape if n != 1] not in ([], extents) for v in body.returns):
        return "its values have several shapes"
    if not math.prod(shape):
        return "it has nothing to compute"
    loops = variables(extents, "c")
    places = tuple(_place(v.shape, loops) for v in body.returns)
    reads = collect_reads(body.ops, zip(body.returns, places))
    for v, place in zip(carries, places):
        for at in reads.get(v, ()):
            if linearize(at, v.shape) != linearize(place, v.shape):
                return f"a carry {v.aval} is read elsewhere than where it is computed"
    return LoopPlan(loops, places)


def _place(shape: Sequence[int], loops: Coordinates) -> Coordinates:
    """Where the loops stand in an array of their extents and axes of one element; or its only element."""
    if math.prod(shape) == 1:
        return (Index(0),) * len(shape)
    rest = iter(loops)
    return tuple(next(rest) if n != 1 else Index(0) for n in shape)


def why_not(op: OpView, body: Function) -> str:
    """Why a scan cannot be one kernel; nothing where it can."""
    plan = loop_plan(op, body)
    return plan if isinstance(plan, str) else ""


def _outline(
    module: Any, function: Function, ops: Sequence[OpView], made: dict[str, str], taken: dict[str, int]
) -> None:
    """Replace `function` by one that calls a new function for each of `ops`, whose bodies are those in `made`. `taken`:
    the names of all functions (see `fresh_name`)."""
    users = users_of(function)

    def call(b: Builder, one: list[OpView], env: dict[Value, Value]) -> None:
        (op,) = one
        inputs, outputs = list(dict.fromkeys(op.operands)), outputs_of(one, users)
        locations = [named_location(v, op.location) for v in inputs]
        operation = extract(
            module, "fused_loop", function, inputs, outputs, one, location=op.location, argument_locations=locations,
            taken=taken,
        )  # fmt: skip
        rename_calls(operation, made)
        operation.attributes["smelt.fusion"] = mlir.ir.StringAttr.get("loop", context())
        with b.at(op.location):
            results = b.call(name_of(operation), [env[v] for v in inputs], [v.aval for v in outputs])
        env.update(zip(outputs, results))

    outlined = set(ops)
    # A loop of which nothing is wanted goes.
    items = [
        [op] if op in outlined else op for op in function.ops
        if op not in outlined or outputs_of([op], users)
    ]  # fmt: skip
    reassemble(module, function, items, call)
