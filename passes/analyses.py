"""The built-in analyses (users, liveness, alias, trip-counts, cost), and the pass that reports an analysis."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from smelt.ir.builder import Function, OpView, Value, functions, read_function
from smelt.ir.text import line_of

from .analysis import analysis_of, register_analysis
from .call_graph import callees_first
from .kernels.cost import least_bytes, operations, program_cost, runs
from .kernels.plan_buffers import is_view, origin
from .registry import Pass, register_pass
from .rewrite import has_body, is_planned


def _read(module: Any) -> list[Function]:
    return [read_function(f) for f in functions(module).values() if has_body(f)]


def _named(function: Function) -> dict[Value, str]:
    """Names of values, as MLIR prints them: arguments and results, numbered."""
    names = {v: f"%arg{i}" for i, v in enumerate(function.arguments)}
    names.update({v: f"%{i}" for i, v in enumerate(v for op in function.ops for v in op.results)})
    return names


class Report(dict[str, Any]):
    """What an analysis has found, by function; its text is a line for each thing found."""

    def __init__(self, found: dict[str, Any], lines: list[str]):
        super().__init__(found)
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n" if self.lines else ""


@register_analysis("users")
def users(module: Any) -> Report:
    """The ops that read each value: function → value → ops. Values without any are in it, with none."""
    found: dict[str, Any] = {}
    lines = []
    for function in _read(module):
        read: dict[Value, list[OpView]] = {v: [] for v in _named(function)}
        for op in function.ops:
            for v in dict.fromkeys(op.operands):
                read[v].append(op)
        found[function.name] = read
        for v, name in _named(function).items():
            said = ", ".join(op.name for op in read[v]) or "nobody"
            lines.append(f"@{function.name} {name}: {said}" + ", returned" * (v in function.returns))
    return Report(found, lines)


@dataclass(frozen=True)
class Liveness:
    """From which op to which a value is needed, by their numbers; -1: before the first; the number of ops: returned."""

    first: int
    last: int
    nbytes: int


@register_analysis("liveness")
def liveness(module: Any) -> Report:
    """Between which ops each value is needed: function → value → `Liveness`. The report says where most bytes are."""
    found: dict[str, Any] = {}
    lines = []
    for function in _read(module):
        first: dict[Value, int] = dict.fromkeys(function.arguments, -1)
        last: dict[Value, int] = {}
        for i, op in enumerate(function.ops):
            first.update(dict.fromkeys(op.results, i))
            last.update(dict.fromkeys(op.operands, i))
        last.update(dict.fromkeys(function.returns, len(function.ops)))
        sizes = {v: v.aval.nbytes if v.aval is not None else 0 for v in first}
        alive = {v: Liveness(first[v], last.get(v, first[v]), sizes[v]) for v in first}
        found[function.name] = alive
        changes: Counter[int] = Counter()
        for x in alive.values():
            changes[x.first] += x.nbytes
            changes[x.last + 1] -= x.nbytes
        total, peak, where = 0, 0, -1
        for i in sorted(changes):
            total += changes[i]
            if total > peak:
                peak, where = total, i
        at = function.ops[where].name if 0 <= where < len(function.ops) else "the beginning"
        lines.append(f"@{function.name}: at most {peak} bytes at {at}, in {len(function.ops)} ops")
    return Report(found, lines)


@register_analysis("alias")
def alias(module: Any) -> Report:
    """Values that are other values' memory under another shape: function → value → the value it lies in."""
    found: dict[str, Any] = {}
    lines = []
    for function in _read(module):
        names = _named(function)
        views = {v: origin(v) for op in function.ops if is_view(op) for v in op.results}
        found[function.name] = views
        lines += [f"@{function.name} {names[v]} is {names[o]}" for v, o in views.items()]
    return Report(found, lines)


@register_analysis("trip-counts")
def trip_counts(module: Any) -> Report:
    """How often each function runs in one run of ``@main``, of while loops by a guess: function → times."""
    times = runs(callees_first(module))
    return Report(dict(times), [f"@{name} runs {n} times" for name, n in times.items()])


@register_analysis("cost")
def cost(module: Any) -> Any:
    """Of a planned program, `program_cost`; before, operations and bytes of each function's ops: function → both."""
    main = functions(module).get("main")
    if main is not None and is_planned(main):
        return program_cost(module)
    found, lines = {}, []
    for function in _read(module):
        ops = [op for op in function.ops if all(v.aval is not None for v in (*op.operands, *op.results))]
        work, moved = sum(map(operations, ops)), sum(least_bytes((*op.operands, *op.results)) for op in ops)
        found[function.name] = (work, moved)
        lines.append(f"@{function.name}: {work:.0f} operations, {moved} bytes where each op is a kernel")
        dear = sorted(ops, key=operations, reverse=True)[:3]
        lines += [f"  {op.name}: {operations(op):.0f} operations{_at(op)}" for op in dear if operations(op)]
    return Report(found, lines)


def _at(op: OpView) -> str:
    line = line_of(op.location)
    return f", at {line}" if line else ""


@register_pass("analyze")
@dataclass(frozen=True)
class AnalyzePass(Pass):
    """Report what an analysis finds: users, liveness, alias, trip-counts, cost, or that of another package.

    Attributes:
        of: the name of the analysis.
    """

    only_looks: ClassVar[bool] = True

    of: str = "cost"

    def run(self, module: Any, statistics: Counter) -> str:
        """Raises PipelineError where there is no such analysis."""
        return str(analysis_of(module, self.of))
