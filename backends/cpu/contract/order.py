"""The loops of a contraction in the order in which its operands lie.

Windows of images come as loops over the result's axes: of a gradient of weights channel, tap, tap, of which the
channel, whose elements are neighbours, is outermost. Sums may be made in any order, and rows and columns too.
"""

from __future__ import annotations

from dataclasses import replace

from smelt.backends.contraction import Operand, Product
from smelt.backends.lowering import Fused
from smelt.ir.index import linearize


def in_memory_order(product: Product) -> Product:
    """The same contraction; of each of its loops the variable that moves by least in memory is innermost."""
    return replace(
        product,
        rows=_ordered(product.rows, _steps(product.lhs)),
        columns=_ordered(product.columns, _steps(product.rhs)),
        depth=_ordered(product.depth, _steps(_walked(product))),
    )


def _walked(product: Product) -> Operand:
    """The operand that the depth should run along: whose neighbours lie along it, or else the larger one."""

    def weight(operand: Operand) -> tuple[bool, int]:
        steps = _steps(operand)
        along = any(steps.get(name) == 1 for name, extent in product.depth.variables if extent > 1)
        return along, max((v.aval.nbytes for v, _ in operand.loads), default=0)

    return max((product.lhs, product.rhs), key=weight)


def _steps(operand: Operand) -> dict[str, int]:
    """How far the largest array that an operand is read from moves with each variable, where that is always as far."""
    if not operand.loads:
        return {}
    value, place = max(operand.loads, key=lambda load: load[0].aval.nbytes)
    offset = linearize(place, value.shape)
    if any(atom.kind == "dynamic" for index in place for atom in index.atoms()):
        return {}  # rows that are looked up lie anywhere
    nested = {
        a.args[0] for atom, _ in offset.terms if atom.kind != "var" for a in atom.args[0].atoms() if a.kind == "var"
    }
    return {a.args[0]: abs(step) for a, step in offset.terms if a.kind == "var" and a.args[0] not in nested}


def _ordered(loop: Fused, steps: dict[str, int]) -> Fused:
    """A loop with its variables in the order of their steps, if all of them are known."""
    if any(extent > 1 and name not in steps for name, extent in loop.variables):
        return loop
    return Fused(sorted(loop.variables, key=lambda v: -steps.get(v[0], 0)))
