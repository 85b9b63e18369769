"""Value numbers across functions: what is proved equal without a run, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

import smelt
from smelt.ir import text
from smelt.ir.op import registry
from smelt.passes import Pipeline
from smelt.passes.conditioning import Counted
from smelt.passes.driver import Instrumentation
from smelt.passes.numbering import Numbering
from smelt.passes.validation import ValueCheck

V = "tensor<4xf32>"
#: A program, and others that compute the same.
SAME = {
    "in another order": [
        f'%0 = "smelt.exp"(%x) : ({V}) -> {V}\n%1 = "smelt.sin"(%y) : ({V}) -> {V}',
        f'%1 = "smelt.sin"(%y) : ({V}) -> {V}\n%0 = "smelt.exp"(%x) : ({V}) -> {V}',
        f'%1 = call @g(%y) : ({V}) -> {V}\n%0 = "smelt.exp"(%x) : ({V}) -> {V}',
        f'%2 = "smelt.exp"(%x) : ({V}) -> {V}\n%1 = "smelt.sin"(%y) : ({V}) -> {V}\n'
        f'%3 = "smelt.add"(%2, %1) : ({V}, {V}) -> {V}\n%0 = "smelt.exp"(%x) : ({V}) -> {V}',
    ],
    "operands of a sum": [
        f'%0 = "smelt.add"(%x, %y) : ({V}, {V}) -> {V}\n%1 = "smelt.add"(%0, %x) : ({V}, {V}) -> {V}',
        f'%0 = "smelt.add"(%y, %x) : ({V}, {V}) -> {V}\n%1 = "smelt.add"(%x, %0) : ({V}, {V}) -> {V}',
    ],
}
#: Programs that do not.
OTHER = {
    "operands of a difference": [f'%0 = "smelt.sub"({a}) : ({V}, {V}) -> {V}' for a in ("%x, %y", "%y, %x")],
    "other arguments of a call": [f"%0 = call @g({a}) : ({V}) -> {V}" for a in ("%x", "%y")],
    "another op": [f'%0 = "smelt.{name}"(%x) : ({V}) -> {V}' for name in ("exp", "expm1")],
    "the sign of a zero": [
        f'%c = "smelt.constant"() {{dtype = f32, value = {zero} : f64}} : () -> tensor<f32>\n'
        f'%0 = "smelt.broadcast"(%c) {{shape = array<i64: 4>}} : (tensor<f32>) -> {V}'
        for zero in ("0.0", "-0.0")
    ],
}


def of(body: str, numbering: Numbering) -> Any:
    results = "%0, %1" if "%1 =" in body else "%0, %0"
    return numbering.of(text.parse(f"""
    func.func private @g(%x: {V}) -> {V} {{
      %0 = "smelt.sin"(%x) : ({V}) -> {V}
      return %0 : {V}
    }}
    func.func @main(%x: {V}, %y: {V}) -> ({V}, {V}) {{
      {body}
      return {results} : {V}, {V}
    }}"""))


@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    numbering = Numbering()
    assert len({of(body, numbering) for body in SAME[name]}) == 1


@pytest.mark.parametrize("name", OTHER)
def test_others(name: str) -> None:
    numbering = Numbering()
    assert len({of(body, numbering) for body in OTHER[name]}) == len(OTHER[name])


def module_of(function: Any, *arguments: Any) -> Any:
    return text.parse(text.to_text(smelt.compile(function).trace(*arguments).lower().module))


@pytest.mark.parametrize("other", [lambda c, y: (c * y, y), lambda c, y: (y * c, c)], ids=["result", "same carry"])
def test_what_a_loop_runs(other: Any) -> None:
    """Is compared, whatever it is called."""
    numbering, x = Numbering(), smelt.ones((3, 2))
    one = module_of(lambda x: smelt.scan(lambda c, y: (y * c, y), x[0], x), x)
    two = module_of(lambda x: smelt.scan(other, x[0], x), x)
    assert (numbering.of(one) == numbering.of(two)) is (other(2, 3) == (6, 3))


def test_effects_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an op of a package that does something, though nobody reads its result."""
    numbering, plain = Numbering(), f'%0 = "smelt.sin"(%x) : ({V}) -> {V}'
    bodies = [plain, f'%2 = "smelt.exp"(%x) : ({V}) -> {V}\n{plain}', f'%2 = "smelt.exp"(%y) : ({V}) -> {V}\n{plain}']
    assert len({of(body, numbering) for body in bodies}) == 1
    monkeypatch.setattr(registry["exp"], "pure", False)
    assert len({of(body, numbering) for body in bodies}) == 3


def test_a_pass_that_is_proved_right_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fusion moves ops into functions, and copies some."""
    module = module_of(lambda x: smelt.softmax(smelt.exp(x) * 2 + smelt.exp(x).sum(), axis=-1), smelt.ones((4, 8)))
    Pipeline.parse("canonicalize").run(module)
    check = ValueCheck(module)
    monkeypatch.setattr(Counted, "__call__", lambda *arguments: pytest.fail("the program ran"))
    Pipeline.parse("cse,dce,fuse,plan-buffers").run(module, Instrumentation(on_pass=check.on_pass))
    assert check.checked == ["cse", "dce", "fuse", "plan-buffers"]


def test_large_programs_run_on_fewer_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(lambda x: (smelt.exp(x) * 2).sum(), smelt.ones((4, 8)))
    many = len(ValueCheck(module).inputs)
    monkeypatch.setattr("smelt.passes.validation.MOST_ELEMENTS", 50)
    few = ValueCheck(module).inputs
    assert len(few) == many // 3 == len({kind for kind, _ in few})
