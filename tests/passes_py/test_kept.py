"""Functions that stay decoded from pass to pass are what would be read of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, mlir, reading, scopes, text
from smelt.ir.aval import Aval
from smelt.ir.builder import (
    Builder,
    Function,
    Value,
    function_named,
    functions,
    kept_function,
    new_function,
    read_function,
)
from smelt.passes import Pipeline
from smelt.passes.driver import Instrumentation
from smelt.passes.rewrite import has_body
from smelt.passes.simplify.cse import hashable

X, W = smelt.array(np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)), smelt.ones((8, 8))


def described(function: Function) -> Any:
    """What a function is, as something to compare."""
    numbers: dict[Value, int] = {}
    for v in [*function.arguments, *(v for op in function.ops for v in op.results)]:
        numbers[v] = len(numbers)
    ops = [
        (op.name, [numbers[v] for v in op.operands], [(k, hashable(v)) for k, v in op.attrs.items()],
         [v.aval for v in op.results], op.mlir)
        for op in function.ops
    ]  # fmt: skip
    return function.name, [v.aval for v in function.arguments], ops, [numbers[v] for v in function.returns]


def check(_: Any, module: Any) -> None:
    for operation in functions(module).values():
        kept = kept_function(operation) if has_body(operation) else None
        if kept is not None:
            assert described(kept) == described(reading._decoded_function(operation.operation))


def network(x: Any, w: Any) -> Any:
    hidden = smelt.tanh(smelt.tanh(x @ w) @ w + 0 * x)
    return smelt.sum(smelt.softmax(hidden, axis=-1) * smelt.log(1 + x * x)) / 1.0


def looping(x: Any, w: Any) -> Any:
    carry, rows = smelt.scan(lambda c, row: (smelt.sin(c) + row, c * row), x[0], x)
    chosen = smelt.cond(x[0, 0] > 0, smelt.sin, lambda v: v * 2, carry)
    return smelt.sum(rows) + smelt.sum(chosen) + smelt.sum(smelt.sort(x, axis=1)[:, ::2])


def pieces(x: Any, w: Any) -> Any:
    parts = [smelt.exp(x[i : i + 2] - x[0]) for i in range(3)]
    return [smelt.concatenate(parts), smelt.concatenate(parts) + 0, smelt.mean(x, axis=0), smelt.take(x, [2, 0])]


PROGRAMS: list[Callable[..., Any]] = [
    network, smelt.grad(network, argnums=(0, 1)), looping, smelt.grad(looping), pieces,
    lambda x, w: smelt.vmap(smelt.grad(lambda row: network(row[None], w)))(x),
    lambda x, w: smelt.grad(smelt.checkpoint(network))(x, w),
]  # fmt: skip


def module_of(function: Callable[..., Any]) -> Any:
    return smelt.compile(function).trace(X, W).lower().module


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_after_each_pass_it_is_what_would_be_read(number: int, device: str) -> None:
    smelt.default_pipeline(device).run(module_of(PROGRAMS[number]), Instrumentation(on_pass=check))


def test_what_is_returned_now_is_kept() -> None:
    module = module_of(lambda x, w: smelt.log(smelt.exp(x)))
    Pipeline.parse("cse,saturate,dce").run(module, Instrumentation(on_pass=check))
    assert not function_named(module).ops


def test_what_is_erased_while_nothing_is_kept() -> None:
    module = module_of(lambda x, w: smelt.exp(x))
    with mlir.lock, scopes.keeping():
        operation, (x,), b = new_function(module, "made", [Aval((4,), dtypes.float32)], [Aval((4,), dtypes.float32)])
        gone, stays = b.sin(x).mlir.owner, b.cos(x)
        gone.erase()
        b.return_([stays])
        assert [op.name for op in read_function(operation).ops] == ["cos"]


def test_the_text_does_not_depend_on_it() -> None:
    pipeline = str(smelt.default_pipeline("cpu"))
    at_once, one_by_one = module_of(PROGRAMS[1]), module_of(PROGRAMS[1])
    Pipeline.parse(pipeline).run(at_once)
    with mlir.lock:  # a hook that reads nothing, and nothing kept from one pass to the next
        Pipeline.parse(pipeline).run(one_by_one, Instrumentation(before_pass=lambda *_: forget()))
    assert text.to_text(at_once) == text.to_text(one_by_one)


def forget() -> None:
    with scopes.keeping(False):
        assert not scopes.is_keeping()


def test_few_functions_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    read, decode = [], reading._decoded_function
    monkeypatch.setattr(reading, "_decoded_function", lambda operation: read.append(operation) or decode(operation))
    smelt.default_pipeline("cpu").run(module_of(network))
    assert len(read) == 1  # the module as it came


def test_changes_are_noticed() -> None:
    def names(module: Any) -> Sequence[str]:
        return [op.name for op in function_named(module).ops]

    module = module_of(lambda x, w: smelt.exp(smelt.sin(x)))
    with mlir.lock, scopes.keeping():
        function = function_named(module)
        assert function_named(module) is function
        sin, exp = function.ops
        b = Builder(mlir.ir.InsertionPoint(exp.mlir), exp.location)
        made = b.cos(sin.results[0])
        assert names(module) == ["sin", "cos", "exp"]
        b.neg(made)  # the same builder again
        assert names(module) == ["sin", "cos", "neg", "exp"]
        function_named(module).ops[2].erase()
        assert names(module) == ["sin", "cos", "exp"]
        function = function_named(module)
        function.mlir.attributes["sym_name"] = mlir.ir.StringAttr.get("other", module.context)
        assert function_named(module, "other").name == "other"
        scopes.changed(function.ops[0].mlir)
        assert function_named(module, "other") is not function
    assert not scopes.is_keeping()
    assert read_function(function.mlir) is not read_function(function.mlir)


def test_passes_of_others_read_for_themselves() -> None:
    module = module_of(lambda x, w: smelt.exp(smelt.sin(x)))
    with mlir.lock, scopes.keeping():
        first = function_named(module)
        with scopes.keeping(False):
            assert function_named(module) is not function_named(module)
        assert function_named(module) is not first
