"""Push-tangents: @main becomes its own forward mode, with its tangents apart from its results.

Before (with ``wrt=0``)::

    func.func @main(%x) { %0 = "smelt.sin"(%x)  return %0 }

After::

    func.func @main(%x, %t) {
      %0 = "smelt.sin"(%x)
      %1 = "smelt.cos"(%x)
      %2 = "smelt.mul"(%t, %1)
      return %0, %2
    }

It is what `jvp` would make of ``smelt.jvp``, but branches and loops are two each: one of the primals, and one that is
linear in the tangents. So `split-linear` can divide the program. It is for programs without transformations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from smelt.ir import mlir
from smelt.ir.builder import functions, read_function
from smelt.ir.dialect import context
from smelt.ir.errors import PipelineError

from ..call_graph import require_expanded
from ..registry import Pass, register_pass
from ..rewrite import has_body
from .jvp import make_jvp


@register_pass("push-tangents")
@dataclass(frozen=True)
class PushTangentsPass(Pass):
    """Let @main take tangents and return those of its results.

    Attributes:
        wrt: numbers of the arguments that have tangents, with ``+`` in between; the default is none, and no change.
    """

    wrt: str = ""

    def run(self, module: Any, statistics: Counter) -> None:
        operation = functions(module).get("main")
        wrt = _numbers(self.wrt)
        if operation is None or not wrt or not has_body(operation):
            return
        require_expanded(module, self.name)
        main = read_function(operation)
        if max(wrt) >= len(main.arguments):
            raise PipelineError(f"{self.name}: @main has {len(main.arguments)} arguments, and no number {max(wrt)}")
        name = make_jvp(module, main, {"wrt": wrt}, linearize=True)
        made = functions(module)[name]
        main.mlir.erase()
        made.attributes["sym_name"] = mlir.ir.StringAttr.get("main", context())
        del made.attributes["sym_visibility"]
        statistics["tangents pushed"] += len(wrt)


def _numbers(text: str) -> tuple[int, ...]:
    words = [word for word in text.replace("+", ",").split(",") if word]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise PipelineError(f"push-tangents: wrt must be numbers of arguments such as 0+2, is {text!r}")
    return tuple(int(word) for word in words)
