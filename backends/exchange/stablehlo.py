"""A module of the smelt dialect as StableHLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smelt.ir import mlir, stablehlo, text
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import IRError
from smelt.ir.text import IRText
from smelt.passes.driver import Pipeline

from ..pipelines import SIMPLIFY
from . import rules as _rules  # fills the table
from .rules.table import written
from .writer import Tensor, Writer, symbol, type_of

_ = _rules


def to_stablehlo(
    module: Any, captured: Sequence[np.ndarray] = (), expand: bool = True, writer: type[Writer] = Writer
) -> IRText:
    """The text of a module as StableHLO; the module itself stays as it is.

    Transformations are expanded first.

    Args:
        module: a module of the smelt dialect.
        captured: what the last arguments of ``@main`` are: they become constants.
        expand: whether ops of CHLO are expanded into those of StableHLO.
        writer: what ops are written with.

    Raises:
        IRError: an op that has no translation: the message names it, and the user's line.
    """
    with mlir.lock:
        made = text.parse(text.to_text(module, locations=True))
        Pipeline.parse(SIMPLIFY).run(made)
        source = _Program(made, captured, writer).text()
        found = stablehlo.parse(source, "<stablehlo>")
        if expand:
            stablehlo.run(stablehlo.context(), found, "func.func(chlo-legalize-to-stablehlo),canonicalize,cse")
        return IRText(stablehlo.to_text(found))


class _Program:
    def __init__(self, module: Any, captured: Sequence[np.ndarray], writer: type[Writer]):
        self._writer = writer
        self._functions: Mapping[str, Any] = functions(module)
        self._captured = list(captured)
        self._wanted = ["main"] if "main" in self._functions else list(self._functions)
        self._entry = set(self._wanted)

    def text(self) -> str:
        lines, pending = [], list(self._wanted)
        known = set(pending)

        def refers(name: str) -> None:
            if name not in known:
                known.add(name)
                pending.append(name)

        while pending:
            name = pending.pop(0)
            lines.append(self._function(name, self._writer(refers)))
        return "module {\n" + "\n".join(lines) + "\n}\n"

    def _function(self, name: str, writer: Writer) -> str:
        if name not in self._functions:
            raise IRError(f"the module has no function @{name}")
        read = read_function(self._functions[name])
        env: dict[Any, Tensor] = {}
        arguments = list(read.arguments)
        fixed = self._captured if name == "main" else []
        for value, values in zip(arguments[len(arguments) - len(fixed) :], fixed):
            env[value] = writer.constant(values)
        header = []
        for i, value in enumerate(arguments[: len(arguments) - len(fixed)]):
            env[value] = Tensor(writer, f"%arg{i}", value.aval)
            header.append(f"%arg{i}: {type_of(value.aval)}")
        for view in read.ops:
            for value, tensor in zip(view.results, written(writer, view, env)):
                env[value] = tensor
        outs = [env[v] for v in read.returns]
        types = ", ".join(type_of(x.aval) for x in outs)
        writer.lines.append(f'"func.return"({", ".join(x.name for x in outs)}) : ({types}) -> ()')
        visibility = "public" if name in self._entry else "private"
        head = f"func.func {visibility} @{symbol(name)}({', '.join(header)}) -> ({types}) {{"
        return "\n".join([head, *writer.lines, "}"])
