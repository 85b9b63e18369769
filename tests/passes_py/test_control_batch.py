"""Batches of branches and loops, nested and under derivatives, against a loop over the batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smelt.ir import dtypes
from smelt.ir.aval import Aval
from smelt.ir.builder import Builder, functions, read_function
from smelt.ir.control import COND, SCAN, WHILE

from .batch_programs import B, Bounded, I, Nest, Program, S, V, batch, check, names_of, over, state


def vector(i: int) -> np.ndarray:
    return np.array([0.1, -0.7, 0.4]) * (i + 1)


def number(i: int) -> np.ndarray:
    return np.array(0.3 - 0.25 * i)


def integer(*values: int, dtype: Any = np.int32) -> Callable[[int], np.ndarray]:
    return lambda i: np.array(values[i % len(values)], dtype)


# cond


def branching(kind: Aval, count: int) -> Program:
    """Branches that agree in nothing but their types: results from arguments, from neither, permuted."""
    p = Program()
    bodies = [
        lambda b, v, s: [b.exp(v), s],
        lambda b, v, s: [b.broadcast_to(s, (3,)) * v, b.full((), 2.0, dtypes.float64)],
        lambda b, v, s: [b.full((3,), 1.0, dtypes.float64), b.reduce_sum(v, axes=(0,))],
    ]
    names = tuple(p.define(f"branch{i}", [V, S], [V, S], bodies[i]) for i in range(count))
    p.define("f", [kind, V, S], [V, S], lambda b, i, v, s: b.control(COND, [i, v, s], {"branches": names}, [V, S]))
    return p


def test_cond_on_a_bool():
    over(branching(B, 2), [integer(1, 0, 1, dtype=np.bool_), vector, number], 2)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int8, dtypes.int64])
def test_switch(count, dtype):
    """An index out of range takes the last branch, as one of no batch does."""
    index = integer(1, 0, 7, 2, -2, dtype=dtype.numpy)
    p = branching(Aval((), dtype), count)
    axes = [(0, -1, -1), (0, 0, 0), (0, 1, -1), (-1, 0, -1), (-1, -1, 0)]
    for in_axes in axes:
        makes = (index, vector, number)
        arrays = [np.stack([m(i) for i in range(5)], a) if a >= 0 else m(0) for m, a in zip(makes, in_axes)]
        check(p, arrays, in_axes, 2)


def test_one_index_stays_a_branch_and_many_become_a_select():
    p = branching(B, 2)
    axes = (-1, 0, -1)
    module = p.under([batch(4, axes, (0, 0))])
    assert "cond" in names_of(module) and "select" not in names_of(module)
    module = p.under([batch(4, (0, -1, -1), (0, 0))])
    assert "cond" not in names_of(module) and names_of(module).count("select") == 2


def test_cond_batches_only_what_depends_on_the_batch():
    p = Program()
    names = tuple(p.define(n, [V, S], [V, S], lambda b, v, s: [v * 2, b.sin(s)]) for n in ("a", "b"))
    p.define("f", [B, V, S], [V, S], lambda b, i, v, s: b.control(COND, [i, v, s], {"branches": names}, [V, S]))
    module = p.under([batch(4, (-1, 0, -1), (0, -1))])
    (branch,) = [op for op in read_function(functions(module)["main"]).ops if op.op is COND]
    assert [r.shape for r in branch.results] == [(4, 3), ()]


# while


def counting() -> Program:
    """x grows by a constant until n reaches a limit; `fixed` is carried along and does not depend on x."""
    p = Program()
    p.define("go", [I, S, I, V, S], [B], lambda b, limit, s, n, v, fixed: [b.less(n, limit)])
    p.define(
        "step", [I, S, I, V, S], [I, V, S],
        lambda b, limit, s, n, v, fixed: [n + 1, v * 1.5 + b.broadcast_to(s, (3,)), b.cos(fixed)],
    )  # fmt: skip
    attrs = {"cond": "go", "body": "step", "constants": 2}
    p.define(
        "f", [I, S, I, V, S], [I, V, S], lambda b, *args: b.control(WHILE, args, attrs, [I, V, S])
    )  # fmt: skip
    return p


def test_while():
    over(counting(), [integer(3, 0, 5), number, integer(0, 2, 9), vector, number], 3, out_axis=0)


def test_while_keeps_one_condition_and_unbatched_carries():
    module = counting().under([batch(4, (-1, -1, -1, 0, -1), (-1, 0, -1))])
    (loop,) = [op for op in read_function(functions(module)["main"]).ops if op.op is WHILE]
    assert [r.shape for r in loop.results] == [(), (4, 3), ()]


def test_while_whose_carries_feed_each_other():
    """A batch axis reaches the last carry, and then the condition, only after several steps of the fixpoint."""
    p = Program()
    p.define("go", [I, S, S, S], [B], lambda b, n, x, y, z: [b.less(z, b.full((), 40.0, dtypes.float64))])
    p.define("step", [I, S, S, S], [I, S, S, S], lambda b, n, x, y, z: [n + 1, x, y + x, z + y])
    attrs = {"cond": "go", "body": "step", "constants": 0}
    p.define("f", [I, S, S, S], [I, S, S, S], lambda b, *a: b.control(WHILE, a, attrs, [I, S, S, S]))
    over(p, [integer(0), lambda i: np.array(1.0 + i), number, number], 4)


def test_while_that_nobody_enters():
    p = counting()
    check(p, [np.zeros(3, np.int32), number(0), np.array(1, np.int32), vector(0), number(1)], (0, -1, -1, -1, -1), 3)


def countdown(p: Program) -> str:
    """A function that terminates for whole numbers ≥ 0 only."""
    p.define("positive", [S], [B], lambda b, x: [b.not_equal(x, b.zeros(S))])
    p.define("less_one", [S], [S], lambda b, x: [x - 1])
    attrs = {"cond": "positive", "body": "less_one", "constants": 0}
    return p.define("countdown", [S], [S], lambda b, x: b.control(WHILE, [x], attrs, [S]))


@pytest.mark.parametrize("through", ["plain", "cond", "scan"])
def test_loop_in_a_branch_that_is_not_taken_does_not_run(through):
    p = Program()
    inner = countdown(p)
    if through == "cond":  # one index for all, inside the branch of some
        names = (inner, p.define("same", [S], [S], lambda b, x: [x]))
        inner = p.define(
            "maybe", [S], [S],
            lambda b, x: b.control(COND, [b.full((), False, dtypes.bool_), x], {"branches": names}, [S]),
        )  # fmt: skip
    if through == "scan":
        attrs = {"body": inner, "constants": 0, "carries": 1, "length": 2, "reverse": False}
        inner = p.define("twice", [S], [S], lambda b, x: b.control(SCAN, [x], attrs, [S]))
    p.define("leave", [S], [S], lambda b, x: [x * 10])
    p.define("f", [B, S], [S], lambda b, i, x: b.control(COND, [i, x], {"branches": ("leave", inner)}, [S]))
    x = np.array([3.0, -0.5, 2.0, -7.0])
    check(p, [x > 0, x], (0, 0), 1)
    # The loop's argument is one for all, the choice is not; and nobody chooses the loop.
    check(p, [np.array([False, False]), np.array(-0.5)], (0, -1), 1)
    check(p, [np.array([True, False]), np.array(4.0)], (0, -1), 1)
    module = p.under([batch(2, (0, -1), (0,)), batch(2, (0, 0), (0,))])
    found = Bounded(module)("main", [np.array([[True, False], [False, False]]), np.array([3.0, -0.5])])
    np.testing.assert_array_equal(found[0], [[0.0, 30.0], [-5.0, -5.0]])


def test_loop_in_the_body_of_a_loop_that_some_have_left():
    """An element that is done must not run the inner loop on its last carry: here that loop would not end."""
    p = Program()
    p.define("inner_go", [S], [B], lambda b, x: [b.not_equal(x, b.zeros(S))])
    p.define("inner", [S], [S], lambda b, x: [x - 1])
    inner = {"cond": "inner_go", "body": "inner", "constants": 0}
    p.define("outer_go", [I, S], [B], lambda b, n, x: [b.less(b.zeros(I), n)])

    def body(b: Builder, n, x):
        (x,) = b.control(WHILE, [x], inner, [S])
        last = b.equal(n, b.full((), 1, dtypes.int32))
        return [n - 1, b.select(last, b.full((), 0.5, dtypes.float64), b.full((), 3.0, dtypes.float64))]

    p.define("outer", [I, S], [I, S], body)
    outer = {"cond": "outer_go", "body": "outer", "constants": 0}
    p.define("f", [I, S], [I, S], lambda b, n, x: b.control(WHILE, [n, x], outer, [I, S]))
    check(p, [np.array([1, 4, 2, 0], np.int32), np.array([2.0, 1.0, 5.0, 0.5])], (0, 0), 2)
    check(p, [np.array([1, 3], np.int32), np.array(2.0)], (0, -1), 2)


# scan


def scanning(reverse: bool, length: int) -> Program:
    p = Program()
    xs, ys = Aval((length, 3), dtypes.float64), Aval((length,), dtypes.float64)

    def body(b: Builder, k, n, v, x):
        v = v * x + b.broadcast_to(k, (3,))
        return [n + 1, v, b.reduce_sum(v, axes=(0,)), b.convert(n, dtype=dtypes.float64), x]

    p.define("body", [S, I, V, V], [I, V, S, S, V], body)
    attrs = {"body": "body", "constants": 1, "carries": 2, "length": length, "reverse": reverse}
    outs = [I, V, ys, ys, xs]
    p.define("f", [S, I, V, xs], outs, lambda b, *a: b.control(SCAN, a, attrs, outs))
    return p


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_scan(reverse, length):
    def xs(i: int) -> np.ndarray:
        return np.arange(3.0 * length).reshape(length, 3) * 0.1 + i

    p = scanning(reverse, length)
    over(p, [number, integer(0, 3, 1), vector, xs], 5)
    arrays = [number(0), np.array(2, np.int32), vector(1), np.stack([xs(i) for i in range(3)], 1)]
    check(p, arrays, (-1, -1, -1, 1), 5)  # the axis where it should be: nothing moves
    module = p.under([batch(3, (-1, -1, -1, 1), (-1, 0, 1, -1, 1))])
    assert "transpose" not in names_of(module)
    (loop,) = [op for op in read_function(functions(module)["main"]).ops if op.op is SCAN]
    shapes = [r.shape for r in loop.results]
    assert shapes == [(), (3, 3), (length, 3), (length,), (length, 3, 3)]


# Composition


CHOICES = [c for c in itertools.product((False, True), repeat=3) if any(c)]


@pytest.mark.parametrize("seed", range(24))
def test_nested_control_flow(seed):
    rng = np.random.default_rng(seed)
    nest = Nest(seed, 2 + seed % 2)
    chosen = CHOICES[seed % len(CHOICES)]
    size = (3, 5, 1)[seed % 3]
    check(nest.p, state(rng, (size,), chosen), [0 if c else -1 for c in chosen], 3)


@pytest.mark.parametrize("seed", range(8))
def test_two_levels(seed):
    rng = np.random.default_rng(seed)
    p = Nest(100 + seed, 2).p
    chosen = CHOICES[(seed + 3) % len(CHOICES)]
    arrays = state(rng, (2, 3), chosen)
    axes = tuple(0 if c else -1 for c in chosen)
    steps = [batch(3, axes, (0,) * 3), batch(2, axes, (0,) * 3)]
    found = Bounded(p.under(steps))("main", arrays)
    one = Bounded(p.under([]))
    rows = [one("main", [x[i] if c else x for x, c in zip(arrays, chosen)]) for i in np.ndindex(2, 3)]
    for j, result in enumerate(found):
        want = np.stack([row[j] for row in rows])
        np.testing.assert_allclose(result, want.reshape(2, 3, *want.shape[1:]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dims", [(0, 0, 0), (-1, 0, 0)])
def test_empty_batch_without_scan(dims):
    p = branching(B, 2)
    arrays = [x[:0] if d == 0 else x[0] for x, d in zip((np.ones(2, np.bool_), np.ones((2, 3)), np.ones(2)), dims)]
    found = Bounded(p.under([batch(0, dims, (0, 0))]))("main", arrays)
    assert [x.shape for x in found] == [(0, 3), (0,)]


@pytest.mark.parametrize("seed", range(4))
def test_empty_batch(seed):
    p = Nest(200 + seed, 3).p
    arrays = state(np.random.default_rng(seed), (0,), (True, True, True))
    # MLIR's verifier refuses the slices of a scan whose elements are empty.
    found = Bounded(p.under([batch(0, (0, 0, 0), (0, 0, 0))], verify=False))("main", arrays)
    assert [x.shape for x in found] == [(0,), (0, 3), (0,)]


@pytest.mark.parametrize("seed", range(6))
def test_batch_of_jvp_and_jvp_of_batch(seed):
    rng = np.random.default_rng(seed)
    p = Nest(300 + seed, 2).p
    jvp = ("jvp", {"wrt": (1, 2)})
    arrays = [*state(rng, (3,), (True,) * 3), *state(rng, (3,), (True,) * 3)[1:]]
    check(p, arrays, (0,) * 5, 6, steps=[jvp])
    outer = Bounded(p.under([batch(3, (0,) * 3, (0,) * 3), jvp]))("main", arrays)
    inner = Bounded(p.under([jvp, batch(3, (0,) * 5, (0,) * 6)]))("main", arrays)
    for a, b in zip(outer, inner):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("order", ["batch of vjp", "vjp of batch"])
def test_reverse_mode_and_batch(order):
    """Per-example gradients through a scan with a branch inside, either way."""
    p = Program()
    names = tuple(
        p.define(n, [V, S], [V], f)
        for n, f in (("a", lambda b, v, x: [b.sin(v) * b.broadcast_to(x, (3,))]), ("b", lambda b, v, x: [v * v]))
    )

    def body(b: Builder, w, v, x):
        (v,) = b.control(COND, [b.less(x, b.zeros(S)), v * w, x], {"branches": names}, [V])
        return [v, b.reduce_sum(v, axes=(0,))]

    xs = Aval((4,), dtypes.float64)
    p.define("body", [V, V, S], [V, S], body)
    attrs = {"body": "body", "constants": 1, "carries": 1, "length": 4, "reverse": False}
    p.define("f", [V, V, xs], [V, xs], lambda b, *a: b.control(SCAN, a, attrs, [V, xs]))
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, (3, 3)), rng.uniform(-1, 1, (3, 3)), rng.uniform(-1, 1, (3, 4))]
    arrays += [rng.uniform(-1, 1, (3, 3)), rng.uniform(-1, 1, (3, 4))]
    vjp = ("vjp", {"wrt": (0, 1, 2), "seeds": (0, 1)})
    one = Bounded(p.under([vjp]))
    rows = [one("main", [x[i] for x in arrays]) for i in range(3)]
    if order == "batch of vjp":
        steps = [vjp, batch(3, (0,) * 5, (0,) * 5)]
    else:
        steps = [batch(3, (0,) * 3, (0,) * 2), vjp]
    for found, *want in zip(Bounded(p.under(steps))("main", arrays), *rows):
        np.testing.assert_allclose(found, np.stack(want), rtol=1e-10, atol=1e-12)


def test_a_function_is_batched_once():
    """Two loops over one body, in one function, share the batched body."""
    p = Program()
    p.define("body", [V], [V], lambda b, v: [b.sin(v)])
    attrs = {"body": "body", "constants": 0, "carries": 1, "length": 2, "reverse": False}

    def f(b: Builder, v):
        (v,) = b.control(SCAN, [v], attrs, [V])
        return b.control(SCAN, [v], {**attrs, "reverse": True}, [V])

    p.define("f", [V], [V], f)
    module = p.under([batch(2, (0,), (0,))])
    assert [name for name in functions(module) if "body" in name] == ["body_batch"]
