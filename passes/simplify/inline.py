"""Inline: calls are replaced by the bodies of their callees.

Before::

    %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
    %0 = func.call_indirect %f(%x) : (tensor<4xf32>) -> tensor<4xf32>

After (@f being private, it vanishes)::

    %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>

Kernels made by `fuse` are functions too, and are never inlined. Transformations of other packages become the functions
that they state (see `stated`). Functions with rules of their own (see `custom_rules`) are inlined once no
transformation is left that could ask for the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.ir.builder import Builder, Function, OpView, Value, functions, read_function
from smelt.ir.control import callees

from ..call_graph import callees_first
from ..extract import referred
from ..registry import Pass, register_pass
from ..rewrite import has_body, has_rules, is_fusion, is_private, mentions, rebuild, replay, rules_of, transforms_left
from ..transform.stated import expand_stated


@register_pass("inline")
@dataclass(frozen=True)
class InlinePass(Pass):
    """Replace calls by the bodies of their callees, and drop private functions nobody uses."""

    def run(self, module: Any, statistics: Counter) -> None:
        decoded = None
        if expanded := expand_stated(module):
            statistics["transformations expanded"] += expanded
        if mentions(module, "func.call", "func.call_indirect"):
            decoded = self._inline(module, statistics)
        drop_unused(module, statistics, decoded)

    def _inline(self, module: Any, statistics: Counter) -> list[Function]:
        """Inline; the functions as they are now."""
        keep_rules = transforms_left(module)
        opened = {
            name
            for name, f in functions(module).items()
            if has_body(f) and not is_fusion(f) and not (keep_rules and has_rules(f))
        }
        decoded: dict[str, Function] = {}
        for function in callees_first(module):
            if not is_fusion(function.mlir) and any(_callee(op, op.operands) in opened for op in function.ops):
                function = _inline_into(module, function, opened, decoded, statistics)
            decoded[function.name] = function
        return list(decoded.values())


def _inline_into(
    module: Any, function: Function, opened: Collection[str], decoded: Mapping[str, Function], statistics: Counter
) -> Function:
    """Replace the calls of functions in `opened`, which are `decoded`; the function that comes out."""

    def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
        callee_name = _callee(op, operands)
        if callee_name is None or callee_name not in opened:
            return b.clone(op, operands)
        callee = decoded[callee_name]
        arguments = operands if op.op.kind == "call" else operands[1:]
        env = dict(zip(callee.arguments, arguments))
        replay(b, callee.ops, env)
        statistics["calls inlined"] += 1
        return [env[v] for v in callee.returns]

    return drop_unused_values(rebuild(module, function, visit))


def _callee(op: OpView, operands: Sequence[Value]) -> str | None:
    if op.op.kind == "call":
        return op.attrs["callee"]
    if op.op.kind == "apply":
        maker = operands[0].owner
        return maker.attrs["callee"] if maker is not None and maker.op.kind == "function" else None
    return None


def drop_unused_values(operation: Any) -> Function:
    """Function constants and transformations that were only called need not stay; the function without them."""
    function, dropped = read_function(operation), set[OpView]()
    for op in reversed(function.ops):
        if op.op.kind in ("function", "transform") and not list(op.results[0].mlir.uses):
            op.mlir.erase()
            dropped.add(op)
    if dropped:
        function.ops[:] = [op for op in function.ops if op not in dropped]
    return function


def drop_unused(module: Any, statistics: Counter, decoded: Sequence[Function] | None = None) -> None:
    """Erase private functions that nothing refers to. `decoded`: all functions that have a body, if known."""
    found = functions(module)
    if not any(is_private(f) for f in found.values()):
        return
    if decoded is None:
        uses = {name: referred(operation) for name, operation in found.items()}
    else:
        uses = {f.name: {name for op in f.ops for name in callees(op)} for f in decoded}
    for name, operation in found.items():
        uses.setdefault(name, set()).update(rules_of(operation).values())
    live = [name for name, f in found.items() if not is_private(f)]
    reached = set(live)
    while live:
        for name in uses.get(live.pop(), ()):
            if name not in reached:
                reached.add(name)
                live.append(name)
    for name, operation in found.items():
        if name not in reached:
            operation.erase()
            statistics["functions dropped"] += 1
