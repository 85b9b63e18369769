"""``smelt diff``: what two modules have in common is found whatever things are called and wherever they stand."""

from __future__ import annotations

import random
import re

import pytest

import smelt
from smelt.ir import text
from smelt.ir.builder import functions, read_function
from smelt.ir.differences import differences
from smelt.passes import Pipeline
from smelt.passes.rewrite import rebuild

from ..backends.modules import f32, gelu, layer_norm, module_of, softmax

T = "tensor<4xf32>"


def chain(*names: str, result: int | None = None) -> str:
    lines = [f'%{i} = "smelt.{name}"(%{"x" if not i else i - 1}) : ({T}) -> {T}' for i, name in enumerate(names)]
    last = len(names) - 1 if result is None else result
    return f"func.func @main(%x: {T}) -> {T} {{\n" + "\n".join(lines) + f"\nreturn %{last} : {T}\n}}"


def told(first: str, second: str) -> list[str]:
    found = differences(text.parse(first), text.parse(second))
    return [re.sub(r"  \(-:\d+\)", "", line).strip() for line in str(found).split("\n") if line]


def test_equal_modules() -> None:
    for function in (gelu, softmax, layer_norm):
        module = module_of([smelt.ir.aval.Aval((8, 16), f32)], function)
        copy = text.parse(text.to_text(module))
        assert not differences(module, copy) and str(differences(module, copy)) == ""


def test_names_order_and_lines_do_not_matter() -> None:
    first = f"""
func.func private @a(%x: {T}) -> {T} {{
  %0 = "smelt.exp"(%x) : ({T}) -> {T}
  return %0 : {T}
}}
func.func @main(%x: {T}, %y: {T}) -> {T} {{
  %0 = "smelt.sin"(%y) : ({T}) -> {T} loc("a.py":1:1)
  %1 = func.call @a(%x) : ({T}) -> {T}
  %2 = "smelt.add"(%0, %1) : ({T}, {T}) -> {T}
  return %2 : {T}
}}
"""
    second = f"""
func.func @main(%p: {T}, %q: {T}) -> {T} {{
  %a = func.call @other(%p) : ({T}) -> {T}
  %b = "smelt.sin"(%q) : ({T}) -> {T} loc("b.py":9:1)
  %c = "smelt.add"(%b, %a) : ({T}, {T}) -> {T}
  return %c : {T}
}}
func.func private @other(%y: {T}) -> {T} {{
  %0 = "smelt.exp"(%y) : ({T}) -> {T}
  return %0 : {T}
}}
"""
    assert told(first, second) == ["@a: called @other in the second"]
    assert not differences(text.parse(first), text.parse(second))
    changed = second.replace('"smelt.exp"', '"smelt.log"')
    assert differences(text.parse(first), text.parse(changed))
    assert "@a: only in the first" in told(first, changed) and "@other: only in the second" in told(first, changed)


def test_what_was_added_removed_and_changed() -> None:
    assert told(chain("exp", "sin"), chain("exp", "sin", "abs")) == [
        "@main: 2 ops the same, 1 changed, 1 added", "+ abs(%1) : f32[4]", "~ return: result 0 %1 (sin) → %2 (abs)",
    ]  # fmt: skip
    assert told(chain("exp", "sin", "abs"), chain("sin", "abs")) == [
        "@main: 1 ops the same, 1 changed, 1 removed", "- exp(%arg0) : f32[4]",
        "~ sin(%arg0) : f32[4]: operand 0 %0 (exp) → %arg0",
    ]  # fmt: skip
    first = 'func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> { %0 = "smelt.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> }'  # noqa: E501
    second = first.replace("2x3", "2x2").replace(
        "tensor<2x2xf32>) -> tensor<2xf32> {", "tensor<2x2xf32>) -> tensor<2xf32> {"
    )
    turned = second.replace("i64: 1", "i64: 0")
    assert "~ reduce_sum(%arg0, axes=(0,)) : f32[2]: axes (1,) → (0,)" in told(second, turned)
    assert differences(text.parse(first), text.parse(second))  # of the argument's type
    assert told(chain("exp", "sin"), chain("exp", "sin", result=0)) == [
        "@main: 2 ops the same, 1 changed", "~ return: result 0 %1 (sin) → %0 (exp)",
    ]  # fmt: skip


def test_order_of_effects_counts() -> None:
    call = '%{0} = "smelt.sin"(%x) : ({1}) -> {1}'
    assert not differences(*(text.parse(chain("exp")) for _ in range(2)))
    one = f"func.func @main(%x: {T}) -> {T} {{ {call.format(0, T)} return %x : {T} }}"
    assert not differences(text.parse(one), text.parse(one.replace(call.format(0, T), call.format(7, T))))


@pytest.mark.parametrize("seed", range(10))
def test_one_op_that_was_changed_is_found(seed: int) -> None:
    """A random program, and the same with one op in place of another: nothing but that, and what reads it."""
    choose = random.Random(seed)
    names = [choose.choice(["exp", "sin", "tanh", "abs"]) for _ in range(20)]
    at = choose.randrange(20)
    other = list(names)
    other[at] = "sqrt"
    lines = told(chain(*names), chain(*other))
    assert f"- {names[at]}(%{at - 1 if at else 'arg0'}) : f32[4]" in lines
    assert f"+ sqrt(%{at - 1 if at else 'arg0'}) : f32[4]" in lines
    assert lines[0] == f"@main: {18 if at < 19 else 19} ops the same, 1 changed, 1 removed, 1 added"


def test_passes_that_change_nothing() -> None:
    source = text.to_text(module_of([smelt.ir.aval.Aval((8, 16), f32)], layer_norm))
    module = text.parse(source)
    rebuild(module, read_function(functions(module)["main"]), lambda b, op, operands: b.clone(op, operands))
    assert not differences(text.parse(source), module)
    Pipeline.parse("canonicalize,cse,dce").run(module)
    assert differences(text.parse(source), module)


def test_what_is_written_on_a_function() -> None:
    first = chain("exp")
    second = first.replace(" {\n", ' attributes {smelt.note = "kept"} {\n', 1)
    assert told(first, second) == ["@main: 1 ops the same, 1 changed", '~ smelt.note None → "kept"']
