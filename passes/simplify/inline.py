"""Inline: calls are replaced by the bodies of their callees.

Before::

    %f = func.constant @f : (tensor<4xf32>) -> tensor<4xf32>
    %0 = func.call_indirect %f(%x) : (tensor<4xf32>) -> tensor<4xf32>

After (@f being private, it vanishes)::

    %0 = "smelt.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>

Kernels made by `fuse` are functions too, and are never inlined. Where a function would become very long, those that run
often in it are not inlined, either: functions each of which runs the next one twice would be written out twice as often
at each level. Their calls become loops of one step, which all passes know::

    %0 = scan @f(%x) {length = 1}

Transformations of other packages become the functions
that they state (see `stated`). Functions with rules of their own (see `custom_rules`) are inlined once no
transformation is left that could ask for the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, OpView, Value, functions, read_function, renew
from smelt.ir.control import SCAN, callees

from ..call_graph import callees_first
from ..extract import referred
from ..registry import Pass, register_pass
from ..rewrite import has_body, has_rules, is_fusion, is_private, mentions, rebuild, rules_of, transforms_left
from ..transform.stated import expand_stated

#: Ops of a function, all calls inlined, from which on some of them stay, those of functions of more ops than this that
#: are called more than once.
#: Of the gradient of a checkpointed block of four layers, run 24 times (32,000 ops), those that stay make a program
#: that compiles in three quarters of the time and two thirds of the memory, and takes a tenth longer at most.
MOST_OPS, MANY_OPS = 20_000, 250


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
        """Inline; returns the functions as they are then."""
        keep_rules = transforms_left(module)
        opened = {
            name
            for name, f in functions(module).items()
            if has_body(f) and not is_fusion(f) and not (keep_rules and has_rules(f))
        }
        order = callees_first(module)
        kept = _kept(order, opened)
        decoded = {f.name: f for f in order}
        written = _written(decoded, opened - kept)
        for function in order:
            if function.name in written and any(_callee(op, op.operands) in opened for op in function.ops):
                decoded[function.name] = _inline_into(module, function, opened, kept, decoded, statistics)
        return list(decoded.values())


def _written(decoded: Mapping[str, Function], inlined: Set[str]) -> set[str]:
    """The functions that something refers to when calls of those in `inlined` are gone: the others are not written out
    first to be written into these, level by level."""
    written = {name for name, f in decoded.items() if not is_private(f.mlir)}
    reached, pending = set(written), list(written)
    while pending:
        f = decoded[pending.pop()]
        found = set(rules_of(f.mlir).values())
        gone = set[str]()
        for op in f.ops:
            (gone if op.op.kind == "call" and op.attrs["callee"] in inlined else found).update(callees(op))
        found &= decoded.keys()
        written |= found
        fresh = (found | gone) - reached
        reached |= fresh
        pending += fresh
    return written


def _kept(order: Sequence[Function], opened: Set[str]) -> set[str]:
    """The functions in `opened` that are not inlined all the same; `order`: all, callees first."""
    called = [
        [name for op in f.ops if (name := _callee(op, op.operands)) is not None and name in opened] for f in order
    ]
    times = Counter(name for names in called for name in names)
    whole, left, kept = dict[str, int](), dict[str, int](), set[str]()
    for f, names in zip(order, called):
        whole[f.name] = len(f.ops) + sum([whole[name] for name in names])
        left[f.name] = len(f.ops) + sum([left[name] for name in names if name not in kept])
        if times[f.name] > 1 and left[f.name] > MANY_OPS and f.returns:
            kept.add(f.name)
    return kept if max(whole.values(), default=0) > MOST_OPS else set()


def _inline_into(
    module: Any, function: Function, opened: Collection[str], kept: Collection[str], decoded: Mapping[str, Function],
    statistics: Counter,
) -> Function:  # fmt: skip
    """Replace the calls of functions in `opened`, which are `decoded`, and those in them; the function that comes out.
    Of those in `kept` they become loops of one step."""

    def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
        calls: list[_Call] = []  # that are being replaced, each in the one before
        while True:
            name = _callee(op, operands)
            results: Sequence[Value] | None = None
            if name is None or name not in opened:
                results = b.clone(op, operands)
            else:
                arguments = operands if op.op.kind == "call" else operands[1:]
                if name in kept:
                    statistics["calls kept"] += 1
                    with b.at(op.location):
                        results = _once(b, name, arguments, [r.aval for r in op.results])
                else:
                    statistics["calls inlined"] += 1
                    calls.append(_Call(op, decoded[name], arguments))
            while calls:
                call = calls[-1]
                if results is not None:
                    call.env.update(zip(op.results, results))
                if (following := next(call.left, None)) is not None:
                    op, operands = following, [call.env[v] for v in following.operands]
                    break
                calls.pop()
                op, results = call.op, [call.env[v] for v in call.callee.returns]
            else:
                assert results is not None
                return results

    return drop_unused_values(rebuild(module, function, visit))


class _Call:
    """A call in whose place its callee is written: the ops that are left, and what stands for the callee's values."""

    def __init__(self, op: OpView, callee: Function, arguments: Sequence[Value]):
        self.op, self.callee, self.left = op, callee, iter(callee.ops)
        self.env = dict(zip(callee.arguments, arguments))


def _once(b: Builder, name: str, arguments: Sequence[Value], avals: Sequence[Aval]) -> list[Value]:
    """A loop of one step that runs a function."""
    attrs = {"body": name, "constants": len(arguments), "carries": 0, "length": 1, "reverse": False}
    stacked = b.control(SCAN, arguments, attrs, [a.with_shape((1, *a.shape)) for a in avals])
    return [b.reshape_to(x, a.shape) for x, a in zip(stacked, avals)]


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
        function.ops = [op for op in function.ops if op not in dropped]
        renew(function, ())
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
