"""Each pattern of canonicalize on random graphs that it matches: interpreted, and through kernels.

The graphs are drawn from the ops that a pattern is tried on and those that its text mentions, on arrays whose
axes are equally long: what mixes up axes then shows in the elements alone.
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import smelt.passes.simplify.canonicalize  # noqa: F401  (registers the patterns)
from smelt.ir import mlir
from smelt.ir.interpreter import Interpreter
from smelt.ir.op import Op, registry
from smelt.passes import Pipeline
from smelt.passes.rewrites import canonical
from smelt.passes.rewrites.terms import Applied, subterms
from smelt.passes.simplify import patterns, patterns_convolution
from tests.compose.alike import graph_of
from tests.compose.graphs import Graph
from tests.compose.kernels import WAYS, module_of, problems
from tests.examples import examples

#: Graphs of each pattern that are interpreted, of which the first few go through kernels.
INTERPRETED, COMPILED = examples(24), 4
#: Graphs that are drawn for them at most, and as long as there are few of those that go through kernels.
ENOUGH, DRAWN = examples(150), 1500


def functions() -> dict[str, tuple[Callable, list[Op]]]:
    """Every pattern with the ops that it is tried on."""
    found: dict[str, tuple[Callable, list[Op]]] = {}
    for op in registry.values():
        for function in patterns.patterns_of(op):
            found.setdefault(function.__name__, (function, []))[1].append(op)
    return found


PATTERNS = functions()


#: What patterns ask an op that is no root of theirs.
ASKED = ("complement", "gives_positions", "odd_operands")


def _words_of_helpers(function: Callable) -> set[str]:
    """The names in functions of the pattern's own file that it calls."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    own = [f for f in called if inspect.isfunction(f) and f.__module__ == function.__module__]
    return {name for f in own for name in f.__code__.co_names}


def mentioned(function: Callable) -> list[Op]:
    """The ops whose names a pattern's text has, in code or in prose, or that answer what it asks; constants, which
    hardly any can do without."""
    words = set(re.findall(r"\w+", inspect.getsource(function)))
    if (stated := canonical.rewrites.get(function.__name__.replace("_", "-"))) is not None:
        terms = [x for rule in stated.rules for y in (rule.pattern, rule.replacement) for x in subterms(y)]
        words |= {x.op.name for x in terms if isinstance(x, Applied)}
    asked = [name for name in ASKED if name in words or name in _words_of_helpers(function)]
    found = [op for op in registry.values() if op.name in words or any(getattr(op, name) for name in asked)]
    return [op for op in found if op.kind != "transform"] + [registry["constant"]]


@functools.cache
def matches(name: str) -> list[tuple[Graph, mlir.ir.Module]]:
    """Graphs that a pattern matches, with what canonicalize makes of them."""
    function, roots = PATTERNS[name]
    roots = [op for op in roots if op.kind != "transform"]
    inner = mentioned(function)
    pipeline = Pipeline.parse("canonicalize")
    found: list[tuple[Graph, mlir.ir.Module]] = []
    for seed in range(DRAWN):
        if len(found) == INTERPRETED or (len(found) >= COMPILED and seed >= ENOUGH):
            break
        graph = graph_of(seed, roots, inner)
        module = module_of([graph])
        (record,) = pipeline.run(module)
        if record.statistics[name.replace("_", "-")]:
            found.append((graph, module))
    return found


def test_every_registered_pattern_is_tested():
    assert set(PATTERNS) == set(patterns.all_patterns())


@pytest.mark.parametrize("outer, inner", [("floor", "ceil"), ("round", "trunc"), ("sign", "round"), ("ceil", "abs")])
def test_graphs_have_ops_that_jump_on_each_other(outer: str, inner: str) -> None:
    """So that a pattern on what is rounded already is tried."""
    graphs = [graph_of(seed, [registry[outer]], [registry[inner]]) for seed in range(60)]
    pairs = [(s.op, g.steps[k].op) for g in graphs for s in g.steps for k in s.operands]
    assert pairs.count((registry[outer], registry[inner])) >= 4


@pytest.fixture
def small_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns that pay for much work alone match small graphs, too."""
    monkeypatch.setattr(patterns_convolution, "WORK", 0)
    monkeypatch.setattr(patterns_convolution, "CHANNELS", 1)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.usefixtures("small_is_enough")
def test_pattern_keeps_values(name):
    found = matches(name)
    assert len(found) >= COMPILED, f"random graphs hardly reach {name}: see mentioned() and alike.graph_of"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        told = [g.differences(Interpreter(module)("main", g.inputs)) for g, module in found]
    assert not any(told), next(filter(None, told))
    wrong = problems([g for g, _ in found[:COMPILED]], WAYS[0])
    assert not wrong, wrong[0]
