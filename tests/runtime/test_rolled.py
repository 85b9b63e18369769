"""Loops that were written out in Python are compiled as loops, and compute the same."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.settings import override
from smelt.lazy.core import topological
from smelt.lazy.execution.rolled import LEAST, _Repetitions, _Steps, rolled, searched
from smelt.lazy.graph import snapshot


def both(make: Callable[[], Any], rtol: float = 1e-4) -> list[np.ndarray]:
    """What `make` gives, as a program; op by op it is the same."""
    found = []
    for tier in ("ops", "program"):
        with override(tier=tier, small_work=0):
            result = make()
            found.append([np.array(x) for x in (result if isinstance(result, (list, tuple)) else [result])])
    assert len(found[0]) == len(found[1])
    for x, y in zip(*found):
        np.testing.assert_allclose(y, x, rtol=rtol, atol=1e-5)
    return found[0]


def length(*xs: smelt.array) -> int:
    """Of the graph with its loops rolled."""
    refs = [x._ref for x in xs]
    return len(rolled(snapshot(topological(refs)), refs, by_value=True)[0])


def start(*shape: int) -> smelt.array:
    found = smelt.array(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32) / 4)
    smelt.eval(found)
    return found


def test_a_recurrence() -> None:
    w, x = start(8, 8), start(4, 8)

    def make() -> smelt.array:
        h = x
        for _ in range(300):
            h = smelt.tanh(h @ w + x)
        return h.sum()

    assert length(make()) < 50
    both(make)


def test_the_number_of_kernels_does_not_depend_on_the_steps() -> None:
    w, x = start(8, 8), start(4, 8)
    kernels = []
    for steps in (330, 1650):
        with override(tier="program", small_work=0), smelt.explain() as explained:
            h = x
            for _ in range(steps):
                h = smelt.tanh(h @ w + x)
            smelt.eval(h)
        kernels.append(sum(c.kernels for c in explained.compiles))
        assert explained.count == 1
    assert kernels[0] == kernels[1]


def test_gradient_descent() -> None:
    x, y = start(30, 5), start(30)
    gradient = smelt.grad(lambda w: ((x @ w - y) ** 2).mean())

    def make() -> smelt.array:
        w = smelt.zeros((5,))
        for _ in range(60):
            w = w - 0.1 * gradient(w)
        return w

    assert length(make()) < 20
    (found,) = both(make)
    assert np.abs(found).max() > 0.01


def test_every_steps_value_is_wanted() -> None:
    x = start(6, 3)

    def make() -> list[smelt.array]:
        h, kept = x, []
        for _ in range(100):
            h = smelt.sin(h) * 0.9 + x
            kept.append(h.mean())
        return [smelt.stack(kept), *kept, h]

    both(make)


def test_a_few_steps_values_are_wanted() -> None:
    x = start(6, 3)

    def make() -> list[smelt.array]:
        h, kept = x, []
        for i in range(200):
            h = smelt.sin(h) * 0.9 + x
            if i % 60 == 7:
                kept.append(h)
        return [*kept, smelt.exp(h)]

    both(make)


READS = {
    "x[:, t]": lambda xs, t: xs[:, t],
    "backwards": lambda xs, t: xs[:, 119 - t],
    "x[0, t]": lambda xs, t: xs[0, t],
    "every other": lambda xs, t: xs[:, 3 + 2 * t],
    "the one before": lambda xs, t: xs[:, t + 1] - xs[:, t],
    "two at a time": lambda xs, t: xs[:, 2 * t : 2 * t + 2].sum(axis=1),
    "overlapping": lambda xs, t: xs[:, t : t + 3].sum(axis=1),
    "twice": lambda xs, t: xs[:, t % 60],
    "with gaps": lambda xs, t: xs[:, t + (t > 70)],
}


def reading(what: str) -> tuple[smelt.array, Callable[[smelt.array], list[smelt.array]]]:
    """An array, and a loop that reads it."""
    w, read = start(3, 3), READS[what]

    def run(xs: smelt.array) -> list[smelt.array]:
        h, kept = smelt.zeros((2, 3)), []
        for t in range(120):
            h = smelt.tanh(h @ w + read(xs, t))
            kept.append(h)
        return [smelt.stack(kept, axis=1), h]

    return start(2, 250, 3), run


@pytest.mark.parametrize("what", READS)
def test_steps_that_read_an_array_bit_by_bit(what: str) -> None:
    xs, run = reading(what)
    both(lambda: run(xs))
    assert length(run(xs)[1]) < 80


@pytest.mark.parametrize("what", READS)
def test_compiled_steps_that_read_an_array_bit_by_bit(what: str) -> None:
    xs, run = reading(what)
    assert "scf.for" in str(smelt.make_ir(lambda xs: run(xs)[1])(xs))
    both(lambda: smelt.compile(run)(xs))
    both(lambda: smelt.grad(lambda xs: run(xs)[1].sum())(xs))


def test_numbers_of_each_step() -> None:
    """A rate that falls, a correction of a moment: Python computes them, each step has its own."""
    x = start(20, 4)
    gradient = smelt.grad(lambda w: ((x @ w - 1) ** 2).mean())

    def make() -> list[smelt.array]:
        w, m, losses = smelt.zeros((4,)), smelt.zeros((4,)), []
        for i in range(80):
            g = gradient(w)
            m = 0.9 * m + 0.1 * g
            w = w - 0.1 / (1 + i) * m / (1 - 0.9 ** (i + 1))
            losses.append((w * w).sum())
        return [w, smelt.stack(losses)]

    assert length(make()[0]) < 60
    both(make)


def test_values_of_several_steps_before() -> None:
    """x[n + 1] = f(x[n], x[n - 1], x[n - 2]), and what begins later."""

    def make() -> list[smelt.array]:
        a, b, c = start(7), start(7) * 0.5, smelt.ones((7,))
        for _ in range(150):
            a, b, c = smelt.cos(a + 0.5 * b) - 0.1 * c, a, b
        return [a, b, c, a + c]

    both(make)


def test_numbers_that_change_are_not_taken_for_one() -> None:
    x = start(5)

    def make() -> smelt.array:
        h = x
        for i in range(120):
            h = smelt.sin(h) * (0.9 if i % 50 else 0.3) + x
        for i in range(120):
            h = smelt.sin(h) * (1 - i / 1000) + x
        return h

    both(make)


def test_programs_of_numbers_that_are_equal_are_not_those_of_others() -> None:
    """In the first graph all factors share their memory, in the second they do not."""

    def make(factors: list[smelt.array]) -> smelt.array:
        h = x
        for factor in factors:
            h = smelt.sin(h) * factor + 0.5
        return h

    x = start(4)
    for factors in ([smelt.array(0.5)] * 100, [smelt.array(i / 100) for i in range(100)], [smelt.array(0.25)] * 100):
        smelt.eval(factors)
        both(lambda factors=factors: make(factors))


def test_functions_that_captured_equal_numbers() -> None:
    """A transformed function's program is found by its structure: what it captured may be other numbers."""
    x = start(4)

    def make(values: list[float]) -> smelt.array:
        factors = [smelt.array(v) for v in values]
        smelt.eval(factors)

        def f(h: smelt.array) -> smelt.array:
            for factor in factors:
                h = smelt.sin(h) * factor + 0.5
            return h.sum()

        return smelt.grad(f)(x)

    for values in ([0.5] * 80, [0.9 + i / 1000 for i in range(80)]):
        both(lambda values=values: make(values))


