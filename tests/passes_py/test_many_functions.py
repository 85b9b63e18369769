"""Passes on modules of many functions: what they look at does not grow with the square of their number."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

import smelt
from smelt.ir import mlir
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, functions, new_function, read_function
from smelt.ir.dialect import context
from smelt.ir.dtypes import float32
from smelt.passes import Pipeline
from smelt.passes.call_graph import EXPAND
from smelt.passes.driver import Instrumentation
from smelt.passes.simplify import inline

WATCHED = {f.__code__: f.__name__ for f in (functions, read_function)}


def loops(count, x):
    for i in range(count):
        x = smelt.scan(lambda carry, row, i=i: (carry * i + row, smelt.sin(row) + i), x[0], x)[1]
    return x


def branches(count, x):
    for i in range(count):
        x = smelt.cond(x[0, 0] > i, lambda y, i=i: smelt.sin(y) * i, lambda y, i=i: y + i, x)
    return x


def batches(count, x):
    for i in range(count):
        x = smelt.vmap(lambda row, i=i: smelt.sin(row) * i)(x)
    return x


def gradients(count, x):
    for i in range(count):
        x = smelt.grad(lambda y, i=i: (smelt.sin(y) * i).sum())(x)
    return x


def checkpoints(count, x):
    def loss(x):
        for i in range(count):
            x = smelt.checkpoint(lambda y, i=i: smelt.sin(y) * i)(x)
        return x.sum()

    return smelt.grad(loss)(x)


def looked_at(program, count):
    """By pass, how often the functions of the module were listed, and one of them was decoded."""
    module = smelt.compile(lambda x: program(count, x)).trace(smelt.ones((3, 4))).lower().module
    found, by_pass = Counter(), {}

    def watch(frame, event, _):
        if event == "call" and frame.f_code in WATCHED:
            found[WATCHED[frame.f_code]] += 1

    def before(record, _):
        found.clear()
        sys.setprofile(watch)

    def after(record, _):
        sys.setprofile(None)
        for name, times in found.items():
            key = record.name, name
            by_pass[key] = max(by_pass.get(key, 0), times)

    try:
        smelt.default_pipeline("cpu").run(module, Instrumentation(before_pass=before, on_pass=after))
    finally:
        sys.setprofile(None)
    return by_pass


@pytest.mark.parametrize("program", [loops, branches, batches, gradients, checkpoints])
def test_functions_are_listed_as_often_however_many_there_are(program):
    few, many = looked_at(program, 12), looked_at(program, 24)
    listed = {name: (few.get((name, what)), n) for (name, what), n in many.items() if what == "functions"}
    assert not {name: n for name, n in listed.items() if n[0] is not None and n[1] > n[0] + 2}
    decoded = {name: (few.get((name, what)), n) for (name, what), n in many.items() if what == "read_function"}
    assert not {name: n for name, n in decoded.items() if n[0] is not None and n[1] > 2 * n[0] + 8}


def test_calls_in_calls_are_inlined_at_once(monkeypatch):
    """What is only called is not written out level by level, and nothing recurses however deep calls are."""
    levels, aval = 1200, Aval((3,), float32)
    with context(), mlir.ir.Location.unknown():
        module = mlir.ir.Module.create()
    for i in range(levels + 1):
        _, (x,), b = new_function(module, f"level_{i}", [aval], [aval], public=i == levels)
        b.return_([b.sin(b.call(f"level_{i - 1}", [x], [aval])[0]) if i else b.tanh(x)])
    cloned = []
    clone = Builder.clone
    monkeypatch.setattr(Builder, "clone", lambda *args: (cloned.append(1), clone(*args))[1])
    Pipeline.parse("inline").run(module)
    (function,) = functions(module).values()
    assert len(read_function(function).ops) == levels + 1
    assert len(cloned) <= levels + 1


def test_gradients_of_checkpoints_do_not_double_with_each_level(monkeypatch):
    monkeypatch.setattr(inline, "MOST_OPS", 0)
    monkeypatch.setattr(inline, "MANY_OPS", 20)

    def nested(levels):
        if not levels:
            return lambda x: smelt.sin(x) * x
        inner = nested(levels - 1)
        return smelt.checkpoint(lambda x: inner(inner(smelt.tanh(x))))

    lines = []
    for levels in (4, 7, 10):
        loss = smelt.grad(lambda x, levels=levels: nested(levels)(x).sum())
        module = smelt.compile(loss).trace(smelt.ones(3)).lower().module
        Pipeline.parse(EXPAND).run(module)
        lines.append(str(module).count("\n"))
    assert lines[2] - lines[1] <= 1.3 * (lines[1] - lines[0])
