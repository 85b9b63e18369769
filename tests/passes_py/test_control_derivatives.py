"""Derivatives of branches and loops: both modes, twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from smelt.ir import mlir
from smelt.ir.builder import functions, read_function
from smelt.ir.control import COND, SCAN
from smelt.ir.dialect import context
from smelt.ir.errors import NotDifferentiableError
from smelt.ir.interpreter import Interpreter
from smelt.passes import Pipeline

from .control_programs import (
    CLEAN,
    EXPAND,
    INDEX,
    SCALAR,
    TRUTH,
    VECTOR,
    Program,
    batched,
    boolean,
    check,
    derivative,
    expanded,
    f64,
    i32,
    inner,
    transpose_of,
)

XS = VECTOR.with_shape((5, 3))
C, X = np.array([0.3, -0.7, 0.9]), np.linspace(-0.8, 1.0, 15).reshape(5, 3)


def of(avals: Sequence[Any], emit: Any) -> tuple[Program, str]:
    """A program with one public function, ``emit(program, b, *arguments)``."""
    p = Program()
    return p, p.function("f", avals, lambda b, *values: emit(p, b, *values), public=True)


def ops_of(module: Any, name: str, op: Any) -> list[Any]:
    return [o for o in read_function(functions(module)[name]).ops if o.op is op]


# Scan


def rnn(b, w, c, x):
    h = b.tanh(b.exp(w) * c + x)
    return h, b.sin(c) * x


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("pipeline", [CLEAN, EXPAND])
def test_scan(reverse, checkpoint, pipeline) -> None:
    p, f = of(
        [VECTOR, VECTOR, XS],
        lambda p, b, w, c, xs: p.scan(b, rnn, [w], [c], [xs], reverse=reverse, checkpoint=checkpoint),
    )
    check(p.module, f, [C * 2, C, X], pipeline=pipeline)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_scan_of_length_zero(checkpoint) -> None:
    p, f = of(
        [VECTOR, VECTOR, XS.with_shape((0, 3))],
        lambda p, b, w, c, xs: p.scan(b, rnn, [w], [c], [xs], checkpoint=checkpoint),
    )
    check(p.module, f, [C * 2, C, X[:0]])


def test_scan_without_ys() -> None:
    p, f = of([VECTOR, XS], lambda p, b, c, xs: p.scan(b, lambda b, c, x: [c * b.cos(x) + x], [], [c], [xs]))
    check(p.module, f, [C, X])


def test_scan_without_carries() -> None:
    p, f = of([VECTOR, XS], lambda p, b, w, xs: p.scan(b, lambda b, w, x: [w * b.exp(x * w)], [w], [], [xs]))
    check(p.module, f, [C, X])


def test_scan_of_constants_only() -> None:
    p, f = of([VECTOR], lambda p, b, w: p.scan(b, lambda b, w: [b.sin(w) * w], [w], [], [], length=4))
    check(p.module, f, [C])


def test_scan_of_carries_only() -> None:
    p, f = of([VECTOR], lambda p, b, c: p.scan(b, lambda b, c: [b.sin(c)], [], [c], [], length=4))
    check(p.module, f, [C])


def test_scan_with_several_constants_and_an_integer_counter() -> None:
    def body(b, w, n, v, i, c, x):
        step = b.convert(i + n, dtype=f64)
        wide = b.broadcast_to(step, (3,))
        return i + 1, c * w + wide * x * v, c * wide, i

    p, f = of(
        [VECTOR, INDEX, VECTOR, INDEX, VECTOR, XS],
        lambda p, b, w, n, v, i, c, xs: p.scan(b, body, [w, n, v], [i, c], [xs]),
    )
    check(p.module, f, [C, np.int32(2), C[::-1], np.int32(-1), C, X])


def test_a_carry_becomes_active_after_two_steps() -> None:
    # The tangent moves from x to a, from a to b_, from b_ to c.
    def body(b, a, b_, c, x):
        return b.sin(x), a * a, c + b.exp(b_), c

    p, f = of(
        [XS],
        lambda p, b, xs: p.scan(b, body, [], [b.full((3,), k, f64) for k in (0.5, 0.25, 1)], [xs]),
    )
    check(p.module, f, [X])


def test_carries_that_stay_as_they_are_or_change_places() -> None:
    def body(b, kept, left, right, x):
        return kept, right, left * b.sin(kept) + x, kept * x

    p, f = of([VECTOR, VECTOR, VECTOR, XS], lambda p, b, k, l, r, xs: p.scan(b, body, [], [k, l, r], [xs]))
    check(p.module, f, [C, C * 2, C - 1, X])


def test_an_inactive_carry_stays_out_of_the_tangent_loop() -> None:
    def body(b, i, seed, c, x):
        return i + 1, b.cos(seed), b.sin(c) * seed + x

    p, f = of(
        [VECTOR, XS],
        lambda p, b, c, xs: p.scan(b, body, [], [b.full((), 0, i32), b.full((3,), 0.5, f64), c], [xs])[2:],
    )
    check(p.module, f, [C, X], order=1)
    name = derivative(p.module, f, "vjp")
    forward, backward = ops_of(expanded(p.module, CLEAN), name, SCAN)
    assert backward.attrs["carries"] == 1 and backward.attrs["reverse"]
    # Kept are cos(c) and the seed of each step.
    assert [r.aval for r in forward.results[2:]] == [XS, XS]


def test_results_that_do_not_depend_on_the_inputs() -> None:
    def body(b, w, c, d, x):
        return b.full((3,), 2, f64), x, b.full((3,), 1, f64), w

    p, f = of([VECTOR, VECTOR, XS], lambda p, b, w, c, xs: p.scan(b, body, [w], [c, w], [xs]))
    check(p.module, f, [C, C, X])


def test_scan_in_scan() -> None:
    def inner(b, w, c, x):
        return c * b.sin(w * x) + x, c * x

    def outer_body(p):
        def body(b, w, c, xs):
            last, ys = p.scan(b, inner, [w], [c], [xs])
            return b.tanh(last), b.reduce_sum(ys, axes=(0,)), ys

        return body

    avals = [VECTOR, VECTOR, XS.with_shape((2, 5, 3))]
    p, f = of(avals, lambda p, b, w, c, xs: p.scan(b, outer_body(p), [w], [c], [xs]))
    check(p.module, f, [C, C, np.stack([X, X * X - 1])])


@pytest.mark.parametrize("checkpoint", [False, True])
def test_scan_in_scan_with_checkpoints(checkpoint) -> None:
    def outer_body(p):
        def body(b, w, c):
            return p.scan(b, lambda b, w, c: [b.sin(c * w)], [w], [c], [], length=3, checkpoint=checkpoint)

        return body

    p, f = of([VECTOR, VECTOR], lambda p, b, w, c: p.scan(b, outer_body(p), [w], [c], [], length=2, checkpoint=True))
    check(p.module, f, [C, C])


def kept(p: Program, f: str) -> list[Any]:
    """What the primal loop of reverse mode stacks: the avals."""
    name = derivative(p.module, f, "vjp")
    module = expanded(p.module, CLEAN)
    primal, tangent = ops_of(module, name, SCAN)
    assert tangent.attrs["reverse"] and not primal.attrs["reverse"]
    return [r.aval for r in primal.results[primal.attrs["carries"] :]]


def test_what_reverse_mode_keeps_of_each_step() -> None:
    def body(b, w, c, x):
        # exp(w) is the same in each step, x is there anyway: sin(c), cos(c) and the result y are kept.
        y = b.exp(c)
        return b.sin(c) * b.exp(w) * 2 + y * x, y

    def emit(p, b, w, c, xs):
        return p.scan(b, body, [w], [c], [xs])

    p, f = of([VECTOR, VECTOR, XS], emit)
    assert kept(p, f) == [XS, XS, XS]


def test_what_a_checkpointed_scan_keeps_of_each_step() -> None:
    p, f = of([VECTOR, VECTOR, XS], lambda p, b, w, c, xs: p.scan(b, rnn, [w], [c], [xs], checkpoint=True))
    assert kept(p, f) == [XS]


def test_batches_of_derivatives_and_derivatives_of_batches() -> None:
    p, f = of([VECTOR, VECTOR, XS], lambda p, b, w, c, xs: p.scan(b, rnn, [w], [c], [xs], reverse=True))
    rng = np.random.default_rng(5)
    arguments = [rng.normal(size=(2, *a.shape)) for a in (VECTOR, VECTOR, XS)]
    check(p.module, batched(p.module, f, 2), arguments)
    pulled = derivative(p.module, f, "vjp")
    check(p.module, batched(p.module, pulled, 2), [*arguments, *arguments[1:]], order=1)


# Cond


BRANCHES = (
    lambda b, x, w: [b.sin(x) * w, x],
    lambda b, x, w: [x, b.exp(w) * b.exp(w * x)],
    lambda b, x, w: [w, b.full((3,), 3, f64)],
)


@pytest.mark.parametrize("at", [False, True])
def test_cond_of_a_bool(at) -> None:
    p, f = of([TRUTH, VECTOR, VECTOR], lambda p, b, i, x, w: p.cond(b, i, BRANCHES[:2], [x, w]))
    check(p.module, f, [np.bool_(at), C, C * 2])


@pytest.mark.parametrize("at", [0, 1, 2, 7])
def test_cond_of_an_integer(at) -> None:
    p, f = of([INDEX, VECTOR, VECTOR], lambda p, b, i, x, w: p.cond(b, i, BRANCHES, [x, w]))
    check(p.module, f, [np.int32(at), C, C * 2])


def test_branches_share_the_places_of_residuals() -> None:
    p, f = of([INDEX, VECTOR, VECTOR], lambda p, b, i, x, w: p.cond(b, i, BRANCHES[:2], [x, w])[1:])
    name = derivative(p.module, f, "vjp")
    forward, _ = ops_of(expanded(p.module, CLEAN), name, COND)
    assert len(forward.results) <= 4


def test_cond_without_tangents() -> None:
    # Neither branch depends on x smoothly; the index does not, either.
    p, f = of(
        [VECTOR],
        lambda p, b, x: [
            *p.cond(b, b.less(b.reduce_sum(x, axes=(0,)), b.full((), 1, f64)),
                    [lambda b, x: [b.floor(x)], lambda b, x: [b.full((3,), 2, f64)]], [x]),
            b.sin(x),
        ],
    )  # fmt: skip
    check(p.module, f, [C])


def test_cond_in_scan() -> None:
    def body(p):
        def step(b, w, i, c, x):
            (y,) = p.cond(b, b.less(c, x), [lambda b, c, x: [b.sin(c * x)], lambda b, c, x: [x * c * c]], [c, x])
            (z,) = p.cond(b, i, [lambda b, y, w: [y * w], lambda b, y, w: [b.exp(y) * w]], [y, w])
            return 1 - i, z, y

        return step

    avals = [SCALAR, INDEX, SCALAR, SCALAR.with_shape((6,))]
    p, f = of(avals, lambda p, b, w, i, c, xs: p.scan(b, body(p), [w], [i, c], [xs]))
    check(p.module, f, [np.float64(1.3), np.int32(0), np.float64(0.4), np.linspace(-1, 1, 6)])


def test_scan_in_cond_and_cond_in_cond() -> None:
    def looped(p):
        return lambda b, i, c, xs: p.scan(b, lambda b, c, x: [b.sin(c) + x], [], [c], [xs])

    def nested(p):
        one, two = (lambda b, c: [c * c]), (lambda b, c: [b.exp(c)])
        return lambda b, i, c, xs: p.cond(b, i, [one, two], [c])

    p, f = of(
        [TRUTH, INDEX, VECTOR, XS],
        lambda p, b, t, i, c, xs: p.cond(b, t, [looped(p), nested(p)], [i, c, xs]),
    )
    for t in (False, True):
        check(p.module, f, [np.bool_(t), np.int32(1), C, X], order=2 - t)


# While


def doubling(p, b, n, w, c):
    """Steps of c = sin(c w) until the counter is n."""
    return p.loop(
        b, lambda b, n, w, i, c: [b.less(i, n)], lambda b, n, w, i, c: [i + 1, b.sin(c * w)],
        [n, w], [b.full((), 0, i32), c],
    )  # fmt: skip


def test_while_forward() -> None:
    p, f = of([INDEX, VECTOR, VECTOR], doubling)
    for n in (0, 1, 4):
        check(p.module, f, [np.int32(n), C, C * 2], modes="f")


def test_while_condition_on_a_differentiable_carry() -> None:
    p, f = of(
        [SCALAR, SCALAR],
        lambda p, b, w, c: p.loop(
            b, lambda b, w, c, d: [b.less(c, b.full((), 10, f64))], lambda b, w, c, d: [c * w, d + c], [w], [c, w]
        ),
    )
    check(p.module, f, [np.float64(1.7), np.float64(0.9)], modes="f")


def test_while_in_scan_and_cond_forward() -> None:
    def body(p):
        def step(b, n, c, x):
            _, y = doubling(p, b, n, x, c)
            branches = [lambda b, n, y, x: [y], lambda b, n, y, x: doubling(p, b, n, y, x)[1:]]
            return p.cond(b, n, branches, [n, y, x])

        return step

    p, f = of([INDEX, VECTOR, XS], lambda p, b, n, c, xs: p.scan(b, body(p), [n], [c], [xs]))
    check(p.module, f, [np.int32(2), C, X], modes="f")


def test_while_in_reverse_mode_says_what_to_use() -> None:
    def emit(p, b, n, w, c):
        with b.at(mlir.ir.Location.file("model.py", 17, 0, context=context())):
            return doubling(p, b, n, w, c)

    p, f = of([INDEX, VECTOR, VECTOR], emit)
    derivative(p.module, f, "vjp")
    text = r"carry i32\[\], f64\[3\]; use smelt\.scan, or smelt\.fori_loop .*; at model\.py:17$"
    with pytest.raises(NotDifferentiableError, match=text):
        Pipeline.parse(EXPAND).run(p.module)


@pytest.mark.parametrize("inside", ["scan", "cond"])
def test_while_in_reverse_mode_inside(inside) -> None:
    def emit(p, b, n, w, c):
        if inside == "scan":
            return p.scan(b, lambda b, n, w, c: doubling(p, b, n, w, c)[1:], [n, w], [c], [], length=2)
        return p.cond(b, n, [lambda b, n, w, c: [c], lambda b, n, w, c: doubling(p, b, n, w, c)[1:]], [n, w, c])

    p, f = of([INDEX, VECTOR, VECTOR], emit)
    derivative(p.module, f, "vjp")
    with pytest.raises(NotDifferentiableError, match=r"smelt\.scan"):
        expanded(p.module)


def test_while_whose_tangent_is_not_needed() -> None:
    # An integer of the loop is used, and a part of it that no derivative passes.
    def emit(p, b, n, w, c):
        i, y = doubling(p, b, n, w, c)
        return [b.sin(c) * b.broadcast_to(b.convert(i, dtype=f64), (3,)), b.floor(y)]

    p, f = of([INDEX, VECTOR, VECTOR], emit)
    check(p.module, f, [np.int32(3), C, C * 2])


def test_while_whose_tangent_is_not_needed_in_a_scan() -> None:
    def emit(p, b, n, w, c):
        def body(b, n, w, c):
            i, y = doubling(p, b, n, w, c)
            return [b.sin(c) * b.broadcast_to(b.convert(i, dtype=f64), (3,)), b.floor(y)]

        return p.scan(b, body, [n, w], [c], [], length=3)

    p, f = of([INDEX, VECTOR, VECTOR], emit)
    check(p.module, f, [np.int32(3), C, C * 2])


def test_while_of_residuals() -> None:
    # The loop does not depend on what is differentiated.
    def emit(p, b, n, w, c):
        _, y = doubling(p, b, n, b.full((3,), 2, f64), b.full((3,), 0.5, f64))
        return [b.sin(c) * y * w]

    p, f = of([INDEX, VECTOR, VECTOR], emit)
    check(p.module, f, [np.int32(3), C, C * 2])


# Linear programs, and programs that mix what is linear with what is not


def transposed(p: Program, f: str, wrt: Sequence[int], arguments: Sequence[np.ndarray]) -> None:
    """The transpose of a function that is linear in the arguments `wrt` is one: by the inner product."""
    rng = np.random.default_rng(3)
    name = transpose_of(p.module, f, wrt)
    run = Interpreter(expanded(p.module))
    given = [rng.normal(size=a.shape) if i in wrt else a for i, a in enumerate(arguments)]
    none = [np.zeros_like(a) if i in wrt else a for i, a in enumerate(arguments)]
    outs = [y - at_zero for y, at_zero in zip(run(f, given), run(f, none))]
    cts = [rng.normal(size=y.shape) for y in outs]
    pulled = run(name, [*(a for i, a in enumerate(arguments) if i not in wrt), *cts])
    np.testing.assert_allclose(inner(pulled, [given[i] for i in wrt]), inner(cts, outs), rtol=1e-10)


@pytest.mark.parametrize("reverse", [False, True])
def test_transpose_of_a_linear_scan_with_a_nonlinear_carry(reverse) -> None:
    def body(b, w, k, t, x, u):
        k = b.sin(k * w) + x
        return k, t * k + u, u * x, k

    p, f = of(
        [VECTOR, VECTOR, VECTOR, XS, XS],
        lambda p, b, w, k, t, xs, us: p.scan(b, body, [w], [k, t], [xs, us], reverse=reverse)[1:3],
    )
    transposed(p, f, [2, 4], [C, C * 2, C, X, X])


def test_transpose_where_what_is_not_linear_is_used_after_it() -> None:
    def body(b, k, t):
        return b.cos(k), t * k

    def mixed(p, b, k, t):
        k, t = p.scan(b, body, [], [k, t], [], length=4)
        k, t = p.cond(b, b.full((), True, boolean), [lambda b, k, t: [k, t], lambda b, k, t: [b.exp(k), t * k]], [k, t])
        return [t * k, b.sin(k) * t]

    p, f = of([VECTOR, VECTOR], mixed)
    transposed(p, f, [1], [C, C])


def test_transpose_of_nested_loops_with_nonlinear_carries() -> None:
    def emit(p, b, w, t):
        def inside(b, k, t, x):
            return b.sin(k) * x, t * k + t

        def body(b, w, k, t):
            last, t = p.scan(b, inside, [], [k, t], [w])
            k, t = p.cond(b, b.full((), 1, i32), [lambda b, k, t: [k, t], lambda b, k, t: [b.exp(k), t * k]], [last, t])
            return k, t, t * last

        return p.scan(b, body, [w], [b.full((3,), 0.5, f64), t], [], length=3)[1:]

    p, f = of([XS, VECTOR], emit)
    transposed(p, f, [1], [X, C])


def test_transpose_of_forward_mode() -> None:
    # Forward mode makes one loop of the primal and the tangent; the transpose takes it apart again.
    p, f = of([VECTOR, VECTOR, XS], lambda p, b, w, c, xs: p.scan(b, rnn, [w], [c], [xs]))
    name = derivative(p.module, f, "jvp")
    transposed(p, name, [3, 4, 5], [C, C * 2, X, C, C, X])


def test_transpose_of_a_while_that_is_not_linear() -> None:
    # The loop is needed, but as a residual.
    p, f = of([INDEX, VECTOR, VECTOR], lambda p, b, n, w, t: [doubling(p, b, n, w, w)[1] * t])
    transposed(p, f, [2], [np.int32(3), C, C])
