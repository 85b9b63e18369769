"""Op by op, or as a program: the values are the same, nobody waits for a compile that does not pay."""

from __future__ import annotations

import functools
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.errors import SmeltError
from smelt.ir.settings import override, settings
from smelt.lazy import evaluate
from smelt.lazy.evaluate import executables
from smelt.lazy.execution import direct, families, known, strided, subgraphs, tiered, tiers
from smelt.lazy.execution.programs import program_of
from smelt.lazy.graph import topological


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No programs, no kernels for all sizes, and nothing learned of what compiles take here."""
    executables.clear()
    tiers.structures.clear()
    strided.kernels.clear()
    known.by_plan.clear()
    monkeypatch.setattr(tiers, "cost", tiers.CompileCost())
    settings.small_work = 0
    yield
    tiers.structures.clear()


def both_ways(f: Callable[[], Any]) -> tuple[Any, Any]:
    """What a function returns op by op, and as programs."""
    found = []
    for tier in ("ops", "program"):
        misses = executables.misses
        with override(tier=tier):
            result = f()
            smelt.eval(result)
        assert (executables.misses > misses) == (tier == "program")
        found.append(smelt.utils.tree_map(np.asarray, result))
    return found[0], found[1]


def value(x: smelt.array) -> smelt.array:
    smelt.eval(x)
    return x


X = smelt.array(np.random.default_rng(0).uniform(0.1, 0.9, (5, 7)).astype(np.float32))
W = smelt.array(np.random.default_rng(1).uniform(-1, 1, (7, 3)).astype(np.float32))
KEY = smelt.random.key(3)


def network(x: smelt.array, w: smelt.array) -> smelt.array:
    h = smelt.tanh(x @ w)
    return smelt.mean(smelt.logsumexp(h, axis=-1) + smelt.max(h, axis=-1) * smelt.cumsum(h, axis=-1)[:, 1])


def loop(x: smelt.array) -> smelt.array:
    last, ys = smelt.scan(lambda c, a: (c * 0.5 + a, smelt.sin(c)), smelt.zeros(7), x)
    return last.sum() + ys.sum()


def halvings(x: smelt.array) -> smelt.array:
    return smelt.while_loop(lambda c: c.max() > 0.05, lambda c: smelt.sin(c) * 0.5, x)


def branch(x: smelt.array) -> smelt.array:
    return smelt.cond(x.sum() > 0, lambda v: smelt.sin(v) * v, lambda v: smelt.exp(v), x)


@smelt.custom_function
def with_rule(x: smelt.array) -> smelt.array:
    return x * 3


@with_rule.vjp
def with_rule_vjp(x: smelt.array, cotangent: smelt.array, _: smelt.array) -> smelt.array:
    return cotangent * smelt.cos(x) * 7


@smelt.custom_jvp
def forward_rule(x: smelt.array) -> smelt.array:
    return x * x


@forward_rule.defjvp
def forward_rule_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return forward_rule(x), t * x * 5


@smelt.custom_function
def rule_of_grad(x: smelt.array) -> smelt.array:
    return x * 3


@rule_of_grad.vjp
def rule_of_grad_vjp(x: smelt.array, cotangent: smelt.array, _: smelt.array) -> smelt.array:
    return cotangent * smelt.grad(lambda y: (smelt.sin(y) * forward_rule(y)).sum())(x)


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "plain": lambda: [smelt.softmax(X), X.T @ X, smelt.sort(X, axis=0), X[1:, ::2], smelt.broadcast_to(X[0], (3, 7))],
    "library": lambda: smelt.linalg.cholesky(X.T @ X + smelt.eye(7)),
    "random": lambda: smelt.random.normal((300,), key=KEY),
    "grad": lambda: smelt.grad(network, argnums=(0, 1))(X, W),
    "value_and_grad": lambda: smelt.value_and_grad(network)(X, W),
    "jvp": lambda: smelt.jvp(network, [X, W], [X, W])[1],
    "vjp": lambda: smelt.vjp(lambda x: smelt.exp(x) @ W, [X], [smelt.ones((5, 3))]),
    "pullback": lambda: smelt.vjp(lambda x: smelt.exp(x) @ W, [X])[1]([smelt.ones((5, 3))]),
    "transpose": lambda: smelt.linear_transpose(lambda x: x @ W, X)(smelt.ones((5, 3))),
    "second": lambda: smelt.grad(lambda x: (smelt.grad(lambda y: (y**3 * smelt.sin(y)).sum())(x) ** 2).sum())(X),
    "vmap of grad": lambda: smelt.vmap(smelt.grad(lambda r: (smelt.softmax(r) * r).sum()))(X),
    "grad of vmap": lambda: smelt.grad(lambda x: smelt.vmap(lambda r: smelt.sin(r).sum(), in_axes=1)(x).max())(X),
    "vmap of constants": lambda: smelt.vmap(lambda r: (r, smelt.ones(2)), out_axes=(1, 0))(X),
    "hessian": lambda: smelt.hessian(lambda x: (x**3).sum())(X[0]),
    "scan": lambda: loop(X),
    "grad of scan": lambda: smelt.grad(loop)(X),
    "cond": lambda: smelt.cond(X.sum() > 0, lambda x: smelt.sin(x), lambda x: smelt.cos(x), X),
    "while": lambda: smelt.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (smelt.array(0), X)),
    "second of scan": lambda: smelt.grad(lambda x: (smelt.grad(loop)(x) ** 2).sum())(X),
    "vmap of scan": lambda: smelt.vmap(smelt.grad(loop))(smelt.stack([X, X * 2])),
    "jvp of while": lambda: smelt.jvp(halvings, [X], [X]),
    "vmap of while": lambda: smelt.vmap(halvings)(X),
    "vmap of grad of cond": lambda: smelt.vmap(smelt.grad(lambda r: branch(r).sum()))(X - 0.5),
    "transpose of scan": lambda: smelt.linear_transpose(lambda x: smelt.scan(lambda c, a: (c + a, c), W[:, 0], x), X)(
        (smelt.ones(7), X * 2)
    ),
    "checkpoint": lambda: smelt.grad(lambda x: smelt.checkpoint(network)(x, W))(X),
    "second of checkpoint": lambda: smelt.hessian(lambda x: smelt.checkpoint(lambda y: (y**3).sum())(x))(X[0]),
    "jvp of checkpoint": lambda: smelt.jvp(smelt.checkpoint(network), [X, W], [X, W]),
    "pullback of checkpoint": lambda: smelt.vjp(smelt.checkpoint(network), [X, W])[1]([smelt.array(2.0)]),
    "rule": lambda: smelt.grad(lambda x: with_rule(x).sum())(X),
    "vmap of grad of rule": lambda: smelt.vmap(smelt.grad(lambda r: with_rule(r).sum()))(X),
    "grad of vmap of rule": lambda: smelt.grad(lambda x: smelt.vmap(with_rule)(x).sum())(X),
    "rule in scan": lambda: smelt.grad(lambda x: smelt.scan(lambda c, a: (with_rule(c) * a, c), X[0], x)[0].sum())(X),
    "rule of jvp": lambda: smelt.grad(lambda x: forward_rule(x).sum())(X),
    "rule that transforms": lambda: smelt.grad(lambda x: rule_of_grad(x).sum())(X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_values_are_the_same(name: str) -> None:
    one_by_one, compiled = both_ways(FUNCTIONS[name])
    smelt.utils.tree_map(lambda a, b: np.testing.assert_allclose(a, b, 3e-5, 3e-5), one_by_one, compiled)


@pytest.mark.parametrize("make", [
    lambda: smelt.grad(lambda x: smelt.while_loop(lambda c: c < 3, lambda c: c + 1, x.sum()))(X),
    lambda: smelt.linalg.cholesky(-smelt.eye(3) * smelt.grad(lambda x: x.sum())(X)[0, 0]),
    lambda: smelt.grad(lambda x: smelt.linalg.cholesky(-x).sum())(smelt.eye(3)),
])  # fmt: skip
def test_errors_are_the_same(make: Callable[[], smelt.array]) -> None:
    said = []
    for tier in ("ops", "program", "auto"):
        with override(tier=tier), pytest.raises(SmeltError) as caught:
            smelt.eval(make())
        assert "test_tiers.py:" in str(caught.value)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("small_work", [0, 1 << 20])
def test_one_op_goes_the_same_way_as_many(small_work: int) -> None:
    with override(tier="program", small_work=small_work):
        for x in (smelt.exp(X), smelt.exp(X) + 1):
            executables.clear()
            smelt.eval(x)
            assert len(executables) == (small_work == 0)


# What pays


def costing(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A compile takes so long, everything else 0.4 s. What was asked for is compiled at once all the same."""
    ticks = itertools.count()
    monkeypatch.setattr(tiers, "AT_ONCE", seconds)
    monkeypatch.setattr(tiers, "time", SimpleNamespace(thread_time=lambda: next(ticks) * 0.4))
    monkeypatch.setattr(tiers, "cost", cost := tiers.CompileCost())
    monkeypatch.setattr(cost, "seconds", lambda ops: seconds)


