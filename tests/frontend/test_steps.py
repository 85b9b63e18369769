"""Plans: graphs that run as calls of NumPy."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import OutOfMemoryError
from smelt.ir.op import HostCall
from smelt.ir.op import registry as ops
from smelt.ir.settings import override, settings
from smelt.lazy import core, evaluate
from smelt.lazy.execution import direct, known, tiers
from smelt.lazy.execution.steps import Plan, plan

pytestmark = pytest.mark.usefixtures("small_heap")


def planned(*arrays: smelt.array) -> Plan:
    found = plan([x._ref for x in arrays])
    assert found is not None and found.plain
    return found


def names(found: Plan) -> list[str]:
    return [node.op.name for node in found.order()]


def test_nothing_to_do_is_no_plan() -> None:
    x = smelt.array([1.0, 2.0])
    assert plan([]) is None and plan([x._ref]) is None


def test_a_plan_lists_nodes_and_what_is_kept() -> None:
    x = smelt.array([1.0, 2.0])
    y = smelt.exp(x)
    z = -(y * x) + x
    found = planned(z)
    assert names(found) == ["exp", "mul", "neg", "add"] and len(found) == 4
    assert [node.op.name for node in found.kept()] == ["exp", "add"]  # the product is nobody's
    found.run()
    assert y._ref[0].values is not None
    np.testing.assert_array_equal(z, -(np.exp(np.float32([1, 2])) * np.float32([1, 2])) + np.float32([1, 2]))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_functions_refer_to_is_kept_for_others_alone(depth: int) -> None:
    """A gradient is taken of a function recorded on the very arrays, which refers to what was made outside of it."""
    x = smelt.array(np.arange(6, dtype=np.float32))
    held = smelt.exp(smelt.zeros(6))

    def loss(v: smelt.array) -> smelt.array:
        f: Any = lambda w: (w * smelt.cos(smelt.ones(6)) * held).sum()  # noqa: E731
        for _ in range(depth):
            f = smelt.checkpoint(f)
        return f(v + 1)

    found = plan([smelt.grad(loss)(x * 2)._ref])
    assert found is not None and {"cos", "exp", "mul"} < set(names(found))
    assert [node.op.name for node in found.kept()] == ["exp", "apply"]


def _split(x: smelt.array, s: smelt.array) -> tuple[smelt.array, smelt.array]:
    s = s * 0.5 + x
    return s.sum(), s


def _with_gradient(x: smelt.array, s: smelt.array) -> tuple[smelt.array, smelt.array]:
    loss, gradient = smelt.value_and_grad(lambda w: (w * x).sum())(s)
    return loss, s - 0.1 * gradient


def _with_vectors(x: smelt.array, s: smelt.array) -> tuple[smelt.array, smelt.array]:
    values, vectors = smelt.linalg.eigh(s[:, None] * s[None, :] + smelt.diag(x))
    return values.sum(), s + vectors[0]


@pytest.mark.parametrize("step", [_split, smelt.compile(_split), _with_gradient, _with_vectors])
@pytest.mark.parametrize("tier", ["ops", "auto", "program"])
def test_a_state_that_is_made_beside_what_is_wanted_is_not_made_again(
    step: Callable[..., Any], tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the results of one node the first is asked for at each step, and the second is what the next step reads."""
    lengths: list[int] = []

    def measured(refs: Any) -> Any:
        found = plan(refs)
        lengths.append(0 if found is None else len(found))
        return found

    monkeypatch.setattr(evaluate, "plan", measured)
    x, state = smelt.array([1.0, 2.0, 3.0]), smelt.array([1.0, 2.0, 3.0])
    most = []
    with override(tier=tier):
        for _ in range(8):
            value, state = step(x, state)
            lengths.clear()
            smelt.eval(value * 2)
            most.append(max(lengths))
    assert len(set(most[3:])) == 1, most


