"""Dead-code elimination across branches, loops and calls: values stay, nothing unread does."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import mlir, text
from smelt.ir.builder import Builder, Function, OpView, Value, functions, new_function, read_function
from smelt.ir.control import COND, SCAN, WHILE, callees
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import registry
from smelt.passes import Pipeline
from smelt.passes.simplify.reads import closed

from .control_programs import CLEAN, EXPAND, INDEX, SCALAR, VECTOR, Emit, Program, derivative, expanded, f64, i32
from .test_control_random import Writer
from .test_growth import few_calls


def decoded(module: Any) -> dict[str, Function]:
    return {name: read_function(f) for name, f in functions(module).items() if f.regions[0].blocks}


def unread(module: Any) -> list[str]:
    """What dead-code elimination should have removed, in words."""
    known = decoded(module)
    found = []
    for f in known.values():
        used = {v for op in f.ops for v in op.operands} | set(f.returns)
        for op in f.ops:
            where = f"{op.name} over {', '.join(callees(op))}"
            if not any(r in used for r in op.results):
                found.append(f"{where}: dead")
            if op.op is SCAN or op.op is WHILE:
                found += [f"{where}: {problem}" for problem in _loop_problems(op, known, used)]
            elif op.op is COND:
                found += [f"{where}: result {i}" for i, r in enumerate(op.results) if r not in used]
    public = {name for name, f in functions(module).items() if "sym_visibility" not in f.attributes}
    for name, f in known.items():
        used = {v for op in f.ops for v in op.operands} | set(f.returns)
        several = [op for g in known.values() for op in g.ops if name in callees(op) and op.op in (COND, WHILE)]
        if name not in public and not several:
            idle = [a for a in f.arguments if a not in used and not _carry(a, name, known)]
            found += [f"@{name}: argument {a.index}" for a in idle]
    return found


def _carry(argument: Value, name: str, known: dict[str, Function]) -> bool:
    """Whether an argument is a carry: that stays where its result is read."""
    ops = [op for f in known.values() for op in f.ops if op.op is SCAN and name in callees(op)]
    return any(0 <= argument.index - op.attrs["constants"] < op.attrs["carries"] for op in ops)


def _loop_problems(op: OpView, known: dict[str, Function], used: set[Value]) -> list[str]:
    body, n = known[op.attrs["body"]], op.attrs["constants"]
    m = op.attrs["carries"] if op.op is SCAN else len(op.results)
    found = [f"stacked result {k}" for k in range(m, len(op.results)) if op.results[k] not in used]
    found += [f"constant carry {j}" for j in range(m) if body.returns[j] is body.arguments[n + j]]
    for j in range(m):
        others = [r for i, r in enumerate(body.returns) if i != j]
        alone = body.arguments[n + j] not in _cone(others) and op.op is SCAN
        if alone and op.results[j] not in used:
            found.append(f"carry {j} that only feeds itself")
    if len(set(op.operands[:n])) < n:
        found.append("a constant given twice")
    return found


def _cone(values: Sequence[Value]) -> set[Value]:
    seen, pending = set(), list(values)
    while pending:
        v = pending.pop()
        if v not in seen:
            seen.add(v)
            pending += v.owner.operands if v.owner is not None else ()
    return seen


def narrowed(module: Any) -> Any:
    """The module without what nobody reads, checked against what it computes."""
    after = expanded(module, CLEAN)
    assert unread(after) == []
    return after


def same_values(before: Any, after: Any, name: str, arguments: Sequence[np.ndarray]) -> None:
    want, have = Interpreter(before)(name, arguments), Interpreter(after)(name, arguments)
    for a, b in zip(want, have, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def dropping(p: Program, name: str, keep: Sequence[int]) -> str:
    """A public function that returns some results of another."""
    with mlir.lock:
        f = read_function(functions(p.module)[name])
        avals, outs = [a.aval for a in f.arguments], [r.aval for r in f.returns]
        _, values, b = new_function(p.module, f"{name}_some", avals, [outs[i] for i in keep], public=True)
        found = b.call(name, values, outs)
        b.return_([found[i] for i in keep])
    return f"{name}_some"


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_and_their_derivatives(seed: int) -> None:
    writer = Writer(seed)
    p = writer.program
    f = p.function("f", [VECTOR, VECTOR], writer.main, public=True)
    names = [f, derivative(p.module, f, "jvp"), pulled := derivative(p.module, f, "vjp"), dropping(p, pulled, [0])]
    before, after = expanded(p.module, EXPAND), expanded(p.module, CLEAN)
    rng = np.random.default_rng(seed)
    for name in names:
        arguments = [rng.uniform(-1, 1, a.aval.shape) for a in decoded(before)[name].arguments]
        same_values(before, after, name, arguments)
    again = expanded(after, "dce")
    assert text.to_text(again) == text.to_text(after)


def of(avals: Sequence[Any], emit: Any) -> tuple[Program, str]:
    p = Program()
    return p, p.function("main", avals, lambda b, *values: emit(p, b, *values), public=True)


def ops(module: Any, kind: Any) -> list[OpView]:
    return [op for f in decoded(module).values() for op in f.ops if op.op is kind]


def test_a_chain_of_carries_goes_as_a_whole() -> None:
    def body(b, w, a, c, d, e):
        return b.sin(a), c * a, d + c, e * w  # d reads c, c reads a: none reads e

    p, f = of([VECTOR, VECTOR], lambda p, b, x, w: [p.scan(b, body, [w], [x, x, x, x], [], length=3)[0]])
    after = narrowed(p.module)
    (loop,) = ops(after, SCAN)
    assert loop.attrs["carries"] == 1 and loop.attrs["constants"] == 0
    same_values(expanded(p.module), after, f, [np.ones(3), np.ones(3)])


def test_carries_in_a_ring_go() -> None:
    def body(b, a, c, d):
        return c, a, b.sin(d)

    p, _ = of([VECTOR], lambda p, b, x: [p.scan(b, body, [], [x, x, x], [], length=3)[2]])
    (loop,) = ops(narrowed(p.module), SCAN)
    assert len(loop.results) == 1


def test_the_condition_keeps_what_it_reads() -> None:
    def test(b, n, x, y, z):
        return [b.less(n, b.full((), 5, i32))]

    def body(b, n, x, y, z):
        return n + 1, b.sin(x), x * y, z + y

    def emit(p, b, x):
        return [p.loop(b, test, body, [], [b.full((), 0, i32), x, x, x])[2]]

    p, f = of([VECTOR], emit)
    after = narrowed(p.module)
    (loop,) = ops(after, WHILE)
    assert [r.aval for r in loop.results] == [INDEX, VECTOR, VECTOR]
    same_values(expanded(p.module), after, f, [np.array([0.1, -0.4, 2.0])])


def test_equal_carries_are_one() -> None:
    def body(b, a, c):
        y = b.sin(a * c)
        return y, y

    p, f = of([VECTOR], lambda p, b, x: p.scan(b, body, [], [x, x], [], length=4))
    after = narrowed(p.module)
    (loop,) = ops(after, SCAN)
    assert loop.attrs["carries"] == 1
    same_values(expanded(p.module), after, f, [np.array([0.1, -0.4, 2.0])])


@pytest.mark.parametrize("length", [0, 1, 3])
def test_results_that_are_operands(length: int) -> None:
    """A carry that never changes, elements of xs and constants that are stacked: also of loops without steps."""

    def body(b, k, c, x):
        return c, x, k, c

    def emit(p, b, k, c, xs):
        return p.scan(b, body, [k], [c], [xs])

    avals = [VECTOR, VECTOR, VECTOR.with_shape((length, 3))]
    p, f = of(avals, emit)
    after = narrowed(p.module)
    assert ops(after, SCAN) == []
    rng = np.random.default_rng(0)
    same_values(expanded(p.module), after, f, [rng.normal(size=a.shape) for a in avals])


def test_a_broadcast_is_a_constant() -> None:
    def body(b, c, x, y):
        return [b.sin(c) * x + y]

    def emit(p, b, c, v, s):
        rows = b.broadcast_to(v, (4, 3))
        ones = b.broadcast_to(b.full((), 1, f64), (4, 3))
        return [*p.scan(b, body, [], [c], [rows, ones]), rows]

    p, f = of([VECTOR, VECTOR, SCALAR], emit)
    after = narrowed(p.module)
    (loop,) = ops(after, SCAN)
    assert loop.attrs["constants"] == 2 and len(loop.operands) == 3
    same_values(expanded(p.module), after, f, [np.ones(3), np.arange(3.0), np.array(2.0)])


def test_an_array_of_equal_rows_may_be_a_constant_too() -> None:
    def body(b, whole, c, x):
        return [b.sin(c) * x + b.reduce_sum(whole, axes=(0,))]

    def emit(p, b, c, v):
        rows = b.broadcast_to(v, (4, 3))
        return p.scan(b, body, [rows], [c], [rows])

    p, f = of([VECTOR, VECTOR], emit)
    after = narrowed(p.module)
    (loop,) = ops(after, SCAN)
    assert loop.attrs["constants"] == 2 and len(loop.operands) == 3
    same_values(expanded(p.module), after, f, [np.ones(3), np.arange(3.0)])


def test_nested_loops_and_branches() -> None:
    def inner(b, c, d, x):
        return b.sin(c) * x, d * x, b.cos(d)

    def outer(p: Program) -> Emit:
        def body(b, c, d, xs):
            c, d, ys = p.scan(b, inner, [], [c, d], [xs])
            chosen = p.cond(b, b.less(b.full((), 0, f64), b.full((), 1, f64)), [swap, keep], [c, d])
            return chosen[0], chosen[1], ys

        return body

    def swap(b, c, d):
        return c, b.exp(d)

    def keep(b, c, d):
        return b.tanh(c), d

    cube = VECTOR.with_shape((2, 4, 3))
    p, f = of([VECTOR, cube], lambda p, b, x, xs: [p.scan(b, outer(p), [], [x, x], [xs])[0]])
    after = narrowed(p.module)
    for loop in ops(after, SCAN):
        assert len(loop.results) == 1
    (branch,) = ops(after, COND)
    assert len(branch.results) == 1 and len(branch.operands) == 2
    same_values(expanded(p.module), after, f, [np.ones(3), np.random.default_rng(0).normal(size=(2, 4, 3))])


def test_functions_are_shared_where_they_can_be() -> None:
    def body(b: Builder, c: Value, d: Value, x: Value) -> list[Value]:
        return [b.sin(c) * x, d * c, b.exp(x)]

    p = Program()
    rows = VECTOR.with_shape((4, 3))
    name = p.function("body", [VECTOR] * 3, body)
    attrs = {"body": name, "constants": 0, "carries": 2, "length": 4, "reverse": False}

    def emit(b, x, xs):
        loops = [b.control(SCAN, [x, x, xs], attrs, [VECTOR, VECTOR, rows]) for _ in range(4)]
        return [loops[0][0], loops[1][0], *loops[2]]

    p.function("main", [VECTOR, rows], emit, public=True)
    after = expanded(p.module, "dce")
    assert sorted(functions(after)) == ["body", "body_part", "main"]
    same_values(p.module, after, "main", [np.ones(3), np.random.default_rng(0).normal(size=(4, 3))])


def test_effects_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, branches and calls that have effects stay, with what those read and nothing else."""

    def body(b, k, c, d, x):
        b.barrier(k * c)
        return b.sin(c), d * x

    def emit(p, b, x, xs):
        p.scan(b, body, [x], [x, x], [xs])
        p.cond(b, b.full((), True, registry["less"].infer(SCALAR, SCALAR).dtype), [shout, quiet], [x, x])
        return [x]

    def shout(b, x, y):
        b.barrier(b.sin(x))
        return [y]

    def quiet(b, x, y):
        return [x]

    p, _ = of([VECTOR, VECTOR.with_shape((4, 3))], emit)
    assert ops(expanded(p.module, "dce"), SCAN) == []
    monkeypatch.setattr(registry["barrier"], "pure", False)
    after = expanded(p.module, "dce")
    (loop,), (branch,) = ops(after, SCAN), ops(after, COND)
    assert len(loop.operands) == 2 and loop.attrs["carries"] == 1 and loop.attrs["length"] == 4
    assert len(branch.operands) == 2 and len(branch.results) == 0
    assert Interpreter(after)("main", [np.ones(3), np.ones((4, 3))])[0].tolist() == [1, 1, 1]


