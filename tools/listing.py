"""Tables of all passes and all ops: ``--list-passes`` and ``--list-ops``."""

from __future__ import annotations

import dataclasses
from typing import Any


def first_line(documented: Any) -> str:
    """The first line of a docstring."""
    return (documented.__doc__ or "").strip().split("\n")[0]


def list_passes() -> tuple[str, list[str]]:
    """Passes with their options and defaults; and what is wrong with those of other packages that do not load."""
    from smelt.passes import registry
    from smelt.passes.registry import load_all

    problems = load_all()
    lines = []
    for name, cls in sorted(registry().items()):
        lines.append(f"--{name}\n    {first_line(cls)}")
        for option in dataclasses.fields(cls):
            name, default = option.name.replace("_", "-"), option.default
            default = str(default).lower() if isinstance(default, bool) else default
            lines.append(f"    {name}" if default is dataclasses.MISSING else f"    {name}={default}")
    lines.append("Passes of MLIR itself are known by mlir-opt's names.")
    return "\n".join(lines) + "\n", problems


HEADER = ("op", "kind", "operands", "attributes", "infer", "reference", "derivative", "batch", "lower")


def list_ops() -> tuple[str, list[str]]:
    """Ops × rules, those of installed packages too, and why an op has no derivative; what is wrong with packages
    whose ops do not load.

    Under ``batch``, "rule" is the op's own vectorization, or that of its kind; "scan" is the rule of all
    other ops: a scan over the batch in the IR, which runs the op on one element at a time.
    """
    import smelt.ir.ops  # noqa: F401  (fills the registry)
    from smelt.ir.control import CONTROL_OPS
    from smelt.ir.op import registry
    from smelt.ir.plugins import load_all
    from smelt.ir.tables import columns
    from smelt.passes.rules import function_rules

    problems = load_all()
    rows: list[tuple[str, ...]] = [HEADER]
    reasons = []
    for op in registry.values():
        rows.append(_row(op))
        if op.not_differentiable is not None:
            reasons.append(f"smelt.{op.name} has no derivative: {op.not_differentiable.why}")
    for control in CONTROL_OPS:
        rows.append(_control_row(control))
        if why := function_rules(control.name).not_transposable:
            reasons.append(f"{control.name} has no transpose: {why}")
    return "\n".join([*columns(rows), "", *reasons]) + "\n", problems


def _row(op: Any) -> tuple[str, ...]:
    def has(*rules: str) -> str:
        return "yes" if any(op.has_rule(rule) or _own(op, rule) for rule in rules) else "-"

    operands = ",".join(op.operand_names) + ("..." if op.variadic else "")
    attributes = ",".join(op.attrs)
    if op.kind == "transform":
        rules = ("signature", "-", "-", "-", "-")
        return (op.name, op.kind, operands, attributes, *rules)
    lower = has("lower", "element", "combine", "map_index", "operand_indices").replace("-", "library")
    return (
        op.name, op.kind, operands or "-", attributes or "-",
        has("infer"), has("reference"), derivative(op), batch(op), lower,
    )  # fmt: skip


def _control_row(op: Any) -> tuple[str, ...]:
    """A branch or loop, which is no op of the registry: its rules are in the passes, those of all transformations."""
    from smelt.passes.rules import function_rules

    derivative = "jvp" if function_rules(op.name).not_transposable else "jvp+transpose"
    attributes, lower = ",".join((*op.callees, *op.options)), "branch" if "index" in op.parts else "loop"
    return (op.name, op.kind, ",".join(op.parts), attributes, "callees", "yes", derivative, "rule", lower)


def derivative(op: Any) -> str:
    """How an op is differentiated: jvp, transpose, both, or none."""
    if op.not_differentiable is not None:
        return "none"
    rules = [rule for rule in ("jvp", "transpose") if op.has_rule(rule)]
    return "+".join(rules) or "missing"


def batch(op: Any) -> str:
    """How an op is batched: "rule", or "scan" for a loop over the batch."""
    return "rule" if op.has_rule("batch") else "scan"


def _own(op: Any, rule: str) -> bool:
    """Whether a rule that the base class of all ops does not know is stated by the op or its kind."""
    from smelt.ir.op import Op

    return not hasattr(Op, rule) and hasattr(type(op), rule)
