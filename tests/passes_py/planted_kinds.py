"""Faults that are no wrong rewrite of one expression: each pass with a program in which it is wrong.

The pass is wrong for some numbers, types or sizes alone, before transformations are expanded, at some runs only, by
what it remembers, or does not come back.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import smelt
from smelt.ir import mlir, text
from smelt.ir.builder import Builder, OpView, Value, functions, read_function
from smelt.passes import Pass, register_pass
from smelt.passes.rewrite import rebuild

Rule = Callable[[Builder, OpView, Sequence[Value]], Any]


class Fault(NamedTuple):
    """What a pass does, and a program that shows it. Attributes: op, of which `rule` makes other values."""

    op: str
    rule: Rule
    program: Callable[..., Any]
    arguments: tuple[Any, ...]


#: What one run of a pass leaves to the next.
_REMEMBERED: list[Any] = []
_RUNS = Counter[str]()


def _only(test: Callable[[OpView, Sequence[Value]], bool], make: Rule) -> Rule:
    return lambda b, op, x: make(b, op, x) if test(op, x) else None


def _negated(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    return b.neg(b.clone(op, x)[0])


def _one_more(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    found = b.clone(op, x)[0]
    return b.add(found, b.broadcast_to(b.full((), 1, found.dtype), found.shape))


def _swapped(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    return b.emit(op.op, [x[1], x[0]], op.attrs)[0]


def _other_key(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    return b.emit(op.op, [b.reverse(x[0], axes=(0,)), *x[1:]], op.attrs)[0]


def _every_second_run(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    _RUNS["second"] += 1
    return _negated(b, op, x) if _RUNS["second"] % 2 else None


def _remembered(b: Builder, op: OpView, x: Sequence[Value]) -> Value | None:
    _REMEMBERED.append(op.attrs["value"])
    return b.full((), _REMEMBERED[0], op.results[0].dtype)


def _reversed(name: str) -> Callable[[Any], None]:
    def change(operation: Any) -> None:
        found = list(operation.attributes[name])
        with operation.context, operation.location:
            operation.attributes[name] = mlir.ir.DenseI64ArrayAttr.get(found[::-1])

    return change


def _forget(operation: Any) -> None:
    for attribute in list(operation.attributes):
        if "custom" in attribute:
            del operation.attributes[attribute]


def _raises(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    raise KeyError("nothing")


def _leaves(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    raise SystemExit(0)


def _aborts(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    os.abort()


def _leaves_at_once(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    os._exit(0)


def _hangs(b: Builder, op: OpView, x: Sequence[Value]) -> Value:
    time.sleep(3600)
    raise AssertionError


_X = np.ones((4, 6), np.float32)
_KEY = np.array([0, 7], np.uint32)


def _noise(x: Any, key: Any) -> Any:
    first, second = smelt.random.split(key)
    return x + smelt.random.uniform(shape=(4, 6), key=first) * smelt.random.uniform(shape=(4, 6), key=second)


@smelt.custom_function
def _clipped(x: Any) -> Any:
    return x * 2


@_clipped.vjp
def _clipped_vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
    return smelt.clip(cotangents, -0.5, 0.5)


#: Faults of values: `smelt verify` names each, `smelt reduce` shows each in a few ops.
VALUES: dict[str, Fault] = {
    "another key": Fault("random_bits", _other_key, _noise, (_X, _KEY)),
    "swapped operands": Fault("sub", _swapped, lambda x: smelt.tanh(x * 2 - smelt.exp(x)), (_X,)),
    "empty": Fault(
        "reduce_prod", _only(lambda op, x: 0 in x[0].shape, _one_more),
        lambda x: smelt.exp(x) + x[:, :0].prod(axis=1, keepdims=True), (_X,),
    ),
    "one element": Fault(
        "reduce_max", _only(lambda op, x: x[0].shape[1:] == (1,), _negated),
        lambda x: smelt.tanh(x) + smelt.sin(x[:, :1]).max(axis=1, keepdims=True), (_X,),
    ),
    "half": Fault(
        "exp", _only(lambda op, x: x[0].dtype is smelt.float16, _one_more),
        lambda x: smelt.exp(x) + smelt.exp(smelt.sin(x).astype(smelt.float16)).astype(smelt.float32), (_X,),
    ),
    "unsigned": Fault(
        "greater", _only(lambda op, x: x[0].dtype is smelt.uint8, _swapped),
        lambda x: smelt.where(x.astype(smelt.uint8) > x[::-1].astype(smelt.uint8), smelt.exp(x), 7.0), (_X,),
    ),
    "broadcast": Fault(
        "broadcast",
        _only(lambda op, x: x[0].shape == (1, 6), lambda b, op, x: b.clone(op, [b.reverse(x[0], axes=(1,))])[0]),
        lambda x: smelt.sin(x) * smelt.broadcast_to(smelt.cos(x[:1]), (4, 6)), (_X,),
    ),
    "one run of two": Fault("exp", _every_second_run, lambda x: smelt.exp(smelt.sin(x) * 2), (_X,)),
    "what another program had": Fault("constant", _remembered, lambda x: smelt.sin(x * 3) + 5, (_X,)),
}  # fmt: skip

#: Faults in modules whose transformations no pass has expanded yet: what each does to operations of a name.
UNEXPANDED: dict[str, tuple[str, Callable[[Any], None], Callable[..., Any]]] = {
    "arguments of a gradient": (
        "smelt.vjp", _reversed("wrt"),
        lambda x: smelt.grad(lambda x, y: (smelt.sin(x) * smelt.exp(y)).sum(), argnums=(0, 1))(x, x[::-1])[0],
    ),
    "axes of a batch": (
        "smelt.batch", _reversed("in_axes"),
        lambda x: smelt.vmap(lambda x, y: smelt.sin(x) @ y, in_axes=(0, 1))(x[:, :4], x[:, 1:5]),
    ),
    "a rule that a function brings": (
        "func.func", _forget, smelt.grad(lambda x: _clipped(smelt.sin(x)).sum())
    ),
}  # fmt: skip

#: Faults of the pass itself: what smelt-opt says of each.
ENDS: dict[str, tuple[Rule, str]] = {
    "an exception": (_raises, "KeyError"), "leaving": (_leaves, "ended the process"),
    "leaving at once": (_leaves_at_once, "ended the process"),
    "a crash": (_aborts, "SIGABRT"), "no end": (_hangs, "still busy after"),
}  # fmt: skip


def source_of(name: str) -> str:
    """The program of a fault of values."""
    program, arguments = VALUES[name][2:] if name in VALUES else (UNEXPANDED[name][2], (_X,))
    module = smelt.compile(program).trace(*map(smelt.array, arguments)).lower().module
    return text.to_text(text.parse(text.to_text(module)))


def pass_of(name: str) -> str:
    """The pass that has the fault."""
    return f"faulty-{name.replace(' ', '-')}"


def _register(name: str, wanted: str, rule: Rule) -> None:
    @register_pass(pass_of(name))
    @dataclass(frozen=True)
    class FaultyPass(Pass):
        """A faulty pass."""

        def run(self, module: Any, statistics: Counter[str]) -> None:
            def visit(b: Builder, op: OpView, operands: Sequence[Value]) -> Sequence[Value]:
                found = rule(b, op, operands) if op.name == wanted else None
                if found is None:
                    return b.clone(op, operands)
                return [found] if isinstance(found, Value) else found

            for operation in list(functions(module).values()):
                rebuild(module, read_function(operation), visit)


def _register_change(name: str, wanted: str, change: Callable[[Any], None]) -> None:
    @register_pass(pass_of(name))
    @dataclass(frozen=True)
    class ChangingPass(Pass):
        """A faulty pass."""

        def run(self, module: Any, statistics: Counter[str]) -> None:
            for function in functions(module).values():
                blocks = [block for region in function.regions for block in region.blocks]
                for operation in [function, *(o for block in blocks for o in block.operations)]:
                    if operation.operation.name == wanted:
                        change(operation.operation)


for _name, _fault in VALUES.items():
    _register(_name, _fault.op, _fault.rule)
for _name, (_wanted, _change, _) in UNEXPANDED.items():
    _register_change(_name, _wanted, _change)
for _name, (_rule, _) in ENDS.items():
    _register(_name, "exp", _rule)
