"""Narrow: calls, branches and loops take and make only what is read. A part of `dce`.

Before, where nothing reads ``%ys`` and the second carry only feeds itself::

    %r, %s, %ys = scan @body(%k; %x, %z; %xs)     @body: (k, x, z, e) → (x·e, z·k, sin x)

After::

    %r = scan @body(; %x; %xs)                    @body: (x, e) → (x·e)

============================  ==========================================================================
result that nobody reads      it goes, with what is computed for it alone, across functions: results of
                              branches and calls, stacked results, carries that only feed such carries
operand that nobody reads     it goes; the condition of a while reads, and so does what has effects
operand given twice           it is given once; elements of xs that are all the same are a constant
result made twice             it is made once
carry that never changes      it is a constant; its result is its first value
result that is an operand     it is that operand: of a call and of all branches, the elements of the xs of
                              a scan stacked again. Constants, stacked, are broadcasts
============================  ==========================================================================

The number of steps stays, and so do effects. A loop of which nothing is read is dead, even one that would
not end. A function is narrowed as each op that runs it needs it: it becomes several where they differ.
Functions with attributes of smelt (rules, kernels, placed ones) keep their signatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.ir.attributes import attributes_of
from smelt.ir.builder import Builder, OpView, Value, functions, new_function
from smelt.ir.control import LOOPS, layout

from ..rewrite import argument_locations, is_planned, is_private, mentions, replay, rules_of
from .reads import ModuleReads, bits, run_names, runs_functions, test_of


def narrow(module: Any, statistics: Counter) -> None:
    """Narrow what the functions of a module run, as far as it goes.

    Raises:
        IRError: where a function runs itself.
    """
    while mentions(module, "func.call", *LOOPS):
        if any(map(is_planned, functions(module).values())):
            return
        if not _Narrowing(module, statistics).run():
            return


@dataclass(frozen=True)
class _Version:
    """A function with some of its arguments and results.

    Attributes:
        arguments: for each argument, its place among the new ones, which it may share; -1: it goes.
        results: those that stay, in order.
    """

    name: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass
class _Plan:
    """What becomes of a call, branch or loop.

    Attributes:
        reads: what has to be there for it.
        emitted: whether any of it stays.
        operands, results: those that stay, in order.
        repeated: elements of xs that are the same in each step, and become constants.
    forwarded, stacked, same: results that become an operand, copies of an operand, another result.
        run: what it runs, by the attribute that names it.
        counts: attributes that change.
    """

    reads: set[Value] = field(default_factory=set)
    emitted: bool = True
    operands: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    repeated: set[int] = field(default_factory=set)
    forwarded: dict[int, int] = field(default_factory=dict)
    stacked: dict[int, int] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)
    run: dict[str, tuple[_Version, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class _Study:
    """A version of a function: the ops that stay, and what becomes of those that run functions."""

    ops: list[OpView]
    plans: dict[OpView, _Plan]


class _Narrowing:
    def __init__(self, module: Any, statistics: Counter):
        self.module, self.statistics = module, statistics
        found = ModuleReads(module)
        self.functions, self.needs, self.keeps_signature = found.functions, found.needs, found.keeps_signature
        self.known = functions(module)
        self.studies: dict[_Version, _Study] = {}
        self.pending: list[_Version] = []
        self.requested: set[_Version] = set()
        self.visited: set[str] = set()

    def run(self) -> bool:
        """Whether anything changed."""
        for name, operation in self.known.items():
            if not is_private(operation):
                self.whole(name)
        while self.pending:
            version = self.pending.pop()
            self.studies[version] = self.study(version)
        changes = [
            (op, plan)
            for study in self.studies.values()
            for op, plan in study.plans.items()
            if not self.trivial(op, plan)
        ]
        if not changes:
            return False
        self.statistics["calls narrowed"] += len(changes)
        for op, plan in changes:
            self.statistics["operands dropped"] += len(op.operands) - len(plan.operands)
            self.statistics["results dropped"] += len(op.results) - len(plan.results)
        self.emit_all()
        return True

    # Finding out

    def request(self, version: _Version) -> _Version:
        if version.name in self.functions and version not in self.requested:
            self.requested.add(version)
            self.pending.append(version)
        return version

    def whole(self, name: str) -> _Version:
        """A function unchanged, and the rules that it names."""
        operation = self.known.get(name)
        if operation is None or name in self.visited:
            return self.whole_version(name)
        self.visited.add(name)
        for rule in rules_of(operation).values():
            self.whole(rule)
        return self.request(self.whole_version(name))

    def whole_version(self, name: str) -> _Version:
        if name not in self.functions:  # a declaration, or a rule that is missing
            return _Version(name, (), ())
        f = self.functions[name]
        return _Version(name, tuple(range(len(f.arguments))), tuple(range(len(f.returns))))

    def study(self, version: _Version) -> _Study:
        f = self.functions[version.name]
        live = {f.returns[i] for i in version.results}
        study = _Study([], {})
        for op in reversed(f.ops):
            used = [i for i, r in enumerate(op.results) if r in live]
            if runs_functions(op):
                plan = self.plan(op, used)
                if used or plan.emitted:
                    study.plans[op] = plan
                    study.ops.append(op)
                    live.update(plan.reads)
            elif used or not op.op.pure:
                study.ops.append(op)
                live.update(op.operands)
                if op.op.kind == "function":
                    self.whole(op.attrs["callee"])
        study.ops.reverse()
        return study

    def plan(self, op: OpView, used: Sequence[int]) -> _Plan:
        needs, names = self.needs[op], run_names(op)
        plan = _Plan(emitted=needs.has_effects)
        if any(self.keeps_signature(name) for group in names.values() for name in group):
            plan.emitted |= bool(used)
            if plan.emitted:
                everything = len(op.operands)
                plan.operands, plan.reads = list(range(everything)), set(op.operands)
                plan.results = list(range(len(op.results)))
                plan.run = {key: tuple(self.whole(name) for name in group) for key, group in names.items()}
            return plan
        same = self.equal_results(op)
        wanted: set[int] = set()
        for i in used:
            first = same.get(i, i)
            if first in needs.forwarded:
                plan.forwarded[i] = needs.forwarded[first]
            elif first in needs.stacked:
                plan.stacked[i] = needs.stacked[first]
            else:
                wanted.add(first)
                if first != i:
                    plan.same[i] = first
        plan.emitted |= bool(wanted)
        inside = 0
        if plan.emitted:
            for i in wanted:
                inside |= needs.results[i]
            inside |= needs.effects
            self.lay_out(op, plan, inside, sorted(wanted))
        for k in bits(inside):
            v = op.operands[k]
            plan.reads.add(_repeated(v) or v if k in plan.repeated else v)
        plan.reads.update(op.operands[k] for k in (*plan.forwarded.values(), *plan.stacked.values()))
        return plan

    def equal_results(self, op: OpView) -> dict[int, int]:
        """Results that equal one before them: that one."""
        first: dict[Any, int] = {}
        same = {}
        test = test_of(op)
        bodies = [self.functions[name] for key, group in run_names(op).items() if key != test for name in group]
        _, _, carries, _ = layout(op.op, op.attrs, len(op.operands))
        for i in range(len(op.results)):
            start = op.operands[carries[i]] if i < len(carries) else None
            j = first.setdefault((start, i < len(carries), *(f.returns[i] for f in bodies)), i)
            if j != i:
                same[i] = j
        return same

    def lay_out(self, op: OpView, plan: _Plan, inside: int, wanted: Sequence[int]) -> None:
        """Which operands and results stay, given the operands that are read inside."""
        needs = self.needs[op]
        choice, _, loop, xs = layout(op.op, op.attrs, len(op.operands))
        lead, n, m = len(choice), loop.start, len(loop)
        body = self.functions[op.attrs["body"]] if loop else None
        # Operands of one key become one: (0) constants and arguments, (1) carries, (2) elements of xs.
        place: dict[Any, int] = {}
        keys: dict[int, Any] = {}
        for k in bits(inside):
            v = op.operands[k]
            if k < lead:
                continue
            if body is not None and k in loop and k not in needs.constant:
                keys[k] = (1, v, body.returns[k - n])
            elif k in xs:
                if _repeated(v) is not None:
                    plan.repeated.add(k)
                keys[k] = (0, v, "element") if k in plan.repeated else (2, v)  # the whole array may be a constant too
            else:
                keys[k] = (0, v)
            place.setdefault(keys[k], k)
        order = sorted(place, key=lambda key: (key[0], place[key]))
        numbers = {key: i for i, key in enumerate(order)}
        arguments = tuple(
            numbers[keys[k]] if k in keys else -1 for k in range(lead, len(op.operands))
        )
        carries = [place[key] - n for key in order if key[0] == 1]
        plan.operands = [*range(lead), *(place[key] for key in order)]
        plan.results = [*carries, *(i for i in wanted if i >= m)]
        counts = {"constants": sum(key[0] == 0 for key in order), "carries": len(carries)}
        plan.counts = {key: count for key, count in counts.items() if key in op.attrs}
        for key, names in run_names(op).items():
            results = (0,) if key == test_of(op) else tuple(plan.results)
            plan.run[key] = tuple(self.request(_Version(name, arguments, results)) for name in names)

    def trivial(self, op: OpView, plan: _Plan) -> bool:
        return (
            plan.emitted
            and plan.operands == list(range(len(op.operands)))
            and plan.results == list(range(len(op.results)))
            and all(op.attrs[key] == count for key, count in plan.counts.items())
        )

    # Writing

    def emit_all(self) -> None:
        names = self.names()
        gone = {f.name: f.mlir for f in self.functions.values()}
        self.statistics["functions dropped"] += len(gone) - len({v.name for v in self.studies})
        for version, study in self.studies.items():
            f = self.functions[version.name]
            if self.is_whole(version) and len(study.ops) == len(f.ops):
                if all(self.trivial(op, plan) for op, plan in study.plans.items()):
                    del gone[version.name]
                    continue
            self.emit(version, study, names)
        for operation in gone.values():
            operation.erase()

    def is_whole(self, version: _Version) -> bool:
        return version == self.whole_version(version.name)

    def names(self) -> dict[_Version, str]:
        """A name for each version: the old one for the whole function, or else for the first."""
        names: dict[_Version, str] = {}
        taken: set[str] = set()
        for version in sorted(self.studies, key=lambda v: not self.is_whole(v)):
            name, i = version.name, 0
            while name in taken or (i and name in self.known):
                i += 1
                name = f"{version.name}_part{f'_{i}' if i > 1 else ''}"
            names[version] = name
            taken.add(name)
        return names

    def emit(self, version: _Version, study: _Study, names: dict[_Version, str]) -> None:
        """A new function in front of the old one."""
        f = self.functions[version.name]
        first: dict[int, int] = {}
        for i, place in enumerate(version.arguments):
            if place >= 0:
                first.setdefault(place, i)
        taken = [first[place] for place in sorted(first)]
        locations = argument_locations(f)
        operation, arguments, b = new_function(
            self.module, names[version], [f.arguments[i].aval for i in taken],
            [f.returns[i].aval for i in version.results], f.mlir.location, before=f.mlir,
            public=self.is_whole(version) and not is_private(f.mlir), argument_locations=[locations[i] for i in taken],
        )  # fmt: skip
        for key, attribute in attributes_of(f.mlir).items():
            if key not in ("sym_name", "sym_visibility", "function_type"):
                operation.attributes[key] = attribute
        env = {f.arguments[i]: arguments[place] for i, place in enumerate(version.arguments) if place >= 0}
        for op in study.ops:
            plan = study.plans.get(op)
            if plan is None or self.trivial(op, plan):
                replay(b, [op], env)
                continue
            with b.at(op.location):
                env.update(_emit_plan(b, op, plan, names, env))
        b.return_([env[f.returns[i]] for i in version.results])


def _repeated(v: Value) -> Value | None:
    """What the elements of an array along its first axis are a broadcast of, if they are all the same."""
    op = v.defined_by("broadcast")
    return op.operands[0] if op is not None and op.operands[0].ndim < v.ndim else None


def _emit_plan(
    b: Builder, op: OpView, plan: _Plan, names: dict[_Version, str], env: dict[Value, Value]
) -> dict[Value, Value]:
    """Emit what stays of an op: its results that are read."""
    results: dict[int, Value] = {}
    if plan.emitted:
        operands = []
        for k in plan.operands:
            v = op.operands[k]
            source = _repeated(v) if k in plan.repeated else None
            operands.append(env[v] if source is None else b.broadcast_to(env[source], v.shape[1:]))
        avals = [op.results[i].aval for i in plan.results]
        found: Sequence[Value]
        if op.op.kind == "call":
            found = b.call(names[plan.run["callee"][0]], operands, avals)
        else:
            attrs = {**op.attrs, **plan.counts}
            for key, versions in plan.run.items():
                run = tuple(names[version] for version in versions)
                attrs[key] = run if isinstance(op.attrs[key], tuple) else run[0]
            found = b.control(op.op, operands, attrs, avals)
        results.update(zip(plan.results, found))
    for i, j in plan.same.items():
        results[i] = results[j]
    for i, k in plan.forwarded.items():
        results[i] = env[op.operands[k]]
    for i, k in plan.stacked.items():
        results[i] = b.broadcast_to(env[op.operands[k]], op.results[i].aval.shape)
    return {op.results[i]: value for i, value in results.items()}