@pytest.mark.parametrize("transform", ["compile", "grad", "vmap", "jvp"])
def test_loops_in_functions(transform: str) -> None:
    w = start(6, 6)

    def f(h: smelt.array) -> smelt.array:
        x = h * 1
        for _ in range(100):
            h = smelt.tanh(h @ w + x)
        return h.sum()

    x = start(3, 6)
    calls: dict[str, Callable[[], Any]] = {
        "compile": lambda: smelt.compile(f)(x),
        "grad": lambda: smelt.grad(f)(x),
        "vmap": lambda: smelt.vmap(f)(x),
        "jvp": lambda: smelt.jvp(f, (x,), (x,))[1][0],
    }
    both(calls[transform])


def test_two_loops_and_what_is_between() -> None:
    x, w = start(5, 5), start(5, 5)

    def make() -> list[smelt.array]:
        h = x
        for _ in range(100):
            h = smelt.tanh(h @ w)
        middle = smelt.softmax(h, axis=1)
        g = middle
        for _ in range(90):
            g = smelt.maximum(g * 0.99, h) - 0.01 * w
        return [g, middle]

    assert length(*make()) < 110
    both(make)


def test_what_depends_on_no_step_is_computed_once() -> None:
    x = start(5)

    def make() -> list[smelt.array]:
        h, kept = x, []
        for _ in range(100):
            c = smelt.full((5,), 2.0) * smelt.exp(x)
            kept.append(c)
            h = smelt.sin(h * c)
        return [h, *kept]

    assert length(*make()) < 60
    both(make)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int) -> None:
    """Steps over several arrays that read each other's values of this step and of steps before."""
    rng = random.Random(seed)
    count, steps = rng.randrange(1, 4), rng.randrange(40, 90)
    one: list[Callable[[smelt.array], smelt.array]] = [smelt.sin, smelt.cos, smelt.tanh, lambda x: x * 0.5]
    two: list[Callable[[smelt.array, smelt.array], smelt.array]] = [
        lambda x, y: x * y, lambda x, y: 0.7 * x - y, smelt.maximum, lambda x, y: smelt.tanh(x @ y),
    ]  # fmt: skip
    plan = []
    for k in range(rng.randrange(2, 9)):
        operands = [rng.choice(["state", "before", "new", "outside"]) for _ in range(2)]
        plan.append((rng.choice(one), rng.choice(two), operands, [rng.randrange(8) for _ in range(2)], k))
    every, kept_at = rng.random() < 0.4, rng.randrange(len(plan))
    outside = [start(4, 4), smelt.eye(4) * 0.5]

    def make() -> list[smelt.array]:
        state, before = [start(4, 4) + i for i in range(count)], [start(4, 4) * i for i in range(count)]
        kept: list[smelt.array] = []
        for _ in range(steps):
            new: list[smelt.array] = []
            for f, g, operands, which, _k in plan:
                pools = {"state": state, "before": before, "new": new or state, "outside": outside}
                x, y = (pools[o][w % len(pools[o])] for o, w in zip(operands, which))
                new.append(smelt.tanh(g(f(x), y)))
            before, state = state, [new[-1 - i % len(new)] for i in range(count)]
            if every:
                kept.append(new[kept_at].sum())
        return [*state, *before, *kept, *new]

    both(make, rtol=1e-3)


