"""Rules of ops of other packages that raise, or return what they may not: errors that name the op and the rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.ir.aval import Aval
from smelt.ir.errors import RuleError, SmeltError
from smelt.ir.kinds import Elementwise
from smelt.ir.library import Library
from smelt.ir.op import Op, Operand, _registry
from smelt.ir.settings import override
from smelt.lazy.arrays import emit


@pytest.fixture
def defined() -> Iterator[Any]:
    """Defines ops that are gone after the test."""
    before = set(_registry)
    yield lambda base, name, **rules: _op(base, name, rules)
    for name in set(_registry) - before:
        del _registry[name]


def _op(base: type, name: str, rules: dict[str, Any]) -> Any:
    doc = f'``%0 = "smelt.{name}"(%x) : (tensor<4xf32>) -> tensor<4xf32>``'
    namespace = {"__doc__": doc, "__annotations__": {"x": "Operand"}, "__module__": __name__, "Operand": Operand}
    type(base)(name.title(), (base,), namespace | rules, name=name)
    return lambda x: emit(_registry[name], (x,), {})


def lost(self: Any, *_: Any, **__: Any) -> Any:
    raise KeyError("lost")


def unwritten(self: Any, *_: Any, **__: Any) -> Any:
    raise NotImplementedError


X = smelt.ones((2, 2))


@pytest.mark.parametrize("found", [None, 3, "f32", [None], (Aval,)])
def test_infer_gives_types(defined: Any, found: Any) -> None:
    """What is not was a crash of the process."""
    f = defined(Op, "foreign_types", infer=lambda self, x: found, reference=lambda self, x: x)
    for run in (f, smelt.compile(f), smelt.vmap(f), smelt.grad(lambda x: f(x).sum())):
        with pytest.raises(RuleError, match=r"the rule infer of smelt\.foreign_types returned"):
            smelt.eval(run(X))


@pytest.mark.parametrize("rule", ["infer", "reference", "jvp", "lower", "batch"])
def test_what_a_rule_raises_names_it(defined: Any, rule: str) -> None:
    rules = {"reference": lambda self, x: np.abs(x), "lower": lambda self, k, x: k.math("absf", x)}
    f = defined(Elementwise, f"foreign_{rule}", **rules | {rule: unwritten if rule == "batch" else lost})
    ways = {"jvp": smelt.grad(lambda x: f(x).sum()), "lower": smelt.compile(f), "batch": smelt.vmap(f)}
    run, raised = ways.get(rule, f), "NotImplementedError: " if rule == "batch" else "KeyError: 'lost'"
    said = rf"the rule {rule} of smelt\.foreign_{rule} failed: {raised}; at .*test_foreign_rules"
    with pytest.raises(RuleError, match=said):
        smelt.eval(run(X))


@pytest.mark.parametrize("found", [None, 7, "x"])
def test_lower_gives_scalars(defined: Any, found: Any) -> None:
    f = defined(Elementwise, "foreign_scalar", reference=lambda self, x: x, lower=lambda self, k, x: found)
    with pytest.raises(RuleError, match=r"the rule lower of smelt\.foreign_scalar returned .*not a scalar of its"):
        smelt.eval(smelt.compile(f)(X))


@pytest.mark.parametrize("found", [lambda x: None, lambda x: x[:1], lambda x: np.stack([x, x]), lambda x: (x, x)])
def test_results_have_the_shapes_that_infer_says(defined: Any, found: Any) -> None:
    """Of `reference` and of `host`, whose result may be what a program reads: None were numbers that are not."""
    f = defined(Op, "foreign_shape", infer=lambda self, x: x, reference=lambda self, x: found(x))
    host = {"core": "(m,n)->(m,n)", "host": lambda self, x: found(x), "reference": lambda self, x: x}
    g = defined(Library, "foreign_host", **host)
    for run, said in ((f, r"reference of smelt\.foreign_shape"), (g, r"host of smelt\.foreign_host")):
        for made in (run, smelt.compile(run)):
            with pytest.raises(SmeltError, match=rf"the rule {said} returned .*, where infer says shape \(2, 2\)"):
                smelt.eval(made(X))


def test_a_rule_that_is_not_stated_is_named(defined: Any) -> None:
    f = defined(Elementwise, "foreign_lacks", reference=lambda self, x: x)
    said = r"smelt\.foreign_lacks does not state the rule lower"
    with override(tier="program"), pytest.raises(RuleError, match=said):
        smelt.eval(smelt.compile(f)(X))
