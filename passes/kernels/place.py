"""Place: what the device cannot do becomes functions that run on the CPU.

Before (with ``dtypes=f64``)::

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "smelt.convert"(%0) {dtype = f64} : (tensor<4xf32>) -> tensor<4xf64>
      %2 = "smelt.sqrt"(%1) : (tensor<4xf64>) -> tensor<4xf64>
      %3 = "smelt.convert"(%2) {dtype = f32} : (tensor<4xf64>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }

After::

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = func.call @host_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }

    func.func private @host_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {smelt.device = "cpu"}

An op is placed if an operand or result has one of `dtypes`, or if its kind is one of `kinds` and the
device's `library` does not take it; the pass does not know which device the rest runs on. Ops are put
in an order in which control changes as seldom as possible: all that is ready on the device, then all
that is ready on the CPU, which is one function, and so on. Values that cross are arguments and results
of these functions. Control flow is placed if a function that it runs has something to place: these
functions go along, marked in the same way. Without options nothing is placed.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import STRUCTURAL, Builder, Function, OpView, Value, function_named, functions, read_function
from smelt.ir.control import callees
from smelt.ir.dialect import context
from smelt.ir.errors import PipelineError

from ..call_graph import reached
from ..extract import copy_function, extract, inputs_of, named_location, outputs_of, reassemble, rename_calls
from ..registry import Pass, register_pass
from ..rewrite import is_placed, unfused_functions, unplaced_functions
from .analysis import users_of
from .options import dtype_called, words

#: By name what says whether a device's library computes an op, as devices have registered it.
libraries: dict[str, Callable[[OpView], bool]] = {}


@register_pass("place")
@dataclass(frozen=True)
class PlacePass(Pass):
    """Outline what the device cannot do into functions for the CPU.

    Attributes:
        dtypes: names of dtypes that the device lacks, with commas in between: ``f64`` or ``float64``.
        kinds: kinds of ops that it lacks, with commas in between: ``opaque,sort``.
        kernels: of these kinds, ops stay that bring a kernel of their own in one of these languages: ``msl``.
        library: of these kinds, ops stay that the library of this name takes, which the device has registered.
    """

    dtypes: str = ""
    kinds: str = ""
    kernels: str = ""
    library: str = ""

    def run(self, module: Any, statistics: Counter) -> None:
        lacking = {dtype_called(name, self.name) for name in words(self.dtypes)}
        kinds, languages = set(words(self.kinds)), words(self.kernels)
        if not lacking and not kinds:
            return
        if self.library not in ("", *libraries):
            known = ", ".join(libraries) or "none"
            raise PipelineError(f"{self.name}: there is no library {self.library!r}; libraries: {known}")
        takes = libraries.get(self.library, lambda op: False)

        def belongs(op: OpView) -> bool:
            if op.op.kind in STRUCTURAL:
                return False
            if any(v.dtype in lacking for v in (*op.operands, *op.results)):
                return True
            if op.op.kind in kinds:
                return not any(op.op.has_kernel(language, **op.attrs) for language in languages) and not takes(op)
            return op.op.kind == "control" and any(needs(name) for name in callees(op))

        @functools.cache
        def needs(name: str) -> bool:
            """Whether a function that control flow runs has something to place."""
            return any(belongs(op) for op in function_named(module, name).ops)

        statistics["functions placed"] += take_along(module, belongs)
        taken = functions(module)
        names = (name for n in itertools.count() if (name := f"host_{n}") not in taken)
        for operation in unplaced_functions(module):
            function = read_function(operation)
            if any(op.op.kind in ("function", "apply", "transform") for op in function.ops):
                continue
            moved = {op for op in function.ops if belongs(op)}
            if moved:
                statistics["functions placed"] += place(module, function, moved, names)
                statistics["ops placed"] += len(moved)


def take_along(module: Any, placed: Callable[[OpView], bool]) -> int:
    """Mark the functions that placed control flow runs, and those that they run; how many were not marked before.

    A function that other control flow runs too is left to that, and copied.
    """
    found = functions(module)
    bodies = [read_function(o) for o in unfused_functions(module)]
    control = [(body.name, op) for body in bodies for op in body.ops if op.op.kind == "control"]
    moved = [(name, op) for name, op in control if placed(op)]
    inside = reached([op for _, op in moved], found)
    left = reached([op for name, op in control if name not in inside and not placed(op)], found)
    shared = {name: copy_function(module, name, "_cpu") for name in inside if name in left}
    for name, op in moved:
        if name not in inside:
            rename_calls(op.mlir, shared)
    known, count = functions(module), 0
    for name in inside:
        operation = known[shared.get(name, name)]
        rename_calls(operation, shared)
        count += not is_placed(operation)
        _mark(operation)
    return count


def _mark(operation: Any) -> None:
    operation.attributes["smelt.device"] = mlir.ir.StringAttr.get("cpu", context())


def place(module: Any, function: Function, moved: set[OpView], names: Iterator[str]) -> int:
    """Outline the ops in `moved`; how many functions they became, which have the next of `names`."""
    count, users = 0, users_of(function)

    def call(b: Builder, ops: list[OpView], env: dict[Value, Value]) -> None:
        nonlocal count
        inputs, outputs = inputs_of(ops), outputs_of(ops, users)
        name, location = next(names), ops[0].location
        locations = [named_location(v, location) for v in inputs]
        _mark(
            extract(
                module, name, function, inputs, outputs, ops, location=location, argument_locations=locations, taken={}
            )
        )
        with b.at(location):
            results = b.call(name, [env[v] for v in inputs], [v.aval for v in outputs])
        env.update(zip(outputs, results))
        count += 1

    reassemble(module, function, schedule(function.ops, moved.__contains__), call)
    return count


def schedule(ops: list[OpView], placed: Callable[[OpView], bool]) -> Iterator[Any]:
    """Ops that stay, and lists of ops that are placed together, in an order with few lists."""
    missing: dict[OpView, int] = {}
    after: dict[OpView, list[OpView]] = {}
    last: OpView | None = None
    for op in ops:
        before = {v.owner for v in op.operands if v.owner is not None}
        if not op.op.pure:  # effects keep their order
            before |= {last} if last is not None else set()
            last = op
        missing[op] = len(before)
        for other in before:
            after.setdefault(other, []).append(op)
    ready: dict[bool, list[OpView]] = {False: [], True: []}
    for op in ops:
        if not missing[op]:
            ready[placed(op)].append(op)
    position = {op: i for i, op in enumerate(ops)}
    host = False
    while ready[False] or ready[True]:
        phase = []
        while ready[host]:
            op = ready[host].pop()
            phase.append(op)
            for reader in after.get(op, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    ready[placed(reader)].append(reader)
        phase.sort(key=position.__getitem__)
        if not host:
            yield from phase
        elif phase:
            yield phase
        host = not host