@pytest.mark.parametrize("small_work, apart", [(1000, 0), (10, 1)])
def test_graphs_in_small_pieces_stay_plans(small_work: int, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of compiled functions divide a graph into pieces. Where none of them is worth a program, no time that they
    have taken makes them run apart."""
    half = smelt.compile(lambda x: x * 0.5)
    x = smelt.array(np.arange(64, dtype=np.float32))
    smelt.eval(half(x + 1.0))
    known.by_plan.clear()
    evaluated: list[Any] = []
    run = evaluate._evaluate
    monkeypatch.setattr(evaluate, "_evaluate", lambda request: (evaluated.append(request), run(request)))
    with override(tier="auto", small_work=small_work):
        for _ in range(4):
            monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 0.0)  # every program pays
            y = half(half(smelt.exp(x * 0.01)) + 1.0) - 1.0
            assert planned(y).work > 1000
            evaluated.clear()
            smelt.eval(y)
            assert len(evaluated) == apart


def test_work_that_is_no_call_has_no_plain_plan() -> None:
    x = smelt.array([4.0, 9.0])

    def result() -> smelt.array:
        return smelt.cond(smelt.array(True), smelt.sqrt, smelt.exp, x) + 1.0

    found = plan([result()._ref])
    assert found is not None and not found.plain
    if core.native is not None:
        for refused in (found.key, found.run):
            with pytest.raises(ValueError, match="not plain"):
                refused()
    np.testing.assert_allclose(result(), [3.0, 4.0], rtol=1e-6)


def test_equal_structures_have_equal_keys_and_no_others() -> None:
    x, y = smelt.array([1.0, 2.0]), smelt.array([3.0, 4.0])
    same = [planned(f(a, b)).key() for a, b in ((x, y), (y, x)) for f in (lambda a, b: a * b + a,)]
    assert same[0] == same[1]
    wide = smelt.array([1.0, 2.0, 3.0])
    others: list[Callable[[], smelt.array]] = [
        lambda: x * x + x,
        lambda: x * y + y,
        lambda: x * y - x,
        lambda: wide * wide + wide,
        lambda: x.astype(smelt.float16) * 2,
    ]
    keys = [planned(f()).key() for f in others]
    assert len({*keys, same[0]}) == len(others) + 1
    q, r = smelt.linalg.qr(smelt.eye(2))
    smelt.eval(q, r)
    assert planned(q * q).key() != planned(q * r).key()


def test_broadcasts_are_made_where_they_are_needed() -> None:
    column, row = smelt.array([[1.0], [2.0]]), smelt.array([[10.0, 20.0, 30.0]])
    a, b = np.float32([[1], [2]]), np.float32([[10, 20, 30]])
    np.testing.assert_array_equal(column + row, a + b)
    np.testing.assert_array_equal((column + row) * 2.0, (a + b) * 2)
    np.testing.assert_array_equal(
        smelt.broadcast_to(column, (2, 3)) + smelt.broadcast_to(column, (2, 3)), a + a + 0 * b
    )
    np.testing.assert_array_equal(
        smelt.broadcast_to(column, (2, 3)) @ smelt.ones((3, 2)), np.broadcast_to(a * 3, (2, 2))
    )
    kept = smelt.broadcast_to(row, (2, 3))
    total = kept + column
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(kept, b + 0 * a)
    np.testing.assert_array_equal(smelt.where(column > 1.0, row, 0.0), np.where(a > 1, b, 0))


def test_results_without_axes_and_without_elements() -> None:
    x = smelt.array([1.0, 2.0])
    assert (smelt.sum(x) + 1.0).item() == 4.0 and (smelt.sum(x) * smelt.sum(x)).item() == 9.0
    assert smelt.array(2.0)[None][0].item() == 2.0
    assert (smelt.zeros((0, 3)) + 1.0).tolist() == [] and smelt.sum(smelt.zeros((0, 3)) + 1.0).item() == 0.0


def test_half_precision_and_complex() -> None:
    x = smelt.array([0.1, 2.0], dtype=smelt.bfloat16)
    assert (smelt.exp(x) + x).dtype is smelt.bfloat16
    np.testing.assert_allclose((smelt.exp(x) + x).astype(smelt.float32), [1.2, 9.4], rtol=1e-2)
    z = smelt.array([1 + 2j, 3 - 1j])
    np.testing.assert_array_equal(smelt.abs(z * z), np.abs(np.complex64([1 + 2j, 3 - 1j]) ** 2))


def test_evaluated_graphs_are_released() -> None:
    x = smelt.array([1.0, 2.0])
    y = smelt.exp(x)
    z = y * 2.0
    watched = weakref.ref(y._ref[0])
    smelt.eval(z)
    del y
    gc.collect()
    assert watched() is None


def random_graph(seed: int) -> Callable[[], list[smelt.array]]:
    leaves = [smelt.array(np.random.default_rng(seed + i).normal(size=(3, 4)).astype(np.float32)) for i in range(3)]

    def make() -> list[smelt.array]:
        chosen = random.Random(seed)
        found = list(leaves)
        for _ in range(30):
            x, y = chosen.choice(found), chosen.choice(found)
            way = chosen.randrange(8)
            if way == 0:
                found.append(x + y)
            elif way == 1:
                found.append(smelt.maximum(x, y) * 0.5)
            elif way == 2:
                found.append(smelt.tanh(x))
            elif way == 3:
                found.append(x - smelt.mean(x, axis=1, keepdims=True))
            elif way == 4:
                found.append(smelt.where(x > y, x, smelt.sum(y, axis=0)))
            elif way == 5:
                found.append((x @ y.T) @ x * 0.1)
            elif way == 6:
                found.append(x.reshape(4, 3).T)
            else:
                found.append(smelt.concatenate([x[:, 1:], y[:, :1]], axis=1))
        return found[3:]

    return make


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_have_the_values_of_each_op_alone(seed: int) -> None:
    make = random_graph(seed)
    with override(small_work=1 << 40):
        together, apart = make(), make()
        smelt.eval(together[-1], together[len(together) // 2])
        for x in apart:
            smelt.eval(x)
        for x, y in zip(together, apart):
            np.testing.assert_array_equal(x, y)


def read_all(shared: list[smelt.array], want: list[np.ndarray], seed: int, failed: list[BaseException]) -> None:
    order = list(range(len(shared)))
    random.Random(seed).shuffle(order)
    try:
        for i in order:
            np.testing.assert_allclose((shared[i] + 0.0).tolist(), want[i], rtol=1e-3, atol=1e-4)
    except BaseException as error:
        failed.append(error)


@pytest.mark.parametrize("tier", ["ops", "auto", "program"])
def test_threads_that_share_nodes(tier: str) -> None:
    with override(tier=tier, small_work=1 << 40 if tier == "ops" else 200):
        for seed in range(2):
            make, failed = random_graph(seed), list[BaseException]()
            want = [np.array(x) for x in make()]
            shared = make()
            threads = [threading.Thread(target=read_all, args=(shared, want, i, failed)) for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(200)
            assert not failed and not any(thread.is_alive() for thread in threads)


def test_another_thread_gives_a_value_while_an_evaluation_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    x = smelt.array([1.0, 2.0])
    y = smelt.exp(x)
    z = y * 2.0
    other, made, plans = planned(y), evaluate.plan, list[Any]()
    thread = threading.Thread(target=other.run)

    def interrupted(refs: Any) -> Any:
        plans.append(made(refs))
        if len(plans) == 2:  # the first only looks whether calls of NumPy will do
            thread.start()
            thread.join(0.2)  # in Python it waits for the lock
        return plans[-1]

    monkeypatch.setattr(evaluate, "plan", interrupted)
    with override(tier="program", small_work=0):
        np.testing.assert_allclose(z.tolist(), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    thread.join(60)
    np.testing.assert_allclose(y, np.exp([1.0, 2.0]), rtol=1e-6)
    assert not y._ref[0].owner and not z._ref[0].owner


def test_a_compile_in_another_thread_stalls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on, found = threading.Event(), threading.Event(), []
    run = evaluate._run_program

    def slow(*args: Any) -> None:
        begun.set()
        assert goes_on.wait(60)
        run(*args)

    monkeypatch.setattr(evaluate, "_run_program", slow)
    x = smelt.array([1.0, 2.0])

    def large() -> None:
        with override(tier="program", small_work=0):
            found.append(smelt.exp(x).tolist())

    thread = threading.Thread(target=large)
    thread.start()
    assert begun.wait(60)
    with override(tier="auto", small_work=1 << 20):
        assert (x + 1.0).tolist() == [2.0, 3.0] and smelt.exp(x).shape == (2,)
        np.testing.assert_allclose(smelt.grad(lambda y: (y * y).sum())(x), [2.0, 4.0])
    goes_on.set()
    thread.join(60)
    np.testing.assert_allclose(found, [np.exp([1.0, 2.0])], rtol=1e-6)


def test_gradients_are_calls_of_plans() -> None:
    x = smelt.array([[1.0, 2.0], [3.0, 4.0]])

    def loss(w: smelt.array) -> smelt.array:
        return smelt.mean((smelt.tanh(w @ x) - 1.0) ** 2)

    want = None
    for _ in range(4):  # from the third on by prepared calls
        value, gradient = smelt.value_and_grad(loss)(x * 0.1)
        found = plan([value._ref, gradient._ref])
        assert found is not None and found.plain and found.ops > len(found)
        bits = np.array(value).tobytes() + np.array(gradient).tobytes()
        want = want or bits
        assert bits == want


def test_a_plan_that_failed_runs_again() -> None:
    x = smelt.array([1.0, 2.0])
    refs = [(smelt.tanh(y * 2.0) + y)._ref for y in (smelt.exp(x),)]
    failing = next(node for node in plan(refs).order() if node.op.name == "tanh")
    prepared = failing.prepared[0] if isinstance(failing.prepared, list) else failing.prepared
    errors = [MemoryError("no memory")]

    def fail_once(y: np.ndarray) -> np.ndarray:
        if errors:
            raise errors.pop()
        return np.tanh(y)

    failing.prepared = prepared._replace(function=fail_once)
    del failing
    found = plan(refs)
    with pytest.raises(OutOfMemoryError):
        found.run()
    found.run()
    y = np.exp(np.float32([1, 2]))
    np.testing.assert_array_equal(refs[0][0].values[0].array, np.tanh(y * 2) + y)


def test_no_memory_in_a_program_names_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "small_work", 1 << 20)
    gradient = smelt.grad(lambda w: smelt.exp(w).sum())
    x = smelt.array([0.0, 0.0])
    for _ in range(3):
        assert gradient(x).tolist() == [1.0, 1.0]
    y = gradient(x)
    program = direct.program_of(y._ref[0].attrs["callee"], y._ref[0].attrs["transforms"])
    assert program is not None and program._calls

    def fail(*_: Any) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(program, "_calls", [call._replace(function=fail) for call in program._calls])
    with pytest.raises(OutOfMemoryError, match=r"smelt\.\w+: no memory"):
        smelt.eval(y)
    monkeypatch.undo()
    assert y.tolist() == [1.0, 1.0]


def test_calls_of_many_arguments_are_left_to_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core in C has room for so many."""
    exp = ops["exp"]
    many = HostCall(lambda x, *rest: x, tuple(range(40)))
    monkeypatch.setattr(type(exp), "host_call", lambda *_, **__: many)
    x = smelt.array([[[0.0, 0.0, 0.0, 0.0, 0.0]]])  # a shape of which nobody has a node yet
    assert smelt.exp(x).tolist() == [[[1.0] * 5]]
    for _ in range(4):
        assert smelt.grad(lambda x: smelt.exp(x).sum())(x).tolist() == [[[1.0] * 5]]


@pytest.mark.parametrize("count", [19, 23, 24, 25, 60, 400])
def test_functions_of_many_arrays_are_calls(count: int) -> None:
    arrays = [smelt.array(np.float32([i, i + 1])) for i in range(count)]
    step = smelt.value_and_grad(lambda xs: sum((x * x).sum() for x in xs))
    loss, slopes = step(arrays)
    found = planned(loss, *slopes)
    found.run()
    np.testing.assert_allclose(loss, sum(i**2 + (i + 1) ** 2 for i in range(count)), 1e-5)
    for i, slope in enumerate(slopes):
        np.testing.assert_array_equal(slope, [2 * i, 2 * i + 2])


@pytest.mark.host("small graphs run op by op on the CPU")
def test_long_graphs_of_small_ops_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*args: Any) -> Any:
        raise AssertionError("not run as a plan")

    xs = [smelt.array(np.full(300, i, np.float32)) for i in range(evaluate.MAX_NODES)]
    smelt.eval(xs)
    with override(tier="auto", small_work=0), monkeypatch.context() as patched:
        patched.setattr(evaluate, "_evaluate", unwanted)
        ys = [x * 2 + 1 for x in xs]
        smelt.eval(ys)
    np.testing.assert_array_equal([y[7].item() for y in ys], np.arange(evaluate.MAX_NODES) * 2 + 1)


def test_what_libraries_compute_is_a_plan_whose_errors_name_the_line() -> None:
    """Of one result, of several, behind other ops; what takes long is claimed by one thread instead."""
    x = smelt.array(np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32))
    spectrum = smelt.fft.rfft(x + 1)
    assert names(planned(spectrum))[-2:] == ["add", "rfft"]
    np.testing.assert_allclose(spectrum, np.fft.rfft(np.asarray(x) + 1), atol=1e-5)
    q, r = smelt.linalg.qr(x)
    planned(q, r).run()
    np.testing.assert_allclose(np.asarray(q) @ np.asarray(r), x, atol=1e-5)
    singular = smelt.linalg.inv(smelt.zeros((2, 3, 3)))
    said = r"smelt\.inv.*singular.*; at .*test_steps\.py:\d+$"
    for run in (planned(singular).run, lambda: smelt.eval(singular)):
        with pytest.raises(smelt.errors.LibraryError, match=said) as error:
            run()
        assert str(error.value).count("test_steps") == 1
    large = plan([smelt.fft.fft(smelt.zeros((1 << 10, 1 << 10), smelt.complex64))._ref])
    assert large is not None and not large.plain