def first_compiled(runs: int) -> int:
    """After which of so many equal steps there is a program, which then stays.

    Where a process has met so many ops that one is prepared anew, the plan of the first step is not that of the second,
    and one step more goes op by op.
    """
    found = compiled_after(runs)
    assert found == sorted(found) and found[-1]
    return found.index(True)


def compiled_after(runs: int) -> list[bool]:
    """Whether there is a program after each of so many equal steps."""
    found = []
    with override(tier="auto"):
        for _ in range(runs):
            x = smelt.exp(X) * 2 + 1
            smelt.eval(x)
            np.testing.assert_allclose(x, np.exp(np.asarray(X)) * 2 + 1, 1e-5)
            found.append(len(executables) > 0)
    return found


def test_a_program_is_made_when_what_was_spent_comes_to_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 1.0)
    monkeypatch.setattr(subgraphs, "program_in_background", lambda *_, **__: None)
    assert first_compiled(5) in (2, 3)  # 0.4 + 0.4 + the next 0.4 are more than 1


@pytest.mark.parametrize("comes", [True, False])
def test_a_program_comes_from_another_process(monkeypatch: pytest.MonkeyPatch, comes: bool) -> None:
    class Pending:
        def __init__(self, *graph: Any, beside_device: bool):
            self.graph, self.asked = graph, 0

        def ready(self) -> bool:
            self.asked += 1
            return self.asked > 2

        def program(self) -> Any:
            return program_of(*self.graph) if comes else None

    costing(monkeypatch, 1.0)
    monkeypatch.setattr(subgraphs, "program_in_background", Pending)
    assert first_compiled(8) in (4, 5)


