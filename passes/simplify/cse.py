"""Cse: equal ops on equal operands are computed once.

Before::

    %0 = "smelt.exp"(%x)
    %1 = "smelt.exp"(%x)
    %2 = "smelt.add"(%0, %1)

After::

    %0 = "smelt.exp"(%x)
    %2 = "smelt.add"(%0, %0)

Operands of commutative ops are compared in either order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir.builder import OpView, Value, functions, read_function, renew

from ..registry import Pass, register_pass
from ..rewrite import erase_whole, has_body
from .reads import functions_with_effects, is_pure


@register_pass("cse")
@dataclass(frozen=True)
class CsePass(Pass):
    """Merge equal pure ops within each function."""

    def run(self, module: Any, statistics: Counter) -> None:
        with_effects = functions_with_effects(module)
        for operation in functions(module).values():
            if has_body(operation):
                statistics["ops merged"] += merge_equal(operation, with_effects)


def merge_equal(operation: Any, with_effects: Collection[str] = ()) -> int:
    """Merge equal ops of one function; how many. `with_effects`: the functions that have some."""
    function = read_function(operation)
    leader: dict[Value, Value] = {}
    seen: dict[Hashable, OpView] = {}
    duplicates = []
    for op in function.ops:
        if not is_pure(op, with_effects) or op.op.kind in ("call", "apply"):
            continue
        first = seen.setdefault(key_of(op, leader), op)
        if first is not op:
            for mine, theirs in zip(op.results, first.results):
                leader[mine] = theirs
                mine.mlir.replace_all_uses_with(theirs.mlir)
            duplicates.append(op)
    for op in reversed(duplicates):
        erase_whole(op.mlir) if op.op.kind == "control" or op.op.mixed else op.mlir.erase()
    if duplicates:
        gone = set(duplicates)
        function.ops = [op for op in function.ops if op not in gone]
        for op in function.ops:
            op.operands = tuple([leader.get(v, v) for v in op.operands])
        function.returns = [leader.get(v, v) for v in function.returns]
        renew(function, ())
    return len(duplicates)


def key_of(op: OpView, leader: dict[Value, Value]) -> Hashable:
    """Equal for ops that compute the same."""
    operands = [id(leader.get(v, v)) for v in op.operands]
    if op.op.commutative:
        operands.sort()
    types = tuple(str(r.mlir.type) for r in op.results) if op.op.kind == "function" else ()
    return op.name, tuple(operands), attributes_key(op), types


def attributes_key(op: OpView) -> Hashable:
    """Equal for ops with the same attributes."""
    return tuple((k, hashable(v)) for k, v in sorted(op.attrs.items()))


def hashable(value: Any) -> Hashable:
    """An attribute as a key: equal for what is the same to the last bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (float, complex)):
        return repr(value)  # tells 0.0 from -0.0, and a NaN equals itself
    if isinstance(value, (tuple, list)):
        return tuple(map(hashable, value))
    return type(value).__name__, value
