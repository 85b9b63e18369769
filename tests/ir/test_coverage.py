"""The lit files cover the registry: each op, each family, each pattern."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import smelt.ir.ops
import smelt.passes.simplify.canonicalize  # noqa: F401  (registers the patterns)
from smelt.ir import text
from smelt.ir.op import registry
from smelt.passes import Pipeline
from smelt.passes.simplify.patterns import all_patterns

from ..litfile import ROOT

FAMILIES = sorted({type(op).__module__.rsplit(".", 1)[1] for op in registry.values()})


def _family(op) -> str:
    return type(op).__module__.rsplit(".", 1)[1]


@pytest.mark.parametrize("op", registry.values(), ids=lambda op: op.name)
def test_op_has_a_roundtrip(op):
    path = ROOT / "ir" / "roundtrip" / f"{_family(op)}.mlir"
    assert path.exists(), f"{path} is missing"
    checks = [line for line in path.read_text(encoding="utf-8").splitlines() if "CHECK" in line]
    assert any(f'"smelt.{op.name}"' in line for line in checks), f"{path} does not check smelt.{op.name}"


@pytest.mark.parametrize("family", FAMILIES)
def test_family_has_invalid_cases(family):
    path = ROOT / "ir" / "invalid" / f"{family}.mlir"
    assert path.exists() and "expected-error" in path.read_text(encoding="utf-8"), f"{path} is missing"


def test_each_pattern_is_seen_at_work():
    counted: Counter = Counter()
    for path in (ROOT / "passes" / "canonicalize").glob("*.mlir"):
        (record,) = Pipeline.parse("canonicalize").run(text.parse(path.read_text(encoding="utf-8")))
        counted.update(record.statistics)
    unseen = [name for name in all_patterns() if not counted[name.replace("_", "-")]]
    assert not unseen, f"no file in tests/passes/canonicalize makes these patterns match: {unseen}"


def test_patterns_are_of_known_ops():
    kinds = {op.kind for op in registry.values()}
    for name, keys in all_patterns().items():
        unknown = [k for k in keys if k not in registry and k not in kinds]
        assert not unknown, f"{name} is registered for {unknown}"


def test_canonicalize_is_idempotent():
    for path in (ROOT / "passes" / "canonicalize").glob("*.mlir"):
        module = text.parse(path.read_text(encoding="utf-8"))
        Pipeline.parse("canonicalize").run(module)
        (again,) = Pipeline.parse("canonicalize").run(module)
        assert not +again.statistics, f"{path.name}: {dict(again.statistics)}"


def test_every_derivative_rule_has_a_file():
    """Real ops with a derivative; the registry's tests cover complex numbers."""
    have = {path.stem for path in (ROOT / "diffrules").glob("*.mlir")}
    for op in registry.values():
        example = op.example or ""
        if op.kind == "transform" or op.mixed or not op.differentiable or not op.operand_names or "complex" in example:
            continue
        assert op.name in have, f"tests/diffrules/{op.name}.mlir is missing"
    control = {"cond", "while", "scan"}  # upstream ops in the IR, with rules in passes
    assert control <= have
    assert not [name for name in have - control if not re.fullmatch(r"\w+", name) or name not in registry]
