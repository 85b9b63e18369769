"""The page: what is known of a compiled program, as JSON in a template."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from smelt.backends.executable import Executable
from smelt.ir import mlir, text
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import IRError
from smelt.ir.short import short_lines
from smelt.ir.text import line_of
from smelt.passes.kernels.cost import ProgramCost

from .drawing import draw

#: Texts of the backend that are longer are left out; `smelt dump --stage` prints them.
MAX_TEXT = 400_000
#: Functions with more ops are not drawn.
MAX_DRAWN = 1500
_TEMPLATE = Path(__file__).with_name("page.html")


def page(program: Executable, cost: ProgramCost, texts: dict[str, str], title: str) -> str:
    """The page of a program, as HTML.

    Args:
        program: a program that has its texts.
        cost: of it.
        texts: what backends make of it, by stage.
        title: of the page.

    Raises:
        IRError: the program has no texts.
    """
    data = describe(program, cost, texts, title)
    # "</script>" in a string of the user's must not end the script; JSON may write "<" as an escape.
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _TEMPLATE.read_text(encoding="utf-8").replace("@DATA@", content)


def describe(program: Executable, cost: ProgramCost, texts: dict[str, str], title: str) -> dict[str, Any]:
    """All that the page shows."""
    passed = program.passed
    planned = passed.located("plan-buffers") if passed else None
    if passed is None or planned is None:
        raise IRError("the program has no texts to show: compile it by `.trace(...).lower().compile()`")
    of_pass = {r.stage: r for r in program.records}
    listed: list[dict[str, Any]] = []
    for name in passed.names:
        record = of_pass.get(name)
        listed.append(
            {
                "name": name,
                "lines": short_lines(text.parse(passed.located(name) or "")),
                "seconds": record.seconds if record else None,
                "counts": dict(record.statistics) if record else {},
                "changed": name not in passed.unchanged,
            }
        )
    return {
        "title": title,
        "stages": listed,
        "sources": sources(line for s in listed for _, line in s["lines"]),
        "cost": _cost(cost),
        "drawings": drawings(planned, cost),
        "texts": {name: _shortened(name, content) for name, content in texts.items()},
        "seconds": program.seconds,
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
        "arena": cost.arena_bytes, "peak": cost.peak_bytes, "least": cost.least_bytes, "moved": cost.step_bytes,
        "operations": cost.operations,
    }  # fmt: skip


def drawings(planned: str, cost: ProgramCost) -> list[dict[str, Any]]:
    """The graph of each function: its ops as nodes with places."""
    kinds = {s.name: s.kind for s in cost.steps}
    found = []
    module = text.parse(planned)
    with mlir.lock:
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
                nodes.append({"label": f"argument {i}", "kind": "argument", "type": str(v.aval), "line": ""})
            for op in function.ops:
                if op.op.kind == "constant" or not op.results:
                    continue
                label = op.attrs["callee"] if op.op.kind == "call" else op.name
                kind = kinds.get(label, op.op.kind)
                edges += [(made[v], len(nodes)) for v in dict.fromkeys(op.operands) if v in made]
                made.update((r, len(nodes)) for r in op.results)
                types = ", ".join(str(r.aval) for r in op.results if r.aval is not None)
                nodes.append({"label": label, "kind": kind, "type": types, "line": line_of(op.location)})
            for i, v in enumerate(function.returns):
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