@pytest.mark.parametrize("seed", range(24))
def test_the_longest_repetition_is_found(seed: int) -> None:
    """Beside a search that looks at every node for every period."""
    rng = random.Random(seed)
    w, x = [start(4, 4) for _ in range(3)], start(2, 4)
    names = [rng.choice(("product", "tanh", "add", "number", "back")) for _ in range(rng.randint(2, 12))]
    back, changes = rng.choice((1, 1, 2)), rng.random() < 0.3
    before = [x]
    h = x
    for t in range(rng.randint(20, 50)):
        for name in names:
            if name == "product":
                h = h @ w[t % 3 if changes else 0]
            elif name == "back":
                h = h + before[-min(back, len(before))]
            else:
                h = {"tanh": smelt.tanh(h), "add": h + x, "number": h * float(t % 3)}[name]
        before.append(h)
        if rng.random() < 0.03:
            h = smelt.exp(-h)
    function = _Repetitions(snapshot(topological([h._ref])), [h._ref], rng.random() < 0.7)
    kinds = function.kinds.tolist()
    best = 0
    for period in function._periods():
        since = 0
        for i in range(len(kinds) - period):
            last = function._repeats(i, period, since) if kinds[i] == kinds[i + period] else -2
            since = i + 1 if last == -2 else max(since, last + 1)
            best = max(best, max(i + 1 - since, 0) // period * period)
    found = max((function._steps(p, _Steps(0, 1, 0)).saved() for p in function._periods()), default=0)
    assert found == best if best >= LEAST else found < LEAST
    assert (function.steps() is None) == (best < LEAST)


def test_repetitions_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(x: smelt.array, factors: list[smelt.array]) -> smelt.array:
        for i in range(LEAST):
            x = smelt.sin(x) * factors[i % len(factors)]
        return x

    def unwanted(self: Any, hint: int) -> None:
        raise AssertionError("looked for again")

    one, other = start(5), start(5, 1)[:, 0] + 0
    smelt.eval(other)
    searched.clear()
    found = length(steps(one, [one]))
    with monkeypatch.context() as patched:
        patched.setattr(_Repetitions, "steps", unwanted)
        assert length(steps(other, [other])) == found < LEAST
        with pytest.raises(AssertionError, match="looked for"):
            length(steps(one, [other]))  # what is one value there is none here
    both(lambda: steps(one, [one]))
    both(lambda: steps(other, [one, other]))


def test_equal_work_on_many_arrays_is_no_loop() -> None:
    xs = [start(6, 1) * (i + 1) for i in range(LEAST)]
    smelt.eval(xs)
    made = lambda: [smelt.sin(x) * 0.5 + x for x in xs]  # noqa: E731
    graph = made()
    assert length(*graph) == len(topological([x._ref for x in graph]))
    for x, y in zip(xs, both(made)):
        np.testing.assert_allclose(y, np.sin(np.asarray(x)) * 0.5 + np.asarray(x), 1e-5)


def test_short_graphs_stay_as_they_are() -> None:
    h = x = start(3)
    for _ in range(LEAST // 4):
        h = smelt.sin(h) + x
    refs = [h._ref]
    body = snapshot(topological(refs))
    assert rolled(body, refs)[0] is body


@pytest.mark.parametrize("length", [20, 200])
def test_an_argument_that_no_step_reads_is_returned(length: int) -> None:
    f = smelt.compile(lambda x, y: (functools.reduce(lambda h, _: smelt.tanh(h), range(length), x), y))
    x, y = f(smelt.zeros(3), smelt.array([1.0, 2.0]))
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 2]