def test_the_worker_compiles_what_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 1.0)
    compiled_after(3)
    (structure,) = [tiers.structures.get(key) for key in list(tiers.structures._entries)]
    if structure.pending is not None:  # there may be no such way here
        deadline = time.monotonic() + 120
        while not structure.pending.ready() and time.monotonic() < deadline:
            time.sleep(0.01)
    with smelt.explain() as explained:
        assert compiled_after(1) == [True]
    assert structure.pending is None and len(explained.compiles) <= 1


def test_what_takes_longer_than_a_compile_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 1e-9)
    assert compiled_after(1) == [True]


def unwanted() -> Any:
    raise AssertionError("compiled in place")


def test_what_was_asked_for_is_compiled_beside_when_it_is_called_again() -> None:
    nodes = topological([smelt.tanh(X * smelt.array(2.0))._ref])
    ops = tiers.to_compile(nodes)
    begun = []
    for asked in (False, True):
        structure = tiers.Structure()
        structure.asked = asked
        for call in range(2):
            assert structure.rests(ops, 0.0) == (not asked or call == 0)
            structure.program(nodes, lambda: None, functools.partial(begun.append, (asked, call)), unwanted)
            structure.spent, structure.ops_seconds = 1e-9, 0.0
    assert begun == [(True, 1)]


def test_the_first_call_of_what_was_asked_for_has_it_compiled_where_it_takes_long() -> None:
    structure = tiers.Structure()
    structure.asked = True
    limit = tiers.cost.seconds(100)
    assert structure.rests(100, 0.9 * tiers.SOON * limit)
    assert not structure.rests(100, 1.1 * tiers.SOON * limit)


