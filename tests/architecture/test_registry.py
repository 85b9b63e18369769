"""Every op has every rule, and a docstring whose example is valid MLIR."""

from __future__ import annotations

import re

import pytest

import smelt.ir.ops  # noqa: F401  (fills the registry)
from smelt.ir import text
from smelt.ir.kinds import Contraction, Elementwise, Fusible, Movement, Reduction
from smelt.ir.op import Op, registry
from smelt.ir.ops.call import Transform

from .sources import ROOT, python_files

OPS = list(registry.values())
PLAIN = [op for op in OPS if not isinstance(op, Transform)]


def overrides(op: Op, rule: str, base: type) -> bool:
    return getattr(type(op), rule, None) is not getattr(base, rule, None)


def name_of(op: Op) -> str:
    return op.name


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_the_docstring_is_a_sentence_and_an_example(op: Op) -> None:
    doc = type(op).__doc__ or ""
    assert doc.split("\n\n")[0].strip().endswith((".", ":")), f"{op}: the docstring starts with a sentence"
    assert op.example and f'"smelt.{op.name}"' in op.example, f"{op}: the docstring has an MLIR example"


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_the_example_is_valid(op: Op) -> None:
    assert op.example is not None
    text.parse(example_module(op.example))


@pytest.mark.parametrize("op", PLAIN, ids=name_of)
def test_the_common_rules_are_there(op: Op) -> None:
    for rule in ("infer", "reference", "batch"):
        assert overrides(op, rule, Op), f"{op} has no {rule}"


@pytest.mark.parametrize("op", PLAIN, ids=name_of)
def test_it_has_a_derivative_or_says_why_not(op: Op) -> None:
    if op.not_differentiable is not None:
        assert op.not_differentiable.why
    elif op.linearity is not None:
        assert op.linearity in ("jointly", "each")
        assert overrides(op, "transpose", Op), f"{op} is linear and has no transpose"
    else:
        assert overrides(op, "jvp", Op), f"{op} is not linear and has no jvp"


@pytest.mark.parametrize("op", PLAIN, ids=name_of)
def test_its_kind_can_be_lowered(op: Op) -> None:
    if isinstance(op, Elementwise):
        assert overrides(op, "lower", Elementwise) or overrides(op, "element", Elementwise)
    elif isinstance(op, Movement):
        assert overrides(op, "map_index", Movement) or overrides(op, "element", Movement)
    elif isinstance(op, Reduction):
        assert overrides(op, "identity", Reduction) and overrides(op, "combine", Reduction)
    elif isinstance(op, Contraction):
        assert overrides(op, "depth", Contraction) and overrides(op, "operand_indices", Contraction)
    elif isinstance(op, Fusible):
        assert overrides(op, "element", Fusible)


@pytest.mark.parametrize("op", [op for op in PLAIN if isinstance(op, Contraction)], ids=name_of)
def test_nobody_but_its_block_knows_the_attributes_of_a_contraction(op: Op) -> None:
    names = re.compile(rf"\b({'|'.join(op.attrs)})\b")
    for path in python_files("passes", "backends", "runtime", "tools"):
        if "exchange" in path.parts:  # it translates them into those of another dialect
            continue
        found = names.search(path.read_text().split('"""', 2)[-1])  # what a file's docstring shows is IR
        assert not found, f"{path.relative_to(ROOT)} names {found.group()!r} of smelt.{op.name}: ask the op"


@pytest.mark.parametrize("op", [op for op in OPS if isinstance(op, Transform)], ids=name_of)
def test_a_transform_has_a_signature(op: Transform) -> None:
    assert overrides(op, "signature", Transform)


def example_module(example: str) -> str:
    """A module around an example: its operands become the arguments of a function."""
    match = re.fullmatch(r'(?:[%\w, :]+ = )?"smelt\.\w+"\((.*?)\)(?: *\{.*\})? : (.*)', example)
    assert match, f"the example is one op in generic form: {example}"
    names = [name.strip() for name in match.group(1).split(",") if name.strip()]
    types = split_types(match.group(2))
    assert len(names) == len(types), f"{len(names)} operands, {len(types)} types: {example}"
    signature = dict(zip(names, types))
    arguments = ", ".join(f"{name.replace('%', '%arg_')}: {kind}" for name, kind in signature.items())
    body = re.sub(
        r'("smelt\.\w+"\()(.*?)\)', lambda m: f"{m.group(1)}{m.group(2).replace('%', '%arg_')})", example, count=1
    )
    return f"func.func @f({arguments}) {{\n  {body}\n  return\n}}\n"


def split_types(signature: str) -> list[str]:
    """The operand types of ``(a, b) -> c``, split at top-level commas."""
    depth, start, found = 0, 1, []
    for i, c in enumerate(signature):
        if c in "([{<":
            depth += 1
        elif c in ")]}" or (c == ">" and signature[i - 1] != "-"):
            depth -= 1
            if depth == 0:
                found.append(signature[start:i])
                break
        elif c == "," and depth == 1:
            found.append(signature[start:i])
            start = i + 1
    return [kind.strip() for kind in found if kind.strip()]
