"""Equality saturation: what it finds, that it keeps values, and that it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir import dtypes, text
from smelt.ir.builder import functions, read_function
from smelt.ir.errors import PipelineError
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import registry
from smelt.passes import Pipeline, remarks
from smelt.passes.kernels.cost import operations
from smelt.passes.rewrites import Attr, RewriteSet, Rule, Term, computed, ops, sets
from smelt.passes.rewrites.checking import check
from smelt.passes.rewrites.egraph import EGraph
from smelt.passes.rewrites.sets import find

#: Dtypes of programs: the checker takes as long for each.
AMONG = (dtypes.float32, dtypes.bfloat16, dtypes.int32, dtypes.complex64)
SIMPLE = smelt.default_pipeline("reference")
RNG = np.random.default_rng(0)


def log_softmax(x: Any) -> Any:
    e = smelt.exp(x)
    return smelt.log(e / e.sum(axis=1, keepdims=True))


def weighted(e: Any, v: Any) -> Any:
    return (e / e.sum(axis=-1, keepdims=True)) @ v


def attention(q: Any, k: Any, v: Any) -> Any:
    return smelt.softmax(q @ smelt.swapaxes(k, -1, -2) / 4, axis=-1) @ v


#: Programs with the shapes of their arguments, each with the share of its operations that is left at the most.
BETTER: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], float]] = {
    "chain that ends in a vector": (lambda a, b, v: (a @ b) @ v, ((32, 32), (32, 32), (32,)), 0.1),
    "chain from the thin side": (lambda a, b, c: a @ (b @ c), ((4, 64), (64, 64), (64, 64)), 0.2),
    "chain of four": (lambda a, b, c, d: ((a @ b) @ c) @ d, ((32, 16), (16, 32), (32, 16), (16, 2)), 0.3),
    "transposed product": (lambda a, b, v: (a @ b).T @ v, ((32, 32), (32, 32), (32,)), 0.1),
    "common factor": (lambda a, b, c: a @ c + b @ c, ((32, 32), (32, 32), (32, 32)), 0.6),
    "log softmax": (log_softmax, ((16, 16),), 0.9),
    "exponentials": (lambda x, y: smelt.exp(x) * smelt.exp(y), ((16,), (16,)), 0.7),
    "gradient of a product": (smelt.grad(lambda w, a, v: ((a @ w) @ v).sum()), ((32, 32), (32, 32), (32,)), 0.1),
    "rows divided by their sums": (weighted, ((8, 64), (64, 2)), 0.85),
    "attention": (attention, ((64, 4), (64, 4), (64, 4)), 0.95),
    "attention of heads": (attention, ((2, 3, 32, 4), (2, 3, 32, 4), (2, 3, 32, 4)), 0.95),
    "scaled operands": (lambda a, b: (a * 0.5) @ (b * 3.0).T, ((4, 64), (4, 64)), 0.85),
    "sum of a product": (lambda a, b: (a @ b).sum(), ((32, 32), (32, 32)), 0.1),
    "rows of a product": (lambda a, b: (a @ b).sum(axis=0), ((32, 32), (32, 32)), 0.1),
    "factors": (lambda x, y, z: x * y + z * x + y * x, ((64,), (64,), (64,)), 0.85),
}  # fmt: skip


def passed(f: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, Any]:
    """The module of a function after the simple passes, and after saturation."""
    source = smelt.make_ir(f)(*[smelt.zeros(shape) for shape in shapes])
    modules = text.parse(source), text.parse(source)
    SIMPLE.run(modules[0])
    SIMPLE.after("dce", "saturate,canonicalize,cse,dce").run(modules[1])
    return modules


def work(module: Any) -> float:
    return sum(map(operations, read_function(functions(module)["main"]).ops))


@pytest.mark.parametrize("name", BETTER)
def test_it_finds_what_canonicalize_does_not(name: str) -> None:
    f, shapes, most = BETTER[name]
    before, after = passed(f, shapes)
    assert work(after) <= most * work(before), (work(after), work(before), text.to_text(after))
    inputs = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
    want, found = Interpreter(before)("main", inputs)[0], Interpreter(after)("main", inputs)[0]
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4 * float(np.abs(want).max()))


def test_what_cannot_be_better_stays_as_it_is() -> None:
    f = lambda a, b: smelt.tanh(a @ b) + 1  # noqa: E731
    before, after = passed(f, ((8, 8), (8, 8)))
    assert text.to_text(before) == text.to_text(after)


def test_loops_calls_and_integers_are_leaves() -> None:
    def f(x: Any, n: Any) -> Any:
        carried = smelt.scan(lambda c, y: (c * y + x, None), x, smelt.ones(3))[0]
        return (smelt.exp(carried) * smelt.exp(x)).sum() + (n * n + n * 3).sum()

    before, after = passed(f, ((4,), (4,)))
    inputs = [RNG.standard_normal((4,)).astype(np.float32) for _ in range(2)]
    want, found = Interpreter(before)("main", inputs)[0], Interpreter(after)("main", inputs)[0]
    np.testing.assert_allclose(found, want, rtol=1e-5)
    assert text.to_text(after).count('"smelt.exp"') == 1


def test_it_compiles_and_is_a_part_of_pipelines() -> None:
    a, b, v = (smelt.array(RNG.standard_normal(s).astype(np.float32)) for s in ((8, 8), (8, 8), (8,)))
    compiled = smelt.compile(lambda a, b, v: (a @ b) @ v, pipeline="after:dce=saturate{rounds=3 max-nodes=500}")
    np.testing.assert_allclose(np.array(compiled(a, b, v)), np.array(a @ (b @ v)), rtol=1e-4, atol=1e-5)


@pytest.fixture
def trial() -> Iterator[RewriteSet]:
    yield RewriteSet("trial", both_ways=True)
    del sets._sets["trial"]


def test_an_explosion_ends_at_the_limit(trial: RewriteSet) -> None:
    @trial.rewrite
    def grows(x: Term, y: Term) -> Rule:
        return x + y >> (x + y) * 1 + 0

    @trial.rewrite
    def swaps(x: Term, y: Term, z: Term) -> Rule:
        return (x + y) + z >> (z + y) + x

    assert find("trial") is trial
    source = smelt.make_ir(lambda x, y: x + y + x + y + 1 + x)(smelt.zeros(4), smelt.zeros(4))
    Pipeline.parse("saturate{set=trial rounds=50 max-nodes=300}").run(text.parse(source))
    with pytest.raises(PipelineError, match="no set of rewrites 'none'"):
        Pipeline.parse("saturate{set=none}").run(text.parse(source))


def test_it_says_what_it_did_and_which_limit_it_met() -> None:
    arguments = [smelt.zeros(shape) for shape in ((32, 32), (32, 32), (32,))]
    lowered = smelt.compile(lambda a, b, v: (a @ b) @ v).trace(*arguments).lower()
    source, told = text.to_text(lowered.module, locations=True), []
    for options in "", "{max-ops=1}", "{rounds=1}", "{max-nodes=5}":
        with remarks.collected() as found:
            Pipeline.parse(f"canonicalize,saturate{options}").run(text.parse(source))
        told.append([(r.kind, r.rule, r.function) for r in found if r.pass_name == "saturate"])
        assert all(r.line for r in found if r.pass_name == "saturate")
    limit = ("analysis", "limits", "main")
    better = ("passed", "cheaper", "main")
    assert told == [[better], [("missed", "max-ops", "main")], [limit, better], [limit]]


def test_attributes_may_be_numbers_and_computed(trial: RewriteSet) -> None:
    """A number is no class, whatever its value; what is computed from a variable sees its shape."""

    @computed
    def last(x: Any, a: int) -> int:
        return x.ndim - 1 - (a == 0)

    @trial.rewrite
    def sorted_along_the_other_axis(x: Term, a: Attr) -> Rule:
        return ops.sort(ops.exp(x), axis=a) >> ops.sort(x, axis=last(x, a))

    module = text.parse(smelt.make_ir(lambda x: smelt.sort(smelt.exp(x), axis=1))(smelt.zeros((3, 4))))
    Pipeline.parse("saturate{set=trial}").run(module)
    (op,) = read_function(functions(module)["main"]).ops[-1:]
    assert op.name == "sort" and op.attrs["axis"] == 1 and op.operands[0].owner is None


def test_classes_of_the_same_op_on_equal_classes_merge() -> None:
    graph, aval = EGraph(), smelt.zeros(3).aval
    exp = registry["exp"]
    x, y = graph.add(None, {}, (), aval, "x"), graph.add(None, {}, (), aval, "y")
    fx, fy = graph.add(exp, {}, (x,), aval), graph.add(exp, {}, (y,), aval)
    ffx, ffy = graph.add(exp, {}, (fx,), aval), graph.add(exp, {}, (fy,), aval)
    assert graph.find(ffx) != graph.find(ffy)
    graph.merge(x, y)
    graph.rebuild()
    assert graph.find(fx) == graph.find(fy) and graph.find(ffx) == graph.find(ffy)


@pytest.mark.parametrize("name", find("algebra").rewrites)
def test_its_rules_hold_for_real_numbers(name: str) -> None:
    verdict = check(find("algebra").rewrites[name], among=AMONG)
    assert verdict.kept and verdict.instances, str(verdict)
