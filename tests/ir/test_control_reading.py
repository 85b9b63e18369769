"""Control flow that is valid upstream IR, but not what smelt writes: an error, never another program."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import text
from smelt.ir.errors import IRError
from smelt.ir.interpreter import Interpreter
from smelt.passes.driver import Pipeline

SCAN = """
func.func private @f(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = "smelt.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = "smelt.mul"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
func.func @main() -> (tensor<f32>, tensor<4xf32>) {
  %x = "smelt.iota"() {dtype = f32, shape = array<i64: 4>, axis = 0 : i64} : () -> tensor<4xf32>
  %i = "smelt.constant"() {dtype = f32, value = 2.0 : f64} : () -> tensor<f32>
  %n = "smelt.constant"() {dtype = i32, value = 4 : i64} : () -> tensor<i32>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<4xf32>
  %2:2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%c = %i, %s = %e) -> (tensor<f32>, tensor<4xf32>) {
    %y = tensor.extract_slice %x[%k] [1] [1] : tensor<4xf32> to tensor<f32>
    %3:2 = func.call @f(%c, %y) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %t = tensor.insert_slice %3#1 into %s[%k] [1] [1] : tensor<f32> into tensor<4xf32>
    scf.yield %3#0, %t : tensor<f32>, tensor<4xf32>
  } {smelt.carries = 1 : i64, smelt.constants = 0 : i64}
  return %2#0, %2#1 : tensor<f32>, tensor<4xf32>
}
"""
BACKWARDS = SCAN.replace(
    "%y = tensor.extract_slice %x[%k]", "%w = arith.subi %c3, %k : index\n    %y = tensor.extract_slice %x[%w]"
).replace("into %s[%k]", "into %s[%w]")

WHILE = """
func.func private @c(%k: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
  %0 = "smelt.less"(%a, %k) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @s(%k: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %0 = "smelt.add"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0, %b : tensor<i32>, tensor<i32>
}
func.func private @none() -> tensor<i1> {
  %0 = "smelt.constant"() {dtype = i1, value = 0 : i64} : () -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main() -> (tensor<i32>, tensor<i32>) {
  %k = "smelt.constant"() {dtype = i32, value = 10 : i64} : () -> tensor<i32>
  %k2 = "smelt.constant"() {dtype = i32, value = 20 : i64} : () -> tensor<i32>
  %o = "smelt.constant"() {dtype = i32, value = 1 : i64} : () -> tensor<i32>
  %p = "smelt.constant"() {dtype = i32, value = 3 : i64} : () -> tensor<i32>
  %r:2 = scf.while (%a = %o, %b = %p) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) {
    %0 = func.call @c(%k, %a, %b) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = tensor.extract %0[] : tensor<i1>
    scf.condition(%1) %a, %b : tensor<i32>, tensor<i32>
  } do {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %0:2 = func.call @s(%k, %a, %b) : (tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
    scf.yield %0#0, %0#1 : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}
"""

COND = """
func.func private @a(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
func.func private @b(%a: tensor<f32>) -> tensor<f32> {
  %0 = "smelt.neg"(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @main() -> tensor<f32> {
  %i = "smelt.constant"() {dtype = f32, value = 2.0 : f64} : () -> tensor<f32>
  %j = "smelt.constant"() {dtype = f32, value = 3.0 : f64} : () -> tensor<f32>
  %p = "smelt.constant"() {dtype = i1, value = 1 : i64} : () -> tensor<i1>
  %q = tensor.extract %p[] : tensor<i1>
  %0 = scf.if %q -> (tensor<f32>) {
    %1 = func.call @a(%i) : (tensor<f32>) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    %2 = func.call @b(%i) : (tensor<f32>) -> tensor<f32>
    scf.yield %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}
"""
SWITCH = (
    COND.replace("dtype = i1", "dtype = i32")
    .replace("tensor<i1>\n  %0", "tensor<i32>\n  %z = arith.index_cast %q : i32 to index\n  %0")
    .replace("tensor<i1>", "tensor<i32>")
    .replace("scf.if %q -> (tensor<f32>) {", "scf.index_switch %z -> tensor<f32>\n  case 0 {")
    .replace("} else {", "} default {")
)
VECTOR = (
    '%v = "smelt.broadcast"(%p) {shape = array<i64: 2>} : (tensor<i1>) -> tensor<2xi1>\n'
    "  %c1 = arith.constant 1 : index\n  %q = tensor.extract %v[%c1] : tensor<2xi1> //"
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SCAN, [8, [0, 2, 6, 15]]),
        (BACKWARDS, [8, [0, 7, 10, 6]]),
        (WHILE, [10, 3]),
        (COND, [2]),
        (SWITCH, [-2]),
    ],
)
def test_what_smelt_writes_is_read(source: str, expected: list) -> None:
    assert [np.asarray(x).tolist() for x in Interpreter(text.parse(source))("main", [])] == expected


@pytest.mark.parametrize(
    ("source", "old", "new", "message"),
    [
        (SCAN, "= %c0 to", "= %c1 to", "count from 0 in steps of 1"),
        (SCAN, "step %c1", "step %c3", "count from 0 in steps of 1"),
        (SCAN, "to %c4", "to %c3", r"f32\[4\] does not have one element for each of 3 steps"),
        (SCAN, "constant 4 : index", "constant -4 : index", "steps is -4"),
        (SCAN, "constant 4 : index", "constant 9223372036854775807 : index", "one element for each"),
        (
            SCAN,
            "%c4 = arith.constant 4 : index",
            "%m = tensor.extract %n[] : tensor<i32>\n  %c4 = arith.index_cast %m : i32 to index",
            "arith.constant",
        ),
        (SCAN, "scf.yield %3#0", "scf.yield %3#1", "must yield the carry"),
        (SCAN, "%3#1 into", "%3#0 into", "inserted each into its own"),
        (SCAN, "into %s[%k]", "into %e[%k]", "inserted each into its own"),
        (SCAN, "into %s[%k]", "into %s[%c1]", "element of this step"),
        (SCAN, "%x[%k]", "%x[%c1]", "element of this step"),
        (SCAN, "%x[%k] [1] [1]", "%x[%k] [1] [2]", "element of this step"),
        (SCAN, "%e = tensor.empty()", '%e = "smelt.iota"() {dtype = f32, shape = array<i64: 4>, axis = 0 : i64} : ()'
               " -> tensor<4xf32>\n  %unused = tensor.empty()", "tensor.empty"),
        (SCAN, "smelt.carries = 1", "smelt.carries = 0", "tensor.empty"),
        (SCAN, "smelt.carries = 1", "smelt.carries = 2", "the constants, then the carry"),
        (SCAN, "smelt.carries = 1", "smelt.carries = 9", "carries is 9"),
        (SCAN, "smelt.carries = 1", "smelt.carries = -1", "must not be negative"),
        (SCAN, "smelt.constants = 0", "smelt.constants = 9", "the constants, then the carry"),
        (SCAN, "smelt.carries = 1 : i64", 'smelt.carries = "a"', "call a function"),
        (SCAN, " {smelt.carries = 1 : i64, smelt.constants = 0 : i64}", "", "no smelt.constants"),
        (SCAN, "@f(%c, %y)", "@f(%y, %c)", "the constants, then the carry"),
        (SCAN, "@f(%c, %y)", "@f(%i, %y)", "the constants, then the carry"),
        (SCAN, "@f(%c, %y)", "@f(%c, %c)", "take the slices, in order"),
        (SCAN, "%t = t", '%u = "smelt.neg"(%y) : (tensor<f32>) -> tensor<f32>\n  %t = t', "smelt.neg in a region"),
        (SCAN, "%y = t", "%u = arith.subi %k, %k : index\n  %y = t", "arith.constant"),
        (BACKWARDS, "subi %c3", "subi %c1", "starts with the last step"),
        (BACKWARDS, "into %s[%w]", "into %s[%k]", "element of this step"),
        (WHILE, "scf.condition(%1) %a, %b", "scf.condition(%1) %b, %a", "pass on the result"),
        (WHILE, "scf.yield %0#0, %0#1", "scf.yield %0#1, %0#0", "yield the results"),
        (WHILE, "@s(%k, %a, %b) :", "@s(%k2, %a, %b) :", "the constants that its condition takes"),
        (WHILE, "@s(%k, %a, %b) :", "@s(%k, %b, %a) :", "the constants that its condition takes"),
        (WHILE, "@c(%k, %a, %b) :", "@c(%k, %b, %a) :", "the constants, then the carry"),
        (WHILE, "@c(%k, %a, %b) : (tensor<i32>, tensor<i32>, tensor<i32>)", "@none() : ()", "all of the carry"),
        (COND, "@b(%i)", "@b(%j)", "different operands"),
        (COND, "scf.yield %2", "scf.yield %i", "yield the results"),
        (COND, "    %2 = func.call @b(%i) : (tensor<f32>) -> tensor<f32>\n    scf.yield %2", "    scf.yield %i",
               "in a region"),
        (COND, "%q = tensor.extract %p[] : tensor<i1>", "%q = arith.constant true", "tensor.extract"),
        (COND, "%q = tensor.extract %p[] :", VECTOR, "without axes"),
        (SWITCH, "case 0", "case 1", "0, 1, 2"),
        (SWITCH, "case 0", "case -7", "0, 1, 2"),
    ],
)  # fmt: skip
def test_what_smelt_does_not_write_is_an_error(source: str, old: str, new: str, message: str) -> None:
    assert source.count(old) == 1
    changed = source.replace(old, new)
    with pytest.raises(IRError, match=rf"scf\.\w+: .*{message}.*; at "):
        Interpreter(text.parse(changed))("main", [])
    with pytest.raises(IRError, match=message):
        Pipeline.parse("inline,canonicalize,cse,dce").run(text.parse(changed))


def test_a_branch_without_an_else() -> None:
    source = COND.split("  %0 = scf.if")[0]
    source += "  scf.if %q {\n    func.call @a(%i) : (tensor<f32>) -> tensor<f32>\n  }\n"
    with pytest.raises(IRError, match=r"scf\.if: "):
        Interpreter(text.parse(source + "  return %i : tensor<f32>\n}"))("main", [])


def test_operands_that_no_smelt_op_made() -> None:
    source = """
    func.func @main() -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %0 = "smelt.neg"(%e) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    """
    with pytest.raises(IRError, match=r"smelt\.neg: an operand is no result of a smelt op; in @main"):
        Interpreter(text.parse(source))("main", [])