def test_repetitions_cost_a_compile_little() -> None:
    def step(x: Any, y: Any) -> Any:
        return smelt.tanh(x * y + x) - y

    def ops_of(results: list[Any]) -> tuple[int, int]:
        nodes = topological([x._ref for x in results])
        return tiers.count(nodes), tiers.to_compile(nodes)

    pairs = [(smelt.ones((4, 4)), smelt.ones((4, 4))) for _ in range(100)]
    count, ops = ops_of([step(*pairs[0])])
    count_all, ops_all = ops_of([step(*pair) for pair in pairs])
    assert count_all == 100 * count and ops < ops_all <= ops + round(tiers.REPEATED * count_all)
    x, _ = pairs[0]
    for i in range(100):  # in an order that does not repeat itself
        x = (smelt.sin, smelt.cos, smelt.exp, smelt.abs)[(i * i // 7) % 4](x) + smelt.ones((4, 4)) * i
    assert tiers.to_compile(topological([x._ref])) > 20


def test_ops_that_are_prepared_anew_compile_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 1e-3)
    compiled_after(3)
    known.by_plan.clear()  # plans have another key then: nothing is known of one
    with smelt.explain() as explained:
        assert compiled_after(3) == [True] * 3
    assert not explained.compiles


def test_a_program_that_is_slower_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    structure = tiers.Structure()
    times = iter([0.0, 1.0] + [t for i in range(tiers.RUNS) for t in (10.0 * i, 10.0 * i + 2)])
    monkeypatch.setattr(tiers, "time", SimpleNamespace(thread_time=lambda: next(times)))
    structure.run_ops(lambda: None)
    for _ in range(tiers.RUNS):
        assert not structure.prefers_ops
        structure.run_program(lambda: None)
    assert structure.prefers_ops


def test_shapes_that_change_compile_nothing() -> None:
    with override(tier="auto"):
        for n in range(1, 60):
            smelt.eval(smelt.value_and_grad(network)(smelt.ones((n, 7)), W))
    assert not len(executables)


# Memory


def test_what_nobody_needs_any_more_is_freed() -> None:
    x = smelt.zeros(1 << 20)
    smelt.eval(x)
    for _ in range(40):
        x = smelt.sin(x) + 1
    tracemalloc.start()
    with override(tier="ops"):
        smelt.eval(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * x.nbytes


def test_a_small_part_does_not_keep_the_whole() -> None:
    with override(tier="ops"):
        part = (smelt.zeros(1 << 20) + 1)[:3]
        smelt.eval(part)
    base = part._ref[0].values[0].array.base
    assert base is None or base.nbytes < 1000


def test_a_node_that_is_held_is_computed_once() -> None:
    with override(tier="ops"):
        x = smelt.exp(X)
        smelt.eval(x + 1)
        assert not topological([x._ref])


def test_memory_that_there_is_not() -> None:
    with override(tier="ops"), pytest.raises(MemoryError, match=r"smelt\.\w+: .*test_tiers\.py:"):
        smelt.eval(smelt.zeros((1 << 45,)) + 1)


def test_programs_of_functions_are_found_again() -> None:
    direct._programs.clear()
    with override(tier="ops"):
        for _ in range(5):
            smelt.eval(smelt.grad(network)(X, W))
    assert len(direct._programs) == 1


# Compiled functions


def test_a_compiled_function_meets_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "AT_ONCE", 1e9)  # however slow the machine
    with override(tier="auto"), smelt.explain() as explained:
        f = smelt.compile(smelt.value_and_grad(network, argnums=1))
        for n in (5, 6, 5, 8, 6, *range(9, 40)):
            x = X[0] * smelt.ones((n, 1))
            value, gradient = f(x, W)
            wanted, slope = smelt.value_and_grad(network, argnums=1)(x, W)
            np.testing.assert_allclose(value, wanted, 1e-5)
            np.testing.assert_allclose(gradient, slope, 1e-4, 1e-6)
    assert explained.count == 1  # the first


@pytest.mark.parametrize("tier", ["ops", "program"])
def test_a_compiled_function_goes_the_way_that_is_fixed(tier: str) -> None:
    given = [smelt.array(np.ones(n, np.float32)) for n in (5, 6)]
    with override(tier=tier), smelt.explain() as explained:
        f = smelt.compile(lambda x: smelt.softmax(x) * 3)
        for x in given:
            np.testing.assert_allclose(f(x), np.full(x.size, 3 / x.size), 1e-6)
    assert explained.count == (2 if tier == "program" else 0)


@pytest.mark.parametrize("dtype", [smelt.float16, smelt.bfloat16], ids=str)
@pytest.mark.parametrize("tier", ["ops", "program"])
def test_halves_have_the_same_bits_in_every_run_where_the_way_is_fixed(tier: str, dtype: smelt.Dtype) -> None:
    """As docs/from-mlx.md says: op by op each result is rounded, in a program what is stored."""
    x, w = (smelt.array(np.random.default_rng(i).standard_normal((64, 64)), dtype) for i in range(2))

    def f(x: smelt.array, w: smelt.array) -> smelt.array:
        h = smelt.exp(x) * x + x
        return smelt.softmax(h @ w + x, axis=-1) - h

    def rounded(x: smelt.array, w: smelt.array) -> smelt.array:
        h = value(value(value(smelt.exp(x)) * x) + x)
        return value(value(smelt.softmax(value(value(h @ w) + x), axis=-1)) - h)

    with override(tier=tier):
        found = [np.asarray(value(g(x, w)).astype(smelt.float32)) for g in [*[f] * 4, *[smelt.compile(f)] * 2]]
        want = np.asarray(rounded(x, w).astype(smelt.float32))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert np.array_equal(found[0], want) == (tier == "ops")


def test_a_size_that_comes_again_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 1.0)
    monkeypatch.setattr(tiered, "program_in_background", lambda *_, **__: None)
    first, other = (smelt.array(np.ones(n, np.float32)) for n in (4, 8))
    with override(tier="auto"), smelt.explain() as explained:
        f = smelt.compile(lambda x: smelt.softmax(x) * 3)
        f(first)
        counts = []
        for _ in range(4):
            np.testing.assert_allclose(f(other), np.full(8, 3 / 8), 1e-6)
            counts.append(explained.count)
    assert counts == [1, 1, 2, 2]


