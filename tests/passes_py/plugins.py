"""Passes as another package would write them, with mistakes: what is given to a builder, and how it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.ir import dtypes, mlir, text
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, Function, OpView, Value, functions, new_function, read_function
from smelt.ir.control import COND, SCAN, WHILE
from smelt.ir.op import registry as ops
from smelt.passes import Pass, Pipeline
from smelt.passes.rewrite import rebuild

F4 = "tensor<4xf32>"
SOURCE = f"""
func.func @main(%x: {F4}) -> {F4} {{
  %0 = "smelt.exp"(%x) : ({F4}) -> {F4} loc("model.py":12:4)
  %1 = "smelt.sin"(%0) : ({F4}) -> {F4} loc("model.py":13:4)
  %2 = "smelt.log"(%1) : ({F4}) -> {F4} loc("model.py":14:4)
  return %2 : {F4}
}}
func.func private @other(%y: {F4}) -> {F4} {{
  %0 = "smelt.neg"(%y) : ({F4}) -> {F4}
  return %0 : {F4}
}}
func.func private @whole(%y: {F4}) -> {F4} {{
  return %y : {F4}
}}
func.func private @truth(%y: {F4}) -> tensor<i1> {{
  %0 = "smelt.constant"() {{value = true, dtype = i1}} : () -> tensor<i1>
  return %0 : tensor<i1>
}}
"""


def parsed() -> Any:
    with mlir.lock:
        return text.parse(SOURCE)


@dataclass(frozen=True)
class Foreign(Pass):
    """A pass that does whatever it is made of."""

    name = "foreign"
    do: Callable[[Any, Counter], None] = lambda module, statistics: None

    def run(self, module: Any, statistics: Counter) -> None:
        self.do(module, statistics)


def run(do: Callable[[Any, Counter], None], module: Any = None) -> Any:
    """A module after a pass of another package."""
    module = parsed() if module is None else module
    Pipeline([Foreign(do)]).run(module)
    return module


def read(module: Any, name: str = "main") -> Function:
    return read_function(functions(module)[name])


@dataclass
class Site:
    """A visit of ``smelt.log``: what it may use, and what it may not."""

    module: Any
    function: Function
    b: Builder
    op: OpView
    operands: Sequence[Value]


def rebuilt(module: Any) -> Value:
    """A value of a function that has been rebuilt since it was read."""
    stale = read(module, "other")
    rebuild(module, stale, lambda b, op, operands: b.clone(op, operands))
    return stale.ops[0].results[0]


def read_twice(module: Any) -> Value:
    """As `rebuilt`, of a function that was read once more."""
    stale = read(module, "other")
    rebuild(module, read(module, "other"), lambda b, op, operands: b.clone(op, operands))
    return stale.ops[0].results[0]


def erased(site: Site) -> Value:
    """A new value whose op has been erased."""
    made = site.b.neg(site.operands[0])
    made.owner.erase()  # type: ignore[union-attr]
    return made


def erased_by_mlir(site: Site) -> Value:
    made = site.b.neg(site.operands[0])
    made.owner.mlir.erase()  # type: ignore[union-attr]
    return made


def abandoned(site: Site) -> Value:
    """A value of a function that was begun and erased."""
    operation, (argument,), b = new_function(site.module, "begun", [Aval((4,), dtypes.float32)], [])
    made = b.neg(argument)
    operation.erase()
    return made


#: What is no value that the function being built can read.
WRONG: dict[str, Callable[[Site], Any]] = {
    "old operand": lambda s: s.op.operands[0],
    "old result": lambda s: s.op.results[0],
    "old argument": lambda s: s.function.arguments[0],
    "of another function": lambda s: read(s.module, "other").ops[0].results[0],
    "argument of another function": lambda s: read(s.module, "other").arguments[0],
    "of another module": lambda s: read(parsed()).ops[0].results[0],
    "of a rebuilt function": lambda s: rebuilt(s.module),
    "of a rebuilt function, read twice": lambda s: read_twice(s.module),
    "erased": erased,
    "erased by MLIR": erased_by_mlir,
    "of an erased function": abandoned,
    "only a type": lambda s: Value(None, s.operands[0].aval, None, None),
    "None": lambda s: None,
    "int": lambda s: 3,
    "text": lambda s: "x",
    "array": lambda s: np.ones(4, np.float32),
    "value of the bindings": lambda s: s.operands[0].mlir,
    "op": lambda s: s.op,
    "list": lambda s: [s.operands[0]],
    "function": lambda s: s.b.function("other", [Aval((4,), dtypes.float32)], [Aval((4,), dtypes.float32)]),
}

F = Aval((4,), dtypes.float32)
BATCH = {"size": 1, "in_axes": (0,), "out_axes": (0,)}


def as_function(s: Site) -> Value:
    return s.b.function("other", [F], [F])


#: Ways to use a value, each of which gives one `f32[4]` where `RIGHT_VALUES` has a value of the right type.
USES: dict[str, Callable[[Site, Any], Any]] = {
    "b.exp": lambda s, v: s.b.exp(v),
    "b.add": lambda s, v: s.b.add(s.operands[0], v),
    "b.concatenate": lambda s, v: s.b.slice(
        s.b.concatenate(s.operands[0], v, axis=0), start=(0,), stop=(4,), stride=(1,)
    ),
    "b.emit": lambda s, v: s.b.emit(ops["exp"], [v], {})[0],
    "b.emit_typed": lambda s, v: s.b.emit_typed(ops["exp"], [v], {}, [F])[0],
    "b.clone": lambda s, v: s.b.clone(s.op, [v])[0],
    "operators": lambda s, v: s.operands[0] + v,
    "swapped operators": lambda s, v: v - s.operands[0],
    "negation": lambda s, v: -v,
    "b.broadcast_to": lambda s, v: s.b.sum_to(s.b.broadcast_to(v, (2, 4)), (4,)),
    "b.sum_to": lambda s, v: s.b.broadcast_to(s.b.sum_to(v, (1,)), (4,)),
    "b.reshape_to": lambda s, v: s.b.reshape_to(s.b.reshape_to(v, (2, 2)), (4,)),
    "b.convert_to": lambda s, v: s.b.convert_to(s.b.convert_to(v, dtypes.int32), dtypes.float32),
    "b.move_axis": lambda s, v: s.b.reshape_to(s.b.move_axis(s.b.reshape_to(v, (4, 1)), 0, 1), (4,)),
    "b.zeros_like": lambda s, v: s.b.neg(s.b.zeros_like(v)),
    "b.add_any": lambda s, v: s.b.neg(s.b.add_any(s.operands[0], v)),
    "b.call": lambda s, v: s.b.call("other", [v], [F])[0],
    "operand of b.apply": lambda s, v: s.b.apply(as_function(s), [v])[0],
    "function of b.apply": lambda s, v: s.b.apply(v, [s.operands[0]])[0],
    "b.transform": lambda s, v: s.b.sum_to(  # the batch of one
        s.b.apply(s.b.transform(ops["batch"], v, BATCH), [s.b.reshape_to(s.operands[0], (1, 4))])[0], (4,)
    ),
    "b.cond": lambda s, v: s.b.control(
        COND, [s.b.full((), True, dtypes.bool_), v], {"branches": ("other", "whole")}, [F]
    )[0],
    "index of b.cond": lambda s, v: s.b.control(COND, [v, s.operands[0]], {"branches": ("other", "whole")}, [F])[0],
    "b.while": lambda s, v: s.b.control(WHILE, [v], {"cond": "truth", "body": "other", "constants": 0}, [F])[0],
    "b.scan": lambda s, v: s.b.control(
        SCAN, [v], {"body": "other", "constants": 0, "carries": 1, "length": 3, "reverse": False}, [F]
    )[0],
    "b.return_": lambda s, v: s.b.return_([v]) or s.b.neg(s.operands[0]),
    "result of the visit": lambda s, v: v,
}
#: Values that are right where an operand of the op is not; a function is returned from once.
RIGHT_VALUES: dict[str, Callable[[Site], Any] | None] = {
    "function of b.apply": as_function, "b.transform": as_function,
    "index of b.cond": lambda s: s.b.full((), True, dtypes.bool_), "b.return_": None,
}  # fmt: skip
#: Wrong values that a use may take: a function, a number, or where only the type is asked for.
RIGHT = {
    ("function of b.apply", "function"),
    *((use, what) for use in ("b.zeros_like",) for what in WRONG if what not in (
        "None", "int", "text", "array", "value of the bindings", "op", "list", "function")),
    ("b.transform", "function"), ("b.add_any", "None"), ("b.add_any", "int"), ("operators", "int"),
    ("swapped operators", "int"),
}  # fmt: skip


def visiting(what: Callable[[Site], Any]) -> Callable[[Any, Counter], None]:
    """A pass that rebuilds @main, and calls `what` for the result of ``smelt.log``."""

    def do(module: Any, statistics: Counter) -> None:
        function = read(module)

        def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Any:
            if op.name != "log":
                return b.clone(op, operands)
            return what(Site(module, function, b, op, operands))

        rebuild(module, function, visit)

    return do
