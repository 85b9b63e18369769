"""docs/derivatives.md: how each op is differentiated and batched, read off the registry and tried out.

``python -m tests.architecture.derivatives`` writes the page.
"""

from __future__ import annotations

import re

import numpy as np

from smelt.ir import dtypes
from smelt.ir.control import CONTROL_OPS
from smelt.ir.op import Op
from smelt.passes.rules import function_rules

from ..ops.cases import Case, cases, example, plain_ops, seeds_of, wrt_of
from ..ops.variants import (
    direction,
    general_operands,
    transformed,
    variants,
    wide,
)
from .sources import ROOT

PAGE = ROOT / "docs" / "derivatives.md"

HEAD = """\
# Derivatives and batching of every op

One row an op of the dialect, written by `python -m tests.architecture.derivatives` from the registry; a test
compares. [Transformations](transformations.md) says how functions are transformed, and what the functions made of
these ops do at points without a derivative.

| column | says |
| --- | --- |
| derivative | *linear*: the tangent goes through the op itself; *jvp rule*: the op states one; or why there is none |
| reverse mode | *transpose*: the op states its transpose; *by linearization*: its tangent is made of ops that do |
| batching | whose rule `vmap` uses. Without one, the IR gets a scan over the batch |
| second derivative | what the derivative of the derivative is at a point without ties |
| dtypes | those that have a derivative |
| special points | what the docstring says, or where the slope is not finite though the value exists |

Integers and bools have no derivative: their tangents and cotangents are zero. Complex functions have the derivative
along a direction, and are transposed without conjugation.

"""

COLUMNS = ("op", "derivative", "reverse mode", "batching", "second derivative", "dtypes", "special points")

POINTS = (-np.inf, -1.0, 0.0, 1.0, np.inf)


def page() -> str:
    """The page as it should be."""
    rows = [_row(op) for op in sorted(plain_ops(), key=lambda op: op.name)]
    rows += [_control_row(op.name) for op in CONTROL_OPS]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return HEAD + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _row(op: Op) -> tuple[str, ...]:
    name = f"`{op.name}`"
    if not op.operand_names:
        return (name, "none: no operands", "none", _batching(op), "none", "none", "none")
    if op.not_differentiable is not None:
        return (name, f"none: {op.not_differentiable.why}", "none", _batching(op), "none", "none", "none")
    return (name, _derivative(op), _reverse(op), _batching(op), _second(op), _dtypes(op), _points(op))


def _control_row(name: str) -> tuple[str, ...]:
    why = function_rules(name).not_transposable
    reverse = f"none: {why}" if why else "transposes of its functions"
    second = "forward mode of forward mode" if why else "of its functions"
    return (f"`{name}`", "jvp of its functions", reverse, "batches of its functions", second, "all", "none")


def _derivative(op: Op) -> str:
    own = type(op).jvp is not Op.jvp
    if op.linearity is None:
        return "jvp rule"
    names = [op.operand_names[i] for i in op.linear_operands or ()]
    where = f" in {' and '.join(names)}" if names and len(names) < len(op.operand_names) else ""
    where = where or (" in each operand" if op.linearity == "each" else "")
    return f"linear{where}" + (", else jvp rule" if own and where else "")


def _reverse(op: Op) -> str:
    if not op.has_rule("transpose"):
        return "by linearization"
    whole = op.linearity is not None and (op.linearity == "jointly" or op.linear_operands is None)
    return "transpose" if whole else "transpose where linear, else by linearization"


def _batching(op: Op) -> str:
    if not op.has_rule("batch"):
        return "scan over the batch"
    return "own rule" if "batch" in vars(type(op)) else f"rule of {op.kind.replace('_', ' ')} ops"


def _second(op: Op) -> str:
    """Whether any derivative of a derivative is not zero, in any variant of the op."""
    tried = [wide(example(op)), *variants(op), *(c for c in cases(op) if c.avals[0].dtype.is_complex)]
    found = any(_curves(case) for case in tried if wrt_of(case) and seeds_of(case))
    return "by the same rules" if found else "zero"


def _curves(case: Case) -> bool:
    rng, wrt, n = np.random.default_rng(0), wrt_of(case), len(case.results)
    operands = general_operands(case, rng)
    cotangents = [direction(case.results[i], rng) for i in seeds_of(case)]
    tangents = [direction(case.avals[i], rng) for i in wrt]
    both = transformed(case, [("vjp", {"wrt": wrt, "seeds": seeds_of(case)}), ("jvp", {"wrt": wrt})])
    return any(np.any(x) for x in both([*operands, *cotangents, *tangents])[2 * n + len(wrt) :])


def _dtypes(op: Op) -> str:
    short = {"bfloat16": "bf16"} | {d.name: f"{d.kind}{d.bits}" for d in dtypes.INEXACT if d is not dtypes.bfloat16}
    found = {a.dtype for c in cases(op) if seeds_of(c) for a in c.avals if a.dtype.is_inexact}
    return ", ".join(short[d.name] for d in dtypes.INEXACT if d in found)


def _points(op: Op) -> str:
    text = " ".join((type(op).__doc__ or "").split("``")[0].split())
    sentences = [s.strip(" .;()") for s in re.split(r"[.;]\s", text)]
    stated = [s[0].upper() + s[1:] for s in sentences if re.search(r"[Dd]erivative", s)]
    if stated:
        return ". ".join(stated).replace("|", "\\|")
    infinite = _infinite_slopes(op)
    return f"slope {'; '.join(infinite)}" if infinite else "none"


def _infinite_slopes(op: Op) -> list[str]:
    """Where the slope of a function of one number is not finite although its value is no NaN."""
    case = wide(example(op))
    if op.kind != "elementwise" or len(case.avals) != 1 or case.avals[0].dtype is not dtypes.float64:
        return []
    scalar = Case(op, (case.avals[0].with_shape(()),), case.attrs)
    slope = transformed(scalar, [("jvp", {"wrt": (0,)})])
    found = []
    for x in POINTS:
        value, tangent = slope([np.float64(x), np.float64(1.0)])
        if not np.isnan(value) and not np.isfinite(tangent):
            found.append(f"{_number(float(np.real(tangent)))} at {_number(x)}")
    return found


def _number(x: float) -> str:
    return {np.inf: "∞", -np.inf: "-∞"}.get(x, "NaN" if np.isnan(x) else f"{x:g}")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