@pytest.mark.parametrize("name", ["loop", "checkpoint", "rule"])
def test_only_the_first_size_of_a_function_with_functions_is_compiled(name: str) -> None:
    body = {"loop": loop, "checkpoint": smelt.checkpoint(loop), "rule": lambda x: with_rule(x).sum()}[name]
    with override(tier="auto"), smelt.explain() as explained:
        f = smelt.compile(smelt.grad(body))
        for n in (3, 4, 5):
            smelt.eval(f(smelt.ones((n, 7))))
    assert explained.count == 1


def test_what_a_tape_refuses_is_left_to_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    direct._programs.clear()
    families.families.clear()
    monkeypatch.setattr("smelt.passes.transform.tape_transforms._TRANSFORMS", {})
    with override(tier="ops"), smelt.explain() as explained:
        np.testing.assert_allclose(smelt.grad(lambda x: (x * x).sum())(X), 2 * np.asarray(X), 1e-6)
    assert explained.count == 1


def test_what_was_asked_for_waits_for_no_compile_that_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 4.0)
    monkeypatch.setattr(tiers, "AT_ONCE", 0.25)
    expected = np.asarray(network(X, W))
    f, begun = smelt.compile(network), []
    monkeypatch.setattr(tiered, "program_in_background", lambda *_, **__: begun.append(f._store.recent))
    counts = []
    with override(tier="auto"), smelt.explain() as explained:
        for _ in range(12):
            np.testing.assert_allclose(f(X, W), expected, 1e-5)
            counts.append(explained.count)
    assert len(begun) == 1  # another process would compile it after a tenth of what that takes
    assert counts == [0] * 10 + [1] * 2  # in place, since none does


def test_what_was_asked_for_is_compiled_in_place_where_a_few_calls_make_up_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiers, "AT_ONCE", 0.0)
    big = smelt.ones((3000, 3000))
    with override(tier="auto"), smelt.explain() as explained:
        assert smelt.compile(lambda x: smelt.exp(x).mean())(big).item() == pytest.approx(np.e, 1e-5)
        assert explained.count == 1
        small = smelt.compile(lambda x: smelt.exp(x @ x).mean())
        assert small(smelt.zeros((40, 40))).item() == 1.0
        assert explained.count == 1


def test_what_was_asked_for_first_does_not_wait_until_the_compiler_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "is_loaded", lambda device: False)
    monkeypatch.setattr(tiered, "program_in_background", lambda *_, **__: None)
    small, big = smelt.ones((40, 40)), smelt.ones((4000, 4000))
    with override(tier="auto", cache=False), smelt.explain() as explained:
        assert smelt.compile(lambda x: smelt.exp(x).max() * 2)(small).item() == pytest.approx(2 * np.e, 1e-5)
        assert explained.count == 0
        assert smelt.compile(lambda x: smelt.exp(x).max() * 2)(big).item() == pytest.approx(2 * np.e, 1e-5)
        assert explained.count == 1


