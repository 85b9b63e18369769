"""The MLIR example in an op's docstring, as something to run."""

from __future__ import annotations

import re
from typing import Any

from . import text
from .aval import Aval
from .builder import function_named
from .errors import IRError
from .op import Op

_LINE = re.compile(r'(?:%\S+ = )?"smelt\.\w+"\([^)]*\)(.*) : \((.*?)\) -> (.*)$')
_TENSOR = re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>")


def example(op: Op) -> tuple[tuple[Aval, ...], dict[str, Any]]:
    """Operand types and attributes of the example in the op's docstring.

    Raises:
        IRError: there is none.
    """
    found = _LINE.match(op.example or "")
    if found is None:
        raise IRError(f"smelt.{op.name} has no MLIR example in its docstring")
    attrs, operands, result = found.groups()
    types = _TENSOR.findall(operands)
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    names = ", ".join(f"%a{i}" for i in range(len(types)))
    count = op.num_results
    returned = ", ".join(f"%r#{i}" for i in range(count))
    source = (
        f"func.func @main({arguments}) -> {result} {{\n"
        f'  %r:{count} = "smelt.{op.name}"({names}){attrs} : ({operands}) -> {result}\n'
        f"  return {returned} : {result.removeprefix('(').removesuffix(')')}\n}}"
    )
    module = text.parse(source)  # whose functions live as long as it does
    (view,) = function_named(module).ops
    return tuple(v.aval for v in view.operands), dict(view.attrs)
