"""The call graph of a module: its functions in topological order, and the check that it has no cycles.

Smelt functions do not recurse. A function may not run itself, directly or through others, by calls,
control flow or transformations, and a rule may not transform the function whose rule it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import STRUCTURAL, Function, OpView, functions, is_mixed, read_function
from smelt.ir.control import callees
from smelt.ir.errors import IRError, PipelineError
from smelt.ir.op import registry

from .rewrite import has_body, has_rules, rules_of

#: The passes that expand every transformation, as a pipeline.
EXPANDING = ("inline", "batch", "jvp", "linearize", "transpose")
EXPAND = f"fixpoint({','.join(EXPANDING)})"


def reached(ops: Sequence[OpView], found: Mapping[str, Any]) -> dict[str, None]:
    """The functions that ops refer to, and those that these refer to, in `found`."""
    names: dict[str, None] = {}
    pending = [name for op in ops for name in callees(op)]
    while pending:
        name = pending.pop()
        if name not in names:
            names[name] = None
            pending += [other for op in read_function(found[name]).ops for other in callees(op)]
    return names


def callees_first(module: Any) -> list[Function]:
    """All functions with a body, decoded, each after those that it refers to.

    Raises:
        IRError: where a function runs itself, with the cycle.
    """
    decoded = {name: read_function(f) for name, f in functions(module).items() if has_body(f)}
    order: list[Function] = []
    pending = {
        name: iter([callee for op in f.ops for callee in callees(op) if callee in decoded])
        for name, f in decoded.items()
    }
    done: set[str] = set()
    for root in decoded:
        path = {} if root in done else {root: None}
        while path:
            name = next(reversed(path))
            callee = next((c for c in pending[name] if c not in done), None)
            if callee is None:
                del path[name]
                done.add(name)
                order.append(decoded[name])
            elif callee in path:
                names = list(path)
                raise _cycle([*names[names.index(callee) :], callee], decoded)
            else:
                path[callee] = None
    return order


def _cycle(names: Sequence[str], decoded: Mapping[str, Function]) -> IRError:
    """The error about a cycle of functions: each refers to the next, and the last is the first."""
    first = names[0]
    op = next(op for op in decoded[first].ops if names[1] in callees(op))
    how = "transforms" if op.op.kind == "function" else "runs" if op.op.kind == "control" else "calls"
    path = f" by {' → '.join(f'@{name}' for name in names)}" if len(names) > 2 else ""
    where = f"in @{first} at {op.location}"
    return IRError(f"@{first} {how} itself{path}: smelt functions do not recurse, write a loop; {where}")


def check_rules(module: Any, decoded: Sequence[Function]) -> None:
    """Raise IRError where a rule transforms the function that it is a rule of, which never ends."""
    known = functions(module)
    edges = {name: list(rules_of(f).values()) for name, f in known.items()}
    if not any(edges.values()):
        return
    transformed = []
    for f in decoded:
        edges[f.name] += [callee for op in f.ops for callee in callees(op)]
        transformed += [(f.name, op.attrs["callee"]) for op in f.ops if op.op.kind == "function"]
    for name, callee in transformed:
        path = _path(edges, callee, name)
        if path is not None:
            names = " → ".join(f"@{n}" for n in [name, *path])
            raise IRError(
                f"@{name} transforms @{callee}, for which it is needed itself: {names}; a rule must not transform the "
                f"function that it is a rule of: move what both compute into a function without rules"
            )


def _path(edges: Mapping[str, Sequence[str]], start: str, end: str) -> list[str] | None:
    """A way from `start` to `end` along the edges."""
    reached: dict[str, str | None] = {start: None}
    pending = [start]
    while pending:
        name = pending.pop(0)
        if name == end:
            path = [name]
            while (before := reached[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        for other in edges.get(name, ()):
            if other not in reached:
                reached[other] = name
                pending.append(other)
    return None


def ground_functions(module: Any) -> dict[str, Function]:
    """The functions that consist of plain ops only, no calls and no transformations, and of control flow
    over such functions and calls of such functions that have rules of their own, which then are ground too.

    Raises:
        IRError: where a function runs itself, or a rule transforms the function that it is a rule of.
    """
    known = functions(module)
    decoded = callees_first(module)
    check_rules(module, decoded)
    bodies = {f.name for f in decoded}
    found: dict[str, Function] = {}
    needs: dict[str, set[str]] = {}
    for f in decoded:
        needs[f.name] = set()
        for op in f.ops:
            for name in callees(op) if op.op.kind in ("call", "control") else ():
                if name in bodies:
                    needs[f.name].add(name)
                needs[f.name].update(rules_of(known[name]).values())
            if op.op.kind in STRUCTURAL and not (op.op.kind == "call" and has_rules(known[op.attrs["callee"]])):
                break
        else:
            found[f.name] = f
    while left := [name for name in found if not all(n in found for n in needs[name])]:
        for name in left:
            del found[name]
    return found


def require_expanded(module: Any, name: str) -> None:
    """Raise PipelineError, of the pass `name`, where a function of the module uses functions as values."""
    where = unexpanded(module)
    if where is not None:
        raise PipelineError(
            f"{name} is for modules without transformations, and {where}; run the passes that expand them before it: "
            f"{EXPAND}"
        )


def unexpanded(module: Any) -> str | None:
    """Where a function of the module uses functions as values, as text; None if none does.

    The function value of an op of mixed types, which is applied at once, is none of the module's.
    """
    plain = {f"smelt.{name}" for name, op in registry.items() if op.kind != "transform" and not op.mixed}
    for name, operation in functions(module).items():
        for block in operation.regions[0].blocks:
            for item in block.operations:
                op = item.operation
                if op.name in plain:  # of tensors
                    continue
                if any(_is_function(r.type) for r in op.results) and not is_mixed(op):
                    return f"@{name} uses functions as values: {op.name} at {op.location}"
    return None


def _is_function(kind: Any) -> bool:
    return isinstance(kind, mlir.ir.FunctionType)
