"""Loops and branches on the CPU, against the interpreter."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.backends.cpu import host, threads
from smelt.ir import dtypes, text
from smelt.ir.aval import Aval
from smelt.ir.settings import override
from smelt.runtime.compile import compile_text
from smelt.runtime.device import cpu

from .control_modules import Made
from .modules import f32, random_array, run

i32 = dtypes.int32
VECTOR, SCALAR, COUNT, TRUTH = Aval((6,), f32), Aval((), f32), Aval((), i32), Aval((), dtypes.bool_)
#: What one thread runs alone; what a team runs with barriers, or (large, other teams) launch by launch.
SIZES = (6, 60_000)


def total(b: Any, x: Any) -> Any:
    """The sum of all elements, in the place of each."""
    return b.broadcast_to(b.reduce_sum(x, axes=tuple(range(x.ndim))), x.shape)


def accumulate(m: Made, size: int, name: str = "body") -> str:
    aval = Aval((size,), f32)
    return m.define(name, [aval, aval, aval], lambda b, c, s, x: [s + x * c, b.sin(s) + x])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
def test_scan(size: int, reverse: bool, length: int) -> None:
    m = Made()
    accumulate(m, size)
    avals = [Aval((size,), f32), Aval((size,), f32), Aval((length, size), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, length, 1, 1, reverse))
    program = m.check()
    assert [k.schedule for k in program.kernels] == ["map"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stop", [-3, 0, 1, 4, 7])
def test_while(size: int, stop: int) -> None:
    m, aval = Made(), Aval((size,), f32)
    m.define("go", [COUNT, COUNT, aval], lambda b, stop, i, x: [b.less(i, stop)])
    m.define("step", [COUNT, COUNT, aval], lambda b, stop, i, x: [i + 1, x * 0.5 + total(b, x) * 1e-6])
    m.define("main", [COUNT, COUNT, aval], lambda b, *v: [*m.loop(b, "go", "step", v, 1), v[2] * 2])
    m.check([np.array(stop, np.int32), np.array(0, np.int32), random_array(aval)])


def test_a_condition_may_be_a_carry_or_reduce_an_array() -> None:
    m = Made()
    m.define("flag", [TRUTH, VECTOR], lambda b, c, x: [c])
    m.define("large", [VECTOR], lambda b, x: [b.less(b.full((), 0.1, f32), b.reduce_max(b.abs(x), axes=(0,)))])
    m.define("halve", [VECTOR], lambda b, x: [x * 0.5])
    m.define("once", [TRUTH, VECTOR], lambda b, c, x: [b.less(b.reduce_sum(x, axes=(0,)), b.full((), 9, f32)), x + 1])
    m.define(
        "main", [TRUTH, VECTOR],
        lambda b, c, x: [*m.loop(b, "flag", "once", [c, x]), *m.loop(b, "large", "halve", [x])],
    )  # fmt: skip
    m.check(*([np.array(truth), np.linspace(-1, 1, 6, dtype=np.float32)] for truth in (True, False)))


@pytest.mark.parametrize("size", SIZES)
def test_branches_by_bool(size: int) -> None:
    m, aval = Made(), Aval((size,), f32)
    m.define("no", [aval], lambda b, x: [-x])
    m.define("yes", [aval], lambda b, x: [b.reshape(b.exp(b.reshape(x, shape=(size, 1))), shape=(size,))])

    def main(b: Any, c: Any, x: Any) -> list[Any]:
        return [*m.cond(b, c, [x * 2], "no", "yes"), *m.cond(b, c, [x], "yes", "no")]

    m.define("main", [TRUTH, aval], main)
    m.check(*([np.array(truth), random_array(aval)] for truth in (True, False)))


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int8, dtypes.int64, dtypes.bool_])
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_branches_by_number(dtype: Any, count: int) -> None:
    m = Made()
    names = tuple(m.define(f"f{i}", [VECTOR], lambda b, x, i=i: [x + i, x]) for i in range(count))
    m.define("main", [Aval((), dtype), VECTOR], lambda b, i, x: m.cond(b, i, [x], *names))
    indices = (0, 1) if dtype is dtypes.bool_ else (0, 1, 2, count - 1, count, 100, -1)
    m.check(*([np.array(at, dtype.numpy), random_array(VECTOR)] for at in indices))


def test_a_branch_may_compute_nothing() -> None:
    m = Made()
    m.define("same", [VECTOR, VECTOR], lambda b, x, y: [x, y, x])
    m.define("swap", [VECTOR, VECTOR], lambda b, x, y: [y, x, b.full((6,), 3, f32)])
    m.define("main", [TRUTH, VECTOR, VECTOR], lambda b, c, x, y: m.cond(b, c, [x, y], "same", "swap"))
    m.check(*([np.array(truth), random_array(VECTOR), random_array(VECTOR, 1)] for truth in (True, False)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("length", [0, 1, 4, 5])
def test_carries_that_are_permuted_repeated_or_unchanged(size: int, length: int) -> None:
    m, aval = Made(), Aval((size,), f32)

    def body(b: Any, c: Any, p: Any, q: Any, kept: Any, fresh: Any, x: Any) -> list[Any]:
        new = p + x * c
        return [q, new, kept, new, p, x, c, new, b.reshape(new, shape=(1, size)), kept]

    m.define("body", [aval] * 6, body)
    avals = [aval] * 5 + [Aval((length, size), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, length, 1, 4))
    m.check()


@pytest.mark.parametrize("stop", [0, 1, 2, 5])
def test_while_with_permuted_and_unchanged_carries(stop: int) -> None:
    m = Made()
    m.define("go", [COUNT, COUNT, VECTOR, VECTOR, VECTOR], lambda b, s, i, x, y, z: [b.less(i, s)])
    m.define("step", [COUNT, COUNT, VECTOR, VECTOR, VECTOR], lambda b, s, i, x, y, z: [i + 1, y, x, z])
    m.define("main", [COUNT, COUNT, VECTOR, VECTOR, VECTOR], lambda b, *v: m.loop(b, "go", "step", v, 1))
    m.check([np.array(stop, np.int32), np.array(0, np.int32), *(random_array(VECTOR, i) for i in range(3))])


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_every_dtype(dtype: Any) -> None:
    m, element, aval = Made(), Aval((), dtype), Aval((3,), dtype)

    def body(b: Any, c: Any, s: Any, x: Any) -> list[Any]:
        return [b.logical_or(s, x), b.logical_not(s)] if dtype.kind == "b" else [s + c * x, s * x]

    m.define("one", [element] * 3, body)
    m.define("some", [aval] * 3, body)
    avals = [element, element, Aval((4,), dtype), aval, aval, Aval((4, 3), dtype)]
    m.define(
        "main", avals, lambda b, *v: [*m.scan(b, "one", v[:3], 4, 1, 1), *m.scan(b, "some", v[3:], 4, 1, 1, True)]
    )  # fmt: skip
    if dtype.name not in ("float16", "bfloat16"):  # halves are rounded at other places
        m.check(rtol=1e-4)
    else:
        m.check([np.ones(a.shape, dtype.numpy) for a in avals])


@pytest.mark.parametrize("size", SIZES)
def test_nested_loops_and_branches(size: int) -> None:
    m, aval, rows = Made(), Aval((size,), f32), Aval((3, size), f32)
    m.define("inner", [aval, aval, aval], lambda b, c, s, x: [s * 0.5 + x * c, s])
    m.define("plain", [aval, rows], lambda b, c, x: [c, x])
    m.define(
        "deep", [aval, rows], lambda b, c, x: [m.scan(b, "inner", [c, c, x], 3, 1, 1)[0], x + total(b, x) * 1e-6]
    )  # fmt: skip
    m.define("go", [COUNT, aval, rows], lambda b, i, c, x: [b.less(i, b.full((), 4, i32))])

    def step(b: Any, i: Any, c: Any, x: Any) -> list[Any]:
        odd = b.equal(b.convert(b.convert(i, dtype=dtypes.bool_), dtype=i32), b.full((), 1, i32))
        c, x = m.cond(b, odd, [c, x], "plain", "deep")
        return [i + 1, b.sin(c), x * 0.25]

    m.define("step", [COUNT, aval, rows], step)
    m.define("outer", [aval, rows], lambda b, c, x: [m.loop(b, "go", "step", [b.full((), 0, i32), c, x])[1], c])
    m.define(
        "main", [aval, Aval((2, 3, size), f32)], lambda b, c, x: [*m.scan(b, "outer", [c * 2, x], 2, 0, 1), c]
    )  # fmt: skip
    m.check()


def test_products_of_matrices_in_a_loop() -> None:
    m, square, column = Made(), Aval((96, 96), f32), Aval((96, 40), f32)

    def body(b: Any, w: Any, h: Any, x: Any) -> list[Any]:
        h = b.tanh(b.dot_general(w, h, lhs_contracting=(1,), rhs_contracting=(0,)) * 0.1 + x)
        return [h, b.transpose(h, permutation=(1, 0))]

    m.define("body", [square, column, column], body)
    m.define("main", [square, column, Aval((20, 96, 40), f32)], lambda b, *v: m.scan(b, "body", v, 20, 1, 1))
    program = m.check(rtol=1e-3)
    assert "contract" in [k.schedule for k in program.kernels]


@pytest.mark.parametrize("width", [4_194_304, 4_194_309])
def test_elements_so_large_that_they_are_streamed(width: int) -> None:
    m, aval = Made(), Aval((width,), f32)
    m.define("body", [SCALAR, aval], lambda b, s, x: [s + 1.0, b.broadcast_to(s, (width,)) + x])
    m.define("main", [SCALAR, Aval((2, width), f32)], lambda b, s, x: m.scan(b, "body", [s, x], 2, 0, 1))
    x = np.ones((2, width), np.float32)
    last, found = compile_text(text.to_text(m.module), cpu)([np.array(1, np.float32), x])
    assert last == 3 and (found[0] == 2).all() and (found[1] == 3).all()


def test_split_reductions_and_scatters_in_a_loop() -> None:
    m, aval = Made(), Aval((300_000,), f32)

    def body(b: Any, x: Any, i: Any) -> list[Any]:
        found = b.reduce_sum(x, axes=(0,))
        at = b.reshape(i, shape=(1,))
        return [b.scatter(x * 0.5, b.reshape(found, shape=(1, 1)), at, axes=(0,), mode="set"), found]

    m.define("body", [aval, COUNT], body)
    m.define("main", [aval, Aval((5,), i32)], lambda b, x, i: m.scan(b, "body", [x, i], 5, 0, 1))
    m.check(rtol=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_steps_on_the_host_in_loops_and_branches(size: int) -> None:
    m, aval = Made(), Aval((size,), f32)
    m.define("sorted", [aval], lambda b, x: [b.sort(b.sin(x * 3.0), axis=0), x])
    m.define("plain", [aval], lambda b, x: [x, b.reshape(b.sort(x, axis=0), shape=(size,))])
    m.define("body", [aval, aval, TRUTH], lambda b, s, x, p: [*m.cond(b, p, [s + x], "sorted", "plain"), x])
    m.define("go", [aval, COUNT, aval], lambda b, c, i, x: [b.less(i, b.full((), 3, i32))])
    m.define("step", [aval, COUNT, aval], lambda b, c, i, x: [i + 1, b.sort(x * -0.5, axis=0) + c])
    m.define("body2", [aval, aval], lambda b, s, x: [b.sort(s + x, axis=0), s])

    def main(b: Any, s: Any, x: Any, p: Any, i: Any) -> list[Any]:
        found = m.scan(b, "body2", [s * 2.0, x], 4, 0, 1, reverse=True)
        _, last = m.loop(b, "go", "step", [s, i, found[0]], 1)
        taken = m.cond(b, b.equal(i, i), [last], "sorted", "plain")
        return [*found, last, *taken]

    m.define("main", [aval, Aval((4, size), f32), Aval((4,), dtypes.bool_), COUNT], main)
    program = m.check()
    assert any(isinstance(s, host.HostLoop) for s in program._main.steps)
    assert "host" in [k.schedule for k in program.kernels]


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("size", SIZES)
def test_hosted_loops_copy_what_is_not_computed(size: int, length: int) -> None:
    m, aval = Made(), Aval((size,), f32)
    m.define("body", [aval] * 5, lambda b, c, p, q, k, x: [q, p, k, b.sort(x, axis=0), x, c, k])
    avals = [aval] * 4 + [Aval((length, size), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, length, 1, 3))
    m.check()


@pytest.mark.parametrize("make_team", [threads.team, threads.PythonThreads])
def test_teams_and_sizes_of_teams(make_team: Any) -> None:
    for size in SIZES:
        m, aval = Made(), Aval((size,), f32)
        accumulate(m, size)
        m.define("go", [aval], lambda b, x: [b.less(b.full((), 0.5, f32), b.reduce_max(b.abs(x), axes=(0,)))])
        m.define("halve", [aval], lambda b, x: [x * 0.5])

        def main(b: Any, c: Any, s: Any, x: Any, m: Made = m) -> list[Any]:
            found = m.scan(b, "body", [c, b.exp(s), x], 6, 1, 1)
            return [*found, *m.loop(b, "go", "halve", [found[0]])]

        m.define("main", [aval, aval, Aval((6, size), f32)], main)
        for count in (1, 2, 3):
            with override(num_threads=count):
                m.check(team=make_team())


def test_several_threads_run_a_program_at_once() -> None:
    m = Made()
    accumulate(m, 6)
    m.define("body2", [VECTOR, VECTOR], lambda b, s, x: [b.sort(s + x, axis=0)])
    xs = Aval((50, 6), f32)

    def main(b: Any, c: Any, s: Any, x: Any) -> list[Any]:
        found = m.scan(b, "body", [c, s, x], 50, 1, 1)
        return [*found, *m.scan(b, "body2", [s, x], 50, 0, 1)]

    m.define("main", [VECTOR, VECTOR, xs], main)
    program = m.check()
    inputs = [[random_array(a, 10 * n + i) for i, a in enumerate((VECTOR, VECTOR, xs))] for n in range(4)]
    want = [run(program, arrays) for arrays in inputs]
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(20):
            found = run(program, inputs[n])
            if not all(np.array_equal(x, y) for x, y in zip(found, want[n])):
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_functions_are_shared_and_code_does_not_grow_with_the_length() -> None:
    sizes = []
    for length in (2, 10_000):
        m = Made()
        m.define("body", [SCALAR, SCALAR], lambda b, s, x: [s * 0.5 + x])
        x = Aval((length,), f32)
        m.define(
            "main", [SCALAR, x], lambda b, s, x, n=length, m=m: [*m.scan(b, "body", [s, x], n, 0, 1),
                                                                *m.scan(b, "body", [s, x], n, 0, 1, True)],
        )  # fmt: skip
        program = m.check()
        assert len(program.kernels) == 1
        sizes.append((len(program.as_text("kernel")) // 100, program.arena_bytes))
    assert sizes[0][1] == sizes[1][1] and abs(sizes[0][0] - sizes[1][0]) <= 1


def test_a_short_loop_is_one_call_of_machine_code() -> None:
    m = Made()
    accumulate(m, 6)
    avals = [VECTOR, VECTOR, Aval((1000, 6), f32)]
    m.define("main", avals, lambda b, *v: [b.exp(r) for r in m.scan(b, "body", v, 1000, 1, 1)])
    program = m.check(rtol=1e-4)
    assert len(program._main.steps) == 1
    text = program.as_text("kernel")
    assert "scf.for" in text
    arrays = [np.zeros(6, np.float32), np.zeros(6, np.float32), np.zeros((1000, 6), np.float32)]
    run(program, arrays)


def test_large_kernels_in_a_loop_run_on_a_team() -> None:
    m = Made()
    accumulate(m, 60_000)
    avals = [Aval((60_000,), f32), Aval((60_000,), f32), Aval((4, 60_000), f32)]
    m.define("main", avals, lambda b, *v: m.scan(b, "body", v, 4, 1, 1))
    program = m.check(team=threads.team())
    if threads.team().together:
        assert len(program._main.steps) == 1
        main = program.as_text("kernel").split("func.func @main_0", 1)[1]
        assert "call @GOMP_barrier" in main.split("scf.for", 1)[1]


@pytest.mark.parametrize("device", ["cpu", "metal:sim"])
def test_written_in_python(device: str) -> None:
    def loss(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = smelt.cond(smelt.sum(x) > 0, lambda h: smelt.tanh(w @ h + x), lambda h: h * 0.5, h)
            return smelt.fori_loop(0, 3, lambda i, h: h + 0.1 * i, h), smelt.sort(h)

        last, ys = smelt.scan(step, smelt.zeros(4), xs)
        return smelt.sum(last * last) + smelt.sum(ys[1:] * xs[:-1])

    rng = np.random.default_rng(0)
    w, xs = (smelt.array(rng.standard_normal(s).astype(np.float32)) for s in ((4, 4), (3, 7, 4)))
    function = smelt.vmap(smelt.grad(loss), in_axes=(None, 0))
    with override(device="reference"):
        want = np.array(smelt.compile(function)(w, xs))
    with override(device=device):
        np.testing.assert_allclose(np.array(smelt.compile(function)(w, xs)), want, rtol=1e-4, atol=1e-5)