@pytest.mark.parametrize("kind", ["product", "gradient", "halves", "few", "after"])
def test_a_program_is_begun_for_what_libraries_do_not_take(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that a BLAS makes in any case take ten thousand times as long as what is left."""
    begun: list[str] = []
    monkeypatch.setattr(tiers.CompileCost, "seconds", lambda *args: 2.0)
    monkeypatch.setattr(tiers.CompileCost, "in_place", lambda *args: 1e9)
    monkeypatch.setattr(subgraphs.Subgraph, "begin", lambda self, device: begun.append("begun"))
    ticks = itertools.count()
    monkeypatch.setattr(tiers, "time", SimpleNamespace(thread_time=lambda: next(ticks) * 0.4))
    monkeypatch.setattr(tiers, "ELEMENT", 1e-3 if kind == "after" else tiers.ELEMENT)
    size = 2 if kind == "few" else 256
    dtype = smelt.float16 if kind == "halves" else smelt.float32
    x, w = smelt.ones((size, size), dtype), smelt.ones((size, size), dtype) * 0.001
    smelt.eval(x, w)
    monkeypatch.setattr(tiers, "OP", 1e-9)
    product = smelt.value_and_grad(lambda x, w: (x @ w)[0, 0]) if kind == "gradient" else smelt.matmul
    with override(tier="auto"):
        for _ in range(4):
            smelt.eval(smelt.exp(product(x, w)[0]) if kind != "after" else smelt.exp(product(x, w)))
    assert bool(begun) == (kind in ("halves", "few", "after"))


def test_threads_share_a_compiled_function_that_comes_to_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 2.0)
    with override(tier="auto"):
        f = smelt.compile(lambda x: smelt.exp(x).sum())
        f(smelt.ones(4))
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: f(smelt.ones(9)).item(), range(60)))
    np.testing.assert_allclose(found, np.full(60, 9 * np.e), 1e-6)


def momentum_step(passing: bool) -> Callable[[smelt.array], smelt.array]:
    """A training step whose optimizer has no state before the first call, or has it from the start."""
    parameters = {"w": X[:, :3], "b": smelt.zeros(3)}
    momenta: dict[str, smelt.array] = {} if passing else {k: smelt.zeros_like(p) for k, p in parameters.items()}
    state = [parameters, momenta]
    smelt.eval(state)

    def step(x: smelt.array) -> smelt.array:
        loss, slopes = smelt.value_and_grad(lambda p: (smelt.tanh(x @ p["w"] + p["b"]) ** 2).sum())(parameters)
        for k, slope in slopes.items():
            momenta[k] = momenta.get(k, smelt.zeros_like(slope)) * 0.9 + slope
            parameters[k] = parameters[k] - 0.1 * momenta[k]
        return loss

    return smelt.compile(step, inputs=state, outputs=state)


def test_a_step_that_makes_its_state_is_compiled_once() -> None:
    counts, losses = [], []
    for passing in (True, False):
        executables.clear()  # the second step of the one is the first of the other
        step = momentum_step(passing)
        with override(tier="auto"), smelt.explain() as explained:
            losses.append([step(W.T[:, :5]).item() for _ in range(4)])
        counts.append(explained.count)
    assert counts == [1, 1]
    np.testing.assert_allclose(losses[0], losses[1], 1e-5)


def test_a_step_that_makes_more_state_each_time_comes_to_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    costing(monkeypatch, 2.0)
    monkeypatch.setattr(tiered, "program_in_background", lambda *_, **__: None)
    held: dict[str, smelt.array] = {}
    f = smelt.compile(lambda x: held.update(y=smelt.exp(x)), inputs=held, outputs=held)
    with override(tier="auto"), smelt.explain() as explained:
        for _ in range(8):
            held.clear()
            f(X)
            np.testing.assert_allclose(held["y"], np.exp(np.asarray(X)), 1e-6)
    assert explained.count == 1


def test_where_a_program_is_asked_for_the_first_step_is_one_too() -> None:
    step, x = momentum_step(True), smelt.ones((3, 5))
    smelt.eval(x)
    with override(tier="program"), smelt.explain() as explained:
        for _ in range(3):
            step(x)
    assert explained.count == 2


@pytest.mark.tier("auto")
def test_repetitions_are_looked_for_when_a_compile_may_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    monkeypatch.setattr(evaluate, "rolled_subgraph", lambda *args: searched.append(0))
    x = smelt.array(np.arange(4.0, dtype=np.float32))
    for i in range(200):
        x = smelt.sin(x) + i % 7
    smelt.eval(x)
    assert not searched
