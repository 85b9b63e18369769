"""A function as a graph in Graphviz's language: ``--emit=dot``."""

from __future__ import annotations

from typing import Any


def to_dot(module: Any, name: str = "main") -> str:
    """The graph of one function: a node an op, an edge a value."""
    from smelt.ir import mlir
    from smelt.ir.builder import Value, functions, read_function
    from smelt.ir.errors import IRError

    found = functions(module)
    if name not in found:
        raise IRError(f"the module has no function @{name}; it has {', '.join(found) or 'none'}")
    with mlir.lock:
        function = read_function(found[name])
    lines = [f'digraph "{_escape(name)}" {{', "  node [shape=box, fontname=monospace];"]
    node: dict[Value, str] = {}
    for i, value in enumerate(function.arguments):
        node[value] = f"arg{i}"
        lines.append(f'  arg{i} [shape=ellipse, label="arg{i}\\n{value.aval}"];')
    for i, op in enumerate(function.ops):
        attributes = "".join(f"\\n{k} = {_escape(_short(v))}" for k, v in op.attrs.items())
        lines.append(f'  op{i} [label="{_escape(op.name)}{attributes}"];')
        for result in op.results:
            node[result] = f"op{i}"
        for position, operand in enumerate(op.operands):
            label = str(operand.aval) if operand.aval is not None else "function"
            where = f', headlabel="{position}"' if len(op.operands) > 1 else ""
            lines.append(f'  {node[operand]} -> op{i} [label="{label}"{where}];')
    for i, value in enumerate(function.returns):
        lines.append(f'  result{i} [shape=ellipse, label="result{i}\\n{value.aval}"];')
        lines.append(f"  {node[value]} -> result{i};")
    return "\n".join([*lines, "}"]) + "\n"


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