def test_planned_modules_are_left_alone() -> None:
    p, _ = of([VECTOR], lambda p, b, x: [p.scan(b, lambda b, a, c: [b.sin(a), c], [], [x, x], [], length=3)[0]])
    planned = expanded(p.module, f"{EXPAND},fuse,plan-buffers")
    before = text.to_text(planned)
    with mlir.lock:
        Pipeline.parse("dce").run(planned)
    assert text.to_text(planned) == before


def closed_by_rounds(masks: Sequence[int], first: int) -> list[int]:
    """`closed`, until nothing changes."""
    after = list(masks)
    while True:
        before = list(after)
        for j, mask in enumerate(before):
            for k in range(len(masks)):
                after[j] |= before[k] if mask >> (first + k) & 1 else 0
        if after == before:
            return after


@pytest.mark.parametrize("seed", range(200))
def test_what_carries_read_by_way_of_each_other(seed: int) -> None:
    random = Random(seed)
    count, first = random.randrange(9), random.randrange(4)
    masks = [random.getrandbits(count + first + 3) & random.getrandbits(count + first + 3) for _ in range(count)]
    assert closed(masks, first) == closed_by_rounds(masks, first)


def test_five_hundred_carries_that_change_places() -> None:
    """Each is computed from all of them; that is found in one look at each."""

    def step(carry: Any, row: Any) -> Any:
        return [a * row + b for a, b in zip(carry, [*carry[1:], carry[0]])], row

    def f(rows: Any, *first: Any) -> Any:
        return smelt.scan(step, list(first), rows)

    module = smelt.compile(f).trace(*[smelt.zeros((2, 2))] * 501).lower().module
    with few_calls(500_000):
        Pipeline.parse("dce").run(module)
