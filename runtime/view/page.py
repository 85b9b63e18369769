"""The page: what is known of a compiled program, as JSON in a template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from smelt.backends.executable import Executable
from smelt.ir import collector, mlir, text
from smelt.ir.builder import functions, read_function
from smelt.ir.control import callees
from smelt.ir.errors import IRError
from smelt.ir.short import argument_name, short_lines
from smelt.ir.text import line_of
from smelt.passes.kernels.cost import ProgramCost, program_cost
from smelt.passes.remarks import Remark

from .code import code_of
from .drawing import draw
from .dumps import parsed, read_dumps

#: Texts of the backend that are longer are left out; `smelt dump --stage` prints them.
MAX_TEXT = 300_000
#: Functions with more ops are not drawn.
MAX_DRAWN = 1500
#: Of functions with more results these are no nodes of their own.
MAX_RESULTS = 12
_TEMPLATE = Path(__file__).with_name("page.html")


def page(
    program: Executable, cost: ProgramCost | None, texts: dict[str, str], title: str, remarks: Sequence[Remark] = ()
) -> str:
    """The page of a program, as HTML.

    Args:
        program: a program that has its texts.
        cost: of it; None of one that was not planned, whose page has neither kernels nor memory.
        texts: what backends make of it, by stage.
        title: of the page.
        remarks: of the passes.

    Raises:
        IRError: the program has no texts.
    """
    with collector.paused():
        return fill(describe(program, cost, texts, title, remarks))


def page_of_dumps(folder: Path, title: str) -> str:
    """The page of a folder of dumps (see `dumps`): stages and graphs; costs and memory where there is ``plan-buffers``.

    Raises:
        IRError: the folder has no dumps, or one is no module.
    """
    listed, planned, last = [], None, ""
    for name, content, changed in read_dumps(folder):
        located = text.to_text(parsed(name, content), locations=True)
        listed.append(_stage(name, located, changed))
        last = located
        if name.startswith("plan-buffers"):
            planned = located
    cost = program_cost(text.parse(planned)) if planned is not None else None
    return fill(_described(title, listed, cost, planned or last, {}, (), [], None))


def fill(data: dict[str, Any]) -> str:
    """The page that shows what was described."""
    # "</script>" in a string of the user's must not end the script; JSON may write "<" as an escape.
    content = json.dumps(_packed(data), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return _TEMPLATE.read_text(encoding="utf-8").replace("@DATA@", content)


def _packed(data: dict[str, Any]) -> dict[str, Any]:
    """The same with less text: a stage like the one before has no lines of its own, and places are numbers."""
    places: dict[str, int] = {}
    stages: list[dict[str, Any]] = []
    before: Any = None
    for stage in data["stages"]:
        lines = stage["lines"]
        numbered = [[line, places.setdefault(place, len(places))] for line, place in lines]
        stages.append({**stage, "lines": None if lines is before or lines == before else numbered})
        before = lines
    remarks = [{**r, "line": places.setdefault(r["line"], len(places))} for r in data["remarks"]]
    return {**data, "stages": stages, "remarks": remarks, "places": list(places)}


def describe(
    program: Executable, cost: ProgramCost | None, texts: dict[str, str], title: str, remarks: Sequence[Remark] = ()
) -> dict[str, Any]:
    """All that the page shows."""
    passed = program.passed
    drawn = passed.located(passed.names[-1]) if passed else None
    if passed is None or drawn is None:
        raise IRError("the program has no texts to show: compile it by `.trace(...).lower().compile()`")
    listed: list[dict[str, Any]] = []
    for name in passed.names:
        known = listed[-1]["lines"] if name in passed.unchanged and listed else None
        listed.append(_stage(name, passed.located(name) or "", name not in passed.unchanged, known))
    ran = [{"name": r.stage, "seconds": r.seconds, "counts": dict(+r.statistics)} for r in program.records]
    return _described(title, listed, cost, drawn, texts, remarks, ran, program.seconds)


def _stage(name: str, located: str, changed: bool, lines: Any = None) -> dict[str, Any]:
    """`lines`: of the stage, where they are known."""
    lines = short_lines(text.parse(located, own=True)) if lines is None else lines
    return {"name": name, "lines": lines, "changed": changed}


def _described(
    title: str, listed: list[dict[str, Any]], cost: ProgramCost | None, drawn: str, texts: dict[str, str],
    remarks: Sequence[Remark], passes: list[dict[str, Any]], seconds: float | None,
) -> dict[str, Any]:  # fmt: skip
    names = {s.name for s in cost.steps} if cost else set()
    told = [{"kind": r.kind, "rule": r.rule, "text": r.text, "line": r.line, "about": r.about} for r in remarks]
    places = [*(line for s in listed for _, line in s["lines"]), *(r["line"] for r in told)]
    return {
        "title": title,
        "stages": listed,
        "sources": sources(places),
        "cost": _cost(cost) if cost else None,
        "remarks": told,
        "drawings": drawings(drawn, cost),
        "code": code_of(texts, names),
        "texts": {name: _shortened(name, content) for name, content in texts.items()},
        "whole": [name for name, content in texts.items() if len(content) <= MAX_TEXT],
        "passes": passes,
        "seconds": seconds,
    }


def sources(places: Iterable[str]) -> dict[str, list[str]]:
    """The files of the user's that lines come from, by name, as far as they can be read."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(p.rpartition(":")[0] for p in places if p):
        try:
            found[name] = Path(name).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            continue
    return found


