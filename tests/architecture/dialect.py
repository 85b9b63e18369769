"""docs/dialect.md: every op of the dialect with its example and its rules, read off the registry.

``python -m tests.architecture.dialect`` writes the page.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Collection

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir.dtypes import ALL, DType
from smelt.ir.op import Attr, Op, registry
from smelt.tools.listing import batch, derivative

from .sources import ROOT

PAGE = ROOT / "docs" / "dialect.md"

HEAD = """\
# The dialect

Every op of the smelt dialect, by the files of `ir/ops/` that state them, written by
`python -m tests.architecture.dialect` from the registry; a test compares. Types are builtin ranked tensors of static
shape: bool is `i1`, signed integers are signless (`i32`), unsigned ones are `ui32`; there are `f16`, `bf16`, `f32`,
`f64` and complex numbers of the last two. Ops have values only: no memory, no aliasing. Control flow is `func.call`
and the loops and branches of upstream's `scf` over functions of the module ([control flow](control-flow.md)).

Below each op stand its operands, attributes (with defaults), and rules:

- *kind*: what passes and backends ask for ([architecture](architecture.md#ops)); a *transform* is an op of a function.
- *dtypes*: those of the operands that are taken, where it is one set.
- *derivative*: `jvp` for what is not linear, `transpose` for what is; [Derivatives](derivatives.md) says more.
- *batch*: the op's own rule or that of its kind, or a scan over the batch in the IR.
- *kernel*: its `lower` rule computes elements in kernels; *library*: a library computes it, or the host by its
  `reference` rule.

`smelt-opt --list-ops` prints the same as a table, with ops of installed packages; [add an op](add-an-op.md) shows how
one is stated.
"""

_EXAMPLE = re.compile(r"\n\s*``(%.*?|\".*?)``\s*", re.DOTALL)
_LOWERED = ("lower", "element", "combine", "map_index", "operand_indices")


def page() -> str:
    """The page as it should be."""
    families: dict[str, list[Op]] = defaultdict(list)
    for op in registry.values():
        if type(op).__module__.startswith("smelt.ir.ops."):
            families[type(op).__module__].append(op)
    parts = [HEAD]
    for module in sorted(families):
        name = module.rpartition(".")[2]
        first = (sys.modules[module].__doc__ or "").strip().split("\n\n")[0]
        parts.append(f"\n## {name}\n\n`ir/ops/{name}.py`: {_joined(first)}\n")
        parts += [_block(op) for op in families[module]]
    return "".join(parts)


def _block(op: Op) -> str:
    documented = inspect.cleandoc(type(op).__doc__ or "")
    example = _EXAMPLE.search("\n" + documented)
    words = _EXAMPLE.sub("\n", "\n" + documented).strip()
    said = "\n\n".join(_joined(part) for part in words.split("\n\n"))
    lines = [f"\n### `{op.name}`\n", said, ""]
    if example:
        lines += ["```mlir", _joined(example.group(1)), "```", ""]
    return "\n".join([*lines, " · ".join(_facts(op)), ""])


def _facts(op: Op) -> list[str]:
    facts = [f"kind: {op.kind.replace('_', ' ')}"]
    if op.operand_names:
        names = [f"`{name}`" for name in op.operand_names]
        facts.append(f"operands: {', '.join(names)}{' and more' if op.variadic else ''}")
    if op.attrs:
        facts.append("attributes: " + ", ".join(_attribute(name, attr) for name, attr in op.attrs.items()))
    accepted = getattr(op, "accepts", None)
    if accepted:
        facts.append(f"dtypes: {_dtypes(accepted)}")
    if op.not_differentiable is not None:
        facts.append(f"derivative: none, {op.not_differentiable.why}")
    elif op.kind != "transform":
        facts.append(f"derivative: {derivative(op).replace('+', ' and ')}")
    if op.kind != "transform":
        own = "batch" in vars(type(op))
        facts.append("batch: " + ("a scan" if batch(op) == "scan" else "own rule" if own else "rule of the kind"))
        lowered = any(hasattr(type(op), rule) for rule in _LOWERED)
        facts.append("kernel" if lowered else "library")
    return facts


def _attribute(name: str, attr: Attr) -> str:
    return f"`{name}` ({attr.type})" if attr.required else f"`{name}` ({attr.type}, {attr.default!r})"


def _dtypes(accepted: Collection[DType]) -> str:
    left_out = [dtype.name for dtype in ALL if dtype not in accepted]
    if len(left_out) > 2:
        return ", ".join(dtype.name for dtype in accepted)
    return f"all but {' and '.join(left_out)}" if left_out else "all"


def _joined(text: str) -> str:
    """A paragraph as one line."""
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
