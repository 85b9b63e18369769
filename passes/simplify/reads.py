"""What the results of functions, calls, branches and loops are computed from, across functions.

Sets of arguments and operands are the bits of integers. So one walk over each function, callees first,
finds what each of its results reads, and what its effects read, and a loop costs no more than the closure
over its carries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir.builder import Function, OpView, Value
from smelt.ir.control import ControlOp, callees
from smelt.ir.op import registry as ops

from ..call_graph import callees_first
from ..rewrite import mentions
from ..rules import function_rules


@dataclass
class Reads:
    """What a function reads.

    Attributes:
        results: for each result, the arguments that it is computed from.
        effects: the arguments on which its effects depend.
        has_effects: whether it runs an op that is not pure.
    """

    results: list[int]
    effects: int = 0
    has_effects: bool = False


@dataclass
class Needs:
    """What a call, branch or loop reads.

    Attributes:
        results: for each result, the operands that it is computed from. A loop's carry counts as read by
            its own result.
        effects, has_effects: as in `Reads`, of operands.
        forwarded: results that are an operand: result → operand.
        stacked: results that are copies of an operand, one for each step of a scan: result → operand.
        constant: carries that the body of a loop never changes, as operands.
    """

    results: list[int]
    effects: int = 0
    has_effects: bool = False
    forwarded: dict[int, int] = field(default_factory=dict)
    stacked: dict[int, int] = field(default_factory=dict)
    constant: set[int] = field(default_factory=set)


def bits(mask: int) -> Iterator[int]:
    """The positions of the ones in `mask`, ascending."""
    digits = f"{mask:b}"[::-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


def union(masks: Sequence[int], which: int) -> int:
    """All that `masks` say of the members of `which`."""
    found = 0
    for i in bits(which):
        found |= masks[i]
    return found


def unions(masks: Sequence[int], several: Iterable[int]) -> list[int]:
    """`union` of each; many results read the same."""
    known: dict[int, int] = {}
    return [known[which] if which in known else known.setdefault(which, union(masks, which)) for which in several]


def closed(masks: Sequence[int], first: int) -> list[int]:
    """What each of `masks` reads by way of others, too: the one numbered i is read as the member ``first + i``.

    Those that read each other read the same; they are found by Tarjan's walk, so each is looked at once.

    >>> closed([0b0010, 0b0001, 0b1001], 0)
    [3, 3, 11]
    """
    count = len(masks)
    found, own = list(masks), ((1 << count) - 1) << first
    number, low = dict[int, int](), [0] * count
    path: list[int] = []  #: those whose group is not complete
    done = [False] * count
    for root in range(count):
        stack = [] if root in number else [(root, bits((masks[root] & own) >> first))]
        while stack:
            i, following = stack[-1]
            if i not in number:
                number[i] = low[i] = len(number)
                path.append(i)
            for j in following:
                if j not in number:
                    stack.append((j, bits((masks[j] & own) >> first)))
                    break
                if not done[j]:
                    low[i] = min(low[i], number[j])
            else:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    low[above] = min(low[above], low[i])
                if low[i] == number[i]:
                    group, everything = [path.pop()], masks[i]
                    while group[-1] != i:
                        everything |= masks[group[-1]]
                        group.append(path.pop())
                    everything |= union(found, (everything & own) >> first)
                    for j in group:
                        found[j], done[j] = everything, True
    return found


def runs_functions(op: OpView) -> bool:
    """Whether an op is a call, a branch or a loop."""
    return op.op.kind in ("call", "control")


class ModuleReads:
    """`Reads` of all functions of a module that have a body, and `Needs` of their ops.

    Raises:
        IRError: where a function runs itself.
    """

    def __init__(self, module: Any):
        self.functions: dict[str, Function] = {}
        self.reads: dict[str, Reads] = {}
        self.needs: dict[OpView, Needs] = {}
        for function in callees_first(module):
            self.functions[function.name] = function
            self.reads[function.name] = self._function(function)

    def keeps_signature(self, name: str) -> bool:
        """Whether a function is known to others by its arguments and results: a declaration, a kernel, a rule."""
        if name not in self.functions:
            return True
        return any(key.startswith("smelt.") for key in self.functions[name].mlir.attributes)

    def _function(self, function: Function) -> Reads:
        mask: dict[Value, int] = {a: 1 << i for i, a in enumerate(function.arguments)}
        found = Reads([])
        for op in function.ops:
            operands = [mask[v] for v in op.operands]
            if runs_functions(op):
                needs = self.needs[op] = self._op(op)
                mask.update(zip(op.results, unions(operands, needs.results)))
                if needs.has_effects:
                    found.effects |= union(operands, needs.effects)
                    found.has_effects = True
                continue
            everything = 0
            for part in operands:
                everything |= part
            for value in op.results:
                mask[value] = everything
            if not op.op.pure:
                found.effects |= everything
                found.has_effects = True
        found.results = [mask[v] for v in function.returns]
        return found

    def _op(self, op: OpView) -> Needs:
        if any(self.keeps_signature(name) for name in callees(op)):
            effects = any(self.reads[name].has_effects for name in callees(op) if name in self.reads)
            everything = (1 << len(op.operands)) - 1
            return Needs([everything] * len(op.results), everything, effects)
        return function_rules(op.name).needs(self, op)

    def one_of(self, names: Sequence[str], shift: int) -> Needs:
        """What running one of several functions reads; `shift` operands come before the arguments and are read by all
        results."""
        branches = [self.functions[name] for name in dict.fromkeys(names)]
        reads = [self.reads[f.name] for f in branches]
        index = (1 << shift) - 1
        needs = Needs([], has_effects=any(r.has_effects for r in reads))
        for i in range(len(branches[0].returns)):
            places = {argument_index(f.returns[i]) for f in branches}
            (place,) = places if len(places) == 1 else (None,)
            if place is not None:
                needs.forwarded[i] = place + shift
                needs.results.append(1 << (place + shift))
            else:
                read = 0
                for r in reads:
                    read |= r.results[i]
                needs.results.append(read << shift | index)
        for r in reads:
            needs.effects |= r.effects << shift | (index if r.has_effects else 0)
        return needs


def argument_index(value: Value) -> int | None:
    """Which argument of its function a value is; None for what an op makes."""
    return value.index if value.owner is None else None


def functions_with_effects(module: Any) -> set[str]:
    """The functions that run an op that is not pure, themselves or in what they run."""
    impure = [f"smelt.{name}" for name, op in ops.items() if not op.pure]
    if not impure or not mentions(module, *impure):
        return set()
    return {name for name, reads in ModuleReads(module).reads.items() if reads.has_effects}


def is_pure(op: OpView, with_effects: Collection[str]) -> bool:
    """Whether an op has no effects, given the functions that have some."""
    return op.op.pure and not (with_effects and runs_functions(op) and any(f in with_effects for f in callees(op)))


def run_names(op: OpView) -> dict[str, tuple[str, ...]]:
    """The functions that an op runs, by the attribute that names them."""
    if op.op.kind == "call":
        return {"callee": (op.attrs["callee"],)}
    names = {}
    for key in op.rules(ControlOp).callees:
        value = op.attrs[key]
        names[key] = value if isinstance(value, tuple) else (value,)
    return names


def test_of(op: OpView) -> str:
    """The attribute of a loop that names the function of its condition; empty where there is none."""
    return op.op.test if isinstance(op.op, ControlOp) else ""
