"""Calls, branches and loops: each has all rules, in one class, and its operands have a layout."""

from __future__ import annotations

import inspect

import pytest

from smelt.ir import control
from smelt.ir import op as ir_op
from smelt.ir.builder import CALL
from smelt.ir.control import COND, CONTROL_OPS, SCAN, WHILE, ControlOp, layout
from smelt.ir.op import Op
from smelt.passes.rules import FunctionRules, function_rules


def test_all_branches_and_loops_are_listed() -> None:
    assert list(CONTROL_OPS) == [x for x in vars(control).values() if isinstance(x, ControlOp)]
    assert list(ir_op._TAKEN) == [x.name for x in CONTROL_OPS], "no other op may be called like one"


@pytest.mark.parametrize("op", [*CONTROL_OPS, CALL], ids=lambda op: op.name)
def test_an_op_that_runs_functions_has_all_rules(op: Op) -> None:
    rules = function_rules(op.name)
    assert isinstance(rules, FunctionRules) and not inspect.isabstract(type(rules))
    assert getattr(rules, "op", op) is op


def test_each_op_has_rules_of_its_own() -> None:
    files = [inspect.getsourcefile(type(function_rules(op.name))) for op in (*CONTROL_OPS, CALL)]
    assert len(CONTROL_OPS) == 3 and len(set(files)) == 4


def test_a_name_without_rules() -> None:
    with pytest.raises(KeyError):
        function_rules("add")


def test_layouts() -> None:
    assert [list(part) for part in layout(CALL, {}, 3)] == [[], [0, 1, 2], [], []]
    assert [list(part) for part in layout(COND, {}, 3)] == [[0], [1, 2], [], []]
    assert [list(part) for part in layout(WHILE, {"constants": 1}, 3)] == [[], [0], [1, 2], []]
    assert [list(part) for part in layout(SCAN, {"constants": 1, "carries": 0}, 3)] == [[], [0], [], [1, 2]]
