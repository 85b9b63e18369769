"""Split-linear: @main in two, what does not depend on its last arguments, and what is linear in them.

Before (with ``primals=1 results=1``)::

    func.func @main(%x, %t) {
      %0 = "smelt.sin"(%x)
      %1 = "smelt.cos"(%x)
      %2 = "smelt.mul"(%t, %1)
      return %0, %2
    }

After::

    func.func @main(%x) { %0 = "smelt.sin"(%x)  %1 = "smelt.cos"(%x)  return %0, %1 }
    func.func @main.linear(%r, %t) { %0 = "smelt.mul"(%t, %r)  return %0 }

Whoever runs @main.linear more than once computes what it needs of @main once. Where one of the first `results`
depends on the last arguments (a loop with a rule of its own may compute both), the program stays whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import functions, read_function
from smelt.ir.dialect import context
from smelt.ir.errors import PipelineError

from ..call_graph import require_expanded
from ..dependence import split
from ..extract import extract, inputs_of
from ..registry import Pass, register_pass
from ..rewrite import argument_locations, has_body

#: The name of the linear part.
LINEAR = "main.linear"


@register_pass("split-linear")
@dataclass(frozen=True)
class SplitLinearPass(Pass):
    """Divide @main by dependence on its last arguments.

    Attributes:
        primals: how many arguments stay with @main; the default is all.
        results: how many results do.
    """

    primals: int = -1
    results: int = 0

    def run(self, module: Any, statistics: Counter) -> None:
        operation = functions(module).get("main")
        if operation is None or self.primals < 0 or not has_body(operation):
            return
        require_expanded(module, self.name)
        main = read_function(operation)
        if self.primals > len(main.arguments) or not 0 <= self.results <= len(main.returns):
            counts = f"{len(main.arguments)} arguments and {len(main.returns)} results"
            raise PipelineError(f"{self.name}: @main has {counts}, not {self.primals} and {self.results}")
        if LINEAR in functions(module):
            raise PipelineError(f"{self.name}: the module has a function @{LINEAR}, which it would make")
        n = self.primals
        linear, before, after = split(main.ops, main.arguments[n:])
        results, found = main.returns[: self.results], main.returns[self.results :]
        if any(v in linear for v in results):
            return
        residuals = [v for v in inputs_of(after, found) if v not in linear]
        locations = argument_locations(main)
        primal = extract(
            module, "main", main, main.arguments[:n], results + residuals, before, argument_locations=locations[:n]
        )
        taken = [*residuals, *main.arguments[n:]]
        tangent = extract(module, LINEAR, main, taken, found, after)
        main.mlir.erase()
        primal.attributes["sym_name"] = mlir.ir.StringAttr.get("main", context())
        for made in (primal, tangent):
            del made.attributes["sym_visibility"]
        statistics["programs divided"] += 1
