"""Two passes, one that changes programs and one that only looks, and the analysis that it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from smelt.ir.builder import Builder, OpView, Value, functions, read_function
from smelt.passes import Pass, register_pass
from smelt.passes.analysis import analysis_of, register_analysis
from smelt.passes.rewrite import is_fusion, rebuild
from smelt.passes.rewrites import number_of


@register_pass("workbench-reciprocal")
@dataclass(frozen=True)
class ReciprocalPass(Pass):
    """x / c → x · (1/c): a multiplication where there was a division.

    Attributes:
        functions: to look at; none: all.
        smallest: divisors that are smaller than this stay, for their reciprocals may overflow.
    """

    functions: tuple[str, ...] = ()
    smallest: float = 1e-30

    def run(self, module: Any, statistics: Counter) -> None:
        for name, operation in list(functions(module).items()):
            if is_fusion(operation) or (self.functions and name not in self.functions):
                continue
            function = read_function(operation)

            def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
                divisor = number_of(operands[1]) if op.name == "div" else None
                if not isinstance(divisor, (int, float)) or not operands[0].dtype.is_float:
                    return b.clone(op, operands)
                if not self.smallest <= abs(divisor) < float("inf"):
                    return b.clone(op, operands)
                statistics["divisions replaced"] += 1
                return [operands[0] * (1 / divisor)]

            rebuild(module, function, visit)


@register_analysis("workbench-kinds")
def kinds(module: Any) -> Counter[str]:
    """How many ops of each kind the functions of a module have, but for the bodies of kernels."""
    found = [read_function(f) for f in functions(module).values() if not is_fusion(f)]
    return Counter(op.op.kind for function in found for op in function.ops)


@register_pass("workbench-census")
@dataclass(frozen=True)
class CensusPass(Pass):
    """Reports how many ops of each kind there are; changes nothing."""

    only_looks: ClassVar[bool] = True

    def run(self, module: Any, statistics: Counter) -> str:
        counted: Counter[str] = analysis_of(module, "workbench-kinds")
        return "".join(f"{n} {kind}\n" for kind, n in sorted(counted.items()))