def _cost(cost: ProgramCost) -> dict[str, Any]:
    steps = [
        {
            "name": s.name, "kind": s.kind, "times": s.times, "bytes": s.least_bytes, "moved": s.bytes_moved,
            "operations": s.operations, "predicted": s.predicted, "measured": s.measured, "ops": s.ops,
            "lines": s.lines,
        }
        for s in cost.steps
    ]  # fmt: skip
    lifetimes = [
        {"nbytes": x.nbytes, "offset": x.offset, "first": x.first, "last": x.last, "by": x.made_by, "line": x.line}
        for x in cost.lifetimes
    ]
    return {
        "steps": steps, "lifetimes": lifetimes, "arguments": cost.argument_bytes, "results": cost.result_bytes,
        "arena": cost.arena_bytes, "peak": cost.peak_bytes, "least": cost.least_bytes, "bytes": cost.step_bytes,
        "moved": cost.moved_bytes, "operations": cost.operations,
    }  # fmt: skip


@mlir.locked
def drawings(planned: str, cost: ProgramCost | None) -> list[dict[str, Any]]:
    """The graph of each function: its ops as nodes with places."""
    kinds = {s.name: s.kind for s in cost.steps} if cost else {}
    found = []
    module = text.parse(planned, own=True)
    for operation in functions(module).values():
        function = read_function(operation)
        if len(function.ops) > MAX_DRAWN:
            found.append({"name": function.name, "nodes": [], "edges": [], "ops": len(function.ops)})
            continue
        made: dict[Any, int] = {}
        nodes: list[dict[str, Any]] = []
        edges: list[tuple[int, int]] = []
        for i, v in enumerate(function.arguments):
            made[v] = len(nodes)
            label = argument_name(v) or f"argument {i}"
            nodes.append({"label": label, "kind": "argument", "type": str(v.aval), "line": ""})
        for op in function.ops:
            if op.op.kind == "constant" or not op.results:
                continue
            label = op.attrs["callee"] if op.op.kind == "call" else op.name
            kind = kinds.get(label, op.op.kind)
            edges += [(made[v], len(nodes)) for v in dict.fromkeys(op.operands) if v in made]
            made.update((r, len(nodes)) for r in op.results)
            types = ", ".join(str(r.aval) for r in op.results if r.aval is not None)
            node = {"label": label, "kind": kind, "type": types, "line": line_of(op.location)}
            nodes.append({**node, "opens": list(callees(op))} if callees(op) else node)
        many = len(function.returns) > MAX_RESULTS  # they would hide the rest: what makes them says so
        for i, v in enumerate(function.returns):
            if many and v in made:
                nodes[made[v]].setdefault("results", []).append(i)
                continue
            if v in made:
                edges.append((made[v], len(nodes)))
            nodes.append({"label": f"result {i}", "kind": "result", "type": str(v.aval), "line": ""})
        places = draw(len(nodes), edges)
        for node, (x, y) in zip(nodes, places):
            node["x"], node["y"] = x, y
        found.append({"name": function.name, "nodes": nodes, "edges": edges, "ops": len(function.ops)})
    return found


def _shortened(stage: str, content: str) -> str:
    return content if len(content) <= MAX_TEXT else f"// {len(content)} characters: smelt dump --stage={stage}\n"
